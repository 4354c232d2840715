"""Where round shapes touch solid boxes, in the boxes' frames."""

from __future__ import annotations

import numpy as np

from .contact import Touches
from .places import merged, same_place, touches_at, unswallowed

TINY = 1e-12  # [m] distances up to this are none
# Boxes are larger by this [m]: a capsule exactly above an edge is then above the face, not just beside it.
SKIN = 1e-9


def round_box(ends: np.ndarray, radii: np.ndarray, half: np.ndarray, reach: np.ndarray) -> Touches:
    """Touches of rounds with boxes of half extents (p, 3) around the origin.

    The places are both ends of the part of the axis that lies above the nearest face, 0 and 1 (the whole axis where no
    part does), and the nearest place, 2, which takes the number of an end that it is close to.
    """
    taper = radii[:, 1] - radii[:, 0]
    tapered = taper.any()
    if tapered:
        ends, radii, taper = unswallowed(ends, radii, taper)
    half = half + SKIN
    start = ends[:, 0]
    along = ends[:, 1] - start
    slope = along + 1e-200  # parallel to a slab: crossed far away, but at a finite t
    enter = (-half - start) / slope
    leave = (half - start) / slope
    near, far = np.minimum(enter, leave), np.maximum(enter, leave)
    nearest = _nearest(start, along, half, near, far, taper if tapered else None)

    foot = start + nearest[:, None] * along
    away = np.abs(foot - np.maximum(np.minimum(foot, half), -half))
    face = away.argmax(axis=1)
    rows = np.arange(len(start))
    inside = away[rows, face] <= TINY
    if tapered:
        inside |= np.maximum(near.max(axis=1), 0.0) <= np.minimum(far.min(axis=1), 1.0)
    sunk = inside.nonzero()[0]
    if len(sunk):
        sides = start[sunk], along[sunk], half[sunk], near[sunk], far[sunk], taper[sunk]
        face[sunk], side, nearest[sunk] = _nearest_face(*sides)
    near[rows, face] = 0.0
    far[rows, face] = 1.0
    first = np.maximum(np.maximum(near[:, 0], near[:, 1]), np.maximum(near[:, 2], 0.0))
    last = np.minimum(np.minimum(far[:, 0], far[:, 1]), np.minimum(far[:, 2], 1.0))
    beside = first > last
    first[beside], last[beside] = 0.0, 1.0
    length = np.sqrt(np.add.reduce(along * along, axis=1))
    at_first, at_last, fresh = merged(first, last, nearest, same_place(length, radii))
    t = np.empty((len(start), 3))
    t[:, 0], t[:, 1], t[:, 2] = first, last, nearest
    np.copyto(t[:, 0], nearest, where=at_first)
    np.copyto(t[:, 1], nearest, where=at_last)

    place = start[:, None] + t[:, :, None] * along[:, None]
    half = half[:, None]
    offset = place - np.maximum(np.minimum(place, half), -half)
    distance = np.sqrt(np.add.reduce(offset * offset, axis=2))
    normal = offset / np.maximum(distance, TINY)[:, :, None]
    if len(sunk):
        face = face[sunk]
        distance[sunk] = place[sunk, :, face] * side[:, None] - half[sunk, 0, face][:, None]
        normal[sunk] = (np.eye(3)[face] * side[:, None])[:, None]
    gap = distance - radii[:, :1]
    if tapered:
        gap -= t * taper[:, None]
    hit = (fresh & (gap < reach[:, None])).reshape(-1).nonzero()[0]
    pair, normal = hit // 3, normal.reshape(-1, 3)[hit]
    return touches_at(ends, radii, pair, t.reshape(-1)[hit], normal, gap.reshape(-1)[hit], hit - 3 * pair)


def _nearest(
    start: np.ndarray,
    along: np.ndarray,
    half: np.ndarray,
    near: np.ndarray,
    far: np.ndarray,
    taper: np.ndarray | None,
) -> np.ndarray:
    """Parameter (p,) of the ball of each round that is nearest to its box; the first one of several.

    The squared distance of the axis is convex in t and its slope is linear between the six crossings of the slabs
    (near, far), so the slopes at the sorted crossings bracket the minimum and interpolation gives it exactly. With a
    `taper` (p,) the gap is the root of a quadratic, less a linear function, in between.
    """
    count = len(start)
    t = np.zeros((count, 8))
    t[:, :3], t[:, 3:6], t[:, 7] = near, far, 1.0
    np.minimum(np.maximum(t, 0.0, out=t), 1.0, out=t)
    t.sort(axis=1)
    half = half[:, None]
    foot = start[:, None] + t[:, :, None] * along[:, None]
    foot -= np.maximum(np.minimum(foot, half), -half)
    slope = (foot @ along[:, :, None]).reshape(count, 8)
    if taper is None:
        rise = slope
    else:
        square = np.add.reduce(foot * foot, axis=2)
        rise = slope - taper[:, None] * np.sqrt(square)
    # Among the inner six of the eight, so that there is a neighbour on both sides.
    left = np.add.reduce(rise[:, 1:7] < 0.0, axis=1) + np.arange(0, 8 * count, 8)
    t, slope, right = t.reshape(-1), slope.reshape(-1), left + 1
    before, first = slope[left], t[left]
    width, growth = t[right] - first, slope[right] - before
    if taper is None:
        part = -before / np.maximum(growth, 1e-200)
        return first + np.minimum(np.maximum(part, 0.0), 1.0) * width
    bend = np.maximum(growth / np.maximum(width, 1e-200), 1e-100)
    aside = np.sqrt(np.maximum(square.reshape(-1)[left] - before * before / bend, 0.0))
    step = -before / bend + aside * taper / np.sqrt(np.maximum(bend * (bend - taper * taper), 1e-200))
    return first + np.minimum(np.maximum(step, 0.0), width)


def _nearest_face(
    start: np.ndarray, along: np.ndarray, half: np.ndarray, near: np.ndarray, far: np.ndarray, taper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The face through which each round whose axis enters its box leaves with the least motion.

    Returns the face's axis (p,), its side (p,) as +-1, and the parameter (p,) of the deepest ball.
    """
    first = np.maximum(near.max(axis=1), 0.0)
    last = np.maximum(np.minimum(far.min(axis=1), 1.0), first)
    head, tail = start + first[:, None] * along, start + last[:, None] * along
    more_head, more_tail = (first * taper)[:, None], (last * taper)[:, None]
    depth = np.concatenate(
        (half - np.minimum(head - more_head, tail - more_tail), half + np.maximum(head + more_head, tail + more_tail)),
        axis=1,
    )
    face = depth.argmin(axis=1)
    axis, side = face % 3, np.where(face < 3, 1.0, -1.0)
    rows = np.arange(len(axis))
    return axis, side, np.where(side * along[rows, axis] > taper, first, last)
