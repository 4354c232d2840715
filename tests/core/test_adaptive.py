"""Adaptive dynamics against the exact method: what is left out is small, what is kept is right, and nothing is made."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import Adaptive, Joint, Link, Linkage, Plane, Simulation, State, World, compile_model
from core.activity import Activity
from core.adaptive import INTERVAL, SPAN, Chooser, _pressed, _pulls
from core.grip import Grip
from core.hybrid_model import HybridModel, stopped
from core.kinematics import kinematics, link_poses, motions
from core.mechanisms import chain, humanoid, random_coordinates, random_tree
from core.mechanisms_large import holes, thread, threading
from core.model import Model
from core.motion import Motion


def without_shapes(linkage: Linkage, free: bool = False) -> Linkage:
    for link in linkage.links():
        link.shapes = []
    if free:
        next(linkage.links()).joint = Joint("free")
    return linkage


def swinging(model: Model, seed: int = 0) -> State:
    """At rest but for the first joints."""
    v = np.zeros(model.nv)
    v[: model.nv // 6] = np.random.default_rng(seed).standard_normal(model.nv // 6)
    return State(model.coordinates.zero(), v)


def run(model: Model, frames: int = 25, substeps: int = 20, **settings):
    simulation = Simulation(model, substeps=substeps, **settings)
    list(simulation.run(frames))
    return simulation.trajectory


def momenta(model: Model, state: State) -> tuple[np.ndarray, float]:
    """Momentum (6,) about the world's origin, and kinetic energy, link by link."""
    poses, total, energy = link_poses(model, state.q)[0], np.zeros(6), 0.0
    kin = kinematics(model, state.q)
    twists = motions(model, kin, state.v).links
    for i, slot in enumerate(model.assembly.slot.tolist()):
        turn, spin = poses[slot, :3, :3], twists[slot, :3]
        place = poses[slot, :3, 3] + turn @ model.center[i]
        velocity = twists[slot, 3:] + np.cross(spin, place - kin.origins[slot])
        c = model.center[i]
        about = model.inertia[i, :3, :3] - model.mass[i] * ((c @ c) * np.eye(3) - np.outer(c, c))
        angular = turn @ about @ turn.T @ spin
        total += np.concatenate((angular + np.cross(place, model.mass[i] * velocity), model.mass[i] * velocity))
        energy += 0.5 * (model.mass[i] * velocity @ velocity + spin @ angular)
    return total, energy


def bodies(model: Model, state: State, active: np.ndarray, after: np.ndarray):
    """The hybrid bodies between two sets of active joints, and the zones between both."""
    activity = Activity(model)
    activity.place(state.q)
    before, later = (HybridModel.of(model, activity.zones(some), state) for some in (active, after))
    return before, activity.zones(np.union1d(active, after)), later


@pytest.mark.parametrize("kind", ["hinge", "spherical", "universal"])
def test_a_threshold_of_zero_is_the_exact_method(kind):
    """The adaptive method may leave out only what it is allowed to."""
    model = compile_model(chain(12, kind, damping=1e-3))
    exact, adaptive = (run(model, state=swinging(model), adaptive=a) for a in (None, Adaptive(threshold=0.0)))
    assert np.abs(exact.world - adaptive.world).max() < 1e-11
    assert adaptive.active.all()
    assert (adaptive.left_out == 0.0).all()


@pytest.mark.parametrize("kind", ["hinge", "spherical"])
def test_it_converges_to_the_exact_trajectory(kind):
    """An error threshold is worth something only if the error follows it."""
    model = compile_model(without_shapes(chain(40, kind, damping=1e-2)))
    exact = run(model, 37, state=swinging(model))
    errors = []
    for threshold in (1e-2, 1e-3, 1e-4, 1e-5):
        path = run(model, 37, state=swinging(model), adaptive=Adaptive(threshold=threshold))
        errors.append(np.linalg.norm(path.world[:, -1, :3, 3] - exact.world[:, -1, :3, 3], axis=1).max() / 4.0)
        assert path.active.mean() < 1.0
        assert path.left_out.max() <= threshold
    assert (np.array(errors) < 10.0 * np.array([1e-2, 1e-3, 1e-4, 1e-5])).all()
    # nearly in proportion
    assert np.polyfit(np.log([1e-2, 1e-3, 1e-4, 1e-5]), np.log(errors), 1)[0] > 0.75


