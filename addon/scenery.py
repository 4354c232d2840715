"""What characters land on, read from the scene: a ground plane and boxes around objects."""

from __future__ import annotations

import bpy
import numpy as np

from ..core import Box, Plane
from .rig import ConversionError, RigWarning


def ground(height: float, lowest: float, friction: float, restitution: float) -> tuple[Plane, list[RigWarning]]:
    """The ground at `height` [m], or right under a character whose `lowest` point [m] starts below that."""
    warnings = []
    if lowest < height:
        warnings.append(
            RigWarning(
                "ground_lowered",
                "",
                f"the character starts {height - lowest:.4g} m below the ground at "
                f"z = {height:.4g} m; the ground was put at its lowest point, z = {lowest:.4g} m",
            )
        )
        height = lowest
    return Plane(np.array([0.0, 0.0, height]), friction=friction, restitution=restitution), warnings


def boxes(collection, friction: float, restitution: float) -> list[Box]:
    """A box around each passive rigid body in the scene, and around each mesh of `collection` (or None)."""
    objects = {
        thing
        for thing in bpy.context.scene.objects
        if thing.type == "MESH" and thing.rigid_body and thing.rigid_body.type == "PASSIVE"
    }
    if collection:
        objects |= {thing for thing in collection.all_objects if thing.type == "MESH"}
    return [_box(thing, friction, restitution) for thing in sorted(objects, key=lambda thing: thing.name)]


def _box(thing, friction: float, restitution: float) -> Box:
    world = np.array(thing.matrix_world, dtype=float)
    scale = np.linalg.norm(world[:3, :3], axis=0)
    if not np.isfinite(world).all() or scale.min() < 1e-9:
        raise ConversionError(f"scenery {thing.name!r}: its scale is zero or not a finite number; reset its transform")
    axes = world[:3, :3] / scale
    if np.abs(axes.T @ axes - np.eye(3)).max() > 1e-3:
        raise ConversionError(f"scenery {thing.name!r} is sheared by its parents; apply its transform (Ctrl+A, All)")
    corners = np.array(thing.bound_box, dtype=float)
    center = world[:3, :3] @ (corners.min(axis=0) + corners.max(axis=0)) / 2 + world[:3, 3]
    # a mirrored object is the same box
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    body = thing.rigid_body
    return Box(
        center,
        scale * np.ptp(corners, axis=0) / 2,
        axes,
        friction=body.friction if body else friction,
        restitution=body.restitution if body else restitution,
    )
