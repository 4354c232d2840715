"""Which joints of a moving linkage matter: the active region of adaptive dynamics, with a proven error.

Redon, Galoppo and Lin 2005, as told by Gayle, Lin and Manocha 2006 (adaptive contact paper, section III): of a hybrid
body, whose active joints move while all others hold still, the acceleration metric tells which joints would start to
move (the transient region), and the velocity metric, after their accelerations have acted for a while, which of these
are worth moving. Everything costs O(k log(n / k)) for k joints that are active or pulled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .active_region import ActiveRegion, Choice, shares
from .dynamics import GRAVITY
from .error_queue import ApproximateAcceleration, Descent, Measure
from .hierarchy import Hierarchy, ranges, vector
from .model import CRAWL, Model
from .moving_articulation import MovingArticulation
from .partition import ARITY
from .zones import RigidNodes, Zones


class Activity(Hierarchy):
    """The choice of active joints of `model`, at first in its rest pose; see `QuasiStatics` for `gravity`, `weights`
    and `arity`. Joint springs and dampers act toward rest targets, as in `dynamics.closed_dynamics`; of loops, what
    they pull with is given to `pull`. Raises ValueError for what cannot be used.
    """

    articulation: MovingArticulation

    def __init__(
        self,
        model: Model,
        *,
        gravity: np.ndarray = GRAVITY,
        weights: np.ndarray | Sequence[np.ndarray] | None = None,
        arity: int = ARITY,
    ) -> None:
        super().__init__(model, MovingArticulation, gravity, weights, arity)
        none = np.zeros(0, dtype=int)
        self._wrench, self._pulled = np.zeros((model.n, 6)), none
        self._loaded = none
        velocity = self.articulation.velocity[: model.n]
        self._damping = np.append(model.damping + model.drive_damping, 0.0)[velocity]
        self._friction = np.append(model.friction, 0.0)[velocity]
        self._movable = np.zeros(self.partition.joints + 1, dtype=bool)
        self._movable[: model.n] = np.diff(model.coordinates.v_start) > 0
        self._counted = self._movable.copy()
        self._counted[: model.n][(model.parent < 0) & (model.coordinates.kinds == "free")] = False
        self.share = shares(model, self.partition)
        self._ball = np.isin(model.coordinates.kinds, ("spherical", "free"))
        self._rigid = RigidNodes(self.articulation, model)
        self.place(self.q)

    def place(self, q: np.ndarray) -> None:
        """Puts all joints at coordinates `q` (nq,); the next look brings everything up to date."""
        self.q = vector("q", q, self.model.nq).copy()
        self._place(np.arange(self.model.n))
        self._moved = self._stale = self._rigid.stale = np.arange(self.partition.leaves, self.partition.nodes)

    def moved(self, links: Sequence[str] | Sequence[int] | np.ndarray, q: np.ndarray) -> None:
        """The joints of `links` (k,), by names or numbers, have moved to their part of the coordinates `q` (nq,)."""
        links = self._links(links)
        rows = ranges(self.model.coordinates.q_start, links)
        self.q[rows] = vector("q", q[rows], len(rows))
        self._place(links)
        self._mark(self._owners(links))

    def lead(self, transforms: np.ndarray, twists: np.ndarray, changes: np.ndarray) -> None:
        """Where keyed links are and how they move: of all links the joints' `transforms` (n, 4, 4), the `twists` (n, 6)
        against their parents, and their rates of `changes` (n, 6), in the links' own frames."""
        links = self.articulation.keyed
        self.articulation.place(links, self.model.placement[links] @ transforms[links], transforms[links])
        self.articulation.lead(twists[links], changes[links])
        self._mark(self._owners(links))

    def _mark(self, moved: np.ndarray) -> None:
        self._moved, self._stale = np.union1d(self._moved, moved), np.union1d(self._stale, moved)
        self._rigid.stale = np.union1d(self._rigid.stale, moved)

    def pull(self, links: Sequence[str] | Sequence[int] | np.ndarray, wrenches: np.ndarray) -> None:
        """From now on `links` (k,) are pulled by `wrenches` (k, 6) [N m, N]: torque about each link's origin and force,
        along the link's axes, with which they turn; all other links are not pulled any more."""
        links = self._links(links)
        wrenches = vector("wrenches", np.reshape(wrenches, -1), 6 * len(links)).reshape(-1, 6)
        some = np.union1d(self._pulled, links)
        fresh = np.zeros((len(some), 6))
        fresh[np.searchsorted(some, links)] = wrenches
        news = (fresh != self._wrench[some]).any(1)
        self._pulled = some[fresh.any(1)]
        some = some[news]
        self._wrench[some] = fresh[news]
        self.articulation.load(some, self._wrench[some])
        self._loaded = np.union1d(self._loaded, self.partition.ancestors(some))

    def drive(self, links: Sequence[str] | Sequence[int] | np.ndarray, forces: np.ndarray) -> None:
        """From now on the joints of `links` (k,) exert `forces` (f,) [N m or N], one for each of their freedoms in
        turn, besides their springs and dampers."""
        links = self._links(links)
        freedoms = ranges(self.model.coordinates.v_start, links)
        self._forces[freedoms] = vector("forces", forces, len(freedoms))
        self._place(links)
        self._loaded = np.union1d(self._loaded, self._owners(links))

    def accelerations(
        self,
        links: Sequence[str] | Sequence[int] | np.ndarray,
        v: np.ndarray,
        *,
        threshold: float | None = None,
        joints: int | None = None,
        measure: Measure = Measure.ABSOLUTE_LINKAGE,
        compensated: bool = False,
    ) -> ApproximateAcceleration:
        """The accelerations that matter while the joints of `links` (k,) move with `v` (f,) [rad/s or m/s], one for
        each of their freedoms in turn, and no others: with an error of at most `threshold` in the measure, or of the
        nodes that have the largest until at least so many `joints` are computed; with both, whatever comes first.
        `compensated`: nodes count for what remains when others take over what they can, see active_region.py."""
        if threshold is None and joints is None:
            raise ValueError("nothing says how many joints to compute; give a threshold or a number of joints")
        if threshold is not None and not threshold >= 0:
            raise ValueError(f"the error threshold is {threshold}; give a number of at least zero")
        if joints is not None and not 0 <= joints <= self.model.n:
            raise ValueError(f"{joints} joints are to be computed; give a number from 0 to {self.model.n}")
        self._refresh(self._links(links), v)
        descent = Descent(self.articulation, self.share if compensated else None)
        threshold = 0.0 if threshold is None else float(threshold)
        if joints is None:
            descent.refine(threshold, measure)
        else:
            descent.spend(joints, threshold, measure)
        result = descent.result(measure, self.model.n)
        if not (np.isfinite(result.error) and np.isfinite(result.values).all()):
            raise ValueError("the accelerations are not finite; take shorter steps, or look for extreme q, v or forces")
        return result

    def fewest(
        self, links: np.ndarray, v: np.ndarray, transient: ApproximateAcceleration, interval: float, threshold: float,
        *, favour: float = 1.0,
    ) -> ActiveRegion:  # fmt: skip
        """The fewest joints without which the root of Σ v⁺ᵀ W v⁺ is at most `threshold`, after the accelerations
        `transient` have acted for `interval` seconds on joints `links` with velocities `v`, as given to
        `accelerations`; what was not computed does not accelerate.

        Single ones, where the papers' queue takes nodes, since velocities are known one by one. What moves already
        counts for `favour` times as much when it is ranked.
        """
        threshold = _threshold(threshold)
        some, squares = self._after(links, v, transient, interval)
        order = np.lexsort((self.rank[some], np.where(np.isin(some, links), favour, 1.0) * squares))
        rest = np.append(0.0, np.cumsum(squares[order]))
        left = int(np.searchsorted(rest, threshold * threshold, side="right")) - 1
        return ActiveRegion(np.sort(some[order[left:]]), float(rest[left]) ** 0.5)

    def best(
        self, links: np.ndarray, v: np.ndarray, transient: ApproximateAcceleration, interval: float, joints: int,
        *, kept: Sequence[int] | np.ndarray = (), enough: float = 0.0,
    ) -> ActiveRegion:  # fmt: skip
        """The nodes with at most so many `joints`, beside those of what floats, that are worth moving, where `fewest`
        takes single ones; those of the links `kept` (l,) as long as they are good `enough`, see `Choice.region`."""
        if not 0 <= joints <= self.model.n:
            raise ValueError(f"{joints} joints are to move; give a number from 0 to {self.model.n}")
        kept = self.partition.closure(self.partition.owner[self._links(kept)])
        return self._choice(links, v, transient, interval).region(joints, kept, enough)

    def within(
        self, links: np.ndarray, v: np.ndarray, transient: ApproximateAcceleration, interval: float, threshold: float
    ) -> ActiveRegion:
        """The nodes without which the error is at most `threshold` when others take over what they can, where `fewest`
        counts single joints and all that they do; `transient` is compensated, too."""
        return self._choice(links, v, transient, interval).within(_threshold(threshold))

    def _choice(self, links: np.ndarray, v: np.ndarray, transient: ApproximateAcceleration, interval: float) -> Choice:
        p = self.partition
        some, squares = self._after(links, v, transient, interval)
        metric, owner = np.zeros(p.nodes + 1), p.owner[some]
        for nodes, values in ((owner, squares), (transient.frontier, interval * interval * transient.totals)):
            np.add.at(metric, nodes, values)
            np.add.at(metric, p.ancestry[nodes], values[:, None])
        nodes = np.union1d(p.closure(owner), transient.nodes)
        return Choice(p, nodes, self.share * metric, self._movable, self._counted)

    def _after(
        self, links: np.ndarray, v: np.ndarray, transient: ApproximateAcceleration, interval: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The joints (k,) that move after an interval, and v⁺ᵀ W v⁺ (k,) of each."""
        if not (np.isfinite(interval) and interval >= 0):
            raise ValueError(f"the interval is {interval} s; give a finite number of at least zero")
        a, before = self.articulation, self._links(links)
        some = np.union1d(before, transient.links)
        rates = np.zeros((len(some), 6))
        rates[np.searchsorted(some, before)] = self._rates(before, v)
        index, axis = np.nonzero(a.free[transient.links])
        rates[np.searchsorted(some, transient.links)[index], axis] += interval * transient.values
        return some, (a.weighed(some[:, None], rates[:, :, None])[:, :, 0] ** 2).sum(-1)

    def zones(self, links: Sequence[str] | Sequence[int] | np.ndarray) -> Zones:
        """The rigid zones between the joints of `links` (k,), if these are active and all others hold still, and keyed
        ones."""
        self._poses()
        return self._rigid.zones(np.union1d(self._links(links), self.articulation.keyed), self.model.placement)

    def _owners(self, links: np.ndarray) -> np.ndarray:
        """The nodes whose principal joints those of `links` are, and all above."""
        owner = self.partition.owner[links]
        return np.union1d(owner, self.partition.ancestors(owner))

    def _rates(self, links: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Joint velocities (k, 6) along the joints' axes."""
        free = self.articulation.free[links]
        rates = np.zeros(free.shape)
        rates[free] = vector("v", v, int(free.sum()))
        return rates

    def _refresh(self, links: np.ndarray, v: np.ndarray) -> None:
        rates = self._rates(links, v)
        self._poses()
        self.articulation.refresh(self._stale, self._loaded, links, rates, self._resistance(links, rates) * rates)
        self._stale = self._loaded = self._stale[:0]

    def _poses(self) -> None:
        self.articulation.move(self._moved)
        self._moved = self._moved[:0]

    def _resistance(self, links: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """What dampers and dry friction of moving joints amount to (k, 6), as `Model.rubbing` has it."""
        speed, ball = np.abs(rates), self._ball[links]
        speed[ball, :3] = np.sqrt((rates[ball, :3] ** 2).sum(-1, keepdims=True))
        return self._damping[links] + self._friction[links] / np.maximum(speed, CRAWL)


def _threshold(threshold: float) -> float:
    if not threshold >= 0:
        raise ValueError(f"the threshold of velocities is {threshold}; give a number of at least zero")
    return float(threshold)
