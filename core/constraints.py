"""The velocity-level constraint problem of a step: joint limits and contacts, gathered in one set of rows.

Distances enter as bounds too: a gap may close within the step but no further, so nothing is met before it is reached
and nothing is passed through.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .contact import Contacts, tangents
from .friction import Moments
from .islands import islands
from .kinematics import Kinematics, Motions, push
from .limits import LimitRows
from .model import Model
from .packing import Packing
from .rest import CREEP, STILL
from .rows import OnLinks, Rows, Side
from .spatial import cross, logarithm, matrix_quaternion
from .world import World

NEAR = 0.03
"""Joint limits enter the constraint solve from this far [rad or m], and from as far as two steps lead."""
RECOVERY = 0.2
"""Part of an overlap, or of what a limit was passed by, that a step removes."""
STRAIGHT = 2e-4
"""What turns by an angle in a step whose half square is less [rad²] moves straight; what hangs from n links, n times as
little."""
GENTLE = 1.0
"""Overlaps part no faster than this [m/s], however large the model."""
MANY = 750
"""Where so many rows are of contacts with what stands still none have columns: to solve for all links anew, time and
again, takes less time than their matrix."""
MOST_ROWS = 20_000
"""Their matrix has 3 GB: so many of contacts farther away than `World.size` are met by what has been flung there."""


@dataclass(frozen=True)
class Near:
    """What a step may meet: m of all the limits, `every`, and k contacts; the lowest velocities `bound` (m + k,)
    [rad/s or m/s] that limits and normals are allowed; and who still sleeps, `asleep` (slots + 1,): what comes near
    wakes."""

    every: LimitRows
    limits: LimitRows
    contacts: Contacts
    bound: np.ndarray
    asleep: np.ndarray

    def only(self, which: np.ndarray) -> Near:
        """The same with some of the contacts, `which` (k,), alone."""
        chosen = np.append(np.ones(len(self.limits), dtype=bool), which)
        return replace(self, contacts=self.contacts.only(which), bound=self.bound[chosen])

    def rows(self, world: World, kin: Kinematics) -> Rows:
        """The rows of the limits and contacts in the pose `kin`, without the curvature of contacts' paths."""
        model, every, limits, contacts, asleep = world.model, self.every, self.limits, self.contacts, self.asleep
        m, k = len(limits), len(contacts)
        moments = contacts.meeting.moments
        slots = len(model.columns.link)
        curve = np.zeros((k, 3))
        if not m + k:
            columns, island = np.zeros((slots, 0)), np.zeros(0, int)
            return Rows(
                every, limits, contacts, columns, [], self.bound, curve, limits.key, moments, island, Packing.none(0)
            )  # fmt: skip
        island = _islands(world, limits, contacts, asleep)
        sides = _sides(model, kin, contacts, moments, m) if k else []
        key = np.concatenate((limits.key, contacts.meeting.row_keys))
        if on_links := self._on_links(world, kin, island):
            awake = asleep == 0
            sides = [replace(side, wrenches=side.wrenches * awake[side.link, None, None]) for side in sides]
            packing, island, columns = Packing.none(len(key)), np.zeros_like(island), np.zeros((slots, 0))
        else:
            packing = _packed(world, limits, contacts, moments, island)
            columns = self._columns(model, kin, sides, packing)
        return Rows(
            every, limits, contacts, columns, sides, self.bound.copy(), curve, key, moments, island, packing, on_links
        )

    def columns(self, model: Model, kin: Kinematics) -> np.ndarray:
        """Unit impulses (slots, m + 3k) of limits and contacts, without moments, on the freedom slots."""
        m = len(self.limits)
        sides = _sides(model, kin, self.contacts, Moments(), m)
        return self._columns(model, kin, sides, Packing.none(m + 3 * len(self.contacts)))

    def _columns(self, model: Model, kin: Kinematics, sides: list[Side], packing: Packing) -> np.ndarray:
        """The columns (slots, width) of limits and `sides`, where `packing` says."""
        limits = self.limits
        columns = np.zeros((len(model.columns.link) + 1, packing.width))
        # what a limit does not need of its three freedoms lands in a row of its own
        columns[model.columns.slot_or_none.take(limits.freedoms), packing.column[: len(limits), None]] = limits.weights
        columns = columns[:-1]
        for side in sides:
            at = packing.column[side.at] if packing.packed else side.at
            push(model, kin, side.link, side.wrenches, columns, at, side.against)
        if np.count_nonzero(self.asleep):
            columns[self.asleep[model.columns.owner] > 0] = 0.0
        return columns

    def _on_links(self, world: World, kin: Kinematics, island: np.ndarray) -> OnLinks | None:
        """Where limits and contacts of these islands (m + k,) have no columns, None where they are not too many."""
        contacts, m = self.contacts, len(self.limits)
        fixed = world.body[contacts.other] < 0
        own, others = fixed.nonzero()[0], (~fixed).nonzero()[0]
        if 3 * len(own) < MANY or 3 * np.bincount(island[m + own]).max() < MANY:
            return None
        # these ask for elements of the matrix
        if len(world.loops) or world.grips or np.count_nonzero(contacts.restitution):
            return None
        if len(contacts.meeting.row_keys) > 3 * len(contacts):
            return None
        among = self.only(~fixed)
        return OnLinks(own, others, lambda which: among.only(which).columns(world.model, kin))


