"""Adaptive dynamics with collisions against the exact method, on the models of the adaptive-contact paper and others:
`python -m scripts.cases.adaptive_dynamics MODEL SCALE`, `crowd`, `mujoco`, `size`, `curve` or `plot`."""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core import Adaptive, Linkage, Motion, Simulation, SimulationError, compile_model, step
from core.kinematics import link_poses
from core.mechanisms import chain
from core.mechanisms_large import bridge, crowd, holes, pegs, pendulum_chain, snake, thread, threading
from core.model import Model, State
from core.threads import one_blas_thread

from .chain import peak_mb

FRAME_TIME, SECONDS = 1 / 24, 5.0
DOCS = Path(__file__).parents[2] / "docs"
PATIENCE, LARGE_PATIENCE = 110.0, 600.0
"""Each method gets so many seconds, the latter beyond the papers' sizes; what it has not reached by then, or before it
explodes, is not compared."""
SIZES = (1000, 3000, 10_000, 30_000, 50_000)
"""Links of the chains whose cost is measured with FEW joints active."""
FEW = 40
LENGTHS = (200, 500, 1000, 2000, 5000, 10_000, 20_000)
CHAIN_STEPS = 45
THRESHOLDS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
PEOPLE, STEPS = 200, 10
"""Of the crowd, and the steps of its frames."""


@dataclass(frozen=True)
class Case:
    """A model, its scenery, and how it starts or is led, in so many `substeps` a frame; `joints` of it are to be
    active."""

    linkage: Linkage
    scenery: Sequence
    joints: int
    substeps: int
    motion: Motion | None = None
    state: State | None = None


def _substeps(usual: int, scale: float, power: float = 0.3) -> int:
    """What is longer is faster, and more tense."""
    return round(usual * max(1.0, scale) ** power)


def pendulum_case(scale: float) -> Case:
    links = round(200 * scale)
    return Case(pendulum_chain(links, damping=0.05 * scale), pegs(links), round(40 * scale), _substeps(20, scale))


def thread_case(scale: float) -> Case:
    links = round(300 * scale)
    linkage = thread(links, damping=2e-2 * scale)
    motion = threading(compile_model(linkage), round(SECONDS / FRAME_TIME) + 1, FRAME_TIME, SECONDS)
    # its links are as long and are pulled around the same rims so many times as fast
    return Case(linkage, holes(links), round(60 * scale), _substeps(20, scale, 1.0), motion)


def bridge_case(scale: float) -> Case:
    links = round(500 * scale)
    linkage = snake(links)
    return Case(
        linkage, bridge(links), round(70 * scale), _substeps(60, scale), state=_along_itself(compile_model(linkage))
    )


def _along_itself(model: Model) -> State:
    """Each link moves at 1 m/s to where the one before it is."""
    poses = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
    later = poses.copy()
    later[:-1] = poses[1:]
    later[-1, :3, 3] += poses[-1, :3, 3] - poses[-2, :3, 3]
    return model.state_from_poses(poses, later, float(np.linalg.norm(poses[1, :3, 3] - poses[0, :3, 3])))


CASES = {"pendulum": pendulum_case, "thread": thread_case, "bridge": bridge_case}


@dataclass
class Run:
    """Of each frame the seconds a step took (frames,), and the end effector's place (frames, 3); `contacts` (frames,)
    and what answering them adds to a step (some frames,) [s]."""

    seconds: np.ndarray
    tip: np.ndarray
    contacts: np.ndarray
    response: np.ndarray


def run(case: Case, model: Model, adaptive: Adaptive | None, patience: float, frames: int) -> Run:
    simulation = Simulation(
        model, scenery=case.scenery, motion=case.motion, state=case.state, frame_time=FRAME_TIME,
        substeps=case.substeps, adaptive=adaptive,
    )  # fmt: skip
    response, spent = [], 0.0
    running = simulation.run(frames)
    while spent < patience:
        begin = time.perf_counter()
        try:
            frame = next(running, None)
        except SimulationError as reason:
            print(reason, file=sys.stderr)
            break
        spent += time.perf_counter() - begin
        if frame is None:
            break
        if frame % 5 == 0 and simulation.state.memory is not None and len(simulation.state.memory.contacts):
            response.append(_response(simulation, FRAME_TIME / case.substeps))
    path = simulation.trajectory
    # steps of a frame that was not reached are not counted
    steps = path.step_seconds[: (len(path.world) - 1) * case.substeps]
    seconds = steps.reshape(-1, case.substeps).mean(axis=1)
    return Run(seconds, path.world[:, -1, :3, 3], path.contacts, np.array(response))


