"""The source animation of the last takes as sticks, for drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .convert import Character
from .memory import TakeMemory
from .source import Source
from .sticks import Sticks


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


ghosts: TakeMemory[Ghost] = TakeMemory()


def of(character: Character, source: Source, poses: np.ndarray) -> Ghost:
    """What the source animation did, by itself, up to its end: it had the links at `poses` (F, n, 4, 4)."""
    sticks = Sticks(character)
    begin = min(source.start - source.first, len(source.worlds) - 1)
    back = np.linalg.inv(source.worlds[begin : source.end - source.first + 1])
    poses = poses[: source.end - source.start + 1]
    points = sticks.points(poses) @ back[:, :3, :3].swapaxes(1, 2) + back[:, None, :3, 3]
    return Ghost(points.astype(np.float32), sticks.pairs, source.start, source.end)
