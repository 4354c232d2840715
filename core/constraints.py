"""The velocity-level constraint problem of a step: joint limits and contacts, gathered in one set of rows.

A row is a unit impulse: how it pushes the freedom slots, and which velocity it is to keep from falling below a bound.
Distances enter as bounds too: a gap may close within the step but no further, so nothing is met before it is reached
and nothing is passed through.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .contact import Contacts, tangents
from .friction import Outcome, energy, guard, solve
from .kinematics import Kinematics, Motions, motions, push
from .limits import LimitRows
from .model import Model
from .spatial import cross
from .world import World

NEAR = 0.03
"""Joint limits enter the constraint solve from this far [rad or m], and from as far as two steps lead."""
RECOVERY = 0.2
"""Part of an overlap, or of what a limit was passed by, that a step removes."""
EXACT, ENOUGH = 1e-5, 1e-4
"""The residuals that the solver aims at and stops trying hard at, as shares of the fastest approach, where there is
friction; without, digits are cheap."""
BOUNCE = 0.1
"""Contacts that approach more slowly than this times `World.slow` do not bounce."""


@dataclass(frozen=True)
class Rows:
    """m limit rows, then three rows (normal, two tangents) for each of k contacts.

    `columns` (slots, rows): unit impulses on the freedom slots. `wrenches` (k, 3, 6) of the contacts about their
    clusters' origins. `bound` (m + k,) [rad/s or m/s]: the lowest allowed velocity of limits and normals. `key` (rows,)
    recognises a row in the next step.
    """

    every: LimitRows
    limits: LimitRows
    contacts: Contacts
    columns: np.ndarray
    wrenches: np.ndarray
    bound: np.ndarray
    key: np.ndarray

    def velocity(self, model: Model, kin: Kinematics, v: np.ndarray, keyed: np.ndarray | None) -> np.ndarray:
        """The rows' velocities (rows,) at joint velocities `v` (nv,) and twists of keyed links (n, 6)."""
        if not len(self.key):
            return np.zeros(0)
        if keyed is None and not len(model.assembly.joint_cluster):
            return np.append(v, 0.0).take(model.columns.velocity) @ self.columns
        twists = motions(model, kin, v, keyed).links[self.contacts.link]
        contacts = (self.wrenches @ twists[:, :, None]).reshape(-1)
        return np.concatenate((self.limits.rate(v), contacts))


def gather(
    world: World, kin: Kinematics, moving: Motions, turning: np.ndarray, q: np.ndarray, v: np.ndarray, h: float
) -> Rows:
    """The limits and contacts that a step of `h` seconds from joint coordinates `q` (nq,) with velocities `v` (nv,) may
    meet. `turning` (links, 6) are the links' bias accelerations."""
    model = world.model
    every = world.limits.rows(q)
    limits = every.select(every.gap < NEAR - 2.0 * h * np.minimum(every.rate(v), 0.0))
    contacts = _contacts(world, kin, moving, h)
    m, k = len(limits), len(contacts)
    slots = len(model.columns.link)
    if not m + k:
        return Rows(every, limits, contacts, np.zeros((slots, 0)), np.zeros((0, 3, 6)), np.zeros(0), limits.key)
    columns = np.zeros((slots + 1, m + 3 * k))
    if m:
        # what a limit does not need of its three freedoms lands in a row of its own
        columns[np.append(model.columns.slot_of, slots).take(limits.freedoms), np.arange(m)[:, None]] = limits.weights
    columns = columns[:-1]
    wrenches = np.zeros((0, 3, 6))
    gap, bend = limits.gap, world.limits.bend(limits, q, v, h)
    if k:
        wrenches = _push(model, kin, contacts, columns[:, m:])
        gap = np.concatenate((gap, contacts.gap))
        swing = 0.5 * h * h * np.minimum(_approach(model, kin, moving, turning, contacts), 0.0)
        bend = np.concatenate((bend, swing))
    bound = (np.minimum(-gap, 0.0) - bend) / h
    # overlaps part by velocity, slowly; passed limits are restored by the step
    bound[m:] += np.clip(-RECOVERY * gap[m:] / h, 0.0, world.slow())
    key = (3 * contacts.key[:, None] + np.arange(3)).reshape(-1) + len(world.limits)
    return Rows(every, limits, contacts, columns, wrenches, bound, np.concatenate((limits.key, key)))


