"""Convex hulls of points, with few corners."""

from __future__ import annotations

import bmesh
import numpy as np

FLAT = 1e-4
"""Points whose extent across is below this part of the largest have no volume."""


def convex_hull(points: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Corners (n, 3), n at most `most`, and outward triangles (m, 3) of the hull of points (k, 3); None where they have
    no volume. Where the true hull has more corners, those that reach farthest in `most` directions are kept."""
    if len(points) < 4:
        return None
    middle = points.mean(axis=0)
    spread = np.linalg.svd(points - middle, full_matrices=False)[1]
    if spread[2] <= FLAT * spread[0]:
        return None
    corners, triangles = _hull(points)
    if len(corners) > most:
        size = np.ptp(corners, axis=0)
        farthest = np.argmax(_directions(most) @ (corners / size).T, axis=1)
        corners, triangles = _hull(corners[np.unique(farthest)])
    return corners, triangles


def _hull(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # of size one around the origin, for Blender's fixed tolerances and single precision
    middle, size = points.mean(axis=0), np.ptp(points, axis=0).max()
    mesh = bmesh.new()
    try:
        for point in (points - middle) / size:
            mesh.verts.new(point)
        found = bmesh.ops.convex_hull(mesh, input=mesh.verts)
        mesh.verts.index_update()
        faces = [face for face in found["geom"] if isinstance(face, bmesh.types.BMFace)]
        triangles = np.array([[vertex.index for vertex in face.verts] for face in faces], dtype=int)
    finally:
        mesh.free()
    used, triangles = np.unique(triangles, return_inverse=True)
    corners, triangles = points[used], triangles.reshape(-1, 3)
    return corners, outward(corners, triangles)


def outward(corners: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """The triangles (m, 3) of a convex polyhedron, each turned so that its front is outside."""
    a, b, c = np.moveaxis(corners[triangles], 1, 0)
    inside_out = (np.cross(b - a, c - a) * (a - corners.mean(axis=0))).sum(axis=1) < 0
    return np.where(inside_out[:, None], triangles[:, ::-1], triangles)


def _directions(count: int) -> np.ndarray:
    """Unit vectors (count, 3) spread evenly: a Fibonacci spiral on the sphere."""
    index = np.arange(count) + 0.5
    height, turn = 1 - 2 * index / count, np.pi * (1 + 5**0.5) * index
    across = np.sqrt(1 - height**2)
    return np.stack([across * np.cos(turn), across * np.sin(turn), height], axis=1)
