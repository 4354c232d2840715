"""Cones of impulses at limits and contacts, and Newton's method on them; for whom it works, see friction.py.

Sources: Alart and Curnier 1991, "A mixed formulation for frictional contact problems prone to Newton like solution
methods"; Rockafellar 1976, "Monotone operators and the proximal point algorithm".
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .spatial import TINY

UNMOVED = 1e-9
"""Rows whose diagonal in G is less than this part of the largest are those that no impulse moves."""
# Weight of the proximal term, for rows of unit diagonal: at first a part of the residual within bounds, less where a
# full step does what Newton's should, more where active sets are hard to find. It draws to the last iterate, never to
# zero impulses: a compliance in the problem would make resting bodies creep.
DAMPING_MIN, DAMPING_START, DAMPING_MAX, DAMPING_FACTOR = 1e-4, 1e-3, 0.1, 10.0
DAMPING_SHARE = 0.005
PROXIMAL_SHARE = 0.3
"""The square of a proximal problem's residual that will do, as a share of that of the problem itself,"""
PROXIMAL_ITERATIONS, PROXIMAL_HARD = 6, 3
"""and so many iterations are spent on it at most; more than so many are a sign of too little damping."""
NEWTON_ITERATIONS = 16
BACKTRACK = 0.5 ** np.arange(1.0, 9.0)[:, None]
RELAXATION = 1.6


@lru_cache(maxsize=64)
def by_axis(scalars: int, contacts: int, rows: int) -> np.ndarray:
    """The rows, those of contacts by axis."""
    order = np.arange(rows)
    own = slice(scalars, scalars + 3 * contacts)
    order[own] = order[own].reshape(contacts, 3).T.ravel()
    order.flags.writeable = False
    return order


