"""Quasi-statics of complex linkages at a cost that follows the motion, with a proven bound on the error.

Redon and Lin 2006 (quasi-statics paper). Velocities are zero at each instant; gravity, joint springs, joint forces and
wrenches on links make the joints accelerate, and in a step of h seconds they move by h²/2 q̈. Only the joints whose
accelerations matter are computed and moved, and only what depends on them, or on wrenches that have changed, is brought
up to date (section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .closure import Loops
from .dense_articulation import DenseArticulation
from .dynamics import GRAVITY
from .error_queue import ApproximateAcceleration, Descent, Measure
from .hierarchy import Hierarchy, ranges, vector
from .loop_forces import LoopForces
from .model import Model, State
from .partition import ARITY

FRAMES = ("world", "link")
MOST = 24
"""Freedoms within a block of links. A step of a molecule takes 2.2, 1.9, 1.6 and 1.8 ms with 8, 16, 24 and 48."""


class QuasiStatics(Hierarchy):
    """The quasi-statics of `model` from joint coordinates `q` (nq,), by default its rest pose.

    `measure` of the error. `weights`: what joint accelerations are measured with, ones by default; (nv,) positive
    numbers, or for each link a symmetric positive definite matrix (d, d) of its d freedoms. `gravity` (3,) [m/s²],
    `forces` (nv,) of the joints besides their springs. `loops`: None for those that hold from the start; their forces
    are found exactly. `arity`, and `most` freedoms within a block: see partition.py; they change the speed, and how
    many joints are computed together. Raises ValueError for what cannot be used.
    """

    def __init__(
        self,
        model: Model,
        q: np.ndarray | None = None,
        *,
        measure: Measure = Measure.RELATIVE_JOINT,
        weights: np.ndarray | Sequence[np.ndarray] | None = None,
        gravity: np.ndarray = GRAVITY,
        forces: np.ndarray | None = None,
        loops: Loops | None = None,
        arity: int = ARITY,
        most: int = MOST,
    ) -> None:
        super().__init__(model, DenseArticulation, gravity, weights, arity, most)
        self.measure = Measure(measure)
        if q is not None:
            self.q = self._checked(q)
        if forces is not None:
            self._forces = vector("forces", forces, model.nv).copy()
        self._in_world, self._in_link = np.zeros((model.n, 6)), np.zeros((model.n, 6))
        self._pulled, self._wrench = np.zeros(0, dtype=int), np.zeros((model.n, 6))
        self._loops = LoopForces(self.articulation, model, model.loops.closed() if loops is None else loops)
        self._place(np.arange(model.n))
        every = np.arange(self.partition.nodes)
        self.articulation.move(every)
        self.articulation.update(every, every)
        self._moved, self._stale, self._changed, self._driven = (np.zeros(0, dtype=int) for _ in range(4))
        self._descent: Descent | None = None

    def apply(self, links: Sequence[str] | Sequence[int] | np.ndarray, wrenches: np.ndarray, frame: str = "world"):
        """From now on `links` (k), by names or numbers, are pulled by `wrenches` (k, 6) [N m, N]: torque about each
        link's origin and force, along the axes of the world, where they stay constant, or of the link, with which they
        turn; instead of what pulled these links before in that frame. Costs O(k log(n / k)) at the next solution."""
        index = self._links(links)
        wrenches = np.asarray(wrenches, dtype=float)
        if wrenches.shape != (len(index), 6) or not np.isfinite(wrenches).all():
            raise ValueError(f"wrenches have shape {wrenches.shape}; give {len(index)} rows of 6 finite numbers")
        if frame not in FRAMES:
            raise ValueError(f"frame is {frame!r}; use one of {', '.join(FRAMES)}")
        if frame == "world":
            self._in_world[index] = wrenches
            pulled = np.union1d(self._pulled, index)
            self._pulled = pulled[self._in_world[pulled].any(1)]
        else:
            self._in_link[index] = wrenches
        self._changed = np.union1d(self._changed, index)
        self._descent = None

    def actuate(self, links: Sequence[str] | Sequence[int] | np.ndarray, forces: np.ndarray) -> None:
        """From now on the joints of `links` (k), by names or numbers, exert `forces` [N m or N], one for each of their
        freedoms in turn, besides their springs."""
        index = self._links(links)
        freedoms = ranges(self.model.coordinates.v_start, index)
        self._forces[freedoms] = vector("forces", forces, len(freedoms))
        self._driven = np.union1d(self._driven, index)
        self._descent = None

    def solve(self, threshold: float, closing: float = 0.0) -> ApproximateAcceleration:
        """Accelerations with an error of at most `threshold` in the measure; 0 computes all that move. A tighter
        threshold after a looser one, with nothing changed between, costs the difference only. Raises ValueError where
        they are not finite, as when stiff springs made too long steps.

        `closing` [1/s²]: how much relative acceleration pulls projected loops together, per metre or radian they are
        open, where their own σ² is less.
        """
        if not threshold >= 0:
            raise ValueError(f"the error threshold is {threshold}; give a number of at least zero")
        if self._descent is None or self._descent.error(self.measure) < threshold:
            self._refresh(closing)
            self._descent = self.articulation.descent()
        self._descent.refine(float(threshold), self.measure)
        result = self._descent.trimmed(threshold, self.measure, self.model.n)
        if not (np.isfinite(result.error) and np.isfinite(result.values).all()):
            raise ValueError("the accelerations are not finite; take shorter steps, or look for extreme q or stiffness")
        return result

    def advance(self, result: ApproximateAcceleration, h: float) -> None:
        """Moves the computed joints by h²/2 of their accelerations."""
        if not (np.isfinite(h) and h >= 0):
            raise ValueError(f"the step is {h} s; give a finite number of at least zero")
        subset, rows, _ = self._subset(result.links)
        self.q[rows] = subset.integrate(self.q[rows], result.values, 0.5 * h * h)
        self._place(result.links)
        self._moved = np.union1d(self._moved, result.nodes) if len(self._moved) else result.nodes
        self._descent = None

    def step(self, threshold: float, h: float) -> ApproximateAcceleration:
        """Solves and advances; loops close by half of what they are open, as far as computed joints can."""
        result = self.solve(threshold, closing=1.0 / (h * h) if h > 0 else 0.0)
        self.advance(result, h)
        return result

    def place(self, q: np.ndarray) -> None:
        """Puts all joints at coordinates `q` (nq,); the next solution brings everything up to date."""
        self.q = self._checked(q)
        self._place(np.arange(self.model.n))
        self._moved = np.arange(self.partition.nodes)
        self._descent = None

    def _checked(self, q: np.ndarray) -> np.ndarray:
        """A copy of coordinates from outside, which turn links by unit quaternions."""
        return self.model.checked(State(vector("q", q, self.model.nq), np.zeros(self.model.nv))).q.copy()

    @property
    def loops(self) -> Loops:
        """The loops that hold."""
        return self._loops.loops

    def refresh(self) -> None:
        """Brings everything up to date, which the next solution does otherwise."""
        if self._descent is None:
            self._refresh(0.0)
        self.articulation.settle()

    def world_poses(self, links: Sequence[str] | Sequence[int] | np.ndarray) -> np.ndarray:
        """World poses (k, 4, 4) of `links` (k), by names or numbers: O(log n) each."""
        self._poses()
        return self.articulation.world_poses(self._links(links))

    def _refresh(self, closing: float) -> None:
        """Brings coefficients up to date of the nodes whose joints have moved or are driven, of those whose links are
        pulled differently, and of their ancestors."""
        p, a = self.partition, self.articulation
        if len(self._driven):
            self._place(self._driven)
        moved, pulled = self._poses(), self._turned()
        loaded = np.concatenate((p.owner[self._driven], p.block[pulled]))
        # most that are pulled anew have moved
        loaded = loaded[~_among(loaded, moved)]
        loaded = np.union1d(p.closure(loaded), moved) if len(loaded) else moved
        self._stale, self._driven = moved[:0], moved[:0]
        if len(self._loops):
            self._loops.solve(self._wrench, closing, lambda above: a.update(moved, np.union1d(loaded, above)))
        else:
            a.update(moved, loaded)

    def _poses(self) -> np.ndarray:
        """The nodes that have moved since the last solution; their poses are brought up to date."""
        moved, self._moved = self._moved, self._moved[:0]
        if len(moved):
            self.articulation.move(moved)
            self._stale = np.union1d(self._stale, moved) if len(self._stale) else moved
        return self._stale

    def _turned(self) -> np.ndarray:
        """The links on which the wrenches, seen from them, are not what they were; they are pulled anew."""
        some = np.union1d(self._pulled, self._changed) if len(self._changed) else self._pulled
        self._changed = some[:0]
        if not len(some):
            return some
        turned = self.articulation.world_poses(some)[:, :3, :3].swapaxes(-1, -2)
        wrenches = self._in_link[some]
        wrenches += (turned[:, None] @ self._in_world[some].reshape(-1, 2, 3, 1)).reshape(-1, 6)
        news = (wrenches != self._wrench[some]).any(1)
        some, wrenches = some[news], wrenches[news]
        self._wrench[some] = wrenches
        self.articulation.load(some, wrenches)
        return some


def _among(values: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Which `values` (k,) are among `some` (m,), ascending."""
    at = np.searchsorted(some, values)
    return some[np.minimum(at, len(some) - 1)] == values if len(some) else np.zeros(len(values), dtype=bool)