def gather(
    world: World, kin: Kinematics, moving: Motions, turning: np.ndarray, q: np.ndarray, v: np.ndarray, h: float,
    asleep: np.ndarray, knocked: np.ndarray | float = 0.0,
) -> Near:  # fmt: skip
    """The limits and contacts that a step of `h` seconds from joint coordinates `q` (nq,) with velocities `v` (nv,) may
    meet, where those were `asleep` (slots + 1,).

    `turning` (links, 6) are the links' bias accelerations within their clusters, `knocked` (slots,) the speeds [m/s]
    that earlier attempts at the step have shown contacts to give. Raises LinAlgError for more than MOST_ROWS of what is
    far.
    """
    model = world.model
    every = world.limits.rows(q)
    near = every.gap < NEAR - 2.0 * h * np.minimum(every.rate(v), 0.0)
    contacts, asleep = _contacts(world, kin, moving, h, asleep, knocked)
    if np.count_nonzero(asleep):
        near &= asleep[model.columns.link[model.columns.slot_of[every.freedoms[:, 0]]]] == 0
    limits = every.select(near)
    m, k = len(limits), len(contacts)
    if 3 * k > MOST_ROWS and 3 * np.count_nonzero(contacts.gap > world.size) > MOST_ROWS:
        raise np.linalg.LinAlgError(f"a step may meet {k} contacts from far away; take shorter steps")
    bound = np.empty(m + k)
    bound[:m] = (np.minimum(-limits.gap, 0.0) - world.limits.bend(limits, q, v, h)) / h
    bound[m:] = leaving(world, contacts.gap, h) + _swung(world, kin, moving, turning, contacts, h)
    return Near(every, limits, contacts, bound, asleep)


def leaving(world: World, gap: np.ndarray, h: float) -> np.ndarray:
    """The lowest velocities (k,) that gaps (k,) allow in `h` seconds; overlaps part by velocity, slowly, where passed
    limits are restored by the step."""
    parting = np.maximum(-RECOVERY / h * gap, 0.0)
    return np.minimum(-gap, 0.0) / h + np.minimum(parting, min(world.slow() or world.size, GENTLE))


def _islands(world: World, limits: LimitRows, contacts: Contacts, asleep: np.ndarray) -> np.ndarray:
    """The islands (m + k,) of limits and contacts; what sleeps is as good as the world."""
    if world.bodies == 1:
        return np.zeros(len(limits) + len(contacts), dtype=np.intp)
    columns = world.model.columns
    body = np.where(asleep > 0, -1, world.body)
    own = body[columns.link[columns.slot_of[limits.freedoms[:, 0]]]]
    sides = np.concatenate(((own, own), (body[contacts.link], body[contacts.other])), axis=1)
    return islands(sides.T)


