"""Links touch links and scenery: the whole way from shapes to motion, against oracles and laws of motion."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from core.collision import Collider
from core.joint import Joint
from core.kinematics import kinematics, motions
from core.linkage import Link, Linkage
from core.mechanisms import frame_of, humanoid, rod
from core.model import Model, State, compile_model
from core.motion import Follower, Motion
from core.shape import Box, Capsule, Cylinder, Hull, Mesh, Plane, Sphere, TaperedCapsule
from core.simulation import Simulation

CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
SIDES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
     [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
)  # fmt: skip
ON_LINKS = ("sphere", "capsule", "tapered", "box", "hull")
IN_SCENES = (*ON_LINKS, "cylinder", "mesh")


def shape(kind: str, **surface):
    """One of each kind, some 30 cm large, around the origin."""
    start, end = np.array([0.0, 0.0, -0.15]), np.array([0.0, 0.0, 0.15])
    if kind == "sphere":
        return Sphere(np.zeros(3), 0.15, **surface)
    if kind == "capsule":
        return Capsule(start, end, 0.08, **surface)
    if kind == "tapered":
        return TaperedCapsule(start, end, 0.08, 0.04, **surface)
    if kind == "box":
        return Box(np.zeros(3), np.array([0.1, 0.15, 0.2]), **surface)
    if kind == "cylinder":
        return Cylinder(start, end, 0.1, **surface)
    return (Hull if kind == "hull" else Mesh)(CORNERS * (0.12, 0.1, 0.15), SIDES, **surface)


def cube(half: float | np.ndarray, kind: type = Mesh, *, inside_out: bool = False):
    """A closed cube around the origin, of triangles."""
    return kind(CORNERS * half, SIDES[:, ::-1] if inside_out else SIDES)


def turned(rng: np.random.Generator) -> np.ndarray:
    """A uniformly random unit quaternion."""
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def pose(rng: np.random.Generator, place: np.ndarray) -> np.ndarray:
    result = np.eye(4)
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    result[:3, :3], result[:3, 3] = q * np.linalg.det(q), place
    return result


def bodies(*parts: dict) -> tuple[Model, State]:
    """Free bodies `b0`, `b1`, ... with `shapes`, and where they start: `at`, `turn`, with velocity `v` and `spin`."""
    linkage = Linkage()
    for i, part in enumerate(parts):
        mass = part.get("mass", 1.0)
        inertia = np.diag(part.get("inertia", mass * np.full(3, 0.004)))
        keyed = part.get("keyed", False)
        linkage.add(Link(f"b{i}", Joint("free"), mass=mass, inertia=inertia, shapes=part["shapes"], keyed=keyed))
    model = compile_model(linkage)
    q, v = model.rest_state().q.copy(), np.zeros(model.nv)
    for i, part in enumerate(parts):
        j = model.names.index(f"b{i}")
        if part.get("keyed"):
            continue
        at, along = model.coordinates.q_start[j], model.coordinates.v_start[j]
        q[at : at + 7] = *part.get("turn", (1.0, 0.0, 0.0, 0.0)), *part.get("at", (0.0, 0.0, 0.0))
        v[along : along + 6] = *part.get("spin", (0.0, 0.0, 0.0)), *part.get("v", (0.0, 0.0, 0.0))
    return model, State(q, v)


def run(model: Model, state: State | None, frames: int, most: float = np.inf, **settings) -> Simulation:
    simulation = Simulation(model, state=state, **settings)
    for _ in simulation.run(frames):
        assert simulation.trajectory.substeps[-1] <= most
    return simulation


def places(simulation: Simulation, name: str) -> np.ndarray:
    """Positions (frames, 3) of a link."""
    return simulation.trajectory.world[:, simulation.model.names.index(name), :3, 3]


def momentum(model: Model, state: State) -> np.ndarray:
    """Linear and angular momentum (6,) about the world's origin."""
    kin = kinematics(model, state.q)
    links, total = motions(model, kin, state.v).links, np.zeros(6)
    for slot in model.assembly.slot:
        angular, linear = np.split(kin.inertia[slot] @ links[slot], 2)
        total += *linear, *(angular + np.cross(kin.origin[model.assembly.cluster_of[slot]], linear))
    return total


