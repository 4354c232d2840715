"""Rigid zones of hybrid bodies against sums over their links."""

from __future__ import annotations

import numpy as np
import pytest
from test_activity import Body

from core import Joint, Link, compile_model
from core.activity import Activity
from core.kinematics import kinematics, link_poses, motions
from core.mechanisms import chain, random_coordinates, random_tree
from core.spatial import pose_inverse, rigid_inertia


def zone_of(parent: np.ndarray, active: np.ndarray, link: int) -> int:
    """By walking up."""
    while link >= 0 and link not in active:
        link = int(parent[link])
    return int(np.searchsorted(active, link)) if link >= 0 else -1


def inertia_at(body: Body, link: int, pose: np.ndarray) -> np.ndarray:
    """The inertia of a link at `pose`, from its mass, center of mass and moments about that."""
    model, turn = body.model, pose[:3, :3]
    mass, center = model.mass[link], model.center[link]
    about = model.inertia[link, :3, :3] - mass * ((center @ center) * np.eye(3) - np.outer(center, center))
    return rigid_inertia(mass, turn @ center + pose[:3, 3], turn @ about @ turn.T)


@pytest.mark.parametrize("seed", range(20))
def test_zones_are_the_links_between_active_joints(seed):
    """Masses, places and parents of zones, while joints move and come to rest: what a reduced model is made of."""
    body = Body(seed)
    activity, model = body.activity(), body.model
    for _ in range(4):
        body.move()
        body.q = model.coordinates.integrate(body.q, body.v, 0.3)
        activity.moved(body.links, body.q)
        if body.rng.random() < 0.5:
            activity.accelerations(*body.given(), threshold=1.0)
        active = np.sort(body.some())
        zones = activity.zones(active)
        poses = np.concatenate((link_poses(model, body.q)[0][model.assembly.slot], np.eye(4)[None]))
        assert (zones.links == active).all()
        roots = pose_inverse(np.concatenate((poses[active], np.eye(4)[None])))
        expected = np.zeros((len(active) + 1, 6, 6))
        for link in range(model.n):
            zone = zone_of(model.parent, active, link)
            expected[zone] += inertia_at(body, link, roots[zone] @ poses[link])
        scale = np.abs(expected).max()
        assert np.abs(zones.inertia - expected[:-1]).max(initial=0.0) < 1e-11 * scale
        # the world's own zone is summed from its pieces
        assert (zones.zone < len(active)).all()
        for k, link in enumerate(active.tolist()):
            host = int(model.parent[link])
            assert zones.parent[k] == zone_of(model.parent, active, host)
            assert zones.parent[k] < k
            placed = roots[zones.parent[k]] @ poses[host] @ model.placement[link]
            assert np.abs(zones.placement[k] - placed).max() < 1e-11
        tops = activity.partition.link[activity.partition.top[zones.piece]]
        for k, top in enumerate(tops.tolist()):
            assert zones.zone[k] == (zone_of(model.parent, active, top) if top < model.n else -1)
            assert np.abs(zones.pose[k] - roots[zones.zone[k]] @ poses[top]).max() < 1e-11


def test_a_joint_stands_in_for_half_of_what_rests_on_either_side():
    """Literal: of ten like hinges with dampers of 0.5 N m s/rad the 3rd and the 8th are active."""
    linkage = chain(10, damping=0.5)
    for link in linkage.links():
        link.rotation = np.eye(3)
    zones = Activity(compile_model(linkage)).zones([2, 7])
    # two joints at rest before the first, four between them, and two after the last, where no other is
    assert zones.mobility == pytest.approx([0.5 * (2 + 4) / 0.5, 0.5 * 4 / 0.5])


def test_links_bend_with_the_nearest_joint_that_stands_in_for_theirs():
    """Literal: a chain of ten whose 3rd and 8th joints are active, with a leaf on its 5th link."""
    linkage = chain(10)
    linkage.add(Link("leaf", Joint("hinge"), mass=0.1), linkage["link.4"])
    model = compile_model(linkage)
    names, bends = model.names, Activity(model).zones([model.number["link.2"], model.number["link.7"]]).bend_of
    bend = dict(zip(names, bends(np.arange(model.n)).tolist()))
    # before the first it is half way from the world; the last part and the leaf are on no way
    assert [bend[f"link.{i}"] for i in range(2, 8)] == [0, 0, 0, 1, 1, 1]
    assert bend["link.1"] == 0
    alone = [bend[name] for name in ("link.0", "link.8", "link.9", "leaf")]
    assert len(set(alone)) == 4 and min(alone) > 1


@pytest.mark.parametrize("seed", range(12))
def test_joints_stand_in_for_those_on_the_way_to_the_next(seed):
    """Against a walk up from every active joint; what rests aside of such a way, or has a spring, does not count."""
    rng = np.random.default_rng(seed)
    linkage = random_tree(40, seed, kinds=("hinge", "universal", "spherical", "fixed"), branching=0.3)
    model = compile_model(linkage)
    object.__setattr__(model, "damping", rng.uniform(0.1, 2.0, model.nv))
    object.__setattr__(model, "stiffness", np.where(rng.random(model.nv) < 0.2, 1.0, 0.0))
    activity, c = Activity(model), model.coordinates
    q, _ = random_coordinates(linkage, rng)
    activity.place(q)
    kin, slot = kinematics(model, q), model.assembly.slot
    turns = [motions(model, kin, row).links[slot, :3] for row in np.eye(model.nv)]

    def axis(freedom: int, link: int) -> np.ndarray:
        host = int(model.parent[link])
        return turns[freedom][link] - (turns[freedom][host] if host >= 0 else 0.0)

    def rates(link: int) -> np.ndarray:
        own = [f for f in range(c.v_start[link], c.v_start[link + 1]) if model.stiffness[f] == 0.0]
        return sum((np.outer(axis(f, link), axis(f, link)) / model.damping[f] for f in own), np.zeros((3, 3)))

    movable = np.flatnonzero(np.diff(c.v_start))
    active = np.sort(rng.choice(movable, 6, replace=False))
    total, below = {link: np.zeros((3, 3)) for link in active.tolist()}, {link: set() for link in active.tolist()}
    for link in active.tolist():
        way, above = [], int(model.parent[link])
        while above >= 0 and above not in active:
            way.append(above)
            above = int(model.parent[above])
        total[link] += 0.5 * sum((rates(each) for each in way), np.zeros((3, 3)))
        if above >= 0:
            below[above].update(way)
    expected = []
    for link in active.tolist():
        total[link] += 0.5 * sum((rates(each) for each in below[link]), np.zeros((3, 3)))
        own = [axis(f, link) for f in range(c.v_start[link], c.v_start[link + 1])]
        expected += [a @ total[link] @ a for a in own]
    assert activity.zones(active).mobility == pytest.approx(expected, rel=1e-9, abs=1e-9)