def _packed(world: World, limits: LimitRows, contacts: Contacts, moments: Moments, island: np.ndarray) -> Packing:
    """Where the rows of limits and contacts of so many islands stand; loops join bodies beyond these."""
    if world.bodies == 1 or len(world.loops) or not island.any():
        more = 2 * len(moments.rolling_owner) + len(moments.torsion_owner)
        return Packing.none(len(limits) + 3 * len(contacts) + more)
    own = island[len(limits) :]
    rows = np.concatenate(
        (island[: len(limits)], own.repeat(3), own[moments.rolling_owner].repeat(2), own[moments.torsion_owner])
    )
    columns = world.model.columns
    of_body = np.full(world.body.max() + 2, -1)
    of_body[world.body[contacts.other]] = of_body[world.body[contacts.link]] = own
    of_body[world.body[columns.link[columns.slot_of[limits.freedoms[:, 0]]]]] = island[: len(limits)]
    of_body[-1] = -1
    return Packing.of(rows, of_body[world.body[columns.owner]])


def _contacts(
    world: World, kin: Kinematics, moving: Motions, h: float, asleep: np.ndarray, knocked: np.ndarray | float
) -> tuple[Contacts, np.ndarray]:
    """The contacts that may be met within `h` seconds, and who sleeps on."""
    if not world.collider:
        return Contacts.none(), asleep
    linear, turning = world.speeds(kin, moving)
    margin = 1.5 * h * (turning + knocked) + world.room(h)
    travel = 1.5 * h * linear
    if not np.count_nonzero(asleep):
        return world.collider.contacts(kin.poses, margin, None, travel), asleep
    speeds = turning + np.sqrt((linear * linear).sum(axis=1))
    lively = np.append(speeds > np.where(world.keyed_slots, CREEP, STILL) * world.slow(), False)
    while True:
        # what is keyed but does not move is as still as the world
        still = (asleep > 0) | np.append(world.keyed_slots & ~lively[:-1], True)
        contacts = world.collider.contacts(kin.poses, margin, still, travel)
        groups = np.stack((asleep[contacts.link], asleep[contacts.other]))
        woken = groups[:, lively[contacts.link] | lively[contacts.other]]
        if not woken.any():
            return contacts, asleep
        asleep = np.where(np.isin(asleep, woken[woken > 0]), 0, asleep)


def _swung(
    world: World, kin: Kinematics, moving: Motions, turning: np.ndarray, contacts: Contacts, h: float
) -> np.ndarray:
    """How much faster gaps close (k,) [m/s] within `h` seconds as links turn, with accelerations `turning` within their
    clusters: a swung foot comes down on a curve. Long chains have `curving` instead."""
    if not len(contacts) or world.is_long or 0.5 * (h * np.abs(moving.links[:, :3]).max()) ** 2 <= STRAIGHT:
        return np.zeros(len(contacts))
    return np.maximum(-0.5 * h * _approach(world.model, kin, moving, turning, contacts), 0.0)


def _approach(model: Model, kin: Kinematics, moving: Motions, turning: np.ndarray, contacts: Contacts) -> np.ndarray:
    """How the gaps' rates change (k,) by the links' turning alone: a swung foot comes down on a curve."""
    link, arm, twist, between = _at_contacts(model, kin, moving, contacts, contacts.center)
    bent = turning.take(link, axis=0)
    velocity = twist[:, 3:] + cross(twist[:, :3], arm)
    change = bent[:, 3:] + cross(bent[:, :3], arm) + cross(twist[:, :3], velocity)
    return _along_normals(contacts, between, change)


def parting(model: Model, kin: Kinematics, moving: Motions, contacts: Contacts) -> np.ndarray:
    """The velocities (k,) [m/s] by which contacts part, along their normals, as links are `moving`."""
    _, arm, twist, between = _at_contacts(model, kin, moving, contacts, contacts.point)
    return _along_normals(contacts, between, twist[:, 3:] + cross(twist[:, :3], arm))


