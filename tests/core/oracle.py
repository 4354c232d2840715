"""What the oracles share: how to get one, and how this project's coordinates are laid out.

An oracle is a module with `acceleration(linkage, q, v, tau, wrenches, gravity, inertia)`, which returns the joint
accelerations (nv,) in this project's coordinates: `tau` (nv,) are all joint forces but damping, `wrenches` (n, 6) are
(torque about the link's origin, force) on each link in world axes, and `inertia` (nv,) adds to the joints' armature.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from core.joint import COORDINATES, FREEDOMS
from core.linkage import Link, Linkage

PACKAGES = {"mujoco": "mujoco", "pinocchio": "pinocchio", "extended": "numpy"}


def load(name: str) -> ModuleType:
    """The oracle called `name`; skips the test where its library is missing, fails it where oracles are required."""
    package = PACKAGES[name]
    if importlib.util.find_spec(package) is None:
        reason = f"this oracle needs {package!r}, which is not installed"
        assert os.environ.get("ARMATURE_DYNAMICS_REQUIRE_ORACLES") != "1", reason
        pytest.skip(reason)
    return importlib.import_module(f"oracle_{name}")


def layout(linkage: Linkage) -> Iterator[tuple[Link, slice, slice]]:
    """Each link with its slices of the joint coordinates and of the velocities."""
    q = v = 0
    for link in linkage.links():
        kind = link.joint.kind
        yield link, slice(q, q + COORDINATES[kind]), slice(v, v + FREEDOMS[kind])
        q, v = q + COORDINATES[kind], v + FREEDOMS[kind]


def per_freedom(linkage: Linkage, field: str) -> np.ndarray:
    """A field of every joint, such as "damping", as one array (nv,)."""
    parts = [np.broadcast_to(getattr(link.joint, field), (FREEDOMS[link.joint.kind],)) for link in linkage.links()]
    return np.concatenate([np.zeros(0), *parts])
