"""Milliseconds a step of the chain in another engine: `python -m scripts.cases.peers ENGINE LINKS`.

Every engine gets the very links of `core.mechanisms.chain`, without collisions, and makes one step of forward
dynamics and semi-implicit Euler the way its own documentation does.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from core.mechanisms import chain
from core.spatial import matrix_quaternion

STEP = 1.0 / 240.0


def mujoco(links: list) -> Callable[[], None]:
    import mujoco

    spec = mujoco.MjSpec()
    spec.option.timestep = STEP
    body = spec.worldbody
    for link in links:
        body = body.add_body(name=link.name, pos=link.position, quat=matrix_quaternion(link.rotation))
        body.mass, body.ipos, body.explicitinertial = link.mass, link.center_of_mass, True
        body.inertia = np.diag(link.inertia)
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[1, 0, 0])
    model = spec.compile()
    data = mujoco.MjData(model)
    return lambda: mujoco.mj_step(model, data)


def drake(links: list) -> Callable[[], None]:
    from pydrake.math import RigidTransform, RotationMatrix
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import FixedOffsetFrame, RevoluteJoint, SpatialInertia, UnitInertia

    plant = MultibodyPlant(time_step=0.0)
    body = plant.world_body()
    for link in links:
        inertia = link.inertia / link.mass
        center = link.center_of_mass
        unit = UnitInertia(*np.diag(inertia)).ShiftFromCenterOfMass(-center)
        moved = plant.AddRigidBody(link.name, SpatialInertia(link.mass, center, unit))
        place = RigidTransform(RotationMatrix(link.rotation), link.position)
        mount = plant.AddFrame(FixedOffsetFrame(f"{link.name}.mount", body.body_frame(), place))
        plant.AddJoint(RevoluteJoint(f"{link.name}.joint", mount, moved.body_frame(), [1, 0, 0]))
        body = moved
    plant.Finalize()
    context = plant.CreateDefaultContext()
    n = len(links)

    def step() -> None:
        state = context.get_continuous_state_vector().CopyToVector()
        rates = plant.EvalTimeDerivatives(context).CopyToVector()
        state[n:] += STEP * rates[n:]
        state[:n] += STEP * state[n:]
        context.SetContinuousState(state)

    return step


def pinocchio(links: list) -> Callable[[], None]:
    import pinocchio

    model = pinocchio.Model()
    joint = 0
    for link in links:
        place = pinocchio.SE3(link.rotation, link.position)
        joint = model.addJoint(joint, pinocchio.JointModelRX(), place, link.name)
        inertia = pinocchio.Inertia(link.mass, link.center_of_mass, link.inertia)
        model.appendBodyToJoint(joint, inertia, pinocchio.SE3.Identity())
    data = model.createData()
    q, v, tau = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)

    def step() -> None:
        nonlocal q, v
        v = v + STEP * pinocchio.aba(model, data, q, v, tau)
        q = q + STEP * v

    return step


def pybullet(links: list) -> Callable[[], None]:
    import pybullet

    pybullet.connect(pybullet.DIRECT)
    pybullet.setGravity(0, 0, -9.81)
    pybullet.setTimeStep(STEP)
    count = len(links)
    robot = pybullet.createMultiBody(
        baseMass=0,
        linkMasses=[link.mass for link in links],
        linkCollisionShapeIndices=[-1] * count,
        linkVisualShapeIndices=[-1] * count,
        linkPositions=[link.position.tolist() for link in links],
        linkOrientations=[np.roll(matrix_quaternion(link.rotation), -1).tolist() for link in links],
        linkInertialFramePositions=[link.center_of_mass.tolist() for link in links],
        linkInertialFrameOrientations=[[0, 0, 0, 1]] * count,
        linkParentIndices=list(range(count)),
        linkJointTypes=[pybullet.JOINT_REVOLUTE] * count,
        linkJointAxis=[[1, 0, 0]] * count,
    )
    if robot < 0 or pybullet.getNumJoints(robot) != count:
        raise RuntimeError(f"createMultiBody made {max(pybullet.getNumJoints(robot), 0) if robot >= 0 else 0} links")
    pybullet.changeDynamics(robot, -1, linearDamping=0, angularDamping=0)
    for index, link in enumerate(links):
        pybullet.changeDynamics(robot, index, jointDamping=0, localInertiaDiagonal=np.diag(link.inertia).tolist())
        pybullet.setJointMotorControl2(robot, index, pybullet.VELOCITY_CONTROL, force=0)
    return pybullet.stepSimulation


ENGINES = {engine.__name__: engine for engine in (mujoco, drake, pinocchio, pybullet)}


def median_ms(step: Callable[[], object], *, seconds: float = 10.0, most: int = 200) -> float:
    """Median milliseconds of calls of `step` after a first one, which may still set things up."""
    step()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (len(times) < most and time.perf_counter() < end):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def main(engine: str, links: int) -> None:
    step = ENGINES[engine](list(chain(links, horizontal=True).links()))
    print(json.dumps({"ms": median_ms(step)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
