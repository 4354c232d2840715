"""Manifolds: where two faces cover each other, and which points of many keep their extent."""

from __future__ import annotations

import numpy as np

from .contact import Touches, no_touches
from .polytope import Polytopes

SLACK = 1e-4  # part of the smaller size by which one axis must be better than another, or a corner outside of a face
SPREAD = 1e-3  # part of the smaller size that the points of one manifold are apart when some are left out
TINY = 1e-9  # [m] shorter edges have no direction
NONE = 255  # in place of a corner
# u @ CROSS, reshaped to (3, 3), is the matrix M with v @ M = v × u.
CROSS = np.zeros((3, 3, 3))
CROSS[[1, 2, 0], [0, 1, 2], [2, 0, 1]], CROSS[[2, 0, 1], [0, 1, 2], [1, 2, 0]] = 1.0, -1.0
CROSS = CROSS.reshape(3, 9)


def polytope_plane(vertices: np.ndarray, normal: np.ndarray, offset: np.ndarray, reach: np.ndarray) -> Touches:
    """Touches of corners (p, v, 3), padded by the first, with solids below the planes normal · x = offset, closer than
    `reach` (p,): at most four that keep the extent, and as many again of those higher than the deepest, which what
    turns as it falls may come to lie on in the step. The feature is the corner's number."""
    gap = (vertices @ normal[:, :, None])[:, :, 0] - offset[:, None]
    valid = gap < reach[:, None]
    if not valid.any():
        return no_touches()
    own = vertices - vertices[:, :1]
    away = (own * own).sum(axis=2)
    valid[:, 1:] &= away[:, 1:] > TINY * TINY
    spread, others = SPREAD * np.sqrt(away.max(axis=1)), valid.copy()
    keep_four(vertices, gap, valid, normal, spread)
    others &= ~valid & (gap > np.where(valid, gap, np.inf).min(axis=1, keepdims=True) + spread[:, None])
    keep_four(vertices, gap, others, normal, spread)
    pair, corner = (valid | others).nonzero()
    point = vertices[pair, corner]
    return Touches(pair, point, point, normal[pair], gap[pair, corner], corner)


def clip(
    a: Polytopes,
    b: Polytopes,
    face_a: np.ndarray,
    face_b: np.ndarray,
    on_b: np.ndarray,
    slack: np.ndarray,
    reach: np.ndarray,
    wanted: np.ndarray,
) -> tuple[Touches, np.ndarray]:
    """Where two faces cover each other along the normal of one, B's if `on_b`: of the `wanted` pairs the touches, up to
    four each, and of all the least gap (p,).

    Every edge of the other, the covered face, is cut to its part inside of all sides of the first. Corners inside and
    cuts, and the corners of the first that are inside of the other, are the outline of what they share.
    """
    rows = np.arange(len(slack))
    own, other, chosen = _loops(a.faces[rows, face_a], b.faces[rows, face_b], on_b)
    first, second = a.points[rows[:, None], own], b.points[rows[:, None], other]
    flip = on_b[:, None, None]
    base, cover = np.where(flip, second, first), np.where(flip, first, second)
    planes = np.empty((2, len(rows), 4))
    planes[0, :, :3], planes[0, :, 3] = a.axes[rows, face_a], a.offsets[rows, face_a]
    planes[1, :, :3], planes[1, :, 3] = b.axes[rows, face_b], b.offsets[rows, face_b]
    up, level = np.split(planes[on_b.astype(np.intp), rows], [3], axis=1)
    tilt, height = np.split(planes[(~on_b).astype(np.intp), rows], [3], axis=1)

    turn = (up @ CROSS).reshape(-1, 3, 3)
    ring = np.arange(1, own.shape[1] + 1) % own.shape[1]
    along = cover.take(ring, axis=1) - cover
    around = base.take(ring, axis=1) - base
    side_base, long_base = _sides(around @ turn)
    # Sides of flat solids have two ends without a length; the side before such an end looks out of it.
    ends = ~long_base & (chosen[0] != chosen[0].take(ring, axis=1))
    if ends.any():
        side_base = np.where(ends[:, :, None], _sides(around.take(ring - 2, axis=1))[0], side_base)
    side_cover, long_cover = _sides(-along @ turn)
    room = slack[:, None, None]
    # Sides a little out: corners that are flush with them are inside, whatever the rounding.
    start = cover @ side_base.transpose(0, 2, 1) - ((base * side_base).sum(axis=2)[:, None] + room)
    end = start.take(ring, axis=1)
    part = np.divide(start, start - end, out=np.full_like(start, -1.0), where=start != end)
    enter, leave = np.where(start > 0, part, 0.0), np.where(end > 0, part, 1.0)
    in_by, out_by = enter.argmax(axis=2), leave.argmin(axis=2)
    enter, leave = enter.max(axis=2), leave.min(axis=2)
    crosses = (enter <= leave) & ((along * along).sum(axis=2) > TINY * TINY)
    inside = base @ side_cover.transpose(0, 2, 1) - (cover * side_cover).sum(axis=2)[:, None]
    slope = (tilt * up).sum(axis=1, keepdims=True)
    inside = (inside + room * long_cover[:, None] <= 0).all(axis=2) & long_base & (slope < -1e-3)
    rise = (height - (base @ tilt[:, :, None])[:, :, 0]) / np.minimum(slope, -1e-3)

    points = np.concatenate(
        (cover + enter[:, :, None] * along, cover + leave[:, :, None] * along, base + rise[:, :, None] * up[:, None]),
        axis=1,
    )
    gap = (points @ up[:, :, None])[:, :, 0] - level
    valid = np.concatenate((crosses, crosses & (leave < 1.0), inside), axis=1)
    least = np.where(valid, gap, np.inf).min(axis=1)
    valid &= (gap < reach[:, None]) & wanted[:, None]
    keep_four(points, gap, valid, up, SPREAD / SLACK * slack)
    pair, slot = valid.nonzero()

    # A place is named by a corner of one, or an edge of each, of A first: which face is the base does not matter.
    (base_corner, cover_corner), (base_edge, cover_edge) = chosen, (named(c, c.take(ring, axis=1)) for c in chosen)
    nothing = np.full_like(base_corner, NONE << 8 | NONE)
    corner_in, corner = enter <= 0.0, named(cover_corner, NONE)
    of_cover = np.concatenate((np.where(corner_in, corner, cover_edge), cover_edge, nothing), axis=1)[pair, slot]
    cut_in, cut_out = base_edge[rows[:, None], in_by], base_edge[rows[:, None], out_by]
    of_base = np.concatenate((np.where(corner_in, nothing, cut_in), cut_out, named(base_corner, NONE)), axis=1)
    of_base, flip = of_base[pair, slot], on_b[pair]
    feature = np.where(flip, of_cover << 16 | of_base, of_base << 16 | of_cover)

    point, gap, up = points[pair, slot], gap[pair, slot], up[pair]
    point -= np.where(flip, 0.0, gap)[:, None] * up
    return Touches(pair, point, point, up * np.where(flip, 1.0, -1.0)[:, None], gap, feature), least


