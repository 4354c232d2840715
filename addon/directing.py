"""What an animator directs: how firmly bones follow their animation, and how heavy they are, from frame to frame."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .fcurve import bone_path, plays
from .preset import preset
from .role import SIMULATED
from .switch import ON, Sampled, source_curves

FOLLOW, RATIO, WORLD, ADDITIVE, AMOUNT, HOLD, WEIGHT = SETTINGS = tuple(
    f"armature_dynamics_{name}"
    for name in ("follow", "follow_ratio", "follow_world", "additive", "amount", "hold", "weight")
)
"""The settings of a pose bone."""

EXACTLY = 60.0
"""What holds its animation follows at this frequency [Hz]: within a fraction of a millimetre, and contacts give way."""

BONE = re.compile(r'pose\.bones\["(.*)"\]\.(\w+)$')

HEAVY = "armature_dynamics.weight"


def is_directing(path: str) -> bool:
    """Whether a data path, from the armature object, is that of something directed."""
    match = BONE.match(path)
    return path == HEAVY or bool(match and match.group(2) in SETTINGS)


def followers(
    armature, names: Sequence[str], roles: Sequence[str], settings: dict[str, Sampled] | None = None
) -> set[int]:
    """Numbers of the simulated bones that follow their animation at some time; `settings` were sampled."""
    curves, found = directed(armature) | (settings or {}), set()
    for number, (name, role) in enumerate(zip(names, roles, strict=True)):
        own = armature.pose.bones[name]
        follows, holds = (curves.get(bone_path(name, setting)) for setting in (FOLLOW, HOLD))
        strongest = _most(follows) if follows else getattr(own, FOLLOW)
        held = _most(holds) >= ON if holds else getattr(own, HOLD)
        if role == SIMULATED and (strongest > 0.0 or held):
            found.add(number)
    return found


def _most(curve) -> float:
    """The largest value that a curve has a key of, or was sampled."""
    if isinstance(curve, Sampled):
        return float(curve.values.max())
    return max((key.co[1] for key in curve.keyframe_points), default=0.0)


def unmoved(armature, names: Sequence[str], roles: Sequence[str], settings: dict[str, Sampled]) -> set[int]:
    """Numbers of the simulated bones to whose animation nothing is ever added, and which are never limp; `settings`
    were sampled."""
    curves, found = directed(armature) | settings, set()
    for number, (name, role) in enumerate(zip(names, roles, strict=True)):
        own = armature.pose.bones[name]
        keyed = any(bone_path(name, setting) in curves for setting in (FOLLOW, AMOUNT))
        nothing = getattr(own, ADDITIVE) and getattr(own, AMOUNT) == 0.0 < getattr(own, FOLLOW)
        if role == SIMULATED and nothing and not keyed:
            found.add(number)
    return found


def directed(armature) -> dict:
    """The source action's curves of what is directed, by their paths."""
    return {
        curve.data_path: curve for curve in source_curves(armature) if is_directing(curve.data_path) and plays(curve)
    }


def sampled(curves: dict, armature, name: str, start: int, frames: int) -> dict[str, np.ndarray]:
    """A bone's settings (frames,) in time."""
    own, whole = armature.pose.bones[name], armature.armature_dynamics

    def values(path: str, otherwise: float) -> np.ndarray:
        if path not in curves:
            return np.full(frames, float(otherwise))
        return np.array([curves[path].evaluate(start + frame) for frame in range(frames)])

    timed = (RATIO, AMOUNT, WEIGHT)
    result = {setting: values(bone_path(name, setting), getattr(own, setting)) for setting in timed}
    held = values(bone_path(name, HOLD), getattr(own, HOLD)) >= ON
    result[FOLLOW] = np.where(held, EXACTLY, values(bone_path(name, FOLLOW), getattr(own, FOLLOW)))
    # what holds its animation does not swing about it
    result[RATIO], result[AMOUNT] = np.where(held, 1.0, result[RATIO]), np.where(held, 0.0, result[AMOUNT])
    result[WEIGHT] = result[WEIGHT] * values(HEAVY, whole.weight)
    return result


def sways() -> dict[str, dict]:
    """The ways in which chains may sway, by name; see `presets/sway.json`."""
    return {name: way for name, way in preset("sway").items() if name != "about"}


def sway(armature, name: str, kind: str) -> None:
    """Lets a bone and all that hangs from it be simulated and follow their animation in one of `sways`, the more
    loosely the nearer to a tip."""
    way, top = sways()[kind], armature.pose.bones[name]
    first, last = way["follow"]
    depth = len(top.parent_recursive)
    for bone in (top, *top.children_recursive):
        beyond = max((len(tip.parent_recursive) for tip in bone.children_recursive), default=len(bone.parent_recursive))
        share = (len(bone.parent_recursive) - depth) / max(beyond - depth, 1)
        bone.armature_dynamics.role = SIMULATED
        strength = first * (last / first) ** share
        chosen = (strength, way["ratio"], False, way["additive"], 1.0, False, way["weight"])
        for setting, value in zip(SETTINGS, chosen, strict=True):
            setattr(bone, setting, value)
