"""What is asked of numbers that come from outside, where they are given."""

from __future__ import annotations

import numpy as np


def are_numbers(values: object, *shape: int) -> bool:
    """Whether `values` are finite numbers in an array of that shape, where -1 is any size; one number without shape."""
    try:
        found = np.asarray(values)
    except ValueError:  # rows of different lengths
        return False
    fits = found.ndim == len(shape) and all(size in (-1, has) for size, has in zip(shape, found.shape))
    return fits and found.dtype.kind in "biuf" and bool(np.isfinite(found).all())


def are_rotations(turns: np.ndarray, tolerance: float = 1e-6) -> np.ndarray:
    """Which (...) of some finite matrices (..., 3, 3) turn things, and neither scale, shear nor mirror them."""
    turns = np.asarray(turns, dtype=float)
    strain = np.abs(turns.swapaxes(-1, -2) @ turns - np.eye(3)).max((-1, -2))
    return (strain < tolerance) & (np.linalg.det(turns) > 0)


def several(name: str, values: object) -> tuple:
    """The `values` as a tuple. Raises ValueError where they are a single thing."""
    try:
        return tuple(values)
    except TypeError:
        raise ValueError(f"{name}: a {type(values).__name__} is no list; give a list, also of one") from None


def whole(name: str, value: object, least: int) -> int:
    """The `value` as a whole number. Raises ValueError where it is none, or below the `least`."""
    if not (are_numbers(value) and int(value) == value and value >= least):
        raise ValueError(f"{name} is {value}; give a whole number of at least {least}")
    return int(value)
