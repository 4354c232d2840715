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
from .rig import rigid
from .source import deform_ends, evaluated_poses


@dataclass(frozen=True)
class Fidelity:
    """Largest differences over all frames and bones: place [m], turn [deg], and how far a bone's joint is from where
    its parent carries it [m]; the largest coordinate [m] of a bone in the world or from the armature's origin; and how
    far the ends of each connection come apart while it holds [m], NaN where it never does."""

    error_m: float
    error_deg: float
    separation_m: float
    reach_m: float
    gaps_m: np.ndarray


def measure(
    cast: Cast, grips: list[Grip], poses: np.ndarray, closed: np.ndarray, baked: list[Baked]
) -> Iterator[float]:
    """Evaluates the rigs at each frame of link poses (F, n, 4, 4), yielding progress 0 … 1; returns the Fidelity.

    `closed` (F, k): whether each connection holds. Frames that are not exact do not count, and on those that are a
    blend the rigs are compared with that.
    """
    scene = bpy.context.scene
    current, subframe = scene.frame_current, scene.frame_subframe
    start = cast.actors[0].source.start
    followers = [_Follower(actor, own.played) for actor, own in zip(cast.actors, baked)]
    exact = np.all([own.exact for own in baked], axis=0)
    blended = np.array([any(start + i in own.played for own in baked) for i in range(len(poses))], dtype=bool)
    closed = closed & (exact & ~blended)[:, None]
    worst, ends = np.zeros(4), np.empty((len(poses), len(grips), 2, 4, 4))
    actual = np.tile(np.eye(4), (len(cast.links) + 1, 1, 1))  # the last one is the world
    try:
        for i, expected in enumerate(poses):
            scene.frame_set(start + i)
            for follower in followers:
                links = follower.actor.links
                actual[links], found = follower.look(start + i, expected[links])
                if exact[i]:
                    worst = np.maximum(worst, found)
            for prop in cast.linked:
                if prop.thing:
                    actual[cast.number(prop)] = rigid(placed(prop.thing))
            for k, grip in enumerate(grips):
                ends[i, k] = [actual[-1 if end.number is None else end.number] for end in (grip.host, grip.real)]
            yield (i + 1) / len(poses)
    finally:
        scene.frame_set(current, subframe=subframe)
    gaps = [_gap(grip, *ends[:, k].swapaxes(0, 1), closed[:, k]) for k, grip in enumerate(grips)]
    return Fidelity(*(float(value) for value in worst), np.array(gaps))


class _Follower:
    """Compares one actor with the trajectory, or with what is `played` in its stead."""

    def __init__(self, actor: Actor, played: dict[int, np.ndarray]) -> None:
        self.actor, self.played = actor, played
        links = actor.character.links
        number = {link: i for i, link in enumerate(links)}
        self.jointed = [i for i, link in enumerate(links) if link.parent in number]
        self.parents = [number[links[i].parent] for i in self.jointed]
        self.keyed = np.array([links[i].keyed for i in self.jointed], dtype=bool)
        self.held = self._anchors(actor.source.start)
        self.drawn: np.ndarray | None = None

    def look(self, frame: int, expected: np.ndarray) -> tuple[np.ndarray, tuple[float, float, float, float]]:
        """The links' poses (n, 4, 4) at the scene's current frame, and the first four measures of Fidelity."""
        character = self.actor.character
        own, world = evaluated_poses(self.actor.armature, character.rig)
        own = own[character.bones]
        bones = world @ own
        if frame in self.played:
            expected = rigid(world @ self.played[frame][character.bones])
            expected[:, :3, :3] = expected[:, :3, :3] @ character.offsets
        actual = rigid(bones)
        actual[:, :3, :3] = actual[:, :3, :3] @ character.offsets
        place = np.linalg.norm(actual[:, :3, 3] - expected[:, :3, 3], axis=1).max()
        chord = np.linalg.norm(actual[:, :3, :3] - expected[:, :3, :3], axis=(1, 2)).max()
        turn = np.degrees(2 * np.arcsin(min(chord / np.sqrt(8), 1.0)))
        anchors = self.held
        if frame in self.played:
            anchors = self._joints(self.played[frame])
        elif self.keyed.any():
            anchors = np.where(self.keyed[:, None, None], self._anchors(frame), self.held)
        apart = np.linalg.norm((bones[self.parents] @ anchors)[:, :3, 0] - bones[self.jointed, :3, 3], axis=1)
        if character.rig.controls and frame not in self.played:
            place = max(place, self._drift(own, world))
        heads = bones[:, :3, 3]
        reach = np.abs([heads, heads - world[:3, 3]]).max()
        return actual, (place, turn, apart.max(initial=0.0), reach)

    def _drift(self, poses: np.ndarray, world: np.ndarray) -> float:
        """How far [m] the ends of the deform bones are now from where they were, in what carries them, when physics
        first had them alone: what the rig itself adds."""
        character = self.actor.character
        controls = character.rig.controls
        ends = deform_ends(self.actor.armature, character.rig)[character.bones]
        own = (np.linalg.inv(poses) @ ends)[:, :3]
        self.drawn = own if self.drawn is None else self.drawn
        known = np.isin(character.bones, controls.deforms)
        scale = float(np.linalg.norm(world[:3, 0]))
        return scale * float(np.linalg.norm(own - self.drawn, axis=1)[known].max(initial=0.0))

    def _anchors(self, frame: int) -> np.ndarray:
        """Where the source has joints in their parents' bones (k, 4, 1) at a frame. Bones' matrices in Blender are
        skewed by up to 3e-6, so this is asked of them as they are."""
        return self._joints(self.actor.source.at(frame)[0])

    def _joints(self, poses: np.ndarray) -> np.ndarray:
        poses = poses[self.actor.character.bones]
        return np.linalg.inv(poses[self.parents]) @ poses[self.jointed][:, :, 3:]


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
