"""Closed loops: against dense formulas, the paper's, and literal values, in any structure and through every event."""

from __future__ import annotations

import numpy as np
import oracle_loops
import pytest

from core.closing import connected_velocity, freedoms
from core.diagnostics import energy, momentum
from core.dynamics import closed_dynamics
from core.integration import World, step
from core.joint import Joint
from core.kinematics import link_poses
from core.linkage import Closure, Link, Linkage
from core.mechanisms import chain, humanoid, pendulum, random_coordinates, random_tree
from core.mechanisms_closed import (
    BRICARD_GRAVITY,
    andrews,
    andrews_angles,
    andrews_wrenches,
    bricard,
    n_four_bar,
    n_four_bar_velocity,
)
from core.mechanisms_held import holding_hands
from core.model import Model, State, compile_model
from core.shape import Plane
from core.simulation import Simulation
from core.smooth import Smooth, dormand_prince, rk4
from core.threads import one_blas_thread

KINDS = ("fixed", "hinge", "prismatic", "universal", "spherical")
WEIGHTLESS = np.zeros(3)


def closed_tree(kind: str, seed: int, count: int = 10) -> Linkage:
    """A random tree whose last link is held by an earlier one, and another by the world; assembled at rest."""
    rng = np.random.default_rng(seed)
    linkage = random_tree(count, seed, kinds=("spherical", "universal", "prismatic", "hinge"), branching=0.2)
    links = list(linkage.links())
    linkage.connect(links[1], links[-1], kind, at=0.1 * rng.normal(size=3))
    linkage.connect(None, links[count // 2], "spherical", at=0.2 * rng.normal(size=3))
    return linkage


def in_motion(linkage: Linkage, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Random coordinates with all loops closed, and velocities that keep them so."""
    q, v = random_coordinates(linkage, seed)
    q = compile_model(linkage).coordinates.integrate(compile_model(linkage).rest_state().q, 0.1 * v, 1.0)
    q = oracle_loops.assembled(linkage, q)
    return q, oracle_loops.compatible(linkage, q, v)


def tip(model: Model, q: np.ndarray, link: str) -> np.ndarray:
    pose = link_poses(model, q)[0][model.assembly.slot[model.names.index(link)]]
    return pose[:3, :3] @ [0.0, 1.0, 0.0] + pose[:3, 3]


@pytest.mark.parametrize("leaf_freedoms", [None, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_accelerations_of_closed_trees_are_those_of_the_dense_equations(kind, leaf_freedoms):
    linkage = closed_tree(kind, seed=KINDS.index(kind))
    model = compile_model(linkage, leaf_freedoms)
    q, v = in_motion(linkage)
    rng = np.random.default_rng(1)
    forces, wrenches = rng.normal(size=model.nv), rng.normal(size=(model.n, 6))
    gravity = np.array([0.0, 0.0, -9.81])
    expected = oracle_loops.closed_acceleration(linkage, q, v, forces, wrenches, gravity)
    found, _ = closed_dynamics(model, State(q, v), forces=forces, wrenches=wrenches, gravity=gravity)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("same_tree", [True, False])
def test_velocities_after_connecting_are_the_papers(kind, same_tree):
    rng = np.random.default_rng(2)
    linkage = Linkage()
    links = []
    for i in range(12):
        link = Link(f"link.{i}", Joint(("spherical", "hinge", "universal")[i % 3]), mass=1.0 + 0.1 * i)
        link.position, link.inertia = 0.3 * rng.normal(size=3), np.diag([0.02, 0.03, 0.04])
        links.append(linkage.add(link, links[-1] if links and i != 6 else None))
    host = links[0] if same_tree else links[5]
    virtual = linkage.connect(host, links[11] if not same_tree else links[5], kind, at=0.2 * rng.normal(size=3))
    model = compile_model(linkage)
    q, v = model.rest_state().q, rng.normal(size=model.nv)
    seat, frame, own = oracle_loops.connection_jacobians(linkage, q, virtual)
    mass = oracle_loops.mass_matrix(linkage, q)
    expected, _, _ = oracle_loops.velocity_after_connection(mass, seat, v, frame, None, own)
    found = connected_velocity(model, q, v, model.loops)
    assert found == pytest.approx(expected, abs=1e-8)
    assert found @ mass @ found < v @ mass @ v


def test_n_four_bar_passes_every_aligned_position():
    """IFToMM A02, B₀ after 5 s and 10 s, by the fourth-order rule at 10 ms."""
    linkage = n_four_bar(2)
    model = compile_model(linkage)
    state = State(model.rest_state().q, n_four_bar_velocity(linkage))
    start = energy(model, state)
    assert start == pytest.approx(35.835, abs=1e-12)
    for _ in range(500):
        state = rk4(model, state, 0.01)
    assert tip(model, state.q, "rocker.0")[[0, 2]] == pytest.approx([-0.81131046, -0.58461555], abs=1e-6)
    for _ in range(500):
        state = rk4(model, state, 0.01)
        assert energy(model, state) == pytest.approx(start, abs=2e-6)
        assert np.abs(model.loops.gaps(link_poses(model, state.q)[0])).max() < 1e-12
    assert tip(model, state.q, "rocker.0")[[0, 2]] == pytest.approx([0.32845811, 0.94451854], abs=1e-6)


@pytest.mark.slow
def test_n_four_bar_of_forty_reaches_its_published_end():
    """IFToMM A02 with 81 rods and 40 loops, B₀ after 10 s, by the fourth-order rule at 10 ms."""
    linkage = n_four_bar(40)
    model = compile_model(linkage)
    state = State(model.rest_state().q, n_four_bar_velocity(linkage))
    assert energy(model, state) == pytest.approx(620.33833, abs=1e-5)
    start = energy(model, state)
    with one_blas_thread():
        for _ in range(1000):
            state = rk4(model, state, 0.01)
    assert tip(model, state.q, "rocker.0")[[0, 2]] == pytest.approx([0.18051223, 0.98357274], abs=1e-5)
    assert energy(model, state) == pytest.approx(start, abs=1e-4)


@pytest.mark.slow
def test_bricard_is_back_after_ten_seconds():
    model = compile_model(bricard())
    state = model.rest_state()
    for _ in range(1000):
        state = rk4(model, state, 0.01, gravity=BRICARD_GRAVITY)
    assert tip(model, state.q, "rod.1") == pytest.approx([0.9997309873, -0.9999999638, -0.0002689765], abs=1e-8)
    assert energy(model, state, BRICARD_GRAVITY) == pytest.approx(-29.43, abs=1e-6)


def test_the_default_step_is_of_second_order_with_loops():
    linkage = n_four_bar(2)
    model = compile_model(linkage)
    errors = []
    for h in (0.005, 0.0025):
        state, world = State(model.rest_state().q, n_four_bar_velocity(linkage)), World(model)
        for _ in range(round(10.0 / h)):
            state = step(world, state, h)
        errors.append(np.abs(tip(model, state.q, "rocker.0")[[0, 2]] - [0.32845811, 0.94451854]).max())
    assert errors[0] < 1e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_andrews_squeezer_reaches_the_reference_solution():
    model = compile_model(andrews())
    system = Smooth(model, WEIGHTLESS, wrenches=andrews_wrenches)
    state, _ = dormand_prince(system, model.rest_state(), 0.03, tolerance=1e-9, first=1e-6)
    expected = [
        15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948, 0.5244099658805304,
        0.5347301163226948, 1.048080741042263,
    ]  # fmt: skip
    assert andrews_angles(model, state.q) == pytest.approx(expected, abs=1e-6)


def test_bricard_keeps_its_energy_on_dependent_constraints():
    model = compile_model(bricard())
    state = model.rest_state()
    assert energy(model, state, BRICARD_GRAVITY) == pytest.approx(-29.43)
    # the tree's five hinges have 25 conditions, the loop four independent ones of five: 29 of 30
    assert freedoms(model, state, model.loops) == (6, 5, 1)
    points = {}
    for _ in range(100):
        state = rk4(model, state, 0.01, gravity=BRICARD_GRAVITY)
        points[round(state.time, 6)] = tip(model, state.q, "rod.1")
        assert energy(model, state, BRICARD_GRAVITY) == pytest.approx(-29.43, abs=1e-6)
    assert points[0.5] == pytest.approx([0.7747178080, -0.9798150477, -0.1999061590], abs=1e-8)
    assert points[1.0] == pytest.approx([0.2744813193, -0.8867079387, -0.4623300027], abs=1e-8)


def test_loops_do_not_depend_on_the_assembly_tree():
    ends = []
    for leaf_freedoms in (None, 1):
        linkage = holding_hands(damping=0.1)
        simulation = Simulation(compile_model(linkage, leaf_freedoms), frame_time=1 / 24, substeps=10)
        list(simulation.run(6))
        ends.append(simulation.trajectory.poses())
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


def test_a_spring_between_two_ends_is_an_oscillator():
    """Compliance: a mass m on a spring K swings with the period 2π √(m / K), damped by D."""
    linkage = Linkage()
    linkage.add(Link("mass", Joint("free"), mass=2.0))
    closure = Closure(method="compliance", stiffness=50.0, damping=0.0)
    linkage.connect(None, linkage["mass"], "spherical", at=np.zeros(3), closure=closure)
    model = compile_model(linkage)
    state, world = State(model.rest_state().q, np.array([0, 0, 0, 1.0, 0, 0])), World(model, gravity=WEIGHTLESS)
    for _ in range(1000):
        state = step(world, state, 1e-3)
    assert state.q[4] == pytest.approx(np.sin(5.0) / 5.0, abs=3e-3)
    state = State(model.rest_state().q, np.array([0, 0, 0, 1.0, 0, 0]))
    for _ in range(100):
        state = rk4(model, state, 1e-2, gravity=WEIGHTLESS)
    assert state.q[4] == pytest.approx(np.sin(5.0) / 5.0, abs=1e-6)


def test_links_in_loops_touch_the_ground_too():
    simulation = Simulation(compile_model(holding_hands(damping=0.1)), scenery=[Plane()], frame_time=1 / 24)
    list(simulation.run(60))
    path = simulation.trajectory
    assert path.contacts.max() >= 8
    assert np.nanmax(path.loop_gap) < 1e-8
    assert path.penetration.max() < 0.0175
    assert np.diff(path.energy).max() < 1.0


def test_what_jams_goes_on():
    """A rod held at both ends has no freedom left; arms stretched between two fixed points hold by length alone."""
    linkage = pendulum()
    linkage.connect(None, linkage["bob"], "hinge", at=np.array([-1.0, 0.0, 0.0]), name="far")
    simulation = Simulation(compile_model(linkage), frame_time=1 / 24)
    list(simulation.run(12))
    assert np.ptp(simulation.trajectory.q, axis=0) == pytest.approx(0.0, abs=1e-6)
    linkage = humanoid(damping=0.1)
    for side, x in ((".L", 0.9), (".R", -0.9)):
        linkage.connect(None, linkage["hand" + side], "spherical", at=np.array([x, 0, 1.436]), name="bar" + side)
    simulation = Simulation(compile_model(linkage), frame_time=1 / 24, substeps=10)
    list(simulation.run(10))
    path = simulation.trajectory
    assert np.nanmax(path.loop_gap) < 1e-6
    assert (path.energy - path.energy[0]).max() < 0.001 * 70.0 * 9.81 * 1.75
    assert path.world[-1, 0, 2, 3] > 0.89


def test_loops_that_become_singular_say_so_once():
    """A weightless parallelogram turns by one radian a second. Steps of π/9 s have their middles in line with the floor
    at the fifth, where the loop's two conditions are one, and again at the fourteenth."""
    linkage = n_four_bar(1)
    model = compile_model(linkage)
    start = State(model.rest_state().q, n_four_bar_velocity(linkage))
    simulation = Simulation(model, gravity=WEIGHTLESS, frame_time=np.pi / 9, substeps=1, state=start)
    list(simulation.run(16))
    assert [event.kind for event in simulation.events] == ["singular"]
    assert simulation.events[0].time == pytest.approx(5 * np.pi / 9, abs=1e-9)


def test_springs_hold_large_trees_too():
    linkage = chain(40, "spherical")
    last = list(linkage.links())[-1]
    linkage.connect(None, last, "spherical", at=np.array([0, 0, -40.0]), closure=Closure(method="compliance"))
    simulation = Simulation(compile_model(linkage), frame_time=1 / 24)
    list(simulation.run(3))
    assert np.nanmax(simulation.trajectory.loop_gap) < 1e-3


@pytest.mark.parametrize("seed", [3, 5, 6])
def test_limits_in_loops_take_energy_and_give_none(seed):
    """Joints at their limits and hands that hold each other: what restores one must not break the other."""
    model = compile_model(holding_hands(damping=0.5))
    start = State(model.rest_state().q, 0.7 * np.random.default_rng(seed).normal(size=model.nv))
    simulation = Simulation(model, gravity=WEIGHTLESS, state=start, frame_time=1 / 24, substeps=3)
    list(simulation.run(40))
    path = simulation.trajectory
    assert np.diff(path.energy).max() < 0.1
    assert np.degrees(path.limit_violation.max()) < 1.0
    assert np.nanmax(path.loop_gap) < 1e-6


def test_two_people_who_hold_hands_in_flight_keep_their_momentum():
    """Of both together: what one hand gives the other takes."""
    model = compile_model(holding_hands())
    start = State(model.rest_state().q, np.random.default_rng(1).normal(size=model.nv))
    simulation = Simulation(model, gravity=WEIGHTLESS, state=start, frame_time=1 / 24)
    before = momentum(model, simulation.state)
    list(simulation.run(24))
    assert momentum(model, simulation.state) == pytest.approx(before, abs=1e-10 * np.abs(before).max())
    assert np.nanmax(simulation.trajectory.loop_gap) < 1e-8
