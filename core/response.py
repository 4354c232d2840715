"""How limits and contacts answer in a step: impulses that keep every row at its bound, and those of impacts."""

from __future__ import annotations

import numpy as np

from .friction import Delassus, Outcome, energy, guard
from .islands import solve_islands
from .propagation import impacts
from .rows import Rows
from .world import World

EXACT, ENOUGH = 3e-5, 1e-4
"""The residuals that the solver aims at and stops trying hard at, as shares of the fastest approach, where there is
friction;"""
FRICTIONLESS = 1e-10
"""without, digits are cheap."""
BOUNCE = 0.1
"""Contacts that approach more slowly than this times `World.slow` do not bounce."""


def resolve(
    world: World, rows: Rows, delassus: np.ndarray | Delassus, velocity: np.ndarray, warm: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], Outcome]:
    """Impulses (rows,) that keep every row at its bound, with friction and restitution, those (rows,) that would have
    to be added to part overlaps, the solutions (rows,) that they are made of, and how the solver reached them.

    `delassus` (rows, rows) is what the rows' velocities (rows,) gain by unit impulses; `warm` (rows,) a guess. What
    bounces gets the impulses of its impact first, and then whatever rests or is at its limit what that leaves to do.
    """
    m, k = len(rows.limits), len(rows.contacts)
    if not m + k:
        return np.zeros(0), np.zeros(0), [np.zeros(0)], Outcome(0, 0.0, True)
    exact, enough = (EXACT, ENOUGH) if k else (FRICTIONLESS, FRICTIONLESS)

    def keep(bound: np.ndarray, guess: np.ndarray, given: np.ndarray | None = None) -> tuple[np.ndarray, Outcome]:
        u = velocity.copy() if given is None else velocity + delassus @ given
        u[:m] -= bound[:m]
        u[rows.normals] -= bound[m:]
        return solve_islands(
            delassus, u, rows.contacts.friction, rows.island, limits=m, moments=rows.moments, warm=guess,
            tolerance=exact, sufficient=enough,
        )  # fmt: skip

    impulses, outcome = keep(rows.bound, warm)
    solutions = [impulses]
    met = (impulses[rows.normals] > 0.0) & (rows.contacts.restitution > 0.0)
    bounces = False
    if np.count_nonzero(met):
        bounced, leave = _bounced(world, rows, delassus, velocity, met, h)
        bounces = bounced.any()
        if bounces:
            bound = np.concatenate((rows.bound[:m], np.maximum(rows.bound[m:], leave)))
            rest, outcome = keep(bound, np.where(bounced == 0.0, impulses, 0.0), bounced)
            impulses = bounced + rest
            solutions.append(impulses)
    parting = np.zeros(len(impulses))
    if energy(delassus, velocity, impulses) > 0.0:
        # what parts overlaps or bounces must not bring in energy
        wanted = impulses
        solutions.append(keep(np.minimum(rows.bound, 0.0), wanted)[0])
        impulses = guard(delassus, velocity, wanted, solutions[-1])
        if not bounces and (rows.bound[m:] > 0.0).any():
            parting = wanted - impulses
    return impulses, parting, solutions, outcome


def _bounced(
    world: World, rows: Rows, delassus: np.ndarray, velocity: np.ndarray, met: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """The impulses (rows,) of the impacts of contacts `met` (k,), and the velocities (k,) with which these leave, -inf
    of those that do not.

    A contact is met up to a step early, at a height of its gap, and is left by then: it hits as fast as at the ground,
    and its velocity is what gives the end of the step the energy that the impact leaves.
    """
    contacts = rows.contacts
    own = rows.contact_rows
    # what falls together does not fall onto each other
    falls = (contacts.other == world.model.assembly.links) | np.append(world.keyed_slots, True)[contacts.other]
    weight = np.where(falls, np.maximum(-contacts.normal @ world.gravity, 0.0), 0.0)
    gap, half = np.maximum(contacts.gap, 0.0), 0.5 * h * weight
    approach = velocity[rows.normals]
    # the middle's position lies half of half² / weight above the parabola of the fall
    middle = approach + half
    impact = middle * middle - half * half + 2.0 * weight * gap
    hits = (approach < -BOUNCE * world.slow()) & (impact > 0.0)
    bounced, leave = np.zeros(len(velocity)), np.zeros(len(contacts))
    if not np.count_nonzero(met & hits):
        return bounced, leave
    G, before = delassus[own, own], velocity[own].copy()
    bound, bounces = np.minimum(rows.bound[len(rows.limits) :], 0.0), contacts.restitution > 0.0
    knocked = met
    while np.count_nonzero(knocked):
        met = met | knocked
        # what rests is still until something hits it
        before[::3] = np.where(met & hits, -np.sqrt(np.maximum(impact, 0.0)), np.maximum(approach, 0.0))
        impulses = impacts(G, before, contacts.friction, contacts.restitution, active=met, law=world.law)
        change = (G @ impulses)[::3]
        # what is knocked on hits in the same step what is near enough
        knocked = ~met & bounces & (approach + change < bound)
    after = before[::3] + change
    hit = (impulses[::3] > 0.0) & (after > 0.0)
    leave = np.where(hit, np.sqrt(np.maximum(half * half + after * after - 2.0 * weight * gap, 0.0)) - half, 0.0)
    leave = np.maximum(leave, 0.0)
    share = np.where(change > 0.0, (leave - approach) / np.where(change > 0.0, change, 1.0), 1.0)
    bounced[own] = impulses * np.repeat(np.clip(share, 0.0, 1.0), 3)
    # what nothing has hit may still come as near as before
    return bounced, np.where(hit, leave, -np.inf)
