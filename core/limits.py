"""Joint limits: how far each is, and which joint velocities approach it.

A spherical joint's orientation against its parent is a swing of the link's y axis followed by a twist about it. The
swing, a rotation vector (x, z), stays in an ellipse whose half axes are the four limits; the twist angle between its
two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .model import Model

POLE = 1e-9
"""Swings below this [rad] have no direction."""
FAST = 0.05
"""Turns of a step beyond this [rad] see the curvature of limits."""


@dataclass(frozen=True)
class LimitRows:
    """Limits that may be met, m of them.

    `gap` (m,) [rad or m] to the limit, negative beyond it; `freedoms` (m, 3) indices of joint velocities, nv for none,
    and `weights` (m, 3): the gap's rate is the weighted sum of those velocities. `key` (m,) recognises a limit later.
    """

    gap: np.ndarray
    freedoms: np.ndarray
    weights: np.ndarray
    key: np.ndarray

    def __len__(self) -> int:
        return len(self.gap)

    def rate(self, v: np.ndarray) -> np.ndarray:
        """The gaps' rates (m,) at joint velocities `v` (nv,)."""
        # none is clipped to the last velocity, and its weight is zero
        return np.add.reduce(self.weights * v.take(self.freedoms, mode="clip"), axis=-1)

    def fast(self, v: np.ndarray, h: float) -> bool:
        """Whether a ball joint at one of these limits turns so far in `h` seconds that the limit's curvature shows."""
        if not len(self) or np.abs(v).max() * h <= FAST:
            return False
        # plain joints use one freedom of their three and have straight limits
        freedoms = self.freedoms[self.freedoms[:, 1] < len(v)]
        return bool(np.abs(v.take(freedoms)).max(initial=0.0) * h > FAST)

    def select(self, near: np.ndarray) -> LimitRows:
        """Only the rows that are `near` (m,)."""
        near = near.nonzero()[0]
        parts = self.gap, self.freedoms, self.weights, self.key
        return LimitRows(*(part.take(near, axis=0) for part in parts))


class Limits:
    """The limits of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        c, nv = model.coordinates, model.nv
        bounded = np.isfinite(model.lower) | np.isfinite(model.upper)
        plain = np.flatnonzero(bounded[c.plain_v])
        self.plain_q, plain_v = c.plain_q[plain], c.plain_v[plain]
        self.plain_lower, self.plain_upper = model.lower[plain_v], model.upper[plain_v]
        ball = np.flatnonzero((c.kinds[c.turning] == "spherical") & bounded[c.quaternion_v].any(-1))
        # read as complex numbers w + iy, the twist about y, and x + iz, the swing beside it
        self.ball_q, ball_v = c.quaternion_q[ball][:, [[0, 2], [1, 3]]].swapaxes(0, 1), c.quaternion_v[ball]
        lower, upper = model.lower[ball_v], model.upper[ball_v]
        # an ellipse needs its middle inside: the rest pose where the range holds it, else the range's own middle
        inside = (lower <= 0) & (upper >= 0)
        middle = np.where(inside, 0.0, 0.5 * (np.clip(lower, -np.pi, np.pi) + np.clip(upper, -np.pi, np.pi)))
        self.middle = middle[:, 0] + 1j * middle[:, 2]
        self.half_low, self.half_high = (np.maximum(x, POLE)[:, ::2] for x in (middle - lower, upper - middle))
        self.twist_lower, self.twist_upper = lower[:, 1], upper[:, 1]

        p, b = len(plain), len(ball)
        self.swings, self.twists, self.untwists = (slice(2 * p + k * b, 2 * p + (k + 1) * b) for k in range(3))
        self.plain = p
        self.key = np.arange(2 * p + 3 * b)
        self.freedoms = np.full((len(self.key), 3), nv)
        self.freedoms[: 2 * p, 0] = np.tile(plain_v, 2)
        self.freedoms[2 * p :] = np.tile(ball_v, (3, 1))
        self.constant_weights = np.zeros((len(self.key), 3))
        self.constant_weights[:p, 0], self.constant_weights[p : 2 * p, 0] = 1.0, -1.0
        self.constant_weights[self.twists, 1], self.constant_weights[self.untwists, 1] = 1.0, -1.0

    def __len__(self) -> int:
        return len(self.key)

    def rows(self, q: np.ndarray) -> LimitRows:
        """Every limit at joint coordinates `q` (nq,): lower and upper of plain joints, then swings, then twists."""
        gap, weights = np.empty(len(self.key)), self.constant_weights.copy()
        if self.plain:
            angle = q.take(self.plain_q)
            np.subtract(angle, self.plain_lower, out=gap[: self.plain])
            np.subtract(self.plain_upper, angle, out=gap[self.plain : 2 * self.plain])
        if self.ball_q.size:
            self._balls(q, gap, weights)
        return LimitRows(gap, self.freedoms, weights, self.key)

    def _balls(self, q: np.ndarray, gap: np.ndarray, weights: np.ndarray) -> None:
        """Fills in the ball joints' limits. A vector (x, z) is the complex number x + iz; turning it about y
        multiplies it by a unit number."""
        # each in one piece: numpy looks where strided arrays lie in memory to choose how it rounds
        both = q.take(self.ball_q).view(complex)[:, :, 0]
        (twist, side), (cosine, sine) = both, np.maximum(np.abs(both), POLE)
        untwist = twist.conj() / cosine
        # without a swing any direction is as good, but none would leave a limit that is passed there without a rate
        direction = np.where(sine > POLE, side * untwist / sine, 1.0)
        angle = 2.0 * np.arctan2(sine, cosine)
        swing = angle * direction - self.middle
        plane = _plane(swing)
        half = np.where(plane > 0, self.half_high, self.half_low)
        level = plane / half
        slope = (level / half).view(complex)[:, 0]
        radius = np.maximum(np.abs(level.view(complex)[:, 0]), POLE)
        slope /= radius
        steepness = np.maximum(np.abs(slope), POLE)
        gap[self.swings] = (1.0 - radius) / steepness
        # The swing's rate: along its direction that of the angle, across it that of the bone's axis times angle / sine
        # of the angle.
        slope *= direction.conj() / steepness
        slope.imag *= angle / (2.0 * sine * cosine)
        rate = slope * direction * (untwist * untwist).conj()
        weights[self.swings, ::2] = -_plane(rate)
        double = twist * twist
        turn = np.arctan2(double.imag, double.real)
        np.subtract(turn, self.twist_lower, out=gap[self.twists])
        np.subtract(self.twist_upper, turn, out=gap[self.untwists])
        aside = _plane(-1j * twist * side / (cosine * cosine))
        weights[self.twists, ::2] = aside
        weights[self.untwists, ::2] = -aside

    def bend(self, rows: LimitRows, q: np.ndarray, v: np.ndarray, h: float) -> np.ndarray:
        """What the gaps of `rows` lose (m,) beyond their rates along the way that `v` (nv,) leads in `h` seconds: a
        fast swing leaves its ellipse along the tangent."""
        if not rows.fast(v, h):
            return np.zeros(len(rows))
        ahead = self.rows(self.model.coordinates.integrate(q, v, h)).gap[rows.key]
        return np.minimum(ahead - rows.gap - h * rows.rate(v), 0.0)

    def violation(self, q: np.ndarray) -> float:
        """How far beyond its limit the worst joint is [rad or m], at least zero."""
        return float(max(0.0, -self.rows(q).gap.min(initial=0.0)))


def _plane(numbers: np.ndarray) -> np.ndarray:
    """Complex numbers (n,) as vectors (n, 2)."""
    return numbers.view(float).reshape(-1, 2)
