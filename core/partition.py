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

from .binary_tree import BinaryTree
from .checks import whole

ARITY = 3
"""Children of a node. A step of a molecule under 1,000 forces takes 15.1, 14.4, 15.4 and 17.5 ms with 2, 3, 4 and 5."""
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
    def leads(self) -> np.ndarray:
        """Through which children of the inner nodes the way from their tops to their tips leads, (inner, arity)
        bool."""
        result = np.zeros(self.child.shape, dtype=bool)
        row, at = np.arange(len(result)), self.tip_child
        for _ in range(self.arity):
            result[row, at] = True
            at = np.where(at > 0, self.carrier[row, at - 1], 0)
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

    def closure(self, nodes: np.ndarray) -> np.ndarray:
        """`nodes` (any number, also repeated) and all above, ascending."""
        nodes = np.unique(nodes)
        found = np.unique(np.append(nodes, self.ancestry[nodes]))
        return found[:-1] if len(found) and found[-1] == self.nodes else found

    def by_level(self, nodes: np.ndarray) -> Iterator[np.ndarray]:
        """Ascending inner `nodes` level by level from the blocks up, leaving out levels without any."""
        cuts = np.searchsorted(nodes, self.starts[1:])
        return (nodes[a:b] for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist()) if b > a)


def partition(
    parent: np.ndarray, arity: int = ARITY, freedoms: np.ndarray | None = None, most: int = 0,
    rank: np.ndarray | None = None,
) -> Partition:  # fmt: skip
    """Partitions a forest.

    `parent` (n,): each link's parent, -1 for the world, parents before children; `arity`: the most children of a node,
    2 for the papers' binary tree. The joints within a block have up to `most` freedoms, of `freedoms` (n,) each.
    `rank` (n,): which of a link's children come first that carry as many others; their order by default.
    """
    if arity < 2:
        raise ValueError(f"a partition's arity is {arity}; give at least 2")
    most = whole("the number of freedoms in a block", most, 0)
    parent = np.asarray(parent, dtype=int)
    freedoms = np.ones_like(parent) if freedoms is None else freedoms
    rank = np.arange(len(parent)) if rank is None else rank
    pairs = BinaryTree(parent, PENDANTS, freedoms.tolist(), most, rank.tolist())
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
