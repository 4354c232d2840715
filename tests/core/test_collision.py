"""Contacts are where shapes touch, once each, and push out of the scenery."""

from itertools import pairwise

import numpy as np
import pytest

from core.collision import Collider
from core.contact import tangents
from core.shape import Box, Capsule, Hull, Mesh, Plane, Sphere

GROUND = Plane(point=np.zeros(3), normal=np.array([0.0, 0.0, 1.0]))
CUBE = Box(center=np.zeros(3), half=np.ones(3))


def rotations(rng, count):
    """Uniformly random rotation matrices (count, 3, 3)."""
    q, r = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    q *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None]
    q[:, :, 0] *= np.linalg.det(q)[:, None]
    return q


def in_world(poses):
    """Poses (n, 4, 4) of links, and the world's own."""
    return np.concatenate((poses, np.eye(4)[None]))


def touch(shape, scenery, margin=0.01, pose=None):
    """Contacts of one shape on one link."""
    return Collider([[shape]], [scenery]).contacts(in_world(np.eye(4)[None] if pose is None else pose[None]), margin)


def capsule(start, end, radius=0.1, **surface):
    return Capsule(start=np.array(start, dtype=float), end=np.array(end, dtype=float), radius=radius, **surface)


def sphere(center, radius=0.1, **surface):
    return Sphere(center=np.array(center, dtype=float), radius=radius, **surface)


def assert_sound(contacts):
    for column in (contacts.point, contacts.normal, contacts.gap):
        assert np.isfinite(column).all()
    assert np.allclose(np.sum(contacts.normal**2, axis=1), 1.0, atol=1e-12)
    assert len(set(contacts.key)) == len(contacts)


def test_sphere_over_plane():
    """The gap is height less radius, and the contact's point is the lowest of the sphere."""
    contacts = touch(sphere((0.3, 0.2, 0.105)), GROUND)
    assert np.allclose(contacts.point, [[0.3, 0.2, 0.005]])
    assert np.allclose(contacts.normal, [[0, 0, 1]])
    assert np.allclose(contacts.gap, [0.005])
    assert len(touch(sphere((0, 0, 0.2)), GROUND)) == 0


def test_capsule_lying_on_plane_rests_on_both_ends():
    """One contact only would let it seesaw."""
    contacts = touch(capsule((0, 0, 0.09), (1, 0, 0.1)), GROUND)
    assert np.allclose(contacts.gap, [-0.01, 0.0])
    assert np.allclose(contacts.point, [[0, 0, -0.01], [1, 0, 0]])


