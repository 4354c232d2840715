"""Finds out which control carries which deform bone: by the rig's constraints, and by turning controls and looking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import bpy
import numpy as np
from mathutils import Matrix

from . import stage
from .control import Switches, adds, is_active, is_carried, targets, turn, upstream
from .preset import control_presets
from .rig import Rig
from .rival import CHAINS, chain_of

TURN = 0.35
"""How far a control is turned to see what it carries [rad]."""

RIGID = 1e-3
"""What a control carries keeps its place to within this part of the rig's size."""

AT = 0.01
"""A control turns about a joint that is nearer to it than this part of the rig's size."""

COPYING = {"COPY_TRANSFORMS", "COPY_ROTATION", "COPY_LOCATION", "ARMATURE", "CHILD_OF"}


@dataclass(frozen=True)
class Found:
    """Deform bones' controls by name, the control that carries all of them or an empty string, and what custom
    properties (bone, name) have to be."""

    controls: dict[str, str] = field(default_factory=dict)
    root: str = ""
    switches: Switches = field(default_factory=dict)


def find(armature, rig: Rig, wanted: list[int]) -> Found:
    """The map of an armature whose deform bones `wanted` are to be carried: what a preset says, or else what its
    constraints and a look at each control tell. The armature is left as it was."""
    names = [rig.names[bone] for bone in wanted if is_carried(armature.pose.bones[rig.names[bone]])]
    for preset in control_presets():
        found = _preset(armature, preset, names)
        if found:
            return found
    return derive(armature, rig, names)


def _preset(armature, preset: dict, names: list[str]) -> Found | None:
    """What a preset says about an armature; None where it does not know most of the bones."""
    bones = armature.pose.bones
    controls = {}
    for name in names:
        for pattern, control in preset["controls"].items():
            match = pattern.fullmatch(name)
            if match and match.expand(control) in bones:
                controls.setdefault(name, match.expand(control))
    if 2 * len(controls) <= len(names) or preset["root"] not in bones:
        return None
    turned = {
        (bone.name, name): float(value)
        for bone in bones
        for pattern, own in preset["switches"].items()
        if pattern.fullmatch(bone.name)
        for name, value in own.items()
        if name in bone
    }
    return Found(controls, preset["root"], turned)


def derive(armature, rig: Rig, names: list[str]) -> Found:
    """The map that constraints and a look at each control tell, for the deform bones with these names."""
    if not names:
        return Found()
    with at_rest(armature):
        turned = _switches(armature, upstream(armature, names))
        turn(armature, turned)
        bpy.context.view_layer.update()
        above = upstream(armature, names)
        candidates = [bone.name for bone in armature.pose.bones if bone.name in above and is_posable(bone)]
        look = _Look(armature, rig, names)
        carried = {name: look.turned(name) for name in candidates}
        controls = _nearest(rig, names, carried)
        return Found(controls, _root(armature, look, carried, sorted(controls)), turned)


@contextmanager
def at_rest(armature) -> Iterator[None]:
    """The armature in its rest pose, without its animation; afterwards everything is as before."""
    before, animation = stage.record(armature), armature.animation_data
    mixed = animation.use_nla if animation else False
    values = {(bone.name, name): bone[name] for bone in armature.pose.bones for name in _numbers(bone)}
    try:
        if animation:
            animation.action, animation.use_nla = None, False
        for bone in armature.pose.bones:
            bone.matrix_basis = Matrix()
        bpy.context.view_layer.update()
        yield
    finally:
        for (bone, name), value in values.items():
            armature.pose.bones[bone][name] = value
        if animation:
            animation.use_nla = mixed
        armature.update_tag()
        stage.restore(armature, before)


def _numbers(bone) -> list[str]:
    return [name for name, value in bone.items() if isinstance(value, (int, float))]


def is_posable(bone) -> bool:
    """Whether an animator turns a bone by its own channels: a control."""
    moved = any(is_active(own) and not adds(own) for own in bone.constraints)
    return not (bone.bone.use_deform or any(bone.lock_rotation) or moved)


def _switches(armature, names: set[str]) -> Switches:
    """What custom properties have to be for no constraint of these bones to bring in what inverse kinematics moves."""
    bones = armature.pose.bones
    solved = {
        moved for bone in bones for own in bone.constraints if own.type in CHAINS for moved in chain_of(bone, own)
    }
    found: Switches = {}
    for curve in armature.animation_data.drivers if armature.animation_data else ():
        constraint = _driven_influence(armature, curve.data_path, names)
        if constraint is None or not set(targets(armature, constraint)) & solved:
            continue
        for variable in curve.driver.variables:
            which = _property(armature, variable)
            if which and which not in found:
                value = _off(armature, constraint, *which)
                if value is not None:
                    found[which] = value
    return found


def _driven_influence(armature, path: str, names: set[str]):
    """The copying constraint of one of these bones whose influence that is, or None."""
    holder, _, last = path.rpartition(".")
    if last != "influence" or not holder.startswith("pose.bones["):
        return None
    try:
        constraint = armature.path_resolve(holder)
    except ValueError:
        return None
    return constraint if constraint.type in COPYING and holder.split('"')[1] in names else None


