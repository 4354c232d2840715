"""Where a force meets a hand: the one place that limits what a device exerts, and how much energy it gives.

Time-domain passivity (Hannaford and Ryu 2002, Time-domain passivity control of haptic interfaces), with the controller
before the fact: an observer adds up what the hand puts in, −f Δx for each force held and the displacement under it, and
the force is capped by what may still be given back. At the slew rate s a force f is taken away within f / s; under a
hand no faster than v̂ it gives no more than v̂ (f² / 2s + f Δt) on the way, Δt being the time until the next turn. So

    f ≤ s (√(Δt² + 2 E / (s v̂)) − Δt)

keeps what has been put in and not given back, E, from becoming negative but for LOAN, whatever loops, delays and
dropouts lie behind the port, and never asks for a faster change than the slew limit. The force of a spring, which has
been put in as f² / 2k, passes it unchanged up to the stiffness k = s / v̂, less what a turn takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LOAN = 1e-3
"""Energy [J] that is lent for forces against the hand's motion, without which none could begin; 1 % of a tenth of a
joule."""
STIR, RECENT = 0.01, 0.01
"""The motion [m/s] of hands that are no faster is none; it is the mean of so many seconds."""
RETURN = 0.1
"""A device's whole force takes so long [s] to come back where energy allows it again."""
GAP = 0.02
"""A device that has not told its pose for so long [s] gets no new force, and the last one is taken away."""


@dataclass(frozen=True)
class Limits:
    """What a device may exert: `force` [N], `slew` [N/s], and under hands up to what `speed` [m/s]; a pose that is
    farther than `jump` [m] from what that speed allows is none. Torques [N m] count as forces, and turns as ways, at
    `radius` [m]. Raises ValueError for what is not positive."""

    force: float = 8.0
    slew: float = 5000.0
    speed: float = 2.0
    jump: float = 0.05
    radius: float = 0.05

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"a device's limit of {name} is {value}; give a positive number")

    @property
    def stiffness(self) -> float:
        """The stiffest spring [N/m] that the slew rate can follow at the highest speed."""
        return self.slew / self.speed


class Port:
    """The torque and force (6,) [N m, N] on a hand, turn by turn; `put_in` and `given_back` [J] so far.

    `say` gets a line where a force is not finite.
    """

    def __init__(self, limits: Limits | None = None, say: Callable[[str], None] = lambda line: None) -> None:
        self.limits, self.say = limits or Limits(), say
        self.force = self._before = (0.0,) * 6
        self.put_in = self.given_back = 0.0
        self._seen = self._last = -math.inf
        self._velocity = (0.0,) * 6
        self._fresh = self._ill = False
        self._most = 0.0

    @property
    def energy(self) -> float:
        """What may still be given back [J]."""
        return self.put_in - self.given_back

    def moved(self, way: Sequence[float], now: float) -> None:
        """The hand has turned and moved (6,) [rad, m] since it was last seen; `now` [s]."""
        work = -_product(self.force, way)
        if self._before != self.force:
            # which of the forces since then had what part in it nobody knows
            work = min(work, -_product(self._before, way))
        self.put_in += max(work, 0.0)
        self.given_back += max(-work, 0.0)
        passed = min(max(now - self._seen, 1e-6), 1.0)
        share = 1.0 / (passed + RECENT)
        self._velocity = tuple(v + share * (part - passed * v) for v, part in zip(self._velocity, way))
        self._seen, self._fresh = now, True

    def turn(self, wanted: Sequence[float], now: float, period: float) -> tuple[float, ...]:
        """The force for the coming `period` [s], as near to what is `wanted` (6,) as the limits allow."""
        limits, force, radius = self.limits, self.force, self.limits.radius
        if not math.isfinite(sum(wanted)):
            if not self._ill:
                self.say("the force for the device is not finite; it gets none")
            self._ill, wanted = True, (0.0,) * 6
        else:
            self._ill = False
        # the last period may have been longer than it was to be, and so may the next
        period = max(period, min(now - self._last, GAP))
        self._last = now
        if now - self._seen > GAP:
            wanted = (0.0,) * 6
        energy = self.energy + (LOAN if self._resists(wanted) else 0.0)
        # what had to be taken away comes back slowly, or hands would be shaken by it
        most = self._most = min(self._most + limits.force * period / RETURN, limits.force, _cap(energy, limits, period))
        size = _size(wanted, radius)
        if size > most:
            wanted = [most / size * part for part in wanted]
        change = [new - old for new, old in zip(wanted, force)]
        size, step = _size(change, radius), limits.slew * period
        share = 1.0 if size <= step else step / size
        self.force = tuple(old + share * part for old, part in zip(force, change))
        size, before = _size(self.force, radius), _size(force, radius)
        if size > most and size > before - step:
            # on its way to another direction a force falls more slowly than it can
            share = max(0.0, 1.0 - step / max(before, step))
            self.force = tuple(share * part for part in force)
        if self._fresh:
            self._before, self._fresh = self.force, False
        return self.force

    def _resists(self, wanted: Sequence[float]) -> bool:
        """Whether a force is against the hand's motion."""
        way = self._velocity
        arm = (*(self.limits.radius**2 * turn for turn in way[:3]), *way[3:])
        return _size(arm, self.limits.radius) > STIR and _product(wanted, way) < 0.0


def _cap(energy: float, limits: Limits, period: float) -> float:
    """The largest force [N] that can be taken away before it has given so much energy [J]."""
    slew = limits.slew
    return slew * (math.sqrt(period * period + 2.0 * max(energy, 0.0) / (slew * limits.speed)) - period)


def _product(force: Sequence[float], way: Sequence[float]) -> float:
    return sum(one * other for one, other in zip(force, way))


def _size(force: Sequence[float], radius: float) -> float:
    """The size of a torque and force, that as the force at `radius` that makes it [N]."""
    a, b, c, x, y, z = force
    return math.sqrt(x * x + y * y + z * z + (a * a + b * b + c * c) / (radius * radius))
