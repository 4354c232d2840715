"""Impacts: Coulomb friction through slip, stick and reverse, and a law of restitution, on the inverse inertia that
contacts see.

An impact takes no time; what grows in it is the normal impulse. While a contact slips along d its velocity changes by
du/dp_n = G (1, -μ d). The direction d turns unless G leaves it alone; where slip ends, the contact sticks if friction
can hold it and else slips on along the one direction that lasts. The normal velocity falls to zero (compression) and
rises again until the law of restitution ends the impact.

Sources: Stronge 1990, "Rigid body collisions with friction" (restitution of work, which alone of the three laws never
creates energy); Mirtich 1996, "Impulse-based Dynamic Simulation of Rigid Body Systems", chapter 3 (collision
integration); Bhatt and Koechling 1995, "Three-dimensional frictional rigid-body impact" (the flow of slip).
"""

from __future__ import annotations

from enum import Enum
from typing import NoReturn

import numpy as np

from .spatial import TINY

STAGES = tuple(
    np.array(leads)
    for leads in (
        [1 / 4],
        [1 / 8, 1 / 8],
        [0, -1 / 2, 1],
        [3 / 16, 0, 0, 9 / 16],
        [-3 / 7, 2 / 7, 12 / 7, -12 / 7, 8 / 7],
        [],
    )
)
WEIGHTS = np.array([7, 0, 32, 12, 32, 7]) / 90
"""Butcher's rule of fifth order (1964): how the stages so far lead to the next, and their weights in the end."""
STRIDE = 0.7
"""Step of the slip's flow, in its own unit of time (that in which slip changes by about itself),"""
STRIDES = 200
"""and the most of them."""
STRAIGHT = 1e-4
"""An impulse during which friction turns by less than this, weighed by its share of the whole, is taken at once."""
STILL = 1e-9
"""Slip, as a share of the approach, that is none."""
FAR = 1e12
"""Longer than any impulse, in units of the approach."""
BLOCKED = 1e-10
"""Normal compliance, as a share of that without friction, that is none: the contact is wedged."""


class Law(Enum):
    """What ends an impact: its normal work in restitution is e² times that in compression (WORK, Stronge), its normal
    impulse e times (POISSON), or its normal velocity e times that before (NEWTON). The last two may create energy."""

    WORK = "work"
    POISSON = "poisson"
    NEWTON = "newton"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(f"the law of impacts is {value!r}; give one of {', '.join(law.value for law in cls)}")


def collide(
    G: np.ndarray, u: np.ndarray, friction: np.ndarray, restitution: np.ndarray, law: Law = Law.WORK
) -> np.ndarray:
    """Impulses (c, 3) [N s] of c contacts that have nothing to do with each other.

    G (c, 3, 3) is the inverse inertia [1/kg] and u (c, 3) the velocity [m/s] along normal and tangents, before; only
    contacts that approach, u[:, 0] < 0, get an impulse. Where G keeps the slip on one line the answer is exact, else
    its error is some 1e-5, at most 1e-4 of the whole.
    """
    p = np.zeros(u.shape)
    hit = np.flatnonzero((u[:, 0] < 0.0) & (G[:, 0, 0] > 0.0))
    if not len(hit):
        return p
    G, u, friction, restitution = G[hit], u[hit], friction[hit], restitution[hit]
    # frames in which the tangents' inverse inertia is diagonal, and units of approach and normal inverse inertia
    frame = np.zeros_like(G)
    frame[:, 0, 0] = 1.0
    frame[:, 1:, 1:] = np.linalg.eigh(G[:, 1:, 1:])[1]
    scaled = frame.transpose(0, 2, 1) @ (G / G[:, :1, :1]) @ frame
    slip = (frame.transpose(0, 2, 1) @ (u / -u[:, :1])[:, :, None])[:, :, 0]
    impulse = _Impacts(scaled, slip, friction, restitution, law).run()
    p[hit] = (frame @ impulse[:, :, None])[:, :, 0] * (-u[:, 0] / G[:, 0, 0])[:, None]
    return p


