"""Surfaces of triangles, and how rounds touch them."""

import numpy as np

from core.bounds import BoxTree
from core.mesh import PreparedMesh
from core.shape import Mesh
from core.triangle import round_mesh

CUBE = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
CUBE_SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
CUBE_FACES = np.array([three for a, b, c, d in CUBE_SIDES for three in ((a, b, c), (a, c, d))])
UP = np.array([0.0, 0.0, 1.0])


def grid(count, height=lambda x, y: 0.0 * x, step=1.0):
    """A sheet of 2 count² triangles over a square around the origin."""
    x, y = np.meshgrid(*[step * (np.arange(count + 1) - count / 2)] * 2, indexing="ij")
    vertices = np.stack((x, y, height(x, y)), axis=2).reshape(-1, 3)
    number = np.arange((count + 1) ** 2).reshape(count + 1, count + 1)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    corners = [(a, b, c), (a, c, d)]
    return Mesh(vertices, np.concatenate([np.stack([x.ravel() for x in three], axis=1) for three in corners]))


def touch(mesh, ends, radius=0.25, reach=0.05, wide=None):
    """Touches of rounds with ends (n, 2, 3) or balls (n, 3), among all triangles whose boxes are near."""
    prepared = mesh if isinstance(mesh, PreparedMesh) else PreparedMesh.of(mesh)
    ends = np.array(ends, dtype=float)
    ends = np.stack((ends, ends), axis=1) if ends.ndim == 2 else ends
    radii = np.broadcast_to(radius, (len(ends), 2)).astype(float)
    around = radii.max() + (reach if wide is None else wide)
    tree = BoxTree(prepared.corners.min(axis=1), prepared.corners.max(axis=1))
    owner, triangle = tree.near(ends.min(axis=1) - around, ends.max(axis=1) + around)
    found = round_mesh(ends[owner], radii[owner], triangle, owner, prepared, np.full(len(owner), reach))
    assert all(np.isfinite(column).all() for column in found)
    assert np.allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-12)
    assert (found.gap < reach).all() and (found.feature >= 0).all() and (found.feature < 2**32).all()
    assert len(set(zip(found.pair, found.feature))) == len(found.gap)
    return found
