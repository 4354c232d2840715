"""Impulses at contacts and limits: the velocity-level constraint problem with true Coulomb cones.

The exact problem is not convex, so no single method is both fast and safe. Semismooth Newton on the Alart-Curnier
function ends in two or three iterations when it starts near the solution, which a warm start gives. Redundant contacts
leave its matrix singular; then it solves a sequence of proximal problems, each regular and drawn to the last one's
solution. Where that stalls, rounds of ADMM, which always comes close and is slow only at the end, bring it near. The
best iterate is kept.

Sources: Alart and Curnier 1991, "A mixed formulation for frictional contact problems prone to Newton like solution
methods"; Acary, Bremond and Huber 2018, "On solving contact problems with Coulomb friction: formulations and
numerical comparisons"; Rockafellar 1976, "Monotone operators and the proximal point algorithm"; for ADMM, Carpentier,
Montaut and Le Lidec 2024, "From compliant to rigid contact simulation".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple, Protocol

import numpy as np

from .cones import RELAXATION, Cones, by_axis
from .spatial import TINY

# Rounds of ADMM between attempts of Newton: penalty in scaled units and iterations. A large penalty comes near soonest;
# small ones let go of the contact states in which a large one is caught for long.
ADMM_ROUNDS = (0.3, 20), (0.1, 20), (0.1, 40), (0.03, 40), (0.03, 80), (0.01, 80), (0.1, 160)
IMPATIENCE = 3.0  # growth of the sufficient residual from round to round


class Moments(NamedTuple):
    """Lengths [m] of r contacts that resist rolling and of s that resist spinning, and these contacts' numbers."""

    rolling: np.ndarray = np.zeros(0)
    rolling_owner: np.ndarray = np.zeros(0, np.intp)
    torsion: np.ndarray = np.zeros(0)
    torsion_owner: np.ndarray = np.zeros(0, np.intp)


@dataclass(frozen=True)
class Outcome:
    """How a solution was reached; `residual` is dimensionless, see `solve`."""

    iterations: int
    residual: float
    converged: bool


class Delassus(Protocol):
    """What stands for a matrix G that is not made, of limits and contacts without moments."""

    def __matmul__(self, impulses: np.ndarray) -> np.ndarray:
        """G times impulses (rows,)."""

    def problem(self, u: np.ndarray, friction: np.ndarray, limits: int) -> Cones:
        """The problem that `solve` is to solve."""


def solve(
    G: np.ndarray | Delassus,
    u: np.ndarray,
    friction: np.ndarray,
    *,
    equalities: int = 0,
    limits: int = 0,
    moments: Moments | None = None,
    warm: np.ndarray | None = None,
    tolerance: float = 1e-8,
    sufficient: float = 1e-6,
) -> tuple[np.ndarray, Outcome]:
    """Impulses (rows,) that satisfy all constraints at once, and the outcome.

    With w = G impulses + u, where G (rows, rows) is the inverse inertia seen by the constraints (symmetric, positive
    semidefinite, often singular) and u (rows,) the velocity without impulses less its target, the rows are in order
    - `equalities` bilateral rows: w = 0;
    - `limits` unilateral rows: 0 <= impulse, 0 <= w, and one of them is zero;
    - three rows (normal, tangent, tangent) per contact, with `friction` (contacts,): the normal row is unilateral and
      the tangential impulse is within friction times the normal one and opposes w to the full while that is not zero;
    - of `moments` two rows (about the tangents) for each that resists rolling, and then one (about the normal) for each
      that resists spinning: likewise, within a length [m] times the normal impulse of the contact they belong to.

    `warm` (rows,) is a guess, as good as the last step's impulses. Newton's method aims at `tolerance`; where it slows
    down at a residual that is `sufficient` nothing else is tried: near rest some contacts are just about to open or to
    slip, and the last digits cost most. In the rounds after that, the residual that will do grows with the effort.
    The impulses are within their cones whatever the residual. So it stops at `tolerance`; at `sufficient` after a step
    of Newton's that takes off less than two thirds of the residual, or after rounds of ADMM; and at the last round.

    The residual is the largest element of z - P(z - w), where P projects onto the cones at hand, with each row scaled
    by the root of its diagonal in G, or about that (one for the two of a pair), and in units of the largest scaled u,
    or of the largest u scaled by the mean root where that is less, so it is a share of the fastest approach. Units are
    those of the rows: N s and m/s for contacts, N m s and rad/s for moments.
    """
    if not equalities and _nothing_approaches(u, limits, len(friction)):
        return np.zeros(len(u)), Outcome(0, 0.0, True)
    if isinstance(G, np.ndarray):
        problem: Cones = _Problem(G, u, friction, equalities, limits, moments)
    else:
        problem = G.problem(u, friction, limits)
    if problem.speed == 0.0:
        return np.zeros(len(u)), Outcome(0, 0.0, True)
    z, w = problem.start(np.zeros(len(u)) if warm is None else warm)
    best, residual, iterations = problem.newton(z, w, tolerance, sufficient)
    z, force, enough = best, None, sufficient
    for penalty, rounds in ADMM_ROUNDS:
        if residual <= max(tolerance, enough):
            break
        enough *= IMPATIENCE
        z, force = problem.admm(z, force, penalty, rounds)
        candidate, value, count = problem.newton(z, problem.velocity(z), tolerance, sufficient)
        iterations += rounds + count
        if value < residual:
            best, residual = candidate, value
    return problem.unscaled(problem.project(best)[0], len(u)), Outcome(
        iterations, residual, residual <= max(tolerance, sufficient)
    )