def _response(simulation: Simulation, h: float) -> float:
    """What a step from here takes longer because things may touch."""
    world, state, hybrid = simulation.world, simulation.state, simulation.system.hybrid
    if hybrid is not None:
        world, state = hybrid.world, hybrid.body.enter(state)
    bare = copy.copy(world)
    bare._set(collider=())
    seconds: tuple[list, list] = ([], [])
    with one_blas_thread():
        for _ in range(3):
            for which, taken in zip((world, bare), seconds):
                begin = time.perf_counter()
                step(which, state, h)
                taken.append(time.perf_counter() - begin)
    return min(seconds[0]) - min(seconds[1])


def measure(name: str, scale: float) -> dict:
    case = CASES[name](scale)
    model = compile_model(case.linkage)
    patience = PATIENCE if scale <= 1 else LARGE_PATIENCE
    theirs = run(case, model, None, patience, round(SECONDS / FRAME_TIME) + 1)
    # more would not be compared
    ours = run(case, model, Adaptive(joints=case.joints), patience, len(theirs.tip))
    frames = len(ours.tip)
    length = float(np.linalg.norm(model.placement[1:, :3, 3], axis=1).sum())
    error = np.linalg.norm(ours.tip[:frames] - theirs.tip[:frames], axis=1) / length
    exact, adaptive = (x.seconds[: frames - 1].mean() for x in (theirs, ours))
    touched = len(theirs.response) and len(ours.response)
    return {
        "links": model.n,
        "freedoms": model.nv,
        "joints": case.joints,
        "exact_ms": 1e3 * float(exact),
        "step_ms": 1e3 * float(adaptive),
        "speedup": float(exact / adaptive),
        "exact_response_ms": 1e3 * float(np.median(theirs.response)) if touched else None,
        "response_ms": 1e3 * float(np.median(ours.response)) if touched else None,
        "response_speedup": float(np.median(theirs.response) / np.median(ours.response)) if touched else None,
        "seconds_compared": (frames - 1) * FRAME_TIME,
        "error_share": float(error.max()),
        "contacts_mean": float(theirs.contacts[:frames].mean()),
        "contacts_max": int(theirs.contacts[:frames].max()),
        "contacts_adaptive_mean": float(ours.contacts[:frames].mean()),
    }


