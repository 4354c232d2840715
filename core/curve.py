"""Piecewise cubic curves in time through some of evenly spaced samples: which to keep, and the handles between them.

A segment of L frames is the Bezier curve whose handles stand at a third and two thirds of its time, so that its value
is a cubic polynomial of time; their values are those of least squares, and of least size where samples do not determine
them. A segment of three frames or fewer meets every sample.
"""

from __future__ import annotations

from functools import cache

import numpy as np

LENGTHS = (*range(1, 13), 14, 16, 20, 24, 32, 48, 64)
"""Lengths [frames] that a segment may have; few of the long ones, which only what hardly moves needs."""

NEATNESS = 1e-3
"""What the largest deviation in a segment costs, beside the key that it costs, so that of equally few keys the more
exact are taken."""


@cache
def operators(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Maps from the samples (L + 1) of a segment to its handles (2, L + 1), and from start, handles and end to its
    values at the frames inside (L - 1, 4): Bernstein's polynomials."""
    t = np.arange(1, length) / length
    weights = np.stack(((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3), axis=1)
    line, straight = np.zeros((length - 1, length + 1)), np.zeros((2, length + 1))
    line[:, 0], line[:, -1] = 1 - t, t
    straight[:, 0], straight[:, -1] = (2 / 3, 1 / 3), (1 / 3, 2 / 3)
    if length == 1:
        return straight, weights
    return straight + np.linalg.pinv(weights[:, 1:3]) @ (np.eye(length + 1)[1:-1] - line), weights


def segments(values: np.ndarray, length: int) -> np.ndarray:
    """The values (L - 1, F - L, ...) inside all segments of a length through values (F, ...), which may begin at any
    frame."""
    handles, weights = operators(length)
    between = np.tensordot(handles, windows(values, length), (1, -1))
    return np.tensordot(weights, np.stack((values[:-length], *between, values[length:])), 1)


def windows(values: np.ndarray, length: int) -> np.ndarray:
    """The samples of every segment of that length: (F - L, ..., L + 1) of values (F, ...), a view."""
    return np.lib.stride_tricks.sliding_window_view(values, length + 1, axis=0)


def fewest(prices: list[np.ndarray], frames: int) -> np.ndarray:
    """The lengths (F - 1, B) of the segments that begin at each frame, on the cheapest ways from frame to last frame,
    where `prices` (F - L, B) has what a segment of each of the LENGTHS costs; it is infinite for one that is barred."""
    lengths = np.array(LENGTHS[: len(prices)])
    bones = prices[0].shape[1]
    table = np.full((len(lengths), frames, bones), np.inf)
    for row, length, price in zip(table, lengths, prices):
        row[: frames - length] = price
    cost = np.full((frames + lengths[-1], bones), np.inf)
    cost[frames - 1] = 0.0
    steps = np.empty((frames - 1, bones), dtype=int)
    for frame in range(frames - 2, -1, -1):
        ways = table[:, frame] + cost[frame + lengths]
        steps[frame] = lengths[ways.argmin(axis=0)]
        cost[frame] = ways.min(axis=0)
    return steps


def visited(steps: np.ndarray) -> np.ndarray:
    """The frames (F, B) that are reached from the first one by those steps."""
    kept = np.zeros((len(steps) + 1, steps.shape[1]), dtype=bool)
    kept[0] = True
    for frame, step in enumerate(steps):
        (bones,) = kept[frame].nonzero()
        kept[frame + step[bones], bones] = True
    return kept


def fitted(values: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The curves through the kept frames (F, B) of values (F, B, C), the first and the last among them: their values
    (F, B, C) at all frames, and the handles (F, B, 2, C) before and after each kept frame."""
    bones, frames = kept.T.nonzero()  # bone by bone
    first = np.append(np.diff(bones) == 0, False)
    starts, bones, lengths = frames[first], bones[first], (np.roll(frames, -1) - frames)[first]
    curve, handles = values.copy(), np.repeat(values[:, :, None], 2, axis=2)
    for length in np.unique(lengths):
        own = lengths == length
        start, bone = starts[own, None], bones[own, None]
        samples = values[start + np.arange(length + 1), bone]
        bends, weights = operators(int(length))
        between = bends @ samples
        points = np.stack((samples[:, 0], between[:, 0], between[:, 1], samples[:, -1]), axis=1)
        handles[start[:, 0], bone[:, 0], 1], handles[start[:, 0] + length, bone[:, 0], 0] = between[:, 0], between[:, 1]
        curve[start + np.arange(1, length), bone] = weights @ points
    return curve, handles
