"""Locked channels of bones that the result would need: found, unlocked, and locked again."""

from __future__ import annotations

import numpy as np

from .convert import Character
from .role import IGNORED

AXES = "xyz"

ALONG = 0.1
"""A hinge whose axis leans from a bone's own by less than this sine does not turn the bone about its other axes."""


def locked(armature, character: Character) -> dict[str, dict[str, str]]:
    """The axes, as letters, about which rotation and along which location is locked, of each simulated bone that
    physics turns or moves there; none where controls do, which are chosen for not being locked."""
    found = {}
    if character.rig.controls:
        return found
    for k, (bone, link) in enumerate(zip(character.bones, character.links)):
        pose_bone = armature.pose.bones[character.rig.names[bone]]
        wanted = {}
        if not link.keyed:
            hinge = link.joint.kind == "hinge"
            turns = np.abs(character.offsets[k][:, 0]) > ALONG if hinge else (True, True, True)
            wanted["rotation"] = _letters(pose_bone.lock_rotation, turns)
        if link.joint.kind == "free" and not pose_bone.bone.use_connect:
            wanted["location"] = _letters(pose_bone.lock_location)
        wanted = {kind: axes for kind, axes in wanted.items() if axes}
        if wanted:
            found[pose_bone.name] = wanted
    return found


def _letters(locks, needed=(True, True, True)) -> str:
    return "".join(axis for axis, on, own in zip(AXES, locks, needed) if on and own)


def unlock(bone) -> None:
    """Lets a pose bone turn, and one that nothing carries move, and lets it remember what was locked."""
    channels = [f"rotation {axis}" for axis, on in zip(AXES, bone.lock_rotation) if on]
    if all(above.armature_dynamics.role == IGNORED for above in bone.parent_recursive):
        channels += [f"location {axis}" for axis, on in zip(AXES, bone.lock_location) if on]
    own = bone.armature_dynamics
    own.unlocked = "\n".join([*own.unlocked.splitlines(), *channels])
    _set(bone, channels, False)


def relock(bone) -> None:
    """Locks again what was unlocked."""
    _set(bone, bone.armature_dynamics.unlocked.splitlines(), True)
    bone.armature_dynamics.unlocked = ""


def _set(bone, channels, on: bool) -> None:
    for channel in channels:
        kind, axis = channel.split()
        getattr(bone, f"lock_{kind}")[AXES.index(axis)] = on
