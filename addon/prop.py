"""Objects that bones are connected to: physics does not move them, their animation does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import bpy
import numpy as np

from .rig import ConversionError, rigid

STILL = 1e-6
"""An object whose pose changes by less [m, or rad] stands still."""


@dataclass(frozen=True, eq=False)
class Prop:
    """An object (None for the world) and its rigid world poses (F, 4, 4) [m] in the simulated frames."""

    thing: bpy.types.Object | None
    poses: np.ndarray

    @property
    def moves(self) -> bool:
        return bool(np.ptp(self.poses, axis=0).max() > STILL)


def sample_props(things: list, start: int, end: int) -> Iterator[float]:
    """Samples objects over the frames, yielding progress 0 … 1; returns their Props."""
    if not things:
        return []
    scene, frames = bpy.context.scene, range(start, end + 1)
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
        axes = own[:, :3, :3]
        if not np.isfinite(own).all() or np.linalg.norm(axes, axis=1).min() < 1e-9 or np.linalg.det(axes).min() < 0:
            raise ConversionError(
                f"object {thing.name!r}: its scale is zero or negative, so nothing can be connected to it; apply the "
                "scale (Ctrl+A, Scale)"
            )
    return [Prop(thing, rigid(own)) for thing, own in zip(things, worlds)]


def placed(thing) -> np.ndarray:
    """The world matrix (4, 4) of an object as Blender evaluates it now."""
    return np.array(thing.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world, dtype=float)
