"""Simulation: a model run over frames into a trajectory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from .closing import freedoms
from .diagnostics import total_energy
from .dynamics import GRAVITY
from .kinematics import Kinematics, Motions, kinematics, motions
from .linkage import Closure, LinkageError
from .model import Model, State
from .motion import Follower, Motion
from .shape import Scenery
from .structure import Event
from .system import System
from .threads import one_blas_thread
from .trajectory import Trajectory
from .world import World

TURN, LONGEST, SHORTEST = 0.2, 1 / 72, 1 / 2400
"""Bounds of automatic steps: the most that a link turns in one [rad], and their length [s]."""
CALM, LEISURE = 0.5, 3.0
"""What lies on something and is slower than CALM times `World.slow` takes steps longer than LONGEST in proportion, up
to LEISURE times."""
HASTE, GAIN = 2.0, 5e-4
"""A frame that ends needing more than so many times its steps is taken again, and one that gains so much energy, as a
share of weight times size and motion."""
EXPLOSION = 100.0
"""A gain of energy in one frame, in the same terms, that is no error of integration any more."""
ENERGY, SUBSTEPS = 6, 7
"""Where a frame's record has its energy and number of steps."""
STILL = 0.01
"""Slower than this times `World.slow` looks still;"""
REST_TIME = 0.5
"""what has been still so long [s], and nothing drives, is at rest and is not stepped any more."""


class SimulationError(RuntimeError):
    """A simulation that cannot go on; the message names the link. The frames before it are in `trajectory`."""