@given(st.integers(0, 10_000), st.booleans())
def test_stopping_joints_keeps_momentum_and_makes_no_energy(seed, free):
    """Rigidification is an impact within the body: to 1e-10 it changes no momentum, and it may only lose energy."""
    rng = np.random.default_rng(seed)
    linkage = random_tree(int(rng.integers(2, 25)), seed=seed)
    if free:
        next(linkage.links()).joint = Joint("free")
    model = compile_model(linkage)
    q, v = random_coordinates(linkage, seed)
    movable = np.flatnonzero(np.diff(model.coordinates.v_start) > 0)
    active = movable[rng.random(len(movable)) < 0.7]
    after = np.union1d(active[rng.random(len(active)) < 0.6], movable[rng.random(len(movable)) < 0.2])
    # a free base moves always, and some joint of any body
    active, after = np.union1d(active, movable[:1]), np.union1d(after, movable[:1])
    moving = np.repeat(np.isin(np.arange(model.n), active), np.diff(model.coordinates.v_start))
    state = State(q, np.where(moving, v, 0.0))
    stays = replace(state, v=stopped(*bodies(model, state, active, after), state))
    still = ~np.repeat(np.isin(np.arange(model.n), after), np.diff(model.coordinates.v_start))
    assert (stays.v[still] == 0.0).all()
    (before, kinetic), (momentum, left) = momenta(model, state), momenta(model, stays)
    spin = 0.5 * (model.armature * state.v**2).sum(), 0.5 * (model.armature * stays.v**2).sum()
    assert left + spin[1] <= (kinetic + spin[0]) * (1.0 + 1e-12)
    if free and not model.armature.any():
        scale = np.abs(before).max()
        assert np.abs(momentum - before).max() < 1e-10 * max(scale, 1e-12)


def test_stopping_what_is_alone_in_moving_leaves_what_the_rest_can_take():
    """Literal: a free rod with a rod on a hinge that turns; stopped, both turn as one with the same spin momentum."""
    linkage = without_shapes(chain(2, length=1.0, mass=1.0), free=True)
    model = compile_model(linkage)
    state = State(model.coordinates.zero(), np.array([0.0, 0, 0, 0, 0, 0, 3.0]))
    stays = stopped(*bodies(model, state, np.array([0, 1]), np.array([0])), state)
    after, _ = momenta(model, replace(state, v=stays))
    before, _ = momenta(model, state)
    assert stays[6] == 0.0
    assert np.abs(after - before).max() < 1e-13
    assert np.abs(stays).max() > 0.1


@pytest.mark.parametrize("joints", [3, 8])
def test_a_number_of_joints_is_kept(joints):
    """A budget that is overrun is none."""
    model = compile_model(without_shapes(chain(30, damping=1e-2)))
    path = run(model, 13, state=swinging(model), adaptive=Adaptive(joints=joints))
    assert (path.active[1:].sum(axis=1) <= joints).all()
    assert path.active[1:].any(axis=1).all()


