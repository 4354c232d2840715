"""From the poses that physics finds to bones' own channels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from mathutils import Matrix

from .convert import Character
from .inheritance import Inheritance, is_even
from .keying import Turns, between
from .rig import rigid, scales
from .role import ANIMATED, SIMULATED
from .source import Source


@dataclass
class Track:
    """The local transforms of one bone, one a frame.

    `roams`: not jointed to anything, its location is keyed throughout. `held`: stays as it is from the start frame on.
    `turn`: from the source's rotation to the simulated one, at the last frame of a blend.
    """

    roams: bool = False
    held: bool = False
    locations: Sequence = field(default_factory=list)
    rotations: Sequence = field(default_factory=list)
    scales: Sequence = field(default_factory=list)
    turn: Turns | None = None

    def append(self, local: Matrix) -> None:
        location, rotation, scale = local.decompose()
        self.locations.append(location)
        self.rotations.append(rotation)
        self.scales.append(scale)

    def between(self, source: Matrix, simulated: Matrix, weight: float) -> Matrix:
        (local,), self.turn = between(np.array([source]), np.array([simulated]), weight, self.turn)
        return Matrix(local)


class Chain:
    """The bones of an armature of which physics moves those with `tracks`, whose numbers are `written`; these, the
    others that are wanted and all above them are taken in an `order`, parents first."""

    def __init__(self, armature, character: Character, source: Source, others: Iterable[int] = ()) -> None:
        bones = [armature.data.bones[name] for name in character.rig.names]
        self.tracks, self.order = _tracks(character), _chain(character, others)
        self.written = np.array(list(self.tracks), dtype=int)
        self._above = character.rig.parents
        bearing = np.unique(self._above[self.order])
        self._even = even = is_even(source.poses[:, bearing[bearing >= 0]])
        self._inheritance = Inheritance(bones, self._above, even)
        self._held = np.array([bone for bone, track in self.tracks.items() if track.held], dtype=int)
        self._roams = np.array([i in self.tracks and self.tracks[i].roams for i in range(len(bones))], dtype=bool)
        carried = np.array([bone for bone in self.order if character.carrier[bone] >= 0], dtype=int)
        self._moved, self._others = np.setdiff1d(self.written, self._held), np.setdiff1d(carried, self.written)
        self._levels, none = _levels(self._above, carried), np.empty(0, dtype=int)
        if even:
            # how a bone turns depends on the turns alone of those above it, and where physics moves them, it has those
            still = np.setdiff1d(carried, self._moved)
            self._steps = [*((none, level) for level in _levels(self._above, still)), (self._moved, none)]
        else:
            moved = np.isin(np.arange(len(bones)), self._moved)
            self._steps = [(level[moved[level]], level) for level in self._levels]
        self._starts = np.empty((len(bones), 4, 4))
        self._starts[self.written] = self._locals(self.written, _rooted(source.at(source.start)[0][None]))[0]

    def posed(self, own: np.ndarray, targets: np.ndarray | None, shown: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The bones' own transforms (F, n, 4, 4), and if they are to be `shown` their poses in the armature's space,
        where the source has them at `own` (F, n, 4, 4) and physics at `targets` (F, n, 4, 4), or they are the source's
        alone."""
        locals_, posed = np.empty_like(own), _rooted(own)
        free = np.concatenate((self._others, self.written)) if targets is None else self._others
        locals_[:, free] = self._locals(free, posed)
        if targets is not None:
            locals_[:, self._held] = self._starts[self._held]
            posed[:, self._moved] = targets[:, self._moved]
            for aimed, placed in self._steps:
                if len(aimed):
                    locals_[:, aimed] = self._kept(aimed, self._locals(aimed, posed))
                if len(placed):
                    self._place(placed, posed, locals_)
            for level in self._levels if self._even and shown else ():
                self._place(level, posed, locals_)
        return locals_, posed[:, :-1]

    def blended(
        self, own: np.ndarray, simulated: np.ndarray, weight: float, before: Turns | None
    ) -> tuple[np.ndarray, np.ndarray, Turns]:
        """As `posed`, at one frame on the way from the source's to `simulated` transforms; and the turns between them,
        which are to be told at the next frame."""
        locals_, posed = simulated.copy(), _rooted(own)
        theirs = self._locals(self.written, posed)[0]
        locals_[0, self.written], turns = between(theirs, simulated[0, self.written], weight, before)
        for level in self._levels:
            self._place(level, posed, locals_)
        return locals_, posed[:, :-1], turns

    def _locals(self, bones: np.ndarray, posed: np.ndarray) -> np.ndarray:
        """The own transforms (F, k, 4, 4) of bones (k,) in poses (F, n + 1, 4, 4)."""
        return self._inheritance.locals(bones, posed[:, self._above[bones]], posed[:, bones])

    def _place(self, bones: np.ndarray, posed: np.ndarray, locals_: np.ndarray) -> None:
        """Fills in the poses of bones (k,) below others."""
        posed[:, bones] = self._inheritance.poses(bones, posed[:, self._above[bones]], locals_[:, bones])

    def _kept(self, bones: np.ndarray, aims: np.ndarray) -> np.ndarray:
        """What the channels of bones (k,) will hold, to come to `aims` (F, k, 4, 4): the scale, and the location of a
        jointed bone, stay those of the start pose."""
        starts, result = self._starts[bones], aims if self._even else rigid(aims)
        result[..., :3, :3] *= (scales(starts) / scales(result))[..., None, :]
        result[..., :3, 3] = np.where(self._roams[bones, None], result[..., :3, 3], starts[..., :3, 3])
        return result


