"""Loops: an animation is simulated over and over until the last frame meets the first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Trajectory
from .rig import angle_of

MET = (1e-3, 0.1)
"""A loop is closed when no link's place at its ends differs by more [m, relative to the height], nor its turn [deg]."""


@dataclass(frozen=True)
class Cycle:
    """The `frames` of an animation, its first and its last alike, and how many times it is simulated at `most`."""

    frames: int
    most: int = 1

    @property
    def period(self) -> int:
        return self.frames - 1

    @property
    def total(self) -> int:
        """Frames that are simulated at most."""
        return self.most * self.period + 1

    def repeated(self, rows: np.ndarray) -> np.ndarray:
        """What there is for each frame (F, ...), of all times; one frame stands for all."""
        if self.most == 1 or len(rows) == 1:
            return rows
        return np.concatenate([*[rows[: self.period]] * self.most, rows[self.period :][:1]])

    def skipped(self, trajectory: Trajectory) -> int:
        """The frames before the last time that was simulated to its end."""
        return max((len(trajectory) - 1) // self.period - 1, 0) * self.period

    def seam(self, trajectory: Trajectory) -> tuple[float, float]:
        """How far apart the ends of the last time are: the largest place [m] and turn [deg] of all links."""
        first = self.skipped(trajectory)
        begin, end = trajectory.world[first], trajectory.world[min(first + self.period, len(trajectory) - 1)]
        chord = np.linalg.norm(begin[:, :3, :3] - end[:, :3, :3], axis=(1, 2)).max()
        turn = np.degrees(angle_of(chord))
        return float(np.linalg.norm(begin[:, :3, 3] - end[:, :3, 3], axis=1).max()), float(turn)

    def meets(self, trajectory: Trajectory, height: float) -> bool:
        """Whether the ends of the last time meet."""
        place, turn = self.seam(trajectory)
        return place <= MET[0] * height and turn <= MET[1]

    def within(self, frame: int) -> int:
        """Which of its frames a simulated one is."""
        return frame % self.period if self.most > 1 else frame

    def is_end(self, frame: int) -> bool:
        return self.most > 1 and frame > 0 and frame % self.period == 0

    def told(self, trajectory: Trajectory) -> dict[str, float]:
        """The loop's numbers for the report."""
        place, turn = self.seam(trajectory)
        return {"cycles": (len(trajectory) - 1) // self.period, "gap_m": place, "gap_deg": turn}


ONCE = Cycle(frames=1)
"""What is no loop."""
