"""The benchmark of impacts: closed forms in time, and many random impacts."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.cases import impacts as cases

CLOSED_FORMS = [cases.bounces, cases.slides, cases.inclines, cases.rolls, cases.glances, cases.rod]


@pytest.mark.parametrize("case", CLOSED_FORMS, ids=lambda case: case.__name__)
def test_simulations_keep_to_the_textbook(case):
    """An animator expects a ball to bounce and a block to slide as they do."""
    for name, (got, known) in case().items():
        assert got == pytest.approx(known, rel=1e-3, abs=1e-4), name


def test_random_impacts_gain_no_energy_and_leave_no_approach():
    """Rods and trees of up to 30 links, several contacts at once."""
    rng = np.random.default_rng(7)
    assert cases.random_rods(3000, rng) == (0, 0)
    assert cases.random_trees(60, rng) == (0, 0)


@pytest.mark.slow
def test_many_random_impacts_gain_no_energy_and_leave_no_approach():
    """What happens once in ten thousand impacts happens in every film."""
    rng = np.random.default_rng(8)
    assert cases.random_rods(50_000, rng) == (0, 0)
    assert cases.random_trees(3000, rng) == (0, 0)
