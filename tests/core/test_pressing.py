"""What does not press is left out of a step, and the step is that with all contacts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from core import integration, pressing, response
from core.answers import Answers
from core.constraints import recall
from core.integration import MISSES, World, step
from core.joint import Joint
from core.linkage import Link, Linkage
from core.mechanisms_large import bridge, snake
from core.model import Model, State, compile_model
from core.pressing import IDLE
from core.shape import Capsule, Plane, Sphere

RADIUS = 0.1
NONE = np.zeros(3)


def balls(count: int, **surface) -> Model:
    """Free balls of 1 kg."""
    linkage = Linkage()
    for i in range(count):
        inertia = 0.4 * RADIUS**2 * np.eye(3)
        linkage.add(Link(f"ball.{i}", Joint("free"), inertia=inertia, shapes=[Sphere(NONE, RADIUS, **surface)]))
    return compile_model(linkage)


def placed(model: Model, places: np.ndarray, velocities: np.ndarray) -> State:
    """Balls at places (n, 3) with velocities (n, 3)."""
    poses = np.tile(np.eye(4), (len(places), 1, 1))
    poses[:, :3, 3] = places
    after = poses.copy()
    after[:, :3, 3] += 1e-3 * velocities
    return model.state_from_poses(poses, after, 1e-3)


@pytest.fixture
def solved(monkeypatch) -> list[int]:
    """How many contacts each solution of a step had that had some."""
    counts, of = [], Answers.of

    def counted(middle, rows, *given):
        if len(rows.contacts):
            counts.append(len(rows.contacts))
        return of(middle, rows, *given)

    monkeypatch.setattr(Answers, "of", counted)
    return counts


def test_a_row_of_balls_is_pushed_as_far_as_it_reaches(solved):
    """The first of a row that touches is hit: without restitution all go on together, at a share of its momentum,
    though nothing but the first contact approaches before. After a few solutions each has twice as many as the last."""
    count, speed = IDLE + 10, 2.0
    model = balls(count, friction=0.0)
    velocities = np.zeros((count, 3))
    velocities[0, 0] = speed
    start = placed(model, np.outer(np.arange(count), (2.0 * RADIUS, 0.0, 0.0)), velocities)
    after = step(World(model, gravity=NONE), start, 1e-3)
    assert after.v.reshape(-1, 6)[:, 3] == pytest.approx(speed / count, abs=1e-4 * speed)
    assert solved[0] == 1
    assert solved[-1] == count - 1
    assert len(solved) <= 2 + MISSES + np.log2(count)


def test_only_what_may_press_is_solved_and_all_that_is_near_is_told(solved):
    """Sixty balls rise from the floor and one rests on it, which makes one contact of sixty-one."""
    count = 61
    model = balls(count)
    velocities = np.zeros((count, 3))
    velocities[1:, 2] = 0.3
    places = np.column_stack((np.arange(count), np.zeros(count), np.full(count, RADIUS)))
    world = World(model, (Plane(),))
    before = step(world, placed(model, places, velocities), 1 / 240)
    solved.clear()
    after = step(world, before, 1 / 240)
    assert solved == [1]
    memory = after.memory
    assert len(memory.contacts) == count
    assert (memory.pushes[:, 0] > 0.0).sum() == 1
    # the weight of the one that rests
    assert memory.pushes[:, 0].sum() / memory.h == pytest.approx(9.81, rel=1e-3)


def test_what_was_missed_joins_what_was_found_without_it(monkeypatch):
    """A long chain that lies on a bar, of which nothing is thought to press: when it is known what does, forces are not
    found once more from the beginning."""
    given, ended = [], integration._ended

    def watched(answers, meant, impulses):
        result = ended(answers, meant, impulses)
        given.append((answers, meant, impulses, *result))
        return result

    monkeypatch.setattr(integration, "_ended", watched)
    monkeypatch.setattr(integration, "may_press", lambda _, near, *__: np.zeros(len(near.contacts), dtype=bool))
    monkeypatch.setattr(pressing, "IDLE", 4)
    model = compile_model(snake(60))
    world, state, handed = World(model, tuple(bridge(60))), State(model.coordinates.zero(), np.zeros(model.nv)), []
    for _ in range(60):
        given.clear()
        state = step(world, state, 1 / 240)
        for (before, *_, ending, _, amiss, found), (after, meant, impulses, *_) in pairwise(given):
            if before.middle is after.middle:
                np.testing.assert_array_equal(impulses, recall(after.rows.key, before.rows.key, ending.impulses))
                handed.append(meant is found and amiss <= 1.0)
    assert np.count_nonzero(handed) > 5, "nothing was missed"


def heap() -> tuple[World, State]:
    """Chains that lie on each other, with rounds that resist rolling and spinning, and what some of them fling up."""
    linkage = Linkage()
    rng = np.random.default_rng(0)
    for arm in range(8):
        link = None
        for index in range(12):
            shape = Capsule(np.array([0.0, 0.02, 0.0]), np.array([0.0, 0.08, 0.0]), 0.02, rolling=1e-3, torsion=1e-3)
            joint = Joint("spherical", damping=1e-3) if link else Joint("free")
            piece = Link(f"{arm}.{index}", joint, mass=0.1, inertia=np.diag([1e-4, 2e-5, 1e-4]), shapes=[shape])
            piece.position = np.array([0.0, 0.1, 0.0]) if link else np.array([0.1 * arm, -0.6, 0.03 + 0.03 * arm])
            link = linkage.add(piece, link)
    model = compile_model(linkage)
    v = rng.standard_normal(model.nv)
    return World(model, (Plane(),)), State(model.coordinates.zero(), v)


def test_a_step_is_that_with_all_contacts(monkeypatch, solved):
    """From states on the way, where the solver reaches many digits: the impulses, whatever was left out at first, are a
    solution with all contacts. Coulomb's friction has several at times, so it is asked from these impulses on."""
    monkeypatch.setattr(response, "EXACT", 1e-10)
    monkeypatch.setattr(response, "ENOUGH", 1e-9)
    monkeypatch.setattr(pressing, "SLACK", 1e-10)
    monkeypatch.setattr(pressing, "IDLE", 4)
    world, state = heap()
    h, pruned, missed = 1 / 480, 0, 0
    for _ in range(60):
        solved.clear()
        after = step(world, state, h)
        few, once = min(solved, default=0) < len(after.memory.contacts), len(solved)
        if state.memory is not None and few and after.memory.residual < 1e-9:
            found = replace(state.memory, keys=after.memory.keys, impulses=after.memory.impulses)
            with monkeypatch.context() as all_of_them:
                all_of_them.setattr(pressing, "IDLE", 1 << 30)
                solved.clear()
                whole = step(world, replace(state, memory=found), h)
            assert np.abs(after.v - whole.v).max() < 1e-6 * np.abs(state.v).max()
            pruned += 1
            missed += once > len(solved)
        # what has pressed is not known, so that more is missed
        nothing = replace(after.memory, keys=after.memory.keys[:0], impulses=after.memory.impulses[:0])
        state = replace(after, memory=nothing)
    assert pruned > 10, "nothing was left out"
    assert missed > 1, "nothing was missed at first"
