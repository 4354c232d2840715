"""Many contacts with what stands still are solved for as inertia of their links, with the answers of their matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from coulomb import assert_coulomb
from hypothesis import assume, given, settings
from hypothesis import strategies as some

from core import Adaptive, Simulation, World, articulated_contact, compile_model, constraints, islands
from core.answers import Answers
from core.cones import Cones
from core.constraints import gather
from core.dynamics import respond
from core.friction import solve
from core.grip import Grip
from core.joint import Joint
from core.kinematics import kinematics, motions
from core.linkage import Link, Linkage
from core.mechanisms import chain, humanoid, random_coordinates, random_tree
from core.mechanisms_large import bridge, snake
from core.middle import Middle
from core.mobility import mobilities
from core.model import Model, State
from core.shape import Plane, Sphere

H = 1 / 240


@settings(max_examples=25, deadline=None)
@given(some.integers(1, 60), some.integers(0, 2**31))
def test_links_resist_along_other_directions_than_they_answer(count, seed):
    """(M + Σ Jᵀ K J)⁻¹ of inertias K that are not symmetric, against the same with dense matrices."""
    linkage = random_tree(count, seed)
    model = compile_model(linkage)
    kin = kinematics(model, random_coordinates(linkage, seed)[0])
    assume(model.nv)
    rng, slots = np.random.default_rng(seed), model.columns.slot_of
    K = rng.standard_normal(kin.inertia.shape) * np.abs(kin.inertia).max(axis=(1, 2), keepdims=True)
    K = K @ K.swapaxes(-1, -2) / np.abs(K).max() + 0.3 * (K - K.swapaxes(-1, -2))
    units = np.zeros((len(model.columns.link), model.nv))
    units[slots] = np.eye(model.nv)
    M = np.linalg.inv(respond(model, kin, model.armature, units)[slots])
    J = np.stack([motions(model, kin, unit).links[:-1] for unit in np.eye(model.nv)], axis=-1)
    expected = np.linalg.inv(M + np.einsum("lai,lab,lbj->ij", J, K, J))
    heavy = replace(kin, inertia=kin.inertia + K)
    result = respond(model, heavy, model.armature, units, symmetric=False)[slots]
    np.testing.assert_allclose(result, expected, atol=1e-9 * np.abs(expected).max())


@settings(max_examples=25, deadline=None)
@given(some.integers(1, 120), some.integers(0, 2**31))
def test_links_move_by_wrenches_as_the_whole_tree_lets_them(count, seed):
    """J M⁻¹ Jᵀ of every link, against the same with dense matrices."""
    linkage = random_tree(count, seed)
    model, rng = compile_model(linkage), np.random.default_rng(seed)
    kin = kinematics(model, random_coordinates(linkage, seed)[0])
    assume(model.nv)
    resistance = model.armature + rng.uniform(0.0, 1.0, model.nv) * rng.integers(0, 2, model.nv)
    units, slots = np.zeros((len(model.columns.link), model.nv)), model.columns.slot_of
    units[slots] = np.eye(model.nv)
    inverse = respond(model, kin, resistance, units)[slots]
    J = np.stack([motions(model, kin, unit).links[:-1] for unit in np.eye(model.nv)], axis=-1)
    # slots without a link stay out
    links = model.assembly.slot
    expected = (J @ inverse @ J.swapaxes(-1, -2))[links]
    result = mobilities(model, kin, resistance)[links]
    np.testing.assert_allclose(result, expected, atol=1e-9 * np.abs(expected).max())


def lying(kind: str) -> tuple[Model, State]:
    """A tangle that falls onto the ground and has just met it: a tail, a person at the limits of its joints, a tail
    that hangs from what is fixed in the ground, and balls of which some are far apart."""
    rng = np.random.default_rng(3)
    if kind == "balls":
        linkage = Linkage()
        for i in range(12):
            ball = Link(f"ball.{i}", Joint("free"), inertia=0.004 * np.eye(3), shapes=[Sphere(np.zeros(3), 0.1)])
            ball.position = np.array([0.19 * (i % 6), 0.3 * (i // 6), 0.0])
            linkage.add(ball)
    elif kind == "person":
        linkage = humanoid()
    else:
        linkage = chain(60, "spherical", length=0.05, radius=0.03, horizontal=True)
        root = next(iter(linkage.links()))
        root.joint = Joint("fixed" if kind == "fixed" else "free")
    model = compile_model(linkage)
    q = model.coordinates.integrate(model.coordinates.zero(), rng.standard_normal(model.nv), 0.3)
    return model, State(q, 0.5 * rng.standard_normal(model.nv))


def answered(kind: str, monkeypatch, sleeps: bool = False) -> tuple[Answers, Answers]:
    """A step's answers with the matrix and without."""
    model, state = lying(kind)
    poses = kinematics(model, state.q).poses
    height = np.percentile(poses[:-1, 2, 3], 30 if kind != "person" else 15)
    world = World(model, (Plane(np.array([0.0, 0.0, height])),))
    middle = Middle.of(world, state, H)
    asleep = np.zeros(model.assembly.links + 1, dtype=int)
    if sleeps:
        asleep[:3] = 1
    turning, awake = middle.forces(middle.moving)[1], np.zeros_like(asleep)
    near = gather(world, middle.kin, middle.moving, turning, middle.q, middle.expected, H, awake)
    near = replace(near, asleep=asleep)
    both = []
    for many in (10**9, 1):
        monkeypatch.setattr(constraints, "MANY", many)
        rows = near.rows(world, middle.kin)
        both.append(Answers.of(middle, rows, middle.forces(middle.moving), asleep))
    assert both[1].rows.on_links and not both[0].rows.on_links
    assert len(both[1].rows.on_links.own) > 5
    return tuple(both)


