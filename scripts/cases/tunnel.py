"""Fast links against a plate of 1 cm, and past its edge: `python -m scripts.cases.tunnel [CASES] [FIRST]`.

Spheres, capsules, tapered capsules and boxes, single or in chains, at 1 to 50 m/s, at frames of 1/24 s in steps that
the simulation chooses; prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from core import (
    Box,
    Capsule,
    Link,
    Linkage,
    Mesh,
    Model,
    Simulation,
    SimulationError,
    Sphere,
    State,
    TaperedCapsule,
    Trajectory,
    compile_model,
)  # fmt: skip
from core.joint import Joint
from core.mechanisms_piled import BRICK_TRIANGLES
from core.spatial import pose

THICK, WIDE = 0.01, 60.0
"""Of the plate, whose upper face is z = 0, and half its width: nothing comes to its edge [m]."""
SLOWEST, FASTEST = 1.0, 50.0
KINDS = (Sphere, Capsule, TaperedCapsule, Box)
PLATES = ("box", "closed", "sheet")
SINGLE = 0.6
"""Share of single links; the others are chains of two to four."""
AFTER = 4
"""Frames after the one in which the plate is reached."""
GHOST = 1e-6
"""Part of its velocity by which what flies past is deflected."""


@dataclass(frozen=True)
class Case:
    """A model that flies at something, for so many frames; `way` (3,) the root's velocity [m/s]."""

    model: Model
    plate: Box | Mesh
    state: State
    frames: int
    way: np.ndarray


def plate(kind: str, low: float = -WIDE, **surface) -> Box | Mesh:
    """The plate from x = `low` to WIDE as a Box, a closed Mesh, or a Mesh of its upper face alone."""
    middle, half = 0.5 * (low + WIDE), 0.5 * (WIDE - low)
    if kind == "box":
        return Box(np.array([middle, 0.0, -0.5 * THICK]), np.array([half, WIDE, 0.5 * THICK]), **surface)
    square = np.array([(low, -WIDE, 0.0), (WIDE, -WIDE, 0.0), (WIDE, WIDE, 0.0), (low, WIDE, 0.0)])
    if kind == "sheet":
        return Mesh(square, np.array([(0, 1, 2), (0, 2, 3)]), **surface)
    return Mesh(np.concatenate((square, square - np.array([0.0, 0.0, THICK]))), BRICK_TRIANGLES, **surface)


def skeleton(shape: Sphere | Capsule | TaperedCapsule | Box) -> np.ndarray:
    """The ends (n, 3) of a shape's axis, or a box's corners."""
    if isinstance(shape, Sphere):
        return shape.center[None]
    if isinstance(shape, Box):
        return shape.center + shape.half * (np.indices((2, 2, 2)).reshape(3, -1).T * 2 - 1)
    return np.array([shape.start, shape.end])


def flying_link(rng: np.random.Generator, name: str, **surface) -> Link:
    """A free link of 1 kg and 1 cm to half a metre, along y, its origin in its middle."""
    kind, radius, end = KINDS[rng.integers(4)], np.exp(rng.uniform(np.log(0.01), np.log(0.1))), np.zeros(3)
    end[1] = rng.uniform(0.025, 0.25)
    if kind is Box:
        half = np.exp(rng.uniform(np.log(0.005), np.log(0.2), 3))
        shape = Box(np.zeros(3), half, **surface)
    elif kind is Sphere:
        shape, half = Sphere(np.zeros(3), radius, **surface), np.full(3, radius)
    else:
        radii = (radius,) if kind is Capsule else (radius, radius * rng.uniform(0.3, 0.9))
        shape, half = kind(-end, end, *radii, **surface), radius + end
    return Link(name, Joint("free"), inertia=np.diag((half**2).sum() - half**2) / 3.0, shapes=[shape])


def flying(rng: np.random.Generator, single: float, **surface) -> Linkage:
    """A link, or a chain whose links hang from the ends of those before."""
    linkage, last, tip = Linkage(), None, np.zeros(3)
    for i in range(1 if rng.random() < single else rng.integers(2, 5)):
        link = flying_link(rng, f"link.{i}", **surface)
        link.rotation = _rotation(rng)
        ends = skeleton(link.shapes[0])
        if last is not None:
            link.joint = Joint("hinge" if rng.random() < 0.5 else "spherical")
            link.position, link.center_of_mass = tip, -ends[0]
            link.shapes = [link.shapes[0].moved(pose(np.eye(3), -ends[0]))]
        last, tip = linkage.add(link, last), ends[-1] + link.center_of_mass
    return linkage


def against(rng: np.random.Generator, kind: str) -> Case:
    """At a random angle against the plate, from a random height."""
    surface = {"friction": rng.choice([0.0, 0.3, 0.8]), "restitution": rng.choice([0.0, 0.0, 0.5])}
    linkage = flying(rng, SINGLE, **surface)
    size = _size(linkage)
    way = _way(rng, np.radians(rng.uniform(0.0, 85.0)), rng.uniform(0.0, 2.0 * np.pi))
    height = size + rng.uniform(0.001, 0.01 - 0.1 * way[2])
    frames = int(np.ceil(min((height + size) / -way[2], 0.6) * 24)) + AFTER
    place = np.array([*rng.uniform(-1.0, 1.0, 2), height])
    return _started(rng, linkage, plate(kind, **surface), place, way, frames)


