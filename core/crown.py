"""The top of a partition's tree solved at once: cheaper than level after level, where each has a node or two.

The nodes below the crown are joined by the principal joints of its nodes, and nothing holds the root. The forces F
across all these joints meet the joints' condition of articulation.py, Y_FF and β of which are products of Φ and b with
the two blocks that G has for each joint. Maps and coefficients of the crown's own nodes are not needed: their total
accelerations are the sums of what is within them.
"""

from __future__ import annotations

import numpy as np

from .articulation import Articulation
from .error_queue import Descent, Measure


class Crown:
    """Inner `nodes` (c,) of the articulation's partition, ascending and closed upward, with the root, and the nodes
    `below` them (b,), whose coefficients are up to date; `every` (c + b,): both, and which of them `opens`. `joints`
    (j,): the principal joints, `owner` (j,) their places among the nodes."""

    def __init__(self, articulation: Articulation, nodes: np.ndarray) -> None:
        a, p = articulation, articulation.partition
        self.articulation, self.nodes = a, nodes
        row = nodes - p.blocks
        self._place = np.full(p.nodes + 1, -1)
        self._place[nodes] = np.arange(len(nodes))
        child = p.child[row]
        at, column = np.nonzero((child < p.nodes) & (self._place[child] < 0))
        self.below = below = child[at, column]
        # where a node stands in what is known of nodes, those below after the crown's
        self._place[below] = len(nodes) + np.arange(len(below))
        self.every = np.concatenate((nodes, below))
        self.opens = np.concatenate((np.ones(len(nodes), dtype=bool), a.opens[row[at], column]))
        self._parent = self._place[p.parent[self.every]]
        self.owner, column = np.nonzero(p.joint[row] < p.joints)
        self.joints = p.joint[row][self.owner, column]
        at = row[self.owner]
        self._near = at, column + 1, 0, slice(None), column
        self._far = at, p.carrier[at, column], 1, slice(None), column
        self._structure()
        self._scales()

    def _structure(self) -> None:
        """Which joints meet at a node below, as products of blocks: (2 j of G's, 3 j of Φ G's), and where they go."""
        p, count = self.articulation.partition, len(self.joints)
        tops, tips = np.full((2, p.leaves + 1), -1)
        tops[p.top[self.below]] = tips[p.tip[self.below]] = np.arange(len(self.below))
        self._carried, self._host = tops[p.joint_child[self.joints]], tips[p.joint_host[self.joints]]
        every = np.arange(count)
        over, under = np.nonzero(self._carried[:, None] == self._host)
        one, other = np.nonzero((self._host[:, None] == self._host) & (every[:, None] != every))
        self._left = np.concatenate((every, over, count + one, count + every))
        self._right = np.concatenate((every, count + under, 2 * count + other, 2 * count + every))
        self._at = np.concatenate((every, over, one)), np.concatenate((every, under, other))
        self._mirrored = slice(count, count + len(over)), under, over
        # where the nodes below hang, and 2, 4, ... of them nearer to the root
        jump = np.zeros(len(self.below), dtype=int)
        jump[self._carried] = self._host
        self._first = tops[p.top[p.root]]
        jump[self._first] = self._first
        self._jumps = []
        while (jump != self._first).any():
            self._jumps.append(jump)
            jump = jump[jump]
        self._bears, self._hangs = np.zeros((2, len(self.below), count))
        self._bears[self._carried, every] = self._hangs[self._host, every] = 1.0
        places = self._place[np.concatenate((p.ancestry[self.below], p.ancestry[self.nodes]))]
        self._beneath = np.zeros((len(self.nodes), len(self.below) + count))
        column, level = np.nonzero(places[: len(self.below)] >= 0)
        self._beneath[places[column, level], column] = 1.0
        mine = np.zeros((len(self.nodes), len(self.nodes)))
        column, level = np.nonzero(places[len(self.below) :] >= 0)
        mine[places[len(self.below) + column, level], column] = 1.0
        mine[np.arange(len(mine)), np.arange(len(mine))] = 1.0
        self._beneath[:, len(self.below) :] = mine[:, self.owner]

    def _scales(self) -> None:
        a = self.articulation
        scale = a.scale[self.joints].ravel()
        # free axes without armature take no force
        self._held = np.flatnonzero(scale)
        self._scale, self._unit = scale[self._held][:, None], a.unit[self.joints].ravel()[self._held]
        self._pairs = self._held[:, None] * scale.size + self._held
        self._free = a.unit_free[self.joints]

    def place(self) -> None:
        """Brings up to date where the nodes below are, in the root's frame, which stands in for those of all nodes of
        the crown."""
        a = self.articulation
        poses = np.empty((len(self.below), 4, 4))
        poses[self._carried] = a.reach[self.below[self._host]] @ a.joint_pose[self.joints]
        poses[self._first] = np.eye(4)
        for jump in self._jumps:
            poses = poses[jump] @ poses
        a.pose[self.nodes], a.pose[self.below] = np.eye(4), poses

    def solve(self) -> None:
        """Finds the joints' accelerations `motion` (j, 6) along their axes and their weighed `squares` (j,), and of the
        nodes, those below after the crown's, the handle `forces` (c + b, 12), of the crown's left at zero, the `totals`
        (c + b,) and how much of these is `doubts`, as in `Articulation.total`."""
        a, j, below = self.articulation, len(self.joints), self.below
        near, far = a._ports[self._near], a._ports[self._far]
        response = a.pairs[below, 0]
        down = response[self._carried, :, :6] @ near
        up = response[self._host, :, 6:] @ far
        left = np.concatenate((near, far)).swapaxes(-1, -2)
        right = np.concatenate((down[:, :6], up[:, :6], up[:, 6:]))
        products = left[self._left] @ right[self._right]
        matrix = np.zeros((j, 6, j, 6))
        blocks = matrix.transpose(0, 2, 1, 3)
        blocks[self._at] = products[:-j]
        some, under, over = self._mirrored
        blocks[under, over] = products[some].swapaxes(-1, -2)
        every = np.arange(j)
        blocks[every, every] += products[-j:]
        matrix = matrix.reshape(6 * j, 6 * j)
        bias = a.linear[below, :, 0]
        beta = (bias[self._carried, None, :6] @ near + bias[self._host, None, 6:] @ far).reshape(-1, 1)
        pushes = a.applied[self.joints].reshape(-1, 1) if a.active else None
        if a.active:
            beta += matrix @ pushes
        held = matrix.take(self._pairs)
        held *= self._scale
        held *= self._scale.T
        held.reshape(-1)[:: len(held) + 1] += self._unit
        across = np.zeros((6 * j, 1))
        across[self._held] = -self._scale * np.linalg.solve(held, self._scale * beta[self._held])
        self.motion = (matrix @ across + beta).reshape(j, 6) * self._free
        if a.active:
            across += pushes
        across = across.reshape(j, 6, 1)
        count = len(self.nodes)
        self.forces = np.zeros((count + len(below), 12))
        self.forces[count:, :6] = self._bears @ (near @ across)[:, :, 0]
        self.forces[count:, 6:] = self._hangs @ (far @ across)[:, :, 0]
        weighed = a.weighed(self.joints[:, None], self.motion[:, :, None])[:, :, 0]
        self.squares = (weighed * weighed).sum(-1)
        totals, doubts = a.total(below, self.forces[count:])
        every = np.zeros((len(totals) + j, 2))
        every[: len(totals), 0], every[len(totals) :, 0], every[: len(totals), 1] = totals, self.squares, doubts
        sums = self._beneath @ every
        self.totals, self.doubts = np.concatenate((sums[:, 0], totals)), np.concatenate((sums[:, 1], doubts))

    def holds(self, nodes: np.ndarray) -> np.ndarray:
        """Which nodes (k,) are the crown's."""
        place = self._place[nodes]
        return (place >= 0) & (place < len(self.nodes))

    def opened(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of the joints (j,) belong to the crown's `nodes` (k,), and the places of the nodes right below."""
        mine = np.zeros(len(self.every) + 1, dtype=bool)
        mine[self._place[nodes]] = True
        return mine[self.owner], np.flatnonzero(mine[self._parent] & ~mine[:-1] & self.opens)


class CrownedDescent(Descent):
    """A descent from a solved `crown`, whose nodes are opened by the same rule, but as many at once as those below the
    crown show to be needed."""

    def __init__(self, crown: Crown) -> None:
        root = len(crown.nodes) - 1
        self._begin(crown.articulation, crown.totals[root : root + 1], crown.doubts[root])
        self.crown = crown
        self.computed, self.largest = float(crown.squares.sum()), float(crown.squares.max(initial=0.0))

    def refine(self, threshold: float, measure: Measure) -> None:
        if not self.opened and self.error(measure) > threshold:
            # the paper's queue, too, opens a node only after all with larger totals, and all that it is in
            root, self.totals = self.totals, self.crown.totals[len(self.crown.nodes) :]
            needed = self.crown.below[self._needed(threshold * threshold, measure)]
            self.totals = root
            if len(needed):
                self._open_crown(np.array([True]), self.articulation.partition.ancestors(needed))
        super().refine(threshold, measure)

    def _open(self, needed: np.ndarray) -> None:
        known = needed & self.crown.holds(self.frontier)
        if known.any():
            needed = needed[~known]
            self._open_crown(known, self.frontier[known])
            needed = np.append(needed, np.zeros(len(self.frontier) - len(needed), dtype=bool))
        if needed.any():
            super()._open(needed)

    def _open_crown(self, needed: np.ndarray, nodes: np.ndarray) -> None:
        crown = self.crown
        joints, below = crown.opened(nodes)
        self._keep(nodes, crown.joints[joints], crown.motion[joints], crown.squares[joints])
        self._replace(needed, crown.every[below], crown.forces[below], crown.totals[below])
