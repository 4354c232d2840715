"""Where round shapes touch each other, boxes and cylinders."""

from __future__ import annotations

import numpy as np

from .box_contact import round_box
from .contact import Touches, no_touches, tangents
from .cylinder_contact import round_cylinder
from .places import PARALLEL, TINY, merged, same_place, touches_at, unswallowed

__all__ = ["round_box", "round_cylinder", "round_round"]

# As a part of their distance, by how much two rounds that lie along each other must be nearer between the ends of this
# part than there: if they are alike all along it, rounding errors would place the nearest point anywhere.
CLEARLY = 1e-6

_EDGES = np.array([[-1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0], [1.0, 0.0, -1.0, 0.0]])
"""The axis of A, that of B backwards, and what leads from the start of B to that of A, of the four ends."""
_PLACES = np.array(
    [[0.0, np.nan, 1.0], [1.0, np.nan, 1.0], [np.nan, 0.0, 1.0], [np.nan, 1.0, 1.0], [np.nan, np.nan, 1.0]]
)
"""Places (s, t, 1) where the distance may be least, as far as they are known beforehand."""


def round_round(
    ends_a: np.ndarray, radii_a: np.ndarray, ends_b: np.ndarray, radii_b: np.ndarray, reach: np.ndarray
) -> Touches:
    """Touches of rounds A with rounds B with a gap below `reach` (p,).

    The features are the ends of the part where two rounds lie along each other, 0 and 1 in the direction of A, and
    the nearest place, 2, which takes the number of an end that it is close to.
    """
    count = len(ends_a)
    taper_a, taper_b = radii_a[:, 1] - radii_a[:, 0], radii_b[:, 1] - radii_b[:, 0]
    tapered = np.count_nonzero(taper_a) + np.count_nonzero(taper_b)
    if tapered:
        ends_a, radii_a, taper_a = unswallowed(ends_a, radii_a, taper_a)
        ends_b, radii_b, taper_b = unswallowed(ends_b, radii_b, taper_b)
    # From a place of B to one of A leads (s, t, 1) @ edges, with s and t from 0 to 1 along the axes of A and B.
    edges = _EDGES @ np.concatenate((ends_a, ends_b), axis=1)
    gram = edges @ edges.transpose(0, 2, 1)
    square = np.maximum(gram.reshape(count, 9)[:, 0:5:4], 1e-24)  # (p, 2) of the lengths of A and B
    across, origin = gram[:, 0, 1], gram[:, 2, :2]
    area = square[:, 0] * square[:, 1]
    sine = area - across * across
    across, determinant = across[:, None], np.maximum(sine, 1e-14 * area)[:, None]

    # The distance is convex, so its least is at a start or an end of A or B (0 to 3), or where both slopes vanish (4).
    parts = np.empty((count, 5, 3))
    parts[:] = _PLACES
    at_starts, at_ends = (parts.reshape(count, 15)[:, i : i - 6 : -5] for i in (6, 9))  # s of 2 and t of 0, of 3 and 1
    np.negative(origin / square, out=at_starts)
    np.subtract(at_starts, across / square, out=at_ends)
    parts[:, 4, :2] = (across * origin[:, ::-1] - square[:, ::-1] * origin) / determinant
    if tapered:
        _lean(parts, edges, square, across, determinant, np.stack((taper_a, taper_b), axis=1))
    np.minimum(np.maximum(parts, 0.0, out=parts), 1.0, out=parts)
    apart = parts @ edges
    distance = np.sqrt(np.add.reduce(apart * apart, axis=2))
    gap = distance - (radii_a[:, :1] + radii_b[:, :1])
    if tapered:
        gap -= parts[:, :, 0] * taper_a[:, None] + parts[:, :, 1] * taper_b[:, None]

    near = np.minimum.reduce(gap, axis=1) < reach
    if not np.count_nonzero(near):
        return no_touches()
    limit = PARALLEL * area
    if tapered:
        limit += area * np.square(np.abs(taper_a) / np.sqrt(square[:, 0]) + np.abs(taper_b) / np.sqrt(square[:, 1]))
    lying = (near & (sine < limit) & (area > 1e-36)).nonzero()[0]
    rank = gap
    if len(lying):
        rank = gap.copy()
        rank[lying, 4] += CLEARLY * distance[lying, 4]
    place = rank.argmin(axis=1)[:, None].repeat(3, axis=1)
    fresh = np.zeros((count, 3), dtype=bool)
    fresh[:, 2] = True
    if len(lying):
        s, nearest = parts[:, :, 0].take(lying, axis=0), place[:, 2].take(lying)
        start, end = s[:, 2], s[:, 3]
        turned = start > end
        first, last = np.minimum(start, end), np.maximum(start, end)
        of_nearest = s.take(nearest + np.arange(0, 5 * len(lying), 5))
        same = same_place(np.sqrt(square[:, 0].take(lying)), radii_a.take(lying, axis=0))
        at_first, at_last, fresh[lying] = merged(first, last, of_nearest, same)
        # the ends of A where it ends first
        place[lying, 0] = np.where(at_first, nearest, np.where(first > 0.0, 2 + turned, 0))
        place[lying, 1] = np.where(at_last, nearest, np.where(last < 1.0, 3 - turned, 1))

    index = place + np.arange(0, 5 * count, 5)[:, None]
    gap = gap.take(index)
    hit = (fresh & (gap < reach[:, None])).reshape(-1).nonzero()[0]
    index, (pair, feature) = index.take(hit), np.divmod(hit, 3)
    distance = distance.take(index)[:, None]
    normal = apart.reshape(-1, 3).take(index, axis=0) / np.maximum(distance, TINY)
    if np.count_nonzero(distance < TINY):
        merging = (distance[:, 0] < TINY).nonzero()[0]
        normal[merging] = _across(edges[pair[merging], 0], edges[pair[merging], 1])
    s = parts.take(3 * index)
    return touches_at(ends_a, radii_a, pair, s, normal, gap.take(hit), feature)


