"""What the Fix buttons of Pre-flight do; undo takes each back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import bpy
import numpy as np

from . import casting, connection_list, lock, nla, objection, operators, preflight, scale, symmetry
from .collider import AUTO
from .fcurve import bone_path
from .problem import ConversionError
from .role import IGNORED
from .switch import source_curves


@dataclass(frozen=True)
class Fix:
    """A button's `label`, and what it does: `apply(armature, bones, things)` with the names of what a problem is about.
    It raises ConversionError where that is not possible."""

    label: str
    apply: Callable[[bpy.types.Object, list[str], list[str]], None]


def _mute(setting: str):
    def apply(armature, bones, things) -> None:
        setattr(armature.armature_dynamics, setting, True)

    return apply


def _of_bones(name: str, value):
    """Gives each bone's setting a value."""

    def apply(armature, bones, things) -> None:
        for bone in bones:
            setattr(armature.pose.bones[bone].armature_dynamics, name, value)

    return apply


def _unlock(armature, bones, things) -> None:
    for bone in bones:
        lock.unlock(armature.pose.bones[bone])


def _clear_scale(armature, bones, things) -> None:
    keyed = {curve.data_path for curve in (*source_curves(armature), *nla.curves(armature))}
    for bone in bones:
        if bone_path(bone, "scale") in keyed:
            raise ConversionError(f"bone {bone!r}: its scale has keys; remove them")
        armature.pose.bones[bone].scale = (1.0, 1.0, 1.0)


def _connect(armature, bones, things) -> None:
    loose, main = objection.loose_parts(preflight.start(armature))
    for bone in loose:
        connection_list.add(armature, bone, armature, main).at = "HEAD"


def _set_range(armature, bones, things) -> None:
    settings = armature.armature_dynamics
    settings.frame_start, settings.frame_end = casting.default_range(armature)


def _set_ground(armature, bones, things) -> None:
    lowest = np.float32(preflight.start(armature).character.lowest)
    # as a single it may lie above the character's lowest point
    armature.armature_dynamics.ground_height = float(np.nextafter(lowest, np.float32(-np.inf)))


def _use_ground(armature, bones, things) -> None:
    armature.armature_dynamics.use_ground = True


def _replace(armature, bones, things) -> None:
    armature.animation_data.action_blend_type = "REPLACE"
    armature.animation_data.action_influence = 1.0


def _pose_position(armature, bones, things) -> None:
    armature.data.pose_position = "POSE"


def _show(armature, bones, things) -> None:
    for name in things:
        show(bpy.data.objects[name])


def show(thing) -> None:
    """Makes the view layer evaluate an object: it, and one way to it through the collections, are enabled."""
    ways = [(bpy.context.view_layer.layer_collection,)]
    for way in ways:  # grows while it is walked
        if thing.name in way[-1].collection.objects:
            for layer in way[1:]:
                layer.exclude = layer.collection.hide_viewport = False
            thing.hide_viewport = False
            bpy.context.view_layer.update()
            return
        ways += [(*way, child) for child in way[-1].children]
    raise ConversionError(f"object {thing.name!r} is not in the scene; link its collection to the scene")


def _animate(armature, bones, things) -> None:
    for name in things:
        bpy.data.objects[name].rigid_body.kinematic = True


def _unstretch(armature, bones, things) -> None:
    render = bpy.context.scene.render
    render.frame_map_new = render.frame_map_old


FIXES = {
    "animated": Fix("Make Animated", _animate),
    "blending": Fix("Replace", _replace),
    "clear_scale": Fix("Clear Scale", _clear_scale),
    "collider": Fix("Automatic Shape", _of_bones("shape", AUTO)),
    "connect": Fix("Connect", _connect),
    "frame_range": Fix("Use Action's", _set_range),
    "ground": Fix("Turn On Ground", _use_ground),
    "ground_height": Fix("Lower Ground", _set_ground),
    "ignore": Fix("Ignore", _of_bones("role", IGNORED)),
    "mute_constraints": Fix("Mute", _mute("mute_constraints")),
    "mute_drivers": Fix("Mute", _mute("mute_drivers")),
    "pose_position": Fix("Pose Position", _pose_position),
    "roles": Fix("Default Roles", lambda armature, bones, things: operators.make_dynamic(armature)),
    "roll": Fix("Mirror Roll", lambda armature, bones, things: symmetry.mirror_rolls(armature, bones)),
    "scale": Fix("Apply Scale", lambda armature, bones, things: scale.apply_scale(armature)),
    "show": Fix("Show", _show),
    "time": Fix("Do Not Stretch", _unstretch),
    "unlock": Fix("Unlock", _unlock),
}
"""By the name that a Problem gives its fix."""
