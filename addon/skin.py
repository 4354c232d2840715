"""The skin bound to an armature: which points of which meshes each bone moves."""

from __future__ import annotations

from collections.abc import Iterator

import bpy
import numpy as np
from mathutils import Matrix

from .problem import ConversionError
from .progress import finished
from .rig import Rig

MOST_POINTS = 2000
"""Points kept of one bone: enough for percentiles, few enough to be quick."""

SHARED = 0.5
"""A vertex belongs to each bone that weighs at least this part of the most that any does on it."""

MOST = 0.5
"""Parts that hang from so many of the bones on their way are a body."""

PIECE = 20_000
"""Vertices whose weights are read at once: little enough that windows are drawn in between."""


def read_skin(armature, rig: Rig) -> dict[int, np.ndarray]:
    """What `reading_skin` returns, at once."""
    return finished(reading_skin(armature, rig))


def reading_skin(armature, rig: Rig) -> Iterator[float]:
    """Reads the skin piece by piece, without telling its progress; returns, by bone, the world rest positions (k, 3)
    [m] of the vertices that each bone moves most, or nearly so: those at a joint belong to both sides. Empty where
    nothing is bound. Raises ConversionError for a mesh with vertices that are nowhere."""
    points: dict[int, list[np.ndarray]] = {}
    for mesh in bpy.data.objects:
        if mesh.type != "MESH" or not mesh.data.vertices:
            continue
        if _hangs(mesh, armature):
            owned = {rig.index.get(mesh.parent_bone, -1): np.arange(len(mesh.data.vertices))}
        elif _is_bound(mesh, armature):
            owned = yield from _owned_vertices(mesh, rig)
        else:
            continue
        positions = np.empty(3 * len(mesh.data.vertices), dtype=np.float32)
        mesh.data.vertices.foreach_get("co", positions)
        # wherever the armature is now, the skin belongs where the rig stands
        world = rig.world @ np.array(_at_rest(armature, mesh), dtype=float)
        positions = positions.reshape(-1, 3).astype(float)
        owned, positions = _with_mirror_images(mesh, rig, owned, positions)
        positions = positions @ world[:3, :3].T + world[:3, 3]
        for bone, vertices in owned.items():
            if bone >= 0:
                points.setdefault(bone, []).append(_finite(positions[vertices], mesh))
    return {bone: _thinned(np.concatenate(parts)) for bone, parts in points.items()}


def _finite(positions: np.ndarray, mesh) -> np.ndarray:
    if not np.isfinite(positions).all():
        raise ConversionError(f"skin {mesh.name!r} has vertices that are not finite numbers; remove them")
    return positions


def _at_rest(armature, mesh) -> Matrix:
    """Where a mesh is in the armature at rest: one that hangs from a bone has moved with it."""
    place = armature.matrix_world.inverted() @ mesh.matrix_world
    bone = armature.pose.bones.get(mesh.parent_bone) if _hangs(mesh, armature) else None
    return bone.bone.matrix_local @ bone.matrix.inverted() @ place if bone else place


def of_body(armature, rig: Rig, skin: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """The skin as far as it tells which bones are bodies. A robot's parts hang from most of the bones from its root up
    to them; what hangs from few of those is held or worn, and nothing is left where there is nothing else."""
    meshes = [mesh for mesh in bpy.data.objects if mesh.type == "MESH" and not _hangs(mesh, armature)]
    if any(mesh.vertex_groups and _is_bound(mesh, armature) for mesh in meshes):
        return skin
    way = {above for bone in skin for above in rig.ancestors(bone) if above in skin or rig.deforms[above]}
    return skin if len(skin) >= MOST * len(way) else {}


def _hangs(mesh, armature) -> bool:
    return mesh.parent == armature and mesh.parent_type == "BONE"


def _is_bound(mesh, armature) -> bool:
    if mesh.parent == armature and mesh.parent_type == "ARMATURE":
        return True
    return any(modifier.type == "ARMATURE" and modifier.object == armature for modifier in mesh.modifiers)


def _owned_vertices(mesh, rig: Rig) -> Iterator[float]:
    """Returns the vertices, by bone, on which each weighs at least SHARED of the most that any bone does."""
    # a group may be missing where groups were removed after weights were transferred from another mesh
    bones = dict(enumerate(rig.index.get(group.name, -1) for group in mesh.vertex_groups))
    owned: dict[int, list[int]] = {}
    for number, vertex in enumerate(mesh.data.vertices, 1):
        if number % PIECE == 0:
            yield 0.0
        weights = {bones.get(element.group, -1): element.weight for element in vertex.groups}
        weights.pop(-1, None)
        least = SHARED * max(weights.values(), default=0.0)
        for bone, weight in weights.items():
            if weight >= least > 0:
                owned.setdefault(bone, []).append(vertex.index)
    return owned


def _with_mirror_images(mesh, rig: Rig, owned: dict[int, list[int]], positions: np.ndarray):
    """Adds what a Mirror modifier makes of half a character: its other half belongs to the bones of the other side."""
    if not any(modifier.type == "MIRROR" and modifier.use_axis[0] for modifier in mesh.modifiers):
        return owned, positions
    other = {bone: rig.index.get(bpy.utils.flip_name(rig.names[bone]), bone) for bone in owned if bone >= 0}
    both = {bone: list(vertices) for bone, vertices in owned.items() if bone >= 0}
    for bone, image in other.items():
        both.setdefault(image, []).extend(np.array(owned[bone]) + len(positions))
    return both, np.concatenate([positions, positions * (-1.0, 1.0, 1.0)])


def _thinned(points: np.ndarray) -> np.ndarray:
    return points[:: -(-len(points) // MOST_POINTS)]
