"""What touches: shapes on links, and the scenery they land on.

Shapes of links are given in the link's frame, scenery in the world's. Units are metres; friction (Coulomb's μ) and
restitution are those of the pair's two surfaces combined: friction by the geometric mean, restitution by the larger.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Surface:
    friction: float = 0.6
    restitution: float = 0.0


@dataclass(frozen=True)
class Sphere(Surface):
    """A ball around `center` (3,)."""

    center: np.ndarray
    radius: float

    @property
    def reach(self) -> float:
        """The farthest point's distance from the link's origin [m]."""
        return float(np.linalg.norm(self.center)) + self.radius


@dataclass(frozen=True)
class Capsule(Surface):
    """All points within `radius` of the segment from `start` (3,) to `end` (3,)."""

    start: np.ndarray
    end: np.ndarray
    radius: float

    @property
    def reach(self) -> float:
        """The farthest point's distance from the link's origin [m]."""
        return float(max(np.linalg.norm(self.start), np.linalg.norm(self.end))) + self.radius


@dataclass(frozen=True)
class Plane(Surface):
    """Everything below the plane through `point` (3,) with outward unit `normal` (3,) is solid."""

    point: np.ndarray = field(default_factory=lambda: np.zeros(3))
    normal: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))

    def __post_init__(self) -> None:
        length = float(np.linalg.norm(self.normal))
        if not (np.isfinite(length) and length > 0 and np.isfinite(self.point).all()):
            raise ValueError(f"a plane with normal {self.normal} has no side; give a finite direction")
        object.__setattr__(self, "normal", np.asarray(self.normal, dtype=float) / length)


@dataclass(frozen=True)
class Box(Surface):
    """A solid box: `center` (3,), `half` extents (3,) along the columns of `rotation` (3, 3)."""

    center: np.ndarray
    half: np.ndarray
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        if not ((np.asarray(self.half) >= 0).all() and np.isfinite(self.half).all() and np.isfinite(self.center).all()):
            raise ValueError(f"a box of half extents {self.half} around {self.center} is no box; give finite extents")


Shape = Sphere | Capsule
Scenery = Plane | Box
