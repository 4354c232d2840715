"""One object of the scene as a shape to collide with: as its rigid body says, or its mesh as it is seen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import bpy
import numpy as np

from ..core import Box, Capsule, Cylinder, Hull, Mesh, Sphere
from ..core.mesh import WELD
from ..core.shape import CORNERS, Scenery
from .hull import convex_hull, outward
from .instances import instances, shows_instances
from .surface import layer_bits

MOST_CORNERS = 64
"""Corners that a convex hull keeps."""

CONE_SIDES = 16
SHEAR = 1e-4
"""Axes whose cosines are above this are not square to each other."""

CUBOID = 1e-5
"""A mesh whose corners are so near to those of its box, as a part of its size, is that box."""

FLATTEST = 1e-3
"""Half the height of a cylinder around a flat mesh, as a part of its radius."""

DEFORMING = {
    "ARMATURE", "CAST", "CLOTH", "COLLISION", "CORRECTIVE_SMOOTH", "CURVE", "DISPLACE", "HOOK", "LAPLACIANDEFORM",
    "LAPLACIANSMOOTH", "LATTICE", "MESH_CACHE", "MESH_DEFORM", "SHRINKWRAP", "SIMPLE_DEFORM", "SMOOTH", "SOFT_BODY",
    "SURFACE", "SURFACE_DEFORM", "WARP", "WAVE",
}  # fmt: skip
"""The types of modifiers that only move vertices."""

SLIVER = 4 * WELD
"""Triangles lower than this part of the mesh's size may have no area: welding moves each end of that height."""

STRETCH = 4.0
"""At a sharp corner a point moves by so many margins at most."""

CORNER_TRIANGLES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
     [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
)  # fmt: skip


@dataclass(frozen=True)
class Manner:
    """How an object collides: the `kind` of shape in Blender's words, which of its meshes is meant (`source`), by how
    much it grows (`margin` [m]), and its `surface`, the fields of a Surface."""

    kind: str
    source: str
    margin: float
    surface: dict


@dataclass(frozen=True, eq=False)
class Geometry:
    """A mesh in its object's own space: `vertices` (n, 3), `triangles` (m, 3)."""

    vertices: np.ndarray
    triangles: np.ndarray


def manner(thing, surface: dict) -> Manner:
    """How an object collides: as its rigid body says, or as its mesh is seen, with that `surface`."""
    body = thing.rigid_body
    if not body:
        return Manner("MESH", "SEEN", 0.0, surface)
    # in a compound every part has the whole's surface
    whole = body_above(thing) or body
    bits = layer_bits(whole.collision_collections)
    own = {"friction": whole.friction, "restitution": whole.restitution, "layers": bits}
    # Bullet keeps the margin of a box or cylinder inside it, and spheres and capsules are all margin
    grows = body.use_margin and body.collision_shape in ("CONVEX_HULL", "MESH", "CONE")
    margin = body.collision_margin if grows else 0.0
    return Manner(body.collision_shape, body.mesh_source, margin, {**surface, **own})


def body_above(thing):
    """The rigid body that an object is a part of, because it is a compound; or None."""
    found = None
    while thing.parent and thing.parent.rigid_body and thing.parent.rigid_body.collision_shape == "COMPOUND":
        thing = thing.parent
        found = thing.rigid_body
    return found


def read_geometry(thing, source: str = "FINAL") -> Geometry:
    """An object's mesh as evaluated now: SEEN with all modifiers and the instances it shows, FINAL without these,
    DEFORM with the modifiers that only move vertices, BASE without any. Of what is no mesh, the mesh it is drawn as.
    Raises TooManyInstances."""
    if thing.type == "MESH" and source == "BASE":
        return _geometry(thing.data)
    if source == "SEEN" and shows_instances(thing):
        return _together(read_geometry(thing), *(Geometry(*own) for own in instances(thing)))
    if thing.type == "MESH" and source == "DEFORM":
        with _leading_deforms_only(thing):
            return read_geometry(thing)
    graph = bpy.context.evaluated_depsgraph_get()
    evaluated = thing.evaluated_get(graph)
    try:
        return _geometry(evaluated.to_mesh())
    except RuntimeError:  # Blender's way to say that this type of object has no mesh
        return Geometry(np.empty((0, 3)), np.empty((0, 3), dtype=int))
    finally:
        evaluated.to_mesh_clear()


