"""A model on its partition: where its joints are, what they exert, and what their accelerations weigh."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .articulation import Articulation
from .checks import are_numbers, several
from .joint import Coordinates
from .model import SUBSPACE, Model
from .partition import partition


class Hierarchy:
    """`model` with joint coordinates `q` (nq,), at first its rest pose, its `partition` and an `articulation` of that
    kind; `gravity`, `weights`, `arity` and `most` as for `QuasiStatics`. Joints are not placed yet."""

    def __init__(
        self,
        model: Model,
        articulation: type[Articulation],
        gravity: np.ndarray,
        weights: np.ndarray | Sequence[np.ndarray] | None,
        arity: int,
        most: int = 0,
    ) -> None:
        self.model, self.q = model, model.coordinates.zero()
        # in whatever order characters and limbs are given, they are divided alike
        self.rank = np.argsort(np.argsort(np.array(model.names)))
        self.partition = partition(model.parent, arity, np.diff(model.coordinates.v_start), most, self.rank)
        factor = None if weights is None else _factors(model, weights, self.partition.joints)
        self.gravity = vector("gravity", gravity, 3)
        self.articulation = articulation(model, self.partition, self.gravity, factor)
        self._forces = np.zeros(model.nv)
        self._last: tuple[np.ndarray, tuple[Coordinates, np.ndarray, np.ndarray]] | None = None

    def _links(self, links: Sequence[str] | Sequence[int] | np.ndarray) -> np.ndarray:
        index, number = links, self.model.number
        if not (isinstance(links, np.ndarray) and links.dtype.kind in "iu"):
            unknown = [x for x in links if isinstance(x, str) and x not in number]
            if unknown:
                raise ValueError(f"no link is called {unknown[0]!r}; give names of the model's links")
            index = np.array([number[x] if isinstance(x, str) else x for x in links])
        if index.ndim != 1 or (len(index) and index.dtype.kind not in "iu"):
            raise ValueError("links are neither names nor whole numbers; give one of either for each")
        outside = index[(index < 0) | (index >= self.model.n)]
        if len(outside):
            raise ValueError(f"there is no link {outside[0]}; give numbers from 0 to {self.model.n - 1}")
        if len(np.unique(index)) != len(index):
            raise ValueError("a link is given twice; add its wrenches first")
        return index.astype(int)

    def _subset(self, links: np.ndarray) -> tuple[Coordinates, np.ndarray, np.ndarray]:
        """The joints of `links` alone, and where their coordinates and velocities are among all."""
        # mostly those of the step before
        if self._last is None or not np.array_equal(links, self._last[0]):
            c = self.model.coordinates
            self._last = links, (Coordinates(c.kinds[links]), ranges(c.q_start, links), ranges(c.v_start, links))
        return self._last[1]

    def _place(self, links: np.ndarray) -> None:
        """Brings joints' transforms, and what their springs exert, up to date with q."""
        model = self.model
        subset, rows, freedoms = self._subset(links)
        q = self.q[rows]
        turn = subset.transforms(q)
        self.articulation.place(links, model.placement[links] @ turn, turn)
        stiffness, forces = model.stiffness[freedoms], self._forces[freedoms]
        if stiffness.any():
            strain = subset.difference(subset.zero(), q)
            forces = forces - subset.spring_force(strain, stiffness * strain)
        a = self.articulation
        index, axis = np.nonzero(a.free[links])
        a.applied[links[index], axis] = forces
        a.active = a.active or bool(forces.any())


def ranges(start: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The numbers from start[i] up to start[i + 1], for each i of `index`, one after another."""
    counts = start[index + 1] - start[index]
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(start[index] - ends + counts, counts)


def vector(name: str, values: np.ndarray, size: int) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.shape != (size,) or not np.isfinite(values).all():
        raise ValueError(f"{name} has shape {values.shape}; give {size} finite numbers")
    return values


def joint_weights(model: Model, weights: np.ndarray | Sequence) -> list[np.ndarray]:
    """The weights of each link's joint as a matrix. Raises ValueError where they are none of the model's."""
    weights = weights if isinstance(weights, np.ndarray) and weights.ndim else several("weights", weights)
    numbers = are_numbers(weights, -1) or (isinstance(weights, np.ndarray) and weights.ndim == 1)
    if len(weights) != (model.nv if numbers else model.n):
        raise ValueError(f"there are {len(weights)} weights; give {model.nv} numbers or {model.n} matrices")
    start, result = model.coordinates.v_start, []
    for i, d in enumerate(np.diff(start).tolist()):
        W = np.diag(weights[start[i] : start[i + 1]]) if numbers else weights[i]
        if d and not _weighs(W, d):
            raise ValueError(
                f"the weight of {model.names[i]!r} is no symmetric positive definite matrix of {d} rows; give one"
            )
        result.append(np.asarray(W, dtype=float) if d else np.zeros((0, 0)))
    return result


def _weighs(W: object, d: int) -> bool:
    """Whether W is a symmetric positive definite matrix (d, d)."""
    if not (are_numbers(W, -1, -1) and np.shape(W) == (d, d)):
        return False
    W = np.asarray(W, dtype=float)
    return bool(np.abs(W - W.T).max() <= 1e-12 * np.abs(W).max() and np.linalg.eigvalsh(W)[0] > 0)


def _factors(model: Model, weights: np.ndarray | Sequence[np.ndarray], joints: int) -> np.ndarray:
    """Factors C (joints + 1, 6, 6) of the weights W = Cᵀ C of the joints, along their axes."""
    factors = np.zeros((joints + 1, 6, 6))
    for i, (kind, W) in enumerate(zip(model.coordinates.kinds.tolist(), joint_weights(model, weights))):
        axes = [axis for axis, _ in SUBSPACE[kind]]
        if axes:
            factors[i][np.ix_(axes, axes)] = np.linalg.cholesky(W).T
    return factors
