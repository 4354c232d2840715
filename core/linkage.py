"""The linkage a person edits: links that point at each other.

Connectivity is the four pointers of Yamane and Nakamura (Dynamics Computation of Structure-Varying Kinematic
Chains, section 3): `parent`, `child` (the first), `brother` (the next with the same parent), and `real` for a
virtual link, which closes a loop. Numbers are SI units and radians.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from .joint import FREEDOMS, Joint
from .shape import Shape


class LinkageError(ValueError):
    """A linkage that cannot be simulated; the message names the link and the remedy."""


@dataclass(eq=False)
class Link:
    """A rigid body and the joint that carries it.

    The link's frame has its origin at the joint. With all joint coordinates zero it stands at `position` (3,) [m] and
    `rotation` (3, 3) in the parent's frame; for a root the parent is the world.

    `mass` [kg]; `center_of_mass` (3,) [m] and `inertia` (3, 3) [kg m²] about the center of mass, in the link's frame.
    `keyed` links follow the source motion instead of the dynamics and drive the links they carry.
    """

    name: str
    joint: Joint = field(default_factory=Joint)
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    mass: float = 1.0
    center_of_mass: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.eye(3))
    shapes: list[Shape] = field(default_factory=list)
    keyed: bool = False

    parent: Link | None = field(default=None, repr=False)
    child: Link | None = field(default=None, repr=False)
    brother: Link | None = field(default=None, repr=False)
    real: Link | None = field(default=None, repr=False)

    def children(self) -> Iterator[Link]:
        """The links this one carries, in the order they were added."""
        link = self.child
        while link is not None:
            yield link
            link = link.brother


class Linkage:
    """A forest of links under the world. `world` is not simulated; the roots are its children."""

    def __init__(self) -> None:
        self.world = Link("world", joint=Joint("fixed"), mass=0.0)

    def add(self, link: Link, parent: Link | None = None) -> Link:
        """Hangs `link` under `parent` (the world when None) as the last brother; returns `link`."""
        parent = self.world if parent is None else parent
        link.parent, link.brother = parent, None
        last = None
        for last in parent.children():  # noqa: B007 - the last one is wanted
            pass
        if last is None:
            parent.child = link
        else:
            last.brother = link
        return link

    def links(self) -> Iterator[Link]:
        """Every link below the world, parents before children, depth first."""
        pending = list(self.world.children())[::-1]
        while pending:
            link = pending.pop()
            yield link
            pending.extend(list(link.children())[::-1])

    def __getitem__(self, name: str) -> Link:
        for link in self.links():
            if link.name == name:
                return link
        raise LinkageError(f"no link is called {name!r}")
