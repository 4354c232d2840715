"""A take: the whole road of one armature, from its source animation through physics to an action."""

from __future__ import annotations

import time
from collections.abc import Iterator

import bpy
import numpy as np

from ..core import Motion, Simulation, SimulationError, compile_model
from . import scenery, stage
from .bake import CHANNELS, bake, bone_path
from .convert import Character, Options, convert
from .fidelity import measure
from .report import Report, measured
from .rig import ConversionError, RigWarning, read_rig
from .source import Source, action_range, sample

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

    Raises ConversionError (a ValueError) for what cannot be simulated. Whatever stops it, the armature is left playing
    what it played before.
    """
    clock = [time.perf_counter()]
    settings = armature.armature_dynamics
    if settings.frame_end <= settings.frame_start:
        raise ConversionError(
            f"frames {settings.frame_start} to {settings.frame_end} are not a range; the end must come after the start"
        )
    rig = read_rig(armature)
    _check_blending(armature)
    before = stage.record(armature)
    action, done = None, False
    try:
        stage.play_source(armature)
        source = yield from _stage("sample", sample(armature, rig, settings.frame_start, settings.frame_end))
        rig = read_rig(armature, source.at(source.start)[1])
        character = convert(armature, rig, source, roles(armature), options(armature))
        character.warnings.extend(_constraint_warnings(armature, character))
        character.warnings.extend(_driver_warnings(armature, character))
        simulation = _simulation(armature, character, source)
        clock.append(time.perf_counter())
        frames = settings.frame_end - settings.frame_start + 1
        try:
            for frame in simulation.run(frames):
                yield "simulate", (frame + 1) / frames
        except SimulationError as error:
            character.warnings.append(RigWarning("not_finite", "", str(error)))
        trajectory = simulation.trajectory
        clock.append(time.perf_counter())
        stage.mute_constraints(armature, character, settings.mute_constraints)
        action = yield from _stage("bake", bake(armature, character, source, trajectory.poses()))
        clock.append(time.perf_counter())
        fidelity = yield from _stage("measure", measure(armature, character, source, trajectory.poses()))
        done = True
    finally:
        if not done:
            stage.restore(armature, before)
            if action:
                bpy.data.actions.remove(action)
    stage.set_simulated(armature, before, action)
    seconds = dict(zip(("convert", "simulate", "bake"), np.diff(clock).tolist(), strict=True))
    report = Report(
        input=bpy.data.filepath, armature=armature.name, bodies=simulation.model.n, dofs=simulation.model.nv,
        frames=len(trajectory), substeps=int(trajectory.substeps.max()),
        seconds={**seconds, "total": time.perf_counter() - clock[0]},
        joint_separation_max_m=fidelity.separation_m, bake_error_max_m=fidelity.error_m,
        bake_error_max_deg=fidelity.error_deg, warnings=character.warnings, ok=len(trajectory) == frames,
        automatic=not settings.substeps, **measured(trajectory),
    )  # fmt: skip
    weight = float(simulation.model.mass.sum()) * float(np.linalg.norm(gravity()))
    driven = settings.tone > 0 or bool(simulation.model.keyed.any())
    report.judge(character.height, weight, fidelity.reach_m, driven)
    settings.summary, settings.warnings = "\n".join(report.lines()), "\n".join(report.news())
    return report


def advance(steps: Iterator[tuple[str, float]], seconds: float) -> tuple[str, float]:
    """Runs a take for about so long; returns the last progress. StopIteration carries the report."""
    end = time.perf_counter() + seconds
    while True:
        progress = next(steps)
        if time.perf_counter() > end:
            return progress


def _stage(name: str, steps: Iterator[float]):
    """Runs a generator of progress under a name; returns what it returns."""
    while True:
        try:
            progress = next(steps)
        except StopIteration as stop:
            return stop.value
        yield name, progress


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
        friction=settings.friction,
        restitution=settings.restitution,
        gravity=float(np.linalg.norm(gravity())),
    )


def roles(armature) -> list[str] | None:
    """The roles that the animator chose, or None for an armature that was not made dynamic."""
    if not armature.armature_dynamics.enabled:
        return None
    return [armature.pose.bones[bone.name].armature_dynamics.role for bone in armature.data.bones]


def _constraint_warnings(armature, character: Character) -> list[RigWarning]:
    muted = armature.armature_dynamics.mute_constraints
    remedy = "turned off while the simulation plays" if muted else "it fights the keys; turn on Mute Constraints"
    return [
        RigWarning("constraint", bone.name, f"constraint {constraint.name!r}: {remedy}")
        for bone in stage.simulated_bones(armature, character)
        for constraint in bone.constraints
        if not constraint.mute and constraint.influence > 0
    ]


def _driver_warnings(armature, character: Character) -> list[RigWarning]:
    drivers = armature.animation_data.drivers if armature.animation_data else ()
    driven = {driver.data_path for driver in drivers if not driver.mute}
    return [
        RigWarning("driver", bone.name, f"its {channel} has a driver, which fights the keys; mute or remove it")
        for bone in stage.simulated_bones(armature, character)
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


def _simulation(armature, character: Character, source: Source) -> Simulation:
    settings = armature.armature_dynamics
    surroundings = scenery.boxes(settings.scenery, settings.friction, settings.restitution)
    if settings.use_ground:
        plane, warnings = scenery.ground(
            settings.ground_height, character.lowest, settings.friction, settings.restitution
        )
        surroundings.append(plane)
        character.warnings.extend(warnings)
    return Simulation(
        compile_model(character.linkage),
        scenery=surroundings,
        motion=Motion(character.link_poses(source), frame_time()),
        frame_time=frame_time(),
        substeps=settings.substeps or None,
        gravity=gravity(),
        follow=settings.tone > 0,
    )
