"""Model and State: a linkage compiled to arrays. Algorithms see only these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .assembly import Assembly, assemble, jump_table
from .checks import are_numbers
from .closure import Loops, loops_of
from .joint import Coordinates
from .linkage import Linkage
from .shape import Shape
from .spatial import pose, pose_inverse, rigid_inertia

CRAWL = 1e-4
"""So slow [rad/s or m/s] are joints that friction holds, where nothing else is said."""

UNIT = 1e-6
"""How far from 1 a given quaternion's length may be."""


@dataclass(frozen=True)
class State:
    """What changes: joint coordinates `q` (nq,), joint velocities `v` (nv,) and `time` [s].

    The velocity of a spherical joint is the angular velocity in the link's frame; of a free joint that, then the
    velocity of the link's origin along the axes of the joint's rest frame. `memory` is what the step before leaves to
    the next (see integration.py); a state without it is complete, only its next step starts cold.
    """

    q: np.ndarray
    v: np.ndarray
    time: float = 0.0
    memory: object | None = None

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.v).all() and np.isfinite(self.q).all())


@dataclass(frozen=True)
class Model:
    """A forest of n links as arrays in the order of `linkage.links()`, and their layout for the assembly tree.

    `parent` (n,) -1 for the world; `placement` (n, 4, 4) of the joints' rest frames in the parents' frames; `mass`
    (n,), `center` (n, 3), `inertia` (n, 6, 6) about the link's origin. Per freedom (nv,): `lower`, `upper`, `damping`,
    `friction`, `armature`, `stiffness`, `drive_damping`. `keyed` (n,) bool: moved by the source motion, without
    freedoms. `columns`: how the joints' motion subspaces are laid out in freedom slots. `loops`: the virtual links.
    """

    names: tuple[str, ...]
    parent: np.ndarray
    coordinates: Coordinates
    placement: np.ndarray
    mass: np.ndarray
    center: np.ndarray
    inertia: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    damping: np.ndarray
    friction: np.ndarray
    armature: np.ndarray
    stiffness: np.ndarray
    drive_damping: np.ndarray
    keyed: np.ndarray
    shapes: tuple[tuple[Shape, ...], ...]
    assembly: Assembly
    columns: Columns
    link_jumps: list[np.ndarray]
    cluster_jumps: list[np.ndarray]
    slot_placement: np.ndarray
    slot_inertia: np.ndarray
    trees: np.ndarray
    loops: Loops

    def rubbing(self, v: np.ndarray, still: float = CRAWL) -> np.ndarray:
        """The damping (nv,) that joints' dry friction amounts to at joint velocities `v` (nv,), of ball joints that of
        the whole turn; what is slower than `still` [rad/s or m/s] creeps in proportion to its load. Taken from the last
        step's velocities, it lets what was at rest go a few steps late."""
        speed, ball = np.abs(v), self.coordinates.quaternion_v
        speed[ball] = np.sqrt((v[ball] ** 2).sum(-1, keepdims=True))
        return self.friction / np.maximum(speed, still)

    @property
    def n(self) -> int:
        return len(self.names)

    @cached_property
    def number(self) -> dict[str, int]:
        """The links' numbers by their names."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def link_of(self) -> np.ndarray:
        """The links (slots + 1,) in the assembly's slots, -1 for empty ones and the world's."""
        result = np.full(self.assembly.links + 1, -1)
        result[self.assembly.slot] = np.arange(self.n)
        return result

    @property
    def nq(self) -> int:
        return self.coordinates.nq

    @property
    def nv(self) -> int:
        return self.coordinates.nv

    def own_inertia(self) -> np.ndarray:
        """The inertia (nv,) of each freedom's own link about its axis [kg or kg m²], what it moves at least."""
        c = self.coordinates
        result = np.empty(self.nv)
        for kind, subspace in SUBSPACE.items():
            links = np.flatnonzero(c.kinds == kind)
            for d, (axis, _) in enumerate(subspace):
                result[c.v_start[links] + d] = self.inertia[links, axis, axis]
        return result

    def rest_state(self) -> State:
        """All joint coordinates zero, at rest."""
        return State(self.coordinates.zero(), np.zeros(self.nv))

    def checked(self, state: State) -> State:
        """A `state` from outside, its numbers as floats. Raises ValueError where it is none of this model."""
        for name, size in (("q", self.nq), ("v", self.nv)):
            if not are_numbers(getattr(state, name), size):
                raise ValueError(f"the state's {name} is not {size} finite numbers; give those of this model")
        if not are_numbers(state.time):
            raise ValueError(f"the state's time is {state.time}; give a finite number of seconds")
        q, v = np.asarray(state.q, dtype=float), np.asarray(state.v, dtype=float)
        length = np.linalg.norm(q[self.coordinates.quaternion_q], axis=-1)
        for joint in np.flatnonzero(np.abs(length - 1.0) > UNIT):
            name = self.names[self.coordinates.turning[joint]]
            raise ValueError(
                f"the state turns link {name!r} by a quaternion of length {length[joint]:g}; give unit ones"
            )
        return replace(state, q=q, v=v, time=float(state.time))

    def relative(self, poses: np.ndarray) -> np.ndarray:
        """Poses (..., n, 4, 4) of the links in their joints' rest frames, from world poses."""
        inverse = pose_inverse(poses)
        to_parent = np.where(
            (self.parent >= 0)[:, None, None], inverse[..., np.maximum(self.parent, 0), :, :], np.eye(4)
        )
        return pose_inverse(self.placement) @ (to_parent @ poses)

    def state_from_poses(self, poses: np.ndarray, later: np.ndarray | None = None, interval: float = 1.0) -> State:
        """The state nearest to world poses (n, 4, 4); its velocities lead to the poses `later` after `interval`
        seconds."""
        q = self.coordinates.from_transforms(self.relative(poses))
        v = np.zeros(self.nv)
        if later is not None:
            v = self.coordinates.difference(q, self.coordinates.from_transforms(self.relative(later))) / interval
        return State(q, v)


