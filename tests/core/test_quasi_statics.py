"""Quasi-statics: lazily updated coefficients against those computed afresh, loops, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from test_inverse import closed_tree

from core.dynamics import closed_dynamics
from core.error_queue import Measure
from core.kinematics import link_poses
from core.linkage import Closure
from core.mechanisms import chain, random_coordinates, random_tree
from core.mechanisms_closed import n_four_bar
from core.model import Model, State, compile_model
from core.quasi_statics import QuasiStatics

KINDS = ("hinge", "prismatic", "universal", "spherical", "free", "fixed")


def exact(model: Model, q: np.ndarray, **given) -> np.ndarray:
    return closed_dynamics(model, State(q, np.zeros(model.nv)), **given)[0]


def tree(seed: int, count: int = 40) -> tuple[Model, np.ndarray]:
    linkage = random_tree(count, seed, kinds=KINDS, branching=0.4, drives=True)
    return compile_model(linkage), random_coordinates(linkage, seed)[0]


@pytest.mark.parametrize("arity", [2, 3, 4, 7])
@pytest.mark.parametrize("seed", range(4))
def test_after_many_partial_steps_nothing_is_out_of_date(seed, arity):
    """The lazy update must leave what the whole update would: poses, coefficients, springs, turned wrenches."""
    model, q = tree(seed)
    rng = np.random.default_rng(seed)
    quasi = QuasiStatics(model, q, arity=arity)
    world, own, driven = np.zeros((model.n, 6)), np.zeros((model.n, 6)), np.zeros(model.nv)
    for step in range(12):
        if step % 3 == 0:
            some = rng.choice(model.n, 3, replace=False)
            world[some] = rng.normal(size=(3, 6))
            quasi.apply(some, world[some])
            other = rng.choice(model.n, 2, replace=False)
            own[other] = rng.normal(size=(2, 6))
            quasi.apply([model.names[i] for i in other], own[other], frame="link")
        if step % 4 == 1:
            link = int(rng.integers(model.n))
            freedoms = slice(*model.coordinates.v_start[link : link + 2])
            driven[freedoms] = rng.normal(size=len(driven[freedoms]))
            quasi.actuate([link], driven[freedoms])
        quasi.step(0.3, 0.01)
    poses = link_poses(model, quasi.q)[0][model.assembly.slot]
    assert np.abs(quasi.world_poses(np.arange(model.n)) - poses).max() < 1e-12
    turned = (poses[:, None, :3, :3] @ own.reshape(-1, 2, 3, 1)).reshape(-1, 6)
    expected = exact(model, quasi.q, wrenches=world + turned, forces=driven)
    found = quasi.solve(0.0).dense()
    assert np.abs(found - expected).max() < 1e-9 * max(1.0, np.abs(expected).max())


def test_a_step_moves_the_computed_joints_by_half_h_squared():
    """Velocities are zero at each instant: q moves by h²/2 q̈, and what is not computed stays to the last bit."""
    model = compile_model(chain(50))
    quasi = QuasiStatics(model, gravity=np.zeros(3))
    quasi.apply(["link.49"], [[0.0, 0.0, 0.0, 1.0, 0.5, 0.0]])
    result = quasi.step(0.1, 0.01)
    assert 0 < len(result.links) < 50
    assert np.abs(quasi.q - 0.5 * 0.01**2 * result.dense()).max() < 1e-16
    still = np.setdiff1d(np.arange(50), result.links)
    assert (quasi.q[still] == 0.0).all()


def test_a_chain_let_go_comes_to_hang():
    """Quasi-statics finds the equilibrium: gravity turns a pendulum until it hangs."""
    model = compile_model(chain(3, horizontal=True, kind="spherical"))
    quasi = QuasiStatics(model)
    for _ in range(300):
        quasi.step(1e-3, 0.03)
    for tip in quasi.world_poses(["link.0", "link.1", "link.2"]):
        assert tip[:3, 1] == pytest.approx([0.0, 0.0, -1.0], abs=0.05)


def test_a_force_far_out_costs_and_moves_little():
    """Culling: what is far from a force is neither computed nor moved."""
    model = compile_model(chain(2000))
    quasi = QuasiStatics(model, gravity=np.zeros(3))
    quasi.apply([1999], [[0.0, 0.0, 0.0, 1.0, 1.0, 0.0]])
    assert len(quasi.solve(2.0**-19).links) < 80


@pytest.mark.parametrize("seed", range(4))
def test_weights_measure_as_they_should(seed):
    """A(C) is the sum of q̈ᵀ W q̈: for matrices, numbers and ones."""
    model, q = tree(seed)
    rng = np.random.default_rng(seed)
    sizes = np.diff(model.coordinates.v_start)
    matrices = []
    for d in sizes.tolist():
        root = rng.normal(size=(d, d))
        matrices.append(root @ root.T + 0.1 * np.eye(d))
    numbers = rng.uniform(0.5, 2.0, model.nv)
    acceleration = exact(model, q)
    parts = np.split(acceleration, model.coordinates.v_start[1:-1])
    for weights, expected in (
        (None, acceleration @ acceleration),
        (numbers, acceleration @ (numbers * acceleration)),
        (matrices, sum(x @ W @ x for x, W in zip(parts, matrices))),
    ):
        quasi = QuasiStatics(model, q, weights=weights, measure=Measure.RELATIVE_LINKAGE)
        quasi.solve(0.0)
        assert quasi._descent.computed == pytest.approx(expected, rel=1e-9)
        root, _ = quasi.articulation.total(np.array([quasi.partition.root]), np.zeros((1, 12)))
        assert root[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_loops_stay_closed_and_agree_with_the_exact_method_all_along(seed):
    """The paper leaves loops open: their forces must be exact, also when the linkage has moved, and stop any drift."""
    linkage = closed_tree(seed) if seed else n_four_bar(5)
    model = compile_model(linkage)
    quasi = QuasiStatics(model)
    wrenches = np.zeros((model.n, 6))
    wrenches[1] = [0.0, 5.0, 0.0, 1.0, 0.0, 0.0] if seed else [0.0, 0.0, 0.0, 200.0, 0.0, 0.0]
    quasi.apply([1], wrenches[1:2])
    for _ in range(30):
        expected = exact(model, quasi.q, wrenches=wrenches)
        assert np.abs(quasi.solve(0.0).dense() - expected).max() < 1e-7 * max(1.0, np.abs(expected).max())
        quasi.step(0.0, 0.02)
    moved = np.abs(model.coordinates.difference(model.coordinates.zero(), quasi.q)).max()
    gaps = model.loops.gaps(link_poses(model, quasi.q)[0])
    assert moved > 0.02
    assert np.abs(gaps).max() < 0.05 * moved


def test_compliant_loops_pull_like_springs():
    """A loop may be chosen to be a spring."""
    linkage = closed_tree(4)
    for link in linkage.virtual_links():
        link.closure = Closure(method="compliance", stiffness=300.0)
    model = compile_model(linkage)
    q = model.coordinates.integrate(model.coordinates.zero(), 0.1 * random_coordinates(linkage, 2)[1], 1.0)
    assert QuasiStatics(model, q).solve(0.0).dense() == pytest.approx(exact(model, q), abs=1e-7)


def test_a_keyed_link_holds_still():
    """Keyed links have no freedoms and carry what hangs on them."""
    linkage = chain(6, "spherical", horizontal=True)
    linkage["link.2"].keyed = True
    model = compile_model(linkage)
    assert QuasiStatics(model).solve(0.0).dense() == pytest.approx(exact(model, model.coordinates.zero()), abs=1e-8)


def test_hubs_are_cut_into_parts_and_nothing_changes():
    """A body with a hundred pendants is cut for speed; the answer is that of the whole body."""
    linkage = random_tree(1, 0, kinds=("free",))
    hub = next(linkage.links())
    rng = np.random.default_rng(0)
    for index in range(60):
        twig = next(random_tree(1, index + 1, kinds=("hinge", "spherical")).links())
        twig.name, twig.parent, twig.brother = f"twig.{index}", None, None
        linkage.add(twig, hub)
    model = compile_model(linkage)
    wrenches = rng.normal(size=(model.n, 6))
    quasi = QuasiStatics(model)
    quasi.apply(model.names, wrenches)
    assert quasi.partition.leaves > model.n + 1
    expected = exact(model, quasi.q, wrenches=wrenches)
    assert quasi.solve(0.0).dense() == pytest.approx(expected, abs=1e-8 * np.abs(expected).max())


REFUSED = {
    "the error threshold is -0.1": lambda quasi: quasi.solve(-0.1),
    "the error threshold is nan": lambda quasi: quasi.solve(np.nan),
    "no link is called 'tail'": lambda quasi: quasi.apply(["tail"], np.zeros((1, 6))),
    "there is no link 3; give numbers from 0 to 2": lambda quasi: quasi.apply([3], np.zeros((1, 6))),
    "there is no link -1": lambda quasi: quasi.apply([-1], np.zeros((1, 6))),
    "neither names nor whole numbers": lambda quasi: quasi.apply([0.5], np.zeros((1, 6))),
    "a link is given twice": lambda quasi: quasi.apply([1, "link.1"], np.zeros((2, 6))),
    "give 2 rows of 6 finite numbers": lambda quasi: quasi.apply([0, 1], np.zeros((3, 6))),
    "give 1 rows of 6 finite numbers": lambda quasi: quasi.apply([0], np.full((1, 6), np.inf)),
    "frame is 'bone'; use one of world, link": lambda quasi: quasi.apply([0], np.zeros((1, 6)), "bone"),
    "forces has shape": lambda quasi: quasi.actuate([0], np.zeros(3)),
    "the step is nan": lambda quasi: quasi.step(0.0, np.nan),
    "q has shape": lambda quasi: QuasiStatics(quasi.model, np.zeros(2)),
    "by a quaternion of length 0; give unit ones": lambda _: QuasiStatics(
        compile_model(chain(2, "spherical")), np.zeros(8)
    ),
    "by a quaternion of length 2; give unit ones": lambda _: QuasiStatics(compile_model(chain(1, "spherical"))).place(
        np.array([2.0, 0.0, 0.0, 0.0])
    ),
    "gravity has shape": lambda quasi: QuasiStatics(quasi.model, gravity=np.zeros(2)),
    "there are 2 weights": lambda quasi: QuasiStatics(quasi.model, weights=np.ones(2)),
    "weight of 'link.0' is no symmetric": lambda quasi: QuasiStatics(quasi.model, weights=np.array([0.0, 1.0, 1.0])),
    "weight of 'link.1' is no symmetric": lambda quasi: QuasiStatics(
        quasi.model, weights=[[[1.0]], [[np.nan]], [[1.0]]]
    ),
    "arity is 1": lambda quasi: QuasiStatics(quasi.model, arity=1),
    "freedoms in a block is -1; give a whole number": lambda quasi: QuasiStatics(quasi.model, most=-1),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_used_is_refused_in_one_line(message):
    """A wrong threshold, weight, wrench or name must be told by name, not found out from a wrong motion."""
    quasi = QuasiStatics(compile_model(chain(3)))
    with pytest.raises(ValueError, match=message) as refusal:
        REFUSED[message](quasi)
    assert "\n" not in str(refusal.value)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_steps_that_springs_cannot_take_are_refused():
    """Explicit steps that are too long for stiff springs grow without bound; numbers that are none must not pass on."""
    linkage = chain(4)
    for link in linkage.links():
        link.joint.stiffness = 1e12
    model = compile_model(linkage)
    quasi = QuasiStatics(model, 0.1 * np.ones(model.nq))

    def run() -> None:
        for _ in range(200):
            quasi.step(0.0, 10.0)

    with pytest.raises(ValueError, match="take shorter steps"):
        run()
