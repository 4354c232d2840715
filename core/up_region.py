"""The up-region of some links of an assembly tree: restricted passes in O(log n) for each, given a solved tree.

Morin and Redon 2007 (force-feedback paper), section III-B: the up-region of a link is its leaf and all nodes above;
wrenches on the link change bias accelerations there alone (section IV-B). Instead of walking down again through the
coupling region for the handle forces (section IV-C), what the links answer with is summed on the way up: with b the
bias accelerations that unit wrenches cause at a joint, handles that are held take Σ bᵀ W b out of what free links would
answer, by virtual work. So the links' mutual responses are symmetric, and joint owners need no visit of their own.

A pendant takes bᵀ W b out where its host is held, and less where that yields: where this is below rounding, nothing
further up can be felt, and the passes end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .assembly import Assembly, Leaves, Runs
from .kinematics import Kinematics
from .tree import Kept

NOTHING = 1e-17
"""A share of what a link answers that is below rounding."""

Index = np.ndarray | slice


@dataclass(frozen=True)
class _Climb:
    """What the passes work on, for m wrenches: the `load` (any, 6, m) on links, about their clusters' origins, the bias
    accelerations `b` (nodes, 12, m), and the `result` (m, m)."""

    kin: Kinematics
    kept: Kept
    load: np.ndarray
    b: np.ndarray
    result: np.ndarray

    def add(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Adds Σ leftᵀ right over all rows (r, any, m), and returns it."""
        m = len(self.result)
        added = left.reshape(-1, m).T @ right.reshape(-1, m)
        np.add(self.result, added, out=self.result)
        return added


@dataclass(frozen=True)
class _Leaf:
    """Clusters `rows` (r,) of a batch: of pushed links the row `at` (w,), ascending, their clusters' `freedoms` (w, f),
    which of these move them, `moves` (w, f, 1), and the `load` (w,) on them; `made` (r,) nodes, None for clusters that
    are whole trees."""

    key: tuple[str, int]
    count: int
    rows: Index
    freedoms: np.ndarray
    at: np.ndarray
    moves: np.ndarray
    load: Index
    made: slice | None

    def climb(self, over: _Climb) -> bool:
        push = self.moves * (over.kin.columns[self.freedoms] @ over.load[self.load])
        if len(self.at) > self.count:
            parts, push = push, np.zeros((self.count, *push.shape[1:]))
            np.add.at(push, self.at, parts)
        h, *handles = over.kept[self.key]
        over.add(push, np.linalg.solve(h[self.rows], push))
        if self.made is not None:
            np.matmul(handles[0][self.rows].swapaxes(-1, -2), push, out=over.b[self.made])
        return True


@dataclass(frozen=True)
class _Run:
    """Runs `rows` (r,) of a batch with `joints` (r, k). Of the places of their joints, and of their handles before and
    after these, (r, k + 2) in turn, those `before` (w,) and `after` (w,) nodes `child` (w,)."""

    key: tuple[str, int]
    rows: Index
    joints: np.ndarray
    before: Index
    after: Index
    child: Index
    made: slice

    def climb(self, over: _Climb) -> bool:
        matrix, axes, scale, force = over.kept[self.key]
        (r, k), m = self.joints.shape, len(over.result)
        ends, made = over.b[self.child], over.b[self.made]
        every = np.zeros((r * (k + 2), 6, m))
        every[self.before] -= ends[:, :6]
        every[self.after] += ends[:, 6:]
        every = every.reshape(r, k + 2, 6, m)
        beta = every[:, 1:-1]
        along = (axes[self.joints] @ beta).reshape(r, 6 * k, m)
        along *= scale[self.joints].reshape(r, 6 * k, 1)
        over.add(-along, np.linalg.solve(matrix[self.rows], along))
        np.matmul(force[self.rows].swapaxes(-1, -2), -beta.reshape(r, 6 * k, m), out=made)
        made[:, :6] -= every[:, 0]
        made[:, 6:] += every[:, -1]
        return True


@dataclass(frozen=True)
class _Rake:
    """Pendants `rows` (r,) of a level with nodes `child` (r,), which become the loads `made` on their hosts."""

    key: tuple[str, int]
    rows: Index
    child: Index
    made: slice

    def climb(self, over: _Climb) -> bool:
        W, shift = over.kept[self.key]
        top = over.b[self.child][:, :6]
        pull = W[self.rows] @ top
        taken = over.add(-top, pull)
        if (-taken.diagonal() <= NOTHING * over.result.diagonal()).all():
            return False
        np.matmul(shift[self.rows], pull, out=over.load[self.made])
        return True


def _index(numbers: np.ndarray) -> Index:
    """What picks those numbers; a single one without a copy."""
    return slice(int(numbers[0]), int(numbers[0]) + 1) if len(numbers) == 1 else numbers


