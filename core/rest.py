"""Rest: bodies that have become still are not stepped until something moves that touches them."""

from __future__ import annotations

import math

import numpy as np

from .closure import Loops
from .contact import Contacts
from .groups import joined
from .model import Model

STILL = 0.0125
"""Slower than this times `World.slow` looks still;"""
ALOOF = 0.02
"""what touches nothing, and whose joints no friction lets creep, goes on until it is slower by this;"""
CREEP = 1e-6
"""scenery that moves faster than this times `World.slow` lets nothing rest on it;"""
REST_TIME = 0.5
"""what has been still so long [s], and nothing drives, is at rest."""


class Rest:
    """How still the trees of a model have been, frame by frame, and which of them are at rest.

    `tree` (slots + 1,) numbers each slot's tree; the world's, and those of unused slots, are the last, `count`.
    """

    def __init__(self, model: Model, loops: Loops, frame_time: float, driven: bool) -> None:
        roots, number = np.unique(model.trees, return_inverse=True)
        self.count = len(roots)
        self.tree = np.full(model.assembly.links + 1, self.count)
        self.tree[model.assembly.slot] = number
        simulated = np.bincount(number, ~model.keyed, self.count)
        keyed = np.bincount(number, model.keyed, self.count)
        # what is keyed as a whole is scenery: it carries others, and does not join them
        self.scenery = np.append(simulated == 0, True)
        self.driven = np.append((simulated > 0) & (keyed > 0) | driven, False)
        self.joined = self.tree[np.stack((loops.host, loops.real))]
        moved = self.scenery[self.joined] & (self.joined < self.count)
        soft = np.isin(np.arange(len(loops)), loops.loop[loops.soft])
        self.driven[self.joined[:, moved.any(axis=0) | soft]] = True
        rubs = np.bincount(np.repeat(number, np.diff(model.coordinates.v_start)), model.friction, self.count) > 0.0
        self._creeps = np.append(rubs, False)
        self._half = (math.ceil(REST_TIME / frame_time) + 3) // 2
        self._speeds: list[np.ndarray] = []

    def note(self, speeds: np.ndarray) -> None:
        """Remembers how fast each slot drifts (slots,) [m/s] in a frame."""
        fastest = np.zeros(self.count + 1)
        np.maximum.at(fastest, self.tree[:-1], speeds)
        self._speeds = [*self._speeds[1 - 2 * self._half :], fastest]

    def asleep(self, contacts: Contacts, slow: float, sunk: float, before: np.ndarray) -> np.ndarray:
        """The group (slots + 1,) in which each slot's tree sleeps, 0 for what is awake, as those that `contacts` or
        loops join do so together. `slow` as in `World.slow`; `before` like the result: who sleeps already."""
        sides = self.tree[np.stack((contacts.link, contacts.other))]
        held = self._creeps.copy()
        held[sides] = True
        calm = self._calm(slow * np.where(held, 1.0, ALOOF)) & ~self.driven
        calm[self.scenery] = True
        deep = self.tree[contacts.pairs(contacts.gap < -sunk)]
        calm[deep[~self.scenery[deep]]] = False
        sides = np.concatenate((sides, self.joined), axis=1)
        if self._speeds:
            carried = (self.scenery & (self._speeds[-1] > CREEP * slow))[sides].any(axis=0)
            calm[sides[:, carried]] = False
        group = joined(self.count + 1, sides[:, ~self.scenery[sides].any(axis=0)])
        restless = np.zeros(self.count + 1, dtype=bool)
        restless[group[~calm]] = True
        rests = ~restless[group] & ~self.scenery
        # groups are named by their first tree's number, from 1
        result = np.where(rests, group + 1, 0)[self.tree]
        return np.where(before > 0, before, result)

    def _calm(self, slow: np.ndarray) -> np.ndarray:
        """Whether each tree (count + 1,) was still all the while, in terms of what is `slow` for it (count + 1,), and
        has not begun to topple: that begins slowly, but grows."""
        half, still = self._half, STILL * slow
        if len(self._speeds) < 2 * half:
            return np.zeros(self.count + 1, dtype=bool)
        recent = np.array(self._speeds[-2 * half :])
        earlier, later = recent[:half].max(axis=0), recent[half:].max(axis=0)
        return (recent.max(axis=0) <= still) & (later <= np.maximum(earlier, 1e-3 * still))
