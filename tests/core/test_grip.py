"""Grips: held links go where hands are, at any stiffness and step, and on hybrid bodies too."""

from __future__ import annotations

import numpy as np
import pytest

from core.adaptive import Adaptive
from core.grip import Grip
from core.linkage import LinkageError
from core.mechanisms import chain, free_body, humanoid
from core.model import compile_model
from core.shape import Plane
from core.simulation import Simulation
from core.spatial import exponential, logarithm, matrix_quaternion, quaternion_matrix

STILL = np.zeros(3)


def at(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def floating(rate: float, substeps: int, **springs):
    """A free body of 1 kg without gravity, whose hand is at x = 1, and its grip's aim."""
    simulation = Simulation(compile_model(free_body()), gravity=STILL, frame_time=1 / rate, substeps=substeps)
    aim = simulation.hold(Grip("body", freedoms=springs.pop("freedoms", 3)))
    aim.pose = at(1.0)
    for name, values in springs.items():
        setattr(aim, name, np.array(values))
    return simulation, aim


def test_a_held_body_swings_like_a_mass_on_a_damped_spring():
    """The closed form: m ẍ = -k (x - 1) - c ẋ, from rest at 0."""
    k, c, frames = 40.0, 2.0, 60
    simulation, _ = floating(60, 40, stiffness=(k, 0.0), damping=(c, 0.0))
    w, s = np.sqrt(k - c * c / 4), c / 2
    for frame in simulation.run(frames):
        t = frame / 60
        expected = 1.0 - np.exp(-s * t) * (np.cos(w * t) + s / w * np.sin(w * t))
        assert simulation.state.q[4] == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("rate", [10, 30, 120])
@pytest.mark.parametrize("stiffness", [1.0, 1e3, 1e6, 1e10])
def test_no_spring_is_too_stiff_for_a_step(rate, stiffness):
    """A hand may ask for any stiffness while the machine may be slow: a step must come nearer, never beyond by much."""
    simulation, _ = floating(rate, 1, stiffness=(stiffness, 0.0), damping=(2 * np.sqrt(stiffness), 0.0))
    places = [simulation.state.q[4] for _ in simulation.run(300)]
    assert max(places) < 1.01
    assert np.diff(places).min() > -0.01
    if stiffness * 300 / rate > 300:
        assert places[-1] == pytest.approx(1.0, abs=0.05)


def test_a_moving_hand_is_followed_between_its_messages():
    """Hands are told of as they were; they go on moving while a frame is computed."""
    simulation, aim = floating(30, 8, stiffness=(1e4, 0.0), damping=(200.0, 0.0))
    aim.velocity, aim.pose = np.array([0.3, 0.0, 0.0]), at(0.0)
    for _ in simulation.run(60):
        aim.pose, aim.time = at(0.3 * simulation.state.time), simulation.state.time
    assert simulation.state.q[4] == pytest.approx(0.3 * simulation.state.time, abs=2e-3)
    assert simulation.state.v[3] == pytest.approx(0.3, abs=2e-3)


def test_grips_of_six_freedoms_turn_and_others_do_not():
    """A mouse pulls; a device whose handle turns does both."""
    turned = exponential(np.array([0.3, -0.5, 0.9]))
    for freedoms in (3, 6):
        simulation, aim = floating(60, 4, freedoms=freedoms, stiffness=(100.0, 300.0), damping=(20.0, 50.0))
        aim.pose[:3, :3] = quaternion_matrix(turned)
        list(simulation.run(200))
        off = logarithm(matrix_quaternion(simulation.moving("body")[0][:3, :3] @ aim.pose[:3, :3].T))
        if freedoms == 6:
            assert np.abs(off).max() < 1e-3
        else:
            assert np.abs(simulation.state.q[1:4]).max() < 1e-12


def test_a_pull_beside_the_center_turns_the_body():
    """The grip is at a point of the link: that is what comes to the hand, and the center does not."""
    simulation = Simulation(compile_model(free_body()), gravity=STILL, frame_time=1 / 60, substeps=4)
    aim = simulation.hold(Grip("body", (0.0, 0.2, 0.0)))
    aim.pose, aim.stiffness, aim.damping = at(0.3, 0.1, 0.0), np.array([200.0, 0.0]), np.array([25.0, 0.0])
    list(simulation.run(400))
    pose, _ = simulation.moving("body")
    assert np.allclose(pose[:3, :3] @ [0.0, 0.2, 0.0] + pose[:3, 3], [0.3, 0.1, 0.0], atol=2e-3)
    assert abs(simulation.state.q[3]) > 5e-3


def drawn(adaptive: Adaptive | None, frames: int = 40) -> Simulation:
    """A hanging chain of 12 whose last link is drawn aside."""
    model = compile_model(chain(12, damping=0.02))
    simulation = Simulation(model, frame_time=1 / 60, substeps=4, adaptive=adaptive)
    aim = simulation.hold(Grip("link.11", (0.0, 0.05, 0.0)))
    aim.pose, aim.stiffness, aim.damping = at(0.5, 0.2, -0.8), np.array([80.0, 0.0]), np.array([4.0, 0.0])
    list(simulation.run(frames))
    return simulation


def test_hybrid_bodies_are_pulled_like_the_whole():
    """With all joints active the two methods are one; with a few the pulled ones are among these, and come."""
    whole, same, few = (drawn(how) for how in (None, Adaptive(threshold=0.0), Adaptive(joints=6)))
    assert np.abs(whole.state.q - same.state.q).max() < 1e-9
    ends = [simulation.moving("link.11")[0][:3, 3] for simulation in (whole, few)]
    assert np.linalg.norm(ends[0] - [0.0, 0.0, -1.1]) > 0.3
    assert np.linalg.norm(ends[0] - ends[1]) < 0.3
    assert few.system.activity()[0].sum() <= 6


def test_a_link_that_is_let_go_is_not_pulled_any_more():
    """After release it falls as if it had never been held."""
    simulation, _ = floating(60, 4, stiffness=(100.0, 0.0), damping=(1.0, 0.0))
    frames = simulation.run(1000)
    for _ in range(10):
        next(frames)
    simulation.release(simulation.world.grips.grips[0])
    velocity = simulation.state.v[3]
    for _ in range(20):
        next(frames)
    assert velocity > 0.5
    assert simulation.state.v[3] == pytest.approx(velocity, rel=1e-12)


def test_what_sleeps_wakes_when_it_is_held():
    """Whoever takes hold of a sleeping body wants it to move."""
    simulation = Simulation(compile_model(humanoid(damping=5.0)), scenery=[Plane()], frame_time=1 / 24)
    frames = simulation.run(1000)
    for _ in range(20):
        next(frames)
    memory = simulation.state.memory
    memory.asleep[simulation.model.assembly.slot] = 1
    simulation.hold(Grip("hand.L"))
    assert not simulation.state.memory.asleep.any()
    next(frames)
    assert not simulation.state.memory.asleep.any()


def test_what_cannot_be_held_is_refused_in_a_line():
    """Names come from a viewport, places from a ray."""
    simulation = Simulation(compile_model(free_body()))
    with pytest.raises(LinkageError, match="no link is called 'bodi'"):
        simulation.hold(Grip("bodi"))
    with pytest.raises(LinkageError, match="three finite numbers"):
        Grip("body", (0.0, np.nan, 0.0))
    with pytest.raises(LinkageError, match="give 3 or 6"):
        Grip("body", freedoms=4)