def keep_four(points: np.ndarray, gap: np.ndarray, valid: np.ndarray, normal: np.ndarray, spread: np.ndarray) -> None:
    """Clears `valid` (p, c) but for four points that keep the extent: the deepest, the farthest from it, the farthest
    from the line of both, the farthest outside of these three. The order of the points decides what is nearly equal."""
    many = (valid.sum(axis=1) > 4).nonzero()[0]
    if not len(many):
        return
    rows = np.arange(len(many))
    points, gap, of, spread, normal = points[many], gap[many], valid[many], spread[many], normal[many]
    order = np.linspace(0.0, 1.0, points.shape[1])
    first = np.where(of, gap + spread[:, None] * order, np.inf).argmin(axis=1)
    own = points - points[rows, first][:, None]
    away = np.where(of, (own * own).sum(axis=2) * (1.0 - SPREAD * order), 0.0)
    second = away.argmax(axis=1)
    turn = (normal @ CROSS).reshape(-1, 3, 3)
    line = own[rows, second]
    # own · (normal × line), twice the area with the line.
    area = -(own @ (line[:, None] @ turn).transpose(0, 2, 1))[:, :, 0]
    third = (np.where(of, np.abs(area), 0.0) * (1.0 - SPREAD * order)).argmax(axis=1)
    whole, corner = area[rows, third], own[rows, third]
    # Areas with the sides of the triangle, positive outside of it; inside they sum to its own.
    turned = np.copysign(1.0, whole)[:, None]
    past_line = -turned * area
    past_corner = -turned * (own @ (corner[:, None] @ turn).transpose(0, 2, 1))[:, :, 0]
    outside = np.maximum(np.maximum(past_line, past_corner), -np.abs(whole)[:, None] - past_line - past_corner)
    fourth = np.where(of, outside * (1.0 - SPREAD * order), 0.0).argmax(axis=1)
    least = spread * np.sqrt((line * line).sum(axis=1))
    kept = np.zeros_like(of)
    kept[rows, first] = True
    kept[rows, second] |= away[rows, second] > spread * spread
    kept[rows, third] |= np.abs(whole) > least
    kept[rows, fourth] |= outside[rows, fourth] > least
    valid[many] = kept


def _loops(a: np.ndarray, b: np.ndarray, on_b: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple]:
    """Corners of faces (p, k) of A and B, made equally many by repeating the last, and those of the base, then of the
    cover."""
    k = max(a.shape[1], b.shape[1])
    a, b = (loop[:, np.minimum(np.arange(k), loop.shape[1] - 1)] if loop.shape[1] < k else loop for loop in (a, b))
    flip = on_b[:, None]
    return a, b, (np.where(flip, b, a), np.where(flip, a, b))


def _sides(across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of vectors (p, k, 3), zero for those without a length, and which have one."""
    length = np.sqrt((across * across).sum(axis=2))
    real = length > TINY
    return across * (real / np.maximum(length, TINY))[:, :, None], real


def named(start: np.ndarray, end: np.ndarray | int) -> np.ndarray:
    """One number for two corners, in whatever order."""
    return np.minimum(start, end) << 8 | np.maximum(start, end)
