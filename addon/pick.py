"""What of a cast is under the mouse: by the skin, or else by the bones, which can be seen through it."""

from __future__ import annotations

from dataclasses import dataclass

import bpy
import numpy as np
from bpy_extras import view3d_utils

from .cast import Actor, Cast
from .source import deform_ends

REACH = 14.0
"""Bones are picked from so far away [pixels at a scale of 1]."""

DEEP, BEHIND = 64, 1e-5
"""So many faces of what is no part of the character are looked through, and what lies farther behind each by this part
of its distance."""

THICKNESS = 0.1
"""Blender draws bones so thick, relative to their length."""


@dataclass(frozen=True)
class Picked:
    """A `bone` of an actor, and the `place` (3,) in the world that is under the mouse."""

    actor: Actor
    bone: str
    place: np.ndarray


def view_under(area, mouse: tuple[float, float]):
    """The region of a 3D view that is at a place of its window [pixels], one of four in a quad view; None where there
    is none, or sidebars and toolbars lie over it."""
    under = [own for own in area.regions if _is_in(own, *mouse)]
    if any(own.type not in ("WINDOW", "HEADER", "XR") and own.width > 1 for own in under):
        return None
    return next((own for own in under if own.type == "WINDOW"), None)


def _is_in(region, x: float, y: float) -> bool:
    return region.x <= x < region.x + region.width and region.y <= y < region.y + region.height


def pick(cast: Cast, region, view, mouse: tuple[float, float]) -> Picked | None:
    """What is at a place of a 3D view's region [pixels], or None."""
    return _on_skin(cast, region, view, mouse) or _on_bones(cast, region, view, mouse)


def _on_skin(cast: Cast, region, view, mouse) -> Picked | None:
    origin = view3d_utils.region_2d_to_origin_3d(region, view, mouse)
    direction = view3d_utils.region_2d_to_vector_3d(region, view, mouse)
    graph, begin = bpy.context.evaluated_depsgraph_get(), origin
    for _ in range(DEEP):
        hit, place, _, face, thing, _ = bpy.context.scene.ray_cast(graph, begin, direction)
        if not hit:
            return None
        for actor in cast.actors:
            bone = _bone_of(actor, thing.original, thing.evaluated_get(graph), face, np.array(place))
            if bone is not None:
                return Picked(actor, bone, np.array(place))
        # clothes that follow the skin without its bones, cages, glass
        begin = place + BEHIND * (place - origin).length * direction
    return None


def _bone_of(actor: Actor, thing, evaluated, face: int, place: np.ndarray) -> str | None:
    """The bone that carries a face of an object the most, if an actor's armature moves that."""
    rig, carrier = actor.character.rig, actor.character.carrier
    if thing.parent == actor.armature and thing.parent_type == "BONE":
        return thing.parent_bone if carrier[rig.index.get(thing.parent_bone, -1)] >= 0 else None
    deformed = any(own.type == "ARMATURE" and own.object == actor.armature for own in thing.modifiers)
    if not deformed and not (thing.parent == actor.armature and thing.parent_type == "ARMATURE"):
        return None
    weights: dict[str, float] = {}
    names = [group.name for group in thing.vertex_groups]
    # what was hit: of curves, and where only the graphics card subdivides it, the object's data is something else
    mesh = evaluated.to_mesh()
    for corner in mesh.polygons[face].vertices if face < len(mesh.polygons) else ():
        for group in mesh.vertices[corner].groups:
            # weights may be left of groups that are gone
            name = names[group.group] if group.group < len(names) else ""
            if name in rig.index and carrier[rig.index[name]] >= 0:
                weights[name] = weights.get(name, 0.0) + group.weight
    evaluated.to_mesh_clear()
    return max(weights, key=weights.get) if weights else _nearest(actor, place)


def _nearest(actor: Actor, place: np.ndarray) -> str | None:
    bones, heads, tails = _segments(actor)
    away = np.linalg.norm(heads + _share(heads, tails, place)[:, None] * (tails - heads) - place, axis=1)
    return actor.character.rig.names[bones[int(away.argmin())]] if len(bones) else None


def _share(starts: np.ndarray, ends: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The part (k,) of the way from starts to ends (k, d) at which segments are nearest to a place (d,)."""
    along = ends - starts
    return np.clip(((place - starts) * along).sum(1) / np.maximum((along**2).sum(1), 1e-18), 0.0, 1.0)


def _segments(actor: Actor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers (k,) of the bones that links carry, and their heads and tails (k, 3) in the world."""
    character = actor.character
    bones = np.flatnonzero((character.carrier >= 0) & character.rig.deforms)
    ends = np.array(actor.armature.matrix_world) @ deform_ends(actor.armature, character.rig)[bones]
    return bones, ends[:, :3, 0], ends[:, :3, 1]


def _on_bones(cast: Cast, region, view, mouse) -> Picked | None:
    scale, found = bpy.context.preferences.system.ui_scale, []
    for actor in cast.actors:
        bones, heads, tails = _segments(actor)
        seen = [_projected(region, view, ends) for ends in (heads, tails)]
        (start, near), (end, far) = seen
        along, share = end - start, _share(start, end, mouse)
        away = np.linalg.norm(start + share[:, None] * along - mouse, axis=1)
        away -= THICKNESS * np.linalg.norm(along, axis=1)
        depth = near + share * (far - near)
        for i in np.flatnonzero((away < REACH * scale) & (near > 0) & (far > 0)):
            place = heads[i] + share[i] * (tails[i] - heads[i])
            found.append((max(away[i], 0.0), depth[i], Picked(actor, actor.character.rig.names[bones[i]], place)))
    return min(found, key=lambda one: one[:2])[2] if found else None


def _projected(region, view, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (k, 3) as pixels (k, 2) of a region, and how far they are from the eye (k,); behind it, less than 0."""
    clip = np.concatenate((points, np.ones((len(points), 1))), axis=1) @ np.array(view.perspective_matrix).T
    size = 0.5 * np.array([region.width, region.height])
    depth = clip[:, 3] if view.is_perspective else np.maximum(clip[:, 2] + 2.0, 1e-9)
    return size + size * clip[:, :2] / clip[:, 3:], depth
