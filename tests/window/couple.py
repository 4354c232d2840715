"""Run by a real Blender without a window: `-- OUT.json`. Lets a coupling loop run in a process of Blender's own Python,
which a hand in it moves, while a chain is simulated here, and writes what came of it."""

import json
import sys
import time
from importlib import import_module

import bpy

PATIENCE = 30.0

package = next(own.module for own in bpy.context.preferences.addons if own.module.endswith("armature_dynamics"))
companion, coupling, grip, hand, live, mailbox, mechanisms, model, simulation = (
    import_module(f"{package}.core.{name}")
    for name in ("companion", "coupling", "grip", "hand", "live", "mailbox", "mechanisms", "model", "simulation")
)

chain = model.compile_model(mechanisms.chain(4, "spherical", damping=0.1))
swing = {"kind": "swing", "way": [0.05, 0.0, 0.0], "frequency": 1.0}
found = {"python": companion.python()}
with mailbox.Mailboxes(coupling.sizes()) as boxes:
    springs = [hand.Springs(stiffness=50.0)]
    with companion.Companion(boxes, coupling=springs, devices=[swing], measured=True) as process:
        own = live.Live(simulation.Simulation(chain, frame_time=1 / 60), boxes)
        forces, felt, end = boxes.reader("forces"), 0.0, time.monotonic() + PATIENCE
        own.hold(grip.Grip("link.3", (0.0, 0.05, 0.0)))
        while felt < 0.1 and time.monotonic() < end:
            own.turn()
            time.sleep(1 / 60)
            forces.fresh()
            felt = max(felt, abs(forces.message[4]))
        found |= {"felt": felt, **process.end(PATIENCE)}
    found["left"] = process.process.returncode
with open(sys.argv[-1], "w", encoding="utf-8") as file:
    json.dump({name: value for name, value in found.items() if name != "bins"}, file)
