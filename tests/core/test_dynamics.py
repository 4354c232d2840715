"""Joint accelerations against Pinocchio, MuJoCo and themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from oracle import layout, load, per_freedom

from core.dynamics import acceleration
from core.joint import FREEDOMS, Joint
from core.kinematics import kinematics, push
from core.linkage import Link, Linkage
from core.mechanisms import chain, humanoid, random_coordinates, random_tree
from core.model import State, compile_model

ALL = tuple(FREEDOMS)
FEW_FREEDOMS = ("fixed",) * 14 + ("hinge",) * 4 + ("prismatic", "universal", "spherical", "free")
TREES = [(count, ALL, branching, seed) for count in (2, 3, 7, 19, 60) for branching in (0.4, 1.0) for seed in range(3)]
DEEP = [(count, (kind,), 0.0, 0) for count in (10, 30) for kind in ALL if kind != "fixed"] + [(12, ALL, 0.0, 1)]
LARGE = [(300, FEW_FREEDOMS, 0.2, 0), (300, FEW_FREEDOMS, 0.5, 1), (300, ("hinge", "prismatic", "fixed"), 0.0, 2)]
LARGEST = [(count, ALL, branching, seed) for count in (100, 300) for branching in (0.1, 0.5, 1.0) for seed in range(2)]
CHAINS = [(300, kinds, 0.0, 3) for kinds in (("hinge",), ("universal",), ("spherical",), ALL)]
"""Each oracle gets what it can do to 1e-9. Pinocchio's data hold tensors of freedoms³, and its ABA loses half of all
digits on chains of some 40 spherical or 80 universal joints. MuJoCo loses up to 4e-9 on chains of 300 links."""


@dataclass
class Situation:
    """A linkage in motion, with forces on everything."""

    linkage: Linkage
    q: np.ndarray
    v: np.ndarray
    forces: np.ndarray
    wrenches: np.ndarray
    gravity: np.ndarray

    def ours(self, leaf_freedoms: int | None = None) -> np.ndarray:
        model = compile_model(self.linkage, leaf_freedoms=leaf_freedoms)
        state = State(self.q, self.v)
        return acceleration(model, state, forces=self.forces, wrenches=self.wrenches, gravity=self.gravity)

    def theirs(self, oracle: str) -> np.ndarray:
        tau = self.forces + drive_forces(self.linkage, self.q, self.v)
        return load(oracle).acceleration(self.linkage, self.q, self.v, tau, self.wrenches, self.gravity)


def situation(linkage: Linkage, seed: int = 0) -> Situation:
    rng = np.random.default_rng([seed, 7])
    q, v = random_coordinates(linkage, rng)
    count = sum(1 for _ in linkage.links())
    return Situation(
        linkage, q, v, 3.0 * rng.normal(size=len(v)), 3.0 * rng.normal(size=(count, 6)), 6.0 * rng.normal(size=3)
    )


def tree(count: int, kinds: tuple[str, ...], branching: float, seed: int) -> Linkage:
    """A driven random tree; ball joints' springs are equal about all axes, where strain and torque are parallel."""
    linkage = random_tree(count, [seed, count], kinds=kinds, branching=branching, drives=True)
    for link in linkage.links():
        if link.joint.kind == "spherical":
            link.joint.stiffness = 25.0
    return linkage


def label(value: object) -> str | None:
    """Names for the kinds of joints in the tests' names."""
    if isinstance(value, tuple):
        return {ALL: "all", FEW_FREEDOMS: "few"}.get(value, "+".join(value))
    return None


