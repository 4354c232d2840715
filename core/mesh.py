"""Triangle meshes made ready for contact: what is solid, and where the closest point of a mesh may lie.

The closest point of a triangle is the closest of the mesh around it only if the direction away from it lies in the
normal cone of its vertex or edge. Whoever asks for that (`closest_there`) feels no edges inside a flat floor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .bounds import overlapping
from .shape import Hull, Mesh

WELD = 2.0**-30  # vertices closer than this part of the mesh's extent are one, and flatter triangles are none
CREASE = 1e-9  # 1 - cos of half the angle between two faces below which their edge is none
SLACK = 1e-9  # sine by which a direction may leave a normal cone


@dataclass(frozen=True)
class PreparedMesh:
    """m triangles with areas, in the frame of the mesh they were made from.

    `source` (m,) is a triangle's number in that mesh; `flat` and `twice` count what was dropped for having no area and
    for being there already. `corners` (m, 3, 3) turn counterclockwise seen from outside, against `normals` (m, 3);
    `solid` (m,) tells where the triangle bounds a solid, else it is part of a shell with two sides.

    Features are f vertices and edges; `features` (m, 6) numbers those of each triangle: its corners, then its edges
    from each corner to the next. `outward` (f, 3) is the angle-weighted normal at each (Bærentzen & Aanæs
    2005), or zero where the sides are not told.
    `crest` (m, 3) tells the edges where two faces meet at an angle, once each, and borders.

    `gauges` (m, 4, 7) times (x - first corner, 1) gives the distances of x outside the three edges, those along them
    from their starts, and the height above the plane [m]; `lengths` (m, 3) are the edges'.
    """

    source: np.ndarray
    corners: np.ndarray
    normals: np.ndarray
    solid: np.ndarray
    features: np.ndarray
    outward: np.ndarray
    crest: np.ndarray
    gauges: np.ndarray
    lengths: np.ndarray
    flat: int
    twice: int
    _vertices: np.ndarray
    _start: np.ndarray
    _around: np.ndarray

    @classmethod
    def of(cls, mesh: Mesh | Hull) -> PreparedMesh:
        """Raises ValueError if no triangle has an area."""
        vertices = np.asarray(mesh.vertices, dtype=float)
        triangles = np.asarray(mesh.triangles, dtype=np.intp)
        grain = WELD * max(float(np.ptp(vertices, axis=0).max()), 1e-300)
        triangles, vertices = _welded(vertices, triangles, grain)
        source = _first_of_each(triangles)
        twice = len(triangles) - len(source)
        triangles = triangles[source]
        flips, solid = _closed(vertices, triangles, grain)
        triangles[flips] = triangles[flips][:, ::-1]

        corners = vertices[triangles]
        sides = np.roll(corners, -1, axis=1) - corners
        lengths = np.sqrt(np.einsum("mij,mij->mi", sides, sides))
        normals = np.cross(sides[:, 0], sides[:, 1])
        area = np.sqrt(np.einsum("mi,mi->m", normals, normals))
        good = area > grain * lengths.max(axis=1)
        if not good.any():
            raise ValueError(f"all {len(good)} triangles of a mesh have zero area; give it faces or leave it out")
        flat = len(good) - int(good.sum())
        if flat:
            triangles, corners, source, solid = triangles[good], corners[good], source[good], solid[good]
            sides, lengths, normals, area = sides[good], lengths[good], normals[good], area[good]
        normals /= area[:, None]
        along = sides / lengths[:, :, None]
        gauges = _gauges(sides, along, lengths, normals)

        ends, edge, first = _edges(triangles, len(vertices))
        features = np.concatenate((triangles, len(vertices) + edge), axis=1).astype(np.int32)
        start, around = _neighbours(triangles, features, ends, len(vertices))
        outward = _outward(features, along, normals, len(start) - 1)
        border = (np.bincount(edge.ravel()) == 1)[edge]
        crest = border | (np.einsum("mj,mkj->mk", normals, outward[features[:, 3:]]) < 1.0 - CREASE)
        # Where a triangle without area was all that closed a solid no side is told: everything there is outside.
        torn = _torn(triangles, edge)
        outward[features[:, 3:][torn]] = outward[triangles[torn]] = outward[np.roll(triangles, -1, axis=1)[torn]] = 0.0
        once = np.zeros(edge.size, dtype=bool)
        once[first] = True
        crest &= once.reshape(edge.shape)
        return cls(
            source, corners, normals, solid, features, outward, crest, gauges, lengths, flat, twice, vertices, start,
            around,
        )  # fmt: skip

    @classmethod
    def together(cls, meshes: list[PreparedMesh]) -> PreparedMesh:
        """Several meshes as one whose triangles follow each other, each still in the frame of its own mesh."""
        if len(meshes) == 1:
            return meshes[0]
        columns = {
            name: np.concatenate([getattr(mesh, name) for mesh in meshes])
            for name in ("source", "corners", "normals", "solid", "outward", "crest", "gauges", "lengths", "_vertices")
        }
        vertices, features, around = (
            np.cumsum([0, *(len(getattr(mesh, name)) for mesh in meshes)])
            for name in ("_vertices", "outward", "_around")
        )
        return cls(
            **columns,
            features=np.concatenate([mesh.features + first for mesh, first in zip(meshes, features)]),
            flat=sum(mesh.flat for mesh in meshes),
            twice=sum(mesh.twice for mesh in meshes),
            _start=np.concatenate([*(mesh._start[:-1] + first for mesh, first in zip(meshes, around)), around[-1:]]),
            _around=np.concatenate([mesh._around + first for mesh, first in zip(meshes, vertices)]),
        )

    def __len__(self) -> int:
        return len(self.normals)

    def closest_there(self, feature: np.ndarray, place: np.ndarray, away: np.ndarray) -> np.ndarray:
        """Whether `place` (c, 3) on a `feature` (c,) is the closest of all faces around it to what lies `away` (c, 3).

        No neighbouring vertex may lie beyond the plane across the unit vector `away`: those span the tangent cone.
        """
        if not len(feature):
            return np.empty(0, dtype=bool)
        start = self._start[feature]
        count = self._start[feature + 1] - start
        first = count.cumsum() - count
        neighbour = np.arange(first[-1] + count[-1]) + (start - first).repeat(count)
        arm = self._vertices[self._around[neighbour]] - place.repeat(count, axis=0)
        rise = np.einsum("ij,ij->i", arm, away.repeat(count, axis=0))
        beyond = rise > SLACK * np.sqrt(np.einsum("ij,ij->i", arm, arm))
        return ~np.logical_or.reduceat(beyond, first)


def _welded(vertices: np.ndarray, triangles: np.ndarray, grain: float) -> tuple[np.ndarray, np.ndarray]:
    """Triangles by vertices at different places, and those vertices."""
    cell = np.rint((vertices - vertices.min(axis=0)) / grain)
    order = np.lexsort(cell.T)
    new = np.ones(len(order), dtype=bool)
    new[1:] = (cell[order[1:]] != cell[order[:-1]]).any(axis=1)
    number = np.empty(len(order), dtype=np.intp)
    number[order] = new.cumsum() - 1
    return number[triangles], vertices[order[new]]


def _first_of_each(triangles: np.ndarray) -> np.ndarray:
    """Numbers of the first triangle of each set of three vertices."""
    low, middle, high = np.sort(triangles, axis=1).T
    pair = middle * (int(triangles.max()) + 1) + high
    order = np.lexsort((pair, low))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (pair[order[1:]] != pair[order[:-1]]) | (low[order[1:]] != low[order[:-1]])
    return np.sort(order[new])


def _edges(triangles: np.ndarray, vertices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ends (e, 2) of all edges, lower number first, the edge from each corner to the next (m, 3), and where each
    edge is first in that."""
    after = np.roll(triangles, -1, axis=1)
    key = (np.minimum(triangles, after) * vertices + np.maximum(triangles, after)).ravel()
    key, first, edge = np.unique(key, return_index=True, return_inverse=True)
    return np.stack(np.divmod(key, vertices), axis=1), edge.reshape(triangles.shape), first


