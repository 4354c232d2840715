"""The large mechanisms: adaptive methods are judged on them, so they must be what they are called."""

from __future__ import annotations

import numpy as np
import pytest

from core.kinematics import link_poses
from core.mechanisms_large import (
    BOND,
    bicycle_chain,
    crowd,
    holes,
    millipede,
    molecule,
    pegs,
    pendulum_chain,
    snake,
    thread,
)
from core.model import Model, compile_model


def points(model: Model) -> np.ndarray:
    """The links' origins (n, 3) in the world, at rest."""
    return link_poses(model, model.coordinates.zero())[0][model.assembly.slot, :3, 3]


SIZES = {
    "bicycle": (bicycle_chain, 30, 30),
    "millipede": (lambda: millipede(20), 20 * 10 + 60, 20 * 10 + 60 + 5),
    "molecule": (lambda: molecule(200), 201, 206),
    "pendulum": (pendulum_chain, 200, 200),
    "thread": (thread, 301, 600),
    "snake": (snake, 500, 6 + 3 * 499),
    "crowd": (lambda: crowd(3), 3 * 19, 3 * 52),
}


@pytest.mark.parametrize("name", SIZES)
def test_they_have_the_sizes_that_are_asked_for(name):
    """A benchmark of 50,000 joints is one only if there are as many."""
    maker, links, freedoms = SIZES[name]
    model = compile_model(maker())
    assert (model.n, model.nv) == (links, freedoms)


@pytest.mark.slow
def test_the_papers_sizes_are_the_defaults():
    """The figures are set beside the paper's: 13,000 links of the millipede, 50,000 rotational joints."""
    assert len(list(millipede().links())) == 13_000
    kinds = [link.joint.kind for link in molecule().links()]
    assert kinds.count("hinge") == 50_000


def test_a_molecule_has_bonds_of_one_length_at_tetrahedral_angles_and_no_rings():
    """Locality of the answer comes from the shape: it must not come from a slip in the geometry."""
    model = compile_model(molecule(300, 3))
    poses = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
    atoms = (poses[:, :3, :3] @ model.center[:, :, None])[:, :, 0] + poses[:, :3, 3]
    host = model.parent[1:]
    bonds = atoms[1:] - atoms[host]
    assert np.linalg.norm(bonds, axis=1) == pytest.approx(BOND, abs=1e-12)
    assert np.abs(points(model)[1:] - atoms[host]).max() < 1e-12
    # hinge axes lie along the bonds, which meet at 109.47°
    assert np.abs(np.cross(poses[1:, :3, 0], bonds)).max() < 1e-12
    inner = np.flatnonzero(host > 0)
    cosine = (bonds[inner] * -bonds[host[inner] - 1]).sum(1) / BOND**2
    assert cosine == pytest.approx(-1.0 / 3.0, abs=1e-12)
    for atom in range(model.n):
        around = bonds[np.flatnonzero(host == atom)] / BOND
        assert len(around) <= 3
        for i in range(len(around)):
            assert around[:i] @ around[i] == pytest.approx(np.full(i, -1.0 / 3.0), abs=1e-9)


def test_the_same_seed_gives_the_same_molecule():
    """Runs are compared between machines."""
    a, b, c = (compile_model(molecule(50, seed)) for seed in (1, 1, 2))
    assert (a.placement == b.placement).all()
    assert not (a.placement == c.placement).all()


def test_a_millipede_has_legs_on_both_sides_in_equal_distances():
    """It walks on two rows of feet."""
    model = compile_model(millipede(8))
    first = [i for i, name in enumerate(model.names) if name.startswith("leg") and name.endswith(".0")]
    place = points(model)
    assert len(first) == 8
    assert place[first, 0] == pytest.approx(np.repeat(0.25 + 0.6 * np.arange(4), 2), abs=1e-12)
    feet = [i for i, name in enumerate(model.names) if name.startswith("leg") and name.endswith(".9")]
    assert sorted(np.sign(place[feet, 1])) == [-1] * 4 + [1] * 4
    assert (place[feet, 2] < -0.4).all()


def test_chains_are_connected_and_lie_as_described():
    """Scenery is placed around them."""
    assert points(compile_model(bicycle_chain(4)))[:, 0] == pytest.approx(0.0127 * np.arange(4), abs=1e-12)
    place = points(compile_model(snake(100)))
    steps = np.linalg.norm(np.diff(place, axis=0), axis=1)
    assert steps == pytest.approx(steps[0], abs=1e-12)
    assert np.hypot(place[:, 1], place[:, 2]) == pytest.approx(np.hypot(*place[0, 1:]), abs=1e-9)
    people = compile_model(crowd(4))
    pelves = points(people)[[i for i, name in enumerate(people.names) if name.startswith("pelvis")]]
    assert np.diff(pelves, axis=0) == pytest.approx(np.array([[2.5, 0, 0], [-2.5, 2.5, 0], [2.5, 0, 0]]), abs=1e-12)


def test_scenery_scales_with_the_chain():
    """Ten times as many links need obstacles in the same places relative to them."""
    for maker in (pegs, holes):
        small, large = maker(100), maker(1000)
        assert len(small) == len(large)
    assert pegs(1000)[0].start == pytest.approx(10 * pegs(100)[0].start, abs=1e-12)
