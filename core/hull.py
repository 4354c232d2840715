"""The flat faces of a convex hull, found from its triangles."""

from __future__ import annotations

import numpy as np

BULGE = 1e-4  # part of its size that a hull's corner may lie outside of a face
# Corners within this part of the size of a plane are in it. Where nearly flat neighbours then overlap, others may do.
FLAT = (1e-5, 1e-7, 1e-3)
MOST_CORNERS, MOST_FACES = 64, 124  # 64 corners make 124 triangles


def hull_faces(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Corners (v, 3), outward unit normals (f, 3) and corners of each face, counter-clockwise seen from outside, of the
    hull with triangles (m, 3).

    The planes of the triangles tell the faces, so that the triangles may be turned either way, have no area, or not
    share their corners. Raises ValueError for a hull that is flat, open, not convex, or has too many corners or faces.
    """
    used, number = np.unique(triangles, return_inverse=True)
    corners = vertices[used]
    size = float(np.linalg.norm(corners - corners.mean(axis=0), axis=1).max())
    for flat in FLAT:
        points, same = _welded(corners, flat * size)
        faces = _faces(points, same[number.reshape(-1, 3)], flat * size, BULGE * size)
        if _closed(faces[1]):
            break
    else:
        raise ValueError("a Hull has gaps or faces that overlap; make it convex")
    normals, loops = faces
    kept = np.unique(np.concatenate(loops))
    if len(kept) > MOST_CORNERS:
        raise ValueError(f"a Hull has {len(kept)} corners, more than {MOST_CORNERS}; make it simpler (decimate it)")
    return points[kept], normals, [np.searchsorted(kept, loop).tolist() for loop in loops]


def _faces(points: np.ndarray, triangles: np.ndarray, near: float, bulge: float) -> tuple[np.ndarray, list[list[int]]]:
    """Normals and loops of faces."""
    planes = _planes(points[triangles], points.mean(axis=0), near)
    heights = [(points - point) @ normal for normal, point in planes]
    if not planes or min(np.ptp(height) for height in heights) <= bulge:
        raise ValueError("a Hull is flat; give it some thickness")
    above = max(height.max() for height in heights)
    if above > bulge:
        raise ValueError(f"a Hull is not convex, a corner is {above:.3g} m outside of a face; make it convex")
    normals = np.array([normal for normal, _ in planes])
    return normals, [_outline(points, n, np.abs(height) <= near, near) for n, height in zip(normals, heights)]


def _closed(loops: list[list[int]]) -> bool:
    """Whether every side of a face is that of one other, the other way round."""
    sides = [side for loop in loops for side in zip(loop, loop[1:] + loop[:1], strict=True)]
    return len(set(sides)) == len(sides) and {(end, start) for start, end in sides} == set(sides)


def _planes(corners: np.ndarray, inside: np.ndarray, near: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Outward unit normals and points of the planes of triangles (m, 3, 3), each once, the largest triangle's first."""
    along = np.roll(corners, -1, axis=1) - corners
    normals = np.cross(along[:, 0], along[:, 1])
    area = np.linalg.norm(normals, axis=1)
    good = area > near * np.linalg.norm(along, axis=2).max(axis=1)
    order = np.argsort(-area[good], kind="stable")
    corners, normals = corners[good][order], (normals[good] / area[good, None])[order]
    normals *= np.where(np.einsum("mx,mx->m", corners[:, 0] - inside, normals) < 0, -1.0, 1.0)[:, None]
    planes = []
    while len(corners):
        normal, point = normals[0], corners[0, 0]
        planes.append((normal, point))
        other = (np.abs((corners - point) @ normal).max(axis=1) > near) | (normals @ normal < 0)
        other[0] = False
        corners, normals = corners[other], normals[other]
        if len(planes) > MOST_FACES:
            raise ValueError(f"a Hull has more than {MOST_FACES} flat faces; make it simpler (decimate it), and convex")
    return planes


def _welded(points: np.ndarray, near: float) -> tuple[np.ndarray, np.ndarray]:
    """The points without those that are near an earlier one, and which of them stands for each."""
    kept, same, count = np.empty_like(points), np.empty(len(points), dtype=np.intp), 0
    for i, point in enumerate(points):
        close = (np.abs(kept[:count] - point).max(axis=1) <= near).nonzero()[0]
        same[i] = close[0] if len(close) else count
        if not len(close):
            kept[count] = point
            count += 1
    return kept[:count], same


def _outline(points: np.ndarray, normal: np.ndarray, inside: np.ndarray, near: float) -> list[int]:
    """Numbers of the corners around those points that are `inside` a face, counter-clockwise about its normal, without
    those in the middle of a side: Andrew's monotone chain."""
    first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    x, y = points @ first, points @ np.cross(normal, first)
    order = np.nonzero(inside)[0]
    order = order[np.lexsort((y[order], x[order]))].tolist()
    loop: list[int] = []
    for half in (order, order[::-1]):
        start = len(loop)
        for i in half:
            while len(loop) >= start + 2:
                a, b = loop[-2:]
                length = np.hypot(x[i] - x[a], y[i] - y[a])
                if (x[b] - x[a]) * (y[i] - y[a]) - (y[b] - y[a]) * (x[i] - x[a]) > near * length:
                    break
                loop.pop()
            loop.append(i)
        loop.pop()
    return loop
