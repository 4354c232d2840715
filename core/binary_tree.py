"""The binary tree of a forest: heavy paths halved by weight, light pendants joined to the link that carries them, and
links with many pendants cut into parts. See partition.py, which merges its nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .assembly import heavy_children


class BinaryTree:
    """Lists over leaves, then nodes of two children, the second of which hangs at the first's tip. Links with more than
    `room` pendants are cut; nodes with up to `most` of the `freedoms` (n,) within them are blocks. Of children that
    carry as much, those of lower `rank` (n,) come first."""

    def __init__(self, parent: np.ndarray, room: int, freedoms: list[int], most: int, rank: list[int]) -> None:
        n = len(parent)
        self.n, self.room, self.most, self.rank = n, room, most, rank
        above = np.append(np.where(parent < 0, n, parent), -1)
        depth = [0] * (n + 1)
        for i, host in enumerate(parent.tolist()):
            depth[i] = depth[host] + 1
        order = [n, *sorted(range(n), key=lambda i: (depth[i], rank[i]))]
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
            count = -(-len(those) // self.room)
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
            those = sorted(pendants[link], key=lambda i: (self.size[made[i]], self.rank[i]))
            parts = self.parts.get(link, [link])
            for k, leaf in enumerate(parts):
                node = leaf
                for i in those[k * self.room : (k + 1) * self.room]:
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
