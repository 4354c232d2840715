"""What each bone is: simulated, animated (keyed) or ignored (welded to the bone that carries it)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from .anatomy import Anatomy
from .preset import preset
from .problem import NOTE, Problem
from .rig import Rig

SIMULATED, ANIMATED, IGNORED = "SIMULATED", "ANIMATED", "IGNORED"

FEWEST_POINTS = 4
"""A bone that moves fewer vertices than this is not a body."""

ZERO_LENGTH = 0.1
"""Bones shorter than this part of the rig's median bone have no length worth simulating."""


def default_roles(rig: Rig, anatomy: Anatomy | None, skin: dict[int, np.ndarray]) -> list[str]:
    """A role for each bone of a rig that the animator has not touched."""
    if anatomy:
        return [SIMULATED if bone in anatomy.segments else IGNORED for bone in range(len(rig.names))]
    bodies = [_has_body(rig, skin, bone) and _reason_by_name(rig.names[bone]) is None for bone in range(len(rig.names))]
    if not any(bodies):  # names that all sound like helpers: believe the geometry
        bodies = [_has_body(rig, skin, bone) for bone in range(len(rig.names))]
    return [SIMULATED if body else IGNORED for body in bodies]


def _has_body(rig: Rig, skin: dict[int, np.ndarray], bone: int) -> bool:
    if skin:
        return len(skin.get(bone, ())) >= FEWEST_POINTS
    return bool(rig.deforms[bone] or not rig.deforms.any()) and not _is_zero_length(rig, bone)


def _is_zero_length(rig: Rig, bone: int) -> bool:
    lengths = np.linalg.norm(rig.tails - rig.heads, axis=1)
    # importers give a bone whose children all stand on its own head some tail or other
    ends = [np.linalg.norm(rig.heads[child] - rig.heads[bone]) for child in rig.children[bone]] or [lengths[bone]]
    return max(ends) < ZERO_LENGTH * np.median(lengths)


def _reason_by_name(name: str) -> str | None:
    for reason, patterns in preset("welded").items():
        if reason != "about" and any(re.search(pattern, name, re.IGNORECASE) for pattern in patterns):
            return reason
    return None


def hung(rig: Rig, roles: list[str]) -> list[str]:
    """The roles with an animated bone above each simulated one that is connected to a bone nobody simulates: it cannot
    come loose, so it hangs there."""
    roles = list(roles)
    carrier = carriers(rig, roles)
    for bone, parent in enumerate(rig.parents):
        if roles[bone] == SIMULATED and rig.connected[bone] and carrier[parent] < 0:
            roles[parent] = ANIMATED
    return roles


def carriers(rig: Rig, roles: list[str], doubles: Mapping[int, int] = MappingProxyType({})) -> np.ndarray:
    """For each bone (n,) the nearest bone upwards, itself included, that is not ignored; -1 where there is none. An
    ignored bone that moves along with another one that is not, its double, is carried by that."""
    result = np.full(len(rig.names), -1)
    for bone in range(len(rig.names)):
        if roles[bone] != IGNORED:
            result[bone] = bone
        elif bone in doubles and roles[doubles[bone]] != IGNORED:
            result[bone] = doubles[bone]
        elif rig.parents[bone] >= 0:
            result[bone] = result[rig.parents[bone]]
    return result


def welded(rig: Rig, roles: list[str], carrier: np.ndarray) -> list[Problem]:
    """One warning for each ignored bone that another carries."""
    warnings = []
    for bone, name in enumerate(rig.names):
        if roles[bone] == IGNORED and carrier[bone] >= 0 and (rig.controls is None or rig.deforms[bone]):
            reason = "zero_length" if _is_zero_length(rig, bone) else _reason_by_name(name) or "helper"
            warnings.append(
                Problem(
                    f"welded_{reason}",
                    (name,),
                    f"carried by {rig.names[carrier[bone]]!r}, not simulated",
                    severity=NOTE,
                )
            )
    return warnings


def undriven(rig: Rig, anatomy: Anatomy | None) -> list[Problem]:
    """One note for each limb of a rig with controls that no control carries by itself."""
    if rig.controls is None or anatomy is None:
        return []
    return [
        Problem(
            "undriven",
            (rig.names[bone],),
            "no control carries it by itself: it follows the bones around it, not simulated",
            severity=NOTE,
        )
        for bone in anatomy.segments
        if rig.controls.of(bone) < 0
    ]
