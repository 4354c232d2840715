"""What characters land on, found in the scene: the ground, rigid bodies, and the objects of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import bpy
import numpy as np

from ..core import Mesh, Plane
from ..core.shape import Scenery
from .carrying import carriers
from .instances import TooManyInstances
from .obstacle import Geometry, Manner, body_above, manner, obstacle, read_geometry
from .problem import Problem, listed
from .prop import placed
from .rig import hider
from .surface import LAYERS

EVERY_LAYER = (1 << LAYERS) - 1
"""The ground meets everybody."""

MANY = 500_000
"""Triangles of one object that take seconds to prepare."""

LOOKS = 3
"""In so many frames it is looked whether a mesh deforms."""

SAME_SHAPE = 1e-4
"""A mesh whose vertices move by less, as a part of its size, does not deform."""


@dataclass(eq=False)
class Surroundings:
    """What there is to land on: a shape in the world, as at the start frame, for each object that is taken; the names
    of those that are `ignored`; and what should be known."""

    shapes: dict[bpy.types.Object, Scenery] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def ignore(self, why: str, things: list, fix: str = "") -> None:
        """One warning for all things that are ignored for the same reason."""
        if things:
            names = sorted(thing.name for thing in things)
            self.ignored += names
            text = listed([repr(name) for name in names])
            self.warnings.append(
                Problem("scenery_ignored", (), f"scenery ignored, {why}: {text}", things=tuple(names), fix=fix)
            )


def ground(height: float, lowest: float, surface: dict) -> tuple[Plane, list[Problem]]:
    """The ground at `height` [m], or right under a character whose `lowest` point [m] starts below that."""
    warnings = []
    if lowest < height:
        warnings.append(
            Problem(
                "ground_lowered",
                (),
                f"the character starts {height - lowest:.4g} m below the ground at "
                f"z = {height:.4g} m; the ground was put at its lowest point, z = {lowest:.4g} m",
                fix="ground_height",
            )
        )
        height = lowest
    return Plane(np.array([0.0, 0.0, height]), **{**surface, "layers": EVERY_LAYER}), warnings


def survey(collection, members: list, start: int, end: int, surface: dict) -> Iterator[float]:
    """Reads what characters (`members`, armatures) may land on at the start frame, yielding progress 0 … 1; returns the
    Surroundings.

    Taken are the rigid bodies that Blender's physics does not move, and the objects of `collection` (or None) that have
    a surface, with that `surface` where they have no rigid body. Where the playhead stands does not matter.
    """
    scene = bpy.context.scene
    current, subframe = scene.frame_current, scene.frame_subframe
    found = Surroundings()
    try:
        scene.frame_set(start)
        taken = _chosen(collection, members, found)
        geometries = {}
        for i, thing in enumerate(taken):
            how = manner(thing, surface)
            try:
                how, geometry = _read(thing, how, found)
                found.shapes[thing] = obstacle(geometry, placed(thing), how)
            except ValueError as problem:
                found.ignore(str(problem), [thing])
                continue
            _tell(thing, how, geometry, found)
            if _may_deform(thing):
                geometries[thing] = how, geometry
            yield (i + 1) / (len(taken) + 1)
        if geometries:
            _watch(geometries, start, end, found)
        yield 1.0
    finally:
        scene.frame_set(current, subframe=subframe)
    return found


def _read(thing, how: Manner, found: Surroundings) -> tuple[Manner, Geometry]:
    """An object's mesh, without its instances, with a warning, where these are too many and it has faces of its own."""
    try:
        return how, read_geometry(thing, _source(how))
    except TooManyInstances as problem:
        own = read_geometry(thing)
        if not len(own.triangles):
            raise
        text = f"scenery {thing.name!r} is taken without what it shows besides: {problem}"
        found.warnings.append(Problem("scenery_instances", (), text))
        return replace(how, source="FINAL"), own


def _source(how: Manner) -> str:
    return how.source if how.kind in ("MESH", "CONVEX_HULL") else "FINAL"


