"""Connections of armatures -> virtual links of a linkage: what is joined to what, how, where and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

import bpy
import numpy as np

from ..core import Closure
from .carrying import carriers
from .cast import Actor, Cast, unused
from .problem import ConversionError, Problem
from .rig import is_hidden
from .role import SIMULATED
from .switch import Switch, elsewhere, enabled_curve, enabled_path, read_switch
from .unkeyed import visited

KINDS = {"FIXED": "fixed", "HINGE": "hinge", "SLIDER": "prismatic", "UNIVERSAL": "universal", "BALL": "spherical"}

ROAMING = ("BALL", "FIXED")
"""Joints whose place on the target may be found when they are made: they have no axis that is the target's."""

METHODS = {"EXACT": "projection", "SPRINGY": "compliance", "PULL": "compliance"}

AXES = {"X": [0, 1, 2], "Y": [1, 2, 0], "Z": [2, 0, 1]}
"""Which axes of the target are x, y and z of a joint's frame: its own axis is x."""


@dataclass(frozen=True)
class Place:
    """One end of a connection: the number of the link that carries it (None for the world), what people call it, and
    the joint's frame in that link (4, 4) at the start."""

    number: int | None
    label: str
    frame: np.ndarray


@dataclass(frozen=True)
class Grip:
    """A connection as it was added to a linkage: its virtual link's `name`, the joint's `kind`, and its two ends.

    `start` is at the bone, `end` at its target; `host` is the one of them that carries the joint.
    """

    name: str
    kind: str
    start: Place
    end: Place
    host: Place
    real: Place
    springy: bool
    closed: bool


def live(armature) -> Iterator[tuple[int, object]]:
    """The connections of a dynamic armature, with their numbers, that hold at some time or might."""
    settings = armature.armature_dynamics
    for index, connection in enumerate(settings.connections if settings.enabled else ()):
        might = connection.enabled or connection.grab_distance > 0 or enabled_curve(armature, index)
        if might or enabled_path(index) in elsewhere(armature):
            yield index, connection


def called(connection) -> str:
    """What a connection is called: by its ends where it has no name."""
    kind, target = connection.target_kind, connection.target
    other = connection.target_bone if kind == "BONE" else ""
    other = other or (target.name if target and kind != "WORLD" else kind.lower())
    return connection.name or f"{connection.bone} to {other}"


def group(armature, start: int) -> list:
    """The armatures that are simulated together with this one from frame `start` on, itself first: those that
    connections join, and where it meets others, those that do too.

    Raises ConversionError for a connection that has not both its ends, and for one that hangs from another's bones.
    """
    with visited(start):
        return _group(armature)


def _group(armature) -> list:
    pairs = [
        (owner, connection.target)
        for owner in bpy.context.scene.objects
        if owner.type == "ARMATURE"
        for _, connection in live(owner)
        if connection.target_kind == "BONE" and connection.target
    ]
    meeting = [owner for owner in bpy.context.scene.objects if owner.type == "ARMATURE" and _meets(owner)]
    pairs += pairwise(meeting)
    members = [armature]
    for member in members:  # grows while it is walked
        for pair in pairs:
            if member in pair:
                members += [other for other in pair if other not in members]
    for member in members:
        for _, connection in live(member):
            _check(member, connection, members)
        _check_parents(member, members)
    return members


def _check_parents(member, members: list) -> None:
    for thing, name in carriers(member):
        bone = thing.pose.bones.get(name) if thing in members else None
        chain = [bone, *bone.parent_recursive] if bone else ()
        if any(above.armature_dynamics.role == SIMULATED for above in chain):
            raise ConversionError(
                f"armature {member.name!r} hangs from bone {name!r} of {thing.name!r}, which is simulated with it; "
                "clear its parent or remove the constraint, and connect their bones"
            )


def _meets(armature) -> bool:
    settings = armature.armature_dynamics
    return settings.enabled and settings.meets and not is_hidden(armature)


def props_of(members: list) -> list:
    """The objects that armatures are connected to."""
    things = (c.target for member in members for _, c in live(member) if c.target_kind == "OBJECT")
    return list(dict.fromkeys(things))


def _there(connection) -> bool:
    """Whether the joint is where the bone's end is, not at a place of the target's own; the world has none."""
    return connection.target_at == "THERE" or connection.target_kind == "WORLD"


