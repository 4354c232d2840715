"""Trajectory -> Action: an armature's bones keyed on whole frames, each in its own rotation mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import uuid4

import bpy
import numpy as np
from mathutils import Quaternion

from . import compat, nla
from .chain import Chain, Track, bone_poses
from .convert import Character
from .fcurve import bone_path, write_fitted, write_lines
from .inheritance import decomposed
from .keying import EVERY, EVERY_FRAME, STEP, Keying, choose, skeleton
from .progress import told
from .source import Source

SAME_PLACE = 1e-6
"""Locations nearer to zero than this [armature units, relative to the bone's length] need no key."""

PATHS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
"""Where a rotation mode keeps its numbers; every other mode is an Euler order."""

PIECE = 20000
"""Bones that are posed at once: little enough that windows are drawn in between."""

SHARE = 0.7
"""Part of the progress that finding the poses is where keys are chosen after it."""

TAKE = "armature_dynamics_take"
"""The property by which a take's action and copies of it are known."""

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
    source = replace(source, end=source.start + len(poses) - 1)
    chain = Chain(armature, character, source, character.bones if keying.blends else ())
    frames = keying.frames(source)
    weights = [keying.weight(frame, source) for frame in frames]
    channels = [np.empty((len(frames), len(chain.tracks), width)) for width in (3, 4, 3)]
    shown = np.zeros((len(frames), len(character.rig.names), 4, 4)) if keying.mode != EVERY or keying.blends else None
    turns, share = None, 1.0 if keying.mode == EVERY else SHARE
    for rows in _pieces(weights, max(1, PIECE // len(character.rig.names))):
        weight, first = weights[rows.start], frames[rows.start]
        own, worlds = source.between(first, first + rows.stop - rows.start)
        aims = bone_poses(character, worlds, poses[first - source.start :][: len(own)]) if weight > 0 else None
        locals_, posed = chain.posed(own, aims, shown is not None)
        if weight in (0.0, 1.0):
            turns = None
        else:
            locals_, posed, turns = chain.blended(own, locals_, weight, turns)
        for channel, values in zip(channels, decomposed(locals_[:, chain.written])):
            channel[rows] = values
        if shown is not None:
            shown[rows, chain.order] = posed[:, chain.order]
        yield from (share * (i + 1) / len(frames) for i in range(rows.start, rows.stop))
    for track, *columns in zip(chain.tracks.values(), *(channel.swapaxes(0, 1) for channel in channels)):
        track.locations, track.rotations, track.scales = columns
    return (yield from write(armature, character, chain.tracks, source, keying, shown))


def write(armature, character: Character, tracks: dict[int, Track], source: Source, keying: Keying, shown):
    """All curves in one go, into a copy of the source's action so that everything else plays as before. Yields progress
    while it chooses the keys; returns what was Baked."""
    names = character.rig.names
    count = len(keying.frames(source))
    quaternions = np.array([track.rotations for track in tracks.values()], dtype=float).reshape(-1, count, 4)
    rotations = {
        bone: _rotation_channels(armature.pose.bones[names[bone]].rotation_mode, own)
        for bone, own in zip(tracks, _continuous(quaternions))
    }
    choice = None
    if keying.mode != EVERY and tracks:
        locations = np.array([track.locations for track in tracks.values()], dtype=float).reshape(-1, count, 3)
        turns = [values for _, values in rotations.values()]
        choosing = choose(
            keying, skeleton(armature, character, source, list(tracks), shown, locations.swapaxes(0, 1), turns), source
        )
        choice = yield from told(choosing, lambda progress: SHARE + (1 - SHARE) * progress)
    before = compat.playing(armature)
    identifier = compat.slot_identifier(armature)
    name = f"{armature.name} Dynamics"
    action = before.copy() if before else bpy.data.actions.new(name)
    action.name, action[TAKE] = name, uuid4().hex
    # a Manual Frame Range is the source's: exporters would cut the take off there
    action.use_frame_range = action.use_cyclic = False
    holder = compat.channels(armature, action, identifier)
    # a channel without keys would be left to the strips below
    keyed = _clear(holder, [names[bone] for bone in tracks]) | {curve.data_path for curve in nla.curves(armature)}
    # what is constant from the start frame on is keyed up to there
    still = None if keying.blends else source.start - source.first + 1
    groups = {group.name: group for group in holder.groups}
    written = every = 0
    for i, (bone, track) in enumerate(tracks.items()):
        pose_bone = armature.pose.bones[names[bone]]
        group = groups.get(names[bone]) or holder.groups.new(names[bone])
        channel, turns = rotations[bone]
        values = {channel: turns[:still] if track.held else turns}
        if track.roams:
            values["location"] = np.array(track.locations)
        elif not character.rig.connected[bone] and (
            (bone_path(pose_bone.name, "location") in keyed) or _is_placed(pose_bone, track)
        ):
            values["location"] = np.array(track.locations[:still])
        if (
            bone_path(pose_bone.name, "scale") in keyed
            or _length(np.subtract(track.scales[-1], pose_bone.scale)) > SAME_PLACE
        ):
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


def _pieces(weights: list[float], most: int) -> Iterator[slice]:
    """Frames that are taken at once: `most` so many that are all the source's or all the simulation's."""
    start = 0
    for i, weight in enumerate(weights, 1):
        if i == len(weights) or weight not in (0.0, 1.0) or weights[i] != weight or i - start == most:
            yield slice(start, i)
            start = i


def is_copy(action, take) -> bool:
    """Whether an action is a copy of a take's, as a duplicate of the armature may play; either may be None."""
    return bool(action and take and TAKE in action and action[TAKE] == take.get(TAKE))


def _blended(source: Source, keying: Keying, shown) -> dict[int, np.ndarray]:
    """The poses on the simulated frames that are not the simulation's alone."""
    frames = range(source.start, source.end + 1) if keying.blends else ()
    return {frame: shown[frame - source.first] for frame in frames if keying.weight(frame, source) < 1}


def _exact(source: Source, keying: Keying) -> np.ndarray:
    count = source.end - source.start + 1
    if keying.mode != STEP:
        return np.ones(count, dtype=bool)
    return keying.fixed(source)[source.start - source.first :][:count]


def _clear(holder, names: list[str]) -> set[str]:
    """Removes the curves that move these bones; returns the paths that had some."""
    # a rotation mode that changes would leave keys of another
    paths = {bone_path(name, channel) for name in names for channel in (*CHANNELS, "rotation_mode")}
    curves = [curve for curve in holder.fcurves if curve.data_path in paths]
    removed = {curve.data_path for curve in curves}
    for curve in curves:
        holder.fcurves.remove(curve)
    return removed


def _is_placed(pose_bone, track: Track) -> bool:
    """Whether a jointed bone needs a location key: it stands, or would stand, away from its rest place."""
    near = SAME_PLACE * pose_bone.bone.length
    return _length(track.locations[-1]) > near or pose_bone.location.length > near


def _length(vector: np.ndarray) -> float:
    return float(np.linalg.norm(vector))


def _continuous(rotations: np.ndarray) -> np.ndarray:
    """Quaternions (k, F, 4) with signs that do not jump from frame to frame."""
    flips = np.where((rotations[:, 1:] * rotations[:, :-1]).sum(axis=-1) < 0, -1.0, 1.0)
    rotations[:, 1:] *= np.cumprod(flips, axis=1)[..., None]
    return rotations


def _rotation_channels(mode: str, quaternions: np.ndarray) -> tuple[str, np.ndarray]:
    """The channels' name and values (F, 3 or 4) in a bone's rotation mode, without jumps from frame to frame."""
    if mode == "QUATERNION":
        return PATHS[mode], quaternions
    if mode == "AXIS_ANGLE":
        return PATHS[mode], axis_angles(quaternions)
    values = []
    for rotation in map(Quaternion, quaternions):
        values.append(rotation.to_euler(mode, values[-1]) if values else rotation.to_euler(mode))
    return "rotation_euler", np.array(values)


def axis_angles(quaternions: np.ndarray) -> np.ndarray:
    """(F, 4) angle and axis; of all pairs that mean the same turn, the one nearest to the frame before."""
    values = np.empty((len(quaternions), 4))
    axis, angle = np.array([0.0, 1.0, 0.0]), 0.0
    for i, quaternion in enumerate(quaternions):
        sine = np.linalg.norm(quaternion[1:])
        turn = 2 * np.arctan2(sine, quaternion[0])
        if sine > 1e-6:
            now = quaternion[1:] / sine
            if i and now @ axis < 0:
                now, turn = -now, -turn
            axis = now
        angle = turn + 2 * np.pi * np.round((angle - turn) / (2 * np.pi)) if i else turn
        values[i] = angle, *axis
    return values
