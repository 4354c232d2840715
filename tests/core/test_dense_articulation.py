"""Blocks of links solved at once, and the crown of the tree, against the exact method and against the tree alone."""

from __future__ import annotations

import numpy as np
import pytest
from test_error_queue import PapersQueue, linkage_of
from test_inverse import closed_tree

import core.dense_articulation
from core.dynamics import closed_dynamics
from core.error_queue import Descent, Measure
from core.kinematics import link_poses
from core.linkage import Linkage
from core.mechanisms import chain, random_coordinates, random_tree
from core.model import Model, State, compile_model
from core.partition import partition
from core.quasi_statics import QuasiStatics

KINDS = ("hinge", "prismatic", "universal", "spherical", "free", "fixed")


def exact(model: Model, q: np.ndarray, **given) -> np.ndarray:
    return closed_dynamics(model, State(q, np.zeros(model.nv)), **given)[0]


def tree(seed: int, count: int = 50) -> Linkage:
    return random_tree(count, seed, kinds=KINDS, branching=0.4, drives=True)


@pytest.mark.parametrize("most", [1, 2, 5, 12, 40])
@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_connected_sets_of_links_of_bounded_size(seed, most):
    """A block is a node like others: what is around it touches its top and its tip alone."""
    parent = compile_model(tree(seed)).parent
    freedoms = np.random.default_rng(seed).integers(0, 7, len(parent))
    p = partition(parent, 3, freedoms, most)
    members = [row[row < p.leaves].tolist() for row in p.members]
    assert sorted(leaf for some in members for leaf in some) == list(range(p.leaves))
    for block, some in enumerate(members):
        assert (p.block[some] == block).all()
        assert (some[0], p.tip[block] in some) == (p.top[block], True)
        within = np.flatnonzero(p.owner[:-1] == block)
        assert len(within) == len(some) - 1
        assert sum(max(freedoms[j], 1) if j < p.n else 1 for j in within) <= most
        for j in within:
            assert some.index(p.joint_host[j]) < some.index(p.joint_child[j])
    for j in np.flatnonzero(p.owner[:-1] >= p.blocks):
        assert p.joint_child[j] == p.top[p.block[p.joint_child[j]]]
        assert p.joint_host[j] == p.tip[p.block[p.joint_host[j]]]


