"""The touches of pairs of shapes: each kind of pair is one function of all its pairs at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .bounds import BoxTree
from .contact import Touches
from .geometry import BOX, CYLINDER, HULL, MESH, ROUND, Geometry, Placed
from .mesh import PreparedMesh
from .polytope import Polytope, Polytopes
from .polytope_mesh import polytope_mesh
from .rounds import round_box, round_cylinder, round_round
from .separation import polytope_polytope
from .shape import Hull, Mesh
from .spatial import pose_inverse
from .triangle import round_mesh


class Touching:
    """What the functions of pairs need beside the `geometry`: `solids`, prepared meshes and hulls by shape; boxes in
    one table of polytopes, others in another, as pairs pay for padding; trees of the triangles of meshes that move."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = g = geometry
        self.solids = {i: PreparedMesh.of(shape) for i, shape in enumerate(g.shapes) if isinstance(shape, (Hull, Mesh))}
        self._trees = {
            i: BoxTree(solid.corners.min(axis=1), solid.corners.max(axis=1))
            for i, solid in self.solids.items()
            if i < g.moving and g.kind[i] == MESH
        }
        self._number = np.zeros(len(g.shapes), dtype=np.intp)
        self._tables = []
        for kinds in ((BOX,), (HULL, CYLINDER)):
            own = np.flatnonzero(np.isin(g.kind, kinds))
            self._number[own] = np.arange(len(own))
            # in the shape's frame, which for boxes and cylinders is in their middle
            made = [Polytope.of(g.shapes[i].moved(pose_inverse(g.frames[g.row[i]]))) for i in own]
            self._tables.append(Polytopes.table(made) if made else None)

    def touch(
        self, placed: Placed, a: np.ndarray, b: np.ndarray, part: np.ndarray, reach: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Touches]]:
        """The touches of all pairs, kind by kind, and the pairs of shapes of each kind."""
        g = self.geometry
        both = g.kind[a] * 8 + g.kind[b]
        for kinds in np.flatnonzero(np.bincount(both)).tolist():
            pairs = np.flatnonzero(both == kinds)
            first, second = divmod(kinds, 8)
            p, q, far = a.take(pairs), b.take(pairs), reach.take(pairs)
            r, s = g.row[p], g.row[q]
            if second == MESH:
                yield from self._touch_meshes(placed, p, q, part[pairs], far)
            elif second == ROUND:
                yield p, q, round_round(placed.ends[r], g.radii[r], placed.ends[s], g.radii[s], far)
            elif first == ROUND and second == HULL:
                yield from self._touch_hulls(placed, p, q, far)
            elif first == ROUND:
                rotation, position, half = placed.rotation[s], placed.position[s], g.half[s]
                ends = (placed.ends[r] - position[:, None]) @ rotation
                if second == BOX:
                    touches = round_box(ends, g.radii[r], half, far)
                else:
                    touches = round_cylinder(ends, g.radii[r], half[:, 2], half[:, 0], far)
                yield p, q, _turned(touches, rotation, position)
            else:
                # about b, where the numbers are small
                position = placed.position[s]
                one = self.polytopes(p, placed.rotation[r], placed.position[r] - position)
                other = self.polytopes(q, placed.rotation[s], np.zeros_like(position))
                touches = polytope_polytope(one, other, far)
                move = position[touches.pair]
                yield p, q, touches._replace(point=touches.point + move, center=touches.center + move)

    def polytopes(self, shapes: np.ndarray, rotation: np.ndarray, position: np.ndarray) -> Polytopes:
        """Shapes (p,), all of one kind, as polytopes with a rotation (p, 3, 3) and a position (p, 3)."""
        table = self._tables[0 if self.geometry.kind[shapes[0]] == BOX else 1]
        return table.placed(self._number[shapes], rotation, position)

    def _touch_hulls(self, placed: Placed, a: np.ndarray, b: np.ndarray, reach: np.ndarray) -> Iterator:
        """Rounds with hulls, whose triangles are all candidates."""
        counts = np.array([len(self.solids[i]) for i in b.tolist()])
        pair = np.repeat(np.arange(len(a)), counts)
        triangle = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        yield from self._touch_meshes(placed, a[pair], b[pair], triangle, reach[pair])

    def _near_triangles(
        self, placed: Placed, mesh: int, a: np.ndarray, reach: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Shapes `a` again, with each triangle that is near it of a mesh that moves, and their reaches."""
        g = self.geometry
        row = g.row[mesh]
        frames = Placed(
            (placed.ends - placed.position[row]) @ placed.rotation[row],
            placed.rotation[row].T @ placed.rotation,
            (placed.position - placed.position[row]) @ placed.rotation[row],
        )
        low, high = (corner[a] for corner in g.bounds(frames, moving=True))
        pair, triangle = self._trees[mesh].near(low - reach[:, None], high + reach[:, None])
        return a[pair], triangle, reach[pair]

    def _touch_meshes(
        self, placed: Placed, a: np.ndarray, b: np.ndarray, triangle: np.ndarray, reach: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Touches]]:
        """Shapes a with triangles of meshes b, where these are known; else with those that are near in a mesh that
        moves. Mesh by mesh: each has a frame and neighbourhoods of its own."""
        g = self.geometry
        for mesh in np.unique(b).tolist():
            own = np.flatnonzero(b == mesh)
            solid, row = self.solids[mesh], g.row[mesh]
            rotation, position = placed.rotation[row], placed.position[row]
            p, t, far = a[own], triangle[own], reach[own]
            if g.kind[mesh] == MESH and mesh < self.geometry.moving:
                p, t, far = self._near_triangles(placed, mesh, p, far)
            shape, owner = np.unique(p, return_inverse=True)
            if not len(p):
                continue
            if g.kind[p[0]] == ROUND:
                ends = (placed.ends[g.row[p]] - position) @ rotation
                touches = round_mesh(ends, g.radii[g.row[p]], t, owner, solid, far)
            else:
                row = g.row[p]
                one = self.polytopes(p, rotation.T @ placed.rotation[row], (placed.position[row] - position) @ rotation)
                touches = polytope_mesh(one, t, owner, solid, far)
            yield shape, np.full(len(shape), mesh), _turned(touches, rotation[None], position[None])


def _turned(touches: Touches, rotation: np.ndarray, position: np.ndarray) -> Touches:
    """Touches from the frames (p, 3, 3) and (p, 3) of their pairs to the world's."""
    turn = rotation[touches.pair] if len(rotation) > 1 else rotation
    move = position[touches.pair] if len(rotation) > 1 else position
    point, center, normal = (
        (turn @ vectors[:, :, None])[:, :, 0] for vectors in (touches.point, touches.center, touches.normal)
    )
    return touches._replace(point=point + move, center=center + move, normal=normal)
