"""Where polytopes (boxes, hulls) touch the triangles of a mesh."""

from __future__ import annotations

import numpy as np

from .clipping import keep_four
from .contact import Touches
from .mesh import PreparedMesh
from .polytope import Polytopes
from .separation import polytope_polytope
from .spatial import cross

BUCKETS = 3.0
"""Touches of a polytope whose normals, times this, round to the same are one manifold: four points are kept."""
SPREAD = 1e-3
"""Part of the polytope's size that the points of a manifold are apart when some are left out."""
FLUSH = 1.0 - 1e-12
"""Cosine of the angle below which two faces are one."""


def polytope_mesh(
    solids: Polytopes, triangle: np.ndarray, owner: np.ndarray, prepared: PreparedMesh, reach: np.ndarray
) -> Touches:
    """Touches of polytopes with one mesh, out of p candidate pairs of a polytope and a triangle, in the mesh's frame.

    `triangle` (p,) numbers of the prepared mesh; `owner` (p,) which polytope, from 0: it becomes the touches' `pair`;
    `reach` (p,). The normals stay out of solids, and past an edge give way to the face that goes on there.
    """
    found = polytope_polytope(
        solids, Polytopes.of_triangles(prepared.corners[triangle]), reach, _barred(prepared, triangle)
    )
    if not len(found.pair):
        return found
    number, body = triangle[found.pair], owner[found.pair]
    bucket = (np.rint(found.normal * BUCKETS).astype(np.int64) + 4) @ np.array([81, 9, 1])
    _, group = np.unique(body * 729 + bucket, return_inverse=True)
    order = np.lexsort((number, group))
    count = np.bincount(group)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    points = np.zeros((len(count), count.max(), 3))
    gap, valid = np.zeros(points.shape[:2]), np.zeros(points.shape[:2], dtype=bool)
    normal, spread = np.zeros((len(count), 3)), np.zeros(len(count))
    points[group, place], gap[group, place], valid[group, place] = found.point, found.gap, True
    normal[group], spread[group] = found.normal, SPREAD * solids.size[found.pair]
    keep_four(points, gap, valid, normal, spread)
    kept = valid[group, place].nonzero()[0]
    # a triangle's own number, so that the same place is known again as long as it lies on it
    feature = (number * 2654435761 + found.feature) % 2**32
    return Touches(body[kept], *(column[kept] for column in found[1:5]), feature[kept])


def _barred(prepared: PreparedMesh, triangle: np.ndarray) -> np.ndarray:
    """Directions (p, 4, 3) that no normal leans into, zero for none: into a solid, and for each edge that into the face
    beyond it."""
    corners, normal = prepared.corners[triangle], prepared.normals[triangle]
    barred = np.zeros((len(triangle), 4, 3))
    barred[:, 0] = np.where(prepared.solid[triangle, None], -normal, 0.0)
    along = np.roll(corners, -1, axis=1) - corners
    along /= prepared.lengths[triangle, :, None]
    between = prepared.outward[prepared.features[triangle, 3:]]
    facing = (between * normal[:, None]).sum(axis=2)
    beyond = 2.0 * facing[:, :, None] * between - normal[:, None]
    border = prepared.crest[triangle] & (facing > FLUSH)
    barred[:, 1:] = np.where(border[:, :, None], 0.0, cross(along, beyond))
    return barred
