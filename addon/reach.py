"""How far the joints of an armature may turn, as lines and faces prepared for drawing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.joint import Coordinates
from ..core.limits import Limits
from ..core.spatial import exponential, quaternion_matrix

if TYPE_CHECKING:
    from .physique import Physique

PIECES = 24
"""Straight pieces of a boundary or an arc."""

SPOKE = 4
"""Pieces from one line between joint and boundary to the next."""

SIZE, LEAST = 0.7, 0.015
"""Length of what is drawn of a joint, as a part of the distance from it to the link's center of mass, and the least, as
a part of the character's height."""

AXES = 0.45
"""Length of a joint's axes, as a part of that."""

OUT, DIAL = 0.75, 0.3
"""How far out the arc is that a bone twists in, and its radius, as parts of that."""

PLAY = np.radians(1.0)
"""Ranges narrower than this to either side [rad] are drawn and judged as if they had it: rounding would stop them."""

STOPPED = np.radians(0.5)
"""A joint this near to its limit [rad] is drawn as being there."""

FULL = 2 * np.pi

RING = np.repeat(np.arange(1, PIECES + 2), 2)[1:-1]
LINES = np.concatenate([RING, np.stack([np.zeros(7, int), np.arange(1, PIECES + 2, SPOKE)], axis=1).ravel()])
FACES = np.stack([np.zeros(PIECES, int), np.arange(1, PIECES + 1), np.arange(2, PIECES + 2)], axis=1).ravel()
"""Which points of an arc with its center before it are ends of lines, or corners of triangles."""
ENDS = np.concatenate([RING, (0, 1, 0, PIECES + 1)])
"""The same lines with none between joint and boundary but the two at the ends."""


@dataclass(frozen=True)
class _Bounds:
    """What `Limits` asks of a model."""

    coordinates: Coordinates
    lower: np.ndarray
    upper: np.ndarray

    @property
    def nv(self) -> int:
        return self.coordinates.nv


