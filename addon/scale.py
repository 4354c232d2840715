"""An armature's scale, its own and its parents', applied to its bones: all that can be seen stays where it is."""

from __future__ import annotations

import bpy
import numpy as np
from mathutils import Matrix

from . import compat, nla
from .problem import ConversionError
from .rig import check_scale, rigid


def apply_scale(armature) -> None:
    """Makes an armature that check_scale refuses one that it takes. Raises ConversionError where a scale is animated.

    Zeros become ones. What remains goes into the bones' rest positions; keys of bones are left as they are.
    """
    line = [armature]
    while line[-1].parent:
        line.append(line[-1].parent)
    for thing in line:
        _check_still(thing)
        for values in (thing.scale, thing.delta_scale):
            values[:] = [value or 1.0 for value in values]
    bpy.context.view_layer.update()
    world = armature.matrix_world.copy()
    try:
        return check_scale(armature.name, np.array(world))
    except ConversionError:
        pass
    children = {child: child.matrix_world.copy() for child in armature.children}
    turned = rigid(np.array(world, dtype=float))
    if np.linalg.det(turned[:3, :3]) < 0:
        turned[:3, int(np.argmin(armature.scale))] *= -1.0
    place = Matrix(turned)
    if armature.data.users > 1:
        armature.data = armature.data.copy()
    armature.data.transform(place.inverted() @ world)
    armature.data.update_tag()
    armature.scale = armature.delta_scale = (1.0, 1.0, 1.0)
    bpy.context.view_layer.update()
    _put(armature, place)
    bpy.context.view_layer.update()
    for child, there in children.items():
        _put(child, there)
    bpy.context.view_layer.update()
    return None


def _put(thing, place: Matrix) -> None:
    """Places an object in the world; one with a parent by its inverse, which may shear and keeps the channels."""
    if thing.parent is None:
        thing.matrix_world = place
        return
    basis = thing.matrix_basis
    above = thing.matrix_world @ (thing.matrix_parent_inverse @ basis).inverted_safe()
    thing.matrix_parent_inverse = above.inverted_safe() @ place @ basis.inverted_safe()


def _check_still(thing) -> None:
    animation = thing.animation_data
    curves = [*compat.curves(animation.action, compat.slot_identifier(thing)), *animation.drivers] if animation else []
    curves += nla.curves(thing)
    if any(curve.data_path in ("scale", "delta_scale") for curve in curves):
        raise ConversionError(f"object {thing.name!r}: its scale is animated; remove the animation of its scale first")
