"""Independent parts of the constraint problem are found, and solved apart as they would be together."""

import numpy as np
import pytest

from core.friction import Moments, solve
from core.islands import islands, solve_islands


def test_islands_of_a_few_trees():
    """Trees 0 and 3 touch each other, 1 only the ground, and what no tree answers to joins the first."""
    trees = np.array([[0, -1], [1, -1], [3, 0], [-1, -1], [-1, 3]])
    assert islands(trees).tolist() == [0, 1, 0, 0, 0]
    assert islands(np.array([[2, 2], [2, -1], [-1, -1]])).tolist() == [0, 0, 0]
    assert islands(np.array([[5, -1], [2, 2]])).tolist() == [1, 0]
    assert islands(np.empty((0, 2), int)).shape == (0,)
    assert islands(np.array([[-1, -1]])).tolist() == [0]


@pytest.mark.parametrize("seed", range(10))
def test_islands_are_connected_components(seed):
    """Against the textbook's search, on graphs from scattered to one long chain."""
    rng = np.random.default_rng(seed)
    trees = rng.integers(-1, 40, (rng.integers(1, 60), 2))
    if seed == 0:
        trees = np.column_stack((np.arange(40), np.arange(1, 41)))[rng.permutation(40)]
    label = islands(trees)
    group = {tree: {tree} for tree in range(41)}
    for a, b in trees[(trees >= 0).all(axis=1)].tolist():
        for tree in group[a] | group[b]:
            group[tree] = group[a] | group[b] | group[tree]
        for tree in group[a]:
            group[tree] = group[a]
    held = trees.max(axis=1)
    for i in np.flatnonzero(held >= 0):
        for j in np.flatnonzero(held >= 0):
            assert (label[i] == label[j]) == (held[j] in group[held[i]])
    assert set(label.tolist()) == set(range(label.max() + 1))


def apart(rng, parts):
    """A problem of `parts` islands, their limits, contacts and moments mixed, each with a unique solution."""
    contacts, limits = 3 * parts, 2 * parts
    of_contact, of_limit = rng.integers(parts, size=contacts), rng.integers(parts, size=limits)
    rolling, torsion = rng.permutation(contacts)[:parts], rng.permutation(contacts)[:parts]
    moments = Moments(rng.uniform(0.1, 0.3, parts), rolling, rng.uniform(0.1, 0.3, parts), torsion)
    row = np.concatenate((of_limit, of_contact.repeat(3), of_contact[rolling].repeat(2), of_contact[torsion]))
    half = rng.normal(size=(len(row), len(row)))
    G = half @ half.T / len(row) + 2.0 * np.eye(len(row))
    G *= row[:, None] == row
    friction = rng.uniform(0.1, 0.6, contacts)
    return G, rng.normal(size=len(row)), friction, np.concatenate((of_limit, of_contact)), limits, moments


@pytest.mark.parametrize("parts", [2, 9, 30])
def test_islands_have_the_impulses_of_one_big_problem(parts):
    """Nothing may change but the time; warm or not, with moments or without."""
    rng = np.random.default_rng(parts)
    G, u, friction, units, limits, moments = apart(rng, parts)
    island = islands(np.column_stack((units, np.full(len(units), -1))))
    whole, _ = solve(G, u, friction, limits=limits, moments=moments)
    split, outcome = solve_islands(G, u, friction, island, limits=limits, moments=moments)
    assert outcome.converged and outcome.residual <= 1e-6
    assert np.allclose(split, whole, atol=1e-6)
    again, outcome = solve_islands(G, u, friction, island, limits=limits, moments=moments, warm=split)
    assert outcome.iterations <= 1
    assert np.allclose(again, whole, atol=1e-6)
    end = limits + 3 * len(friction)
    plain, _ = solve_islands(G[:end, :end], u[:end], friction, island, limits=limits)
    assert np.allclose(plain, solve(G[:end, :end], u[:end], friction, limits=limits)[0], atol=1e-6)


def test_outcome_is_that_of_the_worst_island():
    """One island without a solution must not hide behind others that have one."""
    G = np.kron(np.eye(40), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    u = np.tile([-1.0, 2.0], 40)
    u[-2:] = -1.0
    impulses, outcome = solve_islands(G, u, np.empty(0), np.arange(40).repeat(2), limits=80)
    assert not outcome.converged
    assert outcome.residual > 0.1
    assert np.allclose(impulses[:20], np.tile([1.0, 0.0], 10))
