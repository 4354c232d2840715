"""Structure that changes: which loops are closed, which joints are cut, and the events that change it.

A connection made in motion takes the pose it was made in as its rest, so that nothing jumps; what its ends' velocities
differ by is stopped by an impulse (structure-varying paper, section 4). A cut joint is replaced by a free one: links
keep their indices, only the joint coordinates are laid out anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .assembly import assemble
from .checks import are_numbers
from .closing import connected_velocity
from .closure import Loops, loops_of
from .joint import Coordinates
from .kinematics import kinematics, link_poses, motions
from .linkage import LinkageError
from .model import PER_FREEDOM, Model, State, laid_out


@dataclass(frozen=True)
class Event:
    """What happened to a connection or joint `name` at `time` [s]: "connect" or "cut" where that was asked for, "grab"
    where its ends came near, "break" where its load was too much, "region" where it slid off, and "singular" where
    loops, for a moment, hold fewer independent conditions than they did."""

    time: float
    name: str
    kind: str


@dataclass(frozen=True)
class Structure:
    """`loops`: all virtual links, as they would close now; `seats` (k, 4, 4): their seats as they were given, from
    which nearness and place are measured; `closed` (k,) which do hold; `armed` (k,): whose ends have been where nothing
    happens since they were last connected or cut, so that coming near or sliding off counts. `due`: (time, name,
    whether it connects) still to come, in order of time. `events`: what has happened."""

    loops: Loops
    seats: np.ndarray
    closed: np.ndarray
    armed: np.ndarray
    due: tuple[tuple[float, str, bool], ...] = ()
    events: tuple[Event, ...] = ()

    @classmethod
    def of(cls, model: Model, cuts: tuple[tuple[float, str], ...] = ()) -> Structure:
        """The structure at the start. Raises LinkageError for a cut of what is not there."""
        loops = model.loops
        if not all(isinstance(each, (tuple, list)) and len(each) == 2 for each in cuts):
            raise LinkageError(f"cuts: {cuts} are no pairs; give pairs of a time [s] and a name")
        for time, name in cuts:
            if not are_numbers(time):
                raise LinkageError(f"{name!r} is to be cut at {time} s; give a finite time")
            if name not in (*loops.names, *model.names):
                raise LinkageError(f"no link or connection is called {name!r}, which is to be cut at {time:g} s")
            refuse_keyed(model, name)
        due = [(time, name, False) for time, name in cuts]
        due += [(time, name, on) for name, closure in zip(loops.names, loops.closures) for time, on in closure.times]
        closed = np.array([c.closed for c in loops.closures], dtype=bool)
        return cls(loops, loops.seat, closed, np.ones(len(loops), dtype=bool), in_order(due))

    def holding(self) -> Loops:
        """The closed loops."""
        return self.loops.select(self.closed)

    def watches(self) -> bool:
        """Whether a connection may be made or cut by where its ends are."""
        return any(
            closure.region is not None if on else closure.grab_distance > 0
            for on, closure in zip(self.closed, self.loops.closures)
        )

    def triggers(self, poses: np.ndarray) -> np.ndarray:
        """For every loop how far it is beyond what connects it by nearness, or cuts it by place (k,) [m]; negative
        where neither is near."""
        host = poses[self.loops.host] @ self.loops.at
        away = (poses[self.loops.real] @ self.seats)[:, :3, 3] - host[:, :3, 3]
        result = np.full(len(self.loops), -np.inf)
        for k, closure in enumerate(self.loops.closures):
            if not self.closed[k] and closure.grab_distance > 0:
                result[k] = closure.grab_distance - np.linalg.norm(away[k])
            elif self.closed[k] and closure.region is not None:
                lower, upper = np.asarray(closure.region, dtype=float)
                place = host[k, :3, :3].T @ away[k]
                result[k] = max((lower - place).max(), (place - upper).max())
        return result

    def overloaded(self, loads: np.ndarray) -> list[int]:
        """The closed loops whose loads (closed, 6), torque and force, are more than they bear."""
        torque, force = (np.sqrt((loads[:, part] ** 2).sum(-1)) for part in (slice(3), slice(3, 6)))
        return [
            int(k) for place, k in enumerate(np.flatnonzero(self.closed))
            if force[place] > self.loops.closures[k].break_force or torque[place] > self.loops.closures[k].break_torque
        ]  # fmt: skip

    def note(self, time: float, name: str, kind: str) -> Structure:
        return replace(self, events=(*self.events, Event(time, name, kind)))

    def until(self, time: float) -> list[tuple[float, str, bool]]:
        """The events that are due by `time` [s]."""
        return [event for event in self.due if event[0] <= time * (1.0 + 1e-12)]

    def done(self, time: float, name: str) -> Structure:
        """Without what was due for `name` by `time` [s]."""
        past = self.until(time)
        return replace(self, due=tuple(event for event in self.due if event not in past or event[1] != name))

    def joined(self, added: Loops) -> Structure:
        """With further, open loops."""
        a, b = self.loops, added
        ends = (np.concatenate((getattr(a, name), getattr(b, name))) for name in ("host", "real", "at", "seat"))
        loops = loops_of(a.names + b.names, a.kinds + b.kinds, a.closures + b.closures, *ends)
        closed, armed = (np.append(old, np.zeros(len(b), dtype=bool)) for old in (self.closed, self.armed))
        due = [(time, name, on) for name, closure in zip(b.names, b.closures) for time, on in closure.times]
        return replace(
            self, loops=loops, seats=np.concatenate((self.seats, b.seat)), closed=closed, armed=armed,
            due=in_order([*self.due, *due]),
        )  # fmt: skip

    def switched(self, k: int, on: bool, loops: Loops | None = None) -> Structure:
        """With loop `k` closed or open."""
        closed, armed = self.closed.copy(), self.armed.copy()
        closed[k], armed[k] = on, False
        return replace(self, closed=closed, armed=armed, loops=loops or self.loops)


def in_order(due: list[tuple[float, str, bool]]) -> tuple[tuple[float, str, bool], ...]:
    """By time; what is due at the same time stays as it was given."""
    return tuple(sorted(due, key=lambda event: event[0]))


def refuse_keyed(model: Model, name: str) -> None:
    """Raises LinkageError for a keyed link, whose joint holds nothing that could be cut."""
    if name in model.number and model.keyed[model.number[name]]:
        raise LinkageError(f"link {name!r} follows its keys and has no joint to cut; cut a simulated link")


def connect(structure: Structure, model: Model, state: State, k: int, given: tuple) -> tuple[Structure, State]:
    """Closes loop `k` where it is, and stops what its ends' velocities differ by. `given`: joint transforms and twists
    of keyed links."""
    poses = link_poses(model, state.q, given[0])[0]
    structure = structure.switched(k, True, structure.loops.seated(k, poses))
    v = connected_velocity(model, state.q, state.v, structure.holding(), given)
    return structure, replace(state, v=v)


def cut(model: Model, state: State, link: int, given: tuple = (None, None)) -> tuple[Model, State]:
    """The model with a link's joint cut, what hangs below going with it, and the same state in its coordinates.

    The assembly tree is planned anew, which costs less than finding out what of it could stay. `given` as in `connect`.
    """
    kin = kinematics(model, state.q, given[0])
    slot = model.assembly.slot[link]
    here = kin.poses[slot]
    twist = motions(model, kin, state.v, given[1]).links[slot]
    spin = here[:3, :3].T @ twist[:3]
    speed = twist[3:] + np.cross(twist[:3], kin.offset[slot])
    old = model.coordinates
    kinds = old.kinds.tolist()
    kinds[link] = "free"
    coordinates = Coordinates(kinds)
    parent, placement = model.parent.copy(), model.placement.copy()
    # at rest it is where it is now, so that the free joint starts at zero
    parent[link], placement[link] = -1, here

    def laid(values: np.ndarray, starts: np.ndarray, own: np.ndarray) -> np.ndarray:
        return np.concatenate((values[: starts[link]], own, values[starts[link + 1] :]))

    plain = {"lower": np.full(6, -np.inf), "upper": np.full(6, np.inf)}
    assembly = assemble(parent, np.diff(coordinates.v_start))
    moved = np.append(np.zeros(model.assembly.links, dtype=int), assembly.links)
    moved[model.assembly.slot] = assembly.slot
    changed = replace(
        model, parent=parent, coordinates=coordinates, placement=placement,
        loops=model.loops.rehung(moved),
        **laid_out(assembly, coordinates, parent, placement, model.inertia),
        **{
            name: laid(getattr(model, name), old.v_start, plain.get(name, np.zeros(6))) for name in PER_FREEDOM
        },
    )  # fmt: skip
    q = laid(state.q, old.q_start, np.array([1.0, 0, 0, 0, 0, 0, 0]))
    v = laid(state.v, old.v_start, np.concatenate((spin, here[:3, :3].T @ speed)))
    return changed, State(q, v, state.time)