def _at_contacts(
    model: Model, kin: Kinematics, moving: Motions, contacts: Contacts, place: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The links of contacts at a `place` (k, 3) of theirs, and then those that others of these touch at their points,
    which are `between` links; from where they are turned about, how they move, and `between`."""
    between = (contacts.other != model.assembly.links).nonzero()[0]
    link = contacts.link
    if len(between):
        link = np.concatenate((link, contacts.other[between]))
        place = np.concatenate((place, contacts.point[between]))
    return link, place - kin.origins.take(link, axis=0), moving.links.take(link, axis=0), between


def _along_normals(contacts: Contacts, between: np.ndarray, change: np.ndarray) -> np.ndarray:
    """From the `change` (k + b, 3) at the points of `_at_contacts` that of the contacts (k,), along their normals."""
    result = change[: len(contacts)]
    result[between] -= change[len(contacts) :]
    return np.add.reduce(contacts.normal * result, axis=-1)


def curving(
    model: Model, contacts: Contacts, kin: Kinematics, moving: Motions, later: np.ndarray, h: float
) -> np.ndarray:
    """How much faster (k, 3) [m/s], along normals and tangents, what touches gets within `h` seconds to poses `later`
    (slots, 4, 4) than it sets out, as links move on curves."""
    between = (contacts.other != model.assembly.links).nonzero()[0]
    link, place, point = contacts.link, contacts.center, contacts.point
    if len(between):
        link = np.concatenate((link, contacts.other[between]))
        place, point = (np.concatenate((x, contacts.point[between])) for x in (place, point))
    now, then = kin.poses.take(link, axis=0), later.take(link, axis=0)
    # what is round touches below its middle, however it has turned
    turn = then[:, :3, :3] @ now[:, :3, :3].swapaxes(-1, -2)
    arm = place - now[:, :3, 3]
    moved = (turn @ arm[:, :, None])[:, :, 0] + then[:, :3, 3] - place
    twist = moving.links.take(link, axis=0)
    change = (moved + cross(logarithm(matrix_quaternion(turn)), point - place)) / h
    change -= twist[:, 3:] + cross(twist[:, :3], point - kin.origins.take(link, axis=0))
    result = change[: len(contacts)]
    result[between] -= change[len(contacts) :]
    return (tangents(contacts.normal) @ result[:, :, None])[:, :, 0]


def _sides(model: Model, kin: Kinematics, contacts: Contacts, moments: Moments, first: int) -> list[Side]:
    """The impulses of the contacts' rows, which begin at row `first`, on the links and on what these touch."""
    frames, k = tangents(contacts.normal), len(contacts)
    moment = first + 3 * k
    kinds = (
        (moments.rolling_owner, slice(1, 3), moment),
        (moments.torsion_owner, slice(0, 1), moment + 2 * len(moments.rolling_owner)),
    )

    def acting(frames: np.ndarray, link: np.ndarray, against: np.ndarray, which: slice | np.ndarray) -> list[Side]:
        arm, axes = contacts.point[which] - kin.origins.take(link[which], axis=0), frames[which]
        wrenches = np.concatenate((cross(arm[:, None, :], axes), axes), axis=-1)
        rows = slice(first, moment) if which is every else _rows(first, which, 3)
        sides = [Side(link[which], against[which], wrenches, rows)]
        for owner, part, start in kinds:
            if len(owner):
                mine = np.isin(owner, np.arange(k)[which]).nonzero()[0]
                axes, own = frames[owner[mine], part], owner[mine]
                sides.append(Side(link[own], against[own], _moments(axes), _rows(start, mine, axes.shape[1])))
        return sides

    link, other, every = contacts.link, contacts.other, slice(None)
    if model.assembly.whole:
        return acting(frames, link, other, every)
    cluster = np.append(model.assembly.cluster_of, -1)
    apart = ((cluster[link] != cluster[other]) & (other != model.assembly.links)).nonzero()[0]
    sides = acting(frames, link, other, every)
    return sides + acting(-frames, other, np.full(len(other), -1), apart) if len(apart) else sides


def _rows(first: int, which: np.ndarray, width: int) -> np.ndarray:
    """The rows of some units that have `width` of them each."""
    return (first + width * which[:, None] + np.arange(width)).reshape(-1)


def _moments(axes: np.ndarray) -> np.ndarray:
    """Unit moments (k, w, 6) about `axes` (k, w, 3)."""
    return np.concatenate((axes, np.zeros_like(axes)), axis=-1)


def recall(key: np.ndarray, keys: np.ndarray, impulses: np.ndarray) -> np.ndarray:
    """The `impulses` (old rows,) of rows `keys` (old rows,) where these are among those of a `key` (rows,), else
    zero (rows,)."""
    if not len(keys):
        return np.zeros(len(key))
    if len(keys) == len(key) and (keys == key).all():
        return impulses
    order = keys.argsort()
    known = keys[order]
    place = np.minimum(known.searchsorted(key), len(known) - 1)
    return np.where(known[place] == key, impulses[order[place]], 0.0)