def _closed(vertices: np.ndarray, triangles: np.ndarray, grain: float) -> tuple[np.ndarray, np.ndarray]:
    """Which triangles (m,) to turn so that they face outward, and which bound a solid.

    A connected part is closed if its triangles pass each edge as often forward as backward. It is inside out if its
    volume is negative, and a part within the box of a larger one is a hollow that turns as that does.
    """
    torn = _torn(triangles, _edges(triangles, len(vertices))[1])
    part, parts = _parts(triangles, len(vertices))
    open_parts = np.bincount(part, weights=torn.any(axis=1), minlength=parts) > 0
    a, b, c = np.moveaxis(vertices[triangles] - vertices.mean(axis=0), 1, 0)
    normals = np.cross(b - a, c - a)
    volume = np.bincount(part, weights=np.einsum("ij,ij->i", a, normals) / 6, minlength=parts)
    area = np.bincount(part, weights=np.sqrt(np.einsum("ij,ij->i", normals, normals)) / 2, minlength=parts)
    closed = ~open_parts & (np.abs(volume) > grain * area)
    flips = closed & (volume < 0)
    if closed.sum() > 1:
        order = np.argsort(part, kind="stable")
        starts = np.searchsorted(part[order], np.arange(parts))
        corners = vertices[triangles[order]]
        low = np.minimum.reduceat(corners.min(axis=1), starts)
        high = np.maximum.reduceat(corners.max(axis=1), starts)
        i, j = overlapping(low, high)
        i, j = np.concatenate((i, j)), np.concatenate((j, i))
        inside = closed[i] & closed[j] & (low[j] < low[i]).all(axis=1) & (high[j] > high[i]).all(axis=1)
        i, j = i[inside], j[inside]
        order = np.argsort(np.abs(volume[j]), kind="stable")  # the largest is written last
        flips[i[order]] = (volume < 0)[j[order]]
    return flips[part], closed[part]


