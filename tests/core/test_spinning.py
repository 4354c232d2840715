"""What spins fast: tops, chains that whirl and rods that roll, in the simulation's own steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.joint import Joint
from core.linkage import Linkage
from core.mechanisms import chain, frame_of, free_body, heavy_top, rod
from core.mechanisms_closed import place
from core.model import Model, State, compile_model
from core.shape import Plane
from core.simulation import Simulation
from core.smooth import Smooth, dormand_prince

WEIGHTLESS = np.zeros(3)


def moving(model: Model, v: np.ndarray) -> State:
    return State(model.coordinates.zero(), np.asarray(v, dtype=float))


def rolling(count: int) -> Linkage:
    """Rods in a row along y, joined by balls, the first of them free."""
    linkage, above = Linkage(), None
    for i in range(count):
        link = rod(f"rod.{i}", Joint("spherical" if i else "free"), length=0.5, radius=0.05, mass=2.0)
        link.shapes = [replace(shape, friction=0.6) for shape in link.shapes]
        frame = frame_of(along=np.array([0.0, 1.0, 0.0]), hinge=np.array([1.0, 0.0, 0.0]))
        above = place(linkage, link, np.array([0.0, 0.5 * i, 0.0]), frame, above)
    return linkage


@pytest.mark.parametrize("spin", [100.0, 150.0])
def test_a_fast_top_precesses_without_nodding(spin):
    """Lying level, it turns at m g l / (I₃ ω₃). In steps of 0.2 rad a slender one turns 5 % too fast: what its end
    leaves between two steps is small beside its spin, but not beside its weight."""
    model = compile_model(heavy_top())
    rate = 15.0 * 9.81 / (0.46875 * spin)
    simulation = Simulation(model, state=moving(model, [0.0, spin, rate]), frame_time=1 / 24)
    list(simulation.run(25))
    axis = simulation.trajectory.world[:, 0, :3, 1]
    turned = np.unwrap(np.arctan2(-axis[:, 0], axis[:, 1]))
    assert turned[-1] == pytest.approx(rate, rel=0.06)
    assert np.abs(axis[:, 2]).max() < 0.035


def test_a_rod_that_wobbles_keeps_its_energy_and_its_axis():
    """Without torque a slender body's axis goes round its momentum at a steady rate."""
    inertia, v = np.array([1.0, 0.05, 1.0]), np.array([3.0, 30.0, 0.0, 0.0, 0.0, 0.0])
    model = compile_model(free_body(inertia))
    simulation = Simulation(model, gravity=WEIGHTLESS, state=moving(model, v), substeps=8, frame_time=1 / 24)
    list(simulation.run(49))
    path = simulation.trajectory
    assert np.ptp(path.energy) < 0.01 * path.energy[0]
    momentum = inertia * v[:3]
    away = path.world[:, 0, :3, 1] @ momentum / np.linalg.norm(momentum)
    assert np.abs(away - momentum[1] / np.linalg.norm(momentum)).max() < 0.02


@pytest.mark.parametrize("seed", [1, 2])
def test_a_chain_that_whirls_goes_where_finer_integrators_lead_it(seed):
    model = compile_model(chain(5, "spherical", length=0.3, mass=1.0, horizontal=True))
    v = 8.0 * np.random.default_rng(seed).normal(size=model.nv)
    v[1::3] *= 3.0
    simulation = Simulation(model, gravity=WEIGHTLESS, state=moving(model, v), substeps=40, frame_time=1 / 24)
    list(simulation.run(7))
    there, _ = dormand_prince(Smooth(model, WEIGHTLESS), moving(model, v), 0.25, tolerance=1e-7)
    near, far = (simulation.system.poses(state)[model.assembly.slot[-1], :3, 3] for state in (simulation.state, there))
    assert np.linalg.norm(near - far) < 2e-3


@pytest.mark.parametrize("count", [2, 3])
def test_jointed_rods_that_roll_down_a_slope_gain_nothing(count):
    """They reach 154 rad/s, as pure rolling wants it: two thirds of g sin α for so long, over the radius."""
    model, slope = compile_model(rolling(count)), 0.5
    gravity = 9.81 * np.array([np.sin(slope), 0.0, -np.cos(slope)])
    floor = Plane(point=np.array([0.0, 0.0, -0.06]), friction=0.6)
    simulation = Simulation(model, gravity=gravity, scenery=[floor], frame_time=1 / 24)
    list(simulation.run(60))
    path = simulation.trajectory
    assert np.diff(path.energy).max() < 0.01
    assert np.abs(path.v[-1, :3]).max() == pytest.approx(154.0, rel=0.01)


def test_a_whip_without_damping_takes_few_steps_and_gains_nothing():
    """It cracks, and frames in steps too long for that explode at first: how fast they do tells nothing about how many
    steps they need. Believed, it took 5,900, most of them in frames of a thousand."""
    model = compile_model(chain(20, "spherical", length=0.1, mass=0.1, horizontal=True))
    simulation = Simulation(model, frame_time=1 / 24)
    list(simulation.run(37))
    path = simulation.trajectory
    assert path.substeps.max() >= 20 and len(path.step_seconds) < 2000
    assert np.diff(path.energy).max() < 5e-4 * 2.0 * 9.81 * 2.0
