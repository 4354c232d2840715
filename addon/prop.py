"""Objects that bones are connected to or land on: physics does not move them, their animation does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import bpy
import numpy as np

from ..core.shape import Scenery
from .problem import ConversionError
from .rig import rigid

STILL = 1e-6
"""An object whose pose changes by less [m, or rad] stands still."""

RIGID = 1e-4
"""An object whose scale or shear changes by more, relative, is not rigid."""


@dataclass(frozen=True, eq=False)
class Prop:
    """An object (None for the world) and its rigid world poses (F, 4, 4) [m] in the simulated frames.

    `shape`: what it is for those that land on it, in the world at the start; None where nobody can.
    """

    thing: bpy.types.Object | None
    poses: np.ndarray
    shape: Scenery | None = None
    rigid: bool = True

    @property
    def moves(self) -> bool:
        return bool(np.ptp(self.poses, axis=0).max() > STILL)


def sample_props(connected: list, shapes: dict[bpy.types.Object, Scenery], start: int, end: int) -> Iterator[float]:
    """Samples the objects that bones are `connected` to, and those that are `shapes` in the world at the start, over
    the frames, yielding progress 0 … 1; returns their Props."""
    things = list(dict.fromkeys([*connected, *shapes]))
    if not things:
        return []
    scene = bpy.context.scene
    frames = range(start, end + 1) if any(map(may_move, things)) else range(start, start + 1)
    current, subframe = scene.frame_current, scene.frame_subframe
    worlds = np.empty((len(things), len(frames), 4, 4))
    try:
        for i, frame in enumerate(frames):
            scene.frame_set(frame)
            worlds[:, i] = [placed(thing) for thing in things]
            yield (i + 1) / len(frames)
    finally:
        scene.frame_set(current, subframe=subframe)
    for thing, own in zip(things, worlds):
        _check(thing, own, thing in connected)
    return [_prop(thing, own, shapes.get(thing)) for thing, own in zip(things, worlds)]


def placed(thing) -> np.ndarray:
    """The world matrix (4, 4) of an object as Blender evaluates it now."""
    return np.array(thing.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world, dtype=float)


def may_move(thing) -> bool:
    """Whether anything can move an object, or the bones that it has, from frame to frame."""
    while thing:
        data = thing.data
        if (
            thing.animation_data
            or thing.constraints
            or thing.parent_type != "OBJECT"
            or (thing.parent and thing.parent.type == "CURVE")  # a path may be bent
            or (data and data.animation_data)
            or (thing.pose and any(bone.constraints for bone in thing.pose.bones))
            or (thing.rigid_body and thing.rigid_body.type == "ACTIVE")
        ):
            return True
        thing = thing.parent
    return False


def _check(thing, worlds: np.ndarray, connected: bool) -> None:
    if not np.isfinite(worlds).all():
        raise ConversionError(f"object {thing.name!r}: its transform is not a finite number; reset it")
    axes = worlds[:, :3, :3]
    if connected and (np.linalg.norm(axes, axis=1).min() < 1e-9 or np.linalg.det(axes).min() < 0):
        raise ConversionError(
            f"object {thing.name!r}: its scale is zero or negative, so nothing can be connected to it; apply the "
            "scale (Ctrl+A, Scale)"
        )


def _prop(thing, worlds: np.ndarray, shape: Scenery | None) -> Prop:
    # a mirrored object turns as its mirror image does
    upright = worlds * [np.sign(np.linalg.det(worlds[0, :3, :3])) or 1.0, 1.0, 1.0, 1.0]
    flat = np.linalg.norm(upright[:, :3, :3], axis=1).min(axis=1) < 1e-9
    for frame in flat.nonzero()[0]:  # scaled to nothing for a while, it keeps its turn
        upright[frame, :3, :3] = upright[frame - 1, :3, :3]
    poses = rigid(upright)
    stretch = np.swapaxes(poses[:, :3, :3], -1, -2) @ upright[:, :3, :3]
    same = not flat.any() and bool(np.abs(stretch - stretch[0]).max() <= RIGID * np.abs(stretch[0]).max())
    return Prop(thing, poses, shape, same)
