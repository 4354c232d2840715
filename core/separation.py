"""Touches of polytopes: the axis that separates two of them best, and what of them is nearest along it.

Every function works on p pairs at once, in one frame per pair that both shapes are given in; its origin should be near
them. Axes and edges: Gregorius 2013, "The separating axis test between convex polyhedra"; only those pairs of edges
count that make a face of the Minkowski difference, and the distance of two such edges needs no other corner.
"""

from __future__ import annotations

import numpy as np

from .clipping import CROSS, NONE, SLACK, clip, named
from .contact import Touches, no_touches
from .polytope import Polytopes

DEEPER = 0.05  # overlapping, another axis must also be better by this part of the depth
FAR = 1e9  # [m] farther than anything
LEVEL = 0.99  # cosine of the angle between axes that are nearly the same
LEAN = 0.02  # sine of the angle by which a normal may lean into a barred direction
PARALLEL = 1e-10  # squared sine of the angle between edges below which their cross product is no axis
TINY = 1e-9  # [m] nearer corners and edges have no direction between them
_YZX, _ZXY = np.array([1, 2, 0]), np.array([2, 0, 1])


def polytope_polytope(
    a: Polytopes, b: Polytopes, reach: np.ndarray, barred: np.ndarray | None = None, *, steady: float = 1.0
) -> Touches:
    """Touches of p polytopes `a` with p others `b`, closer than `reach` (p,).

    Up to four points where a face lies on the other, one where an edge crosses an edge, and, where the shapes are
    apart, the nearest of corners and edges beside the faces. No normal leans into one of the directions `barred`
    (p, k, 3), zero for none: the back of a triangle that bounds a solid, and past an edge the inside of the face that
    goes on there. `steady` 0 takes the best axis even if it flips.
    """
    beyond_a = (a.normals @ b.vertices.transpose(0, 2, 1)).min(axis=2) - a.offsets
    beyond_b = (b.normals @ a.vertices.transpose(0, 2, 1)).min(axis=2) - b.offsets
    near = (np.maximum(beyond_a.max(axis=1), beyond_b.max(axis=1)) < reach).nonzero()[0]
    if not len(near):
        return no_touches()
    if len(near) < len(reach):
        some = None if barred is None else barred[near]
        found = polytope_polytope(a.take(near), b.take(near), reach[near], some, steady=steady)
        return found._replace(pair=near[found.pair])

    rows = near
    between, toward = _between_edges(a, b)
    # A direction that is barred still tells that the two are apart.
    between_most = between.reshape(len(rows), -1).max(axis=1)
    apart, clear = between_most >= reach, np.zeros(len(rows))
    if barred is not None:
        clear = np.maximum(np.maximum(beyond_a.max(axis=1), beyond_b.max(axis=1)), between_most)
        _bar(a, b, beyond_a, beyond_b, between, toward, barred)
    face_a, face_b = beyond_a.argmax(axis=1), beyond_b.argmax(axis=1)
    edges = between.reshape(len(rows), -1).argmax(axis=1)
    edge_a, edge_b = edges // between.shape[2], edges % between.shape[2]
    by_a, by_b, by_edge = beyond_a[rows, face_a], beyond_b[rows, face_b], between[rows, edge_a, edge_b]

    # A's faces come before B's, and these before edges, unless clearly worse: resting shapes keep their axis.
    slack = SLACK * np.minimum(a.size, b.size)
    on_b = by_b > by_a + steady * (slack + DEEPER * np.clip(-by_a, 0.0, FAR))
    by_face = np.where(on_b, by_b, by_a)
    on_edge = by_edge > by_face + steady * (slack + DEEPER * np.clip(-by_face, 0.0, FAR))
    normal_a, normal_b = a.axes[rows, face_a], b.axes[rows, face_b]
    face_a = np.where(on_b, _facing(a, normal_b), face_a)
    face_b = np.where(on_b, face_b, _facing(b, normal_a))
    best = np.maximum(by_face, by_edge)
    # what is apart does not overlap, from whichever side it must not be pushed
    wanted = ~apart & (best > -np.inf) & ((best > -slack) | (clear <= slack))
    # Where the edges' axis is nearly that of the face a box just rocks: it keeps all points that it will rest on.
    level = ~on_edge
    if not level.all():
        across = _cross(a.of_edges()[1][rows, edge_a], b.of_edges()[1][rows, edge_b])
        along = (across * np.where(on_b[:, None], -normal_b, normal_a)).sum(axis=1)
        level |= along * toward[rows, edge_a, edge_b] > LEVEL
    found, least = clip(a, b, face_a, face_b, on_b, slack, reach, wanted & level)
    on_edge &= ~level | (least > by_edge + 2 * slack + DEEPER * np.clip(-by_edge, 0.0, FAR))

    # The best axis is the true distance if a point over the face is as near; else something beside it is nearer.
    beside = wanted & (on_edge | (least == np.inf) | ((best > 0) & (least > best + 2 * slack)))
    if not beside.any():
        return found
    # Overlapping, the best axis has a point for certain, one that was preferred to it has not.
    lost = beside & ~on_edge & (best <= 0) & (steady > 0)
    beside, lost = (beside & ~lost).nonzero()[0], lost.nonzero()[0]
    normal = np.where(on_b[:, None], normal_b, -normal_a)[beside]
    edge_a, edge_b, by_edge = edge_a[beside], edge_b[beside], by_edge[beside]
    near = _nearest(
        *(a.take(beside), b.take(beside), edge_a, edge_b, toward[beside, edge_a, edge_b], by_edge),
        *(best[beside] > 0, normal, slack[beside], reach[beside]),
        None if barred is None else barred[beside],
    )
    parts = [found, near._replace(pair=beside[near.pair])]
    if len(lost):
        some = None if barred is None else barred[lost]
        again = polytope_polytope(a.take(lost), b.take(lost), reach[lost], some, steady=0.0)
        parts.append(again._replace(pair=lost[again.pair]))
    return Touches(*map(np.concatenate, zip(*parts, strict=True)))