def past(rng: np.random.Generator, kind: str) -> Case:
    """Past the edge at x = 0 of a plate that lies beyond, without touching it, by 1 mm to 10 cm."""
    linkage = flying(rng, 1.0)
    lean = np.radians(rng.uniform(-80.0, 80.0))
    away = np.array([-np.cos(lean), 0.0, np.sin(lean)])
    way = _way(rng, lean, np.pi)
    nearest = (_size(linkage) + np.exp(rng.uniform(np.log(1e-3), np.log(0.1)))) * away
    nearest[2] -= THICK * (lean < 0.0)
    seconds = rng.uniform(0.05, 0.15)
    return _started(rng, linkage, plate(kind, 0.0), nearest - seconds * way, way, 8)


def _size(linkage: Linkage) -> float:
    """How far from its root's origin a chain may reach [m]."""
    return sum(2.0 * link.shapes[0].reach for link in linkage.links()) - next(linkage.links()).shapes[0].reach


def _way(rng: np.random.Generator, lean: float, around: float) -> np.ndarray:
    """A velocity (3,) down, that leans so far."""
    speed = rng.uniform(SLOWEST, FASTEST) if rng.random() < 0.5 else SLOWEST * (FASTEST / SLOWEST) ** rng.random()
    return speed * np.array([np.sin(lean) * np.cos(around), np.sin(lean) * np.sin(around), -np.cos(lean)])


def _rotation(rng: np.random.Generator) -> np.ndarray:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q *= np.sign(np.diag(r))
    return q * np.linalg.det(q)


def _started(
    rng: np.random.Generator, linkage: Linkage, what: Box | Mesh, place: np.ndarray, way: np.ndarray, frames: int
) -> Case:
    root = next(linkage.links())
    root.position = place
    model = compile_model(linkage)
    v = rng.choice([0.0, 5.0]) * rng.normal(size=model.nv)
    v[:3] = rng.choice([0.0, 1.0, 5.0, 20.0, 60.0]) * rng.normal(size=3) / np.sqrt(3.0)
    v[3:6] = root.rotation.T @ way
    return Case(model, what, State(model.rest_state().q, v), frames, way)


def run(case: Case, gravity: tuple = (0.0, 0.0, -9.81)) -> Trajectory:
    simulation = Simulation(case.model, scenery=[case.plate], state=case.state, gravity=gravity)
    for _ in simulation.run(case.frames):
        pass
    return simulation.trajectory


def depth(case: Case, path: Trajectory) -> float:
    """How far below the plate's upper face any end of an axis or corner has been [m]."""
    poses = path.poses()
    ends = [poses[:, i, 2, :3] @ skeleton(shape).T + poses[:, i, 2, 3:] for i, (shape,) in enumerate(case.model.shapes)]
    return max(0.0, *(-float(heights.min()) for heights in ends))


def deflected(case: Case, path: Trajectory) -> bool:
    """Whether a link that flies past has not kept its velocity; there is no gravity."""
    velocity = np.diff(path.poses()[:, 0, :3, 3], axis=0) / path.frame_time
    return float(np.abs(velocity - case.way).max()) > GHOST * float(np.abs(case.way).max())


def flown(seed: int) -> tuple[float, int] | None:
    """How deep a case comes [m], and the most steps of a frame; None where it cannot be simulated."""
    case = against(np.random.default_rng(seed), PLATES[seed % 3])
    try:
        path = run(case)
    except SimulationError:
        return None
    return depth(case, path), int(path.substeps.max())


def flown_past(seed: int) -> bool:
    """Whether a flight past the plate is deflected."""
    case = past(np.random.default_rng(seed), PLATES[seed % 3])
    return deflected(case, run(case, (0.0, 0.0, 0.0)))


def main() -> None:
    count, first = (int(given) for given in [*sys.argv[1:], *("1000", "0")[len(sys.argv) - 1 :]])
    flights = max(count // 4, 1)
    with ProcessPoolExecutor() as pool:
        flown_seeds = list(pool.map(flown, range(first, first + count), chunksize=4))
        ghosts = sum(pool.map(flown_past, range(first, first + flights), chunksize=4))
    depths, steps = np.array([found for found in flown_seeds if found]).T
    metrics = {
        "cases": count,
        "through": int((depths > THICK).sum()),
        "failures": count - len(depths),
        "deepest_m": float(depths.max()),
        "deep_cases": int((depths > 0.1 * THICK).sum()),
        "steps_median": float(np.median(steps)),
        "steps_most": int(steps.max()),
        "flights_past": flights,
        "ghost_hits": ghosts,
    }
    print(json.dumps({"metrics": metrics}))


if __name__ == "__main__":
    main()
