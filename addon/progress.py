"""Work that is done in pieces, so that a window can be drawn in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator


def told(steps: Iterator[float], tell: Callable[[float], object]):
    """Runs a generator of progress and yields what `tell` makes of it; returns what it returns."""
    while True:
        try:
            progress = next(steps)
        except StopIteration as stop:
            return stop.value
        yield tell(progress)


def named(name: str, steps: Iterator[float], part: int = 0, parts: int = 1):
    """Runs a generator of progress under a name, as one of equal parts of it; returns what it returns."""
    return told(steps, lambda progress: (name, (part + progress) / parts))


def finished(steps: Iterator):
    """Runs a generator of progress to its end; returns what it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value
