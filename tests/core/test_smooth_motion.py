"""Smooth motion: values that others have computed, orders of convergence, and what must stay constant."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from core.diagnostics import energy, momentum
from core.integration import World, step
from core.linkage import Linkage
from core.mechanisms import chain, free_body, heavy_top, humanoid, pendulum, random_coordinates, random_tree
from core.model import Model, State, compile_model
from core.simulation import Simulation
from core.smooth import rk4
from core.spatial import exponential

PENDULUM_PERIOD = 2.3678419475762
GRAVITY = np.array([0.0, 0.0, -9.81])
WEIGHTLESS = np.zeros(3)
TOP_SPIN = np.array([0.0, 150.0, -4.61538])

Stepper = Callable[[State, float], State]


def fourth_order(model: Model, gravity: np.ndarray = GRAVITY) -> Stepper:
    return lambda state, h: rk4(model, state, h, gravity=gravity)


def default(model: Model, gravity: np.ndarray = GRAVITY) -> Stepper:
    world = World(model, gravity=gravity)
    return lambda state, h: step(world, state, h)


def advance(stepper: Stepper, state: State, duration: float, steps: int) -> State:
    for _ in range(steps):
        state = stepper(state, duration / steps)
    return state


def moving(model: Model, *velocity: float) -> State:
    return State(model.rest_state().q, np.array(velocity, dtype=float))


def tip(state: State) -> np.ndarray:
    """Where the pendulum's point mass is in the plane (x, z)."""
    return np.array([-np.cos(state.q[0]), np.sin(state.q[0])])


def along(state: State) -> np.ndarray:
    """The world's direction (3,) of the y axis of a link whose quaternion comes first."""
    w, x, y, z = state.q[:4]
    return np.array([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)])


def crossing_times(times: np.ndarray, values: np.ndarray, rates: np.ndarray) -> list[float]:
    """When `values` cross zero, by inverse cubic Hermite interpolation, accurate to the fourth order of the step."""
    found = []
    for i in np.flatnonzero(values[:-1] * values[1:] < 0):
        (a, b), (ra, rb), span = values[i : i + 2], 1.0 / rates[i : i + 2], times[i + 1] - times[i]
        s = -a / (b - a)
        width = b - a
        found.append(times[i] + s * s * (3 - 2 * s) * span + width * (s * (1 - s) ** 2 * ra - s * s * (1 - s) * rb))
    return found


def test_pendulum_has_the_published_period():
    """IFToMM benchmark A01: the simplest mechanism against its elliptic integral."""
    model = compile_model(pendulum())
    state, stepper = model.rest_state(), fourth_order(model)
    for angle in (-np.pi / 2, -np.pi, -np.pi / 2, 0.0):
        state = advance(stepper, state, PENDULUM_PERIOD / 4, 250)
        assert state.q[0] == pytest.approx(angle, abs=1e-9)


def test_pendulum_is_where_the_benchmark_says_after_ten_seconds():
    """IFToMM benchmark A01, to the last published digit."""
    model = compile_model(pendulum())
    state = advance(fourth_order(model), model.rest_state(), 10.0, 1500)
    np.testing.assert_allclose(tip(state), (-0.27508746, -0.96141921), atol=5e-8)


def test_the_default_step_brings_the_pendulum_there_too():
    """The step that animators get meets the same value, at its own order."""
    model = compile_model(pendulum())
    state = advance(default(model), model.rest_state(), 10.0, 1200)
    np.testing.assert_allclose(tip(state), (-0.27508746, -0.96141921), atol=1e-6)


TOP_PLACES = {
    0.5: (-0.7024683, -0.0211652, -0.7114003),
    1.0: (0.17334396, 0.64008859, -0.74849079),
    2.0: (-0.15041682, -0.72416559, -0.67302227),
}


