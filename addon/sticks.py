"""A character as sticks, for drawing."""

from __future__ import annotations

import numpy as np

from .convert import Character


class Sticks:
    """From each link's joint to those of the links that it carries; the last ones of a limb to twice as far as their
    center of mass, as the bones of some files end anywhere. `pairs` (2s,) of the points are sticks."""

    def __init__(self, character: Character) -> None:
        number = {link: i for i, link in enumerate(character.links)}
        jointed = [(number[link.parent], i) for i, link in enumerate(character.links) if link.parent in number]
        last = sorted(set(range(len(number))) - {above for above, _ in jointed})
        pairs = jointed + [(i, len(number) + k) for k, i in enumerate(last)]
        self.pairs = np.array(pairs, dtype=int).reshape(-1)
        self._links = np.array([*range(len(number)), *last])
        self._places = np.zeros((len(self._links), 3, 1))
        self._places[len(number) :, :, 0] = [2.0 * character.links[i].center_of_mass for i in last]

    def points(self, poses: np.ndarray) -> np.ndarray:
        """The points (..., k, 3) where the links are at `poses` (..., n, 4, 4)."""
        own = poses[..., self._links, :, :]
        return (own[..., :3, :3] @ self._places)[..., 0] + own[..., :3, 3]
