"""Polytopes: convex solids with flat faces, prepared for the search of contacts.

Box, cylinder and triangle are built from their topology, so that they may be flat: a triangle is a prism of no height,
with sides between its two faces, and so every direction of the sphere belongs to one corner, edge or face of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .hull import hull_faces
from .shape import CORNERS, Box, Cylinder, Hull

SIDES = 24  # of the prism that stands for a cylinder; its surface is within 0.43 % of the radius


@dataclass(frozen=True)
class Polytope:
    """One convex solid: `vertices` (v, 3), and per face its outward unit normal in `normals` (f, 3) and its corners,
    counter-clockwise seen from outside, in `faces`."""

    vertices: np.ndarray
    normals: np.ndarray
    faces: list[list[int]]

    @classmethod
    def of(cls, shape: Box | Cylinder | Hull) -> Polytope:
        """The polytope of a shape, in the shape's own frame.

        Raises ValueError for a hull that is flat, open, not convex, or has more than 64 corners or 124 flat faces.
        """
        if isinstance(shape, Box):
            return _box(np.asarray(shape.center), np.asarray(shape.half), np.asarray(shape.rotation))
        if isinstance(shape, Cylinder):
            return _cylinder(np.asarray(shape.start), np.asarray(shape.end), shape.radius)
        return cls(*hull_faces(np.asarray(shape.vertices, dtype=float), np.asarray(shape.triangles)))

    def edges(self) -> np.ndarray:
        """Edges (e, 4): start, end, the face to the left and that to the right, seen from outside along the edge."""
        left = {}
        for face, corners in enumerate(self.faces):
            for start, end in zip(corners, corners[1:] + corners[:1], strict=True):
                left[start, end] = face
        return np.array([(*edge, face, left[edge[::-1]]) for edge, face in left.items() if edge[0] < edge[1]])


class Polytopes(NamedTuple):
    """n polytopes, padded to the same numbers of v vertices, e edges, f faces and k corners of a face.

    Pairs pay for the padding: keep boxes, and other polytopes of like size, in a table of their own.
    `points` (n, v + e, 3): the vertices, the first repeated, and the starts of the edges; `axes` (n, f + 3 e, 3): the
    faces' normals, the first repeated, the edges' directions (left normal × right normal), and the normals to the left
    and right of the edges, 0 for padding. `offsets` (n, f) of the faces along their normals; `lengths` (n, e) of edges
    and their `ends` (n, e, 2); `faces` (n, f, k) corners, the last repeated; `size` (n,) the radius around the mean
    corner.
    """

    points: np.ndarray
    axes: np.ndarray
    offsets: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray
    faces: np.ndarray
    size: np.ndarray

    @classmethod
    def table(cls, polytopes: list[Polytope]) -> Polytopes:
        """All `polytopes`, each in its own frame, at least one."""
        edges = [polytope.edges() for polytope in polytopes]
        v = max(len(polytope.vertices) for polytope in polytopes)
        e = max(len(of_one) for of_one in edges)
        f = max(len(polytope.faces) for polytope in polytopes)
        k = max(len(corners) for polytope in polytopes for corners in polytope.faces)
        n = len(polytopes)
        points, axes = np.empty((n, v + e, 3)), np.zeros((n, f + 3 * e, 3))
        offsets, lengths, size = np.empty((n, f)), np.zeros((n, e)), np.empty(n)
        ends, faces = np.zeros((n, e, 2), dtype=np.intp), np.empty((n, f, k), dtype=np.intp)
        for i, (polytope, (start, end, left, right)) in enumerate(zip(polytopes, (of_one.T for of_one in edges))):
            vertices, normals, count = polytope.vertices, polytope.normals, len(start)
            points[i] = vertices[0]
            points[i, : len(vertices)] = vertices
            points[i, v : v + count] = vertices[start]
            axes[i, :f] = normals[0]
            axes[i, : len(normals)] = normals
            direction = np.cross(normals[left], normals[right])
            axes[i, f : f + count] = direction / np.linalg.norm(direction, axis=1)[:, None]
            axes[i, f + e : f + e + count] = normals[left]
            axes[i, f + 2 * e : f + 2 * e + count] = normals[right]
            loops = [corners + corners[-1:] * (k - len(corners)) for corners in polytope.faces]
            faces[i] = loops[0]
            faces[i, : len(loops)] = loops
            offsets[i] = np.einsum("fx,fx->f", axes[i, :f], vertices[faces[i, :, 0]])
            lengths[i, :count] = np.linalg.norm(vertices[end] - vertices[start], axis=1)
            ends[i, :count, 0], ends[i, :count, 1] = start, end
            size[i] = np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max()
        return cls(points, axes, offsets, lengths, ends, faces, size)

    @classmethod
    def of_triangles(cls, corners: np.ndarray) -> Polytopes:
        """Triangles (p, 3, 3), none without area, as polytopes; the first face looks to where the corners are
        counter-clockwise."""
        count, along = len(corners), np.roll(corners, -1, axis=1) - corners
        normal = np.cross(along[:, 0], along[:, 1])
        normal /= np.sqrt((normal * normal).sum(axis=1, keepdims=True))
        lengths = np.sqrt((along * along).sum(axis=2))
        along = along / lengths[:, :, None]
        up = np.broadcast_to(normal[:, None], along.shape)
        side = np.cross(along, up)
        # Edges of the upper face, of the lower face, and those of no length at the corners, between two sides.
        normals = np.concatenate((normal[:, None], -normal[:, None], side), axis=1)
        last = np.roll(side, 1, axis=1)
        axes = np.concatenate((normals, along, -along, up, up, -up, last, side, side, side), axis=1)
        points = np.concatenate((corners, corners, corners, np.roll(corners, -1, axis=1), corners), axis=1)
        offsets = (normals * corners[:, (0, 0, 0, 1, 2)]).sum(axis=2)
        lengths = np.concatenate((lengths, lengths, np.zeros_like(lengths)), axis=1)
        size = np.sqrt(((corners - corners.mean(axis=1, keepdims=True)) ** 2).sum(axis=2).max(axis=1))
        ends = np.broadcast_to(_PRISM_ENDS, (count, 9, 2))
        return cls(points, axes, offsets, lengths, ends, np.broadcast_to(_PRISM_FACES, (count, 5, 4)), size)

    @property
    def vertices(self) -> np.ndarray:
        """Corners (n, v, 3)."""
        return self.points[:, : self.points.shape[1] - self.lengths.shape[1]]

    @property
    def normals(self) -> np.ndarray:
        """Outward unit normals of the faces (n, f, 3)."""
        return self.axes[:, : self.offsets.shape[1]]

    def of_edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Starts (n, e, 3), unit directions (n, e, 3), and the normals to the left, then those to the right
        (n, 2 e, 3)."""
        f, e = self.offsets.shape[1], self.lengths.shape[1]
        return self.points[:, -e:], self.axes[:, f : f + e], self.axes[:, f + e :]

    def take(self, index: np.ndarray) -> Polytopes:
        """Those at `index` (p,)."""
        return Polytopes(*(column.take(index, axis=0) for column in self))

    def placed(self, index: np.ndarray, rotation: np.ndarray, translation: np.ndarray) -> Polytopes:
        """Those at `index` (p,), each turned by a rotation (p, 3, 3) and moved by a translation (p, 3)."""
        turn, move = rotation.transpose(0, 2, 1), translation[:, None]
        own = self.take(index)
        axes = own.axes @ turn
        f = own.offsets.shape[1]
        offsets = own.offsets + (axes[:, :f] @ translation[:, :, None])[:, :, 0]
        return own._replace(points=own.points @ turn + move, axes=axes, offsets=offsets)