class _Impacts:
    """Contacts c in units in which each approaches at 1 and has the normal inverse inertia 1, tangents diagonal.

    `phase` (c,) is 0 in compression, 1 in restitution, 2 at the end; `work` (c,) the normal impulse's, `pressed` (c,)
    and `most` (c, 3) the work and the impulse at the end of compression.
    """

    def __init__(self, G: np.ndarray, u: np.ndarray, friction: np.ndarray, restitution: np.ndarray, law: Law) -> None:
        self.G, self.u, self.friction, self.restitution, self.law = G, u.copy(), friction, restitution, Law(law)
        self.before = u
        self.tilt = G[:, 0, 1:]
        self.along = np.maximum(G[:, (1, 2), (1, 2)], 0.0)
        self.drag = friction[:, None] * self.along
        self.stride = STRIDE / np.maximum(self.drag.max(-1) + _length(self.tilt), TINY)
        self.p, self.most = np.zeros_like(u), np.zeros_like(u)
        self.work, self.pressed = np.zeros(len(u)), np.zeros(len(u))
        self.phase = np.zeros(len(u), dtype=np.int8)

    def run(self) -> np.ndarray:
        """The impulses (c, 3)."""
        moving = np.flatnonzero((self.u[:, 1:] ** 2).sum(-1) > STILL**2)
        for _ in range(STRIDES):
            if not len(moving):
                break
            moving = moving[self._slide(moving)]
        force = _lasting(self.tilt, self.along, self.friction)
        # a wedged contact that is still pressed and what slid for too long go on without friction
        wedged = 1.0 + _dot(self.tilt, force) < BLOCKED
        force[wedged] = 0.0
        force[moving] = 0.0
        end = np.where(wedged & (self.u[:, 0] > -STILL), 2, self.phase)
        every = np.arange(len(end))
        for phase in (0, 1):
            reach = np.where(end <= phase, self._reach(every, 1.0 + _dot(self.tilt, force)), 0.0)
            self._push(
                every,
                reach[:, None] * np.concatenate((np.ones((len(end), 1)), force), axis=1),
                np.full(len(end), np.nan),
            )
            self._pass(every[self.phase == phase])
        return self._guarded() if self.law is Law.WORK else self.p

    def _slide(self, at: np.ndarray) -> np.ndarray:
        """One step of the slip of contacts `at` (m,); which of them go on slipping."""
        u, G, tilt, drag, friction = self.u[at], self.G[at], self.tilt[at], self.drag[at], self.friction[at]
        speed = _length(u[:, 1:])
        way = u[:, 1:] / speed[:, None]
        change = tilt - drag * way
        growth = _dot(change, way)
        turn = np.abs(change[:, 1] * way[:, 0] - change[:, 0] * way[:, 1])

        reach = self._reach(at, 1.0 - friction * _dot(tilt, way))
        stop = np.where((growth < 0.0) & (friction > 0.0), speed / np.maximum(-growth, TINY), np.inf)
        stops = stop < reach
        straight = np.minimum(np.minimum(reach, stop), FAR)
        distance = np.abs(straight)
        at_once = friction * turn * distance * distance <= STRAIGHT * speed * (self.p[at, 0] + distance)

        gain = np.clip(growth * straight / speed, -1.0 + 1e-12, FAR)
        steady = np.abs(gain) < 1e-8
        time = np.where(steady, straight / speed, np.log1p(gain) / np.where(steady, 1.0, growth))
        stride = self.stride[at]
        part, work = _flow(G, u, friction, np.minimum(np.maximum(time, -stride), stride))
        if at_once.any():
            line = np.concatenate((np.ones((len(at), 1)), -friction[:, None] * way), axis=1)
            part = np.where(at_once[:, None], straight[:, None] * line, part)
            work[at_once] = np.nan
        self._push(at, part, work)
        self._pass(at[at_once & ~stops])
        return (self.phase[at] < 2) & ~(at_once & stops) & (_length(self.u[at, 1:]) > STILL)

    def _reach(self, at: np.ndarray, softness: np.ndarray) -> np.ndarray:
        """The normal impulse (m,) to the end of the phase where the normal velocity grows by `softness` (m,) with it;
        negative where the end has been passed, infinite where it is never reached."""
        speed, e, restitutes = self.u[at, 0], self.restitution[at], self.phase[at] > 0
        soft = np.where(softness > 0.0, softness, TINY)
        if self.law is Law.POISSON:
            reach = np.where(restitutes, (1.0 + e) * self.most[at, 0] - self.p[at, 0], -speed / soft)
        elif self.law is Law.NEWTON:
            reach = (restitutes * e - speed) / soft
        else:
            lack = (1.0 - e * e) * self.pressed[at] - self.work[at]
            square = speed * speed + 2.0 * softness * lack
            last = 2.0 * lack / np.maximum(speed + np.sqrt(np.maximum(square, 0.0)), TINY)
            reach = np.where(restitutes, np.where(square < 0.0, np.inf, last), -speed / soft)
            soft = np.where(restitutes, 1.0, softness)
            return np.where(soft > 0.0, reach, np.inf)
        return np.where((softness > 0.0) | (restitutes & (self.law is Law.POISSON)), reach, np.inf)

    def _push(self, at: np.ndarray, part: np.ndarray, work: np.ndarray) -> None:
        """Adds impulses (m, 3) to contacts `at`, and their normal work (m,), nan where they keep their direction."""
        change = (self.G[at] @ part[:, :, None])[:, :, 0]
        steady = part[:, 0] * (self.u[at, 0] + 0.5 * change[:, 0])
        self.work[at] += np.where(np.isnan(work), steady, work)
        self.u[at] += change
        self.p[at] += part

    def _pass(self, at: np.ndarray) -> None:
        """Contacts `at` have come to the end of their phase."""
        pressed = at[self.phase[at] == 0]
        self.pressed[pressed], self.most[pressed] = self.work[pressed], self.p[pressed]
        self.phase[at] += 1

    def _guarded(self) -> np.ndarray:
        """The impulses (c, 3) within their cones, and back toward compression's end as far as errors brought in
        energy."""
        p = self.p
        length = _length(p[:, 1:])
        p[:, 1:] *= np.minimum(1.0, self.friction * p[:, 0] / np.maximum(length, TINY))[:, None]
        change = p - self.most
        stored, added = (self.G @ self.most[:, :, None])[:, :, 0], (self.G @ change[:, :, None])[:, :, 0]
        base = (self.most * (self.before + 0.5 * stored)).sum(-1)
        linear = (change * (self.before + stored)).sum(-1)
        square = 0.5 * (change * added).sum(-1)
        gains = base + linear + square > 0.0
        root = np.sqrt(np.maximum(linear * linear - 4.0 * square * base, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(linear > 0.0, -2.0 * base / (linear + root), (root - linear) / (2.0 * square))
        share = np.where(gains, np.clip(share, 0.0, 1.0), 1.0)
        return self.most + share[:, None] * change


def _flow(G: np.ndarray, u: np.ndarray, friction: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The impulses (m, 3) over so much of the flow's time (m,), and the normal one's work (m,).

    The time goes by dp_n = |w| dt, where w is the slip: then u' = G (|w|, -μ w), which stays regular where slip ends.
    By Butcher's rule of fifth order; it weighs all stages positively, so the impulses lie in their cone.
    """
    states = np.empty((len(STAGES), *u.shape))
    pushes = np.empty_like(states)
    flat = pushes.reshape(len(STAGES), -1)
    moves, states[0] = time[:, None, None] * G, u
    for stage, leads in enumerate(STAGES, 1):
        push, state = pushes[stage - 1], states[stage - 1]
        np.multiply(state, -friction[:, None], out=push)
        np.hypot(state[:, 1], state[:, 2], out=push[:, 0])
        if stage < len(STAGES):
            lead = (leads @ flat[:stage]).reshape(-1, 3, 1)
            np.add(u, (moves @ lead)[:, :, 0], out=states[stage])
    work = WEIGHTS @ (pushes[:, :, 0] * states[:, :, 0])
    return time[:, None] * (WEIGHTS @ flat).reshape(-1, 3), time * work


def _lasting(tilt: np.ndarray, along: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """The friction force (c, 2) per normal force after slip has ended: what holds the contact, or else of the one
    direction d in which slip grows without turning, tilt - μ along d = λ d with λ > 0."""
    force = -tilt / np.maximum(along, 1e-12)
    free = np.flatnonzero((force * force).sum(-1) > friction * friction)
    if len(free):
        tilt, drag = tilt[free], friction[free, None] * along[free]
        rate = np.maximum(_length(tilt) - drag.max(-1), 0.0)
        for _ in range(12):
            # Newton's method on 1 / |d|, which is concave in the rate λ, so it comes from below
            scale = np.maximum(drag + rate[:, None], 1e-14)
            way = tilt / scale
            square = (way * way).sum(-1)
            rate += square * (np.sqrt(square) - 1.0) / np.maximum((way * way / scale).sum(-1), TINY)
            rate = np.maximum(rate, 0.0)
        way = tilt / np.maximum(drag + rate[:, None], 1e-14)
        length = np.maximum(np.sqrt((way * way).sum(-1)), TINY)
        force[free] = -friction[free, None] * way / length[:, None]
    return force


def _length(vectors: np.ndarray) -> np.ndarray:
    """The lengths of tangential vectors (m, 2)."""
    return np.hypot(vectors[:, 0], vectors[:, 1])


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The products of tangential vectors (m, 2)."""
    return a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1]
