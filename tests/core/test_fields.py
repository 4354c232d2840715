"""Force fields: directions, falloffs, changes in time, and what drag makes of long steps."""

from __future__ import annotations

import numpy as np
import pytest

from core.diagnostics import centers
from core.field import Drag, Falloff, Field, Fields, Force, Turbulence, Vortex, Wind, implicit
from core.kinematics import kinematics, motions
from core.mechanisms import humanoid, random_tree
from core.model import compile_model
from core.noise import turbulence

STILL = np.zeros((1, 3))


def force(field: Field, point, velocity=(0.0, 0.0, 0.0), time: float = 0.0) -> np.ndarray:
    return Fields((field,), 1.0).forces(time, np.array([point], dtype=float), np.array([velocity], dtype=float))[0]


def drift(fields: Fields, point, velocity, mass: float, h: float, steps: int, gravity=(0.0, 0.0, 0.0)):
    """Places and velocities (steps + 1, 3) of a free body by the midpoint rule, implicit in the resistance."""
    x, v = np.array([point], dtype=float), np.array([velocity], dtype=float)
    places, velocities = [x[0]], [v[0]]
    change = np.zeros((1, 3))
    for i in range(steps):
        middle = x + 0.5 * h * v
        push, resistance = fields.act((i + 0.5) * h, middle, v + 0.5 * change)
        total = push - resistance[:, None] * v + mass * np.array(gravity)
        change = h * total / (mass + implicit(resistance, np.array([mass]), h))[:, None]
        v = v + change
        x = middle + 0.5 * h * v
        places.append(x[0])
        velocities.append(v[0])
    return np.array(places), np.array(velocities)


@pytest.mark.parametrize("h", [0.001, 0.1, 10.0])
def test_linear_drag_follows_its_exponential_law_in_steps_of_any_length(h):
    """A parachute opens in a long step too."""
    mass, resistance = 2.0, 3.0
    _, v = drift(Fields((Drag(strength=resistance),)), (0, 0, 0), (5, 0, 0), mass, h, 20, gravity=(0, 0, -9.81))
    t = h * np.arange(21)
    fading = np.exp(-resistance * t / mass)
    assert np.allclose(v[:, 0], 5 * fading, atol=1e-9)
    assert np.allclose(v[:, 2], -9.81 * mass / resistance * (1 - fading), atol=1e-9)


def test_quadratic_drag_has_its_terminal_velocity():
    """m g = k v², approached as tanh."""
    _, v = drift(Fields((Drag(quadratic=0.5),)), (0, 0, 0), (0, 0, 0), 2.0, 0.005, 400, gravity=(0, 0, -9.81))
    terminal = np.sqrt(2.0 * 9.81 / 0.5)
    t = 0.005 * np.arange(401)
    assert np.allclose(v[:, 2], -terminal * np.tanh(9.81 / terminal * t), atol=1e-4)


def test_drag_never_reverses_motion():
    """However strong it is, and however long the step: it would throw about what it ought to hold."""
    for strength in (1.0, 1e3, 1e9):
        _, v = drift(Fields((Drag(strength=strength, quadratic=strength),)), (0, 0, 0), (3, 0, 0), 0.1, 0.5, 5)
        assert (v[:, 0] >= 0.0).all() and (np.diff(v[:, 0]) <= 0.0).all()


def test_wind_that_flows_carries_bodies_along_at_its_own_speed():
    """Strength over flow is the speed of the air."""
    _, v = drift(Fields((Wind(axis=[0, 2, 0], strength=6.0, flow=3.0),)), (0, 0, 0), (1, 0, 0), 0.5, 0.05, 200)
    assert np.allclose(v[-1], (0, 2, 0), atol=1e-6)


def test_bodies_orbit_a_force_of_the_inverse_square():
    """Energy, angular momentum and the closed orbit of Kepler's third law."""
    fields = Fields((Force(strength=-4.0, inverse_square=True, origin=[1, 0, 0]),))
    mass, semi_major = 2.0, 1.25
    speed = np.sqrt(4.0 / mass * (2 / 2.0 - 1 / semi_major))
    period = 2 * np.pi * np.sqrt(semi_major**3 * mass / 4.0)
    x, v = drift(fields, (3, 0, 0), (0, speed, 0), mass, period / 4000, 4000)
    away = x - [1, 0, 0]
    energy = 0.5 * mass * (v * v).sum(1) - 4.0 / np.linalg.norm(away, axis=1)
    assert np.ptp(energy) < 1e-4
    assert np.ptp(np.cross(away, v)[:, 2]) < 1e-6
    assert np.allclose(x[-1], (3, 0, 0), atol=1e-3)


