"""Settings that go from one bone to others, and to the same bone on the other side."""

from __future__ import annotations

from collections.abc import Iterable

import bpy

from . import setup, symmetry
from .connection_list import add
from .connection_settings import ARMATURE_DYNAMICS_PG_connection
from .problem import ConversionError

TURNED = ("y", "z")
"""Axes of a bone about which its mirror image turns the other way; about x both turn alike."""

ANCHORS = ("bone", "target_kind", "target", "target_bone", "name")
"""What of a connection says between what it is, not how."""


def twin(armature, name: str) -> str | None:
    """The name of the same bone on the other side, or None where there is none."""
    other = bpy.utils.flip_name(name)
    return other if other != name and other in armature.pose.bones else None


def left(armature) -> list[str]:
    """The names of the bones on the left that have one on the right: of each pair the one nearer to +x at rest."""
    bones = armature.data.bones
    pairs = ((bone, bones[other]) for bone in bones if (other := twin(armature, bone.name)))
    return [
        bone.name
        for bone, other in pairs
        if bone.head_local.x + bone.tail_local.x > other.head_local.x + other.tail_local.x
    ]


def copy(armature, name: str, others: Iterable[str]) -> int:
    """Gives other bones all settings of a bone; returns how many there were."""
    own = setup.bone_settings(armature.pose.bones[name])
    # which control carries a bone is not a matter of taste
    del own["control"]
    others = [other for other in others if other != name]
    for other in others:
        setup.give_bone(armature.pose.bones[other], own)
    return len(others)


def mirror(armature, names: Iterable[str]) -> int:
    """Gives the same bones on the other side all settings of these, their limits and their connections; returns how
    many there were. Raises ConversionError, and changes nothing, for bones without one there, and for bones that do not
    mirror each other."""
    pairs = {name: other for name in names if (other := twin(armature, name))}
    if not pairs:
        raise ConversionError(
            "none of these bones has one on the other side: names end in .L and .R, or begin with them"
        )
    both = [name for name, other in pairs.items() if other in pairs]
    if both:
        raise ConversionError(f"bone {both[0]!r} and {pairs[both[0]]!r} are both meant; select one side only")
    rolled = {bone for pair in symmetry.uneven_rolls(armature, [*pairs, *pairs.values()]) for bone in pair}
    for name, other in pairs.items():
        if name in rolled and (_has_limits(armature.pose.bones[name]) or _has_limits(armature.pose.bones[other])):
            raise ConversionError(
                f"bone {name!r} has another roll than {other!r}, so limits differ; mirror its roll first"
            )
    for name, other in pairs.items():
        copy(armature, name, [other])
        _mirror_limits(armature.pose.bones[name], armature.pose.bones[other])
    bones = [connection.bone for connection in armature.armature_dynamics.connections]
    for index, bone in enumerate(bones):
        if bone in pairs:
            _mirror_connection(armature, index, pairs)
    return len(pairs)


def _rotation_limits(bone) -> list:
    return [own for own in bone.constraints if own.type == "LIMIT_ROTATION" and own.owner_space == "LOCAL"]


def _has_limits(bone) -> bool:
    own = bone.armature_dynamics.use_limits
    return own or bool(_rotation_limits(bone)) or any(getattr(bone, f"use_ik_limit_{axis}") for axis in "xyz")


def _mirror_limits(bone, other) -> None:
    """The bones' own limits, those for inverse kinematics, and those of constraints in local space."""
    own, made = bone.armature_dynamics, other.armature_dynamics
    for axis in map("xyz".index, TURNED):
        made.limit_lower[axis], made.limit_upper[axis] = -own.limit_upper[axis], -own.limit_lower[axis]
    for axis in "xyz":
        for name in ("lock_ik_{}", "use_ik_limit_{}", "ik_stiffness_{}"):
            setattr(other, name.format(axis), getattr(bone, name.format(axis)))
        _mirror_range(bone, other, axis, "ik_min_{}", "ik_max_{}")
    for constraint in _rotation_limits(other):
        other.constraints.remove(constraint)
    for constraint in _rotation_limits(bone):
        made = other.constraints.new("LIMIT_ROTATION")
        for prop in constraint.bl_rna.properties:
            if not prop.is_readonly and prop.identifier not in ("rna_type", "active", "is_override_data"):
                setattr(made, prop.identifier, getattr(constraint, prop.identifier))
        for axis in "xyz":
            _mirror_range(constraint, made, axis, "min_{}", "max_{}")


def _mirror_range(one, other, axis: str, least: str, most: str) -> None:
    low, high = (getattr(one, name.format(axis)) for name in (least, most))
    if axis in TURNED:
        low, high = -high, -low
    setattr(other, least.format(axis), low)
    setattr(other, most.format(axis), high)


def _mirror_connection(armature, index: int, pairs: dict[str, str]) -> None:
    """Gives the other side the same connection, in place of one to the same thing."""
    connections = armature.armature_dynamics.connections
    own = connections[index]
    target, bone = own.target, own.target_bone
    if own.target_kind == "BONE" and target and target.type == "ARMATURE":
        bone = twin(target, bone) or bone
    elif own.target_kind == "OBJECT" and target:
        target = bpy.data.objects.get(bpy.utils.flip_name(target.name), target)
    side = pairs[own.bone]
    what = {
        prop.identifier: getattr(own, prop.identifier)
        for prop in ARMATURE_DYNAMICS_PG_connection.bl_rna.properties
        if prop.identifier not in ("rna_type", *ANCHORS)
    }
    kind = own.target_kind
    there = [
        other
        for other in connections
        if (other.bone, other.target_kind, other.target, other.target_bone) == (side, kind, target, bone)
    ]
    made = there[0] if there else add(armature, side, target, bone)
    made.target_kind, made.target, made.target_bone = kind, target, bone
    for setting, value in what.items():
        setattr(made, setting, value)
