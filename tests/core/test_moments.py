"""Moments against rolling and spinning slow what turns, within their bounds, and never bring in energy."""

import numpy as np
import pytest
from coulomb import GRAVITY, STEP, UP, assert_coulomb, rigid_body
from hypothesis import given, settings
from hypothesis import strategies as st

from core.contact import tangents
from core.friction import Moments, energy, solve


def ball(c, *, rolling, radius=0.1, mass=1.5):
    """A ball on the floor: rows (3 + moments, 6) with rolling or torsion of `c` metres, inverse inertia and moments."""
    J, inverse = rigid_body(mass, np.full(3, 0.4 * mass * radius**2), [(0, 0, -radius)], [UP])
    axes = tangents(UP[None])[0]
    axes = axes[1:] if rolling else axes[:1]
    J = np.concatenate((J, np.concatenate((axes, np.zeros_like(axes)), axis=1)))
    lengths, owner = np.array([c]), np.zeros(1, int)
    return J, inverse, Moments(lengths, owner) if rolling else Moments(torsion=lengths, torsion_owner=owner)


def rolled(twist, c, steps, *, rolling):
    """The twists (steps, 6) of such a ball under gravity."""
    J, inverse, moments = ball(c, rolling=rolling)
    G, warm, twists = J @ inverse @ J.T, None, []
    for _ in range(steps):
        twist = twist - [0, 0, 0, 0, 0, GRAVITY * STEP]
        warm, outcome = solve(G, J @ twist, np.array([0.6]), moments=moments, warm=warm)
        assert outcome.residual <= 1e-6
        twist = twist + inverse @ (J.T @ warm)
        twists.append(twist)
    return np.array(twists)


def test_rolling_ball_slows_down():
    """The moment c N takes 5 c g / (7 R) off its speed every second, until it stands, and does not turn it back."""
    c, radius, speed = 0.004, 0.1, 0.5
    direction = np.array([0.6, 0.8])
    start = np.concatenate(([-direction[1], direction[0], 0.0], [*direction, 0.0])) * speed
    start[:3] /= radius
    twists = rolled(start, c, 500, rolling=True)
    lost = 5 * c * GRAVITY / (7 * radius) * STEP * np.arange(1, 501)
    assert np.allclose(twists[:, 3:5], np.maximum(speed - lost, 0.0)[:, None] * direction, atol=1e-6)
    assert np.abs(twists[-1]).max() <= 1e-8


def test_spinning_ball_stops():
    """The moment c N about the normal takes c m g / I off its spin every second."""
    c, spin = 0.002, 10.0
    twists = rolled(np.array([0, 0, spin, 0, 0, 0.0]), c, 600, rolling=False)
    lost = c * 1.5 * GRAVITY / (0.4 * 1.5 * 0.1**2) * STEP * np.arange(1, 601)
    assert np.allclose(twists[:, 2], np.maximum(spin - lost, 0.0), atol=1e-6)


def test_ball_on_a_slope_that_rolling_holds():
    """It rolls once tan(slope) > c / R: below that it stays where it is."""
    for tilt, held in ((0.04, True), (0.06, False)):
        J, inverse, moments = ball(0.005, rolling=True)
        G, twist, warm = J @ inverse @ J.T, np.zeros(6), None
        for _ in range(120):
            twist = twist - GRAVITY * STEP * np.array([0, 0, 0, np.sin(tilt), 0, np.cos(tilt)])
            warm, _ = solve(G, J @ twist, np.array([0.6]), moments=moments, warm=warm)
            twist = twist + inverse @ (J.T @ warm)
        expected = 5 / 7 * GRAVITY * (np.sin(tilt) - 0.05 * np.cos(tilt)) * 120 * STEP
        assert twist[3] == pytest.approx(0.0 if held else -expected, abs=1e-7)


def moment_problem(rng, contacts, limits):
    """A well-conditioned problem, whose solution is unique, with all kinds of rows."""
    moments = Moments(
        rng.uniform(0.01, 0.3, 3),
        rng.integers(contacts, size=3),
        rng.uniform(0.01, 0.3, 2),
        rng.permutation(contacts)[:2],
    )
    rows = limits + 3 * contacts + 8
    half = rng.normal(size=(rows, rows)) / np.sqrt(rows)
    return half @ half.T + 2.0 * np.eye(rows), rng.normal(size=rows), rng.uniform(0.0, 0.5, contacts), moments


