"""From armatures and the scene to a cast, and to its simulation."""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np

from ..core import Adaptive, Model, Motion, Simulation
from . import connection, guiding, objection, rival, scenery
from .bake import CHANNELS
from .cast import Actor, Cast, assemble
from .connection import Grip
from .convert import Options, convert
from .cycle import Cycle
from .fcurve import bone_path, plays
from .problem import Problem
from .progress import named
from .prop import sample_props
from .rig import Rig, read_rig
from .role import ANIMATED, SIMULATED
from .skin import reading_skin
from .source import Source, action_range, sample
from .surface import layer_bits, surface_values
from .switch import source_curves

DEFAULT_RANGE = (1, 120)


def default_range(armature) -> tuple[int, int]:
    """The frames to simulate when nobody says: those of the armature's action."""
    first, last = action_range(armature) or DEFAULT_RANGE
    return (first, last) if last > first else DEFAULT_RANGE


def frames(armature) -> tuple[int, int]:
    """The first and last frame that a take has: the settings', or the default where they are no range."""
    settings = armature.armature_dynamics
    if settings.enabled and settings.frame_start < settings.frame_end:
        return settings.frame_start, settings.frame_end
    return default_range(armature)


def frame_time() -> float:
    """[s]"""
    render = bpy.context.scene.render
    return render.fps_base / render.fps


def cast_of(armature, members: list, start: int, end: int, *, beyond: bool):
    """Samples the source animations, builds the characters and reads what they may land on, yielding progress; returns
    the Cast and the Surroundings."""
    actors, parts = [], len(members) + 2
    for i, member in enumerate(members):
        sampling = sample(member, read_rig(member), start, end, beyond=beyond, endless=_is_endless(member))
        source = yield from named("sample", sampling, i, parts)
        rig = read_rig(member, source.at(source.start)[1])
        skin = yield from named("sample", reading_skin(member, rig), i + 1, parts)
        actors.append(_actor(member, source, rig, skin))
        yield "sample", (i + 1) / parts
    if not any(SIMULATED in actor.character.roles for actor in actors):
        objection.refuse_unmoved(armature)
    settings = armature.armature_dynamics
    survey = scenery.survey(settings.scenery, members, start, end, surface_values(settings.scenery_surface))
    surroundings = yield from named("sample", survey, parts - 2, parts)
    sampling = sample_props(connection.props_of(members), surroundings.shapes, start, end)
    props = yield from named("sample", sampling, parts - 1, parts)
    surroundings.warnings += [scenery.deforms(prop.thing.name) for prop in props if prop.shape and not prop.rigid]
    return assemble(actors, props, connection.needed_links(actors, start, end)), surroundings


def _is_endless(armature) -> bool:
    """Whether bones that a take may write are moved where its source has no keys: by what is turned off while the take
    plays, or by curves that repeat or go on."""
    names = {bone.name for bone in armature.pose.bones if bone.armature_dynamics.role != ANIMATED}
    paths = {bone_path(name, channel) for name in names for channel in CHANNELS}
    return bool(rival.unwanted(armature, names)) or any(
        curve.data_path in paths and plays(curve) and (curve.modifiers or curve.extrapolation == "LINEAR")
        for curve in source_curves(armature)
    )


def actor_of(armature, source: Source) -> Actor:
    """An armature with the character it becomes in the pose in which the source starts."""
    return _actor(armature, source, read_rig(armature, source.at(source.start)[1]))


def _actor(armature, source: Source, rig: Rig, skin: dict | None = None) -> Actor:
    return Actor(armature, source, convert(armature, rig, source, roles(armature, rig), options(armature), skin))


def gravity(armature) -> np.ndarray:
    """The scene's [m/s²], as much stronger as the character is larger than in life: so that it falls as quickly."""
    scene, scale = bpy.context.scene, armature.armature_dynamics.life_scale
    return np.array(scene.gravity, dtype=float) / scale if scene.use_gravity else np.zeros(3)


def options(armature) -> Options:
    settings = armature.armature_dynamics
    return Options(
        mass=settings.mass,
        damping=settings.damping,
        tone=settings.tone,
        **surface_values(settings),
        layers=layer_bits(settings.layers),
        family="" if settings.self_collision else armature.name_full,
        gravity=float(np.linalg.norm(gravity(armature))),
        rig_limits=settings.use_rig_limits,
    )


def roles(armature, rig: Rig) -> list[str] | None:
    """The roles that the animator chose for the rig's bones, or None for an armature that was not made dynamic."""
    if not armature.armature_dynamics.enabled:
        return None
    return [armature.pose.bones[name].armature_dynamics.role for name in rig.names]


def objections(cast: Cast, actor: Actor) -> list[Problem]:
    """What there is to object to, with the bones' names as the cast has them."""
    return [
        replace(problem, bones=tuple(cast.label(actor.armature, bone) for bone in problem.bones))
        for problem in objection.of_actor(actor)
    ]


def simulation_of(
    armature, cast: Cast, start: int, cycle: Cycle, model: Model, fields: tuple, adaptive: Adaptive | None,
    warnings: list[Problem],
) -> Simulation:  # fmt: skip
    """The cast in the scene from frame `start` on, as the armature's settings have it; adds to `warnings`."""
    settings = armature.armature_dynamics
    landing = list(cast.scenery)
    if settings.use_ground:
        lowest = min(actor.character.lowest for actor in cast.actors)
        plane, news = scenery.ground(settings.ground_height, lowest, surface_values(settings.scenery_surface))
        landing.append(plane)
        warnings += news
    warnings += objection.falls_forever(
        gravity(armature), cast.actors, bool(landing) or any(prop.shape for prop in cast.props)
    )
    guide = guiding.guide(cast, start, cycle)
    if adaptive and guide:
        objection.refuse_directed(armature)
    if adaptive and fields:
        objection.refuse_fields(armature)
    return Simulation(
        model,
        scenery=landing,
        motion=Motion(cycle.repeated(cast.poses), frame_time(), guide),
        frame_time=frame_time(),
        substeps=settings.substeps or None,
        gravity=gravity(armature),
        follow=_follows(cast),
        fields=fields,
        adaptive=adaptive,
    )


def _follows(cast: Cast) -> bool:
    """Whether muscles draw anybody toward the source animation."""
    return any(actor.armature.armature_dynamics.tone > 0 for actor in cast.actors)


def is_driven(cast: Cast, grips: list[Grip], guided: bool) -> bool:
    """Whether energy may come in from outside or out of springs."""
    return guided or _follows(cast) or any(link.keyed for link in cast.links) or any(grip.springy for grip in grips)
