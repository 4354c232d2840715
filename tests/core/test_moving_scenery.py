"""Scenery that moves carries what lies on it: platforms and conveyors."""

from __future__ import annotations

import numpy as np
import pytest
from free_bodies import CORNERS, bodies, cube, places, run

from core.joint import Joint
from core.linkage import Link, Linkage
from core.model import State, compile_model
from core.motion import Follower, Motion
from core.shape import Box, Capsule, Hull, Mesh, Sphere
from core.simulation import Simulation


def ride(platform, path: np.ndarray, passenger: list, at: tuple, **settings) -> Simulation:
    """A free body on a keyed link that goes along a path (frames, 3)."""
    model, state = bodies({"shapes": [platform], "keyed": True}, {"shapes": passenger, "at": at})
    poses = np.tile(np.eye(4), (len(path), 2, 1, 1))
    poses[:, model.names.index("b0"), :3, 3] = path
    motion = Motion(poses, 1 / 24)
    q, rider = Follower(model, motion).q[0].copy(), model.coordinates.q_start[model.names.index("b1")]
    q[rider : rider + 7] = state.q[rider : rider + 7]
    return run(model, State(q, state.v), len(path), motion=motion, **settings)


@pytest.mark.parametrize("platform", ["box", "mesh", "hull", "open mesh"])
@pytest.mark.parametrize("kind", ["box", "capsule", "hull"])
def test_a_platform_carries_what_lies_on_it(kind, platform):
    """By friction sideways, by its top upward, and no faster than itself."""
    half = np.array([2.0, 2.0, 0.2])
    floor = {"box": Box(np.zeros(3), half), "mesh": cube(half), "hull": cube(half, Hull)}.get(platform)
    floor = floor or Mesh(CORNERS[[1, 5, 7, 3]] * half, np.array([[0, 1, 2], [0, 2, 3]]))
    rider = {"box": Box(np.zeros(3), np.full(3, 0.1)), "hull": cube(0.1, Hull)}.get(kind)
    rider = rider or Capsule(np.array([0.0, -0.2, 0.0]), np.array([0.0, 0.2, 0.0]), 0.1)
    time = np.arange(72) / 24
    # asleep when it sets off
    gone = np.where(time > 1.5, 0.25 * (time - 1.5) ** 2, 0.0)
    for axis in ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)):
        simulation = ride(floor, gone[:, None] * axis, [rider], (0.0, 0.0, 0.3))
        path = places(simulation, "b1")
        assert simulation.trajectory.substeps[30] == 0
        np.testing.assert_allclose(path[-1], (0, 0, 0.3) + gone[-1] * np.array(axis), atol=1e-3)
        assert simulation.trajectory.penetration.max() < 1e-3


def test_a_ball_on_an_accelerating_platform_rolls_behind_it():
    """A solid ball on a plate that accelerates by a gains 2/7 a."""
    time = np.arange(48) / 24
    gone = 0.25 * time**2
    simulation = ride(
        Box(np.zeros(3), np.array([3.0, 3.0, 0.2])), gone[:, None] * (1.0, 0.0, 0.0),
        [Sphere(np.zeros(3), 0.1)], (0.0, 0.0, 0.3),
    )  # fmt: skip
    assert places(simulation, "b1")[-1, 0] == pytest.approx(2 / 7 * gone[-1], rel=0.02)


def test_a_conveyor_of_rollers_moves_what_lies_on_it():
    """A turning keyed link has a surface that moves, though it goes nowhere."""
    linkage = Linkage()
    for i in range(5):
        link = Link(f"roller{i}", Joint("free"), keyed=True, shapes=[
            Capsule(np.array([-1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]), 0.1)
        ])  # fmt: skip
        linkage.add(link)
    linkage.add(Link("plank", Joint("free"), inertia=0.05 * np.eye(3), shapes=[
        Box(np.zeros(3), np.array([0.2, 0.4, 0.05]))
    ]))  # fmt: skip
    model = compile_model(linkage)
    poses = np.tile(np.eye(4), (49, model.n, 1, 1))
    angle = -2.0 * np.arange(49) / 24
    for i in range(5):
        own = poses[:, model.names.index(f"roller{i}")]
        own[:, 1, 3] = 0.25 * i
        own[:, 1, 1] = own[:, 2, 2] = np.cos(angle)
        own[:, 2, 1], own[:, 1, 2] = np.sin(angle), -np.sin(angle)
    poses[:, model.names.index("plank"), :3, 3] = 0.0, 0.3, 0.15
    simulation = run(model, None, 25, motion=Motion(poses, 1 / 24))
    # rim speed 0.2 m/s towards +y, reached at once
    assert places(simulation, "plank")[-1, 1] - 0.3 == pytest.approx(0.2, abs=0.02)
