"""A mechanism with loops as subsystems, one for each tree, that exchange no more than the states of their cut joints.

Comparison of Two Alternate Methods for Distributed Forward Dynamic Simulation of a Four-Bar Linkage (Khan and Krovi),
section 5, for any number of trees. A cut joint is a virtual link between two trees. Each subsystem has its own model,
in which a link without mass stands for the other end of a cut joint, and integrates its own states. At every stage

    all tell where their ends of cut joints are and how fast they move;
    each adds J M⁻¹ Jᵀ of its side and the acceleration its side has alone, and the rows' forces follow from the sums.

Compliant joints need the first exchange only. See distributed.py for who passes on what is told.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from .closing import CLOSED, PROJECTIONS
from .dynamics import GRAVITY, free_forces, respond
from .kinematics import Kinematics, Motions, kinematics, motions
from .linkage import Link, Linkage, LinkageError
from .loops import loop_rows
from .model import Model, State, compile_model
from .smooth import RK4_STAGES, RK4_WEIGHTS, stage
from .spatial import cross, pose


class Exchange(IntEnum):
    """What subsystems tell: the ENDS of cut joints, one row each: pose (16), spin and velocity (6) in the world; how
    the R projected rows accelerate, PUSH: [J M⁻¹ Jᵀ | acceleration], or are still to close, SHUT: [J M⁻¹ Jᵀ | gap |
    rate]."""

    ENDS = 0
    PUSH = 1
    SHUT = 2


Talk = Generator[tuple[Exchange, np.ndarray], np.ndarray, None]
"""Yields what a subsystem tells and is sent the answer: for ENDS the sum of what all told, else the rows' forces (R,
columns) and a last row, the largest of each column after J M⁻¹ Jᵀ."""


@dataclass(frozen=True)
class Ends:
    """A subsystem's part in `count` ends, two for each loop: twice the loop's number is the host's, the next the real
    link's. It tells of `ours` (e,), on the links `slot` (e,) at `frame` (e, 4, 4); the links `stand_in` (s,), without
    mass and freedoms, stand for `theirs` (s,)."""

    count: int
    ours: np.ndarray
    slot: np.ndarray
    frame: np.ndarray
    theirs: np.ndarray
    stand_in: np.ndarray

    def told(self, kin: Kinematics, moving: Motions) -> np.ndarray:
        """What the subsystem tells (count, 22)."""
        frame, twist = kin.poses[self.slot] @ self.frame, moving.links[self.slot]
        arm = frame[:, :3, 3] - kin.origins[self.slot]
        result = np.zeros((self.count, 22))
        result[self.ours, :16] = frame.reshape(-1, 16)
        result[self.ours, 16:] = twist
        result[self.ours, 19:] += cross(twist[:, :3], arm)
        return result

    def place(self, kin: Kinematics, moving: Motions, heard: np.ndarray) -> None:
        """Puts the stand-ins into `kin` and `moving`: each is a tree of its own, whose origin is its cluster's."""
        kin.poses[self.stand_in] = heard[self.theirs, :16].reshape(-1, 4, 4)
        kin.origins[self.stand_in] = kin.poses[self.stand_in, :3, 3]
        moving.links[self.stand_in] = heard[self.theirs, 16:]


@dataclass(frozen=True)
class Subsystem:
    """One tree of a mechanism and what it needs to know of the rest.

    `model`: its links, stand-ins, and the loops it takes part in; `q`, `v`: its part of all coordinates and velocities;
    `forces` (nv,): constant joint forces; `gravity` (3,). Of the mechanism's R projected rows (`rows`) its own are
    `rigid` (r,) in its model, the numbers `place` (r,) in all; it `keeps` (r,) those whose gap it tells. `projected`
    as in `smooth.Smooth`.
    """

    name: str
    model: Model
    q: slice
    v: slice
    forces: np.ndarray
    gravity: np.ndarray
    ends: Ends
    rigid: np.ndarray
    place: np.ndarray
    keeps: np.ndarray
    rows: int
    projected: bool

    def run(self, path: np.ndarray, h: float) -> Talk:
        """Fills in `path` (steps + 1, nq + nv), whose first row is the start, by the classical Runge-Kutta rule."""
        model = self.model
        state = State(path[0, : model.nq].copy(), path[0, model.nq :].copy())
        for row in path[1:]:
            rates = np.zeros((len(RK4_STAGES), 2, model.nv))
            for i, weights in enumerate(RK4_STAGES):
                at, rates[i, 0] = stage(model, state, h, weights, rates[:i])
                rates[i, 1] = yield from self._acceleration(at)
            increment, change = h * np.tensordot(RK4_WEIGHTS, rates, 1)
            state = State(model.coordinates.integrate(state.q, increment, 1.0), state.v + change, state.time + h)
            if self.projected and self.rows:
                state = yield from self._shut(state)
            row[: model.nq], row[model.nq :] = state.q, state.v

    def _meet(self, state: State) -> Generator:
        """The pose, motion and loops' rows of a state, once the others have told where their ends are."""
        kin = kinematics(self.model, state.q)
        moving = motions(self.model, kin, state.v)
        self.ends.place(kin, moving, (yield Exchange.ENDS, self.ends.told(kin, moving)))
        return kin, moving, loop_rows(self.model, kin, self.model.loops)

    def _acceleration(self, state: State) -> Generator:
        """The joint accelerations (nv,), as in `dynamics.closed_dynamics`."""
        model, loops = self.model, self.model.loops
        kin, moving, rows = yield from self._meet(state)
        free, links, across = free_forces(model, state, kin, moving, self.gravity, self.forces)
        rate = rows.rate(moving.links)
        free += rows.columns @ np.where(loops.soft, -loops.stiffness * rows.gap - loops.damping * rate, 0.0)
        columns = rows.columns[:, self.rigid]
        answer = respond(model, kin, model.armature, np.column_stack((free, columns)), links, across)
        total = answer[:, 0]
        if self.rows:
            alone = rows.columns.T @ total + rows.rate(np.concatenate((links, np.zeros((1, 6)))))
            shared = rows.turning(kin, moving) + 2.0 * loops.baumgarte * rate + loops.baumgarte**2 * rows.gap
            told = self._told(columns, answer[:, 1:], alone[self.rigid] + self.keeps * shared[self.rigid])
            total = total + answer[:, 1:] @ (yield Exchange.PUSH, told)[self.place, 0]
        return total[model.columns.slot_of]

    def _shut(self, state: State) -> Generator:
        """The state with the projected rows closed, and then without velocity, as in `closing`."""
        model, q = self.model, state.q
        for left in reversed(range(PROJECTIONS + 1)):
            kin, moving, rows = yield from self._meet(replace(state, q=q))
            columns = rows.columns[:, self.rigid]
            answer = respond(model, kin, model.armature, columns)
            open_by = np.column_stack((rows.gap, rows.rate(moving.links)))[self.rigid]
            heard = yield Exchange.SHUT, self._told(columns, answer, self.keeps[:, None] * open_by)
            moves = answer[model.columns.slot_of] @ heard[self.place]
            if heard[-1, 0] < CLOSED or not left:
                return replace(state, q=q, v=state.v + moves[:, 1])
            q = model.coordinates.integrate(q, moves[:, 0], 1.0)
        return state

    def _told(self, columns: np.ndarray, answer: np.ndarray, sides: np.ndarray) -> np.ndarray:
        """[J M⁻¹ Jᵀ | sides] of this side among all rows (R, R + sides)."""
        sides = sides.reshape(len(self.place), -1)
        result = np.zeros((self.rows, self.rows + sides.shape[1]))
        result[np.ix_(self.place, self.place)] = columns.T @ answer
        result[self.place, self.rows :] = sides
        return result


