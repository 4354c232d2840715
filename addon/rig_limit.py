"""Joint limits as riggers write them: the bones' own, Limit Rotation constraints and limits for inverse kinematics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from mathutils import Euler

from .joint_frame import JointFrame
from .rig import Rig

WIDEST = np.radians(170.0)
"""How far a joint may swing about an axis without a limit [rad]."""

STIFF = np.radians(0.5)
"""Ranges narrower than this [rad] let a joint not turn about their axis."""


def limited(armature, rig: Rig, frames: dict[int, JointFrame], of_rig: bool) -> dict[int, JointFrame]:
    """The frames with the limits that the bones themselves have, where they have any, about the bones' own axes: those
    of their settings, or else those `of_rig`, where these are wanted."""
    found = dict(frames)
    for bone, frame in frames.items():
        pose_bone = armature.pose.bones[rig.names[bone]]
        limits = own_limits(pose_bone) or (read_limits(pose_bone) if of_rig else None)
        if limits is not None and rig.parents[bone] >= 0:
            found[bone] = _frame(frame, rig.rest[bone, :3, :3], *limits)
    return found


def own_limits(bone) -> tuple[np.ndarray, np.ndarray] | None:
    """The limits (3,) [rad] in a pose bone's settings, as `read_limits` has them; None where it has none."""
    own = bone.armature_dynamics
    if not own.use_limits:
        return None
    lower = np.array(own.limit_lower)
    return lower, np.maximum(lower, own.limit_upper)


def read_limits(bone) -> tuple[np.ndarray, np.ndarray] | None:
    """The lower and upper limits (3,) [rad] of a pose bone's turn about its own x, y and z axes, all that it has taken
    together; None without any. Constraints count that limit it in its own space."""
    lower, upper = np.full(3, -np.inf), np.full(3, np.inf)
    for axis, name in enumerate("xyz"):
        if getattr(bone, f"lock_ik_{name}"):
            lower[axis] = upper[axis] = 0.0
        elif getattr(bone, f"use_ik_limit_{name}"):
            lower[axis], upper[axis] = getattr(bone, f"ik_min_{name}"), getattr(bone, f"ik_max_{name}")
        for own in bone.constraints:
            if own.type == "LIMIT_ROTATION" and own.owner_space == "LOCAL" and getattr(own, f"use_limit_{name}"):
                lower[axis] = max(lower[axis], getattr(own, f"min_{name}"))
                upper[axis] = min(upper[axis], getattr(own, f"max_{name}"))
    upper = np.maximum(lower, upper)
    return (lower, upper) if np.isfinite([lower, upper]).any() else None


def looks_of(armature) -> tuple:
    """All that the limits of an armature's bones depend on: cheap to read, for every drawing."""
    bones, columns = armature.pose.bones, []
    for name, kind in (("lock_ik", bool), ("use_ik_limit", bool), ("ik_min", np.float32), ("ik_max", np.float32)):
        for axis in "xyz":
            columns.append(np.empty(len(bones), dtype=kind))
            bones.foreach_get(f"{name}_{axis}", columns[-1])
    own = (own for bone in bones for own in bone.constraints if own.type == "LIMIT_ROTATION")
    written = ("owner_space", *(f"{name}_{axis}" for axis in "xyz" for name in ("use_limit", "min", "max")))
    return b"".join(column.tobytes() for column in columns), tuple(
        getattr(limit, name) for limit in own for name in written
    )


def _frame(frame: JointFrame, axes: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> JointFrame:
    """A joint with these limits about a bone's `axes` (3, 3) at rest: a hinge where it turns about one axis alone."""
    free = np.flatnonzero(upper - lower > STIFF)
    stiff = [axis for axis in range(3) if axis not in free]
    middle = np.zeros(3)
    middle[stiff] = (lower[stiff] + upper[stiff]) / 2
    if len(free) == 1:
        axis = int(free[0])
        order = [axis, (axis + 1) % 3, (axis + 2) % 3]
        limits = np.clip([lower[axis], upper[axis]], -WIDEST, WIDEST)
        zero = axes @ np.array(Euler(middle).to_matrix())
        return JointFrame("hinge", axes[:, order], zero[:, order], limits[:1], limits[1:])
    low, high = np.clip(lower, -WIDEST, WIDEST), np.clip(upper, -WIDEST, WIDEST)
    # an ellipse of swings lies around its middle: a range without zero is put there
    apart = (low > 0) | (high < 0)
    middle = np.where(apart, (low + high) / 2, middle)
    zero = axes @ np.array(Euler(middle).to_matrix())
    return replace(frame, kind="spherical", rest=axes, zero=zero, lower=low - middle, upper=high - middle)
