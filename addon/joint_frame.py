"""Where each joint's frame stands and how far it may move: axes from the bend of limbs, ranges from the preset.

Frames are those of the links: y along the segment, x the flexion axis (a hinge's axis), origin at the joint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..core.spatial import cross
from .anatomy import Anatomy
from .preset import preset
from .rig import Rig

TRUSTED_BEND = 0.1
"""Sine of the bend at which a limb's own bend and the anatomical axis weigh equally when a hinge's axis is found."""


@dataclass(frozen=True)
class JointFrame:
    """`rest` (3, 3): the link's rotation in the world in the armature's rest pose; `zero` (3, 3): its rotation there
    with all joint coordinates zero; `lower`, `upper` (d,) [rad] limits about zero."""

    kind: str
    rest: np.ndarray
    zero: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def segment_ends(rig: Rig, anatomy: Anatomy | None, skin: dict[int, np.ndarray], carrier: np.ndarray) -> np.ndarray:
    """The far end (n, 3) [m] of each carrying bone's segment: the joint of its main child, or the end of its flesh."""
    ends = rig.tails.copy()
    weight = np.ones(len(rig.names), dtype=int)
    for bone, parent in reversed(list(enumerate(rig.parents))):
        if parent >= 0:
            weight[parent] += weight[bone]
    for bone in range(len(rig.names)):
        if carrier[bone] != bone:
            continue
        carried = [
            other
            for other in _next(rig, carrier, bone)
            if (np.abs(rig.heads[other] - rig.heads[bone]) > 1e-9 + 1e-5 * np.abs(rig.heads[bone])).any()
        ]
        trunk = [other for other in carried if anatomy and anatomy.segments.get(other) in ("spine", "neck", "head")]
        if trunk or carried:
            ends[bone] = rig.heads[max(trunk or carried, key=lambda other: weight[other])]
        else:
            ends[bone] = _free_end(rig, skin, carrier, bone)
    return ends


def _next(rig: Rig, carrier: np.ndarray, bone: int) -> Iterator[int]:
    """The carrying bones that hang from what a bone carries."""
    pending = list(rig.children[bone])
    while pending:
        other = pending.pop()
        if carrier[other] == other:
            yield other
        else:
            pending.extend(rig.children[other])


def _free_end(rig: Rig, skin: dict[int, np.ndarray], carrier: np.ndarray, bone: int) -> np.ndarray:
    head = rig.heads[bone]
    own = np.flatnonzero(carrier == bone)
    flesh = [skin[other] for other in own if other in skin]
    if flesh:
        along = np.concatenate(flesh).mean(axis=0) - head
        if np.linalg.norm(along) > 1e-9:
            return head + 2.0 * along
    ends = rig.tails[own]
    return ends[np.argmax(np.linalg.norm(ends - head, axis=1))]


def joint_frames(rig: Rig, anatomy: Anatomy | None, carrier: np.ndarray, ends: np.ndarray) -> dict[int, JointFrame]:
    """The frame of every carrying bone."""
    bones = [bone for bone in range(len(rig.names)) if carrier[bone] == bone]
    directions = {bone: _unit(ends[bone] - rig.heads[bone], rig.rest[bone, :3, 1]) for bone in bones}
    human = _human_frames(rig, anatomy, carrier, directions) if anatomy else {}
    return {bone: human.get(bone) or _creature_frame(rig.rest[bone, :3, :3], directions[bone]) for bone in bones}


def _creature_frame(bone: np.ndarray, along: np.ndarray) -> JointFrame:
    """Ranges about the rest pose, the bone's own axes kept as far as the segment's direction allows."""
    ranges = preset("creature")
    x = bone[:, 0] if abs(bone[:, 0] @ along) < 0.9 else bone[:, 2]
    rotation = _frame(along, x)
    lower, upper = np.radians([ranges[axis] for axis in "xyz"]).T
    return JointFrame("spherical", rotation, rotation, lower, upper)


def _human_frames(rig: Rig, anatomy: Anatomy, carrier: np.ndarray, directions: dict) -> dict[int, JointFrame]:
    segments = preset("human")["segments"]
    present = {bone: anatomy.segments[bone] for bone in directions if bone in anatomy.segments}
    hinges = {
        bone: _hinge_axis(anatomy, bone, directions[_above(rig, carrier, bone)], directions[bone])
        for bone, name in present.items()
        if segments[name]["joint"] == "hinge" and _above(rig, carrier, bone) >= 0
    }
    frames = {}
    for bone, name in present.items():
        segment = segments[name]
        flexion, turn = _reference(anatomy, bone, directions[bone])
        lower, upper = _ranges(segment, anatomy.side[bone], list(present.values()).count(name))
        if bone in hinges:
            axis, angle = hinges[bone]
            rest = _frame_about(axis, directions[bone])
            frames[bone] = JointFrame("hinge", rest, _turn(axis, -angle) @ rest, lower[:1], upper[:1])
            continue
        # the hinge below says how the segment is twisted: a thigh's flexion axis is against the knee's
        below = [hinge for hinge in hinges if _above(rig, carrier, hinge) == bone]
        x = turn @ flexion
        if below and segment.get("standing"):
            axis = hinges[below[0]][0]
            x = axis * np.sign(axis @ x)
        rest = _frame(directions[bone], x)
        zero = _standing(anatomy, segment, flexion, bone) if segment.get("standing") else rest
        frames[bone] = JointFrame("spherical", rest, zero, lower, upper)
    return frames


