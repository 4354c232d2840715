"""Force fields of the scene, as Blender's own rigid bodies feel them.

Blender divides the strength of an effector by the scene's whole frame rate and takes what comes out for newtons: a wind
of strength 48 pushes with 2 N at 24 frames per second. Flow, and the resistance of vortices that are not points, are
N s/m as they are. A drag's property `quadratic_drag` resists linearly, `linear_drag` with the squared speed. All of it
was measured on rigid bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import bpy
import numpy as np
from mathutils import noise

from ..core.field import Drag, Falloff, Field, Force, Turbulence, Vortex, Wind
from .problem import ConversionError, Problem
from .prop import placed
from .scenery import enabled_objects

TYPES = ("WIND", "FORCE", "VORTEX", "TURBULENCE", "DRAG")
SHAPES = ("POINT", "LINE", "PLANE")

SAMPLED = ("strength", "linear_drag", "quadratic_drag")
"""What may be animated, besides where a field is; all else is taken as it is now."""

STRONGEST_DRAG = 2.0

OCTAVES = 3
"""Of Blender's turbulence; each is half as high as the one before, and their heights add up to 7/4."""


def read_fields(start: int, end: int, actors: Sequence) -> Iterator[float]:
    """Samples the scene's force fields over the frames, yielding progress 0 … 1; returns a tuple of Fields, with one
    sample for each frame, and Problems about what does not act.

    `actors` are the objects that are simulated: like rigid bodies, they do not feel fields of their own. Fields whose
    parents are simulated follow the source animation.
    """
    things, warnings = acting(actors)
    if not things:
        return (), warnings
    scene = bpy.context.scene
    current, subframe = scene.frame_current, scene.frame_subframe
    frames = range(start, end + 1)
    sampled = frames if any(_may_change(thing) for thing in things) else frames[:1]
    worlds = np.empty((len(things), len(sampled), 4, 4))
    values = np.empty((len(things), len(sampled), len(SAMPLED)))
    try:
        for i, frame in enumerate(sampled):
            scene.frame_set(frame)
            worlds[:, i] = [placed(thing) for thing in things]
            values[:, i] = [_values(thing) for thing in things]
            yield (i + 1) / len(sampled)
    finally:
        scene.frame_set(current, subframe=subframe)
    return tuple(_field(thing, *own, frames) for thing, *own in zip(things, worlds, values)), warnings


def acting(actors) -> tuple[list, list[Problem]]:
    """The objects whose fields act, and what does not act and why."""
    scene = bpy.context.scene
    weights = _weights()
    chosen = weights.collection if weights else None
    # Blender takes from a collection of effectors also what is hidden
    present = set(chosen.all_objects) if chosen else enabled_objects()
    things, warnings = [], []
    for thing in sorted(scene.objects, key=lambda thing: thing.name):
        for kind in _emitted(thing):
            warnings.append(_ignored(thing, kind, "fields of particles are not supported"))
        if not thing.field or thing.field.type == "NONE":
            continue
        if reason := _objection(thing, present, actors, chosen):
            warnings.append(_ignored(thing, thing.field.type, reason))
            continue
        if not thing.field.apply_to_location or _weight(thing) <= 0.0:
            continue
        warnings += _limits(thing)
        things.append(thing)
    return things, warnings


def _objection(thing, present: set, actors, chosen) -> str:
    """Why a field does not act, or nothing."""
    if thing in actors:
        return "an armature does not feel its own field; put the field on another object"
    if thing not in present:
        return f"it is not in the collection {chosen.name!r} of the rigid body world" if chosen else "it is hidden"
    if thing.field.type not in TYPES:
        return "this type is not supported"
    if thing.field.shape not in SHAPES:
        return f"the shape {thing.field.shape.title()} is not supported; choose Point, Line or Plane"
    return ""


def _limits(thing) -> list[Problem]:
    """What a field that acts does not do."""
    result = []
    if thing.field.use_absorption:
        result.append("its absorption is not supported; nothing stands in its way")
    if thing.field.type == "DRAG" and thing.field.noise > 0.0:
        result.append("the noise of drag is not supported")
    return [Problem("field_differs", (), f"force field {thing.name!r}: {text}") for text in result]


