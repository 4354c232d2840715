"""A hand that holds a link: a spring and damper between where its device has led it and where the link is.

The virtual coupling of Colgate, Stanley and Brown (1995) as its hand feels it, in plain numbers: turns are microseconds
apart. The device's pose is taken relative to where it was when the link was gripped, so that nothing jumps then.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

PATIENCE = 0.15
"""A loop that has said nothing for so long [s], or for twice its own period, has stalled or died;"""
FADE = 0.04
"""forces then take so long [s] to vanish, and as long to come back."""
MARGIN = 0.5
"""How stiff a coupling may be: this times the apparent mass over the square of the time until it answers."""
HAND, HANDLE = 0.2, 2e-4
"""Hands with what they hold are taken to be no lighter [kg], and to turn with no less inertia [kg m²]."""
RATIO = 0.7
"""The damping ratio of the springs."""
SMOOTHING = 0.004
"""Hands' velocities are means of so many seconds."""
SLACK = 1.1
"""Springs follow the stable stiffness where it has changed by this factor."""


class Trouble(Enum):
    """Why a hand has no grip, or less than it asked for."""

    SOFTENED = "the stiffness is beyond the stable range and was lowered; take shorter steps for more"
    SIMULATION = "the simulation has stalled; forces fade until it goes on"
    DEVICE = "the device has stalled; its hand pulls nothing until it goes on"
    LOST = "the device's pose has jumped or is not finite; its hand lets go"


@dataclass(frozen=True)
class Springs:
    """What a hand pulls with: `stiffness` [N/m], `turning` [N m/rad], and with no more `strength` than so much [N];
    `stiffest` [N/m]: what the device's slew limit can follow, `Limits.stiffness`. They are damped for what has at least
    a mass of `load` [kg]. Nothing comes back through a device that is not `felt`, as a mouse, so that no stiffness is
    too high, and the hand is where the device is seen. Raises ValueError for what is not positive."""

    stiffness: float = 500.0
    turning: float = 2.0
    strength: float = 300.0
    stiffest: float = math.inf
    load: float = 1e-9
    felt: bool = True

    def __post_init__(self) -> None:
        for name in ("stiffness", "turning", "strength", "stiffest", "load"):
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"the {name} of a hand's springs is {value}; give a positive number")


def stable_stiffness(mass: float, period: float, delay: float = 0.0, hand: float = HAND) -> float:
    """The stiffest spring [N/m] between a hand and a link of so much apparent `mass` [kg], which is simulated every
    `period` [s] and told of the hand after `delay` [s], whose oscillations do not grow: MARGIN times the lesser of
    m / (T + 2 τ)² and m_h / (2 τ)².

    In the time T + 2 τ, after which a hand feels what it has done, such a spring moves the link by MARGIN / 2 of its
    length, so that a quarter of its force is not known; and in 2 τ, while its force is the old one, a `hand` of so much
    mass [kg] likewise. With inertias [kg m²] the same for turns [N m/rad].
    """
    return MARGIN * min(mass / (period + 2.0 * delay) ** 2, hand / max(2.0 * delay, 1e-9) ** 2)


def stable_damping(damping: float, delay: float = 0.0, hand: float = HAND) -> float:
    """What a hand may feel of a damper [N s/m] that knows its velocity late, by 2 τ and SMOOTHING: no more than in that
    time takes MARGIN of the velocity of a `hand` of so much mass [kg]. The link feels it all."""
    return min(damping, MARGIN * hand / (2.0 * delay + SMOOTHING))


