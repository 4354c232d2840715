"""Rounds feel triangles as the smooth surfaces they stand for: no edges inside a floor, no holes."""

import numpy as np
import pytest
from surfaces import CUBE, CUBE_FACES, UP, grid, touch

from core.mesh import PreparedMesh
from core.shape import Mesh
from core.triangle import round_mesh


def prism(profile, width=1.0):
    """A closed solid: a convex or star-shaped (about its first point) counterclockwise outline in x and z, drawn out
    along y from -width to width."""
    profile = np.array(profile, dtype=float)
    count = len(profile)
    near = np.stack((profile[:, 0], np.full(count, -width), profile[:, 1]), axis=1)
    vertices = np.concatenate((near, near + np.array((0.0, 2 * width, 0.0))))
    i = np.arange(count)
    j = (i + 1) % count
    walls = np.concatenate((np.stack((j, i, i + count), axis=1), np.stack((j, i + count, j + count), axis=1)))
    fan = np.stack((np.zeros(count - 2, dtype=int), i[1:-1], i[2:]), axis=1)
    return Mesh(vertices, np.concatenate((walls, fan, fan[:, ::-1] + count)))


# A step of height 1 and depth 1 between two floors, solid below.
STEP = prism([(0.0, 0.0), (-2.0, 0.0), (-2.0, -1.0), (2.0, -1.0), (2.0, 1.0), (0.0, 1.0)])


def distance_to_triangle(point, corners):
    """Distance (n,) of points from triangles: within the sides' planes that to the plane, else to the sides."""
    a, b, c = np.moveaxis(corners, 1, 0)
    normal = np.cross(b - a, c - a)
    area = (normal**2).sum(axis=1)
    weights = [(np.cross(q - p, point - p) * normal).sum(axis=1) / area for p, q in ((a, b), (b, c), (c, a))]
    best = np.where(np.min(weights, axis=0) >= 0, np.abs(((point - a) * normal).sum(axis=1)) / np.sqrt(area), np.inf)
    for p, q in ((a, b), (b, c), (c, a)):
        t = np.clip(((point - p) * (q - p)).sum(axis=1) / ((q - p) ** 2).sum(axis=1), 0, 1)
        best = np.minimum(best, np.linalg.norm(point - p - t[:, None] * (q - p), axis=1))
    return best


def least_gap(ends, radii, corners):
    """The least distance (n,) of n rounds from triangles, by a ternary search along the axis: it is convex there."""

    def gap(s):
        place = ends[:, 0] + s[:, None] * (ends[:, 1] - ends[:, 0])
        return distance_to_triangle(place, corners) - (radii[0] + s * (radii[1] - radii[0]))

    low, high = np.zeros(len(ends)), np.ones(len(ends))
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        less = gap(left) < gap(right)
        low, high = np.where(less, low, left), np.where(less, right, high)
    return np.minimum(gap((low + high) / 2), np.minimum(gap(np.zeros(len(ends))), gap(np.ones(len(ends)))))


def enclosed(points, corners):
    """Whether closed triangles go around points (n, 3): the solid angles they fill (van Oosterom & Strackee 1983)."""
    a, b, c = np.moveaxis(corners - points[:, None, None], 2, 0)
    la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
    triple = (a * np.cross(b, c)).sum(axis=2)
    below = la * lb * lc + (a * b).sum(axis=2) * lc + (b * c).sum(axis=2) * la + (c * a).sum(axis=2) * lb
    return np.abs(np.arctan2(triple, below).sum(axis=1)) > np.pi


