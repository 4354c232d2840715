"""Simulation: a model run over frames into a trajectory."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

import numpy as np

from .adaptive import Adaptive
from .checks import are_numbers, several, whole
from .closing import freedoms
from .contact import tangents
from .diagnostics import kinetic_energy, total_energy
from .dynamics import GRAVITY
from .field import Field, Fields
from .grip import Aim, Grip
from .impact import Law
from .kinematics import Kinematics, Motions, kinematics, motions
from .linkage import Closure, LinkageError
from .model import Model, State
from .motion import Follower, Motion
from .overlaps import inside, let_through
from .rest import CREEP, Rest
from .shape import Scenery
from .structure import Event
from .system import System
from .threads import one_blas_thread
from .trajectory import Trajectory, padded
from .world import World

TURN, LONGEST, SHORTEST = 0.2, 1 / 72, 1 / 24000
"""Bounds of automatic steps: the most that a link turns in one [rad], and their length [s]."""
CALM, LEISURE = 0.5, 3.0
"""What lies on something and is slower than CALM times `World.slow` takes steps longer than LONGEST in proportion, up
to LEISURE times."""
HASTE, GAIN, LOST = 2.0, 5e-4, 5e-3
"""A frame that ends needing more than so many times its steps is taken again, one that gains so much energy, as a share
of weight times size and motion, and one in which free flight strays so far, as a part of `World.size`."""
WILD, MORE = 4.0, 4
"""A frame in which a joint turns farther in a step [rad] is left there if it will be taken again: in at most so many
times its steps, as the speed of what has exploded says nothing."""
EXPLOSION = 100.0
"""A gain of energy in one frame, in the same terms, that is no error of integration any more."""
POSES, PENETRATION, ENERGY, SUBSTEPS = 2, 4, 6, 7
"""Where a frame's record has its poses, deepest overlap, energy and number of steps."""


class SimulationError(RuntimeError):
    """A simulation that cannot go on; the message names the link. The frames before it are in `trajectory`."""


