"""Conventions and small batched kernels of spatial algebra.

SI units, radians. Quaternions are (w, x, y, z) of unit length; rotation matrices map link to parent coordinates; a pose
is a (4, 4) homogeneous matrix. Spatial vectors are (angular, linear): a motion is (ω, velocity of the point at the
origin), a force is (torque about the origin, force); accelerations are spatial accelerations (Featherstone, Rigid Body
Dynamics Algorithms, chapter 2). Arrays are batched on their leading axes.

Bilinear maps of small vectors are written as an outer product times a constant matrix: three numpy calls whatever the
map, where component arithmetic would take ten.
"""

from __future__ import annotations

import numpy as np


def _bilinear(rows: int, columns: int, outputs: int, terms: dict) -> np.ndarray:
    """The (rows * columns, outputs) matrix of a bilinear map given as {(i, j, output): coefficient}."""
    table = np.zeros((rows, columns, outputs))
    for (i, j, k), coefficient in terms.items():
        table[i, j, k] += coefficient
    return table.reshape(rows * columns, outputs)


_EPSILON = {(0, 1, 2): 1, (1, 2, 0): 1, (2, 0, 1): 1, (1, 0, 2): -1, (2, 1, 0): -1, (0, 2, 1): -1}
_CROSS = _bilinear(3, 3, 3, _EPSILON)
_SKEW = _CROSS.reshape(3, 3, 3).transpose(0, 2, 1).reshape(3, 9).copy()
_CROSS_MOTION = _bilinear(
    6,
    6,
    6,
    {
        **_EPSILON,
        **{(i, j + 3, k + 3): s for (i, j, k), s in _EPSILON.items()},
        **{(i + 3, j, k + 3): s for (i, j, k), s in _EPSILON.items()},
    },
)
_CROSS_FORCE = _bilinear(
    6,
    6,
    6,
    {
        **_EPSILON,
        **{(i, j + 3, k + 3): s for (i, j, k), s in _EPSILON.items()},
        **{(i + 3, j + 3, k): s for (i, j, k), s in _EPSILON.items()},
    },
)
_HAMILTON = _bilinear(4, 4, 4, {
    (0, 0, 0): 1, (1, 1, 0): -1, (2, 2, 0): -1, (3, 3, 0): -1,
    (0, 1, 1): 1, (1, 0, 1): 1, (2, 3, 1): 1, (3, 2, 1): -1,
    (0, 2, 2): 1, (2, 0, 2): 1, (3, 1, 2): 1, (1, 3, 2): -1,
    (0, 3, 3): 1, (3, 0, 3): 1, (1, 2, 3): 1, (2, 1, 3): -1,
})  # fmt: skip
_ROTATION = _bilinear(4, 4, 9, {
    (0, 0, 0): 1, (1, 1, 0): 1, (2, 2, 0): -1, (3, 3, 0): -1,
    (1, 2, 1): 2, (0, 3, 1): -2, (1, 3, 2): 2, (0, 2, 2): 2,
    (1, 2, 3): 2, (0, 3, 3): 2,
    (0, 0, 4): 1, (1, 1, 4): -1, (2, 2, 4): 1, (3, 3, 4): -1,
    (2, 3, 5): 2, (0, 1, 5): -2, (1, 3, 6): 2, (0, 2, 6): -2, (2, 3, 7): 2, (0, 1, 7): 2,
    (0, 0, 8): 1, (1, 1, 8): -1, (2, 2, 8): -1, (3, 3, 8): 1,
})  # fmt: skip


_IDENTITY = np.eye(6)
TINY = 1e-300
"""The least divisor: what has no length keeps none."""

# Above this many multiplications BLAS starts threads, which costs tens of milliseconds when the other cores are busy.
_SERIAL = 1 << 18


