"""Simulation: a model run over frames into a trajectory."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from .closing import assemble_loops, connected_velocity, freedoms
from .closure import loops_of
from .diagnostics import total_energy
from .dynamics import GRAVITY
from .flight import Flight
from .integration import step
from .kinematics import Kinematics, Motions, kinematics, link_poses, motions
from .linkage import Closure, LinkageError
from .model import Model, State
from .motion import Follower, Motion
from .shape import Scenery
from .spatial import pose, pose_inverse
from .structure import Event, Structure, connect, cut
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
MOMENT = 1e-9
"""Steps shorter than this share of a frame are not taken."""
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
        self.model, self.frame_time, self.substeps = model, float(frame_time), substeps
        self.motion, self.follow = motion, follow
        self.world = self._world(model, tuple(scenery), np.asarray(gravity, dtype=float))
        if state is None:
            follower = self.world.follower
            state = model.rest_state() if follower is None else State(follower.q[0], follower.target(0.0)[1])
        if state.q.shape != (model.nq,) or state.v.shape != (model.nv,):
            raise ValueError(f"the state has {state.q.size} coordinates, the model {model.nq}; make it from this model")
        self.flight = Flight(model)
        self.structure = Structure.of(model, tuple(cuts))
        self.state = self._assembled(state)
        self._frames: list[tuple] = []
        self._seconds: list[float] = []
        self._speeds: list[float] = []
        self._speed = 0.0
        self._driven = follow or bool(model.keyed.any()) or bool(model.loops.soft.any())
        self._rank = 0
        self._seen: tuple[State, Kinematics, Motions, float] | None = None

    def run(self, frames: int) -> Iterator[int]:
        """Simulates, and yields each frame's index once it is reached; the start state is frame 0.

        Raises SimulationError where the state stops being finite.
        """
        if int(frames) != frames or frames < 1:
            raise ValueError(f"{frames} frames asked for; give a whole number of at least 1")
        if not self._frames:
            for k in np.flatnonzero(self.structure.triggers(self._poses(self.state)) >= 0.0).tolist():
                if not self.structure.closed[k]:
                    self.state = self._switched(self.state, self.structure.loops.names[k], True, "grab")
            self._record()
        yield 0
        for frame in range(1, int(frames)):
            if self._at_rest() and not self._due(self.state.time + self.frame_time):
                self.state = State(self.state.q, np.zeros(self.model.nv), self.state.time + self.frame_time)
                last = self._frames[-1]
                self._frames.append((self.state.q, self.state.v, *last[2:SUBSTEPS], 0, *last[SUBSTEPS + 1 :]))
            else:
                with one_blas_thread():
                    self._frame(frame)
            yield frame

    def connect(
        self, host: str | None, real: str, kind: str, *, at: np.ndarray | None = None, closure: Closure | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        """Connects two links, or a link and the world (None), where they are now; between frames. `at` (3,): the
        joint's place in the real link, its origin by default. Raises LinkageError for links that are not there."""
        names = self.model.names
        for link in (host, real):
            if link is not None and link not in names:
                raise LinkageError(f"no link is called {link!r}; connect one of the model's")
        name = name or f"{host or 'world'}-{real}"
        if host == real or name in self.structure.loops.names:
            raise LinkageError(f"connection {name!r} is there already or connects a link to itself; choose others")
        slot = self.model.assembly.slot
        poses = self._look(self.state)[0].poses
        ends = [self.model.assembly.links if link is None else int(slot[names.index(link)]) for link in (host, real)]
        seat = pose(np.eye(3), np.zeros(3) if at is None else np.asarray(at, dtype=float))
        place = pose_inverse(poses[ends[0]]) @ poses[ends[1]] @ seat
        added = loops_of([name], [kind], [closure or Closure()], [ends[0]], [ends[1]], [place], [seat])
        self.structure = self.structure.joined(added)
        self.state = self._switched(self.state, name, True)
        self._speeds.clear()

    def cut(self, name: str) -> None:
        """Cuts a connection, or the joint of a link, now; between frames. Raises LinkageError where it is not there."""
        if name not in (*self.structure.loops.names, *self.model.names):
            raise LinkageError(f"no link or connection is called {name!r}; cut one that is there")
        self.state = self._switched(self.state, name, False)
        self._speeds.clear()

    @property
    def events(self) -> tuple[Event, ...]:
        """What has happened to connections and joints so far."""
        return self.structure.events

    def freedoms(self) -> tuple[int, int, int]:
        """As `closing.freedoms`, of the state and structure now."""
        return freedoms(self.model, self.state, self.world.loops)

    def _world(self, model: Model, scenery: tuple[Scenery, ...], gravity: np.ndarray) -> World:
        follower = Follower(model, self.motion) if self.motion is not None else None
        return World(model, scenery, gravity, follower, self.follow)

    def _assembled(self, state: State) -> State:
        """The state moved onto the loops that are closed."""
        loops = self.world.loops
        if not len(self.structure.loops):
            return state
        given, twist, _, _ = self.world.keyed(state.time, 0.5 * self.frame_time)
        q = assemble_loops(self.model, state.q, loops, given)
        return State(q, connected_velocity(self.model, q, state.v, loops, (given, twist)), state.time)

    def _frame(self, frame: int) -> None:
        substeps = self.substeps or self._steps_for(self.state)
        before = self.structure, self.world, self.model, self.flight
        state, touched = self._steps(substeps)
        most = math.ceil(self.frame_time / SHORTEST - 1e-9)
        while self.substeps is None and substeps < most and self._hurried(state, substeps):
            # the motion became faster than its steps were chosen for: the frame is taken again
            substeps = min(max(self._steps_for(state), 2 * substeps), most)
            self.structure, self.world, self.model, self.flight = before
            state, touched = self._steps(substeps)
        self._check(state, frame)
        if len(self.structure.events) == len(before[0].events):
            state = self.flight.keep(self.state, state, touched, self.world.gravity)
        else:
            self._speeds.clear()
        self.state = state
        self._record(substeps)

    def _steps(self, count: int) -> tuple[State, np.ndarray]:
        """The state a frame later, or where it stopped being finite, and the slots of the links that were touched."""
        state, touched = self.state, []
        for h, due in self._pieces(count):
            state = self._step(state, h, touched)
            if not _finite(state):
                break
            for _, name, on in due:
                state = self._switched(state, name, on)
        return state, np.concatenate(touched)

    def _pieces(self, count: int) -> list[tuple[float, list]]:
        """The steps of a frame as (length, events due after it): `count` equal ones, or where events fall into the
        frame, equal ones between those, no longer."""
        due, start = self._due(self.state.time + self.frame_time), self.state.time
        if not due:
            return [(self.frame_time / count, [])] * count
        pieces: list[tuple[float, list]] = []
        last = 0.0
        for end, group in groupby([*due, (start + self.frame_time, "", True)], key=lambda event: event[0]):
            length = end - start - last
            length = length if length > MOMENT * self.frame_time else 0.0
            steps = max(1, math.ceil(length / self.frame_time * count - 1e-9))
            pieces += [(length / steps, [])] * (steps - 1)
            pieces.append((length / steps, [event for event in group if event[1]]))
            last += length
        return pieces

    def _due(self, until: float) -> list[tuple[float, str, bool]]:
        return [event for event in self.structure.due if event[0] <= until * (1.0 + 1e-12)]

    def _step(self, state: State, h: float, touched: list) -> State:
        """One step, or where something happens in it, two: to when it happens, and on."""
        if h <= MOMENT * self.frame_time:
            touched.append(np.zeros(0, dtype=int))
            return state
        begin = time.perf_counter()
        after = step(self.world, state, h)
        self._seconds.append(time.perf_counter() - begin)
        if not len(self.structure.loops) or not _finite(after):
            touched.append(after.memory.touched)
            return after
        was, now = (self.structure.triggers(self._poses(at)) for at in (state, after))
        fired = np.flatnonzero((was < 0.0) & (now >= 0.0))
        if len(fired):
            share = float((was[fired] / (was[fired] - now[fired])).min())
            first = int(fired[(was[fired] / (was[fired] - now[fired])).argmin()])
            after = self._step_alone(state, share * h, touched)
            grab = not self.structure.closed[first]
            after = self._switched(after, self.structure.loops.names[first], grab, "grab" if grab else "region")
            return self._step(after, (1.0 - share) * h, touched)
        touched.append(after.memory.touched)
        rank, self._rank = self._rank, after.memory.rank
        if self._rank < rank and not any(event.kind == "singular" for event in self.structure.events):
            self.structure = self.structure.note(after.time, "", "singular")
        for k in self.structure.overloaded(after.memory.loads):
            after = self._switched(after, self.structure.loops.names[k], False, "break")
        return after

    def _step_alone(self, state: State, h: float, touched: list) -> State:
        """One step in which nothing is looked for."""
        if h <= MOMENT * self.frame_time:
            return state
        state = step(self.world, state, h)
        touched.append(state.memory.touched)
        return state

    def _poses(self, state: State) -> np.ndarray:
        return link_poses(self.model, state.q, self.world.given(state.time))[0]

    def _switched(self, state: State, name: str, on: bool, kind: str | None = None) -> State:
        """The state after a connection closed or opened, or a joint was cut."""
        structure, scenery, gravity = self.structure, self.world.scenery, self.world.gravity
        due = tuple(event for event in structure.due if event[0] > state.time * (1.0 + 1e-12) or event[1] != name)
        structure = replace(structure, due=due)
        self._rank = 0
        if name in structure.loops.names:
            k = structure.loops.names.index(name)
            if structure.closed[k] == on:
                self.structure = structure
                return state
            if on:
                given, twist, _, _ = self.world.keyed(state.time, 0.5 * self.frame_time)
                structure, state = connect(structure, self.model, state, k, (given, twist))
            else:
                structure = structure.switched(k, False)
        else:
            model, state = cut(replace(self.model, loops=structure.loops), state, self.model.names.index(name))
            structure = replace(structure, loops=model.loops)
            self.model, self.flight = model, Flight(model)
            self.world = self._world(model, scenery, gravity)
        self.structure = structure.note(state.time, name, kind or ("connect" if on else "cut"))
        self.world = self.world.holding(structure.holding())
        # the last step's accelerations and loads are of another structure
        return replace(state, memory=None)

    def _hurried(self, state: State, substeps: int) -> bool:
        """Whether a frame that led to `state` in so many steps shows that they were too long."""
        if not _finite(state) or self._steps_for(state) > HASTE * substeps:
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
        if not _finite(state):
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
        if _finite(state):
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
        touching = world.collider.contacts(kin.poses[:-1], 0.0)
        self._frames.append((
            state.q, state.v, kin.poses[self.model.assembly.slot],
            0 if state.memory is None else state.memory.contacts,
            max(0.0, -touching.gap.min(initial=0.0)),
            world.limits.violation(state.q),
            energy,
            substeps, self.structure.closed, *self._loads(kin),
        ))  # fmt: skip
        self._speed = float(world.speeds(kin, moving).max(initial=0.0))
        self._speeds.append(self._speed)

    def _loads(self, kin: Kinematics) -> tuple[np.ndarray, np.ndarray]:
        """How far apart the ends of each loop are (k,) [m], NaN where it is open, and what it bears (k, 6) [N m, N]."""
        loops, closed = self.structure.loops, self.structure.closed
        gap, load = np.full(len(loops), np.nan), np.zeros((len(loops), 6))
        if closed.any():
            gap[closed] = self.world.loops.apart(kin.poses)
            memory = self.state.memory
            if memory is not None and len(memory.loads) == closed.sum():
                host = self.world.loops.frames(kin.poses)[0][:, :3, :3].swapaxes(-1, -2)
                parts = memory.loads.reshape(-1, 2, 3) @ host.swapaxes(-1, -2)
                load[closed] = parts.reshape(-1, 6)
        return gap, load

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
        loops = np.array(self.structure.loops.names, dtype=str)
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
