"""The rows of a step's constraint problem: what limits and contacts push, and how fast they go.

A row is a unit impulse: how it pushes the freedom slots, and which velocity it is to keep from falling below a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .contact import Contacts
from .friction import Moments
from .kinematics import Kinematics, motions, pushed
from .limits import LimitRows
from .model import Model
from .packing import Packing


@dataclass(frozen=True)
class Side:
    """Impulses on links: `wrenches` (k, w, 6) on `link` (k,) slots, about their clusters' origins, for w rows each,
    those `at` (k w,); the opposite on `against` (k,) where that is of the same cluster."""

    link: np.ndarray
    against: np.ndarray
    wrenches: np.ndarray
    at: slice | np.ndarray

    def within(self, model: Model) -> np.ndarray:
        """Which of them (any,) act within one cluster."""
        cluster = np.append(model.assembly.cluster_of, -1)
        return (cluster[self.link] == cluster[self.against]).nonzero()[0]


@dataclass(frozen=True)
class OnLinks:
    """Rows that are so many that they have no columns: contacts with what stands still, `own` (a,), and contacts of
    links with each other, `others` (b,); `columns` makes those (slots, m + 3c) of all limits and of c `others` when it
    is asked for some, (b,)."""

    own: np.ndarray
    others: np.ndarray
    columns: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Rows:
    """m limit rows, then three rows (normal, two tangents) for each of k contacts, then the moments: two rows for each
    of r contacts that resist rolling, one for each of s that resist spinning.

    `island` (m + k,) numbers what has to do with each other. `columns` (slots, width): unit impulses on the freedom
    slots, where `packing` says. `sides`: what acts on links, for `velocity`. `bound` (m + k,) [rad/s or m/s]: the
    lowest allowed velocity of limits and normals. `curve` (k, 3) [m/s]: what curves add to the contacts' velocities,
    see `curving`. `key` (rows,) recognises a row in the next step, negative where it is no limit's. Where rows are
    `on_links` there are no columns.
    """

    every: LimitRows
    limits: LimitRows
    contacts: Contacts
    columns: np.ndarray
    sides: list[Side]
    bound: np.ndarray
    curve: np.ndarray
    key: np.ndarray
    moments: Moments
    island: np.ndarray
    packing: Packing
    on_links: OnLinks | None = None

    @property
    def contact_rows(self) -> slice:
        """The rows of the contacts, without their moments."""
        m = len(self.limits)
        return slice(m, m + 3 * len(self.contacts))

    @property
    def normals(self) -> slice:
        """The contacts' normal rows."""
        m = len(self.limits)
        return slice(m, m + 3 * len(self.contacts), 3)

    def bend(self, curve: np.ndarray, bound: np.ndarray) -> None:
        """Has contacts move on curves, and with no velocities along their normals below a `bound` (k,) [m/s]."""
        self.curve[:] = curve
        self.bound[len(self.limits) :] = bound

    def velocity(self, model: Model, kin: Kinematics, v: np.ndarray, keyed: np.ndarray | None) -> np.ndarray:
        """The rows' velocities (rows,) at joint velocities `v` (nv,) and twists of keyed links (n, 6), with curves."""
        if not len(self.key):
            return np.zeros(0)
        result = self.straight(model, kin, v, keyed)
        result[self.contact_rows] += self.curve.reshape(-1)
        return result

    def straight(self, model: Model, kin: Kinematics, v: np.ndarray, keyed: np.ndarray | None) -> np.ndarray:
        """As `velocity`, without curves."""
        if keyed is None and not len(model.assembly.joint_cluster) and not self.on_links:
            return self.packing.along(self.columns, model.columns.slotted(v))
        links = motions(model, kin, v, keyed).links
        result = np.zeros(len(self.key))
        result[: len(self.limits)] = self.limits.rate(v)
        for side in self.sides:
            twist, same = links[side.link], side.within(model)
            twist[same] -= links[side.against[same]]
            result[side.at] += (side.wrenches @ twist[:, :, None]).reshape(-1)
        return result

    def forces(self, model: Model, kin: Kinematics, impulses: np.ndarray) -> np.ndarray:
        """What `impulses` (rows,) are on the freedom slots (slots,)."""
        m, links = len(self.limits), model.assembly.links
        wrenches = np.zeros((links + 1, 6))
        for side in self.sides:
            count, width = side.wrenches.shape[:2]
            each = (impulses[side.at].reshape(count, 1, width) @ side.wrenches)[:, 0]
            same = side.within(model)
            wrenches += summed(side.link, each, links + 1)
            if len(same):
                wrenches -= summed(side.against[same], each[same], links + 1)
        result = np.append(pushed(model, kin, wrenches[:-1]), 0.0)
        # what a limit does not need of its three freedoms lands in the last
        slots = model.columns.slot_or_none.take(self.limits.freedoms)
        np.add.at(result, slots, self.limits.weights * impulses[:m, None])
        return result[:-1]


def summed(where: np.ndarray, x: np.ndarray, count: int) -> np.ndarray:
    """The sums (count, any) of those of `x` (k, any) that are at the same place, `where` (k,)."""
    result = np.zeros((count, x.shape[1]))
    order = where.argsort(kind="stable")
    first = np.flatnonzero(np.diff(where[order], prepend=-1))
    if len(first):
        result[where[order[first]]] = np.add.reduceat(x[order], first, axis=0)
    return result
