"""Recognises a human in a rig by the names of its bones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .preset import namings, preset
from .rig import Rig

LIMBS = (("upper_arm", "forearm", "hand"), ("thigh", "shank", "foot"))
NEEDED = ("upper_arm", "forearm", "thigh", "shank")
UPRIGHT = -0.5
"""Cosine of the angle between trunk and thighs at rest beyond which nobody stands."""
ZERO_LENGTH = 0.01
"""Trunk bones shorter than this, relative to the leg, carry no segment of their own."""


@dataclass(frozen=True)
class Anatomy:
    """A human in a rig: the `naming` it follows and the segment each simulated bone stands for.

    `side` is +1 for bones of the left half, -1 of the right, 0 in the middle; `axes` (3, 3): the character's left,
    front and up in the world at rest as columns; `stature` [m].
    """

    naming: str
    segments: dict[int, str]
    side: dict[int, int]
    axes: np.ndarray
    stature: float

    def bones(self, segment: str) -> list[int]:
        return [bone for bone, name in self.segments.items() if name == segment]


def recognise(rig: Rig, skin: dict[int, np.ndarray]) -> Anatomy | None:
    """The human in a rig, or None where no naming fits."""
    matches = [(naming["name"], _match(naming, rig)) for naming in namings()]
    naming, limbs = max(matches, key=lambda match: len(match[1] or ()))
    if not limbs:
        return None
    segments = _segments(rig, limbs)
    return _measured(rig, skin, naming, segments) if segments and _upright(rig, limbs) else None


def _upright(rig: Rig, found: dict[tuple[str, int], list[int]]) -> bool:
    """Whether the trunk goes on where the legs come from, however the rig is turned: four-legged animals may have a
    human's names, but carry their trunk across their legs."""
    hips, knees, shoulders = (
        rig.heads[[found[segment, side][0] for side in (0, 1)]].mean(axis=0)
        for segment in ("thigh", "shank", "upper_arm")
    )
    return float(_unit(shoulders - hips) @ _unit(knees - hips)) < UPRIGHT


def _match(naming: dict, rig: Rig) -> dict[tuple[str, int], list[int]]:
    """The bones of each (segment, side); empty when arms, legs or spine are not all found in their order."""
    trunk = [*naming["segments"].get("spine", ())]
    trunk += [chain["pattern"] for chain in naming.get("chains", ()) if "spine" in chain["segments"]]
    # most rigs that are nobody's are told by that alone
    if not any(_named(rig, pattern, "") for pattern in trunk):
        return {}
    found: dict[tuple[str, int], list[int]] = {}
    for tokens in naming["sides"]:
        for side, token in enumerate(tokens):
            for segment, patterns in naming["segments"].items():
                sided = any("{side}" in pattern for pattern in patterns)
                for pattern in patterns:
                    bones = _named(rig, pattern, token)
                    if bones and (segment, side if sided else -1) not in found:
                        found[segment, side if sided else -1] = bones
            for chain in naming.get("chains", ()):
                bones = _named(rig, chain["pattern"], token)
                for segment, bone in zip(chain["segments"], bones, strict=False):
                    found.setdefault((segment, side if "{side}" in chain["pattern"] else -1), [bone])
    if ("spine", -1) not in found or not all((segment, side) in found for segment in NEEDED for side in (0, 1)):
        return {}
    for side in (0, 1):
        for limb in LIMBS:
            chain = [found[segment, side][0] for segment in limb if (segment, side) in found]
            if any(upper not in rig.ancestors(lower) for upper, lower in pairwise(chain)):
                return {}
    return found


def _named(rig: Rig, pattern: str, side: str) -> list[int]:
    """Bones whose whole name fits, nearest the root first."""
    expression = re.compile(pattern.replace("{side}", re.escape(side)), re.IGNORECASE)
    bones = [bone for bone, name in enumerate(rig.names) if expression.match(name)]
    return sorted(bones, key=lambda bone: sum(1 for _ in rig.ancestors(bone)))


