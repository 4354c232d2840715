"""A take: an armature and what is connected to it, from source animation through physics to actions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import bpy
import numpy as np

from ..core import Motion, Simulation, SimulationError, Trajectory, compile_model
from . import connection, scenery, stage, touches
from .bake import CHANNELS, bake, bone_path
from .cast import Actor, Cast, assemble
from .connection import Grip
from .convert import Options, convert
from .effector import read_fields
from .fidelity import measure
from .prop import sample_props
from .report import Report, held, jams, measured
from .rig import ConversionError, RigWarning, read_rig
from .source import action_range, sample
from .surface import layer_bits, surface_values

DEFAULT_RANGE = (1, 120)


def default_range(armature) -> tuple[int, int]:
    """The frames to simulate when nobody says: those of the armature's action."""
    first, last = action_range(armature) or DEFAULT_RANGE
    return (first, last) if last > first else DEFAULT_RANGE


def frame_time() -> float:
    """[s]"""
    render = bpy.context.scene.render
    return render.fps_base / render.fps


def take(armature) -> Iterator[tuple[str, float]]:
    """Simulates and bakes with the armature's settings, yielding (what is done, progress 0 … 1); returns the Report.

    Armatures that are connected to it are simulated together with it. Raises ConversionError (a ValueError) for what
    cannot be simulated. Whatever stops it, every armature is left playing what it played before.
    """
    clock = [time.perf_counter()]
    settings = armature.armature_dynamics
    start, end = settings.frame_start, settings.frame_end
    if end <= start:
        raise ConversionError(f"frames {start} to {end} are not a range; the end must come after the start")
    members = connection.group(armature)
    for member in members:
        read_rig(member)
        _check_blending(member)
    before = [stage.record(member) for member in members]
    actions, done = [], False
    try:
        for member in members:
            stage.play_source(member)
        cast, surroundings = yield from _cast(armature, members, start, end)
        fields, news = yield from _stage("sample", read_fields(start, end, members))
        grips, warnings = connection.connect(cast, start, end, frame_time())
        warnings[:0] = [warning for actor in cast.actors for warning in _warnings(cast, actor)]
        warnings += surroundings.warnings + news
        simulation = _simulation(armature, cast, fields, warnings)
        clock.append(time.perf_counter())
        frames = end - start + 1
        try:
            for frame in simulation.run(frames):
                yield "simulate", (frame + 1) / frames
        except SimulationError as error:
            warnings.append(RigWarning("not_finite", "", str(error)))
        warnings += jams(simulation, start)
        trajectory = simulation.trajectory
        poses = trajectory.poses()
        clock.append(time.perf_counter())
        for i, actor in enumerate(cast.actors):
            own = actor.armature
            stage.mute_constraints(own, actor.character, own.armature_dynamics.mute_constraints)
            writing = bake(own, actor.character, actor.source, poses[:, actor.links])
            actions.append((yield from _stage("bake", writing, i, len(members))))
        clock.append(time.perf_counter())
        loops = [list(trajectory.loop_names).index(grip.name) for grip in grips]
        closed = trajectory.loop_closed[:, loops] if loops else np.empty((len(poses), 0), dtype=bool)
        fidelity = yield from _stage("measure", measure(cast, grips, poses, closed))
        done = True
    finally:
        if not done:
            for member, played in zip(members, before):
                stage.restore(member, played)
            for action in actions:
                bpy.data.actions.remove(action)
    for member, played, action in zip(members, before, actions):
        stage.set_simulated(member, played, action, members)
    seconds = dict(zip(("convert", "simulate", "bake"), np.diff(clock).tolist(), strict=True))
    report = Report(
        input=bpy.data.filepath, armature=armature.name, bodies=simulation.model.n - len(cast.linked),
        dofs=simulation.model.nv, frames=len(trajectory), substeps=int(trajectory.substeps.max()),
        seconds={**seconds, "total": time.perf_counter() - clock[0]},
        joint_separation_max_m=fidelity.separation_m, bake_error_max_m=fidelity.error_m,
        bake_error_max_deg=fidelity.error_deg, connections=held(grips, loops, fidelity.gaps_m, simulation, start),
        passing=list(simulation.passing),
        scenery={"taken": [thing.name for thing in surroundings.shapes], "ignored": sorted(surroundings.ignored)},
        warnings=warnings, ok=len(trajectory) == frames, automatic=not settings.substeps, **measured(trajectory),
    )  # fmt: skip
    report.judge(
        height=max(actor.character.height for actor in cast.actors),
        length=max(float(actor.character.rig.extent.max()) for actor in cast.actors),
        weight=float(simulation.model.mass.sum()) * float(np.linalg.norm(gravity())),
        reach=fidelity.reach_m,
        driven=bool(fields) or _is_driven(cast, grips),
        exact=[not grip.springy for grip in grips],
    )
    for actor in cast.actors:
        _keep_touches(actor, trajectory, start)
    for member in members:
        own = member.armature_dynamics
        own.summary, own.warnings = "\n".join(report.lines() + report.events()), "\n".join(report.news())
    return report


def _keep_touches(actor: Actor, trajectory: Trajectory, start: int) -> None:
    weight = sum(link.mass for link in actor.character.links) * float(np.linalg.norm(gravity()))
    touches.keep(actor.armature, actor.links, trajectory, start, weight, actor.character.height)


def advance(steps: Iterator[tuple[str, float]], seconds: float) -> tuple[str, float]:
    """Runs a take for about so long; returns the last progress. StopIteration carries the report."""
    end = time.perf_counter() + seconds
    while True:
        progress = next(steps)
        if time.perf_counter() > end:
            return progress


