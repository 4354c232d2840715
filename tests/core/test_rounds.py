"""Rounds, the balls along an axis, touch rounds, boxes and cylinders where their surfaces are nearest."""

import numpy as np
import pytest

from core.rounds import round_box, round_cylinder, round_round

FAR = 1e3  # [m] everything is within reach
KINDS = ["round", "box", "cylinder"]


def rounds(rng, count, tapered, spread=1.0):
    """Random ends (count, 2, 3) and radii (count, 2); one in eight is a sphere."""
    ends = rng.normal(size=(count, 1, 3)) * 0.6 * spread + rng.normal(size=(count, 2, 3)) * 0.3
    radii = rng.uniform(0.02, 0.2, size=(count, 2))
    ends[::8, 1] = ends[::8, 0]
    if not tapered:
        radii[:, 1] = radii[:, 0]
    return ends, radii


class Body:
    """B of many pairs: its touches with rounds, its reach along normals and its distance from points."""

    def __init__(self, kind, rng, count, tapered):
        self.kind = kind
        self.ends, self.radii = rounds(rng, count, tapered)
        self.half = rng.uniform(0.05, 0.5, size=(count, 3))

    def touches(self, ends, radii, reach=FAR):
        reach = np.full(len(ends), reach)
        if self.kind == "round":
            return round_round(ends, radii, self.ends, self.radii, reach)
        if self.kind == "box":
            return round_box(ends, radii, self.half, reach)
        return round_cylinder(ends, radii, self.half[:, 2], self.half[:, 0], reach)

    def support(self, pair, normal):
        """The farthest of B along normals."""
        half = self.half[pair]
        if self.kind == "round":
            return support(self.ends[pair], self.radii[pair], normal)
        if self.kind == "box":
            return np.sum(half * np.abs(normal), axis=1)
        return half[:, 0] * np.hypot(normal[:, 0], normal[:, 1]) + half[:, 2] * np.abs(normal[:, 2])

    def outside(self, pair, points):
        """How far points are outside of B."""
        half = self.half[pair]
        if self.kind == "round":
            t = np.linspace(0, 1, 4001)[:, None]
            ends, radii = self.ends[pair, :, None], self.radii[pair, :, None]
            axis = ends[:, 0] + t * (ends[:, 1] - ends[:, 0])
            radius = radii[:, 0] + t[:, 0] * (radii[:, 1] - radii[:, 0])
            return np.min(np.linalg.norm(points[:, None] - axis, axis=2) - radius, axis=1)
        if self.kind == "box":
            return np.linalg.norm(np.maximum(np.abs(points) - half, 0), axis=1)
        across = np.maximum(np.hypot(points[:, 0], points[:, 1]) - half[:, 0], 0)
        return np.hypot(across, np.maximum(np.abs(points[:, 2]) - half[:, 2], 0))


def support(ends, radii, normal):
    return np.max(np.einsum("pij,pj->pi", ends, normal) + radii, axis=1)


def nearest(touches, count):
    """Numbers of the touches with the smallest gap of every pair, and these gaps."""
    order = np.lexsort((touches.gap, touches.pair))
    pair, first = np.unique(touches.pair[order], return_index=True)
    assert np.array_equal(pair, np.arange(count))
    return order[first], touches.gap[order[first]]


def assert_sound(touches):
    for column in touches:
        assert np.isfinite(column).all()
    assert np.allclose(np.sum(touches.normal**2, axis=1), 1, atol=1e-12)
    assert len({*zip(touches.pair, touches.feature)}) == len(touches.pair)