def _above(rig: Rig, carrier: np.ndarray, bone: int) -> int:
    parent = rig.parents[bone]
    return int(carrier[parent]) if parent >= 0 else -1


def _mirrored(anatomy: Anatomy, bone: int, along, flexion) -> tuple[np.ndarray, np.ndarray]:
    """The preset's left-hand direction and axis of rotation in the world, mirrored for the right side."""
    along, flexion = np.array(along, dtype=float), np.array(flexion, dtype=float)
    if anatomy.side[bone] < 0:
        along, flexion = along * (-1, 1, 1), flexion * (1, -1, -1)
    return anatomy.axes @ along, anatomy.axes @ flexion


def _reference(anatomy: Anatomy, bone: int, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The flexion axis in the reference pose, and the shortest turn from there to the segment's direction at rest."""
    segment = preset("human")["segments"][anatomy.segments[bone]]
    along, flexion = _mirrored(anatomy, bone, segment["along"], segment["flexion"])
    return flexion, _shortest_turn(along, direction, np.cross(along, flexion))


def _hinge_axis(anatomy: Anatomy, bone: int, upper: np.ndarray, lower: np.ndarray) -> tuple[np.ndarray, float]:
    """A knee's or elbow's axis (3,) in the world and the angle [rad] by which it is bent at rest.

    A bent limb shows its axis; a straight one, or one bent the wrong way, gets that of the anatomy.
    """
    segment = preset("human")["segments"][anatomy.segments[bone]]
    along, flexion = _mirrored(anatomy, bone, segment["along"], segment["flexion"])
    axis = _shortest_turn(along, upper, np.cross(along, flexion)) @ flexion
    bend = np.cross(upper, lower)
    if bend @ axis > 0:
        axis = _unit(bend + TRUSTED_BEND * axis, axis)
    flat = lower - (lower @ axis) * axis
    return axis, float(np.arctan2(axis @ np.cross(upper, flat), upper @ flat))


def _standing(anatomy: Anatomy, segment: dict, flexion: np.ndarray, bone: int) -> np.ndarray:
    """The rotation (3, 3) of a limb's zero: hanging down, or turned from there to the middle of its range."""
    along, _ = _mirrored(anatomy, bone, segment["along"], segment["flexion"])
    zero = _frame(along, flexion)
    neutral = segment.get("neutral")
    if neutral:
        side, (_, front, up) = anatomy.side[bone], anatomy.axes.T
        outward = _turn(front, side * np.radians(neutral["abduction"]))
        zero = _turn(up, -side * np.radians(neutral["forward"])) @ outward @ zero
    return zero


def _ranges(segment: dict, side: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Limits (3,) [rad]: the preset's for the left side, mirrored for the right, shared among the spine's joints."""
    ranges = np.radians([segment.get(axis, (0, 0)) for axis in "xyz"])
    if side < 0:
        ranges[1:] = -ranges[1:, ::-1]
    if segment.get("spread"):
        ranges = ranges / count
    return ranges[:, 0], ranges[:, 1]


def _unit(vector: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vector)
    return vector / length if length > 1e-9 else otherwise


def _square(vector: np.ndarray, near: np.ndarray) -> np.ndarray:
    """The unit vector at right angles to another that is nearest to a third; some, where that is along it."""
    square = near - (near @ vector) * vector
    length = np.linalg.norm(square)
    return square / length if length > 1e-9 else _square(vector, np.eye(3)[np.argmin(np.abs(vector))])


def _frame(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A rotation whose y is exactly `y` and whose x is as near as possible to `x`."""
    x = _square(y, x)
    return np.array([x, y, cross(x, y)]).T


def _frame_about(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A rotation whose x is exactly `x` and whose y is as near as possible to `y`."""
    y = _square(x, y)
    return np.array([x, y, cross(x, y)]).T


def _turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """The rotation (3, 3) by `angle` [rad] about a unit axis."""
    k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def _shortest_turn(start: np.ndarray, end: np.ndarray, half_turn: np.ndarray) -> np.ndarray:
    """The rotation (3, 3) that takes one unit vector to another; opposite ones are turned about `half_turn`."""
    axis = np.cross(start, end)
    sine = np.linalg.norm(axis)
    if sine < 1e-6:
        return np.eye(3) if start @ end > 0 else _turn(half_turn, np.pi)
    return _turn(axis / sine, np.arctan2(sine, start @ end))
