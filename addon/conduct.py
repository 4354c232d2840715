"""Trajectory -> Action of a rig that is posed by controls: keys of the controls that carry its deform bones there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Matrix, Vector

from . import bake, compat, control
from .bake import Track
from .convert import Character
from .fcurve import write_steps
from .keying import EVERY, EVERY_FRAME, Keying
from .role import ANIMATED, SIMULATED
from .source import Source, evaluated_poses

ROUNDS = 10
"""Times at most that the controls are written and the rig is looked at."""

ASTRAY = 1e-4
"""Controls that turning alone leaves further from their place than this part of the rig's size are moved, too."""

NEAR = 5e-6
"""Controls this near to where they should be are there: relative to the rig's size, and in turn [rad]. Blender
evaluates them in single precision, one after the other."""


def written_bones(character: Character) -> set[str]:
    """The names of the bones that get keys: those that physics moves, or the controls that carry them."""
    if character.rig.controls is None:
        return bake.written_bones(character)
    names, controls = character.rig.names, _driven(character)
    return {names[bone] for bone in (*controls.values(), *_roots(character, controls)) if bone >= 0}


def _driven(character: Character) -> dict[int, int]:
    """The control of each deform bone that is simulated, or that must hold still: between two that are, or as a switch
    turns from one control to another."""
    rig = character.rig
    needed = {above for bone, role in enumerate(character.roles) if role == SIMULATED for above in rig.ancestors(bone)}
    switched = {
        bone
        for bone in rig.controls.deforms[rig.controls.bodies != rig.controls.controls].tolist()
        if character.carrier[bone] >= 0 and character.roles[int(character.carrier[bone])] == SIMULATED
    }
    return {
        bone: rig.controls.of(bone)
        for bone in sorted(needed | switched)
        if character.carrier[bone] >= 0 and character.roles[bone] != ANIMATED and rig.controls.of(bone) >= 0
    }


def _roots(character: Character, controls: dict[int, int]) -> list[int]:
    """The control that carries all, where something is to be placed in the world that does not place itself."""
    root = character.rig.controls.root
    free = any(link.joint.kind == "free" and not link.keyed for link in character.links)
    return [root] if free and root >= 0 and root not in controls.values() else []


@dataclass(frozen=True)
class _Hold:
    """A control: its number in the rig, that of its `parent`, and of the control `above` it that moves it, or -1; the
    `deform` bone that it carries, and that bone's `seat` (4, 4) in it; whether it `roams`."""

    bone: int
    parent: int
    above: int
    deform: int
    seat: Matrix
    roams: bool


def conduct(
    armature, character: Character, source: Source, poses: np.ndarray, keying: Keying = EVERY_FRAME
) -> Iterator[float]:
    """Like `bake.bake`, for a rig whose deform bones are carried by controls. How a control hangs from those above it
    is seen on the rig itself: written, looked at, and corrected until all are in place."""
    source = replace(source, end=source.start + len(poses) - 1)
    holds = _holds(armature, character, source)
    frames = keying.frames(source)
    aims = _aims(character, source, poses, holds)
    begin = source.at(source.start)[0]
    seen = np.repeat(begin[None], len(frames), axis=0)
    played, identifier = bake.playing(armature), compat.slot_identifier(armature)
    before = control.switched(armature)
    size = float(np.ptp(begin[:, :3, 3], axis=0).max())
    action = None
    try:
        for turn in range(ROUNDS):
            tracks, stood = _solved(armature, character, source, keying, holds, aims, seen)
            baked = yield from _quick(_written(armature, character, tracks, source, before))
            action = baked.action
            seen = yield from _seen(armature, character.rig, source, frames, turn)
            if _off(holds, seen, stood, size) < NEAR:
                freed = _freed(armature, character, source, keying, holds, aims, seen, ASTRAY * size)
                if freed == holds:
                    break
                holds = freed
            if turn < ROUNDS - 1:
                compat.assign_action(armature, played, identifier, exact=True)
                bpy.data.actions.remove(action)
                action = None
        if keying.mode != EVERY or keying.blends:
            compat.assign_action(armature, played, identifier, exact=True)
            bpy.data.actions.remove(action)
            action = None
            shown = _expected(holds, seen, stood)
            baked = yield from _quick(_written(armature, character, tracks, source, before, keying, shown))
            action = baked.action
    except BaseException:
        if action is not None:
            compat.assign_action(armature, played, identifier, exact=True)
            bpy.data.actions.remove(action)
        raise
    return baked