class UpRegion:
    """The up-region of the links in the `slots` (k,) of an assembly, in one pass where they meet; several may be the
    same, the number of slots stands for the world. `size`: how many nodes it has. `own` (f,): the freedom slots that
    move the links within their clusters, and `whose` (k, f) ones where it is that link's. `passes`: of each, which of
    those before it come to it, none where a link itself does."""

    def __init__(self, assembly: Assembly, slots: np.ndarray) -> None:
        self.slots, self.count, self.assembly = slots, len(slots), assembly
        self.passes: list[tuple[_Leaf | _Run | _Rake, tuple[int, ...]]] = []
        self.loads, self.size = self.count, 0
        first = [(x.first_link, number) for number, x in enumerate(assembly.steps) if isinstance(x, Leaves)]
        self._starts, self._numbers = (np.array(column) for column in zip(*sorted(first)))
        # of each step to be taken what comes to it: row, place, where it is kept, and from which pass
        self._waiting: dict[int, list[tuple[int, int, int, int]]] = {}
        own: list[tuple[int, int]] = []
        for grab, slot in enumerate(slots.tolist()):
            if slot < assembly.links:
                leaves, row, place = self._push(slot, grab, -1)
                moving = leaves.first_freedom + leaves.freedoms * row + np.flatnonzero(leaves.moves[row, place])
                own.extend((f, grab) for f in moving.tolist())
        while self._waiting:
            self._take(min(self._waiting))
        self.own, link = np.array(own, dtype=int).reshape(-1, 2).T
        self.whose = (link == np.arange(self.count)[:, None]).astype(float)

    def _push(self, slot: int, load: int, came: int) -> tuple[Leaves, int, int]:
        """A link is to have that load; its leaves, and which it is of them."""
        number = int(self._numbers[np.searchsorted(self._starts, slot, side="right") - 1])
        leaves = self.assembly.steps[number]
        row, place = divmod(slot - leaves.first_link, leaves.links)
        self._waiting.setdefault(number, []).append((row, place, load, came))
        return leaves, row, place

    def _take(self, number: int) -> None:
        """Plans the pass that takes a step."""
        step, me = self.assembly.steps[number], len(self.passes)
        row, place, source, came = np.array(sorted(self._waiting.pop(number))).T
        rows, at = np.unique(row, return_inverse=True)
        if isinstance(step, Leaves | Runs):
            made, nodes = slice(self.size, self.size + len(rows)), rows
            if isinstance(step, Leaves):
                freedoms = step.first_freedom + step.freedoms * row[:, None] + np.arange(step.freedoms)
                pushes = freedoms, at, step.moves[row, place][:, :, None], _index(source)
                made = made if step.nodes is not None else None
                nodes = rows + step.nodes.start if made else rows[:0]
                planned = _Leaf(("leaves", step.first_link), len(rows), _index(rows), *pushes, made)
            else:
                nodes, joints = rows + step.made.start, step.joints[rows]
                before = at * (joints.shape[1] + 2) + place
                ends = _index(before), _index(before + 1), _index(source)
                planned = _Run(("run", step.made.start), _index(rows), joints, *ends, made)
            for node, kept in zip(nodes.tolist(), range(self.size, self.size + len(nodes))):
                further, row_there, place_there = self.assembly.ascent[node].tolist()
                if further >= 0:
                    self._waiting.setdefault(further, []).append((row_there, place_there, kept, me))
            self.size += len(nodes)
        else:
            made = slice(self.loads, self.loads + len(row))
            planned = _Rake(("rake", int(step[0, 1])), _index(row), _index(source), made)
            for host, load in zip(step[row, 2].tolist(), range(made.start, made.stop)):
                self._push(host, load, me)
            self.loads = made.stop
        self.passes.append((planned, () if (came < 0).any() else tuple(np.unique(came).tolist())))

    def motion(self, kin: Kinematics, accelerations: np.ndarray) -> np.ndarray:
        """What freedom slots' `accelerations` (slots, c) make of the links' (k, 6, c), about their clusters' origins
        and without what these accelerate by themselves within their clusters (`kinematics.bias`)."""
        moved = kin.columns[self.own][:, :, None] * accelerations[self.own][:, None, :]
        columns = accelerations.shape[1]
        return (self.whose @ moved.reshape(len(self.own), 6 * columns)).reshape(self.count, 6, columns)

    def responses(self, kin: Kinematics, kept: Kept, wrenches: np.ndarray) -> np.ndarray:
        """Accelerations (m, m) of the links along m `wrenches` (k, 6, m) per unit of each of these: torques and forces
        about the links' clusters' origins, along the world's axes. `kept`: by `dynamics.respond` in this pose."""
        m = wrenches.shape[-1]
        load, b = np.zeros((self.loads, 6, m)), np.zeros((self.size, 12, m))
        load[: self.count] = wrenches
        over, felt = _Climb(kin, kept, load, b, np.zeros((m, m))), []
        for each, before in self.passes:
            reached = not before or any(felt[i] for i in before)
            felt.append(reached and each.climb(over))
        return 0.5 * (over.result + over.result.T)
