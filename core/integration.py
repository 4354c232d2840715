"""Steps in time.

The default step is Moreau's midpoint rule: half a step of motion, one constraint solve for the new velocities there,
half a step with those. It is second order where motion is smooth, exact for ballistic flight, implicit in springs and
dampers, and needs one pass of dynamics. Integrators for smooth systems are in smooth.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from .closing import ALMOST, PROJECTIONS, close
from .constraints import RECOVERY, STRAIGHT, Rows, curving, gather, leaving, recall
from .contact import Contacts
from .dynamics import Solution, respond
from .kinematics import Kinematics, Motions, bias, kinematics, link_poses, motions
from .limits import LimitRows
from .loops import Hold, LeastNorm, loop_rows
from .model import State
from .packing import Packing
from .response import resolve
from .revision import FAINT, NOISE, REVISIONS, FixedPoint, strays, wrong
from .spatial import exponential, pose, quaternion_matrix
from .world import World

STRAY = 0.008
"""A step that passes a joint limit by more than this [rad or m] is taken again in halves,"""
HALVINGS, HASTES = 9, 4
"""and those again, HALVINGS less HASTES times;"""
KNOCKS = 5
"""A step is taken anew so often where links knock others so hard that these may meet more than was looked for;"""
CORRECTIONS = 2
"""but first its constraints are solved again so often."""
TINY = 1e-300
BRIEF = 1e-9
"""A step so short [s] changes velocities only."""
EARLY = 0.05
"""A step that stops something farther than this times `World.size` from what it would meet is taken in halves, and
those again, HALVINGS times."""
CLOSE = 0.002
"""What moves no farther than this times `World.size` passes through nothing."""


@dataclass(frozen=True)
class Memory:
    """What a step of `h` seconds leaves to the next: the smooth acceleration (nv,), what `lasting`
    contacts and limits that pressed in two steps add to it (nv,), the impulses of recognised rows,
    who is `asleep`, as in `Rest.asleep`, and the `way` of half a step with the velocities `v` it ended with (nv,), as
    in `Coordinates.way`; and to who asks: the pairs of slots that `touched` (t, 2), with the world for what sleeps, the
    contacts and their impulses along normals and tangents (k, 3), the solver's iterations and residual, see `solve`,
    and of loops the loads (l, 6), torque and force on their real links along the world's axes, and how many of their
    rows are independent."""

    smooth: np.ndarray
    lasting: np.ndarray
    keys: np.ndarray
    impulses: np.ndarray
    asleep: np.ndarray
    touched: np.ndarray
    contacts: Contacts
    pushes: np.ndarray
    h: float
    iterations: int
    residual: float
    v: np.ndarray
    way: tuple[np.ndarray, np.ndarray]
    loads: np.ndarray = field(default_factory=lambda: np.zeros((0, 6)))
    rank: int = 0


def step(world: World, state: State, h: float, halvings: int = HALVINGS) -> State:
    """The state `h` seconds later.

    Limits enter a step as straight rows, and what is met within it as a plane; where a fast joint leaves its curved
    range in spite of them, something is met so early that it may pass beside, or a long chain's way is not told by one
    (see revision.py), the step is taken again as two of half the length.
    """
    braked = _braked(world, state, h)
    if halvings == 0 or braked is state or not _early(world, braked):
        after = _at_once(world, state, braked, h, halvings)
        if after is not None:
            return after if braked is state else _touching(after, braked)
    middle = step(world, state, 0.5 * h, halvings - 1)
    after = step(world, middle, 0.5 * h, halvings - 1)
    return _touching(after, middle)


def _at_once(world: World, state: State, braked: State, h: float, halvings: int) -> State | None:
    """The state after one step from a state, `braked`; None if it is to be taken in halves."""
    try:
        after, violation, closed, told = _looking(world, braked, h)
    except np.linalg.LinAlgError:
        if halvings > HASTES:
            return None
        raise
    curved = violation >= STRAY and violation > world.limits.violation(state.q)
    hasty = halvings > HASTES and (curved or not told)
    if halvings and (hasty or _early(world, after)):
        return None
    if not closed:
        given = world.given(after.time)
        q = close(world.model, after.q, world.loops, given, iterations=PROJECTIONS, enough=ALMOST)
        after = replace(after, q=q)
    return after


def _looking(world: World, state: State, h: float) -> tuple[State, float, bool, bool]:
    """A step, and whatever `_advance` says of it, in which all was looked for that is met."""
    knocked: np.ndarray | float = 0.0
    for _ in range(KNOCKS):
        *result, faster = _advance(world, state, h, knocked)
        if faster is None:
            break
        knocked = np.maximum(knocked, faster)
    return tuple(result)


def _touching(state: State, before: State) -> State:
    """The state, whose step has also touched what the one `before` did."""
    touched = np.concatenate((before.memory.touched, state.memory.touched))
    return replace(state, memory=replace(state.memory, touched=touched))


def _early(world: World, state: State) -> bool:
    """Whether the step to a state has stopped something long before it touches: it might have passed beside."""
    memory = state.memory
    if memory is None:
        return False
    far = memory.contacts.gap > EARLY * world.size
    return bool(np.count_nonzero(far) and np.count_nonzero(memory.pushes[far, 0] > 0.0))


def _braked(world: World, state: State, h: float) -> State:
    """The state with velocities that lead through nothing in the first half of a step of `h` seconds.

    A step looks as far ahead as to the middle of one as long; what is longer, and the first, has to look for itself.
    """
    known = 0.0 if state.memory is None else state.memory.h
    if not world.collider or h <= 1.01 * known:
        return state
    given, twist, _, _ = world.keyed(state.time, h)
    kin = kinematics(world.model, state.q, given)
    fastest = world.fastest(kin, motions(world.model, kin, state.v, twist)).max()
    if 0.5 * (h - known) * fastest < CLOSE * world.size:
        return state
    look = _advance(world, state, BRIEF, ahead=0.5 * h)[0]
    seen = look.memory
    # what so short a step says of accelerations and loads is nothing
    nothing = np.zeros_like(state.v)
    memory = state.memory or replace(seen, smooth=nothing, lasting=nothing, loads=np.zeros((0, 6)), rank=0)
    memory = replace(memory, touched=seen.touched, contacts=seen.contacts, pushes=seen.pushes)
    return replace(state, v=look.v, memory=memory)


def _recovered(world: World, q: np.ndarray, limits: LimitRows) -> np.ndarray:
    """The joint coordinates with passed limits partly restored, in place and not by velocity, which would bring in
    energy."""
    past = limits.select(limits.gap < 0.0)
    back = past.weights * (-RECOVERY * past.gap / np.maximum((past.weights**2).sum(axis=1), TINY))[:, None]
    move = np.zeros(world.model.nv + 1)
    np.add.at(move, past.freedoms, back)
    return world.model.coordinates.integrate(q, move[:-1], 1.0)


def _recovered_in_loops(
    world: World, rows: Rows, delassus: np.ndarray, moves: np.ndarray, q: np.ndarray, limits: LimitRows
) -> np.ndarray:
    """The same where loops are closed: along the limits' own answers, which keep the loops so in the first order.
    Moved one by one, joints would open the loops, and closing these would move others beyond their limits."""
    gap = limits.gap[rows.limits.key]
    past = np.flatnonzero(gap < 0.0)
    if not len(past):
        return q
    apart = -RECOVERY * gap[past]
    push = np.linalg.lstsq(delassus[np.ix_(past, past)], apart, rcond=1e-10)[0]
    return world.model.coordinates.integrate(q, moves[:, past] @ np.maximum(push, 0.0), 1.0)


def _advance(
    world: World, state: State, h: float, knocked: np.ndarray | float = 0.0, ahead: float | None = None
) -> tuple[State, float, bool, bool, np.ndarray | None]:
    """The state after one step, from whose middle on nothing is passed for `ahead` seconds, by default as many, how far
    beyond its limit [rad or m] the worst joint is that may have passed it, whether all loops are closed, whether it
    tells where long chains go, and speeds as `_knocked` gives them; `knocked` are those of the attempts before."""
    model, c = world.model, world.model.columns
    memory = state.memory
    middle = state.time + 0.5 * h
    # what led to the end of the last step leads to the middle of this
    known = memory is not None and memory.h == h and memory.v is state.v
    q = model.coordinates.moved(state.q, *(memory.way if known else model.coordinates.way(state.v, 0.5 * h)))
    given, twist, twist_after, change = world.keyed(middle, h)
    kin = kinematics(model, q, given)
    expected = state.v if memory is None else state.v + 0.5 * h * memory.smooth
    moving = motions(model, kin, expected, twist)
    wrenches = heavier = None
    if acting := world.acting:
        start = motions(model, kin, state.v, twist).links if any(each.resists for each in acting) else None
        parts = [each.on_links(model, kin, start, moving.links, middle, h) for each in acting]
        wrenches, heavier = (reduce(np.add, part) for part in zip(*parts))
    natural, links, across = bias(model, kin, moving, world.gravity, wrenches, change)
    leading, bent, meant = moving, links, expected
    if memory is not None and np.count_nonzero(memory.lasting):
        # what presses on and on lets motion go on otherwise than alone
        meant = expected + 0.5 * h * memory.lasting
        if strays(world, meant, meant - expected, h) > FAINT:
            leading = motions(model, kin, meant, twist)
            natural, bent, across = bias(model, kin, leading, world.gravity, wrenches, change)
    force, resistance = world.drive(q, state.v, h, middle)
    natural[c.slot_of] += force
    asleep = memory.asleep if memory is not None else np.zeros(model.assembly.links + 1, dtype=int)
    rows, asleep = gather(world, kin, moving, links, q, expected, ahead or h, asleep, knocked)
    if ahead is None:
        _bend(world, rows, kin, moving, q, 2.0 * meant - state.v, h, given, twist_after)
    sleeps = (asleep[c.owner] > 0).nonzero()[0] if np.count_nonzero(asleep) else None
    if sleeps is not None:
        natural[sleeps] = 0.0
    closing = loop_rows(model, kin, world.loops) if len(world.loops) else None
    forces = np.concatenate((natural[:, None], rows.columns, *((closing.columns,) if closing else ())), axis=1)
    loads = np.zeros((0, 6)) if memory is None else memory.loads
    heavy = world.taut(kin, h, loads)
    if heavier is not None:
        heavy = replace(heavy, inertia=heavy.inertia + heavier)
    kept = {} if world.grips else None
    answer = respond(model, heavy, resistance, forces, bent, across, kept)
    width, packing = rows.columns.shape[1], rows.packing
    alone, pushes = answer[:, 0], answer[:, 1 : 1 + width]
    hold, coupling, pull = None, np.zeros((0, len(rows.key))), np.zeros(0)
    if closing:
        hold = Hold.of(closing, answer[:, 1 + width :], h)
        coupling = hold.coupling(pushes)
        pushes = pushes + hold.pulls @ coupling
    known = recall(rows, memory.keys, memory.impulses) if memory is not None else np.zeros(len(rows.key))
    delassus, moves = packing.together(rows.columns, pushes), pushes.take(c.slot_of, axis=0)
    impulses = known
    point, amiss = FixedPoint(), 0.0
    for revision in range(REVISIONS + 1):
        smooth = alone[c.slot_of]
        free = state.v + h * smooth
        if hold:
            pull = hold.impulses(closing.rate(motions(model, kin, free, twist_after).links))
            free = free + hold.pulls[c.slot_of] @ pull
            smooth = (free - state.v) / h
        velocity = rows.velocity(model, kin, free, twist_after)
        for attempt in range(CORRECTIONS + 1):
            impulses, parting, outcome = resolve(world, rows, delassus, velocity, impulses, h)
            v = free + packing.spread(moves, c.slot_of, impulses)
            way = model.coordinates.way(v, 0.5 * h)
            apart = np.count_nonzero(parting)
            if apart:
                # overlaps part by moving, and what moves so is not faster for it
                further = v + 2.0 * packing.spread(moves, c.slot_of, parting)
                after = model.coordinates.integrate(q, further, 0.5 * h)
            else:
                after = model.coordinates.moved(q, *way)
            beyond = _beyond(world, rows, after, v, h)
            violation = max(0.0, -beyond.gap.min()) if beyond else 0.0
            if violation < STRAY or attempt == CORRECTIONS or not len(rows.limits):
                break
            # a limit is met once more where the joint went, not only where it was expected to go
            near = len(rows.limits)
            rows.bound[:near] += np.maximum(-beyond.gap[rows.limits.key], 0.0) / (0.5 * h)
        # what hands feel is of the velocities that were expected
        if world.grips or not world.is_long:
            break
        halfway = 0.5 * (state.v + v)
        off = halfway - meant
        amiss = wrong(world, halfway, off, h, np.count_nonzero(impulses) > 0)
        if amiss <= 1.0 or revision == REVISIONS or point.stuck(amiss):
            break
        meant = point.next(meant, off, amiss)
        led = motions(model, kin, meant, twist)
        turned = bias(model, kin, led, world.gravity, wrenches, change)
        _bend(world, rows, kin, led, q, 2.0 * meant - state.v, h, given, twist_after)
        natural = turned[0]
        natural[c.slot_of] += force
        if sleeps is not None:
            natural[sleeps] = 0.0
        alone = respond(model, heavy, resistance, natural[:, None], *turned[1:])[:, 0]
    if world.grips:
        # what hands feel is what came out, with all that was met; bases of clusters move too, without joint velocities
        change = alone + packing.spread(pushes, np.arange(len(pushes)), impulses) / h
        if hold:
            change += hold.pulls @ pull / h
        held = _holding(hold, packing, pushes, delassus, np.flatnonzero(impulses))
        world.grips.last["solved"] = Solution(model, kin, leading, change, bent, kept, **held)
    pushes = impulses[rows.contact_rows].reshape(-1, 3)
    met = pushes[:, 0] != 0.0
    if apart:
        met |= parting[rows.normals] != 0.0
    touched = rows.contacts.pairs(met)
    if np.count_nonzero(asleep):
        resting = np.flatnonzero(asleep)
        lying = np.stack((resting, np.full(len(resting), model.assembly.links)), axis=1)
        touched = np.concatenate((touched, lying))
    lasting = np.zeros_like(v)
    if (world.is_long or world.grips) and memory is not None and memory.h > BRIEF and np.count_nonzero(known):
        before = known * (h / memory.h)
        steady = np.where(impulses * before > 0.0, np.minimum(np.abs(impulses), np.abs(before)), 0.0)
        lasting = packing.spread(moves, c.slot_of, np.copysign(steady, impulses)) / h
    memory = Memory(
        smooth, lasting, rows.key, impulses, asleep, touched, rows.contacts, pushes, h, outcome.iterations,
        outcome.residual, v, way,
    )  # fmt: skip
    closed = True
    if violation > 0.0 and not hold:
        after = _recovered(world, after, beyond)
    if hold:
        if violation > 0.0:
            after = _recovered_in_loops(world, rows, delassus, moves, after, beyond)
        after, closed = hold.closed(model, after, world.given(state.time + h))
        violation = world.limits.violation(after)
        memory = replace(memory, loads=closing.wrenches((pull + coupling @ impulses) / h), rank=hold.norm.rank)
    faster = None
    if len(pushes) and h * np.abs(v - expected).max() * max(world.size, 1.0) > world.room(h):
        faster = _knocked(world, kin, moving, motions(model, kin, v, twist_after), knocked, h)
    return State(after, v, state.time + h, memory), violation, closed, amiss <= NOISE, faster


def _bend(
    world: World, rows: Rows, kin: Kinematics, moving: Motions, q: np.ndarray, v: np.ndarray, h: float,
    given: np.ndarray | None, twist: np.ndarray | None,
) -> None:  # fmt: skip
    """Has contacts of long chains meet what moves on curves where they are worth it: until the middle of the next step,
    as long as this of `h` seconds, joints move on with velocities `v` (nv,), and keyed links with twists (n, 6) from
    where they are `given`."""
    if not len(rows.contacts) or not world.is_long:
        return
    model, turn = world.model, h * max(float(np.abs(moving.links[:, :3]).max()), world.bent(v))
    if 0.5 * world.deepest * turn * turn <= STRAIGHT and not rows.curve.any():
        return
    if given is not None:
        given = given @ pose(quaternion_matrix(exponential(h * twist[:, :3])), h * twist[:, 3:])
    later = link_poses(model, model.coordinates.moved(q, *model.coordinates.way(v, h)), given)[0]
    curve = curving(model, rows.contacts, kin, motions(model, kin, v, twist), later, h)
    # half a step before and after its end, what slides on a surface is as far off that as it curves away meanwhile
    rows.bend(curve, leaving(world, rows.contacts.gap - 0.25 * h * curve[:, 0], h))


def _holding(hold: Hold | None, packing: Packing, pushes: np.ndarray, delassus: np.ndarray, met: np.ndarray) -> dict:
    """What of a `Solution` tells how loops answer further forces, and the rows `met` (m,), limits and contacts that
    press: for a moment these hold like loops do."""
    inverse, columns = np.zeros((0, 0)), np.zeros((len(pushes), 0))
    if hold:
        inverse, columns = hold.norm.inverse, hold.pulls
    r, m = len(inverse), len(met)
    if r + m == 0:
        return {}
    among = LeastNorm.of(delassus[np.ix_(met, met)])
    both = np.zeros((r + m, r + m))
    both[:r, :r], both[r:, r:] = inverse, among.inverse
    columns = np.concatenate((columns, packing.apart(pushes, met)), axis=1)
    return {"pulls": columns, "held": np.arange(r + m), "norm": LeastNorm(both, among.rank)}


def _knocked(
    world: World, kin: Kinematics, moving: Motions, after: Motions, knocked: np.ndarray | float, h: float
) -> np.ndarray | None:
    """The speeds (slots,) after a step of links that go farther in it than contacts were looked for, or None if there
    are none such; `knocked` as far as they were known."""
    speeds = world.fastest(kin, after)
    late = speeds > 1.5 * (world.fastest(kin, moving) + knocked) + world.room(h) / h
    return np.where(late, speeds, 0.0) if late.any() else None


def _beyond(world: World, rows: Rows, q: np.ndarray, v: np.ndarray, h: float) -> LimitRows | None:
    """All limits where a step of `h` seconds ended, or None where it has certainly passed none."""
    reached = rows.every.gap + 0.5 * h * rows.every.rate(v)
    if np.count_nonzero(reached < -0.5 * STRAY) or rows.limits.fast(v, h):
        return world.limits.rows(q)
    return None