def test_few_joints_bend_as_easily_as_all():
    """A rope that is led aside: those that move stand in for the others, else their dampers would resist far more."""
    linkage = without_shapes(chain(200, "spherical", length=0.02, damping=0.05))
    next(linkage.links()).keyed = True
    model = compile_model(linkage)
    poses = np.tile(link_poses(model, model.coordinates.zero())[0][model.assembly.slot], (37, 1, 1, 1))
    poses[:, :, 0, 3] += (np.sin(np.linspace(0.0, 0.5 * np.pi, 37)) ** 2)[:, None]
    motion = Motion(poses, 1 / 24)
    exact = run(model, 37, motion=motion)
    for joints, part in ((10, 0.02), (40, 0.004)):
        path = run(model, 37, motion=motion, adaptive=Adaptive(joints=joints))
        assert np.linalg.norm((exact.world - path.world)[:, :, :3, 3], axis=-1).max() < part * 4.0
    for threshold, part, share in ((1e-2, 0.002, 0.5), (1e-3, 0.001, 0.7)):
        path = run(model, 37, motion=motion, adaptive=Adaptive(threshold=threshold))
        assert np.linalg.norm((exact.world - path.world)[:, :, :3, 3], axis=-1).max() < part * 4.0
        assert path.active[1:].mean() < share
        assert path.left_out.max() <= threshold


def test_a_time_budget_is_met_in_the_end():
    """A preview chooses fewer joints until a frame takes no longer than it may; the last joint always moves."""
    model = compile_model(without_shapes(chain(60, damping=1e-2)))
    path = run(model, 9, state=swinging(model), adaptive=Adaptive(budget=1e-6, interval=5))
    assert path.active[-1].sum() < path.active[1].sum()
    assert path.active[-1].sum() >= 1


@pytest.mark.parametrize("substeps", [4, 20, 200])
def test_short_steps_are_not_looked_at_more_often(substeps, monkeypatch):
    """What an event leaves of a step may be as short as can be, and does not put off the next look for long."""
    model, times = compile_model(without_shapes(chain(12, damping=1e-2))), []
    refreshed = Chooser.refreshed
    monkeypatch.setattr(Chooser, "refreshed", lambda *a: times.append(a[3].time) or refreshed(*a))
    cuts = ((2 / 24 - 1e-7, model.names[-1]),)
    run(model, 25, state=swinging(model), substeps=substeps, adaptive=Adaptive(threshold=1e-3), cuts=cuts)
    apart = np.diff([*times, 1.0])
    usual = max(SPAN, INTERVAL / 24 / substeps)
    assert apart.max() < usual + 2 / 24 / substeps
    assert np.median(apart) == pytest.approx(usual, abs=1 / 24 / substeps)


def test_keyed_links_lead_zones():
    """A tail dragged by its keyed root: what the root's motion does to it must be seen by the choice."""
    linkage = without_shapes(chain(30, "spherical", damping=2e-2))
    next(linkage.links()).keyed = True
    model = compile_model(linkage)
    rest = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
    poses = np.broadcast_to(rest, (25, *rest.shape)).copy()
    poses[:, :, 0, 3] += (0.5 * np.sin(np.linspace(0.0, 3.0, 25)) ** 2)[:, None]
    motion = Motion(poses, 1 / 24)
    exact, adaptive = (run(model, motion=motion, adaptive=a) for a in (None, Adaptive(threshold=1e-4)))
    assert np.abs(adaptive.world[:, 0] - poses[:, 0]).max() < 1e-12
    assert np.abs(exact.world - adaptive.world)[:, :, :3, 3].max() < 3e-3
    assert adaptive.active.mean() < 0.9


@pytest.mark.parametrize("start", [0, 2])
def test_what_keys_will_do_is_known(start):
    """Steps may be so long that keys begin to move well before the next look: what follows them must move by then."""
    linkage = without_shapes(chain(30, "spherical", damping=2e-2))
    next(linkage.links()).keyed = True
    model = compile_model(linkage)
    poses = np.tile(link_poses(model, model.coordinates.zero())[0][model.assembly.slot], (7, 1, 1, 1))
    poses[:, :, 0, 3] += 0.02 * np.maximum(np.arange(7) - start, 0)[:, None] ** 2
    still = {"motion": Motion(poses, 1 / 24), "gravity": (0.0, 0.0, 0.0), "substeps": 3}
    exact, adaptive = (run(model, 6, adaptive=a, **still) for a in (None, Adaptive(threshold=1e-3)))
    assert adaptive.active[1].sum() > 5
    assert np.abs(exact.world - adaptive.world)[:, :, :3, 3].max() < 0.02