@pytest.mark.parametrize("taper", [0.0, 0.1])
def test_deepest_gap_is_the_distance_from_a_triangle(taper):
    """Speculative contacts are as good as their gaps; the oracle searches along the axis."""
    rng = np.random.default_rng(5)
    corners = rng.uniform(-1, 1, (500, 3, 3))
    ends = rng.uniform(-1.5, 1.5, (500, 2, 3))
    radii = 0.05 + np.array([taper, 0.0])
    expected = least_gap(ends, radii, corners)
    apart = expected > -radii.min() + 1e-6  # where the axis does not pass through
    prepared = PreparedMesh.of(Mesh(corners.reshape(-1, 3), np.arange(1500).reshape(-1, 3)))
    number = np.arange(500)
    found = round_mesh(ends, np.tile(radii, (500, 1)), number, number, prepared, np.full(500, 10.0))
    deepest = np.full(500, np.inf)
    np.minimum.at(deepest, found.pair, found.gap)
    assert apart.sum() > 400
    assert np.abs(deepest - expected)[apart].max() < 1e-9
    radius = np.linalg.norm(found.center - found.point, axis=1)
    error = distance_to_triangle(found.center, corners[found.pair]) - radius - found.gap
    assert np.abs(error[apart[found.pair]]).max() < 1e-9


@pytest.mark.parametrize("taper", [0.0, 0.1])
@pytest.mark.parametrize("name", ["cube", "step", "sliver", "terrain", "loose"])
def test_deepest_gap_is_the_distance_from_a_mesh(name, taper):
    """What drops ghosts at inner edges and touches that say the same must never drop the closest."""
    rng = np.random.default_rng(7)
    mesh = {
        "cube": Mesh(CUBE, CUBE_FACES),
        "step": STEP,
        "sliver": prism([(0, -1), (2, -1), (2, 1), (0, 1), (0, 0), (-2, 0), (-2, -1)]),  # closed by one without area
        "terrain": grid(4, lambda x, y: 0.4 * np.sin(2 * x + y) * np.cos(y)),
        "loose": Mesh(rng.uniform(-1, 1, (30, 3)), np.arange(30).reshape(-1, 3)),
    }[name]
    prepared = PreparedMesh.of(mesh)
    ends = rng.uniform(-2, 2, (150, 2, 3))
    ends[:40, 1] = ends[:40, 0] + rng.uniform(-1, 1, (40, 1)) * np.eye(3)[rng.integers(0, 3, 40)]
    radii = 0.05 + np.array([taper, 0.0])
    owner, triangle = (x.ravel() for x in np.indices((150, len(prepared))))
    expected = least_gap(ends[owner], radii, prepared.corners[triangle]).reshape(150, -1).min(axis=1)
    rounds = ends[owner], np.tile(radii, (len(owner), 1))
    found = round_mesh(*rounds, triangle, owner, prepared, np.full(len(owner), 10.0))
    deepest = np.full(150, np.inf)
    np.minimum.at(deepest, found.pair, found.gap)
    apart = expected > -0.049  # the axis is not through the surface
    if prepared.solid.all():
        within = apart & enclosed(ends[:, 0], prepared.corners)
        assert within.any() and (deepest[within] < -0.05).all()
        apart &= ~within
    assert apart.sum() > 50
    assert np.abs(deepest - expected)[apart].max() < 1e-8


@pytest.mark.parametrize("name", ["prism", "ball", "step"])
def test_what_is_apart_is_never_deep(name):
    """An end that lies behind a face is not in the solid for that: the nearest tells, also where the round touches that
    with its middle. Else a hand beside a head was sixty centimetres inside it."""
    rng = np.random.default_rng(3)
    outline = np.stack((np.cos(turn := np.arange(7) * 2 * np.pi / 7), np.sin(turn)), axis=1)
    prepared = PreparedMesh.of({"prism": prism(outline), "ball": ball(4), "step": STEP}[name])
    ends = rng.uniform(-2, 2, (2000, 2, 3))
    owner, triangle = (x.ravel() for x in np.indices((2000, len(prepared))))
    expected = least_gap(ends[owner], np.array([0.1, 0.1]), prepared.corners[triangle]).reshape(2000, -1).min(axis=1)
    apart = (expected > -0.099) & ~enclosed(ends[:, 0], prepared.corners)
    rounds = ends[owner], np.full((len(owner), 2), 0.1)
    found = round_mesh(*rounds, triangle, owner, prepared, np.full(len(owner), 0.05))
    of_apart = apart[found.pair]
    assert of_apart.sum() > 100
    assert (found.gap - expected[found.pair])[of_apart].min() > -1e-9