class Reach:
    """The joints (m,) of a physique that turn within limits, by their bones' `names` (m,)."""

    def __init__(self, physique: Physique) -> None:
        found = [(i, joint) for i, joint in enumerate(physique.joints) if joint.kind in ("spherical", "hinge")]
        found = [(i, joint) for i, joint in found if physique.parents[i] >= 0]
        self.links = np.array([i for i, _ in found], dtype=int)
        self.names = [physique.names[i] for i in self.links]
        self.parents, self.zeros = physique.parents[self.links], physique.zeros[self.links]
        size = SIZE * np.linalg.norm(physique.centers[self.links], axis=1)
        self.size = np.maximum(size, LEAST * physique.height)[:, None]
        kinds = [joint.kind for _, joint in found]
        self.ball, self.hinge = (np.flatnonzero(np.array(kinds) == kind) for kind in ("spherical", "hinge"))
        self.coordinates = Coordinates(kinds)
        lower, upper = np.zeros((2, self.coordinates.nv))
        for start, (_, joint) in zip(self.coordinates.v_start, found):
            own = slice(start, start + (3 if joint.kind == "spherical" else 1))
            # as all are bounded, the limits are in the order of the joints
            lower[own], upper[own] = np.clip([joint.lower, joint.upper], -FULL, FULL)
        play = np.maximum(PLAY - 0.5 * (upper - lower), 0.0)
        self.limits = Limits(_Bounds(self.coordinates, lower - play, upper + play))

    @cached_property
    def ranges(self) -> np.ndarray:
        """In joint frames, the directions (m, PIECES + 1, 3) in which the link may just point."""
        limits, result = self.limits, np.zeros((len(self.links), PIECES + 1, 3))
        around = np.linspace(0.0, FULL, PIECES + 1)[:, None, None]
        level = np.concatenate([np.cos(around), np.sin(around)], axis=2)
        swing = np.zeros((PIECES + 1, len(self.ball), 3))
        swing[..., ::2] = np.where(level > 0, limits.half_high, limits.half_low) * level
        swing[..., 0] += limits.middle.real
        swing[..., 2] += limits.middle.imag
        result[self.ball] = quaternion_matrix(exponential(swing))[..., 1].swapaxes(0, 1)
        angles = _between(limits.plain_lower, limits.plain_upper)
        result[self.hinge] = np.stack([np.zeros_like(angles), np.cos(angles), np.sin(angles)], axis=2)
        return result.astype(np.float32)

    @cached_property
    def dials(self) -> np.ndarray:
        """In frames that swing as the balls do, the ends (b, PIECES + 1, 3) of their x axis as it may twist."""
        angles = _between(self.limits.twist_lower, self.limits.twist_upper)
        return np.stack([np.cos(angles), np.zeros_like(angles), -np.sin(angles)], axis=2).astype(np.float32)

    def stopped(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which joints (m,) bend, and which balls (b,) twist, as far as they may, or farther, at coordinates (nq,)."""
        limits, near = self.limits, self.limits.rows(q).gap < STOPPED
        bent = np.zeros(len(self.links), dtype=bool)
        bent[self.hinge] = near[: 2 * limits.plain].reshape(2, -1).any(axis=0)
        bent[self.ball] = near[limits.swings]
        return bent, near[limits.twists] | near[limits.untwists]

    def at(self, poses: np.ndarray, own: np.ndarray | None = None) -> Drawn:
        """What is drawn in the world of the joints that are `own` (m,), or of all, with the links at `poses` (n, 4,
        4)."""
        mine, balls = (slice(None), slice(None)) if own is None else (own, own[self.ball])
        links, frames = poses[self.links], poses[self.parents, :3, :3] @ self.zeros
        turns, places, size = links[:, :3, :3], links[:, :3, 3], self.size
        relative = np.tile(np.eye(4), (len(links), 1, 1))
        relative[:, :3, :3] = frames.swapaxes(1, 2) @ turns
        q = self.coordinates.from_transforms(relative)
        bent, twisted = self.stopped(q)
        arcs = _placed(self.ranges[mine], frames[mine], places[mine], size[mine])
        bones = np.stack([places, places + size * turns[:, :, 1]], axis=1)
        # the balls' frames with their twist taken back
        twist = q[self.coordinates.quaternion_q] * (1.0, 0.0, 1.0, 0.0)
        twist /= np.maximum(np.linalg.norm(twist, axis=1, keepdims=True), 1e-30)
        swung = turns[self.ball] @ quaternion_matrix(twist).swapaxes(1, 2)
        tips = places[self.ball] + OUT * size[self.ball] * turns[self.ball, :, 1]
        dials = _placed(self.dials[balls], swung[balls], tips[balls], DIAL * size[self.ball][balls])
        needles = np.stack([tips, tips + DIAL * size[self.ball] * turns[self.ball, :, 0]], axis=1)
        axes = places[:, None] + AXES * size[:, None] * frames.swapaxes(1, 2)
        axes = np.stack([np.broadcast_to(places[:, None], axes.shape), axes], axis=2)
        needles = np.concatenate([bones[mine], needles[balls]])
        return Drawn(arcs, bent[mine], dials, twisted[balls], needles.astype(np.float32), axes[mine].astype(np.float32))


@dataclass(frozen=True)
class Drawn:
    """Points in the world: of k joints `arcs` (k, PIECES + 2, 3), each with its center first, and which are `bent` (k,)
    as far as they may be; the same of `dials` that are `twisted`; the ends of `needles` (j, 2, 3) that show where the
    links are, and of the joints' x, y and z `axes` (k, 3, 2, 3)."""

    arcs: np.ndarray
    bent: np.ndarray
    dials: np.ndarray
    twisted: np.ndarray
    needles: np.ndarray
    axes: np.ndarray

    def faces(self, stopped: bool) -> np.ndarray:
        """Corners in threes (3k, 3) of the ranges that are, or are not, reached."""
        return self.arcs[self.bent == stopped].take(FACES, axis=1).reshape(-1, 3)

    def lines(self, stopped: bool) -> np.ndarray:
        """Ends in pairs (2k, 3)."""
        arcs = self.arcs[self.bent == stopped].take(LINES, axis=1).reshape(-1, 3)
        return np.concatenate([arcs, self.dials[self.twisted == stopped].take(ENDS, axis=1).reshape(-1, 3)])


def _between(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Angles (m, PIECES + 1) from the lower to the upper limits (m,), one turn at most."""
    middle, half = 0.5 * (lower + upper), np.minimum(0.5 * (upper - lower), np.pi)
    return middle[:, None] + half[:, None] * np.linspace(-1.0, 1.0, PIECES + 1)


def _placed(points: np.ndarray, frames: np.ndarray, places: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Points (k, p, 3) of unit size in frames (k, 3, 3) at places (k, 3), those first, in the world, (k, p + 1, 3)."""
    result = np.empty((len(points), points.shape[1] + 1, 3), dtype=np.float32)
    result[:, 0] = places
    turned = (size[:, :, None] * frames.swapaxes(1, 2)).astype(np.float32)
    np.matmul(points, turned, out=result[:, 1:])
    result[:, 1:] += result[:, :1]
    return result