class Simulation:
    """Runs a model from the source motion's first frame, or from rest.

    `frame_time` [s] is divided into `substeps` equal steps, or, where that is None, into as many as the motion of each
    frame needs: no link turns by more than TURN in one, none is longer than LONGEST. Links marked keyed follow
    `motion`; with `follow` the joints' drives aim at its pose too. `cuts`: (time [s], name) of joints, by their links,
    and connections that are cut; connections have events of their own (see `Closure`). Events fall at their own times,
    between frames. Raises ValueError for settings that cannot be simulated, LinkageError for loops that cannot be
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
    ) -> None:
        if not (np.isfinite(frame_time) and frame_time > 0):
            raise ValueError(f"frame time is {frame_time}; give a positive number of seconds")
        if substeps is not None and not (np.isfinite(substeps) and int(substeps) == substeps and substeps >= 1):
            raise ValueError(f"substeps is {substeps}; give a whole number of at least 1")
        if np.shape(gravity) != (3,) or not np.isfinite(gravity).all():
            raise ValueError(f"gravity is {gravity}; give three finite numbers [m/s²]")
        if motion is None and (follow or model.keyed.any()):
            raise ValueError("links are keyed or followed but there is no motion; give one")
        self.frame_time, self.substeps = float(frame_time), substeps
        follower = Follower(model, motion) if motion is not None else None
        world = World(model, tuple(scenery), np.asarray(gravity, dtype=float), follower, follow)
        if state is None:
            state = model.rest_state() if follower is None else State(follower.q[0], follower.target(0.0)[1])
        if state.q.shape != (model.nq,) or state.v.shape != (model.nv,):
            raise ValueError(f"the state has {state.q.size} coordinates, the model {model.nq}; make it from this model")
        self.system, self.state = System.of(world, motion, tuple(cuts)).assembled(state)
        self._frames: list[tuple] = []
        self._seconds: list[float] = []
        self._speeds: list[float] = []
        self._speed = 0.0
        self._seen: tuple[State, Kinematics, Motions, float] | None = None

    def run(self, frames: int) -> Iterator[int]:
        """Simulates, and yields each frame's index once it is reached; the start state is frame 0.

        Raises SimulationError where the state stops being finite.
        """
        if int(frames) != frames or frames < 1:
            raise ValueError(f"{frames} frames asked for; give a whole number of at least 1")
        if not self._frames:
            self._record()
        yield 0
        for frame in range(1, int(frames)):
            if self._at_rest() and not self.system.structure.until(self.state.time + self.frame_time):
                self.state = State(self.state.q, np.zeros(self.model.nv), self.state.time + self.frame_time)
                last = self._frames[-1]
                self._frames.append((self.state.q, self.state.v, *last[2:SUBSTEPS], 0, *last[SUBSTEPS + 1 :]))
            else:
                # states that are not finite are looked for, and taken again or reported
                with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                    self._frame(frame)
            yield frame

    @property
    def model(self) -> Model:
        """The model as it is now; a cut joint changes its coordinates, never its links."""
        return self.system.model

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
        self._speeds.clear()

    def cut(self, name: str) -> None:
        """Cuts a connection, or the joint of a link, now; between frames. Raises LinkageError where it is not there."""
        if name not in (*self.system.structure.loops.names, *self.model.names):
            raise LinkageError(f"no link or connection is called {name!r}; cut one that is there")
        self.system, self.state = self.system.switched(self.state, name, False)
        self._speeds.clear()

    def freedoms(self) -> tuple[int, int, int]:
        """As `closing.freedoms`, of the state and structure now."""
        return freedoms(self.model, self.state, self.world.loops, self.world.given(self.state.time))

    @property
    def _driven(self) -> bool:
        """Whether something puts energy in, or stores it where it is not counted."""
        world = self.world
        return world.follow or bool(world.model.keyed.any()) or bool(world.loops.soft.any())

    def _frame(self, frame: int) -> None:
        substeps = self.substeps or self._steps_for(self.state)
        before = self.system
        self.system, path = before.advanced(self.state, self.frame_time, substeps)
        self._seconds += path.seconds
        most = math.ceil(self.frame_time / SHORTEST - 1e-9)
        while self.substeps is None and substeps < most and self._hurried(path.state, substeps):
            # the motion became faster than its steps were chosen for: the frame is taken again
            substeps = min(max(self._steps_for(path.state), 2 * substeps), most)
            self.system, path = before.advanced(self.state, self.frame_time, substeps)
            self._seconds += path.seconds
        self._check(path.state, frame)
        if len(self.events) > len(before.structure.events):
            self._speeds.clear()
        else:
            touched = np.concatenate(path.touched)
            path.state = self.system.flight.keep(self.state, path.state, touched, self.world.gravity)
        self.state = path.state
        self._record(substeps)

    def _hurried(self, state: State, substeps: int) -> bool:
        """Whether a frame that led to `state` in so many steps shows that they were too long."""
        if not state.finite or self._steps_for(state) > HASTE * substeps:
            return True
        return self._rise(state) > GAIN * self._scale()

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
            return math.ceil(self.frame_time / SHORTEST - 1e-9)
        kin, moving, _ = self._look(state)
        spin = np.sqrt((moving.links[:-1, :3] ** 2).sum(-1)).max()
        longest = LONGEST
        if state.memory is not None and state.memory.contacts:
            speed = self.world.speeds(kin, moving).max() / self.world.slow()
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
        touching = world.collider.contacts(kin.poses, 0.0)
        self._frames.append((
            state.q, state.v, kin.poses[self.model.assembly.slot],
            0 if state.memory is None else state.memory.contacts,
            max(0.0, -touching.gap.min(initial=0.0)),
            world.limits.violation(state.q),
            energy,
            substeps, self.system.structure.closed, *self.system.loads(state, kin),
        ))  # fmt: skip
        self._speed = float(world.speeds(kin, moving).max(initial=0.0))
        self._speeds.append(self._speed)

    def _at_rest(self) -> bool:
        """Whether nothing drives or moves any more, and has not begun to topple: that begins slowly, but grows."""
        frames = math.ceil(REST_TIME / self.frame_time)
        half = (frames + 3) // 2
        recent, still = np.array(self._speeds[-2 * half :]), STILL * self.world.slow()
        if self._driven or len(self._speeds) <= 2 * half or recent.max() > still:
            return False
        return bool(recent[half:].max() <= max(recent[:half].max(), 1e-3 * still))

    @property
    def trajectory(self) -> Trajectory:
        """The frames reached so far."""
        if not self._frames:
            raise ValueError("the simulation has no frames yet; run it first")
        columns = [_padded(column) for column in zip(*self._frames)]
        loops = np.array(self.system.structure.loops.names, dtype=str)
        return Trajectory(np.array(self.model.names), self.frame_time, *columns, loops, np.array(self._seconds))


def _finite(state: State) -> bool:
    return bool(np.isfinite(state.v).all() and np.isfinite(state.q).all())


def _padded(rows: tuple) -> np.ndarray:
    """Rows as one array; what structure changes make longer is NaN, or zero or False, where it was not there yet."""
    if not isinstance(rows[0], np.ndarray) or len({row.shape for row in rows}) == 1:
        return np.array(rows)
    result = np.full((len(rows), *np.max([row.shape for row in rows], axis=0)), np.nan)
    if rows[0].dtype == bool:
        result = np.zeros(result.shape, dtype=bool)
    for target, row in zip(result, rows):
        target[tuple(slice(size) for size in row.shape)] = row
    return result
