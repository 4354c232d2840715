"""Closed loops against reference values, and what they cost: `python -m scripts.cases.loops CASE [N]`.

The cases are those of scripts/bench.py with the same names; each prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from core import Model, Plane, Simulation, Smooth, State, compile_model, dormand_prince, rk4
from core.closing import connected_velocity
from core.diagnostics import energy, momentum
from core.kinematics import link_poses
from core.mechanisms import chain, humanoid
from core.mechanisms_closed import (
    BRICARD_GRAVITY,
    andrews,
    andrews_angles,
    andrews_wrenches,
    bricard,
    n_four_bar,
    n_four_bar_velocity,
)
from core.mechanisms_held import high_bar, swing, swing_motion
from core.threads import one_blas_thread

SECONDS = 10.0
FOUR_BAR_ENDS = {2: (0.32845811, 0.94451854), 40: (0.18051223, 0.98357274)}
"""Where B₀ is after 10 s (x, z) [m]; reference-values.md."""
FOUR_BAR_STEP, BRICARD_STEP = 0.005, 0.01
"""Of the fourth-order rule [s]."""
ANDREWS_END = (
    15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948, 0.5244099658805304,
    0.5347301163226948, 1.048080741042263,
)  # fmt: skip
"""β, Θ, γ, φ, δ, Ω and ε after 0.03 s [rad]."""
BRICARD_END = (0.9997309873, -0.9999999638, -0.0002689765)
"""P2 after 10 s [m]."""
CONTACTS = 8


def _followed(model: Model, state: State, h: float, seconds: float, gravity: np.ndarray) -> tuple[State, float, float]:
    """The state after so many seconds, the largest change of energy [J] and opening of a loop [m] at any step."""
    start, drift, opening = energy(model, state, gravity), 0.0, 0.0
    for _ in range(round(seconds / h)):
        state = rk4(model, state, h, gravity=gravity)
        drift = max(drift, abs(energy(model, state, gravity) - start))
        opening = max(opening, float(np.abs(model.loops.gaps(link_poses(model, state.q)[0])).max()))
    return state, drift, opening


def _tip(model: Model, state: State, link: str) -> np.ndarray:
    """The point (3,) at 1 m along a link."""
    pose = link_poses(model, state.q)[0][model.assembly.slot[model.names.index(link)]]
    return pose[:3, :3] @ [0.0, 1.0, 0.0] + pose[:3, 3]


def n_four_bar_case(n: int) -> dict:
    linkage = n_four_bar(n)
    model = compile_model(linkage)
    start = State(model.rest_state().q, n_four_bar_velocity(linkage))
    gravity = np.array([0.0, 0.0, -9.81])
    begin = time.perf_counter()
    state, drift, opening = _followed(model, start, FOUR_BAR_STEP, SECONDS, gravity)
    metrics = {
        "energy_drift_J": drift,
        "energy_drift_rel": drift / abs(energy(model, start, gravity)),
        "constraint_error_m": opening,
        "step_s": FOUR_BAR_STEP,
        "seconds": time.perf_counter() - begin,
    }
    if n in FOUR_BAR_ENDS:
        metrics["position_error_m"] = float(np.hypot(*(_tip(model, state, "rocker.0")[[0, 2]] - FOUR_BAR_ENDS[n])))
    return metrics


def andrews_case() -> dict:
    model = compile_model(andrews())
    system = Smooth(model, np.zeros(3), wrenches=andrews_wrenches)
    begin = time.perf_counter()
    state, path = dormand_prince(system, model.rest_state(), 0.03, tolerance=1e-11, first=1e-6)
    return {
        "q_error": float(np.abs(andrews_angles(model, state.q) - ANDREWS_END).max()),
        "steps": len(path) - 1,
        "constraint_error_m": float(np.abs(model.loops.gaps(link_poses(model, state.q)[0])).max()),
        "seconds": time.perf_counter() - begin,
    }


def bricard_case() -> dict:
    model = compile_model(bricard())
    state, drift, opening = _followed(model, model.rest_state(), BRICARD_STEP, SECONDS, BRICARD_GRAVITY)
    left = Simulation(model, gravity=BRICARD_GRAVITY).freedoms()[2]
    return {
        "position_error_m": float(np.abs(_tip(model, state, "rod.1") - BRICARD_END).max()),
        "energy_drift_J": drift,
        "constraint_error_m": opening,
        # six hinges of five conditions each, but for those that follow from the others
        "rank": 6 * len(model.names) - left,
        "freedoms": left,
        "step_s": BRICARD_STEP,
    }


def _watched(simulation: Simulation, frames: int) -> dict:
    """Runs a simulation; freedoms before and after its events, how far its exact loops opened, and what its events and
    connections do to energy and momentum."""
    before = simulation.freedoms()
    for _ in simulation.run(frames):
        pass
    trajectory, model = simulation.trajectory, simulation.model
    exact = [k for k, closure in enumerate(model.loops.closures) if closure.method == "projection"]
    return {
        "freedoms_before": before[0],
        "freedoms_after": simulation.freedoms()[0],
        "separation_m": float(np.nanmax(trajectory.loop_gap[:, exact])),
        "events": [[event.time, event.name, event.kind] for event in simulation.events],
        "limit_violation_deg": float(np.degrees(trajectory.limit_violation.max())),
    }


def high_bar_case() -> dict:
    linkage = high_bar(release=1.3)
    model = compile_model(linkage)
    v = np.zeros(model.nv)
    v[model.coordinates.v_start[model.names.index("trunk")]] = 5.0
    start = State(model.rest_state().q, v)
    kinetic = lambda state: energy(model, state, np.zeros(3))  # noqa: E731
    moved = State(start.q, connected_velocity(model, start.q, v, model.loops.closed()))
    metrics = _watched(Simulation(model, frame_time=1 / 24, state=start), 73)
    return metrics | _regrabbed() | {"kinetic_gain_at_connection_J": kinetic(moved) - kinetic(start)}


def _regrabbed() -> dict:
    """Lets go of the bar in flight and joins both palms: momentum and kinetic energy across the connection."""
    linkage = high_bar(release=0.0)
    model = compile_model(linkage)
    rng = np.random.default_rng(0)
    simulation = Simulation(
        model, gravity=np.zeros(3), cuts=[(0.0, "bar.L")], state=State(model.rest_state().q, rng.normal(size=model.nv))
    )
    for _ in simulation.run(3):
        pass
    before, kinetic = momentum(model, simulation.state), energy(model, simulation.state, np.zeros(3))
    simulation.connect("forearm.L", "forearm.R", "fixed")
    after = momentum(model, simulation.state)
    return {
        "momentum_error": float(np.abs(after - before).max() / np.abs(before).max()),
        "kinetic_gain_J": energy(model, simulation.state, np.zeros(3)) - kinetic,
    }


def swing_case() -> dict:
    linkage = swing()
    model = compile_model(linkage)
    motion = swing_motion(linkage, 120, 1 / 24)
    return _watched(Simulation(model, frame_time=1 / 24, motion=motion), 120)


def humanoid_loops_case() -> dict:
    """A ragdoll that falls with its hands held to its thighs: the steps with so many contacts at least."""
    linkage = humanoid(damping=0.1)
    linkage["pelvis"].position[2] += 0.3
    simulation = Simulation(compile_model(linkage), scenery=[Plane()], frame_time=1 / 24, substeps=4)
    for _ in simulation.run(20):
        pass
    for side in (".L", ".R"):
        simulation.connect("thigh" + side, "hand" + side, "spherical")
    first = len(simulation.trajectory)
    for _ in simulation.run(81):
        pass
    trajectory = simulation.trajectory
    milliseconds = 1e3 * trajectory.step_seconds.reshape(-1, 4)[first - 1 :]
    touching = trajectory.contacts[first:][: len(milliseconds)] >= CONTACTS
    return {
        "step_ms": float(np.median(milliseconds[touching])),
        "contacts_median": float(np.median(trajectory.contacts[first:][: len(milliseconds)][touching])),
        "separation_m": float(np.nanmax(trajectory.loop_gap)),
    }


def event_case(links: int = 5000) -> dict[str, float]:
    """A chain of so many links is joined at its middle to the world, and cut there in two."""
    simulation = Simulation(compile_model(chain(links)), frame_time=1 / 24)
    milliseconds = {}
    with one_blas_thread():
        for number in range(3):
            for what, change in (
                ("connect", lambda name: simulation.connect(None, f"link.{links // 2}", "spherical", name=name)),
                ("cut_connection", simulation.cut),
            ):
                begin = time.perf_counter()
                change(f"hold.{number}")
                milliseconds.setdefault(what, []).append(1e3 * (time.perf_counter() - begin))
        for link in (links // 2, links // 4, links // 8):
            begin = time.perf_counter()
            simulation.cut(f"link.{link}")
            milliseconds.setdefault("cut", []).append(1e3 * (time.perf_counter() - begin))
    medians = {f"{what}_ms": float(np.median(values)) for what, values in milliseconds.items()}
    return {"event_ms": max(medians.values()), **medians}


CASES = {
    "n-four-bar": n_four_bar_case, "andrews": andrews_case, "bricard": bricard_case, "high-bar": high_bar_case,
    "swing": swing_case, "humanoid-loops": lambda: humanoid_loops_case() | event_case(),
}  # fmt: skip


def main(case: str, *numbers: str) -> None:
    with one_blas_thread():
        print(json.dumps({"metrics": CASES[case](*map(int, numbers))}))


if __name__ == "__main__":
    main(*sys.argv[1:])