def _chosen(collection, members: list, surroundings: Surroundings) -> list:
    """The objects to take, by name; tells `surroundings` of those that are not."""
    bodies = [thing for thing in bpy.context.scene.objects if thing.rigid_body]
    still = [thing for thing in bodies if _is_still(thing)]
    listed = list(collection.all_objects) if collection else []
    own = {thing for thing in (*listed, *still) if _belongs(thing, members)}
    found = sorted({*still, *listed} - own, key=lambda thing: thing.name)
    # the parts of a compound stand for it
    found = [thing for thing in found if not (thing.rigid_body and thing.rigid_body.collision_shape == "COMPOUND")]
    shown = enabled_objects()
    hidden = [thing for thing in found if thing not in shown]
    kept = [thing for thing in hidden if hider(thing)]
    surroundings.ignore("hidden by keys, a strip or a driver at the start frame", kept)
    hidden = [thing for thing in hidden if thing not in kept]
    surroundings.ignore("hidden by a disabled or excluded collection or disabled in viewports", hidden, "show")
    found = [thing for thing in found if thing in shown]
    moved = [thing for thing in bodies if thing not in {*still, *own} and thing in shown]
    surroundings.ignore("moved by Blender's rigid body physics (make them Passive or Animated)", moved, "animated")
    bare = [thing for thing in found if thing.type not in SURFACES and not thing.is_instancer]
    surroundings.ignore("they have no surface", bare)
    return [thing for thing in found if thing not in {*bare, *moved}]


SURFACES = {"MESH", "CURVE", "SURFACE", "FONT", "META"}
"""The types of objects that may have faces."""


def enabled_objects() -> set:
    """The objects that the view layer evaluates: not disabled in viewports (the screen in the outliner), and in a
    collection that is neither excluded nor disabled. The eye counts for nothing."""
    found, pending = set(), [(bpy.context.view_layer.layer_collection, False)]
    while pending:
        layer, disabled = pending.pop()
        disabled = disabled or layer.collection.hide_viewport
        if not (disabled or layer.exclude):
            found.update(thing for thing in layer.collection.objects if not thing.hide_viewport)
        pending += [(child, disabled) for child in layer.children]
    return found


def _is_still(thing) -> bool:
    """Whether a rigid body is one that Blender's physics does not move."""
    body = body_above(thing) or thing.rigid_body
    return body.type == "PASSIVE" or body.kinematic or not body.enabled


def _belongs(thing, members: list) -> bool:
    """Whether an object is a character, or is moved by it: its skin, or what it carries."""
    if any(modifier.type == "ARMATURE" and modifier.object in members for modifier in thing.modifiers):
        return True
    return thing in members or any(above in members for above, _ in carriers(thing))


def _tell(thing, how, geometry, found: Surroundings) -> None:
    """Warns of what a shape is that one might not expect."""
    shape = found.shapes[thing]
    if isinstance(shape, Mesh) and len(shape.triangles) > MANY:
        found.warnings.append(
            Problem(
                "scenery_large",
                (),
                f"scenery {thing.name!r} has {len(shape.triangles)} triangles, which are slow to prepare; a coarser "
                "copy would do",
            )
        )
    if how.source == "DEFORM" and how.kind in ("MESH", "CONVEX_HULL") and thing.modifiers:
        seen = read_geometry(thing)
        if len(seen.vertices) != len(geometry.vertices):
            found.warnings.append(
                Problem(
                    "scenery_source",
                    (),
                    f"scenery {thing.name!r} is taken without the modifiers that make new faces, as its rigid body "
                    "says; set its Source to Final to take what is seen",
                )
            )


def _may_deform(thing) -> bool:
    data = thing.data
    if data is None or thing.is_instancer:
        return True
    return bool(
        thing.modifiers or data.animation_data or getattr(data, "shape_keys", None) or thing.type in ("META", "CURVE")
    )


def _watch(geometries: dict, start: int, end: int, found: Surroundings) -> None:
    """Warns of meshes that change over the frames."""
    changed = set()
    for frame in np.linspace(start, end, LOOKS + 1).round().astype(int)[1:].tolist():
        bpy.context.scene.frame_set(frame)
        for thing, (how, before) in geometries.items():
            now = read_geometry(thing, _source(how))
            if len(now.vertices) != len(before.vertices) or (
                np.abs(now.vertices - before.vertices).max() > SAME_SHAPE * np.ptp(before.vertices, axis=0).max()
            ):
                changed.add(thing)
    found.warnings += [deforms(thing.name) for thing in sorted(changed, key=lambda thing: thing.name)]


def deforms(name: str) -> Problem:
    """The warning about scenery that is not rigid."""
    text = f"scenery {name!r} changes its shape or scale; it is simulated as it is at the start frame"
    return Problem("scenery_deforms", (), text)