def test_tilted_plane_and_pose():
    """Shapes live in the link's frame and planes anywhere in the world."""
    normal = np.array([0.0, 0.6, 0.8])
    pose = np.eye(4)
    pose[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    pose[:3, 3] = [5.0, 6.0, 7.0]
    center = pose[:3, :3] @ [0.1, 0.2, 0.3] + pose[:3, 3]
    plane = Plane(point=center - 0.15 * normal, normal=2 * normal)
    contacts = touch(sphere((0.1, 0.2, 0.3)), plane, 0.1, pose)
    assert np.allclose(contacts.gap, [0.05])
    assert np.allclose(contacts.normal, [normal])


def test_capsule_lying_on_box_face_rests_on_two_points():
    contacts = touch(capsule((-0.5, 0, 1.1), (0.5, 0, 1.1)), CUBE)
    assert np.allclose(sorted(contacts.point[:, 0]), [-0.5, 0.5])
    assert np.allclose(contacts.point[:, 2], 1.0)
    assert np.allclose(contacts.gap, 0.0)
    assert np.allclose(contacts.normal, [0, 0, 1])


def test_overhanging_capsule_rests_on_the_edges():
    """A capsule longer than the box is wide touches where the face ends, at both sides."""
    contacts = touch(capsule((-3, 0, 1.1), (3, 0, 1.1)), CUBE)
    assert np.allclose(sorted(contacts.point[:, 0]), [-1.0, 1.0])
    assert np.allclose(contacts.gap, 0.0)


def test_capsule_across_an_edge_touches_at_the_edge():
    contacts = touch(capsule((1.0 + 0.4, 0, 1.0 - 0.3), (1.0 - 0.3, 0, 1.0 + 0.4), radius=0.05), CUBE, 0.03)
    assert len(contacts) == 1
    assert np.allclose(contacts.normal, [[np.sqrt(0.5), 0, np.sqrt(0.5)]])
    assert np.allclose(contacts.gap, [0.1 * np.sqrt(0.5) - 0.05])


def test_crossed_edges():
    """The segment's interior against the box's edge, a contact neither end sees."""
    contacts = touch(capsule((0.08, -2, 2.08), (2.08, 2, 0.08)), CUBE, 0.05)
    assert len(contacts) == 1
    assert np.allclose(contacts.gap, 0.08 * np.sqrt(2) - 0.1)
    assert_sound(contacts)


@pytest.mark.parametrize(
    ("center", "normal", "gap"),
    [((0.9, 0, 0), (1, 0, 0), -0.2), ((0, -0.7, 0), (0, -1, 0), -0.4), ((0.1, 0.2, -0.95), (0, 0, -1), -0.15)],
)
def test_center_inside_box_leaves_by_the_nearest_face(center, normal, gap):
    contacts = touch(sphere(center), CUBE)
    assert np.allclose(contacts.normal, [normal])
    assert np.allclose(contacts.gap, [gap])


def test_sunk_capsule_is_pushed_up_at_both_ends():
    contacts = touch(capsule((-0.5, 0, 0.9), (0.5, 0, 0.95)), CUBE)
    assert np.allclose(contacts.normal, [0, 0, 1])
    assert np.allclose(contacts.gap, [-0.2, -0.15])


@pytest.mark.parametrize("center", [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 1, 1 + 1e-13)])
@pytest.mark.parametrize("along", [(0, 0, 0), (0, 0, 1e-13), (0, 0, 1), (1, 1, 1), (0, 2, -1)])
def test_degenerate_places_stay_finite(center, along):
    """Centres, faces, edges and corners exactly on the axis must neither give NaN nor lose the contact."""
    start, end = np.array(center) - 0.5 * np.array(along), np.array(center) + 0.5 * np.array(along)
    contacts = touch(capsule(start, end), CUBE)
    assert_sound(contacts)
    assert contacts.gap.min() <= -0.1 + 1e-9
    assert_sound(touch(capsule(start, end), GROUND))


def test_deepest_contact_matches_dense_sampling():
    """The smallest gap is the distance of the capsule and the box, found by brute force."""
    rng = np.random.default_rng(1)
    step = np.linspace(0.0, 1.0, 4001)[:, None]
    for rotation in rotations(rng, 300):
        start, end = rng.uniform(-2.5, 2.5, (2, 3))
        half, center = rng.uniform(0.3, 1.0, 3), rng.uniform(-0.3, 0.3, 3)
        box = Box(center=center, half=half, rotation=rotation)
        place = (start + step * (end - start) - center) @ rotation
        outside = np.sqrt((np.maximum(np.abs(place) - half, 0.0) ** 2).sum(axis=1))
        contacts = touch(capsule(start, end), box, 10.0)
        assert_sound(contacts)
        if outside.min() > 0.0:
            assert contacts.gap.min() == pytest.approx(outside.min() - 0.1, abs=1e-5)
        else:
            assert contacts.gap.min() <= -0.1


