"""What lies wholly inside a solid mesh: no triangle is near it, and it has to come out all the same."""

from __future__ import annotations

import numpy as np

from .bounds import BoxTree
from .mesh import PreparedMesh

ASIDE = np.array([3.1e-7, 7.3e-7, 0.0])
"""Rays pass edges and corners of a mesh by this part of its size."""
GROWTH = 1.5
"""From step to step of the search for the nearest faces."""


class Solid:
    """The closed parts of a mesh of the scenery, searched for what is inside them."""

    def __init__(self, mesh: PreparedMesh) -> None:
        self.corners, self.normals = mesh.corners[mesh.solid], mesh.normals[mesh.solid]
        self.low, self.high = self.corners.min(axis=(0, 1)), self.corners.max(axis=(0, 1))
        self.size = float((self.high - self.low).max())
        self._tree = BoxTree(self.corners.min(axis=1), self.corners.max(axis=1))

    def holds(self, points: np.ndarray) -> np.ndarray:
        """Whether points (n, 3) are inside: a ray upward crosses the surface an odd number of times."""
        return self._crossings(points)[0] % 2 == 1

    def goes_around(self, points: np.ndarray) -> np.ndarray:
        """Whether points (n, 3) are inside any of the parts: a ray upward leaves parts more often than it enters
        some."""
        return self._crossings(points)[1] != 0

    def _crossings(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How often (n,) a ray upward from points (n, 3) crosses the surface, and how much more often outward."""
        inside = ((points > self.low) & (points < self.high)).all(axis=1)
        points = points + ASIDE * self.size
        upward = np.where(np.arange(3) == 2, np.inf, points)
        point, triangle = self._tree.near(np.where(inside[:, None], points, np.inf), upward)
        corner = self.corners[triangle] - points[point, None]
        after = np.roll(corner, -1, axis=1)
        area = corner[:, :, 0] * after[:, :, 1] - corner[:, :, 1] * after[:, :, 0]
        hit = (area > 0.0).all(axis=1) | (area < 0.0).all(axis=1)
        height = (np.roll(area, -1, axis=1) * corner[:, :, 2]).sum(axis=1) / np.where(hit, area.sum(axis=1), 1.0)
        point, triangle = (column[hit & (height > 0.0)] for column in (point, triangle))
        outward = np.sign(self.normals[triangle, 2])
        return tuple(np.where(inside, np.bincount(point, of, len(points)), 0.0) for of in (None, outward))

    def nearest(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (box (c,), triangle (c,)) of boxes low, high (n, 3) and triangles, among them the nearest of each."""
        middle, half = 0.5 * (low + high), 0.5 * (high - low).max(axis=1)
        alone = np.arange(len(low))
        while len(alone):
            reach = half[alone, None]
            found = np.unique(self._tree.near(middle[alone] - reach, middle[alone] + reach)[0])
            alone = np.delete(alone, found)
            half[alone] = np.minimum(GROWTH * half[alone], 2.0 * self.size)
        # a box that holds a triangle may do so at its corner, farther than the nearest face
        reach = np.sqrt(3.0) * half[:, None]
        return self._tree.near(middle - reach, middle + reach)

    def way_out(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The planes, normals (n, 3) and offsets (n,), of the faces that are nearest to boxes low, high (n, 3)."""
        box, triangle = self.nearest(low, high)
        corner, normal = self.corners[triangle], self.normals[triangle]
        from_corner = 0.5 * (low + high)[box, None] - corner
        height = (from_corner * normal[:, None]).sum(axis=2)[:, 0]
        side = np.cross(np.roll(corner, -1, axis=1) - corner, from_corner)
        beside = (side * normal[:, None]).sum(axis=2).min(axis=1) < 0.0
        # beside a triangle the distance is more than the height; corners are far enough to tell
        distance = np.where(beside, np.sqrt((from_corner**2).sum(axis=2)).min(axis=1), np.abs(height))
        order = np.lexsort((distance, box))
        first = order[np.unique(box[order], return_index=True)[1]]
        return normal[first], (normal[first] * corner[first, 0]).sum(axis=1)
