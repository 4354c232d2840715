"""Impacts of several contacts at once: one after another where they are apart in strength, together where not.

Sources: Mirtich 1996, "Impulse-based Dynamic Simulation of Rigid Body Systems" (impacts one by one); Smith et al. 2012,
"Reflections on simultaneous impact" (rounds over the contacts that approach).
"""

from __future__ import annotations

import numpy as np

from .friction import energy, guard, solve
from .impact import Law, collide
from .spatial import TINY

TOGETHER = 0.5
"""Approaching contacts that act on each other meet at once where their works of approach differ by less than this
factor: a box that lands flat must not tumble;"""
ROUNDS, FAINT = 8, 1e-4
"""else one after another, the larger first. After so many rounds and one more per contact of an island, or where the
works of approach are less than this share of the first, all that still approach end up without bouncing;"""
FINISHES = False, False, True, True
"""in so many attempts, the last ones, which hardly ever take place, without friction."""
PASSES = 1e-10
"""An approach, as a share of the fastest velocity of any contact of the island, that is none."""


def impacts(
    G: np.ndarray,
    u: np.ndarray,
    friction: np.ndarray,
    restitution: np.ndarray,
    *,
    active: np.ndarray | None = None,
    law: Law = Law.WORK,
) -> np.ndarray:
    """Impulses (3 k,) [N s] of k contacts that act on each other, after which none approaches.

    G (3 k, 3 k) and u (3 k,) have three rows per contact, normal and tangents; `active` (k,) tells which contacts may
    get impulses, all by default. Contacts that approach get their own impact, those first whose work of approach is
    the largest of all they act on, until none approaches. Where several of a like work act on each other they are
    solved together: each leaves with its restitution times its approach, as far as that brings in no energy.
    """
    contacts = len(friction)
    p, u = np.zeros(len(u)), u.copy()
    compliance = G.diagonal()[::3]
    able = compliance > 1e-12 * compliance.max(initial=TINY)
    if active is not None:
        able &= active
    normal = u[::3]
    if not (able & (normal < 0.0)).any():
        return p
    blocks = np.abs(G).reshape(contacts, 3, contacts, 3).max((1, 3))
    size = np.sqrt(blocks.diagonal())
    coupled = (blocks > 1e-12 * size[:, None] * size) | np.eye(contacts, dtype=bool)
    inverse = able / np.maximum(compliance, TINY)
    first, island = np.zeros(contacts), _islands(coupled)
    rounds = ROUNDS + np.bincount(island)[island]
    fastest = np.zeros(contacts)
    np.maximum.at(fastest, island, np.abs(u).reshape(-1, 3).max(1))
    limit = PASSES * fastest[island]
    for number in range(rounds.max()):
        approach = np.minimum(normal, 0.0)
        work = approach * approach * inverse * (approach < -limit)
        first = np.maximum(first, work)
        work[(work < FAINT * (first * coupled).max(1)) | (number >= rounds)] = 0.0
        if not work.any():
            break
        chosen = (work > 0.0) & (work >= TOGETHER * (work * coupled).max(1))
        several = chosen & ((coupled & chosen).sum(1) > 1)
        alone = np.flatnonzero(chosen & ~several)
        groups = [(_apart, alone)] if len(alone) else []
        if several.any():
            at = np.flatnonzero(several)
            groups += [(_together, group) for group in _grouped(at, _islands(coupled[np.ix_(at, at)]))]
        for answer, at in groups:
            rows = _rows(at)
            part = answer(G[np.ix_(rows, rows)], u[rows], friction[at], restitution[at], law)
            p[rows] += part
            u += G[:, rows] @ part
    return p + _finished(G, u, friction, np.where(able, island, contacts), limit)


def _rows(contacts: np.ndarray) -> np.ndarray:
    return (3 * contacts[:, None] + np.arange(3)).reshape(-1)


def _islands(coupled: np.ndarray) -> np.ndarray:
    """The first contact (m,) that each acts on, be it through others."""
    first = np.arange(len(coupled))
    while ((lower := np.where(coupled, first, len(first)).min(1)) < first).any():
        first = lower
    return first


def _grouped(contacts: np.ndarray, island: np.ndarray) -> list[np.ndarray]:
    """The `contacts` (m,) of each island."""
    return [contacts[island == number] for number in np.unique(island)]


def _apart(G: np.ndarray, u: np.ndarray, friction: np.ndarray, restitution: np.ndarray, law: Law) -> np.ndarray:
    """Impulses (3 c,) of contacts whose blocks of G are all that counts."""
    c = np.arange(len(friction))
    blocks = G.reshape(len(c), 3, len(c), 3)[c, :, c]
    return collide(blocks, u.reshape(-1, 3), friction, restitution, law).reshape(-1)


def _together(G: np.ndarray, u: np.ndarray, friction: np.ndarray, restitution: np.ndarray, _law: Law) -> np.ndarray:
    """Impulses (3 c,) of contacts that meet at once."""
    target = u.copy()
    target[::3] *= 1.0 + restitution
    p = solve(G, target, friction)[0]
    if energy(G, u, p) > 0.0:
        p = guard(G, u, p, solve(G, u, friction)[0])
    return p


def _finished(G: np.ndarray, u: np.ndarray, friction: np.ndarray, island: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Impulses (3 k,) that stop whatever still approaches, all at once and without bounce."""
    p = np.zeros(len(u))
    able = np.flatnonzero(island < len(island))
    for at in _grouped(able, island[able]):
        rows = _rows(at)
        block, v = G[np.ix_(rows, rows)], u[rows]
        for frictionless in FINISHES:
            if (v[::3] >= -limit[at]).all():
                break
            if frictionless:
                part = np.zeros(len(v))
                part[::3] = _pressed_apart(block[::3, ::3], v[::3], 0.1 * limit[at[0]])
            else:
                part = solve(block, v, friction[at], tolerance=1e-12, sufficient=1e-10)[0]
            part = guard(block, v, part, np.zeros(len(v)))
            p[rows] += part
            v = v + block @ part
    return p


def _pressed_apart(G: np.ndarray, u: np.ndarray, limit: float) -> np.ndarray:
    """Normal impulses p (k,) >= 0 with u + G p >= -limit, and zero where p > 0, for contacts that nearly block each
    other (Lawson and Hanson 1974, chapter 23)."""
    p, pressed = np.zeros(len(u)), np.zeros(len(u), dtype=bool)
    for _ in range(3 * len(u)):
        approach = np.where(pressed, 0.0, -(u + G @ p))
        worst = approach.argmax()
        if approach[worst] <= limit:
            break
        pressed[worst] = True
        while pressed.any():
            at = np.flatnonzero(pressed)
            wanted = np.linalg.lstsq(G[np.ix_(at, at)], -u[at], rcond=1e-14)[0]
            if (wanted > 0.0).all():
                p[at] = wanted
                break
            down = wanted <= 0.0
            share = (p[at][down] / np.maximum(p[at][down] - wanted[down], TINY)).min()
            p[at] += share * (wanted - p[at])
            pressed[at[down & (p[at] <= 1e-15 * p.max())]] = False
            p[~pressed] = 0.0
    return p
