"""A hierarchical partition of a forest, for methods that look only where something happens.

The assembly tree of the adaptive papers (Redon and Lin 2006, section 3; its dynamics are Gayle, Lin and Manocha's),
made for batches. The world is a link like any other, so that a forest is one tree, and a joint to the world one joint
among others. Heavy paths of the tree are halved by weight, light pendants are joined to the link that carries them, and
a link with many pendants is cut into parts of equal mass that are rigidly joined: the binary tree has O(log n) levels
whatever the forest. Neighbouring levels are then merged into nodes of up to `arity` children, because numpy pays for
calls, and the lowest into blocks. This file is index work only; nothing here runs in a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .assembly import heavy_children

ARITY = 3
"""Children of a node."""
PENDANTS = 3
"""Pendants of a leaf; links with more are cut into parts."""


@dataclass(frozen=True)
class Partition:
    """The nodes of a forest of n links: `blocks` of leaves, which are links or parts of one, then the inner nodes, a
    level of the tree after the other, the root last. By default block i is leaf i. The index `nodes` (their number)
    stands for no node.

    A node is a connected set of leaves. What is around it touches it at two of them only: its `top`, whose joint
    carries it, and its `tip`, where the rest of its path hangs. The K - 1 joints that join the K children of an inner
    node are its principal joints: the k-th carries child k + 1 and hangs at the tip of child `carrier[k]`.

    Joint i < n is that of link i; further ones join the parts of a link rigidly. The index `joints` (their number)
    stands for no joint. Rows of inner nodes are those of node - blocks.

    Leaf i <= n is link i, or the part of it that its joint carries; n is the world. `link` (leaves,) of each leaf and
    the `share` (leaves,) of the link's mass that it has; `block` (leaves,): where it is. `members` (blocks, most): the
    leaves of each block, its top first, hosts before what they carry, then the number of leaves for none.
    `child` (inner, arity), `joint` (inner, arity - 1) and `carrier` (inner, arity - 1) of inner nodes; `tip_child`
    (inner,): the child that has the node's tip.
    `top`, `tip` (nodes + 1,), as leaves; `parent` (nodes + 1,), the node above, and `position` (nodes + 1,), which
    child of it. `starts` (levels + 2,): the first node of each level, of the blocks first, and the number of nodes.
    `owner` (joints + 1,): the node whose principal joint it is, or the block within which it is; `joint_child`,
    `joint_host` (joints + 1,): the leaves it joins.
    """

    n: int
    arity: int
    link: np.ndarray
    share: np.ndarray
    block: np.ndarray
    members: np.ndarray
    child: np.ndarray
    joint: np.ndarray
    carrier: np.ndarray
    tip_child: np.ndarray
    top: np.ndarray
    tip: np.ndarray
    parent: np.ndarray
    position: np.ndarray
    starts: np.ndarray
    owner: np.ndarray
    joint_child: np.ndarray
    joint_host: np.ndarray

    @property
    def leaves(self) -> int:
        return len(self.link)

    @property
    def blocks(self) -> int:
        return len(self.members)

    @property
    def nodes(self) -> int:
        return len(self.parent) - 1

    @property
    def joints(self) -> int:
        return len(self.owner) - 1

    @property
    def root(self) -> int:
        return self.nodes - 1

    @property
    def levels(self) -> int:
        """Levels of inner nodes."""
        return len(self.starts) - 2

    @cached_property
    def hanging(self) -> np.ndarray:
        """What hangs at the tips of an inner node's children, (inner, arity, arity): 1 where principal joint k hangs at
        the child's tip, and in the last column where the node's own tip is."""
        result = np.zeros((len(self.child), self.arity, self.arity))
        row, k = np.nonzero(self.joint < self.joints)
        result[row, self.carrier[row, k], k] = 1.0
        result[np.arange(len(result)), self.tip_child, -1] = 1.0
        return result

    @cached_property
    def opens(self) -> np.ndarray:
        """Which children of the inner nodes are inner nodes, (inner, arity) bool."""
        return (self.child >= self.blocks) & (self.child < self.nodes)

    @cached_property
    def ancestry(self) -> np.ndarray:
        """The ancestors (nodes + 1, levels) of each node, from its parent upward, then `nodes`."""
        result = np.full((self.nodes + 1, self.levels), self.nodes, dtype=np.int32)
        for level in range(self.levels - 1, -1, -1):
            some = slice(self.starts[level], self.starts[level + 1])
            result[some, 0] = self.parent[some]
            result[some, 1:] = result[self.parent[some], :-1]
        return result

    def ancestors(self, nodes: np.ndarray) -> np.ndarray:
        """All nodes above `nodes` (any number), ascending: a level after the other, the root last."""
        found = np.unique(self.ancestry[nodes])
        return found[:-1] if len(found) and found[-1] == self.nodes else found

    def by_level(self, nodes: np.ndarray) -> Iterator[np.ndarray]:
        """Ascending inner `nodes` level by level from the blocks up, leaving out levels without any."""
        cuts = np.searchsorted(nodes, self.starts[1:])
        return (nodes[a:b] for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist()) if b > a)

    def path(self, block: int) -> np.ndarray:
        """The nodes from `block` up to the root, with both."""
        above = self.ancestry[block]
        return np.append(block, above[above < self.nodes])


class _Pairs:
    """The binary tree: lists over leaves, then nodes of two children, the second of which hangs at the first's tip."""

    def __init__(self, parent: np.ndarray, freedoms: list[int], most: int) -> None:
        n = len(parent)
        self.n, self.most = n, most
        above = np.append(np.where(parent < 0, n, parent), -1)
        order = [n, *range(n)]
        _, heavy = heavy_children(above.tolist(), order)
        pendants: list[list[int]] = [[] for _ in range(n + 1)]
        for i in range(n):
            if heavy[above[i]] != i:
                pendants[above[i]].append(i)
        self._cut(n, pendants)
        leaves = len(self.link)
        self.top, self.tip = list(range(leaves)), list(range(leaves))
        self.size, self.height = [1] * leaves, [0] * leaves
        self.freedoms, self.within = [*freedoms, *[0] * (leaves - n)], [0] * leaves
        self.left, self.right, self.joint = [-1] * leaves, [-1] * leaves, [-1] * leaves
        self.host = [-1] * self.joints
        made = [-1] * (n + 1)
        for start in [*reversed(order[1:]), n]:
            if start < n and heavy[above[start]] == start:
                continue
            path = [start]
            while heavy[path[-1]] >= 0:
                path.append(heavy[path[-1]])
            made[start] = self._assemble(path, pendants, made)
        self.root = made[n]

    def _cut(self, n: int, pendants: list[list[int]]) -> None:
        """Leaves for the links, and for the parts of those with many pendants."""
        self.link, self.share = list(range(n + 1)), [1.0] * (n + 1)
        self.parts: dict[int, list[int]] = {}
        for i, those in enumerate(pendants):
            count = -(-len(those) // PENDANTS)
            if count > 1:
                self.parts[i] = [i, *range(len(self.link), len(self.link) + count - 1)]
                self.link += [i] * (count - 1)
                self.share[i] = 1.0 / count
                self.share += [1.0 / count] * (count - 1)
        # a further part is carried by a joint of its own: leaf n + 1 + v by joint n + v
        self.joints = len(self.link) - 1

    def _join(self, left: int, right: int, joint: int, *, series: bool) -> int:
        self.host[joint] = self.tip[left]
        self.top.append(self.top[left])
        self.tip.append(self.tip[right] if series else self.tip[left])
        self.size.append(self.size[left] + self.size[right])
        # a joint without freedoms counts too, as what it carries is a body more
        own = max(self.freedoms[joint + (joint >= self.n)], 1)
        self.within.append(self.within[left] + self.within[right] + own)
        self.height.append(0 if self.within[-1] <= self.most else 1 + max(self.height[left], self.height[right]))
        self.left.append(left)
        self.right.append(right)
        self.joint.append(joint)
        return len(self.top) - 1

    def _assemble(self, path: list[int], pendants: list[list[int]], made: list[int]) -> int:
        pieces, carried = [], []
        for link in path:
            those = sorted(pendants[link], key=lambda i: (self.size[made[i]], i))
            parts = self.parts.get(link, [link])
            for k, leaf in enumerate(parts):
                node = leaf
                for i in those[k * PENDANTS : (k + 1) * PENDANTS]:
                    node = self._join(node, made[i], i, series=False)
                pieces.append(node)
                carried.append(link if k == 0 else leaf - 1)
        bounds = np.concatenate(([0], np.cumsum([self.size[node] for node in pieces])))

        def build(first: int, last: int) -> int:
            if last - first == 1:
                return pieces[first]
            half = 0.5 * (bounds[first] + bounds[last])
            cut = int(np.searchsorted(bounds, half))
            if cut > first + 1 and half - bounds[cut - 1] < bounds[cut] - half:
                cut -= 1
            cut = min(max(cut, first + 1), last - 1)
            left, right = build(first, cut), build(cut, last)
            return self._join(left, right, carried[cut], series=True)

        return build(0, len(pieces))

    def is_block(self, node: int) -> bool:
        return self.within[node] <= self.most

    def members(self, block: int) -> list[int]:
        """The leaves of a block, its top first, hosts before what they carry."""
        found, pending = [], [block]
        while pending:
            node = pending.pop()
            if self.left[node] < 0:
                found.append(node)
            else:
                pending += [self.right[node], self.left[node]]
        return found

    def merged(self, arity: int) -> Iterator[tuple[int, list[int], list[int]]]:
        """Nodes of up to `arity` children from the root down, without blocks: the node, its children and the joints
        that carry them but the first. The highest child is opened first."""
        pending = [] if self.is_block(self.root) else [self.root]
        while pending:
            node = pending.pop()
            children, joints = [self.left[node], self.right[node]], [self.joint[node]]
            while len(children) < arity:
                k = max(range(len(children)), key=lambda i: (self.height[children[i]], self.size[children[i]]))
                opened = children[k]
                if self.is_block(opened):
                    break
                children[k : k + 1] = [self.left[opened], self.right[opened]]
                joints.insert(k, self.joint[opened])
            pending += [c for c in children if not self.is_block(c)]
            yield node, children, joints


def partition(parent: np.ndarray, arity: int = ARITY, freedoms: np.ndarray | None = None, most: int = 0) -> Partition:
    """Partitions a forest.

    `parent` (n,): each link's parent, -1 for the world, parents before children; `arity`: the most children of a node,
    2 for the papers' binary tree. The joints within a block have up to `most` freedoms, of `freedoms` (n,) each.
    """
    if arity < 2:
        raise ValueError(f"a partition's arity is {arity}; give at least 2")
    parent = np.asarray(parent, dtype=int)
    pairs = _Pairs(parent, [1] * len(parent) if freedoms is None else freedoms.tolist(), most)
    inner = list(pairs.merged(arity))
    below = [c for _, children, _ in inner for c in children if pairs.is_block(c)] if inner else [pairs.root]
    made = sorted((pairs.members(block), block) for block in below)
    level = {block: 0 for _, block in made}
    for node, children, _ in reversed(inner):
        level[node] = 1 + max(level[c] for c in children)
    inner.sort(key=lambda item: level[item[0]])
    order = [*(block for _, block in made), *(item[0] for item in inner)]
    number = {node: k for k, node in enumerate(order)}
    leaves, blocks, nodes, joints = len(pairs.link), len(made), len(order), pairs.joints

    block, members = np.zeros(leaves, dtype=int), np.full((blocks, max(len(those) for those, _ in made)), leaves)
    for row, (those, _) in enumerate(made):
        block[those], members[row, : len(those)] = row, those
    child = np.full((len(inner), arity), nodes)
    joint = np.full((len(inner), arity - 1), joints)
    carrier = np.zeros((len(inner), arity - 1), dtype=int)
    tip_child = np.zeros(len(inner), dtype=int)
    for row, (node, children, those) in enumerate(inner):
        at = {pairs.tip[c]: k for k, c in enumerate(children)}
        child[row, : len(children)] = [number[c] for c in children]
        joint[row, : len(those)] = those
        carrier[row, : len(those)] = [at[pairs.host[j]] for j in those]
        tip_child[row] = at[pairs.tip[node]]
    above, position = np.full(nodes + 1, nodes), np.zeros(nodes + 1, dtype=int)
    row, k = np.nonzero(child < nodes)
    above[child[row, k]], position[child[row, k]] = blocks + row, k
    carried = np.array([*range(pairs.n), *range(pairs.n + 1, leaves), leaves])
    owner = np.append(block[carried[:-1]], nodes)
    row, k = np.nonzero(joint < joints)
    owner[joint[row, k]] = blocks + row
    ends = [[*(end[node] for node in order), leaves] for end in (pairs.top, pairs.tip)]
    counts = np.bincount([level[node] for node in order])
    return Partition(
        n=pairs.n,
        arity=arity,
        link=np.array(pairs.link),
        share=np.array(pairs.share),
        block=block,
        members=members,
        child=child,
        joint=joint,
        carrier=carrier,
        tip_child=tip_child,
        top=np.array(ends[0]),
        tip=np.array(ends[1]),
        parent=above,
        position=position,
        starts=np.concatenate(([0], np.cumsum(counts))),
        owner=owner,
        joint_child=carried,
        joint_host=np.array([*pairs.host, leaves]),
    )
