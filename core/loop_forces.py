"""Forces of closed loops on a partition, in O(rows log n): loops are cut open and their forces act as others do.

The quasi-statics paper leaves loops open. Here the rows of closure.py are unit wrenches on links; their accelerations
climb the tree as biases do, and the Delassus matrix is summed on the way: handles that are held take Σ βᵀ K β out of
what the free links would answer. Projected rows get the forces of least norm that keep the loops' relative acceleration
at -σ² C, compliant ones -K C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .articulation import Articulation
from .closure import Loops
from .loops import LeastNorm
from .model import Model
from .spatial import cross


class LoopForces:
    """The forces of `loops`. `forces` (r,): those of the rows at the last solution. `leaves` (l,), ascending: the links
    at their ends, the world among them, and those of `also` (any,), which may be pulled as well."""

    def __init__(self, articulation: Articulation, model: Model, loops: Loops, also: np.ndarray | None = None) -> None:
        self.articulation, self.partition, self.loops = articulation, articulation.partition, loops
        self.forces = np.zeros(len(loops.loop))
        link_of = np.full(model.assembly.links + 1, model.n)
        link_of[model.assembly.slot] = np.arange(model.n)
        ends = link_of[np.concatenate((loops.real, loops.host))]
        ends = ends if also is None else np.concatenate((ends, also))
        self.leaves, place = np.unique(ends, return_inverse=True)
        self.above = self.partition.closure(self.partition.block[self.leaves])
        k = len(loops)
        # frames by their place among the leaves instead of their slots
        self._near = replace(loops, real=place[:k], host=place[k : 2 * k])

    def __len__(self) -> int:
        return len(self.loops)

    def wrenches(self, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The unit wrenches (leaves, 6, r) about the links' origins and along their axes, and the gaps (r,)."""
        loops = self._near
        gap, n, s, p = loops.directions(poses)
        turns = loops.turns[:, None]
        along, twist = np.where(turns, 0.0, n), np.where(turns, cross(s, n), 0.0)
        result = np.zeros((len(self.leaves), 6, len(gap)))
        rows = np.arange(len(gap))
        for leaf, sign in ((loops.real[loops.loop], 1.0), (loops.host[loops.loop], -1.0)):
            rotation, origin = poses[leaf, :3, :3].swapaxes(-1, -2), poses[leaf, :3, 3]
            both = np.stack((twist + cross(p - origin, along), along), axis=1)
            result[leaf, :, rows] += sign * (rotation[:, None] @ both[..., None]).reshape(-1, 6)
        return result, gap

    def solve(self, wrench: np.ndarray, closing: float, update: Callable[[np.ndarray], None]) -> None:
        """Finds the forces and pulls the links with them, besides their `wrench` (n, 6). `update` brings coefficients
        up to date, those of the nodes that it is given too. `closing` [1/s²] where σ² is less."""
        a, loops = self.articulation, self.loops
        inside = self.leaves < self.partition.n
        body = self.leaves[inside]
        a.load(body, wrench[body])
        update(self.above)
        a.settle()
        units, gap = self.wrenches(a.world_poses(self.leaves))
        delassus, opening = self._response(units)
        soft = loops.soft
        pull = np.where(soft, -loops.stiffness * gap, 0.0)
        opening += delassus @ pull + np.maximum(loops.baumgarte**2, closing) * gap
        rigid = np.flatnonzero(~soft)
        pull[rigid] = -LeastNorm.of(delassus[np.ix_(rigid, rigid)]).solve(opening[rigid])
        self.forces = pull
        a.load(body, wrench[body] + units[inside] @ pull)
        a.update(body[:0], self.above)

    def answers(self, poses: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The accelerations (m, m) of the leaves along each of m `units` (l, 6, m) per unit of each, wrenches as in
        `wrenches`, to which the loops answer too, and those (m,) along them now, as all that is up to date has it."""
        if not units.shape[2]:
            return np.zeros((0, 0)), np.zeros(0)
        rows, _ = self.wrenches(poses)
        r, rigid = rows.shape[-1], np.flatnonzero(~self.loops.soft)
        responses, now = self._response(np.concatenate((rows, units), axis=2))
        result, held = responses[r:, r:], responses[rigid, r:]
        if len(rigid):
            result = result - held.T @ LeastNorm.of(responses[np.ix_(rigid, rigid)]).solve(held)
        return result, now[r:]

    def _response(self, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Delassus matrix (r, r) of unit wrenches (leaves, 6, r), and the rows' accelerations (r,) now."""
        a, p = self.articulation, self.partition
        r, m = units.shape[-1], 6 * (p.arity - 1)
        leaves, moved, delassus, opening = a.respond(units, self.leaves)
        place = np.full(p.nodes + 1, len(self.above))
        place[self.above] = np.arange(len(self.above))
        every = np.zeros((len(self.above) + 1, 12, r))
        every[place[leaves]] = moved
        for nodes in p.by_level(self.above[len(leaves) :]):
            row = nodes - p.blocks
            units = every[place[p.child[row]]].reshape(len(row), -1, r)
            along, maps = a.shape[row].swapaxes(-1, -2) @ units, a.answer[row, :m]
            ends, along = along[:, m:], along[:, :m]
            rows = along.reshape(-1, r).T
            delassus += rows @ (maps[:, :, :m] @ along).reshape(-1, r)
            opening += rows @ a.start[row, :m].ravel()
            every[place[nodes]] = ends + maps[:, :, m:].swapaxes(-1, -2) @ along
        return 0.5 * (delassus + delassus.T), opening
