"""What objects show besides their own mesh: instances of a collection, of their children, or of geometry nodes."""

from __future__ import annotations

from collections.abc import Iterator

import bpy
import numpy as np

from .prop import placed

MOST_TRIANGLES = 1_000_000
"""Triangles of all instances of one object that are taken: meadows are not there to lie on blade by blade."""


class TooManyInstances(ValueError):
    """Says so, without a name."""


def shows_instances(thing) -> bool:
    """Whether an object may show instances."""
    return thing.is_instancer or any(own.type == "NODES" and own.show_viewport for own in thing.modifiers)


def instances(thing) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Vertices (n, 3), in the object's own space, and triangles (m, 3) of each instance that an object shows. Raises
    TooManyInstances."""
    inverse, count = np.linalg.pinv(placed(thing)), 0
    for shown in bpy.context.evaluated_depsgraph_get().object_instances:
        if not (shown.is_instance and shown.parent and shown.parent.original == thing and shown.show_self):
            continue
        own = shown.object
        try:
            mesh = own.data if own.type == "MESH" else own.to_mesh()
        except RuntimeError:  # Blender's way to say that this type of object has no mesh
            continue
        mesh.calc_loop_triangles()
        count += len(mesh.loop_triangles)
        if count > MOST_TRIANGLES:
            raise TooManyInstances(f"its instances have more than {MOST_TRIANGLES} triangles")
        points = np.empty(3 * len(mesh.vertices), dtype=np.float32)
        mesh.vertices.foreach_get("co", points)
        corners = np.empty(3 * len(mesh.loop_triangles), dtype=np.int32)
        mesh.loop_triangles.foreach_get("vertices", corners)
        place = inverse @ np.array(shown.matrix_world, dtype=float)
        triangles = corners.reshape(-1, 3).astype(int)
        if np.linalg.det(place[:3, :3]) < 0:
            triangles = triangles[:, ::-1]
        yield points.reshape(-1, 3) @ place[:3, :3].T + place[:3, 3], triangles
        if own.type != "MESH":
            own.to_mesh_clear()
