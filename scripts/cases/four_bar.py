"""The four-bar study of Khan and Krovi: how well two methods keep a loop closed, at what price, and in two processes.

`python -m scripts.cases.four_bar` draws out/four-bar.png. Adaptive steps are taken for the first `SWEEP` seconds of
motion, 1 ms steps for all 10; compliance is without damping, as in the paper. The torque turns the crank ever faster,
so that the loop's force, and what a spring gives way, grow: `compliance_error_m` is the root mean square over the 10 s.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from core import Closure, Linkage, Model, Smooth, State, compile_model, dormand_prince, rk4
from core.distributed import simulate
from core.kinematics import link_poses
from core.mechanisms_closed import FOUR_BAR_TORQUE, four_bar
from core.subsystems import split
from core.threads import one_blas_thread

PLOT = Path(__file__).resolve().parents[2] / "out" / "four-bar.png"
SECONDS, STEP, SWEEP = 10.0, 1e-3, 1.5
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6)
SIGMAS = (0.0, 1.0, 10.0, 30.0, 100.0, 300.0)
STIFFNESSES = (1e1, 1e2, 1e3, 1e4, 1e5, 1e6)
PROJECTION = {f"{sigma:g}": Closure(baumgarte=sigma) for sigma in SIGMAS}
COMPLIANCE = {f"{k:.0e}": Closure(method="compliance", stiffness=k, damping=0.0) for k in STIFFNESSES}
TORQUE = np.array([FOUR_BAR_TORQUE, 0.0, 0.0])
BOTH = {"projection": (PROJECTION["10"], False), "compliance": (COMPLIANCE["1e+06"], False)}
"""What runs in one process and in two: a closure, and whether steps end with closing it."""


def closed_by(closure: Closure, prefix: str = "") -> Linkage:
    """The four-bar with its loop kept by `closure`, its links' names after `prefix`."""
    linkage = four_bar()
    for link in [*linkage.links(), *linkage.virtual_links()]:
        link.name, link.closure = prefix + link.name, closure
    return linkage


def apart(model: Model, q: np.ndarray) -> np.ndarray:
    """The constraint errors (k,) [m]."""
    return model.loops.apart(link_poses(model, q)[0])


def adaptive(closure: Closure, tolerance: float, projected: bool) -> tuple[np.ndarray, np.ndarray]:
    """Times (steps + 1,) of Dormand's and Prince's steps and the constraint error [m] after each."""
    model = compile_model(closed_by(closure))
    system = Smooth(model, forces=lambda *_: TORQUE, projected=projected)
    with one_blas_thread():
        _, path = dormand_prince(system, model.rest_state(), SWEEP, tolerance=tolerance)
    return np.array([state.time for state in path]), np.array([apart(model, state.q)[0] for state in path])


def fixed(closures: dict[str, Closure], projected: bool) -> np.ndarray:
    """The constraint errors (steps + 1, closures) [m] at a fixed step, of as many four-bars side by side."""
    linkage = Linkage()
    for prefix, closure in closures.items():
        for root in list(closed_by(closure, f"{prefix} ").world.children()):
            linkage.add(root)
    model = compile_model(linkage)
    forces = np.tile(TORQUE, len(closures))
    state, errors = model.rest_state(), [np.zeros(len(closures))]
    with one_blas_thread():
        for _ in range(round(SECONDS / STEP)):
            state = rk4(model, state, STEP, forces=lambda *_: forces, projected=projected)
            errors.append(apart(model, state.q))
    return np.array(errors)


def divided(method: str, processes: bool) -> tuple[np.ndarray, np.ndarray]:
    """The path of the left and the right chain."""
    closure, projected = BOTH[method]
    linkage = closed_by(closure)
    start: State = compile_model(linkage).rest_state()
    parts = split(linkage, forces=TORQUE, projected=projected)
    return simulate(parts, start, STEP, round(SECONDS / STEP), processes=processes)


