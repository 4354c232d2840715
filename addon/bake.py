"""Trajectory -> Action: an armature's bones keyed on whole frames, each in its own rotation mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Quaternion

from . import compat, nla
from .chain import Chain, Track, bone_poses
from .convert import Character
from .fcurve import write_fitted, write_lines
from .keying import EVERY, EVERY_FRAME, STEP, Keying, choose, skeleton
from .source import Source

SAME_PLACE = 1e-6
"""Locations nearer to zero than this [armature units, relative to the bone's length] need no key."""

PATHS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
"""Where a rotation mode keeps its numbers; every other mode is an Euler order."""

SHARE = 0.7
"""Part of the progress that finding the poses is where keys are chosen after it."""

CHANNELS = ("location", "scale", "rotation_euler", *PATHS.values())


@dataclass(frozen=True)
class Baked:
    """The `action`; the poses (n, 4, 4) that the bones with links have in the armature's space on the frames where they
    are `played` as a blend; whether each frame (F,) from start to end is `exact` in all bones' keys; and how many
    `keys` there are, of how many with one on every frame, and what the fewer change [m, rad]."""

    action: bpy.types.Action
    played: dict[int, np.ndarray]
    exact: np.ndarray
    keys: dict[str, float]


def bake(
    armature, character: Character, source: Source, poses: np.ndarray, keying: Keying = EVERY_FRAME
) -> Iterator[float]:
    """Writes link poses (F, n, 4, 4) from the source's start frame on into a new action and assigns it; the source's
    action stays as it is. Yields progress 0 … 1; nothing is written before the end. Returns what was Baked."""
    targets = bone_poses(character, source, poses)
    source = replace(source, end=source.start + len(poses) - 1)
    chain = Chain(armature, character, source, character.bones if keying.blends else ())
    frames = keying.frames(source)
    shown = np.zeros((len(frames), len(chain.bones), 4, 4)) if keying.mode != EVERY or keying.blends else None
    for i, frame in enumerate(frames):
        own, weight = source.at(frame)[0], keying.weight(frame, source)
        locals_, posed = chain.posed(own, targets[frame - source.start] if weight > 0 else None)
        if 0 < weight < 1:
            locals_, posed = chain.blended(own, locals_, weight)
        for bone, track in chain.tracks.items():
            if weight in (0.0, 1.0):
                track.turn = None
            track.append(locals_[bone])
        if shown is not None:
            shown[i, chain.order] = [posed[bone] for bone in chain.order]
        yield (1.0 if keying.mode == EVERY else SHARE) * (i + 1) / len(frames)
    return (yield from write(armature, character, chain.tracks, source, keying, shown))


def write(armature, character: Character, tracks: dict[int, Track], source: Source, keying: Keying, shown):
    """All curves in one go, into a copy of the source's action so that everything else plays as before. Yields progress
    while it chooses the keys; returns what was Baked."""
    names = character.rig.names
    rotations = {
        bone: _rotation_channels(armature.pose.bones[names[bone]].rotation_mode, track.rotations)
        for bone, track in tracks.items()
    }
    choice = None
    if keying.mode != EVERY:
        locations = np.stack([np.array(track.locations) for track in tracks.values()], axis=1)
        turns = [values for _, values in rotations.values()]
        choosing = choose(keying, skeleton(armature, character, source, list(tracks), shown, locations, turns), source)
        choice = yield from _later(choosing)
    before = playing(armature)
    identifier = compat.slot_identifier(armature)
    name = f"{armature.name} Dynamics"
    action = before.copy() if before else bpy.data.actions.new(name)
    action.name = name
    holder = compat.channels(armature, action, identifier)
    # a channel without keys would be left to the strips below
    keyed = _clear(holder, [names[bone] for bone in tracks]) | {curve.data_path for curve in nla.curves(armature)}
    # what is constant from the start frame on is keyed up to there
    still = None if keying.blends else source.start - source.first + 1
    written = every = 0
    for i, (bone, track) in enumerate(tracks.items()):
        pose_bone = armature.pose.bones[names[bone]]
        group = holder.groups.get(pose_bone.name) or holder.groups.new(pose_bone.name)
        channel, turns = rotations[bone]
        values = {channel: turns[:still] if track.held else turns}
        if track.roams:
            values["location"] = np.array(track.locations)
        elif not character.rig.connected[bone] and (
            (bone_path(pose_bone.name, "location") in keyed) or _is_placed(pose_bone, track)
        ):
            values["location"] = np.array(track.locations[:still])
        if bone_path(pose_bone.name, "scale") in keyed or (track.scales[-1] - pose_bone.scale).length > SAME_PLACE:
            values["scale"] = np.array(track.scales[:still])
        for channel, columns in values.items():
            path, kept = bone_path(pose_bone.name, channel), np.ones(len(columns), dtype=bool)
            # the tolerance is not about scales
            if choice is None or (channel == "scale" and np.ptp(columns, axis=0).any()):
                write_lines(holder, group, path, columns, source.first)
            else:
                kept = choice.kept[: len(columns), i]
                write_fitted(holder, group, path, columns, source.first, kept)
            written, every = written + int(kept.sum()) * columns.shape[1], every + columns.size
    compat.assign_action(armature, action, identifier)
    changed = {"moved_max_m": choice.moved, "turned_max_deg": float(np.degrees(choice.turned))} if choice else {}
    keys = {"written": written, "every_frame": every, **changed}
    return Baked(action, _blended(source, keying, shown), _exact(source, keying), keys)


def playing(armature):
    """The action that moves an armature now, or None."""
    return armature.animation_data.action if armature.animation_data else None


def _later(steps: Iterator[float]):
    """Runs a generator of progress as the second part of the work; returns what it returns."""
    while True:
        try:
            yield SHARE + (1 - SHARE) * next(steps)
        except StopIteration as stop:
            return stop.value


def _blended(source: Source, keying: Keying, shown) -> dict[int, np.ndarray]:
    """The poses on the simulated frames that are not the simulation's alone."""
    frames = range(source.start, source.end + 1) if keying.blends else ()
    return {frame: shown[frame - source.first] for frame in frames if keying.weight(frame, source) < 1}


def _exact(source: Source, keying: Keying) -> np.ndarray:
    count = source.end - source.start + 1
    if keying.mode != STEP:
        return np.ones(count, dtype=bool)
    return keying.fixed(source)[source.start - source.first :][:count]


def bone_path(name: str, channel: str) -> str:
    """The data path of a pose bone's channel."""
    return f'pose.bones["{bpy.utils.escape_identifier(name)}"].{channel}'


def _clear(holder, names: list[str]) -> set[str]:
    """Removes the curves that move these bones; returns the paths that had some."""
    paths = {bone_path(name, channel) for name in names for channel in CHANNELS}
    curves = [curve for curve in holder.fcurves if curve.data_path in paths]
    removed = {curve.data_path for curve in curves}
    for curve in curves:
        holder.fcurves.remove(curve)
    return removed


def _is_placed(pose_bone, track: Track) -> bool:
    """Whether a jointed bone needs a location key: it stands, or would stand, away from its rest place."""
    near = SAME_PLACE * pose_bone.bone.length
    return track.locations[-1].length > near or pose_bone.location.length > near


def _rotation_channels(mode: str, rotations: list[Quaternion]) -> tuple[str, np.ndarray]:
    """The channels' name and values (F, 3 or 4) in a bone's rotation mode, without jumps from frame to frame."""
    if mode == "QUATERNION":
        values = np.array(rotations)
        flips = np.cumprod(np.where((values[1:] * values[:-1]).sum(axis=1) < 0, -1.0, 1.0))
        values[1:] *= flips[:, None]
        return PATHS[mode], values
    if mode == "AXIS_ANGLE":
        return PATHS[mode], _axis_angles(rotations)
    values = []
    for rotation in rotations:
        values.append(rotation.to_euler(mode, values[-1]) if values else rotation.to_euler(mode))
    return "rotation_euler", np.array(values)


def _axis_angles(rotations: list[Quaternion]) -> np.ndarray:
    """(F, 4) angle and axis; of all pairs that mean the same turn, the one nearest to the frame before."""
    values = np.empty((len(rotations), 4))
    axis, angle = np.array([0.0, 1.0, 0.0]), 0.0
    for i, rotation in enumerate(rotations):
        turn = rotation.angle
        if np.sin(turn / 2) > 1e-6:
            now = np.array(rotation.axis)
            if i and now @ axis < 0:
                now, turn = -now, -turn
            axis = now
        angle = turn + 2 * np.pi * np.round((angle - turn) / (2 * np.pi)) if i else turn
        values[i] = angle, *axis
    return values