@contextlib.contextmanager
def _leading_deforms_only(thing) -> Iterator[None]:
    """Turns off the modifiers from the first on that makes new faces, as Blender's rigid bodies read a mesh."""
    shown = [modifier for modifier in thing.modifiers if modifier.show_viewport]
    count = next((i for i, modifier in enumerate(shown) if modifier.type not in DEFORMING), len(shown))
    try:
        for modifier in shown[count:]:
            modifier.show_viewport = False
        yield
    finally:
        for modifier in shown[count:]:
            modifier.show_viewport = True


def _together(*parts: Geometry) -> Geometry:
    first = np.cumsum([0, *(len(part.vertices) for part in parts)])
    triangles = [part.triangles + start for part, start in zip(parts, first)]
    return Geometry(np.concatenate([part.vertices for part in parts]), np.concatenate(triangles))


def _geometry(mesh) -> Geometry:
    mesh.calc_loop_triangles()
    vertices = np.empty(3 * len(mesh.vertices), dtype=np.float32)
    mesh.vertices.foreach_get("co", vertices)
    triangles = np.empty(3 * len(mesh.loop_triangles), dtype=np.int32)
    mesh.loop_triangles.foreach_get("vertices", triangles)
    return Geometry(vertices.reshape(-1, 3).astype(float), triangles.reshape(-1, 3).astype(int))


def obstacle(geometry: Geometry, world: np.ndarray, how: Manner) -> Scenery:
    """The shape in the world of a mesh at `world` (4, 4). Raises ValueError, without a name, where there is none."""
    _check(geometry, world)
    points = geometry.vertices @ world[:3, :3].T + world[:3, 3]
    if how.kind == "MESH":
        return _mesh(geometry, points, world, how)
    if how.kind == "CONVEX_HULL":
        found = convex_hull(points, MOST_CORNERS)
        # what is flat is a mesh with two sides
        return _hull(*found, how) if found else _mesh(geometry, points, world, how)
    frame = _Frame.of(geometry.vertices, world)
    along, radius, height = frame.axes[:, 2], float(frame.half[:2].max()), float(frame.half[2])
    if how.kind == "SPHERE":
        return Sphere(frame.center, float(frame.half.max()), **how.surface)
    if how.kind == "CAPSULE":
        reach = max(height - radius, 0.0) * along
        return Capsule(frame.center - reach, frame.center + reach, radius or height, **how.surface)
    if how.kind == "CYLINDER":
        reach = max(height, FLATTEST * radius) * along
        return Cylinder(frame.center - reach, frame.center + reach, radius, **how.surface)
    if how.kind == "CONE":
        turn = 2 * np.pi * np.arange(CONE_SIDES) / CONE_SIDES
        ring = np.stack([radius * np.cos(turn), radius * np.sin(turn), np.full(CONE_SIDES, -height)], axis=1)
        corners = np.concatenate([ring, [[0.0, 0.0, height]]]) @ frame.axes.T + frame.center
        found = convex_hull(corners, MOST_CORNERS)
        return _hull(*found, how) if found else _mesh(geometry, points, world, how)
    return _box(frame, geometry.vertices, world, how)


@dataclass(frozen=True, eq=False)
class _Frame:
    """The box around a mesh, in the world: its middle, half extents and rotation, as if it were not sheared."""

    center: np.ndarray
    half: np.ndarray
    axes: np.ndarray
    sheared: bool

    @classmethod
    def of(cls, vertices: np.ndarray, world: np.ndarray) -> _Frame:
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        scale = np.linalg.norm(world[:3, :3], axis=0)
        axes = world[:3, :3] / scale
        sheared = bool(np.abs(axes.T @ axes - np.eye(3)).max() > SHEAR)
        if sheared:
            u, _, vt = np.linalg.svd(axes)
            axes = u @ vt
        # a mirrored object is the same box
        axes = axes * [np.sign(np.linalg.det(axes)), 1.0, 1.0]
        return cls(world[:3, :3] @ (low + high) / 2 + world[:3, 3], scale * (high - low) / 2, axes, sheared)


