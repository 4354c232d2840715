"""What lies still sleeps, and wakes before anything can be seen to go through it, hang in the air or stand still."""

from __future__ import annotations

import numpy as np
import pytest

from core.joint import Joint
from core.linkage import Link, Linkage
from core.mechanisms import pendulum
from core.model import Model, State, compile_model
from core.motion import Follower, Motion
from core.shape import Box, Plane, Sphere
from core.simulation import Simulation

G = 9.81
FRAME = 1 / 24


def block(half: float = 0.1, **surface) -> list:
    return [Box(np.zeros(3), np.full(3, half), **surface)]


def ball(radius: float = 0.1, **surface) -> list:
    return [Sphere(np.zeros(3), radius, **surface)]


def scene(*parts: dict) -> tuple[Model, State]:
    """Free bodies, each with a `name`, `shapes` and where it is `at`, with velocity `v` and `spin`."""
    linkage = Linkage()
    for part in parts:
        mass = part.get("mass", 1.0)
        inertia = np.diag(part.get("inertia", np.full(3, 0.005 * mass)))
        link = Link(part["name"], Joint("free"), mass=mass, inertia=inertia, shapes=part["shapes"])
        link.keyed = part.get("keyed", False)
        linkage.add(link)
    model = compile_model(linkage)
    q, v = model.rest_state().q.copy(), np.zeros(model.nv)
    for part in parts:
        if not part.get("keyed"):
            j = model.names.index(part["name"])
            at, along = model.coordinates.q_start[j], model.coordinates.v_start[j]
            q[at : at + 7] = 1.0, 0.0, 0.0, 0.0, *part["at"]
            v[along : along + 6] = *part.get("spin", (0.0, 0.0, 0.0)), *part.get("v", (0.0, 0.0, 0.0))
    return model, State(q, v)


def tower(count: int, **surface) -> list[dict]:
    """Boxes of 20 cm on each other, on the ground."""
    return [{"name": f"box{i}", "shapes": block(**surface), "at": (0.0, 0.0, 0.1 + 0.2 * i)} for i in range(count)]


def run(simulation: Simulation, frames: int) -> list[dict[str, int]]:
    """The groups in which links sleep, frame by frame."""
    groups = []
    for _ in simulation.run(frames):
        memory = simulation.state.memory
        asleep = np.zeros(simulation.model.assembly.links + 1, dtype=int) if memory is None else memory.asleep
        groups.append(dict(zip(simulation.model.names, asleep[simulation.model.assembly.slot].tolist())))
    return groups


def path(simulation: Simulation, name: str) -> np.ndarray:
    """Positions (frames, 3) of a link."""
    return simulation.trajectory.world[:, simulation.model.names.index(name), :3, 3]


def test_a_tower_sleeps_as_one_and_others_by_themselves():
    """Half a tower asleep would be a wall that the other half rests on."""
    flying = {"name": "ball", "shapes": ball(), "at": (5.0, 0.0, 30.0)}
    aside = {"name": "aside", "shapes": block(), "at": (-3.0, 0.0, 0.1)}
    model, state = scene(*tower(3), aside, flying)
    groups = run(Simulation(model, scenery=[Plane()], state=state), 48)
    last = groups[-1]
    assert last["box0"] == last["box1"] == last["box2"] > 0
    assert last["aside"] > 0 and last["aside"] != last["box0"]
    assert last["ball"] == 0
    for frame in groups:
        assert len({frame[f"box{i}"] > 0 for i in range(3)}) == 1


def test_a_ball_thrown_at_a_sleeping_tower_wakes_all_of_it():
    """In time: what sleeps does not answer to what hits it."""
    time, speed = 1.5, 12.0
    thrown = {
        "name": "ball", "shapes": ball(), "mass": 3.0,
        "at": (-0.15 - speed * time, 0.0, 0.3), "v": (speed, 0.0, 0.5 * G * time),
    }  # fmt: skip
    model, state = scene(*tower(3), thrown)
    simulation = Simulation(model, scenery=[Plane()], state=state)
    groups = run(simulation, 60)
    hit = round(time / FRAME)
    assert all(groups[hit - 5][f"box{i}"] > 0 for i in range(3))
    assert all(groups[hit + 2][f"box{i}"] == 0 for i in range(3))
    assert simulation.trajectory.penetration.max() < 2e-3
    assert path(simulation, "box1")[-1, 0] > 0.3
    assert np.diff(simulation.trajectory.energy).max() < 0.01 * simulation.trajectory.energy[0]