@pytest.mark.parametrize("tapered", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gap_is_the_distance_of_the_surfaces(kind, tapered):
    """A gap that is too wide lets shapes overlap and one too narrow keeps them apart. The distance is at least the
    separation along any normal and at most that of any two points, so both together prove it."""
    rng, count = np.random.default_rng(1), 400
    ends, radii = rounds(rng, count, tapered, spread=2.0)
    body = Body(kind, rng, count, tapered)
    touches = body.touches(ends, radii)
    assert_sound(touches)
    best, gap = nearest(touches, count)
    apart = gap > 1e-6
    assert apart.sum() > 200
    best, gap = best[apart], gap[apart]
    pair, normal = touches.pair[best], touches.normal[best]
    separation = -support(ends[pair], radii[pair], -normal) - body.support(pair, normal)
    assert np.allclose(separation, gap, rtol=0, atol=5e-9)
    t = touches.center - touches.point
    assert np.allclose(t, np.linalg.norm(t, axis=1)[:, None] * touches.normal, atol=1e-12)
    clear = np.isin(touches.pair, pair)
    on_b = touches.point[clear] - touches.gap[clear, None] * touches.normal[clear]
    assert body.outside(touches.pair[clear], on_b).max() < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_gap_of_mujoco(kind):
    """Somebody else's distances of capsules and spheres, overlapping ones of rounds too."""
    mujoco = pytest.importorskip("mujoco")
    geom = {
        "round": '<geom type="capsule" size="{0} {1}"/>',
        "box": '<geom type="box" size="{2} {3} {4}"/>',
        "cylinder": '<geom type="cylinder" size="{2} {4}"/>',
    }[kind]
    rng, count = np.random.default_rng(2), 60
    ends, radii = rounds(rng, count, False, spread=1.5)
    body = Body(kind, rng, count, False)
    _, gap = nearest(body.touches(ends, radii), count)
    for i in range(count):
        vector = [" ".join(f"{x:.17g}" for x in e.reshape(-1)) for e in (ends[i], body.ends[i])]
        a, b = (
            f'<geom type="sphere" size="{r[0]}" pos="{" ".join(map(str, e[0]))}"/>'
            if np.array_equal(*e)
            else f'<geom type="capsule" size="{r[0]}" fromto="{v}"/>'
            for e, r, v in zip((ends[i], body.ends[i]), (radii[i], body.radii[i]), vector)
        )
        if kind != "round":
            b = geom.format(0, 0, *body.half[i])
        model = mujoco.MjModel.from_xml_string(
            f"<mujoco><option ccd_tolerance='1e-10' ccd_iterations='200'/>"
            f"<worldbody><body><freejoint/>{a}</body>{b}</worldbody></mujoco>"
        )
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        theirs = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)
        if kind == "round" or gap[i] > 1e-3:
            assert theirs == pytest.approx(gap[i], abs=1e-6)


def test_swapped_rounds_touch_alike():
    """Who is A and who is B depends on the order of bones and must not change the motion."""
    rng, count = np.random.default_rng(3), 300
    a, b = rounds(rng, count, True), rounds(rng, count, True)
    b[0][:100] = a[0][:100] + rng.normal(size=(100, 1, 3)) * 0.3
    reach = np.full(count, FAR)
    ours, theirs = round_round(*a, *b, reach), round_round(*b, *a, reach)
    best, gap = nearest(ours, count)
    other, same = nearest(theirs, count)
    assert np.allclose(gap, same, atol=1e-12)
    crossing = ours.feature[best] + theirs.feature[other] == 4
    assert crossing.sum() > 100
    assert np.allclose(ours.normal[best][crossing], -theirs.normal[other][crossing], atol=1e-9)


