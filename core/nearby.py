"""What can touch anything soon: of many shapes only few are looked at, as long as nothing has come farther than these
were chosen for.

Rigid zones of a hybrid body keep still within themselves, so most of their shapes are far from everything for a while;
the boxes of all are looked at anew only when zones change (adaptive-contact paper, section III-E).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .collision import Collider
from .contact import Contacts


@dataclass(frozen=True)
class Nearby:
    """A collider that takes `near` for `whole` while no body (n,) has points farther than `room` (n,) [m] from where
    they were at `poses` (n + 1, 4, 4); `reach` (n,) [m] is that of the bodies' shapes from their origins."""

    whole: Collider
    near: Collider
    poses: np.ndarray
    reach: np.ndarray
    room: np.ndarray

    @classmethod
    def of(cls, whole: Collider, poses: np.ndarray, reach: np.ndarray, room: np.ndarray) -> Nearby:
        near = whole.only(whole.reachable(poses, np.append(room, 0.0)))
        return cls(whole, near, poses, reach, room)

    def __bool__(self) -> bool:
        return bool(self.whole)

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
        gone = np.sqrt((change[:, :, 3] ** 2).sum(1)) + self.reach * turned + margin
        if travel is not None:
            gone += np.sqrt((travel * travel).sum(1))
        collider = self.near if (gone <= self.room).all() else self.whole
        return collider.contacts(poses, margin, still, travel)
