"""The linkage a person edits: links that point at each other.

Connectivity is the four pointers of Yamane and Nakamura (Dynamics Computation of Structure-Varying Kinematic
Chains, section 3): `parent`, `child` (the first), `brother` (the next with the same parent), and `real` for a
virtual link, which closes a loop. Numbers are SI units and radians.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from .joint import FREEDOMS, Joint
from .shape import Shape


class LinkageError(ValueError):
    """A linkage that cannot be simulated; the message names the link and the remedy."""


@dataclass(eq=False)
class Link:
    """A rigid body and the joint that carries it.

    The link's frame has its origin at the joint. With all joint coordinates zero it stands at `position` (3,) [m] and
    `rotation` (3, 3) in the parent's frame; for a root the parent is the world.

    `mass` [kg]; `center_of_mass` (3,) [m] and `inertia` (3, 3) [kg m²] about the center of mass, in the link's frame.
    `keyed` links follow the source motion instead of the dynamics and drive the links they carry.
    """

    name: str
    joint: Joint = field(default_factory=Joint)
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    mass: float = 1.0
    center_of_mass: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.eye(3))
    shapes: list[Shape] = field(default_factory=list)
    keyed: bool = False

    parent: Link | None = field(default=None, repr=False)
    child: Link | None = field(default=None, repr=False)
    brother: Link | None = field(default=None, repr=False)
    real: Link | None = field(default=None, repr=False)

    def validate(self) -> None:
        """Raises LinkageError where the link or its joint cannot be simulated."""
        if any(np.shape(x) != (3,) or not np.isfinite(x).all() for x in (self.position, self.center_of_mass)):
            self._refuse("its position or center of mass is not three finite numbers", "check the bone's transforms")
        rotation = np.asarray(self.rotation, dtype=float)
        if rotation.shape != (3, 3) or not np.isfinite(rotation).all():
            self._refuse("its rotation is not a finite 3 by 3 matrix", "check the bone's transforms")
        if np.abs(rotation.T @ rotation - np.eye(3)).max() > 1e-6 or np.linalg.det(rotation) < 0:
            self._refuse("its rotation is not a pure rotation", "remove scale, shear and mirroring")
        self._validate_mass()
        self._validate_joint()

    def _validate_mass(self) -> None:
        if not (np.isfinite(self.mass) and (self.mass > 0 or self.keyed)):
            self._refuse(f"mass {self.mass} is not positive", "give it a positive mass or weld it to its parent")
        inertia = np.asarray(self.inertia, dtype=float)
        if inertia.shape != (3, 3) or not np.isfinite(inertia).all():
            self._refuse("its inertia is not a finite 3 by 3 matrix", "compute it from its shape")
        if np.abs(inertia - inertia.T).max() > 1e-9 * np.abs(inertia).max():
            self._refuse("its inertia is not symmetric", "compute it from its shape")
        principal = np.linalg.eigvalsh(inertia)
        if not self.keyed and (principal[0] <= 0 or principal[2] > (principal[0] + principal[1]) * (1 + 1e-6)):
            self._refuse("its inertia belongs to no rigid body", "moments must be positive, none above the others' sum")

    def _validate_joint(self) -> None:
        joint = self.joint
        if joint.kind not in FREEDOMS:
            self._refuse(f"unknown joint kind {joint.kind!r}", f"use one of {', '.join(FREEDOMS)}")
        d = FREEDOMS[joint.kind]
        values = {}
        for name in ("lower", "upper", "damping", "armature", "stiffness", "drive_damping"):
            value = values[name] = np.asarray(getattr(joint, name), dtype=float)
            if value.ndim > 1 or (value.ndim == 1 and value.shape != (d,)):
                self._refuse(f"{name} has shape {value.shape}", f"give a number or {d} numbers")
            if name in ("lower", "upper"):
                if np.isnan(value).any():
                    self._refuse(f"{name} is {value}", "give a number")
            elif not (np.isfinite(value).all() and (value >= 0).all()):
                self._refuse(f"{name} is {value}", "give a finite number of at least zero")
        lower, upper = values.pop("lower"), values.pop("upper")
        if (lower > upper).any():
            self._refuse(f"lower limit {lower} is above upper limit {upper}", "swap them")
        if joint.kind == "free":
            if np.isfinite(lower).any() or np.isfinite(upper).any():
                self._refuse("a free joint has no limits", "remove them or choose another joint")
            if any(value.any() for value in values.values()):
                self._refuse("a free joint has no passive mechanics", "set damping, armature and drives to zero")

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise LinkageError(f"link {self.name!r}: {what}; {remedy}")

    def children(self) -> Iterator[Link]:
        """The links this one carries, in the order they were added."""
        link = self.child
        while link is not None:
            yield link
            link = link.brother


class Linkage:
    """A forest of links under the world. `world` is not simulated; the roots are its children."""

    def __init__(self) -> None:
        self.world = Link("world", joint=Joint("fixed"), mass=0.0)

    def add(self, link: Link, parent: Link | None = None) -> Link:
        """Hangs `link` under `parent` (the world when None) as the last brother; returns `link`."""
        parent = self.world if parent is None else parent
        link.parent, link.brother = parent, None
        last = None
        for last in parent.children():  # noqa: B007 - the last one is wanted
            pass
        if last is None:
            parent.child = link
        else:
            last.brother = link
        return link

    def links(self) -> Iterator[Link]:
        """Every link below the world, parents before children, depth first."""
        pending = list(self.world.children())[::-1]
        while pending:
            link = pending.pop()
            yield link
            pending.extend(list(link.children())[::-1])

    def validate(self) -> None:
        """Raises LinkageError for the first thing that cannot be simulated, naming the link and the remedy."""
        seen: set[str] = set()
        for link in self.links():
            if link.name in seen:
                link._refuse("its name is taken", "give every link a name of its own")
            seen.add(link.name)
            link.validate()
        if not seen:
            raise LinkageError("the linkage has no links; add at least one")

    def __getitem__(self, name: str) -> Link:
        for link in self.links():
            if link.name == name:
                return link
        raise LinkageError(f"no link is called {name!r}")