def _between_edges(a: Polytopes, b: Polytopes) -> tuple[np.ndarray, np.ndarray]:
    """How far every edge of B is beyond every edge of A (p, e, e) along the normal of both, -inf for edges that have
    none between the faces beside them; and the sign, by sine, with which direction × direction points from A to B."""
    start_a, along_a, sides_a = a.of_edges()
    start_b, along_b, sides_b = b.of_edges()
    turned_b = along_b.transpose(0, 2, 1)
    across_a, across_b = sides_a @ turned_b, along_a @ sides_b.transpose(0, 2, 1)
    (n, m), cosine = (along_a.shape[1], along_b.shape[1]), along_a @ turned_b
    left_a, left_b = across_a[:, :n], across_b[:, :, :m]
    square = 1.0 - cosine * cosine
    meet = (left_a * across_a[:, n:] < 0) & (left_b * across_b[:, :, m:] < 0) & (left_a * left_b > 0)
    meet &= square > PARALLEL
    toward = np.copysign(1.0, left_a) / np.sqrt(np.maximum(square, PARALLEL))
    # (start b - start a) · (along a × along b) by the moments of the lines.
    volume = along_a @ _cross(along_b, start_b).transpose(0, 2, 1) + _cross(along_a, start_a) @ turned_b
    return np.where(meet, volume * toward, -np.inf), toward


def _bar(
    a: Polytopes,
    b: Polytopes,
    beyond_a: np.ndarray,
    beyond_b: np.ndarray,
    between: np.ndarray,
    toward: np.ndarray,
    barred: np.ndarray,
) -> None:
    """Takes out the axes whose normal, from B to A, leans into a barred direction."""
    turned = barred.transpose(0, 2, 1)
    beyond_a[(a.normals @ turned).min(axis=2) < -LEAN] = -np.inf
    beyond_b[(b.normals @ turned).max(axis=2) > LEAN] = -np.inf
    along_a, along_b = a.of_edges()[1], b.of_edges()[1]
    turn = (barred @ CROSS).reshape(*barred.shape, 3)
    along = along_a[:, None] @ (along_b[:, None] @ turn).transpose(0, 1, 3, 2)
    between[(along * toward[:, None]).min(axis=1) < -LEAN] = -np.inf


def _facing(of: Polytopes, normal: np.ndarray) -> np.ndarray:
    """The faces (p,) that look most against the `normal` (p, 3) of another's face, among those at the corner that is
    deepest below it: the steepest of all may be elsewhere."""
    rows = np.arange(len(normal))
    normal = normal[:, :, None]
    deepest = (of.vertices @ normal)[:, :, 0].argmin(axis=1)
    away = of.offsets - (of.normals @ of.points[rows, deepest][:, :, None])[:, :, 0]
    against = (of.normals @ normal)[:, :, 0]
    against += 4.0 * (away > 2e-4 * of.size[:, None])
    return against.argmin(axis=1)