def swinging(links: int) -> tuple[Model, State]:
    """A chain that touches nothing and has no weight, of which a few joints move at first."""
    linkage = chain(links, damping=1e-2)
    for link in linkage.links():
        link.shapes = []
    model = compile_model(linkage)
    v = np.zeros(model.nv)
    v[:: links // 20] = 10.0 / links
    return model, State(model.coordinates.zero(), v)


def step_ms(model: Model, state: State, adaptive: Adaptive | None, frames: int = 3) -> float:
    """A step with refreshes and without recording: the median of frames."""
    simulation = Simulation(model, state=state, gravity=np.zeros(3), substeps=CHAIN_STEPS, adaptive=adaptive)
    list(simulation.run(frames + 1))
    return 1e3 * float(np.median(simulation.trajectory.step_seconds.reshape(-1, CHAIN_STEPS).mean(axis=1)))


def size_case() -> dict:
    """A step with FEW joints active, of chains of all sizes."""
    metrics: dict = {}
    for links in SIZES:
        model, state = swinging(links)
        metrics[f"step_ms_{links}"] = step_ms(model, state, Adaptive(joints=FEW))
        metrics[f"peak_mb_{links}"] = peak_mb()
    logs = np.log([metrics[f"step_ms_{links}"] for links in SIZES])
    return metrics | {"exponent": float(np.polyfit(np.log(SIZES), logs, 1)[0])}


def curve_case() -> dict:
    """A step by the exact method, with a fifth of the joints active and with FEW, of chains of several lengths."""
    metrics: dict = {}
    for links in LENGTHS:
        model, state = swinging(links)
        metrics[f"exact_ms_{links}"] = step_ms(model, state, None)
        metrics[f"fifth_ms_{links}"] = step_ms(model, state, Adaptive(joints=links // 5))
        metrics[f"few_ms_{links}"] = step_ms(model, state, Adaptive(joints=FEW))
    return metrics


def plot_case() -> dict:
    """Draws the curves, and the error of a chain's end against the threshold, into docs."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    metrics, errors = curve_case(), convergence()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    for name, label in (("exact", "exact"), ("fifth", "a fifth of the joints"), ("few", f"{FEW} joints")):
        left.loglog(LENGTHS, [metrics[f"{name}_ms_{links}"] for links in LENGTHS], "o-", label=label)
    left.set(xlabel="links of a chain", ylabel="ms a step, refreshes included")
    left.legend()
    right.loglog(THRESHOLDS, errors, "o-", label="largest error of the end in 1.5 s")
    right.loglog(THRESHOLDS, THRESHOLDS, "k--", linewidth=0.8, label="the threshold")
    right.set(xlabel="error threshold", ylabel="part of the chain's length")
    right.legend()
    figure.savefig(DOCS / "adaptive.png", dpi=110)
    return metrics | {f"error_{threshold:g}": error for threshold, error in zip(THRESHOLDS, errors)}


def convergence() -> list[float]:
    """How far the end of a chain of 40 is from the exact method's, as a part of its length, for each threshold."""
    linkage = chain(40, "spherical", damping=1e-2)
    for link in linkage.links():
        link.shapes = []
    model = compile_model(linkage)
    v = np.zeros(model.nv)
    v[:20] = np.random.default_rng(0).standard_normal(20)

    def end(adaptive: Adaptive | None) -> np.ndarray:
        simulation = Simulation(model, state=State(model.coordinates.zero(), v), substeps=20, adaptive=adaptive)
        list(simulation.run(37))
        return simulation.trajectory.world[:, -1, :3, 3]

    exact = end(None)
    return [
        float(np.linalg.norm(end(Adaptive(threshold=threshold)) - exact, axis=1).max() / 4.0)
        for threshold in THRESHOLDS
    ]


def waving(model: Model) -> State:
    """Everything turns at about half a radian a second."""
    return State(model.coordinates.zero(), 0.5 * np.random.default_rng(0).standard_normal(model.nv))


def crowd_case() -> dict:
    """People who float and wave, 10 % of their joints active, against all of them."""
    model = compile_model(crowd(PEOPLE))
    state, joints = waving(model), int((np.diff(model.coordinates.v_start) > 0).sum())
    metrics: dict = {"people": PEOPLE, "freedoms": model.nv, "joints": joints // 10}
    # those by which people float move in any case
    for adaptive in (None, Adaptive(joints=joints // 10 - PEOPLE)):
        simulation = Simulation(model, state=state, gravity=(0.0, 0.0, 0.0), substeps=STEPS, adaptive=adaptive)
        list(simulation.run(4))
        seconds = np.array(simulation.trajectory.step_seconds).reshape(-1, STEPS).sum(axis=1)
        metrics["frame_ms" if adaptive else "exact_frame_ms"] = 1e3 * float(np.median(seconds))
    return metrics


def mujoco_case() -> dict:
    """The same crowd there, all of it; joint velocities are drawn anew, as there are others."""
    import mujoco

    from .mujoco_bodies import add_bodies

    linkage = crowd(PEOPLE)
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep, spec.option.gravity = FRAME_TIME / STEPS, np.zeros(3)
    add_bodies(spec, linkage, 0.0, {"friction": [0.6, 0.0, 0.0], "condim": 3})
    for one, other in Simulation(compile_model(linkage)).passing:
        spec.add_exclude(bodyname1=one, bodyname2=other)
    data = mujoco.MjData(model := spec.compile())
    data.qvel[:] = 0.5 * np.random.default_rng(0).standard_normal(model.nv)
    seconds = []
    for _ in range(4):
        begin = time.perf_counter()
        mujoco.mj_step(model, data, nstep=STEPS)
        seconds.append(time.perf_counter() - begin)
    return {"mujoco_frame_ms": 1e3 * float(np.median(seconds)), "mujoco_freedoms": int(model.nv)}


CHECKS = {"size": size_case, "crowd": crowd_case, "mujoco": mujoco_case, "curve": curve_case, "plot": plot_case}


def main(name: str, scale: str = "1") -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        metrics = CHECKS.get(name, lambda: measure(name, float(scale)))()
    print(json.dumps({"metrics": metrics}))


if __name__ == "__main__":
    main(*sys.argv[1:])
