"""Which animation an armature plays: its source, or what physics wrote; and how to get back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import bpy

from . import activity, compat, control, edits, fcurve, lock, nla, readings, rival, switch
from .bake import PATHS, is_copy
from .convert import Character
from .hold import written_bones
from .renamed import follow_names, note_names

SOURCE, SIMULATED, KEPT = switch.SOURCE, "SIMULATED", "KEPT"


@dataclass(frozen=True)
class Played:
    """What an armature played at some moment, by names: the action (with its library) and its slot, each bone's
    rotation mode and channels, what was turned off for it, the switches of its controls, and which of its NLA tracks
    were muted."""

    animated: bool
    action: tuple[str, str | None]
    slot: str
    channels: dict[str, tuple]
    muted: dict[str, rival.Muted]
    switches: control.Switches
    tracks: tuple[bool, ...]


def record(armature) -> Played:
    animation = armature.animation_data
    action = animation.action if animation else None
    return Played(
        animation is not None,
        # a linked action may have a local namesake
        (action.name, action.library.filepath if action.library else None) if action else ("", None),
        compat.slot_identifier(armature),
        {
            bone.name: (bone.rotation_mode, tuple(bone.location), _rotation(bone), tuple(bone.scale))
            for bone in armature.pose.bones
        },
        {bone.name: rival.muted(bone) for bone in armature.pose.bones},
        control.switched(armature),
        nla.state(armature),
    )


def restore(armature, played: Played) -> None:
    """Plays again what was recorded."""
    nla.restore(armature, played.tracks)
    if played.animated:
        compat.assign_action(armature, bpy.data.actions.get(played.action), played.slot, exact=True)
    else:
        armature.animation_data_clear()
    for bone in armature.pose.bones:
        rival.unmute(armature, bone)
        if armature.armature_dynamics.state != SOURCE:
            rival.mute(armature, bone, played.muted[bone.name])
    control.turn(armature, played.switches)
    if armature.armature_dynamics.state == SOURCE:
        _unmeasure(armature)
    _refresh(armature)
    # after the animation, which does not know what was posed and not keyed
    for bone in armature.pose.bones:
        bone.rotation_mode, bone.location, rotation, bone.scale = played.channels[bone.name]
        _set_rotation(bone, rotation)


def restore_all(before: Iterable[tuple[bpy.types.Object, Played]]) -> None:
    """As `restore`, for several armatures; those that were removed meanwhile need nothing back."""
    for armature, played in before:
        with suppress(ReferenceError):
            restore(armature, played)


def play_source(armature) -> None:
    """Plays the animation that the armature had before physics, or what has taken the place of the take since."""
    settings = armature.armature_dynamics
    follow_names()
    if settings.state == SOURCE:
        return
    if _is_replaced(armature):
        _save(settings.source_action)
        for bone in armature.pose.bones:
            rival.unmute(armature, bone)
        _forget(armature)
        _refresh(armature)
        return
    switch.carry(armature)
    nla.mute(armature)
    compat.assign_action(armature, settings.source_action, settings.source_slot, exact=True)
    control.turn(armature, control.parsed(settings.source_switches))
    for bone in armature.pose.bones:
        own = bone.armature_dynamics
        rival.unmute(armature, bone)
        if not own.source_mode:  # the bone was added since
            continue
        bone.rotation_mode, bone.location, bone.scale = own.source_mode, own.source_location, own.source_scale
        _set_rotation(bone, tuple(own.source_rotation))
    _refresh(armature)


def _is_replaced(armature) -> bool:
    """Whether by now something else plays than the take or its source: an action that was chosen or keyed since, or the
    take as a strip of the user's own. That is the armature's animation then, as anybody sees."""
    settings, action = armature.armature_dynamics, compat.playing(armature)
    if nla.is_layered(armature):
        return False
    if action:
        return action not in (settings.action, settings.source_action) and not is_copy(action, settings.action)
    return any(strip.action and strip.action == settings.action for strip in nla.strips(armature))


def _forget(armature) -> None:
    """What plays is the source again, and nothing is left of a take but its action."""
    settings = armature.armature_dynamics
    settings.tracks = ""
    settings.source_action, settings.state = None, SOURCE  # a pointer left here would keep the action in the file
    settings.property_unset("preview")
    _unmeasure(armature)
    for bone in armature.pose.bones:
        lock.relock(bone)


def _unmeasure(armature) -> None:
    """What a take's curves told of it is told no more."""
    for name in (*activity.NAMES, *readings.NAMES):
        armature.armature_dynamics.property_unset(name)


def set_simulated(armature, before: Played, action, members: Sequence, tracks: Sequence[str]) -> None:
    """Remembers the source, now that `action` plays instead, in NLA `tracks` of its own or without them, and with which
    others it was simulated; an earlier take that was not kept is removed, and so are its tracks."""
    settings = armature.armature_dynamics
    _replace_tracks(armature, before, tracks)
    settings.partners.clear()
    for member in members:
        if member != armature:
            settings.partners.add().armature = member
    if settings.state == SOURCE:
        settings.source_action = bpy.data.actions.get(before.action)
        settings.source_slot, settings.source_animated = before.slot, before.animated
        settings.source_switches = control.lines(before.switches)
    _carry_edits(armature, before, action)
    if settings.state == SIMULATED:
        _remove_take(settings)
    elif settings.state == KEPT:  # a duplicate's copy has no user yet that lasts
        _save(settings.action)
    for bone in armature.pose.bones:
        own = bone.armature_dynamics
        # an earlier take did not know the bones that were added since
        if settings.state == SOURCE or not own.source_mode:
            own.source_mode, own.source_location, own.source_rotation, own.source_scale = before.channels[bone.name]
    note_names(armature)
    settings.action, settings.state = action, SIMULATED


