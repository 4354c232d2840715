"""Adaptive dynamics with collisions against the exact method, on the models of the adaptive-contact paper:
`python -m scripts.cases.adaptive_dynamics MODEL SCALE`."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

import numpy as np

from core import Adaptive, Linkage, Motion, Simulation, compile_model
from core.mechanisms_large import bridge, holes, pegs, pendulum_chain, snake, thread, threading
from core.model import Model, State

FRAME_TIME, SECONDS = 1 / 24, 5.0
SUBSTEPS = 40
PATIENCE = 120.0
"""The exact method gets so many seconds; what it has not reached by then is not compared."""


@dataclass(frozen=True)
class Case:
    """A model, its scenery, and how it starts or is led; `joints` of it are to be active."""

    linkage: Linkage
    scenery: list
    joints: int
    motion: Motion | None = None
    state: State | None = None


def pendulum_case(scale: float) -> Case:
    links = round(200 * scale)
    return Case(pendulum_chain(links), pegs(links), round(40 * scale))


def thread_case(scale: float) -> Case:
    links = round(300 * scale)
    linkage = thread(links)
    motion = threading(compile_model(linkage), round(SECONDS / FRAME_TIME) + 1, FRAME_TIME, SECONDS)
    return Case(linkage, holes(links), round(60 * scale), motion)


def bridge_case(scale: float) -> Case:
    """The snake starts along itself, as fast as it would fall by a tenth of its length."""
    links = round(500 * scale)
    linkage = snake(links)
    model = compile_model(linkage)
    return Case(linkage, bridge(links), round(70 * scale), state=_along_itself(model))


def _along_itself(model: Model) -> State:
    """Each link moves to where the one before it is, at 1 m/s."""
    from core.kinematics import link_poses

    poses = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
    step = float(np.linalg.norm(poses[1, :3, 3] - poses[0, :3, 3]))
    later = poses.copy()
    later[:-1] = poses[1:]
    later[-1, :3, 3] += poses[-1, :3, 3] - poses[-2, :3, 3]
    return model.state_from_poses(poses, later, step / 1.0)


CASES = {"pendulum": pendulum_case, "thread": thread_case, "bridge": bridge_case}


@dataclass
class Run:
    """Seconds of each step, the end effector's place (frames, 3), and states (frames,) with the worlds they were stepped
    in."""

    seconds: np.ndarray
    tip: np.ndarray
    contacts: np.ndarray
    energy: np.ndarray
    simulation: Simulation


def run(case: Case, frames: int, adaptive: Adaptive | None, patience: float = np.inf) -> Run:
    model = compile_model(case.linkage)
    simulation = Simulation(
        model, scenery=case.scenery, motion=case.motion, state=case.state, frame_time=FRAME_TIME, substeps=SUBSTEPS,
        adaptive=adaptive,
    )  # fmt: skip
    begin = time.perf_counter()
    for _ in simulation.run(frames):
        if time.perf_counter() - begin > patience:
            break
    path = simulation.trajectory
    tip = path.world[:, -1, :3, 3]
    return Run(path.step_seconds, tip, path.contacts, path.energy, simulation)


def measure(name: str, scale: float) -> dict:
    case = CASES[name](scale)
    frames = round(SECONDS / FRAME_TIME) + 1
    theirs = run(case, frames, None, PATIENCE)
    ours = run(case, frames, Adaptive(joints=case.joints))
    both = min(len(ours.tip), len(theirs.tip))
    length = float(np.linalg.norm(np.diff(compile_model(case.linkage).placement[:, :3, 3], axis=0), axis=1).sum())
    error = np.linalg.norm(ours.tip[:both] - theirs.tip[:both], axis=1)
    steps = min(len(ours.seconds), len(theirs.seconds))
    return {
        "links": compile_model(case.linkage).n,
        "joints": case.joints,
        "exact_ms": 1e3 * float(theirs.seconds[:steps].mean()),
        "step_ms": 1e3 * float(ours.seconds[:steps].mean()),
        "speedup": float(theirs.seconds[:steps].mean() / ours.seconds[:steps].mean()),
        "seconds_compared": (both - 1) * FRAME_TIME,
        "error_share": float(error.max() / length),
        "error_share_end": float(error[-1] / length),
        "contacts": float(theirs.contacts[:both].mean()),
        "contacts_adaptive": float(ours.contacts[:both].mean()),
        "energy": [float(x.energy[-1]) for x in (theirs, ours)],
    }


def main(name: str, scale: str) -> None:
    print(json.dumps({"metrics": measure(name, float(scale))}))


if __name__ == "__main__":
    main(*sys.argv[1:])