@dataclass(frozen=True)
class Columns:
    """Motion subspaces in freedom slots.

    A column is an axis of the spatial vector, `axis` (slots,), in the frame of `link` (slots,), which is `links` for
    the world's axes. Some are fixed in the joint's rest frame instead (`rest` (r,) their slots): row `rest_row` of the
    joint's transform of `rest_link`, a turn or, from row `rest_part` 3, a translation. `third` (u, 2): the slot of a
    universal joint's constrained axis, and of the axis it is square to besides the link's own. `velocity` (slots,):
    index of a column's joint velocity, nv for none; `slot_of` (nv,) the reverse. `free` (joints, 6): which columns of
    joints between clusters are freedoms. `owner` (slots,): the link that each slot moves first, `links` for none; of a
    floating cluster's base its root.
    """

    link: np.ndarray
    axis: np.ndarray
    velocity: np.ndarray
    slot_of: np.ndarray
    rest: np.ndarray
    rest_link: np.ndarray
    rest_row: np.ndarray
    rest_part: np.ndarray
    third: np.ndarray
    free: np.ndarray
    owner: np.ndarray

    @cached_property
    def slides(self) -> bool:
        """Whether all that is fixed in a rest frame is a translation."""
        return bool((self.rest_part == 3).all())

    @cached_property
    def slot_or_none(self) -> np.ndarray:
        """The freedom slots (nv + 1,) of joint velocities, and for none the one after the last."""
        return np.append(self.slot_of, len(self.link))

    def slotted(self, v: np.ndarray) -> np.ndarray:
        """Joint velocities (nv,) in their freedom slots (slots,), with zeros in the others."""
        result = np.zeros(len(self.link))
        result[self.slot_of] = v
        return result


# Per kind of joint: the columns of its freedoms as (axis of the spatial vector, carried by the parent).
SUBSPACE = {
    "fixed": [],
    "hinge": [(0, False)],
    "prismatic": [(3, False)],
    "universal": [(0, True), (2, False)],
    "spherical": [(0, False), (1, False), (2, False)],
    "free": [(0, False), (1, False), (2, False), (3, True), (4, True), (5, True)],
}


PER_FREEDOM = ("lower", "upper", "damping", "friction", "armature", "stiffness", "drive_damping")