def _torn(triangles: np.ndarray, edge: np.ndarray) -> np.ndarray:
    """Whether the edge from each corner to the next (m, 3) is not passed as often forward as backward."""
    forward = np.sign(np.roll(triangles, -1, axis=1) - triangles)
    return (np.bincount(edge.ravel(), weights=forward.ravel()) != 0)[edge]


def _parts(triangles: np.ndarray, vertices: int) -> tuple[np.ndarray, int]:
    """The connected part (m,) of each triangle, numbered from 0, and how many there are.

    Each vertex takes the lowest number near it until nothing changes; hooking whole trees of labels and halving their
    height makes that few rounds (Shiloach & Vishkin 1982).
    """
    flat = triangles.ravel()
    order = np.argsort(flat, kind="stable")
    used, starts = np.unique(flat[order], return_index=True)
    owner = order // 3
    label = np.arange(vertices)
    while True:
        lowest = np.minimum.reduceat(label[triangles].min(axis=1)[owner], starts)
        lower = lowest < label[used]
        if not lower.any():
            break
        np.minimum.at(label, label[used[lower]], lowest[lower])
        label[used] = np.minimum(label[used], lowest)
        label = label[label]
        label = label[label]
    roots, part = np.unique(label[triangles[:, 0]], return_inverse=True)
    return part.ravel(), len(roots)


def _gauges(sides: np.ndarray, along: np.ndarray, lengths: np.ndarray, normals: np.ndarray) -> np.ndarray:
    gauges = np.zeros((len(normals), 4, 7))
    out = np.cross(along, normals[:, None])
    gauges[:, :3, :3], gauges[:, :3, 3:6] = out.transpose(0, 2, 1), along.transpose(0, 2, 1)
    gauges[:, :3, 6] = normals
    # The second edge starts at the end of the first; the first corner lies at the end of the third.
    gauges[:, 3, 1] = -np.einsum("mi,mi->m", out[:, 1], sides[:, 0])
    gauges[:, 3, 4] = -np.einsum("mi,mi->m", along[:, 1], sides[:, 0])
    gauges[:, 3, 5] = lengths[:, 2]
    return gauges


def _neighbours(
    triangles: np.ndarray, features: np.ndarray, ends: np.ndarray, vertices: int
) -> tuple[np.ndarray, np.ndarray]:
    """Per feature a run of vertices: from start[f] to start[f + 1] of a list. Around a vertex those at the other ends
    of its edges, around an edge the third corners of its triangles."""
    low, high = ends.T.astype(np.int32)
    feature = np.concatenate((low, high, features[:, 3:].ravel()))
    third = np.roll(triangles, -2, axis=1).ravel().astype(np.int32)
    around = np.concatenate((high, low, third))[np.argsort(feature, kind="stable")]
    count = np.bincount(feature, minlength=vertices + len(ends))
    return np.concatenate(([0], count.cumsum())), around


def _outward(features: np.ndarray, along: np.ndarray, normals: np.ndarray, count: int) -> np.ndarray:
    turn = -np.einsum("mij,mij->mi", np.roll(along, 1, axis=1), along)
    weights = np.concatenate((np.arccos(np.clip(turn, -1.0, 1.0)), np.ones(turn.shape)), axis=1)
    sums = [np.bincount(features.ravel(), (weights * normals[:, i : i + 1]).ravel(), count) for i in range(3)]
    outward = np.stack(sums, axis=1)
    outward /= np.maximum(np.sqrt(np.einsum("ij,ij->i", outward, outward)), 1e-300)[:, None]
    return outward