@pytest.mark.parametrize("adaptive", [Adaptive(threshold=1e-4), Adaptive(joints=4)])
def test_what_keys_move_may_weigh_nothing(adaptive):
    """Objects that characters are connected to have no mass: that is not asked for, where keys say how they move."""
    paths = []
    for mass in (0.0, 5.0):
        linkage = chain(12, "spherical", length=0.2, mass=1.0, radius=0.05, horizontal=True)
        first, still = next(linkage.links()), mass * np.eye(3)
        first.joint, first.position = Joint("free"), np.array([0.0, 0.0, 0.3])
        linkage.add(Link("bar", Joint("fixed"), [3.0, 0.0, 1.0], mass=mass, inertia=still, keyed=True))
        model = compile_model(linkage)
        rest = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
        poses = np.broadcast_to(rest, (25, *rest.shape)).copy()
        poses[:, -1, 0, 3] += np.linspace(0.0, 0.5, 25)
        paths.append(run(model, 25, scenery=[Plane()], motion=Motion(poses, 1 / 24), adaptive=adaptive).world)
        assert np.abs(paths[-1][:, -1] - poses[:, -1]).max() < 1e-12
    assert np.abs(paths[0] - paths[1]).max() < 1e-9
    assert paths[0][-1, :-1, 2, 3].max() < 0.1


def test_a_rigid_chain_lands_as_one_body_would():
    """Contacts act on whole zones: a chain of which nothing moves but its free base falls like a plank and stays up."""
    linkage = chain(6, "spherical", length=0.2, mass=1.0, radius=0.05, horizontal=True)
    first = next(linkage.links())
    first.joint, first.position = Joint("free"), np.array([0.0, 0.0, 0.3])
    model = compile_model(linkage)
    path = run(model, 40, scenery=[Plane()], adaptive=Adaptive(joints=0))
    assert (path.active[1:].sum(axis=1) == 1).all()
    heights = path.world[-1, :, 2, 3]
    assert heights == pytest.approx(0.05, abs=2e-3)
    assert path.penetration.max() < 2e-3
    assert np.abs(path.v[-1]).max() < 1e-2


def test_what_keeps_touching_is_no_surprise():
    """A body is chosen anew when it meets something, not at every step that it rests on it."""
    linkage = chain(6, "spherical", length=0.2, mass=1.0, radius=0.05, horizontal=True)
    first = next(linkage.links())
    first.joint, first.position = Joint("free"), np.array([0.0, 0.0, 0.05])
    simulation = Simulation(compile_model(linkage), substeps=20, scenery=[Plane()], adaptive=Adaptive(joints=2))
    list(simulation.run(4))
    hybrid, state = simulation.system.hybrid, simulation.state
    assert (state.memory.pushes[:, 0] > 0.0).sum() > 2
    met = replace(hybrid, calm=0, touching=_pressed(state))
    assert not met.surprised(hybrid.body.enter(state))
    assert replace(met, touching=met.touching[:1]).surprised(hybrid.body.enter(state))
    # where all move, nothing more can
    chooser, whole = Chooser(Adaptive(joints=6), simulation.world, 1 / 24), simulation.state
    for met in (None, whole):
        every, _ = chooser.refreshed(simulation.world, None, whole, 1 / 480, met)
        assert not replace(every, touching=every.touching[:0]).surprised(every.body.enter(whole))


def test_what_presses_harder_than_ever_is_a_surprise_at_any_time():
    """A thread of 300 is dragged around rims, 3.65 m/s fast when all its joints move. With 30 of them rigid zones come
    over the rims between two refreshes; as levers that nothing bends they would throw it off at 25 m/s."""
    seconds, frame_time = 1.25, 1 / 24
    model = compile_model(thread())
    motion = threading(model, 31, frame_time, seconds)
    simulation = Simulation(
        model, scenery=holes(), motion=motion, frame_time=frame_time, substeps=80, adaptive=Adaptive(joints=30)
    )
    list(simulation.run(31))
    way = np.diff(simulation.trajectory.world[:, :, :3, 3], axis=0)
    assert np.sqrt((way**2).sum(-1)).max() < 2.0 * 3.65 * frame_time