def test_ball_slides_over_a_flat_floor_as_over_a_plane():
    """Ghost contacts at the edges inside a floor trip a rolling ball; its normal is exactly the floor's everywhere."""
    floor = grid(6)
    path = np.linspace((-2.0, -1.5, 0.24), (2.0, 1.75, 0.24), 1601)  # meets sides, diagonals
    corners = floor.vertices[(np.abs(floor.vertices[:, :2]) < 2.5).all(axis=1)] + 0.24 * UP  # and all vertices
    middles = (corners[:-1] + corners[1:]) / 2
    for centers in (path, corners, middles[(np.abs(middles[:, :2]) < 2.5).all(axis=1)]):
        found = touch(floor, centers)
        assert np.array_equal(found.pair, np.arange(len(centers)))
        assert np.array_equal(found.normal, np.tile(UP, (len(centers), 1)))
        assert np.abs(found.gap + 0.01).max() < 1e-15
        assert len(set(found.feature)) == 1  # the warm start survives the whole way


def test_floor_turned_in_space_has_one_normal_too():
    """Rounding must not bring back the edges of floors that lie askew."""
    rng = np.random.default_rng(2)
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    rotation[:, 2] *= np.linalg.det(rotation)
    floor = grid(6)
    floor = Mesh(floor.vertices @ rotation.T + (30.0, -20.0, 10.0), floor.triangles)
    centers = np.concatenate((grid(4).vertices, rng.uniform(-2, 2, (400, 3)) * (1, 1, 0))) + 0.2 * UP
    found = touch(floor, centers @ rotation.T + (30.0, -20.0, 10.0))
    assert np.array_equal(found.pair, np.arange(len(centers)))
    assert np.abs(found.normal - rotation[:, 2]).max() < 1e-12
    assert np.abs(found.gap + 0.05).max() < 1e-12


def test_ball_over_a_terrain_touches_along_face_normals_or_between_them():
    """On a gently curved terrain every normal lies between those of the faces below, so it turns with the ground."""
    terrain = grid(30, lambda x, y: 0.15 * np.sin(1.3 * x) * np.cos(0.9 * y), step=0.5)
    prepared = PreparedMesh.of(terrain)
    rng = np.random.default_rng(3)
    centers = rng.uniform(-6, 6, (3000, 3))
    centers[:, 2] = 0.15 * np.sin(1.3 * centers[:, 0]) * np.cos(0.9 * centers[:, 1]) + 0.22
    found = touch(prepared, centers)
    assert set(found.pair) == set(range(3000)) and len(found.pair) < 3100
    slope = np.abs(found.normal @ UP)
    assert slope.min() >= prepared.normals[:, 2].min() - 1e-12
    face = np.abs(found.normal[:, None] - prepared.normals).max(axis=2).min(axis=1) < 1e-12
    assert face.mean() > 0.8  # the rest lie over ridges


def test_capsule_on_a_flat_floor_touches_with_its_ends():
    """Two contacts hold a capsule; more at every edge beneath it would come and go."""
    rng = np.random.default_rng(4)
    ends = rng.uniform(-2, 2, (300, 2, 3))
    ends[:, :, 2] = 0.24
    ends[:20, :, 0] = 0.0  # along an edge
    found = touch(grid(6), ends)
    long = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) > 0.13
    assert np.array_equal(np.bincount(found.pair)[long], np.full(long.sum(), 2))
    assert np.array_equal(found.normal, np.tile(UP, (len(found.pair), 1)))


