"""The up-region of some links of an assembly tree: restricted passes in O(log n) for each, given a solved tree.

Morin and Redon 2007 (force-feedback paper), section III-B: the up-region of a link is its leaf and all nodes above;
wrenches on the link change bias accelerations there alone (section IV-B). Instead of walking down again through the
coupling region for the handle forces (section IV-C), what the links answer with is summed on the way up: with b the
bias accelerations that unit wrenches cause at a joint, handles that are held take Σ bᵀ W b out of what free links would
answer, by virtual work. So the links' mutual responses are symmetric, and joint owners need no visit of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .articulation import Articulation
from .assembly import Assembly, Leaves, Runs
from .dynamics import Kept
from .kinematics import Kinematics


@dataclass(frozen=True)
class _Leaf:
    """Clusters `rows` (r,) of a batch: of pushed links the row `at` (w,), ascending, their clusters' `freedoms` (w, f),
    which of these move them, `moves` (w, f, 1), and the `load` (w,) on them; `made` (r,) nodes, None for clusters that
    are whole trees."""

    key: tuple[str, int]
    freedoms: np.ndarray
    rows: np.ndarray
    at: np.ndarray
    moves: np.ndarray
    load: np.ndarray
    made: slice | None


@dataclass(frozen=True)
class _Run:
    """Runs `rows` (r,) of a batch with `joints` (r, k): children at `place` (w,) of row `at` (w,) are nodes `child`."""

    key: tuple[str, int]
    joints: np.ndarray
    rows: np.ndarray
    at: np.ndarray
    place: np.ndarray
    child: np.ndarray
    made: slice


@dataclass(frozen=True)
class _Rake:
    """Pendants `rows` (r,) of a level with nodes `child` (r,), which become the loads `made` on their hosts."""

    key: tuple[str, int]
    rows: np.ndarray
    child: np.ndarray
    made: slice


class UpRegion:
    """The up-region of the links in the `slots` (k,) of an assembly, in one pass where they meet; several may be the
    same, the number of slots stands for the world. `size`: how many nodes it has. `own` (f,): the freedom slots
    that move the links within their clusters, and `whose` (k, f) ones where it is that link's."""

    def __init__(self, assembly: Assembly, slots: np.ndarray) -> None:
        a = assembly
        self.slots, self.count, self.passes = slots, len(slots), []
        first = [(leaves.first_link, number) for number, leaves in enumerate(a.steps) if isinstance(leaves, Leaves)]
        starts, numbers = (np.array(column) for column in zip(*sorted(first)))
        waiting: dict[int, list[tuple[int, int, int]]] = {}
        own: list[tuple[int, int]] = []
        self.loads, self.size = self.count, 0

        def on_link(slot: int, load: int) -> None:
            number = int(numbers[np.searchsorted(starts, slot, side="right") - 1])
            leaves = a.steps[number]
            row, place = divmod(slot - leaves.first_link, leaves.links)
            waiting.setdefault(number, []).append((row, place, load))
            if load < self.count:
                moving = np.flatnonzero(leaves.moves[row, place])
                own.extend((leaves.first_freedom + leaves.freedoms * row + f, load) for f in moving.tolist())

        def further(node: int, kept: int) -> None:
            number, row, place = a.ascent[node].tolist()
            if number >= 0:
                waiting.setdefault(number, []).append((row, place, kept))

        for grab, slot in enumerate(slots.tolist()):
            if slot < a.links:
                on_link(slot, grab)
        while waiting:
            number = min(waiting)
            step = a.steps[number]
            row, place, source = np.array(sorted(waiting.pop(number))).T
            rows, at = np.unique(row, return_inverse=True)
            made = slice(self.size, self.size + len(rows))
            if isinstance(step, Leaves):
                inside = step.nodes is not None
                freedoms = step.first_freedom + step.freedoms * row[:, None] + np.arange(step.freedoms)
                self.passes.append(_Leaf(
                    ("leaves", step.first_link), freedoms, rows, at, step.moves[row, place][:, :, None], source,
                    made if inside else None,
                ))  # fmt: skip
                nodes = step.nodes.start + rows if inside else rows[:0]
            elif isinstance(step, Runs):
                self.passes.append(_Run(("run", step.made.start), step.joints[rows], rows, at, place, source, made))
                nodes = step.made.start + rows
            else:
                made = slice(self.loads, self.loads + len(row))
                self.passes.append(_Rake(("rake", int(step[0, 1])), row, source, made))
                for host, load in zip(step[row, 2].tolist(), range(made.start, made.stop)):
                    on_link(host, load)
                self.loads = made.stop
                continue
            for node, kept in zip(nodes.tolist(), range(made.start, made.stop)):
                further(node, kept)
            self.size += len(nodes)
        self.own, link = np.array(own, dtype=int).reshape(-1, 2).T
        self.whose = (link == np.arange(self.count)[:, None]).astype(float)

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
        result = np.zeros((m, m))
        for each in self.passes:
            if isinstance(each, _Leaf):
                push = each.moves * (kin.columns[each.freedoms] @ load[each.load])
                if len(each.at) > len(each.rows):
                    parts, push = push, np.zeros((len(each.rows), *push.shape[1:]))
                    np.add.at(push, each.at, parts)
                h, *handles = kept[each.key]
                _add(result, push, np.linalg.solve(h[each.rows], push))
                if each.made is not None:
                    b[each.made] = handles[0][each.rows].swapaxes(-1, -2) @ push
            elif isinstance(each, _Run):
                matrix, axes, scale, force = kept[each.key]
                r, k = each.joints.shape
                beta, ends = np.zeros((r, k + 2, 6, m)), b[each.child]
                # the first and the last place stand for the handles of the run
                beta[each.at, each.place] -= ends[:, :6]
                beta[each.at, each.place + 1] += ends[:, 6:]
                across = beta[:, 1:-1]
                along = (axes[each.joints] @ across).reshape(r, 6 * k, m)
                along *= scale[each.joints].reshape(r, 6 * k, 1)
                _add(result, -along, np.linalg.solve(matrix[each.rows], along))
                made = force[each.rows].swapaxes(-1, -2) @ across.reshape(r, 6 * k, m)
                np.negative(made, out=made)
                made[:, :6] -= beta[:, 0]
                made[:, 6:] += beta[:, -1]
                b[each.made] = made
            else:
                W, shift = kept[each.key]
                top = b[each.child, :6]
                pull = W[each.rows] @ top
                _add(result, -top, pull)
                load[each.made] = shift[each.rows] @ pull
        return 0.5 * (result + result.T)