def ride(platform, path: np.ndarray, passenger: list, at: tuple, **settings) -> Simulation:
    """A free body on a keyed link that goes along a path (frames, 3)."""
    model, state = bodies({"shapes": [platform], "keyed": True}, {"shapes": passenger, "at": at})
    poses = np.tile(np.eye(4), (len(path), 2, 1, 1))
    poses[:, model.names.index("b0"), :3, 3] = path
    motion = Motion(poses, 1 / 24)
    q, rider = Follower(model, motion).q[0].copy(), model.coordinates.q_start[model.names.index("b1")]
    q[rider : rider + 7] = state.q[rider : rider + 7]
    return run(model, State(q, state.v), len(path), motion=motion, **settings)


# --- where things touch


def mujoco_geom(kind: str, name: str, at: np.ndarray) -> str:
    mujoco = pytest.importorskip("mujoco")
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(at[:3, :3]).reshape(-1))
    size = {
        "sphere": ("sphere", "0.15"),
        "capsule": ("capsule", "0.08 0.15"),
        "box": ("box", "0.1 0.15 0.2"),
        "cylinder": ("cylinder", "0.1 0.15"),
        "hull": ("box", "0.12 0.1 0.15"),
        "mesh": ("box", "0.12 0.1 0.15"),
    }
    form, extent = size[kind]
    place = " ".join(map(repr, at[:3, 3].tolist())), " ".join(map(repr, quaternion.tolist()))
    return f'<geom name="{name}" type="{form}" size="{extent}" pos="{place[0]}" quat="{place[1]}"/>'  # fmt: skip


@pytest.mark.parametrize("one", [kind for kind in ON_LINKS if kind != "tapered"])
@pytest.mark.parametrize("other", [kind for kind in IN_SCENES if kind != "tapered"])
def test_gaps_are_the_distances_that_mujoco_finds(one, other):
    """Speculative contacts are only as good as the gap: too large a one lets things overlap, too small holds them."""
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(5)
    # flat shapes may take an axis that is a little worse, and a cylinder for a prism 0.43 % of its radius thinner
    flat = one in ("box", "hull") and other not in ("sphere", "capsule")
    loose = 5e-4 if flat and other == "cylinder" else 1e-4 if flat else 1e-5
    for _ in range(12):
        direction = rng.normal(size=3)
        ends = pose(rng, np.zeros(3)), pose(rng, direction / np.linalg.norm(direction) * rng.uniform(0.35, 0.5))
        geoms = mujoco_geom(one, "one", ends[0]) + mujoco_geom(other, "other", ends[1])
        model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        expected = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, np.zeros(6))
        if expected < 1e-3:
            continue
        found = [Collider([[shape(one)]], [shape(other).moved(ends[1])]).contacts(np.stack((ends[0], np.eye(4))), 1.0)]
        if other in ON_LINKS:
            links = Collider([[shape(one)], [shape(other)]])
            found.append(links.contacts(np.stack((*ends, np.eye(4))), 0.5))
            # and the other way round
            found.append(Collider([[shape(other)], [shape(one)]]).contacts(np.stack((*ends[::-1], np.eye(4))), 0.5))
        for contacts in found:
            assert contacts.gap.min() == pytest.approx(expected, abs=loose)


