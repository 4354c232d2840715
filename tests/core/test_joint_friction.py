"""Dry friction in joints: it holds what is light enough for good, where damping lets it creep."""

from __future__ import annotations

import numpy as np
import pytest

from core.joint import Joint
from core.linkage import Link, Linkage
from core.model import State, compile_model
from core.simulation import Simulation

MASS, LEVER, INERTIA = 2.0, 0.5, 0.6
"""Of a bar that turns about one end: kg, m to its center and kg m² about the joint."""
LEVEL = MASS * 9.81 * LEVER
"""The torque that holds it level [N m]."""


def bar(friction: float, kind: str = "hinge", **joint: float) -> Linkage:
    """Hangs from the world; its hinge is along y, and with all coordinates zero it lies level along x."""
    linkage = Linkage()
    about = INERTIA - MASS * LEVER**2
    linkage.add(Link(
        "bar", Joint(kind, friction=friction, **joint), mass=MASS, center_of_mass=np.array([0.0, LEVER, 0.0]),
        inertia=np.diag([about, 0.05, about]), rotation=np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    ))  # fmt: skip
    return linkage


def run(linkage: Linkage, frames: int, v: list[float] | None = None, **options) -> Simulation:
    model = compile_model(linkage)
    state = None if v is None else State(model.rest_state().q, np.array(v))
    simulation = Simulation(model, state=state, **options)
    for _ in simulation.run(frames):
        pass
    return simulation


@pytest.mark.parametrize("kind", ["hinge", "spherical"])
def test_what_friction_holds_stays_and_sleeps(kind):
    """A hand that sinks for ten seconds never lets its body rest."""
    simulation = run(bar(1.05 * LEVEL, kind, damping=1.0), 97)
    path = simulation.trajectory
    # level, its tip is at the height of the joint
    assert np.abs(path.world[:, 0, 2, 1]).max() < 0.01
    assert path.substeps[-1] == 0


def test_what_is_heavier_than_friction_falls_with_the_rest_of_its_weight():
    """Friction takes off its torque, no more and no less: at first it falls at 0.7 of its own rate."""
    simulation = run(bar(0.3 * LEVEL), 2, frame_time=0.05, substeps=200)
    expected = 0.5 * 0.7 * LEVEL / INERTIA * 0.05**2
    assert abs(simulation.state.q[0]) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("speed", [3.0, -3.0])
def test_what_spins_loses_speed_evenly_and_stops(speed):
    """Damping would slow it ever more slowly; dry friction has it stand after I ω / M seconds."""
    friction = 0.9
    whole = INERTIA * 3.0 / friction
    simulation = run(bar(friction), 73, [speed], gravity=(0.0, 0.0, 0.0), substeps=10)
    v = simulation.trajectory.v[:, 0] * np.sign(speed)
    time = np.arange(73) / 24
    assert v == pytest.approx(np.maximum(3.0 - friction / INERTIA * time, 0.0), abs=0.03)
    assert v[time > whole + 0.1].max() < 2e-3
    assert (np.diff(simulation.trajectory.energy) <= 1e-12).all()


def test_friction_of_a_ball_joint_has_no_favourite_direction():
    """A box of friction about the joint's axes would turn the spin toward the nearest of them."""
    spin = np.array([0.8, 0.0, 2.4])
    simulation = run(bar(0.5, "spherical"), 7, list(spin), gravity=(0.0, 0.0, 0.0), substeps=10)
    v = simulation.state.v
    assert v / np.linalg.norm(v) == pytest.approx(spin / np.linalg.norm(spin), abs=1e-6)
    assert np.linalg.norm(v) == pytest.approx(np.linalg.norm(spin) - 0.5 / INERTIA * 0.25, rel=0.01)
