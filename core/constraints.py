"""The velocity-level constraint problem of a step: joint limits and contacts, gathered in one set of rows.

A row is a unit impulse: how it pushes the freedom slots, and which velocity it is to keep from falling below a bound.
Distances enter as bounds too: a gap may close within the step but no further, so nothing is met before it is reached
and nothing is passed through.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .collision import Contacts, tangents
from .kinematics import Kinematics, Motions
from .limits import LimitRows
from .model import Model
from .spatial import cross

RECOVERY = 0.2
"""Part of an overlap that a step removes."""
BOUNCE_SPEED = 0.05
"""Approach below this many metres per second, times the square root of the model's size in metres, does not bounce."""


@dataclass(frozen=True)
class Rows:
    """m limit rows, then three rows (normal, two tangents) for each of k contacts.

    `columns` (slots, rows): unit impulses on the freedom slots. `wrenches` (k, 3, 6) of the contacts about their clusters'
    origins. `bound` (m + k,) [rad/s or m/s]: the lowest allowed velocity of limits and normals.
    """

    limits: LimitRows
    contacts: Contacts
    columns: np.ndarray
    wrenches: np.ndarray
    bound: np.ndarray

    def velocity(self, v: np.ndarray, moving: Motions) -> np.ndarray:
        """The rows' velocities (rows,) at joint velocities `v` (nv,) and the links' twists."""
        twists = moving.links[self.contacts.link]
        contacts = (self.wrenches @ twists[:, :, None]).reshape(-1)
        return np.concatenate((self.limits.rate(v), contacts))


def gather(
    model: Model,
    kin: Kinematics,
    limits: LimitRows,
    contacts: Contacts,
    h: float,
    bend: np.ndarray,
    fastest: float,
    turning: float = 10.0,
) -> Rows:
    """The rows of a step of `h` seconds. `bend` (m + k,): what the gaps lose beyond their rates. Overlaps part at no more
    than `fastest` [m/s], limits at `turning` [rad/s]."""
    m, k = len(limits), len(contacts)
    slots = len(model.columns.link)
    columns = np.zeros((slots + 1, m + 3 * k))
    if m:
        # what a limit does not need of its three freedoms lands in a row of its own
        columns[np.append(model.columns.slot_of, slots).take(limits.freedoms), np.arange(m)[:, None]] = limits.weights
    columns = columns[:-1]
    wrenches = _push(model, kin, contacts, columns[:, m:]) if k else np.zeros((0, 3, 6))
    gap = np.concatenate((limits.gap, contacts.gap))
    most = np.full(m + k, fastest)
    most[:m] = turning
    bound = np.where(gap >= 0, -gap, np.minimum(-RECOVERY * gap, h * most)) / h
    bound -= bend / h
    return Rows(limits, contacts, columns, wrenches, bound)


def _push(model: Model, kin: Kinematics, contacts: Contacts, columns: np.ndarray) -> np.ndarray:
    """Fills in the contacts' `columns` (slots, 3k) and returns their wrenches (k, 3, 6)."""
    frames = tangents(contacts.normal)
    arm = contacts.point - kin.origin[model.assembly.cluster_of[contacts.link]]
    wrenches = np.concatenate((cross(arm[:, None, :], frames), frames), axis=-1)
    for leaves in model.assembly.leaves:
        place = contacts.link - leaves.first_link
        inside = np.flatnonzero((place >= 0) & (place < leaves.count * leaves.links))
        if not len(inside):
            continue
        cluster, link = np.divmod(place[inside], leaves.links)
        subspace = leaves.freedom_view(kin.columns)[cluster]
        pushes = (subspace @ wrenches[inside].swapaxes(-1, -2)) * leaves.moves[cluster, link][:, :, None]
        slots = leaves.first_freedom + leaves.freedoms * cluster[:, None] + np.arange(leaves.freedoms)
        columns[slots[:, :, None], (3 * inside[:, None] + np.arange(3))[:, None, :]] = pushes
    return wrenches