def test_moved_rounds_touch_alike():
    """Contacts depend on where shapes are to each other, not in the world."""
    rng, count = np.random.default_rng(4), 200
    (ends_a, radii_a), (ends_b, radii_b) = rounds(rng, count, True), rounds(rng, count, True)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    turn *= np.linalg.det(turn)
    move, reach = np.array([3.0, -2.0, 1.0]), np.full(count, FAR)
    here = round_round(ends_a, radii_a, ends_b, radii_b, reach)
    there = round_round(ends_a @ turn.T + move, radii_a, ends_b @ turn.T + move, radii_b, reach)
    assert np.array_equal(here.feature, there.feature)
    assert np.allclose(here.gap, there.gap, atol=1e-10)
    assert np.allclose(here.point @ turn.T + move, there.point, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_small_move_keeps_features(kind):
    """A contact that is not recognised in the next step starts its impulse from nothing."""
    rng, count = np.random.default_rng(5), 400
    ends, radii = rounds(rng, count, True)
    body = Body(kind, rng, count, True)
    before = body.touches(ends, radii)
    after = body.touches(ends + rng.normal(size=ends.shape) * 1e-9, radii)
    assert np.array_equal(before.pair, after.pair)
    assert np.array_equal(before.feature, after.feature)
    near = np.abs(before.gap) > 1e-3
    assert np.allclose(before.gap[near], after.gap[near], atol=1e-6)


def touch(a, b, reach=0.1):
    """Touches of one round with another, each (start, end, radii)."""
    pairs = [
        part
        for start, end, r in (a, b)
        for part in (np.array([[start, end]], dtype=float), np.broadcast_to(np.array(r, float), (1, 2)))
    ]
    touches = round_round(*pairs, np.array([reach]))
    assert_sound(touches)
    return touches


def test_capsules_along_each_other_touch_at_both_ends_of_the_overlap():
    """One contact only would let the upper capsule seesaw."""
    lower = (0, 0, 0), (2, 0, 0), 0.1
    for reverse in (1, -1):
        touches = touch((*((0.5, 0, 0.21), (3, 0, 0.21))[::reverse], 0.1), lower)
        order = np.argsort(touches.point[:, 0])
        assert np.allclose(touches.point[order], [[0.5, 0, 0.11], [2, 0, 0.11]])
        assert np.allclose(touches.gap, 0.01)
        assert np.allclose(touches.normal, [[0, 0, 1]] * 2)
        assert touches.feature.tolist() == [0, 1]


def test_noise_changes_nothing_about_capsules_along_each_other():
    """In a stack at rest the angle between two capsules is rounding errors."""
    rng = np.random.default_rng(6)
    for _ in range(50):
        ends = np.array([(0.5, 0, 0.2), (1.5, 0, 0.2)]) + rng.normal(size=(2, 3)) * 1e-7
        touches = touch((*ends, 0.1), ((0, 0, 0), (2, 0, 0), 0.1))
        assert touches.feature.tolist() == [0, 1]
        assert np.allclose(touches.center[:, 0], [0.5, 1.5], atol=1e-6)
        assert np.allclose(touches.normal, [[0, 0, 1]] * 2, atol=1e-5)


def test_crossing_capsules_touch_once():
    """Where two logs lie across each other there is one place."""
    touches = touch(((0, -1, 0.25), (0, 1, 0.25), 0.1), ((-1, 0, 0), (1, 0, 0), 0.1))
    assert np.allclose(touches.point, [[0, 0, 0.15]])
    assert np.allclose(touches.gap, [0.05])
    assert touches.feature.tolist() == [2]


def test_skew_capsules_touch_in_the_middle_too():
    """At a small angle the nearest place is between the ends, which are then higher."""
    touches = touch(((-1, -0.1, 0.2), (1, 0.1, 0.2), 0.1), ((-1, 0, 0), (1, 0, 0), 0.1))
    assert touches.feature.tolist() == [0, 1, 2]
    assert np.allclose(touches.gap[2], 0)
    assert np.allclose(touches.normal[2], [0, 0, 1])
    assert (touches.gap[:2] > 0.01).all()


def test_tapered_capsules_along_each_other_touch_at_both_ends():
    """Cones head to tail lie along each other in a line although their axes are not at the same distance."""
    cosine = np.sqrt(1 - 0.1**2)  # of half the cone's angle, for radii 0.2 to 0.1 over 1 m
    axis = np.array([cosine, 0, 0.1])
    upper = np.array([0, 0, 0.2]), np.array([0, 0, 0.2]) - axis * [-1, 1, 1]
    lower = np.array([0, 0, -0.2]), np.array([0, 0, -0.2]) + axis
    touches = touch((*upper, (0.2, 0.1)), (*lower, (0.2, 0.1)))
    assert touches.feature.tolist() == [0, 1]
    assert np.allclose(touches.gap, 0, atol=1e-12)
    assert np.allclose(touches.normal, [[0, 0, 1]] * 2, atol=1e-7)
    assert np.allclose(touches.point, [[0, 0, 0], [cosine, 0, 0]], atol=1e-7)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (((0, 0, 0), (0, 0, 0)), ((0, 0, 0), (0, 0, 0))),
        (((0, 0, 0), (1, 0, 0)), ((0, 0, 0), (1, 0, 0))),
        (((0, 0, 0), (1, 0, 0)), ((1, 0, 0), (0, 0, 0))),
        (((0, 0, -1), (0, 0, 1)), ((0, 0, 0), (0, 0, 0))),
        (((0, 0, 0), (0, 0, 0)), ((0, 1, 0), (0, -1, 0))),
        (((-1, 0, 0), (1, 0, 0)), ((0, -1, 0), (0, 1, 0))),
        (((0, 0, 0), (1, 1, 1)), ((0.5, 0.5, 0.5), (2, 2, 2))),
    ],
)
def test_rounds_whose_axes_meet_have_a_normal(a, b):
    """Copies of a bone start in one place; a normal that is not a number would spoil the whole character."""
    for radii in (0.1, 0.1), ((0.1, 0.1 + 1e-14), (0.2, 0.1)):
        touches = touch((*a, radii[0]), (*b, radii[1]))
        assert len(touches.gap) >= 1
        assert (touches.gap < -0.19).all()
        for start, end in a, b:
            assert np.allclose(touches.normal @ np.subtract(end, start), 0, atol=1e-6)


