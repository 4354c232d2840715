"""Places on the axes of round shapes, where they touch something.

A round is a row of balls: their middles run from one of `ends` (p, 2, 3) to the other, their radii linearly from one of
`radii` (p, 2) to the other. It is a sphere if both ends are one point, a capsule, or a tapered capsule. The distance of
a ball from a convex body is a convex function of the ball's place on the axis, so the nearest ball is found exactly.
"""

from __future__ import annotations

import numpy as np

from .contact import Touches

TINY = 1e-9  # [m] axes this near to each other have no direction from one to the other
PARALLEL = 0.03  # axes whose angle has a square sine below this, 10 degrees, may lie along each other


def unswallowed(ends: np.ndarray, radii: np.ndarray, taper: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends, radii and their difference (p,), where a ball that contains the other one is both ends."""
    along = ends[:, 1] - ends[:, 0]
    swallowed = (taper * taper >= np.add.reduce(along * along, axis=1)).nonzero()[0]
    if not len(swallowed):
        return ends, radii, taper
    ends, radii, taper = ends.copy(), radii.copy(), taper.copy()
    larger = radii[swallowed].argmax(axis=1)
    ends[swallowed], radii[swallowed] = ends[swallowed, larger][:, None], radii[swallowed, larger][:, None]
    taper[swallowed] = 0.0
    return ends, radii, taper


def same_place(length: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """How near two places on an axis (p,) are one, as a part of its length; all of it for a sphere.

    Half a radius apart two contacts do the work of one, and only make the constraint problem singular.
    """
    same = 0.5 * np.minimum.reduce(radii, axis=1) / np.maximum(length, TINY)
    return np.where(length > TINY, np.minimum(same, 0.25), 1.0)


def merged(
    first: np.ndarray, last: np.ndarray, nearest: np.ndarray, same: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether the nearest place (p,) takes that of the first or of the last, and which of the three (p, 3) are contacts
    of their own, so that these are persistent features."""
    at_first = np.abs(nearest - first) <= same
    at_last = np.abs(nearest - last) <= same
    fresh = np.empty((len(first), 3), dtype=bool)
    fresh[:, 0] = True
    np.logical_or(at_first, at_last, out=fresh[:, 2])
    np.logical_not(fresh[:, 2], out=fresh[:, 2])
    at_last &= ~at_first
    np.logical_or(at_last, last - first > same, out=fresh[:, 1])
    return at_first, at_last, fresh


def touches_at(
    ends: np.ndarray,
    radii: np.ndarray,
    pair: np.ndarray,
    t: np.ndarray,
    normal: np.ndarray,
    gap: np.ndarray,
    feature: np.ndarray,
) -> Touches:
    """Touches of the balls at `t` (c,) on the axes of some of the rounds."""
    ends, radii = ends.take(pair, axis=0), radii.take(pair, axis=0)
    center = ends[:, 0] + t[:, None] * (ends[:, 1] - ends[:, 0])
    radius = radii[:, 0] + t * (radii[:, 1] - radii[:, 0])
    return Touches(pair, center - radius[:, None] * normal, center, normal, gap, feature)
