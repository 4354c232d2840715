"""Solids with flat faces touch where they do: true distances, manifolds to rest on, names that stay."""

import numpy as np
import pytest

from core.clipping import polytope_plane
from core.polytope import Polytope, Polytopes
from core.separation import polytope_polytope
from core.shape import Box, Cylinder, Hull

HALF = 0.5
CUBE = Box(center=np.zeros(3), half=np.full(3, HALF))
TETRAHEDRON = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1.0)])
SIDES_OF_TETRAHEDRON = np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])


def rotations(rng, count):
    """Uniformly random rotation matrices (count, 3, 3)."""
    q, r = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    q *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None]
    q[:, :, 0] *= np.linalg.det(q)[:, None]
    return q


def about(axis, angle):
    """The rotation by Rodrigues' formula."""
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    k = np.array([(0, -z, y), (z, 0, -x), (-y, x, 0)])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def placed(shape, rotation=None, translation=(0, 0, 0)):
    """A batch of one."""
    rotation = np.eye(3) if rotation is None else rotation
    table = Polytopes.table([Polytope.of(shape)])
    return table.placed(np.zeros(1, dtype=int), rotation[None], np.array([translation], dtype=float))


def touch(a, b, reach=0.1, barred=None):
    found = polytope_polytope(a, b, np.full(len(a.size), reach), barred)
    assert all(np.isfinite(column).all() for column in found)
    assert np.allclose((found.normal**2).sum(axis=1), 1.0, atol=1e-9)
    assert ((found.feature >= 0) & (found.feature < 2**32)).all()
    assert len(set(zip(found.pair, found.feature))) == len(found.pair)
    assert (found.gap < reach).all()
    return found


def ordered(points):
    return points[np.lexsort(np.round(points, 3).T)]


def distance(a, b):
    """Of two point clouds' convex hulls, by non-negative least squares over the points' weights."""
    optimize = pytest.importorskip("scipy.optimize")
    ones = 1e4 * np.repeat(np.eye(2), (len(a), len(b)), axis=1)
    weight = optimize.nnls(np.concatenate((np.concatenate((a.T, -b.T), axis=1), ones)), [0, 0, 0, 1e4, 1e4])[0]
    of_a, of_b = weight[: len(a)], weight[len(a) :]
    return np.linalg.norm(of_a @ a / of_a.sum() - of_b @ b / of_b.sum())


def depth(a, b):
    """How far two point clouds' convex hulls overlap, at least in some direction: their Minkowski difference's."""
    spatial = pytest.importorskip("scipy.spatial")
    return -spatial.ConvexHull((a[:, None] - b).reshape(-1, 3)).equations[:, 3].max()


def random_hull(rng, count):
    spatial = pytest.importorskip("scipy.spatial")
    points = rng.normal(size=(count, 3))
    points *= rng.uniform(0.3, 1.0, 3) / np.linalg.norm(points, axis=1)[:, None]
    return Hull(vertices=points, triangles=spatial.ConvexHull(points).simplices)


def random_pairs(rng, kind, count):
    """Pairs of boxes, of hulls, of a box and a triangle, and of a hull and a cylinder, in all relations."""
    boxes = [Box(center=rng.normal(size=3), half=rng.uniform(0.2, 1.0, 3)) for _ in range(10)]
    hulls = [random_hull(rng, 16) for _ in range(10)] if kind in ("hulls", "cylinder") else []
    cylinders = [Cylinder(start=np.zeros(3), end=rng.normal(size=3), radius=0.5) for _ in range(10)]
    of_a, of_b = {
        "boxes": (boxes, boxes),
        "hulls": (hulls, hulls),
        "triangle": (boxes, boxes),
        "cylinder": (hulls, cylinders),
    }[kind]
    index = rng.integers(10, size=count)
    a, b = (Polytopes.table([Polytope.of(shape) for shape in shapes]) for shapes in (of_a, of_b))
    a = a.placed(index, rotations(rng, count), rng.normal(size=(count, 3)))
    if kind == "triangle":
        return a, Polytopes.of_triangles(rng.normal(size=(count, 3, 3)))
    return a, b.placed(index[::-1], rotations(rng, count), rng.normal(size=(count, 3)))