KINDS = ["tail", "person", "fixed", "balls"]


@pytest.mark.parametrize(("kind", "sleeps"), [*((kind, False) for kind in KINDS), ("balls", True)])
def test_the_operator_is_the_matrix(kind, sleeps, monkeypatch):
    """Among limits and contacts of links with each other, too; what sleeps is not moved."""
    dense, articulated = answered(kind, monkeypatch, sleeps)
    on = articulated.rows.on_links
    assert kind in ("tail", "fixed") or len(on.others) + len(articulated.rows.limits) > 0
    p = np.random.default_rng(0).standard_normal(len(dense.rows.key))
    matrix, result = dense.delassus, articulated.delassus @ p
    np.testing.assert_allclose(result, matrix @ p, atol=1e-9 * np.abs(result).max())
    np.testing.assert_allclose(articulated.moved(p), dense.moved(p), atol=1e-9 * np.abs(dense.moved(p)).max())
    v = np.random.default_rng(1).standard_normal(dense.middle.world.model.nv)
    model, kin = dense.middle.world.model, dense.middle.kin
    of_links, of_columns = (each.rows.velocity(model, kin, v, None) for each in (articulated, dense))
    if not sleeps:
        np.testing.assert_allclose(of_links, of_columns, atol=1e-12)
    # unit impulses on what nothing moves do nothing, and else what the matrix says, or about that
    about, diagonal = articulated.delassus.diagonal, matrix.diagonal()
    assert ((about > 1e-9 * about.max()) == (diagonal > 1e-9 * diagonal.max())).all()
    own = len(dense.rows.limits) + (3 * on.own[:, None] + np.arange(3)).reshape(-1)
    np.testing.assert_allclose(about[own], diagonal[own], rtol=1e-8, atol=1e-12 * diagonal.max())
    moved = diagonal > 1e-9 * diagonal.max()
    ratio = about[moved] / diagonal[moved]
    assert ratio.min() > 0.1 and ratio.max() < 10.0


@pytest.mark.parametrize("kind", KINDS)
def test_impulses_are_those_of_coulombs_law(kind, monkeypatch):
    """Both ways, and both lead to the same velocities where there is no friction."""
    dense, articulated = answered(kind, monkeypatch)
    rows, u = dense.rows, dense.rows.velocity(dense.middle.world.model, dense.middle.kin, dense.free()[0], None)
    m = len(rows.limits)
    u[:m] -= rows.bound[:m]
    u[rows.normals] -= rows.bound[m:]
    # what nothing moves cannot be moved out of the ground
    moves = dense.delassus.diagonal()[rows.normals] > 0.0
    of = np.concatenate((np.ones(m, dtype=bool), moves.repeat(3)))
    for friction in (0.0, 0.6):
        reached = []
        for answers in (dense, articulated):
            mu = np.full(len(moves), friction)
            p, outcome = solve(answers.delassus, u, mu, limits=m, tolerance=1e-10, sufficient=1e-9)
            assert outcome.converged
            assert_coulomb(dense.delassus[of][:, of], u[of], mu[moves], p[of], m, tolerance=1e-5)
            reached.append(dense.delassus @ p)
        assert np.count_nonzero(p) > 5
        # with friction there may be several
        if not friction:
            np.testing.assert_allclose(*reached, atol=1e-5 * np.abs(u).max())


def test_rounds_of_admm_are_those_of_the_matrix(monkeypatch):
    dense, articulated = answered("person", monkeypatch)
    u = dense.rows.velocity(dense.middle.world.model, dense.middle.kin, dense.free()[0], None)
    m, friction = len(dense.rows.limits), dense.rows.contacts.friction
    problem = articulated.delassus.problem(u, friction, m)
    # the same scale, which either chooses for itself
    matrix = dense.delassus[np.ix_(problem.order, problem.order)] * problem.unit * problem.unit[:, None]
    z, dual = np.zeros(len(u)), -problem.u / 0.3
    inverse = np.linalg.inv(matrix + 0.3 * np.eye(len(u)))
    for _ in range(5):
        mixed = 1.6 * inverse @ (0.3 * (z - dual) - problem.u) - 0.6 * z + dual
        z = problem.project(mixed)[0]
        dual = mixed - z
    result, force = problem.admm(np.zeros(len(u)), None, 0.3, 5)
    np.testing.assert_allclose(result, z, atol=1e-9)
    np.testing.assert_allclose(force, 0.3 * dual, atol=1e-9)


