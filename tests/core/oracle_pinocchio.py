"""Pinocchio's articulated-body algorithm as an oracle for joint accelerations.

Its free-flyer measures (linear, angular) velocity in the link's axes and this project the linear one in the parent's
joint-rest axes: with R from link to parent v' = R v and, differentiated, a' = R (a + ω × v). Its quaternions are
(x, y, z, w). It has no fixed joint: a fixed link is a part of the body that carries it.
"""

from __future__ import annotations

import numpy as np
import pinocchio
from oracle import layout, per_freedom

from core.linkage import Link, Linkage

MODELS = {
    "hinge": pinocchio.JointModelRX,
    "prismatic": pinocchio.JointModelPX,
    "universal": lambda: pinocchio.JointModelUniversal(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])),
    "spherical": pinocchio.JointModelSpherical,
    "free": pinocchio.JointModelFreeFlyer,
}
COORDINATES = {"spherical": [1, 2, 3, 0], "free": [4, 5, 6, 1, 2, 3, 0]}
"""This project's index of each of Pinocchio's coordinates, where the order differs."""


def acceleration(
    linkage: Linkage, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray, gravity: np.ndarray,
    inertia: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Joint accelerations (nv,); see `oracle`."""
    model, carriers = _compile(linkage, gravity)
    data = model.createData()
    their_q = np.empty(model.nq)
    turn, drift = np.zeros((model.nv, model.nv)), np.zeros(model.nv)  # their velocity = turn @ ours; their a - turn' a
    for link, at_q, at_v in layout(linkage):
        if link.joint.kind == "fixed":
            continue
        joint = carriers[link][0]
        rows = slice(model.idx_vs[joint], model.idx_vs[joint] + model.nvs[joint])
        theirs = q[at_q]
        their_q[model.idx_qs[joint] :][: model.nqs[joint]] = theirs[COORDINATES.get(link.joint.kind, slice(None))]
        turn[rows, at_v] = np.eye(model.nvs[joint])
        if link.joint.kind == "free":
            to_link = pinocchio.Quaternion(theirs[[1, 2, 3, 0]]).toRotationMatrix().T
            turn[rows, at_v] = np.block([[np.zeros((3, 3)), to_link], [np.eye(3), np.zeros((3, 3))]])
            angular, linear = v[at_v][:3], to_link @ v[at_v][3:]
            drift[rows][:3] = np.cross(angular, linear)
    damping = per_freedom(linkage, "damping") * v
    model.armature[:] = turn @ (per_freedom(linkage, "armature") + (0.0 if inertia is None else inertia))
    forces = _forces(model, data, linkage, carriers, their_q, wrenches)
    found = pinocchio.aba(model, data, their_q, turn @ v, turn @ (tau - damping), forces)
    return turn.T @ (found + drift)


def _compile(linkage: Linkage, gravity: np.ndarray) -> tuple[pinocchio.Model, dict[Link, tuple[int, pinocchio.SE3]]]:
    """The model, and for each link the joint of its body and the link's placement there."""
    model = pinocchio.Model()
    model.gravity.linear = np.asarray(gravity, dtype=float)
    carriers = {linkage.world: (0, pinocchio.SE3.Identity())}
    for link in linkage.links():
        joint, placement = carriers[link.parent]
        placement = placement * pinocchio.SE3(link.rotation, link.position)
        if link.joint.kind != "fixed":
            joint = model.addJoint(joint, MODELS[link.joint.kind](), placement, link.name)
            placement = pinocchio.SE3.Identity()
        carriers[link] = joint, placement
        model.appendBodyToJoint(joint, pinocchio.Inertia(link.mass, link.center_of_mass, link.inertia), placement)
    return model, carriers


def _forces(model, data, linkage, carriers, their_q, wrenches) -> list[pinocchio.Force]:
    """The world-frame `wrenches` (n, 6) on the links, summed for each joint in its own frame."""
    pinocchio.forwardKinematics(model, data, their_q)
    forces = [pinocchio.Force.Zero() for _ in range(model.njoints)]
    for link, wrench in zip(linkage.links(), wrenches, strict=True):
        joint, placement = carriers[link]
        to_link = (data.oMi[joint] * placement).rotation.T
        forces[joint] += placement.act(pinocchio.Force(to_link @ wrench[3:], to_link @ wrench[:3]))
    return forces
