"""The simulation's loop: a simulation that runs in real time while hands hold its links.

Each turn takes from the mailboxes where hands are, simulates a frame and tells what the coupling loop needs: where the
held links are, and the affine map of what they answer with (feedback.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from .coupling import HANDS, HANDS_EACH, HELD, HELD_EACH, TROUBLES, message, sizes
from .feedback import AffineMap, Feedback, Grab
from .grip import Aim, Grip
from .hand import FADE, PATIENCE
from .mailbox import Mailboxes
from .simulation import Simulation
from .spatial import matrix_quaternion, quaternion_matrix
from .threads import one_blas_thread

ENDLESS = 1 << 40
SLOWEST = 1.0
"""Frames that take longer [s] are taken for stalled."""


class Live:
    """Runs a `simulation` for so many `hands`. `say` gets a line where something is wrong. `map`: what is fed back, of
    the last frame, None before."""

    def __init__(
        self, simulation: Simulation, boxes: Mailboxes, hands: int = 1, say: Callable[[str], None] = print
    ) -> None:
        self.simulation, self.hands, self.say = simulation, hands, say
        self.map: AffineMap | None = None
        self._held: list[tuple[Grip, Aim, int] | None] = [None] * hands
        self._box, self._told, self._reader = boxes["held"], message(sizes(hands)["held"]), boxes.reader("hands")
        self._feedback: Feedback | None = None
        self._grips, self._events, self._stalled, self._now = 0, len(simulation.events), False, -math.inf
        self._taken: set[int] = set()
        self._before, self._period, self._share = math.inf, simulation.frame_time, 1.0
        self._frames = simulation.run(ENDLESS)
        next(self._frames)

    def hold(self, grip: Grip, hand: int = 0) -> None:
        """The hand of that number takes hold of a link. Raises LinkageError for what cannot be held."""
        self.release(hand)
        aim = self.simulation.hold(grip)
        self._feedback = None
        self._grips += 1
        self._held[hand] = grip, aim, self._grips

    def release(self, hand: int = 0) -> None:
        """The hand of that number lets go."""
        if self._held[hand] is not None:
            self.simulation.release(self._held[hand][0])
            self._held[hand] = self._feedback = None

    @property
    def grips(self) -> list[Grip | None]:
        """What each hand holds now; a hand may have lost it."""
        return [held and held[0] for held in self._held]

    def trouble(self, hand: int = 0) -> str:
        """A line about what is wrong with a hand, as the coupling told last, or nothing."""
        trouble = TROUBLES[int(self._reader.message[HANDS + HANDS_EACH * (hand + 1) - 1])]
        return trouble.value if trouble else ""

    def turn(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """A frame from now on, by a clock that all loops have; what comes of it is told at once."""
        start = clock()
        self.advance(start)
        now = clock()
        self.tell(now, max(start + self.simulation.frame_time, now))

    def advance(self, now: float) -> None:
        """Simulates a frame."""
        self._listen(now)
        next(self._frames)
        events = self.simulation.events
        for event in events[self._events :]:
            for hand, held in enumerate(self._held):
                if held and held[0].link == event.name:
                    self.release(hand)
                    self.say(f"link {event.name!r} was cut away while it was held; it is let go")
        self._events = len(events)

    def tell(self, now: float, valid: float) -> None:
        """Tells what the last frame has led to, at the time `now`; so it is at the time `valid`."""
        told, k, frame = self._told, self.hands, self.simulation.frame_time
        # where computing takes longer than the frame, the simulation's time goes more slowly than the hands'
        self._period, self._before = min(max(frame, now - self._before), SLOWEST), now
        told[0], told[1], told[2] = now, valid, self._period
        maps = np.asarray(told)[HELD + HELD_EACH * k :]
        maps[:] = 0.0
        where = [i for i, held in enumerate(self._held) if held]
        with one_blas_thread():
            self.map = self._answer(where)
            rows = np.concatenate([np.zeros(0, dtype=int), *(self._rows(i) for i in where)])
            each = [self._of(i, rows) for i in range(k)]
        np.asarray(told)[HELD : HELD + HELD_EACH * k] = np.concatenate(each)
        if self.map is not None:
            maps[: 6 * k][rows] = self.map.F_0
            maps[6 * k :].reshape(6 * k, 6 * k)[np.ix_(rows, rows)] = self.map.K
        self._box.write(told)

    def _rows(self, hand: int) -> np.ndarray:
        """Where a hand's part of the map is, among six numbers of each hand."""
        return 6 * hand + np.arange(6)[6 - self._held[hand][0].freedoms :]

    def _answer(self, where: list[int]) -> AffineMap | None:
        grips, system = self.simulation.world.grips, self.simulation.system
        body = system.model if system.hybrid is None else system.hybrid.body
        # the grips of the body that was stepped know what was solved
        last = grips.last
        solved = last.get("solved")
        if not where or solved is None or solved.model is not (body if system.hybrid is None else body.reduced):
            return None
        if self._feedback is None:
            held = [self._held[i][0] for i in where]
            self._feedback = Feedback(body, [Grab(grip.link, grip.point, grip.freedoms) for grip in held])
        feedback = self._feedback = self._feedback.on(body)
        order = [grips.grips.index(self._held[i][0]) for i in where]
        rows = (6 * np.array(order)[:, None] + np.arange(6)).reshape(-1)[feedback.held]
        return feedback.prepare(solved, last["forces"][rows], last["inertia"][np.ix_(rows, rows)])

    def _of(self, hand: int, rows: np.ndarray) -> np.ndarray:
        """What the coupling is told of a hand's link, see `sizes`."""
        if self._held[hand] is None or self.map is None:
            return np.zeros(HELD_EACH)
        grip, _, number = self._held[hand]
        pose, twist = self.simulation.moving(grip.link)
        arm = pose[:3, :3] @ np.asarray(grip.point, dtype=float)
        own = np.searchsorted(rows, self._rows(hand))
        B, f = self.map.B[np.ix_(own, own)], grip.freedoms
        masses = [1.0 / max(float(np.linalg.eigvalsh(part)[-1]), 1e-9) for part in (B[f - 3 :, f - 3 :], B[:3, :3])]
        velocity = twist[3:] + np.cross(twist[:3], arm)
        quaternion = matrix_quaternion(pose[:3, :3])
        slow = self.simulation.frame_time / self._period
        return np.concatenate(([number, f], masses, pose[:3, 3] + arm, quaternion, slow * velocity, slow * twist[:3]))

    def _listen(self, now: float) -> None:
        """Sets the aims to where the coupling says that the hands are."""
        passed, self._now = now - self._now, now
        self._reader.fresh()
        told = np.asarray(self._reader.message)
        alive = self._reader.number > 0 and bool(now - told[0] < PATIENCE)
        if self._reader.number and alive is self._stalled:
            self._stalled = not alive
            if self._stalled:
                self.say("the coupling has stalled; what was held is not pulled until it goes on")
        self._share = min(1.0, self._share + passed / FADE) if alive else max(0.0, self._share - passed / FADE)
        for i, held in enumerate(self._held):
            if held is None:
                continue
            _, aim, number = held
            each = told[HANDS + HANDS_EACH * i : HANDS + HANDS_EACH * (i + 1)]
            if each[0] == number:
                self._taken.add(number)
                aim.pose = np.eye(4)
                aim.pose[:3, :3], aim.pose[:3, 3] = quaternion_matrix(each[5:9]), each[2:5]
                aim.velocity, aim.spin = alive * each[9:12], alive * each[12:15]
                aim.stiffness, aim.damping = self._share * each[15:17], self._share * each[17:19]
                aim.time = self.simulation.state.time - (now - each[1])
            elif number in self._taken:
                self.release(i)
