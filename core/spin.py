"""What an angular velocity ω does, as linear maps of its products w = (ω_x², ω_y², ω_z², ω_x ω_y, ω_y ω_z, ω_z ω_x).

With a 1 before them, (1, w), they carry what does not depend on ω too.
"""

from __future__ import annotations

import numpy as np

_FIRST, _SECOND = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 1, 2, 1, 2, 0])
_PRODUCT = np.zeros((3, 3), dtype=int)
_PRODUCT[_FIRST, _SECOND] = _PRODUCT[_SECOND, _FIRST] = np.arange(6)
_MIXED = np.r_[np.zeros(3), np.ones(3)]
# of a flat rotation: the factors of the products' map, and those of its second terms
_TURNS = [(3 * a + b[:, None]).ravel() for a in (_FIRST, _SECOND) for b in (_FIRST, _SECOND)]
COLUMNS = 7


def _bilinear_in_spin() -> tuple[np.ndarray, np.ndarray]:
    """ω × (ω × r) as (3, 3, 6) of r, component and w; ω × I ω as (3, 3, 3, 6) of I's two indices, component and w."""
    levi_civita = np.zeros((3, 3, 3))
    levi_civita[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0
    levi_civita -= levi_civita.swapaxes(0, 1)
    square = np.zeros((3, 3, 6))
    square[np.arange(3)[:, None], np.arange(3), _PRODUCT] = 1.0
    # (ω × L)_k = Σ ε_ijk ω_i L_j, and ω × (ω × r) = Σ ε_ijk ε_lmj ω_i ω_l r_m
    gyroscopic = np.einsum("ijk,icw->jckw", levi_civita, square)
    return np.einsum("ijk,lmj,ilw->mkw", levi_civita, levi_civita, square), gyroscopic


_CENTRIPETAL, _GYROSCOPIC = _bilinear_in_spin()


def products(spin: np.ndarray) -> np.ndarray:
    """(1, w) (k, 7) of angular velocities (k, 3)."""
    result = np.ones((len(spin), COLUMNS))
    np.multiply(spin[:, _FIRST], spin[:, _SECOND], out=result[:, 1:])
    return result


def turned_products(rotation: np.ndarray) -> np.ndarray:
    """The maps (..., 7, 7) from (1, w) of a frame to that of a frame that stands at `rotation` (..., 3, 3) in it."""
    flat = rotation.reshape(-1, 9)
    a, b, c, d = (flat[:, index].reshape(-1, 6, 6) for index in _TURNS)
    result = np.zeros((len(flat), COLUMNS, COLUMNS))
    result[:, 0, 0] = 1.0
    # w'_ij = Σ R_ki R_lj ω_k ω_l over pairs k, l either way round
    result[:, 1:, 1:] = a * d + b * c * _MIXED
    return result.reshape(*rotation.shape[:-2], COLUMNS, COLUMNS)


def centripetal(arm: np.ndarray) -> np.ndarray:
    """The maps (..., 3, 6) from w to ω × (ω × r) for r (..., 3)."""
    return (arm @ _CENTRIPETAL.reshape(3, 18)).reshape(*arm.shape[:-1], 3, 6)


def gyroscopic(moments: np.ndarray) -> np.ndarray:
    """The maps (..., 3, 6) from w to ω × I ω for I (..., 3, 3)."""
    return (moments.reshape(-1, 9) @ _GYROSCOPIC.reshape(9, 18)).reshape(*moments.shape[:-2], 3, 6)