def together(armature) -> list:
    """The armature, and those that share its simulation, which is kept or given up as a whole. One that was simulated
    again since is on its own, and so is a duplicate."""
    state = armature.armature_dynamics.state
    return [armature] + [
        partner.armature
        for partner in armature.armature_dynamics.partners
        if partner.armature
        and partner.armature.armature_dynamics.state == state
        and any(other.armature == armature for other in partner.armature.armature_dynamics.partners)
    ]


def keep(armature) -> None:
    """Accepts the take: its action and the source's survive saving even when neither plays."""
    settings = armature.armature_dynamics
    _save(settings.action)
    _save(settings.source_action)
    settings.state = KEPT


def _save(action) -> None:
    """Lets an action of this file be saved even when nothing plays it."""
    if action and not action.library:
        action.use_fake_user = True


def restore_source(armature) -> None:
    """Plays the source again; the take's action stays in the file."""
    nla.leave(armature)
    _save_edits(armature)
    play_source(armature)
    nla.remove(armature)
    _forget(armature)


def discard(armature) -> None:
    """Plays the source again and removes the take."""
    settings = armature.armature_dynamics
    restore_source(armature)
    _remove_take(settings)
    animation = armature.animation_data
    if animation and not (settings.source_animated or animation.action or animation.nla_tracks or animation.drivers):
        armature.animation_data_clear()
    settings.summary = settings.warnings = ""


def _replace_tracks(armature, before: Played, tracks: Sequence[str]) -> None:
    """The new tracks are the take's, and not those of an earlier one; what was keyed above those plays on above the new
    ones."""
    settings = armature.armature_dynamics
    above = bpy.data.actions.get(before.action) if settings.tracks else None
    nla.remove(armature, tracks)
    settings.tracks = "\n".join(tracks)
    if above and tracks:
        compat.assign_action(armature, above, before.slot, exact=True)
    elif above:
        above.use_fake_user = True


def _carry_edits(armature, before: Played, action) -> None:
    """Keys that were set by hand in an earlier take are in the new one, too."""
    settings = armature.armature_dynamics
    slot = nla.slot(armature, action)
    old = settings.action if settings.state != SOURCE else None
    played = bool(old) and before.action[0] == old.name
    edits.carry(armature, action, slot, old, before.slot if played else slot)


def _save_edits(armature) -> None:
    """Lets what was keyed above the tracks of a take stay in the file."""
    if nla.is_layered(armature) and armature.animation_data.action:
        armature.animation_data.action.use_fake_user = True


def _remove_take(settings) -> None:
    """Removes the take's action, unless a duplicate of the armature or the user's own wish still holds it."""
    action, settings.action = settings.action, None
    if action and action.users == 0:
        bpy.data.actions.remove(action)


def mute_rivals(armature, character: Character) -> None:
    """Turns off what would fight the keys, as far as the settings want it, and remembers what it turned off."""
    wanted = rival.unwanted(armature, written_bones(character))
    for name in dict.fromkeys(own.holder for own in wanted):
        bone = armature.pose.bones[name]
        rival.mute(armature, bone, rival.Muted.of([own for own in wanted if own.holder == name]))


def keep_off(armature, action) -> None:
    """Keys off, in a take's action that plays now, what is turned off and switched by the source's keys."""
    switched = {
        curve.data_path for curve in (*switch.source_curves(armature), *nla.curves(armature)) if fcurve.plays(curve)
    }
    holder = compat.channels(armature, action, compat.slot_identifier(armature))
    for bone in armature.pose.bones:
        for name in rival.muted(bone).constraints:
            for channel, value in rival.SWITCHES.items():
                path = f"{bone.constraints[name].path_from_id()}.{channel}"
                if path not in switched:
                    continue
                if curve := holder.fcurves.find(path):
                    holder.fcurves.remove(curve)
                holder.fcurves.new(path).keyframe_points.insert(armature.armature_dynamics.frame_start, value)


def _rotation(bone) -> tuple:
    """The numbers of a bone's own rotation mode, four in all."""
    values = tuple(getattr(bone, PATHS.get(bone.rotation_mode, "rotation_euler")))
    return values if len(values) == 4 else (*values, 0.0)


def _set_rotation(bone, values: tuple) -> None:
    path = PATHS.get(bone.rotation_mode, "rotation_euler")
    setattr(bone, path, values if path in PATHS.values() else values[:3])


def _refresh(armature) -> None:
    """Makes the armature follow the action that plays now; setting the frame would undo what is not keyed elsewhere."""
    armature.update_tag(refresh={"TIME"})
    bpy.context.view_layer.update()