@pytest.mark.parametrize("one", ON_LINKS)
@pytest.mark.parametrize("other", IN_SCENES)
def test_normals_lead_out_of_the_other_into_the_link(one, other):
    """A flipped normal pulls instead of pushing: along it the two part by as much, against it they come nearer."""
    rng = np.random.default_rng(6)
    for _ in range(10):
        direction = rng.normal(size=3)
        own, its = pose(rng, np.zeros(3)), pose(rng, 0.55 * direction / np.linalg.norm(direction))
        for collider, poses in (
            (Collider([[shape(one)]], [shape(other).moved(its)]), np.stack((own, np.eye(4)))),
            *(
                ((Collider([[shape(one)], [shape(other)]]), np.stack((own, its, np.eye(4)))),)
                if other in ON_LINKS
                else ()
            ),
        ):
            contacts = collider.contacts(poses, 1.0)
            first = contacts.gap.argmin()
            assert contacts.gap[first] > 0
            assert np.linalg.norm(contacts.normal, axis=1) == pytest.approx(1.0)
            for step in (0.02, -0.5 * contacts.gap[first]):
                moved = poses.copy()
                moved[contacts.link[first], :3, 3] += step * contacts.normal[first]
                assert collider.contacts(moved, 1.0).gap.min() == pytest.approx(contacts.gap[first] + step, abs=1e-3)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations_with_replacement(ON_LINKS, 2)))
def test_contacts_are_told_apart_and_known_again(one, other):
    """Two contacts with one key share a warm start, and a key that changes has none."""
    collider = Collider([[shape(one)], [shape(other)], [shape(one)]], [Plane(), shape("box")])
    rng = np.random.default_rng(7)
    poses = np.stack([pose(rng, rng.uniform(-0.1, 0.1, 3)) for _ in range(3)] + [np.eye(4)])
    before = collider.contacts(poses, 0.05)
    assert len(set(before.key.tolist())) == len(before) >= 4
    poses[0, :3, 3] += 1e-9
    assert set(collider.contacts(poses, 0.05).key.tolist()) == set(before.key.tolist())


def test_what_shares_no_layer_or_is_of_one_family_does_not_meet():
    """An animator sorts what collides with what."""
    ball = lambda **surface: Sphere(np.zeros(3), 0.1, **surface)  # noqa: E731
    poses = np.tile(np.eye(4), (3, 1, 1))
    meet = lambda a, b: len(Collider([[a], [b]]).contacts(poses, 0.0)) > 0  # noqa: E731
    assert meet(ball(layers=3), ball(layers=2)) and not meet(ball(layers=1), ball(layers=2))
    assert meet(ball(family="a"), ball(family="b")) and not meet(ball(family="a"), ball(family="a"))
    assert meet(ball(), ball())
    land = lambda **surface: len(Collider([[ball(layers=2)]], [Plane(**surface)]).contacts(poses[:2], 0.0))  # noqa: E731
    assert land(layers=2) and not land(layers=1)


def test_neighbours_connected_and_keyed_links_do_not_meet():
    """A joint's two links overlap by nature, and two animated links cannot give way to each other."""
    linkage = Linkage()
    ball = lambda: [Sphere(np.zeros(3), 0.1)]  # noqa: E731
    root = linkage.add(Link("root", Joint("free"), shapes=ball()))
    child = linkage.add(Link("child", Joint("spherical"), shapes=ball()), root)
    grandchild = linkage.add(Link("grandchild", Joint("spherical"), shapes=ball()), child)
    loose = linkage.add(Link("loose", Joint("free"), shapes=ball()))
    linkage.connect(grandchild, loose, Joint("spherical"), at=np.zeros(3))
    model = compile_model(linkage)
    simulation = Simulation(model)
    pairs = {frozenset(pair) for pair in simulation.passing}
    met = {frozenset(pair) for pair in itertools.combinations(model.names, 2)}
    met -= {frozenset(("root", "child")), frozenset(("child", "grandchild")), frozenset(("grandchild", "loose"))}
    # all four coincide: whatever may meet at all is let through, and listed
    assert pairs == met
    keyed = Collider([ball(), ball()], [Plane()], keyed=np.array([True, True]))
    assert len(keyed.contacts(np.tile(np.eye(4), (3, 1, 1)), 0.0)) == 0


# --- what starts overlapping


