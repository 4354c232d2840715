"""Impulses at contacts and limits: the velocity-level constraint problem with true Coulomb cones.

The exact problem is not convex, so no single method is both fast and safe. Semismooth Newton on the Alart-Curnier
function ends in two or three iterations when it starts near the solution, which a warm start gives; where it stalls,
rounds of ADMM, which always comes close and is slow only at the end, bring it near. The best iterate is kept.

Sources: Alart and Curnier 1991, "A mixed formulation for frictional contact problems prone to Newton like solution
methods"; Acary, Bremond and Huber 2018, "On solving contact problems with Coulomb friction: formulations and
numerical comparisons"; for ADMM, Carpentier, Montaut and Le Lidec 2024, "From compliant to rigid contact simulation".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TINY = 1e-300
# Relative regularisation of Newton's matrix, never of the problem: redundant contacts make the matrix singular, but a
# compliance in the problem would make resting bodies creep. It follows the residual (Fan and Yuan 2005), which keeps
# convergence fast, and is boosted where a step fails, because then the null space carried it away.
DAMPING_MIN, DAMPING_MAX, DAMPING_BOOST = 1e-4, 1e-2, 100.0
NEWTON_ITERATIONS = 12
# Rounds of ADMM between attempts of Newton: penalty in scaled units and iterations. A large penalty comes near soonest;
# small ones let go of the contact states in which a large one is caught for long.
ADMM_ROUNDS = (0.3, 20), (0.1, 20), (0.1, 40), (0.03, 40), (0.03, 80), (0.01, 80), (0.1, 160)
RELAXATION = 1.6
IMPATIENCE = 3.0  # growth of the sufficient residual from round to round
BACKTRACK = 0.5 ** np.arange(1.0, 9.0)[:, None]


@dataclass(frozen=True)
class Outcome:
    """How a solution was reached; `residual` is dimensionless, see `solve`."""

    iterations: int
    residual: float
    converged: bool


def solve(
    G: np.ndarray,
    u: np.ndarray,
    friction: np.ndarray,
    *,
    equalities: int = 0,
    limits: int = 0,
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
      the tangential impulse is within friction times the normal one and opposes w to the full while that is not zero.

    `warm` (rows,) is a guess, as good as the last step's impulses. Newton's method aims at `tolerance`; where it slows
    down at a residual that is `sufficient` nothing else is tried: near rest some contacts are just about to open or to
    slip, and the last digits cost most. In the rounds after that, the residual that will do grows with the effort.
    The impulses are within their cones whatever the residual.

    The residual is the largest element of z - P(z - w), where P projects onto the cones at hand, with each row scaled
    by the root of its diagonal in G (one for both tangents) and in units of the largest scaled u, so it is a share of
    the fastest approach. Units are those of the rows: N s and m/s for contacts.
    """
    if not equalities and _nothing_approaches(u, limits):
        return np.zeros(len(u)), Outcome(0, 0.0, True)
    problem = _Problem(G, u, friction, equalities, limits)
    if problem.speed == 0.0:
        return np.zeros(len(u)), Outcome(0, 0.0, True)
    z = np.zeros(len(u)) if warm is None else problem.scaled(warm)
    best, residual, iterations = problem.newton(z, tolerance, sufficient)
    z, force, enough = best, None, sufficient
    for penalty, rounds in ADMM_ROUNDS:
        if residual <= max(tolerance, enough):
            break
        enough *= IMPATIENCE
        z, force = problem.admm(z, force, penalty, rounds)
        candidate, value, count = problem.newton(z, tolerance, sufficient)
        iterations += rounds + count
        if value < residual:
            best, residual = candidate, value
    return problem.unscaled(problem.project(best)[0]), Outcome(
        iterations, residual, residual <= max(tolerance, sufficient)
    )


def _nothing_approaches(u: np.ndarray, limits: int) -> bool:
    """Whether no impulse at all is the solution, but for what rounding makes of zero [rad/s or m/s]."""
    return u[:limits].min(initial=0.0) >= -TINY and u[limits::3].min(initial=0.0) >= -TINY


