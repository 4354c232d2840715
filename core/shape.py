"""What touches: shapes on links, and the scenery they land on, all with a surface.

Shapes of links are given in the link's frame, scenery in the world's. Lengths are metres.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .checks import are_numbers, are_rotations


@dataclass(frozen=True, kw_only=True, eq=False)
class Surface:
    """How a shape behaves where it touches another.

    `friction` is Coulomb's μ and combines by the geometric mean; `restitution` (0 to 1), `rolling` and `torsion`
    combine by the larger. `rolling` and `torsion` [m] times the normal force are the most that a contact resists
    rolling and spinning. Two shapes meet if they have a layer, a bit of `layers`, in common, and do not belong to the
    same named `family`.
    """

    friction: float = 0.6
    restitution: float = 0.0
    rolling: float = 0.0
    torsion: float = 0.0
    layers: int = 1
    family: str = ""

    def __post_init__(self) -> None:
        named = type(self).__name__
        for name in ("friction", "rolling", "torsion"):
            value = getattr(self, name)
            if not (are_numbers(value) and value >= 0):
                raise ValueError(f"a {named} has {name} {value}; give a number of at least 0")
        if not (are_numbers(self.restitution) and 0 <= self.restitution <= 1):
            raise ValueError(f"a {named} has restitution {self.restitution}; give a number from 0 to 1")
        if not isinstance(self.layers, (int, np.integer)) or abs(self.layers) >= 2**63:
            raise ValueError(f"a {named} has layers {self.layers}; give a whole number of up to 63 bits")
        self._check(named)

    def _check(self, named: str) -> None:
        """Raises ValueError for a shape that is none."""


@dataclass(frozen=True, eq=False)
class Sphere(Surface):
    """A ball around `center` (3,)."""

    center: np.ndarray
    radius: float

    @property
    def reach(self) -> float:
        """The farthest point's distance from the frame's origin [m]."""
        return float(np.linalg.norm(self.center)) + self.radius

    @property
    def thickness(self) -> float:
        """Half the width where the shape is thinnest [m]."""
        return self.radius

    def moved(self, pose: np.ndarray) -> Sphere:
        """The shape carried along by a rigid pose (4, 4)."""
        return replace(self, center=_at(pose, self.center))

    def _check(self, named: str) -> None:
        _refuse_unless_sized(named, self.radius, center=self.center)


@dataclass(frozen=True, eq=False)
class Capsule(Surface):
    """All points within `radius` of the segment from `start` (3,) to `end` (3,)."""

    start: np.ndarray
    end: np.ndarray
    radius: float

    @property
    def reach(self) -> float:
        return float(max(np.linalg.norm(self.start), np.linalg.norm(self.end))) + self.radius

    @property
    def thickness(self) -> float:
        return self.radius

    def moved(self, pose: np.ndarray) -> Capsule:
        return replace(self, start=_at(pose, self.start), end=_at(pose, self.end))

    def _check(self, named: str) -> None:
        _refuse_unless_sized(named, self.radius, start=self.start, end=self.end)


@dataclass(frozen=True, eq=False)
class TaperedCapsule(Surface):
    """The convex hull of a ball of `radius` around `start` (3,) and one of `end_radius` around `end` (3,)."""

    start: np.ndarray
    end: np.ndarray
    radius: float
    end_radius: float

    @property
    def reach(self) -> float:
        return float(max(np.linalg.norm(self.start) + self.radius, np.linalg.norm(self.end) + self.end_radius))

    @property
    def thickness(self) -> float:
        return min(self.radius, self.end_radius)

    def moved(self, pose: np.ndarray) -> TaperedCapsule:
        return replace(self, start=_at(pose, self.start), end=_at(pose, self.end))

    def _check(self, named: str) -> None:
        _refuse_unless_sized(named, self.radius, start=self.start)
        _refuse_unless_sized(named, self.end_radius, end=self.end)


@dataclass(frozen=True, eq=False)
class Plane(Surface):
    """Everything below the plane through `point` (3,) with outward unit `normal` (3,) is solid. Scenery only."""

    point: np.ndarray = field(default_factory=lambda: np.zeros(3))
    normal: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))

    def _check(self, named: str) -> None:
        given = are_numbers(self.normal, 3) and are_numbers(self.point, 3)
        if not (given and 0 < (length := float(np.linalg.norm(self.normal))) < np.inf):
            raise ValueError(
                f"a plane through {self.point} with normal {self.normal} has no side; give a finite place and direction"
            )
        object.__setattr__(self, "normal", np.asarray(self.normal, dtype=float) / length)

    def moved(self, pose: np.ndarray) -> Plane:
        return replace(self, point=_at(pose, self.point), normal=pose[:3, :3] @ self.normal)


CORNERS = np.indices((2, 2, 2)).reshape(3, -1).T * 2 - 1
"""Corners (8, 3) of the box from -1 to 1."""


@dataclass(frozen=True, eq=False)
class Box(Surface):
    """A solid box: `center` (3,), `half` extents (3,) along the columns of `rotation` (3, 3)."""

    center: np.ndarray
    half: np.ndarray
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))

    @property
    def reach(self) -> float:
        corners = self.half * CORNERS
        return float(np.linalg.norm(self.center + corners @ np.asarray(self.rotation).T, axis=1).max())

    @property
    def thickness(self) -> float:
        return float(np.min(self.half))

    def moved(self, pose: np.ndarray) -> Box:
        return replace(self, center=_at(pose, self.center), rotation=pose[:3, :3] @ self.rotation)

    def _check(self, named: str) -> None:
        if not (are_numbers(self.rotation, 3, 3) and are_rotations(self.rotation)):
            raise ValueError("a Box has a rotation that is none; give a rotation matrix, and its size in half")
        if not (are_numbers(self.half, 3) and are_numbers(self.center, 3) and np.min(self.half) >= 0):
            raise ValueError(
                f"a box of half extents {self.half} around {self.center} is no box; give three extents from 0 on"
            )


@dataclass(frozen=True, eq=False)
class Cylinder(Surface):
    """All points within `radius` of the axis from `start` (3,) to `end` (3,), with flat ends. Scenery only, still
    or on a keyed link."""

    start: np.ndarray
    end: np.ndarray
    radius: float

    @property
    def reach(self) -> float:
        return float(max(np.linalg.norm(self.start), np.linalg.norm(self.end))) + self.radius

    @property
    def thickness(self) -> float:
        return min(self.radius, float(np.linalg.norm(np.subtract(self.end, self.start))) / 2)

    def moved(self, pose: np.ndarray) -> Cylinder:
        return replace(self, start=_at(pose, self.start), end=_at(pose, self.end))

    def _check(self, named: str) -> None:
        _refuse_unless_sized(named, self.radius, start=self.start, end=self.end)
        if np.array_equal(self.start, self.end):
            raise ValueError(f"a {named} from {self.start} to {self.end} has no length; give two places")


@dataclass(frozen=True, eq=False)
class Hull(Surface):
    """A solid convex polyhedron with corners `vertices` (n, 3) and outward `triangles` (m, 3) of vertex numbers."""

    vertices: np.ndarray
    triangles: np.ndarray

    @property
    def reach(self) -> float:
        return float(np.linalg.norm(self.vertices, axis=1).max())

    @property
    def thickness(self) -> float:
        """Half the least width across a face."""
        corners = np.asarray(self.vertices)[np.asarray(self.triangles)]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        lengths = np.linalg.norm(normals, axis=1)
        normals = normals[lengths > 0] / lengths[lengths > 0, None]
        return float(np.ptp(self.vertices @ normals.T, axis=0).min()) / 2

    def moved(self, pose: np.ndarray) -> Hull:
        return replace(self, vertices=_at(pose, self.vertices))

    def _check(self, named: str) -> None:
        _refuse_bad_triangles(named, self.vertices, self.triangles, least=4)


@dataclass(frozen=True, eq=False)
class Mesh(Surface):
    """A surface of `triangles` (m, 3), numbers of `vertices` (n, 3). Where it is closed what it encloses is solid, else
    it is a shell with two sides. Scenery only, still or on a keyed link."""

    vertices: np.ndarray
    triangles: np.ndarray

    @property
    def reach(self) -> float:
        return float(np.linalg.norm(self.vertices, axis=1).max())

    @property
    def thickness(self) -> float:
        return 0.0

    def moved(self, pose: np.ndarray) -> Mesh:
        return replace(self, vertices=_at(pose, self.vertices))

    def _check(self, named: str) -> None:
        _refuse_bad_triangles(named, self.vertices, self.triangles, least=1)


Shape = Sphere | Capsule | TaperedCapsule | Box | Hull
Scenery = Plane | Box | Sphere | Capsule | TaperedCapsule | Cylinder | Hull | Mesh


def _at(pose: np.ndarray, points: np.ndarray) -> np.ndarray:
    return points @ pose[:3, :3].T + pose[:3, 3]


def _refuse_unless_sized(named: str, radius: float, **points: np.ndarray) -> None:
    if not (are_numbers(radius) and radius > 0 and all(are_numbers(point, 3) for point in points.values())):
        where = ", ".join(f"{name} {point}" for name, point in points.items())
        raise ValueError(f"a {named} of radius {radius} and {where} has no size; give finite places and radii above 0")


def _refuse_bad_triangles(named: str, vertices: np.ndarray, triangles: np.ndarray, least: int) -> None:
    corners = np.asarray(triangles)
    if np.ndim(vertices) != 2 or np.shape(vertices)[1] != 3 or corners.shape[1:] != (3,) or len(corners) < least:
        raise ValueError(
            f"a {named} has vertices {np.shape(vertices)} and triangles {corners.shape}; give vertices (n, 3) and at "
            f"least {least} (m, 3)"
        )
    if not are_numbers(vertices, -1, 3):
        raise ValueError(f"a {named} has vertices that are not finite numbers; remove them")
    if corners.dtype.kind not in "iu" or corners.min() < 0 or corners.max() >= len(vertices):
        raise ValueError(
            f"a {named} has triangles of vertices that it does not have; give whole numbers below {len(vertices)}"
        )
