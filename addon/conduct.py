"""Trajectory -> Action of a rig that is posed by controls: keys of the controls that carry its deform bones there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from . import bake, compat, control
from .chain import Track, bone_poses
from .convert import Character
from .curl import seen_curls
from .fcurve import write_steps
from .hold import Hold, holds_of
from .inheritance import local_of, to_pose, unposed
from .keying import EVERY, EVERY_FRAME, REDUCED, Keying
from .progress import told
from .rig import angle_of, rigid
from .source import Source, evaluated_poses

ROUNDS = 10
"""Times at most that the controls are written and the rig is looked at."""

ASTRAY = 1e-4
"""Controls that turning alone leaves further from their place than this part of the rig's size are moved, too."""

NEAR = 5e-6
"""Controls this near to where they should be are there: relative to the rig's size, and in turn [rad]. Blender
evaluates them in single precision, one after the other."""

SETTLED = 1e-4
"""Controls this near that do not come nearer are there, too: along long chains rounding adds up."""

TIGHTENED = 3
"""Times at most that fewer keys are chosen again, within less, where they change more than they may."""


def conduct(
    armature, character: Character, source: Source, poses: np.ndarray, keying: Keying = EVERY_FRAME
) -> Iterator[float]:
    """Like `bake.bake`, for a rig whose deform bones are carried by controls. How a control hangs from those above it
    is seen on the rig itself: written, looked at, and corrected until all are in place."""
    source = replace(source, end=source.start + len(poses) - 1)
    holds = holds_of(armature, character, source)
    frames = keying.frames(source)
    aims = _aims(character, source, poses, holds)
    begin = source.at(source.start)[0]
    seen = np.repeat(begin[None], len(frames), axis=0)
    played, identifier = compat.playing(armature), compat.slot_identifier(armature)
    before = control.switched(armature)
    size = float(np.ptp(begin[:, :3, 3], axis=0).max())
    action, curls, off = None, {}, np.inf

    def take_back() -> None:
        nonlocal action
        compat.assign_action(armature, played, identifier, exact=True)
        bpy.data.actions.remove(action)
        action = None

    try:
        for turn in range(ROUNDS):
            solving = _solved(armature, character, source, keying, holds, aims, seen, curls)
            tracks, stood = yield from _quick(solving, turn / ROUNDS)
            baked = yield from _quick(_written(armature, character, tracks, source, before), turn / ROUNDS)
            action = baked.action
            seen = yield from _seen(armature, character.rig, source, frames, turn)
            curls = seen_curls(armature, character.rig, holds, seen, tracks)
            last, off = off, _off(holds, seen, stood, size)
            if off < NEAR or 0.5 * last < off < SETTLED:
                freed = _freed(armature, character, source, keying, holds, aims, seen, ASTRAY * size)
                if freed == holds:
                    break
                holds = freed
            if turn < ROUNDS - 1:
                take_back()
        if keying.mode != EVERY or keying.blends:
            take_back()
            shown, chosen = _expected(holds, seen, stood), keying
            for turn in range(TIGHTENED + 1):
                writing = _written(armature, character, tracks, source, before, chosen, shown)
                baked = yield from _quick(writing, 1.0)
                action = baked.action
                if keying.mode != REDUCED or turn == TIGHTENED:
                    break
                seen = yield from _quick(_seen(armature, character.rig, source, frames, turn), 1.0)
                excess = _excess(holds, seen, shown, source, keying)
                if excess <= 1.0:
                    break
                chosen = replace(chosen, meters=chosen.meters / excess, radians=chosen.radians / excess)
                take_back()
    except BaseException:
        if action is not None:
            take_back()
        raise
    return baked


def _quick(steps: Iterator[float], progress: float):
    """Runs a generator that takes little of the work and tells no progress of its own; returns what it returns."""
    return told(steps, lambda _: progress)


def _aims(character: Character, source: Source, poses: np.ndarray, holds: list[Hold]) -> dict[int, np.ndarray]:
    """Where the deform bones shall be (F, 4, 4) in the armature's space, from the source's start frame on."""
    targets = bone_poses(character, source.between(source.start, source.start + len(poses))[1], poses)
    begin = source.at(source.start)[0]
    aims = {}
    for hold in holds:
        carrier = int(character.carrier[hold.deform])
        kept = np.linalg.inv(begin[carrier]) @ begin[hold.deform]
        aims[hold.deform] = targets[:, hold.deform] if carrier == hold.deform else targets[:, carrier] @ kept
    return aims


def _without(turn: Quaternion, local: Matrix) -> Matrix:
    location, rotation, scale = local.decompose()
    return Matrix.LocRotScale(location, turn.inverted() @ rotation, scale)


