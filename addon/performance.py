"""A performance: a take that is simulated in real time while hands hold its bones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import bpy
import numpy as np

from ..core import SimulationError
from ..core.coupling import Coupling, sizes
from ..core.device import DeviceLoop, Mouse
from ..core.grip import Grip
from ..core.hand import Springs
from ..core.live import Live
from ..core.mailbox import Mailboxes
from . import adaptive_settings, keying
from .backdrop import Backdrop
from .cast import Actor
from .casting import frame_time, frames, gravity
from .cycle import Cycle
from .puppet import Puppets
from .take import Take

HANDS = 8
"""One that the mouse leads, and those that stay where they were pinned."""

SAG, STRONG = 0.1, 3.0
"""A hand's spring gives by this part of the character's height under its weight, and pulls with no more than so many
times that weight."""

EARTH = 9.81
"""A character counts as no lighter than on Earth [m/s²], where gravity is less or none."""

NEAR = 1e-3
"""What is pressed so near to a pin, relative to the character's height, is held by that: two springs in one place
cannot be told apart."""

STIFFEST = 1024.0
"""Springs are made no more than so many times as stiff as they were, and no softer by more."""

LEAST, MOST = 0.1, 0.6
"""The time budget of an adaptive simulation is between these parts of a frame's time: drawing takes its part."""

SMOOTHING = 0.2
"""The part that the last frame has in the pace that is told."""

clock = time.perf_counter


@dataclass
class Held:
    """A link of an actor of so much `weight` [N] that is held at a `point` (3,) by the `mouse` device; `springs` are of
    its hand, and are made `stiffer` so many times."""

    actor: Actor
    weight: float
    link: int
    point: np.ndarray
    mouse: Mouse
    springs: Springs
    stiffer: float = 1.0
    is_pinned: bool = False


@dataclass(frozen=True)
class Pull:
    """What is to be seen of a hold: its `ends` (2, 3) on the bone and at the hand, the `force` [N] of the spring, with
    no more than its `strength` [N], and what is fed back (3,) to the hand [N]; the `height` [m] and `weight` [N] of the
    character tell what is much."""

    ends: np.ndarray
    force: float
    strength: float
    feedback: np.ndarray
    height: float
    weight: float
    is_pinned: bool


