"""A simulated device: a hand that follows a script, with the faults that devices have."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from .device import UPRIGHT
from .port import Limits

STRIDE = 5e-4
"""The hand moves in steps of no more than so many seconds."""


class SimulatedDevice:
    """A hand that moves along a `path`, a function of time [s] that returns its place (3,) [m], and exactly so, or with
    a `mass` [kg] as what the device exerts, its own `arm` [N/m] and `damping` [N s/m] make of it.

    Its poses have `noise` [m], none is told in `dropouts`, pairs of times, and all are told `delay` seconds late.
    `put_in` and `given_back` [J]: by the hand and to it, as it is and not as it is told.
    """

    def __init__(
        self, path: Callable[[float], Sequence[float]], *, mass: float = 0.0, arm: float = 200.0, damping: float = 4.0,
        noise: float = 0.0, dropouts: Sequence[tuple[float, float]] = (), delay: float = 0.0, rate: float = 1000.0,
        limits: Limits | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.path, self.mass, self.arm, self.damping = path, mass, arm, damping
        self.noise, self.dropouts, self.delay = noise, tuple(dropouts), delay
        self.rate, self.limits = rate, limits or Limits()
        self.put_in = self.given_back = 0.0
        self.force: Sequence[float] = (0.0,) * 6
        self._rng, self._late = np.random.default_rng(seed), deque()
        self._time: float | None = None
        self.place, self.velocity = [float(x) for x in path(0.0)], [0.0, 0.0, 0.0]

    def pose(self, now: float) -> Sequence[float] | None:
        self._moves(now)
        self._late.append((now + self.delay, tuple(self.place)))
        told = None
        while self._late and self._late[0][0] <= now + 1e-9:
            told = self._late.popleft()[1]
        if told is None or any(start <= now < end for start, end in self.dropouts):
            return None
        return (*(np.add(told, self._rng.normal(size=3) * self.noise).tolist() if self.noise else told), *UPRIGHT)

    def push(self, force: Sequence[float], now: float) -> None:
        self._moves(now)
        self.force = tuple(force)

    def close(self) -> None:
        pass

    def _moves(self, now: float) -> None:
        """The hand as the force that acts has moved it until now."""
        before, self._time = self._time, now
        if before is None:
            self.place = [float(x) for x in self.path(now)]
        if before is None or now <= before:
            return
        steps = max(1, int(np.ceil((now - before) / STRIDE - 1e-9))) if self.mass else 1
        h, start = (now - before) / steps, self.place
        push = self.force[3:]
        for step in range(steps):
            target = self.path(before + (step + 1) * h)
            if self.mass:
                late = self.path(before + step * h)
                self.velocity = [
                    (self.mass * v + h * (f + self.arm * (t - x) + self.damping * (t - l) / h))
                    / (self.mass + h * (self.damping + h * self.arm))
                    for v, x, t, l, f in zip(self.velocity, self.place, target, late, push)
                ]
                self.place = [x + h * v for x, v in zip(self.place, self.velocity)]
            else:
                self.place = [float(x) for x in target]
        work = sum(f * (x - y) for f, x, y in zip(push, self.place, start))
        self.put_in += max(-work, 0.0)
        self.given_back += max(work, 0.0)
