"""Bones whose scale changes from frame to frame: bodies do not grow."""

from __future__ import annotations

from math import ceil, floor

import numpy as np

from . import nla
from .cast import Actor
from .fcurve import bone_path, plays
from .hold import written_bones
from .problem import Problem
from .switch import source_curves

GROWTH = 1e-4
"""A scale that changes by less, relative to the bone's rest size, is rounding."""


def problems(actor: Actor) -> list[Problem]:
    """Problems of the bones that physics moves, and of those that carry them."""
    armature, written = actor.armature, written_bones(actor.character)
    bones = armature.data.bones
    above = _carriers(bones, written) - written
    drivers = armature.animation_data.drivers if armature.animation_data else ()
    # what drives the bones that are written fights their keys, which is told as that
    grown, driven = _grown(actor), {curve.data_path for curve in drivers if plays(curve)}
    held = "its scale is animated, but stays as it is at the start frame while physics moves it"
    carries = (
        "its scale is animated, but the simulated bones that it carries do not grow, so the rig does not reach them"
    )
    remedy = "remove the animation of its scale"
    found = []
    for bone in bones:
        path = bone_path(bone.name, "scale")
        if bone.name in written and path in grown:
            found.append(Problem("scale_held", (bone.name,), held, remedy))
        elif bone.name in above and (path in grown or path in driven):
            either = f"{remedy}, or set what it carries to Animated"
            found.append(Problem("scale_carries", (bone.name,), carries, either))
    return found


def _carriers(bones, names: set[str]) -> set[str]:
    """The names of all bones that carry some with these names."""
    found: set[str] = set()
    for name in names:
        bone = bones[name].parent
        while bone and bone.name not in found:
            found.add(bone.name)
            bone = bone.parent
    return found


def _grown(actor: Actor) -> set[str]:
    """The data paths of scales that keys or strips change between the first and the last frame."""
    armature = actor.armature
    frames = range(actor.source.start, max(actor.source.end, armature.armature_dynamics.frame_end) + 1)
    # strips play their curves at other frames, all of which count
    played = [(curve, frames) for curve in source_curves(armature)]
    played += [
        (curve, range(floor(first), ceil(last) + 1))
        for curve in nla.curves(armature)
        for first, last in [curve.range()]
    ]
    return {
        curve.data_path
        for curve, own in played
        if curve.data_path.endswith("].scale") and plays(curve) and _changes(curve, own)
    }


def _changes(curve, frames: range) -> bool:
    if len({key.co[1] for key in curve.keyframe_points}) < 2 and not curve.modifiers:
        return False
    return float(np.ptp([curve.evaluate(frame) for frame in frames])) > GROWTH