def _nothing_approaches(u: np.ndarray, limits: int, contacts: int) -> bool:
    """Whether no impulse at all is the solution, but for what rounding makes of zero [rad/s or m/s]."""
    return not np.count_nonzero(u[limits : limits + 3 * contacts : 3] < -TINY) + np.count_nonzero(u[:limits] < -TINY)


def energy(G: np.ndarray | Delassus, u_free: np.ndarray, impulses: np.ndarray) -> float:
    """Kinetic energy [J] that impulses (rows,) add to velocities u_free (rows,), targets not subtracted."""
    return 0.5 * float(impulses @ (G @ impulses + 2.0 * u_free))


def guard(G: np.ndarray | Delassus, u_free: np.ndarray, impulses: np.ndarray, inelastic: np.ndarray) -> np.ndarray:
    """Impulses (rows,) blended toward the `inelastic` ones, as far as needed for kinetic energy not to rise.

    The cones are convex, so a blend of two admissible impulses is admissible. Should the inelastic impulses themselves
    bring in energy (they never do when solved exactly without targets) they are scaled down until they do not.
    """
    change = impulses - inelastic
    G_inelastic = G @ inelastic
    base = 0.5 * float(inelastic @ (G_inelastic + 2.0 * u_free))
    linear = float(change @ (G_inelastic + u_free))
    square = 0.5 * float(change @ (G @ change))
    if base + linear + square <= 0.0:
        return impulses
    if base <= 0.0:
        # Largest root of base + linear t + square t^2 in a form that is safe for square -> 0; it is in [0, 1).
        root = np.sqrt(max(linear * linear - 4.0 * square * base, 0.0))
        if linear > 0.0:
            return inelastic + min(1.0, -2.0 * base / (linear + root)) * change
        return inelastic + min(1.0, (root - linear) / (2.0 * square)) * change
    work, stored = float(inelastic @ u_free), float(inelastic @ G_inelastic)
    return inelastic * (min(1.0, -2.0 * work / stored) if work < 0.0 else 0.0)


def _with(
    moments: Moments, order: np.ndarray, G: np.ndarray, u: np.ndarray, friction: np.ndarray, scalars: int
) -> tuple[np.ndarray, ...]:
    """The order, its pairs' owners, G, u and the coefficients of all pairs, when those of moments join the order."""
    k, r, s = len(friction), len(moments.rolling), len(moments.torsion)
    rows, end = len(u), scalars + 3 * k
    rolls, spins = np.arange(end, end + 2 * r).reshape(r, 2).T, np.arange(rows - s, rows)
    first, second = order[scalars + k : end].reshape(2, k)
    order = np.concatenate((order[: scalars + k], first, rolls[0], spins, second, rolls[1], spins + s))
    owner = scalars + np.concatenate((np.arange(k), moments.rolling_owner, moments.torsion_owner))
    # The second rows of torsion stand alone at rest, so their impulses stay zero.
    G = np.pad(G, (0, s))
    G[spins + s, spins + s] = G[spins, spins]
    return order, owner, G, np.append(u, np.zeros(s)), np.concatenate((friction, moments.rolling, moments.torsion))