class Performance:
    """Simulates an armature, and what is connected to it, from a frame of the scene on. First `prepare`; then `advance`
    frame by frame, while bones are held, moved, pinned and let go; at the end `record`, or leave the context, which
    gives everything back as it was. `news` are lines about what has gone wrong.

    Raises ConversionError (a ValueError) for what cannot be simulated.
    """

    def __init__(self, armature, frame: int) -> None:
        self.start, self.frame, self.news = frame, frame, []
        self.pace = 1.0
        """Of the simulation's time against the clock's."""
        # what begins after its range goes along with the rest of the scene's
        ends = frames(armature)[1], bpy.context.scene.frame_end
        self.take = Take(armature, frame, next((end for end in ends if end > frame), frame + 1))
        self._held: list[Held | None] = [None] * HANDS
        self._boxes: Mailboxes | None = None
        self._puppets: Puppets | None = None
        self._before, self._budget = None, MOST * frame_time()

    def __enter__(self) -> Performance:
        self.take.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._leave()
        self.take.__exit__(*error)

    def prepare(self):
        """Makes the simulation, yielding (what is done, progress 0 … 1)."""
        made = self.take
        yield from made.prepare(partial(adaptive_settings.live, budget=self._budget), Cycle(made.end - made.start + 1))
        yield "prepare", 0.6
        self._boxes = Mailboxes(sizes(HANDS))
        self._live = Live(made.simulation, self._boxes, HANDS, self.news.append)
        self._coupling = Coupling(self._boxes, [Springs(felt=False)] * HANDS, self.news.append)
        self._mice = [Mouse() for _ in range(HANDS)]
        self._devices = [
            DeviceLoop(mouse, self._boxes, hand, self.news.append) for hand, mouse in enumerate(self._mice)
        ]
        self._forces = self._boxes.reader("forces")
        yield "prepare", 0.8
        self._puppets = Puppets(made.members, made.cast)
        self._backdrop = Backdrop(made.cast, self._puppets.posed)
        yield "prepare", 1.0
        self._puppets.show(self.frame, made.simulation.poses)

    def advance(self, now: float | None = None) -> bool:
        """Simulates a frame and shows it; False where the motion could not be simulated, or goes along with what is not
        known after the range's end, which ends the performance."""
        if self.frame >= self.take.end and self._is_over():
            self.news.append(
                f"Play Live ended at frame {self.frame}: what is animated goes on after frame {self.take.end}, the "
                "range's last; make the range longer to play on"
            )
            return False
        frame, now = frame_time(), clock() if now is None else now
        period, self._before = now - (self._before or now - frame), now
        self.pace += SMOOTHING * (min(frame / max(period, 1e-9), 1.0) - self.pace)
        self._keep_pace(period)
        # the loops take their turns here, none is late: their clock is that of the simulation, however slowly it goes
        now = self.take.simulation.state.time
        for device in self._devices:
            device.turn(now)
        self._turn(now)
        try:
            self._live.advance(now)
        except SimulationError as error:
            self.news.append(str(error))
            return False
        self._live.tell(now, now + frame)
        self._turn(now)
        for hand, grip in enumerate(self._live.grips):
            if grip is None:
                self._held[hand] = None
        self.frame += 1
        self._puppets.show(self.frame, self.take.simulation.poses)
        return True

    def hold(self, actor: Actor, bone: str, place: Sequence[float]) -> int:
        """Holds the link that carries a bone at a place (3,) in the world, or takes over the pin that is there; returns
        the number of the hand. Raises LinkageError for what keys move, ValueError where all hands hold something."""
        character = actor.character
        carrier = int(character.carrier[character.rig.index[bone]])
        link = actor.first + character.bones.index(carrier)
        pose = self.take.simulation.poses[link]
        point = pose[:3, :3].T @ (np.asarray(place, dtype=float) - pose[:3, 3])
        for hand, held in enumerate(self._held):
            is_there = held and held.is_pinned and held.link == link
            if is_there and np.linalg.norm(held.point - point) < NEAR * character.height:
                held.is_pinned = False
                return hand
        if None not in self._held:
            raise ValueError(f"there are {HANDS} hands, and all hold something; release one")
        hand = self._held.index(None)
        name = self.take.cast.links[link].name
        self._live.hold(Grip(name, point), hand)
        mass = sum(own.mass for own in character.links)
        least = EARTH / actor.armature.armature_dynamics.life_scale
        weight = mass * max(float(np.linalg.norm(gravity(actor.armature))), least)
        stiffness = weight / (SAG * character.height)
        springs = Springs(stiffness=stiffness, strength=STRONG * weight, load=mass, felt=False)
        held = Held(actor, weight, link, point, self._mice[hand], springs)
        self._coupling.hands[hand].take(springs)
        held.mouse.moves(place)
        self._held[hand] = held
        return hand

    def move(self, hand: int, place: Sequence[float]) -> None:
        """Leads a hand to a place (3,) in the world, once it has taken hold."""
        held = self._held[hand]
        if held and self._coupling.hands[hand].grip:
            held.mouse.moves(place)

    def pin(self, hand: int) -> None:
        """Lets a hand stay where it is."""
        if held := self._held[hand]:
            held.is_pinned = True

    def release(self, hand: int) -> None:
        """A hand lets go."""
        self._live.release(hand)
        self._held[hand] = None

    def release_pins(self) -> None:
        for hand, held in enumerate(self._held):
            if held and held.is_pinned:
                self.release(hand)

    def stiffen(self, factor: float) -> None:
        """Makes the springs of all hands that hold something so many times as stiff and strong."""
        for hand, held in enumerate(self._held):
            if held:
                held.stiffer = float(np.clip(factor * held.stiffer, 1.0 / STIFFEST, STIFFEST))
                own, more = held.springs, held.stiffer
                springs = replace(own, stiffness=more * own.stiffness, strength=more * own.strength)
                self._coupling.hands[hand].take(springs)

    def holds(self, hand: int | None) -> bool:
        return hand is not None and self._held[hand] is not None

    def place(self, hand: int) -> np.ndarray:
        """Where a hand is in the world (3,) [m]."""
        return np.array(self._mice[hand].place)

    def pulls(self) -> list[Pull]:
        """What is to be seen of each hold."""
        self._forces.fresh()
        forces, found = np.array(self._forces.message), []
        for hand, held in enumerate(self._held):
            if held is None:
                continue
            pose, own = self.take.simulation.poses[held.link], self._coupling.hands[hand]
            ends = np.array([pose[:3, :3] @ held.point + pose[:3, 3], held.mouse.place])
            force = float(np.linalg.norm(own.pulls.tolist()[3:]))
            back = own.share * forces[1 + 6 * hand :][3:6]
            strength, height = own.springs.strength, held.actor.character.height
            found.append(Pull(ends, force, strength, back, height, held.weight, held.is_pinned))
        return found

    def record(self):
        """Writes all frames as a take, yielding progress; returns the Report."""
        self._leave()
        made, count = self.take, len(self.take.simulation.trajectory)
        made.keys = keying.shortened(made.keys, count)
        return (yield from made.write(performed=True))

    def _turn(self, now: float) -> None:
        # one to take the map, and one for each hand to learn of it
        for _ in range(HANDS + 2):
            self._coupling.turn(now)

    def _is_over(self) -> bool:
        """Whether what is animated goes on after the last frame that was sampled."""
        made = self.take
        if made.simulation.world.guidance is not None and len(made.cast.poses) > 1:
            return True
        if self.frame == made.end:
            self._backdrop.keep()
        bpy.context.scene.frame_set(self.frame + 1)
        return self._backdrop.goes_on()

    def _keep_pace(self, period: float) -> None:
        """Too slow for the clock, fewer joints move; only then does time go more slowly."""
        if not self.take.is_budgeted:
            return
        frame = frame_time()
        share = np.clip(MOST + 1.0 - period / frame, 0.5, 1.1) if period > frame else 1.1
        budget = float(np.clip(share * self._budget, LEAST * frame, MOST * frame))
        if budget != self._budget:
            self._budget = budget
            self.take.simulation.allow(budget)

    def _leave(self) -> None:
        """Ends the live part, with the armatures as they were before it."""
        if self._boxes is not None:
            self._boxes.close()
            self._boxes = None
        if self._puppets is not None:
            self._puppets.__exit__(None, None, None)