@pytest.mark.parametrize("kind", ["boxes", "hulls", "triangle", "cylinder"])
def test_gap_is_the_distance(kind):
    """A gap too small stops a body in the air, sideways of another; one too large lets it through."""
    a, b = random_pairs(np.random.default_rng(2), kind, 300)
    found = touch(a, b, reach=0.5)
    gap = np.full(300, np.inf)
    np.minimum.at(gap, found.pair, found.gap)
    separate = 0
    for i, (of_a, of_b) in enumerate(zip(a.vertices, b.vertices)):
        overlap = depth(of_a, of_b)
        if overlap > 0:
            # An axis may be preferred to one up to 5 % better.
            assert -1.06 * overlap - 4e-4 < gap[i] < -overlap + 4e-4
            continue
        true = distance(of_a, of_b)
        separate += true < 0.499
        assert gap[i] == pytest.approx(true, abs=4e-4) if true < 0.499 else gap[i] > 0.498
    assert separate > 30


def test_distance_of_boxes_is_mujocos():
    """A second opinion, from an engine whose boxes are trusted."""
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(3)
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom type='box' size='.2 .3 .4' mass='1'/></body>"
        "<body><freejoint/><geom type='box' size='.5 .1 .3' mass='1'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    shapes = [Box(center=np.zeros(3), half=np.array(half)) for half in ((0.2, 0.3, 0.4), (0.5, 0.1, 0.3))]
    compared = 0
    for _ in range(60):
        data.qpos[:] = rng.normal(size=14) * 0.6
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_kinematics(model, data)
        true = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None)
        if 0.01 < true < 0.9:
            a, b = (placed(s, data.geom_xmat[i].reshape(3, 3), data.geom_xpos[i]) for i, s in enumerate(shapes))
            assert touch(a, b, reach=1.0).gap.min() == pytest.approx(true, abs=1e-4)
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("gap", [0.01, 1e-12, 0.0, -1e-12, -0.01])
def test_box_rests_on_the_corners_of_the_overlap(gap):
    """Four points at the ends of what both share hold a box; rounding about zero must not change them."""
    on_top = placed(CUBE, translation=(0.3, 0.2, 1.0 + gap))
    found = touch(on_top, placed(CUBE))
    corners = [(x, y, HALF + gap) for y in (-0.3, 0.5) for x in (-0.2, 0.5)]
    assert ordered(found.point) == pytest.approx(np.array(corners), abs=2e-4)
    assert found.gap == pytest.approx(np.full(4, gap), abs=1e-14)
    assert found.normal == pytest.approx(np.tile([0, 0, 1.0], (4, 1)), abs=1e-14)
    above = touch(placed(CUBE, translation=(0.3, 0.2, 1.001)), placed(CUBE))
    assert set(found.feature) == set(above.feature)


@pytest.mark.parametrize("angle", [0.0, 1e-9, np.pi / 4, np.pi / 4 + 1e-9, 0.3])
def test_turned_box_has_four_points_around_its_middle(angle):
    """Eight corners of an octagon cost twice what four do; the four must still surround the weight."""
    found = touch(placed(CUBE, about((0, 0, 1), angle), (0, 0, 1.0)), placed(CUBE))
    assert len(found.pair) == 4
    assert found.gap == pytest.approx(np.zeros(4), abs=1e-14)
    around = np.sort(np.arctan2(found.point[:, 1], found.point[:, 0]))
    assert np.diff(np.append(around, around[0] + 2 * np.pi)).max() < 0.75 * np.pi
    assert np.linalg.norm(found.point[:, :2], axis=1).min() > HALF


