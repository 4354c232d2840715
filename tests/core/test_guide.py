"""Following the source motion: strengths that are frequencies, keyed in time, on joints, roots and the world's axes."""

from __future__ import annotations

import numpy as np
import pytest

from core.guide import Guide
from core.integration import step
from core.joint import Joint
from core.kinematics import link_poses
from core.linkage import Link, Linkage
from core.mechanisms import chain, free_body, humanoid, rod
from core.model import Model, State, compile_model
from core.motion import Motion
from core.shape import Plane
from core.simulation import Simulation
from core.trajectory import Trajectory

FRAME = 1 / 24
STILL = np.zeros(3)


def finished(model: Model, motion: Motion, frames: int, **settings) -> Trajectory:
    simulation = Simulation(model, motion=motion, frame_time=motion.frame_time, **settings)
    for _ in simulation.run(frames):
        pass
    return simulation.trajectory


def rest(model: Model) -> np.ndarray:
    return link_poses(model, model.rest_state().q)[0][model.assembly.slot][None]


def dancer(frames: int, shapes: bool = False) -> tuple[Model, np.ndarray]:
    """A humanoid without limits, standing in the air or on the ground, and poses in which every joint swings."""
    linkage = humanoid()
    linkage["pelvis"].position = np.array([0.0, 0.0, 0.9 if shapes else 3.0])
    for link in linkage.links():
        link.joint.lower, link.joint.upper = -np.inf, np.inf
        link.shapes = link.shapes if shapes else []
    model = compile_model(linkage)
    rng = np.random.default_rng(0)
    wide, phase, often = rng.normal(size=model.nv) * 0.2, rng.uniform(0, 6, model.nv), rng.uniform(0.5, 1.2, model.nv)
    wide[3:6] = 0.0 if shapes else 0.2
    if shapes:
        wide *= 0.3
    poses = []
    for time in FRAME * np.arange(frames):
        q = model.coordinates.integrate(model.rest_state().q, wide * np.sin(2 * np.pi * often * time + phase), 1.0)
        poses.append(link_poses(model, q)[0][model.assembly.slot])
    return model, np.array(poses)


def apart(path: Trajectory, poses: np.ndarray) -> np.ndarray:
    """How far each link's origin is from the motion (F, n) [m]."""
    return np.linalg.norm(path.world[..., :3, 3] - poses[..., :3, 3], axis=-1)


@pytest.mark.parametrize(("length", "mass"), [(0.03, 0.01), (0.4, 8.0)])
@pytest.mark.parametrize("world", [False, True])
def test_a_frequency_feels_alike_for_a_finger_and_a_thigh(length, mass, world):
    """Critically damped at f, whatever the size: e = e0 (1 + ωt) exp(-ωt) with ω = 2πf."""
    linkage = Linkage()
    base = linkage.add(Link("base", Joint("fixed"), keyed=True))
    linkage.add(rod("bone", Joint("hinge"), length=length, mass=mass), base)
    model = compile_model(linkage)
    motion = Motion(rest(model), 0.01, Guide.of(2, 2.0, 1.0, world))
    path = finished(model, motion, 30, gravity=STILL, state=State(np.array([0.3]), np.zeros(1)), substeps=20)
    turn = 2 * np.pi * 2.0 * 0.01 * np.arange(30)
    np.testing.assert_allclose(path.q[:, 0], 0.3 * (1 + turn) * np.exp(-turn), atol=2e-3)


@pytest.mark.parametrize("frequency", [2.0, 8.0])
def test_a_held_body_sags_as_much_as_is_said(frequency):
    """Gravity is fed forward by f⁴ / (f⁴ + 4⁴), the rest is a spring's sag: g / (2πf)² of it."""
    model = compile_model(free_body())
    path = finished(model, Motion(rest(model), FRAME, Guide.of(1, frequency)), 60)
    sag = 9.81 / (2 * np.pi * frequency) ** 2 * 256 / (frequency**4 + 256)
    assert path.world[-1, 0, 2, 3] == pytest.approx(-sag, rel=1e-3)


@pytest.mark.parametrize("world", [False, True])
def test_a_dancing_body_stays_within_a_centimetre_at_8_hz(world):
    """Free root, feet and hands: what is followed firmly is where the animator put it."""
    model, poses = dancer(30)
    path = finished(model, Motion(poses, FRAME, Guide.of(model.n, 8.0, 1.0, world)), 30)
    assert apart(path, poses).max() < 0.01


@pytest.mark.parametrize("world", [False, True])
def test_no_frequency_is_too_high(world):
    """Drives are implicit: a thousand times stiffer than a step can see, they follow all the better."""
    model, poses = dancer(20)
    path = finished(model, Motion(poses, FRAME, Guide.of(model.n, 8000.0, 1.0, world)), 20)
    assert apart(path, poses).max() < 0.003


