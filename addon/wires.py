"""The shapes of an armature's bones as lines, prepared for drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Box, Capsule, Hull, Sphere, TaperedCapsule
from ..core.shape import CORNERS, Shape
from .collider import axes_along
from .memory import Memory

SIDES = 24
"""Straight pieces of a circle."""


@dataclass(frozen=True, eq=False)
class Wires:
    """Ends in pairs (2k, 3) of lines [m], those of each of the bones `names` (n,) together and in its frame without
    scale: the bone's number among the pose bones is in `bodies` (n,), its first end in `starts` (n + 1,). `looks`: what
    the armature's settings were when it was prepared."""

    looks: tuple
    names: list[str]
    bodies: np.ndarray
    starts: np.ndarray
    points: np.ndarray

    def at(self, poses: np.ndarray) -> np.ndarray:
        """The ends (2k, 3) in the world, where the bones are at `poses` (n, 4, 4)."""
        result, poses = np.empty_like(self.points), poses.astype(np.float32)
        # one product for each bone is ten times as quick as one for each end
        for start, end, own in zip(self.starts, self.starts[1:], poses):
            np.matmul(self.points[start:end], own[:3, :3].T, out=result[start:end])
            result[start:end] += own[:3, 3]
        return result


_known: Memory[Wires] = Memory()


def known(armature, looks: tuple) -> Wires | None:
    """What was prepared for an armature, if it still looks so."""
    wires = _known.kept(armature)
    return wires if wires and wires.looks == looks else None


def remember(armature, looks: tuple, shapes: dict[str, list[Shape]], rest: dict[str, np.ndarray]) -> Wires:
    """Prepares the shapes in the world at rest of bones whose rest poses (4, 4) there are `rest`."""
    number = {bone.name: i for i, bone in enumerate(armature.pose.bones)}
    points = [np.concatenate([np.empty((0, 3)), *map(lines_of, shapes[name])]) for name in shapes]
    points = [(ends - rest[name][:3, 3]) @ rest[name][:3, :3] for name, ends in zip(shapes, points)]
    wires = Wires(
        looks, list(shapes), np.array([number[name] for name in shapes], dtype=int),
        np.cumsum([0, *map(len, points)]), np.concatenate([np.empty((0, 3)), *points]).astype(np.float32),
    )  # fmt: skip
    _known.keep(armature, wires)
    return wires


def lines_of(shape: Shape) -> np.ndarray:
    """Ends in pairs (2k, 3) of the lines that show a shape."""
    if isinstance(shape, Sphere):
        return np.concatenate([_circle(shape.center, shape.radius, *np.eye(3)[[i, i - 1]]) for i in range(3)])
    if isinstance(shape, Capsule | TaperedCapsule):
        return _bar(shape.start, shape.end, shape.radius, getattr(shape, "end_radius", shape.radius))
    if isinstance(shape, Box):
        edges = [(a, a | bit) for a in range(8) for bit in (1, 2, 4) if not a & bit]
        return (CORNERS * shape.half @ shape.rotation.T + shape.center)[np.ravel(edges)]
    return _edges(shape)


def _edges(hull: Hull) -> np.ndarray:
    """Edges between faces that are not in one plane."""
    a, b, c = np.moveaxis(hull.vertices[hull.triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    sides: dict[tuple[int, int], list[int]] = {}
    for face, corners in enumerate(hull.triangles.tolist()):
        for edge in zip(corners, corners[1:] + corners[:1]):
            sides.setdefault((min(edge), max(edge)), []).append(face)
    sharp = [edge for edge, faces in sides.items() if len(faces) < 2 or normals[faces[0]] @ normals[faces[1]] < 0.9999]
    return hull.vertices[np.ravel(sharp)]


def _bar(start: np.ndarray, end: np.ndarray, radius: float, end_radius: float) -> np.ndarray:
    """Two balls and the four lines along their common hull."""
    along = np.subtract(end, start)
    length, (z, x, y) = float(np.linalg.norm(along)), axes_along(along)
    # the hull's lines touch the balls where these are turned by the cone's half angle
    lean = np.clip((radius - end_radius) / max(length, 1e-300), -1.0, 1.0)
    out, up = np.sqrt(1 - lean**2), lean
    parts = [
        _circle(start + radius * up * z, radius * out, x, y),
        _circle(end + end_radius * up * z, end_radius * out, x, y),
    ]
    turn = np.arccos(lean)
    for side in (x, y):
        parts += [_arc(start, radius, z, side, turn, np.pi), _arc(end, end_radius, z, side, 0.0, turn)]
        for sign in (1.0, -1.0):
            normal = sign * out * side + up * z
            parts.append(np.array([start + radius * normal, end + end_radius * normal]))
    return np.concatenate(parts)


def _arc(center: np.ndarray, radius: float, pole: np.ndarray, side: np.ndarray, low: float, high: float) -> np.ndarray:
    """The arc at angles from `low` to `high` from the pole, on both sides of it."""
    angles = np.linspace(low, high, SIDES // 4 + 1)
    parts = []
    for sign in (1.0, -1.0):
        points = center + radius * (np.cos(angles)[:, None] * pole + sign * np.sin(angles)[:, None] * side)
        parts.append(np.repeat(points, 2, axis=0)[1:-1])
    return np.concatenate(parts)


def _circle(center: np.ndarray, radius: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    angles = np.linspace(0, 2 * np.pi, SIDES + 1)
    points = center + radius * (np.cos(angles)[:, None] * x + np.sin(angles)[:, None] * y)
    return np.repeat(points, 2, axis=0)[1:-1]