def _quick(steps: Iterator[float]):
    """Runs a generator of progress that takes a small part of the work; returns what it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value
        yield 1.0


def _holds(armature, character: Character, source: Source) -> list[_Hold]:
    """The controls that are written, those above before those that they move."""
    rig, bones = character.rig, armature.data.bones
    driven = _driven(character)
    roots = _roots(character, driven)
    names = [rig.names[bone] for bone in (*driven.values(), *roots)]
    above = {name: own & set(names) for name, own in control.upstreams(armature, names).items()}
    level = {name: len(above[name]) for name in names}
    links = zip(character.bones, character.links)
    free = {bone for bone, link in links if link.joint.kind == "free" and not link.keyed}
    rest = {name: Matrix(bones[name].matrix_local) for name in rig.names}
    holds = []
    for deform, bone in driven.items():
        seat = rest[rig.names[bone]].inverted() @ rest[rig.names[deform]]
        roams = bone == rig.controls.root or (deform in free and not roots)
        holds.append((level[rig.names[bone]], bone, deform, seat, roams))
    for root in roots:
        # what hangs from the root itself turns with it: so its children need no place of their own
        first = min(holds, key=lambda hold: (hold[0], hold[1]))[2]
        begin = source.at(source.start)[0]
        holds.append((level[rig.names[root]], root, first, Matrix(np.linalg.inv(begin[root]) @ begin[first]), True))
    result = []
    for _, bone, deform, seat, roams in sorted(holds, key=lambda hold: hold[:2]):
        name = rig.names[bone]
        nearest = max(above[name], key=lambda other: level[other], default=None)
        parent = bones[name].parent
        result.append(
            _Hold(bone, rig.index[parent.name] if parent else -1, rig.index.get(nearest, -1), deform, seat, roams)
        )
    return result


def _aims(character: Character, source: Source, poses: np.ndarray, holds: list[_Hold]) -> dict[int, np.ndarray]:
    """Where the deform bones shall be (F, 4, 4) in the armature's space, from the source's start frame on."""
    targets = bake.bone_poses(character, source, poses)
    begin = source.at(source.start)[0]
    aims = {}
    for hold in holds:
        carrier = int(character.carrier[hold.deform])
        kept = np.linalg.inv(begin[carrier]) @ begin[hold.deform]
        aims[hold.deform] = targets[:, hold.deform] if carrier == hold.deform else targets[:, carrier] @ kept
    return aims


def _solved(armature, character, source, keying, holds, aims, seen) -> tuple[dict[int, Track], list[dict]]:
    """Tracks of the controls as they would be if each hung from those above it as `seen` (F, n, 4, 4); and where they
    stand then, frame by frame, from the start frame on."""
    rig = character.rig
    bones = [armature.data.bones[name] for name in rig.names]
    tracks = {hold.bone: Track(roams=hold.roams) for hold in holds}
    begin, _ = source.at(source.start)
    stood: list[dict[int, Matrix]] = []
    scales: dict[int, Vector] = {}
    for i, frame in enumerate(keying.frames(source)):
        own, _ = source.at(frame)
        weight = keying.weight(frame, source)
        stands: dict[int, Matrix] = {}
        stood.append({} if frame < source.start else stands)
        for hold in holds:
            track = tracks[hold.bone]
            if frame < source.start:
                track.append(bake.local_of(bones, own, hold.bone, hold.parent))
                continue
            above = _parent_pose(hold, seen[i], stands)
            start = bake.local_of(bones, begin, hold.bone, hold.parent)
            carries = hold.bone in rig.controls.controls

            def needed(pose: np.ndarray) -> Matrix:
                """The control's own transform for a deform bone's pose, as far as it is one of the controls' own."""
                return bake.unposed(bones, hold.bone, hold.parent, above, Matrix(pose) @ hold.seat.inverted())  # noqa: B023

            if carries and hold.bone not in scales:
                # inverse kinematics stretches limbs, in Rigify always a little: controls that take over keep that
                scales[hold.bone] = needed(begin[hold.deform]).to_scale()
            locals_ = []
            if weight < 1:
                # where the source's animation has the deform bone, whichever way the rig brought it there
                aim = needed(own[hold.deform]) if carries else bake.local_of(bones, own, hold.bone, hold.parent)
                locals_.append(_held(start, aim, aim.to_scale(), hold.roams))
            if weight > 0:
                aim = needed(aims[hold.deform][min(frame, source.end) - source.start])
                locals_.append(_held(start, aim, scales.get(hold.bone, start.to_scale()), hold.roams))
            local = track.between(*locals_, weight) if len(locals_) == 2 else locals_[0]
            if len(locals_) == 1:
                track.turn = None
            track.append(local)
            stands[hold.bone] = bake.to_pose(bones, hold.bone, hold.parent, above, local)
    return tracks, stood


