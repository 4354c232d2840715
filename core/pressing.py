"""Parts of the constraint problem: those of some of its limits and contacts, and of what may press alone.

Among many links in a heap most contacts are near and few press: those that do not have no impulse, and would only make
the problem larger. It is solved without them, and again with those that this has made approach, until there are none
(an active set; Nocedal and Wright 2006, Numerical Optimization, chapter 16.5). What comes of it solves the whole.
"""

from __future__ import annotations

import numpy as np

from .friction import Moments, Outcome, solve

IDLE = 32
"""Contacts that do not press are left out where they are more than so many, and more than those that do: else to find
out which they are, in several solutions, costs more than it saves."""


def part(
    G: np.ndarray, u: np.ndarray, friction: np.ndarray, units: np.ndarray, *, limits: int, moments: Moments | None,
    warm: np.ndarray | None,
) -> tuple[np.ndarray, dict]:  # fmt: skip
    """The rows of the limits and contacts where `units` (limits + contacts,) is true, and the problem of these alone,
    as `solve` takes it."""
    moments = moments or Moments()
    contacts = units[limits:]
    number = contacts.cumsum() - 1
    rolls, spins = contacts[moments.rolling_owner], contacts[moments.torsion_owner]
    rows = np.concatenate((units[:limits], contacts.repeat(3), rolls.repeat(2), spins)).nonzero()[0]
    own = Moments(
        moments.rolling[rolls],
        number[moments.rolling_owner[rolls]],
        moments.torsion[spins],
        number[moments.torsion_owner[spins]],
    )
    return rows, {
        "G": G[rows[:, None], rows], "u": u[rows], "friction": friction[contacts], "moments": own,
        "limits": int(np.count_nonzero(units[:limits])), "warm": None if warm is None else warm[rows],
    }  # fmt: skip


def solve_pressing(
    G: np.ndarray,
    u: np.ndarray,
    friction: np.ndarray,
    *,
    limits: int = 0,
    moments: Moments | None = None,
    warm: np.ndarray | None = None,
    tolerance: float = 1e-8,
    **stop: float,
) -> tuple[np.ndarray, Outcome]:
    """`solve`, of what may press. Of the rest nothing approaches faster than `tolerance` times the fastest free
    velocity."""
    normals = np.arange(limits, limits + 3 * len(friction), 3)
    presses = u[normals] < 0.0
    if warm is not None:
        presses |= warm[normals] > 0.0
    pressing = np.count_nonzero(presses)
    if len(presses) - pressing <= max(IDLE, pressing):
        return solve(G, u, friction, limits=limits, moments=moments, warm=warm, tolerance=tolerance, **stop)
    allowed, iterations = -tolerance * np.abs(u).max(), 0
    while True:
        units = np.append(np.ones(limits, bool), presses)
        rows, problem = part(G, u, friction, units, limits=limits, moments=moments, warm=warm)
        own, outcome = solve(**problem, tolerance=tolerance, **stop)
        iterations += outcome.iterations
        idle = normals[~presses]
        approaches = u[idle] + G[idle[:, None], rows] @ own < allowed
        warm = np.zeros(len(u))
        warm[rows] = own
        if not np.count_nonzero(approaches):
            return warm, Outcome(iterations, outcome.residual, outcome.converged)
        presses[~presses] = approaches
