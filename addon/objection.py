"""What there is to object to in a character before it is simulated, as Problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import bpy
import numpy as np

from ..core.shape import Shape
from . import control, growth, lock, rival, symmetry, timeless
from .cast import Actor, Cast
from .collider import balls
from .connection import live
from .hold import written_bones
from .problem import ERROR, NOTE, ConversionError, Problem
from .rig import UNEVEN_SCALE

TINY = 0.1
"""Bodies shorter than this part of the median one are not worth simulating."""

SKEWED = {"FULL", "FIX_SHEAR"}
"""How bones inherit scale that are skewed by one that differs between axes."""

LAST_FRAME = 1048574
"""Blender goes no further, in both directions."""

WHIRL = 135.0
"""A turn between two frames above this [degrees] may as well have been the other way round."""


def check_range(armature) -> None:
    """Raises ConversionError for frames that are not a range."""
    settings = armature.armature_dynamics
    start, end = settings.frame_start, settings.frame_end
    if end <= start:
        text = f"frames {start} to {end} are not a range"
        remedy = "the end must come after the start"
        raise ConversionError(Problem("frame_range", (), text, remedy, ERROR, fix="frame_range"))
    if max(abs(start), abs(end)) > LAST_FRAME:
        text = f"frames {start} to {end} leave Blender's, which end at {LAST_FRAME}"
        remedy = "begin and end within them"
        raise ConversionError(Problem("frame_range", (), text, remedy, ERROR, fix="frame_range"))


def check_time(armature) -> None:
    """Raises ConversionError where the scene plays keys at other frames than those that they are set on."""
    render = bpy.context.scene.render
    old, new = render.frame_map_old, render.frame_map_new
    if old != new:
        text = f"the scene's time is stretched from {old} to {new} frames, so that keys play at other frames"
        remedy = "set Old and New to the same under Output > Frame Range > Time Stretching"
        raise ConversionError(Problem("time_stretched", (), text, remedy, ERROR, fix="time"))


SHARED = (
    "frame_start", "frame_end", "life_scale", "substeps", "loop_most", "use_ground", "scenery", "result", "key_mode",
    "blend_in", "blend_out",
)  # fmt: skip
"""Settings that count for a whole take."""

SHARED_KEYS = {"STEP": ("key_step",), "REDUCED": ("key_distance", "key_angle")}
"""Those that count where keys are set so."""


def overruled(leader, partners: Iterable) -> list[Problem]:
    """What partners' settings say otherwise than those of the armature that they are simulated together with."""
    whole, found = leader.armature_dynamics, []
    names = (*SHARED, *SHARED_KEYS.get(whole.key_mode, ()), *(["ground_height"] if whole.use_ground else []))
    for partner in partners:
        own = partner.armature_dynamics
        differing = [name for name in names if own.enabled and getattr(own, name) != getattr(whole, name)]
        if differing:
            labels = ", ".join(own.bl_rna.properties[name].name for name in differing)
            text = f"armature {partner.name!r} has settings that do not count beside those of {leader.name!r}: {labels}"
            found.append(Problem("overruled", (), text, "give both the same"))
    return found


def of_actor(actor: Actor) -> list[Problem]:
    """Everything about an armature as it starts."""
    return [
        *actor.character.warnings,
        *_controls(actor.armature),
        *_rivals(actor),
        *_locks(actor),
        *_sizes(actor),
        *_skews(actor),
        *growth.problems(actor),
        *timeless.problems(actor.armature),
        *_rolls(actor),
        *_loose_parts(actor),
    ]


def _controls(armature) -> list[Problem]:
    """Controls and switches that are not there any more, as they have another name."""
    bones, settings = armature.pose.bones, armature.armature_dynamics
    back = "give the bone that name again"
    found = [
        Problem(
            "control_gone",
            (bone.name,),
            f"its control {name!r} is gone, so it does not follow physics",
            f"{back}, or choose another under Control",
            amount=repr(name),
        )
        for bone in bones
        for name in [bone.armature_dynamics.control]
        if name and name not in bones
    ]
    root = settings.root_control
    if root and root not in bones:
        text = f"the root control {root!r} is gone, so it does not go where the character falls"
        found.append(Problem("root_gone", (), text, f"{back}, or choose another under Root Control"))
    for bone, name in control.parsed(settings.switches):
        if bone not in bones or name not in bones[bone]:
            text = f"bone {bone!r} has no switch {name!r} any more, so what that switches may not follow physics"
            found.append(
                Problem(
                    "switch_gone", (), text, "give both their names again, or press Remove Dynamics, then Make Dynamic"
                )
            )
    return found