@pytest.mark.parametrize("crown", [1, 3, 24])
@pytest.mark.parametrize("most", [0, 1, 4, 10, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_after_many_partial_steps_any_size_of_blocks_and_crown_is_exact(seed, most, crown, monkeypatch):
    """Blocks, nodes and the crown are updated lazily and apart: none must be left behind, whatever their sizes."""
    monkeypatch.setattr(core.dense_articulation, "CROWN", crown)
    linkage = tree(seed)
    model = compile_model(linkage)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, model.nv) if seed == 1 else None
    quasi = QuasiStatics(model, random_coordinates(linkage, seed)[0], weights=weights, most=most)
    world, driven = np.zeros((model.n, 6)), np.zeros(model.nv)
    for step in range(10):
        some = rng.choice(model.n, 2, replace=False)
        if step % 2:
            world[some] = rng.normal(size=(2, 6))
            quasi.apply(some, world[some])
        if step % 4 == 1:
            freedoms = slice(*model.coordinates.v_start[some[0] : some[0] + 2])
            driven[freedoms] = rng.normal(size=len(driven[freedoms]))
            quasi.actuate([some[0]], driven[freedoms])
        quasi.measure = list(Measure)[step % 4]
        quasi.step(0.3, 0.01)
    poses = link_poses(model, quasi.q)[0][model.assembly.slot]
    assert np.abs(quasi.world_poses(np.arange(model.n)) - poses).max() < 1e-12
    expected = exact(model, quasi.q, wrenches=world, forces=driven)
    assert np.abs(quasi.solve(0.0).dense() - expected).max() < 1e-9 * max(1.0, np.abs(expected).max())
    total = expected @ (expected if weights is None else weights * expected)
    assert quasi._descent.computed == pytest.approx(total, rel=1e-9)
    # the tree alone says the same
    root, _ = quasi.articulation.total(np.array([quasi.partition.root]), np.zeros((1, 12)))
    assert root[0] == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("most", [0, 3, 8])
@pytest.mark.parametrize("measure", Measure)
def test_from_a_crown_no_more_is_opened_than_by_the_papers_queue(measure, most):
    """The crown is opened by what it shows below it: it must not open what the queue would leave closed."""
    for seed in range(2, 30):
        linkage, closed = linkage_of(seed)
        model = compile_model(linkage)
        rng = np.random.default_rng(seed)
        q = model.coordinates.zero() if closed else random_coordinates(linkage, rng)[0]
        quasi = QuasiStatics(model, q, gravity=np.zeros(3), measure=measure, most=most, arity=2 + seed % 3)
        quasi.apply([int(rng.integers(model.n))], rng.normal(size=(1, 6)))
        whole = float(np.linalg.norm(quasi.solve(0.0).values))
        for share in (0.5, 0.1, 1e-3):
            threshold = share * (whole if "absolute" in measure.value else 1.0)
            quasi._descent = None
            result = quasi.solve(threshold)
            opened = {int(j) for joints in quasi._descent.joints for j in joints}
            assert set(result.links.tolist()) <= opened <= PapersQueue(quasi).run(threshold, measure) | {model.n}


@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_out_counts_in_the_error(seed, measure):
    """Joints of an open node that are too small to matter are not moved: the bound must know."""
    linkage = tree(seed)
    model = compile_model(linkage)
    q = random_coordinates(linkage, seed)[0]
    truth = exact(model, q)
    groups = np.repeat(np.arange(model.n), np.diff(model.coordinates.v_start))
    quasi = QuasiStatics(model, q, measure=measure)
    for threshold in (0.3, 1e-2):
        scale = np.abs(truth).max() if "absolute" in measure.value else 1.0
        result = quasi.solve(threshold * scale)
        left_out, every = (np.bincount(groups, x * x, model.n) for x in (truth - result.dense(), truth))
        size = np.sum if "linkage" in measure.value else np.max
        error = np.sqrt(size(left_out) / (1.0 if "absolute" in measure.value else size(every)))
        assert error <= result.error * (1 + 1e-9) + 1e-9
        assert result.error <= threshold * scale
        owners = quasi.partition.owner[result.links]
        assert set(quasi.partition.ancestors(owners)) | set(owners) == set(result.nodes)


def test_only_what_matters_is_moved_of_an_open_block():
    """A block is opened as a whole, but a far joint that would not move visibly stays where it is."""
    model = compile_model(chain(24))
    quasi = QuasiStatics(model, gravity=np.zeros(3), most=100)
    quasi.apply([23], [[0.0, 0.0, 0.0, 1.0, 1.0, 0.0]])
    result = quasi.solve(0.1)
    assert quasi.partition.blocks == 1
    assert sum(len(joints) for joints in quasi._descent.joints) == 24
    assert 0 < len(result.links) < 10
    assert np.abs(result.dense()).max() == np.abs(quasi.solve(0.0).dense()).max()


@pytest.mark.parametrize("most", [0, 2, 6])
def test_loops_pull_at_links_within_blocks(most):
    """The rows of a loop are wrenches anywhere in a block, also where the world is its top."""
    for seed in range(1, 5):
        model = compile_model(closed_tree(seed))
        quasi = QuasiStatics(model, most=most)
        for _ in range(5):
            expected = exact(model, quasi.q)
            assert np.abs(quasi.solve(0.0).dense() - expected).max() < 1e-7 * max(1.0, np.abs(expected).max())
            quasi.step(0.0, 0.02)


def test_a_descent_may_start_from_the_tree_while_a_crown_is_put_off():
    """What is put off is brought up to date when asked for, to the same answer."""
    model = compile_model(chain(300))
    quasi = QuasiStatics(model, gravity=np.zeros(3))
    quasi.apply([150], [[0.0, 0.0, 0.0, 1.0, 2.0, 0.0]])
    for _ in range(3):
        result = quasi.step(1e-3, 0.01)
    result = quasi.solve(1e-3)
    descent = Descent(quasi.articulation)
    descent.refine(1e-3, quasi.measure)
    plain = descent.trimmed(1e-3, quasi.measure, model.n)
    assert plain.links.tolist() == result.links.tolist()
    assert plain.values == pytest.approx(result.values, rel=1e-9)
    assert plain.error == pytest.approx(result.error, rel=1e-6)
