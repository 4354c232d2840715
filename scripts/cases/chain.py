"""Milliseconds a step of a serial chain that falls from the horizontal: `python -m scripts.cases.chain LINKS`."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from core import Simulation, compile_model
from core.mechanisms import chain

SECONDS, FRAMES = 10.0, 20
"""It runs until either is used up."""
STIFF = 5000
"""Longer chains get steps below 1/240 s: the tension of so many links makes their motion that fast."""


def main(links: int) -> None:
    start = time.perf_counter()
    model = compile_model(chain(links, horizontal=True))
    simulation = Simulation(model, frame_time=1 / 24, substeps=10 * -(-links // STIFF))
    built = time.perf_counter()
    for frame in simulation.run(FRAMES):
        if frame and time.perf_counter() - built > SECONDS:
            break
    step_ms = 1e3 * float(np.median(simulation.trajectory.step_seconds))
    print(json.dumps({"metrics": {"step_ms": step_ms, "build_s": built - start, "peak_mb": peak_mb()}}))


def peak_mb() -> float | None:
    """The most memory this process has had; None on Windows, where Python does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


if __name__ == "__main__":
    main(int(sys.argv[1]))
