"""Makers of loose stones: stacks and pyramids of boxes, and an arch that only its own weight holds together, each a new
`Linkage` of free links whose rest pose is the start, in SI units. They stand on the plane z = 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .joint import Joint
from .linkage import Link, Linkage
from .shape import Box, Hull

BRICK_TRIANGLES = np.array([
    (0, 2, 1), (0, 3, 2), (4, 5, 6), (4, 6, 7), (0, 1, 5), (0, 5, 4),
    (1, 2, 6), (1, 6, 5), (2, 3, 7), (2, 7, 6), (3, 0, 4), (3, 4, 7),
])  # fmt: skip
"""The sides of a brick, outward, whose corners 4 to 7 lie on the far side of 0 to 3; these are counter-clockwise seen
from there."""


def block(name: str, half: Sequence[float], *, mass: float = 1.0, **surface) -> Link:
    """A free box of `half` extents (3,) [m] and `mass` [kg] around its origin; `surface` as in `shape.Surface`."""
    half = np.asarray(half, dtype=float)
    inertia = mass / 3.0 * np.diag((half**2).sum() - half**2)
    return Link(name, Joint("free"), mass=mass, inertia=inertia, shapes=[Box(np.zeros(3), half, **surface)])


def stone(name: str, vertices: np.ndarray, triangles: np.ndarray, *, density: float = 1000.0, **surface) -> Link:
    """A free solid hull with corners `vertices` (n, 3) in the world and outward `triangles` (m, 3), of `density`
    [kg/m³]; its origin is its center of mass."""
    # the solid as tetrahedra between its middle and each triangle
    middle = np.mean(vertices, axis=0)
    corners = (np.asarray(vertices) - middle)[np.asarray(triangles)]
    mass = density / 6.0 * np.linalg.det(corners)
    total = corners.sum(axis=1)
    center = (mass @ total) / 4.0 / mass.sum()
    spread = (corners.swapaxes(1, 2) @ corners + total[:, :, None] * total[:, None, :]) / 20.0
    spread = (mass[:, None, None] * spread).sum(axis=0) - mass.sum() * np.outer(center, center)
    return Link(
        name, Joint("free"), position=middle + center, mass=float(mass.sum()),
        inertia=np.trace(spread) * np.eye(3) - spread,
        shapes=[Hull(np.asarray(vertices) - middle - center, triangles, **surface)],
    )  # fmt: skip


def stack(masses: Sequence[float], half: Sequence[float] = (0.1, 0.1, 0.1), *, gap: float = 0.0, **surface) -> Linkage:
    """Boxes of `half` extents (3,) [m] one on the other, of `masses` [kg] from below, each `gap` [m] above the last."""
    linkage = Linkage()
    for i, mass in enumerate(masses):
        piece = linkage.add(block(f"box.{i}", half, mass=mass, **surface))
        piece.position = np.array([0.0, 0.0, half[2] + 2.0 * i * half[2] + (i + 1) * gap])
    return linkage


def pyramid(rows: int, half: Sequence[float] = (0.1, 0.1, 0.1), *, mass: float = 1.0, **surface) -> Linkage:
    """A wall of boxes in the xz plane, `rows` below, one less in each further row, a tenth of a box between two."""
    linkage = Linkage()
    for row in range(rows):
        for i in range(rows - row):
            piece = linkage.add(block(f"box.{row}.{i}", half, mass=mass, **surface))
            piece.position = np.array([2.2 * half[0] * (i - 0.5 * (rows - row - 1)), 0.0, (2 * row + 1) * half[2]])
    return linkage


def arch(
    stones: int = 9, *, radius: float = 1.0, thickness: float = 0.3, depth: float = 0.4, density: float = 1000.0,
    **surface,
) -> Linkage:  # fmt: skip
    """Half a ring of wedges in the xz plane around the origin, of middle `radius`, `thickness` across and `depth` along
    y [m].

    It stands by its weight alone where it is thicker than 0.107 of its radius, and does not slide on itself or the
    ground (Heyman, "The safety of masonry arches", 1969).
    """
    linkage = Linkage()
    angles = np.linspace(0.0, np.pi, stones + 1)
    rays = np.stack((np.cos(angles), np.zeros(stones + 1), np.sin(angles)), axis=1)
    inner, outer = (radius - 0.5 * thickness) * rays, (radius + 0.5 * thickness) * rays
    across = np.array([0.0, 0.5 * depth, 0.0])
    for i in range(stones):
        front = np.array([inner[i], outer[i], outer[i + 1], inner[i + 1]])
        corners = np.concatenate((front + across, front - across))
        linkage.add(stone(f"stone.{i}", corners, BRICK_TRIANGLES, density=density, **surface))
    return linkage
