"""What a simulation has reached while it runs, for drawing: nothing of the scene changes before its end."""

from __future__ import annotations

import numpy as np

from . import activity
from .cast import Cast
from .sticks import Sticks


class Live:
    """Shows a cast every so many frames of its simulation, never with 0."""

    def __init__(self, cast: Cast, every: int) -> None:
        self._every = every
        self._shown = [(actor.links, Sticks(actor.character)) for actor in cast.actors] if every else []

    def show(self, frame: int, poses: np.ndarray) -> None:
        """Lets the links be drawn at `poses` (n, 4, 4) [m], if this is one of the frames."""
        if self._every and frame % self._every == 0:
            ends = [sticks.points(poses[own])[sticks.pairs].reshape(-1, 2, 3) for own, sticks in self._shown]
            heads, tails = np.concatenate(ends).astype(np.float32).swapaxes(0, 1)
            _drawn[:] = [activity.spindles(heads, tails)]
            _news[:] = [True]

    def hide(self) -> None:
        if self._every:
            _drawn.clear()
            _news[:] = [True]


_drawn: list[np.ndarray] = []
_news: list[bool] = []


def faces() -> np.ndarray:
    """Corners in threes (3k, 3) of what the simulation that runs has reached; none where none is shown."""
    return _drawn[0] if _drawn else np.empty((0, 3), dtype=np.float32)


def has_news() -> bool:
    """Whether something else is to be drawn than when `take_news` was last asked."""
    return bool(_news)


def take_news() -> bool:
    """As `has_news`, which is over by that."""
    news = bool(_news)
    _news.clear()
    return news
