"""Quasi-statics of complex linkages at a cost that follows the motion, with a proven bound on the error.

Redon and Lin 2006 (quasi-statics paper). Velocities are zero at each instant; gravity, joint springs, joint forces and
wrenches on links make the joints accelerate, and in a step of h seconds they move by h²/2 q̈. Only the joints whose
accelerations matter are computed and moved, and only what depends on them, or on wrenches that have changed, is brought
up to date (section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .articulation import Articulation
from .closure import Loops
from .dynamics import GRAVITY
from .error_queue import Descent, Measure
from .joint import Coordinates
from .loop_forces import LoopForces
from .model import SUBSPACE, Model
from .partition import ARITY, partition

FRAMES = ("world", "link")


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


class QuasiStatics:
    """The quasi-statics of `model` from joint coordinates `q` (nq,), by default its rest pose.

    `measure` of the error. `weights`: what joint accelerations are measured with, ones by default; (nv,) positive
    numbers, or for each link a symmetric positive definite matrix (d, d) of its d freedoms. `gravity` (3,) [m/s²],
    `forces` (nv,) of the joints besides their springs. `loops`: None for those that hold from the start; their forces
    are found exactly. `arity`: see partition.py; it changes the speed, and how many joints are computed together.
    Raises ValueError for what cannot be used.
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
    ) -> None:
        self.model, self.measure = model, Measure(measure)
        self.q = model.coordinates.zero() if q is None else _vector("q", q, model.nq).copy()
        self.partition = partition(model.parent, arity)
        factor = None if weights is None else _factors(model, weights, self.partition.joints)
        self.articulation = Articulation(model, self.partition, _vector("gravity", gravity, 3), factor)
        self._number = {name: i for i, name in enumerate(model.names)}
        self._forces = np.zeros(model.nv) if forces is None else _vector("forces", forces, model.nv).copy()
        self._in_world, self._in_link = np.zeros((model.n, 6)), np.zeros((model.n, 6))
        self._pulled, self._wrench = np.zeros(0, dtype=int), np.zeros((model.n, 6))
        self._loops = LoopForces(self.articulation, model, model.loops.closed() if loops is None else loops)
        self._place(np.arange(model.n))
        inner = np.arange(self.partition.leaves, self.partition.nodes)
        self.articulation.move(inner)
        self.articulation.update(inner, inner)
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
        freedoms = _ranges(self.model.coordinates.v_start, index)
        self._forces[freedoms] = _vector("forces", forces, len(freedoms))
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
            self._descent = Descent(self.articulation)
        self._descent.refine(float(threshold), self.measure)
        result = self._result()
        if not (np.isfinite(result.error) and np.isfinite(result.values).all()):
            raise ValueError("the accelerations are not finite; take shorter steps, or look for extreme q or stiffness")
        return result

    def advance(self, result: ApproximateAcceleration, h: float) -> None:
        """Moves the computed joints by h²/2 of their accelerations."""
        if not (np.isfinite(h) and h >= 0):
            raise ValueError(f"the step is {h} s; give a finite number of at least zero")
        subset = self._subset(result.links)
        rows = _ranges(self.model.coordinates.q_start, result.links)
        self.q[rows] = subset.integrate(self.q[rows], result.values, 0.5 * h * h)
        self._place(result.links, subset)
        self._moved = np.union1d(self._moved, result.nodes) if len(self._moved) else result.nodes
        self._descent = None

    def step(self, threshold: float, h: float) -> ApproximateAcceleration:
        """Solves and advances; loops close by half of what they are open, as far as computed joints can."""
        result = self.solve(threshold, closing=1.0 / (h * h) if h > 0 else 0.0)
        self.advance(result, h)
        return result

    def place(self, q: np.ndarray) -> None:
        """Puts all joints at coordinates `q` (nq,); the next solution brings everything up to date."""
        self.q = _vector("q", q, self.model.nq).copy()
        self._place(np.arange(self.model.n))
        self._moved = np.arange(self.partition.leaves, self.partition.nodes)
        self._descent = None

    def world_poses(self, links: Sequence[str] | Sequence[int] | np.ndarray) -> np.ndarray:
        """World poses (k, 4, 4) of `links` (k), by names or numbers: O(log n) each."""
        self._poses()
        return self.articulation.world_poses(self._links(links))

    def _links(self, links: Sequence[str] | Sequence[int] | np.ndarray) -> np.ndarray:
        unknown = [x for x in links if isinstance(x, str) and x not in self._number]
        if unknown:
            raise ValueError(f"no link is called {unknown[0]!r}; give names of the model's links")
        index = np.array([self._number[x] if isinstance(x, str) else x for x in links])
        if index.ndim != 1 or (len(index) and index.dtype.kind not in "iu"):
            raise ValueError("links are neither names nor whole numbers; give one of either for each")
        outside = index[(index < 0) | (index >= self.model.n)]
        if len(outside):
            raise ValueError(f"there is no link {outside[0]}; give numbers from 0 to {self.model.n - 1}")
        if len(np.unique(index)) != len(index):
            raise ValueError("a link is given twice; add its wrenches first")
        return index.astype(int)

    def _subset(self, links: np.ndarray) -> Coordinates:
        return Coordinates(self.model.coordinates.kinds[links])

    def _place(self, links: np.ndarray, subset: Coordinates | None = None) -> None:
        """Brings joints' transforms, and what their springs exert, up to date with q."""
        model = self.model
        subset = self._subset(links) if subset is None else subset
        q = self.q[_ranges(model.coordinates.q_start, links)]
        turn = subset.transforms(q)
        self.articulation.place(links, model.placement[links] @ turn, turn)
        freedoms = _ranges(model.coordinates.v_start, links)
        stiffness, forces = model.stiffness[freedoms], self._forces[freedoms]
        if stiffness.any():
            strain = subset.difference(subset.zero(), q)
            forces = forces - subset.spring_force(strain, stiffness * strain)
        a = self.articulation
        index, axis = np.nonzero(a.free[links])
        order = np.argsort(a.velocity[links][index, axis], kind="stable")
        a.applied[links[index[order]], axis[order]] = forces
        a.active = a.active or bool(forces.any())

    def _refresh(self, closing: float) -> None:
        """Brings coefficients up to date of the nodes whose joints have moved or are driven, of those whose links are
        pulled differently, and of their ancestors."""
        p, a = self.partition, self.articulation
        if len(self._driven):
            self._place(self._driven)
        moved, pulled = self._poses(), self._turned()
        loaded = p.ancestors(np.concatenate((p.owner[self._driven], pulled)))
        loaded = np.union1d(np.concatenate((loaded, p.owner[self._driven])), moved)
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
        """The leaves on which the wrenches, seen from the links, are not what they were; they are pulled anew."""
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

    def _result(self) -> ApproximateAcceleration:
        descent, a = self._descent, self.articulation
        none = np.zeros(0, dtype=int)
        joints = np.concatenate([none, *(x.ravel() for x in descent.joints)])
        order = np.argsort(joints)[: np.count_nonzero(joints < self.model.n)]
        motion = np.concatenate([np.zeros((0, 6)), *(x.reshape(-1, 6) for x in descent.motion)])[order]
        joints = joints[order]
        index, axis = np.nonzero(a.free[joints])
        return ApproximateAcceleration(
            joints,
            a.velocity[joints][index, axis],
            motion[index, axis],
            descent.error(self.measure),
            self.model.nv,
            np.sort(np.concatenate([none, *descent.opened])),
        )


