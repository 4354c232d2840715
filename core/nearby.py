"""What can touch anything soon: of many shapes only few are looked at, as long as nothing has come farther than these
were chosen for.

Rigid zones of a hybrid body keep still within themselves, so most of their shapes are far from everything for a while;
the boxes of all are looked at anew only when zones change, or have come far (adaptive-contact paper, section III-E).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .collision import Collider
from .contact import Contacts

WORTH = 3.0
"""It is looked anew only where there is room for so many times as far as things may go in a step."""


@dataclass
class Nearby:
    """A collider that takes `near` for `whole` while no body (n,) has points farther than `room` (n,) [m] from where
    they were at `poses` (n + 1, 4, 4), and then looks anew, where that is for longer than a step; `reach` (n,) [m] is
    that of the bodies' shapes from their origins."""

    whole: Collider
    poses: np.ndarray
    reach: np.ndarray
    room: np.ndarray

    def __post_init__(self) -> None:
        self._look(self.poses)

    def __bool__(self) -> bool:
        return bool(self.whole)

    def _look(self, poses: np.ndarray) -> None:
        self.poses, self.near = poses, self.whole.only(self.whole.reachable(poses, np.append(self.room, 0.0)))

    def contacts(
        self,
        poses: np.ndarray,
        margin: float | np.ndarray,
        still: np.ndarray | None = None,
        travel: np.ndarray | None = None,
    ) -> Contacts:
        """As `Collider.contacts`."""
        change = poses[:-1, :3] - self.poses[:-1, :3]
        turned = np.sqrt((change[:, :, :3] ** 2).sum((1, 2)))
        ahead = margin if travel is None else margin + np.sqrt((travel * travel).sum(1))
        gone = np.sqrt((change[:, :, 3] ** 2).sum(1)) + self.reach * turned
        if (gone + ahead <= self.room).all():
            return self.near.contacts(poses, margin, still, travel)
        if (WORTH * ahead > self.room).any():
            return self.whole.contacts(poses, margin, still, travel)
        self._look(poses)
        return self.near.contacts(poses, margin, still, travel)