def _held(start: Matrix, aim: Matrix, scale: Vector, roams: bool) -> Matrix:
    return Matrix.LocRotScale((aim if roams else start).to_translation(), aim.to_quaternion(), scale)


def _parent_pose(hold: _Hold, seen: np.ndarray, stands: dict[int, Matrix]) -> dict[int, Matrix]:
    """Where a control's parent is, as it hangs from the control above."""
    if hold.parent < 0:
        return {}
    parent = Matrix(seen[hold.parent])
    if hold.above >= 0:
        parent = stands[hold.above] @ Matrix(seen[hold.above]).inverted() @ parent
    return {hold.parent: parent}


def _written(
    armature, character, tracks, source, before: control.Switches, keying: Keying = EVERY_FRAME, shown=None
) -> Iterator[float]:
    """Writes tracks and switches, which are as `before` until the start frame; returns what was Baked."""
    baked = yield from bake.write(armature, character, tracks, source, keying, shown)
    holder = compat.channels(armature, baked.action, compat.slot_identifier(armature))
    bodies = {
        character.rig.names[body]
        for own, body in zip(character.rig.controls.controls, character.rig.controls.bodies)
        if own in tracks
    }
    for (bone, name), value in control.needed_switches(armature, bodies).items():
        path = control.switch_path(bone, name)
        old = next((curve for curve in holder.fcurves if curve.data_path == path), None)
        frames = range(source.first, source.start)
        values = [old.evaluate(frame) for frame in frames] if old else [before[bone, name] for _ in frames]
        if old:
            holder.fcurves.remove(old)
        write_steps(holder, path, source.first, [*values, value])
    return baked


def _seen(armature, rig, source: Source, frames: range, turn: int) -> Iterator[float]:
    """All bones' poses (F, n, 4, 4) as Blender evaluates them; before the start frame as in the source."""
    scene = bpy.context.scene
    current, subframe = scene.frame_current, scene.frame_subframe
    seen = np.empty((len(frames), len(rig.names), 4, 4))
    try:
        for i, frame in enumerate(frames):
            if frame < source.start:
                seen[i] = source.at(frame)[0]
                continue
            scene.frame_set(frame)
            seen[i] = evaluated_poses(armature, rig)[0]
            yield (turn + (i + 1) / len(frames)) / ROUNDS
    finally:
        scene.frame_set(current, subframe=subframe)
    return seen


def _expected(holds: list[_Hold], seen: np.ndarray, stood: list[dict[int, Matrix]]) -> np.ndarray:
    """What was `seen` (F, n, 4, 4), with the deform bones where the controls were meant to bring them."""
    shown = seen.copy()
    for own, stands in zip(shown, stood):
        for hold in holds if stands else ():
            own[hold.deform] = stands[hold.bone] @ hold.seat
    return shown


def _freed(armature, character, source, keying, holds, aims, seen, far: float) -> list[_Hold]:
    """The controls, with those free to move that do not come to their place by turning, as far as the rigger lets them
    and nothing above them is out of place."""
    rig = character.rig
    alone = [i for i, frame in enumerate(keying.frames(source)) if keying.weight(frame, source) == 1.0]
    frames = [keying.frames(source)[i] - source.start for i in alone]
    astray: set[int] = set()
    for hold in holds:
        wanted = aims[hold.deform][frames] @ np.linalg.inv(np.array(hold.seat))
        away = np.linalg.norm(wanted[:, :3, 3] - seen[alone, hold.bone, :3, 3], axis=1).max(initial=0.0)
        if away > far or hold.above in astray:
            astray.add(hold.bone)
    return [
        replace(hold, roams=True)
        if hold.bone in astray and hold.above not in astray and _may_move(armature, rig.names[hold.bone])
        else hold
        for hold in holds
    ]


def _may_move(armature, name: str) -> bool:
    bone = armature.pose.bones[name]
    return not (bone.bone.use_connect or any(bone.lock_location))


def _off(holds: list[_Hold], seen: np.ndarray, stood: list[dict], size: float) -> float:
    """How far controls are from where they were to stand, the worst of all, relative to the size or in turn."""
    worst = 0.0
    for own, stands in zip(seen, stood):
        for hold in holds if stands else ():
            away = own[hold.bone] - np.array(stands[hold.bone])
            worst = max(worst, float(np.linalg.norm(away[:3, 3])) / size, float(np.abs(away[:3, :3]).max()))
    return worst
