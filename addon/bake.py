"""Trajectory -> Action: an armature's bones keyed on whole frames, each in its own rotation mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from . import compat, nla
from .convert import Character
from .fcurve import write_fitted, write_lines
from .keying import EVERY, EVERY_FRAME, STEP, Keying, Turn, between, choose, skeleton
from .rig import rigid
from .role import ANIMATED, SIMULATED
from .source import Source

SAME_PLACE = 1e-6
"""Locations nearer to zero than this [armature units, relative to the bone's length] need no key."""

PATHS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
"""Where a rotation mode keeps its numbers; every other mode is an Euler order."""

SHARE = 0.7
"""Part of the progress that finding the poses is where keys are chosen after it."""

CHANNELS = ("location", "scale", "rotation_euler", *PATHS.values())


@dataclass
class Track:
    """The local transforms of one bone, one a frame.

    `roams`: not jointed to anything, its location is keyed throughout. `held`: stays as it is from the start frame on.
    `turn`: from the source's rotation to the simulated one, at the last frame of a blend.
    """

    roams: bool = False
    held: bool = False
    locations: list[Vector] = field(default_factory=list)
    rotations: list[Quaternion] = field(default_factory=list)
    scales: list[Vector] = field(default_factory=list)
    turn: Turn | None = None

    def append(self, local: Matrix) -> None:
        location, rotation, scale = local.decompose()
        self.locations.append(location)
        self.rotations.append(rotation)
        self.scales.append(scale)

    def between(self, source: Matrix, simulated: Matrix, weight: float) -> Matrix:
        local, self.turn = between(source, simulated, weight, self.turn)
        return local


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
    tracks = _tracks(character)
    targets = bone_poses(character, source, poses)
    chain = _chain(character, character.bones if keying.blends else ())
    bones = [armature.data.bones[name] for name in character.rig.names]
    source = replace(source, end=source.start + len(poses) - 1)
    begin, _ = source.at(source.start)
    starts = {bone: local_of(bones, begin, bone, int(character.rig.parents[bone])) for bone in chain if bone in tracks}
    frames = keying.frames(source)
    shown = np.zeros((len(frames), len(bones), 4, 4)) if keying.mode != EVERY or keying.blends else None
    for i, frame in enumerate(frames):
        posed: dict[int, Matrix] = {}
        own, _ = source.at(frame)
        weight = keying.weight(frame, source)
        blended: dict[int, Matrix] = {} if 0 < weight < 1 else posed
        for bone in chain:
            parent = int(character.rig.parents[bone])
            track = tracks.get(bone)
            if character.carrier[bone] < 0:
                posed[bone] = blended[bone] = Matrix(own[bone])
                continue
            if track is None or weight == 0:
                local = local_of(bones, own, bone, parent)
            else:
                local = starts[bone]
                if not track.held:
                    aim = unposed(bones, bone, parent, posed, Matrix(targets[frame - source.start, bone]))
                    local = aimed(local, aim, track.roams)
            posed[bone] = to_pose(bones, bone, parent, posed, local)
            if blended is not posed:
                if track is not None:
                    local = track.between(local_of(bones, own, bone, parent), local, weight)
                blended[bone] = to_pose(bones, bone, parent, blended, local)
            elif track is not None:
                track.turn = None
            if track is not None:
                track.append(local)
        if shown is not None:
            shown[i, chain] = [blended[bone] for bone in chain]
        yield (1.0 if keying.mode == EVERY else SHARE) * (i + 1) / len(frames)
    return (yield from write(armature, character, tracks, source, keying, shown))


def _chain(character: Character, others: Iterable[int] = ()) -> list[int]:
    """Every bone whose pose is needed: the simulated ones, the others, and all above them, parents first."""
    needed = [bone for bone, role in enumerate(character.roles) if role == SIMULATED]
    found: set[int] = set()
    for bone in (*needed, *others):
        for above in map(int, character.rig.ancestors(bone)):
            if above in found:
                break
            found.add(above)
    return sorted(found)


def _tracks(character: Character) -> dict[int, Track]:
    """A track for each bone that is written: the simulated ones, and those between them that must hold still."""
    tracks = {}
    for bone in _chain(character):
        parent = character.rig.parents[bone]
        if character.roles[bone] == SIMULATED:
            tracks[bone] = Track(roams=parent < 0 or character.carrier[parent] < 0)
        elif character.carrier[bone] >= 0 and character.roles[bone] != ANIMATED:
            tracks[bone] = Track(held=True)
    return tracks


def written_bones(character: Character) -> set[str]:
    """The names of the bones that get keys."""
    return {character.rig.names[bone] for bone in _tracks(character)}


def bone_poses(character: Character, source: Source, poses: np.ndarray) -> np.ndarray:
    """Poses (F, bones, 4, 4) of the linked bones in the armature's space, without scale."""
    worlds = np.array([source.at(source.start + i)[1] for i in range(len(poses))])
    turns = np.swapaxes(rigid(worlds)[:, None, :3, :3], -1, -2)
    result = np.zeros((len(poses), len(character.rig.names), 4, 4))
    result[:, character.bones] = np.linalg.inv(worlds)[:, None] @ poses
    result[:, character.bones, :3, :3] = turns @ poses[..., :3, :3] @ np.swapaxes(character.offsets, -1, -2)
    return result


def local_of(bones, poses: np.ndarray, bone: int, parent: int) -> Matrix:
    """A bone's own transform (what its channels hold) in evaluated poses (n, 4, 4)."""
    above = {} if parent < 0 else {parent: Matrix(poses[parent])}
    return unposed(bones, bone, parent, above, Matrix(poses[bone]))


def unposed(bones, bone: int, parent: int, posed: dict[int, Matrix], pose: Matrix) -> Matrix:
    """Blender's own way from a pose in the armature's space to the bone's channels: all its inheritance flags count."""
    return _converted(bones, bone, parent, posed, pose, invert=True)


def to_pose(bones, bone: int, parent: int, posed: dict[int, Matrix], local: Matrix) -> Matrix:
    return _converted(bones, bone, parent, posed, local, invert=False)


def _converted(bones, bone: int, parent: int, posed: dict[int, Matrix], matrix: Matrix, *, invert: bool) -> Matrix:
    rest = bones[bone].matrix_local
    if parent < 0:
        return bones[bone].convert_local_to_pose(matrix, rest, invert=invert)
    return bones[bone].convert_local_to_pose(
        matrix, rest, parent_matrix=posed[parent], parent_matrix_local=bones[parent].matrix_local, invert=invert
    )


def aimed(start: Matrix, aim: Matrix, roams: bool) -> Matrix:
    """What the channels will hold: the scale, and the location of a jointed bone, stay those of the start pose."""
    location, _, scale = start.decompose()
    return Matrix.LocRotScale(aim.to_translation() if roams else location, aim.to_quaternion(), scale)


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
