"""Joint limits in time: reached, never passed, measured here by geometry and not by the code under test."""

from __future__ import annotations

import numpy as np
import pytest

from core.integration import World, step
from core.joint import Joint
from core.linkage import Linkage
from core.mechanisms import chain, humanoid, pendulum, rod
from core.model import State, compile_model
from core.simulation import Simulation

ALLOWED = np.radians(1.0)
WEIGHTLESS = np.zeros(3)


def run(linkage: Linkage, v: np.ndarray | None = None, *, seconds: float = 2.0, rate: int = 240, gravity=(0, 0, -9.81)):
    """All joint coordinates (steps, nq) and velocities (steps, nv) from the rest pose."""
    model = compile_model(linkage)
    state = model.rest_state()
    if v is not None:
        state = State(state.q, np.array(v, dtype=float))
    world, states = World(model, gravity=np.array(gravity)), [state]
    for _ in range(round(seconds * rate)):
        states.append(step(world, states[-1], 1 / rate))
    return np.array([s.q for s in states]), np.array([s.v for s in states])


def rotation(q: np.ndarray) -> np.ndarray:
    """Matrices (..., 3, 3) of quaternions (w, x, y, z)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def swing_and_twist(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shortest turn (..., 2) about x and z that carries y where `q` does, and the turn about y before it."""
    bone = rotation(q)[..., :, 1]
    sine = np.hypot(bone[..., 0], bone[..., 2])
    angle = np.arctan2(sine, bone[..., 1]) / np.maximum(sine, 1e-12)
    swing = np.stack([angle * bone[..., 2], -angle * bone[..., 0]], axis=-1)
    twist = 2 * np.arctan2(q[..., 2], q[..., 0])
    return swing, (twist + np.pi) % (2 * np.pi) - np.pi