def test_swallowed_ball_is_none():
    """A tapered capsule whose one ball contains the other is a sphere, at either end."""
    ball = (0, 0, 1), (0, 0, 1), 0.5
    for a in ((0, 0, 1), (0.1, 0, 1.2), (0.5, 0.1)), ((0.1, 0, 1.2), (0, 0, 1), (0.1, 0.5)):
        touches = touch(a, ((-1, 0, 0.2), (1, 0, 0.2), 0.25))
        assert np.allclose(touches.gap, [0.05])
        assert np.allclose(touches.point, touch(ball, ((-1, 0, 0.2), (1, 0, 0.2), 0.25)).point)
        for solid in box, cylinder:
            assert np.allclose(solid(a[0], a[1], a[2], 0.45).gap, [0.05])


def box(start, end, radii, half=1.0, reach=0.1):
    """Touches of one round with a cube."""
    radii = np.broadcast_to(np.array(radii, dtype=float), (1, 2))
    touches = round_box(np.array([[start, end]], dtype=float), radii, np.full((1, 3), half), np.array([reach]))
    assert_sound(touches)
    return touches


def cylinder(start, end, radii, half=1.0, reach=0.1):
    """Touches of one round with a cylinder as high as wide."""
    radii = np.broadcast_to(np.array(radii, dtype=float), (1, 2))
    size = np.full(1, half)
    touches = round_cylinder(np.array([[start, end]], dtype=float), radii, size, size, np.array([reach]))
    assert_sound(touches)
    return touches


@pytest.mark.parametrize("solid", [box, cylinder])
def test_capsule_across_the_top_touches_at_both_ends(solid):
    """It rests there, whether it ends above the top or at the rim."""
    touches = solid((-0.5, 0, 1.15), (0.25, 0, 1.15), 0.1)
    assert np.allclose(touches.point, [[-0.5, 0, 1.05], [0.25, 0, 1.05]])
    assert np.allclose(touches.gap, 0.05)
    touches = solid((-3, 0, 1.15), (0.25, 0, 1.15), 0.1)
    assert np.allclose(touches.point, [[-1, 0, 1.05], [0.25, 0, 1.05]])
    assert touches.feature.tolist() == [0, 1]


@pytest.mark.parametrize("solid", [box, cylinder])
def test_capsule_standing_on_the_top_touches_once(solid):
    """Two contacts in one place would make the constraint problem singular."""
    touches = solid((0.2, 0.3, 1.08), (0.2, 0.3, 2), 0.1)
    assert np.allclose(touches.point, [[0.2, 0.3, 0.98]])
    assert np.allclose(touches.gap, [-0.02])
    assert np.allclose(touches.normal, [[0, 0, 1]])


def test_capsule_along_the_side_of_a_cylinder_touches_at_both_ends():
    """A log along a log."""
    touches = cylinder((0, 1.15, 3), (0, 1.15, -0.5), 0.1)
    assert np.allclose(touches.point, [[0, 1.05, 1], [0, 1.05, -0.5]])
    assert np.allclose(touches.normal, [[0, 1, 0]] * 2)
    assert np.allclose(touches.gap, 0.05)


def test_capsule_across_the_side_of_a_cylinder_touches_once():
    """A beam across a lying drum balances on one place."""
    touches = cylinder((-2, 1.15, 0.3), (3, 1.15, 0.3), 0.1)
    assert np.allclose(touches.point, [[0, 1.05, 0.3]])
    assert np.allclose(touches.gap, [0.05])
    assert touches.feature.tolist() == [2]