def _rivals(actor: Actor) -> list[Problem]:
    settings = actor.armature.armature_dynamics
    found = []
    for own in rival.rivals(actor.armature, written_bones(actor.character)):
        if own.channel is None:
            code, setting, what = "constraint", "mute_constraints", f"constraint {own.name!r}"
        else:
            code, setting, what = "driver", "mute_drivers", f"the driver of its {own.name}"
        if own.holder not in own.bones:
            what += f" of bone {own.holder!r}"
        if getattr(settings, setting):
            found.append(Problem(code, own.bones, f"{what}: turned off while the simulation plays", severity=NOTE))
        else:
            label = settings.bl_rna.properties[setting].name
            found.append(Problem(code, own.bones, f"{what}: it fights the keys", f"turn on {label}", fix=setting))
    return found


def _locks(actor: Actor) -> list[Problem]:
    return [
        Problem(
            "locked",
            (bone,),
            f"its {' and '.join(f'{kind} {axes}' for kind, axes in locks.items())} is locked, but keyed all the same",
            "unlock it, or set it to Ignored",
            fix="unlock",
        )
        for bone, locks in lock.locked(actor.armature, actor.character).items()
    ]


def _simulated(actor: Actor) -> dict[int, str]:
    """The simulated bones that are bodies: their number in the rig, and their name."""
    character = actor.character
    return {bone: character.rig.names[bone] for bone, link in zip(character.bones, character.links) if not link.keyed}


def _sizes(actor: Actor) -> list[Problem]:
    character = actor.character
    shapes = {name: character.links[character.bones.index(bone)].shapes for bone, name in _simulated(actor).items()}
    sizes = {name: max(map(_length, own)) for name, own in shapes.items() if own}
    least = TINY * float(np.median(list(sizes.values()) or [0.0]))
    small = [
        Problem(
            "zero_length",
            (name,),
            f"it is next to nothing, {1e3 * size:.2g} mm long, and would whirl about",
            "set it to Ignored, so that the bone above carries it",
            fix="ignore",
        )
        for name, size in sizes.items()
        if size < least
    ]
    bare = [
        Problem(
            "no_collider",
            (name,),
            "nothing collides for it, so it passes through everything",
            "give it another shape than None",
            fix="collider",
        )
        for name, own in shapes.items()
        if not own
    ]
    return small + bare


def _skews(actor: Actor) -> list[Problem]:
    """Bones with a scale that differs between axes, where others turn in it."""
    character, bones = actor.character, actor.armature.data.bones
    rig, found = character.rig, []
    poses, simulated = actor.source.at(actor.source.start)[0], _simulated(actor)
    for bone, name in simulated.items() if rig.controls is None else ():
        scale = np.linalg.norm(poses[bone, :3, :3], axis=0)
        below = [rig.names[other] for other in rig.children[bone] if other in simulated]
        if np.ptp(scale) > UNEVEN_SCALE * scale.max() and any(bones[own].inherit_scale in SKEWED for own in below):
            text = (
                f"its scale differs between axes ({', '.join(f'{s:.4g}' for s in scale)}): what turns in it is skewed"
            )
            remedy = "clear its scale, or let what hangs from it inherit the average"
            found.append(Problem("uneven_scale", (name,), text, remedy, fix="clear_scale"))
    return found


def _length(shape: Shape) -> float:
    """[m]"""
    points, radii = balls(shape)
    return float(np.linalg.norm(np.ptp(points, axis=0)) + 2 * radii.max())


def _rolls(actor: Actor) -> list[Problem]:
    pairs = symmetry.uneven_rolls(actor.armature, _simulated(actor).values())
    return [
        Problem(
            "roll",
            (right, left),
            f"its roll differs by {abs(np.degrees(roll)):.1f}° from the mirror image of {left!r}",
            "mirror the roll, so that poses and settings can be mirrored",
            fix="roll",
            amount=f"{abs(np.degrees(roll)):.1f}°",
        )
        for (left, right), roll in pairs.items()
    ]


def _loose_parts(actor: Actor) -> list[Problem]:
    loose, main = loose_parts(actor)
    return [
        Problem(
            "loose",
            (bone,),
            f"nothing joins it to {main!r}: it falls by itself, with what it carries",
            "connect it, or set what is between them to Simulated",
            fix="connect",
        )
        for bone in loose
    ]


