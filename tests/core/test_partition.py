"""The partition of a forest: every method that looks only where something happens stands on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.partition import PENDANTS, Partition, partition


def forest(name: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return {
        "chain": lambda: np.arange(-1, n - 1),
        "star": lambda: np.r_[-1, np.zeros(n - 1, dtype=int)],
        "forest": lambda: np.full(n, -1),
        "random": lambda: np.array([rng.integers(-1, i) for i in range(n)]),
        "binary": lambda: np.array([(i - 1) // 2 for i in range(n)]),
        "bushy": lambda: np.array([max(i - 1 - rng.integers(0, 4), -1) for i in range(n)]),
        "comb": lambda: np.array([i - 1 if i % 2 else i - 2 for i in range(n)]).clip(-1),
    }[name]()


FORESTS = ("chain", "star", "forest", "random", "binary", "bushy", "comb")


def leaves_within(p: Partition, node: int) -> list[int]:
    """By walking down, without the partition's own queries."""
    if node < p.leaves:
        return [node]
    return [leaf for c in p.child[node - p.leaves] if c < p.nodes for leaf in leaves_within(p, int(c))]


def check(parent: np.ndarray, arity: int) -> None:
    p = partition(parent, arity)
    n = len(parent)
    within = {node: leaves_within(p, node) for node in range(p.nodes)}
    assert sorted(within[p.root]) == list(range(p.leaves))
    # joints between links are the forest's, further ones join parts of one link
    assert [p.link[p.joint_child[i]] for i in range(n)] == list(range(n))
    assert [p.link[p.joint_host[i]] for i in range(n)] == np.where(parent < 0, n, parent).tolist()
    further = np.arange(n, p.joints)
    assert (p.link[p.joint_child[further]] == p.link[p.joint_host[further]]).all()
    assert np.bincount(p.link, p.share, n + 1) == pytest.approx(np.ones(n + 1), abs=1e-12)
    assert sorted(p.joint[p.joint < p.joints].tolist()) == list(range(p.joints))
    for node in range(p.leaves, p.nodes):
        row = node - p.leaves
        children = [int(c) for c in p.child[row] if c < p.nodes]
        joints = [int(j) for j in p.joint[row] if j < p.joints]
        assert 2 <= len(children) == len(joints) + 1 and node > max(children)
        assert [p.parent[c] for c in children] == [node] * len(children)
        assert [p.position[c] for c in children] == list(range(len(children)))
        assert [p.owner[j] for j in joints] == [node] * len(joints)
        assert (p.top[node], p.tip[node]) == (p.top[children[0]], p.tip[children[p.tip_child[row]]])
        for k, j in enumerate(joints):
            assert p.joint_child[j] == p.top[children[k + 1]]
            assert p.joint_host[j] == p.tip[children[p.carrier[row, k]]]
        # what joins the node to the rest ends at its top and its tip alone
        inside = np.zeros(p.leaves + 1, dtype=bool)
        inside[within[node]] = True
        crossing = np.flatnonzero(inside[p.joint_child[:-1]] != inside[p.joint_host[:-1]])
        for j in crossing:
            assert p.joint_child[j] == p.top[node] if inside[p.joint_child[j]] else p.joint_host[j] == p.tip[node]
        assert sum(bool(inside[p.joint_child[j]]) for j in crossing) <= 1


@pytest.mark.parametrize("arity", [2, 3, 4, 8])
@pytest.mark.parametrize("name", FORESTS)
def test_nodes_are_connected_and_touched_at_two_links_only(name, arity):
    """Coefficients of fixed size describe a node only if nothing but its top and its tip meets the rest."""
    for n in (1, 2, 3, 7, 60):
        check(forest(name, n), arity)


@settings(max_examples=60)
@given(st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=40), st.integers(2, 6))
def test_any_forest_can_be_partitioned(draws, arity):
    """Rigs come in every shape."""
    check(np.array([int(x * (i + 1)) - 1 for i, x in enumerate(draws)]), arity)


@pytest.mark.parametrize("name", FORESTS)
def test_the_depth_grows_with_the_logarithm_of_the_size(name):
    """A step costs levels: a hub of thousands or a bush must not cost more of them than a chain does by a factor."""
    for n in (1000, 16000):
        binary, merged = partition(forest(name, n), 2), partition(forest(name, n))
        assert binary.levels <= 2.2 * np.log2(n)
        assert merged.levels <= 0.95 * binary.levels + 1
        assert partition(forest(name, n), 4).levels <= 0.55 * binary.levels + 1
        assert merged.leaves <= (n + 1) * (1 + 1 / PENDANTS) + 1


def test_ancestors_are_what_climbing_finds():
    """A lazy update that misses one ancestor leaves wrong coefficients for ever."""
    p = partition(forest("random", 300))
    rng = np.random.default_rng(2)
    for count in (0, 1, 5, 40):
        some = rng.choice(p.nodes, count, replace=False)
        climbed = set()
        for node in some.tolist():
            while p.parent[node] < p.nodes:
                node = int(p.parent[node])
                climbed.add(node)
        found = p.ancestors(some)
        assert found.tolist() == sorted(climbed)
        levels = list(p.by_level(found))
        assert [node for level in levels for node in level.tolist()] == sorted(climbed)
        for level in levels:
            assert not np.isin(p.parent[level], level).any()


def test_an_arity_of_one_is_refused():
    """A node of one child joins nothing; the recursion would not end."""
    with pytest.raises(ValueError, match="arity is 1; give at least 2"):
        partition(np.array([-1]), 1)