def test_every_contact_is_a_true_distance():
    """A point on the surface of the link, moved back along the normal by its gap, lies on the box's surface."""
    rng = np.random.default_rng(2)
    for rotation in rotations(rng, 200):
        box = Box(center=rng.uniform(-1, 1, 3), half=rng.uniform(0.3, 1.0, 3), rotation=rotation)
        contacts = touch(capsule(*rng.uniform(-2, 2, (2, 3))), box, 0.5)
        local = np.abs((contacts.point - contacts.gap[:, None] * contacts.normal - box.center) @ rotation)
        assert np.allclose((local - box.half).max(axis=1, initial=-1.0), 0.0, atol=1e-8)


def test_pairs_are_independent():
    """Many shapes and many boxes at once give what each pair gives alone."""
    rng = np.random.default_rng(3)
    shapes = [
        [capsule(*rng.uniform(-1, 1, (2, 3)), family="one"), sphere(rng.uniform(-1, 1, 3), family="one")],
        [],
        [capsule((0, 0, 0), (1, 0, 0), family="one")],
    ]
    frames = rotations(rng, 6)
    scenery = [GROUND, *(Box(center=rng.uniform(-1, 1, 3), half=np.full(3, 0.6), rotation=r) for r in frames[:3])]
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = frames[3:], rng.uniform(-1, 1, (3, 3))
    margin = np.array([0.5, 0.2, 0.6])
    together = Collider(shapes, scenery).contacts(in_world(poses), margin)
    assert_sound(together)
    alone = [
        (link, *point, gap)
        for link, own in enumerate(shapes)
        for shape in own
        for thing in scenery
        for contacts in [touch(shape, thing, margin[link], poses[link])]
        for point, gap in zip(contacts.point, contacts.gap, strict=True)
    ]
    assert len(together) == len(alone) > 10
    rows = np.column_stack((together.link, together.point, together.gap))
    assert np.allclose(np.array(sorted(rows.tolist())), np.array(sorted(alone)), atol=1e-12)


def test_hulls_and_meshes_at_once_are_as_alone():
    """All triangles of all of them are looked at together, each in the frame of its own link."""
    rng = np.random.default_rng(7)
    corners = np.indices((2, 2, 2)).reshape(3, -1).T * 2.0 - 1.0
    triangles = np.array(
        [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4),
         (1, 5, 7), (1, 7, 3)]
    )  # fmt: skip
    solids = [
        kind(corners * rng.uniform(0.2, 0.6, 3), triangles[:, ::turn], family="one")
        for kind, turn in ((Hull, 1), (Hull, -1), (Mesh, 1), (Mesh, -1), (Hull, 1))
    ]
    rounds = [capsule(*rng.uniform(-0.5, 0.5, (2, 3)), family="other"), sphere((0.0, 0.1, 0.0), family="other")]
    shapes = [[solid] for solid in solids] + [[shape] for shape in rounds]
    keyed = np.array([isinstance(solid, Mesh) for solid in solids] + [False, False])
    poses = np.tile(np.eye(4), (len(shapes), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = rotations(rng, len(shapes)), rng.uniform(-0.5, 0.5, (len(shapes), 3))
    together = Collider(shapes, keyed=keyed).contacts(in_world(poses), 0.6)
    assert_sound(together)
    alone = []
    for i in range(len(solids)):
        for k in range(len(solids), len(shapes)):
            pair = Collider([shapes[i], shapes[k]], keyed=keyed[[i, k]]).contacts(in_world(poses[[i, k]]), 0.6)
            alone += zip(*pair.point.T, pair.gap)
    assert len(together) == len(alone) > 10
    found = np.column_stack((together.point, together.gap))
    assert np.allclose(sorted(found.tolist()), sorted(np.array(alone).tolist()), atol=1e-9)


def slab(count=12, thick=0.2):
    """A closed slab over a square of size 2, whose upper side, at z = 0, is two large triangles, and its lower one 2
    count² small ones."""
    x, y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(-1, 1, count + 1)] * 2, indexing="ij"))
    number = np.arange(len(x)).reshape(count + 1, count + 1)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    below = [np.stack([corner.ravel() for corner in three], axis=1) for three in ((a, c, b), (a, d, c))]
    corners = len(x) + np.arange(4)
    top = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)])
    walls = []
    for side, rim in enumerate((number[:, 0], number[-1], number[::-1, -1], number[0, ::-1])):
        start, end = corners[side], corners[(side + 1) % 4]
        walls += [(one, other, start) for one, other in pairwise(rim)] + [(rim[-1], end, start)]
    vertices = np.concatenate((np.stack((x, y, np.full(len(x), -thick)), axis=1), top))
    return vertices, np.concatenate((*below, corners[[(0, 1, 2), (0, 2, 3)]], walls))


