"""Groups: what is joined in pairs hangs together."""

from __future__ import annotations

import numpy as np


def joined(count: int, pairs: np.ndarray) -> np.ndarray:
    """The lowest number (count,) among all that `pairs` (2, k) of numbers join each number to, itself included."""
    root = np.arange(count)
    a, b = pairs
    while True:
        low, high = np.minimum(root[a], root[b]), np.maximum(root[a], root[b])
        if (low == high).all():
            return root
        # each root hangs on the lowest it is joined with, and what hangs on it follows
        np.minimum.at(root, high, low)
        while (root[root] != root).any():
            root = root[root]
