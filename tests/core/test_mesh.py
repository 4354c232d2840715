"""Meshes are prepared as what they stand for: solids and shells, no wrong sides, and nothing twice."""

import time

import numpy as np
import pytest
from surfaces import CUBE, CUBE_FACES, UP, grid, touch

from core.bounds import BoxTree
from core.mesh import PreparedMesh
from core.shape import Hull, Mesh


def test_inside_out_cube_is_the_cube():
    """Mirrored objects come inside out; they are solid all the same."""
    ends = np.random.default_rng(8).uniform(-1.6, 1.6, (300, 2, 3))
    cube = touch(Mesh(CUBE, CUBE_FACES), ends)
    turned = touch(Mesh(CUBE, CUBE_FACES[:, ::-1]), ends)
    assert np.array_equal(cube.pair, turned.pair) and np.array_equal(cube.feature, turned.feature)
    assert np.abs(cube.gap - turned.gap).max() < 1e-12 and np.abs(cube.normal - turned.normal).max() < 1e-9
    hull = PreparedMesh.of(Hull(CUBE, CUBE_FACES))
    assert hull.solid.all() and np.einsum("ij,ij->i", hull.normals, hull.corners.mean(axis=1)).min() > 0


def test_hollow_of_a_solid_stays_a_hollow():
    """A room with thick walls has its inner faces turned inward, also if the whole was mirrored."""
    room = Mesh(np.concatenate((2 * CUBE, CUBE)), np.concatenate((CUBE_FACES, CUBE_FACES[:, ::-1] + 8)))
    for triangles in (room.triangles, room.triangles[:, ::-1]):
        found = touch(Mesh(room.vertices, triangles), [(0.2, 0.3, -0.8), (0.0, 0.0, 2.2)])
        assert np.array_equal(found.normal, [UP, UP]) and found.gap == pytest.approx([-0.05, -0.05])


def test_open_parts_do_not_open_closed_ones():
    """Joined objects keep what they are: a sheet has two sides, a cube beside it is solid, a mirrored one too."""
    sheet = grid(2)
    vertices = np.concatenate((sheet.vertices, CUBE + np.array((5, 0, 0)), CUBE + np.array((9, 0, 0))))
    triangles = np.concatenate((sheet.triangles, CUBE_FACES + 9, CUBE_FACES[:, ::-1] + 17))
    prepared = PreparedMesh.of(Mesh(vertices, triangles))
    assert prepared.solid.tolist() == [False] * 8 + [True] * 24
    out = prepared.corners[8:].mean(axis=1) - np.repeat([(5.0, 0, 0), (9.0, 0, 0)], 12, axis=0)
    assert np.einsum("ij,ij->i", out, prepared.normals[8:]).min() > 0.5


def test_open_mesh_works_from_both_sides():
    """A cloth-thin floor holds what lies on it and what is thrown against it from below."""
    for side in (1.0, -1.0):
        found = touch(grid(4), [[(-0.9, 0.3, side * 0.2), (0.8, 0.1, side * 0.21)]])
        assert np.array_equal(found.normal, [side * UP] * 2) and found.gap == pytest.approx([-0.05, -0.04])


def test_end_through_a_shell_returns_to_the_side_of_the_middle():
    """A hand that went through a sheet must come back, not drag the arm after it."""
    found = touch(grid(4), [[(0.3, 0.2, -0.05), (0.5, 0.1, 0.9)]], radius=0.1)
    assert np.array_equal(found.normal, [UP]) and found.gap == pytest.approx([-0.15])
    found = touch(grid(4), [[(0.5, 0.1, -0.9), (0.3, 0.2, 0.05)]], radius=0.1)
    assert np.array_equal(found.normal, [-UP]) and found.gap == pytest.approx([-0.15])


def test_triangles_without_area_and_duplicates_are_dropped():
    """They have no normal, and each copy would push again."""
    vertices = np.concatenate((CUBE, [(0.0, -1.0, -1.0)]))  # in the middle of an edge: a sliver
    triangles = np.concatenate((CUBE_FACES, [(0, 8, 4), (3, 3, 1), (1, 3, 0), (0, 3, 1)]))
    prepared = PreparedMesh.of(Mesh(vertices, triangles))
    assert (prepared.flat, prepared.twice, len(prepared)) == (2, 2, 12)
    assert np.array_equal(prepared.source, np.arange(12))
    with pytest.raises(ValueError, match="all 1 triangles of a mesh have zero area; give it faces"):
        PreparedMesh.of(Mesh(np.zeros((3, 3)), np.array([(0, 1, 2)])))
    with pytest.raises(ValueError, match="zero area"):
        PreparedMesh.of(Mesh(np.outer(np.arange(4.0), (1, 2, 3)), np.array([(0, 1, 2), (1, 2, 3)])))


def test_vertices_at_one_place_are_one():
    """Meshes with split normals or materials repeat vertices; a cube of loose triangles is closed all the same."""
    loose = Mesh(CUBE[CUBE_FACES].reshape(-1, 3), np.arange(36).reshape(-1, 3))
    assert PreparedMesh.of(loose).solid.all()
    found = touch(loose, [(0.2, 0.2, 1.2), (0.0, 0.0, 1.2)])
    assert np.array_equal(found.normal, [UP, UP]) and np.array_equal(found.pair, [0, 1])


def test_bad_meshes_give_finite_touches():
    """T-junctions, crossing parts, edges of three faces and faces turned at random are in every library of models."""
    rng = np.random.default_rng(9)
    ends = rng.uniform(-1.5, 1.5, (200, 2, 3))
    fan = np.array([(0, 1, 2), (0, 1, 3), (0, 1, 4), (1, 0, 5)])
    star = Mesh(np.array([(0, 0, 0), (0, 0, 1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)], dtype=float), fan)
    crossed = Mesh(
        np.concatenate((CUBE, CUBE * 0.8 + 0.5)),
        np.concatenate((CUBE_FACES, CUBE_FACES + 8)),
    )
    turned = np.where((rng.random(12) < 0.5)[:, None], CUBE_FACES, CUBE_FACES[:, ::-1])
    split = np.array([(0, 1, 2), (0, 3, 1), (3, 4, 1)])  # the long edge from 0 to 4 has a vertex on one side
    junction = Mesh(np.array([(-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 0), (1, 0, 0)], dtype=float), split)
    soup = Mesh(rng.uniform(-1, 1, (60, 3)), rng.integers(0, 60, (300, 3)))
    for mesh in (star, crossed, Mesh(CUBE, turned), junction, soup):
        assert len(touch(mesh, ends, reach=0.3).gap)
        assert len(touch(mesh, ends[:, 0], reach=0.3).gap)


@pytest.mark.slow
def test_a_million_triangles_are_prepared_in_seconds():
    """Scanned scenery is common; what it costs must grow with its size only."""
    scan = grid(710, lambda x, y: np.sin(x / 7) * np.cos(y / 9), step=0.1)
    start = time.perf_counter()
    prepared = PreparedMesh.of(scan)
    tree = BoxTree(prepared.corners.min(axis=1), prepared.corners.max(axis=1))
    assert time.perf_counter() - start < 20.0
    assert len(prepared) == len(tree) == 1_008_200
