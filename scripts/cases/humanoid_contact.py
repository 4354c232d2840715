"""Milliseconds a step of a ragdoll that lands and lies, its self-collision included, and the iterations of the contact
solver: `python -m scripts.cases.humanoid_contact`."""

from __future__ import annotations

import json
import time

import numpy as np

from core import Plane, World, compile_model, step
from core.mechanisms import humanoid
from core.threads import one_blas_thread

SECONDS, H = 3.0, 1 / 240
CONTACTS = 12
"""Only steps with at least so many contacts count."""


def main() -> None:
    model = compile_model(humanoid())
    world, state = World(model, (Plane(),)), model.rest_state()
    milliseconds, iterations, contacts = [], [], []
    with one_blas_thread():
        for _ in range(round(SECONDS / H)):
            begin = time.perf_counter()
            state = step(world, state, H)
            milliseconds.append(1e3 * (time.perf_counter() - begin))
            iterations.append(state.memory.iterations)
            contacts.append(len(state.memory.contacts))
    counted = np.array(contacts) >= CONTACTS
    if not counted.any():
        raise RuntimeError(f"the ragdoll never had {CONTACTS} contacts")
    metrics = {
        "step_ms": float(np.median(np.array(milliseconds)[counted])),
        "step_ms_p95": float(np.percentile(np.array(milliseconds)[counted], 95)),
        "contacts_median": float(np.median(np.array(contacts)[counted])),
        "iterations_median": float(np.median(np.array(iterations)[counted])),
        "iterations_max": int(np.max(np.array(iterations)[counted])),
        "steps_counted": int(counted.sum()),
    }
    print(json.dumps({"metrics": metrics}))


if __name__ == "__main__":
    main()
