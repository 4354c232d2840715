"""Where the last simulations touched something, kept while Blender runs, for drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Trajectory
from .memory import TakeMemory

ARROW = 0.5
"""Length of the arrow of a force that carries the character's weight, as a part of the character's height."""


@dataclass(frozen=True, eq=False)
class Touches:
    """The contacts of one armature's last take, in the order of their scene `frames` (c,): `points` (c, 3) [m] and the
    ends (c, 3) of the arrows of the forces on it."""

    frames: np.ndarray
    points: np.ndarray
    ends: np.ndarray

    def at(self, frame: int) -> tuple[np.ndarray, np.ndarray]:
        """Points (k, 3), and ends in pairs (2k, 3) of their arrows, at a scene frame."""
        low, high = np.searchsorted(self.frames, [frame, frame + 1])
        points = self.points[low:high]
        return points, np.stack([points, self.ends[low:high]], axis=1).reshape(-1, 3)


_kept: TakeMemory[Touches] = TakeMemory()


def keep(armature, links: slice, trajectory: Trajectory, start: int, weight: float, height: float) -> None:
    """Remembers where the `links` of an armature touched; `weight` [N] and `height` [m] of the character give the
    arrows their length."""
    numbers = np.stack([trajectory.touch_link, trajectory.touch_other])
    ours, also = (numbers >= links.start) & (numbers < links.stop)
    own = ours | also
    points = trajectory.touch_point[own]
    scale = ARROW * height / weight if weight > 0 else 0.0
    # the trajectory has what acts on the first of the two
    ends = points + scale * np.where(ours[own], 1.0, -1.0)[:, None] * trajectory.touch_force[own]
    frames = start + trajectory.touch_frame[own]
    order = np.argsort(frames, kind="stable")
    touches = Touches(frames[order], points[order].astype(np.float32), ends[order].astype(np.float32))
    _kept.keep(armature, touches)


def kept(armature) -> Touches | None:
    return _kept.kept(armature)