def compile_model(linkage: Linkage, leaf_freedoms: int | None = None) -> Model:
    """Compiles a linkage; raises LinkageError naming the link and the remedy.

    `leaf_freedoms`: the largest dense leaf of the assembly tree, 1 for Featherstone's tree of single links, None for
    the measured best. It changes the speed, not the result.
    """
    linkage.validate()
    links = list(linkage.links())
    number = {id(link): i for i, link in enumerate(links)}
    parent = np.array([number.get(id(link.parent), -1) for link in links], dtype=int)
    kinds = ["fixed" if link.keyed else link.joint.kind for link in links]
    coordinates = Coordinates(kinds)
    freedoms = np.diff(coordinates.v_start)

    def per_freedom(name: str) -> np.ndarray:
        # a keyed link's joint has no freedoms, whatever it would have without keys
        own = (np.zeros(0) if x.keyed else np.asarray(getattr(x.joint, name), dtype=float) for x in links)
        parts = [values if values.shape == (d,) else np.full(d, values) for values, d in zip(own, freedoms)]
        return np.concatenate([*parts, np.zeros(0)])

    placement = pose(
        np.array([x.rotation for x in links], dtype=float), np.array([x.position for x in links], dtype=float)
    )
    mass = np.array([x.mass for x in links], dtype=float)
    center = np.array([x.center_of_mass for x in links], dtype=float)
    inertia = rigid_inertia(mass, center, np.array([x.inertia for x in links], dtype=float))
    assembly = assemble(parent, freedoms, leaf_freedoms)
    virtual = list(linkage.virtual_links())
    end = lambda link: int(assembly.slot[number[id(link)]]) if id(link) in number else assembly.links  # noqa: E731
    loops = loops_of(
        [link.name for link in virtual], [link.joint.kind for link in virtual], [link.closure for link in virtual],
        [end(link.parent) for link in virtual], [end(link.real) for link in virtual],
        [pose(link.rotation, link.position) for link in virtual], [link.seat for link in virtual],
    )  # fmt: skip
    return Model(
        names=tuple(link.name for link in links),
        parent=parent,
        coordinates=coordinates,
        placement=placement,
        mass=mass,
        center=center,
        inertia=inertia,
        keyed=np.array([link.keyed for link in links]),
        shapes=tuple(tuple(link.shapes) for link in links),
        loops=loops,
        **laid_out(assembly, coordinates, parent, placement, inertia),
        **{name: per_freedom(name) for name in PER_FREEDOM},
    )


def laid_out(
    assembly: Assembly, coordinates: Coordinates, parent: np.ndarray, placement: np.ndarray, inertia: np.ndarray
) -> dict:
    """The fields of a model that follow from its assembly tree."""
    return {**in_slots(assembly, placement, inertia), **scheduled(assembly, coordinates, parent)}


def in_slots(assembly: Assembly, placement: np.ndarray, inertia: np.ndarray) -> dict[str, np.ndarray]:
    """Placements and inertias of links in the slots of their assembly tree."""
    slot_placement = np.broadcast_to(np.eye(4), (assembly.links, 4, 4)).copy()
    slot_placement[assembly.slot] = placement
    slot_inertia = np.zeros((assembly.links, 6, 6))
    slot_inertia[assembly.slot] = inertia
    return {"slot_placement": slot_placement, "slot_inertia": slot_inertia}


def scheduled(assembly: Assembly, coordinates: Coordinates, parent: np.ndarray) -> dict:
    """The fields of a model that follow from which links its joints of some kinds join."""
    trees = np.arange(len(parent))
    for i, p in enumerate(parent.tolist()):
        trees[i] = i if p < 0 else trees[p]
    return {
        "assembly": assembly,
        "columns": _columns(coordinates.kinds.tolist(), coordinates, assembly),
        "link_jumps": jump_table(assembly.parent),
        "cluster_jumps": jump_table(assembly.cluster_parent),
        "trees": trees,
    }


def _columns(kinds: list[str], coordinates: Coordinates, assembly: Assembly) -> Columns:
    joints = len(assembly.joint_cluster)
    slots = assembly.freedoms + 6 * joints
    link, axis = np.full(slots, assembly.links), np.zeros(slots, dtype=int)
    velocity, slot_of = np.full(slots, coordinates.nv), np.empty(coordinates.nv, dtype=int)
    free = np.zeros(slots, dtype=bool)
    rest: list[tuple[int, int, int, int]] = []
    third: list[tuple[int, int]] = []
    owner = link.copy()
    for leaves in assembly.leaves:
        # a floating cluster's base moves in all six directions of the world's axes
        floating = np.flatnonzero(leaves.floats)
        base = leaves.first_freedom + leaves.freedoms * floating[:, None] + np.arange(6)
        axis[base], owner[base] = np.arange(6), assembly.cluster_root[leaves.first_cluster + floating, None]
    carried_roots = set(assembly.cluster_root[assembly.base].tolist())
    for i, kind in enumerate(kinds):
        start, me = int(assembly.freedom_slot[i]), int(assembly.slot[i])
        between = me in carried_roots
        if between:
            link[start : start + 6], axis[start : start + 6] = me, np.arange(6)
        for d, (direction, by_parent) in enumerate(SUBSPACE[kind]):
            column = start + (direction if between else d)
            link[column], axis[column], free[column] = me, direction, True
            velocity[column] = coordinates.v_start[i] + d
            slot_of[coordinates.v_start[i] + d] = column
            if by_parent:
                rest.append((column, me, direction % 3, direction // 3 * 3))
        if between and kind == "universal":
            third.append((start + 1, start))
    rest_table = np.array(rest, dtype=int).reshape(-1, 4)
    return Columns(
        link, axis, velocity, slot_of, *rest_table.T,
        np.array(third, dtype=int).reshape(-1, 2), free[assembly.freedoms :].reshape(-1, 6),
        np.where(link < assembly.links, link, owner),
    )  # fmt: skip