class _Problem(Cones):
    """The problem of a matrix G."""

    def __init__(
        self,
        G: np.ndarray,
        u: np.ndarray,
        friction: np.ndarray,
        equalities: int,
        limits: int,
        moments: Moments | None,
    ) -> None:
        rows, contacts, scalars = len(u), len(friction), equalities + limits
        owner, order = np.arange(scalars, scalars + contacts), by_axis(scalars, contacts, rows)
        if moments is not None and rows > scalars + 3 * contacts:
            order, owner, G, u, friction = _with(moments, order, G, u, friction, scalars)
        super().__init__(G.diagonal(), u, friction, order, owner, contacts, equalities)
        self.G = G.take(self.order, axis=0).take(self.order, axis=1)
        self.G *= self.unit[:, None]
        self.G *= self.unit

    def velocity(self, z: np.ndarray) -> np.ndarray:
        return self.G @ z + self.u

    def direction(
        self, w: np.ndarray, gap: tuple[np.ndarray, ...], damping: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """See `Cones.direction`.

        Rows outside their cones' reach go to zero and leave the system. In the others w takes part through a projector:
        the identity where a contact sticks, the share times the projector across the slip where it slides.
        """
        F, x, share, length = gap
        bare, grips = x[: self.split] > self.least, share > 0.0
        free = np.concatenate((bare, grips, grips)).nonzero()[0]
        grip = grips.nonzero()[0]
        size, count = len(free), len(grip)
        if size == 0:
            return -F, self.G @ -F
        split = size - 2 * count

        owner, share = self.owner.take(grip), share.take(grip)
        slip = (x[self.split :].reshape(2, -1) / length).take(grip, axis=1)
        sliding = (share < 1.0) * slip
        across = share * sliding
        cross = across[0] * slip[1]
        pull = self.friction.take(grip) * sliding
        keep = np.empty(size)
        keep[:split] = 1.0
        keep[split:] = (share - across * slip).reshape(-1)

        dz = -F
        rhs = dz.take(free)
        dz[free] = 0.0
        rhs[split:] += (pull * w.take(owner)).reshape(-1)
        if np.count_nonzero(dz):
            change = (self.G @ dz)[free]
            rhs -= keep * change
            rhs[split:] += (cross * change[split:].reshape(2, count)[::-1]).reshape(-1)
        # the projector times G, less one and with damping on its diagonal, and one
        G = self.G.take(free, axis=0).take(free, axis=1)
        G.reshape(-1)[:: size + 1] += damping - 1.0
        J = keep[:, None] * G
        tangents = J[split:].reshape(2, count, size)
        tangents -= cross[:, None] * G[split:].reshape(2, count, size)[::-1]
        flat = J.reshape(-1)
        flat[:: size + 1] += 1.0
        # each pair's rows at the column of the normal that bounds it
        bounds = np.arange(split * size, size * size, size).reshape(2, count) + free.searchsorted(owner)
        flat.put(bounds, flat.take(bounds) - pull)
        try:
            dz[free] = np.linalg.solve(J, rhs)
        except np.linalg.LinAlgError:
            return None
        return (dz, self.G @ dz) if isfinite(dz @ dz) else None

    def admm(
        self, z: np.ndarray, multiplier: np.ndarray | None, penalty: float, iterations: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Cones.admm`."""
        dual = (-self.velocity(z) if multiplier is None else multiplier) / penalty
        shifted = self.G.copy()
        shifted.reshape(-1)[:: len(shifted) + 1] += penalty
        inverse = np.linalg.inv(shifted)
        inverse *= RELAXATION
        shift = inverse @ self.u
        inverse *= penalty
        for _ in range(iterations):
            mixed = inverse @ (z - dual)
            mixed -= shift
            mixed += (1.0 - RELAXATION) * z
            mixed += dual
            z = self.project(mixed)[0]
            dual = mixed - z
        return z, penalty * dual
