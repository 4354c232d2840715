"""Blender's nonlinear animation: what an armature plays from its strips, and results that are strips themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import ceil, floor

import bpy

from . import compat
from .fcurve import same
from .problem import ERROR, ConversionError, Problem

ACTION, STRIP = "ACTION", "STRIP"
"""What a result may be."""

SHORT = 56
"""So many bytes of a track's name leave room for a number."""


def check(armature) -> None:
    """Raises ConversionError where the take's action, or its strip, would not play as it is."""
    animation, settings = armature.animation_data, armature.armature_dynamics
    if not animation:
        return
    taken = own(armature)
    tracks = [track for track in animation.nla_tracks if track not in taken]
    if any(track.is_solo for track in tracks):
        raise ConversionError(
            f"armature {armature.name!r}: one of its NLA tracks plays solo, and nothing else does; turn its star off"
        )
    if settings.result == STRIP and tracks and not animation.use_nla:
        raise ConversionError(
            f"armature {armature.name!r}: its NLA is turned off, which a strip needs; turn it on, or set Result to "
            "Action"
        )
    blended = animation.action_blend_type != "REPLACE" or animation.action_influence != 1.0
    if animation.use_nla and animation.nla_tracks and blended:
        text = f"armature {armature.name!r}: its action is blended with its NLA tracks, which would change the keys"
        remedy = "set its blending to Replace and its influence to 1"
        raise ConversionError(Problem("blending", (), text, remedy, ERROR, fix="blending"))


def is_layered(armature) -> bool:
    """Whether a take of the armature plays in tracks of its own."""
    return bool(armature.armature_dynamics.tracks)


def own(armature, new: Collection[str] = ()) -> list:
    """The tracks that a take of the armature added: in place of those whose names are gone, what plays the take or its
    source under another name. Those that are called `new` are the next take's."""
    settings, animation = armature.armature_dynamics, armature.animation_data
    names = settings.tracks.splitlines()
    tracks = [track for track in animation.nla_tracks if track.name not in new] if animation else []
    found = [track for track in tracks if track.name in names]
    gone = len(set(names) - {track.name for track in found})
    actions = [action for action in (settings.action, settings.source_action) if action]
    renamed = [
        track
        for track in reversed(tracks)
        if track not in found and any(strip.action in actions for strip in track.strips)
    ]
    return found + renamed[:gone]


def strips(armature) -> list:
    """The strips that the source animation plays besides its action, the lowest first."""
    animation = armature.animation_data
    if not animation or not animation.use_nla:
        return []
    taken = own(armature)
    return [
        strip
        for track in animation.nla_tracks
        if not track.mute and track not in taken
        for strip in track.strips
        if not strip.mute
    ]


def curves(armature) -> Iterator:
    """The curves that those strips play."""
    return curves_of(strips(armature))


def curves_of(found: Iterable) -> Iterator:
    """The curves of strips, and of those in them."""
    for strip in found:
        if strip.action:
            yield from compat.curves(strip.action, compat.strip_slot(strip))
        yield from curves_of(strip.strips)


def span(armature) -> tuple[int, int] | None:
    """The whole frames that cover those strips, or None without one."""
    found = strips(armature)
    if not found:
        return None
    return floor(min(strip.frame_start for strip in found)), ceil(max(strip.frame_end for strip in found))


def push(armature, source, source_slot: str, frames: range) -> list[str]:
    """Makes the action that plays a strip in a track of its own above all others, over these frames, and the source's
    action, if there is one, with its slot, a strip below it; nothing else plays as action then. What the strip would
    only repeat of the source is taken out of it. Returns the tracks' names, the lower one first."""
    animation = armature.animation_data
    action, identifier = animation.action, compat.slot_identifier(armature)
    extrapolation = animation.action_extrapolation
    # a slot needs its action
    animation.action = None
    names = []
    if source:
        _leave_out(compat.curves(action, identifier), compat.curves(source, source_slot))
        scene = bpy.context.scene
        ends = (frames[0], frames[-1], *source.curve_frame_range, scene.frame_start, scene.frame_end)
        names.append(
            _add(armature, f"{armature.name} Source", source, source_slot, (min(ends), max(ends)), extrapolation)
        )
    names.append(_add(armature, action.name, action, identifier, (frames[0], frames[-1]), "HOLD"))
    return names


def _leave_out(found, others) -> None:
    """Removes the curves that others equal."""
    known = {(curve.data_path, curve.array_index): curve for curve in others}
    for curve in list(found):
        other = known.get((curve.data_path, curve.array_index))
        if other and same(other, curve):
            found.remove(curve)


def _add(armature, name: str, action, slot: str, ends: tuple[float, float], extrapolation: str) -> str:
    """A track with one strip on top of all; returns its name."""
    tracks = armature.animation_data.nla_tracks
    taken = {track.name for track in tracks}
    track = tracks.new(prev=tracks[-1]) if tracks else tracks.new()
    # Blender does not keep names apart that are given so, and cuts them off
    short = name.encode()[:SHORT].decode(errors="ignore")
    for free in (name, *(f"{short} {i}" for i in range(2, 1000))):
        track.name = free
        if track.name not in taken:
            break
    strip = track.strips.new(name, floor(ends[0]), action)
    compat.play_slot(strip, slot)
    strip.use_sync_length = False
    strip.action_frame_start, strip.action_frame_end = ends
    strip.frame_start_ui = ends[0]
    strip.extrapolation = extrapolation
    return track.name


def slot(armature, action) -> str:
    """The slot through which an armature plays a take's action, by itself or in a strip of its tracks."""
    if armature.animation_data.action == action:
        return compat.slot_identifier(armature)
    found = (strip for track in own(armature) for strip in track.strips if strip.action == action)
    return next((compat.strip_slot(strip) for strip in found), "")


def leave(armature) -> None:
    """Ends the editing of a strip, in which Blender lets nobody change what plays."""
    if armature.animation_data and armature.animation_data.use_tweak_mode:
        armature.animation_data.use_tweak_mode = False


def mute(armature) -> None:
    """Lets the tracks of a take rest."""
    for track in own(armature):
        track.mute = True


def remove(armature, new: Collection[str] = ()) -> None:
    """Removes the tracks of a take, but not the `new` ones of the next; their actions stay."""
    for track in own(armature, new):
        armature.animation_data.nla_tracks.remove(track)


def state(armature) -> tuple[bool, ...]:
    """Which tracks are muted."""
    return tuple(track.mute for track in armature.animation_data.nla_tracks) if armature.animation_data else ()


def restore(armature, muted: tuple[bool, ...]) -> None:
    """Back to such a state: tracks that were added since are removed."""
    tracks = armature.animation_data.nla_tracks if armature.animation_data else ()
    for track in list(tracks)[len(muted) :]:
        tracks.remove(track)
    for track, off in zip(tracks, muted):
        track.mute = off
