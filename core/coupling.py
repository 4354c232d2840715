"""The coupling loop: between what hands do and what the simulation does, faster than either.

Morin and Redon 2007 (force-feedback paper), section III-A: each turn pulls the held links by f_u = k_s (x_h - x_s)
(eq. 9) and more (hand.py), and answers f = F_0 + K f_u with the map of the last simulation step (feedback.py). It meets
the loops of the simulation and of devices in mailboxes and never waits: what has not been told anew is as it was, and
who has told nothing for PATIENCE is taken for lost.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence

import numpy as np

from .hand import PATIENCE, Hand, Springs, Trouble
from .mailbox import Mailboxes

TELLING = 1.5e-3
"""The simulation is told of hands so often [s]."""
HELD, HELD_EACH, POSE, HANDS, HANDS_EACH = 3, 17, 9, 1, 26
"""Numbers in the messages, before those of each hand and of it, see `sizes`."""

TROUBLES = (None, *Trouble)


def sizes(hands: int = 1) -> dict[str, int]:
    """The mailboxes for so many hands, and their messages' numbers. Times are in seconds of one clock.

    `held`, by the simulation: when it was told, when that is so, time between steps; of each hand as `Hand.learn`; F_0
    and K. `pose.i`, by the device i: as `Hand.move`; `forces`, for devices: when; of each hand torque and force; of
    each how much of it acts. `hands`, for the simulation: when; of each hand its grip, when its device was there,
    place, quaternion, velocity, spin, stiffness and damping against ways and turns, torque, force, and its trouble's
    number among TROUBLES.
    """
    held = HELD + HELD_EACH * hands + 6 * hands + 36 * hands * hands
    poses = {f"pose.{i}": POSE for i in range(hands)}
    return {"held": held, "hands": HANDS + HANDS_EACH * hands, "forces": 1 + 7 * hands, **poses}


def message(size: int) -> memoryview:
    """An empty message of so many numbers."""
    return memoryview(array("d", bytes(8 * size)))


class Coupling:
    """The loop of `hands`, one for each device, whose springs are given; `say` gets lines where something is wrong."""

    def __init__(self, boxes: Mailboxes, springs: Sequence[Springs], say: Callable[[str], None] = print) -> None:
        k = len(springs)
        self._held, self._box, self._told = boxes.reader("held"), boxes["hands"], message(HANDS + HANDS_EACH * k)
        self._outlet, self._forces = boxes["forces"], message(1 + 7 * k)
        # the map with F_0 as the column of a one after the pulls, so that a turn is one product into the message
        self._map, pulls = np.zeros((6 * k, 6 * k + 1)), np.ones(6 * k + 1)
        self._answer = self._map.dot, pulls, np.frombuffer(self._forces)[1 : 1 + 6 * k]
        self.hands = [Hand(each, say, memoryview(pulls)[6 * i : 6 * i + 6]) for i, each in enumerate(springs)]
        self._each = [(hand, boxes.reader(f"pose.{i}"), 1 + 6 * k + i) for i, hand in enumerate(self.hands)]
        pulls[:-1] = 0.0
        self._since = self._heard = self._now = -math.inf
        self._patience = PATIENCE
        self._learning, self._valid, self._period = 0, 0.0, PATIENCE

    def turn(self, now: float) -> None:
        """One turn, at the time `now` [s]."""
        passed, self._now = now - self._now, now
        if self._learning:
            self._learn(now)
        elif self._held.fresh():
            self._map_anew()
        simulated, news, forces = now - self._heard < self._patience, False, self._forces
        for hand, pose, share in self._each:
            if pose.fresh():
                news = True
                hand.move(pose.message.tolist(), now)
            hand.pull(now, passed, simulated)
            forces[share] = hand.share
        product, pulls, answer = self._answer
        product(pulls, answer)
        forces[0] = now
        self._outlet.write(forces)
        # not both in one turn, where there are turns without news
        if now - self._since > (2.0 * TELLING if news else TELLING):
            self._tell(now)

    def _map_anew(self) -> None:
        """Takes the map that was told; hands learn of it one by one, in the turns to come."""
        held, k = self._held.message, len(self.hands)
        self._heard, self._valid, self._period = held[:HELD].tolist()
        self._patience = max(PATIENCE, 2.0 * self._period)
        maps = np.frombuffer(held)[HELD + HELD_EACH * k :]
        self._map[:, -1] = maps[: 6 * k]
        self._map[:, :-1] = maps[6 * k :].reshape(6 * k, 6 * k)
        self._learning = k

    def _learn(self, now: float) -> None:
        self._learning -= 1
        start = HELD + HELD_EACH * self._learning
        held = self._held.message[start : start + HELD_EACH].tolist()
        self.hands[self._learning].learn(held, now, self._valid, self._period)

    def _tell(self, now: float) -> None:
        told = self._told
        self._since = told[0] = now
        for i, hand in enumerate(self.hands):
            share, start = hand.share, HANDS + HANDS_EACH * i
            (k, c), (d, e) = hand.stiffness, hand.damping
            grip = 0.0 if hand.lost and share == 0.0 else hand.grip
            eased = share * hand.eased
            # what pulls as hard as it can does not pull harder where it is taken to go on
            velocity = [eased * x for x in hand.velocity]
            each = [grip, hand.stamp, *hand.place, *hand.quaternion, *velocity, *hand.spin,
                    eased * k, share * c, eased * d, share * e, *hand.pulls, TROUBLES.index(hand.trouble)]  # fmt: skip
            told[start : start + HANDS_EACH] = memoryview(array("d", each))
        self._box.write(told)