def _solved(armature, character, source, keying, holds, aims, seen, curls) -> Iterator[None]:
    """Finds tracks of the controls as they would be if each hung from those above it as `seen` (F, n, 4, 4), and its
    constraints added turns as in these curls; returns the tracks, and where the controls stand then, frame by frame,
    from the start frame on."""
    rig = character.rig
    bones = [armature.data.bones[name] for name in rig.names]
    tracks = {hold.bone: Track(roams=hold.roams) for hold in holds}
    begin, _ = source.at(source.start)
    starts = {hold.bone: local_of(bones, begin, hold.bone, hold.parent) for hold in holds}
    stood: list[dict[int, Matrix]] = []
    scales: dict[int, Vector] = {}
    for i, frame in enumerate(keying.frames(source)):
        own, _ = source.at(frame)
        weight = keying.weight(frame, source)
        stands: dict[int, Matrix] = {}
        locals_: dict[int, Matrix] = {}
        stood.append({} if frame < source.start else stands)
        for hold in holds:
            track, curl = tracks[hold.bone], curls.get(hold.bone)
            if frame < source.start:
                local = local_of(bones, own, hold.bone, hold.parent)
                track.append(_without(curl.turns[i], local) if curl else local)
                continue
            above, start = parent_pose(hold, seen[i], stands), starts[hold.bone]
            if hold.carries and hold.bone not in scales:
                # inverse kinematics stretches limbs, in Rigify always a little: controls that take over keep that
                scales[hold.bone] = brought(bones, hold, above, begin[hold.deform]).to_scale()
            if weight < 1:
                # where the source's animation has the deform bone, whichever way the rig brought it there
                if hold.carries:
                    there = brought(bones, hold, above, own[hold.deform])
                else:
                    there = local_of(bones, own, hold.bone, hold.parent)
                local = there = kept(start, there, there.to_scale(), hold.roams)
            if weight > 0:
                aim = brought(bones, hold, above, aims[hold.deform][min(frame, source.end) - source.start])
                local = kept(start, aim, scales.get(hold.bone, start.to_scale()), hold.roams)
            if 0 < weight < 1:
                local = track.between(there, local, weight)
            else:
                track.turn = None
            track.append(_without(curl.on(i, locals_), local) if curl else local)
            locals_[hold.bone] = local
            stands[hold.bone] = to_pose(bones, hold.bone, hold.parent, above, local)
        yield
    return tracks, stood


def brought(bones, hold: Hold, above: dict[int, Matrix], pose: np.ndarray) -> Matrix:
    """A control's own transform that brings its deform bone to a pose (4, 4) in the armature's space."""
    return unposed(bones, hold.bone, hold.parent, above, Matrix(pose) @ hold.seat.inverted())


def kept(start: Matrix, aim: Matrix, scale: Vector, roams: bool) -> Matrix:
    """What a control's channels will hold: only where it roams, its location is not that of the start."""
    return Matrix.LocRotScale((aim if roams else start).to_translation(), aim.to_quaternion(), scale)


def parent_pose(hold: Hold, seen: np.ndarray, stands: dict[int, Matrix]) -> dict[int, Matrix]:
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


def _expected(holds: list[Hold], seen: np.ndarray, stood: list[dict[int, Matrix]]) -> np.ndarray:
    """What was `seen` (F, n, 4, 4), with the deform bones where the controls were meant to bring them."""
    shown = seen.copy()
    for own, stands in zip(shown, stood):
        for hold in holds if stands else ():
            own[hold.deform] = stands[hold.bone] @ hold.seat
    return shown


def _excess(holds: list[Hold], seen: np.ndarray, shown: np.ndarray, source: Source, keying: Keying) -> float:
    """How many times as far as they may the deform bones are (F, n, 4, 4) from where they were meant to be, by fewer
    keys: controls that turn each other along add up what is left out."""
    meters, radians = keying.tolerance
    if not (meters > 0 and radians > 0):
        return 1.0
    deforms = [hold.deform for hold in holds if hold.carries]
    seen, shown = seen[:, deforms], shown[:, deforms]
    scale = np.linalg.norm(source.worlds[0, :3, :3], axis=0).max()
    place = scale * np.linalg.norm(seen[..., :3, 3] - shown[..., :3, 3], axis=-1).max(initial=0.0)
    chord = np.linalg.norm((rigid(seen) - rigid(shown))[..., :3, :3], axis=(-2, -1)).max(initial=0.0)
    return float(max(place / meters, angle_of(chord) / radians))


def _freed(armature, character, source, keying, holds, aims, seen, far: float) -> list[Hold]:
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


def _off(holds: list[Hold], seen: np.ndarray, stood: list[dict], size: float) -> float:
    """How far controls are from where they were to stand, the worst of all, relative to the size or in turn."""
    numbers = [hold.bone for hold in holds]
    alone = [i for i, stands in enumerate(stood) if stands]
    meant = np.array([[stood[i][bone] for bone in numbers] for i in alone]).reshape(-1, len(numbers), 4, 4)
    away = seen[alone][:, numbers] - meant
    place = np.linalg.norm(away[..., :3, 3], axis=-1).max(initial=0.0) / size
    return max(float(place), float(np.abs(away[..., :3, :3]).max(initial=0.0)))
