"""Steps in time.

The default step is Moreau's midpoint rule: half a step of motion, one constraint solve for the new velocities there,
half a step with those. It is second order where motion is smooth, exact for ballistic flight, implicit in springs and
dampers, and needs one pass of dynamics. `rk4` is for smooth systems.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .collision import Collider, Contacts
from .constraints import BOUNCE_SPEED, Rows, gather
from .dynamics import GRAVITY, acceleration, respond
from .friction import guard, solve
from .kinematics import Kinematics, Motions, bias, kinematics, motions
from .limits import LimitRows, Limits
from .model import Model, State
from .motion import Follower
from .shape import Scenery
from .spatial import cross

NEAR = 0.05
"""Joint limits enter the constraint solve from this far [rad or m], and from as far as two steps lead."""


SLACK = 0.004
"""Beyond this [rad or m] a passed limit is restored at once; below, its row pushes back gently."""


@dataclass(frozen=True)
class Memory:
    """What a step leaves to the next: the smooth acceleration (nv,) and the impulses of recognised rows; and to who asks:
    which links were touched (slots,), the number of contacts and the solver's iterations."""

    smooth: np.ndarray
    keys: np.ndarray
    impulses: np.ndarray
    touched: np.ndarray
    contacts: int
    iterations: int


@dataclass(frozen=True)
class World:
    """Everything a step needs that does not change: a model, scenery, gravity (3,) [m/s²] and a source motion, whose keyed
    links are followed, and whose pose the drives aim at when `follow` is set."""

    model: Model
    scenery: tuple[Scenery, ...] = ()
    gravity: np.ndarray = field(default_factory=lambda: GRAVITY)
    follower: Follower | None = None
    follow: bool = False
    collider: Collider = field(init=False)
    limits: Limits = field(init=False)
    reach: np.ndarray = field(init=False)
    size: float = field(init=False)

    def __post_init__(self) -> None:
        a = self.model.assembly
        shapes: list[list] = [[] for _ in range(a.links)]
        for slot, own in zip(a.slot.tolist(), self.model.shapes):
            shapes[slot] = list(own)
        reach = np.array([max((shape.reach for shape in own), default=0.0) for own in shapes])
        set_once = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        set_once("gravity", np.asarray(self.gravity, dtype=float))
        set_once("collider", Collider(shapes, list(self.scenery)))
        set_once("limits", Limits(self.model))
        set_once("reach", reach)
        set_once("size", float(reach.sum()) or 1.0)

    def keyed(self, time: float, h: float) -> tuple:
        """Joint transforms, twists now and at the step's end, and the twists' rate of change, of keyed links at the middle
        of a step; Nones where the model has none."""
        if not self.model.keyed.any():
            return None, None, None, None
        start, end = self.follower.twists(time - 0.5 * h), self.follower.twists(time + 0.5 * h)
        mask = self.model.keyed[:, None]
        return self.follower.transforms(time), 0.5 * (start + end) * mask, end * mask, (end - start) / h * mask

    def drive(self, q: np.ndarray, v: np.ndarray, h: float, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Spring and damper forces (nv,) for the end of the coming half step, and how much they resist (nv,)."""
        model = self.model
        damping = model.damping + model.drive_damping
        force = -damping * v
        if model.stiffness.any() or self.follow:
            target, rate = self.follower.target(time) if self.follow else (model.coordinates.zero(), 0.0)
            strain = model.coordinates.difference(target, q)
            force -= model.coordinates.spring_force(strain, model.stiffness * strain) + h * model.stiffness * v
            force += (model.drive_damping + h * model.stiffness) * rate
        return force, model.armature + h * damping + h * h * model.stiffness


def step(world: World, state: State, h: float) -> State:
    """The state `h` seconds later."""
    model, c = world.model, world.model.columns
    memory = state.memory
    middle = state.time + 0.5 * h
    q = model.coordinates.integrate(state.q, state.v, 0.5 * h)
    given, twist, twist_after, change = world.keyed(middle, h)
    kin = kinematics(model, q, given)
    expected = state.v if memory is None else state.v + 0.5 * h * memory.smooth
    moving = motions(model, kin, expected, twist)
    natural, links, across = bias(model, kin, moving, world.gravity, None, change)
    force, resistance = world.drive(q, state.v, h, middle)
    natural[c.slot_of] += force
    rows = _rows(world, kin, moving, links, q, expected, h)
    answer = respond(model, kin, resistance, np.concatenate((natural[:, None], rows.columns), axis=1), links, across)
    smooth = answer[c.slot_of, 0]
    v = state.v + h * smooth
    keys, impulses, iterations = np.zeros(0, dtype=int), np.zeros(0), 0
    if rows.columns.shape[1]:
        velocity = rows.velocity(v, motions(model, kin, v, twist_after))
        keys = _keys(world, rows)
        delassus = rows.columns.T @ answer[:, 1:]
        impulses, iterations = _impulses(world, rows, delassus, velocity, _recall(memory, keys), h)
        v = v + answer[c.slot_of, 1:] @ impulses
    q = _stopped(world, rows.limits, model.coordinates.integrate(q, v, 0.5 * h), v, h)
    touched = rows.contacts.link[impulses[len(rows.limits) :: 3] != 0]
    return State(q, v, state.time + h, Memory(smooth, keys, impulses, touched, len(rows.contacts), iterations))


def _rows(
    world: World, kin: Kinematics, moving: Motions, turning: np.ndarray, q: np.ndarray, v: np.ndarray, h: float
) -> Rows:
    """The limits and contacts that the coming step may meet; `turning` (links, 6) are the links' bias accelerations."""
    limits = world.limits.rows(q)
    limits = limits.select(limits.gap < NEAR - 2.0 * h * np.minimum(limits.rate(v), 0.0))
    bend = world.limits.bend(limits, q, v, h)
    if not world.scenery:
        return gather(world.model, kin, limits, Contacts.none(), h, bend, np.sqrt(world.size))
    twist = moving.links[:-1]
    linear = twist[:, 3:] + cross(twist[:, :3], kin.offset)
    speed = np.sqrt((linear * linear).sum(-1)) + world.reach * np.sqrt((twist[:, :3] ** 2).sum(-1))
    fall = h * np.abs(world.gravity).max()
    contacts = world.collider.contacts(kin.poses[:-1], h * (1.5 * speed + 2.0 * fall) + 1e-3 * world.size)
    bend = np.concatenate((bend, 0.5 * h * h * np.minimum(_approach(world.model, kin, moving, turning, contacts), 0.0)))
    return gather(world.model, kin, limits, contacts, h, bend, np.sqrt(world.size))


def _approach(
    model: Model, kin: Kinematics, moving: Motions, turning: np.ndarray, contacts: Contacts
) -> np.ndarray:
    """How the gaps' rates change (k,) by the links' turning alone: a swung foot comes down on a curve."""
    arm = contacts.center - kin.origin[model.assembly.cluster_of[contacts.link]]
    twist, change = moving.links[contacts.link], turning[contacts.link]
    velocity = twist[:, 3:] + cross(twist[:, :3], arm)
    acceleration = change[:, 3:] + cross(change[:, :3], arm) + cross(twist[:, :3], velocity)
    return (contacts.normal * acceleration).sum(-1)


def _stopped(world: World, limits: LimitRows, q: np.ndarray, v: np.ndarray, h: float) -> np.ndarray:
    """The coordinates at a step's end, back at the limits that a fast joint has passed in spite of its rows: they are
    straight, a swing's ellipse is not."""
    passed = limits.fast(v, h) or (limits.gap + 0.5 * h * limits.rate(v)).min(initial=0.0) < -SLACK
    return world.limits.clamp(q) if passed and world.limits.violation(q) > SLACK else q


def _keys(world: World, rows: Rows) -> np.ndarray:
    contact = 3 * rows.contacts.key[:, None] + np.arange(3) + len(world.limits)
    return np.concatenate((rows.limits.key, contact.reshape(-1)))


def _recall(memory: Memory | None, keys: np.ndarray) -> np.ndarray:
    """The impulses (rows,) that recognised rows had in the step before."""
    if memory is None or not len(memory.keys):
        return np.zeros(len(keys))
    order = memory.keys.argsort()
    known = memory.keys[order]
    place = np.minimum(known.searchsorted(keys), len(known) - 1)
    return np.where(known[place] == keys, memory.impulses[order[place]], 0.0)


def _bounce(world: World, rows: Rows, approach: np.ndarray, h: float) -> np.ndarray:
    """The velocities (k,) with which contacts that are met leave again, from their free velocities at the step's end.

    A contact is met up to a step early, at a height of its gap, and is left by then: the velocity is what gives the end of
    the step the energy that restitution leaves of the impact's.
    """
    contacts = rows.contacts
    weight = np.maximum(-contacts.normal @ world.gravity, 0.0)
    gap = np.maximum(contacts.gap, 0.0)
    half = 0.5 * h * weight
    middle = approach + half
    # the middle's position lies half of half² / weight above the parabola of the fall
    impact = middle * middle - half * half + 2.0 * weight * gap
    kept = contacts.restitution**2 * impact - 2.0 * weight * gap
    slow = approach > -BOUNCE_SPEED * np.sqrt(world.size)
    return np.where(slow | (kept <= 0.0), 0.0, np.sqrt(np.maximum(half * half + kept, 0.0)) - half)


def _impulses(
    world: World, rows: Rows, g: np.ndarray, velocity: np.ndarray, warm: np.ndarray, h: float
) -> tuple[np.ndarray, int]:
    """Impulses (rows,) that keep every velocity at its bound, with friction, and the solver's iterations."""
    m, k = len(rows.limits), len(rows.contacts)
    normal = np.concatenate((np.arange(m), m + 3 * np.arange(k)))
    u = velocity.copy()
    u[normal] -= rows.bound
    impulses, info = solve(g, u, rows.contacts.friction, limits=m, warm=warm)
    bounce = np.where(impulses[m::3] > 0, _bounce(world, rows, velocity[m::3], h), 0.0)
    if bounce.any():
        lively = u.copy()
        lively[m::3] = velocity[m::3] - np.maximum(rows.bound[m:], bounce)
        bounced, info = solve(g, lively, rows.contacts.friction, limits=m, warm=impulses)
        impulses = guard(g, velocity, bounced, impulses)
    return impulses, info.iterations


def rk4(model: Model, state: State, h: float, *, gravity: np.ndarray = GRAVITY) -> State:
    """The state `h` seconds later by the classical fourth-order Runge-Kutta rule, in the rotation vectors of each step
    (Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999); for smooth systems, without limits and contacts."""
    turning = model.coordinates.quaternion_v

    def rate(increment: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, w = increment[turning], v[turning]
        moved = v.copy()
        half = cross(u, w)
        moved[turning] = w + 0.5 * half + cross(u, half) / 12.0
        q = model.coordinates.integrate(state.q, increment, 1.0)
        return moved, acceleration(model, replace(state, q=q, v=v), gravity=gravity)

    zero = np.zeros(model.nv)
    u1, a1 = rate(zero, state.v)
    u2, a2 = rate(0.5 * h * u1, state.v + 0.5 * h * a1)
    u3, a3 = rate(0.5 * h * u2, state.v + 0.5 * h * a2)
    u4, a4 = rate(h * u3, state.v + h * a3)
    increment = h / 6.0 * (u1 + 2 * u2 + 2 * u3 + u4)
    q = model.coordinates.integrate(state.q, increment, 1.0)
    return State(q, state.v + h / 6.0 * (a1 + 2 * a2 + 2 * a3 + a4), state.time + h)
