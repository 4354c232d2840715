"""What a performance goes along with: all that is animated around what physics moves, sampled for a range of frames."""

from __future__ import annotations

import numpy as np

from . import control
from .cast import Actor, Cast
from .connection import live
from .prop import placed
from .role import ANIMATED
from .source import evaluated_poses

SAME = 1e-4
"""What changes by less stands still: relative to the character's height, or in turn [rad]."""


class Backdrop:
    """Of a `cast`, whose actors have `posed` bones (their numbers) each. After the last frame that was sampled it
    should stand still, or else what is simulated is not what is seen."""

    def __init__(self, cast: Cast, posed: list[set[int]]) -> None:
        self._cast, self._posed = cast, posed
        self._height = max(actor.character.height for actor in cast.actors)
        self._last: np.ndarray | None = None

    def keep(self) -> None:
        """The scene stands at the last frame that was sampled."""
        self._bones = [_around(actor, own) for actor, own in zip(self._cast.actors, self._posed)]
        self._last = self._look()

    def goes_on(self) -> bool:
        """Whether it is another one now than the one that was kept."""
        seen = self._look()
        return len(seen) != len(self._last) or bool(np.abs(seen - self._last).max() > SAME)

    def _look(self) -> np.ndarray:
        places, switches = [placed(prop.thing) for prop in self._cast.props if prop.thing], []
        for actor, (bones, parents) in zip(self._cast.actors, self._bones):
            poses, world = evaluated_poses(actor.armature, actor.character.rig)
            above = np.concatenate((poses, np.eye(4)[None]))[parents]
            own = np.linalg.inv(above) @ poses[bones]
            own[:, :3, 3] *= np.linalg.norm(world[:3, 0])
            places += [world, *own]
            switches += [connection.enabled for _, connection in live(actor.armature)]
        found = np.array(places)
        found[:, :3, 3] /= self._height
        return np.concatenate((found.reshape(-1), np.array(switches, dtype=float)))


def _around(actor: Actor, posed: set[int]) -> tuple[list[int], list[int]]:
    """The bones that keys move, and those that these and what is posed hang from; and the number of each one's parent,
    or -1: what a parent does is not theirs. Those that constraints move after what is posed are left out."""
    rig, character, bones = actor.character.rig, actor.character, actor.armature.data.bones
    keyed = {i for i, role in enumerate(character.roles) if role == ANIMATED and character.carrier[i] >= 0}
    above = {rig.index[own.name] for bone in posed | keyed for own in bones[rig.names[bone]].parent_recursive}
    names = {rig.names[bone] for bone in posed}
    found = [bone for bone in sorted((above | keyed) - posed) if not _trails(actor.armature, rig.names[bone], names)]
    parents = [bones[rig.names[bone]].parent for bone in found]
    return found, [rig.index[parent.name] if parent else -1 for parent in parents]


def _trails(armature, name: str, posed: set[str]) -> bool:
    """Whether constraints of a bone look at what is posed, or at what depends on that."""
    is_moved = any(map(control.is_active, armature.pose.bones[name].constraints))
    return is_moved and not posed.isdisjoint(control.upstream(armature, [name]))