def _ignored(thing, kind: str, reason: str) -> Problem:
    return Problem("field_ignored", (), f"force field {thing.name!r} ({kind.title()}) does not act: {reason}")


def _emitted(thing) -> list[str]:
    """The types of the fields that an object's particles carry."""
    settings = [system.settings for system in getattr(thing, "particle_systems", ())]
    fields = [field for own in settings for field in (own.force_field_1, own.force_field_2)]
    return [field.type for field in fields if field and field.type != "NONE"]


def _may_change(thing) -> bool:
    return bool(thing.animation_data or thing.constraints or thing.parent or thing.rigid_body)


def _values(thing) -> list[float]:
    field = thing.evaluated_get(bpy.context.evaluated_depsgraph_get()).field
    return [getattr(field, name) for name in SAMPLED]


def _weights():
    """How much the scene's rigid bodies feel fields, or None where there is no rigid body world."""
    world = bpy.context.scene.rigidbody_world
    return world.effector_weights if world else None


def _weight(thing) -> float:
    weights = _weights()
    return weights.all * getattr(weights, thing.field.type.lower()) if weights else 1.0


def _falloff(thing) -> Falloff:
    own = thing.field
    return Falloff(
        kind=own.falloff_type.lower(),
        power=own.falloff_power,
        least=own.distance_min if own.use_min_distance else 0.0,
        most=own.distance_max if own.use_max_distance else np.inf,
        radial_power=own.radial_falloff,
        radial_least=own.radial_min if own.use_radial_min else 0.0,
        radial_most=own.radial_max if own.use_radial_max else np.inf,
        side={"POSITIVE": 1, "NEGATIVE": -1, "BOTH": 0}[own.z_direction],
        weight=_weight(thing),
    )


def _field(thing, worlds: np.ndarray, values: np.ndarray, frames: range) -> Field:
    """The field of an object from its matrices (F, 4, 4) and what is SAMPLED of it (F, …)."""
    own, rate = thing.field, bpy.context.scene.render.fps
    axes = worlds[:, :3, 2]
    if not np.isfinite(worlds).all() or np.linalg.norm(axes, axis=1).min() < 1e-9:
        raise ConversionError(f"force field {thing.name!r}: its scale is zero or not a finite number; reset its scale")
    common = {"origin": worlds[:, :3, 3], "axis": axes, "shape": own.shape.lower(), "falloff": _falloff(thing)}
    if own.type == "DRAG":
        strongest = np.minimum(values, STRONGEST_DRAG)
        return Drag(strength=strongest[:, 2], quadratic=strongest[:, 1] * rate, **common)
    common.update(strength=values[:, 0] / rate, flow=own.flow)
    if own.noise > 0.0:
        common["gust"] = np.array([own.noise / rate * gust(own.seed + abs(frame)) for frame in frames])
    if own.type == "FORCE":
        return Force(inverse_square=own.use_gravity_falloff, **common)
    if own.type == "VORTEX":
        return Vortex(pull=float(rate), resistance=1.0, **common)
    if own.type == "TURBULENCE":
        return Turbulence(size=own.size, still=own.use_global_coords, noise=swirl, **common)
    return Wind(**common)


def swirl(points: np.ndarray) -> np.ndarray:
    """Blender's turbulence (n,), -1 to 1, at `points` (n, 3)."""
    sums = [noise.turbulence(point, OCTAVES, False, noise_basis="PERLIN_NEW") for point in points]
    return np.array(sums) * 4.0 / 7.0


def gust(seed: int) -> float:
    """A number from -1 to 1, the one by which Blender's effectors' noise varies their strength in a frame: seed and
    frame number together seed the 48 bit generator of drand48."""
    state = seed << 16 | 0x330E
    state, first = _drawn(state)
    state, second = _drawn(state)
    whole = (first + 1) % 128
    return (1.0 if whole > 64 else -1.0) * whole / 128.0 / (1.0 + second / 2.0**31)


def _drawn(state: int) -> tuple[int, int]:
    state = (0x5DEECE66D * state + 0xB) & 0xFFFFFFFFFFFF
    return state, state >> 17