@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 4])
def test_features_stay_under_small_moves(angle):
    """What rests keeps its impulses by the names of its contacts, whatever the trembling."""
    rng = np.random.default_rng(4)
    names = set()
    for _ in range(50):
        rotation = about((0, 0, 1), angle) @ about(rng.normal(size=3), 1e-6)
        shift = 1e-6 * rng.normal(size=3) + (0, 0, 1.0)
        found = touch(placed(CUBE, rotation, shift), placed(CUBE))
        assert found.normal[:, 2].min() > 1.0 - 1e-9
        names.add(tuple(sorted(found.feature)))
    assert len(names) == 1


@pytest.mark.parametrize("kind", ["boxes", "hulls"])
def test_same_gap_either_way_round(kind):
    """Which of two links comes first is an accident."""
    a, b = random_pairs(np.random.default_rng(5), kind, 500)
    gaps = np.full((2, 500), np.inf)
    for gap, found in zip(gaps, (touch(a, b, reach=0.3), touch(b, a, reach=0.3))):
        np.minimum.at(gap, found.pair, found.gap)
    assert np.array_equal(np.isfinite(gaps[0]), np.isfinite(gaps[1]))
    there = np.isfinite(gaps[0])
    assert there.sum() > 50
    assert np.allclose(gaps[0, there], gaps[1, there], rtol=0.06, atol=4e-4)


def test_contacts_move_with_the_bodies():
    """Two bodies carried along together touch at the same places of themselves."""
    rng = np.random.default_rng(6)
    a, b = random_pairs(rng, "boxes", 200)
    rotation, translation = np.tile(rotations(rng, 1), (200, 1, 1)), np.tile(rng.normal(size=3), (200, 1))
    here = touch(a, b, reach=0.2)
    there = touch(*(of.placed(np.arange(200), rotation, translation) for of in (a, b)), reach=0.2)
    assert len(here.pair) > 50
    assert np.array_equal(here.feature, there.feature)
    assert np.allclose(here.point @ rotation[0].T + translation[0], there.point, atol=1e-9)
    assert np.allclose(here.gap, there.gap, atol=1e-9)


@pytest.mark.parametrize("kind", ["boxes", "hulls", "triangle", "cylinder"])
def test_point_is_on_the_first_solid(kind):
    """Levers are measured to the point, and gaps from there to the other along the normal."""
    a, b = random_pairs(np.random.default_rng(7), kind, 200)
    found = touch(a, b, reach=0.3)
    outside_a, outside_b = (
        (np.einsum("cfx,cx->cf", of.normals[found.pair], point) - of.offsets[found.pair]).max(axis=1)
        for of, point in ((a, found.point), (b, found.point - found.gap[:, None] * found.normal))
    )
    assert np.abs(outside_a[found.gap > 0]).max() < 1e-3
    assert np.abs(outside_b[found.gap > 0]).max() < 1e-3
    assert outside_a.max() < 1e-3 and outside_b.max() < 1e-3


def test_diagonal_neighbours_do_not_touch():
    """Boxes that pass each other corner by corner are farther apart than any of their faces tells."""
    near, far = (touch(placed(CUBE, translation=(1.08, 1.08, t)), placed(CUBE), reach=0.12) for t in (0.3, 1.08))
    assert near.gap == pytest.approx(0.08 * np.sqrt(2), abs=1e-12)
    assert near.normal[0] == pytest.approx(np.array([1, 1, 0]) / np.sqrt(2), abs=1e-12)
    assert len(far.pair) == 0


@pytest.mark.parametrize("gap", [0.02, -0.02])
def test_edge_on_edge(gap):
    """Two crossed edges touch in one point, which lies on both."""
    upper, lower = about((1, 0, 0), np.pi / 4), about((0, 1, 0), np.pi / 4)
    found = touch(placed(CUBE, upper, (0, 0, np.sqrt(2) + gap)), placed(CUBE, lower))
    assert found.point == pytest.approx(np.array([[0, 0, np.sqrt(0.5) + gap]]), abs=1e-12)
    assert found.normal == pytest.approx(np.array([[0, 0, 1.0]]), abs=1e-12)
    assert found.gap == pytest.approx([gap], abs=1e-12)


