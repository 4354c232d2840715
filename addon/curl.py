"""Turns that constraints add to controls' own, as those of a tail's controls do that curl along with the one above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mathutils import Euler, Matrix, Quaternion

from . import control
from .chain import Track
from .hold import Hold
from .inheritance import local_of


@dataclass(frozen=True)
class Curl:
    """The `turns` that are added to a control's own, one a frame. Where they are copied from a control's own transform,
    its number is `leader`, else -1; what was `copied` then, one a frame, about these `axes` (1 as it is, -1 inverted, 0
    left out) in this Euler `order`."""

    turns: list[Quaternion]
    leader: int
    axes: tuple[int, int, int]
    order: str
    copied: list[Quaternion]

    def on(self, frame: int, locals_: dict[int, Matrix]) -> Quaternion:
        """The turn on a frame, counted as the turns are, where controls' own transforms will be `locals_`."""
        if self.leader not in locals_:
            return self.turns[frame]
        now = _copied(locals_[self.leader], self.axes, self.order)
        return now @ self.copied[frame].inverted() @ self.turns[frame]


def seen_curls(armature, rig, holds: list[Hold], seen: np.ndarray, tracks: dict[int, Track]) -> dict[int, Curl]:
    """The turns that constraints of controls add to these's own, as `seen` (F, n, 4, 4) frame by frame with tracks."""
    bones = [armature.data.bones[name] for name in rig.names]
    parents, found = {hold.bone: hold.parent for hold in holds}, {}
    for bone, parent in parents.items():
        active = [own for own in armature.pose.bones[rig.names[bone]].constraints if control.is_active(own)]
        if not active:
            continue
        locals_ = [local_of(bones, own, bone, parent).to_quaternion() for own in seen]
        turns = [local @ turn.inverted() for local, turn in zip(locals_, tracks[bone].rotations)]
        leader, axes, order = _followed(armature, rig, active)
        copied = []
        if leader in parents:
            copied = [_copied(local_of(bones, own, leader, parents[leader]), axes, order) for own in seen]
        found[bone] = Curl(turns, leader if copied else -1, axes, order, copied)
    return found


def _followed(armature, rig, active: list) -> tuple[int, tuple, str]:
    """The number of the control whose own turn a constraint copies, or -1; about which axes, in which Euler order."""
    for own in active:
        space = {own.owner_space, own.target_space}
        if control.adds(own) and own.target == armature and space == {"LOCAL"} and own.influence == 1.0:
            signs = [(own.use_x, own.invert_x), (own.use_y, own.invert_y), (own.use_z, own.invert_z)]
            order = "XYZ" if own.euler_order == "AUTO" else own.euler_order
            return rig.index.get(own.subtarget, -1), tuple(use * (1 - 2 * invert) for use, invert in signs), order
    return -1, (0, 0, 0), "XYZ"


def _copied(local: Matrix, axes: tuple[int, int, int], order: str) -> Quaternion:
    angles = local.to_quaternion().to_euler(order)
    return Euler([angle * sign for angle, sign in zip(angles, axes)], order).to_quaternion()