def loose_parts(actor: Actor) -> tuple[list[str], str]:
    """The first bones of the parts of a character that fall by themselves, as neither bones nor connections join them
    to its largest part or to anything else; and the first bone of that part."""
    character = actor.character
    names, carrier, parents = character.rig.names, character.carrier, character.rig.parents
    part: dict[int, int] = {}  # the first bone of the part that each bone belongs to
    for bone in np.flatnonzero(carrier >= 0).tolist():
        part[bone] = part.get(int(parents[bone]), bone)
    free = {bone for bone, link in zip(character.bones, character.links) if link.joint.kind == "free"}
    joined = {bone: {bone} for bone in part.values()}
    held = set(joined) - free
    for _, connection in live(actor.armature):
        ends = [character.rig.index.get(name, -1) for name in (connection.bone, connection.target_bone)]
        if connection.target_kind != "BONE" or connection.target != actor.armature:
            held.add(part.get(ends[0], -1))
        elif ends[0] in part and ends[1] in part:
            both = joined[part[ends[0]]] | joined[part[ends[1]]]
            joined.update(dict.fromkeys(both, both))
    main = max(joined, key=list(part.values()).count)
    loose = [bone for bone in sorted(free) if main not in joined[bone] and not held & joined[bone]]
    return [names[bone] for bone in loose], names[main]


def overlaps(passing: Iterable[tuple[str, str]], at_rest: Iterable[tuple[str, str]]) -> list[Problem]:
    """Pairs of bones that overlap as the character starts, and not at rest, where it is built so."""
    return [
        Problem(
            "overlap",
            (one, other),
            f"it overlaps {other!r} at the start, so that they pass through each other",
            "pose them apart at the start frame",
        )
        for one, other in sorted({*passing} - {*at_rest})
    ]


def stuck(inside: Iterable[tuple[str, str | int, float]], names: Sequence[str]) -> list[Problem]:
    """Bones that are deep in obstacles as the character starts, as `Simulation.inside` has them; `names` of those that
    stand still, without the ground's."""
    deepest = {bone: (thing, depth) for bone, thing, depth in sorted(inside, key=lambda found: found[2])}
    named = [*map(repr, names), "the ground"]
    return [
        Problem(
            "inside",
            (bone,),
            f"it starts {depth:.2g} m inside {named[thing] if isinstance(thing, int) else repr(thing)}",
            "pose it out of there at the start frame, else it is pushed out or stays stuck",
            amount=f"{depth:.2g} m",
        )
        for bone, (thing, depth) in sorted(deepest.items())
    ]


def whirls(cast: Cast, start: int) -> list[Problem]:
    """What is animated and turns by so much from frame to frame that frames do not say which way round."""
    found = []
    for number, link in enumerate(cast.links):
        turns = cast.poses[:, number, :3, :3]
        if link.keyed and len(turns) > 1:
            traces = np.einsum("fij,fij->f", turns[:-1], turns[1:])
            most = int(np.argmin(traces))
            angle = float(np.degrees(np.arccos(np.clip((traces[most] - 1) / 2, -1, 1))))
            if angle > WHIRL:
                text = (
                    f"{link.name!r} turns by {angle:.0f}° from frame {start + most} to the next: "
                    "it is taken to turn the shorter way round"
                )
                found.append(Problem("whirl", (), text, "turn it more slowly, or raise the frame rate"))
    return found


def falls_forever(gravity: np.ndarray, actors: Iterable[Actor], obstacles: bool) -> list[Problem]:
    """That there is nothing to land on, where something falls that nothing holds."""
    if obstacles or not gravity.any():
        return []
    for actor in actors:
        loose = any(link.joint.kind == "free" and not link.keyed for link in actor.character.links)
        if loose and not any(live(actor.armature)):
            text = "there is nothing to land on: what falls, falls without end"
            return [Problem("nothing_below", (), text, "turn on Ground, or choose Scenery", fix="ground")]
    return []


def refuse_directed(armature) -> None:
    """Raises ConversionError as adaptive simulation does not know what draws directed bones toward the animation."""
    text = f"armature {armature.name!r}: its bones are directed, and adaptive simulation does not know where to"
    raise ConversionError(Problem("adaptive", (), text, "turn Adaptive off, or Follow", ERROR))


def refuse_fields(armature) -> None:
    """Raises ConversionError as adaptive simulation does not know what force fields do to the joints that rest."""
    text = f"armature {armature.name!r}: force fields act on it, and adaptive simulation does not know what they do"
    raise ConversionError(Problem("adaptive", (), text, "turn Adaptive off, or disable the fields in viewports", ERROR))


def refuse_unmoved(armature) -> None:
    """Raises ConversionError as there is nothing to simulate."""
    raise ConversionError(
        f"armature {armature.name!r}: all its bones are ignored or animated; set the bones that physics should move to "
        "Simulated"
    )