def _property(armature, variable) -> tuple[str, str] | None:
    """The bone and the custom property that a driver's variable reads, or None."""
    target = variable.targets[0]
    if variable.type != "SINGLE_PROP" or target.id != armature:
        return None
    settings = target.data_path
    for bone in armature.pose.bones:
        for name in _numbers(bone):
            if settings == f'pose.bones["{bone.name}"]["{name}"]':
                return bone.name, name
    return None


def _off(armature, constraint, bone: str, name: str) -> float | None:
    """The end of a custom property's range that turns a constraint off, or None."""
    holder = armature.pose.bones[bone]
    before, span = holder[name], holder.id_properties_ui(name).as_dict()
    try:
        for value in (span.get("max", 1.0), span.get("min", 0.0)):
            turn(armature, {(bone, name): value})
            bpy.context.view_layer.update()
            if constraint.influence < 1e-6:
                return float(value)
        return None
    finally:
        holder[name] = before
        armature.update_tag()


class _Look:
    """Turns controls of an armature at rest, one by one, and sees which of its deform bones follow."""

    def __init__(self, armature, rig: Rig, names: list[str]) -> None:
        self.armature, self.names = armature, names
        self.bones = [bone.name for bone in armature.pose.bones]
        self.rest = self._poses()
        self.size = float(np.ptp(self.rest[:, :3, 3], axis=0).max())
        lengths = np.array([armature.data.bones[name].length for name in self.bones])
        self.tips = np.zeros((len(self.bones), 4, 2))
        self.tips[:, 1, 1], self.tips[:, 3] = lengths, 1.0
        self.numbers = [self.bones.index(name) for name in names]

    def turned(self, control: str) -> tuple[set[str], int]:
        """The deform bones that a control carries rigidly whichever way it turns, and how many bones it moves."""
        rigid, moved = set(self.names), set()
        for axis in "XYZ":
            carried, touched = self._after(control, Matrix.Rotation(TURN, 4, axis))
            rigid &= carried
            moved |= touched
        return rigid & moved, len(moved)

    def shifted(self, control: str) -> tuple[set[str], int]:
        """The deform bones that a control carries along as it is moved, and how many bones move then."""
        rigid, moved = self._after(control, Matrix.Translation((TURN * self.size,) * 3))
        return rigid, len(moved)

    def _after(self, control: str, basis: Matrix) -> tuple[set[str], set[str]]:
        bone = self.armature.pose.bones[control]
        bone.matrix_basis = basis
        bpy.context.view_layer.update()
        poses = self._poses()
        bone.matrix_basis = Matrix()
        own = self.bones.index(control)
        ends, before = (poses @ self.tips)[:, :3], (self.rest @ self.tips)[:, :3]
        expected = (poses[own] @ np.linalg.inv(self.rest[own]) @ self.rest @ self.tips)[:, :3]
        off = np.abs(ends - expected).max(axis=(1, 2))
        away = np.abs(ends - before).max(axis=(1, 2)) > RIGID * self.size
        rigid = {name for name, i in zip(self.names, self.numbers) if off[i] < RIGID * self.size}
        return rigid, {self.bones[i] for i in np.flatnonzero(away)}

    def _poses(self) -> np.ndarray:
        seen = self.armature.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
        buffer = np.empty(16 * len(seen), dtype=np.float32)
        seen.foreach_get("matrix", buffer)
        return buffer.reshape(-1, 4, 4).swapaxes(1, 2).astype(float)


def _nearest(rig: Rig, names: list[str], carried: dict[str, tuple[set[str], int]]) -> dict[str, str]:
    """For each deform bone, in the rig's order, the control that carries it and least besides, each for one bone. It
    turns about an end of that bone, a joint; only that of the first bone may be elsewhere, as it is moved, too."""
    controls: dict[str, str] = {}
    size = float(rig.extent.max())
    for name in sorted(names, key=rig.index.get):
        bone = rig.index[name]
        able = [control for control, (rigid, _) in carried.items() if name in rigid]
        pivots = rig.heads[[rig.index[control] for control in able]][:, None]
        away = np.linalg.norm(pivots - [rig.heads[bone], rig.tails[bone]], axis=2).min(axis=1)
        near = away < AT * size
        if near.any() or any(rig.names[other] in controls for other in rig.ancestors(bone)):
            able, away = [control for control, at in zip(able, near) if at], away[near]
        if not able:
            continue
        control = min(zip(able, away), key=lambda one: (carried[one[0]][1], one[1]))[0]
        if control not in controls.values():
            controls[name] = control
    return controls


def _root(armature, look: _Look, carried: dict[str, tuple[set[str], int]], names: list[str]) -> str:
    """The control that carries all of these deform bones, turned or moved, and least besides; or an empty string."""
    able = {}
    for control, (rigid, _) in carried.items():
        bone = armature.pose.bones[control]
        if set(names) <= rigid and not (any(bone.lock_location) or bone.bone.use_connect):
            shifted, moved = look.shifted(control)
            if set(names) <= shifted:
                able[control] = moved
    return min(able, key=able.get, default="")
