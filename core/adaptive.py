"""Adaptive dynamics: only the joints that matter move, and which these are is looked at anew every few steps.

Gayle, Lin and Manocha (adaptive-contact paper), after Redon, Galoppo and Lin 2005: accelerations of all joints that
matter are found from the top of a partition of the model, what these make of the velocities by the next refresh decides
which joints are active until then, and impulses stop those that no longer are (see zones.py). For an error these are
single joints, for a number of them nodes of the partition (see active_region.py), and they stand in for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .active_region import ActiveRegion
from .activity import Activity
from .checks import are_numbers, whole
from .contact import tangents
from .hierarchy import joint_weights, ranges
from .hybrid_model import HybridModel, stopped
from .kinematics import link_poses
from .model import Model, State
from .spatial import cross
from .world import World

INTERVAL = 15
"""Least steps between refreshes; the paper found ten to fifteen enough."""
SPAN = 1 / 32
"""Least time between refreshes [s]: what moves in it is the same in shorter steps."""
LASTING = 8
"""A number of joints that stay the same is looked at after twice as many steps each time, up to so many times as many;
an error grows with time, and is looked at as often as ever."""
AT_ONCE = 4
"""What is met for the first time brings a refresh; after another of that kind only after so many steps where an error
is given, else not before the next."""
HARD = 8.0
"""A contact that presses so many times as hard as any at the last refresh brings one at once, calm or not: rigid zones
that are dragged over an edge turn as levers where joints would have given."""
MOST = 0.5
"""A threshold for which more than such a part of the joints would stand in for the others goes by single ones."""
KEEP = 4.0
"""What moves counts for so many times its squared speed when single joints are ranked: moving on costs no impulse."""
UNSEEN = 1e-6
"""So many joints stay active while what the others leave out until the next refresh is less, a part of the size."""
SLACK = (0.5, 1.25)
"""A number of active joints that the time budget chooses changes by no less and no more than these factors at once."""


@dataclass(frozen=True)
class Adaptive:
    """How much of a model moves; one of:

    `threshold`: what the joints at rest would, together, move points of the model by until the next refresh, as a part
    of its size, less what others are expected to take over if MOST need not move; 0 for all, the exact method.
    `joints`: how many are active at most, beside the free joints of what floats.
    `budget`: as many as so many seconds a frame allow on this machine; for previews, as no two runs are the same.

    `interval`: least steps between refreshes, which are also SPAN apart. `weights` of joint velocities instead of the
    reach of each joint: (nv,) positive numbers, or for each link a symmetric positive definite matrix. Raises
    ValueError for what is none.
    """

    threshold: float | None = None
    joints: int | None = None
    budget: float | None = None
    interval: int = INTERVAL
    weights: np.ndarray | Sequence[np.ndarray] | None = None

    def __post_init__(self) -> None:
        if sum(value is not None for value in (self.threshold, self.joints, self.budget)) != 1:
            raise ValueError("adaptive simulation needs one of a threshold, a number of joints or a time budget")
        if self.threshold is not None and not (are_numbers(self.threshold) and self.threshold >= 0):
            raise ValueError(f"the error threshold is {self.threshold}; give a finite number of at least zero")
        if self.budget is not None and not (are_numbers(self.budget) and self.budget > 0):
            raise ValueError(f"the time budget is {self.budget} s; give a positive number")
        for name, least in (("joints", 0), ("interval", 1)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole(name, value, least))


@dataclass(frozen=True)
class Hybrid:
    """What is stepped in place of a model: its hybrid `body` and the `world` of that.

    `touching` (t,): what touched when it was chosen; `steps` since then, for how many of these it is `calm` whatever it
    meets; it is looked at anew when it has lasted so many as it `lasts` and, beyond, `until` a time [s].

    `before`: the model's state when the body took over, None while it does not; `error`: what was left out then, in the
    terms of `Adaptive.threshold`; with a number of joints always less what others are expected to take over; `hardest`:
    the greatest force of a contact then [N].
    """

    body: HybridModel
    world: World
    error: float
    touching: np.ndarray
    calm: float
    lasts: int
    until: float
    hardest: float
    steps: int = 0
    before: State | None = None

    def entered(self, state: State) -> tuple[Hybrid, State]:
        return replace(self, before=state), self.body.enter(state)

    def whole(self, state: State) -> State:
        """The model's state in a state of the body."""
        return state if self.before is None else self.body.leave(state, self.before)

    def left(self, state: State) -> tuple[Hybrid, State]:
        return replace(self, before=None), self.whole(state)

    def stepped(self) -> Hybrid:
        return replace(self, steps=self.steps + 1)

    def due(self, time: float) -> bool:
        """Whether it is to be looked at anew at a `time` [s]."""
        return self.steps >= self.lasts and time >= self.until

    def surprised(self, state: State) -> bool:
        """Whether the step to a `state` of the body met something for which it was not chosen."""
        if self.steps < self.calm:
            return _hardest(state) > HARD * self.hardest
        return not np.isin(_pressed(state), self.touching).all()