def drive_forces(linkage: Linkage, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Springs to the rest pose and their dampers (nv,): of a rotation vector for spherical joints."""
    strain = np.zeros(len(v))
    for link, at_q, at_v in layout(linkage):
        if link.joint.kind == "spherical":
            w, *axis = q[at_q] if q[at_q][0] >= 0 else -q[at_q]
            sine = np.linalg.norm(axis)
            strain[at_v] = 2.0 * np.arctan2(sine, w) * np.array(axis) / sine
        elif link.joint.kind != "free":
            strain[at_v] = q[at_q]
    return -per_freedom(linkage, "stiffness") * strain - per_freedom(linkage, "drive_damping") * v


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert np.isfinite(found).all()
    error = np.abs(found - expected).max(initial=0.0)
    assert error <= tolerance * np.abs(expected).max(initial=1e-300), f"{error:.2e} off"


@pytest.mark.parametrize(("count", "kinds", "branching", "seed"), TREES + DEEP + LARGE, ids=label)
def test_random_trees_accelerate_as_in_pinocchio(count, kinds, branching, seed):
    """Every joint, force and drive enters the equations of motion as an independent library has it."""
    case = situation(tree(count, kinds, branching, seed), seed)
    assert_close(case.ours(), case.theirs("pinocchio"), 1e-9)


@pytest.mark.parametrize(("count", "kinds", "branching", "seed"), TREES + DEEP + LARGE + LARGEST, ids=label)
def test_random_trees_accelerate_as_in_mujoco(count, kinds, branching, seed):
    """A second independent library, which also reaches 300 bodies of all joint types."""
    case = situation(tree(count, kinds, branching, seed), seed)
    assert_close(case.ours(), case.theirs("mujoco"), 1e-9)


@pytest.mark.parametrize("leaf_freedoms", [1, None])
@pytest.mark.parametrize(("count", "kinds", "branching", "seed"), TREES + DEEP + CHAINS, ids=label)
def test_random_trees_accelerate_as_in_extended_precision(count, kinds, branching, seed, leaf_freedoms):
    """Long chains must not lose the digits that other libraries lose there, and numpy alone suffices to see it."""
    case = situation(tree(count, kinds, branching, seed), seed)
    assert_close(case.ours(leaf_freedoms), case.theirs("extended"), 1e-10)


@pytest.mark.parametrize("leaf_freedoms", [1, None])
@pytest.mark.parametrize("scale", [0.0, 1e4, 1e8])
@pytest.mark.parametrize(("count", "branching"), [(40, 0.0), (80, 0.6)])
def test_stiff_implicit_drives_keep_their_digits(count, branching, scale, leaf_freedoms):
    """Implicit springs and dampers add to a joint's inertia, from nothing to as much as locks it."""
    linkage = tree(count, ALL, branching, 3)
    for link in linkage.links():
        link.joint.armature = np.asarray(link.joint.armature) * scale
    case = situation(linkage)
    assert_close(case.ours(leaf_freedoms), case.theirs("extended"), 1e-9)


@pytest.mark.parametrize("oracle", ["pinocchio", "mujoco"])
@pytest.mark.parametrize(
    "make",
    [humanoid, lambda: chain(60), lambda: chain(200, horizontal=True)],
    ids=["humanoid", "hanging chain", "long chain"],
)
def test_named_mechanisms_accelerate_as_in_the_oracles(oracle, make):
    """The mechanisms that all other tests and benchmarks use are among those proven."""
    case = situation(make())
    assert_close(case.ours(), case.theirs(oracle), 1e-9)


@pytest.mark.parametrize("leaf_freedoms", [1, 6, 20, 64])
@pytest.mark.parametrize(("count", "kinds", "branching", "seed"), TREES[::3] + LARGEST[::2] + CHAINS, ids=label)
def test_accelerations_do_not_depend_on_the_assembly_tree(count, kinds, branching, seed, leaf_freedoms):
    """Dense leaves are for speed only: the pure divide-and-conquer tree must give the same motion."""
    case = situation(tree(count, kinds, branching, seed), seed)
    assert_close(case.ours(leaf_freedoms), case.ours(), 1e-10)


@pytest.mark.parametrize("leaf_freedoms", [1, None])
def test_accelerations_do_not_depend_on_the_order_of_brothers(leaf_freedoms):
    """Which limb was added first is an accident of editing."""
    case = situation(tree(40, ALL, 0.7, 5))
    turned, order_v, order_q, order = reversed_brothers(case.linkage)
    other = Situation(
        turned, case.q[order_q], case.v[order_v], case.forces[order_v], case.wrenches[order], case.gravity
    )
    assert_close(other.ours(leaf_freedoms), case.ours(leaf_freedoms)[order_v], 1e-10)


def reversed_brothers(linkage: Linkage) -> tuple[Linkage, np.ndarray, np.ndarray, np.ndarray]:
    """The linkage with all brothers in reverse, and where its velocities, coordinates and links stood before."""
    turned, copies = Linkage(), {}
    fields = ("name", "joint", "position", "rotation", "mass", "center_of_mass", "inertia")
    pending: list[tuple[Link, Link | None]] = [(link, None) for link in linkage.world.children()][::-1]
    for link, carrier in pending:
        copies[link.name] = turned.add(Link(**{name: getattr(link, name) for name in fields}), carrier)
        pending.extend([(child, copies[link.name]) for child in link.children()][::-1])
    before = {link.name: (i, at_q, at_v) for i, (link, at_q, at_v) in enumerate(layout(linkage))}
    places = [before[link.name] for link in turned.links()]
    order_q, order_v = (np.concatenate([np.arange(p[i].start, p[i].stop) for p in places]) for i in (1, 2))
    return turned, order_v, order_q, np.array([p[0] for p in places])


@pytest.mark.parametrize("leaf_freedoms", [1, None])
def test_trees_of_a_forest_do_not_feel_each_other(leaf_freedoms):
    """Several characters are simulated in one model."""
    alone = [situation(tree(9, ALL, 0.0, seed), seed) for seed in range(4)]
    for case in alone:
        case.gravity = alone[0].gravity
    parts = np.concatenate([case.ours(leaf_freedoms) for case in alone])
    together = {name: np.concatenate([getattr(c, name) for c in alone]) for name in ("q", "v", "forces", "wrenches")}
    forest = Linkage()
    for number, case in enumerate(alone):
        links = list(case.linkage.links())
        for link in links:
            link.name = f"{number}/{link.name}"
        forest.add(links[0])
    joined = Situation(forest, **together, gravity=alone[0].gravity)
    assert_close(joined.ours(leaf_freedoms), parts, 1e-10)


@pytest.mark.parametrize("leaf_freedoms", [1, None])
def test_a_turned_and_shifted_world_turns_the_motion(leaf_freedoms):
    """Nothing may depend on where a character stands or which way it faces."""
    case = situation(tree(25, ALL, 0.3, 2))
    before = case.ours(leaf_freedoms)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    for root in case.linkage.world.children():
        root.position, root.rotation = turn @ root.position + np.array([5.0, -3.0, 2.0]), turn @ root.rotation
    case.gravity = turn @ case.gravity
    case.wrenches = np.hstack([case.wrenches[:, :3] @ turn.T, case.wrenches[:, 3:] @ turn.T])
    assert_close(case.ours(leaf_freedoms), before, 1e-10)


def test_what_has_no_freedoms_takes_wrenches():
    """A post welded to the world is hit like anything else; there is nothing that could answer."""
    linkage = Linkage()
    linkage.add(Link("post", Joint("fixed")))
    model = compile_model(linkage)
    columns = np.zeros((0, 3))
    push(model, kinematics(model, np.zeros(0)), model.assembly.slot, np.ones((1, 3, 6)), columns)
    assert columns.shape == (0, 3)
