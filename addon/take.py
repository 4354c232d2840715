"""A take: an armature and what is connected to it, from source animation through physics to actions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial

import bpy
import numpy as np

from ..core import Adaptive, Model, Simulation, SimulationError, compile_model
from . import activity, adaptive_settings, compat, connection, keying, nla, objection, readings, seen, stage, touches
from .bake import Baked, bake
from .cast import Cast
from .casting import cast_of, frame_time, gravity, is_driven, objections, simulation_of
from .conduct import conduct
from .cycle import Cycle
from .effector import read_fields
from .fidelity import measure
from .problem import Problem
from .progress import named
from .puppet import Puppets
from .renamed import follow_names
from .report import Report, held, jams, measured, motion_energy
from .rig import read_rig
from .unkeyed import Unkeyed


class Take:
    """An armature, and what is connected to it, from source animation through physics to actions.

    First `prepare`, then its `simulation` of the `cast` is run, then `write`. Both yield (what is done, progress 0 … 1)
    and raise ConversionError (a ValueError) for what cannot be simulated. A context: whatever ends it before all is
    written, every armature is left playing what it played before; and what is not keyed is left as it was, of other
    things in any case.
    """

    cast: Cast
    simulation: Simulation

    def __init__(self, armature, start: int, end: int) -> None:
        self.armature, self.start, self.end = armature, start, end
        follow_names()
        self.keys, self.members = keying.of(armature.armature_dynamics), connection.group(armature, start)
        self.warnings = objection.overruled(armature, self.members[1:])
        scene = bpy.context.scene
        self._unkeyed, self._came = Unkeyed(), (scene.frame_current, scene.frame_subframe)
        objection.check_time(armature)
        for member in self.members:
            read_rig(member)
            nla.check(member)
        self._clock = [time.perf_counter()]
        self._before = [stage.record(member) for member in self.members]
        self._bakes: list[Baked] = []
        self.is_written = False

    def __enter__(self) -> Take:
        return self

    def __exit__(self, *_) -> None:
        scene = bpy.context.scene
        if scene.frame_current == self.start:
            scene.frame_set(self._came[0], subframe=self._came[1])
        if self.is_written:
            self._unkeyed.restore(without=self.members)
            return
        stage.restore_all(zip(self.members, self._before))
        self._unkeyed.restore()
        for baked in self._bakes:
            bpy.data.actions.remove(baked.action)

    def prepare(self, choose: Callable[[Model, int, list[Problem]], Adaptive | None], cycle: Cycle):
        """Makes the simulation of as many frames as the cycle has; see `adaptive_settings` for how to `choose`."""
        armature, start, end, members, warnings = self.armature, self.start, self.end, self.members, self.warnings
        for member in members:
            stage.play_source(member)
        # gravity, settings and rotation modes that are keyed count as they are at the start
        bpy.context.scene.frame_set(start)
        self._sources = [(compat.playing(member), compat.slot_identifier(member)) for member in members]
        casting = cast_of(armature, members, start, end, beyond=self.keys.blend_out > 0)
        self.cast, self._surroundings = yield from casting
        fields, news = yield from named("sample", read_fields(start, end, members))
        self._grips, found = connection.connect(self.cast, start, end, frame_time())
        yield "prepare", 0.0
        for actor in self.cast.actors:
            warnings += objections(self.cast, actor)
        warnings += found + self._surroundings.warnings + news + objection.whirls(self.cast, start)
        model = compile_model(self.cast.linkage)
        self._adaptive = choose(model, armature.armature_dynamics.substeps, warnings)
        yield "prepare", 0.2
        self.simulation = simulation_of(armature, self.cast, start, cycle, model, fields, self._adaptive, warnings)
        warnings += objection.stuck(self.simulation.inside, [prop.thing.name for prop in self.cast.standing])
        self._driven = bool(fields) or is_driven(self.cast, self._grips, self.simulation.world.guidance is not None)
        self._clock.append(time.perf_counter())

    def write(self, skipped: int = 0, most: int | None = None, *, loop: dict | None = None, performed: bool = False):
        """Bakes the frames that were simulated, at `most` so many, without those that are `skipped` first; returns the
        Report. What hands have `performed` can be kept however it was simulated, as no second run repeats it."""
        cast, simulation, warnings = self.cast, self.simulation, self.warnings
        settings = self.armature.armature_dynamics
        trajectory = simulation.trajectory
        start, first = self.start, self.start - skipped
        warnings += jams(simulation, first)
        poses = trajectory.poses()[skipped:][:most]
        cast = cast.until(start + len(poses) - 1)
        self._clock.append(time.perf_counter())
        bakes = self._bakes
        for i, actor in enumerate(cast.actors):
            stage.mute_rivals(actor.armature, actor.character)
            bake_actor = conduct if actor.character.rig.controls else bake
            baking = bake_actor(actor.armature, actor.character, actor.source, poses[:, actor.links], self.keys)
            bakes.append((yield from named("bake", baking, i, len(self.members))))
        self._clock.append(time.perf_counter())
        loops = [list(trajectory.loop_names).index(grip.name) for grip in self._grips]
        rows = slice(skipped, skipped + len(poses))
        closed = trajectory.loop_closed[rows, loops] if loops else np.empty((len(poses), 0), dtype=bool)
        movable = adaptive_settings.movable(simulation.model)
        adaptive = self._adaptive
        active = [activity.of(actor, trajectory, movable, rows, start) if adaptive else None for actor in cast.actors]
        for actor, baked, own in zip(cast.actors, bakes, active):
            activity.write(actor.armature, baked.action, own)
            stage.keep_off(actor.armature, baked.action)
        slots = [compat.slot_identifier(actor.armature) for actor in cast.actors]
        tracks = [
            nla.push(actor.armature, *source, self.keys.frames(actor.source)) if settings.result == nla.STRIP else []
            for actor, source in zip(cast.actors, self._sources)
        ]
        fidelity = yield from named("measure", measure(cast, self._grips, poses, closed, bakes))
        columns = readings.of(trajectory, rows, fidelity.separations_m) if settings.use_curves else ()
        for actor, baked, slot in zip(cast.actors, bakes, slots):
            readings.replace(actor.armature, baked.action, slot, "Simulation", readings.NAMES, columns, start)
        self.is_written = True
        for member, played, baked, own in zip(self.members, self._before, bakes, tracks):
            stage.set_simulated(member, played, baked.action, self.members, own)
        report = Report(
            input=bpy.data.filepath, armature=self.armature.name, bodies=simulation.model.n - len(cast.linked),
            dofs=simulation.model.nv, frames=len(poses), substeps=int(trajectory.substeps.max()),
            seconds=self._seconds(), joint_separation_max_m=fidelity.separation_m, bake_error_max_m=fidelity.error_m,
            bake_error_max_deg=fidelity.error_deg,
            connections=held(self._grips, loops, fidelity.gaps_m, simulation, first), passing=list(simulation.passing),
            scenery={
                "taken": [thing.name for thing in self._surroundings.shapes],
                "ignored": sorted(self._surroundings.ignored),
            },
            keys=keying.summed([baked.keys for baked in bakes]) if self.keys.mode != keying.EVERY else {},
            loop=loop or {}, adaptive=activity.measured(trajectory, movable) if adaptive else {}, warnings=warnings,
            ok=most is None or len(poses) == most, automatic=not settings.substeps, **measured(trajectory),
        )  # fmt: skip
        report.judge(
            height=max(actor.character.height for actor in cast.actors),
            length=max(float(actor.character.rig.extent.max()) for actor in cast.actors),
            weight=float(simulation.model.mass.sum()) * float(np.linalg.norm(gravity(self.armature))),
            motion=motion_energy(simulation),
            reach=fidelity.reach_m,
            driven=self._driven or performed,
            exact=[not grip.springy for grip in self._grips],
            allowed=self.keys.tolerance,
            controlled=any(actor.character.rig.controls for actor in cast.actors),
        )
        for actor, own, baked in zip(cast.actors, active, bakes):
            weight = sum(link.mass for link in actor.character.links) * float(np.linalg.norm(gravity(actor.armature)))
            touches.keep(actor.armature, actor.links, trajectory, first, weight, actor.character.height)
            activity.keep(actor.armature, own)
            seen.keep(actor, baked.played, poses[:, actor.links], cast.poses[:, actor.links])
        for member in self.members:
            own = member.armature_dynamics
            own.preview = self.is_budgeted and not performed
            own.summary, own.warnings = "\n".join(report.lines() + report.events()), "\n".join(report.news())
        return report

    @property
    def is_budgeted(self) -> bool:
        """Whether a time budget says how many joints move."""
        return self._adaptive is not None and self._adaptive.budget is not None

    def _seconds(self) -> dict[str, float]:
        """What the parts took so far."""
        parts = np.diff(self._clock).tolist()
        return {
            **dict(zip(("convert", "simulate", "bake"), parts, strict=True)),
            "total": time.perf_counter() - self._clock[0],
        }


def take(armature, *, final: bool = False) -> Iterator[tuple[str, float]]:
    """Simulates and bakes with the armature's settings, yielding (what is done, progress 0 … 1); returns the Report.

    Armatures that are connected to it are simulated together with it; a `final` take has no time budget that is for
    previews. Raises ConversionError (a ValueError) for what cannot be simulated. Whatever stops it, every armature is
    left playing what it played before.
    """
    settings = armature.armature_dynamics
    objection.check_range(armature)
    with Take(armature, settings.frame_start, settings.frame_end) as made:
        made.keys.check(made.start, made.end)
        cycle = Cycle(made.end - made.start + 1, settings.loop_most)
        yield from made.prepare(partial(adaptive_settings.chosen, final=final), cycle)
        simulation, every = made.simulation, settings.live_every
        height = max(actor.character.height for actor in made.cast.actors)
        with Puppets(made.members, made.cast) if every else nullcontext() as puppets:
            try:
                progress = 0.0
                for frame in simulation.steps(cycle.total):
                    if frame is None:
                        yield "simulate", progress
                        continue
                    if every and frame % every == 0:
                        puppets.show(made.start + cycle.within(frame), simulation.poses)
                    progress = (frame + 1) / cycle.total
                    yield "simulate", progress
                    if cycle.is_end(frame) and cycle.meets(simulation.trajectory, height):
                        break
            except SimulationError as error:
                made.warnings.append(Problem("not_finite", (), str(error)))
        loop = cycle.told(simulation.trajectory) if cycle.most > 1 else None
        return (yield from made.write(cycle.skipped(simulation.trajectory), cycle.frames, loop=loop))


def advance(steps: Iterator[tuple[str, float]], seconds: float) -> tuple[str, float]:
    """Runs a take for about so long; returns the last progress. StopIteration carries the report."""
    end = time.perf_counter() + seconds
    while True:
        progress = next(steps)
        if time.perf_counter() > end:
            return progress