class Chooser:
    """Chooses the active joints of the world's model as `adaptive` says; keeps what it knows between refreshes."""

    def __init__(self, adaptive: Adaptive, world: World, frame_time: float) -> None:
        model, c = world.model, world.model.coordinates
        self._movable = np.flatnonzero(np.diff(c.v_start) > 0)
        most = len(self._movable)
        if adaptive.joints is not None and adaptive.joints > most:
            raise ValueError(f"{adaptive.joints} joints are to be active; the model has {most}, give no more")
        if world.fields or world.guidance:
            raise ValueError(
                "force fields and Follow act on every link, adaptive simulation moves few; use one of them"
            )
        self.adaptive, self.model = adaptive, model
        weights = reaches(model, world.reach) ** 2 if adaptive.weights is None else adaptive.weights
        self.activity = Activity(model, gravity=world.gravity, weights=weights)
        self.frame_time, self._joints = frame_time, adaptive.joints if adaptive.budget is None else most
        self._spent = self._steps = 0.0
        self._held = False
        self._floats = np.flatnonzero((model.parent < 0) & (c.kinds == "free") & ~model.keyed)
        self._placed, self._mover = (np.repeat(np.arange(model.n), np.diff(start)) for start in (c.q_start, c.v_start))

    def changed(self, world: World) -> Chooser:
        """The chooser for a world whose structure has changed."""
        if world.model is self.model:
            return self
        adaptive = self.adaptive
        if adaptive.weights is not None:
            adaptive = replace(adaptive, weights=_still_weighing(adaptive.weights, self.model, world))
        chooser = Chooser(adaptive, world, self.frame_time)
        if adaptive.budget is not None:
            chooser._joints = min(self._joints, chooser._joints)
        return chooser

    @property
    def idle(self) -> bool:
        """Whether no joint of the model can move."""
        return not len(self._movable)

    def took(self, seconds: float) -> None:
        """Notes how long a step took, which a time budget is kept by."""
        self._spent += seconds
        self._steps += 1

    def _budgeted(self, h: float) -> int | None:
        """How many joints may be active in steps of `h` seconds; None for any."""
        if self.adaptive.budget is not None and self._steps:
            allowed = self.adaptive.budget * h / self.frame_time
            share = np.clip(allowed * self._steps / max(self._spent, 1e-9), *SLACK)
            self._joints = int(np.clip(share * self._joints, 1, len(self._movable)))
            self._spent = self._steps = 0.0
        return self._joints

    def refreshed(
        self, world: World, hybrid: Hybrid | None, state: State, h: float, met: State | None = None
    ) -> tuple[Hybrid, State]:
        """The hybrid body that takes over from another, or from the model, for the coming steps of `h` seconds from a
        state of the model, and its state after what is no longer active has been stopped. `met`: a state to which a
        step has led, whose contacts are to be expected."""
        model, activity = self.model, self.activity
        moved = np.unique(self._placed[activity.q != state.q])
        activity.moved(moved, state.q)
        given, twist = world.keyed(state.time, h)[:2]
        span = self._span(h)
        if given is not None:
            # what keys do until the next refresh is known
            activity.lead(given, twist, world.keyed(state.time + 0.5 * span, span)[3])
        poses = None
        if world.collider or len(world.loops):
            poses = link_poses(model, state.q, given)[0]
            activity.pull(*_pulls(world, met or state, poses))
            self._held = len(world.grips) > 0
            poses = poses[model.assembly.slot]
        if world.follow:
            activity.drive(self._movable, _beyond_rest(world, state))
        before = np.unique(self._mover[state.v != 0.0])
        kept = np.setdiff1d(hybrid.body.active, self._floats) if hybrid else self._floats[:0]
        active, error, stands_in = self._chosen(before, kept, state, h)
        lasts, touching = self.adaptive.interval, [_pressed(each) for each in (state, met) if each is not None]
        if hybrid is not None and np.array_equal(active, hybrid.body.active):
            body, gathered = hybrid.body, hybrid.world
            if self.adaptive.threshold is None and met is None:
                lasts = min(2 * hybrid.lasts, LASTING * lasts)
        else:
            body = HybridModel.of(model, activity.zones(active), state, poses, stands_in=stands_in)
            if not np.isin(before, active).all():
                moving = hybrid.body if hybrid else HybridModel.of(model, activity.zones(before), state)
                both = activity.zones(np.union1d(before, active))
                state = replace(state, v=stopped(moving, both, body, state, given))
            gathered = world.gathered(body)
        gathered = gathered.looking_near(body.enter(state), span)
        calm = 0.0 if met is None else AT_ONCE if self.adaptive.threshold is not None else np.inf
        hardest = max(_hardest(each) for each in (state, met) if each is not None)
        if len(active) == len(self._movable):
            # no others can answer
            calm = hardest = np.inf
        # a span may end between two steps, by rounding
        until = state.time + lasts / self.adaptive.interval * SPAN - 0.5 * h
        return Hybrid(body, gathered, error, np.concatenate(touching), calm, lasts, until, hardest), state

    def _span(self, h: float) -> float:
        """Seconds from one refresh to the next in steps of `h` seconds."""
        return max(self.adaptive.interval * h, SPAN)

    def _chosen(self, before: np.ndarray, kept: np.ndarray, state: State, h: float) -> tuple[np.ndarray, float, bool]:
        """The links whose joints are to be active until the next refresh, in steps of `h` seconds, after those of
        `before` were, those `kept` if they may be, the error, and whether they stand in for all others."""
        threshold, joints, span = self.adaptive.threshold, self._budgeted(h), self._span(h)
        v = state.v[ranges(self.model.coordinates.v_start, before)]
        if threshold == 0.0:
            return self._movable, 0.0, False
        stands_in = True
        if threshold is None:
            most = min(joints + len(self._floats), self.model.n)
            transient = self.activity.accelerations(before, v, joints=most, compensated=True)
            region = self.activity.best(before, v, transient, span, joints, kept=kept, enough=UNSEEN / span)
        else:
            region, stands_in = self._within(before, v, span)
        chosen = np.union1d(region.links, self._floats)
        # a body of no joints would be none
        return chosen if len(chosen) else self._movable[:1], span * region.error, stands_in

    def _within(self, before: np.ndarray, v: np.ndarray, span: float) -> tuple[ActiveRegion, bool]:
        """The region that the threshold asks for, and whether it stands in for what rests."""
        activity, threshold = self.activity, self.adaptive.threshold / span
        transient = activity.accelerations(before, v, threshold=0.5 * threshold / span, compensated=True)
        region = activity.within(before, v, transient, span, threshold)
        if len(region.links) <= MOST * len(self._movable):
            return region, True
        # what little rests is in single joints
        transient = activity.accelerations(before, v, threshold=0.5 * threshold / span)
        region = activity.fewest(before, v, transient, span, 0.5 * threshold, favour=KEEP)
        return replace(region, error=region.error + span * transient.error), False


