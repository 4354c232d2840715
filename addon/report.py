"""What a take measured, and whether it keeps what the program promises."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import bpy
import numpy as np

from ..core import Simulation, Trajectory
from .conduct import NEAR
from .connection import Grip
from .problem import Problem, gathered, listed

SEPARATION = 1e-6
GAP = 1e-5
ERROR = 1e-4
"""Promised for characters up to human size [m]; larger ones are less exact in Blender's single precision."""
ERROR_DEG = 0.01
LIMIT_DEG = 1.0
PENETRATION = 0.01
"""Part of the character's height."""
ENERGY = 1e-3
"""Part of mass · gravity · size, the height or the length of what lies, and MOTION times the energy of motion."""
MOTION = 0.2
"""As the core measures gains: what flies fast or weighs nothing has rounding errors that its weight does not tell."""
PROMISED_HEIGHT = 2.0
ROUNDINGS = 4
"""Places far from the origin are allowed so many roundings of Blender's single precision."""

HAPPENED = {
    "connect": "connected",
    "cut": "cut",
    "break": "broke",
    "grab": "grabbed",
    "region": "slid off",
}


@dataclass
class Report:
    """The report's keys, in the order in which they are written."""

    input: str
    armature: str
    blender: str
    bodies: int
    dofs: int
    frames: int
    substeps: int
    seconds: dict[str, float]
    ms_per_step: dict[str, float]
    joint_separation_max_m: float
    bake_error_max_m: float
    bake_error_max_deg: float
    penetration_max_m: float
    limit_violation_max_deg: float
    energy_gain_max_J: float
    contacts_max: int = 0
    """Most contacts at a time."""
    passing: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of bodies that overlap at the start, and are let through each other."""
    scenery: dict[str, list[str]] = field(default_factory=dict)
    """Names of the objects that were `taken` as scenery, and of those that were `ignored`."""
    connections: list[dict] = field(default_factory=list)
    keys: dict[str, float] = field(default_factory=dict)
    """Where not every frame is keyed: how many numbers were `written`, how many it would be, and what that changes."""
    loop: dict[str, float] = field(default_factory=dict)
    """Where the animation was simulated over and over: how many `cycles`, and how far the last frame of the last one is
    from its first."""
    adaptive: dict[str, float] = field(default_factory=dict)
    """Of an adaptive simulation: how many of the joints were active on average, and the largest error of a frame."""
    warnings: list[Problem] = field(default_factory=list)
    ok: bool = True
    automatic: bool = False
    """Whether `substeps` is the most that a frame took; only for people, as the next two are."""
    energy_J: tuple[float, float] = (0.0, 0.0)
    """At the first and at the last frame."""
    residual_max: float = 0.0
    """What was left unsolved of contacts and limits, as a part of the fastest approach."""

    def as_dict(self) -> dict:
        values = asdict(self)
        for name in ("automatic", "energy_J", "residual_max"):
            del values[name]
        values["warnings"] = [warning.as_dict() for warning in self.warnings]
        for name in ("keys", "loop", "adaptive"):
            if not values[name]:
                del values[name]
        return values

    def lines(self) -> list[str]:
        """A few short lines for people."""
        return [
            f"{self.bodies} bodies, {self.dofs} freedoms",
            f"{self.frames} frames of {'up to ' if self.automatic else ''}{self.substeps} steps",
            f"{self.seconds['total']:.2f} s, {self.ms_per_step['median']:.2f} ms a step",
            f"Joints apart by {1e3 * self.joint_separation_max_m:.1e} mm",
            *([f"Connections apart by {1e3 * self.gap_m():.1e} mm"] if self.connections else []),
            f"Bake exact to {1e3 * self.bake_error_max_m:.1e} mm, {self.bake_error_max_deg:.1e}°",
            *self.fewer(),
            *self.seam(),
            *self.fewer_joints(),
            *self.landing(),
            f"Sinks in by {1e3 * self.penetration_max_m:.2f} mm",
            f"Contacts and limits solved to {self.residual_max:.1e} of the approach",
            f"Limits exceeded by {self.limit_violation_max_deg:.2f}°",
            f"Energy {self.energy_J[0]:.4g} J, at the end {self.energy_J[1]:.4g} J",
            f"Energy gained {self.energy_gain_max_J:.1e} J",
        ]

    def seam(self) -> list[str]:
        """How well a loop closes, as lines."""
        if not self.loop:
            return []
        gap = f"{1e3 * self.loop['gap_m']:.2g} mm and {self.loop['gap_deg']:.2g}°"
        return [f"After {self.loop['cycles']} cycles the last frame is {gap} from the first"]

    def fewer(self) -> list[str]:
        """What was saved by keying fewer frames, as lines."""
        if not self.keys:
            return []
        return [
            f"{self.keys['written']} keys instead of {self.keys['every_frame']}, which moves bones by up to "
            f"{1e3 * self.keys['moved_max_m']:.2g} mm and {self.keys['turned_max_deg']:.2g}°"
        ]

    def fewer_joints(self) -> list[str]:
        """What an adaptive simulation left out, as lines."""
        if not self.adaptive:
            return []
        share, error = 100 * self.adaptive["active_share"], self.adaptive["error_max"]
        if error < 1.0:
            return [f"{share:.3g} % of the joints active on average, error {error:.1e} of the length at most"]
        # impacts ask more of few joints than they can bound
        return [f"{share:.3g} % of the joints active on average, too few to bound the error; compare with Adaptive off"]

    def landing(self) -> list[str]:
        """What there was to touch, and how it was touched, as lines."""
        taken, ignored = (len(self.scenery.get(name, ())) for name in ("taken", "ignored"))
        lines = [f"Up to {self.contacts_max} contacts at a time"]
        if taken or ignored:
            lines.append(f"{taken} objects as scenery" + (f", {ignored} ignored" if ignored else ""))
        if self.passing:
            pairs = listed([f"{one} and {other}" for one, other in self.passing])
            lines.append(f"Overlap at the start, or where followed, and pass: {pairs}")
        return lines

    def gap_m(self) -> float:
        """How far any connection comes apart while it holds [m]."""
        return max((connection["gap_max_m"] or 0.0 for connection in self.connections), default=0.0)

    def events(self) -> list[str]:
        """What happened to connections, as lines."""
        return [
            f"{connection['name']}: {HAPPENED.get(event['kind'], event['kind'])} at frame {event['frame']:.4g}"
            for connection in self.connections
            for event in connection["events"]
        ]

    def news(self) -> list[str]:
        """The warnings as lines; bones that have the same share one."""
        carried = [warning.bone for warning in self.warnings if warning.code.startswith("welded_")]
        lines = [f"{len(carried)} bones are carried along: {listed(carried)}"] if carried else []
        others = (warning for warning in self.warnings if not warning.code.startswith("welded_"))
        return [line for _, line in gathered(others, notes=True)] + lines

    def judge(
        self, height: float, length: float, weight: float, motion: float, reach: float, driven: bool,
        exact: Sequence[bool], allowed: tuple[float, float], controlled: bool,
    ) -> None:  # fmt: skip
        """Adds a warning for each broken promise, and sets `ok`. `height` and `length` (its largest extent) [m],
        `weight` [N], the most energy of `motion` [J], `reach` the largest coordinate [m]; a `driven` character may gain
        energy; `exact` connections do not come apart; fewer keys are `allowed` to change so much [m, rad]; `controlled`
        rigs are posed through many constraints, each of which rounds."""
        size = max(1.0, height / PROMISED_HEIGHT)
        rounding = ROUNDINGS * float(np.spacing(np.float32(reach)))
        # controls that are moved to their place have keys of that, which may be fewer
        jointed = NEAR * length + allowed[0] if controlled else SEPARATION * size
        promises = [
            ("joints_apart", self.joint_separation_max_m, max(jointed, rounding), "m", "joints are apart"),
            (
                "bake_error",
                self.bake_error_max_m,
                max(ERROR * size, rounding) + allowed[0],
                "m",
                "the rig does not reach the simulated place",
            ),
            (
                "bake_error",
                self.bake_error_max_deg,
                ERROR_DEG + float(np.degrees(allowed[1])),
                "°",
                "the rig does not reach the simulated turn",
            ),
            ("penetration", self.penetration_max_m, PENETRATION * height, "m", "it sinks into what it touches"),
            ("limit", self.limit_violation_max_deg, LIMIT_DEG, "°", "joints exceed their limits"),
        ]
        promises += [
            (
                "connection_apart",
                connection["gap_max_m"] or 0.0,
                max(GAP * size, rounding) + 2 * allowed[0],
                "m",
                f"connection {connection['name']!r} comes apart",
            )
            for connection, promised in zip(self.connections, exact)
            if promised
        ]
        if not driven:
            most = ENERGY * (weight * max(height, length) + MOTION * motion)
            promises.append(("energy", self.energy_gain_max_J, most, "J", "energy was gained"))
        for code, value, most, unit, what in promises:
            if not value <= most:
                self.warnings.append(Problem(code, (), f"{what}: {value:.3g} {unit}, more than {most:.3g} {unit}"))
                self.ok = False


def measured(trajectory: Trajectory) -> dict:
    """The report's numbers that come from the trajectory itself."""
    steps = sorted(1e3 * trajectory.step_seconds) or [0.0]
    gained = trajectory.energy - np.minimum.accumulate(trajectory.energy)
    return {
        "ms_per_step": {"median": float(statistics.median(steps)), "p95": float(steps[int(0.95 * (len(steps) - 1))])},
        "penetration_max_m": float(trajectory.penetration.max()),
        "limit_violation_max_deg": float(np.degrees(trajectory.limit_violation.max())),
        "energy_gain_max_J": float(gained.max()),
        "energy_J": (float(trajectory.energy[0]), float(trajectory.energy[-1])),
        "residual_max": float(trajectory.residual.max()),
        "contacts_max": int(trajectory.contacts.max()),
        "blender": bpy.app.version_string,
    }


