"""Armature object -> Linkage in world metres."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..core import Capsule, Joint, Link, Linkage
from ..core.shape import Shape
from ..core.spatial import matrix_quaternion, pose, pose_inverse
from . import control
from .anatomy import Anatomy, recognise
from .body import Body, combined, human_bodies, shared, solid_capsule, thickened
from .collider import (
    AUTO,
    HULL,
    Manner,
    balls,
    capsule_around,
    capsule_of_bone,
    capsule_of_segment,
    is_blunt,
    shapes_of,
)
from .directing import followers, unmoved
from .joint_frame import JointFrame, joint_frames, segment_ends
from .joint_range import hinge_angle, roomy, swing_twist, widened
from .passive import add_passive, keep_axis
from .preset import preset
from .problem import ERROR, ConversionError, Problem
from .rig import Rig
from .rig_limit import limited
from .role import ANIMATED, IGNORED, SIMULATED, carriers, default_roles, hung, undriven, welded
from .skin import of_body, read_skin
from .source import Source
from .surface import layer_bits, surface_values

TOLD = np.radians(0.1)
"""Limits widened by less [rad] are rounding, not news."""


@dataclass(frozen=True)
class Options:
    """How a rig becomes a linkage; see the settings of the same names. Bones of the same named `family` do not touch
    each other."""

    mass: float = 0.0
    damping: float = 0.5
    tone: float = 0.0
    friction: float = 0.6
    restitution: float = 0.0
    rolling: float = 0.0
    torsion: float = 0.0
    layers: int = 1
    family: str = ""
    gravity: float = 9.81
    rig_limits: bool = False

    def manner(self, own) -> Manner:
        """How a bone collides that has its `own` settings."""
        surface = surface_values(own if own.use_surface else self)
        layers = layer_bits(own.layers) if own.use_layers else self.layers
        return Manner(
            own.shape, own.shape_length, own.shape_thickness, {**surface, "layers": layers, "family": self.family}
        )


@dataclass(frozen=True)
class Character:
    """A rig as physics sees it.

    `links`: its own in `linkage`, which may hold other characters too, parents first; `bones` (n,): the rig's bone of
    each; `offsets` (n, 3, 3): the rotation of each link's frame in its bone's; `carrier` as in `carriers`; `height`
    [m]; `lowest` [m]: of all points at the start.
    """

    rig: Rig
    anatomy: Anatomy | None
    linkage: Linkage
    links: list[Link]
    bones: list[int]
    offsets: np.ndarray
    roles: list[str]
    carrier: np.ndarray
    height: float
    lowest: float
    warnings: list[Problem]

    def link_poses(self, source: Source) -> np.ndarray:
        """World poses (F, n, 4, 4) [m] of the links' frames in the source motion."""
        return self._of_links(source.world_poses(self.bones))

    def start_poses(self, source: Source) -> np.ndarray:
        """The links' poses (n, 4, 4) at the start frame."""
        return self._of_links(source.start_poses[self.bones])

    def _of_links(self, poses: np.ndarray) -> np.ndarray:
        poses[..., :3, :3] = poses[..., :3, :3] @ self.offsets
        return poses


def convert(
    armature, rig: Rig, source: Source, roles: list[str] | None, options: Options, skin: dict | None = None
) -> Character:
    """The linkage of an armature object in the pose of the source's first frame; `roles` None for the defaults, `skin`
    None to be read."""
    looks = _look(armature, rig, roles, skin)
    anatomy, roles, carrier, ends, capsules = looks.anatomy, looks.roles, looks.carrier, looks.ends, looks.capsules
    frames = joint_frames(rig, anatomy, carrier, ends)
    frames = limited(armature, rig, frames, options.rig_limits)
    bodies = _bodies(rig, anatomy, carrier, ends, frames, capsules, options)
    bodies = shared(armature, rig, bodies)
    warnings = undriven(rig, anatomy) + welded(rig, roles, carrier)

    followed = followers(armature, rig.names, roles, source.settings)
    poses = source.all_poses if followed else source.start_poses[None]
    still = unmoved(armature, rig.names, roles, source.settings)
    linkage, links, rotations = Linkage(), {}, {}
    for bone in (bone for bone in range(len(rig.names)) if carrier[bone] == bone):
        above = int(carrier[rig.parents[bone]]) if rig.parents[bone] >= 0 else -1
        keyed = roles[bone] == ANIMATED or (bone in still and (above < 0 or links[above].keyed))
        shown = poses if bone in followed else poses[:1]
        link = _placed(rig, bone, above, keyed, frames, shown, rotations, warnings)
        _give_body(link, bodies[bone], looks.shapes(armature, rig, bone, options), rotations[bone], rig.heads[bone])
        links[bone] = linkage.add(link, links.get(above))
    ordered = list(linkage.links())
    bones = [rig.index[link.name] for link in ordered]
    offsets = np.array([rig.rest[bone, :3, :3].T @ rotations[bone] for bone in bones])
    add_passive(linkage, options.damping, options.tone, options.gravity)
    for bone, link in links.items():
        if frames[bone].kind == "hinge" and link.joint.kind == "spherical":
            keep_axis(link.joint)
    height = _height(anatomy, capsules)
    character = Character(rig, anatomy, linkage, ordered, bones, offsets, roles, carrier, height, 0.0, warnings)
    return replace(character, lowest=_lowest(character, source))