def test_let_go_it_collapses_without_a_jump_and_rises_again():
    """Keys of strength change forces, never velocities; and what lies finds back into the motion."""
    model, poses = dancer(120, shapes=True)
    frequency = np.interp(np.arange(120), [24, 25, 70, 95], [8.0, 0.0, 0.0, 8.0])[:, None] * np.ones(model.n)
    motion = Motion(poses, FRAME, Guide.of(model.n, frequency))
    simulation = Simulation(model, motion=motion, frame_time=FRAME, scenery=[Plane(point=np.array([0.0, 0.0, -0.1]))])
    jumps = []
    for frame in simulation.run(120):
        if 23 <= frame <= 26:
            # the velocities that change within ten microseconds
            before, after = simulation.state.v, step(simulation.world, simulation.state, 1e-5).v
            jumps.append(np.abs(after - before).max() / np.abs(before).max())
    path = simulation.trajectory
    height = path.world[:, 0, 2, 3]
    assert max(jumps) < 0.01
    assert apart(path, poses)[:24].max() < 0.02
    assert height[65:70].max() < 0.5 * height[0]
    assert apart(path, poses)[-8:].max() < 0.02


def test_an_arm_that_is_let_go_does_not_move_the_rest():
    """Partial simulation: whoever walks on while an arm dangles walks as animated."""
    model, poses = dancer(40)
    limp = np.array(["arm.L" in name or "hand.L" in name for name in model.names])
    path = finished(model, Motion(poses, FRAME, Guide.of(model.n, np.where(limp, 0.0, 8.0))), 40)
    # the clavicle above has the arm's surprise to bear
    firm = ~limp & np.array(["clavicle.L" not in name for name in model.names])
    assert apart(path, poses)[:, firm].max() < 0.02
    assert apart(path, poses)[:, limp].max() > 0.1


@pytest.mark.parametrize(("world", "same"), [(False, 1e-9), (True, 1e-3)])
def test_the_clusters_of_a_large_body_follow_like_a_small_one(world, same):
    """Long chains are solved by halves: a free root that is driven is one of the joints between them. What acts from
    the world resists as inertia, which halves take along in their velocity terms: the same to the order of a step."""
    paths = []
    for leaf in (1, 4, None):
        linkage = chain(40, "spherical")
        linkage["link.0"].joint = Joint("free")
        for link in linkage.links():
            link.shapes = []
        model = compile_model(linkage, leaf)
        swings = 0.05 * np.sin(np.arange(model.nv)) * np.sin(FRAME * 2 * np.arange(10))[:, None]
        coordinates = [model.coordinates.integrate(model.rest_state().q, swing, 1.0) for swing in swings]
        poses = np.array([link_poses(model, q)[0][model.assembly.slot] for q in coordinates])
        turned = world & (np.arange(model.n) % 3 == 2)
        paths.append(finished(model, Motion(poses, FRAME, Guide.of(model.n, 8.0, 1.0, turned)), 10, substeps=4))
    assert apart(paths[0], poses).max() < 0.01
    for path in paths[1:]:
        np.testing.assert_allclose(path.world, paths[0].world, rtol=0, atol=same)


@pytest.mark.parametrize("weight", [0.0, 0.5, -1.0])
def test_a_share_of_gravity_acts(weight):
    """Moon, space, and balloons, character by character: z = weight · g t² / 2."""
    model = compile_model(free_body())
    path = finished(model, Motion(rest(model), 0.01, Guide.of(1, weight=weight)), 51)
    assert path.world[-1, 0, 2, 3] == pytest.approx(-0.5 * 9.81 * weight * 0.25, abs=1e-9)


def test_a_joint_that_is_cut_follows_no_more():
    """A limb that is cut off falls, instead of hanging in the air where the animation has it."""
    model, poses = dancer(30)
    hand = model.names.index("hand.L")
    motion = Motion(poses, FRAME, Guide.of(model.n, 8.0))
    path = finished(model, motion, 30, cuts=[(0.25, "hand.L")])
    assert apart(path, poses)[-1, hand] > 2.0
    assert np.delete(apart(path, poses), hand, axis=1).max() < 0.02


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"frequency": -1.0}, "frequency is negative"),
        ({"ratio": np.nan}, "ratio is negative or not finite"),
        ({"frequency": np.ones((2, 3))}, "frequency|broadcast"),
    ],
)
def test_what_cannot_be_followed_is_refused(given, message):
    """A wrong table is named where it is given, not as a character that flies away."""
    with pytest.raises(ValueError, match=message):
        Guide.of(2, **given)


def test_a_guide_has_as_many_frames_as_its_motion():
    """Keys of strength belong to frames."""
    model = compile_model(free_body())
    with pytest.raises(ValueError, match="the guide has 7 frames, the motion 3"):
        finished(model, Motion(np.repeat(rest(model), 3, axis=0), FRAME, Guide.of(1, np.ones((7, 1)))), 2)
