"""Things that lie and stand stay where they are: stacks, a pyramid, a box on an incline, an arch."""

from __future__ import annotations

import numpy as np
import pytest

from core.mechanisms_piled import arch, block, pyramid, stack, stone
from core.shape import Box, Mesh, Plane
from scripts.cases import stacks as cases

SQUARE = np.array([(-3, -3, 0), (3, -3, 0), (3, 3, 0), (-3, 3, 0)], dtype=float)
GROUNDS = {
    "plane": Plane(),
    "box": Box(np.array([0.0, 0.0, -0.5]), np.array([3.0, 3.0, 0.5])),
    "mesh": Mesh(SQUARE, np.array([(0, 1, 2), (0, 2, 3)])),
}


@pytest.mark.parametrize("ground", GROUNDS)
def test_ten_boxes_rest_for_twenty_seconds(ground):
    """A pile that sinks or trembles shows in every shot it is in."""
    seen = cases.simulated(stack(np.ones(10)), 20.0, (GROUNDS[ground],))
    assert seen.drift <= 1e-3
    assert seen.speed <= 1e-3


def test_ten_boxes_rest_without_falling_asleep():
    """Sleeping must not be what keeps a stack up."""
    seen = cases.stepped(stack(np.ones(10)), 5.0)
    assert seen.drift <= 1e-3
    assert seen.speed <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("h", [1 / 24, 1 / 72, 1 / 240])
def test_ten_boxes_rest_for_twenty_seconds_without_falling_asleep(h):
    """Errors of one step, however long it is, must not add up."""
    seen = cases.stepped(stack(np.ones(10)), 20.0, h=h)
    assert seen.drift <= 1e-3
    assert seen.speed <= 1e-3


def test_box_on_a_steep_incline_does_not_creep():
    """Props left on a slope must be there in the last frame; tan 30° is 0.577, less than μ = 0.8."""
    seen = cases.on_incline(30.0, 0.8, 6.0)
    assert seen.creep <= 1e-5
    assert seen.drift <= 1e-4


def test_box_slides_where_friction_is_too_little():
    """g (sin 30° − μ cos 30°) t²/2 with μ = 0.5, so that what holds is friction and nothing else."""
    seen = cases.on_incline(30.0, 0.5, 1.0)
    assert seen.drift == pytest.approx(0.5 * 9.81 * (0.5 - 0.5 * np.sqrt(0.75)), rel=0.02)


@pytest.mark.parametrize("stones", [7, 9, 11])
def test_arch_of_links_stands(stones):
    """Stones that only lean on each other need friction and contacts that are exact together."""
    for seen in (cases.simulated(arch(stones), 10.0), cases.stepped(arch(stones), 4.0)):
        assert seen.drift <= 1e-3
        assert seen.speed <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("thickness", "stands"), [(0.15, True), (0.12, True), (0.10, False), (0.08, False)])
def test_arch_stands_exactly_if_it_is_thick_enough(thickness, stands):
    """Half a ring stands down to 0.107 of its radius (Heyman 1969): a thinner one that stood would be glued."""
    seen = cases.stepped(arch(21, thickness=thickness, friction=1.0), 3.0, (Plane(friction=1.0),))
    assert seen.drift <= 1e-3 if stands else seen.drift > 0.3


@pytest.mark.parametrize(
    "masses", [[1, 10, 100], [100, 10, 1], [1, 10] * 5, [1.0] * 9 + [10.0]], ids=["up", "down", "mixed", "load"]
)
def test_heavy_boxes_on_light_ones_do_not_sink(masses):
    """Where solvers that go from contact to contact fail; a person carries and is carried."""
    seen = cases.simulated(stack(masses), 5.0)
    assert seen.drift <= 1e-3
    assert seen.speed <= 1e-3


def test_boxes_that_start_a_millimetre_apart_come_to_rest():
    """A stack by hand is never exact: it drops by its gaps and stands."""
    seen = cases.simulated(stack(np.ones(10), gap=1e-3), 5.0)
    assert seen.drift == pytest.approx(0.01, abs=1e-4)
    assert seen.speed <= 1e-3


def test_pyramid_rests():
    """Every box stands on two."""
    seen = cases.simulated(pyramid(5), 5.0)
    assert seen.drift <= 1e-3
    assert seen.speed <= 1e-3


@pytest.mark.slow
def test_large_pyramid_rests_without_falling_asleep():
    """55 boxes, 400 contacts at once."""
    seen = cases.stepped(pyramid(10), 4.0)
    assert seen.drift <= 1e-3
    assert seen.speed <= 1e-3


def test_stones_weigh_what_they_are():
    """A brick made of triangles is a box: mass, center and inertia by two different formulas."""
    box = block("box", (0.1, 0.2, 0.3), mass=48.0)
    corners = np.array([(-1, 1, -1), (1, 1, -1), (1, 1, 1), (-1, 1, 1)]) * (0.1, 0.2, 0.3)
    corners = np.concatenate((corners, corners * (1, -1, 1))) + np.array([1.0, 2.0, 3.0])
    triangles = next(arch(7).links()).shapes[0].triangles
    brick = stone("brick", corners, triangles, density=1000.0)
    assert brick.mass == pytest.approx(48.0)
    np.testing.assert_allclose(brick.position, (1.0, 2.0, 3.0))
    np.testing.assert_allclose(brick.inertia, box.inertia, atol=1e-12)
