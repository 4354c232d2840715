"""The model of a hybrid body: what is left of a model when only some of its joints move.

Joints that are not active are as good as welded, and the links between active ones move as rigid zones (adaptive
papers; Gayle, Lin and Manocha, section III-D). A model of these zones is a model like any other, so that everything
that works on models works on hybrid bodies: velocity terms within zones, limits, drives, contacts and loops are exact,
and the Jacobians of contacts have columns for active joints alone (section IV-C).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from .assembly import assemble
from .closure import Loops
from .dynamics import respond
from .hierarchy import ranges
from .joint import Coordinates
from .kinematics import bias, kinematics, link_poses, motions
from .model import PER_FREEDOM, Model, State, in_slots, scheduled
from .spatial import cross, pose_inverse
from .zones import Zones


@dataclass(frozen=True)
class HybridModel:
    """The rigid `zones` of a `model` in the state `start`, from which on the joints within them hold still.

    `reduced`: the model of the zones, called like the links that are their roots, `root` (z,); `q` (nq of it,) and `v`
    (nv of it,): where its coordinates and velocities are among those of the model. `moves` (z,): whose joints are
    active; the others are keyed. `poses` (n, 4, 4): where all links were at the start, None where nobody knows.
    `stands_in`: active joints turn for those at rest around them too, with dampers in series (see zones.py).
    """

    model: Model
    zones: Zones
    start: State
    reduced: Model
    root: np.ndarray
    moves: np.ndarray
    q: np.ndarray
    v: np.ndarray
    poses: np.ndarray | None = None
    stands_in: bool = False

    @classmethod
    def of(
        cls, model: Model, zones: Zones, start: State, poses: np.ndarray | None = None, *, stands_in: bool = False
    ) -> HybridModel:
        root, of = zones.links, model.coordinates
        kinds = of.kinds[root].tolist()
        schedule = _schedule(zones.parent.tobytes(), tuple(kinds))
        q, v = (ranges(starts, root) for starts in (of.q_start, of.v_start))
        mass = zones.inertia[:, 3, 3]
        # of a rigid inertia about the root's origin, m skew(c) is the upper right part
        moment = zones.inertia[:, [2, 0, 1], [4, 5, 3]]
        own = {name: getattr(model, name)[v] for name in PER_FREEDOM}
        if stands_in:
            # a spring keeps what it has turned by, the others' turn would be kept by it alone
            mobility = np.where(own["stiffness"] == 0.0, zones.mobility, 0.0)
            share = 1.0 / (1.0 + (own["damping"] + own["drive_damping"]) * mobility)
            own |= {name: share * own[name] for name in ("damping", "drive_damping")}
        reduced = Model(
            names=tuple(model.names[i] for i in root.tolist()),
            parent=zones.parent,
            coordinates=Coordinates(kinds),
            placement=zones.placement,
            mass=mass,
            # what keys move may weigh nothing
            center=moment / np.where(mass > 0.0, mass, 1.0)[:, None],
            inertia=zones.inertia,
            keyed=model.keyed[root],
            shapes=((),) * len(root),
            loops=model.loops.select(np.zeros(len(model.loops), dtype=bool)),
            **in_slots(schedule["assembly"], zones.placement, zones.inertia),
            **schedule,
            **own,
        )
        return cls(model, zones, start, reduced, root, ~model.keyed[root], q, v, poses, stands_in)

    @property
    def active(self) -> np.ndarray:
        """The links (a,) whose joints move, ascending."""
        return self.root[self.moves]

    @cached_property
    def zone(self) -> np.ndarray:
        """The zone (n,) of each link, -1 for the world's."""
        return self.zones.zone_of(np.arange(self.model.n))

    @cached_property
    def within(self) -> np.ndarray:
        """The pose (n, 4, 4) of each link in the frame of its zone's root, or of the world."""
        poses = self.poses
        if poses is None:
            poses = link_poses(self.model, self.start.q)[0][self.model.assembly.slot]
        frames = np.concatenate((pose_inverse(poses[self.root]), np.eye(4)[None]))
        return frames[self.zone] @ poses

    @cached_property
    def slot_zone(self) -> np.ndarray:
        """The slot (links + 1,) among the zones' of each slot of the model, the world's last."""
        a = self.reduced.assembly
        result = np.full(self.model.assembly.links + 1, a.links)
        result[self.model.assembly.slot] = np.append(a.slot, a.links)[self.zone]
        return result

    @cached_property
    def slot_within(self) -> np.ndarray:
        """The pose (links + 1, 4, 4) of each slot of the model in its zone."""
        result = np.broadcast_to(np.eye(4), (self.model.assembly.links + 1, 4, 4)).copy()
        result[self.model.assembly.slot] = self.within
        return result

    @cached_property
    def slot_bend(self) -> np.ndarray:
        """A number for each slot of the model (links + 1,), the same for links that bend as one: these come no nearer
        to each other than they are."""
        a = self.model.assembly
        result = np.arange(a.links + 1) + 2 * self.model.n
        if self.stands_in:
            result[a.slot] = self.zones.bend_of(np.arange(self.model.n))
        return result

    @cached_property
    def slot_root(self) -> np.ndarray:
        """The slot (zone slots + 1,) in the model of each zone's root, the world's last."""
        result = np.full(self.reduced.assembly.links + 1, self.model.assembly.links)
        result[self.reduced.assembly.slot] = self.model.assembly.slot[self.root]
        return result

    def given(self, given: np.ndarray | None) -> np.ndarray | None:
        """The zones' part of the joint transforms (n, 4, 4) of keyed links."""
        return None if given is None else given[self.root]

    def place(self, q: np.ndarray, given: np.ndarray | None = None) -> np.ndarray:
        """World poses (n, 4, 4) of all links where the zones have coordinates `q`."""
        poses = link_poses(self.reduced, q, self.given(given))[0]
        slot = np.append(self.reduced.assembly.slot, self.reduced.assembly.links)
        return poses[slot[self.zone]] @ self.within

    def loops(self, loops: Loops) -> Loops:
        """Loops of the model as loops of its zones."""
        if not len(loops):
            return loops
        return replace(
            loops.rehung(self.slot_zone),
            at=self.slot_within[loops.host] @ loops.at, seat=self.slot_within[loops.real] @ loops.seat,
        )  # fmt: skip

    def enter(self, state: State) -> State:
        """The zones' state in a state of the model, which is moving as they do."""
        memory = state.memory
        if memory is not None:
            asleep = np.zeros(self.reduced.assembly.links + 1, dtype=int)
            if memory.asleep.any():
                asleep[self.slot_zone] = memory.asleep
            # what the step before has touched has been told
            smooth, lasting = memory.smooth[self.v], memory.lasting[self.v]
            memory = replace(memory, smooth=smooth, lasting=lasting, asleep=asleep, touched=memory.touched[:0])
        return State(state.q[self.q], state.v[self.v], state.time, memory)

    def leave(self, state: State, before: State) -> State:
        """The model's state in a `state` of the zones that came from the model's `before`."""
        q, v = before.q.copy(), np.zeros_like(before.v)
        q[self.q], v[self.v] = state.q, state.v
        memory = state.memory
        if memory is not None:
            smooth, lasting, contacts = np.zeros_like(v), np.zeros_like(v), memory.contacts
            smooth[self.v], lasting[self.v] = memory.smooth, memory.lasting
            asleep = np.zeros(self.model.assembly.links + 1, dtype=int)
            if memory.asleep.any():
                asleep = memory.asleep[self.slot_zone]
            memory = replace(
                memory, smooth=smooth, lasting=lasting, asleep=asleep, touched=self.slot_root[memory.touched],
                contacts=replace(contacts, meeting=contacts.meeting.of_parts()),
            )  # fmt: skip
        return State(q, v, state.time, memory)


