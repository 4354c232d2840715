"""Every bone of a rig in the world, as Blender evaluates it, frame by frame; and how far two such motions differ."""

from __future__ import annotations

import bpy
import numpy as np


def evaluated(armature, frames) -> tuple[np.ndarray, np.ndarray]:
    """Heads and tails of all bones (F, n, 2, 3) [m], and their axes (F, n, 3, 3) of unit length."""
    ends, axes = [], []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        seen = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
        world = np.array(seen.matrix_world)
        bones = [seen.pose.bones[bone.name] for bone in armature.data.bones]
        ends.append([[bone.head, bone.tail] for bone in bones] @ world[:3, :3].T + world[:3, 3])
        axes.append(world[:3, :3] @ np.array([bone.matrix for bone in bones])[:, :3, :3])
    axes = np.array(axes)
    return np.array(ends), axes / np.linalg.norm(axes, axis=-2, keepdims=True)


def differences(before: tuple, after: tuple) -> tuple[float, float]:
    """The most that an end of a bone moved [mm], and that a bone turned [degrees]."""
    chord = np.linalg.norm(before[1] - after[1], axis=(-1, -2)).max()
    moved = np.linalg.norm(before[0] - after[0], axis=-1).max()
    return 1e3 * float(moved), float(np.degrees(2 * np.arcsin(min(chord / np.sqrt(8), 1.0))))
