"""Where round shapes touch solid cylinders with flat ends, in the cylinders' frames."""

from __future__ import annotations

import numpy as np

from .contact import Touches
from .places import PARALLEL, TINY, merged, same_place, touches_at, unswallowed

SECTIONS, ROUNDS = 32, 4  # the place on an axis nearest to a cylinder is known to a part of SECTIONS^-ROUNDS


def round_cylinder(
    ends: np.ndarray, radii: np.ndarray, half: np.ndarray, radius: np.ndarray, reach: np.ndarray
) -> Touches:
    """Touches of rounds with solid cylinders around the z axis, with flat ends at z = ± `half` (p,) and `radius` (p,).

    The places are the ends of the part of the axis that lies on the side or across a flat end, 0 and 1, and the nearest
    place, 2, which takes the number of an end that it is close to. Where no part does there is the nearest place only.
    """
    taper = radii[:, 1] - radii[:, 0]
    if taper.any():
        ends, radii, taper = unswallowed(ends, radii, taper)
    start, along = ends[:, 0], ends[:, 1] - ends[:, 0]
    square = np.maximum(np.add.reduce(along * along, axis=1), 1e-24)
    level, wall = _between_ends(start, along, half), _within_side(start, along, radius)
    nearest = _nearest_to_axis(start, along, taper)
    # what is between the ends all along has nothing else to be near to
    past = (np.abs(ends[:, :, 2]).max(axis=1) > half).nonzero()[0]
    if len(past):
        nearest[past] = _nearest_to_cylinder(*(x[past] for x in (start, along, half, radius, taper)))
    foot = start + nearest[:, None] * along
    on_end = np.abs(foot[:, 2]) - half > np.hypot(foot[:, 0], foot[:, 1]) - radius
    first, last = np.maximum(np.maximum(level[0], wall[0]), 0.0), np.minimum(np.minimum(level[1], wall[1]), 1.0)
    sunk = (first <= last).nonzero()[0]
    if len(sunk):
        sides = start[sunk], along[sunk], half[sunk], radius[sunk], radii[sunk, 0], taper[sunk]
        nearest[sunk], out = _way_out(*sides, first[sunk], last[sunk])
        on_end[sunk] = out[:, 2] != 0.0
    first = np.maximum(np.where(on_end, wall[0], level[0]), 0.0)
    last = np.minimum(np.where(on_end, wall[1], level[1]), 1.0)
    level_square = along[:, 0] ** 2 + along[:, 1] ** 2
    lying = on_end | (level_square < PARALLEL * square + taper * taper)
    lying &= first <= last
    first, last = np.where(lying, first, 0.0), np.where(lying, last, 1.0)
    at_first, at_last, fresh = merged(first, last, nearest, same_place(np.sqrt(square), radii))
    t = np.stack((np.where(at_first, nearest, first), np.where(at_last, nearest, last), nearest), axis=1)
    fresh[:, 0] = lying | at_first
    fresh[:, 1] &= lying | at_last

    place = start[:, None] + t[:, :, None] * along[:, None]
    distance, normal = _from_cylinder(place, half[:, None], radius[:, None])
    if len(sunk):
        width = np.where(on_end[sunk], half[sunk], radius[sunk])
        distance[sunk] = (place[sunk] @ out[:, :, None])[:, :, 0] - width[:, None]
        normal[sunk] = out[:, None]
    gap = distance - radii[:, :1] - t * taper[:, None]
    hit = (fresh & (gap < reach[:, None])).reshape(-1).nonzero()[0]
    pair, normal = hit // 3, normal.reshape(-1, 3)[hit]
    return touches_at(ends, radii, pair, t.reshape(-1)[hit], normal, gap.reshape(-1)[hit], hit - 3 * pair)