@lru_cache(maxsize=16)
def _schedule(parent: bytes, kinds: tuple[str, ...]) -> dict:
    """What depends on which joints join the zones; chains of like joints have the same whichever are active."""
    parents = np.frombuffer(parent, dtype=int)
    coordinates = Coordinates(list(kinds))
    return scheduled(assemble(parents, np.diff(coordinates.v_start)), coordinates, parents)


def stopped(
    before: HybridModel, both: Zones, after: HybridModel, state: State, given: np.ndarray | None = None
) -> np.ndarray:
    """The velocities (nv,) of the model when a hybrid body `before` becomes another `after`, in a `state`; `both` are
    the zones between the active joints of either, `given` (n, 4, 4) the joint transforms of keyed links.

    Impulses at the joints that do not move any more stop them: of all velocities that the zones after can have, these
    are the nearest to those before, measured by kinetic energy. So no momentum changes that joints can take up, and
    energy never rises (the rigidification of Redon, Galoppo and Lin 2005).
    """
    v = state.v
    kin, there = (kinematics(body.reduced, state.q[body.q], body.given(given)) for body in (before, after))
    slots = before.reduced.assembly.slot
    zone = before.zones.zone_of(both.links)
    rotation, place = both.world[:, :3, :3], both.world[:, :3, 3]
    twist = motions(before.reduced, kin, v[before.v]).links[slots[zone]]
    twist[zone < 0] = 0.0
    twist[:, 3:] += cross(twist[:, :3], place - kin.origins[slots[zone]])
    local = (twist.reshape(-1, 2, 3) @ rotation).reshape(-1, 6, 1)
    moment, force = np.moveaxis((both.inertia @ local).reshape(-1, 2, 3) @ rotation.swapaxes(-1, -2), 1, 0)
    zone = after.zones.zone_of(both.links)
    moving = zone >= 0
    slot = after.reduced.assembly.slot[zone[moving]]
    moment = moment[moving] + cross(place[moving] - there.origins[slot], force[moving])
    wrenches = np.zeros((after.reduced.assembly.links, 6))
    np.add.at(wrenches, slot, np.concatenate((moment, force[moving]), axis=1))
    still = motions(after.reduced, there, np.zeros(after.reduced.nv))
    push = bias(after.reduced, there, still, np.zeros(3), wrenches)[0]
    slots = after.reduced.columns.slot_of
    push[slots] += after.reduced.armature * v[after.v]
    result = np.zeros_like(v)
    result[after.v] = respond(after.reduced, there, after.reduced.armature, push[:, None])[slots, 0]
    return result