def test_a_standing_person_has_no_links_that_pass():
    """Those that are listed do not collide any more."""
    assert Simulation(compile_model(humanoid()), scenery=[Plane()]).passing == ()


def siblings(gap: float, angle: float) -> Model:
    """Two balls on one root, so far apart."""
    linkage = Linkage()
    root = linkage.add(Link("root", Joint("free"), inertia=0.01 * np.eye(3)))
    for name, side in (("left", -1.0), ("right", 1.0)):
        link = Link(name, Joint("prismatic"), inertia=0.01 * np.eye(3), shapes=[Sphere(np.zeros(3), 0.1)])
        link.position = side * (0.1 + gap / 2) * np.array([np.cos(angle), np.sin(angle), 0.0])
        linkage.add(link, root)
    return compile_model(linkage)


@pytest.mark.parametrize("gap", [0.0, -1e-15, -1e-9])
def test_links_that_just_touch_do_not_pass(gap):
    """What lies side by side at rest, as the legs of a figure, touches; rounding errors must not let it through."""
    assert all(Simulation(siblings(gap, angle)).passing == () for angle in np.linspace(0.0, 3.0, 40))


def test_links_of_one_body_that_overlap_pass_and_are_listed():
    """Skinned characters overlap where they are thick; pushed apart they would burst."""
    assert Simulation(siblings(-0.02, 0.3)).passing == (("left", "right"),)


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "hull"])
def test_bodies_at_the_same_place_pass_and_others_part(kind):
    """Coincident shapes have no direction out of each other."""
    model, state = bodies({"shapes": [shape(kind)], "at": (0, 0, 1)}, {"shapes": [shape(kind)], "at": (0, 0, 1)})
    simulation = run(model, state, 24, scenery=[Plane()])
    assert simulation.passing == (("b0", "b1"),)
    assert np.linalg.norm(simulation.trajectory.v, axis=1).max() < 15.0


LANDS = {
    "plane": Plane(np.array([0.0, 0.0, 1.0])), "box": Box(np.zeros(3), np.ones(3)), "hull": cube(1.0, Hull),
    "mesh": cube(1.0), "mesh inside out": cube(1.0, inside_out=True),
    "cylinder": Cylinder(np.array([0.0, 0.0, -1.0]), np.array([0.0, 0.0, 1.0]), 1.0),
}  # fmt: skip


@pytest.mark.parametrize("land", LANDS)
@pytest.mark.parametrize("kind", ON_LINKS)
@pytest.mark.parametrize("height", [1.05, 0.93])
def test_what_starts_in_scenery_is_pushed_out_gently_and_rests(height, kind, land):
    """Never launched, never stuck inside, and no reason to take a hundred steps a frame."""
    model, state = bodies({"shapes": [shape(kind)], "at": (0.01, 0.02, height)})
    simulation = run(model, state, 72, 12, scenery=[LANDS[land]])
    path, ascent = simulation.trajectory, np.diff(places(simulation, "b0")[:, 2]) * 24
    assert path.penetration[0] > 0.02
    assert path.penetration[-1] < 0.01
    assert places(simulation, "b0")[-1, 2] > 1.02
    assert ascent.max() <= 1.0
    assert np.linalg.norm(path.v[-1]) < 0.2


@pytest.mark.parametrize("land", LANDS)
@pytest.mark.parametrize("kind", ON_LINKS)
def test_what_starts_wholly_inside_scenery_comes_out(kind, land):
    """A link that touches no face of a closed mesh from within is in it all the same."""
    model, state = bodies({"shapes": [shape(kind)], "at": (0.01, 0.02, 0.6)})
    simulation = run(model, state, 144, 12, scenery=[LANDS[land]])
    height = places(simulation, "b0")[:, 2]
    assert height[-1] > 1.02
    assert np.diff(height).max() * 24 <= 1.0


