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
from core.linkage import Closure, Link, Linkage, LinkageError
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
from core.mechanisms_held import high_bar, holding_hands, snapping_chain, swing, swing_motion
from core.model import Model, State, compile_model
from core.shape import Plane, Sphere
from core.simulation import Simulation
from core.smooth import Smooth, dormand_prince, rk4
from core.structure import cut
from core.threads import one_blas_thread
from core.trajectory import Trajectory

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


def test_high_bar_has_24_freedoms_then_23():
    model = compile_model(high_bar(release=0.5))
    v = np.zeros(model.nv)
    v[model.coordinates.v_start[model.names.index("trunk")]] = 5.0
    simulation = Simulation(model, frame_time=1 / 24, state=State(model.rest_state().q, v))
    assert simulation.freedoms() == (24, 12, 12)
    list(simulation.run(24))
    assert simulation.freedoms() == (23, 6, 17)
    assert [(event.name, event.kind) for event in simulation.events] == [("bar.R", "cut")]
    assert simulation.events[0].time == pytest.approx(0.5, abs=1e-12)
    path = simulation.trajectory
    assert np.nanmax(path.loop_gap) < 1e-9
    assert path.loop_closed.sum(0).tolist() == [24, 12]
    assert np.degrees(path.limit_violation.max()) < 1.0
    assert np.diff(path.energy).max() < 1e-3


def test_swing_has_30_freedoms_then_28():
    linkage = swing()
    simulation = Simulation(compile_model(linkage), frame_time=1 / 24, motion=swing_motion(linkage, 120, 1 / 24))
    assert simulation.freedoms()[0] == 30
    list(simulation.run(100))
    assert simulation.freedoms()[0] == 28
    assert {(event.name, event.kind) for event in simulation.events} == {("plate.L", "region"), ("plate.R", "region")}
    assert np.nanmax(simulation.trajectory.loop_gap[:, :2]) < 1e-9


def test_a_chain_snaps_where_its_load_is_too_much_and_holds_where_not():
    for break_force, kinds in ((500.0, ["break"]), (1e9, [])):
        simulation = Simulation(compile_model(snapping_chain(break_force=break_force)), frame_time=1 / 24)
        list(simulation.run(36))
        assert [event.kind for event in simulation.events] == kinds


def test_the_load_of_a_hanging_body_is_its_weight():
    linkage = Linkage()
    linkage.add(Link("body", Joint("free"), mass=3.0))
    linkage.connect(None, linkage["body"], "fixed", at=np.array([0.5, 0.0, 0.0]), name="hook")
    simulation = Simulation(compile_model(linkage), frame_time=1 / 24)
    list(simulation.run(4))
    # about the hook, half a metre beside the weight
    assert simulation.trajectory.loop_force[-1, 0] == pytest.approx([0, 3 * 9.81 * 0.5, 0, 0, 0, 3 * 9.81], abs=1e-9)


def test_a_hand_grabs_what_comes_near_at_the_time_it_does():
    """A ball falls past a hook: it is caught where it is nearer than 0.3 m, at √(2 · 0.7 / g), and goes on by none."""
    linkage = Linkage()
    linkage.add(Link("ball", Joint("free"), position=np.array([0.0, 0.0, 1.0])))
    closure = Closure(closed=False, grab_distance=0.3)
    linkage.connect(None, linkage["ball"], "fixed", at=np.zeros(3), seat=np.zeros(3), name="hook", closure=closure)
    simulation = Simulation(compile_model(linkage), frame_time=1 / 24)
    list(simulation.run(24))
    (event,) = simulation.events
    assert (event.kind, event.name) == ("grab", "hook")
    assert event.time == pytest.approx(np.sqrt(2 * 0.7 / 9.81), abs=2e-4)
    assert simulation.trajectory.poses()[-1, 0, 2, 3] == pytest.approx(0.3, abs=2e-3)


