"""How the source motion guides links: strengths, frame by frame, and the smooth way between the frames."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .joint import Coordinates

TIMED = ("frequency", "ratio", "weight", "amount")
"""What of a guide there is for each frame."""


@dataclass(frozen=True, eq=False)
class Guide:
    """How firmly each of n links follows the source motion, one row for each of its frames or one for all.

    `frequency` (F, n) [Hz]: how fast a link that is held off comes back, whatever it weighs; 0 is limp. `ratio` (F, n):
    damping ratio. `world` (n,): whether the link's orientation in the world is followed instead of its joint's; a free
    joint is followed in place and orientation. `weight` (F, n): the share of gravity that acts. Between frames all is
    interpolated. Raises ValueError for what is negative, not finite or of another shape.
    """

    frequency: np.ndarray
    ratio: np.ndarray
    world: np.ndarray
    weight: np.ndarray
    additive: np.ndarray
    amount: np.ndarray

    @classmethod
    def of(cls, links: int, frequency=0.0, ratio=1.0, world=False, weight=1.0, *, additive=False, amount=1.0) -> Guide:
        """The guide of so many links from numbers, or arrays (n,) or (F, n)."""
        rows = [np.atleast_2d(np.asarray(value, dtype=float)) for value in (frequency, ratio, weight, amount)]
        frequency, ratio, weight, amount = (np.broadcast_to(row, (len(row), links)) for row in rows)
        world, additive = (np.broadcast_to(np.asarray(value, dtype=bool), links) for value in (world, additive))
        return cls(frequency, ratio, world, weight, additive, amount)

    def __post_init__(self) -> None:
        for name in TIMED:
            values = np.asarray(getattr(self, name), dtype=float)
            if values.ndim != 2 or values.shape[1] != len(self.world):
                raise ValueError(f"the guide's {name} has shape {values.shape}; give (frames, {len(self.world)})")
            if not np.isfinite(values).all() or (name != "weight" and (values < 0).any()):
                raise ValueError(f"the guide's {name} is negative or not finite; give finite numbers from 0 on")
            object.__setattr__(self, name, values)

    def released(self, link: int) -> Guide:
        """The same guide without a link, which is limp from now on."""
        frequency = self.frequency.copy()
        frequency[:, link] = 0.0
        return replace(self, frequency=frequency)

    @property
    def carried(self) -> np.ndarray:
        """Which links' own forces (F, n) are carried: those of additive links that are not limp."""
        return self.additive & (self.frequency > 0.0)


class Samples:
    """Rows (F, k) of values at frames, straight between them and held before the first and after the last; one row
    stands for all frames."""

    def __init__(self, rows: np.ndarray, frame_time: float) -> None:
        self.rows, self.frame_time = np.asarray(rows, dtype=float), frame_time
        # what never changes needs no interpolation
        if (self.rows == self.rows[0]).all():
            self.rows = self.rows[:1]

    def at(self, time: float) -> np.ndarray:
        """The values (k,) at a time [s]."""
        if len(self.rows) == 1:
            return self.rows[0]
        place = min(max(time / self.frame_time, 0.0), len(self.rows) - 1.0)
        first = min(int(place), len(self.rows) - 2)
        share = place - first
        return (1.0 - share) * self.rows[first] + share * self.rows[first + 1]


class Course:
    """Joint coordinates (F, nq) at frames, and between them a curve with continuous velocity (Hermite, rotations in
    rotation vectors); at rest before the first and after the last."""

    def __init__(self, coordinates: Coordinates, q: np.ndarray, frame_time: float) -> None:
        self.coordinates, self.q, self.frame_time = coordinates, q, frame_time
        self.way = coordinates.difference(q[:-1], q[1:])
        self.slope = np.zeros((len(q), coordinates.nv))
        if len(q) > 1:
            ends = self.way[:1], self.way[-1:]
            if len(q) > 2:
                ends = 1.5 * ends[0] - 0.5 * self.way[1:2], 1.5 * ends[1] - 0.5 * self.way[-2:-1]
            self.slope = np.concatenate((ends[0], 0.5 * (self.way[:-1] + self.way[1:]), ends[1]))

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coordinates (nq,), velocities and accelerations (nv,) at a time [s]."""
        last, frame = len(self.q) - 1, self.frame_time
        place = time / frame
        if last == 0 or not 0.0 <= place <= last:
            still = np.zeros(self.coordinates.nv)
            return self.q[0 if place < 0.0 else last], still, still
        k = min(int(place), last - 1)
        s, way, m0, m1 = place - k, self.way[k], self.slope[k], self.slope[k + 1]
        moved = s * s * (3 - 2 * s) * way + s * (1 - s) ** 2 * m0 + s * s * (s - 1) * m1
        rate = 6 * s * (1 - s) * way + (1 - s) * (1 - 3 * s) * m0 + s * (3 * s - 2) * m1
        bend = (6 - 12 * s) * way + (6 * s - 4) * m0 + (6 * s - 2) * m1
        return self.coordinates.integrate(self.q[k], moved, 1.0), rate / frame, bend / frame**2