# Corners 0, 1, 2 of the upper face of a prism of a triangle, 3, 4, 5 of the lower one.
_PRISM_FACES = np.array([(0, 1, 2, 2), (3, 5, 4, 4), (0, 3, 4, 1), (1, 4, 5, 2), (2, 5, 3, 0)])
_PRISM_ENDS = np.array([(0, 1), (1, 2), (2, 0), (4, 3), (5, 4), (3, 5), (0, 3), (1, 4), (2, 5)])


def _box(center: np.ndarray, half: np.ndarray, rotation: np.ndarray) -> Polytope:
    corners = CORNERS * half
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    normals = np.repeat(np.eye(3), 2, axis=0) * np.resize([-1.0, 1.0], 6)[:, None]
    return Polytope(corners @ rotation.T + center, normals @ rotation.T, faces)


def _cylinder(start: np.ndarray, end: np.ndarray, radius: float) -> Polytope:
    """A prism whose edges lie as far outside of the cylinder as the middles of its sides lie inside."""
    axis = (end - start) / np.linalg.norm(end - start)
    across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    across /= np.linalg.norm(across)
    frame = np.array([across, np.cross(axis, across)])
    turn = np.arange(SIDES) * (2 * np.pi / SIDES)
    middle = turn + np.pi / SIDES
    ring = 2 * radius / (1 + np.cos(np.pi / SIDES)) * np.array([np.cos(turn), np.sin(turn)]).T @ frame
    sides = np.array([np.cos(middle), np.sin(middle)]).T @ frame
    around = list(range(SIDES))
    faces = [[SIDES + i for i in around], around[::-1]]
    faces += [[i, (i + 1) % SIDES, SIDES + (i + 1) % SIDES, SIDES + i] for i in around]
    return Polytope(np.concatenate((start + ring, end + ring)), np.concatenate(([axis, -axis], sides)), faces)
