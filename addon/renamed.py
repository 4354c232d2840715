"""Bones that were renamed: Blender lets what plays follow, and here all else that knows them by name does."""

from __future__ import annotations

import re

import bpy

from . import compat

BONE = re.compile(r'(?<=pose\.bones\[")(?:[^"\\]|\\.)*(?="\])')
"""The name of a bone in a data path."""


def follow_names() -> None:
    """Puts the names that bones have now in place of those that they were known as: in the sources of takes, in what
    these wrote and turned off, and in connections."""
    for armature in bpy.data.objects:
        if armature.type == "ARMATURE" and not armature.library and (names := _renamed(armature)):
            _follow(armature, names)
            note_names(armature)


def note_names(armature) -> None:
    """Lets every bone remember what it is called."""
    for bone in armature.pose.bones:
        bone.armature_dynamics.known_as = bone.name


def _renamed(armature) -> dict[str, str]:
    """The names of bones by those that they were known as, where that is another."""
    known = {bone.armature_dynamics.known_as: bone.name for bone in armature.pose.bones}
    return {old: new for old, new in known.items() if old not in ("", new)}


def _follow(armature, names: dict[str, str]) -> None:
    settings = armature.armature_dynamics
    source = settings.source_action
    # what another object plays is not this armature's alone, and what plays has followed already
    if source and not source.library and bpy.data.user_map(subset=[source])[source] <= {armature} - _playing(source):
        for curve in compat.curves(source, settings.source_slot):
            curve.data_path = _moved(curve.data_path, names)
            if curve.group:
                curve.group.name = names.get(curve.group.name, curve.group.name)
    for name in ("written", "source_switches"):
        setattr(settings, name, _moved(getattr(settings, name), names))
    for thing in bpy.data.objects:
        for connection in thing.armature_dynamics.connections:
            if thing == armature:
                connection.bone = names.get(connection.bone, connection.bone)
            if connection.target == armature:
                connection.target_bone = names.get(connection.target_bone, connection.target_bone)


def _playing(action) -> set:
    """The objects that play an action, by itself or in strips."""
    return {
        thing
        for thing in bpy.data.objects
        if (animation := thing.animation_data)
        and (
            animation.action == action
            or any(strip.action == action for track in animation.nla_tracks for strip in track.strips)
        )
    }


def _moved(text: str, names: dict[str, str]) -> str:
    def new(match: re.Match) -> str:
        old = bpy.utils.unescape_identifier(match[0])
        return bpy.utils.escape_identifier(names.get(old, old))

    return BONE.sub(new, text)
