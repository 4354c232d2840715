"""Islands: parts of the constraint problem that have no tree in common, and so nothing to do with each other.

The solver's work grows with the cube of the rows, so ten piles are solved a hundred times faster than one of all.
"""

from __future__ import annotations

import numpy as np

from .friction import Delassus, Moments, Outcome, solve
from .groups import joined

PACK = 48
"""Small islands are solved together until they have so many rows: less would not fill the time of a call of numpy."""


def islands(trees: np.ndarray) -> np.ndarray:
    """Numbers of the islands (units,) of limits and contacts that act on `trees` (units, 2): a tree's number, the same
    twice where there is one, or -1 for what does not answer to impulses: the world and keyed links.

    Units join where they share a tree. Those with no tree at all are in the first island, where they do no harm. The
    numbers are 0, 1, ... without gaps; with no units there are none.
    """
    first, second = trees.T
    lowest = np.where(first < 0, second, np.where(second < 0, first, np.minimum(first, second)))
    top = trees.max(initial=-1)
    if top < 1 or lowest.min() == trees.max():
        return np.zeros(len(trees), np.intp)
    highest = np.maximum(first, second)
    joins = lowest != highest
    root = joined(top + 1, np.stack((lowest, highest))[:, joins])
    label = np.where(lowest < 0, -1, root[lowest])
    label[label < 0] = label[label >= 0].min()
    return np.unique(label, return_inverse=True)[1].reshape(-1)


def solve_islands(
    G: np.ndarray | Delassus,
    u: np.ndarray,
    friction: np.ndarray,
    island: np.ndarray,
    *,
    limits: int,
    moments: Moments | None = None,
    warm: np.ndarray | None = None,
    **stop: float,
) -> tuple[np.ndarray, Outcome]:
    """`solve`, island by island, with an outcome that holds for the worst: impulses (rows,) of all.

    `island` (limits + contacts,) are the numbers that `islands` gave, and G's elements between two islands are taken
    for zero. Residuals are shares of the fastest approach among what is solved together.
    """
    if island.max(initial=0) == 0:
        return solve(G, u, friction, limits=limits, moments=moments, warm=warm, **stop)
    height = np.ones(len(island))
    height[limits:] = 3.0
    if moments is not None:
        np.add.at(height, limits + moments.rolling_owner, 2.0)
        np.add.at(height, limits + moments.torsion_owner, 1.0)
    size = np.bincount(island, height)
    pack = ((size.cumsum() - size) // PACK)[island]
    impulses, iterations, residual, converged = np.zeros(len(u)), 0, 0.0, True
    for number in np.unique(pack).tolist():
        rows, problem = _part(G, u, friction, pack == number, limits=limits, moments=moments, warm=warm)
        impulses[rows], outcome = solve(**problem, **stop)
        iterations, residual = max(iterations, outcome.iterations), max(residual, outcome.residual)
        converged &= outcome.converged
    return impulses, Outcome(iterations, residual, converged)


def _part(
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