def test_forces_come_from_points_lines_and_planes():
    """The same field in its three shapes."""
    point = (3.0, 0.0, 4.0)
    assert np.allclose(force(Force(strength=10), point), (6, 0, 8))
    assert np.allclose(force(Force(strength=10, shape="line"), point), (10, 0, 0))
    assert np.allclose(force(Force(strength=10, shape="plane"), point), (0, 0, 10))
    assert np.allclose(force(Force(strength=10), (0, 0, 0)), 0)


def test_vortices_turn_by_the_right_hand():
    """Around the axis with growing distance, and inward where they draw."""
    assert np.allclose(force(Vortex(strength=2, shape="plane"), (3, 0, 4)), (0, 6, 0))
    assert np.allclose(force(Vortex(strength=2, shape="plane", axis=[0, 0, -1]), (3, 0, 4)), (0, -6, 0))
    drawn = Vortex(strength=2, shape="plane", pull=0.5, resistance=1.5)
    assert np.allclose(force(drawn, (3, 0, 4), velocity=(0, 0, 2)), (-6, 6, -3))
    assert np.allclose(force(Vortex(strength=2), (3, 0, 4)), (0, 10, 0))


@pytest.mark.parametrize(
    ("falloff", "point", "share"),
    [
        (Falloff(power=2), (0, 0, 1), 0.25),
        (Falloff(power=2, least=0.5), (0, 0, 0.4), 1.0),
        (Falloff(power=2, least=0.5), (0, 0, 1.5), 0.25),
        (Falloff(most=2), (0, 0, 1.99), 1.0),
        (Falloff(most=2), (0, 0, 2.01), 0.0),
        (Falloff(side=1), (0, 0, -1), 0.0),
        (Falloff(side=-1), (0, 0, -1), 1.0),
        (Falloff(weight=0.5), (0, 0, 1), 0.5),
        (Falloff(kind="tube", power=1, radial_power=1), (3, 0, 1), 0.125),
        (Falloff(kind="tube", radial_most=2), (2.1, 0, 9), 0.0),
        (Falloff(kind="tube", power=1, radial_least=4), (0, 3, -1), 0.5),
        (Falloff(kind="cone", power=1, radial_power=1, radial_least=44), (1, 0, 1), 0.25),
        (Falloff(kind="cone", radial_most=30), (1, 0, 1), 0.0),
        (Falloff(kind="cone", radial_most=46), (1, 0, 1), 1.0),
    ],
)
def test_falloffs(falloff, point, share):
    """Worked out by hand; animators tune stages by these limits."""
    assert np.allclose(force(Wind(strength=8, shape="point", falloff=falloff), point), (0, 0, 8 * share))


def test_fields_move_and_swell_between_their_frames():
    """Straight from frame to frame and held at the ends; gusts last the frame that they lead to."""
    wind = Wind(strength=[0, 10, 30], axis=[[1, 0, 0], [0, 1, 0], [0, 1, 0]])
    fields = Fields((wind,), 0.1)
    at = lambda time: fields.forces(time, STILL, STILL)[0]  # noqa: E731
    assert np.allclose(at(-1.0), 0)
    assert np.allclose(at(0.05), 5 * np.array([1, 1, 0]) / np.sqrt(2))
    assert np.allclose(at(0.175), (0, 25, 0))
    assert np.allclose(at(9.0), (0, 30, 0))
    assert np.allclose(force(Force(strength=1, origin=[[0, 0, 0], [4, 0, 0]]), (1, 0, 0), time=0.75), (-1, 0, 0))
    assert np.allclose(force(Wind(strength=1, gust=[9, 1, 2]), (0, 0, 0), time=0.01), (0, 0, 2))
    assert np.allclose(force(Wind(strength=1, gust=[9, 1, 2]), (0, 0, 0), time=1.01), (0, 0, 3))


