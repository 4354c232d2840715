"""Impact laws against published values and what no impact may break, whatever the inverse inertia."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.impact import Law, collide
from core.propagation import impacts

for_any_seed = given(seed=st.integers(0, 2**32 - 1))

# rows normal, tangent, tangent: the slanted rod of reference-values.md
ROD = np.array([[2.5, -1.5, 0.0], [-1.5, 2.5, 0.0], [0.0, 0.0, 1.0]])


def random_contacts(seed: int, count: int = 40):
    """Well and badly conditioned inverse inertias (c, 3, 3), approaching velocities, frictions and restitutions."""
    rng = np.random.default_rng(seed)
    pull = rng.normal(size=(count, 3, 5)) * np.exp(rng.normal(size=(count, 3, 1)))
    u = rng.normal(size=(count, 3)) * np.exp(2 * rng.normal(size=(count, 1)))
    u[:, 0] = -np.abs(u[:, 0])
    return pull @ pull.transpose(0, 2, 1), u, rng.uniform(0, 1.5, count), rng.uniform(0, 1, count)


def random_body(seed: int, contacts: int = 6, freedoms: int = 9):
    """Contacts (k) of one body with so many freedoms: inverse inertia (3 k, 3 k), velocities it can have, surfaces."""
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(3 * contacts, freedoms))
    return J @ J.T, J @ rng.normal(size=freedoms), rng.uniform(0, 1.5, contacts), rng.uniform(0, 1, contacts)


def after(G, u, p):
    return u + (G @ p[:, :, None])[:, :, 0]


def gain(G, u, p):
    """Kinetic energy gained, as a share of the work done either way."""
    return (p * (u + after(G, u, p))).sum(-1) / np.maximum(np.abs(p * u).sum(-1), 1e-300)


@pytest.mark.parametrize(
    ("law", "u", "friction", "restitution", "p", "u_normal", "energy"),
    [
        (Law.WORK, (0.6, -1.0), 1.0, 1.0, (0.26410225, 0.84017042), 0.704272674, -0.045),
        (Law.POISSON, (0.6, -1.0), 1.0, 1.0, (0.24, 0.8), 0.64, -0.072),
        (Law.NEWTON, (0.6, -1.0), 1.0, 1.0, (0.375, 1.025), 1.0, 0.1125),
        (Law.WORK, (0.0, -1.0), 0.3, 0.5, (0.219512195, 0.731707317), 0.5, -0.243158834),
    ],
)
@pytest.mark.parametrize("degrees", [0, 90, 205])
def test_rod_bounces_by_each_law_as_published(law, u, friction, restitution, p, u_normal, energy, degrees):
    """The textbook case in which Newton's rule creates energy, and in which slip stops, sticks or reverses."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    G, before = (turn @ ROD @ turn.T)[None], (turn @ [u[1], u[0], 0.0])[None]
    impulse = collide(G, before, np.array([friction]), np.array([restitution]), law)
    np.testing.assert_allclose(impulse[0] @ turn, [p[1], p[0], 0.0], atol=1e-8)
    assert after(G, before, impulse)[0, 0] == pytest.approx(u_normal, abs=1e-8)
    assert 0.5 * impulse[0] @ (before + after(G, before, impulse))[0] == pytest.approx(energy, abs=1e-9)


def test_a_law_may_be_given_by_its_name():
    """A name that was no law was taken for another one."""
    contact = ROD[None], np.array([[-1.0, 0.6, 0.0]]), np.ones(1), np.ones(1)
    np.testing.assert_allclose(collide(*contact, "poisson")[0], [0.8, 0.24, 0.0], atol=1e-8)
    np.testing.assert_allclose(collide(*contact, "newton")[0], [1.025, 0.375, 0.0], atol=1e-8)
    with pytest.raises(ValueError, match="the law of impacts is 'nonsense'; give one of work, poisson, newton"):
        collide(*contact, "nonsense")


def test_slip_reverses_where_friction_cannot_hold():
    """The rod that falls straight slips off toward the side it leans to: u⁺ = (−0.5488, 0.5)."""
    p = collide(ROD[None], np.array([[-1.0, 0.0, 0.0]]), np.array([0.3]), np.array([0.5]))
    np.testing.assert_allclose(after(ROD[None], np.array([[-1.0, 0.0, 0.0]]), p)[0], [0.5, -0.548780488, 0], atol=1e-9)
    assert p[0, 1] == pytest.approx(0.3 * p[0, 0])


@pytest.mark.parametrize("speed", [0.5, 3.0, 3.149, 3.151, 6.0])
def test_ball_grips_up_to_the_bound(speed):
    """A ball sticks iff |v_t| ≤ (7/2) μ (1 + e) |v_n|, in whatever direction it comes."""
    friction, restitution, mass = 0.3, 0.5, 2.0
    G = np.diag([1.0, 3.5, 3.5])[None] / mass
    u = np.array([[-2.0, 0.6 * speed, 0.8 * speed]])
    result = after(G, u, collide(G, u, np.array([friction]), np.array([restitution])))[0]
    slip = max(0.0, speed - 3.5 * friction * (1 + restitution) * 2.0)
    np.testing.assert_allclose(result, [1.0, 0.6 * slip, 0.8 * slip], atol=1e-12)


