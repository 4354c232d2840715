"""Fewer keys for the joints of a skeleton, within a tolerance in the world.

An error at a joint moves all that it carries, so the fewest keys are sought joint by joint, each within a share of the
tolerance that may differ from frame to frame; the errors are then carried down the skeleton, and where they add up to
too much, the joints above that contribute most get less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from . import curve
from .spatial import quaternion_conjugate, quaternion_multiply

ROUNDS = 60
"""So often shares are cut; joints whose errors still add up to too much then keep all their keys."""

CUT = 0.9
"""What is cut is cut to so much of what would suffice if all errors had the same direction."""

PIECE = 480
"""Longer motions are reduced in pieces of about so many frames, which bounds the memory."""


@dataclass(frozen=True)
class Skeleton:
    """B joints, parents first, over F frames.

    `locations` (F, B, 3), `rotations` (F, B, 4): what is keyed, rotations as their `modes` (B) have it: "QUATERNION",
    "AXIS_ANGLE" (angle first), or an Euler order with 0 in the last place. `parents` (B,): -1 for none; `turned` (B,):
    whether a joint turns with its parent. In the world: `heads` (F, B, 3) [m] and `frames` (F, B, 3, 3), where and how
    each stands; `shifts` (F, B, 3, 3) [m], how far a location's unit vectors move it, in columns. `points` (P, 3) [m]:
    what is seen, in the frames of their `owners` (P,).
    """

    locations: np.ndarray
    rotations: np.ndarray
    modes: tuple[str, ...]
    parents: np.ndarray
    turned: np.ndarray
    heads: np.ndarray
    frames: np.ndarray
    shifts: np.ndarray
    points: np.ndarray
    owners: np.ndarray

    @property
    def channels(self) -> np.ndarray:
        return np.concatenate((self.locations, self.rotations), axis=-1)

    def piece(self, frames: slice) -> Skeleton:
        names = ("locations", "rotations", "heads", "frames", "shifts")
        return replace(self, **{name: getattr(self, name)[frames] for name in names})

    def levels(self) -> list[np.ndarray]:
        """The joints by their depth, from the roots on."""
        depth = np.zeros(len(self.parents), dtype=int)
        for joint, parent in enumerate(self.parents):
            depth[joint] = depth[parent] + 1 if parent >= 0 else 0
        return [np.flatnonzero(depth == level) for level in range(depth.max(initial=-1) + 1)]

    def reach(self) -> np.ndarray:
        """How far (B,) [m] from each joint the farthest point is that it moves, along the bones."""
        reach = np.zeros(len(self.parents))
        np.maximum.at(reach, self.owners, np.linalg.norm(self.points, axis=1))
        for joint in range(len(reach) - 1, -1, -1):
            parent = self.parents[joint]
            if parent >= 0:
                length = np.linalg.norm(self.heads[:, joint] - self.heads[:, parent], axis=1).max()
                reach[parent] = max(reach[parent], length + reach[joint])
        return reach

    def errors(self, channels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What other channels (F, B, 7) change in the world: the most that a point of each joint moves (F, B) [m], and
        how far the joint turns (F, B) [rad]."""
        local = quaternion_multiply(
            quaternion_conjugate(quaternions(self.rotations, self.modes)), quaternions(channels[..., 3:], self.modes)
        )
        turn = np.concatenate((local[..., :1], (self.frames @ local[..., 1:, None])[..., 0]), axis=-1)
        shift = (self.shifts @ (channels[..., :3] - self.locations)[..., None])[..., 0]
        moved = shift.copy()
        for level in self.levels()[1:]:
            above = self.parents[level]
            turn[:, level] = np.where(
                self.turned[level][:, None], quaternion_multiply(turn[:, above], turn[:, level]), turn[:, level]
            )
            arm = self.heads[:, level] - self.heads[:, above]
            moved[:, level] += moved[:, above] + _moved(turn[:, above], arm + shift[:, level])
        arms = (self.frames[:, self.owners] @ self.points[:, :, None])[..., 0]
        away = np.linalg.norm(moved[:, self.owners] + _moved(turn[:, self.owners], arms), axis=-1)
        farthest = np.linalg.norm(moved, axis=-1)
        np.maximum.at(farthest.T, self.owners, away.T)
        return farthest, _angle(turn)


