"""What else moves the bones that physics moves: constraints and drivers, which are turned off reversibly."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import control
from .bake import CHANNELS, bone_path
from .switch import animated_paths

CHAINS = {"IK", "SPLINE_IK"}
"""Types of constraints that move the bones above their own, too."""

SWITCHES = {"mute": 1.0, "enabled": 0.0}
"""The channels by which keys turn a constraint on and off, with their values where it is off."""

APART = "\n\n"
"""Between the names of the constraints that are turned off and those of the others, as a bone remembers them."""


@dataclass(frozen=True)
class Rival:
    """A constraint, or with its `channel` and `index` a driver, of the bone named `holder`. It is called `name` and
    moves `bones`."""

    holder: str
    bones: tuple[str, ...]
    name: str
    channel: str | None = None
    index: int = 0


@dataclass(frozen=True)
class Muted:
    """What is turned off of one bone: the names of `constraints`, and of `drivers` the channel and index."""

    constraints: tuple[str, ...] = ()
    drivers: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, rivals: list[Rival]) -> Muted:
        constraints = tuple(own.name for own in rivals if own.channel is None)
        return cls(constraints, tuple((own.channel, own.index) for own in rivals if own.channel is not None))


def rivals(armature, names: set[str]) -> list[Rival]:
    """Everything that moves bones with these names besides their keys, in the order of the bones."""
    return _constraints(armature, names) + _drivers(armature, names)


def unwanted(armature, names: set[str]) -> list[Rival]:
    """Those of them that the settings want turned off while a take plays."""
    settings = armature.armature_dynamics
    return [
        own
        for own in rivals(armature, names)
        if (settings.mute_constraints if own.channel is None else settings.mute_drivers)
    ]


def solvers(armature, names: set[str]) -> list[Rival]:
    """The constraints that solve chains with bones of these names, as legs have that stand on IK."""
    chains = {(bone.name, own.name) for bone in armature.pose.bones for own in bone.constraints if own.type in CHAINS}
    return [own for own in _constraints(armature, names) if (own.holder, own.name) in chains]


def _constraints(armature, names: set[str]) -> list[Rival]:
    changing = animated_paths(armature)
    found, mapped = [], control.is_mapped(armature)
    for bone in armature.pose.bones:
        for constraint in bone.constraints:
            if mapped and control.adds(constraint):
                continue
            # what is off now may be keyed, and so may an influence that is zero
            own = constraint.path_from_id()
            off = constraint.mute and changing.isdisjoint(f"{own}.{switch}" for switch in SWITCHES)
            if off or not constraint.is_valid or not (constraint.influence > 0 or f"{own}.influence" in changing):
                continue
            moved = tuple(name for name in _moved(bone, constraint) if name in names)
            if moved:
                found.append(Rival(bone.name, moved, constraint.name))
    return found


def _moved(bone, constraint) -> list[str]:
    """The names of the bones that a constraint moves."""
    if constraint.type not in CHAINS:
        return [bone.name]
    return chain_of(bone, constraint)


def chain_of(bone, constraint) -> list[str]:
    """The names of the bones that an IK or Spline IK constraint of a bone moves."""
    chain = [bone, *bone.parent_recursive]
    if constraint.type == "IK" and not constraint.use_tail:
        chain = chain[1:]
    return [above.name for above in chain[: constraint.chain_count or None]]


def _drivers(armature, names: set[str]) -> list[Rival]:
    curves: dict[str, list[int]] = {}
    for curve in _driver_curves(armature):
        if not curve.mute:
            curves.setdefault(curve.data_path, []).append(curve.array_index)
    return [
        Rival(name, (name,), f"{channel}[{index}]", channel, index)
        for name in (bone.name for bone in armature.pose.bones if bone.name in names)
        for channel in CHANNELS
        for index in curves.get(bone_path(name, channel), ())
    ]


def _driver_curves(armature) -> list:
    return list(armature.animation_data.drivers) if armature.animation_data else []


def muted(bone) -> Muted:
    """What is turned off of a bone, as it remembers it, by the names of now."""
    own = bone.armature_dynamics
    drivers = (re.fullmatch(r"(\w+) (\d+)", line) for line in own.muted_drivers.splitlines())
    return Muted(_muted_constraints(bone), tuple((match[1], int(match[2])) for match in drivers if match))


def _muted_constraints(bone) -> tuple[str, ...]:
    """The names of the constraints that are turned off: in place of those that are gone, what is off under names that
    there were not when it was remembered."""
    off, _, rest = (part.splitlines() for part in bone.armature_dynamics.muted.partition(APART))
    gone = len(set(off) - set(bone.constraints.keys()))
    renamed = [own.name for own in bone.constraints if own.mute and own.name not in (*off, *rest)]
    return (*(name for name in off if name in bone.constraints), *renamed[:gone])


def mute(armature, bone, what: Muted) -> None:
    """Turns off what is named, and lets the bone remember it."""
    own = bone.armature_dynamics
    rest = [each.name for each in bone.constraints if each.name not in what.constraints]
    own.muted = "\n".join(what.constraints) + APART + "\n".join(rest) if what.constraints else ""
    own.muted_drivers = "\n".join(f"{channel} {index}" for channel, index in what.drivers)
    _switch(armature, bone, off=True)


def unmute(armature, bone) -> None:
    """Turns on again what is turned off of a bone."""
    _switch(armature, bone, off=False)
    bone.armature_dynamics.muted = bone.armature_dynamics.muted_drivers = ""


def _switch(armature, bone, *, off: bool) -> None:
    what = muted(bone)
    for name in what.constraints:
        bone.constraints[name].mute = off
    for channel, index in what.drivers:
        curve = armature.animation_data and armature.animation_data.drivers.find(
            bone_path(bone.name, channel), index=index
        )
        if curve:
            curve.mute = off
            armature.update_tag()
