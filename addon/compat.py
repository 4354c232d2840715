"""Every difference between Blender versions."""

from __future__ import annotations

import bpy
import numpy as np

SLOTTED = bpy.app.version >= (4, 4, 0)
"""Actions keep their curves in slots, layers, strips and channelbags; Action.fcurves is gone from 5.0 on."""

NO_SLOT = "none"
"""Stands for an action that plays through no slot; an empty string is what files from before slots have."""


def playing(owner):
    """The action that moves an object now, or None."""
    return owner.animation_data.action if owner.animation_data else None


def slot_identifier(owner) -> str:
    """Which slot of its action plays on an object, for `assign_action`; empty before slots existed."""
    animation = owner.animation_data
    if not SLOTTED or not animation or not animation.action:
        return ""
    return animation.action_slot.identifier if animation.action_slot else NO_SLOT


def assign_action(owner, action, identifier: str, *, exact: bool = False) -> None:
    """Makes `action` (or None) play on an object through the slot with that identifier, or the first that suits.

    With `exact` through no other slot, if need be through none, as it was before. Without, raises RuntimeError if the
    object would not play it: an action without its slot moves nothing.
    """
    animation = owner.animation_data or owner.animation_data_create()
    animation.action = action
    if action is None or not SLOTTED:
        return
    suitable = list(animation.action_suitable_slots)
    slot = next((slot for slot in suitable if slot.identifier == identifier), None)
    if slot is None and suitable and not (exact and identifier):
        slot = suitable[0]
    if slot is None and not exact:
        raise RuntimeError(f"action {action.name!r} has no slot that {owner.name!r} can play")
    animation.action_slot = slot


def channels(owner, action, identifier: str):
    """What holds the curves by which `action` moves an object, made if need be: it has `fcurves` and `groups`."""
    if not SLOTTED:
        return action
    slots = [slot for slot in action.slots if slot.target_id_type in ("OBJECT", "UNSPECIFIED")]
    slot = next((slot for slot in slots if slot.identifier == identifier), slots[0] if slots else None)
    slot = slot or action.slots.new("OBJECT", owner.name)
    layer = action.layers[0] if action.layers else action.layers.new("Layer")
    strip = layer.strips[0] if layer.strips else layer.strips.new(type="KEYFRAME")
    return strip.channelbag(slot, ensure=True)


def curves(action, identifier: str):
    """The curves of an action's slot with that identifier, to look at, change or remove; nothing is made for it."""
    holder = _holder(action, identifier)
    return holder.fcurves if holder else ()


def _holder(action, identifier: str):
    if action is None or not SLOTTED:
        return action
    # files from before slots have no identifier
    slot = next((slot for slot in action.slots if identifier in (slot.identifier, "")), None)
    strips = action.layers[0].strips if slot and action.layers else ()
    return strips[0].channelbag(slot) if strips else None


def strip_slot(strip) -> str:
    """Which slot of its action an NLA strip plays, for `curves`; empty before slots existed."""
    if not SLOTTED:
        return ""
    return strip.action_slot.identifier if strip.action_slot else NO_SLOT


def play_slot(strip, identifier: str) -> None:
    """Makes an NLA strip play the slot of its action with that identifier, or the first that suits."""
    if not SLOTTED:
        return
    suitable = list(strip.action_suitable_slots)
    slots = [slot for slot in suitable if slot.identifier == identifier] or suitable
    strip.action_slot = slots[0] if slots else None


def select_bone(pose_bone, on: bool) -> None:
    """Selects a bone, or deselects it."""
    holder = pose_bone if hasattr(pose_bone, "select") else pose_bone.bone
    holder.select = on


def selected_bones(armature) -> set[str]:
    """The names of the bones that are selected."""
    bones = armature.pose.bones if "select" in bpy.types.PoseBone.bl_rna.properties else armature.data.bones
    flags = np.empty(len(bones), dtype=bool)
    bones.foreach_get("select", flags)
    return {bone.name for bone, selected in zip(bones, flags) if selected}


def import_fbx(path: str) -> None:
    """Imports an FBX file: by Blender's own importer where it has one."""
    if bpy.app.version >= (4, 5, 0):
        bpy.ops.wm.fbx_import(filepath=path)
    else:
        bpy.ops.import_scene.fbx(filepath=path)