def _add(result: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Adds Σ leftᵀ right over all rows (r, any, m)."""
    m = left.shape[-1]
    result += left.reshape(-1, m).T @ right.reshape(-1, m)


class PartitionRegion:
    """The up-region of links, the world among them, in the partition of an articulation: `leaves` (l,), ascending, and
    the nodes `above` them."""

    def __init__(self, articulation: Articulation, leaves: np.ndarray) -> None:
        p = articulation.partition
        self.articulation, self.partition = articulation, p
        self.leaves, self.above = leaves, p.ancestors(leaves)
        self.size = len(leaves) + len(self.above)
        place = np.full(p.nodes + 1, self.size)
        place[leaves] = np.arange(len(leaves))
        place[self.above] = len(leaves) + np.arange(len(self.above))
        self.passes = [
            (nodes - p.leaves, place[nodes], place[p.child[nodes - p.leaves]]) for nodes in p.by_level(self.above)
        ]

    def responses(self, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations (m, m) of the links along m `units` (l, 6, m) per unit of each of these, and along them now
        (m,): torques and forces about the links' origins, along their axes."""
        a = self.articulation
        r, m = units.shape[-1], 6 * (self.partition.arity - 1)
        moved = a.pairs[self.leaves, 0, :, :6] @ units
        result = np.zeros((r, r))
        _add(result, units, moved[:, :6])
        now = np.einsum("lir,li->r", units, a.linear[self.leaves, :6, 0])
        every = np.zeros((self.size + 1, 12, r))
        every[: len(self.leaves)] = moved
        for row, place, child in self.passes:
            along, maps = a.shape[row].swapaxes(-1, -2) @ every[child].reshape(len(row), -1, r), a.answer[row, :m]
            ends, along = along[:, m:], along[:, :m]
            _add(result, along, maps[:, :, :m] @ along)
            now += along.reshape(-1, r).T @ a.start[row, :m].ravel()
            every[place] = ends + maps[:, :, m:].swapaxes(-1, -2) @ along
        return 0.5 * (result + result.T), now