@pytest.mark.parametrize(
    ("durations", "rate", "tolerance"),
    [((0.5,), 3200, 2e-6), pytest.param(tuple(TOP_PLACES), 12800, 1e-7, marks=pytest.mark.slow)],
)
def test_heavy_top_is_where_the_benchmark_says(durations, rate, tolerance):
    """Brüls et al. 2012: fast spin and slow precession, which a sloppy treatment of rotations cannot follow."""
    model = compile_model(heavy_top())
    state = moving(model, *TOP_SPIN)
    assert energy(model, state) == pytest.approx(5435.696790866, abs=1e-6)
    stepper = fourth_order(model)
    for duration in durations:
        left = duration - state.time
        state = advance(stepper, state, left, round(left * rate))
        np.testing.assert_allclose(along(state), TOP_PLACES[duration], atol=tolerance)
        assert energy(model, state) == pytest.approx(5435.696790866, abs=100 * tolerance)


def test_dzhanibekov_body_flips_on_time():
    """A body that turns about its middle axis tumbles over at times known in closed form; errors grow exponentially."""
    model = compile_model(free_body((1.0, 2.0, 3.0)))
    state, stepper = moving(model, 0.01, 1.0, 0.01, 0.0, 0.0, 0.0), fourth_order(model, WEIGHTLESS)
    times, spins = [0.0], [state.v[:3]]
    while times[-1] < 52.0:
        state = stepper(state, 0.04)
        times.append(state.time)
        spins.append(state.v[:3])
    x, y, z = np.array(spins).T
    found = crossing_times(np.array(times), y, (3.0 - 1.0) / 2.0 * z * x)
    np.testing.assert_allclose(found, (10.91691349, 30.46978059, 50.02264769), atol=2e-6)
    assert found[2] - found[0] == pytest.approx(39.10573419728772, abs=1e-6)


def test_symmetric_top_precesses_steadily():
    """The textbook's balance I₁Ω²cosθ − I₃ω₃Ω + mgl = 0: lying level, a top turns at m g l / (I₃ ω₃)."""
    model = compile_model(heavy_top())
    rate = 15.0 * 9.81 / (0.46875 * 60.0)
    state, stepper, duration, steps = moving(model, 0.0, 60.0, rate), fourth_order(model), 0.5, 800
    for number in range(1, steps + 1):
        state = stepper(state, duration / steps)
        angle = rate * number * duration / steps
        np.testing.assert_allclose(along(state), (-np.sin(angle), np.cos(angle), 0.0), atol=1e-6)


SMOOTH = {
    "pendulum": pendulum,
    "chain": lambda: chain(5, length=0.5, mass=1.0, horizontal=True),
    "ball chain": lambda: chain(4, "spherical", length=0.5, mass=1.0, horizontal=True),
    "top": heavy_top,
    "all joints": lambda: random_tree(7, 11, branching=0.4, passive=False),
}
DAMPED = {
    "damped": lambda: random_tree(7, 11, branching=0.4),
    "driven": lambda: random_tree(7, 12, branching=0.4, drives=True),
}


@pytest.mark.parametrize("make", (SMOOTH | DAMPED).values(), ids=(SMOOTH | DAMPED).keys())
@pytest.mark.parametrize(("method", "order", "steps"), [(fourth_order, 4.0, 40), (default, 2.0, 80)])
def test_halving_the_step_divides_the_error_by_two_to_the_order(make, method, order, steps):
    """A step that has lost its order is wrong somewhere, however small its error looks."""
    model = compile_model(make())
    q, v = random_coordinates(make(), 4)
    start = State(q, v)
    ends = [advance(method(model), start, 0.25, steps * 2**k) for k in range(3)]
    errors = [np.abs(model.coordinates.difference(a.q, b.q)).max() for a, b in pairwise(ends)]
    assert np.log2(errors[0] / errors[1]) >= order - 0.3


@pytest.mark.parametrize("make", [SMOOTH["all joints"], DAMPED["driven"]])
def test_both_steps_converge_to_the_same_motion(make):
    """Order alone does not say that the limit is the right one."""
    model, start = compile_model(make()), State(*random_coordinates(make(), 4))
    exact = advance(fourth_order(model), start, 0.25, 128)
    coarse, fine = (advance(default(model), start, 0.25, steps) for steps in (256, 512))
    limit = model.coordinates.integrate(fine.q, model.coordinates.difference(coarse.q, fine.q), 1.0)
    last = np.abs(model.coordinates.difference(coarse.q, fine.q)).max()
    assert np.abs(model.coordinates.difference(exact.q, limit)).max() < last