def test_turning_slip_agrees_with_tiny_steps():
    """Where G is full the slip turns during the impact; one direction for all of it would be off by percents."""
    # by 2,000,000 explicit steps in the normal impulse
    G = np.array([[1.0, 0.4, -0.3], [0.4, 2.0, 0.5], [-0.3, 0.5, 0.8]])
    u, friction, restitution = np.array([-1.0, 0.3, 1.5]), 0.4, 0.8
    p, v, work, most = np.zeros(3), u.copy(), 0.0, None
    tiny = 1e-5
    while most is None or work < (1 - restitution**2) * most:
        slip = np.hypot(v[1], v[2])
        part = tiny * np.array([1.0, -friction * v[1] / slip, -friction * v[2] / slip])
        work += tiny * (v[0] + 0.5 * (G @ part)[0])
        v, p = v + G @ part, p + part
        if most is None and v[0] >= 0.0:
            most = work
    assert np.hypot(v[1], v[2]) > 0.1
    answer = collide(G[None], u[None], np.array([friction]), np.array([restitution]))[0]
    np.testing.assert_allclose(answer, p, atol=1e-4 * np.linalg.norm(p))
    assert np.arctan2(p[2], p[1]) - np.arctan2(-u[2], -u[1]) != pytest.approx(0.0, abs=0.02)


@for_any_seed
def test_no_impact_gains_energy_or_leaves_the_cone_or_approaches(seed):
    """What an animator sees as an explosion, as glue, and as sinking in."""
    G, u, friction, restitution = random_contacts(seed)
    p = collide(G, u, friction, restitution)
    assert gain(G, u, p).max() <= 1e-12
    assert (np.hypot(p[:, 1], p[:, 2]) <= friction * p[:, 0] * (1 + 1e-12)).all()
    assert (after(G, u, p)[:, 0] >= -1e-9 * np.abs(u).max(1)).all()


@for_any_seed
def test_impact_without_restitution_ends_at_maximal_compression(seed):
    """Clay does not rebound."""
    G, u, friction, _ = random_contacts(seed)
    p = collide(G, u, friction, np.zeros(len(u)))
    np.testing.assert_allclose(after(G, u, p)[:, 0] / np.abs(u).max(1), 0.0, atol=1e-5)


@for_any_seed
def test_elastic_impact_without_friction_keeps_energy(seed):
    """A superball on ice comes back as fast as it came."""
    G, u, friction, restitution = random_contacts(seed)
    p = collide(G, u, 0.0 * friction, 1.0 + 0.0 * restitution)
    np.testing.assert_allclose(gain(G, u, p), 0.0, atol=1e-12)
    np.testing.assert_allclose(after(G, u, p)[:, 0], -u[:, 0], rtol=1e-9)


@for_any_seed
def test_laws_agree_without_friction(seed):
    """Only friction tells the three definitions of restitution apart."""
    G, u, friction, restitution = random_contacts(seed)
    answers = [collide(G, u, 0.0 * friction, restitution, law) for law in Law]
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-9, atol=1e-12)


@for_any_seed
def test_frame_of_the_tangents_does_not_matter(seed):
    """The tangents are arbitrary: what a character does must not depend on them."""
    G, u, friction, restitution = random_contacts(seed)
    angle = np.random.default_rng(seed + 1).uniform(0, 2 * np.pi, len(u))
    turn = np.zeros_like(G)
    turn[:, 0, 0] = 1.0
    turn[:, 1, 1] = turn[:, 2, 2] = np.cos(angle)
    turn[:, 2, 1] = np.sin(angle)
    turn[:, 1, 2] = -turn[:, 2, 1]
    there = collide(turn @ G @ turn.transpose(0, 2, 1), (turn @ u[:, :, None])[:, :, 0], friction, restitution)
    here = (turn @ collide(G, u, friction, restitution)[:, :, None])[:, :, 0]
    assert (np.abs(there - here).max(1) <= 1e-6 * np.abs(here).max(1)).all()


@for_any_seed
def test_units_do_not_matter(seed):
    """A character of 1 g bounces like one of 1 t."""
    G, u, friction, restitution = random_contacts(seed)
    p = collide(G, u, friction, restitution)
    np.testing.assert_allclose(collide(G * 1e6, u * 1e-3, friction, restitution) * 1e9, p, rtol=1e-9)