def energy(G: np.ndarray, u_free: np.ndarray, impulses: np.ndarray) -> float:
    """Kinetic energy [J] that impulses (rows,) add to velocities u_free (rows,), targets not subtracted."""
    return 0.5 * float(impulses @ (G @ impulses + 2.0 * u_free))


def guard(G: np.ndarray, u_free: np.ndarray, impulses: np.ndarray, inelastic: np.ndarray) -> np.ndarray:
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


class _Problem:
    """The problem with scaled rows (unit diagonal) in the order: scalar rows, normals, first tangents, second ones."""

    def __init__(self, G: np.ndarray, u: np.ndarray, friction: np.ndarray, equalities: int, limits: int) -> None:
        rows = len(u)
        scalars = equalities + limits
        contacts = (rows - scalars) // 3
        self.split = scalars + contacts
        self.normals = slice(scalars, self.split)
        self.order = np.arange(rows)
        self.order[scalars:] = self.order[scalars:].reshape(contacts, 3).T.ravel()

        diagonal = G.diagonal()[self.order]
        tangents = diagonal[self.split :].reshape(2, contacts)
        tangents[:] = 0.5 * (tangents[0] + tangents[1])
        # Rows that no impulse can move, as those of a contact between a keyed link and the ground, drop out as zeros.
        self.root = np.sqrt(np.maximum(diagonal, 0.0))
        movable = diagonal > 1e-12 * diagonal.max(initial=TINY)
        scale = movable / np.maximum(self.root, TINY)
        self.G = G.take(self.order, axis=0).take(self.order, axis=1)
        self.G *= scale[:, None]
        self.G *= scale
        self.u = u[self.order] * scale
        self.speed = float(np.abs(self.u).max(initial=0.0))
        self.scale = scale * self.speed
        self.u /= self.speed or 1.0
        # The tangents' unit of impulse differs from the normal's, and friction with it.
        normal, tangent = scale[self.normals], scale[self.split : self.split + contacts]
        self.friction = friction * normal / np.maximum(tangent, np.maximum(1e-6 * normal, TINY))
        self.floor = np.zeros(self.split)
        self.floor[:equalities] = -np.inf

    def scaled(self, impulses: np.ndarray) -> np.ndarray:
        return impulses[self.order] * self.root / self.speed

    def unscaled(self, z: np.ndarray) -> np.ndarray:
        impulses = np.empty_like(z)
        impulses[self.order] = z * self.scale
        return impulses

    def velocity(self, z: np.ndarray) -> np.ndarray:
        return self.G @ z + self.u

    def project(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """P(x) for x (..., rows), the share (..., contacts) of the tangents it leaves, and their lengths."""
        shape = *x.shape[:-1], 2, -1
        p = np.empty_like(x)
        np.maximum(x[..., : self.split], self.floor, out=p[..., : self.split])
        tangents = x[..., self.split :].reshape(shape)
        length = np.sqrt(tangents[..., 0, :] ** 2 + tangents[..., 1, :] ** 2)
        np.maximum(length, TINY, out=length)
        share = self.friction * p[..., self.normals]
        share /= length
        np.minimum(share, 1.0, out=share)
        np.multiply(tangents, share[..., None, :], out=p[..., self.split :].reshape(shape))
        return p, share, length

    def gap(self, z: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
        """The residual F (rows,) of impulses z and velocities w, and what its derivative needs."""
        x = z - w
        p, share, length = self.project(x)
        return z - p, x, share, length

    def newton(self, z: np.ndarray, tolerance: float, sufficient: float) -> tuple[np.ndarray, float, int]:
        """Iterate of least residual, its residual, and the number of iterations, starting at z (rows,)."""
        w = self.velocity(z)
        gap = self.gap(z, w)
        merit, size = gap[0] @ gap[0], float(np.abs(gap[0]).max())
        best, least, iteration, boost = z, size, 0, 1.0
        while least > tolerance and iteration < NEWTON_ITERATIONS:
            iteration += 1
            dz = self.direction(w, gap, boost * min(max(least, DAMPING_MIN), DAMPING_MAX))
            if dz is None:
                break
            dw = self.G @ dz
            trial = z + dz, w + dw
            trial_gap = self.gap(*trial)
            value = trial_gap[0] @ trial_gap[0]
            if not value < 0.5 * merit:
                # All shorter steps at once; of those and the full one the best.
                Z, W = z + BACKTRACK * dz, w + BACKTRACK * dw
                gaps = Z - self.project(Z - W)[0]
                merits = (gaps * gaps).sum(axis=1)
                shorter = merits.argmin()
                if not value <= merits[shorter]:
                    trial = Z[shorter], W[shorter]
                    trial_gap = self.gap(*trial)
                    value = merits[shorter]
            slow = value > 0.1 * merit
            if value < 0.999 * merit:
                z, w = trial
                gap, merit, boost = trial_gap, value, max(1.0, boost / DAMPING_BOOST)
                size = float(np.abs(gap[0]).max())
                if size < least:
                    best, least = z, size
            elif boost > DAMPING_BOOST:
                break
            else:
                boost *= DAMPING_BOOST
            if slow and least <= sufficient:
                break
        return best, least, iteration

    def direction(self, w: np.ndarray, gap: tuple[np.ndarray, ...], damping: float) -> np.ndarray | None:
        """Newton's step (rows,) for F(z) = 0 from velocities w and their gap; None where singular.

        Rows outside their cones' reach go to zero and leave the system. In the others w takes part through a projector:
        the identity where a contact sticks, the share times the projector across the slip where it slides.
        """
        F, x, share, length = gap
        split, count = self.split, len(share)
        grips = share > 0.0
        bare = x[:split] > self.floor
        bare[self.normals] &= ~grips
        grip = grips.nonzero()[0]
        free = np.concatenate((bare.nonzero()[0], self.normals.start + grip, split + grip, split + count + grip))
        size, count = len(free), len(grip)
        split = size - 2 * count

        share = share[grip]
        slip = (x[self.split :].reshape(2, -1) / length)[:, grip]
        slides = share < 1.0
        across = share * slides
        keep = np.ones(size)
        keep[split:] = (share - across * slip * slip).reshape(-1)
        cross = -across * slip[0] * slip[1]
        pull = slip * (self.friction[grip] * slides)

        dz = -F
        dz[free] = 0.0
        rhs = -F[free]
        rhs[split:] += (pull * w[self.normals.start + grip]).reshape(-1)
        if dz.any():
            change = (self.G @ dz)[free]
            rhs -= keep * change
            rhs[split:] -= (cross * change[split:].reshape(2, count)[::-1]).reshape(-1)
        G = self.G.take(free, axis=0).take(free, axis=1)
        J = G * keep[:, None]
        tangents = J[split:].reshape(2, count, size)
        tangents += cross[:, None] * G[split:].reshape(2, count, size)[::-1]
        flat, step = J.reshape(-1), size + 1
        flat[::step] += 1.0 + (damping - 1.0) * keep
        cross *= damping - 1.0
        # Diagonals of the blocks (first tangent, second), (second, first), (tangents, normal).
        first, second, reach = split * step, (split + count) * step, count * step
        flat[first + count :][:reach:step] += cross
        flat[second - count :][:reach:step] += cross
        flat[first - count :][:reach:step] -= pull[0]
        flat[second - 2 * count :][:reach:step] -= pull[1]
        try:
            dz[free] = np.linalg.solve(J, rhs[:, None])[:, 0]
        except np.linalg.LinAlgError:
            return None
        return dz if np.isfinite(dz @ dz) else None

    def admm(
        self, z: np.ndarray, multiplier: np.ndarray | None, penalty: float, iterations: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Impulses and multipliers (rows,) after so many iterations from these; a friction bound follows its normal.

        The multiplier approaches the velocity at the solution, with its sign changed; None stands for that at z.
        """
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
