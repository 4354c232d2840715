"""Linkages of people as MuJoCo's bodies, for second opinions."""

from __future__ import annotations

import mujoco
import numpy as np

from core import Linkage
from core.spatial import matrix_quaternion


def add_bodies(spec: mujoco.MjSpec, linkage: Linkage, damping: float, surface: dict) -> None:
    """Adds the links, their capsules and their joints, limited and with `damping` [N m s/rad]; each spherical joint is
    three hinges, twist last. `surface`: further fields of the geoms."""
    bodies = {linkage.world: spec.worldbody}
    for link in linkage.links():
        body = bodies[link.parent].add_body(name=link.name, pos=link.position, quat=matrix_quaternion(link.rotation))
        body.mass, body.ipos, body.explicitinertial = link.mass, link.center_of_mass, True
        body.inertia = np.diag(link.inertia)
        if link.joint.kind == "free":
            body.add_freejoint()
        for axis in {"free": (), "hinge": (0,), "spherical": (0, 2, 1)}[link.joint.kind]:
            hinge = body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=np.eye(3)[axis], limited=True)
            hinge.range = [np.atleast_1d(side)[axis] for side in (link.joint.lower, link.joint.upper)]
            hinge.damping = [damping, 0, 0]
        capsule = link.shapes[0]
        ends = [*capsule.start, *capsule.end]
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[capsule.radius, 0, 0], fromto=ends, mass=0, **surface)
        bodies[link] = body
