"""The active region of so many joints: nodes from the top of the partition down, whose joints move while all others
hold still (Redon, Galoppo and Lin 2005, as told by Gayle, Lin and Manocha 2006, section III-D).

What is left out is a node as a whole: it becomes rigid between joints that move. These take over what its own joints
would have turned, as the motion that a hybrid body finds is the nearest to the exact one by kinetic energy (Gauss), and
what remains is what the node bends within its own length. The n joints of a way through it bend it most when they all
turn alike: by the root of n times the root of their squares (Cauchy and Schwarz). A node's metric weighs how far they
move what hangs from them, so of it counts n times the square of the node's length against that of all that hangs from
its top; all n times where joints slide, for which nothing that turns can stand in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .model import Model
from .partition import Partition

BETTER = 2.0
"""Nodes stay active until others would leave an error so many times as small: moving on costs no impulse."""
LEAST = 1e-9
"""Least share of a node's metric that counts, that of a node without length."""


def shares(model: Model, partition: Partition) -> np.ndarray:
    """How many times each node's metric counts (nodes + 1,) when its neighbours take over what they can."""
    p, n = partition, model.n
    # how far each link is down its tree, and how many joints that can move and that slide it is below
    depth, deepest = np.zeros((2, n + 1, 3))
    movable, sliding = np.diff(model.coordinates.v_start) > 0, np.isin(model.coordinates.kinds, ("prismatic", "free"))
    step = np.stack((np.sqrt((model.placement[:, :3, 3] ** 2).sum(-1)), movable, sliding), axis=1)
    for i, host in enumerate(model.parent.tolist()):
        # the world's is the last, where -1 finds it
        depth[i] = depth[host] + step[i]
    deepest[:n] = depth[:n]
    deepest[:n, 0] += np.sqrt((model.center**2).sum(-1))
    deep = np.append(deepest[p.link], np.zeros((p.nodes + 1 - p.leaves, 3)), axis=0)
    for i in range(n - 1, -1, -1):
        host = model.parent[i]
        deepest[host] = np.maximum(deepest[host], deepest[i])
    for level in range(1, p.levels + 1):
        some = slice(p.starts[level], p.starts[level + 1])
        deep[some] = deep[p.child[p.starts[level] - p.blocks : p.starts[level + 1] - p.blocks]].max(1)
    top = p.link[p.top[: p.nodes]]
    own, count, slide = (deep[: p.nodes] - depth[top]).T
    far = deepest[top, 0] - depth[top, 0]
    part = np.where((own < far) & (slide == 0), own / np.maximum(far, 1e-300), 1.0)
    return np.append(np.maximum(count * part * part, LEAST), 0.0)


@dataclass(frozen=True)
class ActiveRegion:
    """`links` (k,), ascending, whose joints are to move. `error`: the root of what the nodes that are left out would
    do, the sum of their metrics' shares."""

    links: np.ndarray
    error: float


@dataclass(frozen=True)
class Choice:
    """The `nodes` (m,) that an active region may have, ascending and closed upward; of all nodes what would be `left`
    (nodes + 1,) of their metrics if they were left out; `movable` (joints + 1,) tells which joints can move, and
    `counted` (joints + 1,) which of these count: what floats moves in any case."""

    partition: Partition
    nodes: np.ndarray
    left: np.ndarray
    movable: np.ndarray
    counted: np.ndarray

    def region(self, joints: int, kept: np.ndarray, enough: float) -> ActiveRegion:
        """The best nodes of which at most so many `joints` count; or those `kept` (l,), ascending and closed upward,
        while their error is at most `enough`, or others would not be BETTER."""
        nodes = self._ranked()
        nodes = nodes[: int(np.searchsorted(np.cumsum(self._counts(nodes)), joints, side="right"))]
        error = self._without(nodes)
        if len(kept) and self._counts(kept).sum() <= joints:
            stays = self._without(kept)
            if stays <= max(BETTER**2 * error, enough**2):
                nodes, error = kept, stays
        return self._of(nodes, error)

    def within(self, threshold: float) -> ActiveRegion:
        """As few of the best nodes as leave an error of at most `threshold`; all if that is never so."""
        nodes = self._ranked()
        below = self.left[self.partition.child[nodes - self.partition.blocks]].sum(1)
        rest = self.left[self.partition.root] + np.append(0.0, np.cumsum(below - self.left[nodes]))
        enough = rest <= threshold * threshold
        nodes = nodes[: int(enough.argmax()) if enough.any() else None]
        return self._of(nodes, self._without(nodes))

    def _ranked(self) -> np.ndarray:
        """The nodes, the best first, and none without those above it."""
        rank = np.append(self.left[:-1], np.inf)
        rank = np.minimum(rank[self.nodes], rank[self.partition.ancestry[self.nodes]].min(1))
        return self.nodes[np.lexsort((self.nodes, rank))[::-1]]

    def _of(self, nodes: np.ndarray, error: float) -> ActiveRegion:
        links = self.partition.joint[nodes - self.partition.blocks].ravel()
        return ActiveRegion(np.sort(links[self.movable[links]]), error**0.5)

    def _counts(self, nodes: np.ndarray) -> np.ndarray:
        """How many joints of each of `nodes` count."""
        return self.counted[self.partition.joint[nodes - self.partition.blocks]].sum(1)

    def _without(self, nodes: np.ndarray) -> float:
        """The squared error that is left by all below `nodes`."""
        if not len(nodes):
            return float(self.left[self.partition.root])
        child = self.partition.child[nodes - self.partition.blocks].ravel()
        return float(self.left[child[~np.isin(child, nodes)]].sum())