@pytest.mark.parametrize("tapered", [False, True])
def test_rounds_beside_a_long_cylinder_touch_where_a_ball_of_theirs_is_nearest(tapered):
    """All along between the ends, where the nearest place needs no search."""
    rng = np.random.default_rng(0)
    ends, radii = rounds(rng, 300, tapered)
    # some along the cylinder, some in its axis's plane
    ends[1::8, 1, :2], ends[2::8, :, 1] = ends[1::8, 0, :2], 0.0
    size = np.full(300, 0.02)
    touches = round_cylinder(ends, radii, np.full(300, 10.0), size, np.full(300, FAR))
    gap = np.full(300, np.inf)
    np.minimum.at(gap, touches.pair, touches.gap)
    t = np.linspace(0.0, 1.0, 4001)[:, None]
    axis = ends[:, :1] + t * (ends[:, 1:] - ends[:, :1])
    far = np.hypot(axis[..., 0], axis[..., 1]) - 0.02 - radii[:, :1] - t[:, 0] * (radii[:, 1:] - radii[:, :1])
    outside = np.hypot(axis[..., 0], axis[..., 1]).min(axis=1) > 0.03
    assert np.count_nonzero(outside) > 200
    np.testing.assert_allclose(gap[outside], far.min(axis=1)[outside], atol=1e-6)


@pytest.mark.parametrize("solid", [box, cylinder])
def test_ball_keeps_its_feature_over_the_edge(solid):
    """It is the same contact while a ball rolls from the top over the edge and down the side."""
    for angle in np.linspace(0, np.pi / 2, 7):
        center = np.array([1, 0, 1]) + 0.12 * np.array([np.sin(angle), 0, np.cos(angle)])
        touches = solid(center, center, 0.1)
        assert touches.feature.tolist() == [0]
        assert np.allclose(touches.gap, [0.02])


@pytest.mark.parametrize("solid", [box, cylinder])
def test_tapered_capsule_lies_flat_on_the_top(solid):
    """With the axis tilted by the cone's angle the lower side is level, and rests on both ends."""
    cosine = np.sqrt(1 - 0.1**2)
    touches = solid((-0.5, 0, 1.2), (-0.5 + cosine, 0, 1.1), (0.2, 0.1))
    assert np.allclose(touches.gap, 0, atol=2e-9)
    assert np.allclose(touches.point, [[-0.5, 0, 1], [-0.5 + cosine, 0, 1]], atol=1e-7)


@pytest.mark.parametrize("solid", [box, cylinder])
def test_deep_round_leaves_through_the_nearest_face(solid):
    """What is inside must not be pushed the long way, nor this way and that in turns."""
    for start, end, normal, depth in (
        ((0.9, 0, 0), (0.95, 0, 0), (1, 0, 0), 0.2),
        ((0, 0.1, -0.8), (0, 0.1, -0.7), (0, 0, -1), 0.4),
        ((0, 0.1, 0.9), (0, 0.1, 3), (0, 0, 1), 0.2),
        ((0.2, 0, 0.7), (0.2, 0, -3), (1, 0, 0), 0.9),
    ):
        touches = solid(start, end, 0.1)
        assert np.allclose(touches.normal, normal, atol=1e-9)
        assert touches.gap.min() == pytest.approx(-depth, abs=1e-8)


@pytest.mark.parametrize("solid", [box, cylinder])
@pytest.mark.parametrize("radii", [(0.1, 0.1), (0.1, 0.15)])
def test_gap_goes_on_where_the_axis_enters(solid, radii):
    """A jump of the depth or of the normal while a shape sinks in would kick it."""
    for way, start, end in (
        ((0, 0, 1), (-0.3, 0.1, 0), (0.4, 0.1, 0.3)),
        ((1, 0, 0), (0, 0, 0.1), (1, 0, 0.4)),
        ((1, 0, 0), (0, 0, 0.1), (0.3, 0, 0.4)),
    ):
        way, start, end = (np.array(v, dtype=float) for v in (way, start, end))
        above, within = (solid(start + way * h, end + way * h, radii) for h in (1 + 1e-5, 1 - 1e-5))
        assert above.feature.tolist() == within.feature.tolist()
        assert np.allclose(above.gap, within.gap, atol=3e-5)
        assert np.allclose(above.normal, within.normal, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_any_place_and_size_gives_numbers(kind):
    """Axes through middles, along edges and of no length come from hands and grids."""
    grid = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    rng, count = np.random.default_rng(7), 3000
    ends, radii = rng.choice(grid, size=(count, 2, 3)), rng.choice([0.1, 0.5], size=(count, 2))
    body = Body(kind, rng, count, True)
    body.ends, body.half = rng.choice(grid, size=(count, 2, 3)), rng.choice([0.5, 1.0], size=(count, 3))
    touches = body.touches(ends, radii)
    assert_sound(touches)
    nearest(touches, count)
    within = body.touches(ends, radii, reach=0.05)
    assert np.array_equal(within.gap, touches.gap[touches.gap < 0.05])
