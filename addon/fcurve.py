"""Curves of an action, written in bulk."""

from __future__ import annotations

from functools import cache

import bpy
import numpy as np
from mathutils import Vector

from ..core.curve import fitted


@cache
def _options() -> dict[str, dict[str, int]]:
    """Blender's numbers of the options of a key."""
    properties = bpy.types.Keyframe.bl_rna.properties
    return {
        name: {item.identifier: item.value for item in properties[name].enum_items}
        for name in ("interpolation", "handle_left_type")
    }


def bone_path(name: str, channel: str) -> str:
    """The data path, from the armature object, of a pose bone's channel or setting."""
    return f'pose.bones["{bpy.utils.escape_identifier(name)}"].{channel}'


def plays(curve) -> bool:
    """Whether neither a curve nor its group is muted."""
    return not (curve.mute or (curve.group and curve.group.mute))


KEY = ("interpolation", "handle_left_type", "handle_right_type", "co", "handle_left", "handle_right")
"""What a key is made of: types first, which move handles."""


def points(curve) -> list[tuple]:
    """The keys of a curve, to be compared or copied."""
    return [
        tuple(tuple(value) if isinstance(value, Vector) else value for value in (getattr(key, name) for name in KEY))
        for key in curve.keyframe_points
    ]


def same(curve, other) -> bool:
    """Whether two curves have the same keys."""
    keys, others = curve.keyframe_points, other.keyframe_points
    if len(keys) != len(others):
        return False
    for name in ("co", "handle_left", "handle_right", "interpolation"):
        kind, width = (np.int32, 1) if name == "interpolation" else (np.float32, 2)
        values = [np.empty(width * len(keys), dtype=kind) for _ in range(2)]
        keys.foreach_get(name, values[0])
        others.foreach_get(name, values[1])
        if not np.array_equal(*values):
            return False
    return True


def copied(holder, curve):
    """A copy of a curve, keys and all, in what holds the curves of another action."""
    copy, keys = holder.fcurves.new(curve.data_path, index=curve.array_index), points(curve)
    copy.extrapolation = curve.extrapolation
    if curve.group:
        copy.group = holder.groups.get(curve.group.name) or holder.groups.new(curve.group.name)
    copy.keyframe_points.add(len(keys))
    for point, values in zip(copy.keyframe_points, keys):
        for name, value in zip(KEY, values):
            setattr(point, name, value)
    copy.update()
    return copy


def write_lines(holder, group, path: str, values: np.ndarray, first: int) -> None:
    """One curve for each column of `values` (F, k), with a key on every frame and straight lines between."""
    frames = np.arange(first, first + len(values))
    _write(holder, group, path, {"co": (frames, values)}, "LINEAR", "AUTO_CLAMPED")


def write_fitted(holder, group, path: str, values: np.ndarray, first: int, kept: np.ndarray) -> None:
    """One curve for each column of `values` (F, k), with keys on the kept frames (F,) and handles that make it follow
    the others."""
    handles = fitted(values[:, None].astype(float), kept[:, None])[1][kept, 0]
    frames = np.flatnonzero(kept)
    third = np.diff(frames, prepend=frames[0] - 3, append=frames[-1] + 3) / 3
    frames = frames + first
    points = {
        "co": (frames, values[kept]),
        "handle_left": (frames - third[:-1], handles[:, 0]),
        "handle_right": (frames + third[1:], handles[:, 1]),
    }
    _write(holder, group, path, points, "BEZIER", "FREE")


def write_steps(holder, path: str, first: int, values: list[float]) -> None:
    """A curve with a key on every frame that keeps each value until the next."""
    frames = np.arange(first, first + len(values))
    _write(holder, None, path, {"co": (frames, np.array(values, dtype=float)[:, None])}, "CONSTANT", "AUTO_CLAMPED")


def _write(holder, group, path: str, points: dict[str, tuple], interpolation: str, handles: str) -> None:
    """Curves of what keys are made of: frames (F,) and values (F, k)."""
    numbers = _options()
    count, width = points["co"][1].shape
    columns = {name: np.empty((width, count, 2), dtype=np.float32) for name in points}
    for name, (frames, values) in points.items():
        columns[name][..., 0], columns[name][..., 1] = frames, values.T
    kinds = np.full(count, numbers["interpolation"][interpolation], dtype=np.int32)
    sides = np.full(count, numbers["handle_left_type"][handles], dtype=np.int32)
    for index in range(width):
        curve = holder.fcurves.new(path, index=index)
        if group:
            curve.group = group
        keys = curve.keyframe_points
        keys.add(count)
        for name, own in columns.items():
            keys.foreach_set(name, own[index].reshape(-1))
        keys.foreach_set("interpolation", kinds)
        # slow, and new keys have the same
        if keys[0].handle_left_type != handles or keys[0].handle_right_type != handles:
            keys.foreach_set("handle_left_type", sides)
            keys.foreach_set("handle_right_type", sides)
        curve.update()
