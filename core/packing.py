"""Rows of different islands in the same columns: what acts on one island moves nothing of another.

A crowd has thousands of limits and contacts, each of which concerns the freedoms of a few people. With a column of its
own for each row, nearly all that is multiplied is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

BLOCK, MANY = 64, 1 << 18
"""Of so MANY elements of slots and rows only those slots are multiplied, a BLOCK at once, that some rows act on: a row
acts on few."""


@dataclass(frozen=True)
class Packing:
    """Where r rows stand: the `column` (r,) and the `island` (r,) of each, and the island (slots,) of each freedom
    slot, -1 for none. There are `width` columns. Rows of one island have columns of their own, in order."""

    column: np.ndarray
    island: np.ndarray
    slots: np.ndarray
    width: int

    @classmethod
    def of(cls, island: np.ndarray, slots: np.ndarray) -> Packing:
        """For the islands (r,) of the rows and those (slots,) of the slots."""
        order = np.argsort(island, kind="stable")
        counts = np.bincount(island)
        column = np.empty(len(island), dtype=np.intp)
        column[order] = np.arange(len(island)) - np.repeat(np.cumsum(counts) - counts, counts)
        return cls(column, island, slots, int(counts.max(initial=0)))

    @classmethod
    @lru_cache(maxsize=64)
    def none(cls, rows: int) -> Packing:
        """A column for each row."""
        return cls(np.arange(rows), np.zeros(rows, dtype=np.intp), np.empty(0, dtype=np.intp), rows)

    @property
    def packed(self) -> bool:
        return self.width < len(self.column)

    def along(self, columns: np.ndarray, x: np.ndarray) -> np.ndarray:
        """What each row (r,) makes of `x` (slots,): the sum over its own slots."""
        if not self.packed:
            return x @ columns
        sums = np.zeros((self.island.max() + 2, self.width))
        np.add.at(sums, self.slots, x[:, None] * columns)
        return sums[self.island, self.column]

    def together(self, columns: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        """What the rows (r, r) make of each other's `pushes` (slots, width)."""
        if not self.packed:
            return columns.T @ pushes if columns.size < MANY else _in_blocks(columns, pushes)
        result = np.zeros((len(self.column), len(self.column)))
        rows, slots = (np.argsort(x, kind="stable") for x in (self.island, self.slots))
        each = np.arange(self.island.max() + 2)
        first_row, first_slot = np.searchsorted(self.island[rows], each), np.searchsorted(self.slots[slots], each)
        for i in each[:-1].tolist():
            own, among = rows[first_row[i] : first_row[i + 1]], slots[first_slot[i] : first_slot[i + 1]]
            width = len(own)
            result[own[:, None], own] = columns[among, :width].T @ pushes[among, :width]
        return result

    def spread(self, moves: np.ndarray, which: np.ndarray, impulses: np.ndarray) -> np.ndarray:
        """What `impulses` (r,) of the rows do to freedoms (f,) in the slots `which` (f,), of `moves` (f, width)."""
        if not self.packed:
            return moves @ impulses
        # what is of no island finds zeros in the last
        table = np.zeros((self.island.max() + 2, self.width))
        table[self.island, self.column] = impulses
        return (moves * table[self.slots[which]]).sum(axis=1)

    def apart(self, pushes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The columns (slots, k) of some `rows` (k,) alone, of the `pushes` (slots, width) of all."""
        result = pushes[:, self.column[rows]]
        return result * (self.slots[:, None] == self.island[rows]) if self.packed else result


def _in_blocks(columns: np.ndarray, pushes: np.ndarray) -> np.ndarray:
    """`columns`ᵀ `pushes`, where most of the columns (slots, rows) is zero."""
    even = len(columns) // BLOCK * BLOCK
    blocks = columns[:even].reshape(-1, BLOCK, columns.shape[1])
    acting = (blocks != 0.0).any(axis=1)
    result = columns[even:].T @ pushes[even:]
    for i in np.flatnonzero(acting.any(axis=1)).tolist():
        rows = np.flatnonzero(acting[i])
        result[rows] += blocks[i][:, rows].T @ pushes[i * BLOCK : (i + 1) * BLOCK]
    return result
