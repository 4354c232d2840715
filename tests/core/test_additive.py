"""Additive following: all that physics adds to a motion is what the motion itself sets off, and what is met."""

from __future__ import annotations

import numpy as np
import pytest
from test_guide import FRAME, STILL, apart, dancer, finished, rest

from core.guide import Guide
from core.inverse import joint_inertia, unit_motions
from core.joint import Joint
from core.kinematics import kinematics, link_poses
from core.linkage import Link, Linkage
from core.mechanisms import chain, rod
from core.model import Model, State, compile_model
from core.motion import Motion
from core.shape import Plane
from core.simulation import Simulation


def tail(length: float = 0.4, damping: float = 0.3, armature: float = 0.0) -> Model:
    """A bone on a hinge that hangs from something animated; its joint has a damper of its own."""
    linkage = Linkage()
    base = linkage.add(Link("base", Joint("fixed"), keyed=True))
    bone = rod("bone", Joint("hinge"), length=length, mass=1.0)
    bone.joint.damping, bone.joint.armature = damping, armature
    linkage.add(bone, base)
    return compile_model(linkage)


def swung(model: Model, angles: np.ndarray) -> np.ndarray:
    return np.array([link_poses(model, np.array([angle]))[0][model.assembly.slot] for angle in angles])


def thread(frames: int, leaf: int | None = None, links: int = 40, base: float = 0.5) -> tuple[Model, np.ndarray]:
    """Links in a row, every joint swinging, at a base that is shaken to and fro and turned."""
    linkage = chain(links, "spherical")
    linkage["link.0"].joint, linkage["link.0"].keyed = Joint("fixed"), True
    for link in linkage.links():
        link.shapes = []
    model, poses = compile_model(linkage, leaf), []
    for time in FRAME * np.arange(frames):
        wave = 0.05 * np.sin(np.arange(model.nv)) * np.sin(4.4 * time)
        q = model.coordinates.integrate(model.rest_state().q, wave, 1.0)
        at, angle = np.eye(4), base * np.sin(5.0 * time)
        at[0, 3] = base * np.sin(6.3 * time)
        at[1:3, 1:3] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        poses.append(at @ link_poses(model, q)[0][model.assembly.slot])
    return model, np.array(poses)


@pytest.mark.parametrize("amount", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("frequency", "ratio", "length"), [(1.0, 0.1, 0.05), (1.0, 0.6, 0.4), (3.0, 0.25, 1.5)])
def test_what_stops_swings_on_at_the_set_frequency_and_decays_with_the_set_damping(amount, frequency, ratio, length):
    """A tail swung at 2 rad/s and stopped: e = amount · 2 / ω' exp(-ζωt) sin ω't, whatever hinders its joint, with
    gravity on, and not at all off its way before."""
    model, time, stop = tail(length, damping=0.2 * length**2, armature=0.05 * length**2), 0.005, 60
    angles = 2.0 * time * np.minimum(np.arange(240), stop)
    guide = Guide.of(2, frequency, ratio, additive=True, amount=amount)
    path = finished(model, Motion(swung(model, angles), time, guide), 240, substeps=2)
    omega, after = 2 * np.pi * frequency, time * np.maximum(np.arange(240) - stop, 0)
    swing = omega * np.sqrt(1 - ratio**2)
    expected = amount * 2.0 / swing * np.exp(-ratio * omega * after) * np.sin(swing * after)
    np.testing.assert_allclose(path.q[:, 0] - angles, expected, rtol=0, atol=0.01 * amount * 2.0 / swing)


@pytest.mark.parametrize("world", [False, True])
@pytest.mark.parametrize("frequency", [0.02, 0.5, 3.0])
def test_a_still_pose_does_not_sag_however_soft_it_is(frequency, world):
    """The pose at rest is the equilibrium, of a whole person who hovers in the air as of a finger."""
    model, poses = dancer(2)
    still = np.repeat(poses[1:], 60, axis=0)
    path = finished(model, Motion(still, FRAME, Guide.of(model.n, frequency, 0.3, world, additive=True)), 60)
    assert apart(path, still).max() < 1e-9


@pytest.mark.parametrize("world", [False, True])
@pytest.mark.parametrize("frequency", [0.3, 2.0, 8.0])
def test_amount_0_adds_nothing(frequency, world):
    """All of the source's own forces are carried: what is left are errors of integration."""
    model, poses = dancer(48)
    path = finished(
        model, Motion(poses, FRAME, Guide.of(model.n, frequency, 0.3, world, additive=True, amount=0.0)), 48
    )
    assert apart(path, poses).max() < 0.006


