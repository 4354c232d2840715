"""Steps in time.

The default step is Moreau's midpoint rule: half a step of motion, one constraint solve for the new velocities there,
half a step with those. It is second order where motion is smooth, exact for ballistic flight, implicit in springs and
dampers, and needs one pass of dynamics. `rk4` is for smooth systems.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .constraints import RECOVERY, Rows, gather, recall, resolve
from .dynamics import GRAVITY, acceleration, respond
from .kinematics import bias, kinematics, motions
from .model import Model, State
from .spatial import cross
from .world import World

STRAY = 0.008
"""A step that passes a joint limit by more than this [rad or m] is taken again in halves,"""
HALVINGS = 5
"""and those again, so many times;"""
CORRECTIONS = 2
"""but first its constraints are solved again so often."""


@dataclass(frozen=True)
class Memory:
    """What a step leaves to the next: the smooth acceleration (nv,) and the impulses of recognised rows; and to who
    asks: which links were touched (slots,), the number of contacts and the solver's iterations."""

    smooth: np.ndarray
    keys: np.ndarray
    impulses: np.ndarray
    touched: np.ndarray
    contacts: int
    iterations: int


def step(world: World, state: State, h: float, halvings: int = HALVINGS) -> State:
    """The state `h` seconds later.

    Limits enter a step as straight rows; where a fast joint leaves its curved range in spite of them, the step is taken
    again as two of half the length.
    """
    after, violation = _advance(world, state, h)
    if halvings == 0 or violation < STRAY or violation <= world.limits.violation(state.q):
        return _recovered(world, after) if violation > 0.0 else after
    middle = step(world, state, 0.5 * h, halvings - 1)
    after = step(world, middle, 0.5 * h, halvings - 1)
    touched = np.concatenate((middle.memory.touched, after.memory.touched))
    return replace(after, memory=replace(after.memory, touched=touched))


def _recovered(world: World, state: State) -> State:
    """The state with passed limits partly restored, in place and not by velocity, which would bring in energy."""
    coordinates = world.model.coordinates
    back = coordinates.difference(state.q, world.limits.nearest(state.q))
    return replace(state, q=coordinates.integrate(state.q, back, RECOVERY))


def _advance(world: World, state: State, h: float) -> tuple[State, float]:
    """The state after one step, and how far beyond its limit [rad or m] the worst joint is that may have passed it."""
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
    rows = gather(world, kin, moving, links, q, expected, h)
    forces = np.concatenate((natural[:, None], rows.columns), axis=1)
    answer = respond(model, world.taut(kin, h), resistance, forces, links, across)
    smooth = answer[c.slot_of, 0]
    free = state.v + h * smooth
    velocity = rows.velocity(model, kin, free, twist_after)
    impulses = recall(rows, memory.keys, memory.impulses) if memory is not None else np.zeros(len(rows.key))
    pushes = answer[:, 1:]
    delassus, moves = rows.columns.T @ pushes, pushes[c.slot_of]
    for attempt in range(CORRECTIONS + 1):
        impulses, iterations = resolve(world, rows, delassus, velocity, impulses, h)
        v = free + moves @ impulses
        after = model.coordinates.integrate(q, v, 0.5 * h)
        beyond = _beyond(world, rows, after, v, h)
        violation = max(0.0, -beyond.min(initial=0.0))
        if violation < STRAY or attempt == CORRECTIONS or not len(rows.limits):
            break
        # a limit is met once more where the joint went, not only where it was expected to go
        near = len(rows.limits)
        rows.bound[:near] += np.maximum(-beyond[rows.limits.key], 0.0) / (0.5 * h)
    touched = rows.contacts.link[impulses[len(rows.limits) :: 3] != 0]
    memory = Memory(smooth, rows.key, impulses, touched, len(rows.contacts), iterations)
    return State(after, v, state.time + h, memory), violation


def _beyond(world: World, rows: Rows, q: np.ndarray, v: np.ndarray, h: float) -> np.ndarray:
    """The gaps of all limits where a step of `h` seconds ended, or none where it has certainly passed none."""
    reached = (rows.every.gap + 0.5 * h * rows.every.rate(v)).min(initial=0.0)
    if reached < -0.5 * STRAY or rows.limits.fast(v, h):
        return world.limits.rows(q).gap
    return np.zeros(0)


def rk4(model: Model, state: State, h: float, *, gravity: np.ndarray = GRAVITY) -> State:
    """The state `h` seconds later by the classical fourth-order Runge-Kutta rule, in the rotation vectors of each step
    (Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999); for smooth systems, without limits and
    contacts."""
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