def _roams(connection, switch: Switch) -> bool:
    """Whether it may be made on the way at a place that is known only then."""
    return _there(connection) and any(now for _, now in switch.changes)


def needed_links(actors: list[Actor], start: int, end: int) -> set:
    """The objects (None for the world) that need a link even where they stand still: a connection that is made on the
    way holds its real link as it is then, and the world is none."""
    return {
        None if connection.target_kind == "WORLD" else connection.target
        for actor in actors
        for index, connection in live(actor.armature)
        if connection.target_kind != "BONE" and _roams(connection, _switch(actor, index, start, end))
    }


def _switch(actor: Actor, index: int, start: int, end: int) -> Switch:
    return read_switch(actor.armature, index, start, end, actor.source.settings)


def _check(owner, connection, members: list) -> None:
    target, kind = connection.target, connection.target_kind
    if connection.bone not in owner.data.bones:
        _refuse(connection, f"armature {owner.name!r} has no bone {connection.bone!r}", "choose its bone again")
    if kind == "WORLD":
        return
    if target is None:
        _refuse(connection, "its target is gone or was never chosen", "choose a target or remove the connection")
    if target.name not in bpy.context.scene.objects:
        _refuse(connection, f"its target {target.name!r} is not in the scene", "choose another target")
    if kind == "OBJECT":
        _check_prop(connection, target, members)
    elif target.type != "ARMATURE":
        _refuse(connection, f"its target {target.name!r} has no bones", "connect to the object instead")
    elif connection.target_bone not in target.data.bones:
        _refuse(connection, f"{target.name!r} has no bone {connection.target_bone!r}", "choose its target bone again")
    elif not target.armature_dynamics.enabled and target not in members[:1]:
        _refuse(connection, f"armature {target.name!r} is not dynamic", "select it and press Make Dynamic")


def _check_prop(connection, target, members: list) -> None:
    if is_hidden(target):
        _refuse(connection, f"its target {target.name!r} is hidden, so Blender does not evaluate it", "show it")
    for above in [target, *(above for above, _ in carriers(target))]:
        if above in members:
            _refuse(connection, f"its target {target.name!r} moves with {above.name!r}", "connect to a bone instead")


def _refuse(connection, what: str, remedy: str) -> NoReturn:
    raise ConversionError(f"connection {called(connection)!r}: {what}; {remedy}")


def connect(cast: Cast, start: int, end: int, frame_time: float) -> tuple[list[Grip], list[Problem]]:
    """Adds a virtual link for each connection to the linkage; returns them in that order, and what should be known.

    `start`, `end` are the simulated frames. Raises ConversionError where a connection cannot be made.
    """
    taken, grips, warnings = {link.name for link in cast.links}, [], []
    for actor in cast.actors:
        mass = sum(link.mass for link in actor.character.links)
        for index, connection in live(actor.armature):
            switch = _switch(actor, index, start, end)
            grip = _grip(cast, actor.armature, connection, switch, unused(called(connection), taken))
            host, real = (None if end.number is None else cast.links[end.number] for end in (grip.host, grip.real))
            cast.linkage.connect(
                host, real, grip.kind, at=grip.host.frame, seat=grip.real.frame, name=grip.name,
                closure=_closure(connection, switch, start, frame_time, mass),
            )  # fmt: skip
            grips.append(grip)
            warnings += _outside(grip.name, switch, start, end)
    return grips, warnings


def _closure(connection, switch: Switch, start: int, frame_time: float, mass: float) -> Closure:
    stiffness, damping = connection.stiffness, connection.damping
    if connection.method == "PULL":
        rate = 2.0 * np.pi * connection.frequency
        stiffness, damping = mass * rate**2, 2.0 * connection.ratio * mass * rate
    return Closure(
        method=METHODS[connection.method],
        stiffness=stiffness,
        damping=damping,
        closed=switch.closed,
        times=tuple(((frame - start) * frame_time, now) for frame, now in switch.changes),
        break_force=connection.break_force or np.inf,
        break_torque=connection.break_torque or np.inf,
        grab_distance=connection.grab_distance,
        region=_region(connection),
    )


