"""Milliseconds a step of a 19-body ragdoll, flying and lying on the ground: `python -m scripts.cases.humanoid`."""

from __future__ import annotations

import json

import numpy as np

from core import Plane, Simulation, Trajectory, compile_model
from core.mechanisms import humanoid

FRAMES, SUBSTEPS = 150, 10
CONTACTS = 8
"""The contact figure counts only frames with at least so many."""


def run(scenery: list) -> Trajectory:
    simulation = Simulation(compile_model(humanoid()), scenery=scenery, frame_time=1 / 24, substeps=SUBSTEPS)
    for _ in simulation.run(FRAMES):
        pass
    return simulation.trajectory


def main() -> None:
    flight, fall = run([]), run([Plane()])
    touching = (fall.contacts >= CONTACTS) & (fall.substeps > 0)
    if not touching.any():
        raise RuntimeError(f"the ragdoll never had {CONTACTS} contacts")
    metrics = {
        "step_ms_free": 1e3 * float(np.median(flight.step_seconds)),
        "step_ms_contact": 1e3 * float(np.median(fall.step_seconds[np.repeat(touching, fall.substeps)])),
        "contacts_median": float(np.median(fall.contacts[touching])),
        "frames_in_contact": int(touching.sum()),
    }
    print(json.dumps({"metrics": metrics}))


if __name__ == "__main__":
    main()
