"""Free bodies of every shape, how they move, and where they get to."""

from __future__ import annotations

import itertools

import numpy as np

from core.joint import Joint
from core.linkage import Link, Linkage
from core.model import Model, State, compile_model
from core.shape import Box, Capsule, Cylinder, Hull, Mesh, Sphere, TaperedCapsule
from core.simulation import Simulation

CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
SIDES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
     [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
)  # fmt: skip
ON_LINKS = ("sphere", "capsule", "tapered", "box", "hull")


def shape(kind: str, **surface):
    """One of each kind, some 30 cm large, around the origin."""
    start, end = np.array([0.0, 0.0, -0.15]), np.array([0.0, 0.0, 0.15])
    if kind == "sphere":
        return Sphere(np.zeros(3), 0.15, **surface)
    if kind == "capsule":
        return Capsule(start, end, 0.08, **surface)
    if kind == "tapered":
        return TaperedCapsule(start, end, 0.08, 0.04, **surface)
    if kind == "box":
        return Box(np.zeros(3), np.array([0.1, 0.15, 0.2]), **surface)
    if kind == "cylinder":
        return Cylinder(start, end, 0.1, **surface)
    return (Hull if kind == "hull" else Mesh)(CORNERS * (0.12, 0.1, 0.15), SIDES, **surface)


def cube(half: float | np.ndarray, kind: type = Mesh, *, inside_out: bool = False):
    """A closed cube around the origin, of triangles."""
    return kind(CORNERS * half, SIDES[:, ::-1] if inside_out else SIDES)


def bodies(*parts: dict) -> tuple[Model, State]:
    """Free bodies `b0`, `b1`, ... with `shapes`, and where they start: `at`, `turn`, with velocity `v` and `spin`."""
    linkage = Linkage()
    for i, part in enumerate(parts):
        mass = part.get("mass", 1.0)
        inertia = np.diag(part.get("inertia", mass * np.full(3, 0.004)))
        keyed = part.get("keyed", False)
        linkage.add(Link(f"b{i}", Joint("free"), mass=mass, inertia=inertia, shapes=part["shapes"], keyed=keyed))
    model = compile_model(linkage)
    q, v = model.rest_state().q.copy(), np.zeros(model.nv)
    for i, part in enumerate(parts):
        j = model.names.index(f"b{i}")
        if part.get("keyed"):
            continue
        at, along = model.coordinates.q_start[j], model.coordinates.v_start[j]
        q[at : at + 7] = *part.get("turn", (1.0, 0.0, 0.0, 0.0)), *part.get("at", (0.0, 0.0, 0.0))
        v[along : along + 6] = *part.get("spin", (0.0, 0.0, 0.0)), *part.get("v", (0.0, 0.0, 0.0))
    return model, State(q, v)


def run(model: Model, state: State | None, frames: int, most: float = np.inf, **settings) -> Simulation:
    simulation = Simulation(model, state=state, **settings)
    for _ in simulation.run(frames):
        assert simulation.trajectory.substeps[-1] <= most
    return simulation


def places(simulation: Simulation, name: str) -> np.ndarray:
    """Positions (frames, 3) of a link."""
    return simulation.trajectory.world[:, simulation.model.names.index(name), :3, 3]
