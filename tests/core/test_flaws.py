"""Meshes with flaws carry bodies all the same, and what cannot be touched is refused."""

from __future__ import annotations

import numpy as np
import pytest
from free_bodies import CORNERS, ON_LINKS, SIDES, bodies, cube, places, run, shape

from core.collision import Collider
from core.shape import Box, Mesh, Plane, Sphere
from core.simulation import Simulation


@pytest.mark.parametrize("flaw", ["open", "flat triangle", "self-intersecting"])
def test_bodies_rest_on_meshes_with_flaws(flaw):
    """Scenery is what the user has."""
    floor = CORNERS * (1.0, 1.0, 0.1), SIDES
    if flaw == "open":
        top = [triangle for triangle in SIDES if (CORNERS[triangle, 2] > 0).all()]
        floor = floor[0], np.array(top)
    elif flaw == "flat triangle":
        floor = np.append(floor[0], [[0.3, 0.2, 0.1]], axis=0), np.append(SIDES, [[8, 8, 1], [1, 3, 1]], axis=0)
    else:
        other = floor[0] @ np.array([[0.8, 0.6, 0.0], [-0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]) * (1.0, 1.0, 0.999)
        floor = np.append(floor[0], other, axis=0), np.append(SIDES, SIDES + 8, axis=0)
    for kind in ON_LINKS:
        model, state = bodies({"shapes": [shape(kind)], "at": (0.05, 0.1, 0.35)})
        simulation = run(model, state, 72, scenery=[Mesh(*floor)])
        assert places(simulation, "b0")[-1, 2] > 0.13
        assert simulation.trajectory.penetration.max() < 2e-3


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (lambda: Sphere(np.zeros(3), np.nan), "radius nan"),
        (lambda: Sphere(np.zeros(3), 0.1, friction=-0.1), "friction -0.1"),
        (lambda: Sphere(np.zeros(3), 0.1, restitution=1.1), "restitution 1.1"),
        (lambda: Box(np.zeros(3), np.array([1.0, np.nan, 1.0])), "half extents"),
        (lambda: Box(np.zeros(3), np.ones(3), np.full((3, 3), np.nan)), "rotation"),
        (lambda: Box(np.zeros(3), np.ones(3), np.diag([1.0, 1.0, -1.0])), "rotation"),
        (lambda: Box(np.zeros(3), 1.0), "half extents 1.0"),
        (lambda: Sphere(np.zeros(2), 0.1), r"center \[0. 0.\]"),
        (lambda: Sphere(np.zeros(3), None), "radius None"),
        (lambda: Sphere(np.zeros(3), 0.1, friction="much"), "friction much"),
        (lambda: Sphere(np.zeros(3), 0.1, layers=1.5), "layers 1.5"),
        (lambda: Plane(normal=np.zeros(3)), "no side"),
        (lambda: Mesh(np.eye(3)[:, :2], np.array([[0, 1, 2]])), r"vertices \(3, 2\)"),
        (lambda: Mesh(np.eye(3), np.array([[0.0, 1.0, 2.5]])), "whole numbers"),
        (lambda: Mesh(np.full((3, 3), np.nan), np.array([[0, 1, 2]])), "finite"),
        (lambda: Collider([[]], [Mesh(np.zeros((3, 3)), np.array([[0, 1, 2]]))]), "zero area"),
        (lambda: Simulation(bodies({"shapes": [cube(0.1)]})[0]), "b0"),
        (lambda: Simulation(bodies({"shapes": [Plane()]})[0]), "Plane"),
    ],
)
def test_what_cannot_be_touched_is_refused_in_one_line(wrong, line):
    """With what is wrong and what would be right."""
    with pytest.raises(ValueError, match=line) as caught:
        wrong()
    assert "\n" not in str(caught.value)