def _segments(rig: Rig, found: dict[tuple[str, int], list[int]]) -> dict[int, str]:
    """One segment for each bone; the pelvis is the bone that carries both thighs and the spine, whatever its name."""
    spine = found["spine", -1]
    legs = [found["thigh", side][0] for side in (0, 1)]
    common = set.intersection(*(set(rig.ancestors(bone)) for bone in [spine[-1], *legs]))
    if not common:
        return {}
    pelvis = max(common, key=lambda bone: sum(1 for _ in rig.ancestors(bone)))
    thigh, shank = found["thigh", 0][0], found["shank", 0][0]
    shortest = ZERO_LENGTH * np.linalg.norm(rig.heads[thigh] - rig.heads[shank])

    segments = {pelvis: "pelvis"}
    for (segment, _), bones in sorted(found.items(), key=lambda item: item[0][0] != "spine"):
        if segment in ("spine", "neck"):
            trunk = [bone for bone in bones if bone not in segments and pelvis in rig.ancestors(bone)]
            # a joint on top of the next one (BVH's Chest2) would be a body without length
            nexts = trunk[1:] + [bone for name in ("neck", "head") for bone in found.get((name, -1), ())][:1]
            for bone in trunk:
                following = [other for other in nexts if bone != other and bone in rig.ancestors(other)]
                length = min(
                    (np.linalg.norm(rig.heads[other] - rig.heads[bone]) for other in following), default=np.inf
                )
                if length > shortest:
                    segments[bone] = segment
        else:
            segments.setdefault(bones[0], segment)
    return segments


def _measured(rig: Rig, skin: dict[int, np.ndarray], naming: str, segments: dict[int, str]) -> Anatomy:
    def joints(segment: str) -> np.ndarray:
        return rig.heads[[bone for bone, name in segments.items() if name == segment]]

    pelvis = next(iter(segments))
    hips, shoulders = joints("thigh"), joints("upper_arm")
    up = _unit(shoulders.mean(axis=0) - hips.mean(axis=0))
    across = _unit_across(hips[0] - hips[1] + shoulders[0] - shoulders[1], up)
    front = np.cross(across, up)
    # toes know the front better than names know left from right
    toes = [_tip(rig, bone) - rig.heads[bone] for bone, name in segments.items() if name == "foot"]
    if toes and sum(float(toe @ front) for toe in toes) < 0:
        front, across = -front, -across
    axes = np.column_stack([across, front, up])
    middle = hips.mean(axis=0)
    side = {
        bone: int(np.sign((rig.heads[bone] - middle) @ across))
        if name not in ("pelvis", "spine", "neck", "head")
        else 0
        for bone, name in segments.items()
    }
    leg = (np.linalg.norm(joints("thigh") - joints("shank"), axis=1)).mean()
    feet = joints("foot") if any(name == "foot" for name in segments.values()) else None
    if feet is not None and len(feet) == 2:
        leg += np.linalg.norm(joints("shank") - feet, axis=1).mean()
    else:
        leg *= 2
    body = list(rig.descendants(pelvis))
    # the tails of glTF rigs point anywhere; only believe them where there is no skin
    points = [skin[bone] for bone in body if bone in skin] or [rig.heads[body], rig.tails[body]]
    heights = np.concatenate(points) @ up
    return Anatomy(naming, segments, side, axes, float(max(np.ptp(heights), leg / preset("human")["leg_to_stature"])))


def _tip(rig: Rig, bone: int) -> np.ndarray:
    """The joint furthest below a bone, or its tail where it has none."""
    ends = rig.heads[[other for other in rig.descendants(bone) if other != bone]]
    return ends[np.argmax(np.linalg.norm(ends - rig.heads[bone], axis=1))] if len(ends) else rig.tails[bone]


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def _unit_across(vector: np.ndarray, up: np.ndarray) -> np.ndarray:
    return _unit(vector - (vector @ up) * up)