def gauss_seidel(G, u, friction, moments, limits, sweeps=400):
    """Impulses by projected Gauss-Seidel, one row or pair at a time: slow, and sure where rows hardly couple."""
    k, r = len(friction), len(moments.rolling)
    normals = limits + 3 * np.arange(k)
    pairs = [(n + np.array([1, 2]), mu, n) for n, mu in zip(normals, friction)]
    first = limits + 3 * k
    pairs += [(first + 2 * i + np.arange(2), moments.rolling[i], normals[moments.rolling_owner[i]]) for i in range(r)]
    first += 2 * r
    pairs += [
        (np.array([first + i]), c, normals[owner])
        for i, (c, owner) in enumerate(zip(moments.torsion, moments.torsion_owner))
    ]
    z = np.zeros(len(u))
    for _ in range(sweeps):
        for row in (*range(limits), *normals):
            z[row] = max(0.0, z[row] - (G[row] @ z + u[row]) / G[row, row])
        for rows, c, normal in pairs:
            x = z[rows] - (G[rows] @ z + u[rows]) / G[rows, rows].max()
            z[rows] = x * min(1.0, c * z[normal] / max(np.linalg.norm(x), 1e-300))
    return z


@pytest.mark.parametrize("seed", range(6))
def test_moments_as_gauss_seidel_finds_them(seed):
    """Another method, row by row and without any derivative, must end at the same impulses."""
    rng = np.random.default_rng(seed)
    G, u, friction, moments = moment_problem(rng, 5, 3)
    impulses, outcome = solve(G, u, friction, limits=3, moments=moments)
    assert outcome.residual <= 1e-8
    assert np.abs(impulses[18:]).max() > 1e-3
    assert np.allclose(impulses, gauss_seidel(G, u, friction, moments, 3), atol=1e-7)


def test_order_of_contacts_does_not_matter():
    """Contacts come in any order from the collider, and those with moments among them."""
    rng = np.random.default_rng(11)
    G, u, friction, moments = moment_problem(rng, 5, 3)
    order = rng.permutation(5)
    place = order.argsort()
    rows = np.concatenate((np.arange(3), (3 + 3 * order[:, None] + np.arange(3)).ravel(), np.arange(18, 26)))
    turned = moments._replace(rolling_owner=place[moments.rolling_owner], torsion_owner=place[moments.torsion_owner])
    impulses, _ = solve(G, u, friction, limits=3, moments=moments)
    permuted, _ = solve(G[rows[:, None], rows], u[rows], friction[order], limits=3, moments=turned)
    assert np.allclose(permuted, impulses[rows], atol=1e-7)


def test_moments_of_no_length_change_nothing():
    """A contact without such resistance has none, whether its rows are there or not."""
    rng = np.random.default_rng(5)
    G, u, friction, moments = moment_problem(rng, 5, 3)
    none = moments._replace(rolling=np.zeros(3), torsion=np.zeros(2))
    impulses, _ = solve(G, u, friction, limits=3, moments=none)
    plain, _ = solve(G[:18, :18], u[:18], friction, limits=3)
    assert np.allclose(impulses[:18], plain, atol=1e-8)
    assert np.array_equal(impulses[18:], np.zeros(8))


def test_random_moments_obey_the_law():
    """Within the bound, full and straight against the turning where it turns, and never an energy gain."""

    @settings(max_examples=60)
    @given(st.integers(0, 10**6), st.integers(2, 8), st.integers(0, 4))
    def check(seed, contacts, limits):
        rng = np.random.default_rng(seed)
        G, u, friction, moments = moment_problem(rng, contacts, limits)
        impulses, outcome = solve(G, u, friction, limits=limits, moments=moments)
        assert outcome.residual <= 1e-6
        assert energy(G, u, impulses) <= 1e-9
        end = limits + 3 * contacts
        w = G @ impulses + u
        assert_coulomb(G[:end, :end], w[:end] - G[:end, :end] @ impulses[:end], friction, impulses[:end], limits=limits)
        normal = impulses[limits:end:3]
        rolls, spins = slice(end, end + 6), slice(end + 6, None)
        for rows, shape, lengths, owner in (
            (rolls, (3, 2), moments.rolling, moments.rolling_owner),
            (spins, (2, 1), moments.torsion, moments.torsion_owner),
        ):
            moment, turn = impulses[rows].reshape(shape), w[rows].reshape(shape)
            size, speed = np.linalg.norm(moment, axis=1), np.linalg.norm(turn, axis=1)
            bound = lengths * normal[owner]
            assert (size <= bound * (1 + 1e-12) + 1e-15).all()
            turns = speed > 1e-5
            assert np.allclose(size[turns], bound[turns], atol=1e-5)
            assert np.allclose((moment * turn).sum(axis=1)[turns], -(size * speed)[turns], atol=1e-5)

    check()