def _region(connection) -> tuple | None:
    """The stretch of its axis that a slider stays on."""
    if connection.kind != "SLIDER" or not connection.slide_distance:
        return None
    upper = np.array([connection.slide_distance, np.inf, np.inf])
    return -upper, upper


def _outside(name: str, switch: Switch, start: int, end: int) -> list[Problem]:
    """Warnings about keys that change nothing in the simulated frames."""
    return [
        Problem(
            "event_outside",
            (),
            f"connection {name!r} is {'connected' if now else 'cut'} at frame {frame:.6g}, outside frames {start} to "
            f"{end}; move the key or the range",
        )
        for frame, now in switch.outside
    ]


def _grip(cast: Cast, armature, connection, switch: Switch, name: str) -> Grip:
    """Where a connection's two ends are. The joint's axes are the target's at the start."""
    roams = _roams(connection, switch)
    if _there(connection) and (connection.grab_distance > 0 or (roams and connection.kind not in ROAMING)):
        what = "grabbing" if connection.grab_distance > 0 else f"making a {connection.kind.lower()} on the way"
        world = connection.target_kind == "WORLD"
        remedy = "connect to an object there" if world else "set Target At to another than Same Place"
        _refuse(connection, f"{what} needs a place on the target", remedy)
    number, _, there = _bone_end(cast, connection, armature, connection.bone, connection.at)
    target_number, axes, own, label = _target(cast, connection)
    keyed = {end: end is None or cast.links[end].keyed for end in (number, target_number)}
    if number == target_number:
        _refuse(connection, f"both its ends are on bone {cast.links[number].name!r}", "connect what can move apart")
    if all(keyed.values()):
        _refuse(connection, "physics moves neither of its ends", "set the role of one to Simulated")
    if _there(connection):
        own = there
    axes = axes[:, AXES[connection.axis]]
    slid = abs((there - own) @ axes[:, 0])
    if switch.closed and _region(connection) and slid >= connection.slide_distance:
        _refuse(connection, f"it starts {slid:.3g} m from its place, where it has slid off", "let Slides Off be more")
    start = Place(number, cast.label(armature, connection.bone), _frame(cast, number, axes, there))
    end = Place(target_number, label, _frame(cast, target_number, axes, own))
    # the host's frame stays where it is when a connection is made on the way, and a world can only be host
    host, real = (start, end) if roams or keyed[number] else (end, start)
    return Grip(name, KINDS[connection.kind], start, end, host, real, connection.method != "EXACT", switch.closed)


def _target(cast: Cast, connection) -> tuple[int | None, np.ndarray, np.ndarray | None, str]:
    """A target's link, its axes (3, 3) and its own place (3,) in the world at the start, and what it is called."""
    target = connection.target
    if connection.target_kind == "WORLD":
        return cast.number(cast.prop(None)), np.eye(3), None, "world"
    if connection.target_kind == "OBJECT":
        prop = cast.prop(target)
        return cast.number(prop), prop.poses[0, :3, :3], prop.poses[0, :3, 3], target.name
    number, axes, own = _bone_end(cast, connection, target, connection.target_bone, connection.target_at)
    return number, axes, own, cast.label(target, connection.target_bone)


def _bone_end(cast: Cast, connection, armature, name: str, at: str) -> tuple[int, np.ndarray, np.ndarray]:
    """The number of the link that carries a bone, the bone's axes (3, 3) and one of its ends (3,) in the world at the
    start."""
    actor = cast.actor(armature)
    character = actor.character
    bone = character.rig.index[name]
    carrier = int(character.carrier[bone])
    if carrier < 0:
        _refuse(connection, f"bone {name!r} is ignored and hangs on no simulated bone", "set its role to Simulated")
    poses, world = actor.source.at(actor.source.start)
    along = armature.data.bones[name].length if at == "TAIL" else 0.0
    end = world @ poses[bone] @ np.array([0.0, along, 0.0, 1.0])
    number = actor.first + character.bones.index(carrier)
    return number, actor.source.start_poses[bone, :3, :3], end[:3]


def _frame(cast: Cast, number: int | None, axes: np.ndarray, place: np.ndarray) -> np.ndarray:
    """A frame (4, 4) of the world at the start, as the link has it."""
    frame = np.eye(4)
    frame[:3, :3], frame[:3, 3] = axes, place
    return frame if number is None else np.linalg.inv(cast.poses[0, number]) @ frame