class Simulation:
    """Runs a model from the source motion's first frame, or from rest.

    `frame_time` [s] is divided into `substeps` equal steps, or, where that is None, into as many as the motion of each
    frame needs: no link turns by more than TURN in one, none is longer than LONGEST. Links marked keyed follow
    `motion`; with `follow` the joints' drives aim at its pose too. Force `fields` act on all links, impacts follow a
    `law`. `cuts`: (time [s], name) of joints, by their links, and connections that are cut; connections have events of
    their own (see `Closure`). Events fall at their own times, between frames. With `adaptive` only those joints move
    that matter. Raises ValueError for settings that cannot be simulated, LinkageError for loops that cannot be
    assembled.
    """

    def __init__(
        self,
        model: Model,
        *,
        scenery: Sequence[Scenery] = (),
        motion: Motion | None = None,
        frame_time: float = 1 / 24,
        substeps: int | None = None,
        gravity: Sequence[float] = GRAVITY,
        follow: bool = False,
        state: State | None = None,
        cuts: Sequence[tuple[float, str]] = (),
        fields: Sequence[Field] = (),
        law: Law = Law.WORK,
        adaptive: Adaptive | None = None,
    ) -> None:
        if not (are_numbers(frame_time) and frame_time > 0):
            raise ValueError(f"frame time is {frame_time}; give a positive number of seconds")
        if not are_numbers(gravity, 3):
            raise ValueError(f"gravity is {gravity}; give three finite numbers [m/s²]")
        if motion is None and (follow or model.keyed.any()):
            raise ValueError("links are keyed or followed but there is no motion; give one")
        self.frame_time, self.substeps = float(frame_time), None if substeps is None else whole("substeps", substeps, 1)
        if not (adaptive is None or isinstance(adaptive, Adaptive)):
            raise ValueError(f"adaptive is {adaptive!r}; give an Adaptive, as Adaptive(threshold=1e-3)")
        law = Law(law)
        follower = Follower(model, motion) if motion is not None else None
        fields = several("force fields", fields)
        acting = Fields(fields, frame_time) if fields else None
        world = World(model, scenery, np.asarray(gravity, dtype=float), follower, follow, fields=acting, law=law)
        if state is None:
            guide = world.guidance.course.at if world.guidance else follower and follower.target
            state = model.rest_state() if follower is None else State(follower.q[0], guide(0.0)[1])
        system = System.of(world, motion, several("cuts", cuts), adaptive, self.frame_time)
        self.system, self.state = system.assembled(model.checked(state))
        world, self.passing = let_through(self.world, self.system.poses(self.state))
        """Pairs of links that go through each other, as they overlap from the start."""
        if self.passing:
            self.system = replace(self.system, world=world)
        self.inside = inside(world, self.system.poses(self.state))
        """Links that are deep in scenery from the start, which of it, a link's name where it is one, and how deep
        [m]."""
        self._frames: list[tuple] = []
        self._touches: list[tuple] = []
        self._seconds: list[float] = []
        self._speed = 0.0
        self._rest = self._anew()
        self._seen: tuple[State, Kinematics, Motions, float] | None = None

    def run(self, frames: int) -> Iterator[int]:
        """Simulates, and yields each frame's index once it is reached; the start state is frame 0.

        Raises SimulationError where the state stops being finite.
        """
        return (frame for frame in self.steps(frames) if frame is not None)

    def steps(self, frames: int) -> Iterator[int | None]:
        """As `run`, and yields None after each step: a frame may take long, and nothing is changed before it is
        reached."""
        frames = whole("the number of frames", frames, 1)
        if not self._frames:
            self._record()
        yield 0
        for frame in range(1, frames):
            if self._all_rest() and not self.system.structure.until(self.state.time + self.frame_time):
                self.state = replace(self.state, time=self.state.time + self.frame_time)
                last = self._frames[-1]
                self._frames.append((self.state.q, self.state.v, *last[2:SUBSTEPS], 0, *last[SUBSTEPS + 1 :]))
                self._touches.append(self._touches[-1])
            else:
                steps = self._frame(frame)
                while _is_on(steps):
                    yield None
            yield frame

    @property
    def model(self) -> Model:
        """The model as it is now; a cut joint changes its coordinates, never its links."""
        return self.system.model

    @property
    def poses(self) -> np.ndarray:
        """World poses (n, 4, 4) of the links' frames at the last frame that was reached."""
        return self._frames[-1][POSES]

    @property
    def world(self) -> World:
        """The world, with the loops that are closed now."""
        return self.system.world

    @property
    def events(self) -> tuple[Event, ...]:
        """What has happened to connections and joints so far."""
        return self.system.structure.events

    def connect(
        self, host: str | None, real: str, kind: str, *, at: np.ndarray | None = None, closure: Closure | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        """Connects two links, or a link and the world (None), where they are now; between frames. `at` (3,): the
        joint's place in the real link, its origin by default. Raises LinkageError for what cannot be connected."""
        name = name or f"{host or 'world'}-{real}"
        self.system, self.state = self.system.connected(self.state, host, real, kind, at, closure or Closure(), name)
        self._rest = self._anew()

    def cut(self, name: str) -> None:
        """Cuts a connection, or the joint of a link, now; between frames. Raises LinkageError where it is not there."""
        if name not in (*self.system.structure.loops.names, *self.model.names):
            raise LinkageError(f"no link or connection is called {name!r}; cut one that is there")
        self.system, self.state = self.system.switched(self.state, name, False)
        self._rest = self._anew()

    def allow(self, budget: float) -> None:
        """Gives an adaptive simulation that keeps a time budget another one, of so many seconds a frame."""
        chooser = self.system.chooser
        if chooser is None or chooser.adaptive.budget is None:
            raise ValueError("the simulation keeps no time budget; make it with one, by Adaptive")
        chooser.adaptive = replace(chooser.adaptive, budget=budget)

    def hold(self, grip: Grip) -> Aim:
        """Holds a link from now on, and says by what it is pulled: set that between frames. Raises LinkageError for
        what cannot be held."""
        aim = Aim(time=self.state.time)
        self._rehold(self.world.gripped(grip, aim))
        return aim

    def release(self, grip: Grip) -> None:
        """Lets a link go."""
        self._rehold(self.world.released(grip))

    def moving(self, link: str) -> tuple[np.ndarray, np.ndarray]:
        """The pose (4, 4) of a link now, and its twist (6,) about its origin, along the world's axes. Raises
        LinkageError for a link that is not there."""
        if link not in self.model.number:
            raise LinkageError(f"no link is called {link!r}; name one of the model's")
        kin, moving, _ = self._look(self.state)
        slot = self.model.assembly.slot[self.model.number[link]]
        twist = moving.links[slot].copy()
        twist[3:] += np.cross(twist[:3], kin.offset[slot])
        return kin.poses[slot], twist

    def _rehold(self, world: World) -> None:
        self.system = replace(self.system, world=world, hybrid=None)
        self._rest = self._anew()
        if (memory := self.state.memory) is not None:
            self.state = replace(self.state, memory=replace(memory, asleep=np.zeros_like(memory.asleep)))

    def freedoms(self) -> tuple[int, int, int]:
        """As `closing.freedoms`, of the state and structure now."""
        return freedoms(self.model, self.state, self.world.loops, self.world.given(self.state.time))

    @property
    def _driven(self) -> bool:
        """Whether something puts energy in, or stores it where it is not counted."""
        world = self.world
        driven = world.follow or world.fields or world.grips or world.model.keyed.any() or world.loops.soft.any()
        return bool(driven) or self._guided

    @property
    def _guided(self) -> bool:
        """Whether the motion's guide acts in the frame to come."""
        guidance = self.world.guidance
        return guidance is not None and guidance.acts(self.state.time, self.state.time + self.frame_time)

    @property
    def _most(self) -> int:
        """The most automatic steps in a frame."""
        return math.ceil(self.frame_time / SHORTEST - 1e-9)

    def _frame(self, frame: int) -> Generator[None, None, None]:
        substeps = self.substeps or self._steps_for(self.state)
        before = self.system
        self.system, state, strayed = yield from self._attempt(before, substeps)
        most = self._most
        while self.substeps is None and substeps < most and self._hurried(state, substeps, strayed):
            # the motion became faster than its steps were chosen for: the frame is taken again
            substeps = min(max(self._steps_for(state), 2 * substeps), MORE * substeps, most)
            self.system = before
            self.system, state, strayed = yield from self._attempt(before, substeps)
        self._check(state, frame)
        if len(self.events) > len(before.structure.events):
            self._rest = self._anew()
        self.state = state
        self._record(substeps)
        self._fall_asleep()

    def _attempt(self, system: System, substeps: int) -> Generator[None, None, tuple[System, State, float]]:
        """A frame in so many steps: the system and the state after it, with free flights made exact, and how far
        bodies that flew had strayed [m]."""
        # a link so fast asks for more than HASTE times these steps, unless there are not so many
        tried = self.substeps is None and HASTE * substeps < self._most
        fastest = WILD * substeps / self.frame_time if tried else math.inf
        changed, path = yield from system.advanced(self.state, self.frame_time, substeps, fastest)
        self._seconds += path.seconds
        happened = len(changed.structure.events) > len(system.structure.events)
        if not path.state.finite or happened or self.world.fields or self.world.grips or self._guided:
            return changed, path.state, 0.0
        flight, touched = changed.flight, np.concatenate(path.touched)
        state, strayed = flight.keep(self.state, path.state, touched, self.world.gravity)
        shortest = substeps == self._most and self.substeps is None and not self.model.stiffness.any()
        if shortest and self._rise(state) > GAIN * self._scale():
            state = flight.calmed(self.state, state, touched)
        return changed, state, strayed

    def _hurried(self, state: State, substeps: int, strayed: float) -> bool:
        """Whether a frame that led to `state` in so many steps shows that they were too long."""
        if not state.finite or self._steps_for(state) > HASTE * substeps or strayed > LOST * self.world.size:
            return True
        lifted = self.model.mass.sum() * np.abs(self.world.gravity).max() * self._frames[-1][PENETRATION]
        return self._rise(state) > GAIN * self._scale() + lifted

    def _scale(self) -> float:
        """An energy [J] to measure gains by: weight times size, and something of the motion's."""
        world = self.world
        return float(self.model.mass.sum() * (np.abs(world.gravity).max() * world.size + 0.1 * self._speed**2))

    def _rise(self, state: State) -> float:
        """The energy [J] that an undriven model has gained since the last frame."""
        if self._driven:
            return 0.0
        return self._look(state)[2] - self._frames[-1][ENERGY]

    def _steps_for(self, state: State) -> int:
        """How many steps a frame takes at the speed of `state`."""
        if not state.finite:
            return self._most
        kin, moving, _ = self._look(state)
        spin = np.sqrt((moving.links[:-1, :3] ** 2).sum(-1)).max()
        longest = LONGEST
        if state.memory is not None and len(state.memory.contacts):
            speed = self.world.fastest(kin, moving).max() / max(self.world.slow(), 1e-300)
            longest *= min(max(CALM / max(speed, 1e-300), 1.0), LEISURE)
        return math.ceil(self.frame_time * min(max(spin / TURN, 1.0 / longest), 1.0 / SHORTEST) - 1e-9)

    def _look(self, state: State) -> tuple[Kinematics, Motions, float]:
        """The kinematics of a state and its energy; the last ones are kept."""
        if self._seen is None or self._seen[0] is not state:
            given, twist, _, _ = self.world.keyed(state.time, 0.5 * self.frame_time)
            kin = kinematics(self.model, state.q, given)
            moving = motions(self.model, kin, state.v, twist)
            self._seen = state, kin, moving, total_energy(self.model, kin, moving, state, self.world.gravity)
        return self._seen[1:]

    def _check(self, state: State, frame: int) -> None:
        if state.finite:
            if self._rise(state) > EXPLOSION * self._scale():
                raise SimulationError(
                    f"the motion explodes at frame {frame}; use more substeps or damping, or look for extreme masses"
                )
            return
        c = self.model.coordinates
        bad = [
            not (np.isfinite(state.v[c.v_start[i] : c.v_start[i + 1]]).all() and
                 np.isfinite(state.q[c.q_start[i] : c.q_start[i + 1]]).all())
            for i in range(self.model.n)
        ]  # fmt: skip
        name = self.model.names[int(np.argmax(bad))]
        raise SimulationError(
            f"link {name!r} is no longer finite at frame {frame}; "
            "use more substeps, or look for its extreme mass or stiffness"
        )

    def _record(self, substeps: int = 0) -> None:
        world, state = self.world, self.state
        kin, moving, energy = self._look(state)
        gaps = self._gaps(kin)
        self._frames.append((
            state.q, state.v, kin.poses[self.model.assembly.slot],
            0 if state.memory is None else len(state.memory.contacts),
            max(0.0, -gaps.min(initial=0.0)),
            world.limits.violation(state.q),
            energy,
            substeps, 0.0 if state.memory is None else state.memory.residual,
            self.system.structure.closed, *self.system.loads(state, kin), *self.system.activity(),
        ))  # fmt: skip
        self._touches.append(self._touching())
        speeds = world.fastest(kin, moving)
        # what spins about its origin moves too
        spinning = math.sqrt(2.0 * max(kinetic_energy(kin, moving), 0.0) / max(float(self.model.mass.sum()), 1e-300))
        self._speed = max(float(speeds.max(initial=0.0)), spinning)
        self._rest.note(world.drift(kin, moving))

    def _gaps(self, kin: Kinematics) -> np.ndarray:
        """The gaps (k,) [m] of what touches in the pose of the state."""
        memory = self.state.memory
        if memory is not None and not len(memory.contacts) and not memory.asleep.any():
            # the last step has looked farther than it went
            return np.zeros(0)
        return self.world.collider.contacts(kin.poses, 0.0).gap

    def _touching(self) -> tuple[np.ndarray, ...]:
        """The links that touch, -1 for the world, where (t, 3), and with what forces on the first (t, 3) [N]."""
        memory = self.state.memory
        if memory is None:
            return np.empty(0, int), np.empty(0, int), np.empty((0, 3)), np.empty((0, 3))
        pressed = np.flatnonzero(memory.pushes[:, 0] > 0.0)
        contacts, link_of = memory.contacts, self.model.link_of
        force = (memory.pushes[pressed, None] @ tangents(contacts.normal[pressed]))[:, 0] / memory.h
        return link_of[contacts.link[pressed]], link_of[contacts.other[pressed]], contacts.point[pressed], force

    def _anew(self) -> Rest:
        """Nothing rests yet: at the start, and when what holds has changed."""
        world = self.world
        return Rest(world.model, world.loops, self.frame_time, driven=world.driven)

    def _fall_asleep(self) -> None:
        """Puts what has been still for long to rest."""
        state = self.state
        if state.memory is None:
            return
        asleep = self._rest.asleep(
            state.memory.contacts, self.world.slow(), 0.01 * self.world.size, state.memory.asleep
        )
        if not np.array_equal(asleep, state.memory.asleep):
            still = asleep[self.model.columns.link[self.model.columns.slot_of]] > 0
            memory = state.memory
            v, smooth, lasting = (np.where(still, 0.0, each) for each in (state.v, memory.smooth, memory.lasting))
            self.state = replace(state, v=v, memory=replace(memory, asleep=asleep, smooth=smooth, lasting=lasting))

    def _all_rest(self) -> bool:
        """Whether everything that is simulated sleeps and nothing that is keyed moves."""
        memory, model = self.state.memory, self.model
        if memory is None or not (memory.asleep[model.assembly.slot] > 0)[~model.keyed].all():
            return False
        if not model.keyed.any():
            return True
        _, twist, after, _ = self.world.keyed(self.state.time + 0.5 * self.frame_time, self.frame_time)
        return max(np.abs(twist).max(), np.abs(after).max()) < CREEP * self.world.slow()

    @property
    def trajectory(self) -> Trajectory:
        """The frames reached so far."""
        if not self._frames:
            raise ValueError("the simulation has no frames yet; run it first")
        columns = [padded(column) for column in zip(*self._frames)]
        counts = [len(touches[0]) for touches in self._touches]
        touches = [np.repeat(np.arange(len(counts)), counts), *map(np.concatenate, zip(*self._touches))]
        loops = np.array(self.system.structure.loops.names, dtype=str)
        return Trajectory(
            np.array(self.model.names), self.frame_time, *columns, *touches, loops, np.array(self._seconds)
        )


def _is_on(steps: Iterator[None]) -> bool:
    """Takes one more of the steps, and says whether there was one."""
    # states that are not finite are looked for, and taken again or reported
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        return next(steps, "end") is None
