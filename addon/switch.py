"""When a connection holds: its Enabled setting, and the keyframes of that in the armature's source action."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import floor

import bpy
import numpy as np

from . import compat, nla
from .fcurve import copied, plays, points

SOURCE = "SOURCE"
"""The state of an armature that plays its own animation; see `stage`."""

PATH = re.compile(r"armature_dynamics\.connections\[(\d+)\]\.")

OWN = re.compile(
    r'(pose\.bones\["(.*)"\]\.)?armature_dynamics[._]'
    r"(?!(active_joints|left_out|energy|penetration|separation|contacts)$)"
)
"""Data paths of settings of ours: keys of those mean something to a simulation. Those that it keys itself do not."""

IN_TIME = re.compile(r"armature_dynamics(\.connections\[\d+\]\.enabled|[._]weight|_follow|_follow_ratio|_hold)$")
"""Ends of the data paths of settings that mean something from frame to frame."""

ON = 1.0 - 1e-6
"""Curves of switches mean on from here up, as Blender reads them."""

HALVINGS = 40
"""A change between two frames is found by so many halvings: to the last bit of a frame number."""

SAME_FRAME = 1e-3
"""A change so near to a key [frames] is the key's."""


@dataclass(frozen=True)
class Switch:
    """Whether a connection holds at the start frame, and the frames at which it is connected (True) or cut (False);
    `outside` are the changes before or after the simulation."""

    closed: bool
    changes: tuple[tuple[float, bool], ...] = ()
    outside: tuple[tuple[float, bool], ...] = ()


@dataclass(frozen=True)
class Sampled:
    """A setting on whole frames from `first` on, as Blender evaluates it: `values` (F,), each until the next."""

    first: int
    values: np.ndarray
    keyframe_points: tuple = ()

    def evaluate(self, frame: float) -> float:
        return float(self.values[min(max(floor(frame) - self.first, 0), len(self.values) - 1)])


def elsewhere(armature) -> set[str]:
    """The data paths of settings that drivers or NLA strips move, not curves of the source's action."""
    own = {curve.data_path for curve in source_curves(armature) if plays(curve)}
    drivers = armature.animation_data.drivers if armature.animation_data else ()
    driven = {curve.data_path for curve in drivers if plays(curve) and IN_TIME.search(curve.data_path)}
    played = {curve.data_path for curve in nla.curves(armature) if plays(curve) and IN_TIME.search(curve.data_path)}
    return driven | (played - own)


def enabled_path(index: int) -> str:
    """The data path, from the armature object, of a connection's Enabled setting."""
    return f"armature_dynamics.connections[{index}].enabled"


def source_curves(armature):
    """The curves of the action that the armature had before physics, whether it plays now or not."""
    settings = armature.armature_dynamics
    if settings.state != SOURCE:
        return compat.curves(settings.source_action, settings.source_slot)
    return compat.curves(compat.playing(armature), compat.slot_identifier(armature))


def animated_paths(thing) -> set[str]:
    """The data paths of what keys, strips and drivers of an object move, as far as they are not muted."""
    animation = thing.animation_data
    found = [*source_curves(thing), *nla.curves(thing)]
    if animation:
        found += [*compat.curves(animation.action, compat.slot_identifier(thing)), *animation.drivers]
    return {curve.data_path for curve in found if plays(curve)}


def enabled_curve(armature, index: int):
    """The curve of a connection's Enabled setting, or None where that has no keys."""
    path = enabled_path(index)
    return next((curve for curve in source_curves(armature) if curve.data_path == path and plays(curve)), None)


def read_switch(armature, index: int, start: int, end: int, sampled: dict[str, Sampled] | None = None) -> Switch:
    """When the connection with that index holds, from frame `start` to `end`; what is `sampled` comes first."""
    curve = (sampled or {}).get(enabled_path(index)) or enabled_curve(armature, index)
    if curve is None:
        return Switch(armature.armature_dynamics.connections[index].enabled)
    keys = [float(key.co[0]) for key in curve.keyframe_points]
    changes = tuple(_changes(curve, keys, [*range(start, end + 1), *(key for key in keys if start < key < end)]))
    before = _changes(curve, keys, [*(key for key in keys if key < start), start])
    after = _changes(curve, keys, [end, *(key for key in keys if key > end)])
    outside = tuple(change for change in (*before, *after) if change[0] != start)
    return Switch(_is_on(curve, start), changes, outside)


def _changes(curve, keys: list[float], frames: Iterable[float]) -> Iterable[tuple[float, bool]]:
    """The frames at which a curve switches, looked for between each two of `frames`."""
    frames = sorted(set(map(float, frames)))
    states = [_is_on(curve, frame) for frame in frames]
    for before, after, was, now in zip(frames, frames[1:], states, states[1:]):
        if was == now:
            continue
        for _ in range(HALVINGS):
            middle = (before + after) / 2
            if _is_on(curve, middle) == now:
                after = middle
            else:
                before = middle
        near = min(keys, key=lambda key: abs(key - after), default=round(after))
        yield (near if abs(near - after) < SAME_FRAME else after), now


def _is_on(curve, frame: float) -> bool:
    return curve.evaluate(frame) >= ON


def forget(armature, index: int) -> None:
    """Removes the keys and drivers of a connection that is removed from the list; those of the ones after it move up
    with them."""
    drivers = armature.animation_data.drivers if armature.animation_data else ()
    for curves in (*_all_curves(armature), drivers):
        for curve in list(curves):
            match = PATH.match(curve.data_path)
            number = int(match.group(1)) if match else -1
            if number == index:
                curves.remove(curve)
            elif number > index:
                curve.data_path = PATH.sub(f"armature_dynamics.connections[{number - 1}].", curve.data_path)


def _all_curves(armature) -> list:
    """The curves of every action of the armature that may have keys of connections."""
    settings, identifier = armature.armature_dynamics, compat.slot_identifier(armature)
    now = compat.playing(armature), settings.action
    actions = {action.name_full: (action, identifier) for action in now if action}
    if settings.source_action:
        actions.setdefault(settings.source_action.name_full, (settings.source_action, settings.source_slot))
    for strip in nla.strips(armature):
        if strip.action:
            actions.setdefault(strip.action.name_full, (strip.action, compat.strip_slot(strip)))
    return [compat.curves(action, slot) for action, slot in actions.values() if action.library is None]


def carry(armature) -> None:
    """Takes keys of settings that were set while a take played over into the source action, which is what the next
    take reads; they would be lost with the take's action."""
    settings = armature.armature_dynamics
    action = compat.playing(armature)
    layered = nla.is_layered(armature)
    if settings.state == SOURCE or action is None or not (layered or action == settings.action):
        return
    new = {curve.data_path: curve for curve in compat.curves(action, compat.slot_identifier(armature))
           if OWN.match(curve.data_path)}  # fmt: skip
    old = {curve.data_path: curve for curve in source_curves(armature) if OWN.match(curve.data_path)}
    if layered:  # what plays was keyed above the take's strip, and adds to the source
        old = {path: curve for path, curve in old.items() if path in new}
    source = settings.source_action
    if (source and source.library) or {path: points(curve) for path, curve in new.items()} == {
        path: points(curve) for path, curve in old.items()
    }:
        return
    if source is None:
        source = settings.source_action = bpy.data.actions.new(f"{armature.name} Settings")
    holder = compat.channels(armature, source, settings.source_slot)
    for curve in old.values():
        holder.fcurves.remove(curve)
    for curve in new.values():
        copied(holder, curve)
