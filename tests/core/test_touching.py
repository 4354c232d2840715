"""Links touch links and scenery: where, which way, under which name, and who meets whom at all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from free_bodies import ON_LINKS, shape

from core.collision import Collider
from core.joint import Joint
from core.linkage import Link, Linkage
from core.model import compile_model
from core.shape import Plane, Sphere
from core.simulation import Simulation

IN_SCENES = (*ON_LINKS, "cylinder", "mesh")


def pose(rng: np.random.Generator, place: np.ndarray) -> np.ndarray:
    result = np.eye(4)
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    result[:3, :3], result[:3, 3] = q * np.linalg.det(q), place
    return result


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
