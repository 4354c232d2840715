"""The character's center of mass: where it is, and its way through the last simulations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .memory import TakeMemory
from .physique import Physique

SIZE = 0.03
"""Radius of the ball that shows it, as a part of the character's height."""

SIDES = 24


def center(physique: Physique, poses: np.ndarray) -> np.ndarray:
    """The center of mass (..., 3) [m] where the links are at `poses` (..., n, 4, 4)."""
    places = poses[..., :3, 3] + (poses[..., :3, :3] @ physique.centers[:, :, None])[..., 0]
    total = physique.masses.sum()
    return (physique.masses[:, None] * places).sum(axis=-2) / total if total > 0 else places.mean(axis=-2)


def lines(physique: Physique, poses: np.ndarray, ground: float | None) -> np.ndarray:
    """Ends in pairs (2k, 3): a ball, and the plumb line from it to a circle on the ground at that height [m]."""
    place, size = center(physique, poses), SIZE * physique.height
    angles = np.linspace(0, 2 * np.pi, SIDES + 1)
    around = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=1).repeat(2, axis=0)[1:-1]
    parts = [place + size * np.roll(around, turn, axis=1) for turn in range(3)]
    if ground is not None:
        foot = np.array([*place[:2], ground])
        parts += [np.stack([place, foot]), foot + size * around]
    return np.concatenate(parts).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Trace:
    """The centers of mass (F, 3) [m] of one armature's last take, on scene frames from `first` on."""

    points: np.ndarray
    first: int

    def lines(self) -> np.ndarray:
        """Ends in pairs (2F - 2, 3)."""
        return self.points.repeat(2, axis=0)[1:-1]


traces: TakeMemory[Trace] = TakeMemory()
