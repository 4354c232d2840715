"""Rows of many islands in few columns: the same products as with a column for each."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import Joint, Linkage, Plane, State, World, compile_model, constraints, packing, step
from core.mechanisms import rod
from core.mechanisms_large import crowd
from core.packing import Packing


@given(st.integers(0, 10_000))
def test_packed_products_are_those_of_single_columns(seed):
    """Islands of any sizes, slots that belong to none, in any order."""
    rng = np.random.default_rng(seed)
    islands = int(rng.integers(1, 6))
    island = np.concatenate((np.arange(islands), rng.integers(0, islands, rng.integers(0, 20))))
    rng.shuffle(island)
    slots = rng.integers(-1, islands, int(rng.integers(1, 30)))
    packing = Packing.of(island, slots)
    assert packing.width == np.bincount(island).max()
    rows = len(island)
    mine = slots[:, None] == island
    columns, pushes = (np.where(mine, rng.standard_normal((len(slots), rows)), 0.0) for _ in range(2))
    packed, pushed = (np.zeros((len(slots), packing.width)) for _ in range(2))
    for k in range(rows):
        packed[:, packing.column[k]] += columns[:, k]
        pushed[:, packing.column[k]] += pushes[:, k]
    x, impulses, which = rng.standard_normal(len(slots)), rng.standard_normal(rows), np.arange(len(slots))[::-1]
    assert np.abs(packing.along(packed, x) - x @ columns).max() < 1e-12
    assert np.abs(packing.together(packed, pushed) - columns.T @ pushes).max() < 1e-12
    assert np.abs(packing.spread(pushed[which], which, impulses) - pushes[which] @ impulses).max() < 1e-12


@given(st.integers(0, 10_000))
def test_products_of_many_slots_are_those_of_all(seed):
    """Blocks of slots in which no row acts are left out, whatever their number, and those of rows that do not."""
    rng = np.random.default_rng(seed)
    slots, rows = int(rng.integers(64, 1300)), int(rng.integers(1, 30))
    columns, pushes = np.zeros((slots, rows)), rng.standard_normal((slots, rows + 1))[:, 1:]
    for row in range(rows):
        columns[rng.integers(0, slots, rng.integers(0, 20)), row] = rng.standard_normal()
    with mock.patch.object(packing, "MANY", 0):
        together = Packing.none(rows).together(columns, pushes)
    np.testing.assert_allclose(together, columns.T @ pushes, atol=1e-12)


def pair_of_chains() -> Linkage:
    """Two chains of several clusters each, just above the ground."""
    linkage = Linkage()
    for side in (0.0, 2.0):
        link = None
        for index in range(26):
            piece = rod(f"{side}.{index}", Joint("spherical" if link else "free"), mass=0.1, length=0.1)
            piece.position = np.array([0.0, 0.1, 0.0]) if link else np.array([side, 0.0, 0.0102])
            link = linkage.add(piece, link)
    return linkage


@pytest.mark.parametrize(("maker", "steps", "speed"), [(lambda: crowd(4), 30, 0.5), (pair_of_chains, 4, 0.01)])
def test_a_crowd_moves_as_it_would_with_a_column_for_each_row(monkeypatch, maker, steps, speed):
    """People who land apart share columns, and so do chains with bases of clusters: nobody may feel it."""
    model = compile_model(maker())
    world = World(model, (Plane(),))
    start = State(model.coordinates.zero(), speed * np.random.default_rng(0).standard_normal(model.nv))

    def fallen() -> State:
        state = start
        for _ in range(steps):
            state = step(world, state, 1 / 240)
        return state

    shared = fallen()
    assert len(shared.memory.keys) > 40
    packed = constraints._packed
    monkeypatch.setattr(constraints, "_packed", lambda *given: Packing.none(len(packed(*given).column)))
    assert np.abs(fallen().v - shared.v).max() < 1e-9
