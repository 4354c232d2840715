"""The error queue: which joints must be computed for a bound on the error, and their accelerations.

Redon and Lin 2006, section 4.3, whose priority queue opens the node with the largest total acceleration until what is
left unopened is small enough. Here all nodes are opened at once that the paper's queue must open too, whatever their
children turn out to be. For the errors of the linkage these are the shortest prefix, largest first, without which the
rest is small enough. For the errors of joints the paper bounds the largest joint by the sum over all unopened nodes;
each by its own node is enough, and only nodes above the threshold are opened. So never more joints are computed than by
the paper's queue, in a handful of rounds.
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
    of the partition whose principal joints these are, ascending; they are closed upward.
    """

    links: np.ndarray
    freedoms: np.ndarray
    values: np.ndarray
    error: float
    nv: int
    nodes: np.ndarray

    def dense(self) -> np.ndarray:
        """All joint accelerations (nv,), zero where not computed."""
        result = np.zeros(self.nv)
        result[self.freedoms] = self.values
        return result


class Descent:
    """A partial back-substitution: the inner nodes `opened`, in order, the accelerations of their joints and the
    `frontier` of unopened inner nodes.

    `joints`, `motion`: of each round the principal joints (k, arity - 1) and their accelerations along the axes (k,
    arity - 1, 6). `frontier` (f,), `forces` (f, 12) on its handles, `totals` (f,) its total accelerations, never too
    small. `least` is what the whole linkage's total acceleration is at least, `computed` the sum of the squares of the
    computed joints' accelerations, `largest` the largest of them.
    """

    def __init__(self, articulation: Articulation) -> None:
        self.articulation = articulation
        root = np.array([articulation.partition.root])
        self.opened: list[np.ndarray] = []
        self.joints: list[np.ndarray] = []
        self.motion: list[np.ndarray] = []
        self.frontier, self.forces = root, np.zeros((1, 12))
        self.totals, doubt = articulation.total(root, self.forces)
        self.least = max(float(self.totals[0] - 2.0 * doubt[0]), 0.0)
        self.computed = self.largest = 0.0

    def error(self, measure: Measure) -> float:
        """A bound on the error of what is computed so far."""
        joint = measure in (Measure.ABSOLUTE_JOINT, Measure.RELATIVE_JOINT)
        rest = float(self.totals.max(initial=0.0) if joint else self.totals.sum())
        if rest == 0.0:
            return 0.0
        if measure in (Measure.ABSOLUTE_LINKAGE, Measure.ABSOLUTE_JOINT):
            return rest**0.5
        whole = self.largest if joint else max(self.least, self.computed)
        return min((rest / whole) ** 0.5, 1.0) if whole else 1.0

    def refine(self, threshold: float, measure: Measure) -> None:
        """Opens nodes until the error is at most `threshold`."""
        while len(self.frontier) and self.error(measure) > threshold:
            needed = self._needed(threshold * threshold, measure)
            # a sum just above the threshold may be just below it in another order
            needed[self.totals.argmax()] = True
            self._open(needed)

    def result(self, measure: Measure, n: int) -> ApproximateAcceleration:
        """What is computed so far, of a model of `n` links."""
        a, none = self.articulation, np.zeros(0, dtype=int)
        joints = np.concatenate([none, *(x.ravel() for x in self.joints)])
        order = np.argsort(joints)[: np.count_nonzero(joints < n)]
        motion = np.concatenate([np.zeros((0, 6)), *(x.reshape(-1, 6) for x in self.motion)])[order]
        joints = joints[order]
        index, axis = np.nonzero(a.free[joints])
        return ApproximateAcceleration(
            joints,
            a.velocity[joints][index, axis],
            motion[index, axis],
            self.error(measure),
            int(a.velocity[-1, 0]),
            np.sort(np.concatenate([none, *self.opened])),
        )

    def spend(self, joints: int, threshold: float, measure: Measure) -> None:
        """Opens the nodes of the largest total accelerations, until at least so many `joints` that can move are
        computed, at most one node too many, or the error is at most `threshold`.

        Those above a hundredth of the largest are opened together, but while much may be opened only half of it: those
        below them may be larger.
        """
        a, p = self.articulation, self.articulation.partition
        left = joints - sum(int(a.movable[nodes - p.leaves].sum()) for nodes in self.opened)
        while left > 0 and len(self.frontier) and self.error(measure) > threshold:
            order = np.lexsort((self.frontier, -self.totals))
            order = order[self.totals[order] >= 0.01 * self.totals[order[0]]]
            counts = np.cumsum(a.movable[self.frontier[order] - p.leaves])
            needed = np.zeros(len(self.frontier), dtype=bool)
            needed[order[: max(int(np.searchsorted(counts, min(left, 0.5 * left + MANY), side="right")), 1)]] = True
            self._open(needed)
            left -= int(a.movable[self.opened[-1] - p.leaves].sum())

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
        a, p = self.articulation, self.articulation.partition
        nodes, forces = self.frontier[needed], self.forces[needed]
        a.reveal(nodes)
        row = nodes - p.leaves
        k, m = len(row), 6 * (p.arity - 1)
        joint, child = p.joint[row], p.child[row]
        answer = (a.answer[row, :, m:] @ forces[:, :, None])[:, :, 0]
        answer += a.start[row]
        motion = answer[:, m:].reshape(k, -1, 6)
        weighed = a.weighed(joint, answer[:, m:, None]).reshape(motion.shape)
        self.opened.append(nodes)
        self.joints.append(joint)
        self.motion.append(motion)
        squares = (weighed * weighed).sum(-1)
        self.computed += float(squares.sum())
        self.largest = max(self.largest, float(squares.max()))
        inner = p.opens[row]
        handles = a.shape[row] @ np.concatenate((answer[:, :m], forces), axis=1)[:, :, None]
        below, handles = child[inner], handles.reshape(k, p.arity, 12)[inner]
        kept = ~needed
        self.frontier = np.concatenate((self.frontier[kept], below))
        self.forces = np.concatenate((self.forces[kept], handles))
        self.totals = np.concatenate((self.totals[kept], a.total(below, handles)[0]))