def test_people_fall_alike_and_touch_the_same_ground():
    """A person on a threshold small enough lands and lies as the exact one does, and nothing sinks in."""
    model = compile_model(humanoid(damping=2.0))
    exact, adaptive = (run(model, 30, scenery=[Plane()], adaptive=a) for a in (None, Adaptive(threshold=1e-5)))
    assert adaptive.penetration.max() < 1e-4
    # later the exact person topples, from upright, by what rounding makes of it
    assert np.abs(exact.world - adaptive.world)[:12, :, :3, 3].max() < 2e-3
    assert adaptive.limit_violation.max() < 1e-3


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"threshold": 0.1, "joints": 3}, {"threshold": -1.0}, {"threshold": np.nan}, {"joints": -1},
        {"joints": 2.5}, {"budget": 0.0}, {"threshold": "small"}, {"threshold": [1.0, 2.0]}, {"budget": [1.0]},
        {"threshold": 0.1, "interval": 0},
    ],
)  # fmt: skip
def test_settings_that_are_none_are_refused_in_a_line(settings):
    """A wrong number must not become a slow or a wrong simulation."""
    with pytest.raises(ValueError, match=r"^[^\n]+(needs one of|; give)[^\n]+$"):
        Adaptive(**settings)


def test_budgets_and_weights_are_checked_against_the_model():
    """More joints than there are, and weights by which nothing can be measured."""
    model = compile_model(chain(5))
    with pytest.raises(ValueError, match="6 joints"):
        Simulation(model, adaptive=Adaptive(joints=6))
    weights = [np.eye(1)] * 3 + [-np.eye(1), np.eye(1)]
    with pytest.raises(ValueError, match=r"link\.3"):
        Simulation(model, adaptive=Adaptive(joints=2, weights=weights))
    for wrong in (3.0, np.array(3.0), ["a"] * 5, [[1.0], [1.0, 2.0]], [1.0] * 4, np.full(5, np.nan)):
        with pytest.raises(ValueError, match=r"^[^\n]+; give [^\n]+$"):
            Simulation(model, adaptive=Adaptive(joints=2, weights=wrong))


def test_weights_may_be_a_list_of_numbers():
    """A list is refused nowhere else, and its length was told to be what it was."""
    model = compile_model(chain(5))
    listed, array = (
        run(model, 5, state=swinging(model), adaptive=Adaptive(joints=2, weights=weights)).world
        for weights in ([1.0, 2.0, 3.0, 4.0, 5.0], np.arange(1.0, 6.0))
    )
    np.testing.assert_array_equal(listed, array)


def test_contacts_are_looked_for_everywhere_once_something_is_far_from_where_it_was():
    """Only shapes near something are looked at while zones are what they were: what comes farther must be met too."""
    model = compile_model(chain(20, length=0.2, radius=0.02, horizontal=True))
    world = World(model, (Plane(point=np.array([0.0, 0.0, -1.0])),))
    state = model.rest_state()
    activity = Activity(model)
    body = HybridModel.of(model, activity.zones(np.array([0, 10])), state)
    near = world.gathered(body).looking_near(body.enter(state), 1e-3)
    assert near.collider.near.moving == 0
    turned = state.q.copy()
    turned[0] = 0.5 * np.pi
    poses = link_poses(body.reduced, turned[body.q])[0]
    found = near.collider.contacts(poses, 0.0)
    expected = world.collider.contacts(link_poses(model, turned)[0], 0.0)
    assert len(expected) > 10
    assert sorted(found.key.tolist()) == sorted(expected.key.tolist())
    order, other = np.argsort(found.key), np.argsort(expected.key)
    assert found.gap[order] == pytest.approx(expected.gap[other], abs=1e-12)
    assert found.part[order] == pytest.approx(expected.link[other])


