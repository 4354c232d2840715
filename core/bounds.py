"""Which axis-aligned boxes overlap: a tree over boxes that stand still, and a sweep among boxes that move."""

from __future__ import annotations

import numpy as np

WIDTH = 8  # children of a node: their eight answers are the bytes of one 64-bit word
FARTHEST = np.finfo(float).max
GRADES = 8  # primitives are sorted by size first, each grade eight times the one below


class BoxTree:
    """An implicit tree over n boxes `low`, `high` (n, 3), for scenery.

    The boxes are sorted by size and then along a Morton curve; the box of a node is that of eight neighbours of the
    level below. Sorting by size first keeps a few huge boxes from inflating the nodes of many small ones.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        low, high = np.asarray(low, dtype=float).reshape(-1, 3), np.asarray(high, dtype=float).reshape(-1, 3)
        self._order = np.argsort(_codes(low, high), kind="stable")
        # A box overlaps another if its low is at most the other's high and its -high at most the other's -low.
        bounds = np.concatenate((low[self._order], -high[self._order]), axis=1)
        self._levels = []
        while len(bounds):
            groups = -(-len(bounds) // WIDTH)
            padded = np.full((groups * WIDTH, 6), np.inf)
            padded[: len(bounds)] = bounds
            level = np.ascontiguousarray(padded.reshape(groups, WIDTH, 6).transpose(0, 2, 1))
            self._levels.insert(0, level)
            if groups == 1:
                break
            bounds = level.min(axis=2)

    def __len__(self) -> int:
        return len(self._order)

    def near(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All overlapping pairs of queries (q, 3) and boxes: (query (c,), box (c,)), sorted; touching is overlap."""
        query = np.arange(len(low))
        if not self._levels or not len(query):
            return query[:0], query[:0]
        # finite, or the padding, which is infinitely far, would be near
        limits = np.minimum(np.concatenate((high, np.negative(low)), axis=1), FARTHEST)[:, :, None]
        node = np.zeros(len(query), dtype=np.intp)
        for level in self._levels:
            hit = level[node] <= limits[query]
            hit = np.bitwise_and.reduce(hit.view(np.uint64)[:, :, 0], axis=1).view(bool)
            child = hit.nonzero()[0]
            parent = child // WIDTH
            query, node = query[parent], node[parent] * WIDTH + (child - parent * WIDTH)
        pair = np.sort(query * len(self) + self._order[node])
        return np.divmod(pair, len(self))


def overlapping(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All overlapping pairs i < j among the boxes low, high (n, 3): (i (c,), j (c,)), sorted; touching is overlap."""
    count = len(low)
    spread = low + high
    spread -= spread[:1]
    axis = int((np.einsum("ij,ij->j", spread, spread) * count - spread.sum(axis=0) ** 2).argmax())
    order = low[:, axis].argsort(kind="stable")
    # a row for each axis, that of the sweep first
    rows = [axis, axis - 1, axis - 2]
    low, high = low.T[rows].take(order, axis=1), high.T[rows].take(order, axis=1)
    place = np.arange(count)
    follow = low[0].searchsorted(high[0], side="right") - place - 1
    np.maximum(follow, 0, out=follow)
    first = place.repeat(follow)
    second = np.arange(len(first)) + (place + 1 - (follow.cumsum() - follow)).repeat(follow)
    low, high = low[1:], high[1:]
    hit = low.take(second, axis=1) <= high.take(first, axis=1)
    hit &= low.take(first, axis=1) <= high.take(second, axis=1)
    hit = hit[0] & hit[1]
    first, second = order[first[hit]], order[second[hit]]
    pair = np.sort(np.minimum(first, second) * max(count, 1) + np.maximum(first, second))
    return np.divmod(pair, max(count, 1))


def _codes(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Sorting codes (n,) uint64: three bits of grade by size, then 20 bits per axis of the middles, interleaved."""
    if not len(low):
        return np.empty(0, dtype=np.uint64)
    size = (high - low).max(axis=1)
    small = max(float(np.median(size)), float(size.max()) * 1e-12, 1e-300)
    grade = np.log2(np.maximum(size / small, 1.0)) // np.log2(WIDTH)
    code = np.minimum(grade, GRADES - 1).astype(np.uint64) << np.uint64(60)
    middle = low + high
    middle -= middle.min(axis=0)
    cells = (middle * ((2**20 - 1) / max(float(middle.max()), 1e-300))).astype(np.uint64)
    for axis in range(3):
        code |= _spread(cells[:, axis]) << np.uint64(axis)
    return code


def _spread(x: np.ndarray) -> np.ndarray:
    """The low 20 bits of each number, moved to every third bit."""
    for shift, mask in ((32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F)):
        x = (x | x << np.uint64(shift)) & np.uint64(mask)
    for shift, mask in ((4, 0x10C30C30C30C30C3), (2, 0x1249249249249249)):
        x = (x | x << np.uint64(shift)) & np.uint64(mask)
    return x