def _contacts(world: World, kin: Kinematics, moving: Motions, h: float) -> Contacts:
    """The contacts that may be met within `h` seconds."""
    if not world.scenery:
        return Contacts.none()
    fall = h * np.abs(world.gravity).max()
    return world.collider.contacts(kin.poses[:-1], h * (1.5 * world.speeds(kin, moving) + fall) + 0.004 * world.size)


def _approach(model: Model, kin: Kinematics, moving: Motions, turning: np.ndarray, contacts: Contacts) -> np.ndarray:
    """How the gaps' rates change (k,) by the links' turning alone: a swung foot comes down on a curve."""
    arm = contacts.center - kin.origin[model.assembly.cluster_of[contacts.link]]
    twist, change = moving.links[contacts.link], turning[contacts.link]
    velocity = twist[:, 3:] + cross(twist[:, :3], arm)
    acceleration = change[:, 3:] + cross(change[:, :3], arm) + cross(twist[:, :3], velocity)
    return (contacts.normal * acceleration).sum(-1)


def _push(model: Model, kin: Kinematics, contacts: Contacts, columns: np.ndarray) -> np.ndarray:
    """Fills in the contacts' `columns` (slots, 3k) and returns their wrenches (k, 3, 6)."""
    frames = tangents(contacts.normal)
    arm = contacts.point - kin.origin[model.assembly.cluster_of[contacts.link]]
    wrenches = np.concatenate((cross(arm[:, None, :], frames), frames), axis=-1)
    push(model, kin, contacts.link, wrenches, columns)
    return wrenches


def recall(rows: Rows, keys: np.ndarray, impulses: np.ndarray) -> np.ndarray:
    """The `impulses` (old rows,) of rows `keys` (old rows,) where they are among `rows`, else zero (rows,)."""
    if not len(keys):
        return np.zeros(len(rows.key))
    order = keys.argsort()
    known = keys[order]
    place = np.minimum(known.searchsorted(rows.key), len(known) - 1)
    return np.where(known[place] == rows.key, impulses[order[place]], 0.0)


def resolve(
    world: World, rows: Rows, delassus: np.ndarray, velocity: np.ndarray, warm: np.ndarray, h: float
) -> tuple[np.ndarray, int]:
    """Impulses (rows,) that keep every row at its bound, with friction and restitution, and the solver's iterations.

    `delassus` (rows, rows) is what the rows' velocities (rows,) gain by unit impulses; `warm` (rows,) a guess.
    """
    m, k = len(rows.limits), len(rows.contacts)
    if not m + k:
        return np.zeros(0), 0
    normal = np.concatenate((np.arange(m), m + 3 * np.arange(k)))

    exact, enough = (EXACT, ENOUGH) if k else (EXACT**2, EXACT**2)

    def keep(bound: np.ndarray, guess: np.ndarray) -> tuple[np.ndarray, Outcome]:
        u = velocity.copy()
        u[normal] -= bound
        return solve(delassus, u, rows.contacts.friction, limits=m, warm=guess, tolerance=exact, sufficient=enough)

    impulses, outcome = keep(rows.bound, warm)
    bounce = np.where(impulses[m::3] > 0, _bounce(world, rows, velocity[m::3], h), 0.0)
    if bounce.any():
        lively = np.concatenate((rows.bound[:m], np.maximum(rows.bound[m:], bounce)))
        impulses, outcome = keep(lively, impulses)
    if energy(delassus, velocity, impulses) > 0.0:
        # what parts overlaps or bounces must not bring in energy
        impulses = guard(delassus, velocity, impulses, keep(np.minimum(rows.bound, 0.0), impulses)[0])
    return impulses, outcome.iterations


def _bounce(world: World, rows: Rows, approach: np.ndarray, h: float) -> np.ndarray:
    """The velocities (k,) with which contacts that are met leave again, from their free velocities at the step's end.

    A contact is met up to a step early, at a height of its gap, and is left by then: the velocity is what gives the end
    of the step the energy that restitution leaves of the impact's.
    """
    contacts = rows.contacts
    weight = np.maximum(-contacts.normal @ world.gravity, 0.0)
    gap = np.maximum(contacts.gap, 0.0)
    half = 0.5 * h * weight
    middle = approach + half
    # the middle's position lies half of half² / weight above the parabola of the fall
    impact = middle * middle - half * half + 2.0 * weight * gap
    kept = contacts.restitution**2 * impact - 2.0 * weight * gap
    return np.where(
        (approach > -BOUNCE * world.slow()) | (kept <= 0.0), 0.0, np.sqrt(np.maximum(half * half + kept, 0.0)) - half
    )
