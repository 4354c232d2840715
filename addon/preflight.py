"""Pre-flight: everything that is wrong with an armature before it is simulated, looked for in one go and kept."""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np

from ..core import Motion, Simulation, compile_model
from ..core.shape import Scenery
from . import casting, connection, effector, guiding, keying, nla, objection, scenery, stage
from .adaptive_settings import OFF
from .cast import Actor, assemble
from .problem import ConversionError, Problem, gathered, refused
from .progress import finished
from .rig import read_rig
from .role import SIMULATED
from .source import Source, still
from .surface import surface_values
from .unkeyed import Unkeyed, visited


def look(armature) -> list[Problem]:
    """All problems of an armature as it would start, notes included. Nothing is changed. Where something keeps it from
    being read there may be more behind it."""
    try:
        read_rig(armature)
    except ConversionError as error:
        return [error.problem]
    before, unkeyed = stage.record(armature), Unkeyed()
    try:
        stage.play_source(armature)
        return _look(armature)
    finally:
        stage.restore(armature, before)
        unkeyed.restore()


def _look(armature) -> list[Problem]:
    found = []
    first, end = casting.frames(armature)
    for check in (nla.check, objection.check_range, _check_blends, objection.check_time, _check_partners):
        try:
            check(armature)
        except ConversionError as error:
            found.append(error.problem)
    try:
        actor = start(armature)
        news, landing, names = _around(armature, actor)
        found += objection.of_actor(actor) + news
        begun = _begun(actor, landing)
        found += objection.overlaps(begun.passing, _begun(_at_rest(actor), []).passing if begun.passing else ())
        found += objection.stuck(begun.inside, names)
        _check_adaptive(actor, end + 1 - first)
        if SIMULATED not in actor.character.roles and connection.group(armature, first) == [armature]:
            objection.refuse_unmoved(armature)
    except ValueError as error:
        found.append(refused(error))
    return found


def _check_blends(armature) -> None:
    keying.of(armature.armature_dynamics).check(*casting.frames(armature))


def _check_partners(armature) -> None:
    """Raises ConversionError for connections that cannot be made, and for a partner that cannot be simulated."""
    for partner in connection.group(armature, casting.frames(armature)[0])[1:]:
        read_rig(partner)
        nla.check(partner)


def _check_adaptive(actor: Actor, frames: int) -> None:
    """Raises ConversionError where few joints move, and the animation directs an actor in some of so many frames, or
    force fields act."""
    if bpy.context.scene.armature_dynamics.adaptive != OFF:
        cast = assemble([actor], [], set())
        poses = np.broadcast_to(cast.poses[:1], (frames, *cast.poses.shape[1:]))
        if guiding.guide(replace(cast, poses=poses), actor.source.start):
            objection.refuse_directed(actor.armature)
        with visited(actor.source.start):
            if effector.acting([actor.armature])[0]:
                objection.refuse_fields(actor.armature)


def start(armature) -> Actor:
    """An armature as its simulation would start. Raises ConversionError where it cannot be simulated."""
    return casting.actor_of(armature, still(armature, read_rig(armature), casting.frames(armature)[0]))


def _around(armature, actor: Actor) -> tuple[list[Problem], list[Scenery], list[str]]:
    """Problems of the scenery and the ground, the scenery with the ground last, and the names of its objects."""
    settings = armature.armature_dynamics
    surface = surface_values(settings.scenery_surface)
    surroundings = finished(scenery.survey(settings.scenery, [armature], *casting.frames(armature), surface))
    landing, news = list(surroundings.shapes.values()), []
    if settings.use_ground:
        plane, news = scenery.ground(settings.ground_height, actor.character.lowest, surface)
        landing.append(plane)
    news = news + objection.falls_forever(casting.gravity(armature), [actor], bool(landing))
    return surroundings.warnings + news, landing, [thing.name for thing in surroundings.shapes]


def _at_rest(actor: Actor) -> Actor:
    """The same armature in its rest pose."""
    bones = actor.armature.data.bones
    rest = np.array([bones[name].matrix_local for name in actor.character.rig.names], dtype=float)
    frame = actor.source.start
    return casting.actor_of(actor.armature, Source(frame, frame, rest[None], actor.source.worlds[-1:], frame))


def _begun(actor: Actor, landing: list[Scenery]) -> Simulation:
    """Its simulation as it begins, which knows what overlaps what."""
    cast = assemble([actor], [], set())
    motion = Motion(cast.poses, casting.frame_time())
    return Simulation(compile_model(cast.linkage), scenery=landing, motion=motion, frame_time=casting.frame_time())


def check(armature) -> int:
    """Looks, and shows what was found in the panel; returns the number of lines there."""
    keep(armature, look(armature))
    return len(armature.armature_dynamics.problems)


def keep(armature, problems: list[Problem]) -> None:
    """Shows problems in the panel; those that are taken care of are left out."""
    kept = armature.armature_dynamics.problems
    kept.clear()
    for problem, line in gathered(problems):
        item = kept.add()
        item.name = item.code = problem.code
        item.severity, item.text, item.fix = problem.severity, line, problem.fix
        item.bones, item.things = "\n".join(problem.bones), "\n".join(problem.things)
