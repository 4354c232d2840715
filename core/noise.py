"""A smooth noise in space: gradients on a grid, blended (Perlin, Improving Noise, 2002), in octaves."""

from __future__ import annotations

import numpy as np

OCTAVES = 3

_CORNERS = np.indices((2, 2, 2)).reshape(3, -1).T
_EDGES = np.array([(1, 1, 0), (-1, 1, 0), (1, -1, 0), (-1, -1, 0)])
_GRADIENTS = np.concatenate([np.roll(_EDGES, turn, axis=1) for turn in range(3)]).astype(float)
_MIX = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D], dtype=np.uint32)


def turbulence(points: np.ndarray) -> np.ndarray:
    """Numbers (n,) between -1 and 1 at `points` (n, 3), the same whenever asked: the sum of octaves, each of half the
    width and height of the one before."""
    total, height = np.zeros(len(points)), 1.0
    for octave in range(OCTAVES):
        total += height * gradient_noise(points * 2.0**octave)
        height *= 0.5
    return total / (2.0 - 2.0 * height)


def gradient_noise(points: np.ndarray) -> np.ndarray:
    """One octave: numbers (n,) between -1 and 1 that vary over lengths of one, and vanish on the grid's points."""
    cell = np.floor(points)
    inside = points - cell
    corners = cell.astype(np.int64)[:, None] + _CORNERS
    slope = _GRADIENTS[_scrambled(corners) % len(_GRADIENTS)]
    ramp = (slope * (inside[:, None] - _CORNERS)).sum(-1)
    ease = inside**3 * (inside * (6.0 * inside - 15.0) + 10.0)
    weight = np.where(_CORNERS == 1, ease[:, None], 1.0 - ease[:, None]).prod(-1)
    return (weight * ramp).sum(-1)


def _scrambled(places: np.ndarray) -> np.ndarray:
    """Numbers (...) that look random from whole ones (..., 3)."""
    mixed = (places.astype(np.uint32) * _MIX).sum(-1, dtype=np.uint32)
    for shift in (15, 13, 16):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * _MIX[1]
    return mixed >> np.uint32(8)
