"""Steps in time.

The default step is Moreau's midpoint rule: half a step of motion, one constraint solve for the new velocities there,
half a step with those. It is second order where motion is smooth, exact for ballistic flight, implicit in springs and
dampers, and needs one pass of dynamics. Integrators for smooth systems are in smooth.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from .answers import Answers
from .closing import ALMOST, PROJECTIONS, close
from .constraints import RECOVERY, Near, gather, recall
from .contact import Contacts
from .dynamics import Solution
from .friction import Outcome
from .kinematics import Motions, kinematics, motions
from .limits import LimitRows
from .middle import Middle
from .model import State
from .pressing import grown, may_press, missed
from .response import resolve
from .revision import FAINT, NOISE, REVISIONS, FixedPoint, strays, wrong
from .rows import Rows
from .spatial import TINY
from .world import World

STRAY = 0.008
"""A step that passes a joint limit by more than this [rad or m] is taken again in halves,"""
HALVINGS, HASTES = 9, 4
"""and those again, HALVINGS less HASTES times;"""
MISSES = 4
"""After so many solutions with what may press that missed some of it, each is with twice as much."""
KNOCKS = 5
"""A step is taken anew so often where links knock others so hard that these may meet more than was looked for;"""
CORRECTIONS = 2
"""but first its constraints are solved again so often."""
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


def _recovered_in_loops(world: World, answers: Answers, q: np.ndarray, limits: LimitRows) -> np.ndarray:
    """As `_recovered` where loops are closed: along the limits' own responses, which keep the loops so in the first
    order. Moved one by one, joints would open the loops, and closing these would move others beyond their limits."""
    gap = limits.gap[answers.rows.limits.key]
    past = np.flatnonzero(gap < 0.0)
    if not len(past):
        return q
    apart = -RECOVERY * gap[past]
    push = np.linalg.lstsq(answers.delassus[np.ix_(past, past)], apart, rcond=1e-10)[0]
    return world.model.coordinates.integrate(q, answers.moves[:, past] @ np.maximum(push, 0.0), 1.0)


@dataclass(frozen=True)
class Ending:
    """How a step ends: the joints' velocities `v` (nv,), the `way` of half a step with them and coordinates `q` (nq,)
    there. The rows' `impulses` (rows,), those that are missing to part overlaps, `parting` (rows,), the velocities
    (nv,) with each of the `solutions` that they are made of, and the solver's `outcome`; `smooth` (nv,) the
    acceleration without them and `pull` (r,) the impulses of loops. The limits `beyond` which joints may be, and by how
    much at most, `violation`."""

    v: np.ndarray
    way: tuple[np.ndarray, np.ndarray]
    q: np.ndarray
    impulses: np.ndarray
    parting: np.ndarray
    solutions: list[np.ndarray]
    outcome: Outcome
    smooth: np.ndarray
    pull: np.ndarray
    beyond: LimitRows | None
    violation: float


def _advance(
    world: World, state: State, h: float, knocked: np.ndarray | float = 0.0, ahead: float | None = None
) -> tuple[State, float, bool, bool, np.ndarray | None]:
    """The state after one step, from whose middle on nothing is passed for `ahead` seconds, by default as many, how far
    beyond its limit [rad or m] the worst joint is that may have passed it, whether all loops are closed, whether it
    tells where long chains go, and speeds as `_knocked` gives them; `knocked` are those of the attempts before."""
    model, memory, middle = world.model, state.memory, Middle.of(world, state, h)
    leading, meant = middle.moving, middle.expected
    forces = middle.forces(leading)
    turning = forces[1]
    if memory is not None and np.count_nonzero(memory.lasting):
        # what presses on and on lets motion go on otherwise than alone
        meant = middle.expected + 0.5 * h * middle.lasting
        if strays(world, meant, meant - middle.expected, h) > FAINT:
            leading = middle.led(meant)
            forces = middle.forces(leading)
    asleep = memory.asleep if memory is not None else np.zeros(model.assembly.links + 1, dtype=int)
    near = gather(
        world, middle.kin, middle.moving, turning, middle.q, middle.expected, ahead or h, asleep, knocked
    )  # fmt: skip
    ending, answers, amiss, presses = _meeting(middle, near, forces, meant, curved=ahead is None)
    if world.grips:
        # what hands feel is what came out, with all that was met; bases of clusters move too, without joint velocities
        change = answers.accelerations(ending.impulses, ending.pull)
        held = answers.held(np.flatnonzero(ending.impulses))
        solved = Solution(model, middle.kin, leading, change, forces[1], answers.kept, **held)
        world.grips.last["solved"] = solved
    kept = _remembered(answers, ending, near, presses)
    hold, q, violation, closed = answers.hold, ending.q, ending.violation, True
    if violation > 0.0:
        q = _recovered_in_loops(world, answers, q, ending.beyond) if hold else _recovered(world, q, ending.beyond)
    if hold:
        q, closed = hold.closed(model, q, world.given(state.time + h))
        violation = world.limits.violation(q)
    faster = None
    if len(near.contacts) and h * np.abs(ending.v - middle.expected).max() * max(world.size, 1.0) > world.room(h):
        faster = _knocked(middle, motions(model, middle.kin, ending.v, middle.twist_after), knocked)
    return State(q, ending.v, state.time + h, kept), violation, closed, amiss <= NOISE, faster


def _meeting(
    middle: Middle, near: Near, forces: tuple[np.ndarray, ...], meant: np.ndarray, curved: bool
) -> tuple[Ending, Answers, float, np.ndarray | None]:
    """How a step ends that meets what is `near`, as `_ended` says, and which of the contacts (k,) it was solved with,
    None for all; `curved`: on the curves that what is `meant` (nv,) leads to."""
    world, leading = middle.world, middle.moving
    presses, known = may_press(middle, near, forces, curved), _known(middle)
    for misses in count():
        rows = (near if presses is None else near.only(presses)).rows(world, middle.kin)
        if curved:
            middle.bend(rows, leading, meant)
        answers = Answers.of(middle, rows, forces, near.asleep)
        ending, answers, amiss, found = _ended(answers, meant, recall(rows.key, *known))
        if presses is None:
            break
        # what is taken back as it brings in energy lets anything approach: what was solved for tells what is missed
        late = np.max([missed(middle, near, presses, v, curved) for v in ending.solutions], axis=0)
        if not np.count_nonzero(late > 0.0):
            break
        # what knocks on along a row of links would else take as many solutions
        presses = grown(presses, late, doubled=misses >= MISSES)
        # what came out without the few that were missed is near to what comes out with them
        known = rows.key, ending.impulses
        if found is not meant and amiss <= 1.0:
            meant, leading = found, middle.led(found)
            forces = middle.forces(leading)
    return ending, answers, amiss, presses


def _known(middle: Middle) -> tuple[np.ndarray, np.ndarray]:
    """The rows that the last step had, by their keys (r,), and their impulses (r,)."""
    memory = middle.state.memory
    return (np.zeros(0, dtype=int), np.zeros(0)) if memory is None else (memory.keys, memory.impulses)


def _ended(answers: Answers, meant: np.ndarray, impulses: np.ndarray) -> tuple[Ending, Answers, float, np.ndarray]:
    """How a step ends, `impulses` (rows,) being a guess; in long chains where forces are of the velocities `meant`
    (nv,) in its middle found anew at those that come out, with the answers there, how `wrong` they still are, and the
    velocities (nv,) that they are of."""
    middle, rows = answers.middle, answers.rows
    world, h = middle.world, middle.h
    point, amiss = FixedPoint(), 0.0
    for revision in range(REVISIONS + 1):
        ending = _met(answers, impulses)
        # what hands feel is of the velocities that were expected
        if world.grips or not world.is_long:
            break
        halfway = 0.5 * (middle.state.v + ending.v)
        off = halfway - meant
        amiss = wrong(world, halfway, off, h, np.count_nonzero(ending.impulses) > 0)
        if amiss <= 1.0 or revision == REVISIONS or point.stuck(amiss):
            break
        meant, impulses = point.next(meant, off, amiss), ending.impulses
        led = middle.led(meant)
        middle.bend(rows, led, meant)
        answers = answers.to(middle.forces(led))
    return ending, answers, amiss, meant


def _met(answers: Answers, impulses: np.ndarray) -> Ending:
    """How a step ends with the limits and contacts that it meets, `impulses` (rows,) being a guess."""
    middle, rows = answers.middle, answers.rows
    world, model, h, q = middle.world, middle.world.model, middle.h, middle.q
    free, smooth, pull = answers.free()
    velocity = rows.velocity(model, middle.kin, free, middle.twist_after)
    near = len(rows.limits)
    for attempt in range(CORRECTIONS + 1):
        impulses, parting, solutions, outcome = resolve(world, rows, answers.delassus, velocity, impulses, h)
        v = free + answers.moved(impulses)
        way = model.coordinates.way(v, 0.5 * h)
        if np.count_nonzero(parting):
            # overlaps part by moving, and what moves so is not faster for it
            after = model.coordinates.integrate(q, v + 2.0 * answers.moved(parting), 0.5 * h)
        else:
            after = model.coordinates.moved(q, *way)
        beyond = _beyond(world, rows, after, v, h)
        violation = max(0.0, -beyond.gap.min()) if beyond else 0.0
        if violation < STRAY or attempt == CORRECTIONS or not near:
            break
        # a limit is met once more where the joint went, not only where it was expected to go
        rows.bound[:near] += np.maximum(-beyond.gap[rows.limits.key], 0.0) / (0.5 * h)
    reached = [free + answers.moved(each) for each in solutions] if len(solutions) > 1 else [v]
    return Ending(v, way, after, impulses, parting, reached, outcome, smooth, pull, beyond, violation)


def _remembered(answers: Answers, ending: Ending, near: Near, presses: np.ndarray | None) -> Memory:
    """What a step leaves to the next that was solved with those of the contacts `near` that `presses` (k,) says, or
    with all."""
    middle, rows, hold, asleep = answers.middle, answers.rows, answers.hold, near.asleep
    world, h, before, impulses = middle.world, middle.h, middle.state.memory, ending.impulses
    pushes = np.zeros((len(near.contacts), 3))
    pushes[slice(None) if presses is None else presses] = impulses[rows.contact_rows].reshape(-1, 3)
    pressed = impulses[rows.normals] != 0.0
    touched = rows.contacts.pairs(pressed | (ending.parting[rows.normals] != 0.0))
    if np.count_nonzero(asleep):
        resting = np.flatnonzero(asleep)
        lying = np.stack((resting, np.full(len(resting), world.model.assembly.links)), axis=1)
        touched = np.concatenate((touched, lying))
    lasting = np.zeros_like(ending.v)
    if (world.is_long or world.grips) and before is not None and before.h > BRIEF:
        then = recall(rows.key, *_known(middle)) * (h / before.h)
        steady = np.where(impulses * then > 0.0, np.minimum(np.abs(impulses), np.abs(then)), 0.0)
        lasting = answers.moved(np.copysign(steady, impulses)) / h
    memory = Memory(
        ending.smooth, lasting, rows.key, impulses, asleep, touched, near.contacts, pushes, h,
        ending.outcome.iterations, ending.outcome.residual, ending.v, ending.way,
    )  # fmt: skip
    if not hold:
        return memory
    loads = hold.rows.wrenches((ending.pull + answers.coupling @ impulses) / h)
    return replace(memory, loads=loads, rank=hold.norm.rank)


def _knocked(middle: Middle, after: Motions, knocked: np.ndarray | float) -> np.ndarray | None:
    """The speeds (slots,) after a step of links that go farther in it than contacts were looked for, or None if there
    are none such; `knocked` as far as they were known."""
    world, kin, h = middle.world, middle.kin, middle.h
    speeds = world.fastest(kin, after)
    late = speeds > 1.5 * (world.fastest(kin, middle.moving) + knocked) + world.room(h) / h
    return np.where(late, speeds, 0.0) if late.any() else None


def _beyond(world: World, rows: Rows, q: np.ndarray, v: np.ndarray, h: float) -> LimitRows | None:
    """All limits where a step of `h` seconds ended, or None where it has certainly passed none."""
    reached = rows.every.gap + 0.5 * h * rows.every.rate(v)
    if np.count_nonzero(reached < -0.5 * STRAY) or rows.limits.fast(v, h):
        return world.limits.rows(q)
    return None