def _apply(table: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.ndim == 2 and len(a) * table.size > _SERIAL:
        rows = _SERIAL // table.size
        return np.concatenate([_apply(table, a[i : i + rows], b[i : i + rows]) for i in range(0, len(a), rows)])
    outer = a[..., :, None] * b[..., None, :]
    return outer.reshape((*outer.shape[:-2], len(table))) @ table


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a × b, (..., 3)."""
    return _apply(_CROSS, a, b)


def skew(a: np.ndarray) -> np.ndarray:
    """The matrices (..., 3, 3) with skew(a) b = a × b."""
    return np.matmul(a[..., None, :], _SKEW).reshape(*a.shape, 3)


def cross_motion(v: np.ndarray, m: np.ndarray) -> np.ndarray:
    """v × m for motions (..., 6)."""
    return _apply(_CROSS_MOTION, v, m)


def cross_force(v: np.ndarray, f: np.ndarray) -> np.ndarray:
    """v ×* f for a motion and a force (..., 6)."""
    return _apply(_CROSS_FORCE, v, f)


def quaternion_multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Hamilton's product (..., 4)."""
    return _apply(_HAMILTON, a, b)


def quaternion_conjugate(q: np.ndarray) -> np.ndarray:
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def quaternion_matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    return _apply(_ROTATION, q, q).reshape(*q.shape[:-1], 3, 3)


def matrix_quaternion(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4) with w ≥ 0 of rotation matrices (..., 3, 3): the largest eigenvector of Bar-Itzhack's
    symmetric matrix (New method for extracting the quaternion from a rotation matrix, 2000), exact at every angle. With
    one on its diagonal that is 4 q qᵀ, but for what is no rotation in the matrix: any row will do, the longest loses
    least, and one round of the power method leaves the square of the rest."""
    m = np.asarray(rotation, dtype=float).reshape(-1, 3, 3)
    trace = m[:, 0, 0] + m[:, 1, 1] + m[:, 2, 2]
    k = np.empty((len(m), 4, 4))
    k[:, 0, 0] = trace + 1.0
    k[:, 0, 1:] = k[:, 1:, 0] = m[:, (2, 0, 1), (1, 2, 0)] - m[:, (1, 2, 0), (2, 0, 1)]
    k[:, 1:, 1:] = m + m.swapaxes(-1, -2)
    k[:, (1, 2, 3), (1, 2, 3)] += 1.0 - trace[:, None]
    longest = k[:, (0, 1, 2, 3), (0, 1, 2, 3)].argmax(axis=-1)
    q = (k @ k[np.arange(len(m)), longest, :, None])[..., 0]
    q /= np.copysign(np.sqrt(np.square(q).sum(axis=-1)), q[:, 0])[:, None]
    return q.reshape(*np.shape(rotation)[:-2], 4)


def exponential(vector: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4) of rotation vectors (..., 3) [rad]: Rodrigues' formula (structure-varying paper,
    eq. 25-29) in half angles."""
    half = 0.5 * vector
    angle = np.sqrt(np.add.reduce(half * half, axis=-1, keepdims=True))
    # the least number and its sine are the same, and their ratio is one
    np.maximum(angle, TINY, out=angle)
    return np.concatenate((np.cos(angle), np.sin(angle) / angle * half), axis=-1)


def logarithm(q: np.ndarray) -> np.ndarray:
    """The shortest rotation vectors (..., 3) [rad] of unit quaternions (..., 4)."""
    q = np.where(q[..., :1] < 0, -q, q)
    sine = np.sqrt((q[..., 1:] ** 2).sum(-1, keepdims=True))
    small = sine < 1e-8
    ratio = np.where(small, 2.0, 2.0 * np.arctan2(sine, q[..., :1]) / np.where(small, 1.0, sine))
    return ratio * q[..., 1:]


def pose(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Poses (..., 4, 4) from rotations (..., 3, 3) and positions (..., 3)."""
    result = np.zeros((*np.shape(position)[:-1], 4, 4))
    result[..., :3, :3] = rotation
    result[..., :3, 3] = position
    result[..., 3, 3] = 1.0
    return result


def pose_inverse(poses: np.ndarray) -> np.ndarray:
    """Inverses (..., 4, 4) of poses."""
    transposed = np.swapaxes(poses[..., :3, :3], -1, -2)
    return pose(transposed, -(transposed @ poses[..., :3, 3, None])[..., 0])


def shift_force(offset: np.ndarray) -> np.ndarray:
    """The matrices F (..., 6, 6) that move a force from the point at `offset` (..., 3) to the origin; the transpose
    moves a motion from the origin to that point."""
    result = np.empty((*offset.shape[:-1], 6, 6))
    result[...] = _IDENTITY
    result[..., :3, 3:] = skew(offset)
    return result


def force_maps(poses: np.ndarray) -> np.ndarray:
    """The maps (..., 6, 6) of forces from frames at `poses` (..., 4, 4) to the frame that these stand in."""
    rotation = poses[..., :3, :3]
    result = np.zeros((*poses.shape[:-2], 6, 6))
    result[..., :3, :3] = result[..., 3:, 3:] = rotation
    result[..., :3, 3:] = skew(poses[..., :3, 3]) @ rotation
    return result


def rigid_inertia(mass: np.ndarray, center: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Spatial inertias (..., 6, 6) about the origin from masses (...), centers of mass (..., 3) and inertias (..., 3,
    3) about the center of mass."""
    m, c = np.asarray(mass)[..., None, None], skew(np.asarray(center, dtype=float))
    result = np.zeros((*c.shape[:-2], 6, 6))
    result[..., :3, :3] = inertia - m * (c @ c)
    result[..., :3, 3:] = m * c
    result[..., 3:, :3] = -m * c
    result[..., 3:, 3:] = m * np.eye(3)
    return result
