"""Rigs that are posed by controls: which control carries each deform bone, and the switches that let it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Vector
from mathutils.kdtree import KDTree

SAME = 1e-3
"""Bones whose heads and directions at rest differ by less than this, relative to their length, stand in one place."""

SWITCH = re.compile(r'pose\.bones\["(?P<bone>(?:[^"\\]|\\.)*)"\]\["(?P<name>(?:[^"\\]|\\.)*)"\] = (?P<value>.+)')
"""A line of the switches: a custom property of a pose bone, and what it has to be."""

HOLDER = re.compile(r'pose\.bones\["((?:[^"\\]|\\.)*)"\]\.constraints\[.*\.influence')
"""The data path of how much a constraint of a bone counts."""

Switches = dict[tuple[str, str], float]
"""What custom properties (bone, name) have to be."""


@dataclass(frozen=True)
class ControlMap:
    """The rig's numbers of the deform bones (k,) that controls carry, of those `controls`, and of the `bodies` that
    stand for the deform bones: what copies the control, whatever else the deform bone does (twist, stretch).

    `seats` (k, 4, 4): the deform bone's place in its body's at rest; `root`: the control that carries all, or -1.
    """

    deforms: np.ndarray
    controls: np.ndarray
    bodies: np.ndarray
    seats: np.ndarray
    root: int

    def of(self, bone: int) -> int:
        """The control of a deform bone, or -1."""
        found = np.flatnonzero(self.deforms == bone)
        return int(self.controls[found[0]]) if len(found) else -1

    def bodied(self, poses: np.ndarray) -> np.ndarray:
        """Poses (..., n, 4, 4) with the deform bones where their bodies carry them."""
        result = poses.copy()
        result[..., self.deforms, :, :] = poses[..., self.bodies, :, :] @ self.seats
        return result


def is_mapped(armature) -> bool:
    """Whether a control is known for any bone of an armature."""
    return any(bone.armature_dynamics.control for bone in armature.pose.bones)


def read(armature, index: dict[str, int]) -> ControlMap | None:
    """The map that the armature's bones hold, by the `index` of each bone's name; None where they hold none."""
    bones = armature.data.bones
    controls = {bone.name: bone.armature_dynamics.control for bone in armature.pose.bones}
    controls = {name: control for name, control in controls.items() if control in bones}
    if not controls:
        return None
    bodies = _bodies(armature)
    pairs = [(name, control, bodies.get(control, control)) for name, control in controls.items()]
    rest = np.array([[bones[name].matrix_local for name in pair] for pair in pairs], dtype=float)
    deforms, controls, bodies = (np.array(column) for column in zip(*([index[n] for n in pair] for pair in pairs)))
    root = index.get(armature.armature_dynamics.root_control, -1)
    return ControlMap(deforms, controls, bodies, np.linalg.inv(rest[:, 2]) @ rest[:, 0], root)


def _bodies(armature) -> dict[str, str]:
    """By controls, the first bones that copy them among other things, as those between hands and feet do."""
    bones = reversed(list(armature.pose.bones))
    return {own.subtarget: bone.name for bone in bones for own in _copied(bone)}


def _copied(bone) -> list:
    """The constraints of a bone that copies one or another bone, as a switch says."""
    found = [own for own in bone.constraints if own.type == "COPY_TRANSFORMS" and not own.mute]
    return found if len(found) > 1 else []


def switching(armature) -> set[str]:
    """The deform bones that stand where a bone stands at rest that copies one or another: a switch moves them."""
    standing = _Standing(bone for bone in armature.data.bones if bone.use_deform)
    return {other.name for bone in armature.pose.bones if _copied(bone) for other in standing.at(bone.bone)}


def doubles(armature) -> dict[str, str]:
    """By bones that constraints move, the bone in the same place that they move along with, as the legs that carry the
    skin of an MMD model do with those that are posed."""
    bones, found = armature.data.bones, {}
    for bone in armature.pose.bones:
        if any(map(is_active, bone.constraints)):
            able = _Standing(bones[other] for other in sorted(upstream(armature, [bone.name])) if other != bone.name)
            double = next(iter(able.at(bone.bone)), None)
            if double:
                found[bone.name] = double.name
    return found


def write(armature, controls: dict[str, str], root: str, switches: Switches) -> None:
    """Lets an armature's bones hold a map: deform bones' controls by name, the root control, and what custom properties
    (bone, name) have to be."""
    for bone in armature.pose.bones:
        bone.armature_dynamics.control = controls.get(bone.name, "")
    settings = armature.armature_dynamics
    settings.root_control = root
    settings.switches = lines(switches)


def switches(armature) -> Switches:
    """What custom properties have to be while physics moves the controls; those that exist."""
    return {
        (bone, name): value
        for (bone, name), value in parsed(armature.armature_dynamics.switches).items()
        if bone in armature.pose.bones and name in armature.pose.bones[bone]
    }


def needed_switches(armature, bodies: set[str]) -> Switches:
    """The switches that must be turned for these bones to follow their controls: those that drive constraints of one of
    them, and those that drive none of any other that could be told apart."""
    holders: dict[str, set[str]] = {}
    for curve in armature.animation_data.drivers if armature.animation_data else ():
        match = HOLDER.match(curve.data_path)
        for target in (target for variable in curve.driver.variables for target in variable.targets):
            if match and target.id == armature:
                holders.setdefault(target.data_path, set()).add(_plain(match[1]))
    copying = _bodies(armature)
    controls = {bone.armature_dynamics.control for bone in armature.pose.bones} - {""}
    all_bodies = {copying.get(own, own) for own in controls}
    return {
        which: value
        for which, value in switches(armature).items()
        for moved in [holders.get(switch_path(*which), set()) & all_bodies]
        if not moved or moved & bodies
    }


def switched(armature) -> Switches:
    """What these custom properties are now."""
    return {(bone, name): float(armature.pose.bones[bone][name]) for bone, name in switches(armature)}


def parsed(text: str) -> Switches:
    """The switches that are written one a line."""
    found = (SWITCH.fullmatch(line.strip()) for line in text.splitlines())
    return {(_plain(m["bone"]), _plain(m["name"])): float(m["value"]) for m in found if m}


def lines(turned: Switches) -> str:
    return "\n".join(f"{switch_path(*which)} = {value:.9g}" for which, value in turned.items())


def switch_path(bone: str, name: str) -> str:
    """The data path of a pose bone's custom property."""
    return f'pose.bones["{bpy.utils.escape_identifier(bone)}"]["{bpy.utils.escape_identifier(name)}"]'