class Hand:
    """`grip`: the number of what is held, 0 for nothing. `place` (3,), `quaternion` (4,), `velocity` (3,) and `spin`
    (3,) of the hand in the scene; `stiffness` and `damping` (2,) against ways and turns; `pulls` (6,): torque and force
    on what is held, as the hand feels them; `share`: how much of them acts, as they fade, and `eased`: how much of the
    pull, as it is not stronger than the hand. `say` gets a line for every trouble."""

    def __init__(self, springs: Springs, say: Callable[[str], None], pulls: memoryview | None = None) -> None:
        self.springs, self.say = springs, say
        self.pulls = memoryview(array("d", bytes(48))) if pulls is None else pulls
        self.trouble: Trouble | None = None
        self.grip, self.share, self.lost, self.turns = 0.0, 0.0, False, False
        self.eased = 1.0
        self.place, self.quaternion = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
        self.velocity, self.spin = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        self.stiffness = self.damping = self._felt = (0.0, 0.0)
        self.stamp, self._delay, self._losses = -math.inf, 0.0, 0.0
        self._device: tuple[list[float], list[float]] | None = None
        self._gripped: tuple[list[float], list[float], list[float], list[float]] | None = None
        # of what is held: since when, from where and how fast it goes on; its turn when that was told, its apparent
        # mass and inertia, and the time between steps
        self._base, self._at, self._goes = 0.0, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        self._told, self._turn, self._whirl, self._turned = 0.0, self.quaternion, self.spin, [0.0, 0.0, 0.0]
        self._masses, self._period, self._limits = (0.0, 0.0), PATIENCE, (0.0, 0.0, 0.0)
        self._softened = False

    def learn(self, held: Sequence[float], now: float, valid: float, period: float) -> None:
        """What the simulation tells of what is held at the time `valid` [s]: grip, freedoms, apparent mass and inertia,
        place, quaternion, velocity and spin; `period` [s] between its steps."""
        grip, freedoms, mass, inertia = held[:4]
        place, velocity, ahead = held[4:7], held[11:14], now - valid
        if grip != self.grip:
            self.grip, self.lost, self.share, self._gripped = grip, False, 0.0, None
            self.trouble, self._softened = None if grip else self.trouble, False
            self._limits, self._at, self._goes = (0.0, 0.0, 0.0), place, velocity
            self._base = valid
        late = min(now - self._base, 2.0 * self._period)
        at = [x + late * v for x, v in zip(self._at, self._goes)]
        # on to where it will be by the next step, without a jump
        self._goes = [(x + (ahead + period) * v - a) / period for x, v, a in zip(place, velocity, at)]
        self._base, self._at, self._period, self._masses = now, at, period, (mass, inertia)
        self._told, self._turn, self._whirl, self.turns = valid, held[7:11], held[14:17], freedoms == 6.0
        if grip and self._gripped is None and self._device:
            self._grasp()
        if grip:
            self._soften()
            self._turned = rotation_between(self._turn, self.quaternion) if self.turns else [0.0, 0.0, 0.0]

    def move(self, pose: Sequence[float], now: float) -> None:
        """What the device tells: when [s], how often it was lost, place and quaternion."""
        stamp, losses, place, quaternion = pose[0], pose[1], pose[2:5], pose[5:9]
        if losses != self._losses and self.grip and not self.lost:
            self.lost = True
            self._note(Trouble.LOST)
        passed = stamp - self.stamp
        if self._device is None or losses != self._losses or not 0.0 < passed < PATIENCE:
            self.velocity, self.spin = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        else:
            share, (before, turn) = 1.0 / (passed + SMOOTHING), self._device
            (u, v, w), (x, y, z), (a, b, c) = self.velocity, place, before
            self.velocity = [
                u + share * (x - a - passed * u), v + share * (y - b - passed * v), w + share * (z - c - passed * w)
            ]  # fmt: skip
            if self.turns:
                turned = rotation_between(turn, quaternion)
                self.spin = [w + share * (a - passed * w) for w, a in zip(self.spin, turned)]
        if passed > PATIENCE:
            # wherever it has been: it takes hold again of what it held, where that is now
            self._gripped = None
        self._losses, self._device, self.stamp = losses, (place, quaternion), stamp
        self._delay = max(now - stamp, 0.999 * self._delay)
        # what is lost stays where it was, while its force fades
        if not self.grip or self.lost:
            return
        if self._gripped is None:
            self._grasp()
        at, turn, start, first = self._gripped
        (x, y, z), (u, v, w), (a, b, c) = place, at, start
        self.place = [x + u - a, y + v - b, z + w - c]
        if self.turns:
            self.quaternion = multiplied(multiplied(quaternion, conjugated(first)), turn)
            self._turned = rotation_between(self._turn, self.quaternion)

    def take(self, springs: Springs) -> None:
        """Pulls with other springs from now on."""
        self.springs, self._limits = springs, (0.0, 0.0, 0.0)

    def pull(self, now: float, passed: float, simulated: bool) -> None:
        """Sets what `pulls`, `passed` [s] after the last time; `simulated`: whether the simulation goes on."""
        pulls = self.pulls
        if self._gripped is None:
            self.share = 0.0
            for i in range(6):
                pulls[i] = 0.0
            return
        share = self.share
        there = now - self.stamp < PATIENCE
        if share != 1.0 or self.lost or not (simulated and there):
            share = self._fade(passed, simulated, there)
        (k, turning), (d, turn_damping) = self.stiffness, self._felt
        k, d = share * k, share * d
        ahead, most = now - self._base, 2.0 * self._period
        if ahead > most:
            ahead = most
        x, y, z = self._at
        gx, gy, gz = self._goes
        hx, hy, hz = self.place
        vx, vy, vz = self.velocity
        fx = k * (hx - x - ahead * gx) + d * (vx - gx)
        fy = k * (hy - y - ahead * gy) + d * (vy - gy)
        fz = k * (hz - z - ahead * gz) + d * (vz - gz)
        most, square = self.springs.strength, fx * fx + fy * fy + fz * fz
        self.eased = 1.0
        if square > most * most:
            self.eased = less = most / math.sqrt(square)
            fx, fy, fz = less * fx, less * fy, less * fz
        pulls[3], pulls[4], pulls[5] = fx, fy, fz
        if self.turns:
            c, e, ahead = share * turning, share * turn_damping, min(now - self._told, 2.0 * self._period)
            ax, ay, az = self._turned
            wx, wy, wz = self._whirl
            sx, sy, sz = self.spin
            pulls[0] = c * (ax - ahead * wx) + e * (sx - wx)
            pulls[1] = c * (ay - ahead * wy) + e * (sy - wy)
            pulls[2] = c * (az - ahead * wz) + e * (sz - wz)

    def _fade(self, passed: float, simulated: bool, there: bool) -> float:
        """How much of the springs acts now: more, up to all, where nothing is wrong, or else less."""
        if simulated and there and not self.lost:
            self.share = min(1.0, self.share + passed / FADE)
            if self.trouble in (Trouble.DEVICE, Trouble.SIMULATION):
                self.trouble = None
        else:
            self.share = max(0.0, self.share - passed / FADE)
            if not self.lost:
                self._note(Trouble.DEVICE if simulated else Trouble.SIMULATION)
        return self.share

    def _grasp(self) -> None:
        """From now on the device's motion is that of the hand, which is where the link is, or where a device is that is
        seen."""
        place, quaternion = self._device
        self.place, self.quaternion = (self._at if self.springs.felt else place), self._turn
        self._gripped = self.place, self.quaternion, place, quaternion

    def _soften(self) -> None:
        """Springs as stiff as they are to be, or can be."""
        # what it depends on: mostly nothing of it has changed
        mass, inertia = self._masses
        late = self._period + 2.0 * self._delay
        late *= late
        (a, b, c), (x, y, z) = self._limits, (mass / late, inertia / late, self._delay + 1e-3)
        if a < SLACK * x and x < SLACK * a and b < SLACK * y and y < SLACK * b and c < SLACK * z and z < SLACK * c:
            return
        self._limits = x, y, z
        springs, own, most = self.springs, (HAND, HANDLE), [math.inf, math.inf]
        if springs.felt:
            most = [stable_stiffness(m, self._period, self._delay, hand) for m, hand in zip(self._masses, own)]
        most[0] = min(most[0], springs.stiffest)
        self.stiffness = min(springs.stiffness, most[0]), min(springs.turning, most[1])
        masses = max(mass, springs.load), inertia
        self.damping = tuple(2.0 * RATIO * math.sqrt(k * m) for k, m in zip(self.stiffness, masses))
        self._felt = tuple(stable_damping(d, self._delay, hand) for d, hand in zip(self.damping, own))
        if most[0] < springs.stiffness and self.trouble is None and not self._softened:
            self._softened = True
            self._note(Trouble.SOFTENED)

    def _note(self, trouble: Trouble) -> None:
        if self.trouble is not trouble:
            self.trouble = trouble
            self.say(trouble.value)


def multiplied(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """Hamilton's product of quaternions (4,)."""
    w, x, y, z = a
    s, i, j, k = b
    return [
        w * s - x * i - y * j - z * k, w * i + x * s + y * k - z * j,
        w * j + y * s + z * i - x * k, w * k + z * s + x * j - y * i,
    ]  # fmt: skip


def conjugated(a: Sequence[float]) -> list[float]:
    return [a[0], -a[1], -a[2], -a[3]]


def rotation_between(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """The shortest rotation vector (3,) [rad] from one quaternion (4,) to another, along the world's axes."""
    w, x, y, z = multiplied(b, conjugated(a))
    sine = math.sqrt(x * x + y * y + z * z)
    if sine < 1e-12:
        return [0.0, 0.0, 0.0]
    ratio = 2.0 * math.atan2(sine, abs(w)) / math.copysign(sine, w)
    return [ratio * x, ratio * y, ratio * z]