def test_a_chain_held_at_both_ends_hangs_as_the_exact_one():
    """Loops hold zones as they hold links, and what they pull is known to the choice."""
    linkage = without_shapes(chain(24, "hinge", damping=0.2))
    q, tip = np.where(np.arange(24) % 2 == 0, 0.25, 0.0), np.array([0.0, 0.1, 0.0])
    model = compile_model(linkage)
    end = link_poses(model, q)[0][model.assembly.slot][-1] @ [*tip, 1.0]
    linkage.connect(None, linkage["link.23"], "spherical", at=end[:3], name="hook", seat=tip)
    model = compile_model(linkage)
    exact, adaptive = (
        run(model, 49, state=State(q, np.zeros(24)), adaptive=a) for a in (None, Adaptive(threshold=1e-3))
    )
    assert np.abs(exact.world - adaptive.world)[:, :, :3, 3].max() < 2.4e-2
    assert np.nanmax(adaptive.loop_gap) < 1e-6
    assert adaptive.active[1:].mean() < 0.6


def test_a_hook_pulls_a_body_by_its_weight():
    """Literal: 3 kg on a hook half a metre beside their center of mass."""
    linkage = Linkage()
    linkage.add(Link("body", Joint("free"), mass=3.0))
    linkage.connect(None, linkage["body"], "fixed", at=np.array([0.5, 0.0, 0.0]), name="hook")
    simulation = Simulation(compile_model(linkage), frame_time=1 / 24)
    list(simulation.run(4))
    links, wrenches = _pulls(simulation.world, simulation.state, simulation.system.poses(simulation.state))
    assert links.tolist() == [0]
    assert wrenches[0] == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.0, 3.0 * 9.81], abs=1e-8)


def test_drives_that_follow_the_motion_are_known_to_the_choice():
    """A tail that its drives bend into the motion's pose, without weight: what they exert is all that moves it."""
    linkage = without_shapes(chain(20, "hinge", stiffness=0.5, drive_damping=0.05))
    model = compile_model(linkage)
    bent = model.coordinates.integrate(model.coordinates.zero(), np.full(model.nv, 0.1), 1.0)
    motion = Motion(link_poses(model, bent)[0][model.assembly.slot][None], 1 / 24)
    settings = {"motion": motion, "follow": True, "gravity": (0.0, 0.0, 0.0), "state": model.rest_state()}
    exact, adaptive = (run(model, 49, adaptive=a, **settings) for a in (None, Adaptive(threshold=1e-4)))
    assert np.abs(exact.world[0] - exact.world[-1]).max() > 0.5
    assert np.abs(exact.world - adaptive.world)[:, :, :3, 3].max() < 2e-3


def many(order: list[int], free: bool = False) -> Linkage:
    """Chains of eight links called by their numbers, in that order, that stand beside each other."""
    linkage = Linkage()
    for number in order:
        host = None
        for link in list(without_shapes(chain(8, "spherical", damping=1e-2), free).links()):
            joint = Link(f"{number}/{link.name}", link.joint, link.position, mass=link.mass, inertia=link.inertia)
            joint.center_of_mass = link.center_of_mass
            if host is None:
                joint.position = np.array([3.0 * number, 0.0, 0.0])
            host = linkage.add(joint, host)
    return linkage


def thrown(model: Model) -> State:
    """The first half of each of `many` moves, as its number says."""
    v, start = np.zeros(model.nv), model.coordinates.v_start
    for i, name in enumerate(model.names):
        number, link = int(name[0]), int(name[-1])
        if link < 4:
            rates = np.random.default_rng(10 * number + link).standard_normal(start[i + 1] - start[i])
            v[start[i] : start[i + 1]] = rates
    return State(model.coordinates.zero(), v)