def motion_energy(simulation: Simulation) -> float:
    """The most energy [J] that motion and springs have in a frame."""
    model, trajectory = simulation.model, simulation.trajectory
    world = trajectory.world
    centers = world[..., :3, 3] + (world[..., :3, :3] @ model.center[:, :, None])[..., 0]
    return float((trajectory.energy + (model.mass @ centers) @ simulation.world.gravity).max())


def jams(simulation: Simulation, start: int) -> list[Problem]:
    """Warnings of when connections became singular; `start` is the first frame."""
    return [
        Problem(
            "singular",
            (),
            f"connections jam at frame {start + event.time / simulation.frame_time:.4g}: for a moment they hold in "
            "fewer ways than before, as stretched straight; bend what is stretched, or make one of them Springy",
        )
        for event in simulation.events
        if event.kind == "singular"
    ]


def held(grips: list[Grip], loops: list[int], gaps: Sequence[float], simulation: Simulation, start: int) -> list[dict]:
    """What the report says about each connection: the number of its loop in the trajectory is in `loops`, its gap [m]
    in `gaps`, NaN where it never held; `start` is the first frame."""
    if not grips:
        return []
    forces = np.linalg.norm(simulation.trajectory.loop_force[:, loops, 3:], axis=-1)
    return [
        {
            "name": grip.name,
            "from": grip.start.label,
            "to": grip.end.label,
            "events": [
                {"frame": round(start + event.time / simulation.frame_time, 4), "kind": event.kind}
                for event in simulation.events
                if event.name == grip.name
            ],
            "gap_max_m": None if np.isnan(gap) else gap,
            "force_max_N": float(np.nanmax(forces[:, k], initial=0.0)),
        }
        for k, (grip, gap) in enumerate(zip(grips, map(float, gaps)))
    ]
