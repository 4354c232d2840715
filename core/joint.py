"""Joints: how a link may move against its parent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .spatial import (
    cross,
    exponential,
    logarithm,
    matrix_quaternion,
    quaternion_conjugate,
    quaternion_matrix,
    quaternion_multiply,
)

FREEDOMS = {"fixed": 0, "hinge": 1, "prismatic": 1, "universal": 2, "spherical": 3, "free": 6}
"""Velocity freedoms of each kind of joint."""

COORDINATES = {"fixed": 0, "hinge": 1, "prismatic": 1, "universal": 2, "spherical": 4, "free": 7}
"""Joint coordinates of each kind: angles and lengths; spherical a unit quaternion (w, x, y, z); free a quaternion and
a position (3,) [m] in the parent's joint frame."""


@dataclass(eq=False)
class Joint:
    """A joint and its passive mechanics.

    Axes are those of the link's frame: a hinge turns about x, a prismatic slides along x, a universal turns about x
    (carried by the parent) then z (carried by the link), a spherical joint's three freedoms are x (swing), y (twist,
    along the bone) and z (swing). A free joint has no limits, drives or passive mechanics.

    Per freedom, each a number or an array (d,):
    `lower`, `upper`: limits [rad or m]; for a spherical joint the swing limits are the half axes of an ellipse, unequal
    on either side, and the twist limits bound the turn about y. Infinite where free.
    `damping` [N m s/rad]; dry `friction` [N m], which holds what damping lets creep; `armature` [kg m²]; drive
    `stiffness` [N m/rad] and `drive_damping` toward a target that is the rest pose or, when the simulation is told to
    follow, the source motion.
    """

    kind: str = "spherical"
    lower: float | np.ndarray = -np.inf
    upper: float | np.ndarray = np.inf
    damping: float | np.ndarray = 0.0
    friction: float | np.ndarray = 0.0
    armature: float | np.ndarray = 0.0
    stiffness: float | np.ndarray = 0.0
    drive_damping: float | np.ndarray = 0.0