def test_bodies_and_fields_stand_in_any_order():
    """Each body feels the sum of all fields, and no other body."""
    rng = np.random.default_rng(0)
    points, velocities = rng.normal(size=(2, 7, 3))
    several = (
        Wind(strength=2, flow=0.3, axis=[1, 1, 0], falloff=Falloff(kind="cone", power=1)),
        Force(strength=3, inverse_square=True),
        Vortex(strength=1, shape="plane", pull=0.2, resistance=1),
        Turbulence(strength=2, size=0.5),
        Drag(strength=0.1, quadratic=0.2),
    )
    whole = Fields(several).forces(0.0, points, velocities)
    order = rng.permutation(7)
    assert np.allclose(Fields(several[::-1]).forces(0.0, points[order], velocities[order]), whole[order])
    assert np.allclose(sum(Fields((each,)).forces(0.0, points, velocities) for each in several), whole)


def test_turbulence_is_smooth_and_the_same_whenever_asked():
    """As strong as Blender's, whose spread at strength 1 was measured as 0.174, and no jumps at the grid's cells."""
    points = np.random.default_rng(0).uniform(-30, 30, (20000, 3))
    values = turbulence(points)
    assert abs(values.mean()) < 0.01 and values.std() == pytest.approx(0.174, rel=0.05)
    assert np.abs(values).max() < 1.0
    assert np.array_equal(turbulence(points[:5]), values[:5])
    line = np.stack((np.linspace(-3, 3, 60001), np.full(60001, 0.3), np.full(60001, -0.2)), axis=1)
    assert np.abs(np.diff(turbulence(line))).max() < 5e-4
    field = Turbulence(strength=1.0, origin=[[0, 0, 0], [5, 1, 0]])
    assert np.allclose(force(field, (0.3, 0.4, 0.5)), force(field, (5.3, 1.4, 0.5), time=1.0))
    still = Turbulence(strength=1.0, origin=[[0, 0, 0], [5, 1, 0]], still=True)
    assert np.allclose(force(still, (0.3, 0.4, 0.5)), force(still, (0.3, 0.4, 0.5), time=1.0))


@pytest.mark.parametrize("linkage", [humanoid(), random_tree(30, 3)])
def test_links_feel_fields_at_their_centers_of_mass(linkage):
    """The wrenches' power is that of the forces at the centers, in every motion; so is the added inertia's energy."""
    model = compile_model(linkage)
    rng = np.random.default_rng(1)
    q = model.coordinates.integrate(model.rest_state().q, rng.normal(size=model.nv), 0.5)
    kin = kinematics(model, q)
    v = rng.normal(size=model.nv)
    twists = motions(model, kin, v).links
    points = centers(model, kin)
    span = 1e-6
    later, sooner = (kinematics(model, model.coordinates.integrate(q, v, s)) for s in (span, -span))
    velocities = (centers(model, later) - centers(model, sooner)) / (2 * span)
    fields = Fields((Force(strength=3.0), Drag(strength=0.2, quadratic=0.1)))
    wrenches, added = fields.on_links(model, kin, twists, twists, 0.0, 0.02)
    forces = fields.forces(0.0, points, velocities)
    assert (wrenches * twists[:-1]).sum() == pytest.approx((forces * velocities).sum(), rel=1e-6)
    speed = np.linalg.norm(velocities, axis=1)
    mass = implicit(0.2 + 0.1 * speed, model.mass, 0.02)
    energy = np.einsum("ki,kij,kj", twists[:-1], added, twists[:-1])
    assert energy == pytest.approx((mass * speed**2).sum(), rel=1e-6)


def test_what_is_no_field_is_refused():
    """With the name of the thing that is wrong."""
    with pytest.raises(ValueError, match="shape 'surface'"):
        Wind(shape="surface")
    with pytest.raises(ValueError, match="kind 'box'"):
        Falloff(kind="box")
    with pytest.raises(ValueError, match="axis not zero"):
        Wind(axis=[0, 0, 0])
    with pytest.raises(ValueError, match="no finite strength"):
        Force(strength=[1.0, np.nan])
    with pytest.raises(ValueError, match="no finite quadratic"):
        Drag(quadratic=np.inf)
