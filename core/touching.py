"""The touches of pairs of shapes: each kind of pair is one function of all its pairs at once."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np

from .bounds import BoxTree
from .buried import Solid
from .contact import Touches, no_touches
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
    """What the functions of pairs need beside the `geometry`: `solids`, prepared meshes and hulls by shape, and all of
    them as one; boxes in one table of polytopes, others in another, as pairs pay for padding; trees of the triangles of
    meshes that move."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = g = geometry
        self.solids = {i: PreparedMesh.of(shape) for i, shape in enumerate(g.shapes) if isinstance(shape, (Hull, Mesh))}
        counts = np.zeros(len(g.shapes), dtype=np.intp)
        counts[list(self.solids)] = [len(solid) for solid in self.solids.values()]
        self._triangles, self._first = counts, np.cumsum(counts) - counts
        self._solid = PreparedMesh.together(list(self.solids.values())) if self.solids else None
        self._trees = {
            i: BoxTree(solid.corners.min(axis=1), solid.corners.max(axis=1))
            for i, solid in self.solids.items()
            if i < g.moving and g.kind[i] == MESH
        }
        self._closed: dict[int, Solid] = {}
        self._number = np.zeros(len(g.shapes), dtype=np.intp)
        self._tables = []
        for kinds in ((BOX,), (HULL, CYLINDER)):
            own = np.flatnonzero(np.isin(g.kind, kinds))
            self._number[own] = np.arange(len(own))
            # in the shape's frame, which for boxes and cylinders is in their middle
            made = [Polytope.of(g.shapes[i].moved(pose_inverse(g.frames[g.row[i]]))) for i in own]
            self._tables.append(Polytopes.table(made) if made else None)

    def only(self, kept: np.ndarray, geometry: Geometry) -> Touching:
        """Only the shapes `kept` (k,), whose `geometry` is given."""
        touching = copy.copy(self)
        touching.geometry = geometry
        place = {shape: k for k, shape in enumerate(kept.tolist())}
        touching.solids, touching._trees = (
            {place[i]: value for i, value in table.items() if i in place} for table in (self.solids, self._trees)
        )
        touching._closed = {}
        for name in ("_triangles", "_first", "_number"):
            setattr(touching, name, getattr(self, name)[kept])
        return touching

    def touch(
        self, placed: Placed, a: np.ndarray, b: np.ndarray, part: np.ndarray, reach: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Touches]]:
        """The touches of all pairs, kind by kind, and the pairs of shapes of each kind."""
        g = self.geometry
        both = g.kind[a] * 8 + g.kind[b]
        for kinds in np.bincount(both).nonzero()[0].tolist():
            pairs = (both == kinds).nonzero()[0]
            first, second = divmod(kinds, 8)
            p, q, far = a.take(pairs), b.take(pairs), reach.take(pairs)
            r, s = g.row.take(p), g.row.take(q)
            if second == MESH:
                yield self._touch_triangles(placed, *self._with_near_triangles(placed, p, q, part[pairs], far))
            elif second == ROUND:
                ends, radii = placed.ends, g.radii
                one, other = ((ends.take(row, axis=0), radii.take(row, axis=0)) for row in (r, s))
                yield p, q, round_round(*one, *other, far)
            elif first == ROUND and second == HULL:
                # the triangles of hulls are few: all are candidates
                counts = self._triangles[q]
                pair = np.repeat(np.arange(len(p)), counts)
                triangle = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
                yield self._touch_triangles(placed, p[pair], q[pair], triangle, far[pair])
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

    def _with_near_triangles(
        self, placed: Placed, a: np.ndarray, b: np.ndarray, triangle: np.ndarray, reach: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Pairs of shapes `a` and triangles of meshes `b`: instead of each with a mesh that moves, those with each
        triangle of it that is near."""
        g = self.geometry
        moves = b < g.moving
        parts = [(a[~moves], b[~moves], triangle[~moves], reach[~moves])]
        for mesh in np.unique(b[moves]).tolist():
            own = b == mesh
            row = g.row[mesh]
            frames = Placed(
                (placed.ends - placed.position[row]) @ placed.rotation[row],
                placed.rotation[row].T @ placed.rotation,
                (placed.position - placed.position[row]) @ placed.rotation[row],
            )
            low, high = (corner[a[own]] for corner in g.bounds(frames, moving=True))
            far = reach[own, None]
            pair, near = self._trees[mesh].near(low - far, high + far)
            parts.append((a[own][pair], np.full(len(pair), mesh), near, reach[own][pair]))
        return tuple(np.concatenate(column) for column in zip(*parts))

    def _touch_triangles(
        self, placed: Placed, a: np.ndarray, b: np.ndarray, triangle: np.ndarray, reach: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Touches]:
        """Shapes `a`, all rounds or all polytopes of a kind, with triangles of meshes or hulls `b`, each pair in the
        frame of b."""
        g = self.geometry
        pair, owner = np.unique(a * len(g.shapes) + b, return_inverse=True)
        p, q = np.divmod(pair, len(g.shapes))
        row, frame = g.row[a], g.row[b]
        rotation, position = placed.rotation[frame], placed.position[frame]
        which = self._first[b] + triangle
        if not len(a):
            touches = no_touches()
        elif g.kind[a[0]] == ROUND:
            ends = (placed.ends[row] - position[:, None]) @ rotation

            def goes_around(candidate: np.ndarray, points: np.ndarray) -> np.ndarray:
                return self._goes_around(b[candidate], points)

            # the triangles of a hull are all there
            proof = goes_around if g.kind[b[0]] == MESH else None
            touches = round_mesh(ends, g.radii[row], which, owner, self._solid, reach, proof)
        else:
            inverse = rotation.swapaxes(-1, -2)
            place = (inverse @ (placed.position[row] - position)[:, :, None])[:, :, 0]
            touches = polytope_mesh(
                self.polytopes(a, inverse @ placed.rotation[row], place), which, owner, self._solid, reach
            )
        own = g.row[q]
        return p, q, _turned(touches, placed.rotation[own], placed.position[own])

    def _goes_around(self, meshes: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Whether meshes (n,) go around points (n, 3) in their frames."""
        result = np.zeros(len(points), dtype=bool)
        for mesh in np.unique(meshes).tolist():
            if mesh not in self._closed:
                self._closed[mesh] = Solid(self.solids[mesh])
            own = meshes == mesh
            result[own] = self._closed[mesh].goes_around(points[own])
        return result


def _turned(touches: Touches, rotation: np.ndarray, position: np.ndarray) -> Touches:
    """Touches from the frames (p, 3, 3) and (p, 3) of their pairs to the world's."""
    turn, move = rotation[touches.pair], position[touches.pair]
    point, center, normal = (
        (turn @ vectors[:, :, None])[:, :, 0] for vectors in (touches.point, touches.center, touches.normal)
    )
    return touches._replace(point=point + move, center=center + move, normal=normal)
