"""What does not press is left out of the constraint problem, and the impulses are those of the whole."""

import numpy as np
import pytest

from core import pressing
from core.friction import Moments, solve
from core.pressing import IDLE, part, solve_pressing


def heap(rng, contacts, limits, *, approaching):
    """A problem with a unique solution: mixed contacts, limits and moments, of which few approach by themselves."""
    rolling, torsion = (np.sort(rng.permutation(contacts)[: contacts // 4]) for _ in range(2))
    moments = Moments(rng.uniform(0.1, 0.3, len(rolling)), rolling, rng.uniform(0.1, 0.3, len(torsion)), torsion)
    rows = limits + 3 * contacts + 2 * len(rolling) + len(torsion)
    half = rng.normal(size=(rows, rows))
    G = half @ half.T / rows + np.eye(rows)
    u = rng.normal(size=rows)
    normals = np.arange(limits, limits + 3 * contacts, 3)
    # the rest parts so slowly that others overtake it
    u[normals] = 0.2 * np.abs(u[normals])
    u[rng.permutation(normals)[:approaching]] *= -5.0
    return G, u, rng.uniform(0.1, 0.6, contacts), limits, moments


@pytest.mark.parametrize("seed", range(6))
def test_impulses_are_those_of_the_whole(seed):
    """With those that only others make approach: here the guess presses where nothing does, and not where it does."""
    rng = np.random.default_rng(seed)
    G, u, friction, limits, moments = heap(rng, 80, 5, approaching=10)
    whole, _ = solve(G, u, friction, limits=limits, moments=moments)
    normals = np.arange(limits, limits + 240, 3)
    assert (whole[normals[u[normals] > 0.0]] > 1e-3).any(), "nothing is made to approach"
    for warm in (None, whole, np.abs(rng.normal(size=len(u))) * (rng.random(len(u)) < 0.2)):
        own, outcome = solve_pressing(G, u, friction, limits=limits, moments=moments, warm=warm)
        assert outcome.converged
        assert np.allclose(own, whole, atol=1e-6)


def test_what_is_left_out_does_not_approach():
    """Two blocks in a row are met by a third: the farther one is pushed only by what the nearer one does.

    Frictionless and by hand: masses of 1 kg along a line, the first at 3 m/s; gaps of none: all end at 1 m/s, which
    takes impulses of 2 and 1 N s. Far from them, IDLE + 1 pairs of blocks part at 1 m/s.
    """
    n = IDLE + 1
    J = np.zeros((2 + n, 3 + 2 * n))
    J[0, :2], J[1, 1:3] = (-1.0, 1.0), (-1.0, 1.0)
    J[np.arange(2, 2 + n), 3 + 2 * np.arange(n)] = -1.0
    J[np.arange(2, 2 + n), 4 + 2 * np.arange(n)] = 1.0
    v = np.zeros(3 + 2 * n)
    v[0], v[4::2] = 3.0, 1.0
    G, u = np.zeros((3 * len(J),) * 2), np.zeros(3 * len(J))
    G[::3, ::3], u[::3] = J @ J.T, J @ v
    # the second contact is idle at first: nothing in it moves
    impulses, outcome = solve_pressing(G, u, np.zeros(len(J)))
    assert outcome.converged
    assert impulses[::3][:2] == pytest.approx([2.0, 1.0], abs=1e-7)
    assert not impulses[6:].any()


def test_only_what_presses_is_solved(monkeypatch):
    """The work of a solution grows with the cube of its rows: 400 contacts of which 5 press cost no more than those."""
    rng = np.random.default_rng(0)
    rows = 1200
    G, u, solved = np.eye(rows), rng.normal(size=rows), []
    u[::3] = np.abs(u[::3])
    u[:15:3] *= -1.0

    def spied(G, u, *given, **how):
        solved.append(len(u))
        return solve(G, u, *given, **how)

    monkeypatch.setattr(pressing, "solve", spied)
    impulses, _ = solve_pressing(G, u, np.full(400, 0.5))
    assert solved == [15]
    assert np.allclose(impulses[:15:3], -u[:15:3])
    assert not impulses[15:].any()
    # to find those that do not press takes more than one solution, which does not pay where most do
    u[: 3 * 201 : 3] = -1.0
    solve_pressing(G, u, np.full(400, 0.5))
    assert solved == [15, 1200]


def test_a_part_has_its_own_limits_contacts_and_moments():
    """Rows in the order of the whole; moments belong to the contacts by their new numbers."""
    moments = Moments(np.array([0.1, 0.2]), np.array([0, 2]), np.array([0.3, 0.4]), np.array([1, 2]))
    # two limits, three contacts, two rolling pairs, two torsions
    G, u = np.arange(17.0)[:, None] * np.ones(17), np.arange(17.0)
    units = np.array([False, True, False, True, True])
    rows, problem = part(G, u, np.array([0.5, 0.6, 0.7]), units, limits=2, moments=moments, warm=u)
    assert rows.tolist() == [1, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16]
    assert problem["limits"] == 1
    assert problem["friction"].tolist() == [0.6, 0.7]
    assert problem["u"].tolist() == problem["warm"].tolist() == rows.tolist()
    assert problem["G"].shape == (11, 11)
    own = problem["moments"]
    assert own.rolling.tolist() == [0.2] and own.rolling_owner.tolist() == [1]
    assert own.torsion.tolist() == [0.3, 0.4] and own.torsion_owner.tolist() == [0, 1]
