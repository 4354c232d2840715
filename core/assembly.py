"""The assembly tree: which links form a leaf, and in which order leaves are joined.

Links are gathered into *clusters* (connected sub-trees of limited freedoms, design: dense leaves; one link each gives
Featherstone's tree). Clusters joined in series are *compressed*: a node keeps two handles, one at the joint that
carries its first cluster and one where its heaviest child hangs. Lighter children are *raked*: absorbed by the link
that carries them. Heavy paths are split by weight into up to ARITY parts that are joined at once (numpy pays for calls,
so a few larger solves beat many levels of pairs); the tree has O(log n) levels, and a level is a few index arrays. This
file is index work only; nothing here runs in a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

WHOLE_TREE_FREEDOMS = 72
"""A tree of up to so many freedoms is one dense leaf."""
LEAF_FREEDOMS = 20
"""Freedoms of a leaf of a larger tree."""
ARITY = 16
"""Nodes joined in series at once."""


@dataclass(frozen=True)
class Leaves:
    """Clusters of like size, assembled in one batch; padded to `links` slots and `freedoms` freedom slots each.

    `first_link`, `first_freedom`, `first_cluster`: where their slots begin in the model's arrays.
    `moves` (count, links, freedoms): 1 where a freedom moves a link. `descends` (count, links, links): 1 where the
    second link is the first or hangs below it. `upper` (count, freedoms, freedoms): 1 where the second freedom's link
    carries the first's, 0.5 where they are the same link's. `carrier` (count, freedoms): the link of each freedom, and
    `padding` (count, freedoms, freedoms) ones on the diagonal of unused freedoms.
    `nodes`: slice of node numbers, None for trees of a single cluster. `handles` (count,): the slot, within the
    cluster, of the link that carries the heavy child, and `joints` (count,) that child's joint; `joined` (count,) says
    whether there is one; `floats` (count,) whether the cluster's base is a joint of the tree.
    """

    first_cluster: int
    first_link: int
    first_freedom: int
    count: int
    links: int
    freedoms: int
    moves: np.ndarray
    descends: np.ndarray
    upper: np.ndarray
    carrier: np.ndarray
    padding: np.ndarray
    nodes: slice | None
    handles: np.ndarray
    joints: np.ndarray
    joined: np.ndarray
    floats: np.ndarray

    @cached_property
    def carriers(self) -> np.ndarray:
        """The link of each freedom (count, freedoms) among those of all clusters."""
        return self.carrier + self.links * np.arange(self.count)[:, None]

    @cached_property
    def moves_or_world(self) -> np.ndarray:
        """The first cluster's `moves`, and the world's, which nothing moves (links + 1, freedoms)."""
        return np.concatenate((self.moves[0], np.zeros((1, self.freedoms))))

    def link_view(self, array: np.ndarray) -> np.ndarray:
        """The part of a per-link array that belongs to these leaves, (count, links, ...)."""
        end = self.first_link + self.count * self.links
        return array[self.first_link : end].reshape(self.count, self.links, *array.shape[1:])

    def freedom_view(self, array: np.ndarray) -> np.ndarray:
        """The part of a per-freedom array that belongs to these leaves, (count, freedoms, ...)."""
        end = self.first_freedom + self.count * self.freedoms
        return array[self.first_freedom : end].reshape(self.count, self.freedoms, *array.shape[1:])


@dataclass(frozen=True)
class Runs:
    """Runs of equal length joined into one node each: `nodes` (runs, k + 1) in series, `joints` (runs, k) between them;
    the results are the nodes `made`."""

    nodes: np.ndarray
    joints: np.ndarray
    made: slice


@dataclass(frozen=True)
class Level:
    """What is assembled together: leaves, then runs of nodes, then the rake of finished pendants.

    `rakes` (r, 3): top node of the pendant, its joint, and the slot of the link that absorbs it.
    """

    leaves: list[Leaves]
    runs: list[Runs]
    rakes: np.ndarray


@dataclass(frozen=True)
class Assembly:
    """The schedule of a forest. Slots number the links cluster by cluster, with padding; freedom slots likewise, then
    six columns for each joint between clusters.

    `slot` (n,): slot of each link. `links` slots, `freedoms` freedom slots (the joints' columns come after them).
    `parent` (links,): parent slot within the cluster, `links` where there is none. `cluster_of` (links,).
    `cluster_tree` (clusters,): the root cluster. `cluster_parent` (clusters,), `cluster_attach` (clusters,) slot that
    carries the cluster, `cluster_root` (clusters,) its root's slot; the number of clusters (of links) where there is
    none. `joint_cluster` (joints,). `freedom_slot` (n,): first freedom slot of each link; for the root of a floating
    cluster, of its joint's columns. `base` (clusters,): True where the cluster's base is carried by a joint of the
    tree.
    """

    slot: np.ndarray
    links: int
    freedoms: int
    parent: np.ndarray
    cluster_of: np.ndarray
    cluster_tree: np.ndarray
    cluster_parent: np.ndarray
    cluster_attach: np.ndarray
    cluster_root: np.ndarray
    joint_cluster: np.ndarray
    freedom_slot: np.ndarray
    base: np.ndarray
    levels: list[Level]
    leaves: list[Leaves]
    nodes: int

    @cached_property
    def steps(self) -> list[Leaves | Runs | np.ndarray]:
        """What is assembled at once, in order: batches of leaves, of runs, and a level's rakes."""
        return [
            step for level in self.levels
            for step in (*level.leaves, *level.runs, *((level.rakes,) if len(level.rakes) else ()))
        ]  # fmt: skip

    @cached_property
    def ascent(self) -> np.ndarray:
        """The step (nodes, 3) that takes each node further up, its row in it and its place there; -1 at the top."""
        result = np.full((self.nodes, 3), -1)
        for number, step in enumerate(self.steps):
            if isinstance(step, Runs):
                runs, parts = step.nodes.shape
                rows = np.stack(np.broadcast_arrays(number, np.arange(runs)[:, None], np.arange(parts)), axis=-1)
                result[step.nodes] = rows
            elif not isinstance(step, Leaves):
                result[step[:, 0], 0], result[step[:, 0], 1] = number, np.arange(len(step))
        return result

    @cached_property
    def whole(self) -> bool:
        """Whether all links are in one cluster."""
        return len(self.cluster_root) == 1


def jump_table(parent: np.ndarray) -> list[np.ndarray]:
    """Index arrays of pointer jumping: the r-th holds each entry's 2^r-th ancestor, len(parent) beyond the root."""
    table, current, none = [], np.append(parent, len(parent)), len(parent)
    while (current[:-1] != none).any():
        table.append(current[:-1])
        current = current[current]
    return table


def _clusters(parent: np.ndarray, freedoms: np.ndarray, leaf_freedoms: int | None) -> np.ndarray:
    """The root link of each link's cluster, (n,): greedily from the tips, cutting the largest parts first."""
    n = len(parent)
    weight = np.maximum(freedoms, 1).tolist()
    parents = parent.tolist()
    tree, total = list(range(n)), [0] * n
    for i, p in enumerate(parents):
        tree[i] = i if p < 0 else tree[p]
        total[tree[i]] += weight[i]
    carried: list[list[int]] = [[] for _ in range(n)]
    size, cut = weight[:], [p < 0 for p in parents]
    for i in range(n - 1, -1, -1):
        if leaf_freedoms is not None:
            limit = leaf_freedoms
        else:
            limit = WHOLE_TREE_FREEDOMS if total[tree[i]] <= WHOLE_TREE_FREEDOMS else LEAF_FREEDOMS
        parts = sorted(carried[i], key=lambda c: (size[c], c))
        size[i] += sum(size[c] for c in parts)
        while parts and size[i] > limit:
            largest = parts.pop()
            cut[largest] = True
            size[i] -= size[largest]
        if parents[i] >= 0:
            carried[parents[i]].append(i)
    root = list(range(n))
    for i, p in enumerate(parents):
        if not cut[i]:
            root[i] = root[p]
    return np.array(root, dtype=int)


def heavy_children(parent: Sequence[int], order: Sequence[int]) -> tuple[list[int], list[int]]:
    """How many hang below each entry of a forest, itself counted, and its heaviest child, -1 where it has none.

    `parent`: -1 where there is none; `order`: the entries, parents before children.
    """
    size, heavy = [1] * len(parent), [-1] * len(parent)
    for k in reversed(order):
        p = parent[k]
        if p >= 0:
            size[p] += size[k]
            if heavy[p] < 0 or size[k] >= size[heavy[p]]:
                heavy[p] = k
    return size, heavy


class _Paths:
    """Heavy paths over the cluster tree, each assembled as a tree of runs balanced by weight."""

    def __init__(self, parent: list[int], arity: int) -> None:
        count = len(parent)
        size, self.heavy = heavy_children(parent, range(count))
        self.size = size
        self.leaf_level = [0] * count
        self.arity = arity
        self.runs: list[tuple[int, list[int], list[int]]] = []  # level, nodes, first clusters but the first's
        self.rakes: list[tuple[int, int, int]] = []  # level, top node, first cluster
        for top in range(count - 1, -1, -1):
            if parent[top] >= 0 and self.heavy[parent[top]] == top:
                continue
            node, level = self._assemble(top)
            if parent[top] >= 0:
                self.rakes.append((level, node, top))
                self.leaf_level[parent[top]] = max(self.leaf_level[parent[top]], level + 1)

    def _assemble(self, top: int) -> tuple[int, int]:
        path = [top]
        while self.heavy[path[-1]] >= 0:
            path.append(self.heavy[path[-1]])
        # nodes numbered from the number of clusters on are runs; a cluster weighs itself and its pendants
        below = np.array([self.size[k] for k in path] + [0])
        bounds = np.concatenate(([0], np.cumsum(below[:-1] - below[1:])))

        def build(first: int, last: int) -> tuple[int, int]:
            if last - first == 1:
                return path[first], self.leaf_level[path[first]]
            parts = min(self.arity, last - first)
            shares = bounds[first] + (bounds[last] - bounds[first]) * np.arange(1, parts) / parts
            cuts = np.searchsorted(bounds, shares)
            # every part keeps at least one cluster
            cuts = np.maximum(cuts, first + np.arange(1, parts))
            cuts = np.minimum(
                np.maximum.accumulate(cuts - np.arange(parts - 1)) + np.arange(parts - 1),
                last - np.arange(parts - 1, 0, -1),
            )
            edges = [first, *cuts.tolist(), last]
            built = [build(a, b) for a, b in pairwise(edges)]
            level = max(item[1] for item in built) + 1
            self.runs.append((level, [item[0] for item in built], [path[k] for k in edges[1:-1]]))
            return len(self.size) + len(self.runs) - 1, level

        return build(0, len(path))


def _size_class(count: int) -> int:
    """Sizes in one class are padded to a common size: powers of two and their halves between."""
    power = 1 << max(count - 1, 0).bit_length()
    return power * 3 // 4 if count <= power * 3 // 4 else power


def assemble(
    parent: np.ndarray, freedoms: np.ndarray, leaf_freedoms: int | None = None, arity: int = ARITY
) -> Assembly:
    """Plans the assembly of a forest.

    `parent` (n,): each link's parent, -1 for the world, parents before children; `freedoms` (n,) of each link's joint;
    `leaf_freedoms`: the most freedoms of a dense leaf, 1 for leaves of single links, None for the measured best;
    `arity`: nodes joined at once, 2 with single links for Featherstone's binary tree.
    """
    n = len(parent)
    root_of = _clusters(parent, freedoms, leaf_freedoms)
    roots = np.flatnonzero(root_of == np.arange(n))
    cluster = np.searchsorted(roots, root_of)
    count = len(roots)
    cluster_parent = np.where(parent[roots] >= 0, cluster[np.maximum(parent[roots], 0)], -1)
    tree = np.arange(count)
    for k in np.flatnonzero(cluster_parent >= 0).tolist():
        tree[k] = tree[cluster_parent[k]]
    paths = _Paths(cluster_parent.tolist(), arity)

    members = np.split(np.argsort(cluster, kind="stable"), np.cumsum(np.bincount(cluster, minlength=count))[:-1])
    alone = (cluster_parent < 0) & (np.bincount(cluster_parent[cluster_parent >= 0], minlength=count) == 0)
    internal = np.bincount(cluster, weights=freedoms, minlength=count).astype(int) - freedoms[roots]
    groups: dict[tuple, list[int]] = {}
    for k in range(count):
        key = (paths.leaf_level[k], not alone[k], _size_class(len(members[k])), _size_class(int(internal[k])))
        groups.setdefault(key, []).append(k)

    joints = np.flatnonzero(cluster_parent >= 0)
    joint_of = np.full(count, -1)
    joint_of[joints] = np.arange(len(joints))
    slot, freedom_slot = np.empty(n, dtype=int), np.empty(n, dtype=int)
    order = np.array([k for key in sorted(groups) for k in groups[key]], dtype=int)
    number = np.empty(count, dtype=int)
    number[order] = np.arange(count)

    total_levels = 1 + max([key[0] for key in groups] + [r[0] for r in paths.runs] + [r[0] for r in paths.rakes])
    leaves: list[list[Leaves]] = [[] for _ in range(total_levels)]
    node = np.full(count + len(paths.runs), -1)
    first_cluster = first_link = first_freedom = nodes = 0
    slot_parent_parts = []
    for key in sorted(groups):
        group = groups[key]
        joined_tree = key[1]
        m = max(len(members[k]) for k in group)
        base = 6 if joined_tree else int(max(freedoms[roots[k]] for k in group))
        f = base + int(max(internal[k] for k in group))
        moves, descends, upper, carrier, padding, slot_parent = _fill(
            [members[k] for k in group], cluster_parent[group] >= 0, parent, freedoms, first_link, first_freedom, m, f,
            base, slot, freedom_slot,
        )  # fmt: skip
        heavy = np.array([paths.heavy[k] for k in group])
        attach = np.where(heavy >= 0, slot[np.maximum(parent[roots[heavy]], 0)], 0)
        handles = np.where(heavy >= 0, attach - first_link - m * np.arange(len(group)), 0)
        if joined_tree:
            node[group] = nodes + np.arange(len(group))
            nodes += len(group)
        leaves[key[0]].append(Leaves(
            first_cluster, first_link, first_freedom, len(group), m, f, moves, descends, upper, carrier, padding,
            slice(nodes - len(group), nodes) if joined_tree else None,
            handles, np.where(heavy >= 0, joint_of[heavy], 0), heavy >= 0, cluster_parent[group] >= 0,
        ))  # fmt: skip
        slot_parent_parts.append(slot_parent)
        first_cluster += len(group)
        first_link += len(group) * m
        first_freedom += len(group) * f

    run_order = sorted(range(len(paths.runs)), key=lambda i: (paths.runs[i][0], len(paths.runs[i][1])))
    node[count + np.array(run_order, dtype=int)] = nodes + np.arange(len(run_order))
    runs: list[list[Runs]] = [[] for _ in range(total_levels)]
    for (level, _), same in groupby(run_order, key=lambda i: (paths.runs[i][0], len(paths.runs[i][1]))):
        batch = [paths.runs[i] for i in same]
        made = slice(nodes, nodes + len(batch))
        nodes += len(batch)
        runs[level].append(Runs(node[np.array([r[1] for r in batch])], joint_of[np.array([r[2] for r in batch])], made))
    levels = []
    for level in range(total_levels):
        rakes = [(node[a], joint_of[k], slot[parent[roots[k]]]) for lv, a, k in paths.rakes if lv == level]
        levels.append(Level(leaves[level], runs[level], np.array(rakes, dtype=int).reshape(-1, 3)))

    slot_parent = np.concatenate(slot_parent_parts)
    links = first_link
    freedom_slot[roots[joints]] = first_freedom + 6 * np.arange(len(joints))
    cluster_of = np.zeros(links, dtype=int)
    cluster_of[slot] = number[cluster]
    renumbered = cluster_parent[order]
    return Assembly(
        slot=slot,
        links=links,
        freedoms=first_freedom,
        parent=np.where(slot_parent < 0, links, slot_parent),
        cluster_of=cluster_of,
        cluster_tree=number[tree[order]],
        cluster_parent=np.where(renumbered >= 0, number[np.maximum(renumbered, 0)], count),
        cluster_attach=np.where(renumbered >= 0, slot[np.maximum(parent[roots[order]], 0)], links),
        cluster_root=slot[roots[order]],
        joint_cluster=number[joints],
        freedom_slot=freedom_slot,
        base=renumbered >= 0,
        levels=levels,
        leaves=[batch for level in levels for batch in level.leaves],
        nodes=nodes,
    )


def _fill(
    clusters: list[np.ndarray], floats: np.ndarray, parent: np.ndarray, freedoms: np.ndarray, first_link: int,
    first_freedom: int, m: int, f: int, base: int, slot: np.ndarray, freedom_slot: np.ndarray,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Numbers the links and freedoms of a batch of `clusters`, in `slot` and `freedom_slot`, and fills its masks: the
    `moves`, `descends`, `upper`, `carrier` and `padding` of Leaves, and the links' parents (count * m,) in slots."""
    c = len(clusters)
    moves, descends = np.zeros((c, m, f)), np.zeros((c, m, m))
    carrier, used = np.zeros((c, f), dtype=int), np.zeros((c, f), dtype=bool)
    slot_parent = np.full(c * m, -1)
    place: dict[int, int] = {}
    for row, members in enumerate(clusters):
        place.clear()
        column = base
        for i, link in enumerate(members.tolist()):
            place[link] = i
            slot[link] = first_link + row * m + i
            d = int(freedoms[link])
            if i == 0:
                d, start = (6 if floats[row] else d), 0
            else:
                start, column = column, column + d
                p = place[int(parent[link])]
                slot_parent[row * m + i] = first_link + row * m + p
                moves[row, i] = moves[row, p]
                descends[row, :, i] = descends[row, :, p]
            freedom_slot[link] = first_freedom + row * f + start
            moves[row, i, start : start + d] = 1.0
            descends[row, i, i] = 1.0
            carrier[row, start : start + d] = i
            used[row, start : start + d] = True
    both = used[:, :, None] & used[:, None, :]
    same = carrier[:, :, None] == carrier[:, None, :]
    # [a, b]: freedom b moves the link of freedom a
    carries = np.take_along_axis(moves, carrier[:, :, None], axis=1) > 0
    upper = np.where(both & carries, np.where(same, 0.5, 1.0), 0.0)
    padding = np.eye(f) * ~used[:, :, None]
    return moves, descends, upper, carrier, padding, slot_parent
