"""Library overrides: characters that are linked from another file, with settings of their own in this one."""

from __future__ import annotations

import inspect

import bpy
from bpy.app.handlers import persistent
from bpy.props import CollectionProperty

OWN = {"LIBRARY_OVERRIDABLE"}


def refusal(who: str) -> str:
    """The message about a character that is linked without an override."""
    return (
        f"{who} is linked from another file and read-only; make a library override (Object > Library Override > Make)"
    )


def overridable(cls):
    """Lets overrides have, and save, values of their own of all settings of a property group; a class decorator."""
    for owner in cls.__mro__:
        for setting in inspect.get_annotations(owner).values():
            own_setting(setting)
    return cls


def own_setting(setting):
    """As `overridable`, for one setting that is not registered yet; returns it."""
    # annotations of others, and settings as Blender has them before it registers them
    if hasattr(setting, "keywords"):
        more = {"USE_INSERTION"} if setting.function == CollectionProperty else set()
        setting.keywords["override"] = OWN | more
    return setting


def groups(armature) -> list:
    """All property groups of ours that an armature and its bones have; reading one makes it where it is not yet."""
    own, bones = armature.armature_dynamics, armature.pose.bones if armature.pose else ()
    return [own, own.scenery_surface, *(bone.armature_dynamics for bone in bones)]


@persistent
def complete(*_) -> None:
    """Lets what overrides are of have all groups. Blender from 5.0 on saves an override's settings one by one only
    where the linked data has their group, else as a group, which it cannot read."""
    for thing in bpy.data.objects:
        if thing.type == "ARMATURE" and thing.override_library and thing.override_library.reference:
            groups(thing.override_library.reference)


def attach() -> None:
    bpy.app.handlers.save_pre.append(complete)


def detach() -> None:
    bpy.app.handlers.save_pre.remove(complete)
