"""How far a joint is turned, against its range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.spatial import (
    logarithm,
    matrix_quaternion,
    quaternion_conjugate,
    quaternion_matrix,
    quaternion_multiply,
)
from .joint_frame import JointFrame

CLEARANCE = 1e-3
"""Ranges widened for the start pose leave this much room [rad], so that it does not begin as a violation."""

LOCKED = 1e-9
"""What a swing that has no range is taken to have [rad], so that there is something to widen."""

NEARLY = 0.8
"""Part of a swing limit beyond which the start pose leaves it no room."""


LOOSE = np.radians(0.25)
"""A hinge whose axis the animation leaves by more than this [rad] is followed as a ball joint."""

PLAY = np.radians(40.0)
"""How far such a ball joint may turn beside the hinge's axis [rad], where springs keep it: narrow ranges rattle."""


def hinge_angle(turn: np.ndarray) -> tuple[float, np.ndarray]:
    """The angle [rad] about x of a quaternion, and the rotation (3, 3) that is left when it is undone first."""
    angle = 2.0 * float(np.arctan2(turn[1], turn[0]))
    angle = (angle + np.pi) % (2.0 * np.pi) - np.pi
    hinge = np.array([np.cos(angle / 2), np.sin(angle / 2), 0.0, 0.0])
    return angle, quaternion_matrix(quaternion_multiply(quaternion_conjugate(hinge), turn))


def swing_twist(turn: np.ndarray) -> np.ndarray:
    """The swing about x, twist about y and swing about z (3,) [rad] of a quaternion: first twist, then swing."""
    return _angles(turn[None], "spherical")[0]


def widened(frame: JointFrame, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Limits with room for the start pose, and how far outside it was [rad]."""
    lower, upper = frame.lower.copy(), frame.upper.copy()
    outside = 0.0
    if frame.kind == "spherical":
        swings = [0, 2]
        lower[swings] = np.where(lower[swings] == 0, -LOCKED, lower[swings])
        upper[swings] = np.where(upper[swings] == 0, LOCKED, upper[swings])
        level = np.abs(angles[swings] / np.where(angles < 0, -lower, upper)[swings])
        ratio = float(np.hypot(*level))
        if ratio > 1:
            outside = float(np.hypot(angles[0], angles[2])) * (1 - 1 / ratio)
            # widen the axis that is most beyond; both where the other is nearly at its end as well
            most, least = level.max(), level.min()
            if least < NEARLY:
                stretch = np.where(level == most, most / np.sqrt(1 - least**2), 1.0)
            else:
                stretch = np.full(2, ratio)
            for axis, factor in zip(swings, stretch * (1 + CLEARANCE), strict=True):
                side = lower if angles[axis] < 0 else upper
                side[axis] *= factor
        angles, ranged = angles[1:2], slice(1, 2)
    else:
        ranged = slice(0, 1)
    below, over = lower[ranged] - angles, angles - upper[ranged]
    outside = max(outside, float(below.max()), float(over.max()))
    lower[ranged] = np.where(below > 0, angles - CLEARANCE, lower[ranged])
    upper[ranged] = np.where(over > 0, angles + CLEARANCE, upper[ranged])
    return lower, upper, outside


def roomy(frame: JointFrame, turns: np.ndarray) -> tuple[JointFrame, float]:
    """The joint with room for turns (F, 4), of which the first is the start's, and how much more that is [rad]; as it
    is for one alone. A hinge whose axis they leave becomes a ball joint.
    """
    if len(turns) == 1:
        return frame, 0.0
    if frame.kind == "hinge":
        beyond = matrix_quaternion(hinge_angle(turns[0])[1])
        straight = quaternion_multiply(turns, quaternion_conjugate(beyond))
        if np.abs(straight[:, 2:]).max() > 0.5 * LOOSE:
            lower, upper = frame.lower - LOOSE, frame.upper + LOOSE
            frame = replace(
                frame, kind="spherical", lower=np.append(lower, (-PLAY, -PLAY)), upper=np.append(upper, (PLAY, PLAY))
            )
        else:
            turns = straight
    angles = _angles(turns, frame.kind)
    ranged = slice(1, 2) if frame.kind == "spherical" else slice(0, 1)
    lower, upper = frame.lower.copy(), frame.upper.copy()
    least, most = angles[:, ranged].min(axis=0), angles[:, ranged].max(axis=0)
    lower[ranged] = np.where(least < lower[ranged], least - CLEARANCE, lower[ranged])
    upper[ranged] = np.where(most > upper[ranged], most + CLEARANCE, upper[ranged])
    if frame.kind == "spherical":
        _widen_swings(lower, upper, angles)
    more = float(max((frame.lower - lower).max(), (upper - frame.upper).max()))
    return replace(frame, lower=lower, upper=upper), more


def _widen_swings(lower: np.ndarray, upper: np.ndarray, angles: np.ndarray) -> None:
    """Widens the limits (3,) of swings in place until their ellipse holds those of angles (F, 3): first each by itself,
    then the narrower one where both are turned at a time."""
    swing = np.abs(angles[:, ::2])
    for together in (False, True):
        half = np.maximum(np.where(angles < 0, -lower, upper)[:, ::2], LOCKED)
        level = swing / half
        out = np.hypot(*level.T) > 1.0
        needed = swing / NEARLY
        if together:
            narrower = half <= half[:, ::-1]
            needed = np.where(narrower, swing / np.sqrt(np.maximum(1.0 - level[:, ::-1] ** 2, 1.0 - NEARLY**2)), 0.0)
        for column, axis in enumerate((0, 2)):
            for limit, sign in ((lower, -1.0), (upper, 1.0)):
                turned = out & (sign * angles[:, axis] > 0)
                furthest = needed[turned, column].max(initial=0.0) * (1.0 + CLEARANCE)
                limit[axis] = sign * max(sign * limit[axis], furthest)


def _angles(turns: np.ndarray, kind: str) -> np.ndarray:
    """Hinge angles (F, 1), or swings and twists (F, 3), of turns (F, 4)."""
    part = 2 if kind == "spherical" else 1
    angle = 2.0 * np.arctan2(turns[:, part], turns[:, 0])
    angle = (angle + np.pi) % (2.0 * np.pi) - np.pi
    if kind != "spherical":
        return angle[:, None]
    twist = np.zeros_like(turns)
    twist[:, 0], twist[:, 2] = np.cos(angle / 2), np.sin(angle / 2)
    swing = logarithm(quaternion_multiply(turns, quaternion_conjugate(twist)))
    return np.stack((swing[:, 0], angle, swing[:, 2]), axis=1)
