"""Quasi-statics of large linkages against our exact step: `python -m scripts.cases.quasi_statics MODEL FORCES K STEPS`.

MODEL is molecule, millipede or bicycle; K the exponent of the threshold 2^-K, or 0 for a table over several; STEPS 0
for as many as end within about four minutes. As in Redon and Lin (2006), section 6: constant forces of the world on
links next to each other, the relative joint measure, and the same steps with all joints by the exact method, whose
displacements of the links' centers of mass the errors are a share of. `python -m scripts.cases.quasi_statics plot`
draws their Figures 1, 6 and 8.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.dynamics import closed_dynamics
from core.kinematics import link_poses
from core.mechanisms_large import bicycle_chain, millipede, molecule
from core.model import Model, State, compile_model
from core.quasi_statics import QuasiStatics
from core.threads import one_blas_thread
from scripts.cases.chain import peak_mb

PLOTS = Path(__file__).resolve().parents[2] / "docs"
MAKERS = {"molecule": molecule, "millipede": millipede, "bicycle": bicycle_chain}
STEP = {"molecule": 0.02, "millipede": 0.02, "bicycle": 4e-3}
"""Seconds of a step."""
FORCE = {"molecule": 1.0, "millipede": 1.0, "bicycle": 0.01}
"""Newton."""
STEPS = {"molecule": 150, "millipede": 300, "bicycle": 10_000}
EXPONENTS = {"molecule": (3, 7, 11, 15, 19), "millipede": (3, 7, 11, 15, 19), "bicycle": (0.5, 1, 2, 7, 19)}
NO_GRAVITY = np.zeros(3)


@dataclass
class Pulled:
    """A model and the links (k,) that wrenches (k, 6) of the world pull."""

    name: str
    model: Model
    links: np.ndarray
    wrenches: np.ndarray

    @property
    def h(self) -> float:
        return STEP[self.name]

    def centers(self, q: np.ndarray) -> np.ndarray:
        """The links' centers of mass (n, 3) in the world."""
        poses = link_poses(self.model, q)[0][self.model.assembly.slot]
        return (poses[:, :3, :3] @ self.model.center[:, :, None])[:, :, 0] + poses[:, :3, 3]


def pulled(name: str, model: Model, forces: int) -> Pulled:
    rng = np.random.default_rng(0)
    if forces > model.n:
        raise SystemExit(f"the {name} has {model.n} links, fewer than {forces} forces")
    if name == "bicycle":
        # across the chain, in its plane, on the last links
        links, directions = np.arange(model.n - forces, model.n), np.tile([0.0, 0.0, 1.0], (forces, 1))
    else:
        start = int(rng.integers(model.n - forces + 1))
        if name == "millipede" and forces == 1:
            start = model.names.index("leg.250.L.9")
        links, directions = np.arange(start, start + forces), rng.normal(size=(forces, 3))
    directions *= FORCE[name] / np.linalg.norm(directions, axis=1, keepdims=True)
    return Pulled(name, model, links, np.concatenate((np.zeros((forces, 3)), directions), axis=1))


def exact(case: Pulled, steps: int) -> tuple[np.ndarray, float]:
    """Joint coordinates after `steps` with every joint computed, and the milliseconds of a step."""
    model = case.model
    q, seconds = model.coordinates.zero(), []
    wrenches = np.zeros((model.n, 6))
    wrenches[case.links] = case.wrenches
    for _ in range(steps):
        start = time.perf_counter()
        state = State(q, np.zeros(model.nv))
        acceleration = closed_dynamics(model, state, wrenches=wrenches, gravity=NO_GRAVITY)[0]
        q = model.coordinates.integrate(q, acceleration, 0.5 * case.h**2)
        seconds.append(time.perf_counter() - start)
    return q, 1e3 * float(np.median(seconds))


def approximate(quasi: QuasiStatics, case: Pulled, threshold: float, steps: int) -> dict:
    """The same steps with an error threshold: medians of their milliseconds and of the joints computed."""
    quasi.place(case.model.coordinates.zero())
    quasi.solve(threshold)
    seconds, joints, worst = [], [], 0.0
    for _ in range(steps):
        start = time.perf_counter()
        result = quasi.step(threshold, case.h)
        seconds.append(time.perf_counter() - start)
        joints.append(len(result.links))
        worst = max(worst, result.error)
    return {
        "step_ms": 1e3 * float(np.median(seconds)),
        "active_joints": float(np.median(joints)),
        "error_bound": worst,
    }


