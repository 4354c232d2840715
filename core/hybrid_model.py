"""Rigid zones: what is left of a model when only some of its joints move.

The hybrid body of the adaptive papers (Gayle, Lin and Manocha, section III-D): joints that are not active are as good
as welded, and the links between active ones move as rigid zones. A model of these zones is a model like any other, so
that everything that works on models works on hybrid bodies: velocity terms within zones, limits, drives, contacts and
loops are exact, and the Jacobians of contacts have columns for active joints alone (section IV-C).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from .assembly import assemble
from .closure import Loops
from .dynamics import respond
from .hierarchy import ranges
from .joint import Coordinates
from .kinematics import bias, kinematics, motions
from .model import PER_FREEDOM, Model, State, in_slots, scheduled
from .spatial import cross, pose_inverse, skew


@dataclass(frozen=True)
class HybridModel:
    """The zones of `model` between `active` links (a,), those whose joints move, in order.

    `root` (z,) links: active ones, keyed ones and those that the world carries, in order; `zone` (n,) of each link;
    `within` (n, 4, 4): its pose in that of its zone's root. `reduced`: the model of the zones, called like their roots;
    `q` (nq of it,) and `v` (nv of it,): where its coordinates and velocities are among those of the model.
    `slot_zone` (links + 1,): the slot among the zones' of each slot of the model, the world's last; `slot_root` (zone
    slots + 1,) the reverse for the zones' roots.
    """

    model: Model
    active: np.ndarray
    root: np.ndarray
    zone: np.ndarray
    within: np.ndarray
    reduced: Model
    q: np.ndarray
    v: np.ndarray
    slot_zone: np.ndarray
    slot_root: np.ndarray

    @classmethod
    def of(cls, model: Model, poses: np.ndarray, active: np.ndarray) -> HybridModel:
        """The zones at world `poses` (n, 4, 4) where the joints of the links `active` (a,) move."""
        active = np.unique(active[np.diff(model.coordinates.v_start)[active] > 0])
        root, zone = _zoned(model, active)
        within = pose_inverse(poses[root])[zone] @ poses
        mass, center, inertia = _composite(model, zone, within, len(root))
        parent = np.where(model.parent[root] < 0, -1, zone[model.parent[root]])
        moves = np.isin(root, active)
        kinds = np.where(moves, model.coordinates.kinds[root], "fixed")
        placement = model.placement[root]
        carried = model.parent[root] >= 0
        placement[carried] = within[model.parent[root[carried]]] @ placement[carried]
        # what the world carries by a joint that does not move stays where it is
        held = ~(carried | moves | model.keyed[root])
        placement[held] = poses[root[held]]
        schedule = _schedule(parent.tobytes(), tuple(kinds.tolist()))
        coordinates, assembly = Coordinates(kinds.tolist()), schedule["assembly"]
        of = model.coordinates
        q, v = (ranges(start, root[moves]) for start in (of.q_start, of.v_start))
        slot_zone = np.full(model.assembly.links + 1, assembly.links)
        slot_zone[model.assembly.slot] = assembly.slot[zone]
        slot_root = np.full(assembly.links + 1, model.assembly.links)
        slot_root[assembly.slot] = model.assembly.slot[root]
        reduced = Model(
            names=tuple(model.names[i] for i in root.tolist()),
            parent=parent,
            coordinates=coordinates,
            placement=placement,
            mass=mass,
            center=center,
            inertia=inertia,
            keyed=model.keyed[root],
            shapes=((),) * len(root),
            loops=model.loops.select(np.zeros(len(model.loops), dtype=bool)),
            **in_slots(assembly, placement, inertia),
            **schedule,
            **{name: getattr(model, name)[v] for name in PER_FREEDOM},
        )
        return cls(model, active, root, zone, within, reduced, q, v, slot_zone, slot_root)

    def enter(self, state: State) -> State:
        """The zones' state in a state of the model, which is moving as they do."""
        memory = state.memory
        if memory is not None:
            asleep = np.zeros(self.reduced.assembly.links + 1, dtype=int)
            asleep[self.slot_zone] = memory.asleep
            memory = replace(memory, smooth=memory.smooth[self.v], asleep=asleep)
        return State(state.q[self.q], state.v[self.v], state.time, memory)

    def leave(self, state: State, before: State) -> State:
        """The model's state in a `state` of the zones that came from the model's `before`."""
        q, v = before.q.copy(), np.zeros_like(before.v)
        q[self.q], v[self.v] = state.q, state.v
        memory = state.memory
        if memory is not None:
            smooth, contacts = np.zeros_like(v), memory.contacts
            smooth[self.v] = memory.smooth
            memory = replace(
                memory, smooth=smooth, asleep=memory.asleep[self.slot_zone], touched=self.slot_root[memory.touched],
                contacts=replace(contacts, link=contacts.part, other=contacts.other_part),
            )  # fmt: skip
        return State(q, v, state.time, memory)

    def slot_within(self) -> np.ndarray:
        """The poses (links + 1, 4, 4) of the model's slots in their zones."""
        result = np.broadcast_to(np.eye(4), (self.model.assembly.links + 1, 4, 4)).copy()
        result[self.model.assembly.slot] = self.within
        return result

    def poses(self, zone_poses: np.ndarray) -> np.ndarray:
        """World poses (n, 4, 4) of all links from those of the zones' slots (zone slots + 1, 4, 4)."""
        return zone_poses[self.reduced.assembly.slot][self.zone] @ self.within

    def loops(self, loops: Loops) -> Loops:
        """Loops of the model as loops of its zones."""
        within = self.slot_within()
        return replace(loops.rehung(self.slot_zone), at=within[loops.host] @ loops.at,
                       seat=within[loops.real] @ loops.seat)  # fmt: skip


