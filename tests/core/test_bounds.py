"""Which boxes overlap is found exactly and fast, whatever their sizes."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.bounds import BoxTree, overlapping


def boxes(rng, count, spread=1.0, size=0.2):
    low = rng.uniform(-spread, spread, (count, 3))
    return low, low + rng.uniform(0.0, size, (count, 3))


def brute(low, high, other_low, other_high):
    hit = (low[:, None] <= other_high).all(axis=2) & (other_low <= high[:, None]).all(axis=2)
    return hit.nonzero()


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 64, 65, 600])
def test_tree_finds_exactly_the_overlapping_pairs(count):
    """A missed pair is a link that falls through the scenery."""
    rng = np.random.default_rng(count)
    low, high = boxes(rng, count)
    query_low, query_high = boxes(rng, 40, spread=1.2, size=0.5)
    query, box = BoxTree(low, high).near(query_low, query_high)
    expected = brute(query_low, query_high, low, high)
    assert np.array_equal(query, expected[0]) and np.array_equal(box, expected[1])


def test_tree_agrees_with_brute_force_on_grids_of_ties():
    """Walls and steps share coordinates; touching counts as overlap, and equal boxes do not hide each other."""
    corner = st.tuples(*[st.integers(-4, 4)] * 3, *[st.sampled_from([0, 0, 1, 3, 4000])] * 3)

    @settings(max_examples=150)
    @given(st.lists(corner, min_size=0, max_size=70), st.lists(corner, min_size=0, max_size=9))
    def check(scenery, queries):
        scenery, queries = (np.array(rows, dtype=float).reshape(-1, 6) for rows in (scenery, queries))
        low, high = scenery[:, :3], scenery[:, :3] + scenery[:, 3:]
        query_low, query_high = queries[:, :3], queries[:, :3] + queries[:, 3:]
        expected = brute(query_low, query_high, low, high)
        found = BoxTree(low, high).near(query_low, query_high)
        assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])
        i, j = brute(low, high, low, high)
        first, second = overlapping(low, high)
        assert np.array_equal(first, i[i < j]) and np.array_equal(second, j[i < j])

    check()


def test_nothing_overlaps_with_nothing():
    """Scenes without scenery and frames without links are normal."""
    none = np.empty((0, 3))
    assert [len(x) for x in BoxTree(none, none).near(np.zeros((1, 3)), np.ones((1, 3)))] == [0, 0]
    assert [len(x) for x in BoxTree(np.zeros((1, 3)), np.ones((1, 3))).near(none, none)] == [0, 0]
    assert [len(x) for x in overlapping(none, none)] == [0, 0]
    assert [len(x) for x in overlapping(np.zeros((1, 3)), np.ones((1, 3)))] == [0, 0]


def test_boxes_far_from_the_origin_are_swept_along_their_line():
    """A crowd far from the origin must not look as if it had no extent."""
    low = np.stack((np.arange(50) * 0.5 + 1e7, np.full(50, -1e7), np.zeros(50)), axis=1)
    i, j = overlapping(low, low + 0.6)
    assert np.array_equal(i, np.arange(49)) and np.array_equal(j, np.arange(1, 50))


def test_huge_boxes_do_not_spoil_the_tree_of_small_ones():
    """A ground of two triangles under a detailed mesh is the usual scene."""
    rng = np.random.default_rng(1)
    low, high = boxes(rng, 20_000, spread=10.0, size=0.1)
    huge = rng.integers(0, 20_000, 200)
    mixed_low, mixed_high = low.copy(), high.copy()
    mixed_low[huge], mixed_high[huge] = (-1e3, -1e3, 20.0), (1e3, 1e3, 21.0)
    query_low, query_high = boxes(rng, 190, spread=10.0, size=0.2)

    def best(tree):
        times = []
        for _ in range(9):
            start = time.perf_counter()
            tree.near(query_low, query_high)
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(BoxTree(mixed_low, mixed_high)) < 3 * best(BoxTree(low, high))
