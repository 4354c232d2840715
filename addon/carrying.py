"""What moves with what: objects that hang from others by parents or by constraints."""

from __future__ import annotations

from collections.abc import Iterator

from .control import is_active
from .switch import animated_paths

HOLDING = {"CHILD_OF", "COPY_LOCATION", "COPY_ROTATION", "COPY_TRANSFORMS", "ARMATURE"}
"""The types of constraints by which an object moves with another."""


def carriers(thing) -> Iterator[tuple[object, str]]:
    """All objects that an object moves with, each with the name of its bone that carries, or an empty one."""
    line = [thing]
    for carried in line:  # grows while it is walked
        for above, bone in _holders(carried):
            yield above, bone
            if above not in line:
                line.append(above)


def _holders(thing) -> Iterator[tuple[object, str]]:
    if thing.parent:
        yield thing.parent, thing.parent_bone if thing.parent_type == "BONE" else ""
    for constraint in thing.constraints:
        if constraint.type in HOLDING and _holds(thing, constraint):
            for end in constraint.targets if constraint.type == "ARMATURE" else [constraint]:
                if end.target:
                    yield end.target, end.subtarget


def _holds(thing, constraint) -> bool:
    # what is taken in hand on the way has no influence yet
    path = f"{constraint.path_from_id()}.influence"
    return is_active(constraint) or (not constraint.mute and path in animated_paths(thing))
