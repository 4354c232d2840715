"""The choice of active joints: velocities in the coefficients, laziness, bounds, budgets and the velocity metric."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.activity import Activity
from core.dynamics import closed_dynamics
from core.error_queue import Measure
from core.joint import Joint
from core.kinematics import link_poses
from core.linkage import Linkage
from core.mechanisms import chain, random_coordinates, random_tree, rod
from core.model import Model, State, compile_model

KINDS = ("hinge", "prismatic", "universal", "spherical", "free", "fixed")


def freedoms(model: Model, links: np.ndarray) -> np.ndarray:
    start = model.coordinates.v_start
    return np.concatenate([np.zeros(0, dtype=int), *(np.arange(start[i], start[i + 1]) for i in links)])


class Body:
    """A random linkage some of whose joints move, pulled and driven, and its exact accelerations."""

    def __init__(self, seed: int, kinds: tuple[str, ...] = KINDS, linkage: Linkage | None = None) -> None:
        rng = self.rng = np.random.default_rng(seed)
        if linkage is None:
            linkage = random_tree(
                int(rng.integers(1, 45)), rng, kinds=kinds, branching=rng.random(), drives=rng.random() < 0.5
            )
            for link in linkage.links():
                if link.joint.kind not in ("fixed", "free") and rng.random() < 0.3:
                    link.joint.friction = rng.uniform(0.0, 0.3)
        self.model = model = compile_model(linkage)
        self.q = random_coordinates(linkage, rng)[0]
        self.weights = rng.uniform(0.5, 2.0, model.nv)
        self.gravity = rng.normal(size=3) * 5.0
        self.arity = int(rng.integers(2, 6))
        self.links, self.v = np.zeros(0, dtype=int), np.zeros(model.nv)
        self.wrenches, self.forces = np.zeros((model.n, 6)), np.zeros(model.nv)

    def some(self) -> np.ndarray:
        return self.rng.permutation(self.model.n)[: self.rng.integers(0, self.model.n + 1)]

    def activity(self) -> Activity:
        """A fresh one in this state."""
        activity = Activity(self.model, gravity=self.gravity, weights=self.weights, arity=self.arity)
        activity.place(self.q)
        activity.pull(np.arange(self.model.n), self.wrenches)
        activity.drive(np.arange(self.model.n), self.forces)
        return activity

    def move(self, scale: float = 1.0) -> None:
        """Other joints move, with other velocities."""
        self.links, self.v = self.some(), np.zeros(self.model.nv)
        moving = freedoms(self.model, self.links)
        self.v[moving] = scale * self.rng.normal(size=len(moving))

    def given(self) -> tuple[np.ndarray, np.ndarray]:
        return self.links, self.v[freedoms(self.model, self.links)]

    def exact(self) -> np.ndarray:
        poses = link_poses(self.model, self.q)[0][self.model.assembly.slot]
        turned = (poses[:, None, :3, :3] @ self.wrenches.reshape(-1, 2, 3, 1)).reshape(-1, 6)
        state = State(self.q, self.v)
        return closed_dynamics(self.model, state, gravity=self.gravity, wrenches=turned, forces=self.forces)[0]

    def check(self, activity: Activity) -> None:
        exact = self.exact()
        found = activity.accelerations(*self.given(), threshold=0.0)
        assert np.abs(found.dense() - exact).max(initial=0.0) <= 1e-9 * max(1.0, np.abs(exact).max(initial=0.0))


@pytest.mark.parametrize("kinds", [*((kind,) for kind in KINDS), KINDS])
@pytest.mark.parametrize("seed", range(4))
def test_a_threshold_of_zero_is_the_exact_method(kinds, seed):
    """Velocity terms of every joint, of links at rest in moving zones too, against an independent method."""
    body = Body(seed, kinds)
    body.move()
    body.wrenches[:] = body.rng.normal(size=body.wrenches.shape)
    body.forces[:] = body.rng.normal(size=body.model.nv)
    body.check(body.activity())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_hybrid_body_is_exact_and_its_metric_is_the_sum(seed):
    """The metric that everything is decided by is Σ q̈ᵀ W q̈ of the exact accelerations, whatever moves."""
    body = Body(seed)
    body.move()
    activity = body.activity()
    body.check(activity)
    a, exact = activity.articulation, body.exact()
    activity.accelerations(*body.given(), threshold=np.inf)
    total, doubt = a.total(np.array([a.partition.root]), np.zeros((1, 12)))
    whole = exact @ (body.weights * exact)
    assert total[0] - doubt[0] == pytest.approx(whole, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_after_many_rounds_nothing_is_out_of_date(seed):
    """What rests again, moves, is pulled or driven is brought up to date, and only that: laziness must not show."""
    body = Body(100 + seed)
    activity, model = body.activity(), body.model
    for _ in range(10):
        body.move()
        if body.rng.random() < 0.7:
            step = body.v * 0.3
            body.q = model.coordinates.integrate(body.q, step, 1.0)
            # what has not moved is not read
            shown = np.full(model.nq, np.nan)
            start = model.coordinates.q_start
            for i in body.links:
                shown[start[i] : start[i + 1]] = body.q[start[i] : start[i + 1]]
            activity.moved(body.links, shown)
        if body.rng.random() < 0.4:
            pulled = body.some()[:3]
            body.wrenches[:] = 0.0
            body.wrenches[pulled] = body.rng.normal(size=(len(pulled), 6))
            activity.pull(pulled, body.wrenches[pulled])
        if body.rng.random() < 0.4:
            driven = body.some()[:3]
            body.forces[freedoms(model, driven)] = body.rng.normal()
            activity.drive(driven, body.forces[freedoms(model, driven)])
        if body.rng.random() < 0.5:
            body.move()
        if body.rng.random() < 0.2:
            body.q = model.coordinates.integrate(body.q, body.rng.normal(size=model.nv), 0.1)
            activity.place(body.q)
        if body.rng.random() < 0.3:
            activity.zones(body.some())
        body.check(activity)
    fresh = body.activity()
    for x in (activity, fresh):
        x.accelerations(*body.given(), threshold=np.inf)
    p, a = activity.partition, activity.articulation
    opened = a.opened
    resting = np.setdiff1d(np.arange(p.nodes), opened)
    below = np.setdiff1d(p.child[opened - p.leaves], [p.nodes])
    inner = resting[resting >= p.leaves]
    for names, rows in (
        (("pairs",), slice(None)),
        (("answer", "squares"), slice(None)),
        (("columns", "quadratic"), resting),
        (("begun",), inner - p.leaves),
        (("linear", "eta", "spin"), below),
        (("start", "drift"), opened - p.leaves),
    ):
        for name in names:
            lazy, whole = (getattr(x.articulation, name)[rows] for x in (activity, fresh))
            assert np.abs(lazy - whole).max(initial=0.0) <= 1e-9 * max(1.0, np.abs(whole).max(initial=0.0)), name


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_holds_in_all_measures(seed):
    """The promise of the method, with velocities too."""
    body = Body(1000 + seed)
    body.move()
    model, activity, exact = body.model, body.activity(), body.exact()
    groups = np.repeat(np.arange(model.n), np.diff(model.coordinates.v_start))
    for measure in Measure:
        relative, joint = "relative" in measure.value, "joint" in measure.value
        size = np.max if joint else np.sum
        squares = body.weights * exact * exact
        whole = size(np.bincount(groups, squares, model.n)) if model.nv else 0.0
        threshold = 10.0 ** body.rng.uniform(-6, 0.3) * (1.0 if relative else np.sqrt(whole))
        found = activity.accelerations(*body.given(), threshold=threshold, measure=measure)
        left_out = body.weights * (found.dense() - exact) ** 2
        error = size(np.bincount(groups, left_out, model.n)) if model.nv else 0.0
        error = np.sqrt(error / whole if relative and whole else error)
        slack = 1e-8 * (1.0 if relative else max(np.sqrt(whole), 1.0))
        assert error <= found.error + slack <= threshold + 2.0 * slack


def test_nothing_is_computed_where_nothing_moves():
    """Of two chains only the one that turns is looked into, down to the last digit."""
    linkage = chain(40, "spherical", horizontal=True)
    link = None
    for index in range(40):
        link = linkage.add(rod(f"other.{index}", Joint("spherical"), length=0.1), link)
        link.position = np.array([0.0, 0.1, 0.0])
    activity = Activity(compile_model(linkage), gravity=np.zeros(3))
    v = np.random.default_rng(0).normal(size=36)
    for chosen in ("link", "other"):
        found = activity.accelerations([f"{chosen}.{i}" for i in range(3, 39, 3)], v, threshold=0.0)
        assert 40 <= len(found.links) <= 42
    assert activity.accelerations([], [], threshold=0.0).links.size == 0


def whirled(length: float, mass: float) -> Activity:
    """A rod on a free joint at its end."""
    linkage = Linkage()
    linkage.add(rod("rod", Joint("free"), length=length, mass=mass))
    return Activity(compile_model(linkage), gravity=np.zeros(3))


def test_a_whirled_rod_pulls_as_a_sling_does():
    """A rod that turns at ω about its end pulls with m ω² L / 2: in b that is the force its end needs to hold still."""
    length, mass, spin = 0.8, 3.0, 5.0
    activity = whirled(length, mass)
    found = activity.accelerations(["rod"], [0.0, 0.0, spin, 0.0, 0.0, 0.0], threshold=0.0)
    # let go, the end accelerates with the center's centripetal acceleration away: ω² L / 2 along the rod
    assert found.dense() == pytest.approx([0.0, 0.0, 0.0, 0.0, spin**2 * length / 2.0, 0.0], abs=1e-12)
    a = activity.articulation
    hold = np.linalg.solve(a.pairs[0, 0, :6, :6], -a.linear[0, :6, 0])
    assert hold == pytest.approx([0.0, 0.0, 0.0, 0.0, -mass * spin**2 * length / 2.0, 0.0], abs=1e-12)


def test_a_chain_at_rest_in_a_turning_zone_answers_at_once():
    """Only the top turns: a whole chain of resting joints below it feels ω² r, known without a look at its links."""
    model = compile_model(chain(300, "hinge", horizontal=True))
    activity = Activity(model, gravity=np.zeros(3))
    found = activity.accelerations([0], [1e-3], threshold=1e-3)
    assert len(activity.articulation.opened) < 12
    assert len(found.links) < 40
    v = np.zeros(model.nv)
    v[0] = 1e-3
    exact = closed_dynamics(model, State(model.coordinates.zero(), v), gravity=np.zeros(3))[0]
    assert np.linalg.norm(exact - found.dense()) <= 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_a_budget_is_kept_and_spent_on_the_largest(seed):
    """So many joints as asked for, at most one node too many; half the joints explain more than a random half would."""
    body = Body(seed, linkage=random_tree(60, seed, kinds=("hinge", "spherical", "fixed"), branching=0.3))
    body.move()
    activity, model = body.activity(), body.model
    movable = np.count_nonzero(np.diff(model.coordinates.v_start))
    errors = []
    for joints in (0, 1, 5, 20, movable, model.n):
        found = activity.accelerations(*body.given(), joints=joints)
        again = activity.accelerations(*body.given(), joints=joints)
        count = np.count_nonzero(np.diff(model.coordinates.v_start)[found.links])
        assert min(joints, movable) <= count < joints + body.arity
        assert (found.links == again.links).all()
        errors.append(found.error)
    assert errors == sorted(errors, reverse=True)
    assert errors[3] < 0.8 * errors[0]
    assert activity.accelerations(*body.given(), joints=60, threshold=np.inf).links.size == 0


@pytest.mark.parametrize("slide", [None, 0, 7])
def test_shares_are_of_the_length_that_hangs_from_a_node(slide):
    """Literal: of a chain of rods a node bends the part of itself, not of all below, where others bend in its stead,
    most when all its joints turn alike. None slides in its stead."""
    linkage = chain(20, length=0.5)
    if slide is not None:
        linkage[f"link.{slide}"].joint = Joint("prismatic")
    model = compile_model(linkage)
    activity = Activity(model)
    p, inside = activity.partition, [set() for _ in range(activity.partition.nodes)]
    for leaf, link in enumerate(p.link.tolist()):
        for node in p.closure(np.array([leaf])).tolist():
            inside[node].add(link)
    for node, links in enumerate(inside):
        if 20 in links:
            part, joints = (max(links - {20}, default=-0.5) + 0.5) / 19.5, len(links) - 1
        else:
            part, joints = (max(links) + 0.5 - min(links)) / (19.5 - min(links)), len(links) - 1
        if slide in (links if 20 in links else links - {min(links)}):
            part = 1.0
        assert activity.share[node] == pytest.approx(joints * part**2, abs=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_the_region_is_the_top_of_the_tree_and_its_error_is_what_is_below(seed):
    """Nodes are left out as a whole, and each with its share of all that its joints do: by a walk down the tree."""
    kinds = ("hinge", "universal", "spherical")
    body = Body(seed, linkage=random_tree(40, seed, kinds=kinds, branching=0.15))
    body.move()
    activity, model = body.activity(), body.model
    found = activity.accelerations(*body.given(), threshold=0.0)
    after = body.v + 0.1 * found.dense()
    counts = np.diff(model.coordinates.v_start)
    squares = np.bincount(np.repeat(np.arange(model.n), counts), body.weights * after * after, model.n)
    p, movable = activity.partition, np.flatnonzero(counts)

    def below(node: int) -> float:
        own = sum(squares[j] for j in p.joint[node - p.leaves].tolist() if j < model.n)
        return own + sum(below(c) for c in p.child[node - p.leaves].tolist() if p.leaves <= c < p.nodes)

    def inner(node: int) -> list[int]:
        return [c for c in p.child[node - p.leaves].tolist() if p.leaves <= c < p.nodes]

    def left_out(node: int, links: np.ndarray) -> float:
        joints = [j for j in p.joint[node - p.leaves].tolist() if j < model.n]
        assert np.isin(joints, links).all() or not np.isin(joints, links).any()
        if np.isin(joints, links).any():
            return sum(left_out(c, links) for c in inner(node))
        assert not np.isin(links_in(node), links).any()
        return float(activity.share[node]) * below(node)

    def links_in(node: int) -> list[int]:
        own = p.joint[node - p.leaves].tolist()
        return [*own, *(j for c in inner(node) for j in links_in(c))]

    errors = []
    for joints in (0, 2, 5, 20, len(movable)):
        region = activity.best(*body.given(), found, 0.1, joints)
        assert len(region.links) <= joints
        assert np.isin(region.links, movable).all()
        assert region.error == pytest.approx(np.sqrt(left_out(p.root, region.links)), abs=1e-6)
        errors.append(region.error)
        again = activity.best(*body.given(), found, 0.1, joints, kept=region.links)
        assert (again.links == region.links).all()
    ways = np.zeros(model.n + 1)
    for link, parent in enumerate(model.parent.tolist()):
        ways[link] = ways[parent] + (counts[link] > 0)
    assert errors[0] == pytest.approx(np.sqrt(ways.max() * below(p.root)))
    assert errors[3] < 0.5 * errors[0]
    assert errors[4] < 1e-6
    # what is kept must not leave out what matters
    worst = activity.best(*body.given(), found, 0.1, len(movable), kept=region.links[:1])
    assert (worst.links == region.links).all()
    seen = activity.best(*body.given(), found, 0.1, len(movable), kept=region.links[:1], enough=2.0 * errors[0])
    assert len(seen.links) < len(worst.links)
    for part in (0.0, 0.01, 0.1, 0.5, 1.0):
        near = activity.within(*body.given(), found, 0.1, part * errors[0])
        assert near.error == pytest.approx(np.sqrt(left_out(p.root, near.links)), abs=1e-6)
        assert near.error <= part * errors[0] + 1e-9
        # nothing less is as good
        fewer = activity.best(*body.given(), found, 0.1, max(len(near.links) - 1, 0))
        assert not len(near.links) or fewer.error > part * errors[0] - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_the_fewest_joints_are_the_fastest(seed):
    """The fewest joints without which the velocities' metric is small enough, by trying all prefixes."""
    body = Body(30 + seed)
    body.move()
    activity, model = body.activity(), body.model
    found = activity.accelerations(*body.given(), joints=min(8, model.n))
    after = body.v + 0.1 * found.dense()
    groups = np.repeat(np.arange(model.n), np.diff(model.coordinates.v_start))
    squares = np.bincount(groups, body.weights * after * after, model.n)
    for share in (0.0, 0.1, 0.9, 2.0):
        threshold = share * np.sqrt(squares.sum())
        region = activity.fewest(*body.given(), found, 0.1, threshold)
        left_out = np.delete(squares, region.links)
        assert np.sqrt(left_out.sum()) <= threshold + 1e-12
        assert region.error == pytest.approx(np.sqrt(left_out.sum()), abs=1e-9)
        smallest = squares[region.links].min(initial=np.inf)
        assert np.sqrt(left_out.sum() + smallest) > threshold