def measure(name: str, forces: int, exponents: tuple[float, ...], steps: int) -> dict:
    case = pulled(name, compile_model(MAKERS[name]()), forces)
    start = time.perf_counter()
    quasi = QuasiStatics(case.model, gravity=NO_GRAVITY)
    build = time.perf_counter() - start
    quasi.apply(case.links, case.wrenches)
    rest = case.centers(case.model.coordinates.zero())
    q, dca_ms = exact(case, steps)
    moved = case.centers(q) - rest
    rows = []
    for exponent in exponents:
        row = {"eps": f"2^-{exponent:g}"} | approximate(quasi, case, 2.0**-exponent, steps)
        apart = np.linalg.norm(case.centers(quasi.q) - rest - moved, axis=1).max()
        row["displacement_error_rel"] = float(apart / np.linalg.norm(moved, axis=1).max())
        row["speedup"] = dca_ms / row["step_ms"]
        rows.append(row)
        print(*(f"{key} {value if isinstance(value, str) else format(value, '.3g')}" for key, value in row.items()))
    common = {"dca_ms": dca_ms, "steps": steps, "links": case.model.n, "build_s": build, "peak_mb": peak_mb()}
    return rows[-1] | common | ({"rows": rows} if len(rows) > 1 else {})


def plot() -> dict:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    exponents = np.arange(1, 20, 2)
    for name, counts in (("molecule", (1, 10, 100, 1000)), ("millipede", (1,))):
        model = compile_model(MAKERS[name]())
        quasi = QuasiStatics(model, gravity=NO_GRAVITY)
        for forces in counts:
            case = pulled(name, model, forces)
            quasi.apply(np.arange(case.model.n), np.zeros((case.model.n, 6)))
            quasi.apply(case.links, case.wrenches)
            rows = [approximate(quasi, case, 2.0**-k, 25) for k in exponents]
            label = f"{name}, {forces} force{'s' if forces > 1 else ''}"
            for axis, key in zip(axes, ("step_ms", "active_joints")):
                style = "o-" if name == "molecule" else "s--"
                axis.loglog(2.0**-exponents, [row[key] for row in rows], style, label=label, markersize=4)
        _, dca_ms = exact(case, 8)
        axes[0].axhline(dca_ms, linestyle=":", color="gray")
        axes[0].text(0.5, dca_ms, f"{name}, all joints", fontsize="small", va="bottom")
    for axis, label in zip(axes, ("step [ms]", "joints computed")):
        axis.set(xlabel="threshold of the relative joint acceleration error", ylabel=label)
        axis.invert_xaxis()
        axis.grid(alpha=0.3)
    axes[1].legend(fontsize="small")
    figure.savefig(PLOTS / "quasi-statics.png", dpi=100)
    plot_bicycle(pyplot)
    return {"plots": 2}


def plot_bicycle(pyplot) -> None:
    """Figure 1: where the chain comes to with several thresholds, and with all joints computed."""
    case = pulled("bicycle", compile_model(bicycle_chain()), 1)
    steps = STEPS["bicycle"]
    quasi = QuasiStatics(case.model, gravity=NO_GRAVITY)
    quasi.apply(case.links, case.wrenches)
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
    shapes = {"start": case.model.coordinates.zero(), "all joints": exact(case, steps)[0]}
    for exponent in EXPONENTS["bicycle"][:4]:
        approximate(quasi, case, 2.0**-exponent, steps)
        shapes[f"ε = 2^-{exponent:g}"] = quasi.q.copy()
    for label, q in shapes.items():
        line = tip_line(case, q)
        style = {"start": ":k", "all joints": "k"}.get(label, "-")
        for axis in axes:
            axis.plot(line[:, 0], line[:, 2], style, label=label, linewidth=3 if label == "all joints" else 1.2)
    end = tip_line(case, shapes["all joints"])[-1]
    axes[1].set(xlim=(end[0] - 0.03, end[0] + 0.03), ylim=(end[2] - 0.03, end[2] + 0.03), title="around the last link")
    axes[0].set_title(f"a bicycle chain after {steps:,} steps, pulled up at its end")
    for axis in axes:
        axis.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
        axis.grid(alpha=0.3)
    axes[1].legend(fontsize="small")
    figure.savefig(PLOTS / "quasi-statics-bicycle.png", dpi=100)


def tip_line(case: Pulled, q: np.ndarray) -> np.ndarray:
    """The chain's joints and its end (n + 1, 3)."""
    poses = link_poses(case.model, q)[0][case.model.assembly.slot]
    return np.vstack((poses[:, :3, 3], poses[-1, :3, 3] + 2.0 * case.model.center[-1, 1] * poses[-1, :3, 1]))


def main(arguments: list[str]) -> None:
    with one_blas_thread():
        if arguments[0] == "plot":
            metrics = plot()
        else:
            name, forces, exponent, steps = arguments[0], int(arguments[1]), float(arguments[2]), int(arguments[3])
            exponents = (exponent,) if exponent else EXPONENTS[name]
            metrics = measure(name, forces, exponents, steps or STEPS[name])
    print(json.dumps({"metrics": metrics}))


if __name__ == "__main__":
    main(sys.argv[1:])