@pytest.mark.parametrize("flaw", ["open", "flat triangle", "self-intersecting"])
def test_bodies_rest_on_meshes_with_flaws(flaw):
    """Scenery is what the user has."""
    floor = CORNERS * (1.0, 1.0, 0.1), SIDES
    if flaw == "open":
        top = [triangle for triangle in SIDES if (CORNERS[triangle, 2] > 0).all()]
        floor = floor[0], np.array(top)
    elif flaw == "flat triangle":
        floor = np.append(floor[0], [[0.3, 0.2, 0.1]], axis=0), np.append(SIDES, [[8, 8, 1], [1, 3, 1]], axis=0)
    else:
        other = floor[0] @ np.array([[0.8, 0.6, 0.0], [-0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]) * (1.0, 1.0, 0.999)
        floor = np.append(floor[0], other, axis=0), np.append(SIDES, SIDES + 8, axis=0)
    for kind in ON_LINKS:
        model, state = bodies({"shapes": [shape(kind)], "at": (0.05, 0.1, 0.35)})
        simulation = run(model, state, 72, scenery=[Mesh(*floor)])
        assert places(simulation, "b0")[-1, 2] > 0.13
        assert simulation.trajectory.penetration.max() < 2e-3


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (lambda: Sphere(np.zeros(3), np.nan), "radius nan"),
        (lambda: Sphere(np.zeros(3), 0.1, friction=-0.1), "friction -0.1"),
        (lambda: Sphere(np.zeros(3), 0.1, restitution=1.1), "restitution 1.1"),
        (lambda: Box(np.zeros(3), np.array([1.0, np.nan, 1.0])), "half extents"),
        (lambda: Box(np.zeros(3), np.ones(3), np.full((3, 3), np.nan)), "rotation"),
        (lambda: Mesh(np.full((3, 3), np.nan), np.array([[0, 1, 2]])), "finite"),
        (lambda: Collider([[]], [Mesh(np.zeros((3, 3)), np.array([[0, 1, 2]]))]), "zero area"),
        (lambda: Simulation(bodies({"shapes": [cube(0.1)]})[0]), "b0"),
        (lambda: Simulation(bodies({"shapes": [Plane()]})[0]), "Plane"),
    ],
)
def test_what_cannot_be_touched_is_refused_in_one_line(wrong, line):
    """With what is wrong and what would be right."""
    with pytest.raises(ValueError, match=line) as caught:
        wrong()
    assert "\n" not in str(caught.value)


# --- laws of motion


@pytest.mark.parametrize("restitution", [0.0, 1.0])
@pytest.mark.parametrize(("one", "other"), list(itertools.combinations_with_replacement(ON_LINKS, 2)))
def test_bodies_that_collide_in_the_air_keep_their_momentum(one, other, restitution):
    """Whatever the shapes, spins and friction: a collision moves momentum from one to the other and makes none."""
    rng = np.random.default_rng(8)
    model, state = bodies(
        {"shapes": [shape(one, restitution=restitution)], "v": 0.3 * rng.normal(size=3), "spin": rng.normal(size=3),
         "turn": turned(rng), "inertia": (0.01, 0.02, 0.015)},
        {"shapes": [shape(other, restitution=restitution)], "at": (0.8, 0.02, 0.01), "v": (-3.0, 0.0, 0.0),
         "spin": 2 * rng.normal(size=3), "turn": turned(rng), "inertia": (0.03, 0.02, 0.04), "mass": 2.5},
    )  # fmt: skip
    simulation = run(model, state, 12, gravity=(0, 0, 0))
    energy = simulation.trajectory.energy
    assert simulation.trajectory.contacts.max() > 0
    np.testing.assert_allclose(momentum(model, simulation.state), momentum(model, state), atol=1e-9)
    assert energy[-1] < energy[0] * (1 - 1e-3) or restitution == 1.0
    assert np.diff(energy).max() < 2e-3 * energy[0]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_balls_that_collide_while_they_fall_part_by_their_restitution(restitution, swapped):
    """What falls together does not fall onto each other, whichever is the link and whichever the other."""
    ball = [Sphere(np.zeros(3), 0.1, restitution=restitution, friction=0.0)]
    parts = {"shapes": ball, "at": (0, 0, 5)}, {"shapes": ball, "at": (0, 0, 5.5), "v": (0, 0, -2)}
    model, state = bodies(*(parts[::-1] if swapped else parts))
    simulation = run(model, state, 12)
    upward = simulation.state.v.reshape(2, 6)[:, 5]
    assert abs(upward[0] - upward[1]) == pytest.approx(2.0 * restitution, abs=1e-5)