def quaternions(rotations: np.ndarray, modes: tuple[str, ...]) -> np.ndarray:
    """Unit quaternions (..., B, 4) of rotations (..., B, 4) in the modes (B) of a Skeleton."""
    result = np.empty(rotations.shape)
    for mode in set(modes):
        own = [joint for joint, other in enumerate(modes) if other == mode]
        values = rotations[..., own, :]
        if mode == "QUATERNION":
            turn = values
        elif mode == "AXIS_ANGLE":
            turn = _about(values[..., 1:], values[..., 0])
        else:
            x, y, z = (_about(np.eye(3)["XYZ".index(axis)], values[..., "XYZ".index(axis)]) for axis in mode)
            turn = quaternion_multiply(z, quaternion_multiply(y, x))  # the order's first letter turns first
        result[..., own, :] = turn
    result /= np.maximum(_size(result), 1e-12)[..., None]
    return result


def _about(axes: np.ndarray, angles: np.ndarray) -> np.ndarray:
    axes = axes / np.maximum(_size(axes), 1e-12)[..., None]
    half = angles[..., None] / 2
    return np.concatenate((np.cos(half), np.sin(half) * axes), axis=-1)


def _size(vectors: np.ndarray) -> np.ndarray:
    # faster than norms along an axis that short
    return np.sqrt(np.einsum("...i,...i", vectors, vectors))


def _angle(turns: np.ndarray) -> np.ndarray:
    """The angles (...) [rad] of unit quaternions (..., 4)."""
    return 2 * np.arctan2(_size(turns[..., 1:]), np.abs(turns[..., 0]))