def _ranges(start: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The numbers from start[i] up to start[i + 1], for each i of `index`, one after another."""
    counts = start[index + 1] - start[index]
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(start[index] - ends + counts, counts)


def _vector(name: str, values: np.ndarray, size: int) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.shape != (size,) or not np.isfinite(values).all():
        raise ValueError(f"{name} has shape {values.shape}; give {size} finite numbers")
    return values


def _factors(model: Model, weights: np.ndarray | Sequence[np.ndarray], joints: int) -> np.ndarray:
    """Factors C (joints + 1, 6, 6) of the weights W = Cᵀ C of the joints, along their axes."""
    factors = np.zeros((joints + 1, 6, 6))
    start = model.coordinates.v_start
    diagonal = isinstance(weights, np.ndarray) and weights.ndim == 1
    if len(weights) != (model.nv if diagonal else model.n):
        raise ValueError(f"there are {len(weights)} weights; give {model.nv} numbers or {model.n} matrices")
    for i, kind in enumerate(model.coordinates.kinds.tolist()):
        axes = [axis for axis, _ in SUBSPACE[kind]]
        d = len(axes)
        W = np.diag(weights[start[i] : start[i + 1]]) if diagonal else np.asarray(weights[i], dtype=float)
        if not d:
            continue
        fits = W.shape == (d, d) and np.isfinite(W).all() and np.abs(W - W.T).max() <= 1e-12 * np.abs(W).max()
        if not fits or np.linalg.eigvalsh(W)[0] <= 0:
            raise ValueError(
                f"the weight of {model.names[i]!r} is no symmetric positive definite matrix of {d} rows; give one"
            )
        factors[i][np.ix_(axes, axes)] = np.linalg.cholesky(W).T
    return factors