@pytest.fixture
def used(monkeypatch) -> list[bool]:
    """Whether each solution of a step that had contacts did without their matrix."""
    found, of = [], Answers.of

    def noticed(middle, rows, *given):
        if len(rows.contacts):
            found.append(rows.on_links is not None)
        return of(middle, rows, *given)

    monkeypatch.setattr(Answers, "of", noticed)
    return found


@pytest.mark.parametrize("adaptive", [None, Adaptive(joints=15)])
def test_a_snake_moves_as_with_the_matrix(adaptive, used, monkeypatch):
    """Every joint of it, and rigid zones of many links, on which friction has several solutions: both take the same."""
    monkeypatch.setattr(articulated_contact._Problem, "first_damping", Cones.first_damping)
    model, places = compile_model(snake(60)), []
    for many in (10**9, 1):
        monkeypatch.setattr(constraints, "MANY", many)
        used.clear()
        simulation = Simulation(model, scenery=bridge(60), substeps=20, adaptive=adaptive)
        list(simulation.run(4))
        assert set(used) == {many == 1}
        places.append(simulation.trajectory.world[:, :, :3, 3])
    assert np.ptp(places[0], axis=0).max() > 0.05
    # both are as near as the solver is asked for, and grow apart from there
    np.testing.assert_allclose(*places, atol=1e-3)


def test_the_many_contacts_of_rigid_zones_begin_with_more_damping(monkeypatch):
    """A third of Newton's steps less than from the damping that suits a matrix of few."""
    monkeypatch.setattr(constraints, "MANY", 1)
    model, steps, solve_one = compile_model(snake(60)), [], islands.solve

    def counted(*problem, **given):
        impulses, outcome = solve_one(*problem, **given)
        steps[-1] += outcome.iterations
        return impulses, outcome

    monkeypatch.setattr(islands, "solve", counted)
    for first_damping in (articulated_contact._Problem.first_damping, Cones.first_damping):
        monkeypatch.setattr(articulated_contact._Problem, "first_damping", first_damping)
        steps.append(0)
        list(Simulation(model, scenery=bridge(60), substeps=20, adaptive=Adaptive(joints=15)).run(5))
    assert 100 < steps[0] < 0.8 * steps[1]


@pytest.mark.parametrize("speed", [0.5, 2.0])
def test_a_rope_that_slides_along_itself_is_braked_by_friction_alone(speed, used):
    """Every link by μ g, until it lies: more than half a thousand contacts that all press."""
    linkage = chain(280, "spherical", length=0.04, radius=0.01, horizontal=True, damping=1e-3)
    next(iter(linkage.links())).joint = Joint("free")
    model = compile_model(linkage)
    friction = 0.6
    state = State(model.coordinates.zero(), np.zeros(model.nv))
    poses = kinematics(model, state.q).poses[model.assembly.slot]
    later = poses.copy()
    later[:, 0, 3] += 1e-3 * speed
    ground = Plane(np.array([0.0, 0.0, -0.01]), friction=friction)
    simulation = Simulation(model, scenery=(ground,), state=model.state_from_poses(poses, later, 1e-3), substeps=4)
    list(simulation.run(5))
    assert len(used) > 15 and all(used)
    world = simulation.trajectory.world
    time = min(4 / 24, speed / (friction * 9.81))
    moved = world[-1, :, :3, 3] - world[0, :, :3, 3]
    np.testing.assert_allclose(moved[:, 0], speed * time - 0.5 * friction * 9.81 * time**2, rtol=0.01)
    np.testing.assert_allclose(moved[:, 1:], 0.0, atol=1e-4)


@pytest.mark.parametrize("reason", ["nothing", "bounces", "loop", "grip", "rolls"])
def test_what_asks_for_elements_of_the_matrix_has_it(reason, used, monkeypatch):
    """Impacts, loops, hands and moments of contacts do; without them a person that lies has none."""
    monkeypatch.setattr(constraints, "MANY", 1)
    linkage = humanoid(damping=0.1)
    linkage["pelvis"].position[2] -= 0.1
    surface = {"bounces": {"restitution": 0.5}, "rolls": {"rolling": 0.01}}.get(reason, {})
    simulation = Simulation(compile_model(linkage), scenery=(Plane(**surface),), frame_time=1 / 24, substeps=4)
    if reason == "loop":
        simulation.connect("thigh.L", "hand.L", "spherical")
    if reason == "grip":
        simulation.hold(Grip("hand.L"))
    list(simulation.run(3))
    assert len(used) > 4 and set(used) == {reason == "nothing"}
