"""Contacts do not depend on where things were before."""

import numpy as np
import pytest

from core import Capsule, Plane
from core.collision import Collider
from core.spatial import exponential, pose, quaternion_matrix

LINKS = 8


def collider(**given) -> Collider:
    shapes = [[Capsule((0.0, 0.0, -0.1), (0.0, 0.0, 0.1), 0.03 + 0.005 * k)] for k in range(LINKS)]
    return Collider(shapes, (Plane(),), **given)


def placed(turn: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Poses (LINKS + 1, 4, 4) of links turned and placed so, and the world's."""
    return np.concatenate((pose(quaternion_matrix(exponential(turn)), place), np.eye(4)[None]))


def same(one, other) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("link", "other", "friction", "key", "point", "center", "normal", "gap")
    )


@pytest.mark.parametrize("stride", [1e-4, 3e-3, 0.05])
def test_what_was_near_before_changes_no_contact(stride):
    """Links that creep, run and jump, with and without sleepers, touch what they would if looked at for the first time:
    a simulation must not depend on what the same scene was used for before."""
    rng = np.random.default_rng(3)
    used = collider()
    turn, place = rng.uniform(-1.0, 1.0, (2, LINKS, 3))
    place *= 0.2
    found = 0
    for k in range(32):
        turn, place = turn + stride * rng.normal(size=(LINKS, 3)), place + stride * rng.normal(size=(LINKS, 3))
        place = np.clip(place, -0.3, 0.3)
        poses, margin = placed(turn, place), rng.uniform(0.0, 4.0 * stride, LINKS)
        travel = stride * rng.normal(size=(LINKS, 3)) if k % 3 else None
        still = np.append(rng.random(LINKS) < 0.4, True) if k % 4 == 0 else None
        contacts = used.contacts(poses, margin, still, travel)
        assert same(contacts, collider().contacts(poses, margin, still, travel))
        found += np.count_nonzero(contacts.other < LINKS)
    assert found > 30


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_motion_that_exploded_leaves_nothing_behind(bad):
    """A frame that ends in no numbers is taken again in shorter steps, with the same collider."""
    rng = np.random.default_rng(4)
    used = collider()
    poses = placed(rng.uniform(-1.0, 1.0, (LINKS, 3)), rng.uniform(-0.15, 0.15, (LINKS, 3)))
    wild = poses.copy()
    wild[2, :3, 3] = bad
    with np.errstate(all="ignore"):
        used.contacts(wild, 0.01)
        used.contacts(poses, np.full(LINKS, bad))
    contacts = used.contacts(poses, 0.01)
    assert same(contacts, collider().contacts(poses, 0.01))
    assert np.count_nonzero(contacts.other < LINKS)


def test_links_that_pass_through_each_other_do_so_at_once():
    """Pairs that start overlapping are taken out while the scene is in use."""
    poses = placed(np.zeros((LINKS, 3)), np.linspace(0.0, 0.3, LINKS)[:, None] * np.array([1.0, 0.0, 0.0]))
    used = collider()
    before = used.contacts(poses, 0.01)
    used.separate(np.array([[0, 1]]))
    after = used.contacts(poses, 0.01)
    pairs = [set(map(tuple, contacts.pairs(np.ones(len(contacts), bool)).tolist())) for contacts in (before, after)]
    assert (0, 1) in pairs[0]
    assert pairs[0] - pairs[1] == {(0, 1)}