class Cones:
    """A problem's cones, with scaled rows (unit diagonal) in the order: scalar rows, normals, first rows of pairs,
    second; Newton's method on it. What impulses do is for `velocity`, `direction` and `admm` to say.

    A pair is what the normal impulse of its owner bounds: the tangents of a contact, its rolling moments, or its
    torsion and a second row that nothing moves.
    """

    def __init__(
        self, diagonal: np.ndarray, u: np.ndarray, friction: np.ndarray, order: np.ndarray, owner: np.ndarray,
        contacts: int, equalities: int,
    ) -> None:  # fmt: skip
        """The rows' `diagonal` (rows,) and velocities `u` (rows,), in their own `order` (rows,); the bounds `friction`
        (pairs,) and the rows of the normals that they are parts of, `owner` (pairs,), the first of so many
        `contacts`."""
        self.order, self.owner = order, owner
        scalars = len(u) - 2 * len(friction) - contacts
        self.split = scalars + contacts
        self.bounds: slice | np.ndarray = slice(scalars, self.split) if len(owner) == contacts else owner
        diagonal = diagonal.take(order)
        pairs = diagonal[self.split :].reshape(2, -1)
        pairs[:] = 0.5 * (pairs[0] + pairs[1])
        # Rows that no impulse can move, as those of a contact between a keyed link and the ground, drop out as zeros.
        self.root = np.sqrt(np.maximum(diagonal, 0.0))
        movable = diagonal > UNMOVED * diagonal.max(initial=TINY)
        self.unit = scale = movable / np.maximum(self.root, TINY)
        self.u = u.take(order) * scale
        # A row that is hardly moved has a large scaled velocity: it must not be what others are measured by.
        fastest = np.abs(u).max() * max(np.count_nonzero(movable), 1) / max(self.root @ movable, TINY)
        self.speed = float(min(np.abs(self.u).max(), fastest))
        self.scale = scale * self.speed
        self.u /= self.speed or 1.0
        # A pair's unit of impulse differs from its normal's, and friction with it.
        normal, pair = scale[self.bounds], scale[self.split : self.split + len(friction)]
        self.friction = friction * normal / np.maximum(pair, np.maximum(1e-6 * normal, TINY))
        self.floor = np.zeros(len(self.u))
        self.floor[:equalities] = self.floor[self.split :] = -np.inf
        self.least = self.floor[: self.split]

    def velocity(self, z: np.ndarray) -> np.ndarray:
        """The velocities (rows,) with impulses `z` (rows,)."""
        raise NotImplementedError

    def direction(
        self, w: np.ndarray, gap: tuple[np.ndarray, ...], damping: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Newton's step (rows,) for F(z) = 0 from velocities w and their gap, and what it does to velocities; None
        where singular."""
        raise NotImplementedError

    def admm(
        self, z: np.ndarray, multiplier: np.ndarray | None, penalty: float, iterations: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Impulses and multipliers (rows,) after so many iterations from these; a friction bound follows its normal.

        The multiplier approaches the velocity at the solution, with its sign changed; None stands for that at z.
        """
        raise NotImplementedError

    def first_damping(self, residual: float) -> float:
        """The weight of the first proximal term."""
        return min(max(DAMPING_SHARE * residual, DAMPING_MIN), DAMPING_START)

    def scaled(self, impulses: np.ndarray) -> np.ndarray:
        if len(impulses) < len(self.order):
            impulses = np.append(impulses, np.zeros(len(self.order) - len(impulses)))
        return impulses[self.order] * self.root / self.speed

    def unscaled(self, z: np.ndarray, rows: int) -> np.ndarray:
        impulses = np.empty_like(z)
        impulses[self.order] = z * self.scale
        return impulses[:rows]

    def project(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """P(x) for x (..., rows), the share (..., pairs) of each pair it leaves, and their lengths."""
        p = np.maximum(x, self.floor)
        pairs = p[..., self.split :].reshape(*x.shape[:-1], 2, -1)
        length = np.hypot(pairs[..., 0, :], pairs[..., 1, :])
        np.maximum(length, TINY, out=length)
        share = self.friction * p[..., self.bounds]
        share /= length
        np.minimum(share, 1.0, out=share)
        pairs *= share[..., None, :]
        return p, share, length

    def gap(self, z: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
        """The residual F (..., rows) of impulses z and velocities w, and what its derivative needs."""
        x = z - w
        p, share, length = self.project(x)
        return z - p, x, share, length

    def start(self, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The impulses (rows,) of a `guess` (rows,) as the rows came, scaled, and the velocities (rows,) with them."""
        z = self.scaled(guess)
        return z, self.velocity(z)

    def newton(
        self, z: np.ndarray, w: np.ndarray, tolerance: float, sufficient: float
    ) -> tuple[np.ndarray, float, int]:
        """Iterate of least residual, its residual, and the number of iterations, starting at impulses z (rows,) and
        the velocities w (rows,) with them.

        A proximal problem is F(z) = 0 with damping (z - center) added to the velocities, `drawn`. At the center its
        Newton step is that of the problem itself, regularised; where that does not do, more are made to solve it.
        """
        gap = near = self.gap(z, w)
        merit, size = gap[0] @ gap[0], float(np.abs(gap[0]).max())
        best, least, iteration, inner = z, size, 0, 0
        damping, drawn = self.first_damping(size), w
        while least > tolerance and iteration < NEWTON_ITERATIONS:
            iteration += 1
            inner += 1
            found = self.direction(drawn, near, damping)
            if found is None:
                break
            dz, dw = found
            shorten = 1.0
            gap = self.gap(z + dz, w + dw)
            value = gap[0] @ gap[0]
            good = inner == 1 and value < PROXIMAL_SHARE * merit
            if not good:
                target = near[0] @ near[0]
                pull = dw + damping * dz
                near = self.gap(z + dz, drawn + pull)
                reached = near[0] @ near[0]
                if not reached < 0.5 * target:
                    # All shorter steps at once; of those and the full one the best.
                    gaps = self.gap(z + BACKTRACK * dz, drawn + BACKTRACK * pull)
                    merits = (gaps[0] * gaps[0]).sum(axis=1)
                    shorter = merits.argmin()
                    if not reached <= merits[shorter]:
                        shorten = BACKTRACK[shorter, 0]
                        near, reached = tuple(part[shorter] for part in gaps), merits[shorter]
                        gap = self.gap(z + shorten * dz, w + shorten * dw)
                        value = gap[0] @ gap[0]
                drawn = drawn + shorten * pull
            z, w = z + shorten * dz, w + shorten * dw
            size = float(np.abs(gap[0]).max())
            slow = size > 0.3 * least
            if size < least:
                best, least = z, size
            if slow and least <= sufficient:
                break
            stuck = inner > 1 and shorten < 0.3 and damping < DAMPING_MAX
            solved = good or reached < PROXIMAL_SHARE * value or inner == PROXIMAL_ITERATIONS
            if solved or stuck:
                if inner == 1 and shorten == 1.0:
                    damping = max(damping / DAMPING_FACTOR, DAMPING_MIN)
                elif stuck or inner > PROXIMAL_HARD:
                    damping = min(damping * DAMPING_FACTOR, DAMPING_MAX)
                near, drawn, merit, inner = gap, w, value, 0
        return best, least, iteration
