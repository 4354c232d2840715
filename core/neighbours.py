"""Pairs of rounds that may touch soon: looked for among all pairs only when something has come farther than those at
hand were chosen for (Verlet 1967, "Computer experiments on classical fluids")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .geometry import Geometry, Placed

SPARE = 0.25
"""Up to this reach, in mean radii, neighbours are looked for ahead,"""
ROOM = 3.0
"""and those found whose boxes are nearer than so many times as much."""


@dataclass(frozen=True)
class NearPairs:
    """Pairs of rounds `a` and `b` (p,), the shapes' numbers, that were near when the axes of rounds had their `ends`;
    `rows` (2, p) among the rounds, `radii` (2, p, 2)."""

    ends: np.ndarray
    a: np.ndarray
    b: np.ndarray
    rows: np.ndarray
    radii: np.ndarray


class Neighbours:
    """Which of the pairs `a` and `b` (n,) of moving rounds are near."""

    def __init__(self, geometry: Geometry, a: np.ndarray, b: np.ndarray) -> None:
        self._geometry, self._a, self._b = geometry, a, b
        self._rows = geometry.row[np.stack((a, b))]
        self._spare = SPARE * float(geometry.radii[self._rows].mean()) if len(a) else 0.0
        self._near: NearPairs | None = None

    def __len__(self) -> int:
        return len(self._a)

    def near(self, placed: Placed, margin: np.ndarray, travel: np.ndarray | None, reach: float) -> NearPairs:
        """Pairs among which are all whose boxes are nearer than `far` says, which is at most twice the `reach` [m]."""
        if reach > self._spare:
            # so fast that nothing found would do for long
            return self._found(placed, far(self._a, self._b, margin, travel))
        near = self._near
        if near is None or not 2.0 * (reach + np.abs(placed.ends - near.ends).max()) <= ROOM * self._spare:
            near = self._near = self._found(placed, ROOM * self._spare)
        return near

    def _found(self, placed: Placed, room: float | np.ndarray) -> NearPairs:
        ends, radii, (one, other) = placed.ends, self._geometry.radii[:, :, None], self._rows
        low, high = np.minimum.reduce(ends - radii, axis=1), np.maximum.reduce(ends + radii, axis=1)
        # from high of b to low of a and from high of a to low of b at once
        low, below = low.T, -high.T
        first, second = np.concatenate((low, below)), np.concatenate((below, low))
        met = (np.maximum.reduce(first.take(one, axis=1) + second.take(other, axis=1)) <= room).nonzero()[0]
        rows = self._rows.take(met, axis=1)
        return NearPairs(ends, self._a.take(met), self._b.take(met), rows, self._geometry.radii.take(rows, axis=0))


def far(a: np.ndarray, b: np.ndarray, margin: np.ndarray, travel: np.ndarray | None) -> np.ndarray:
    """How far apart (p,) [m] shapes `a` and `b` may be that meet, by their margins and the ways they go: what goes the
    same way comes no nearer."""
    result = margin.take(a) + margin.take(b)
    if travel is not None:
        apart = travel.take(a, axis=0) - travel.take(b, axis=0)
        result += np.sqrt(np.add.reduce(apart * apart, axis=1))
    return result
