"""What is stepped: a model in its world whose structure changes, with every event at its own time."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from .adaptive import Adaptive, Chooser, Hybrid
from .closing import assemble_loops, connected_velocity
from .closure import loops_of
from .flight import Flight
from .integration import step
from .kinematics import Kinematics, link_poses
from .linkage import Closure, LinkageError
from .model import Model, State
from .motion import Follower, Motion
from .spatial import pose, pose_inverse
from .structure import Structure, connect, cut, refuse_keyed
from .world import World

MOMENT = 1e-9
"""Steps shorter than this [s] are not taken."""
NEARBY = 0.01
"""Velocities of keyed links are taken over so long [s]."""


@dataclass
class Advance:
    """A stretch of time: the `state` at its end, or where it stopped before, the pairs of slots that `touched`, and the
    `seconds` that each step took."""

    state: State
    touched: list[np.ndarray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class System:
    """A model in its `world`, the `structure` of its loops, and the trees that fly. Changing one gives another.

    With a `chooser`, what is stepped is the `hybrid` body that it chooses; states are those of the model all the same,
    except on the way through `advanced`.
    """

    world: World
    motion: Motion | None
    structure: Structure
    flight: Flight
    rank: int = 0
    chooser: Chooser | None = None
    hybrid: Hybrid | None = None

    @classmethod
    def of(
        cls, world: World, motion: Motion | None, cuts: tuple[tuple[float, str], ...], adaptive: Adaptive | None = None,
        frame_time: float = 1 / 24,
    ) -> System:  # fmt: skip
        chooser = None if adaptive is None else Chooser(adaptive, world, frame_time)
        return cls(world, motion, Structure.of(world.model, cuts), Flight(world.model, world.loops), chooser=chooser)

    @property
    def model(self) -> Model:
        return self.world.model

    def given(self, state: State) -> tuple:
        """Joint transforms and twists of keyed links, Nones without."""
        return self.world.keyed(state.time, NEARBY)[:2]

    def poses(self, state: State) -> np.ndarray:
        """World poses (links + 1, 4, 4) in slots."""
        state = state if self.hybrid is None else self.hybrid.whole(state)
        return link_poses(self.model, state.q, self.world.given(state.time))[0]

    def assembled(self, state: State) -> tuple[System, State]:
        """At the start: the state moved onto the loops that are closed, and what is near enough grabbed."""
        if not len(self.structure.loops):
            return self, state
        given, loops = self.given(state), self.world.loops
        q = assemble_loops(self.model, state.q, loops, given[0])
        system, state = self, State(q, connected_velocity(self.model, q, state.v, loops, given), state.time)
        for k in np.flatnonzero(self.structure.triggers(self.poses(state)) >= 0.0).tolist():
            if not self.structure.closed[k]:
                system, state = system.switched(state, self.structure.loops.names[k], True, "grab")
        return system, state

    def connected(
        self, state: State, host: str | None, real: str, kind: str, at: np.ndarray | None, closure: Closure, name: str
    ) -> tuple[System, State]:
        """With a further connection, made where its ends are; as `Simulation.connect`."""
        number, slot = self.model.number, self.model.assembly.slot
        for link in (host, real):
            if link not in number and not (link is None and link is host):
                raise LinkageError(f"no link is called {link!r}; connect one of the model's")
        if host == real or name in (*self.structure.loops.names, *number):
            raise LinkageError(f"connection {name!r} connects a link to itself or its name is taken; choose others")
        at = np.zeros(3) if at is None else np.asarray(at, dtype=float)
        if at.shape != (3,) or not np.isfinite(at).all():
            raise LinkageError(f"connection {name!r}: its place is {at}; give three finite numbers [m]")
        closure.check(name, kind)
        poses = self.poses(state)
        ends = [self.model.assembly.links if link is None else int(slot[number[link]]) for link in (host, real)]
        seat = pose(np.eye(3), at)
        rest = pose_inverse(poses[ends[0]]) @ poses[ends[1]] @ seat
        added = loops_of([name], [kind], [closure], [ends[0]], [ends[1]], [rest], [seat])
        world = self.world if host is None else self.world.apart(host, real)
        system = replace(self, world=world, structure=self.structure.joined(added), hybrid=None)
        return system.switched(state, name, True) if closure.closed else (system, state)

    def switched(
        self, state: State, name: str, on: bool, kind: str | None = None, due: float = -np.inf
    ) -> tuple[System, State]:
        """With a connection closed or opened, or a joint cut, and the state then; `due` [s] is when it was to be."""
        structure, world = self.structure.done(max(state.time, due), name), self.world
        given, motion = self.given(state), self.motion
        if name in structure.loops.names:
            k = structure.loops.names.index(name)
            if structure.closed[k] == on:
                return replace(self, structure=structure), state
            if on:
                structure, state = connect(structure, self.model, state, k, given)
            else:
                structure = structure.switched(k, False)
        else:
            refuse_keyed(self.model, name)
            link = self.model.number[name]
            model, state = cut(replace(self.model, loops=structure.loops), state, link, given)
            structure = replace(structure, loops=model.loops)
            motion = self.motion and self.motion.released(link)
            follower = Follower(model, motion) if motion else None
            world = world.cut(link, model, follower)
        structure = structure.note(state.time, name, kind or ("connect" if on else "cut"))
        # the last step's accelerations and loads are of another structure
        world = world.holding(structure.holding())
        flight, chooser = Flight(world.model, world.loops), self.chooser and self.chooser.changed(world)
        changed = replace(
            self, motion=motion, structure=structure, world=world, flight=flight, rank=0, chooser=chooser, hybrid=None
        )
        return changed, replace(state, memory=None)

    def advanced(
        self, state: State, seconds: float, count: int, fastest: float = math.inf
    ) -> Generator[None, None, tuple[System, Advance]]:
        """So many seconds later, in `count` steps or, where something happens in between, a few more; yields after
        each. Stops where a joint turns faster than the `fastest` may [rad/s]."""
        system, path = self, Advance(state)
        for h, due in self._pieces(state.time, seconds, count):
            system = system._stepped(path, h)
            yield
            if not (path.state.finite and system._turning(path.state) <= fastest):
                break
            for when, name, on in due:
                system, path.state = system._left(path).switched(path.state, name, on, due=when)
        return system._left(path), path

    def _turning(self, state: State) -> float:
        """How fast the fastest joint turns [rad/s]."""
        world = self.world if self.hybrid is None else self.hybrid.world
        return float(np.abs(state.v.take(world.turns[0])).max(initial=0.0))

    def _entered(self, path: Advance, h: float) -> System:
        """With the hybrid body in place of the model, where there is one, chosen anew where that is due."""
        if self.chooser is None or self.chooser.idle:
            return self
        if self.hybrid is None or self.hybrid.due(path.state.time):
            return self._chosen(path, h)
        if self.hybrid.before is not None:
            return self
        hybrid, path.state = self.hybrid.entered(path.state)
        return replace(self, hybrid=hybrid)

    def _chosen(self, path: Advance, h: float, met: State | None = None) -> System:
        """With a hybrid body chosen anew; `met`: the model's state after a step that met something."""
        whole = path.state if self.hybrid is None else self.hybrid.whole(path.state)
        hybrid, whole = self.chooser.refreshed(self.world, self.hybrid, whole, h, met)
        hybrid, path.state = hybrid.entered(whole)
        return replace(self, hybrid=hybrid)

    def _left(self, path: Advance) -> System:
        """With the model in place of the hybrid body again."""
        if self.hybrid is None:
            return self
        hybrid, path.state = self.hybrid.left(path.state)
        return replace(self, hybrid=hybrid)

    def _pieces(self, start: float, seconds: float, count: int) -> list[tuple[float, list]]:
        """Steps as (length, events due after it): `count` equal ones, or where events fall between, equal ones from one
        to the next, no longer."""
        due = self.structure.until(start + seconds)
        if not due:
            return [(seconds / count, [])] * count
        pieces: list[tuple[float, list]] = []
        last = 0.0
        for end, group in groupby([*due, (start + seconds, "", True)], key=lambda event: event[0]):
            length = min(end - start, seconds) - last
            length = length if length > MOMENT else 0.0
            steps = max(1, math.ceil(length / seconds * count - 1e-9))
            pieces += [(length / steps, [])] * (steps - 1)
            pieces.append((length / steps, [event for event in group if event[1]]))
            last += length
        return pieces

    def _stepped(self, path: Advance, h: float) -> System:
        """A step later, or where a connection comes near or slides off in it, two: to that time, and on."""
        if h <= MOMENT:
            return self
        seconds = time.perf_counter()
        system = self._entered(path, h)
        world = self.world if system.hybrid is None else system.hybrid.world
        before = path.state
        after = _step(world, before, h)
        if system.hybrid is not None and after.finite and system.hybrid.surprised(after):
            body, system = system.hybrid.body, system._chosen(path, h, system.hybrid.whole(after))
            before, world = path.state, system.hybrid.world
            if system.hybrid.body is not body:
                after = _step(world, before, h)
        if not len(self.structure.loops) or not after.finite:
            return system._follow(path, after, seconds)
        if not self.structure.watches():
            return system._follow(path, after, seconds)._strained(path)
        was, now = (self.structure.triggers(system.poses(state)) for state in (before, after))
        armed = self.structure.armed | (was < 0.0)
        system = replace(system, structure=replace(self.structure, armed=armed))
        fired = np.flatnonzero(armed & (now >= 0.0))
        if not len(fired):
            return system._follow(path, after, seconds)._strained(path)
        # what was there already, between two steps, happens at once
        shares = np.maximum(-was[fired], 0.0) / np.maximum(now[fired] - was[fired], 1e-300)
        share, k = min(float(shares.min()), 1.0), int(fired[shares.argmin()])
        if share * h > MOMENT:
            system = system._follow(path, _step(world, before, share * h), seconds)
            if not path.state.finite:
                return system
        name, grab = self.structure.loops.names[k], not self.structure.closed[k]
        system, path.state = system._left(path).switched(path.state, name, grab, "grab" if grab else "region")
        return system._stepped(path, (1.0 - share) * h)

    def _follow(self, path: Advance, state: State, begin: float) -> System:
        system, path.state = self, state
        if not state.finite:
            return self
        touched = state.memory.touched
        if self.hybrid is not None:
            system = replace(self, hybrid=self.hybrid.stepped())
            touched = self.hybrid.body.slot_root[touched]
        path.touched.append(touched)
        path.seconds.append(time.perf_counter() - begin)
        if self.chooser is not None:
            self.chooser.took(path.seconds[-1])
        return system

    def _strained(self, path: Advance) -> System:
        """After a step: without the connections that it was too much for, and with a note of dependent loops."""
        system, memory = self, path.state.memory
        if memory.rank < self.rank and not any(event.kind == "singular" for event in self.structure.events):
            system = replace(system, structure=self.structure.note(path.state.time, "", "singular"))
        if memory.rank != self.rank:
            system = replace(system, rank=memory.rank)
        for k in self.structure.overloaded(memory.loads):
            name = self.structure.loops.names[k]
            system, path.state = system._left(path).switched(path.state, name, False, "break")
        return system

    def activity(self) -> tuple[np.ndarray, float]:
        """Which links' joints are active (n,), and what the others were left out for, as `Adaptive.threshold`."""
        if self.hybrid is None:
            return np.diff(self.model.coordinates.v_start) > 0, 0.0
        active = np.zeros(self.model.n, dtype=bool)
        active[self.hybrid.body.active] = True
        return active, self.hybrid.error

    def loads(self, state: State, kin: Kinematics) -> tuple[np.ndarray, np.ndarray]:
        """How far apart the ends of each connection are (k,) [m], NaN where it is open, and what it bears (k, 6),
        torque and force on its real link in its host's joint frame [N m, N]."""
        closed, loops = self.structure.closed, self.world.loops
        gap, load = np.full(len(closed), np.nan), np.zeros((len(closed), 6))
        if closed.any():
            gap[closed] = loops.apart(kin.poses)
            if state.memory is not None and len(state.memory.loads) == len(loops):
                host = loops.frames(kin.poses)[0][:, :3, :3]
                load[closed] = (state.memory.loads.reshape(-1, 2, 3) @ host).reshape(-1, 6)
        return gap, load


def _step(world: World, state: State, h: float) -> State:
    """As `integration.step`; what has become so fast that it cannot be solved is as good as not finite."""
    try:
        return step(world, state, h)
    except np.linalg.LinAlgError:
        return replace(state, v=np.full_like(state.v, np.nan))
