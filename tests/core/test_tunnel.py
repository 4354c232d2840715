"""Fast links do not pass through thin scenery, and what flies past it is not touched."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.cases import tunnel as cases


def seeds(few: int, all_of_them: int) -> list:
    """Some cases always, the others where slow tests are run."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, all_of_them))]


@pytest.mark.parametrize("seed", seeds(18, 120))
def test_nothing_passes_through_a_plate_of_a_centimetre(seed):
    """At up to 50 m/s a link moves two metres a frame; whatever it is, no end of its axis and no corner comes out."""
    case = cases.against(np.random.default_rng(seed), cases.PLATES[seed % 3])
    assert cases.depth(case, cases.run(case)) <= 0.01


@pytest.mark.parametrize("seed", seeds(24, 60))
def test_what_flies_past_the_edge_keeps_its_way(seed):
    """Looking ahead must not stop in mid-air what would have missed by a millimetre."""
    case = cases.past(np.random.default_rng(seed), cases.PLATES[seed % 3])
    assert not cases.deflected(case, cases.run(case, (0.0, 0.0, 0.0)))


def test_depth_and_deflection_are_seen():
    """A case without a plate falls through, and one under gravity is deflected: both would be counted."""
    case = cases.against(np.random.default_rng(0), "box")
    away = cases.Case(case.model, cases.plate("box", 59.0), case.state, case.frames, case.way)
    assert cases.depth(away, cases.run(away)) > 0.01
    case = cases.past(np.random.default_rng(0), "box")
    assert cases.deflected(case, cases.run(case))
