"""Bodies and chains collide by the laws of motion, in whichever order they are, and however fast."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from free_bodies import ON_LINKS, bodies, cube, places, run, shape

from core.joint import Joint
from core.kinematics import kinematics, motions
from core.linkage import Linkage
from core.mechanisms import frame_of, rod
from core.model import Model, State, compile_model
from core.shape import Box, Sphere


def turned(rng: np.random.Generator) -> np.ndarray:
    """A uniformly random unit quaternion."""
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def momentum(model: Model, state: State) -> np.ndarray:
    """Linear and angular momentum (6,) about the world's origin."""
    kin = kinematics(model, state.q)
    links, total = motions(model, kin, state.v).links, np.zeros(6)
    for slot in model.assembly.slot:
        angular, linear = np.split(kin.inertia[slot] @ links[slot], 2)
        total += *linear, *(angular + np.cross(kin.origin[model.assembly.cluster_of[slot]], linear))
    return total


@pytest.mark.parametrize("restitution", [0.0, 1.0])
@pytest.mark.parametrize(("one", "other"), list(itertools.combinations_with_replacement(ON_LINKS, 2)))
def test_bodies_that_collide_in_the_air_keep_their_momentum(one, other, restitution):
    """Whatever the shapes, spins and friction: a collision moves momentum from one to the other and makes none."""
    rng = np.random.default_rng(8)
    model, state = bodies(
        {"shapes": [shape(one, restitution=restitution)], "v": 0.3 * rng.normal(size=3), "spin": rng.normal(size=3),
         "turn": turned(rng), "inertia": (0.01, 0.02, 0.015)},
        {"shapes": [shape(other, restitution=restitution)], "at": (0.8, 0.02, 0.01), "v": (-3.0, 0.0, 0.0),
         "spin": 2 * rng.normal(size=3), "turn": turned(rng), "inertia": (0.03, 0.02, 0.04), "mass": 2.5},
    )  # fmt: skip
    simulation = run(model, state, 12, gravity=(0, 0, 0))
    energy = simulation.trajectory.energy
    assert simulation.trajectory.contacts.max() > 0
    np.testing.assert_allclose(momentum(model, simulation.state), momentum(model, state), atol=1e-9)
    assert energy[-1] < energy[0] * (1 - 1e-3) or restitution == 1.0
    assert np.diff(energy).max() < 2e-3 * energy[0]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_balls_that_collide_while_they_fall_part_by_their_restitution(restitution, swapped):
    """What falls together does not fall onto each other, whichever is the link and whichever the other."""
    ball = [Sphere(np.zeros(3), 0.1, restitution=restitution, friction=0.0)]
    parts = {"shapes": ball, "at": (0, 0, 5)}, {"shapes": ball, "at": (0, 0, 5.5), "v": (0, 0, -2)}
    model, state = bodies(*(parts[::-1] if swapped else parts))
    simulation = run(model, state, 12)
    upward = simulation.state.v.reshape(2, 6)[:, 5]
    assert abs(upward[0] - upward[1]) == pytest.approx(2.0 * restitution, abs=1e-5)


def two_chains(count: int, swapped: bool = False) -> tuple[Model, State]:
    """Two chains that cross; the upper one comes down on the lower with 2 m/s."""
    linkage = Linkage()
    starts = {
        "a": ((-0.05 * count, 0.0, 0.0), frame_of(along=np.array([1.0, 0.0, 0.0]), front=np.array([0.0, 0.0, 1.0]))),
        "b": (
            (0.013, -0.047 * count, 0.06),
            frame_of(along=np.array([0.0, 1.0, 0.0]), front=np.array([0.0, 0.0, 1.0])),
        ),
    }
    for name in reversed(starts) if swapped else starts:
        link = None
        for i in range(count):
            piece = rod(f"{name}{i}", Joint("spherical" if i else "free"), length=0.1, mass=0.1, radius=0.02)
            piece.position = np.array([0.0, 0.1, 0.0]) if i else np.array(starts[name][0])
            piece.rotation = np.eye(3) if i else starts[name][1]
            link = linkage.add(piece, link)
    model = compile_model(linkage)
    v = np.zeros(model.nv)
    v[model.coordinates.v_start[model.names.index("b0")] + 5] = -2.0
    return model, State(model.rest_state().q, v)


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_chains_that_collide_keep_their_momentum(count):
    """Every contact acts on both of its links, however many clusters of links lie between them and their roots."""
    model, state = two_chains(count)
    simulation = run(model, state, 4, gravity=(0, 0, 0))
    assert simulation.trajectory.contacts.max() > 0
    np.testing.assert_allclose(momentum(model, simulation.state), momentum(model, state), atol=1e-9)
    assert simulation.trajectory.energy[-1] < simulation.trajectory.energy[0]


def test_a_collision_does_not_depend_on_the_assembly_tree(monkeypatch):
    """How links are gathered into clusters is a matter of speed."""
    found = []
    for leaf in (6, 20, 60):
        monkeypatch.setattr("core.assembly.LEAF_FREEDOMS", leaf)
        model, state = two_chains(20)
        simulation = run(model, state, 2, gravity=(0, 0, 0), substeps=16)
        assert simulation.trajectory.contacts[-1] > 0
        found.append(simulation.trajectory.world[-1])
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=1e-6)


def test_a_collision_does_not_depend_on_the_order_of_links():
    """Nor is it a matter of who was added first."""
    found = []
    for swapped in (False, True):
        model, state = two_chains(20, swapped)
        simulation = run(model, state, 2, gravity=(0, 0, 0), substeps=16)
        assert simulation.trajectory.contacts[-1] > 0
        order = [model.names.index(name) for name in sorted(model.names)]
        found.append(simulation.trajectory.world[-1, order])
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


@pytest.mark.parametrize("speed", [5.0, 20.0, 50.0])
@pytest.mark.parametrize("plate", [Box(np.zeros(3), np.array([5.0, 5.0, 0.005])), cube(np.array([5.0, 5.0, 0.005]))])
def test_what_is_knocked_against_a_thin_plate_does_not_pass_it(plate, speed):
    """A ball at rest has no speed to look ahead by, until another hits it; and so has the next one."""
    ball = [Sphere(np.zeros(3), 0.1)]
    heights = 0.2, 0.45, 0.7
    model, state = bodies(
        *({"shapes": ball, "at": (0, 0, height)} for height in heights),
        {"shapes": ball, "at": (0, 0, 2), "v": (0, 0, -speed), "mass": 5.0},
    )
    simulation = run(model, state, 16, scenery=[plate])
    for name, least in zip(model.names, (0.1, 0.3, 0.5, 0.7)):
        assert places(simulation, name)[:, 2].min() > least - 0.01
    assert simulation.trajectory.penetration.max() < 0.01