def _lean(
    parts: np.ndarray,
    edges: np.ndarray,
    square: np.ndarray,
    across: np.ndarray,
    determinant: np.ndarray,
    taper: np.ndarray,
) -> None:
    """Moves the places `parts` (p, 5, 3) of plain capsules to those of tapered ones.

    The line between the nearest places leans so that its cosine to an axis is the taper, the change (p, 2) of the
    radius over the length: the lengths of its parts are known, and so is its own.
    """
    line = np.sqrt(np.maximum(square * (square - taper * taper), 1e-200))
    lean = taper / line
    foot = parts @ edges
    length = np.sqrt(np.add.reduce(foot * foot, axis=2))
    parts[:, :2, 1] += length[:, :2] * lean[:, 1:]
    parts[:, 2:4, 0] += length[:, 2:4] * lean[:, :1]
    turn = (square[:, ::-1] * taper - across * taper[:, ::-1]) / determinant
    upright = np.sqrt(np.maximum(1.0 - np.add.reduce(turn * taper, axis=1), 1e-16))
    parts[:, 4, :2] += (length[:, 4] / upright)[:, None] * turn


def _across(axis_a: np.ndarray, axis_b: np.ndarray) -> np.ndarray:
    """Unit normals (p, 3) across both axes, for rounds whose axes meet; up for two spheres with one middle."""
    normal = np.cross(axis_a, axis_b)
    length = np.sqrt(np.add.reduce(normal * normal, axis=1))
    squares = np.add.reduce(axis_a * axis_a, axis=1), np.add.reduce(axis_b * axis_b, axis=1)
    crossing = length > 1e-6 * np.sqrt(squares[0] * squares[1])
    axis = np.where((squares[0] >= squares[1])[:, None], axis_a, axis_b)
    size = np.sqrt(np.maximum(*squares))[:, None]
    # The second tangent of the x axis is up.
    axis = np.where(size > TINY, axis / np.maximum(size, TINY), (1.0, 0.0, 0.0))
    return np.where(crossing[:, None], normal / np.maximum(length, 1e-200)[:, None], tangents(axis)[:, 1])