def reaches(model: Model, reach: np.ndarray) -> np.ndarray:
    """How far each freedom moves the farthest point below it at most, as a part of the model's size (nv,).

    `reach` (slots,) [m] of each link from its origin.
    """
    c, far = model.coordinates, reach[model.assembly.slot].copy()
    for i in range(model.n - 1, -1, -1):
        if (p := model.parent[i]) >= 0:
            far[p] = max(far[p], far[i] + np.sqrt((model.placement[i, :3, 3] ** 2).sum()))
    size = far.max(initial=0.0) or 1.0
    result = np.repeat(np.maximum(far / size, 1e-6), np.diff(c.v_start))
    slides = np.concatenate((c.v_start[c.slides], (c.v_start[c.free][:, None] + np.arange(3, 6)).reshape(-1)))
    result[slides] = 1.0 / size
    return result


def _still_weighing(weights: np.ndarray | Sequence[np.ndarray], before: Model, world: World) -> list[np.ndarray]:
    """The weights of a model `before` joints of it were cut, as matrices, for the world's, which has it now: what is
    cut floats, moves whatever it weighs, and counts as it does without weights."""
    now = world.model
    reach, weights = reaches(now, world.reach) ** 2, joint_weights(before, weights)
    cut = before.coordinates.kinds != now.coordinates.kinds
    floats = [np.diag(part) for part in np.split(reach, now.coordinates.v_start[1:-1])]
    return [floats[i] if cut[i] else weights[i] for i in range(now.n)]


