"""Settings that have keys or drivers although they count only as they are at the start frame."""

from __future__ import annotations

import bpy

from . import compat
from .fcurve import plays
from .problem import Problem
from .switch import IN_TIME, OWN, animated_paths


def problems(armature) -> list[Problem]:
    """Problems of the settings of an armature and its bones, and of the scene's gravity and Adaptive settings."""
    labels: dict[tuple[str, ...], list[str]] = {}
    for path in sorted(animated_paths(armature)):
        own = OWN.match(path)
        if own and not IN_TIME.search(path) and (label := _label(armature, path)):
            labels.setdefault((bpy.utils.unescape_identifier(own[2]),) if own[2] else (), []).append(label)
    scene = bpy.context.scene
    for path in sorted(_played(scene)):
        counts = scene.use_gravity if path == "gravity" else OWN.match(path)
        if counts and (label := _label(scene, path)):
            labels.setdefault((), []).append(label)
    return [
        Problem("timeless", bones, f"keys of settings count only at the start frame: {', '.join(own)}", "remove them")
        for bones, own in labels.items()
    ]


def _label(thing, path: str) -> str:
    """What a setting is called, or nothing where it is none any more."""
    holder, _, name = path.rpartition(".")
    try:
        own = (thing.path_resolve(holder) if holder else thing).bl_rna.properties.get(name)
    except ValueError:
        return ""
    return own.name if own else ""


def _played(scene) -> set[str]:
    """The data paths of what keys and drivers of a scene move, as far as they are not muted."""
    animation = scene.animation_data
    if not animation:
        return set()
    found = [*compat.curves(animation.action, compat.slot_identifier(scene)), *animation.drivers]
    return {curve.data_path for curve in found if plays(curve)}
