"""Bones that are each other's mirror image across the armature's middle, and the roll between them."""

from __future__ import annotations

from collections.abc import Iterable

import bpy
import numpy as np
from mathutils import Matrix, Vector

from . import nla
from .bake import CHANNELS
from .fcurve import bone_path
from .problem import ConversionError
from .switch import source_curves

MIRROR = np.diag([-1.0, 1.0, 1.0])

ALIKE = np.radians(2.0)
"""Bones whose directions differ by more [rad] from a mirror image are not meant to be one."""

ROLLED = np.radians(1.0)
"""A roll that differs by less [rad] is rounding."""


def uneven_rolls(armature, names: Iterable[str]) -> dict[tuple[str, str], float]:
    """Pairs of bones (left, right) among these that mirror each other but for their roll, and by how much it differs
    [rad]."""
    names = set(names)
    pairs = {tuple(sorted((name, bpy.utils.flip_name(name)))) for name in names if bpy.utils.flip_name(name) in names}
    found = {}
    for pair in sorted(pair for pair in pairs if pair[0] != pair[1]):
        left, right = sorted(pair, key=lambda name: -armature.data.bones[name].head_local.x)
        mirrored, own = _mirrored(armature, left), _axes(armature, right)
        if mirrored[:, 1] @ own[:, 1] < np.cos(ALIKE):
            continue
        roll = float(np.arctan2(np.cross(mirrored[:, 2], own[:, 2]) @ own[:, 1], mirrored[:, 2] @ own[:, 2]))
        if abs(roll) > ROLLED:
            found[left, right] = roll
    return found


def _axes(armature, name: str) -> np.ndarray:
    return np.array(armature.data.bones[name].matrix_local)[:3, :3]


def _mirrored(armature, name: str) -> np.ndarray:
    """The axes (3, 3) as columns of a bone's mirror image, as Blender's Symmetrize makes it."""
    return MIRROR @ _axes(armature, name) @ MIRROR


def mirror_rolls(armature, names: Iterable[str]) -> None:
    """Gives the right one of each pair among these bones the roll of the left one; the pose looks as before. Raises
    ConversionError for bones with keys: they would turn with the roll."""
    pairs = uneven_rolls(armature, names)
    keyed = {curve.data_path for curve in (*source_curves(armature), *nla.curves(armature))}
    for _, right in pairs:
        if keyed & {bone_path(right, channel) for channel in CHANNELS}:
            raise ConversionError(f"bone {right!r} has keys, which would turn with its roll; mirror it by hand")
    bases = {right: armature.pose.bones[right].matrix_basis.copy() for _, right in pairs}
    aims = {right: Vector(_mirrored(armature, left)[:, 2]) for left, right in pairs}
    view_layer, mode = bpy.context.view_layer, armature.mode
    view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    for right, aim in aims.items():
        armature.data.edit_bones[right].align_roll(aim)
    bpy.ops.object.mode_set(mode=mode)
    for (_, right), roll in pairs.items():
        back = Matrix.Rotation(roll, 4, "Y")
        armature.pose.bones[right].matrix_basis = back @ bases[right] @ back.inverted()