def _stage(name: str, steps: Iterator[float], part: int = 0, parts: int = 1):
    """Runs a generator of progress under a name, as one of equal parts of it; returns what it returns."""
    while True:
        try:
            progress = next(steps)
        except StopIteration as stop:
            return stop.value
        yield name, (part + progress) / parts


def _cast(armature, members: list, start: int, end: int):
    """Samples the source animations, builds the characters and reads what they may land on, yielding progress; returns
    the Cast and the Surroundings."""
    actors, parts = [], len(members) + 2
    for i, member in enumerate(members):
        source = yield from _stage("sample", sample(member, read_rig(member), start, end), i, parts)
        rig = read_rig(member, source.at(start)[1])
        character = convert(member, rig, source, roles(member), options(member))
        actors.append(Actor(member, source, character))
    if all(link.keyed for actor in actors for link in actor.character.links):
        raise ConversionError(
            f"armature {armature.name!r}: all its bones are ignored or animated; set the bones that physics should "
            "move to Simulated"
        )
    settings = armature.armature_dynamics
    survey = scenery.survey(settings.scenery, members, start, end, surface_values(settings.scenery_surface))
    surroundings = yield from _stage("sample", survey, parts - 2, parts)
    sampling = sample_props(connection.props_of(members), surroundings.shapes, start, end)
    props = yield from _stage("sample", sampling, parts - 1, parts)
    surroundings.warnings += [scenery.deforms(prop.thing.name) for prop in props if prop.shape and not prop.rigid]
    return assemble(actors, props, connection.needed_links(members, start, end)), surroundings


def gravity() -> np.ndarray:
    """The scene's [m/s²]."""
    scene = bpy.context.scene
    return np.array(scene.gravity, dtype=float) if scene.use_gravity else np.zeros(3)


def options(armature) -> Options:
    settings = armature.armature_dynamics
    return Options(
        mass=settings.mass,
        damping=settings.damping,
        tone=settings.tone,
        **surface_values(settings),
        layers=layer_bits(settings.layers),
        family="" if settings.self_collision else armature.name_full,
        gravity=float(np.linalg.norm(gravity())),
    )


def roles(armature) -> list[str] | None:
    """The roles that the animator chose, or None for an armature that was not made dynamic."""
    if not armature.armature_dynamics.enabled:
        return None
    return [armature.pose.bones[bone.name].armature_dynamics.role for bone in armature.data.bones]


def _warnings(cast: Cast, actor: Actor) -> list[RigWarning]:
    """What its conversion and its bones have to say, with the bones' names as the cast has them."""
    own = actor.character.warnings + _constraint_warnings(actor) + _driver_warnings(actor)
    return [replace(w, bone=cast.label(actor.armature, w.bone)) if w.bone else w for w in own]


def _constraint_warnings(actor: Actor) -> list[RigWarning]:
    muted = actor.armature.armature_dynamics.mute_constraints
    remedy = "turned off while the simulation plays" if muted else "it fights the keys; turn on Mute Constraints"
    return [
        RigWarning("constraint", bone.name, f"constraint {constraint.name!r}: {remedy}")
        for bone in stage.simulated_bones(actor.armature, actor.character)
        for constraint in bone.constraints
        if not constraint.mute and constraint.influence > 0
    ]


def _driver_warnings(actor: Actor) -> list[RigWarning]:
    animation = actor.armature.animation_data
    driven = {driver.data_path for driver in (animation.drivers if animation else ()) if not driver.mute}
    return [
        RigWarning("driver", bone.name, f"its {channel} has a driver, which fights the keys; mute or remove it")
        for bone in stage.simulated_bones(actor.armature, actor.character)
        for channel in CHANNELS
        if bone_path(bone.name, channel) in driven
    ]


def _check_blending(armature) -> None:
    """Raises ConversionError where the take's action would be mixed with what NLA tracks play."""
    animation = armature.animation_data
    if not animation or not animation.use_nla or not animation.nla_tracks:
        return
    if animation.action_blend_type != "REPLACE" or animation.action_influence != 1.0:
        raise ConversionError(
            f"armature {armature.name!r}: its action is blended with its NLA tracks, which would change the keys; set "
            "its blending to Replace and its influence to 1"
        )


def _simulation(armature, cast: Cast, fields: tuple, warnings: list[RigWarning]) -> Simulation:
    """The cast in the scene as the armature's settings have it; adds to `warnings`."""
    settings = armature.armature_dynamics
    landing = list(cast.scenery)
    if settings.use_ground:
        lowest = min(actor.character.lowest for actor in cast.actors)
        plane, news = scenery.ground(settings.ground_height, lowest, surface_values(settings.scenery_surface))
        landing.append(plane)
        warnings += news
    return Simulation(
        compile_model(cast.linkage),
        scenery=landing,
        motion=Motion(cast.poses, frame_time()),
        frame_time=frame_time(),
        substeps=settings.substeps or None,
        gravity=gravity(),
        follow=_follows(cast),
        fields=fields,
    )


def _follows(cast: Cast) -> bool:
    """Whether muscles draw anybody toward the source animation."""
    return any(actor.armature.armature_dynamics.tone > 0 for actor in cast.actors)


def _is_driven(cast: Cast, grips: list[Grip]) -> bool:
    """Whether energy may come in from outside or out of springs."""
    return _follows(cast) or any(link.keyed for link in cast.links) or any(grip.springy for grip in grips)
