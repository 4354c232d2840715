"""What a limp body's joints do by themselves: damping, a little inertia of their own, and muscle tone."""

from __future__ import annotations

import numpy as np

from ..core import Joint, Link, Linkage
from ..core.joint import FREEDOMS

JOINT_INERTIA = 0.01
"""A joint's own inertia as a part of what it carries: keeps light links at the end of heavy chains calm."""

BESIDE = 2.0 * np.pi * 3.0
"""A ball joint that stands for a hinge is drawn back to the hinge's axis as quickly as this [1/s]."""

LEAST_LEVER = 0.1
"""Smallest lever of a limb's weight, as a part of its radius of gyration."""


def add_passive(linkage: Linkage, damping: float, tone: float, gravity: float) -> None:
    """Sets damping, armature inertia and drives of every joint from what it carries.

    `damping` is a damping ratio of the limb as a pendulum, `tone` a stiffness in units of the torque that holds the
    limb level against `gravity` [m/s²]; without gravity the earth's is meant.
    """
    gravity = gravity or 9.81
    links = list(linkage.links())
    # of all that a joint carries, about the joint with all joints at zero: mass, first moment (3,), mean inertia
    carried = {link: np.array([link.mass, *link.mass * link.center_of_mass, _mean_inertia(link)]) for link in links}
    for link in reversed(links):
        mass, moment, inertia = carried[link][0], carried[link][1:4], carried[link][4]
        if link.parent in carried:
            turned, position = link.rotation @ moment, link.position
            carried[link.parent] += [
                mass,
                *turned + mass * position,
                inertia + (4 * position @ turned + 2 * mass * position @ position) / 3,
            ]
        freedoms = FREEDOMS[link.joint.kind]
        if link.joint.kind == "free" or freedoms == 0 or link.keyed:
            continue
        # a joint under the centre of what it carries is not weightless: the limb turns over
        weight = gravity * max(np.linalg.norm(moment), LEAST_LEVER * np.sqrt(inertia * mass))
        ratio = 2.0 * np.sqrt(weight * inertia)
        link.joint.damping = np.full(freedoms, damping * ratio)
        link.joint.armature = np.full(freedoms, JOINT_INERTIA * inertia)
        link.joint.stiffness = np.full(freedoms, tone * weight)
        link.joint.drive_damping = np.full(freedoms, np.sqrt(tone) * ratio)


def _mean_inertia(link: Link) -> float:
    """[kg m²] about the joint, mean of the directions."""
    return link.mass * float(link.center_of_mass @ link.center_of_mass) * 2 / 3 + float(np.trace(link.inertia)) / 3


def keep_axis(joint: Joint) -> None:
    """Adds springs and dampers to a ball joint that draw it back to turning about x only."""
    inertia = float(np.mean(joint.armature)) / JOINT_INERTIA
    joint.stiffness = joint.stiffness + inertia * BESIDE**2 * np.array([0.0, 1.0, 1.0])
    joint.drive_damping = joint.drive_damping + 2.0 * inertia * BESIDE * np.array([0.0, 1.0, 1.0])
