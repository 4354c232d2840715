"""The error queue: which joints must be computed for a bound on the error, and their accelerations.

Redon and Lin 2006, section 4.3, whose priority queue opens the node with the largest total acceleration until what is
left unopened is small enough. Here all nodes are opened at once that the paper's queue must open too, whatever their
children turn out to be. For the errors of the linkage these are the shortest prefix, largest first, without which the
rest is small enough. For the errors of joints the paper bounds the largest joint by the sum over all unopened nodes;
each by its own node is enough, and only nodes above the threshold are opened. So never more joints are computed than by
the paper's queue, in a handful of rounds. Of the joints of opened nodes those that do not matter can be left out again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from .articulation import Articulation

MANY = 16
"""So many joints more than half of what may be opened are opened at once."""


class Measure(Enum):
    """The error of an approximate acceleration, in which some joints' accelerations are set to zero (Definition 2):
    the norm of those left out or the largest of them, as it is or as a share of the same over all joints."""

    ABSOLUTE_LINKAGE = "absolute linkage"
    RELATIVE_LINKAGE = "relative linkage"
    ABSOLUTE_JOINT = "absolute joint"
    RELATIVE_JOINT = "relative joint"


@dataclass(frozen=True)
class ApproximateAcceleration:
    """Joint accelerations of which some are set to zero.

    `links` (k,): whose joints are computed; `freedoms` (f,) and `values` (f,) [rad/s² or m/s²]: those of their
    accelerations. `error`: a bound on the error in the measure asked for. `nv`: all freedoms. `nodes` (o,): the nodes
    of the partition that have these joints, and all above, ascending. `frontier` (m,): the nodes below that were not
    opened, and their `totals` (m,).
    """

    links: np.ndarray
    freedoms: np.ndarray
    values: np.ndarray
    error: float
    nv: int
    nodes: np.ndarray
    frontier: np.ndarray
    totals: np.ndarray

    def dense(self) -> np.ndarray:
        """All joint accelerations (nv,), zero where not computed."""
        result = np.zeros(self.nv)
        result[self.freedoms] = self.values
        return result


class Descent:
    """A partial back-substitution: the nodes `opened`, in order, the accelerations of their joints and the `frontier`
    of unopened nodes. Total accelerations of nodes count so many times, their `share` (nodes + 1,), None for once.

    `joints`, `motion`, `squares`: of each round the joints (k,), their accelerations along the axes (k, 6), and their
    weighed squares (k,). `frontier` (f,), `forces` (f, 12) on its handles, `totals` (f,) its total accelerations, never
    too small. `least` is what the whole linkage's total acceleration is at least, `computed` the sum of the computed
    joints' squares, `largest` the largest of them.
    """

    share: np.ndarray | None = None

    def __init__(self, articulation: Articulation, share: np.ndarray | None = None) -> None:
        self.share = share
        root = np.array([articulation.partition.root])
        totals, doubts = articulation.total(root, np.zeros((1, 12)))
        self._begin(articulation, totals if share is None else share[root] * totals, doubts[0])

    def _begin(self, articulation: Articulation, totals: np.ndarray, doubt: float) -> None:
        self.articulation = articulation
        self.opened: list[np.ndarray] = []
        self.joints: list[np.ndarray] = []
        self.motion: list[np.ndarray] = []
        self.squares: list[np.ndarray] = []
        self.frontier, self.forces, self.totals = np.array([articulation.partition.root]), np.zeros((1, 12)), totals
        self.least = max(float(totals[0] - 2.0 * doubt), 0.0)
        self.computed = self.largest = 0.0

    def error(self, measure: Measure) -> float:
        """A bound on the error of what is computed so far."""
        joint = measure in (Measure.ABSOLUTE_JOINT, Measure.RELATIVE_JOINT)
        rest = float(self.totals.max(initial=0.0) if joint else self.totals.sum())
        if rest == 0.0:
            return 0.0
        if measure in (Measure.ABSOLUTE_LINKAGE, Measure.ABSOLUTE_JOINT):
            return rest**0.5
        whole = self._whole(measure)
        return min((rest / whole) ** 0.5, 1.0) if whole else 1.0

    def _whole(self, measure: Measure) -> float:
        """What errors are a share of, squared, at least."""
        if measure in (Measure.ABSOLUTE_LINKAGE, Measure.ABSOLUTE_JOINT):
            return 1.0
        return self.largest if measure is Measure.RELATIVE_JOINT else max(self.least, self.computed)

    def refine(self, threshold: float, measure: Measure) -> None:
        """Opens nodes until the error is at most `threshold`."""
        while len(self.frontier) and self.error(measure) > threshold:
            needed = self._needed(threshold * threshold, measure)
            # a sum just above the threshold may be just below it in another order
            needed[self.totals.argmax()] = True
            self._open(needed)

    def result(self, measure: Measure, n: int) -> ApproximateAcceleration:
        """The accelerations that are computed so far, of a model of `n` links."""
        joints = np.concatenate([np.zeros(0, dtype=int), *self.joints])
        order = np.argsort(joints)[: np.count_nonzero(joints < n)]
        nodes = np.sort(np.concatenate([np.zeros(0, dtype=int), *self.opened]))
        return self._chosen(order, joints[order], self.error(measure), nodes)

    def trimmed(self, threshold: float, measure: Measure, n: int) -> ApproximateAcceleration:
        """The `result` without its smallest accelerations: as many are left out as `threshold` allows."""
        joints = np.concatenate([np.zeros(0, dtype=int), *self.joints])
        squares = np.concatenate([np.zeros(0), *self.squares])
        order = np.argsort(squares)
        rest = squares[order]
        if measure in (Measure.ABSOLUTE_LINKAGE, Measure.RELATIVE_LINKAGE):
            rest = self.totals.sum() + np.cumsum(rest)
        whole, error = self._whole(measure), self.error(measure)
        # numbers that are none are not left out, but told of
        count = int(np.searchsorted(rest, threshold * threshold * whole, side="right")) if np.isfinite(whole) else 0
        if count and rest[count - 1]:
            error = max(error, float(rest[count - 1] / whole) ** 0.5)
        order = order[count:]
        order = order[joints[order] < n]
        order = order[np.argsort(joints[order])]
        p = self.articulation.partition
        return self._chosen(order, joints[order], error, p.closure(p.owner[joints[order]]))

    def _chosen(
        self, order: np.ndarray, joints: np.ndarray, error: float, nodes: np.ndarray
    ) -> ApproximateAcceleration:
        a = self.articulation
        motion = np.concatenate([np.zeros((0, 6)), *self.motion])[order]
        index, axis = np.nonzero(a.free[joints])
        return ApproximateAcceleration(
            joints, a.velocity[joints][index, axis], motion[index, axis], error, int(a.velocity[-1, 0]), nodes,
            self.frontier, self.totals if self.share is None else self.totals / self.share[self.frontier],
        )  # fmt: skip

    def spend(self, joints: int, threshold: float, measure: Measure) -> None:
        """Opens the nodes of the largest total accelerations, until at least so many `joints` that can move are
        computed, at most one node too many, or the error is at most `threshold`.

        Those above a hundredth of the largest are opened together, but while much may be opened only half of it: those
        below them may be larger.
        """
        a, p = self.articulation, self.articulation.partition
        left = joints - sum(int(a.movable[nodes - p.blocks].sum()) for nodes in self.opened)
        while left > 0 and len(self.frontier) and self.error(measure) > threshold:
            order = np.lexsort((self.frontier, -self.totals))
            order = order[self.totals[order] >= 0.01 * self.totals[order[0]]]
            counts = np.cumsum(a.movable[self.frontier[order] - p.blocks])
            needed = np.zeros(len(self.frontier), dtype=bool)
            needed[order[: max(int(np.searchsorted(counts, min(left, 0.5 * left + MANY), side="right")), 1)]] = True
            self._open(needed)
            left -= int(a.movable[self.opened[-1] - p.blocks].sum())

    def _needed(self, square: float, measure: Measure) -> np.ndarray:
        totals = self.totals
        if measure is Measure.ABSOLUTE_JOINT:
            return totals > square
        if measure is Measure.RELATIVE_JOINT:
            # no joint can turn out larger than the largest so far or the largest node
            return totals > square * max(self.largest, totals.max())
        if measure is Measure.RELATIVE_LINKAGE:
            square *= max(self.least, self.computed)
        order = np.argsort(totals)
        rest = np.cumsum(totals[order])
        needed = np.zeros(len(totals), dtype=bool)
        needed[order[rest > square]] = True
        return needed

    def _open(self, needed: np.ndarray) -> None:
        a, nodes = self.articulation, self.frontier[needed]
        joints, motion, below, handles = a.open(nodes, self.forces[needed])
        weighed = a.weighed(joints[:, None], motion[:, :, None])[:, :, 0]
        squares = (weighed * weighed).sum(-1)
        self.computed += float(squares.sum())
        self.largest = max(self.largest, float(squares.max(initial=0.0)))
        self._keep(nodes, joints, motion, squares)
        totals = a.total(below, handles)[0]
        self._replace(needed, below, handles, totals if self.share is None else self.share[below] * totals)

    def _keep(self, nodes: np.ndarray, joints: np.ndarray, motion: np.ndarray, squares: np.ndarray) -> None:
        self.opened.append(nodes)
        self.joints.append(joints)
        self.motion.append(motion)
        self.squares.append(squares)

    def _replace(self, needed: np.ndarray, below: np.ndarray, forces: np.ndarray, totals: np.ndarray) -> None:
        """Puts the nodes `below` into the frontier in place of the `needed`."""
        kept = ~needed
        self.frontier = np.concatenate((self.frontier[kept], below))
        self.forces = np.concatenate((self.forces[kept], forces))
        self.totals = np.concatenate((self.totals[kept], totals))
