"""Which joints the last adaptive simulations moved: as curves, in numbers, and kept while Blender runs, for drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Trajectory
from . import compat, readings
from .cast import Actor
from .memory import TakeMemory

NAMES = ("active_joints", "left_out")
"""The settings of the armature that curves are for."""

WAIST, WIDTH = 0.1, 0.1
"""Where a bone is thickest and how thick it is there, as parts of its length: as Blender draws it."""


@dataclass(frozen=True, eq=False)
class Activity:
    """Which joints of one armature's take were `active` (F, k): of the bones called `names` (k,), in the scene's frames
    from `first` on; and for how much (F,) the others were `left_out` of all that was simulated."""

    names: list[str]
    active: np.ndarray
    left_out: np.ndarray
    first: int

    def at(self, frame: int) -> np.ndarray:
        """Which bones (k,) moved at a scene frame; none (0,) where there was no simulation."""
        row = frame - self.first
        return self.active[row] if 0 <= row < len(self.active) else np.zeros(0, dtype=bool)


def of(actor: Actor, trajectory: Trajectory, movable: np.ndarray, rows: slice, first: int) -> Activity:
    """An actor's activity in some rows of the trajectory, which are frames from `first` on; `movable` (n,): which links
    have joints."""
    own, character = movable[actor.links], actor.character
    names = [character.rig.names[bone] for bone, moves in zip(character.bones, own) if moves]
    active = _active(trajectory)[rows, actor.links][:, own]
    return Activity(names, active, trajectory.left_out[rows], first)


def measured(trajectory: Trajectory, movable: np.ndarray) -> dict[str, float]:
    """What the report says, of all actors together."""
    active = _active(trajectory)[:, movable]
    return {"active_share": float(active.mean()) if active.size else 1.0, "error_max": float(trajectory.left_out.max())}


def _active(trajectory: Trajectory) -> np.ndarray:
    """Which links' joints were active (F, n); in the first frame those that are so until the second, as none has been
    chosen yet."""
    return np.concatenate((trajectory.active[1:2], trajectory.active[1:])) if len(trajectory) > 1 else trajectory.active


def write(armature, action, activity: Activity | None) -> None:
    """Writes how many of the joints were active, in percent, and what was left out as curves of the action that the
    armature plays, in place of those that its source may have."""
    columns, first = (), 0
    if activity:
        share = 100.0 * activity.active.mean(axis=1) if activity.names else np.zeros(len(activity.active))
        columns, first = (share, activity.left_out), activity.first
    readings.replace(armature, action, compat.slot_identifier(armature), "Adaptive", NAMES, columns, first)


_kept: TakeMemory[Activity] = TakeMemory()


def keep(armature, activity: Activity | None) -> None:
    _kept.keep(armature, activity)


def kept(armature) -> Activity | None:
    return _kept.kept(armature)


def spindles(heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """Corners of triangles (24 k, 3) that show bones from their heads (k, 3) to their tails (k, 3)."""
    along = tails - heads
    length = np.linalg.norm(along, axis=1, keepdims=True)
    axis = along / np.maximum(length, 1e-30)
    side = np.cross(axis, np.eye(3, dtype=heads.dtype)[np.argmin(np.abs(axis), axis=1)])
    side *= WIDTH * length / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-30)
    other, middle = np.cross(axis, side), heads + WAIST * along
    ring = [middle + side, middle + other, middle - side, middle - other]
    faces = [corner for a, b in zip(ring, ring[1:] + ring[:1]) for end in (heads, tails) for corner in (end, a, b)]
    return np.stack(faces, axis=1).reshape(-1, 3)