def test_connections_open_and_close_at_their_own_times():
    """A weight is let go at 0.1 s, between frames, and caught at 0.3 s: it has fallen g 0.2² / 2 by then."""
    linkage = Linkage()
    linkage.add(Link("weight", Joint("free")))
    closure = Closure(times=((0.1, False), (0.3, True)))
    linkage.connect(None, linkage["weight"], "spherical", at=np.zeros(3), closure=closure)
    simulation = Simulation(compile_model(linkage), frame_time=1 / 7)
    list(simulation.run(5))
    assert [(event.kind, round(event.time, 12)) for event in simulation.events] == [("cut", 0.1), ("connect", 0.3)]
    assert simulation.trajectory.poses()[-1, 0, 2, 3] == pytest.approx(-0.5 * 9.81 * 0.04, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_keeps_momentum_and_takes_energy(kind):
    linkage = holding_hands()
    virtual = linkage["hands"]
    linkage.cut(virtual)
    model = compile_model(linkage)
    start = State(model.rest_state().q, np.random.default_rng(0).normal(size=model.nv))
    simulation = Simulation(model, gravity=WEIGHTLESS, state=start)
    list(simulation.run(2))
    before, kinetic = momentum(model, simulation.state), energy(model, simulation.state, WEIGHTLESS)
    simulation.connect("A.hand.L", "B.hand.R", kind)
    assert momentum(model, simulation.state) == pytest.approx(before, abs=1e-9 * np.abs(before).max())
    assert energy(model, simulation.state, WEIGHTLESS) < kinetic
    simulation.cut("A.hand.L-B.hand.R")
    assert momentum(model, simulation.state) == pytest.approx(before, abs=1e-9 * np.abs(before).max())


def test_a_cut_joint_lets_the_far_part_go_with_the_motion_it_has():
    linkage = humanoid()
    model = compile_model(linkage)
    _, v = random_coordinates(linkage, 3)
    state = State(model.coordinates.integrate(model.rest_state().q, 0.2 * v, 1.0), v)
    changed, after = cut(model, state, model.names.index("thigh.L"))
    assert changed.names == model.names
    slots, moved = model.assembly.slot, changed.assembly.slot
    before, now = link_poses(model, state.q)[0][slots], link_poses(changed, after.q)[0][moved]
    assert now == pytest.approx(before, abs=1e-12)
    assert momentum(changed, after) == pytest.approx(momentum(model, state), abs=1e-9)
    assert energy(changed, after) == pytest.approx(energy(model, state), abs=1e-9)
    assert changed.nv == model.nv + 3
    assert changed.parent[model.names.index("thigh.L")] == -1


def test_cutting_by_pointers_gives_the_model_that_cutting_in_motion_gives():
    linkage = humanoid()
    model = compile_model(linkage)
    changed, state = cut(model, model.rest_state(), model.names.index("upper_arm.R"))
    linkage.cut(linkage["upper_arm.R"])
    again = compile_model(linkage)
    assert set(again.names) == set(changed.names)
    poses = dict(zip(changed.names, link_poses(changed, state.q)[0][changed.assembly.slot]))
    for name, pose in zip(again.names, link_poses(again, again.rest_state().q)[0][again.assembly.slot]):
        assert pose == pytest.approx(poses[name], abs=1e-12)
    host = dict(zip(again.names, (again.names[p] if p >= 0 else None for p in again.parent)))
    assert host == dict(zip(changed.names, (changed.names[p] if p >= 0 else None for p in changed.parent)))


def test_a_joint_cut_in_the_middle_of_a_frame_leaves_two_free_parts(tmp_path):
    simulation = Simulation(compile_model(chain(6)), frame_time=0.1, cuts=[(0.25, "link.3")])
    list(simulation.run(8))
    path = simulation.trajectory
    assert [event.name for event in simulation.events] == ["link.3"]
    # straight down and at rest: what is cut falls for 0.45 s
    fallen = 0.5 * 9.81 * 0.45**2
    assert path.poses()[-1, 3, 2, 3] == pytest.approx(path.poses()[0, 3, 2, 3] - fallen, abs=1e-9)
    assert path.poses()[-1, 2, 2, 3] == pytest.approx(path.poses()[0, 2, 2, 3], abs=1e-9)
    assert np.isnan(path.q[2]).any() and not np.isnan(path.q[3]).any()
    path.save(tmp_path / "path.npz")
    again = Trajectory.load(tmp_path / "path.npz")
    assert np.array_equal(again.q, path.q, equal_nan=True)
    assert np.array_equal(again.loop_closed, path.loop_closed)


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
    """A folding parallelogram is in line with its ground rod, and for a moment free in two ways, at every quarter."""
    linkage = n_four_bar(1)
    model = compile_model(linkage)
    start = State(model.rest_state().q, n_four_bar_velocity(linkage))
    simulation = Simulation(model, gravity=WEIGHTLESS, frame_time=np.pi / 8, substeps=1, state=start)
    list(simulation.run(9))
    assert [event.kind for event in simulation.events] in (["singular"], [])


def test_the_same_simulation_with_events_gives_the_same_bits():
    paths = []
    for _ in range(2):
        simulation = Simulation(compile_model(snapping_chain()), frame_time=1 / 24)
        list(simulation.run(30))
        paths.append(simulation.trajectory)
    assert np.array_equal(paths[0].q, paths[1].q)


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


def test_a_connection_made_in_motion_has_events_of_its_own():
    linkage = Linkage()
    linkage.add(Link("weight", Joint("free")))
    simulation = Simulation(compile_model(linkage), frame_time=0.1)
    simulation.connect(None, "weight", "fixed", closure=Closure(times=((0.25, False),)))
    simulation.connect(None, "weight", "fixed", name="open", closure=Closure(closed=False))
    list(simulation.run(5))
    assert [(event.kind, round(event.time, 9)) for event in simulation.events] == [("connect", 0.0), ("cut", 0.25)]


def test_nearness_and_place_are_measured_from_where_the_ends_were_given():
    """A slider that is made at 0.8 m of its metre slides off 0.2 m later, at 1 m/s after 0.2 s."""
    linkage = Linkage()
    linkage.add(Link("body", Joint("free"), position=np.array([0.8, 0.0, 0.0])))
    closure = Closure(closed=False, times=((0.0, True),), region=((-1, -9, -9), (1, 9, 9)))
    linkage.connect(None, linkage["body"], "prismatic", at=np.zeros(3), seat=np.zeros(3), name="rail", closure=closure)
    model = compile_model(linkage)
    start = State(model.rest_state().q, np.array([0, 0, 0, 1.0, 0, 0]))
    simulation = Simulation(model, gravity=WEIGHTLESS, state=start, frame_time=1 / 24)
    list(simulation.run(12))
    assert [event.kind for event in simulation.events] == ["connect", "region"]
    assert simulation.events[1].time == pytest.approx(0.2, abs=1e-6)


def test_a_cut_due_a_moment_after_a_frame_happens_once():
    simulation = Simulation(compile_model(chain(4)), frame_time=0.25, cuts=[(0.5 + 5e-10, "link.3")])
    list(simulation.run(5))
    assert len(simulation.events) == 1


def hook(**changes) -> Linkage:
    linkage = Linkage()
    linkage.add(Link("body", Joint("free"), shapes=[Sphere(np.zeros(3), 0.1)]))
    linkage.add(Link("rail", Joint("fixed"), keyed=True))
    linkage.connect(None, linkage["body"], "spherical", at=np.zeros(3), name="hook", closure=Closure(**changes))
    return linkage


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "glue"}, "unknown method 'glue'"),
        ({"stiffness": -1.0}, "stiffness is -1.0"),
        ({"break_force": 0.0}, "break_force is 0.0"),
        ({"times": ((np.nan, True),)}, "finite seconds"),
        ({"region": ((0, 0, 0), (0, 1, 1))}, "its region"),
        ({"method": "compliance", "stiffness": 0.0, "damping": 0.0}, "neither stiffness nor damping"),
    ],
)
def test_closures_that_make_no_sense_are_refused(change, words):
    with pytest.raises(LinkageError, match=words) as caught:
        compile_model(hook(**change))
    assert "hook" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_connections_that_make_no_sense_are_refused():
    linkage = hook()
    linkage.connect(linkage["body"], linkage["body"], "fixed", at=np.zeros(3), name="self")
    with pytest.raises(LinkageError, match="connects 'body' to itself"):
        compile_model(linkage)
    linkage = hook()
    linkage.connect(None, linkage["rail"], "fixed", at=np.zeros(3), name="rails")
    with pytest.raises(LinkageError, match="both its ends are keyed"):
        compile_model(linkage)
    linkage = hook()
    linkage.connect(None, linkage["body"], "free", at=np.zeros(3), name="loose")
    with pytest.raises(LinkageError, match="'free' holds nothing"):
        compile_model(linkage)
    linkage = hook()
    with pytest.raises(LinkageError, match="'stray' is no link of this linkage"):
        linkage.connect(None, Link("stray"), "fixed", at=np.zeros(3), seat=np.zeros(3), name="outside")
    with pytest.raises(LinkageError, match="'stray' is no link of this linkage"):
        linkage.connect(Link("stray"), linkage["body"], "fixed", at=np.zeros(3), seat=np.zeros(3), name="outside")
    with pytest.raises(LinkageError, match=r"has shape \(2,\)"):
        linkage.connect(None, linkage["body"], "fixed", at=np.zeros(2), name="flat")
    linkage.connect(None, linkage["body"], "fixed", at=np.diag([1.0, 1.0, -1.0, 1.0]), name="mirror")
    with pytest.raises(LinkageError, match="'mirror'"):
        compile_model(linkage)


