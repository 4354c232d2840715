"""Structure that changes: connecting, cutting, breaking and grabbing, each at its own time, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from core.diagnostics import energy, momentum
from core.joint import Joint
from core.kinematics import link_poses
from core.linkage import Closure, Link, Linkage, LinkageError
from core.mechanisms import chain, humanoid, pendulum, random_coordinates
from core.mechanisms_held import high_bar, holding_hands, snapping_chain, swing, swing_motion
from core.model import State, compile_model
from core.shape import Mesh, Plane, Sphere
from core.simulation import Simulation
from core.structure import cut
from core.trajectory import Trajectory

KINDS = ("fixed", "hinge", "prismatic", "universal", "spherical")
WEIGHTLESS = np.zeros(3)


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
    assert np.nanmax(simulation.trajectory.loop_gap[:, :2]) < 1e-8


@pytest.mark.parametrize(("break_force", "kinds"), [(500.0, ["break"]), pytest.param(1e9, [], marks=pytest.mark.slow)])
def test_a_chain_snaps_where_its_load_is_too_much_and_holds_where_not(break_force, kinds):
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


def test_the_same_simulation_with_events_gives_the_same_bits():
    paths = []
    for _ in range(2):
        simulation = Simulation(compile_model(snapping_chain()), frame_time=1 / 24)
        list(simulation.run(30))
        paths.append(simulation.trajectory)
    assert np.array_equal(paths[0].q, paths[1].q)


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


def test_two_sliders_that_slide_off_at_once_both_do():
    linkage = Linkage()
    linkage.add(Link("body", Joint("free")))
    for name in ("left", "right"):
        closure = Closure(region=((-1, -9, -9), (1, 9, 9)))
        linkage.connect(None, linkage["body"], "prismatic", at=np.zeros(3), name=name, closure=closure)
    model = compile_model(linkage)
    start = State(model.rest_state().q, np.array([0, 0, 0, 1.0, 0, 0]))
    simulation = Simulation(model, gravity=WEIGHTLESS, state=start, frame_time=0.3)
    list(simulation.run(6))
    assert [(event.name, event.kind) for event in simulation.events] == [("left", "region"), ("right", "region")]
    assert [event.time for event in simulation.events] == pytest.approx([1.0, 1.0], abs=1e-9)


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


def test_what_is_cut_inside_a_solid_still_comes_out():
    """What collides, and what is on its way out, is the same after a cut: only joints change."""
    corners = np.indices((2, 2, 2)).reshape(3, -1).T * 2.0 - 1.0
    triangles = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6),
                 (0, 6, 4), (1, 5, 7), (1, 7, 3)]  # fmt: skip
    linkage = Linkage()
    first = linkage.add(Link("first", Joint("free"), position=np.array([0.0, 0.0, 0.6]), shapes=[ball()]))
    linkage.add(Link("second", Joint("spherical"), position=np.array([0.25, 0.0, 0.0]), shapes=[ball()]), first)
    simulation = Simulation(
        compile_model(linkage), scenery=[Mesh(corners, np.array(triangles))], frame_time=1 / 24, cuts=[(0.1, "second")]
    )
    list(simulation.run(60))
    assert [event.name for event in simulation.events] == ["second"]
    assert simulation.trajectory.world[-1, :, 2, 3] == pytest.approx([1.1, 1.1], abs=0.02)


def test_a_cut_changes_no_contact():
    """The slots of links change with the joints; who touches what does not."""
    model = compile_model(humanoid())
    simulation = Simulation(model, scenery=[Plane()], frame_time=1 / 24)
    list(simulation.run(30))
    before = touching(simulation)
    simulation.cut("forearm.L")
    assert touching(simulation) == before
    assert len(before) > 5


def ball() -> Sphere:
    return Sphere(np.zeros(3), 0.1)


def touching(simulation: Simulation) -> list[tuple]:
    """The names of what touches or nearly does, and how far apart it is [0.1 mm]."""
    poses, model = simulation.system.poses(simulation.state), simulation.model
    name = dict(zip(model.assembly.slot.tolist(), model.names))
    contacts = simulation.world.collider.contacts(poses, 0.01)
    sides = zip(contacts.link.tolist(), contacts.other.tolist(), np.round(1e4 * contacts.gap).tolist())
    return sorted((*sorted((name.get(link, ""), name.get(other, ""))), gap) for link, other, gap in sides)
