"""How well rigs, as Blender evaluates them after baking, follow the trajectory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import bpy
import numpy as np

from .bake import Baked
from .cast import Actor, Cast
from .connection import Grip
from .prop import placed
from .rig import angle_of, rigid
from .source import deform_ends, evaluated_poses

PIECE = 5000
"""Bones that are compared at once: little enough that windows are drawn in between."""


@dataclass(frozen=True)
class Fidelity:
    """Largest differences over all frames and bones: place [m], turn [deg], and how far a bone's joint is from where
    its parent carries it [m]; the largest coordinate [m] of a bone in the world or from the armature's origin; how far
    the ends of each connection come apart while it holds [m], NaN where it never does; and the third on each frame
    (F,)."""

    error_m: float
    error_deg: float
    separation_m: float
    reach_m: float
    gaps_m: np.ndarray
    separations_m: np.ndarray


def measure(
    cast: Cast, grips: list[Grip], poses: np.ndarray, closed: np.ndarray, baked: list[Baked]
) -> Iterator[float]:
    """Evaluates the rigs at each frame of link poses (F, n, 4, 4), yielding progress 0 … 1; returns the Fidelity.

    `closed` (F, k): whether each connection holds. Frames that are not exact do not count, and on those that are a
    blend the rigs are compared with that.
    """
    scene = bpy.context.scene
    current, subframe = scene.frame_current, scene.frame_subframe
    start, count = cast.actors[0].source.start, len(poses)
    followers = [_Follower(actor, own.played, count) for actor, own in zip(cast.actors, baked)]
    exact = np.all([own.exact for own in baked], axis=0)
    blended = np.array([any(start + i in own.played for own in baked) for i in range(count)], dtype=bool)
    closed = closed & (exact & ~blended)[:, None]
    actual = np.tile(np.eye(4), (count, len(cast.links) + 1, 1, 1))  # the last one is the world
    try:
        for i in range(count):
            scene.frame_set(start + i)
            for follower in followers:
                follower.look(i)
            for prop in cast.linked:
                if prop.thing:
                    actual[i, cast.number(prop)] = rigid(placed(prop.thing))
            yield (i + 1) / count
    finally:
        scene.frame_set(current, subframe=subframe)
    found, size = np.zeros((count, 4)), max(1, PIECE // len(cast.links))
    for first in range(0, count, size):
        rows = slice(first, min(first + size, count))
        for follower in followers:
            links = follower.actor.links
            actual[rows, links], own = follower.compared(rows, poses[rows, links])
            found[rows] = np.maximum(found[rows], own)
        yield 1.0
    ends = [[-1 if end.number is None else end.number for end in (grip.host, grip.real)] for grip in grips]
    gaps = [_gap(grip, *actual[:, own].swapaxes(0, 1), closed[:, k]) for k, (grip, own) in enumerate(zip(grips, ends))]
    worst = found[exact].max(axis=0, initial=0.0)
    return Fidelity(*map(float, worst), np.array(gaps), found[:, 2])


class _Follower:
    """Looks at one actor on a number of frames, and compares it with the trajectory, or with what is `played` in its
    stead."""

    def __init__(self, actor: Actor, played: dict[int, np.ndarray], count: int) -> None:
        self.actor, self.bones = actor, actor.character.bones
        start = actor.source.start
        self.shown = {frame - start: poses for frame, poses in played.items() if 0 <= frame - start < count}
        links = actor.character.links
        number = {link: i for i, link in enumerate(links)}
        self.jointed = np.array([i for i, link in enumerate(links) if link.parent in number], dtype=int)
        self.parents = np.array([number[links[i].parent] for i in self.jointed], dtype=int)
        self.keyed = np.array([links[i].keyed for i in self.jointed], dtype=bool)
        self._held = self._joints(actor.source.at(start)[0][self.bones])
        self.poses, self.worlds = np.empty((count, len(links), 4, 4)), np.empty((count, 4, 4))
        self.ends = np.empty((count, len(links), 4, 2)) if actor.character.rig.controls else None

    def look(self, i: int) -> None:
        """Takes in the armature as it is now, the i-th frame from the start."""
        rig = self.actor.character.rig
        poses, self.worlds[i] = evaluated_poses(self.actor.armature, rig)
        self.poses[i] = poses[self.bones]
        if self.ends is not None:
            self.ends[i] = deform_ends(self.actor.armature, rig)[self.bones]

    def compared(self, rows: slice, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The links' poses (F, n, 4, 4) on some of the frames, and the first four measures of Fidelity on each of them
        (F, 4), where the links were `expected` (F, n, 4, 4)."""
        worlds, own = self.worlds[rows], self.poses[rows]
        bones = worlds[:, None] @ own
        actual, expected = rigid(bones), expected.copy()
        actual[..., :3, :3] = actual[..., :3, :3] @ self.actor.character.offsets
        anchors = self._anchors(rows)
        for i in self.shown.keys() & range(rows.start, rows.stop):
            shown, i = self.shown[i][self.bones], i - rows.start
            expected[i] = rigid(worlds[i] @ shown)
            expected[i, :, :3, :3] = expected[i, :, :3, :3] @ self.actor.character.offsets
            anchors[i] = self._joints(shown)
        away, carried = actual - expected, (bones[:, self.parents, :3] @ anchors)[..., 0]
        place = _longest(away[..., :3, 3])
        chord = _longest(away[..., :3, :3].reshape(*away.shape[:2], 9))
        turn = np.degrees(angle_of(chord))
        apart = _longest(carried - bones[:, self.jointed][..., :3, 3])
        if self.ends is not None:
            place = np.maximum(place, self._drifts(rows))
        heads = bones[..., :3, 3]
        reach = np.maximum(np.abs(heads), np.abs(heads - worlds[:, None, :3, 3])).max(axis=(1, 2))
        return actual, np.stack((place, turn, apart, reach), axis=1)

    def _drifts(self, rows: slice) -> np.ndarray:
        """How far (F,) [m] the ends of the deform bones are from where they were, in what carries them, when physics
        first had them alone: what the rig itself adds."""
        alone = np.array([i not in self.shown for i in range(len(self.poses))])
        drawn = int(alone.argmax())
        known = np.isin(self.bones, self.actor.character.rig.controls.deforms)
        away = np.linalg.norm(self._seats(rows) - self._seats(slice(drawn, drawn + 1)), axis=2)[:, known]
        scale = np.linalg.norm(self.worlds[rows, :3, 0], axis=1)
        return scale * away.max(axis=(1, 2), initial=0.0) * alone[rows]

    def _seats(self, rows: slice) -> np.ndarray:
        """The ends (F, n, 3, 2) of the deform bones in what carries them."""
        return (np.linalg.inv(self.poses[rows]) @ self.ends[rows])[..., :3, :]

    def _anchors(self, rows: slice) -> np.ndarray:
        """Where the source has joints in their parents' bones (F, k, 4, 1): always as at the start, but for keyed
        bones. Bones' matrices in Blender are skewed by up to 3e-6, so this is asked of them as they are."""
        source, keyed = self.actor.source, np.flatnonzero(self.keyed)
        anchors = self._held[None].repeat(rows.stop - rows.start, axis=0)
        if len(keyed):
            frames = range(source.start + rows.start, source.start + rows.stop)
            seen = np.array([source.at(frame)[0][self.bones] for frame in frames])
            anchors[:, keyed] = self._joints(seen, keyed)
        return anchors

    def _joints(self, poses: np.ndarray, which: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Where joints are in their parents' bones (..., k, 4, 1) in poses (..., n, 4, 4) of the bones."""
        return np.linalg.inv(poses[..., self.parents[which], :, :]) @ poses[..., self.jointed[which], :, :][..., 3:]


def _longest(vectors: np.ndarray) -> np.ndarray:
    """The lengths (F,) of the longest of vectors (F, k, any)."""
    return np.sqrt(np.einsum("...i,...i->...", vectors, vectors).max(axis=1, initial=0.0))


def _gap(grip: Grip, hosts: np.ndarray, reals: np.ndarray, closed: np.ndarray) -> float:
    """How far a connection comes apart [m] while it holds, from the poses (F, 4, 4) of the links at its ends. One that
    is made on the way holds the real link as it is then."""
    largest, seat = np.nan, grip.real.frame if grip.closed else None
    for host, real, holds in zip(hosts @ grip.host.frame, reals, closed):
        if not holds:
            seat = None
            continue
        seat = np.linalg.inv(real) @ host if seat is None else seat
        away = (np.linalg.inv(host) @ real @ seat)[:3, 3]
        largest = np.fmax(largest, np.linalg.norm(away[1:] if grip.kind == "prismatic" else away))
    return float(largest)
