"""Physics of articulated bodies, in numpy alone.

linkage = Linkage()                     # what a person edits
model = compile_model(linkage)          # arrays
simulation = Simulation(model, scenery=[Plane()])
for frame in simulation.run(100): ...
simulation.trajectory                   # frames of joint coordinates and poses
QuasiStatics(model).step(1e-3, h)       # only the joints whose accelerations matter
Simulation(model, adaptive=Adaptive(threshold=1e-3))    # only the joints whose motion matters
"""

from .adaptive import Adaptive
from .error_queue import Measure
from .impact import Law
from .integration import step
from .joint import Joint
from .linkage import Closure, Link, Linkage, LinkageError
from .model import Model, State, compile_model
from .motion import Motion
from .quasi_statics import QuasiStatics
from .shape import Box, Capsule, Cylinder, Hull, Mesh, Plane, Sphere, TaperedCapsule
from .simulation import Simulation, SimulationError
from .smooth import Smooth, dormand_prince, rk4
from .structure import Event
from .trajectory import Trajectory
from .world import World

__all__ = [
    "Adaptive", "Box", "Capsule", "Closure", "Cylinder", "Event", "Hull", "Joint", "Law", "Link", "Linkage",
    "LinkageError", "Measure", "Mesh", "Model", "Motion", "Plane", "QuasiStatics", "Simulation", "SimulationError",
    "Smooth", "Sphere", "State", "TaperedCapsule", "Trajectory", "World", "compile_model", "dormand_prince", "rk4",
    "step",
]  # fmt: skip
