"""Virtual links as arrays: which frames of which links they hold together, and by which conditions.

A loop is cut open virtually at its virtual link (structure-varying paper, section 3.2), and what the joint there does
not allow is forced to vanish: the seat, a frame of the real link, must stand where the joint's rest frame in the host
stands. A row is one such condition C = 0, of one of two kinds:

    translation   C = n · (p − o), n an axis of the host's frame with origin o, p the seat's origin
    rotation      C = s · n, an axis s of the seat that stays square to n
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .linkage import Closure
from .spatial import pose_inverse

SLIDES = {"prismatic": (1, 2)}
"""Axes of the host's frame along which the seat may not move, where not all three."""
SQUARE = {
    "fixed": ((0, 1), (1, 2), (2, 0)),
    "prismatic": ((0, 1), (1, 2), (2, 0)),
    "hinge": ((0, 1), (0, 2)),
    "universal": ((2, 0),),
    "spherical": (),
}
"""Axes of the seat and of the host's frame that stay square."""


@dataclass(frozen=True)
class Loops:
    """k virtual links and their r rows.

    `host` (k,) and `real` (k,): slots of the two links, the number of slots for the world; `at` (k, 4, 4) the joint's
    rest frame in the host, `seat` (k, 4, 4) in the real link. Per row: `loop` (r,) which it belongs to, `turns` (r,)
    whether it is a rotation, `seat_axis` (r,) and `host_axis` (r,); `soft` (r,) whether it is a spring, of `stiffness`
    and `damping` (r,); `baumgarte` (r,) [1/s].
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    closures: tuple[Closure, ...]
    host: np.ndarray
    real: np.ndarray
    at: np.ndarray
    seat: np.ndarray
    loop: np.ndarray
    turns: np.ndarray
    seat_axis: np.ndarray
    host_axis: np.ndarray
    soft: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    baumgarte: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def select(self, wanted: np.ndarray) -> Loops:
        """Only the loops that are `wanted` (k,) bool."""
        index = np.flatnonzero(wanted)
        if len(index) == len(self):
            return self
        return loops_of(
            *([column[i] for i in index] for column in (self.names, self.kinds, self.closures)),
            self.host[index], self.real[index], self.at[index], self.seat[index],
        )  # fmt: skip

    def closed(self) -> Loops:
        """Only the loops that hold from the start."""
        return self.select(np.array([closure.closed for closure in self.closures], dtype=bool))

    def frames(self, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The hosts' and the seats' frames (k, 4, 4) in the world, from poses (links + 1, 4, 4)."""
        return poses[self.host] @ self.at, poses[self.real] @ self.seat

    def apart(self, poses: np.ndarray) -> np.ndarray:
        """How far the seats' origins are from where their joints allow (k,) [m]."""
        host, seat = self.frames(poses)
        away = (host[:, :3, :3].swapaxes(-1, -2) @ (seat[:, :3, 3] - host[:, :3, 3])[:, :, None])[:, :, 0]
        away[[kind == "prismatic" for kind in self.kinds], 0] = 0.0
        return np.sqrt((away * away).sum(-1))

    def seated(self, index: int, poses: np.ndarray) -> Loops:
        """The loops with the seat of one where its joint's rest frame is now."""
        seat = self.seat.copy()
        seat[index] = pose_inverse(poses[self.real[index]]) @ poses[self.host[index]] @ self.at[index]
        return replace(self, seat=seat)

    def gaps(self, poses: np.ndarray) -> np.ndarray:
        """What the rows should keep at zero (r,) [m or rad]."""
        return self.directions(poses)[0]

    def rehung(self, moved: np.ndarray) -> Loops:
        """The same loops where each of the model's slots (links + 1,) has `moved` to another."""
        return replace(self, host=moved[self.host], real=moved[self.real])

    def strands(self, slot: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """The links that a loop's load passes, from its ends to where they meet or to the world: rows (s, 4) of the
        link's slot, the slot that the load comes from, -1 for the connection itself, the loop, and whether on the way
        from the host. `slot` (n,), `parent` (n,) are the model's."""
        link_at = {place: link for link, place in enumerate(slot.tolist())}
        rows: list[tuple[int, int, int, int]] = []
        for k, ends in enumerate(zip(self.real.tolist(), self.host.tolist())):
            ways = []
            for end in ends:
                way, link = [], link_at.get(end, -1)
                while link >= 0:
                    way.append(link)
                    link = int(parent[link])
                ways.append(way)
            shared = set(ways[0]) & set(ways[1])
            for side, way in enumerate(ways):
                further = -1
                for link in way:
                    if link in shared:
                        break
                    rows.append((int(slot[link]), further, k, side))
                    further = int(slot[link])
        return np.array(rows, dtype=int).reshape(-1, 4)

    def directions(self, poses: np.ndarray) -> tuple[np.ndarray, ...]:
        """Gaps (r,), the hosts' axes (r, 3), the seats' axes (r, 3) and origins (r, 3) of the rows."""
        host, seat = (frame[self.loop] for frame in self.frames(poses))
        row = np.arange(len(self.loop))
        n, s, p = host[row, :3, self.host_axis], seat[row, :3, self.seat_axis], seat[:, :3, 3]
        gap = (n * np.where(self.turns[:, None], s, p - host[:, :3, 3])).sum(-1)
        return gap, n, s, p


def loops_of(names, kinds, closures, host, real, at, seat) -> Loops:
    """Loops from their virtual links' names, kinds, closures, slots and frames."""
    table = [(k, False, 0, axis) for k, kind in enumerate(kinds) for axis in SLIDES.get(kind, (0, 1, 2))] + [
        (k, True, *pair) for k, kind in enumerate(kinds) for pair in SQUARE[kind]
    ]
    table.sort(key=lambda row: row[0])
    loop, turns, seat_axis, host_axis = np.array(table, dtype=int).reshape(-1, 4).T
    own = [closures[k] for k in loop.tolist()]
    return Loops(
        tuple(names), tuple(kinds), tuple(closures), np.array(host, dtype=int), np.array(real, dtype=int),
        np.array(at, dtype=float).reshape(-1, 4, 4), np.array(seat, dtype=float).reshape(-1, 4, 4),
        loop, turns.astype(bool), seat_axis, host_axis,
        np.array([c.method == "compliance" for c in own], dtype=bool),
        *(np.array([getattr(c, name) for c in own], dtype=float) for name in ("stiffness", "damping", "baumgarte")),
    )  # fmt: skip