def test_what_lay_on_something_falls_when_it_is_knocked_away():
    """A sleeping box that hangs in the air is the classical fault of sleeping."""
    shot = {
        "name": "ball",
        "shapes": ball(0.08, friction=0.0),
        "mass": 20.0,
        "at": (-20.0, 0.0, 0.081),
        "v": (18, 0, 0),
    }
    model, state = scene(*tower(2, friction=0.05), shot)
    simulation = Simulation(model, scenery=[Plane(friction=0.05)], state=state)
    groups = run(simulation, 96)
    assert groups[22]["box1"] > 0
    assert path(simulation, "box0")[-1, 0] > 5.0
    assert path(simulation, "box1")[-1, 2] < 0.15
    fallen = np.flatnonzero(path(simulation, "box1")[:, 2] < 0.2)[0]
    assert fallen * FRAME < 20 / 18 + np.sqrt(0.4 / G) + 0.5


@pytest.mark.parametrize("velocity", [(1e-3, 0.0, 0.0), (0.0, 0.0, 1e-3), (0.0, 0.0, -1e-3), (0.5, 0.0, 0.0)])
def test_a_platform_that_sets_off_takes_a_sleeping_body_along(velocity):
    """However slowly: a creeping platform is slower than what counts as still."""
    parts = (
        {"name": "floor", "shapes": block(1.0), "keyed": True},
        {"name": "box", "shapes": block(), "at": (0, 0, 1.1)},
    )
    model, state = scene(*parts)
    gone = np.maximum(np.arange(96) * FRAME - 1.5, 0.0)[:, None] * velocity
    poses = np.tile(np.eye(4), (96, 2, 1, 1))
    poses[:, model.names.index("floor"), :3, 3] = gone
    motion = Motion(poses, FRAME)
    q, start = Follower(model, motion).q[0].copy(), model.coordinates.q_start[model.names.index("box")]
    q[start : start + 7] = state.q[start : start + 7]
    simulation = Simulation(model, motion=motion, state=State(q, state.v))
    groups = run(simulation, 96)
    assert groups[30]["box"] > 0 and groups[-2]["box"] == 0
    lag = path(simulation, "box")[-1] - (0, 0, 1.1) - gone[-1]
    # what is jerked from rest to v slides no farther than v² / (2 μ g)
    slid = np.linalg.norm(velocity) ** 2 / (2 * 0.6 * G)
    assert -slid - 1e-4 < lag[0] < 1e-4
    assert np.abs(lag[1:]).max() < 1e-4


def test_a_cut_wakes_what_hung_from_it():
    """An event is not a motion, but it starts one."""
    linkage = Linkage()
    bob = Link("bob", Joint("free"), inertia=0.01 * np.eye(3), shapes=ball(), position=np.array([0.0, 0.0, 3.0]))
    linkage.add(bob)
    linkage.connect(None, bob, "spherical", at=np.array([0.0, 0.0, 3.0]), name="hook")
    model = compile_model(linkage)
    simulation = Simulation(model, scenery=[Plane()], cuts=((2.0, "hook"),))
    groups = run(simulation, 61)
    assert groups[40]["bob"] > 0 and groups[60]["bob"] == 0
    assert path(simulation, "bob")[48, 2] == pytest.approx(3.0, abs=1e-6)
    assert path(simulation, "bob")[60, 2] == pytest.approx(3.0 - 0.5 * G * 0.25, abs=1e-3)


def test_a_connection_made_wakes_its_ends():
    """A sleeping box that a rope is tied to has to follow."""
    model, state = scene(
        {"name": "box", "shapes": block(), "at": (0, 0, 0.1)}, {"name": "ball", "shapes": ball(), "at": (2, 0, 40)}
    )
    simulation = Simulation(model, scenery=[Plane()], state=state)
    run(simulation, 30)
    assert simulation.state.memory.asleep.max() > 0
    simulation.connect("ball", "box", "spherical")
    assert simulation.state.memory is None or simulation.state.memory.asleep.max() == 0