class Coordinates:
    """The joint coordinates of a model as index arrays by kind, so that every operation is batched.

    `q_start`, `v_start` (n + 1,): where each link's coordinates and velocities begin; `nq`, `nv` their numbers.
    """

    def __init__(self, kinds: list[str]) -> None:
        self.kinds = np.array(kinds, dtype=np.str_)
        of = {kind: np.flatnonzero(self.kinds == kind) for kind in FREEDOMS}
        self.q_start, self.v_start = np.zeros((2, len(self.kinds) + 1), dtype=int)
        for kind, some in of.items():
            self.q_start[some + 1], self.v_start[some + 1] = COORDINATES[kind], FREEDOMS[kind]
        np.cumsum(self.q_start, out=self.q_start)
        np.cumsum(self.v_start, out=self.v_start)
        self.nq, self.nv = int(self.q_start[-1]), int(self.v_start[-1])
        self.hinges, self.slides, self.universals, self.free = (
            of[k] for k in ("hinge", "prismatic", "universal", "free")
        )
        self.turning = np.flatnonzero((self.kinds == "spherical") | (self.kinds == "free"))
        # plain numbers, integrated by adding; and quaternions, integrated by Rodrigues' formula
        single = (self.hinges, 0), (self.slides, 0), (self.universals, 0), (self.universals, 1)
        self.plain_q, self.plain_v = (
            np.concatenate([start[some] + i for some, i in (*single, *((self.free, i) for i in moves))])
            for start, moves in ((self.q_start, (4, 5, 6)), (self.v_start, (3, 4, 5)))
        )
        self.quaternion_q = self.q_start[self.turning][:, None] + np.arange(4)
        self.quaternion_v = self.v_start[self.turning][:, None] + np.arange(3)
        self.slide_q, self.hinge_q = self.q_start[self.slides], self.q_start[self.hinges]
        self.universal_q = self.q_start[self.universals][:, None] + np.arange(2)
        self.free_position_q = self.q_start[self.free][:, None] + np.arange(4, 7)

    def zero(self) -> np.ndarray:
        """The coordinates (nq,) of the rest pose."""
        q = np.zeros(self.nq)
        q[self.quaternion_q[:, 0]] = 1.0
        return q

    def integrate(self, q: np.ndarray, v: np.ndarray, h: float) -> np.ndarray:
        """The coordinates after moving with constant joint velocities `v` (nv,) for `h` seconds."""
        return self.moved(q, *self.way(v, h))

    def way(self, v: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """Where constant joint velocities `v` (nv,) lead in `h` seconds: what they add to plain numbers (p,), and what
        they turn quaternions by (t, 4)."""
        moved = h * v
        return moved.take(self.plain_v), exponential(moved.take(self.quaternion_v))

    def moved(self, q: np.ndarray, added: np.ndarray, turns: np.ndarray) -> np.ndarray:
        """The coordinates after a `way` from `q` (nq,)."""
        result = q.copy()
        result[self.plain_q] += added
        if len(self.turning):
            turned = quaternion_multiply(q.take(self.quaternion_q), turns)
            # one Newton step toward unit length removes what rounding adds
            result[self.quaternion_q] = turned * (1.5 - 0.5 * np.add.reduce(turned * turned, axis=-1, keepdims=True))
        return result

    def difference(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The joint velocities (..., nv) that lead from `start` to `end` (..., nq) in one second."""
        result = np.zeros((*end.shape[:-1], self.nv))
        result[..., self.plain_v] = end[..., self.plain_q] - start[..., self.plain_q]
        turn = quaternion_multiply(quaternion_conjugate(start[..., self.quaternion_q]), end[..., self.quaternion_q])
        result[..., self.quaternion_v] = logarithm(turn)
        return result

    def spring_force(self, strain: np.ndarray, tension: np.ndarray) -> np.ndarray:
        """The joint forces (nv,) of the potential whose gradient by the rotation vectors of `strain` (nv,) is `tension`
        (nv,): equal to it where springs are equally stiff about all axes, turned to the link's frame where not."""
        e, t = strain[self.quaternion_v], tension[self.quaternion_v]
        square = (e * e).sum(-1, keepdims=True)
        half = 0.5 * np.sqrt(np.maximum(square, 1e-8))
        factor = np.where(square < 1e-8, 1.0 / 12.0, (1.0 - half / np.tan(half)) / (4.0 * half * half))
        turned = cross(e, t)
        result = tension.copy()
        result[self.quaternion_v] += factor * cross(e, turned) - 0.5 * turned
        return result

    def transforms(self, q: np.ndarray) -> np.ndarray:
        """Poses (..., n, 4, 4) of the links' frames in their joints' rest frames."""
        shape = (*q.shape[:-1], len(self.kinds))
        turn = np.zeros((*shape, 4))
        turn[..., 0] = 1.0
        turn[..., self.turning, :] = q.take(self.quaternion_q, axis=-1)
        if len(self.hinges):
            half = 0.5 * q.take(self.hinge_q, axis=-1)
            turn[..., self.hinges, 0] = np.cos(half)
            turn[..., self.hinges, 1] = np.sin(half)
        if len(self.universals):
            half = 0.5 * q[..., self.universal_q]
            (cx, cz), (sx, sz) = np.moveaxis(np.cos(half), -1, 0), np.moveaxis(np.sin(half), -1, 0)
            turn[..., self.universals, :] = np.stack((cx * cz, sx * cz, -sx * sz, cx * sz), -1)
        result = np.zeros((*shape, 4, 4))
        result[..., :3, :3] = quaternion_matrix(turn)
        result[..., 3, 3] = 1.0
        if len(self.slides):
            result[..., self.slides, 0, 3] = q[..., self.slide_q]
        if len(self.free):
            result[..., :3, 3][..., self.free, :] = q[..., self.free_position_q]
        return result

    def from_transforms(self, poses: np.ndarray) -> np.ndarray:
        """The coordinates (..., nq) whose transforms come nearest to `poses` (..., n, 4, 4)."""
        q = np.zeros((*poses.shape[:-3], self.nq))
        turn = matrix_quaternion(poses[..., :3, :3])
        q[..., self.quaternion_q] = turn[..., self.turning, :]
        hinge = turn[..., self.hinges, :]
        q[..., self.hinge_q] = 2 * np.arctan2(hinge[..., 1], hinge[..., 0])
        q[..., self.universal_q] = _universal_angles(poses[..., :3, :3][..., self.universals, :, :])
        q[..., self.slide_q] = poses[..., self.slides, 0, 3]
        q[..., self.free_position_q] = poses[..., :3, 3][..., self.free, :]
        return q


def _universal_angles(rotation: np.ndarray) -> np.ndarray:
    """The angles (..., 2) about x then z of R = Rx(a) Rz(b): z of the link gives a, x of the link gives b."""
    # copies, each in one piece: numpy looks where strided arrays lie in memory to choose how it rounds
    a = np.arctan2(-rotation[..., 1, 2], rotation[..., 2, 2].copy())
    b = np.arctan2(-rotation[..., 0, 1], rotation[..., 0, 0].copy())
    return np.stack((a, b), axis=-1)