def test_capsule_on_a_fine_terrain_gets_few_touches():
    """The constraint solver pays for each contact; a limb on the ground is held by two or three."""
    height = lambda x, y: 0.05 * np.sin(x) * np.cos(1.3 * y)  # noqa: E731
    rng = np.random.default_rng(6)
    ends, turn = rng.uniform(-3, 3, (200, 1, 3)).repeat(2, axis=1), rng.uniform(0, 2 * np.pi, 200)
    ends[:, 1] += 0.4 * np.stack((np.cos(turn), np.sin(turn), 0 * turn), axis=1)
    ends[:, :, 2] = height(ends[:, :, 0], ends[:, :, 1]) + 0.06
    count = np.bincount(touch(grid(80, height, step=0.1), ends, radius=0.06, reach=0.02).pair)
    assert count.min() >= 2 and count.max() <= 4 and count.mean() < 3.2


def test_normal_turns_smoothly_around_a_convex_edge_and_corner():
    """A ball that rolls off a table must not jump."""
    angle = np.linspace(-0.2, np.pi / 2 + 0.2, 200)
    around = np.clip(angle, 0, np.pi / 2)
    away = np.stack((np.sin(around), 0 * angle, np.cos(around)), axis=1)
    slide = np.stack((np.minimum(angle, 0), 0.3 + 0 * angle, -np.maximum(angle - np.pi / 2, 0)), axis=1)
    found = touch(Mesh(CUBE, CUBE_FACES), (1.0, 0.0, 1.0) + slide + 0.26 * away)
    assert np.array_equal(found.pair, np.arange(200))
    assert np.abs(found.normal - away).max() < 1e-12
    assert np.abs(found.gap - 0.01).max() < 1e-12
    corner = touch(Mesh(CUBE, CUBE_FACES), [(1.1, 1.1, 1.1)])
    assert np.allclose(corner.normal, 3**-0.5) and corner.gap == pytest.approx([0.1 * 3**0.5 - 0.25])