def split(
    linkage: Linkage, *, forces: np.ndarray | None = None, gravity: np.ndarray = GRAVITY, projected: bool = True
) -> tuple[Subsystem, ...]:
    """The subsystems of a linkage, in the order of its trees, with the loops that hold from the start; constant joint
    `forces` (nv,), `gravity` (3,) and `projected` as for `smooth.Smooth`. Raises LinkageError where a link is keyed."""
    whole = compile_model(linkage)
    if whole.keyed.any():
        keyed = whole.names[int(whole.keyed.argmax())]
        raise LinkageError(f"link {keyed!r} is keyed, which links of subsystems cannot be; let it be simulated")
    loops, q, v, result = whole.loops.closed(), 0, 0, []
    forces = np.zeros(whole.nv) if forces is None else np.array(forces, dtype=float)
    rigid = np.flatnonzero(~loops.soft)
    for root in linkage.world.children():
        if root.real is not None:
            continue
        model, ends = _tree(linkage, root, loops.names)
        number = [loops.names.index(name) for name in model.loops.names]
        numbers = np.concatenate([np.zeros(0, dtype=int), *(np.flatnonzero(loops.loop == k) for k in number)])
        own = np.flatnonzero(~model.loops.soft)
        keeps = ~np.isin(model.loops.real, ends.stand_in)[model.loops.loop[own]]
        result.append(Subsystem(
            root.name, model, slice(q, q + model.nq), slice(v, v + model.nv), forces[v : v + model.nv],
            np.array(gravity, dtype=float), ends, own, np.searchsorted(rigid, numbers[own]), keeps, len(rigid),
            projected,
        ))  # fmt: skip
        q, v = q + model.nq, v + model.nv
    return tuple(result)


def _tree(linkage: Linkage, root: Link, names: tuple[str, ...]) -> tuple[Model, Ends]:
    """The model of the tree of `root` with its loops among `names`, and its ends of those."""
    tree, ours, theirs = Linkage(), [], []
    copies = {linkage.world: tree.world}
    for link in _below(root):
        copies[link] = tree.add(replace(link, parent=None, child=None, brother=None), copies[link.parent])
    for virtual in linkage.virtual_links():
        ends, frames = [virtual.parent, virtual.real], [pose(virtual.rotation, virtual.position), virtual.seat]
        mine = [end in copies for end in ends]
        if virtual.name not in names or not any(copies.get(end) not in (None, tree.world) for end in ends):
            continue
        here = [copies.get(end) for end in ends]
        for side in (0, 1):
            if mine[side]:
                continue
            number = 2 * names.index(virtual.name) + side
            here[side] = tree.add(Link(f"{virtual.name}, end {side}", mass=0.0, keyed=True))
            theirs.append((number, here[side]))
            ours.append((number ^ 1, here[1 - side], frames[1 - side]))
            frames[side] = np.eye(4)
        tree.connect(*here, virtual.joint, at=frames[0], seat=frames[1], name=virtual.name, closure=virtual.closure)
    model = compile_model(tree)
    slot = dict(zip(model.names, model.assembly.slot.tolist()))
    column = lambda values: np.array(list(values), dtype=int)  # noqa: E731
    return model, Ends(
        2 * len(names), column(end for end, _, _ in ours), column(slot[link.name] for _, link, _ in ours),
        np.array([frame for _, _, frame in ours], dtype=float).reshape(-1, 4, 4),
        column(end for end, _ in theirs), column(slot[link.name] for _, link in theirs),
    )  # fmt: skip


def _below(root: Link) -> Iterator[Link]:
    """The real links of a tree, parents before children, in the linkage's order."""
    pending = [root]
    while pending:
        link = pending.pop()
        yield link
        pending.extend([child for child in link.children() if child.real is None][::-1])
