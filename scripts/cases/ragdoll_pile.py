"""Ten ragdolls fall on steps, on hills and on each other: `python -m scripts.cases.ragdoll_pile [mujoco]`.

With `mujoco` MuJoCo drops the same people on the same scenery: when do they rest, and how high do they lie?
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

import numpy as np

from core import Box, Linkage, Mesh, Simulation, State, compile_model
from core.mechanisms import humanoid
from core.spatial import quaternion_matrix

FRAMES, RATE = 250, 24
HEIGHT, DAMPING = 1.75, 1.0
"""Of each person [m], and of each of their joints [N m s/rad]."""
CALM = 0.01
"""Who is slower than this [m/s], every point of every link, has come to rest."""
CELLS, EXTENT = (200, 125), (20.0, 12.5)
"""Of the hills: 50,000 triangles on a field of so many metres."""
LINKS = 19
"""Of each person."""
PEER_STEP = 1 / 1920
"""Seconds a step of the other engine's: four times as long ones explode there."""
STAIRS = (-6.0, 0.0)
"""Where they begin; they lead down toward +x."""
PLACES = (
    (-5.6, -0.7, 2.4), (-4.8, 0.7, 2.2), (-3.9, -0.5, 1.6),  # on the stairs
    (4.0, 0.0, 1.3), (4.15, 0.1, 2.4), (4.3, 0.2, 3.5), (4.45, 0.3, 4.6),  # in one pile
    (0.5, 4.0, 1.4), (-3.0, -4.0, 1.4), (7.0, -3.5, 1.4),
)  # fmt: skip
"""Of the pelves: x, y and the height above the hills [m]."""


def altitude(x: np.ndarray, y: np.ndarray, seed: int = 0) -> np.ndarray:
    """Of the hills [m]: twenty waves of random directions, as steep as each other."""
    rng = np.random.default_rng(seed)
    angle, phase = rng.uniform(0.0, 2.0 * np.pi, (2, 20))
    wave = rng.uniform(0.6, 3.0, 20)
    swell = np.sin(np.multiply.outer(x, wave * np.cos(angle)) + np.multiply.outer(y, wave * np.sin(angle)) + phase)
    return (swell * (0.06 / wave)).sum(axis=-1)