def outside_ellipse(swing: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """How far [rad] swings (..., 2) reach beyond the ellipse of half axes -lower and upper, each along itself."""
    level = np.linalg.norm(swing / np.where(swing > 0, upper, -lower), axis=-1)
    return np.linalg.norm(swing, axis=-1) * (1 - 1 / np.maximum(level, 1e-12))


@pytest.mark.parametrize("rate", [120, 240])
@pytest.mark.parametrize("stop", [0.3, 1.0])
def test_falling_pendulum_stops_at_its_limit(stop, rate):
    """A knee must not bend the wrong way, however hard it is thrown there."""
    q, v = run(pendulum(lower=-stop), rate=rate, seconds=1.5)
    assert q.min() == pytest.approx(-stop, abs=ALLOWED)
    assert np.abs(q[-rate // 3 :, 0] + stop).max() < ALLOWED / 10
    assert np.abs(v[-rate // 3 :]).max() < 1e-6


@pytest.mark.parametrize("speed", [1.0, 10.0, 40.0])
@pytest.mark.parametrize("kind", ["hinge", "prismatic", "universal"])
def test_thrown_joints_stay_between_their_limits(kind, speed):
    """Fast limbs must not pass a limit between two steps."""
    linkage = Linkage()
    size = {"hinge": 1, "prismatic": 1, "universal": 2}[kind]
    lower, upper = np.array([-0.4, -0.2])[:size], np.array([0.1, 0.5])[:size]
    linkage.add(rod("part", Joint(kind, lower, upper), length=0.4))
    for sign in (-1.0, 1.0):
        q, _ = run(linkage, np.full(size, sign * speed), seconds=0.25)
        assert np.maximum(lower - q, q - upper).max() < ALLOWED


def test_a_limit_takes_no_more_than_the_motion_into_it():
    """Motion along a limit and away from it is free."""
    linkage = Linkage()
    linkage.add(rod("part", Joint("universal", np.array([-0.3, -3.0]), np.array([0.3, 3.0])), length=0.4))
    q, v = run(linkage, [0.0, 1.0], seconds=1.0, gravity=WEIGHTLESS)
    assert q[-1, 1] == pytest.approx(1.0, abs=1e-3)
    model = compile_model(linkage)
    world = World(model, gravity=WEIGHTLESS)
    leaving = step(world, State(np.array([0.3, 0.0]), np.array([-1.0, 0.0])), 1e-3)
    assert leaving.v[0] == pytest.approx(-1.0, abs=1e-6)
    assert np.abs(v[:, 0]).max() < 1e-6


@pytest.mark.parametrize("speed", [3.0, 12.0, 30.0])
@pytest.mark.parametrize("seed", range(4))
def test_thrown_ball_joint_stays_in_its_swing_ellipse_and_twist(seed, speed):
    """A shoulder's range is wider to one side than to the other."""
    rng = np.random.default_rng(seed)
    lower, upper = -rng.uniform(0.2, 1.2, 3), rng.uniform(0.2, 1.2, 3)
    linkage = chain(1, "spherical", length=0.4, mass=1.0, radius=0.05, lower=lower, upper=upper)
    q, _ = run(linkage, speed * rng.normal(size=3), seconds=0.6)
    swing, twist = swing_and_twist(q)
    assert outside_ellipse(swing, lower[::2], upper[::2]).max() < ALLOWED
    assert np.maximum(lower[1] - twist, twist - upper[1]).max() < ALLOWED


def test_swing_reaches_the_whole_ellipse():
    """Limits that stop short of their value would stiffen every character."""
    lower, upper = np.radians([-20.0, -30.0, -50.0]), np.radians([70.0, 30.0, 40.0])
    for direction in np.linspace(0.1, 2 * np.pi, 6):
        way = np.array([np.cos(direction), 0.0, np.sin(direction)])
        linkage = chain(1, "spherical", length=0.4, mass=1.0, radius=0.05, lower=lower, upper=upper)
        q, _ = run(linkage, 4.0 * way, seconds=0.4, gravity=WEIGHTLESS)
        swing, _ = swing_and_twist(q)
        # thrown from the middle in a straight line, it meets the ellipse along its own direction
        assert outside_ellipse(swing, lower[::2], upper[::2]).max() == pytest.approx(0.0, abs=ALLOWED)


@pytest.mark.parametrize("seed", range(3))
def test_limits_take_energy_and_never_give_any(seed):
    """A limb that bounces harder off its limit than it came is how ragdolls explode."""
    model = compile_model(humanoid())
    start = State(model.rest_state().q, 4.0 * np.random.default_rng(seed).normal(size=model.nv))
    simulation = Simulation(model, frame_time=1 / 240, substeps=1, gravity=WEIGHTLESS, state=start)
    for _ in simulation.run(241):
        pass
    energies = simulation.trajectory.energy
    assert (energies - np.minimum.accumulate(energies)).max() < 1e-3 * 70 * 9.81 * 1.75
    assert np.degrees(simulation.trajectory.limit_violation.max()) < 1.0


def test_the_reported_violation_is_the_geometrical_one():
    """The report must not flatter."""
    lower, upper = np.array([-0.3, -0.2, -0.6]), np.array([0.5, 0.4, 0.2])
    linkage = chain(1, "spherical", lower=lower, upper=upper)
    world = World(compile_model(linkage))
    rng = np.random.default_rng(0)
    for _ in range(50):
        q = np.append(1.0, 0.3 * rng.normal(size=3))
        q /= np.linalg.norm(q)
        swing, twist = swing_and_twist(q)
        radial = outside_ellipse(swing, lower[::2], upper[::2])
        expected = max(0.0, radial, lower[1] - twist, twist - upper[1])
        # along its own direction a swing is at least as far outside as along the shortest way
        assert 0.5 * expected - 1e-9 <= world.limits.violation(q) <= expected + 1e-9


@pytest.mark.parametrize(
    ("lower", "upper", "swing", "violation"),
    [
        ((0.0, 0.0), (0.5, 0.5), (0.0, 0.0), 0.0),
        ((0.0, 0.0), (0.5, 0.5), (-0.01, 0.0), 0.01),
        ((0.0, 0.0), (0.5, 0.5), (-0.01, 0.3), 0.01),
        ((0.0, 0.0), (0.5, 0.5), (0.6, 0.0), 0.1),
        ((0.0, -0.5), (0.0, 0.5), (0.01, 0.3), 0.01),
        ((0.2, 0.2), (0.4, 0.4), (0.0, 0.0), 0.3242641),
        ((0.2, -np.inf), (np.inf, np.inf), (0.0, 0.0), 0.2),
    ],
)
def test_a_swing_range_includes_its_limits_and_nothing_beyond(lower, upper, swing, violation):
    """An elbow that may not be overstretched has its limit at the rest pose."""
    limits = np.insert(lower, 1, -0.5), np.insert(upper, 1, 0.5)
    world = World(compile_model(chain(1, "spherical", lower=limits[0], upper=limits[1])))
    angle = np.hypot(*swing)
    q = np.append(np.cos(angle / 2), 0.5 * np.sinc(angle / (2 * np.pi)) * np.array([swing[0], 0.0, swing[1]]))
    assert world.limits.violation(q) == pytest.approx(violation, abs=1e-7)


@pytest.mark.parametrize(("lower", "upper"), [(0.2, 0.4), (0.5, 1.0), (-0.4, -0.2)])
def test_a_ball_joint_comes_back_into_its_range_from_the_rest_pose(lower, upper):
    """There the swing has no direction, and the way back none either."""
    linkage = chain(1, "spherical", lower=np.array([lower, -0.5, lower]), upper=np.array([upper, 0.5, upper]))
    q, _ = run(linkage, seconds=0.1, gravity=WEIGHTLESS)
    swing, _ = swing_and_twist(q[-1])
    assert np.hypot(*(swing - 0.5 * (lower + upper))) < 0.5 * (upper - lower) + ALLOWED


def test_a_limit_at_the_rest_pose_turns_nothing_and_lets_nothing_past():
    """A bone that starts at its limit is where it may be."""
    lower, upper = np.array([0.0, -0.5, 0.0]), np.array([0.5, 0.5, 0.5])
    linkage = chain(1, "spherical", length=0.4, mass=1.0, radius=0.05, lower=lower, upper=upper)
    q, _ = run(linkage, [1e-4, 0.0, 0.0], seconds=0.1, gravity=WEIGHTLESS)
    np.testing.assert_allclose(q[-1], [1.0, 5e-6, 0.0, 0.0], atol=1e-8)
    q, _ = run(linkage, [-3.0, 0.0, -2.0], seconds=0.5, gravity=WEIGHTLESS)
    assert swing_and_twist(q)[0].min() > -ALLOWED


def test_complex_numbers_lie_in_one_piece(monkeypatch):
    """The same bake gives the same bits: numpy rounds strided complex numbers in two ways, and where the heap puts the
    result decides which."""
    lengths, seen = np.abs, []

    def spy(x, *given, **options):
        seen.append(x)
        return lengths(x, *given, **options)

    monkeypatch.setattr(np, "abs", spy)
    model = compile_model(humanoid())
    World(model).limits.rows(model.coordinates.zero())
    found = [x for x in seen if np.iscomplexobj(x)]
    assert len(found) >= 3
    assert all(x.flags.c_contiguous for x in found)
