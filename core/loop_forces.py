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
from .up_region import PartitionRegion


class LoopForces:
    """The forces of `loops`. `forces` (r,): those of the rows at the last solution."""

    def __init__(self, articulation: Articulation, model: Model, loops: Loops) -> None:
        self.articulation, self.partition, self.loops = articulation, articulation.partition, loops
        self.forces = np.zeros(len(loops.loop))
        link_of = np.full(model.assembly.links + 1, model.n)
        link_of[model.assembly.slot] = np.arange(model.n)
        self.leaves, place = np.unique(link_of[np.concatenate((loops.real, loops.host))], return_inverse=True)
        self.region = PartitionRegion(articulation, self.leaves)
        k = len(loops)
        # frames by their place among the leaves instead of their slots
        self._near = replace(loops, real=place[:k], host=place[k:])

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
        update(self.region.above)
        units, gap = self.wrenches(a.world_poses(self.leaves))
        delassus, opening = self.region.responses(units)
        soft = loops.soft
        pull = np.where(soft, -loops.stiffness * gap, 0.0)
        opening += delassus @ pull + np.maximum(loops.baumgarte**2, closing) * gap
        rigid = np.flatnonzero(~soft)
        pull[rigid] = -LeastNorm.of(delassus[np.ix_(rigid, rigid)]).solve(opening[rigid])
        self.forces = pull
        a.load(body, wrench[body] + units[inside] @ pull)
        a.update(body[:0], self.region.above)
