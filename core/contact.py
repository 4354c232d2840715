"""Contacts: where two shapes touch, and the frames of their impulses."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from .friction import Moments


class Touches(NamedTuple):
    """What a function of `p` pairs of shapes A and B finds: c places where they touch or are near each other.

    `pair` (c,): which of the pairs. `point` (c, 3) on A's surface, on the side that faces B; `center` (c, 3) the middle
    of A's round there, equal to `point` where A is not round; `normal` (c, 3) out of B into A; `gap` (c,) along it,
    negative where they overlap. `feature` (c,) names what of the two touches, from 0 to 2³² - 1, so that a contact is
    recognised in the next step.
    """

    pair: np.ndarray
    point: np.ndarray
    center: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    feature: np.ndarray


def no_touches() -> Touches:
    number, vectors, values = np.empty(0, dtype=np.intp), np.empty((0, 3)), np.empty(0)
    return Touches(number, vectors, vectors, vectors, values, number)


@dataclass(frozen=True)
class Meeting:
    """What meets at k contacts, which is the same for as long as the same features of the same shapes do.

    `link` is touched by `other`, both slots, `other` that of the world for scenery that stands still; `part` and
    `other_part` are the links' own slots where rigid zones of them touch, else the same. `key` names the pair of shapes
    and the feature that touches, so that a contact can be recognised in the next step.
    """

    link: np.ndarray  # (k,) int
    other: np.ndarray  # (k,) int
    part: np.ndarray  # (k,) int
    other_part: np.ndarray  # (k,) int
    friction: np.ndarray  # (k,)
    restitution: np.ndarray  # (k,)
    rolling: np.ndarray  # (k,)
    torsion: np.ndarray  # (k,)
    key: np.ndarray  # (k,) int

    def of_parts(self) -> Meeting:
        """Where rigid zones touch: the same contacts, of the links' own slots."""
        return replace(self, link=self.part, other=self.other_part)

    @cached_property
    def moments(self) -> Moments:
        """The moments of the contacts that resist rolling and spinning."""
        rolling, torsion = self.rolling.nonzero()[0], self.torsion.nonzero()[0]
        return Moments(self.rolling[rolling], rolling, self.torsion[torsion], torsion)

    @cached_property
    def row_keys(self) -> np.ndarray:
        """Negative numbers (rows,) that name the rows of the contacts, and then of their moments, see `Rows`."""
        rolls, spins = self.key[self.moments.rolling_owner], self.key[self.moments.torsion_owner]
        parts = (self.key, np.arange(3)), (rolls, np.arange(3, 5)), (spins, np.arange(5, 6))
        return np.concatenate([(-1 - 6 * key[:, None] - number).reshape(-1) for key, number in parts])


@dataclass(frozen=True)
class Contacts:
    """Contacts in the world frame, k of them; SI units.

    `meeting`, whose fields are theirs too, says of what. `point` lies on the surface of the link, or in the middle
    between two links; `center` is the middle of the link's round there, a point of the link whose distance from the
    other is the gap and the radius. `normal` points out of the other. `gap` is the distance of the two surfaces along
    the normal, negative when they overlap.
    """

    meeting: Meeting
    point: np.ndarray  # (k, 3)
    center: np.ndarray  # (k, 3)
    normal: np.ndarray  # (k, 3)
    gap: np.ndarray  # (k,)

    link = property(attrgetter("meeting.link"))
    other = property(attrgetter("meeting.other"))
    part = property(attrgetter("meeting.part"))
    other_part = property(attrgetter("meeting.other_part"))
    friction = property(attrgetter("meeting.friction"))
    restitution = property(attrgetter("meeting.restitution"))
    key = property(attrgetter("meeting.key"))

    @classmethod
    def none(cls) -> Contacts:
        number, axes, value = np.empty(0, np.intp), np.empty((0, 3)), np.empty(0)
        return cls(Meeting(number, number, number, number, value, value, value, value, number), axes, axes, axes, value)

    def __len__(self) -> int:
        return len(self.gap)

    def only(self, which: np.ndarray) -> Contacts:
        """Some of them, `which` (k,)."""
        meeting = Meeting(*(getattr(self.meeting, each.name)[which] for each in fields(Meeting)))
        return Contacts(meeting, self.point[which], self.center[which], self.normal[which], self.gap[which])

    def pairs(self, which: np.ndarray) -> np.ndarray:
        """The slots (n, 2) on both sides of some of the contacts."""
        return np.array((self.link[which], self.other[which])).T


def tangents(normal: np.ndarray) -> np.ndarray:
    """Right-handed frames (k, 3, 3) with rows normal, t1, t2 for unit normals (k, 3).

    Duff et al. 2017, "Building an orthonormal basis, revisited", with the sign switched at n_z = -1/2 instead of 0:
    the normals of vertical walls must not flip their frame, and with it a warm start, on rounding errors.
    """
    sign = np.copysign(1.0, normal[:, 2] + 0.5)
    # a turn by half a circle about what lies between the normal and the pole takes one to the other
    middle = normal.copy()
    middle[:, 2] += sign
    slope = normal[:, :2] / -middle[:, 2:]
    slope[:, 0] *= sign
    frames = np.empty((len(normal), 3, 3))
    frames[:, 0] = normal
    np.multiply(slope[:, :, None], middle[:, None, :], out=frames[:, 1:])
    frames[:, 1, 0] += 1.0
    frames[:, 2, 1] += sign
    return frames
