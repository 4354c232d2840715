"""What a step needs and does not change."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from .checks import several
from .closure import Loops
from .collision import Collider
from .dynamics import GRAVITY
from .field import Fields
from .grip import Aim, Grip, Grips
from .groups import joined
from .guidance import Guidance, implicit
from .hybrid_model import HybridModel
from .impact import Law
from .kinematics import Kinematics, Motions, kinematics, motions
from .limits import Limits
from .loops import strands_of
from .model import CRAWL, Model, State
from .motion import Follower
from .nearby import Nearby
from .shape import Box, Plane, Scenery, Shape
from .spatial import cross

_IDENTITY = np.eye(3)

HOLD = 0.002
"""Joints turn by less than so much of `slow` per `size` under a load that their friction holds."""
LONG = 32
"""So many joints on the way to a link let errors of its velocity add up: bodies of people and beasts have fewer."""
AHEAD = 2.0
"""So many times as far as a hybrid body goes at its speed, its contacts are looked for ahead."""
SPIN = 0.05
"""Turning counts as `drift` of so much of `size`, to which also what spins in place comes."""
TAUT = 2.0
"""How many times the weight at rest the loads of a swinging chain are taken for."""


@dataclass(frozen=True)
class World:
    """A model, scenery, gravity (3,) [m/s²] and a source motion, whose keyed links are followed, and whose pose the
    drives aim at when `follow` is set; `loops` that hold, None for those that do from the start; `passing` names pairs
    of links that go through each other; force `fields`; the `law` of impacts; `grips`
    of links. `guidance`: what the motion's guide does.

    `keyed_slots` (slots,): which links follow their keys; `root` (slots,): of their trees. `reach` (slots,): the
    farthest point of each link's shapes, or its center of mass, from its origin, and `size` the largest of them of a
    link that is not keyed [m]; `tips` (slots, 2, 3): its ends. `light` (nv,): what each freedom moves at least, its own
    link's inertia and armature. `carried` (slots,) and `axis` (slots, 3): in trees that hang from the world, mass times
    place, in the link's frame, of what a link carries at its joints and itself, as length and direction; `turning`
    (slots,): the links' own inertias against turning. `turns`: the freedoms (f,) of joints that turn, without free
    ones, and their trees (f,); `deepest`: the most of these joints on the way to a link. `strands` as in
    `Loops.strands`. `body` (slots + 1,) numbers trees, those that loops join alike; -1 for the world and what is keyed
    as a whole; there are so many `bodies`.
    """

    model: Model
    scenery: tuple[Scenery, ...] = ()
    gravity: np.ndarray = field(default_factory=lambda: GRAVITY)
    follower: Follower | None = None
    follow: bool = False
    loops: Loops | None = None
    passing: frozenset[tuple[str, str]] = frozenset()
    fields: Fields | None = None
    law: Law = Law.WORK
    grips: Grips = field(default_factory=Grips)
    guidance: Guidance | None = field(init=False)
    collider: Collider | Nearby = field(init=False)
    limits: Limits = field(init=False)
    keyed_slots: np.ndarray = field(init=False)
    root: np.ndarray = field(init=False)
    reach: np.ndarray = field(init=False)
    tips: np.ndarray = field(init=False)
    light: np.ndarray = field(init=False)
    carried: np.ndarray = field(init=False)
    axis: np.ndarray = field(init=False)
    turning: np.ndarray = field(init=False)
    turns: tuple[np.ndarray, np.ndarray] = field(init=False)
    deepest: int = field(init=False)
    size: float = field(init=False)
    strands: np.ndarray = field(init=False)
    body: np.ndarray = field(init=False)
    bodies: int = field(init=False)
    _last: tuple = field(init=False, repr=False, compare=False)
    """`_implicit` of the last step, as most are as long as the one before."""

    def __post_init__(self) -> None:
        self._set(scenery=several("scenery", self.scenery))
        model, slot, links = self.model, self.model.assembly.slot, self.model.assembly.links
        shapes: list[list] = [[] for _ in range(links)]
        for place, name, own, keyed in zip(slot.tolist(), model.names, model.shapes, model.keyed):
            _refuse_scenery(name, own, keyed)
            shapes[place] = list(own)
        reach, tips = np.zeros(links), np.zeros((links, 2, 3))
        reach[slot] = [max((shape.reach for shape in own), default=0.0) for own in model.shapes]
        reach[slot] = np.maximum(reach[slot], np.sqrt((model.center**2).sum(-1)))
        tips[slot] = [_tips(own, center) for own, center in zip(model.shapes, model.center)]
        loops = model.loops.closed() if self.loops is None else self.loops
        self._set(gravity=np.asarray(self.gravity, dtype=float), loops=loops, reach=reach, tips=tips)
        self._lay_out()
        collider = Collider(
            shapes, self.scenery, keyed=self.keyed_slots, parent=self._parents(), apart=self._separate()
        )
        self._set(collider=collider)
        self._hold()

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _lay_out(self) -> None:
        """Sets what depends on the model's joints."""
        model, a = self.model, self.model.assembly
        keyed, root = np.zeros(a.links, dtype=bool), np.arange(a.links)
        keyed[a.slot], root[a.slot] = model.keyed, a.slot[model.trees]
        carried, axis = self._carried()
        guide = self.follower and self.follower.guide
        self._set(
            guidance=Guidance(model, self.follower, guide, self.gravity, self.follow) if guide else None,
            limits=Limits(model), keyed_slots=keyed, root=root, carried=carried, axis=axis,
            turns=_turns(model), deepest=_deepest(model),
            turning=0.5 * np.trace(model.slot_inertia[:, :3, :3], axis1=1, axis2=2) + 1e-300,
            light=model.own_inertia() + model.armature, _last=(math.nan,),
            size=float(self.reach[~keyed].max(initial=0.0)) or 1.0,
        )  # fmt: skip

    def _parents(self) -> np.ndarray:
        """The slot (slots,) of the link that each hangs from, -1 for none."""
        slot, hung = self.model.assembly.slot, self.model.parent >= 0
        parent = np.full(self.model.assembly.links, -1)
        parent[slot[hung]] = slot[self.model.parent[hung]]
        return parent

    def _separate(self) -> np.ndarray:
        """Pairs (k, 2) of slots that do not meet beside neighbours."""
        number = dict(zip(self.model.names, self.model.assembly.slot.tolist()))
        named = [(number[one], number[other]) for one, other in sorted(self.passing)]
        loops = np.stack((self.model.loops.host, self.model.loops.real), axis=1)
        return np.concatenate((np.array(named, dtype=np.intp).reshape(-1, 2), loops))

    def holding(self, loops: Loops) -> World:
        """The same world with other loops closed."""
        world = copy.copy(self)
        world._set(loops=loops)
        world._hold()
        return world

    def _hold(self) -> None:
        """Sets what depends on the loops."""
        scenery = np.append(np.bincount(self.root, ~self.keyed_slots, len(self.root))[self.root] == 0, True)
        tree = np.append(self.root, len(self.root))
        ends = tree[np.stack((self.loops.host, self.loops.real))]
        body = joined(len(tree), ends[:, ~scenery[ends].any(axis=0)])[tree]
        body[scenery] = -1
        strands = self.loops.strands(self.model.assembly.slot, self.model.parent)
        self._set(strands=strands, body=body, bodies=len(np.unique(body[body >= 0])))

    def gripped(self, grip: Grip, aim: Aim) -> World:
        """The same world in which a link is held."""
        world = copy.copy(self)
        world._set(grips=self.grips.holding(self.model, grip, aim))
        return world

    def released(self, grip: Grip) -> World:
        """The same world in which a grip has let go."""
        world = copy.copy(self)
        world._set(grips=self.grips.released(grip))
        return world

    def apart(self, one: str, other: str) -> World:
        """The same world in which two links go through each other."""
        world = copy.copy(self)
        world._set(passing=self.passing | {(one, other)}, collider=copy.copy(self.collider))
        world.collider.separate(world._separate())
        return world

    def cut(self, link: int, model: Model, follower: Follower | None) -> World:
        """The same world with `model`, in which the joint of a link is cut, before it is said which loops hold. What it
        was jointed to overlaps it, and lets it through."""
        world, old, new = copy.copy(self), self.model.assembly, model.assembly
        moved = np.full(old.links + 1, new.links)
        moved[old.slot] = new.slot
        reach, tips = np.zeros(new.links), np.zeros((new.links, 2, 3))
        reach[new.slot], tips[new.slot] = self.reach[old.slot], self.tips[old.slot]
        host = self.model.parent[link]
        passing = self.passing | ({(model.names[link], model.names[host])} if host >= 0 else set())
        world._set(model=model, follower=follower, passing=passing, reach=reach, tips=tips, grips=self.grips.on(model))
        world._lay_out()
        world._set(collider=self.collider.rehung(moved, world.keyed_slots, world._parents(), world._separate()))
        return world

    def gathered(self, body: HybridModel) -> World:
        """The same world of the rigid zones of a hybrid body. What depends on the model's size stays as it is."""
        world, reduced = copy.copy(self), body.reduced
        slots, reach = reduced.assembly.links, np.zeros(reduced.assembly.links)
        follower = self.follower and self.follower.select(reduced, body.root, body.q)
        world._set(model=reduced, follower=follower, loops=body.loops(self.loops), tips=np.zeros((slots, 2, 3)))
        world._set(grips=self.grips.gathered(body))
        if self.collider:
            far = np.sqrt((body.slot_within[:-1, :3, 3] ** 2).sum(-1)) + self.reach
            inside = body.slot_zone[:-1] < slots
            np.maximum.at(reach, body.slot_zone[:-1][inside], far[inside])
        world._set(reach=reach)
        world._lay_out()
        world._set(size=self.size)
        if self.collider:
            zones = body.slot_zone, body.slot_within, world.keyed_slots, body.slot_bend
            world._set(collider=self.collider.gathered(*zones))
        world._hold()
        return world

    def looking_near(self, state: State, span: float) -> World:
        """The same world of a hybrid body that for `span` seconds from a `state` on, as far as can be seen, looks for
        contacts only where there may be some."""
        if not self.collider:
            return self
        given, twist, _, _ = self.keyed(state.time, span)
        kin = kinematics(self.model, state.q, given)
        speed = self.fastest(kin, motions(self.model, kin, state.v, twist))
        room = AHEAD * span * (speed + span * np.abs(self.gravity).max()) + 2.0 * self.room(span)
        world = copy.copy(self)
        whole = self.collider.whole if isinstance(self.collider, Nearby) else self.collider
        world._set(collider=Nearby(whole, kin.poses, self.reach, room))
        return world

    def _carried(self) -> tuple[np.ndarray, np.ndarray]:
        model = self.model
        below = model.mass.copy()
        result = model.mass[:, None] * model.center
        for i in range(model.n - 1, -1, -1):
            if (p := model.parent[i]) >= 0:
                below[p] += below[i]
                result[p] += below[i] * model.placement[i, :3, 3]
        result[model.coordinates.kinds[model.trees] == "free"] = 0.0
        length = np.zeros(model.assembly.links)
        axis = np.zeros((model.assembly.links, 3))
        length[model.assembly.slot] = np.sqrt((result * result).sum(-1))
        axis[model.assembly.slot] = result
        return length, axis / np.maximum(length, 1e-300)[:, None]

    def taut(self, kin: Kinematics, h: float, loads: np.ndarray) -> Kinematics:
        """The kinematics with the inertia that makes a step implicit in the loads that links carry, their own trees'
        weight and the `loads` (loops, 6) of the step before.

        A link that carries the force F at r resists turning like a spring, by (r·F) 1 - r Fᵀ. In long chains, and where
        loops are stretched, that is the stiffest thing there is, and steps that see it only where they begin would have
        to be short. By the midpoint rule it adds h²/4 of itself to the inertia; where the load stands on the link
        instead of hanging, nothing.
        """
        loaded = len(loads) == len(self.loops) > 0
        carried = np.count_nonzero(self.carried)
        if not (loaded or carried):
            return kin
        inertia = kin.inertia.copy()
        if carried:
            along = (kin.poses[:-1, :3, :3] @ self.axis[:, :, None])[:, :, 0]
            pull = np.maximum(along @ (0.25 * h * h * self.gravity), 0.0) * self.carried
            added = self._needed(pull, self.turning)[:, None, None]
            inertia[:, :3, :3] += added * (_IDENTITY - along[:, :, None] * along[:, None, :])
        if loaded:
            strands = strands_of(self.loops, self.model, kin, self.strands)
            tension = (strands.along * loads[strands.loop, 3:]).sum(-1) * np.where(strands.host, -1.0, 1.0)
            pull = 0.25 * h * h * np.maximum(tension, 0.0) * strands.length
            added = strands.against_turning(self._needed(pull, self.turning[strands.link]))
            np.add.at(inertia[:, :3, :3], strands.link, added)
        return replace(kin, inertia=inertia)

    def _needed(self, pull: np.ndarray, turning: np.ndarray) -> np.ndarray:
        """No more inertia than stability needs: where the step is short for the load, next to nothing."""
        return pull * TAUT * pull / (pull + turning)

    def speeds(self, kin: Kinematics, moving: Motions) -> tuple[np.ndarray, np.ndarray]:
        """The velocities (slots, 3) of the links' origins, and the speed (slots,) beside it that no point of each
        exceeds [m/s]."""
        twist = moving.links[:-1]
        linear = twist[:, 3:] + cross(twist[:, :3], kin.offset)
        return linear, self.reach * np.sqrt(np.add.reduce(twist[:, :3] ** 2, axis=-1))

    def fastest(self, kin: Kinematics, moving: Motions) -> np.ndarray:
        """The speed (slots,) [m/s] that no point of each link exceeds."""
        linear, turning = self.speeds(kin, moving)
        return np.sqrt(np.add.reduce(linear * linear, axis=-1)) + turning

    def drift(self, kin: Kinematics, moving: Motions) -> np.ndarray:
        """How fast the faster end of each link moves (slots,) [m/s]: what is seen of a slow motion, to which turning
        about a limb's length adds little, and nothing where it is slow; but a wheel that spins is not at rest."""
        twist = moving.links[:-1]
        arm = kin.offset[:, None] + self.tips @ kin.poses[:-1, :3, :3].swapaxes(-1, -2)
        velocity = twist[:, None, 3:] + cross(twist[:, None, :3], arm)
        spin = np.sqrt((twist[:, :3] ** 2).sum(-1))
        return np.maximum(np.sqrt((velocity * velocity).sum(-1)).max(-1), SPIN * max(self.size, 1e-9) * spin)

    @property
    def is_long(self) -> bool:
        """Whether errors of velocities add up along the way to a link so much that they count."""
        return self.deepest >= LONG

    def bent(self, change: np.ndarray) -> float:
        """How far [rad or rad/s] a tree may turn at its ends against its root when joints move by `change` (nv,)."""
        turns, tree = self.turns
        return float(np.bincount(tree, np.abs(change.take(turns))).max(initial=0.0))

    def room(self, h: float) -> float:
        """The distance [m] within which contacts of still links are looked for, for a step of `h` seconds."""
        return self._pull * h * h + 0.004 * self.size

    def slow(self) -> float:
        """A speed [m/s] that looks slow at the model's size: of a fall from a twentieth of it."""
        return math.sqrt(0.1 * self._pull * self.size)

    @cached_property
    def _pull(self) -> float:
        return float(np.abs(self.gravity).max())

    def given(self, time: float) -> np.ndarray | None:
        """Joint transforms (n, 4, 4) of keyed links, where the model has some."""
        return self.follower.transforms(time) if self.model.keyed.any() else None

    def keyed(self, time: float, h: float) -> tuple:
        """Joint transforms, twists now and at the step's end, and the twists' rate of change, of keyed links at the
        middle of a step; Nones where the model has none."""
        if not self.model.keyed.any():
            return None, None, None, None
        given, (start, end) = self.follower.course(time, time + np.array([-0.5, 0.5]) * h)
        return given, 0.5 * (start + end), end, (end - start) / h

    def drive(self, q: np.ndarray, v: np.ndarray, h: float, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Spring and damper forces (nv,) for the end of the coming half step, and how much they resist (nv,)."""
        model = self.model
        additive = self.guidance is not None and self.guidance.additive
        own = model.damping * (1.0 - self.guidance.carries.at(time)) if additive else model.damping
        damping = own + model.drive_damping
        if np.count_nonzero(model.friction):
            damping += model.rubbing(v, max(HOLD * self.slow() / self.size, CRAWL))
        if additive or np.count_nonzero(model.friction):
            lead, resistance = self._implicit(damping, h)
        else:
            if self._last[0] != h:
                self._set(_last=(h, *self._implicit(damping, h)))
            _, lead, resistance = self._last
        force = -damping * v
        if np.count_nonzero(model.stiffness) or self.follow:
            target, rate = self.follower.target(time) if self.follow else (model.coordinates.zero(), 0.0)
            strain = model.coordinates.difference(target, q)
            force -= model.coordinates.spring_force(strain, model.stiffness * strain) + lead * v
            force += (model.drive_damping + lead) * rate
        if self.guidance:
            pull, more = self.guidance.drive(q, v, h, time, self.light)
            return force + pull, resistance + more
        return force, resistance

    def _implicit(self, damping: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """What a step adds to the damping of springs, and what joints with `damping` resist in it as inertia (nv,)."""
        lead, resistance = implicit(self.model.stiffness, damping, self.light, h)
        return lead, self.model.armature + resistance

    @property
    def acting(self) -> tuple:
        """What acts on links from outside."""
        return tuple(each for each in (self.fields, self.guidance, self.grips) if each)

    @property
    def driven(self) -> bool:
        """Whether muscles, fields or hands act."""
        return self.follow or bool(self.fields or self.guidance or self.grips)


def _refuse_scenery(name: str, shapes: tuple, keyed: bool) -> None:
    """Raises ValueError where a link has a shape that its kind of link cannot have."""
    for shape in shapes:
        if isinstance(shape, Plane) or not (keyed or isinstance(shape, Shape)):
            whose = "scenery" if isinstance(shape, Plane) else "scenery and keyed links"
            raise ValueError(
                f"link {name!r} has a {type(shape).__name__}, which only {whose} can have; "
                "give it a Capsule, a Box or a Hull"
            )


def _turns(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """The freedoms (f,) that turn links against each other or the world, and the numbers (f,) of their trees."""
    c, turn = model.coordinates, np.ones(model.nv, dtype=bool)
    turn[c.v_start[c.slides]] = False
    turn[c.v_start[c.free][:, None] + np.arange(6)] = False
    turns = turn.nonzero()[0]
    return turns, np.repeat(model.trees, np.diff(c.v_start))[turns]


def _deepest(model: Model) -> int:
    kinds = model.coordinates.kinds
    turns, way = (~np.isin(kinds, ("fixed", "prismatic", "free"))).tolist(), [0] * (model.n + 1)
    for i, host in enumerate(model.parent.tolist()):
        way[i] = way[host] + turns[i]
    return max(way)


def _tips(shapes: tuple, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two ends of what collides of a link, or its center of mass twice."""
    ends = [getattr(shape, end) for shape in shapes for end in ("start", "end") if hasattr(shape, end)]
    for shape in shapes:
        if isinstance(shape, Box):
            ends += [shape.center + shape.rotation @ shape.half, shape.center - shape.rotation @ shape.half]
        elif hasattr(shape, "vertices"):
            vertices = np.asarray(shape.vertices, dtype=float)
            ends += [vertices[i] for along in vertices.T for i in (along.argmin(), along.argmax())]
    if not ends:
        return center, center
    ends = np.array(ends)
    far = ends[((ends - center) ** 2).sum(axis=1).argmax()]
    return far, ends[((ends - far) ** 2).sum(axis=1).argmax()]