def main() -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        paths = {(method, two): pool.submit(divided, method, two) for method in BOTH for two in (True, False)}
        steady = {
            "projected": pool.submit(fixed, PROJECTION, True),
            "others": pool.submit(fixed, PROJECTION | COMPLIANCE, False),
        }
        swept = {
            (method, name, tolerance): pool.submit(adaptive, closure, tolerance, method == "projected")
            for method, closures in (("compliance", COMPLIANCE), ("projection", PROJECTION), ("projected", PROJECTION))
            for name, closure in reversed(closures.items())
            for tolerance in TOLERANCES
            if method != "projected" or name in ("0", "100")
        }
        paths, steady, swept = (done(futures) for futures in (paths, steady, swept))

    steady["projection"], steady["compliance"] = np.split(steady.pop("others"), [len(PROJECTION)], axis=1)
    stiffest = steady["compliance"][:, -1]
    differences = [np.abs(a - b).max() for m in BOTH for a, b in zip(paths[m, True], paths[m, False])]
    steps = {key: len(times) - 1 for key, (times, _) in swept.items()}
    kept = [error.max() for (method, _, _), (_, error) in swept.items() if method == "projected"]
    metrics = {
        "projection_error_m": float(max(steady["projected"].max(), *kept)),
        "compliance_error_m": float(np.sqrt(np.mean(stiffest**2))),
        "compliance_peak_m": float(stiffest.max()),
        "distributed_difference": float(max(differences)),
        "stabilised_peaks_m": dict(zip(PROJECTION, steady["projection"].max(0).tolist())),
        "compliance_peaks_m": dict(zip(COMPLIANCE, steady["compliance"].max(0).tolist())),
        "steps_sigma": table(steps, "projection", PROJECTION),
        "steps_stiffness": table(steps, "compliance", COMPLIANCE),
    }
    draw(swept, steady, steps)
    print(json.dumps({"metrics": metrics}))


def done(futures: dict[object, Future]) -> dict:
    return {key: future.result() for key, future in futures.items()}


def table(steps: dict, method: str, names: dict[str, Closure]) -> dict[str, list[int]]:
    """Step counts of a method for each closure, by tolerance."""
    return {name: [steps[method, name, tolerance] for tolerance in TOLERANCES] for name in names}


def draw(swept: dict, steady: dict, steps: dict) -> None:
    """The paper's Figures 4 to 7; without matplotlib only says so."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(17, 9), layout="constrained")
    time = STEP * np.arange(len(steady["projection"]))
    columns = (("projection", "σ", PROJECTION, SIGMAS), ("compliance", "K", COMPLIANCE, STIFFNESSES))
    for row, (method, symbol, names, values) in enumerate(columns):
        adapting, constant, price = axes[row]
        for color, name in enumerate(names):
            for style, tolerance in ((":", 1e-3), ("-", 1e-6)):
                label = f"{symbol} = {name}" if style == "-" else None
                adapting.semilogy(*visible(swept[method, name, tolerance]), style, color=f"C{color}", label=label)
            constant.semilogy(*visible((time, steady[method][:, color])), color=f"C{color}", label=f"{symbol} = {name}")
        adapting.set_title(f"{method}: adaptive, tolerance 1e-3 (dotted) and 1e-6")
        constant.set_title(f"{method}: steps of {1e3 * STEP:g} ms")
        for tolerance in TOLERANCES:
            counts = [steps[method, name, tolerance] for name in names]
            price.plot(values, counts, "o-", label=f"tolerance {tolerance:.0e}")
        price.set(title=f"{method}: steps in {SWEEP:g} s", xlabel=symbol, yscale="log")
        price.set_xscale("symlog" if row == 0 else "log")
        price.set_xlim(left=0.0 if row == 0 else None)
    best = steady["projected"].max(1)
    axes[0, 1].semilogy(*visible((time, best)), "k", label="closed after each step, any σ")
    axes[0, 0].semilogy(*visible(swept["projected", "0", 1e-6]), "k", label="closed after each step")
    for panel in axes[:, :2].flat:
        panel.set(xlabel="time [s]", ylabel="constraint error [m]")
    for panel in axes.flat:
        panel.legend(fontsize="x-small", ncols=2)
        panel.grid(alpha=0.3)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, dpi=110)


def visible(curve: tuple[np.ndarray, np.ndarray], most: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """A curve (times, errors) in at most so many points, each the largest of its neighbours, without the closed start
    and with none at zero."""
    times, errors = (values[1:] for values in curve)
    every = -(-len(times) // most)
    starts = np.arange(0, len(times), every)
    return times[starts], np.maximum(np.maximum.reduceat(errors, starts), 1e-17)


if __name__ == "__main__":
    main()
