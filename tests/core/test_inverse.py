"""Independent joints and actuator torques of closed chains: forward dynamics and the oracles judge them."""

from __future__ import annotations

import numpy as np
import oracle_loops
import pytest

from core.closing import connected_velocity, freedoms
from core.dynamics import acceleration
from core.inverse import actuator_torques, independent_coordinates
from core.linkage import Closure, Linkage
from core.mechanisms import chain, random_coordinates, random_tree
from core.mechanisms_closed import bricard, four_bar, n_four_bar
from core.mechanisms_held import high_bar
from core.model import Model, State, compile_model


def closed_tree(seed: int) -> Linkage:
    """A random tree with two loops, one of them to the world, that its rest pose closes."""
    rng = np.random.default_rng(seed)
    linkage = random_tree(9, rng, kinds=("hinge", "universal", "spherical", "prismatic"), branching=0.3, drives=True)
    links = list(linkage.links())
    for name, (host, real) in {"a": (links[2], links[7]), "b": (None, links[8])}.items():
        kind = str(rng.choice(["hinge", "spherical", "universal"]))
        linkage.connect(host, real, kind, at=rng.normal(size=3), name=name)
    return linkage


MAKERS = {
    "n_four_bar": (lambda: n_four_bar(3), 1), "four_bar": (four_bar, 1), "bricard": (bricard, 1),
    "tree.1": (lambda: closed_tree(1), None), "tree.2": (lambda: closed_tree(2), None),
    "tree.3": (lambda: closed_tree(3), None),
}  # fmt: skip


def moving(linkage: Linkage, leaf_freedoms: int | None = None) -> tuple[Model, State]:
    """A closed state in motion."""
    model = compile_model(linkage, leaf_freedoms)
    _, v = random_coordinates(linkage, 5)
    q = model.coordinates.zero()
    return model, State(q, connected_velocity(model, q, v, model.loops))


@pytest.mark.parametrize("name", MAKERS)
def test_independent_joints_move_all_others_as_the_loops_allow(name):
    """W of eq. 1 must span exactly the motions that the loops allow: the oracle's null space, found without it."""
    maker, expected = MAKERS[name]
    linkage = maker()
    model = compile_model(linkage)
    found = independent_coordinates(model, model.coordinates.zero())
    jacobian = oracle_loops.constraint_jacobian(linkage, model.coordinates.zero())
    rank = oracle_loops.independent_constraints(linkage, model.coordinates.zero())
    assert np.abs(jacobian @ found.W).max() < 1e-9 * max(1.0, np.abs(found.W).max())
    assert (found.rank, found.freedoms) == (rank, model.nv - rank)
    assert expected in (None, found.freedoms)
    assert found.freedoms == freedoms(model, model.rest_state(), model.loops)[2]
    assert (found.W[found.independent] == np.eye(found.freedoms)).all()
    assert (found.W[found.dependent] == found.H).all()


@pytest.mark.parametrize("leaf_freedoms", [None, 1])
@pytest.mark.parametrize("name", MAKERS)
def test_forward_dynamics_with_the_found_torques_makes_the_motion(name, leaf_freedoms):
    """Eq. 3 and 4 are right where torques of the independent joints alone, and of all, give the motion back."""
    model, state = moving(MAKERS[name][0](), leaf_freedoms)
    found = independent_coordinates(model, state.q)
    faster = np.random.default_rng(3).normal(size=found.freedoms)
    wanted = acceleration(model, state) + found.W @ faster
    for actuated in (found.independent, np.arange(model.nv)):
        forces = np.zeros(model.nv)
        forces[actuated] = actuator_torques(model, state, wanted, actuated)
        made = acceleration(model, state, forces=forces)
        assert np.abs(made - wanted).max() < 1e-8 * max(1.0, np.abs(wanted).max())


def test_a_motor_at_any_joint_can_drive_the_four_bar():
    """One freedom, three places for the motor: S of eq. 2 takes the same power to each."""
    model, state = moving(four_bar())
    W = independent_coordinates(model, state.q).W
    wanted = acceleration(model, state) + 2.0 * W[:, 0]
    power = [float(actuator_torques(model, state, wanted, [k])[0] * state.v[k]) for k in range(3)]
    assert power == pytest.approx([power[0]] * 3, rel=1e-9)


def test_what_cannot_be_produced_is_refused():
    """A missing motor, or a motion that tears a loop open, must not give torques that look plausible."""
    model = compile_model(chain(3))
    with pytest.raises(ValueError, match="actuated joints cannot produce"):
        actuator_torques(model, model.rest_state(), np.ones(3), [0, 2])
    model, state = moving(four_bar())
    with pytest.raises(ValueError, match="loops do not allow"):
        actuator_torques(model, state, acceleration(model, state) + np.ones(3), [0, 1, 2])


def test_an_open_chain_is_all_independent_and_a_spring_forbids_nothing():
    """Without exact loops W is the identity and the torques are those of the tree."""
    for linkage in (chain(4), four_bar()):
        for link in linkage.virtual_links():
            link.closure = Closure(method="compliance")
        model = compile_model(linkage)
        found = independent_coordinates(model, model.coordinates.zero())
        assert (found.rank, found.freedoms) == (0, model.nv)
        wanted = np.arange(1.0, model.nv + 1)
        forces = actuator_torques(model, model.rest_state(), wanted, np.arange(model.nv))
        assert acceleration(model, model.rest_state(), forces=forces) == pytest.approx(wanted, abs=1e-8)


def test_hands_on_a_bar_leave_as_many_freedoms_as_the_paper_counts():
    """Yamane and Nakamura, Fig. 14: 24 joint freedoms of which the hands' conditions leave some; cut, one hand's."""
    linkage = high_bar()
    model = compile_model(linkage)
    q = model.coordinates.zero()
    both = independent_coordinates(model, q)
    one = independent_coordinates(model, q, model.loops.select(np.array([True, False])))
    assert both.freedoms == model.nv - oracle_loops.independent_constraints(linkage, q)
    assert one.freedoms == model.nv - 5