def test_a_connection_out_of_reach_says_by_how_much():
    linkage = pendulum()
    place = np.array([-1.5, 0.0, 0.0])
    linkage.connect(None, linkage["bob"], "spherical", at=place, seat=np.array([0.0, 1.0, 0.0]), name="far")
    with pytest.raises(LinkageError, match=r"'far' cannot be assembled: its ends stay 0\.5 m apart"):
        Simulation(compile_model(linkage))


def test_what_is_near_at_the_start_is_grabbed_at_once():
    linkage = Linkage()
    linkage.add(Link("ball", Joint("free"), position=np.array([0.0, 0.0, 0.1])))
    closure = Closure(closed=False, grab_distance=0.3)
    linkage.connect(None, linkage["ball"], "fixed", at=np.zeros(3), seat=np.zeros(3), name="hook", closure=closure)
    simulation = Simulation(compile_model(linkage))
    list(simulation.run(3))
    assert [(event.time, event.kind) for event in simulation.events] == [(0.0, "grab")]
    assert simulation.trajectory.poses()[-1, 0, 2, 3] == pytest.approx(0.1, abs=1e-9)


def test_two_people_who_hold_hands_in_flight_keep_their_momentum():
    """Of both together: what one hand gives the other takes."""
    model = compile_model(holding_hands())
    start = State(model.rest_state().q, np.random.default_rng(1).normal(size=model.nv))
    simulation = Simulation(model, gravity=WEIGHTLESS, state=start, frame_time=1 / 24)
    before = momentum(model, simulation.state)
    list(simulation.run(24))
    assert momentum(model, simulation.state) == pytest.approx(before, abs=1e-10 * np.abs(before).max())
    assert np.nanmax(simulation.trajectory.loop_gap) < 1e-8


def test_keyed_links_have_no_joint_to_cut():
    linkage = swing()
    model = compile_model(linkage)
    with pytest.raises(LinkageError, match="'swing' follows its keys"):
        Simulation(model, motion=swing_motion(linkage, 10, 1 / 24), cuts=[(0.1, "swing")])


def test_cuts_of_what_is_not_there_are_refused():
    model = compile_model(chain(2))
    with pytest.raises(LinkageError, match="no link or connection is called 'nobody'"):
        Simulation(model, cuts=[(0.1, "nobody")])
    with pytest.raises(LinkageError, match="no link is called 'nobody'"):
        Simulation(model).connect(None, "nobody", "fixed")
    with pytest.raises(LinkageError, match="'ball' holds nothing"):
        Simulation(model).connect(None, "link.1", "ball")
