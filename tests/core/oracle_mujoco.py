"""MuJoCo as an oracle for joint accelerations.

A universal joint is two hinges in a row. A free joint is three slides and a ball, which MuJoCo allows on any body and
whose velocities are this project's: the origin's in the parent's joint-rest frame, and the angular one in the link's.
"""

from __future__ import annotations

import mujoco
import numpy as np
from oracle import layout, per_freedom

from core.linkage import Linkage

HINGE, SLIDE, BALL = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_BALL
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
JOINTS = {
    # each with its axis and where its coordinates and velocities begin among the whole joint's
    "fixed": (),
    "hinge": ((HINGE, X, 0, 0),),
    "prismatic": ((SLIDE, X, 0, 0),),
    "universal": ((HINGE, X, 0, 0), (HINGE, Z, 1, 1)),
    "spherical": ((BALL, X, 0, 0),),
    "free": ((SLIDE, X, 4, 3), (SLIDE, Y, 5, 4), (SLIDE, Z, 6, 5), (BALL, X, 0, 0)),
}


def acceleration(
    linkage: Linkage, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray, gravity: np.ndarray,
    inertia: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Joint accelerations (nv,); see `oracle`."""
    model = _compile(linkage, gravity)
    to_q, to_v, bodies = _correspondence(model, linkage)
    model.dof_armature[:] = (per_freedom(linkage, "armature") + (0.0 if inertia is None else inertia))[to_v]
    model.dof_damping[:] = per_freedom(linkage, "damping")[to_v]
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[to_q], v[to_v], tau[to_v]
    mujoco.mj_fwdPosition(model, data)
    torque, force = wrenches[:, :3], wrenches[:, 3:]
    arm = data.xpos[bodies] - data.xipos[bodies]
    data.xfrc_applied[bodies] = np.hstack([force, torque + np.cross(arm, force)])
    mujoco.mj_forward(model, data)
    result = np.empty(len(v))
    result[to_v] = data.qacc
    return result


def _compile(linkage: Linkage, gravity: np.ndarray) -> mujoco.MjModel:
    spec = mujoco.MjSpec()
    spec.option.gravity = np.asarray(gravity, dtype=float)
    spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    bodies = {linkage.world: spec.worldbody}
    for link in linkage.links():
        body = bodies[link.parent].add_body(name=link.name, pos=link.position, quat=_quaternion(link.rotation))
        body.mass, body.ipos, body.explicitinertial = link.mass, link.center_of_mass, True
        body.fullinertia = link.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        for index, (kind, axis, _, _) in enumerate(JOINTS[link.joint.kind]):
            body.add_joint(name=f"{link.name}/{index}", type=kind, axis=axis)
        bodies[link] = body
    return spec.compile()


def _correspondence(model: mujoco.MjModel, linkage: Linkage) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """This project's indices of MuJoCo's coordinates (nq,) and velocities (nv,), and MuJoCo's of the links (n,)."""
    to_q, to_v = np.empty(model.nq, dtype=int), np.empty(model.nv, dtype=int)
    bodies = [model.body(link.name).id for link in linkage.links()]
    for link, q, v in layout(linkage):
        for index, (kind, _, q_offset, v_offset) in enumerate(JOINTS[link.joint.kind]):
            joint = model.joint(f"{link.name}/{index}").id
            q_size, v_size = (4, 3) if kind == BALL else (1, 1)
            q_start, v_start = model.jnt_qposadr[joint], model.jnt_dofadr[joint]
            to_q[q_start : q_start + q_size] = q.start + q_offset + np.arange(q_size)
            to_v[v_start : v_start + v_size] = v.start + v_offset + np.arange(v_size)
    return to_q, to_v, np.array(bodies)


def _quaternion(rotation: np.ndarray) -> np.ndarray:
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).ravel())
    return quaternion