def turn(armature, turned: Switches) -> None:
    """Gives custom properties values, each of its own type; those that are gone are passed over."""
    for (bone, name), value in turned.items():
        holder = armature.pose.bones.get(bone)
        if holder is not None and name in holder:
            holder[name] = type(holder[name])(value)
            armature.update_tag()


def _plain(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\")


def is_controlled(armature) -> bool:
    """Whether most deform bones are moved by other bones rather than by their own channels."""
    deforms = [bone for bone in armature.pose.bones if bone.bone.use_deform]
    moved = [bone for bone in deforms if is_carried(bone)]
    return 2 * len(moved) > len(deforms)


def is_carried(bone) -> bool:
    """Whether constraints of a deform bone, or of the helpers that it hangs from, move it."""
    if any(map(is_active, bone.constraints)):
        return True
    for above in bone.parent_recursive:
        if above.bone.use_deform:
            return False
        if any(map(is_active, above.constraints)):
            return True
    return False


def is_active(constraint) -> bool:
    return not constraint.mute and constraint.is_valid and constraint.influence > 0


def adds(constraint) -> bool:
    """Whether a constraint adds a turn to a bone's own, as the curl of a tail does, and leaves it to be posed."""
    return constraint.type == "COPY_ROTATION" and constraint.mix_mode != "REPLACE"


def deform_parents(armature) -> dict[str, str | None]:
    """The name of each bone's parent. A deform bone that hangs from helpers has the deform bone that their control
    carries, or else that stands where one of them stands at rest: so the chain of deform bones is the body's, however
    the rig holds it together. A chain that runs toward that bone, as tails do that are named from their tip, carries
    it."""
    bones = armature.data.bones
    standing = _Standing(bone for bone in bones if bone.use_deform)
    parents = {bone.name: bone.parent.name if bone.parent else None for bone in bones}
    carried = {bone.armature_dynamics.control: bone.name for bone in armature.pose.bones}
    for bone in bones:
        if bone.use_deform and bone.parent and not bone.parent.use_deform:
            able = (*_held(armature.pose.bones[bone.name], carried), *_twins(bone, standing))
            found = next((other for other in able if not _is_below(parents, other, bone.name)), None)
            end = found and next((own for own in _line(bone) if _meets(own, bones[found])), None)
            if end and not _deform_parent(bones[found]):
                parents[bone.name], parents[found] = parents[found], end.name
            elif found:
                parents[bone.name] = found
    return parents


def _held(bone, carried: dict[str, str]):
    """The deform bone of the control that a pose bone hangs from, with nothing between that is moved by constraints."""
    for above in bone.parent_recursive:
        if above.name in carried:
            yield carried[above.name]
        if above.name in carried or any(map(is_active, above.constraints)):
            return


def _line(bone):
    """A deform bone and, as long as there is but one, the deform bone that it carries."""
    while bone is not None:
        yield bone
        below = [child for child in bone.children if child.use_deform]
        bone = below[0] if len(below) == 1 else None


def _meets(bone, other) -> bool:
    return (bone.tail_local - other.head_local).length < SAME * bone.length


def _deform_parent(bone) -> bool:
    return bone.parent is not None and bone.parent.use_deform


def _twins(bone, standing: _Standing):
    for above in bone.parent_recursive:
        if above.use_deform:
            yield above.name
            return
        yield from (other.name for other in standing.at(above) if other != bone)


class _Standing:
    """Bones by where they stand at rest."""

    def __init__(self, bones: Iterable) -> None:
        self._bones = list(bones)
        self._tree = KDTree(len(self._bones))
        for i, bone in enumerate(self._bones):
            self._tree.insert(bone.head_local, i)
        self._tree.balance()

    def at(self, bone) -> list:
        """The bones that stand where a bone does, and as it does, in their own order."""
        near = self._tree.find_range(bone.head_local, SAME * bone.length)
        found = [self._bones[i] for i in sorted(i for _, i, _ in near)]
        return [other for other in found if (_along(other) - _along(bone)).length < SAME]


def _along(bone) -> Vector:
    return (bone.tail_local - bone.head_local).normalized()


def _is_below(parents: dict[str, str | None], name: str | None, above: str) -> bool:
    while name is not None:
        if name == above:
            return True
        name = parents[name]
    return False


def ordered(parents: dict[str, str | None]) -> list[str]:
    """Names with parents before children, otherwise in their own order."""
    done: dict[str, None] = {}
    for name in parents:
        line = [name]
        while line[-1] not in done and parents[line[-1]] is not None and parents[line[-1]] not in done:
            line.append(parents[line[-1]])
        done.update(dict.fromkeys(reversed(line)))
    return list(done)


def upstream(armature, names: Iterable[str]) -> set[str]:
    """The names of all bones that the pose of these bones depends on now, by parents and constraints."""
    bones, found, pending = armature.pose.bones, set(), list(names)
    while pending:
        bone = bones.get(pending.pop())
        if bone is None or bone.name in found:
            continue
        found.add(bone.name)
        if bone.parent:
            pending.append(bone.parent.name)
        for constraint in filter(is_active, bone.constraints):
            pending += targets(armature, constraint)
    return found


def upstreams(armature, names: Iterable[str]) -> dict[str, set[str]]:
    """For each of these bones the others that its pose depends on while its switches are as they have to be."""
    before = switched(armature)
    try:
        turn(armature, switches(armature))
        bpy.context.view_layer.update()
        return {name: upstream(armature, [name]) - {name} for name in names}
    finally:
        turn(armature, before)
        bpy.context.view_layer.update()


def targets(armature, constraint) -> list[str]:
    """The names of the armature's bones that a constraint looks at."""
    if constraint.type == "ARMATURE":
        return [own.subtarget for own in constraint.targets if own.target == armature and own.weight > 0]
    pairs = (("target", "subtarget"), ("pole_target", "pole_subtarget"))
    return [
        getattr(constraint, bone)
        for thing, bone in pairs
        if getattr(constraint, thing, None) == armature and getattr(constraint, bone, "")
    ]
