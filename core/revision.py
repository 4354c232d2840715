"""Steps of long chains that are solved again: forces are found at velocities that are expected, and where others come
out they are found again at these, or the step is taken in halves.

What turns one joint of a chain moves all links that hang from it, so forces of velocities that are a little wrong for
each joint can bring in as much energy as the chain has. They are found again until they are of the velocities that they
lead to; a step in which none are found is cut in two.
"""

from __future__ import annotations

import numpy as np

from .spatial import TINY
from .world import World

REVISIONS = 8
"""A step is solved again, up to so often,"""
ASTRAY = 0.03
"""where ends of bodies stray in it by more than this part of their distance, as forces are of other velocities,"""
AMISS, CALM = 3e-4, 2e-5
"""or, where contacts or limits press, where the joints on the way to a link turn otherwise than forces know by more
than AMISS of what they turn by in the step, and by more than CALM [rad];"""
FAINT = 1e-5
"""and forces are found at velocities to which what lasts leads, where that lets ends stray by more than so much."""
FIRST, LEAST = 1.0, 0.1
"""Velocities are corrected by a part of what they were off by, FIRST so much and then as much as that has shown to be
right, between LEAST and all: contacts answer to it and may overshoot."""
NOISE, HELPS = 10.0, 0.9
"""Up to NOISE times what is demanded the solver's own errors count, and revisions end that leave more than HELPS;
beyond, a step is cut in two."""


class FixedPoint:
    """Approaches the velocities at which forces are such that these come out.

    By Aitken's dynamic relaxation (Küttler and Wall 2008, Fixed-point fluid-structure interaction solvers), from the
    nearest that were found: what overshoots is taken back along the same line.
    """

    def __init__(self) -> None:
        self.part, self.least = FIRST, np.inf
        self.nearest = self.off = np.zeros(0)

    def stuck(self, wrong: float) -> bool:
        """Whether to leave it at velocities that are so `wrong`."""
        return NOISE > wrong > HELPS * self.least

    def next(self, meant: np.ndarray, off: np.ndarray, wrong: float) -> np.ndarray:
        """Velocities (nv,) to try after those `meant` (nv,), which were `off` (nv,) and so `wrong`."""
        if len(self.off):
            change = off - self.off
            part = -self.part * float(self.off @ change) / max(float(change @ change), TINY)
            self.part = min(max(part, LEAST), 1.0)
        if wrong < self.least:
            self.nearest, self.off, self.least = meant, off, wrong
        return self.nearest + self.part * self.off


def strays(world: World, v: np.ndarray, off: np.ndarray, h: float) -> float:
    """How far ends of bodies stray in `h` seconds, relative to their distance, by forces of other velocities than
    theirs, `v` (nv,), which these differ from by `off` (nv,)."""
    return world.bent(h * v) * world.bent(h * off)


def wrong(world: World, v: np.ndarray, off: np.ndarray, h: float, pressed: bool) -> float:
    """How many times as far off as they may be the forces' velocities are: by what ends stray, or where contacts or
    limits have `pressed` by how far the chain turns otherwise."""
    if not pressed:
        return strays(world, v, off, h) / ASTRAY
    return world.bent(h * off) / max(AMISS * world.bent(h * v), CALM)
