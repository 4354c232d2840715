"""An armature's scale, its own and its parents', applied to its bones: all that can be seen stays where it is."""

from __future__ import annotations

import re

import bpy
import numpy as np
from mathutils import Matrix

from .bake import CHANNELS
from .fcurve import bone_path
from .problem import ConversionError, listed
from .rig import check_scale, rigid
from .switch import animated_paths

MOVED = 1e-4
"""What differs by less from its rest position, relative to the size of the armature, is not posed."""

HELD = re.compile(r"(delta_)?(location|rotation_\w+)$")
"""Data paths of where an object is, and how it is turned."""


def apply_scale(armature) -> None:
    """Makes an armature that check_scale refuses one that it takes: what remains when zeros have become ones goes into
    the bones' rest positions. Raises ConversionError, with nothing changed, where a scale is animated, and where what
    is posed or animated in an uneven or mirrored scale would be seen elsewhere without it."""
    line = [armature]
    while line[-1].parent:
        line.append(line[-1].parent)
    for thing in line:
        _check_still(thing)
    scales = [values for thing in line for values in (thing.scale, thing.delta_scale)]
    zeros = [(values, axis) for values in scales for axis, value in enumerate(values) if not value]
    _fill(zeros, 1.0)
    world = armature.matrix_world.copy()
    if _is_plain(armature, world):
        return
    own = Matrix.Diagonal((*(one * other for one, other in zip(armature.scale, armature.delta_scale)), 1.0))
    above = world @ own.inverted()
    # without the armature's own scale the channels of the object mean the same as before
    is_own = _is_plain(armature, above)
    place = above if is_own else _straight(world)
    try:
        _check_rest(armature)
        if not is_own:
            _check_held(line)
    except ConversionError:
        _fill(zeros, 0.0)
        raise
    children = {child: child.matrix_world.copy() for child in armature.children}
    if armature.data.users > 1:
        armature.data = armature.data.copy()
    armature.data.transform(place.inverted() @ world)
    armature.data.update_tag()
    armature.scale = armature.delta_scale = (1.0, 1.0, 1.0)
    bpy.context.view_layer.update()
    if not is_own:
        _put(armature, place)
        bpy.context.view_layer.update()
    for child, there in children.items():
        _put(child, there)
    bpy.context.view_layer.update()


def _fill(places: list, value: float) -> None:
    for values, axis in places:
        values[axis] = value
    bpy.context.view_layer.update()


def _is_plain(armature, world: Matrix) -> bool:
    try:
        check_scale(armature.name, np.array(world))
    except ConversionError:
        return False
    return True


def _straight(world: Matrix) -> Matrix:
    """A place without scale, shear and mirroring."""
    turned = rigid(np.array(world, dtype=float))
    if np.linalg.det(turned[:3, :3]) < 0:
        turned[:3, 0] *= -1.0
    return Matrix(turned)


def _put(thing, place: Matrix) -> None:
    """Places an object that has a parent in the world: by the parent's inverse, which may shear and keeps the
    channels."""
    basis = thing.matrix_basis
    above = thing.matrix_world @ (thing.matrix_parent_inverse @ basis).inverted_safe()
    thing.matrix_parent_inverse = above.inverted_safe() @ place @ basis.inverted_safe()


def _check_still(thing) -> None:
    if {"scale", "delta_scale"} & animated_paths(thing):
        raise ConversionError(f"object {thing.name!r}: its scale is animated; remove the animation of its scale first")


def _check_rest(armature) -> None:
    """Bones turn in their armature's scale: without it they would be seen elsewhere."""
    bones = armature.pose.bones
    rest = np.array([bone.bone.matrix_local for bone in bones], dtype=float)
    moved = dict(zip(bones.keys(), np.array([bone.matrix for bone in bones]) @ np.linalg.inv(rest)))
    size = max(1.0, np.abs(rest).max())
    animated = animated_paths(armature)
    found = [
        bone.name
        for bone in bones
        if np.abs(moved[bone.name] - (moved[bone.parent.name] if bone.parent else np.eye(4))).max() > MOVED * size
        or animated & {bone_path(bone.name, channel) for channel in CHANNELS}
    ]
    if found:
        raise ConversionError(
            f"armature {armature.name!r}: bones that are posed or animated would not stay in place, {listed(found)}; "
            "clear their pose and remove their animation first, or set a scale that is the same on all axes"
        )


def _check_held(line: list) -> None:
    """What moves below an object with such a scale is skewed by it from frame to frame."""
    for thing in line[:-1] or line:
        if any(not each.mute for each in thing.constraints) or any(map(HELD.match, animated_paths(thing))):
            raise ConversionError(
                f"object {thing.name!r} is animated or has constraints, and the scale that is to be applied is not its "
                "own; remove them first, or apply the scale where it comes from"
            )