def _pressed(state: State) -> np.ndarray:
    """Pairs of links' slots that press on each other, as numbers."""
    memory = state.memory
    if memory is None:
        return np.zeros(0, dtype=int)
    pressed = memory.pushes[:, 0] > 0.0
    # parts are slots of the model, whether the state is its own or that of a body
    return memory.contacts.part[pressed] * (1 << 31) + memory.contacts.other_part[pressed]


def _hardest(state: State) -> float:
    """The greatest force with which something presses in a state [N]."""
    memory = state.memory
    return 0.0 if memory is None else float(memory.pushes[:, 0].max(initial=0.0)) / memory.h


def _beyond_rest(world: World, state: State) -> np.ndarray:
    """What drives exert (nv,) as they follow the motion, beyond what they would if they aimed at the rest pose."""
    model = world.model
    strain = model.coordinates.difference(model.coordinates.zero(), state.q)
    rest = -model.coordinates.spring_force(strain, model.stiffness * strain)
    damping = model.damping + model.drive_damping + model.rubbing(state.v)
    return world.drive(state.q, state.v, 0.0, state.time)[0] - rest + damping * state.v


def _pulls(world: World, state: State, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The links (k,) that contacts and loops pulled in the last step, and that hands pull, and the wrenches (k, 6)
    [N m, N] about their origins along their axes; `poses` (links + 1, 4, 4) in slots."""
    memory, model, loops, grips = state.memory, world.model, world.loops, world.grips
    slots, wrenches = [], []

    def act(one: np.ndarray, other: np.ndarray, point: np.ndarray, torque: np.ndarray, force: np.ndarray) -> None:
        for slot, sign in ((one, 1.0), (other, -1.0)):
            moment = sign * (torque + cross(point - poses[slot, :3, 3], force))
            turn = poses[slot, :3, :3].swapaxes(-1, -2)
            local = turn[:, None] @ np.stack((moment, sign * force), axis=1)[..., None]
            slots.append(slot)
            wrenches.append(local.reshape(-1, 6))

    if memory is not None:
        contacts = memory.contacts
        force = (memory.pushes[:, None] @ tangents(contacts.normal))[:, 0] / memory.h
        act(contacts.part, contacts.other_part, contacts.point, np.zeros_like(force), force)
        if len(loops) and len(memory.loads) == len(loops):
            act(loops.real, loops.host, loops.frames(poses)[1][:, :3, 3], *np.hsplit(memory.loads, 2))
    if grips:
        act(grips.slots, np.full(len(grips), model.assembly.links), *grips.pulls(poses, state.time))
    if not slots:
        return np.zeros(0, dtype=int), np.zeros((0, 6))
    number = np.full(model.assembly.links + 1, model.n)
    number[model.assembly.slot] = np.arange(model.n)
    total = np.zeros((model.n + 1, 6))
    np.add.at(total, number[np.concatenate(slots)], np.concatenate(wrenches))
    links = np.flatnonzero(total[:-1].any(axis=1))
    return links, total[links]
