"""Things that lie and stand: boxes in stacks, a wall and on an incline, an arch: `python -m scripts.cases.stacks`.

Each stands in a simulation, which lets it sleep, and by steps alone, which do not; prints one JSON object.
"""

from __future__ import annotations

import json

import numpy as np

from core import Linkage, Model, Plane, Simulation, State, World, compile_model, step
from core.kinematics import kinematics, motions
from core.mechanisms_piled import arch, pyramid, stack
from core.shape import Box
from core.threads import one_blas_thread

FRAME = 1 / 24
STEP = 1 / 72
"""The longest that a simulation takes where something moves [s]."""
SETTLED = 2.0
"""From so long on [s] all must be still."""


def corners(model: Model, state: State) -> np.ndarray:
    """The corners (n, 3) of all boxes and hulls in the world."""
    poses = kinematics(model, state.q).poses[model.assembly.slot]
    found = []
    for pose, (shape,) in zip(poses, model.shapes):
        moved = shape.moved(pose)
        if isinstance(moved, Box):
            signs = np.indices((2, 2, 2)).reshape(3, -1).T * 2 - 1
            found.append(moved.center + (moved.half * signs) @ moved.rotation.T)
        else:
            found.append(moved.vertices)
    return np.concatenate(found)


def fastest(world: World, state: State) -> float:
    """The speed [m/s] that no point exceeds."""
    kin = kinematics(world.model, state.q)
    return float(world.speeds(kin, motions(world.model, kin, state.v))[0].max())


class Watch:
    """How far corners have gone from where they were first seen [m], how fast anything was after SETTLED seconds [m/s],
    and how fast corners went in the mean since then [m/s]."""

    def __init__(self, world: World, state: State) -> None:
        self.world, self.start, self.settled = world, corners(world.model, state), None
        self.drift = self.speed = self.creep = 0.0

    def look(self, state: State) -> None:
        now = corners(self.world.model, state)
        self.drift = max(self.drift, _farthest(now, self.start))
        if state.time < SETTLED:
            return
        if self.settled is None:
            self.settled = now
        self.speed = max(self.speed, fastest(self.world, state))
        self.creep = _farthest(now, self.settled) / max(state.time - SETTLED, FRAME)


def _farthest(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.sqrt(((one - other) ** 2).sum(axis=1)).max())


def simulated(linkage: Linkage, seconds: float, scenery: tuple = (Plane(),)) -> Watch:
    """Seen at every frame of a simulation that chooses its own steps and lets rest what does."""
    simulation = Simulation(compile_model(linkage), scenery=scenery, frame_time=FRAME)
    watch = Watch(simulation.world, simulation.state)
    for _ in simulation.run(round(seconds / FRAME) + 1):
        watch.look(simulation.state)
    return watch


def stepped(linkage: Linkage, seconds: float, scenery: tuple = (Plane(),), h: float = STEP) -> Watch:
    """Seen after every step of `h` seconds; nothing sleeps."""
    model = compile_model(linkage)
    world, state = World(model, scenery), model.rest_state()
    watch = Watch(world, state)
    with one_blas_thread():
        for _ in range(round(seconds / h)):
            state = step(world, state, h)
            watch.look(state)
    return watch


def on_incline(degrees: float, friction: float, seconds: float) -> Watch:
    """A box of 1 kg on an incline that falls along +x, by steps alone."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    linkage = stack([1.0], friction=friction)
    box = next(linkage.links())
    box.rotation, box.position = turn, turn @ box.position
    return stepped(linkage, seconds, (Plane(normal=turn[:, 2], friction=friction),))


def main() -> None:
    ten, awake = simulated(stack(np.ones(10)), 20.0), stepped(stack(np.ones(10)), 20.0)
    ring, stones = simulated(arch(9, friction=0.8), 10.0), stepped(arch(9, friction=0.8), 10.0)
    incline = on_incline(30.0, 0.8, 10.0)
    heavier, wall = simulated(stack(10.0 ** np.arange(3)), 10.0), simulated(pyramid(6), 10.0)
    dropped = simulated(stack(np.ones(10), gap=1e-3), 10.0)
    metrics = {
        "drift_m": max(ten.drift, awake.drift),
        "speed_after_2_s": max(ten.speed, awake.speed),
        "creep_m_per_s": incline.creep,
        "incline_drift_m": incline.drift,
        "arch_drift_m": max(ring.drift, stones.drift),
        "arch_speed_after_2_s": max(ring.speed, stones.speed),
        "heavier_drift_m": heavier.drift,
        "pyramid_drift_m": wall.drift,
        "dropped_speed_after_2_s": dropped.speed,
    }
    print(json.dumps({"metrics": metrics}))


if __name__ == "__main__":
    main()
