"""The controls of a rig that are written when physics moves its deform bones, and how they hang from each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mathutils import Matrix

from . import chain, control
from .convert import Character
from .role import ANIMATED, SIMULATED
from .source import Source


def written_bones(character: Character) -> set[str]:
    """The names of the bones that get keys: those that physics moves, or the controls that carry them."""
    if character.rig.controls is None:
        return chain.written_bones(character)
    names, controls = character.rig.names, _driven(character)
    return {names[bone] for bone in (*controls.values(), *_roots(character, controls)) if bone >= 0}


def _driven(character: Character) -> dict[int, int]:
    """The control of each deform bone that is simulated, or that must hold still: between two that are, or as a switch
    turns from one control to another."""
    rig = character.rig
    needed = {above for bone, role in enumerate(character.roles) if role == SIMULATED for above in rig.ancestors(bone)}
    switched = {
        bone
        for bone in rig.controls.deforms[rig.controls.bodies != rig.controls.controls].tolist()
        if character.carrier[bone] >= 0 and character.roles[int(character.carrier[bone])] == SIMULATED
    }
    return {
        bone: rig.controls.of(bone)
        for bone in sorted(needed | switched)
        if character.carrier[bone] >= 0 and character.roles[bone] != ANIMATED and rig.controls.of(bone) >= 0
    }


def _roots(character: Character, controls: dict[int, int]) -> list[int]:
    """The control that carries all, where something is to be placed in the world that does not place itself."""
    root = character.rig.controls.root
    free = any(link.joint.kind == "free" and not link.keyed for link in character.links)
    return [root] if free and root >= 0 and root not in controls.values() else []


@dataclass(frozen=True)
class Hold:
    """A control: its number in the rig, that of its `parent`, and of the control `above` it that moves it, or -1; the
    `deform` bone that it carries, and that bone's `seat` (4, 4) in it; whether it `roams`, and whether it `carries`
    that bone by itself or is the root, which goes along with it."""

    bone: int
    parent: int
    above: int
    deform: int
    seat: Matrix
    roams: bool
    carries: bool = True


def holds_of(armature, character: Character, source: Source) -> list[Hold]:
    """The controls that are written, those above before those that they move."""
    rig, bones = character.rig, armature.data.bones
    driven = _driven(character)
    roots = _roots(character, driven)
    names = [rig.names[bone] for bone in (*driven.values(), *roots)]
    above = {name: own & set(names) for name, own in control.upstreams(armature, names).items()}
    level = {name: len(above[name]) for name in names}
    links = zip(character.bones, character.links)
    free = {bone for bone, link in links if link.joint.kind == "free" and not link.keyed}
    rest = {name: Matrix(bones[name].matrix_local) for name in rig.names}
    holds = []
    for deform, bone in driven.items():
        seat = rest[rig.names[bone]].inverted() @ rest[rig.names[deform]]
        roams = bone == rig.controls.root or (deform in free and not roots)
        holds.append((level[rig.names[bone]], bone, deform, seat, roams))
    for root in roots:
        # what hangs from the root itself turns with it: so its children need no place of their own
        first = min(holds, key=lambda hold: (hold[0], hold[1]))[2]
        begin = source.at(source.start)[0]
        holds.append((level[rig.names[root]], root, first, Matrix(np.linalg.inv(begin[root]) @ begin[first]), True))
    result = []
    for _, bone, deform, seat, roams in sorted(holds, key=lambda hold: hold[:2]):
        name = rig.names[bone]
        nearest = max(above[name], key=lambda other: level[other], default=None)
        parent = bones[name].parent
        numbers = (bone, rig.index[parent.name] if parent else -1, rig.index.get(nearest, -1), deform)
        result.append(Hold(*numbers, seat, roams, carries=bone not in roots))
    return result
