"""Masses of bodies: a human's from anthropometry, any other from the volume of its collider."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Capsule
from .anatomy import Anatomy
from .preset import preset
from .problem import ConversionError
from .rig import Rig

THINNEST = 1e-4
"""Smallest principal moment of inertia as a part of mass · length²: thinner bodies spin without bound in a step."""


@dataclass(frozen=True)
class Body:
    """`mass` [kg], `center` (3,) [m] and `inertia` (3, 3) [kg m²] about the center, in world axes."""

    mass: float
    center: np.ndarray
    inertia: np.ndarray

    def scaled(self, factor: float) -> Body:
        return Body(self.mass * factor, self.center, self.inertia * factor)


def solid_capsule(capsule: Capsule, density: float) -> Body:
    """A capsule filled evenly; density in kg/m³."""
    axis = capsule.end - capsule.start
    length, r = float(np.linalg.norm(axis)), capsule.radius
    cylinder, ball = density * np.pi * r**2 * length, density * 4.0 / 3.0 * np.pi * r**3
    along = cylinder * r**2 / 2 + ball * 0.4 * r**2
    across = cylinder * (length**2 / 12 + r**2 / 4) + ball * (0.4 * r**2 + length**2 / 4 + 0.375 * length * r)
    y = axis / length if length > 0 else np.array([0.0, 1.0, 0.0])
    inertia = across * np.eye(3) + (along - across) * np.outer(y, y)
    return Body(cylinder + ball, (capsule.start + capsule.end) / 2, inertia)


def human_bodies(
    rig: Rig, anatomy: Anatomy, ends: np.ndarray, rotations: dict[int, np.ndarray], capsules: dict[int, Capsule]
) -> dict[int, Body]:
    """A body for each bone of the anatomy, together of mass 1. `rotations` give the segments' axes, `capsules` the
    centers of those whose center of mass is not tabled."""
    bodies = {}
    for bone, share in _shares(rig, anatomy, ends).items():
        segment = preset("human")["segments"][anatomy.segments[bone]]
        measured = float(np.linalg.norm(ends[bone] - rig.heads[bone]))
        length = segment["length"] * anatomy.stature if "length" in segment else measured
        sagittal, transverse, longitudinal = np.square(np.array(segment["gyration"]) * length)
        if "com" in segment or bone not in capsules:
            center = rig.heads[bone] + segment.get("com", 0.5) * (ends[bone] - rig.heads[bone])
        else:
            center = (capsules[bone].start + capsules[bone].end) / 2
        axes = rotations.get(bone, anatomy.axes @ _STANDING_UP)
        inertia = share * axes @ np.diag([transverse, longitudinal, sagittal]) @ axes.T
        bodies[bone] = Body(share, center, inertia)
    total = sum(body.mass for body in bodies.values())
    return {bone: body.scaled(1.0 / total) for bone, body in bodies.items()}


_STANDING_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
"""Axes (x left, y up, z front) of a segment whose link does not exist, from the character's left, front, up."""


def _shares(rig: Rig, anatomy: Anatomy, ends: np.ndarray) -> dict[int, float]:
    """Parts of the body's mass; what the rig has no bone for goes to its neighbour, the trunk is shared by length."""
    segments = preset("human")["segments"]
    masses = {name: segment["mass"] for name, segment in segments.items()}
    for name, segment in segments.items():
        if not anatomy.bones(name):
            masses[segment["without"]] += masses.pop(name)
    shares = {}
    for name, mass in masses.items():
        bones = anatomy.bones(name)
        lengths = np.linalg.norm(ends[bones] - rig.heads[bones], axis=1)
        weights = lengths / lengths.sum() if segments[name].get("spread") else np.ones(len(bones))
        shares.update(zip(bones, mass * weights, strict=True))
    return shares


def combined(bodies: list[Body]) -> Body:
    """Several bodies welded into one."""
    mass = sum(body.mass for body in bodies)
    center = sum(body.mass * body.center for body in bodies) / mass
    inertia = np.zeros((3, 3))
    for body in bodies:
        offset = body.center - center
        inertia += body.inertia + body.mass * ((offset @ offset) * np.eye(3) - np.outer(offset, offset))
    return Body(mass, center, inertia)


def shared(armature, rig: Rig, bodies: dict[int, Body]) -> dict[int, Body]:
    """The bodies with those parts of their whole mass that the bones' settings say; the others share the rest as
    before. Raises ConversionError where that is nothing."""
    said = {bone: armature.pose.bones[rig.names[bone]].armature_dynamics.mass_share for bone in bodies}
    said = {bone: share for bone, share in said.items() if share > 0}
    others, parts = [bone for bone in bodies if bone not in said], sum(said.values())
    if not said:
        return bodies
    if others and parts >= 1:
        raise ConversionError(
            f"the bones' shares of the mass come to {parts:.3g}, which leaves nothing for {rig.names[others[0]]!r}; "
            "make them less than 1 together"
        )
    total, rest = (sum(bodies[bone].mass for bone in own) for own in (bodies, others))
    whole = 1.0 if others else parts
    factors = {bone: share / whole * total / bodies[bone].mass for bone, share in said.items()}
    return {bone: body.scaled(factors.get(bone) or (1 - parts) * total / rest) for bone, body in bodies.items()}


def thickened(body: Body, length: float) -> Body:
    """The body with no principal moment below the floor for its `length` [m]."""
    moments, axes = np.linalg.eigh(body.inertia)
    floor = THINNEST * body.mass * length**2
    moments = np.maximum(moments, floor)
    moments[2] = min(moments[2], moments[0] + moments[1])  # no rigid body has more
    return Body(body.mass, body.center, axes @ np.diag(moments) @ axes.T)
