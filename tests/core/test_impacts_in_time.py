"""The benchmark of impacts: closed forms in time, and many random impacts; and several impacts within a step."""

from __future__ import annotations

import numpy as np
import pytest

from core.joint import Joint
from core.linkage import Link, Linkage
from core.model import State, compile_model
from core.shape import Box, Capsule, Plane, Sphere
from core.simulation import Simulation
from core.spatial import exponential, quaternion_matrix
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


@pytest.mark.parametrize("gap", [0.0, 0.001, 0.02])
@pytest.mark.parametrize("substeps", [None, 10, 100])
def test_the_last_ball_of_a_cradle_takes_all(gap, substeps):
    """Five elastic balls in a row: what is knocked on in a step hits the next in it, and pushes nothing back."""
    linkage = Linkage()
    for i in range(5):
        ball = Sphere(np.zeros(3), 0.1, restitution=1.0, friction=0.0)
        place = np.array([(0.2 + gap) * i - (0.5 if i == 0 else 0.0), 0.0, 0.0])
        linkage.add(Link(f"ball.{i}", Joint("free"), inertia=0.004 * np.eye(3), position=place, shapes=[ball]))
    model = compile_model(linkage)
    start = State(model.rest_state().q, np.eye(model.nv)[3] * 2.0)
    simulation = Simulation(model, gravity=np.zeros(3), state=start, substeps=substeps)
    list(simulation.run(20))
    speeds = simulation.state.v.reshape(5, 6)[:, 3]
    np.testing.assert_allclose(speeds, [0.0, 0.0, 0.0, 0.0, 2.0], atol=1e-6)


@pytest.mark.parametrize("seed", [1, 3, 17])
@pytest.mark.parametrize(
    "shape",
    [
        Capsule(np.array([-0.1, 0.0, 0.0]), np.array([0.1, 0.0, 0.0]), 0.06, friction=0.0),
        Box(np.zeros(3), np.array([0.12, 0.1, 0.06]), friction=0.0),
    ],
    ids=["capsule", "box"],
)
def test_what_tumbles_and_bounces_fully_keeps_its_energy(shape, seed):
    """An end that lands just after the other in one step is another impact, not the end of the first."""
    rng = np.random.default_rng(seed)
    turn = quaternion_matrix(exponential(rng.normal(size=3)))
    linkage = Linkage()
    body = Link("body", Joint("free"), inertia=np.diag([0.004, 0.005, 0.006]), shapes=[shape])
    body.position, body.rotation = np.array([0.0, 0.0, 0.4]), turn
    linkage.add(body)
    model = compile_model(linkage)
    start = State(model.rest_state().q, np.array([1.0, 2.0, 3.0, 0.3, 0.1, 0.0]))
    simulation = Simulation(model, scenery=[Plane(restitution=1.0, friction=0.0)], state=start)
    list(simulation.run(49))
    energy = simulation.trajectory.energy
    np.testing.assert_allclose(energy, energy[0], rtol=0.01)