def _box(frame: _Frame, vertices: np.ndarray, world: np.ndarray, how: Manner) -> Scenery:
    if not frame.sheared:
        return Box(frame.center, frame.half, frame.axes, **how.surface)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    corners = ((low + high) / 2 + CORNERS * (high - low) / 2) @ world[:3, :3].T + world[:3, 3]
    return _hull(corners, outward(corners, CORNER_TRIANGLES), how)


def _hull(corners: np.ndarray, triangles: np.ndarray, how: Manner) -> Hull:
    if how.margin > 0:
        corners = _grown(corners, triangles, how.margin)
    return Hull(corners, triangles, **how.surface)


def _mesh(geometry: Geometry, points: np.ndarray, world: np.ndarray, how: Manner) -> Scenery:
    if not len(geometry.triangles):
        raise ValueError("it has no faces")
    frame = _Frame.of(geometry.vertices, world)
    if not how.margin and not frame.sheared and _is_cuboid(geometry):
        return Box(frame.center, frame.half, frame.axes, **how.surface)
    # mirroring turns the faces inside out
    mirrored = np.linalg.det(world[:3, :3]) < 0
    triangles = geometry.triangles[:, ::-1] if mirrored else geometry.triangles
    if how.margin > 0:
        points = _grown(points, triangles, how.margin)
    if not _has_area(points, triangles):
        raise ValueError("its faces have no area")
    return Mesh(points, np.ascontiguousarray(triangles), **how.surface)


def _has_area(points: np.ndarray, triangles: np.ndarray) -> bool:
    """Whether a triangle surely keeps an area when the mesh is made ready for contact."""
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    longest = np.linalg.norm([b - a, c - b, a - c], axis=2).max(axis=0)
    height = SLIVER * np.ptp(points, axis=0).max()
    return bool((np.linalg.norm(np.cross(b - a, c - a), axis=1) > height * longest).any())


def _is_cuboid(geometry: Geometry) -> bool:
    """Whether a mesh is nothing but a closed box along its object's axes."""
    if geometry.vertices.shape != (8, 3) or len(geometry.triangles) != 12:
        return False
    low, high = geometry.vertices.min(axis=0), geometry.vertices.max(axis=0)
    upper = geometry.vertices > (low + high) / 2
    corners = np.where(upper, high, low)
    a, b, c = np.moveaxis(geometry.vertices[geometry.triangles], 1, 0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2
    x, y, z = high - low
    return bool(
        len(np.unique(upper, axis=0)) == 8
        and np.abs(corners - geometry.vertices).max() <= CUBOID * (high - low).max()
        and abs(area - 2 * (x * y + y * z + z * x)) <= 1e-4 * area
    )


def _grown(points: np.ndarray, triangles: np.ndarray, margin: float) -> np.ndarray:
    """Points moved out until the faces around each have moved by `margin` [m], or as nearly so as they can be."""
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    lengths = np.linalg.norm(normals, axis=1)
    solid = lengths > 0
    owner, normal = triangles[solid].ravel(), np.repeat(normals[solid] / lengths[solid, None], 3, axis=0)
    matrix, wanted = np.zeros((len(points), 3, 3)), np.zeros((len(points), 3))
    np.add.at(matrix, owner, normal[:, :, None] * normal[:, None])
    np.add.at(wanted, owner, margin * normal)
    moves = (np.linalg.pinv(matrix, rcond=1e-3, hermitian=True) @ wanted[:, :, None])[:, :, 0]
    size = np.linalg.norm(moves, axis=1, keepdims=True)
    return points + moves * np.minimum(1.0, STRETCH * margin / np.maximum(size, 1e-300))


def _check(geometry: Geometry, world: np.ndarray) -> None:
    if not np.isfinite(world).all() or np.linalg.norm(world[:3, :3], axis=0).min() < 1e-9:
        raise ValueError("its scale is zero or not a finite number; reset its transform")
    if np.linalg.svd(world[:3, :3], compute_uv=False)[2] < 1e-9:
        raise ValueError("its transform flattens it; reset its transform")
    if not len(geometry.vertices):
        raise ValueError("it has no mesh")
    if not np.isfinite(geometry.vertices).all():
        raise ValueError("it has vertices that are not finite numbers; remove them")
    if np.ptp(geometry.vertices, axis=0).max() <= 0:
        raise ValueError("all its vertices are in one place")
