"""Rigid zones of hybrid bodies against sums over their links."""

from __future__ import annotations

import numpy as np
import pytest
from test_activity import Body

from core.kinematics import link_poses
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