@pytest.mark.parametrize("gap", [0.02, -0.02])
def test_vertex_on_face(gap):
    """A cube on its tip touches with the tip, whichever is first."""
    tip = about((1, -1, 0), np.arctan(np.sqrt(2)))
    high = HALF + HALF * np.sqrt(3) + gap
    standing, ground = placed(CUBE, tip, (0.1, 0.2, high)), placed(CUBE)
    for a, b, side in ((standing, ground, 1.0), (ground, standing, -1.0)):
        found = touch(a, b, reach=0.05)
        assert found.gap == pytest.approx([gap], abs=1e-12)
        assert found.normal == pytest.approx(np.array([[0, 0, side]]), abs=1e-12)
        assert found.point[0] == pytest.approx([0.1, 0.2, HALF + (gap if side > 0 else 0)], abs=1e-12)


def test_deep_and_coincident_boxes_have_a_way_out():
    """Shapes that start inside of each other must come out somewhere, and the same way every time."""
    deep = touch(placed(CUBE, translation=(0.1, 0.05, 0.4)), placed(CUBE))
    assert deep.gap == pytest.approx(np.full(4, -0.6), abs=1e-12)
    assert deep.normal == pytest.approx(np.tile([0, 0, 1.0], (4, 1)), abs=1e-12)
    same = touch(placed(CUBE), placed(CUBE))
    assert same.gap == pytest.approx(np.full(4, -1.0), abs=1e-12)
    assert len(np.unique(same.normal, axis=0)) == 1
    moved = touch(placed(CUBE, translation=(1e-9, -1e-9, 1e-9)), placed(CUBE))
    assert moved.normal == pytest.approx(same.normal, abs=1e-12)


def test_pairs_do_not_depend_on_each_other():
    """A batch is many pairs at once, not a different calculation."""
    a, b = random_pairs(np.random.default_rng(8), "boxes", 40)
    together = touch(a, b, reach=0.3)
    for i in range(40):
        alone = touch(a.take([i]), b.take([i]), reach=0.3)
        of_pair = together.pair == i
        order, own = np.argsort(together.feature[of_pair]), np.argsort(alone.feature)
        assert np.array_equal(together.feature[of_pair][order], alone.feature[own])
        assert np.allclose(together.point[of_pair][order], alone.point[own], atol=1e-12)
    none = touch(a.take(np.empty(0, int)), b.take(np.empty(0, int)))
    assert len(none.pair) == 0


def test_corners_on_a_plane():
    """A box, a standing cylinder and a tilted box on the ground: four corners, wide apart, and only those near."""
    shapes = [CUBE, Cylinder(start=np.zeros(3), end=np.array([0, 0, 1.0]), radius=0.5), CUBE]
    table = Polytopes.table([Polytope.of(shape) for shape in shapes])
    rotation = np.array([np.eye(3), np.eye(3), about((0, 1, 0), 0.3)])
    batch = table.placed(np.arange(3), rotation, np.array([(0, 0, 0.51), (0, 0, -0.02), (0, 0, 0.6)]))
    up = np.tile([0, 0, 1.0], (3, 1))
    found = polytope_plane(batch.vertices, up, np.zeros(3), np.full(3, 0.05))
    assert np.bincount(found.pair).tolist() == [4, 4, 2]
    assert found.gap[:8] == pytest.approx(np.repeat([0.01, -0.02], 4), abs=1e-12)
    assert found.gap[8:] == pytest.approx(0.6 - 0.5 * (np.cos(0.3) + np.sin(0.3)), abs=1e-12)
    corners = np.array([(x, y, 0.01) for y in (-0.5, 0.5) for x in (-0.5, 0.5)])
    assert ordered(found.point[:4]) == pytest.approx(corners, abs=1e-12)
    around = np.sort(np.arctan2(found.point[4:8, 1], found.point[4:8, 0]))
    assert np.diff(np.append(around, around[0] + 2 * np.pi)).max() < 0.6 * np.pi
    assert len(polytope_plane(batch.vertices, up, np.full(3, -1.0), np.full(3, 0.05)).pair) == 0