def _rooted(poses: np.ndarray) -> np.ndarray:
    """Poses (F, n, 4, 4) with that of what roots hang from at the end."""
    return np.concatenate((poses, np.tile(np.eye(4), (len(poses), 1, 1, 1))), axis=1)


def _levels(parents: np.ndarray, bones: np.ndarray) -> list[np.ndarray]:
    """The bones, as many at a time as have equally many above them."""
    depth = [0] * (len(parents) + 1)
    for bone, parent in enumerate(parents.tolist()):
        depth[bone] = depth[parent] + 1
    levels: dict[int, list[int]] = {}
    for bone in sorted(bones.tolist(), key=lambda bone: depth[bone]):
        levels.setdefault(depth[bone], []).append(bone)
    return [np.array(level) for level in levels.values()]


def _chain(character: Character, others: Iterable[int] = ()) -> list[int]:
    """Every bone whose pose is needed: the simulated ones, the others, and all above them, parents first."""
    needed = [bone for bone, role in enumerate(character.roles) if role == SIMULATED]
    found: set[int] = set()
    for bone in (*needed, *others):
        for above in map(int, character.rig.ancestors(bone)):
            if above in found:
                break
            found.add(above)
    return sorted(found)


def _tracks(character: Character) -> dict[int, Track]:
    """A track for each bone that is written: the simulated ones, and those between them that must hold still."""
    tracks = {}
    for bone in _chain(character):
        parent = character.rig.parents[bone]
        if character.roles[bone] == SIMULATED:
            tracks[bone] = Track(roams=parent < 0 or character.carrier[parent] < 0)
        elif character.carrier[bone] >= 0 and character.roles[bone] != ANIMATED:
            tracks[bone] = Track(held=True)
    return tracks


def written_bones(character: Character) -> set[str]:
    """The names of the bones that get keys."""
    return {character.rig.names[bone] for bone in _tracks(character)}


def bone_poses(character: Character, worlds: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Poses (F, bones, 4, 4) of the linked bones in the armature's space, without scale, where that is at `worlds` (F,
    4, 4) and the links are at `poses` (F, n, 4, 4)."""
    back, turns = np.linalg.inv(worlds)[:, None], np.swapaxes(rigid(worlds)[:, None, :3, :3], -1, -2)
    result = np.zeros((len(poses), len(character.rig.names), 4, 4))
    result[:, character.bones, :3, :3] = turns @ poses[..., :3, :3] @ np.swapaxes(character.offsets, -1, -2)
    result[:, character.bones, :, 3:] = back @ poses[..., 3:]
    return result
