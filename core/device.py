"""Devices that hands move: what one has to do, and the loop that runs it.

A vendor's driver is plugged in by a class with the three methods of `Device`, or as a program of its own that speaks
with `UdpDevice` (device_udp.py). Poses are checked and forces limited here, for every device alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from .coupling import POSE, message
from .hand import FADE, PATIENCE, rotation_between
from .mailbox import Mailboxes
from .port import Limits, Port

UPRIGHT = (1.0, 0.0, 0.0, 0.0)


class Device(Protocol):
    """`rate` [1/s]: how often it is asked. `limits` of what it may exert."""

    rate: float
    limits: Limits

    def pose(self, now: float) -> Sequence[float] | None:
        """Its place [m] and unit quaternion (7,) at the time `now` [s], or None where it has nothing new."""

    def push(self, force: Sequence[float], now: float) -> None:
        """Exerts a torque and force (6,) [N m, N] until the next call; devices without motors do nothing."""

    def close(self) -> None:
        """Lets go of it."""


class Mouse:
    """A device that goes where its owner `moves` it, and only pulls: a mouse in a viewport, which is across it at once,
    however large that is."""

    rate = 125.0
    limits = Limits(jump=1e9)

    def __init__(self) -> None:
        self.place: tuple[float, float, float] | None = None
        self.force: Sequence[float] = (0.0,) * 6

    def moves(self, place: Sequence[float]) -> None:
        """It is at a place (3,) [m] now."""
        self.place = tuple(float(x) for x in place)

    def pose(self, now: float) -> Sequence[float] | None:
        return None if self.place is None else (*self.place, *UPRIGHT)

    def push(self, force: Sequence[float], now: float) -> None:
        self.force = force

    def close(self) -> None:
        pass


class DeviceLoop:
    """The loop of the device that moves the hand of that number. `say` gets a line where something is wrong."""

    def __init__(self, device: Device, boxes: Mailboxes, hand: int = 0, say: Callable[[str], None] = print) -> None:
        self.device, self.say = device, say
        self.port = Port(device.limits, say)
        self._box, self._pose = boxes[f"pose.{hand}"], message(POSE)
        self._force, self._hand = boxes.reader("forces"), hand
        self._place: Sequence[float] | None = None
        self._seen, self._share, self._now, self._stalled = -math.inf, 0.0, None, False
        self._lost = False

    def turn(self, now: float) -> None:
        """One turn, at the time `now` [s]."""
        period = 1.0 / self.device.rate
        passed, self._now = now - (now if self._now is None else self._now), now
        pose = self.device.pose(now)
        if pose is not None and self._sound(pose, now):
            self._lost, size = False, math.sqrt(sum(x * x for x in pose[3:]))
            pose = (*pose[:3], *(x / size for x in pose[3:]))
            if self._place is not None:
                turn = rotation_between(self._place[3:], pose[3:])
                self.port.moved((*turn, *(x - y for x, y in zip(pose, self._place))), now)
            else:
                self.port.moved((0.0,) * 6, now)
            self._place, self._seen = pose, now
            told = self._pose
            told[0] = now
            for place, value in enumerate(pose, 2):
                told[place] = value
            self._box.write(told)
        self.device.push(self.port.turn(self._wanted(now, passed), now, period), now)

    def _wanted(self, now: float, passed: float) -> list[float]:
        """What the coupling wants, fading where that has stalled."""
        self._force.fresh()
        force = self._force.message
        alive = now - force[0] < PATIENCE and self._force.number > 0
        if self._force.number and alive is self._stalled:
            self._stalled = not alive
            if self._stalled:
                self.say("the coupling has stalled; the device's force fades until it goes on")
        self._share = min(1.0, self._share + passed / FADE) if alive else max(0.0, self._share - passed / FADE)
        start, hands = 1 + 6 * self._hand, (len(force) - 1) // 7
        share = self._share * force[1 + 6 * hands + self._hand]
        return [share * value for value in force[start : start + 6]]

    def _sound(self, pose: Sequence[float], now: float) -> bool:
        """Whether a pose is one; where it is not, or too far from the last, the hand is told that it is lost."""
        finite = len(pose) == 7 and math.isfinite(sum(pose)) and sum(x * x for x in pose[3:]) > 0.25
        if finite and self._place is None:
            return True
        limits = self.device.limits
        if finite and math.dist(pose[:3], self._place[:3]) <= limits.jump + limits.speed * (now - self._seen):
            return True
        if not self._lost:
            self._pose[1] += 1.0
            self.say("the device's pose has jumped or is not finite; it holds nothing any more")
        # from where it is now it may go on
        self._lost, self._place, self._seen = True, (tuple(pose) if finite else None), now
        return False

    def close(self) -> None:
        """Takes the force away and lets go of the device."""
        self.device.push((0.0,) * 6, self._now or 0.0)
        self.device.close()