def test_box_on_a_triangle_and_under_it():
    """A shell holds a box on either side; the surface of a solid pushes out only."""
    triangle = Polytopes.of_triangles(np.array([[(-5, -5, 0), (5, -5, 0), (0, 5, 0.0)]]))
    below = np.array([[(0, 0, -1.0)]])
    for barred in (None, below):
        found = touch(placed(CUBE, translation=(0, 0, 0.49)), triangle, barred=barred)
        assert found.gap == pytest.approx(np.full(4, -0.01), abs=1e-12)
        assert found.normal == pytest.approx(np.tile([0, 0, 1.0], (4, 1)), abs=1e-12)
    under = touch(placed(CUBE, translation=(0, 0, -0.49)), triangle)
    assert under.normal == pytest.approx(np.tile([0, 0, -1.0], (4, 1)), abs=1e-12)
    solid = touch(placed(CUBE, translation=(0, 0, -0.49)), triangle, barred=below)
    assert solid.normal == pytest.approx(np.tile([0, 0, 1.0], (4, 1)), abs=1e-12)
    assert solid.gap == pytest.approx(np.full(4, -0.99), abs=1e-12)


def test_no_stumbling_over_seams():
    """A box that slides from one triangle of a floor to the next has just come over its edge, and is held up by it."""
    triangle = Polytopes.of_triangles(np.array([[(0, -5, 0), (5, 0, 0), (0, 5, 0.0)]]))
    sunk = placed(CUBE, translation=(-0.499, 0, 0.498))
    assert touch(sunk, triangle).normal[0] == pytest.approx([-1, 0, 0], abs=1e-9)
    barred = np.array([[(0, 0, -1.0), (-1.0, 0, 0)]])
    found = touch(sunk, triangle, barred=barred)
    assert len(found.pair) > 0
    assert found.normal == pytest.approx(np.tile([0, 0, 1.0], (len(found.pair), 1)), abs=1e-9)
    before = touch(placed(CUBE, translation=(-0.52, 0, 0.498)), triangle, barred=barred)
    assert len(before.pair) == 0


def test_flat_box_touches():
    """A sheet is a box without height."""
    sheet = Box(center=np.zeros(3), half=np.array([0.3, 0.2, 0.0]))
    found = touch(placed(sheet, translation=(0, 0, 0.51)), placed(CUBE))
    corners = np.array([(x, y, 0.51) for y in (-0.2, 0.2) for x in (-0.3, 0.3)])
    assert ordered(found.point) == pytest.approx(corners, abs=1e-12)
    assert found.gap == pytest.approx(np.full(4, 0.01), abs=1e-12)


def test_a_hull_that_turns_as_it_falls_lies_on_corners_that_were_kept():
    """A helmet has many corners near the ground when it falls fast: those that it turns onto within the step must be
    among its touches, or it sinks in by a part of its size."""
    rng, up, sunk = np.random.default_rng(8), np.array([0.0, 0.0, 1.0]), []
    for _ in range(100):
        corners = random_hull(rng, 32).vertices
        corners -= corners[:, 2].min() * up
        found = polytope_plane(corners[None], up[None], np.zeros(1), np.full(1, 10.0))
        assert len(set(found.feature)) == len(found.feature) <= 8
        level = rng.normal(size=2)
        axis = np.append(level / np.linalg.norm(level), 0.0)
        across = np.cross(np.tile(axis, (len(corners), 1)), corners)
        # Rodrigues' formula, of heights alone
        turned = np.cos(0.3) * corners[:, 2] + np.sin(0.3) * across[:, 2]
        sunk.append(turned[found.feature].min() - turned.min())
    assert np.mean(sunk) < 0.02


