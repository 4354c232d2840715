"""The source animation of the last takes as sticks, for drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .convert import Character
from .memory import Memory
from .source import Source


@dataclass(frozen=True, eq=False)
class Ghost:
    """Points (F, k, 3) on scene frames from `first` to `last`, in the armature's space, and the pairs (2s,) of them
    that are sticks. One frame stands for all where nothing is animated."""

    points: np.ndarray
    sticks: np.ndarray
    first: int
    last: int

    def at(self, frame: int, world: np.ndarray) -> np.ndarray:
        """Ends in pairs (2s, 3) where the armature's matrix is `world` (4, 4); none outside the take."""
        if not self.first <= frame <= self.last:
            return np.empty((0, 3), dtype=np.float32)
        points = self.points[min(frame - self.first, len(self.points) - 1)] @ world[:3, :3].T + world[:3, 3]
        return points[self.sticks].astype(np.float32)


ghosts: Memory[Ghost] = Memory()


def of(character: Character, source: Source) -> Ghost:
    """From each link's joint to those of the links that it carries; the last ones of a limb to twice as far as their
    center of mass, as the bones of some files end anywhere."""
    number = {link: i for i, link in enumerate(character.links)}
    jointed = [(number[link.parent], i) for i, link in enumerate(character.links) if link.parent in number]
    last = sorted(set(range(len(number))) - {above for above, _ in jointed})
    begin = min(source.start - source.first, len(source.poses) - 1)
    poses = source.poses[begin : source.end - source.first + 1]
    bones = [character.bones[i] for i in last]
    scale = np.linalg.norm(character.rig.world[:3, 0])
    tips = [character.offsets[i] @ character.links[i].center_of_mass * 2.0 / scale for i in last]
    tails = poses[:, bones] @ np.insert(np.reshape(tips, (-1, 3)), 3, 1.0, axis=1)[:, :, None]
    points = np.concatenate([poses[:, character.bones][..., 3], tails[..., 0]], axis=1)[..., :3].astype(np.float32)
    sticks = jointed + [(i, len(number) + k) for k, i in enumerate(last)]
    return Ghost(points, np.array(sticks, dtype=int).reshape(-1), source.start, source.end)