def two_chains(count: int, swapped: bool = False) -> tuple[Model, State]:
    """Two chains that cross; the upper one comes down on the lower with 2 m/s."""
    linkage = Linkage()
    starts = {
        "a": ((-0.05 * count, 0.0, 0.0), frame_of(along=np.array([1.0, 0.0, 0.0]), front=np.array([0.0, 0.0, 1.0]))),
        "b": (
            (0.013, -0.047 * count, 0.06),
            frame_of(along=np.array([0.0, 1.0, 0.0]), front=np.array([0.0, 0.0, 1.0])),
        ),
    }
    for name in reversed(starts) if swapped else starts:
        link = None
        for i in range(count):
            piece = rod(f"{name}{i}", Joint("spherical" if i else "free"), length=0.1, mass=0.1, radius=0.02)
            piece.position = np.array([0.0, 0.1, 0.0]) if i else np.array(starts[name][0])
            piece.rotation = np.eye(3) if i else starts[name][1]
            link = linkage.add(piece, link)
    model = compile_model(linkage)
    v = np.zeros(model.nv)
    v[model.coordinates.v_start[model.names.index("b0")] + 5] = -2.0
    return model, State(model.rest_state().q, v)


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_chains_that_collide_keep_their_momentum(count):
    """Every contact acts on both of its links, however many clusters of links lie between them and their roots."""
    model, state = two_chains(count)
    simulation = run(model, state, 4, gravity=(0, 0, 0))
    assert simulation.trajectory.contacts.max() > 0
    np.testing.assert_allclose(momentum(model, simulation.state), momentum(model, state), atol=1e-9)
    assert simulation.trajectory.energy[-1] < simulation.trajectory.energy[0]


def test_a_collision_does_not_depend_on_the_assembly_tree(monkeypatch):
    """How links are gathered into clusters is a matter of speed."""
    found = []
    for leaf in (6, 20, 60):
        monkeypatch.setattr("core.assembly.LEAF_FREEDOMS", leaf)
        model, state = two_chains(20)
        simulation = run(model, state, 2, gravity=(0, 0, 0), substeps=16)
        assert simulation.trajectory.contacts[-1] > 0
        found.append(simulation.trajectory.world[-1])
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=1e-6)


def test_a_collision_does_not_depend_on_the_order_of_links():
    """Nor is it a matter of who was added first."""
    found = []
    for swapped in (False, True):
        model, state = two_chains(20, swapped)
        simulation = run(model, state, 2, gravity=(0, 0, 0), substeps=16)
        assert simulation.trajectory.contacts[-1] > 0
        order = [model.names.index(name) for name in sorted(model.names)]
        found.append(simulation.trajectory.world[-1, order])
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


# --- fast motion


@pytest.mark.parametrize("speed", [5.0, 20.0, 50.0])
@pytest.mark.parametrize("plate", [Box(np.zeros(3), np.array([5.0, 5.0, 0.005])), cube(np.array([5.0, 5.0, 0.005]))])
def test_what_is_knocked_against_a_thin_plate_does_not_pass_it(plate, speed):
    """A ball at rest has no speed to look ahead by, until another hits it; and so has the next one."""
    ball = [Sphere(np.zeros(3), 0.1)]
    heights = 0.2, 0.45, 0.7
    model, state = bodies(
        *({"shapes": ball, "at": (0, 0, height)} for height in heights),
        {"shapes": ball, "at": (0, 0, 2), "v": (0, 0, -speed), "mass": 5.0},
    )
    simulation = run(model, state, 16, scenery=[plate])
    for name, least in zip(model.names, (0.1, 0.3, 0.5, 0.7)):
        assert places(simulation, name)[:, 2].min() > least - 0.01
    assert simulation.trajectory.penetration.max() < 0.01