def grid(cells: tuple[int, int], extent: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates x and y (cells + 1, cells + 1) of a field around the origin."""
    x, y = (np.linspace(-0.5, 0.5, count + 1) * size for count, size in zip(cells, extent))
    return tuple(np.meshgrid(x, y, indexing="ij"))


def hills(cells: tuple[int, int] = CELLS, extent: tuple[float, float] = EXTENT) -> Mesh:
    """An open mesh with two triangles per cell."""
    x, y = grid(cells, extent)
    corner = np.arange(x.size).reshape(x.shape)
    a, b, c, d = corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]
    triangles = np.stack((a, b, c, a, c, d), axis=-1).reshape(-1, 3)
    return Mesh(np.stack((x, y, altitude(x, y)), axis=-1).reshape(-1, 3), triangles)


def stairs(steps: int = 8) -> list[Box]:
    """Steps of 0.3 m by 0.17 m, 3 m wide, that stand in the hills."""
    x, y = STAIRS
    return [
        Box(np.array([x + 0.3 * k, y, 0.5 * (top - 1.0)]), np.array([0.15, 1.5, 0.5 * (top + 1.0)]))
        for k, top in enumerate(0.3 + 0.17 * np.arange(steps)[::-1])
    ]


def people(places: Sequence = PLACES, seed: int = 0) -> Linkage:
    """A humanoid at each place, turned at random; their links are named "0.pelvis" and so on."""
    rng = np.random.default_rng(seed)
    linkage = Linkage()
    for number, (x, y, above) in enumerate(places):
        person = humanoid(height=HEIGHT, damping=DAMPING)
        pelvis = person["pelvis"]
        for link in person.links():
            link.name = f"{number}.{link.name}"
        turn = rng.normal(size=4)
        pelvis.rotation = quaternion_matrix(turn / np.linalg.norm(turn)) @ pelvis.rotation
        pelvis.position = np.array([x, y, above + float(altitude(x, y))])
        linkage.add(pelvis)
    return linkage


def fall(linkage: Linkage, scenery: list, seed: int = 0) -> Simulation:
    """A simulation of people who fall with slightly random joint velocities."""
    model = compile_model(linkage)
    start = State(model.rest_state().q, 0.3 * np.random.default_rng(seed).normal(size=model.nv))
    return Simulation(model, scenery=scenery, frame_time=1 / RATE, state=start)


def speeds(linkage: Linkage, poses: np.ndarray) -> np.ndarray:
    """How fast the faster end of each link's capsule is on the way to each frame (F - 1, n) [m/s], from poses
    (F, n, 4, 4)."""
    ends = np.array([(link.shapes[0].start, link.shapes[0].end) for link in linkage.links()])
    ends = poses[..., None, :3, 3] + (poses[:, :, None, :3, :3] @ ends[..., None])[..., 0]
    return RATE * np.linalg.norm(np.diff(ends, axis=0), axis=-1).max(axis=-1)


def summary(name: str, linkage: Linkage, poses: np.ndarray) -> dict:
    """How many people come to rest, when [s] half of them and all of them do, and the mean height [m] above the hills
    at which pelves lie in the end; None for never."""
    calm = (speeds(linkage, poses).reshape(len(poses) - 1, -1, LINKS) < CALM).all(axis=-1)
    moving = len(calm) - np.argmin(calm[::-1], axis=0)  # frames until the last one with motion
    times = np.where(calm[-1], moving / RATE, np.inf)
    x, y, z = poses[-1, ::LINKS, :3, 3].T
    return {
        f"{name}resting": int(calm[-1].sum()),
        f"{name}rest_s_median": _finite(np.median(times)),
        f"{name}rest_s_last": _finite(times.max()),
        f"{name}pelvis_m": float((z - altitude(x, y)).mean()),
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def ours() -> dict:
    linkage = people()
    begin = time.perf_counter()
    simulation = fall(linkage, [hills(), *stairs()])
    ready = time.perf_counter()
    for _ in simulation.run(FRAMES):
        pass
    end = time.perf_counter()
    path, asleep = simulation.trajectory, simulation.state.memory.asleep[simulation.model.assembly.slot] > 0
    return {
        "penetration_part": float(path.penetration.max()) / HEIGHT,
        "awake_or_fast": int((~asleep & (speeds(linkage, path.poses())[-1] >= CALM)).sum()),
        "finite": bool(np.isfinite(path.q).all() and np.isfinite(path.v).all()),
        "frame_ms_per_character": 1e3 * (end - ready) / FRAMES / len(PLACES),
        "setup_s": ready - begin,
        "energy_gain_J": float((path.energy - np.minimum.accumulate(path.energy)).max()),
        "limit_degrees": float(np.degrees(path.limit_violation.max())),
        "contacts_median": float(np.median(path.contacts[1:])),
        "contacts_most": int(path.contacts.max()),
        "steps": int(path.substeps.sum()),
        "asleep": int(asleep.sum()) // LINKS,
        **summary("", linkage, path.poses()),
    }


def mujoco() -> dict:
    """The same people and scenery there."""
    import mujoco

    from .mujoco_bodies import add_bodies

    linkage = people()
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep, spec.option.cone = PEER_STEP, mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    z = altitude(*grid(CELLS, EXTENT)).T
    size = [EXTENT[0] / 2, EXTENT[1] / 2, np.ptp(z), 1.0]
    spec.add_hfield(name="hills", nrow=len(z), ncol=z.shape[1], size=size, userdata=((z - z.min()) / np.ptp(z)).ravel())
    surface = {"friction": [0.6, 0.0, 0.0], "condim": 3}
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="hills", pos=[0, 0, z.min()], **surface)
    for box in stairs():
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=box.center, size=box.half, **surface)
    add_bodies(spec, linkage, DAMPING, surface)
    for one, other in fall(linkage, []).passing:
        spec.add_exclude(bodyname1=one, bodyname2=other)
    model = spec.compile()
    data = mujoco.MjData(model)
    numbers = [model.body(link.name).id for link in linkage.links()]
    poses = np.tile(np.eye(4), (FRAMES, len(numbers), 1, 1))
    mujoco.mj_forward(model, data)
    for frame in range(FRAMES):
        if frame:
            mujoco.mj_step(model, data, nstep=round(1 / (RATE * PEER_STEP)))
        poses[frame, :, :3, :3] = data.xmat[numbers].reshape(-1, 3, 3)
        poses[frame, :, :3, 3] = data.xpos[numbers]
    return summary("mujoco_", linkage, poses)


if __name__ == "__main__":
    print(json.dumps({"metrics": mujoco() if sys.argv[1:] == ["mujoco"] else ours()}))