def test_hull_inside_out_or_in_pieces_is_the_same_solid():
    """Exported hulls have loose corners, turned triangles, flat faces cut up, and triangles without area."""
    spatial = pytest.importorskip("scipy.spatial")
    grid = np.indices((4, 4, 4)).reshape(3, -1).T / 3.0
    grid = grid[((grid == 0) | (grid == 1)).any(axis=1)]
    sides = spatial.ConvexHull(grid).simplices
    loose = np.concatenate((grid[sides].reshape(-1, 3), grid[:3]))
    messy = np.concatenate((np.arange(3 * len(sides)).reshape(-1, 3), 3 * len(sides) + np.array([(0, 1, 2)])))
    messy[::2] = messy[::2, ::-1]
    for vertices, triangles in ((grid, sides), (loose, messy)):
        cube = Polytope.of(Hull(vertices=vertices, triangles=triangles))
        assert (len(cube.vertices), len(cube.faces), len(cube.edges())) == (8, 6, 12)
        assert all(len(corners) == 4 for corners in cube.faces)
    for triangles in (SIDES_OF_TETRAHEDRON, SIDES_OF_TETRAHEDRON[:, ::-1]):
        solid = Polytope.of(Hull(vertices=TETRAHEDRON, triangles=triangles))
        for normal, corners in zip(solid.normals, solid.faces):
            assert ((solid.vertices - solid.vertices[corners[0]]) @ normal).max() < 1e-12
            first, second, third = solid.vertices[corners]
            assert np.cross(second - first, third - first) @ normal > 0


@pytest.mark.parametrize(
    ("vertices", "triangles", "message"),
    [
        (TETRAHEDRON * (1, 1, 0), SIDES_OF_TETRAHEDRON, "is flat"),
        (np.zeros((4, 3)), SIDES_OF_TETRAHEDRON, "is flat"),
        (TETRAHEDRON, SIDES_OF_TETRAHEDRON[[0, 1, 2, 0]], "make it convex"),
        (
            np.concatenate((TETRAHEDRON, [(0.1, 0.1, 0.1)])),
            np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 4), (2, 3, 4), (3, 1, 4)]),
            "not convex",
        ),
    ],
)
def test_hulls_that_are_none_are_refused(vertices, triangles, message):
    """One clear line, with the remedy, instead of contacts in empty space."""
    with pytest.raises(ValueError, match=message):
        Polytope.of(Hull(vertices=vertices, triangles=triangles))


def test_too_round_a_hull_is_refused():
    """All edges are tried with all edges: a dense hull would cost a second per step without a word."""
    rng = np.random.default_rng(9)
    with pytest.raises(ValueError, match="simpler"):
        Polytope.of(random_hull(rng, 100))
    assert len(Polytope.of(random_hull(rng, 64)).vertices) == 64


def test_cylinder_is_nearly_round():
    """The prism that stands for a cylinder is neither thinner nor thicker by more than half a percent."""
    prism = Polytope.of(Cylinder(start=np.array([1.0, 2, 3]), end=np.array([1.0, 4, 4]), radius=2.0))
    axis = np.array([0, 2, 1]) / np.sqrt(5)
    own = prism.vertices - (1, 2, 3)
    across = np.linalg.norm(own - np.outer(own @ axis, axis), axis=1)
    inner = min(normal @ (prism.vertices[c[0]] - (1, 2, 3)) for normal, c in zip(prism.normals[2:], prism.faces[2:]))
    assert across.max() < 2.0 * 1.0044 and inner > 2.0 * 0.9956
    assert np.sort(np.unique(np.round(own @ axis, 9))) == pytest.approx([0, np.sqrt(5)])