@pytest.mark.parametrize("amplitude", [0.05, 1.0, 3.0])
def test_a_pendulum_does_not_fall_asleep_where_it_turns(amplitude):
    """Slow is not still."""
    model = compile_model(pendulum())
    # at -π/2 it hangs
    simulation = Simulation(model, state=State(np.array([amplitude - np.pi / 2]), np.zeros(1)))
    run(simulation, 240)
    late = simulation.trajectory.q[120:, 0]
    assert np.ptp(late) == pytest.approx(2 * amplitude, rel=0.02)
    assert simulation.trajectory.substeps[1:].min() > 0


def test_a_night_costs_nothing_and_changes_nothing():
    """Frames of a sleeping scene are those of a still, with the clock going on."""
    model, state = scene(*tower(2))
    simulation = Simulation(model, scenery=[Plane()], state=state)
    run(simulation, 72)
    night = simulation.trajectory
    assert len(night) == 72 and (night.substeps[30:] == 0).all()
    assert simulation.state.time == pytest.approx(71 * FRAME)
    np.testing.assert_array_equal(night.world[30:], np.broadcast_to(night.world[30], night.world[30:].shape))
    np.testing.assert_array_equal(night.v[30:], 0.0)
    assert night.energy[30:] == pytest.approx(night.energy[0], abs=1e-4)
    assert (night.contacts[30:] == night.contacts[30]).all() and night.contacts[30] >= 8


def test_a_body_in_flight_is_exact_beside_one_asleep():
    """The parabola and the spin of what flies are not the sleeper's, and the sleeper does not move."""
    inertia = (0.01, 0.02, 0.03)
    tumbling = {
        "name": "stick",
        "shapes": ball(),
        "at": (2.0, 0.0, 3.0),
        "v": (0.5, 0, 12.0),
        "spin": (1, 6, 1),
        "inertia": inertia,
    }
    model, state = scene({"name": "box", "shapes": block(), "at": (0, 0, 0.1)}, tumbling)
    simulation = Simulation(model, scenery=[Plane()], state=state)
    groups = run(simulation, 49)
    time = 48 * FRAME
    assert groups[-1]["box"] > 0 and groups[-1]["stick"] == 0
    expected = 2.0 + 0.5 * time, 0.0, 3.0 + 12.0 * time - 0.5 * G * time**2
    np.testing.assert_allclose(path(simulation, "stick")[-1], expected, atol=1e-9)
    turn = simulation.trajectory.world[-1, model.names.index("stick"), :3, :3]
    spin = simulation.state.v[model.coordinates.v_start[model.names.index("stick")] :][:3]
    np.testing.assert_allclose(turn @ (np.array(inertia) * spin), np.array(inertia) * (1, 6, 1), atol=1e-9)
    box = path(simulation, "box")
    np.testing.assert_array_equal(box[30:], np.broadcast_to(box[30], box[30:].shape))


def test_what_drifts_without_gravity_does_not_sleep():
    """Nothing is slow where nothing falls."""
    model, state = scene({"name": "stone", "shapes": ball(), "at": (0, 0, 0), "v": (1e-4, 0, 0)})
    simulation = Simulation(model, state=state, gravity=(0, 0, 0))
    run(simulation, 96)
    assert path(simulation, "stone")[-1, 0] == pytest.approx(1e-4 * 95 * FRAME, rel=1e-9)


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, 0.0, -G)])
def test_overlaps_part_with_and_without_gravity(gravity):
    """In space, too, things must not stay in each other."""
    model, state = scene({"name": "stone", "shapes": ball(), "at": (0, 0, 0.07)})
    simulation = Simulation(model, scenery=[Plane()], state=state, gravity=gravity)
    run(simulation, 72)
    assert path(simulation, "stone")[-1, 2] > 0.098
    assert np.diff(path(simulation, "stone")[:, 2]).max() < 1.0 * FRAME