def rest_shapes(armature, rig: Rig, roles: list[str] | None, options: Options) -> dict[str, list[Shape]]:
    """What collides for each bone that carries itself, in the world at rest."""
    looks = _look(armature, rig, roles)
    return {rig.names[bone]: looks.shapes(armature, rig, bone, options) for bone in looks.capsules}


@dataclass(frozen=True)
class _Looks:
    """What a rig is taken for: see `Character`, `segment_ends` and `_capsules`. `flesh`: the skin's points (k, 3) of
    carrying bones that have enough."""

    anatomy: Anatomy | None
    roles: list[str]
    carrier: np.ndarray
    ends: np.ndarray
    capsules: dict[int, Capsule]
    flesh: dict[int, np.ndarray]

    def shapes(self, armature, rig: Rig, bone: int, options: Options) -> list[Shape]:
        own = armature.pose.bones[rig.names[bone]].armature_dynamics
        how, flesh, is_head = options.manner(own), self.flesh.get(bone), self._is_head(bone)
        if how.kind == AUTO and is_head and flesh is not None and is_blunt(self.capsules[bone], flesh):
            how = replace(how, kind=HULL)
        return shapes_of(self.capsules[bone], flesh, rig.heads[bone], how)

    def _is_head(self, bone: int) -> bool:
        return self.anatomy is not None and self.anatomy.segments.get(bone) == "head"


def _look(armature, rig: Rig, roles: list[str] | None, skin: dict | None = None) -> _Looks:
    skin = read_skin(armature, rig) if skin is None else skin
    anatomy = recognise(rig, skin)
    roles = roles or default_roles(rig, anatomy, of_body(armature, rig, skin))
    if set(roles) == {IGNORED}:
        text = f"armature {rig.armature!r}: all its bones are ignored"
        remedy = "set the bones that physics should move to Simulated"
        raise ConversionError(Problem("all_ignored", (), text, remedy, ERROR, fix="roles"))
    if rig.controls:
        roles = [
            IGNORED if role == SIMULATED and rig.controls.of(bone) < 0 else role for bone, role in enumerate(roles)
        ]
    roles = hung(rig, roles)
    doubles = {} if rig.controls else control.doubles(armature)
    carrier = carriers(rig, roles, {rig.index[name]: rig.index[double] for name, double in doubles.items()})
    ends = segment_ends(rig, anatomy, skin, carrier)
    return _Looks(anatomy, roles, carrier, ends, *_capsules(rig, anatomy, skin, carrier, ends))


def _placed(
    rig: Rig,
    bone: int,
    above: int,
    keyed: bool,
    frames: dict[int, JointFrame],
    poses: np.ndarray,
    rotations: dict[int, np.ndarray],
    warnings: list[Problem],
) -> Link:
    """The link with its joint, placed so that the start pose is reached exactly.

    Fills `rotations` with the link's rotation (3, 3) in the world at rest. A hinge turns about an axis that stays in
    the carrying bone; what the start pose turns beyond it goes into the link's own frame. Of more `poses` (F, n, 4, 4)
    than that of the start, all can be reached.
    """
    frame, start = frames[bone], poses[0]
    now = start[bone, :3, :3] @ rig.rest[bone, :3, :3].T
    rotations[bone] = frame.rest
    if above < 0:
        kind = "fixed" if keyed else "free"
        return Link(rig.names[bone], Joint(kind), start[bone, :3, 3], now @ frame.rest, keyed=keyed)
    carried = start[above, :3, :3] @ rig.rest[above, :3, :3].T @ rotations[above]
    position = carried.T @ (start[bone, :3, 3] - start[above, :3, 3])
    zero = rotations[above].T @ frame.zero
    if keyed:
        return Link(rig.names[bone], Joint("fixed"), position, zero, keyed=True)
    turns = _turns(rig, bone, above, poses, zero, frame.rest, rotations[above])
    turned = turns[0]
    frame, outside = roomy(frame, turns)
    if frame.kind == "hinge":
        angle, beyond = hinge_angle(turned)
        rotations[bone] = frame.rest @ beyond.T
        angles = np.array([angle])
    else:
        angles = swing_twist(turned)
    lower, upper, beyond_start = widened(frame, angles)
    outside = max(outside, beyond_start)
    if outside > TOLD:
        pose_is = "the animation needs" if len(poses) > 1 else "the start pose is"
        warnings.append(
            Problem(
                "limit_widened",
                (rig.names[bone],),
                f"{pose_is} {np.degrees(outside):.1f}° outside the joint's range; range widened",
                amount=f"{np.degrees(outside):.1f}°",
            )
        )
    return Link(rig.names[bone], Joint(frame.kind, lower, upper), position, zero)