@pytest.mark.parametrize("leaf_freedoms", [1, None])
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("equal", [True, False], ids=["equal springs", "unequal springs"])
def test_energy_changes_by_what_damping_takes(equal, seed, leaf_freedoms):
    """Reports judge a simulation by its energy: it must agree with the dynamics, springs of ball joints included."""
    linkage = random_tree(12, seed, drives=True)
    for link in linkage.links():
        if link.joint.kind == "spherical" and equal:
            link.joint.stiffness = 20.0
    model, start = compile_model(linkage, leaf_freedoms=leaf_freedoms), State(*random_coordinates(linkage, seed))
    h = 1e-4
    near, far = (energy(model, rk4(model, start, s)) - energy(model, rk4(model, start, -s)) for s in (h, 2 * h))
    lost = ((model.damping + model.drive_damping) * start.v**2).sum()
    assert (8 * near - far) / (12 * h) == pytest.approx(-lost, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_dynamics_alone_keep_momentum_in_free_flight(seed):
    """What only joints connect cannot push itself; checked on the fourth-order step, which corrects nothing."""
    linkage, start = thrown_humanoid(seed, damping=0.0)
    model = compile_model(linkage)
    before = momentum(model, start)
    drifts = [
        np.abs(momentum(model, advance(fourth_order(model, WEIGHTLESS), start, 0.1, steps)) - before).max()
        for steps in (20, 40)
    ]
    assert drifts[1] < 1e-4 * np.abs(before).max()
    assert drifts[1] < drifts[0] / 10


def thrown_humanoid(seed: int, *, damping: float) -> tuple[Linkage, State]:
    """A humanoid in the air whose every joint turns at random."""
    linkage = humanoid(damping=damping)
    model, rng = compile_model(linkage), np.random.default_rng(seed)
    start = State(model.rest_state().q, rng.normal(size=model.nv))
    return linkage, start


@pytest.mark.parametrize("gravity", [WEIGHTLESS, GRAVITY], ids=["weightless", "falling"])
@pytest.mark.parametrize("seed", range(2))
def test_a_thrown_humanoid_keeps_its_momentum(gravity, seed):
    """A somersault must not speed up or drift by itself; limits act between the limbs and change nothing."""
    linkage, start = thrown_humanoid(seed, damping=0.5)
    model = compile_model(linkage)
    start = State(start.q, 3.0 * start.v)
    mass, before, center = 70.0, momentum(model, start), mass_center(model, start)
    spin = before[:3] - np.cross(center, before[3:])
    simulation = Simulation(model, gravity=gravity, state=start)
    for frame in simulation.run(25):
        t, state = frame / 24, simulation.state
        linear = before[3:] + mass * gravity * t
        place = center + before[3:] / mass * t + 0.5 * gravity * t * t
        expected = np.concatenate([spin + np.cross(place, linear), linear])
        assert np.abs(momentum(model, state) - expected).max() < 1e-10 * np.abs(expected).max()
        assert np.abs(mass_center(model, state) - place).max() < 1e-10


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-200, 1e-160, 1e-9, 9e-5, 1.1e-4, 1e-3])
def test_a_small_turn_is_neither_lost_nor_divided_by_nothing(angle: float):
    """What comes to rest turns by angles whose squares are nothing; the series of sine and cosine say how far."""
    axis = np.array([0.36, -0.48, 0.8])
    square = angle * angle
    expected = np.append(1.0 - square / 8.0, (0.5 - square / 48.0) * angle * axis)
    assert np.allclose(exponential(angle * axis), expected, rtol=1e-13, atol=0.0)


def test_steps_of_one_length_know_nothing_of_those_of_another():
    """A step in halves comes between long ones; how much joints resist in it must not be what they did before."""
    model = compile_model(humanoid(damping=0.5))
    start = State(model.rest_state().q, np.random.default_rng(5).normal(size=model.nv))
    world = World(model)
    start = step(world, start, 0.01)
    for h in (0.005, 0.01, 0.002):
        assert np.array_equal(step(world, start, h).v, step(World(model), start, h).v)


def mass_center(model: Model, state: State) -> np.ndarray:
    """The common center of mass (3,): what the potential energy in unit gravity along each axis says."""
    still = State(state.q, np.zeros(model.nv))
    return np.array([energy(model, still, -axis) for axis in np.eye(3)]) / model.mass.sum()