def test_what_amount_0_leaves_out_is_of_the_steps_second_order():
    """A long tail, shaken: half the step, a quarter of the error: the forces are those of the motion."""
    model, poses = thread(36)
    guide = Guide.of(model.n, 2.0, 0.5, additive=True, amount=0.0)
    coarse, fine = (
        apart(finished(model, Motion(poses, FRAME, guide), 36, substeps=substeps, gravity=STILL), poses).max()
        for substeps in (6, 12)
    )
    assert coarse < 0.004
    assert fine < 0.3 * coarse


def test_the_clusters_of_a_long_tail_carry_like_a_short_one():
    """What is fed is a force on links: the same whichever way the tree is cut for solving it."""
    paths = []
    for leaf in (1, 4, None):
        model, poses = thread(10, leaf)
        guide = Guide.of(model.n, 2.0, 0.5, additive=True, amount=0.5)
        paths.append(finished(model, Motion(poses, FRAME, guide), 10, substeps=4))
    for path in paths[1:]:
        np.testing.assert_allclose(path.world, paths[0].world, rtol=0, atol=1e-3)


def test_what_is_off_the_motion_gains_nothing_from_it():
    """PD+ is passive (Paden and Panja 1988): the energy of what is off the motion never grows, however soft the bones
    and wild the motion. Fed with forces along the world's axes, it did."""
    model, poses = thread(72, links=12)
    motion = Motion(poses, FRAME, Guide.of(model.n, 0.6, 0.3, additive=True, amount=0.0))
    on = finished(model, motion, 72, substeps=8)
    kick = np.random.default_rng(1).normal(size=model.nv) * 0.1
    start = State(model.coordinates.integrate(on.q[0], kick, 1.0), on.v[0])
    simulation = Simulation(model, motion=motion, frame_time=FRAME, substeps=8, state=start)
    for _ in simulation.run(72):
        pass
    off, stiffness = simulation.trajectory, simulation.world.guidance.inertia * (2 * np.pi * 0.6) ** 2
    energy = []
    for q, v, aim, speed in zip(off.q, off.v, on.q, on.v, strict=True):
        kin, e, rate = kinematics(model, q), model.coordinates.difference(aim, q), v - speed
        inertia = joint_inertia(model, kin, unit_motions(model, kin))
        energy.append(0.5 * rate @ inertia @ rate + 0.5 * e @ (stiffness * e))
    assert (np.diff(energy) < 0.01 * energy[0]).all()
    assert energy[-1] < 0.1 * energy[0]


def test_what_was_pushed_swings_about_the_pose_and_never_higher():
    """Energy does not grow: without damping the swing stays, with it it dies."""
    model = tail()
    for ratio, least in ((0.0, 0.97), (0.1, 0.0)):
        motion = Motion(
            np.repeat(swung(model, np.array([0.7])), 200, axis=0), FRAME, Guide.of(2, 1.0, ratio, additive=True)
        )
        away = np.abs(finished(model, motion, 200, state=State(np.array([1.0]), np.zeros(1))).q[:, 0] - 0.7)
        assert away.max() <= 0.3 * (1 + 1e-9)
        assert least * 0.3 <= away[-24:].max() <= 0.3
    assert away[-24:].max() < 0.01


def test_contacts_answer():
    """A tail that is swung and stopped before a wall meets it in its overshoot, and comes back from it."""
    model = tail(damping=0.0)
    angles = 4.0 * FRAME * np.minimum(np.arange(60), 12)
    motion = Motion(swung(model, angles), FRAME, Guide.of(2, 1.0, 0.3, additive=True))
    wall = Plane(normal=np.array([0.0, 1.0, 0.0]), point=np.array([0.0, 0.4 * np.cos(2.2), 0.0]))
    free, met = finished(model, motion, 60), finished(model, motion, 60, scenery=[wall])
    assert free.q.max() > 2.4
    assert met.penetration.max() < 1e-4 and met.contacts.max() > 0
    assert 2.1 < met.q.max() < 2.21
    assert abs(met.q[-1, 0] - 2.0) < 0.02


def test_what_is_cut_off_or_let_go_falls():
    """Follow at 0 is limp, additive or not: nothing carries it any more."""
    model, poses = dancer(30)
    hand = model.names.index("hand.L")
    path = finished(model, Motion(poses, FRAME, Guide.of(model.n, 8.0, additive=True)), 30, cuts=[(0.25, "hand.L")])
    assert apart(path, poses)[-1, hand] > 2.0
    limp = finished(model, Motion(poses, FRAME, Guide.of(model.n, 0.0, additive=True)), 30)
    assert apart(limp, poses)[-1].min() > 4.0


def test_an_amount_is_a_number_from_0_on():
    """A wrong table is named where it is given."""
    with pytest.raises(ValueError, match="amount is negative"):
        Guide.of(2, 1.0, amount=-1.0)
    assert rest(tail()).shape == (1, 2, 4, 4)