def _nearest(
    a: Polytopes,
    b: Polytopes,
    edge_a: np.ndarray,
    edge_b: np.ndarray,
    toward: np.ndarray,
    by_edge: np.ndarray,
    apart: np.ndarray,
    normal: np.ndarray,
    slack: np.ndarray,
    reach: np.ndarray,
    barred: np.ndarray | None,
) -> Touches:
    """One touch of each pair whose faces do not tell the distance: where the best two edges cross, or, if they do not
    and the pair is `apart`, that of a corner with an edge."""
    rows = np.arange(len(slack))
    start_a, start_b = a.of_edges()[0][rows, edge_a], b.of_edges()[0][rows, edge_b]
    along_a, along_b = a.of_edges()[1][rows, edge_a], b.of_edges()[1][rows, edge_b]
    long_a, long_b = a.lengths[rows, edge_a], b.lengths[rows, edge_b]
    axis, between = _cross(along_a, along_b), start_b - start_a
    square = np.maximum((axis * axis).sum(axis=1), PARALLEL)
    along = (_cross(between, along_b) * axis).sum(axis=1) / square
    other = (_cross(between, along_a) * axis).sum(axis=1) / square
    cross = (np.abs(along - long_a / 2) <= long_a / 2 + slack) & (np.abs(other - long_b / 2) <= long_b / 2 + slack)
    cross &= by_edge > -np.inf
    point = start_a + np.clip(along, 0.0, long_a)[:, None] * along_a
    side = -toward[:, None] * axis
    ends_a, ends_b = a.ends[rows, edge_a], named(*b.ends[rows, edge_b].T)
    # The other way round than where faces are cut: both may name the same edges.
    ends_a = ends_a.max(axis=1) << 8 | ends_a.min(axis=1)
    touch = Touches(rows, point, point, side, by_edge, ends_a << 16 | ends_b)
    keep = cross & (by_edge < reach)
    beside = (~cross & apart).nonzero()[0]
    if len(beside):
        point, normal, gap, feature = _corner_edge(a.take(beside), b.take(beside), normal[beside])
        for column, value in zip(touch[1:], (point, point, normal, gap, feature), strict=True):
            column[beside] = value
        keep[beside] = gap < reach[beside]
    if barred is not None:
        keep &= (barred @ touch.normal[:, :, None]).max(axis=(1, 2)) <= LEAN
    return Touches(*(column[keep] for column in touch))


def _corner_edge(a: Polytopes, b: Polytopes, normal: np.ndarray) -> tuple[np.ndarray, ...]:
    """The nearest of all corners of one and edges of the other: point on A, normal, gap and feature; the given normal
    if they touch."""
    rows = np.arange(len(normal))
    found = []
    for corners, edges in ((a, b), (b, a)):
        start, along, _ = edges.of_edges()
        away = corners.vertices[:, :, None] - start[:, None]
        part = np.clip((away * along[:, None]).sum(axis=3), 0.0, edges.lengths[:, None])
        away -= part[:, :, :, None] * along[:, None]
        square = (away * away).sum(axis=3).reshape(len(rows), -1)
        corner, edge = np.divmod(square.argmin(axis=1), start.shape[1])
        at = corners.points[rows, corner]
        names = named(corner, NONE), named(*edges.ends[rows, edge].T)
        found.append((square.min(axis=1), at, at - away[rows, corner, edge], *names))
    (square, on_a, on_b, name_a, name_b), (other, to_b, to_a, other_b, other_a) = found
    swap = other < square * (1.0 - 1e-9)
    on_a, on_b = np.where(swap[:, None], to_a, on_a), np.where(swap[:, None], to_b, on_b)
    gap = np.sqrt(np.minimum(square, other))
    normal = np.where((gap > TINY)[:, None], (on_a - on_b) / np.maximum(gap, TINY)[:, None], normal)
    return on_a, normal, gap, np.where(swap, other_a << 16 | other_b, name_a << 16 | name_b)


def _cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """u × v; np.cross costs several times as much."""
    return u.take(_YZX, axis=-1) * v.take(_ZXY, axis=-1) - u.take(_ZXY, axis=-1) * v.take(_YZX, axis=-1)