def test_ball_in_a_concave_corner_touches_both_sides():
    """A ball in the corner of a stair rests on the tread and against the riser."""
    found = touch(STEP, [(-0.24, 0.1, 0.24)])
    assert sorted(found.normal.tolist()) == [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert found.gap == pytest.approx([-0.01, -0.01])


def test_capsule_in_the_corner_of_stairs_touches_four_times():
    """Each end on the tread and against the riser, and nothing from the edge between."""
    found = touch(STEP, [[(-0.24, -0.5, 0.24), (-0.24, 0.6, 0.24)]])
    assert len(found.gap) == 4 and found.gap == pytest.approx([-0.01] * 4)
    assert sorted(found.normal.tolist()) == [[-1.0, 0.0, 0.0]] * 2 + [[0.0, 0.0, 1.0]] * 2


def test_capsule_over_the_edge_of_a_step_is_held_at_the_edge():
    """A leg that overhangs a stair lies on its nosing, not on its own end."""
    found = touch(STEP, [[(-0.7, 0.1, 1.24), (0.8, 0.1, 1.24)]])
    assert sorted(found.center[:, 0].round(9)) == [0.0, 0.8]
    assert found.normal == pytest.approx(np.array([UP, UP])) and found.gap == pytest.approx([-0.01, -0.01])
    tilted = touch(STEP, [[(-0.6, 0.1, 0.6), (0.2, 0.1, 1.4)]], radius=0.1, reach=0.2)
    deepest = tilted.gap.argmin()
    assert tilted.normal[deepest] == pytest.approx([-(0.5**0.5), 0.0, 0.5**0.5])
    assert tilted.gap[deepest] == pytest.approx(0.2 / 2**0.5 - 0.1)


def test_capsule_that_lies_across_a_short_block_has_two_places():
    """One place would let it turn about the block."""
    found = touch(Mesh(CUBE, CUBE_FACES), [[(-3.0, 0.2, 1.24), (3.0, 0.2, 1.24)]])
    assert sorted(found.center[:, 0].round(9)) == [-1.0, 1.0]
    assert found.normal == pytest.approx(np.array([UP, UP]))


@pytest.mark.parametrize("tilt", np.linspace(-0.015, 0.015, 7))
def test_capsule_on_a_blunt_ridge_keeps_both_of_its_places(tilt):
    """Which of two edges it lies on turns over with the least motion: a body at rest would rock between them."""
    ridge = prism([(0.02, 0.0), (-0.02, 0.0), (-1.0, -0.15), (1.0, -0.15)])
    axis = np.array([np.cos(tilt), 0.0, np.sin(tilt)])
    found = touch(ridge, [[(0.0, 0.1, 0.1) - 0.15 * axis, (0.0, 0.1, 0.1) + 0.15 * axis]], radius=0.1)
    order = found.center[:, 0].argsort()
    held = order[np.abs(found.center[order, 0]) < 0.05]
    # of a line through (0, 0.1): at an edge's height above the top, both by its own direction across
    height = 0.1 + np.array([-0.02, 0.02]) * np.tan(tilt)
    assert found.gap[held] == pytest.approx(height * np.cos(tilt) ** 2 - 0.1, abs=2e-5)
    assert found.normal[held, 2] == pytest.approx([1.0, 1.0], abs=2e-4)


def test_capsule_below_a_ridge_is_lifted_over_it():
    """A thin limb that sank into a roof's ridge comes out on top."""
    roof = prism([(0.0, 0.0), (-1.0, -1.0), (1.0, -1.0)])
    found = touch(roof, [[(-0.5, 0.1, -0.05), (0.5, 0.1, -0.05)]], radius=0.1)
    deepest = found.gap.argmin()
    assert found.normal[deepest] == pytest.approx(UP) and found.gap[deepest] == pytest.approx(-0.15)


def ball(count=24):
    """A closed ball of radius 1 with 2 count (2 count - 2) triangles, corners on the sphere."""
    polar, turn = np.pi * np.arange(count + 1) / count, np.pi * np.arange(2 * count) / count
    ring = np.stack((np.cos(turn), np.sin(turn), np.zeros(2 * count)), axis=1)
    vertices = np.sin(polar)[:, None, None] * ring + np.cos(polar)[:, None, None] * UP
    number = np.arange(vertices.size // 3).reshape(count + 1, 2 * count)
    a, b, c, d = number[:-1], np.roll(number[:-1], -1, axis=1), number[1:], np.roll(number[1:], -1, axis=1)
    faces = np.stack((np.stack((a, c, b), axis=2), np.stack((b, c, d), axis=2))).reshape(-1, 3)
    return Mesh(vertices.reshape(-1, 3), faces)


def test_gap_passes_smoothly_through_the_surface_of_a_ball():
    """Penetration must not make a contact vanish or turn: the oracle is the sphere itself, 4 mm from its faces."""
    prepared = PreparedMesh.of(ball())
    assert prepared.solid.all() and prepared.flat == 96  # the triangles at the poles, half of each quad there
    rng = np.random.default_rng(12)
    away = rng.normal(size=(300, 3))
    away /= np.linalg.norm(away, axis=1)[:, None]
    aside = np.cross(away, (0.3, 0.5, 0.8))
    aside *= 0.5 / np.linalg.norm(aside, axis=1)[:, None]
    for height in (0.3, 0.01, 1e-7, 0.0, -1e-7, -0.01, -0.3):
        found = touch(prepared, away * (1 + height), reach=0.1, wide=0.5)
        assert np.array_equal(found.pair, np.arange(300))
        assert np.abs(found.gap - (height - 0.25)).max() < 5e-3
        assert np.einsum("ij,ij->i", found.normal, away).min() > 0.995
    for height in (0.1, 0.06, 0.04, 0.01, -0.03):  # of the middle of an axis that is a tangent
        middle = away * (1 + height)
        found = touch(prepared, np.stack((middle - aside, middle + aside), axis=1), radius=0.05, reach=0.1)
        deepest = np.full(300, np.inf)
        np.minimum.at(deepest, found.pair, found.gap)
        assert np.abs(deepest - (height - 0.05)).max() < 5e-3
        assert np.einsum("ij,ij->i", found.normal, away[found.pair]).min() > 0.8


def test_axis_end_inside_a_solid_leaves_through_the_nearest_face():
    """Depth is measured to the face it came through, and no other face of the solid pulls."""
    found = touch(Mesh(CUBE, CUBE_FACES), [(0.3, 0.1, 0.9), (0.9, 0.8, 0.3), (-0.2, -0.95, -0.9)], wide=2.0)
    assert np.array_equal(found.pair, [0, 1, 2])
    assert found.normal == pytest.approx(np.array([(0, 0, 1), (1, 0, 0), (0, -1, 0)]))
    assert found.gap == pytest.approx([-0.35, -0.35, -0.30])


def test_capsule_wholly_inside_is_pushed_out():
    """Links that start inside scenery must find a way out."""
    found = touch(Mesh(CUBE, CUBE_FACES), [[(-0.3, 0.0, 0.7), (0.4, 0.0, 0.6)]], radius=0.1, wide=2.0)
    assert np.array_equal(found.normal, [UP, UP]) and sorted(found.gap) == pytest.approx([-0.5, -0.4])


def test_thin_plate_pushes_only_outward():
    """A plate thinner than the ball has its other face behind the first; only the near one may push."""
    plate = Mesh(CUBE * (2.0, 2.0, 0.005), CUBE_FACES)
    for side in (1.0, -1.0):
        found = touch(plate, [(0.3, 0.2, side * 0.2)])
        assert np.array_equal(found.normal, [side * UP]) and found.gap == pytest.approx([-0.055])
    pierced = touch(plate, [[(0.3, 0.2, -0.1), (0.3, 0.2, 1.0)]], radius=0.1)
    assert np.array_equal(pierced.normal, [UP]) and pierced.gap == pytest.approx([-0.205])


def test_coincident_points_have_a_direction():
    """Axes that start in or end on the surface, at its edges and at its vertices: no division by zero."""
    on = np.concatenate((CUBE, [(1.0, 1.0, 0.2), (0.3, 0.4, 1.0), (0.0, 0.0, 1.0)]))
    for mesh in (Mesh(CUBE, CUBE_FACES), Mesh(CUBE, CUBE_FACES[2:])):
        found = touch(mesh, on)
        assert set(found.pair) == set(range(len(on)))
        deepest = np.zeros(len(on))
        np.minimum.at(deepest, found.pair, found.gap)
        assert deepest == pytest.approx(np.full(len(on), -0.25))
        for end in on:
            assert len(touch(mesh, [(end, end + np.array((0.1, 0.2, 0.3))), (end - 0.5, end), (end, -end)]).gap)


def test_touches_persist_while_a_capsule_slides():
    """Warm starts need the same names from step to step, also from triangle to triangle."""
    shift = np.linspace((-1.5, -1.0, 0.0), (1.3, 0.9, 0.0), 700)
    found = touch(grid(8), shift[:, None] + np.array([(0.0, 0.0, 0.24), (0.7, 0.3, 0.24)]))
    names = [tuple(found.feature[found.pair == i]) for i in range(700)]
    assert len(set(names)) == 1


def test_order_of_candidates_does_not_matter():
    """Results must not depend on how the broad phase lists what is near."""
    rng = np.random.default_rng(11)
    prepared = PreparedMesh.of(STEP)
    ends = rng.uniform(-1.5, 1.5, (40, 2, 3))
    triangle, owner = (x.ravel() for x in np.meshgrid(np.arange(len(prepared)), np.arange(40)))
    mixed = rng.permutation(len(owner))
    results = [
        round_mesh(ends[o], np.full((len(o), 2), 0.2), t, o, prepared, np.full(len(o), 0.1))
        for o, t in ((owner, triangle), (owner[mixed], triangle[mixed]))
    ]
    for a, b in zip(*results):
        assert np.allclose(a, b, atol=1e-12)