def _turns(
    rig: Rig, bone: int, above: int, poses: np.ndarray, zero: np.ndarray, rest: np.ndarray, rest_above: np.ndarray
) -> np.ndarray:
    """How a joint is turned (F, 4) in poses (F, n, 4, 4) of the bones, as quaternions."""
    now, carried = (
        poses[:, who, :3, :3] @ rig.rest[who, :3, :3].T @ frame for who, frame in ((bone, rest), (above, rest_above))
    )
    return matrix_quaternion(zero.T @ carried.swapaxes(-1, -2) @ now)


def _capsules(
    rig: Rig, anatomy: Anatomy | None, skin: dict, carrier: np.ndarray, ends: np.ndarray
) -> tuple[dict[int, Capsule], dict[int, np.ndarray]]:
    """A world capsule at rest for each carrying bone, and the skin's points it is around, where it is."""
    capsules: dict[int, Capsule] = {}
    bodies: dict[int, np.ndarray] = {}
    for bone in (bone for bone in range(len(rig.names)) if carrier[bone] == bone):
        own = np.flatnonzero(carrier == bone)
        flesh = np.concatenate([np.empty((0, 3)), *(skin[other] for other in own if other in skin)])
        capsule = capsule_around(flesh)
        if capsule:
            bodies[bone] = flesh
        elif anatomy and bone in anatomy.segments:
            outline = np.concatenate([rig.heads[own], rig.tails[own]])
            capsule = capsule_of_segment(
                anatomy.segments[bone], rig.heads[bone], ends[bone], outline, anatomy.axes, anatomy.stature
            )
        capsules[bone] = capsule or capsule_of_bone(rig.heads[bone], ends[bone])
    empty = tuple(rig.names[bone] for bone, capsule in capsules.items() if capsule.radius <= 0)
    if empty:
        remedy = "set it to Ignored or give it length"
        raise ConversionError(Problem("no_size", empty, "it has no size, so no mass", remedy, ERROR, fix="ignore"))
    return capsules, bodies


def _bodies(
    rig: Rig,
    anatomy: Anatomy | None,
    carrier: np.ndarray,
    ends: np.ndarray,
    frames: dict[int, JointFrame],
    capsules: dict[int, Capsule],
    options: Options,
) -> dict[int, Body]:
    """A body for each carrying bone, in the world at rest, of the total mass that was asked for."""
    parts: dict[int, list[Body]] = {bone: [] for bone in capsules}
    if anatomy:
        human = preset("human")["mass_at_175_cm"] * (anatomy.stature / 1.75) ** 3
        rotations = {bone: frame.rest for bone, frame in frames.items()}
        for bone, body in human_bodies(rig, anatomy, ends, rotations, capsules).items():
            if carrier[bone] >= 0:
                parts[int(carrier[bone])].append(body.scaled(human))
    density = preset("creature")["density"]
    bodies = {}
    for bone, capsule in capsules.items():
        body = combined(parts[bone] or [solid_capsule(capsule, density)])
        bodies[bone] = thickened(body, float(np.linalg.norm(ends[bone] - rig.heads[bone])))
    total = sum(body.mass for body in bodies.values())
    factor = options.mass / total if options.mass > 0 else 1.0
    return {bone: body.scaled(factor) for bone, body in bodies.items()}


def _give_body(link: Link, body: Body, shapes: list[Shape], rotation: np.ndarray, origin: np.ndarray) -> None:
    link.mass = body.mass
    link.center_of_mass = rotation.T @ (body.center - origin)
    inertia = rotation.T @ body.inertia @ rotation
    link.inertia = (inertia + inertia.T) / 2
    link.shapes = [shape.moved(pose_inverse(pose(rotation, origin))) for shape in shapes]


def _height(anatomy: Anatomy | None, capsules: dict[int, Capsule]) -> float:
    """The character's height [m]: a human's stature, else how tall its colliders stand at rest."""
    if anatomy:
        return anatomy.stature
    ends = np.array([(c.start[2], c.end[2]) for c in capsules.values()])
    radii = np.array([c.radius for c in capsules.values()])[:, None]
    return float((ends + radii).max() - (ends - radii).min())


def _lowest(character: Character, source: Source) -> float:
    """The lowest point [m] of the colliders in the start pose."""
    up = character.start_poses(source)[:, 2]
    heights = [
        points @ up[i, :3] + up[i, 3] - radii
        for i, link in enumerate(character.links)
        for points, radii in map(balls, link.shapes)
    ]
    return float(np.concatenate([*heights, [np.inf]]).min())