def _between_ends(start: np.ndarray, along: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From where to where (p,) on lines they are between the ends of cylinders."""
    slope = along[:, 2] + 1e-200
    enter, leave = (-half - start[:, 2]) / slope, (half - start[:, 2]) / slope
    return np.minimum(enter, leave), np.maximum(enter, leave)


def _within_side(start: np.ndarray, along: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From where to where (p,) on lines they are within the sides of cylinders; first above last if nowhere."""
    square = along[:, 0] ** 2 + along[:, 1] ** 2
    slope = start[:, 0] * along[:, 0] + start[:, 1] * along[:, 1]
    inside = radius * radius - start[:, 0] ** 2 - start[:, 1] ** 2
    root = np.sqrt(np.maximum(slope * slope + square * inside, 0.0))
    middle, width = -slope / np.maximum(square, 1e-200), root / np.maximum(square, 1e-200)
    upright = square <= 1e-20 * along[:, 2] ** 2
    nowhere = np.where(upright, inside < 0.0, slope * slope + square * inside < 0.0)
    middle, width = np.where(upright | nowhere, 0.5, middle), np.where(nowhere, -1e9, np.where(upright, 1e9, width))
    return middle - width, middle + width


def _from_cylinder(points: np.ndarray, half: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signed distances (p, q) of points (p, q, 3) from cylinders and their gradients (p, q, 3), unit vectors."""
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    off_axis = np.sqrt(x * x + y * y)
    above, beside = np.abs(z) - half, off_axis - radius
    up, out = np.maximum(above, 0.0), np.maximum(beside, 0.0)
    distance = np.sqrt(up * up + out * out)
    outside = distance > 0.0
    unit = np.where(outside, distance, 1.0)
    up = np.where(outside, up / unit, above > beside)
    out = np.where(outside, out / unit, above <= beside)
    on_axis = off_axis == 0.0
    out = out / np.where(on_axis, 1.0, off_axis)
    normal = np.empty(points.shape)
    normal[..., 0], normal[..., 1] = out * np.where(on_axis, 1.0, x), out * y
    normal[..., 2] = np.copysign(up, z)
    return np.where(outside, distance, np.maximum(above, beside)), normal


def _nearest_to_axis(start: np.ndarray, along: np.ndarray, taper: np.ndarray) -> np.ndarray:
    """Where on each axis (p,) the ball is nearest to the z axis, the first place of several."""
    square = along[:, 0] ** 2 + along[:, 1] ** 2
    slope = start[:, 0] * along[:, 0] + start[:, 1] * along[:, 1]
    area = (start[:, 0] * along[:, 1] - start[:, 1] * along[:, 0]) ** 2
    # the distance's slope, (slope + t square) / distance, is the taper there, or never
    turns = square > taper * taper
    rest = taper * np.sqrt(area / np.where(turns, square - taper * taper, 1.0))
    place = (rest - slope) / np.where(turns, square, 1.0)
    return np.where(turns, np.minimum(np.maximum(place, 0.0), 1.0), taper > 0.0)


def _nearest_to_cylinder(
    start: np.ndarray, along: np.ndarray, half: np.ndarray, radius: np.ndarray, taper: np.ndarray
) -> np.ndarray:
    """Where on each axis (p,) the ball is nearest to its cylinder, the first place of several.

    The slope of the gap rises with the place: every round finds between which of SECTIONS places it changes sign.
    """
    count = len(start)
    rows, grid = np.arange(count), np.linspace(0.0, 1.0, SECTIONS + 1)
    low, width = np.zeros(count), 1.0
    none = 1e-12 * np.sqrt(np.add.reduce(along * along, axis=1))[:, None]
    for _ in range(ROUNDS):
        t = low[:, None] + width * grid
        _, normal = _from_cylinder(start[:, None] + t[:, :, None] * along[:, None], half[:, None], radius[:, None])
        slope = (normal @ along[:, :, None])[:, :, 0] - taper[:, None]
        section = np.add.reduce(slope[:, 1:-1] < -none, axis=1)
        low, width = t[rows, section], width / SECTIONS
    before, after = slope[rows, section], slope[rows, section + 1]
    part = np.where(before < -none[:, 0], -before / np.maximum(after - before, 1e-200), 0.0)
    return low + width * np.minimum(np.maximum(part, 0.0), 1.0)


def _way_out(
    start: np.ndarray,
    along: np.ndarray,
    half: np.ndarray,
    radius: np.ndarray,
    ball: np.ndarray,
    taper: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """How a round whose axis is inside a cylinder from `first` to `last` (p,) leaves it with the least motion.

    Returns its deepest place (p,) and the direction (p, 3), one of both ends' or across the side.
    """
    rows = np.arange(len(start))
    place = np.stack((first, last), axis=1)
    height, size = start[:, 2:] + place * along[:, 2:], ball[:, None] + place * taper[:, None]
    up, down = half[:, None] - height + size, half[:, None] + height + size
    # Seen along the cylinder, the way out through the side is from its middle to the nearest place.
    square = along[:, 0] ** 2 + along[:, 1] ** 2
    slope = start[:, 0] * along[:, 0] + start[:, 1] * along[:, 1]
    middle = np.minimum(np.maximum(-slope / np.maximum(square, 1e-200), first), last)
    upright = square <= 1e-20 * along[:, 2] ** 2
    middle = np.where(upright, np.where(taper > 0.0, last, first), middle)
    out = start + middle[:, None] * along
    out[:, 2] = 0.0
    off_axis = np.sqrt(np.add.reduce(out * out, axis=1))
    across = np.stack((-along[:, 1], along[:, 0], np.zeros(len(out))), axis=1)
    across = np.where(upright[:, None], (1.0, 0.0, 0.0), across / np.sqrt(np.maximum(square, 1e-200))[:, None])
    out = np.where((off_axis > TINY)[:, None], out / np.maximum(off_axis, TINY)[:, None], across)
    depth = np.stack((up.max(axis=1), down.max(axis=1), radius - off_axis + ball + middle * taper), axis=1)
    way = depth.argmin(axis=1)
    deepest = np.stack((place[rows, up.argmax(axis=1)], place[rows, down.argmax(axis=1)], middle), axis=1)
    out[way < 2] = 0.0
    out[:, 2] = np.array((1.0, -1.0, 0.0))[way]
    return deepest[rows, way], out
