"""Joint limits: how far each is, and which joint velocities approach it.

A spherical joint's orientation against its parent is a swing of the link's y axis followed by a twist about it. The
swing, a rotation vector (x, z), stays in an ellipse whose half axes are the four limits; the twist angle between its
two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .model import Model
from .spatial import quaternion_matrix

POLE = 1e-9
"""Swings below this [rad] have no direction."""
FAST = 0.03
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
        return (self.weights * np.append(v, 0.0).take(self.freedoms)).sum(-1)

    def fast(self, v: np.ndarray, h: float) -> bool:
        """Whether a ball joint at one of these limits turns so far in `h` seconds that the limit's curvature shows."""
        if not len(self):
            return False
        # plain joints use one freedom of their three and have straight limits
        freedoms = self.freedoms[self.freedoms[:, 1] < len(v)]
        return bool(np.abs(v.take(freedoms)).max(initial=0.0) * h > FAST)

    def select(self, near: np.ndarray) -> LimitRows:
        return LimitRows(self.gap[near], self.freedoms[near], self.weights[near], self.key[near])


class Limits:
    """The limits of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        c, nv = model.coordinates, model.nv
        bounded = np.isfinite(model.lower) | np.isfinite(model.upper)
        plain = np.flatnonzero(bounded[c.plain_v])
        self.plain_q, plain_v = c.plain_q[plain], c.plain_v[plain]
        self.plain_lower, self.plain_upper = model.lower[plain_v], model.upper[plain_v]
        self.plain_freedoms = np.stack((plain_v, np.full_like(plain_v, nv), np.full_like(plain_v, nv)), -1)

        ball = np.flatnonzero((c.kinds[c.turning] == "spherical") & bounded[c.quaternion_v].any(-1))
        self.ball_q, ball_v = c.quaternion_q[ball], c.quaternion_v[ball]
        lower, upper = model.lower[ball_v], model.upper[ball_v]
        # an ellipse needs its middle inside: the rest pose where the range holds it, else the range's own middle
        with np.errstate(invalid="ignore"):
            inside = (lower < 0) & (upper > 0)
            middle = np.where(inside | ~np.isfinite(lower + upper), 0.0, 0.5 * (lower + upper))
        self.middle = middle[:, ::2]
        self.half_low, self.half_high = (middle - lower)[:, ::2], (upper - middle)[:, ::2]
        self.twist_lower, self.twist_upper = lower[:, 1], upper[:, 1]
        self.ball_freedoms = ball_v

        n_plain, n_ball = len(plain), len(ball)
        self.freedoms = np.concatenate((
            self.plain_freedoms, self.plain_freedoms, self.ball_freedoms, self.ball_freedoms, self.ball_freedoms,
        )).reshape(-1, 3)  # fmt: skip
        self.plain_weights = np.zeros((2 * n_plain, 3))
        self.plain_weights[:n_plain, 0], self.plain_weights[n_plain:, 0] = 1.0, -1.0
        self.key = np.arange(2 * n_plain + 3 * n_ball)

    def __len__(self) -> int:
        return len(self.key)

    def rows(self, q: np.ndarray) -> LimitRows:
        """Every limit at joint coordinates `q` (nq,): lower and upper of plain joints, then swings, then twists."""
        angle = q[self.plain_q]
        plain = np.concatenate((angle - self.plain_lower, self.plain_upper - angle))
        turn = q[self.ball_q]
        swing_gap, swing_weights = self._swing(quaternion_matrix(turn))
        twist, twist_weights = _twist(turn)
        gap = np.concatenate((plain, swing_gap, twist - self.twist_lower, self.twist_upper - twist))
        weights = np.concatenate((self.plain_weights, swing_weights, twist_weights, -twist_weights))
        return LimitRows(gap, self.freedoms, weights, self.key)

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

    def _swing(self, rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distance (b,) to the swing ellipses' borders, to first order, and its rate per angular velocity (b, 3)."""
        dx, dy, dz = rotation[:, 0, 1], rotation[:, 1, 1], rotation[:, 2, 1]
        sine = np.maximum(np.sqrt(dx * dx + dz * dz), POLE)
        angle = np.arctan2(sine, dy)
        rx, rz = dz / sine, -dx / sine
        swing = np.stack((angle * rx, angle * rz), -1) - self.middle
        half = np.where(swing > 0, self.half_high, self.half_low)
        level = swing / half
        radius = np.maximum(np.sqrt((level * level).sum(-1)), POLE)
        gradient = level / half / radius[:, None]
        steepness = np.maximum(np.sqrt((gradient * gradient).sum(-1)), POLE)
        gx, gz = (gradient / steepness[:, None]).T
        # rate of the swing vector: along its own direction r by the angle's rate, across it by angle / sine
        along, across = gx * rx + gz * rz, gx * rz - gz * rx
        stretch = angle / sine
        # the bone's axis moves by (-ω_z, 0, ω_x) in the link's frame
        weights = np.zeros((len(swing), 3))
        for column, sign, axis in ((0, 1.0, 2), (2, -1.0, 0)):
            ex, ey, ez = sign * rotation[:, 0, axis], sign * rotation[:, 1, axis], sign * rotation[:, 2, axis]
            outward = dy * (ez * rx - ex * rz) - sine * ey
            sideways = stretch * (ez * rz + ex * rx)
            weights[:, column] = -(along * outward + across * sideways)
        return (1.0 - radius) / steepness, weights


def _twist(turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The twist angles (b,) about y of unit quaternions and their rates per angular velocity (b, 3)."""
    w, x, y, z = turn.T
    scale = 1.0 / np.maximum(w * w + y * y, POLE)
    angle = 2.0 * np.arctan2(y, w)
    angle = np.where(angle > np.pi, angle - 2 * np.pi, np.where(angle < -np.pi, angle + 2 * np.pi, angle))
    return angle, np.stack(((w * z + x * y) * scale, np.ones_like(w), (y * z - w * x) * scale), -1)