def test_wedged_contacts_stay_finite():
    """Where friction makes compression grow (Painlevé), or motion has one freedom only, there is still an answer."""
    arms = np.array([[1.0, 3.0, 0.0], [1.0, -3.0, 0.5], [1.0, 0.0, 0.0], [1e-9, 1.0, 0.0], [1.0, 1e9, 0.0]])
    G = arms[:, :, None] * arms[:, None, :]
    for stiffened in (G, G + 1e-6 * np.eye(3)):
        for friction in (0.0, 0.5, 2.0, 100.0):
            u = -arms * np.sign(arms[:, :1])
            p = collide(stiffened, u, np.full(5, friction), np.full(5, 0.7))
            assert np.isfinite(p).all()
            assert gain(stiffened, u, p).max() <= 1e-9
            assert (after(stiffened, u, p)[:, 0] >= -1e-6 * np.abs(u).max(1)).all()


def test_contacts_that_part_or_cannot_move_get_no_impulse():
    """Impacts only push, and only what gives way."""
    G = np.stack((ROD, ROD, np.zeros((3, 3))))
    u = np.array([[0.0, 1.0, 0.0], [0.5, 1.0, 0.0], [-1.0, 0.5, 0.0]])
    assert not collide(G, u, np.ones(3), np.ones(3)).any()
    assert not impacts(np.zeros((6, 6)), u[1:].reshape(-1), np.ones(2), np.ones(2)).any()
    assert impacts(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)


def row_of_balls(count: int) -> np.ndarray:
    """The normals' Jacobian (3 (count - 1), count) of equal balls of 1 kg in a row, each touching the next."""
    J = np.zeros((3 * (count - 1), count))
    for k in range(count - 1):
        J[3 * k, k : k + 2] = -1.0, 1.0
    return J


@pytest.mark.parametrize(("count", "thrown"), [(5, 1), (5, 2), (5, 3), (20, 1)])
def test_cradle_sends_off_as_many_balls_as_came(count, thrown):
    """Newton's cradle: impacts pass through what touches."""
    J = row_of_balls(count)
    v = np.zeros(count)
    v[:thrown] = 1.0
    p = impacts(J @ J.T, J @ v, np.zeros(count - 1), np.ones(count - 1))
    np.testing.assert_allclose(v + J.T @ p, v[::-1], atol=1e-12)


@pytest.mark.parametrize("restitution", [0.0, 0.3, 1.0])
def test_box_that_lands_flat_comes_off_flat(restitution):
    """Corner after corner it would come off tumbling."""
    corners = np.array([(x, y, -0.5) for x in (-0.5, 0.5) for y in (-0.5, 0.5)])
    axes = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    J = np.concatenate([np.concatenate((np.cross(c, axes), axes), axis=1) for c in corners])
    inverse = np.diag([6.0, 6.0, 6.0, 1.0, 1.0, 1.0])
    v = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -2.0])
    p = impacts(J @ inverse @ J.T, J @ v, np.full(4, 0.6), np.full(4, restitution))
    np.testing.assert_allclose(v + inverse @ J.T @ p, [0, 0, 0, 0, 0, 2.0 * restitution], atol=1e-5)


@for_any_seed
def test_several_impacts_gain_no_energy_and_leave_no_approach(seed):
    """A heap that hits the ground must calm down, and stay above it."""
    G, u, friction, restitution = random_body(seed)
    p = impacts(G, u, friction, restitution)
    end = u + G @ p
    assert p @ (u + end) <= 1e-12 * np.abs(p * u).sum()
    assert end[::3].min() >= -1e-9 * np.abs(u).max()
    assert (np.hypot(p[1::3], p[2::3]) <= friction * p[::3] * (1 + 1e-9) + 1e-15).all()


@for_any_seed
def test_bodies_that_do_not_touch_do_not_matter_to_each_other(seed):
    """Many characters at once, in any order, are each one alone."""
    first, second = random_body(seed, 3), random_body(seed + 1, 4)
    G = np.zeros((21, 21))
    G[:9, :9], G[9:, 9:] = first[0], second[0]
    u, friction, restitution = (np.concatenate(pair) for pair in zip(first[1:], second[1:]))
    alone = np.concatenate((impacts(*first), impacts(*second)))
    np.testing.assert_allclose(impacts(G, u, friction, restitution), alone, atol=1e-7 * np.abs(alone).max(initial=1))
    order = np.random.default_rng(seed).permutation(7)
    rows = (3 * order[:, None] + np.arange(3)).reshape(-1)
    mixed = np.zeros(21)
    mixed[rows] = impacts(G[np.ix_(rows, rows)], u[rows], friction[order], restitution[order])
    np.testing.assert_allclose(mixed, alone, atol=1e-6 * np.abs(alone).max(initial=1))


def test_contacts_that_are_not_active_get_no_impulse():
    """Resting contacts are solved elsewhere."""
    G, u, friction, restitution = random_body(3)
    u[::3] = -1.0
    active = np.array([True, False, True, False, True, True])
    p = impacts(G, u, friction, restitution, active=active).reshape(-1, 3)
    assert not p[~active].any()
    assert (u + G @ p.reshape(-1))[::3][active].min() >= -1e-9