# --- scenery that moves


@pytest.mark.parametrize("platform", ["box", "mesh", "hull", "open mesh"])
@pytest.mark.parametrize("kind", ["box", "capsule", "hull"])
def test_a_platform_carries_what_lies_on_it(kind, platform):
    """By friction sideways, by its top upward, and no faster than itself."""
    half = np.array([2.0, 2.0, 0.2])
    floor = {"box": Box(np.zeros(3), half), "mesh": cube(half), "hull": cube(half, Hull)}.get(platform)
    floor = floor or Mesh(CORNERS[[1, 5, 7, 3]] * half, np.array([[0, 1, 2], [0, 2, 3]]))
    rider = {"box": Box(np.zeros(3), np.full(3, 0.1)), "hull": cube(0.1, Hull)}.get(kind)
    rider = rider or Capsule(np.array([0.0, -0.2, 0.0]), np.array([0.0, 0.2, 0.0]), 0.1)
    time = np.arange(72) / 24
    # asleep when it sets off
    gone = np.where(time > 1.5, 0.25 * (time - 1.5) ** 2, 0.0)
    for axis in ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)):
        simulation = ride(floor, gone[:, None] * axis, [rider], (0.0, 0.0, 0.3))
        path = places(simulation, "b1")
        assert simulation.trajectory.substeps[30] == 0
        np.testing.assert_allclose(path[-1], (0, 0, 0.3) + gone[-1] * np.array(axis), atol=1e-3)
        assert simulation.trajectory.penetration.max() < 1e-3


def test_a_ball_on_an_accelerating_platform_rolls_behind_it():
    """A solid ball on a plate that accelerates by a gains 2/7 a."""
    time = np.arange(48) / 24
    gone = 0.25 * time**2
    simulation = ride(
        Box(np.zeros(3), np.array([3.0, 3.0, 0.2])), gone[:, None] * (1.0, 0.0, 0.0),
        [Sphere(np.zeros(3), 0.1)], (0.0, 0.0, 0.3),
    )  # fmt: skip
    assert places(simulation, "b1")[-1, 0] == pytest.approx(2 / 7 * gone[-1], rel=0.02)


def test_a_conveyor_of_rollers_moves_what_lies_on_it():
    """A turning keyed link has a surface that moves, though it goes nowhere."""
    linkage = Linkage()
    for i in range(5):
        link = Link(f"roller{i}", Joint("free"), keyed=True, shapes=[
            Capsule(np.array([-1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]), 0.1)
        ])  # fmt: skip
        linkage.add(link)
    linkage.add(Link("plank", Joint("free"), inertia=0.05 * np.eye(3), shapes=[
        Box(np.zeros(3), np.array([0.2, 0.4, 0.05]))
    ]))  # fmt: skip
    model = compile_model(linkage)
    poses = np.tile(np.eye(4), (49, model.n, 1, 1))
    angle = -2.0 * np.arange(49) / 24
    for i in range(5):
        own = poses[:, model.names.index(f"roller{i}")]
        own[:, 1, 3] = 0.25 * i
        own[:, 1, 1] = own[:, 2, 2] = np.cos(angle)
        own[:, 2, 1], own[:, 1, 2] = np.sin(angle), -np.sin(angle)
    poses[:, model.names.index("plank"), :3, 3] = 0.0, 0.3, 0.15
    simulation = run(model, None, 25, motion=Motion(poses, 1 / 24))
    # rim speed 0.2 m/s towards +y, reached at once
    assert places(simulation, "plank")[-1, 1] - 0.3 == pytest.approx(0.2, abs=0.02)
