"""What publishing the affine map of a grabbed link costs, against the size of the body: `python -m
scripts.cases.force_feedback`.

Chains, millipedes and molecules of 1,000 to 50,000 links, held in turn at links chosen by chance: the mean over links
of the median over repetitions. The step's own tree is there already and is not counted; the passes for the grab are.
`exponent` is the worst slope of log time against log size, of these and of the molecule's quasi-statics, which have
another tree; `slowest_ms` is of the link that takes longest.
"""

from __future__ import annotations

import json
import time

import numpy as np

from core.dynamics import Solution, solution
from core.feedback import Feedback, Grab
from core.mechanisms import chain
from core.mechanisms_large import millipede, molecule
from core.model import Model, State, compile_model
from core.quasi_statics import QuasiStatics
from core.threads import one_blas_thread

LINKS = (1000, 7000, 50_000)
MAKERS = {"chain": chain, "millipede": lambda links: millipede(2 * round(links / 26)), "molecule": molecule}
"""A pair of the millipede's legs has 20 links and 6 of the spine."""
PULLED, REPETITIONS = 64, 15


def prepare_ms(bodies: list[Feedback], solved: Solution | QuasiStatics) -> np.ndarray:
    """Milliseconds of preparing a map, of each of the grabs; these by turns, so that little is in the cache."""
    seconds = np.empty((REPETITIONS, len(bodies)))
    for row in seconds:
        for k, feedback in enumerate(bodies):
            start = time.perf_counter()
            feedback.prepare(solved)
            row[k] = time.perf_counter() - start
    return 1e3 * np.median(seconds, axis=0)


def grabbed(body: Model | QuasiStatics, names: tuple[str, ...]) -> list[Feedback]:
    links = np.random.default_rng(0).integers(0, len(names), PULLED)
    return [Feedback(body, [Grab(names[i], (0.0, 0.05, 0.0))]) for i in links.tolist()]


def measure() -> dict:
    rows, slopes = [], {}
    for name, maker in MAKERS.items():
        for links in LINKS:
            model = compile_model(maker(links))
            v = 0.1 * np.random.default_rng(0).standard_normal(model.nv)
            solved = solution(model, State(model.coordinates.zero(), v), {})
            bodies = {name: (grabbed(model, model.names), solved)}
            if name == "molecule":
                quasi = QuasiStatics(model)
                bodies["quasi-statics"] = grabbed(quasi, model.names), quasi
            for body, (feedbacks, given) in bodies.items():
                taken = prepare_ms(feedbacks, given)
                row = {"body": body, "links": model.n}
                row |= {"prepare_ms": float(taken.mean()), "slowest_ms": float(taken.max())}
                rows.append(row)
                print(*(f"{key} {value:.3g}" if key != "body" else value for key, value in row.items()), flush=True)
    for body in {row["body"]: None for row in rows}:
        own = np.log([(row["links"], row["prepare_ms"]) for row in rows if row["body"] == body])
        slopes[body] = float(np.polyfit(*own.T, 1)[0])
    large = [row for row in rows if row["links"] > 0.9 * LINKS[-1]]
    worst = {name: max(row[name] for row in large) for name in ("prepare_ms", "slowest_ms")}
    return worst | {"exponent": max(slopes.values()), "exponents": slopes, "rows": rows}


def main() -> None:
    with one_blas_thread():
        metrics = measure()
    print(json.dumps({"metrics": metrics}))


if __name__ == "__main__":
    main()