@pytest.mark.parametrize("arity", [2, 3])
def test_hubs_in_parts_turn_as_whole(arity):
    """A link with many pendants is cut into parts, which must share its gyroscopic pull as they share its mass."""
    linkage = random_tree(1, 0, kinds=("free",))
    hub = next(linkage.links())
    for index in range(60):
        twig = next(random_tree(1, index + 1, kinds=("hinge", "spherical", "universal")).links())
        twig.name, twig.parent, twig.brother = f"twig.{index}", None, None
        linkage.add(twig, hub)
    body = Body(3, linkage=linkage)
    body.arity = arity
    for _ in range(3):
        body.move()
        body.check(body.activity())


REFUSED = {
    "nothing says how many joints to compute": lambda x: x.accelerations([0], [0.0]),
    "the error threshold is -1": lambda x: x.accelerations([0], [0.0], threshold=-1),
    "the error threshold is nan": lambda x: x.accelerations([0], [0.0], threshold=np.nan),
    "4 joints are to be computed; give a number from 0 to 3": lambda x: x.accelerations([0], [0.0], joints=4),
    "v has shape": lambda x: x.accelerations([0, 1], [0.0], joints=1),
    "there is no link 3": lambda x: x.accelerations([3], [0.0], joints=1),
    "no link is called 'tail'": lambda x: x.zones(["tail"]),
    "a link is given twice": lambda x: x.accelerations([0, 0], [0.0, 0.0], joints=1),
    "q has shape": lambda x: x.moved([1], np.full(3, np.nan)),
    "q has": lambda x: x.place(np.zeros(2)),
    "wrenches has shape": lambda x: x.pull([0], np.zeros((2, 6))),
    "forces has shape": lambda x: x.drive([0], np.zeros(2)),
    "the interval is -1 s": lambda x: x.best([], [], x.accelerations([], [], joints=1), -1, 1),
    "the threshold of velocities is nan": lambda x: x.fewest([], [], x.accelerations([], [], joints=1), 1.0, np.nan),
    "the threshold of velocities is -1": lambda x: x.within([], [], x.accelerations([], [], joints=1), 1.0, -1),
    "5 joints are to move; give a number from 0 to 3": lambda x: x.best(
        [], [], x.accelerations([], [], joints=1), 1.0, 5
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_used_is_refused_in_one_line(message):
    """A wrong threshold, budget or link must be told by name, not found out from a wrong motion."""
    activity = Activity(compile_model(chain(3)))
    with pytest.raises(ValueError, match=message) as refusal:
        REFUSED[message](activity)
    assert "\n" not in str(refusal.value)