def test_what_is_below_a_slanted_roof_is_not_in_it():
    """The box around a large slanted triangle holds much that is behind it and far from the solid: a roof once pulled
    what was below it up through itself."""
    vertices, triangles = slab()
    turn = rotations(np.random.default_rng(6), 1)[0]
    x, y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(-0.9, 0.9, 10)] * 2))
    for gap in (0.5, 0.3, 0.1, 0.005):
        balls = np.stack((x, y, np.full(100, -0.2 - 0.05 - gap)), axis=1) @ turn.T
        collider = Collider(
            [[Sphere(center, 0.05, layers=1)] for center in balls], [Mesh(vertices @ turn.T, triangles)]
        )
        contacts = collider.contacts(in_world(np.tile(np.eye(4), (100, 1, 1))), 0.01)
        of_roof = contacts.meeting.other == 100
        assert of_roof.sum() == (100 if gap < 0.01 else 0)
        assert np.allclose(contacts.gap[of_roof], gap, atol=1e-9)
        assert np.allclose(contacts.normal[of_roof], -turn[:, 2], atol=1e-9)


def test_surfaces_combine():
    """Friction by the geometric mean, restitution by the larger."""
    contacts = touch(sphere((0, 0, 0.1), friction=0.4, restitution=0.1), Plane(friction=0.9, restitution=0.3))
    assert np.allclose(contacts.friction, 0.6)
    assert np.allclose(contacts.restitution, 0.3)


def test_keys_persist_while_sliding():
    """A warm start recognises the contacts of the previous step."""
    collider = Collider([[capsule((-0.5, 0, 0), (0.5, 0, 0))]], [GROUND, CUBE])
    pose, keys = np.eye(4), set()
    for x in np.linspace(-0.3, 0.3, 7):
        pose[:3, 3] = x, 0.1 * x, 1.1 + 1e-4 * np.sin(40 * x)
        keys.add(tuple(sorted(collider.contacts(in_world(pose[None]), 0.01).key)))
    assert len(keys) == 1


def test_nothing_to_touch():
    """Links without shapes and scenes without scenery are ordinary."""
    for shapes, scenery in (([[], []], [GROUND, CUBE]), ([[sphere((0, 0, 0))], []], [])):
        contacts = Collider(shapes, scenery).contacts(np.tile(np.eye(4), (3, 1, 1)), np.array([0.1, 0.1]))
        assert len(contacts) == 0
        assert contacts.point.shape == contacts.normal.shape == (0, 3)


def test_what_is_no_shape_is_refused_by_name():
    """A line that says what can be given instead."""
    with pytest.raises(ValueError, match="a str cannot be touched; give Sphere"):
        Collider([[]], ["floor"])


def test_tangent_frames_are_orthonormal_and_steady_on_walls():
    """Right-handed for any normal, and not flipped by rounding where a wall's normal has n_z = 0."""
    normal = np.concatenate((rotations(np.random.default_rng(4), 500)[:, 0], np.eye(3), -np.eye(3)))
    frames = tangents(normal)
    assert np.allclose(frames @ frames.transpose(0, 2, 1), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.det(frames), 1.0)
    assert np.array_equal(frames[:, 0], normal)
    wall = tangents(np.array([[1.0, 0.0, 1e-17], [1.0, 0.0, -1e-17]]))
    assert np.allclose(wall[0], wall[1])