@pytest.mark.parametrize("adaptive", [Adaptive(joints=6), Adaptive(joints=32), Adaptive(threshold=1e-2)])
@pytest.mark.parametrize("free", [False, True])
def test_characters_may_be_given_in_any_order(free, adaptive):
    """Which joints move is a matter of the motion; characters and limbs have no order of their own."""
    paths = []
    for order in ([0, 1, 2, 3, 4, 5, 6, 7], [5, 0, 1, 4, 2, 6, 3, 7]):
        model = compile_model(many(order, free))
        path, names = run(model, 9, state=thrown(model), adaptive=adaptive), np.argsort(model.names)
        paths.append((path.active[:, names], path.world[:, names]))
    (active, world), (other_active, other_world) = paths
    assert (active == other_active).all()
    assert np.abs(world - other_world).max() < 1e-9


def test_what_floats_takes_no_joints_from_a_number_of_them():
    """A crowd of which fewer joints move than there are characters would fall like planks."""
    model = compile_model(many([0, 1, 2, 3, 4, 5, 6, 7], free=True))
    active = run(model, 5, state=thrown(model), adaptive=Adaptive(joints=6)).active
    floats = model.parent < 0
    assert active[1:, floats].all()
    assert (active[1:, ~floats].sum(axis=1) == 6).all()


@pytest.mark.parametrize("adaptive", [Adaptive(threshold=1e-3), Adaptive(joints=0), Adaptive(budget=1.0)])
def test_where_nothing_or_only_a_point_can_move_it_is_the_exact_method(adaptive):
    """A statue, and a stone without a shape: there is nothing to choose, and no size to measure by."""
    for kind, moves in (("fixed", 0), ("free", 1)):
        linkage = Linkage()
        linkage.add(Link("body", Joint(kind)))
        model = compile_model(linkage)
        path, exact = run(model, 5, adaptive=adaptive), run(model, 5)
        assert path.active[-1].sum() == moves
        assert np.abs(path.world - exact.world).max() < 1e-12


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 37.0), [np.eye(3)] * 12])
def test_a_joint_may_be_cut_whatever_weighs_and_who_holds_it(weights):
    """The cut link has other freedoms than it was weighed with, and a hand goes on holding it."""
    model = compile_model(without_shapes(chain(12, "spherical", damping=1e-2)))
    ends = []
    for adaptive in (Adaptive(threshold=0.0), Adaptive(threshold=1e-6, weights=weights), Adaptive(joints=3)):
        simulation = Simulation(model, substeps=12, state=swinging(model), adaptive=adaptive)
        frames = simulation.run(8)
        next(frames), next(frames)
        aim = simulation.hold(Grip("link.11"))
        aim.stiffness = np.array([50.0, 0.0])
        next(frames)
        simulation.cut("link.6")
        list(frames)
        ends.append(simulation.trajectory)
    exact, near, few = ends
    assert np.abs(exact.world - near.world)[:, :, :3, 3].max() < 1e-4
    assert few.active[4:, 6].all()
    assert (few.active[4:].sum(axis=1) <= 4).all()


def test_a_time_budget_lasts_when_joints_are_cut():
    """A cut must not cost a frame in which all joints move."""
    model = compile_model(without_shapes(chain(60, damping=1e-2)))
    cuts = ((8.5 / 24, "link.30"),)
    path = run(model, 12, state=swinging(model), adaptive=Adaptive(budget=1e-6, interval=5), cuts=cuts)
    assert path.active[8:].sum(axis=1).max() < path.active[1].sum()


def test_a_copy_of_a_simulation_goes_on_as_it_would():
    """Whoever keeps one to come back to must get the same motion."""
    model = compile_model(without_shapes(chain(12, "spherical", damping=1e-2)))
    simulation = Simulation(model, substeps=12, state=swinging(model), adaptive=Adaptive(threshold=1e-3))
    list(simulation.run(3))
    copied = deepcopy(simulation)
    for each in (simulation, copied):
        list(each.run(3))
    np.testing.assert_array_equal(simulation.trajectory.world, copied.trajectory.world)