def _zoned(model: Model, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The zones' roots (z,), in order, and the zone (n,) of each link: by pointer jumping."""
    begins = (model.parent < 0) | model.keyed
    begins[active] = True
    above = np.where(begins, np.arange(model.n), model.parent)
    while True:
        higher = above[above]
        if np.array_equal(higher, above):
            break
        above = higher
    root = np.flatnonzero(begins)
    number = np.empty(model.n, dtype=int)
    number[root] = np.arange(len(root))
    return root, number[above]


def _composite(
    model: Model, zone: np.ndarray, within: np.ndarray, zones: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses (z,), centers of mass (z, 3) and inertias (z, 6, 6) about their roots of zones as rigid bodies."""
    rotation, arm = within[:, :3, :3], within[:, :3, 3]
    force = np.zeros((model.n, 6, 6))
    force[:, :3, :3] = force[:, 3:, 3:] = rotation
    force[:, :3, 3:] = skew(arm) @ rotation
    own = (force @ model.inertia @ force.swapaxes(-1, -2)).reshape(-1, 36)
    moment = model.mass[:, None] * ((rotation @ model.center[:, :, None])[:, :, 0] + arm)
    order = np.argsort(zone, kind="stable")
    first = np.searchsorted(zone[order], np.arange(zones))
    mass, moment, inertia = (
        np.add.reduceat(values[order], first) for values in (model.mass, moment, own)
    )
    return mass, moment / mass[:, None], inertia.reshape(-1, 6, 6)


@lru_cache(maxsize=16)
def _schedule(parent: bytes, kinds: tuple[str, ...]) -> dict:
    """What depends on which joints join the zones; chains of like joints have the same whichever are active."""
    parents = np.frombuffer(parent, dtype=int)
    coordinates = Coordinates(list(kinds))
    return scheduled(assemble(parents, np.diff(coordinates.v_start)), coordinates, parents)


def stopped(
    before: HybridModel, after: HybridModel, state: State, poses: np.ndarray, given: np.ndarray | None = None
) -> np.ndarray:
    """The velocities (nv,) of the model when the zones `before` become those `after`, in a `state` with world `poses`
    (n, 4, 4); `given` (n, 4, 4): the joint transforms of keyed links.

    Impulses at the joints that do not move any more stop them: of all velocities that the zones after can have, these
    are the nearest to those before, measured by kinetic energy. So no momentum changes that joints cannot take up, and
    energy never rises (the rigidification of Redon, Galoppo and Lin 2005).
    """
    v = state.v
    if np.isin(before.active, after.active).all():
        return v
    both = HybridModel.of(before.model, poses, np.union1d(before.active, after.active))
    kin, there = (
        kinematics(zones.reduced, state.q[zones.q], None if given is None else given[zones.root])
        for zones in (both, after)
    )
    twist = motions(both.reduced, kin, v[both.v]).links[:-1]
    momentum = (kin.inertia @ twist[:, :, None])[:, :, 0]
    own, new = both.reduced.assembly.slot, after.reduced.assembly.slot[after.zone[both.root]]
    force = momentum[own, 3:]
    moment = momentum[own, :3] + cross(kin.origins[own] - there.origins[new], force)
    wrenches = np.zeros((after.reduced.assembly.links, 6))
    np.add.at(wrenches, new, np.concatenate((moment, force), axis=1))
    still = motions(after.reduced, there, np.zeros(after.reduced.nv))
    push = bias(after.reduced, there, still, np.zeros(3), wrenches)[0]
    slots = after.reduced.columns.slot_of
    push[slots] += after.reduced.armature * v[after.v]
    result = np.zeros_like(v)
    result[after.v] = respond(after.reduced, there, after.reduced.armature, push[:, None])[slots, 0]
    return result