def _moved(turns: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """How far turns (..., 4) move the ends of arms (..., 3)."""
    sideways = 2 * np.cross(turns[..., 1:], arms)
    return turns[..., :1] * sideways + np.cross(turns[..., 1:], sideways)


def reduced(skeleton: Skeleton, meters: float, radians: float, fixed: np.ndarray) -> Iterator[float]:
    """Finds which keys (F, B) to keep so that no point moves and no joint turns by more than the tolerances in the
    world, yielding progress 0 … 1; returns them. The first, the last and the `fixed` (F,) frames are kept."""
    last = len(fixed) - 1
    borders = np.linspace(0, last, -(-last // PIECE) + 1).round().astype(int)
    kept = np.zeros((last + 1, len(skeleton.parents)), dtype=bool)
    kept[[0, last]] = True
    for begin, end in pairwise(borders):
        own = slice(begin, end + 1)
        search = _Search(skeleton.piece(own), meters, radians, fixed[own])
        for _ in search.prepare():
            yield begin / last
        for _ in range(ROUNDS):
            if search.improve():
                break
            yield (begin + end) / (2 * last)
        else:
            search.give_up()
        kept[own] |= search.kept
    return kept


class _Search:
    """The search for the keys of one piece.

    `unit` (B,) [rad]: what a joint's turn alone may use up; deviations are counted in it, and those of locations in the
    tolerance. `caps` (F, B): how much each joint may deviate at each frame.
    """

    def __init__(self, skeleton: Skeleton, meters: float, radians: float, fixed: np.ndarray) -> None:
        self.skeleton, self.meters, self.radians = skeleton, meters, radians
        self.channels, self.levels = skeleton.channels, skeleton.levels()
        self.truth = quaternions(skeleton.rotations, skeleton.modes)
        self.unit = np.minimum(radians, meters / np.maximum(skeleton.reach(), 1e-12))
        self.stretch = np.linalg.norm(skeleton.shifts, axis=-2).max(axis=(0, 2))
        self.roaming = np.flatnonzero(np.ptp(skeleton.locations, axis=0).any(axis=-1))
        self.fixed = fixed
        self.deviations: list[np.ndarray] = []
        self.caps = np.ones(self.truth.shape[:2])
        self.steps = np.ones((len(fixed) - 1, len(self.unit)), dtype=int)
        self.due = np.ones(len(self.unit), dtype=bool)
        self.kept = curve.visited(self.steps)

    def prepare(self) -> Iterator[None]:
        """Finds the deviations of all segments, length by length."""
        for length in (length for length in curve.LENGTHS if length < len(self.fixed)):
            self.deviations.append(self._deviations(length))
            yield

    def _deviations(self, length: int) -> np.ndarray:
        """How far (L - 1, F - L, B) all segments of a length are from the samples inside."""
        truth = np.moveaxis(curve.windows(self.truth, length)[..., 1:-1], -1, 0)
        found = self._turned(truth, curve.segments(self.skeleton.rotations, length))
        if len(self.roaming):
            locations = self.skeleton.locations[:, self.roaming]
            away = curve.segments(locations, length) - np.moveaxis(curve.windows(locations, length)[..., 1:-1], -1, 0)
            away = _size(away) * (self.stretch[self.roaming] / self.meters)
            found[..., self.roaming] = np.maximum(found[..., self.roaming], away)
        return found.astype(np.float32)

    def _turned(self, truth: np.ndarray, rotations: np.ndarray) -> np.ndarray:
        """The angles from unit quaternions to rotations as they are keyed, both (..., B, 4), in the joints' units."""
        cosine = np.abs(np.einsum("...i,...i", quaternions(rotations, self.skeleton.modes), truth))
        return 4 * np.arcsin(np.sqrt(np.maximum(1 - cosine, 0.0) / 2)) / self.unit

    def improve(self) -> bool:
        """Chooses keys within the caps, and cuts the caps where the errors of the chosen add up to too much; returns
        whether they nowhere do."""
        self.steps[:, self.due] = curve.fewest(self._prices(), len(self.caps))
        self.kept = curve.visited(self.steps)
        channels = curve.fitted(self.channels, self.kept)[0]
        self._weigh(channels)
        if self.excess.max(initial=0.0) <= 1:
            return True
        share = self._turned(self.truth, channels[..., 3:])
        away = np.linalg.norm(channels[..., :3] - self.skeleton.locations, axis=-1) * self.stretch / self.meters
        share = np.maximum(share, away)
        for level in self.levels[1:]:
            share[:, level] = np.maximum(share[:, level], share[:, self.skeleton.parents[level]])
        before = self.caps
        self.caps = np.minimum(
            before, self._upward(np.where(self.excess > 1, CUT * share / np.maximum(self.excess, 1.0), np.inf))
        )
        self.due = (self.caps < before).any(axis=0)
        return False

    def give_up(self) -> None:
        """Keeps all keys of the joints whose errors still add up to too much; what is left then is rounding."""
        while self.excess.max(initial=0.0) > 1:
            late = np.where((self.excess > 1).any(axis=0), 0.0, np.inf)
            more = self._upward(late[None]) == 0
            if self.kept[:, more[0]].all():
                return
            self.kept |= more
            self._weigh(curve.fitted(self.channels, self.kept)[0])

    def _weigh(self, channels: np.ndarray) -> None:
        """Finds by how much the errors (F, B) exceed the tolerance, as a factor."""
        moved, turned = self.skeleton.errors(channels)
        self.excess = np.maximum(moved / self.meters, turned / self.radians)

    def _upward(self, limits: np.ndarray) -> np.ndarray:
        """The least of the limits (F, B) of each joint and all that it carries."""
        limits = limits.copy()
        for level in self.levels[:0:-1]:
            np.minimum.at(limits.T, self.skeleton.parents[level], limits[:, level].T)
        return limits

    def _prices(self) -> list[np.ndarray]:
        """What segments cost; see `fewest`. Those of the joints that are due."""
        prices = []
        for deviations in self.deviations:
            own = deviations[..., self.due]
            barred = curve.windows(self.fixed, len(own) + 1)[:, 1:-1].any(axis=-1)
            caps = curve.windows(self.caps[:, self.due], len(own) + 1)[..., 1:-1].transpose(2, 0, 1)
            good = (own <= caps).all(axis=0) & ~barred[:, None]
            prices.append(np.where(good, 1 + curve.NEATNESS * own.max(axis=0, initial=0.0), np.inf))
        return prices
