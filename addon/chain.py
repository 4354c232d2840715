"""From the poses that physics finds to bones' own channels, through all of Blender's ways of inheriting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from mathutils import Matrix, Quaternion, Vector

from .convert import Character
from .keying import Turn, between
from .rig import rigid
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
    locations: list[Vector] = field(default_factory=list)
    rotations: list[Quaternion] = field(default_factory=list)
    scales: list[Vector] = field(default_factory=list)
    turn: Turn | None = None

    def append(self, local: Matrix) -> None:
        location, rotation, scale = local.decompose()
        self.locations.append(location)
        self.rotations.append(rotation)
        self.scales.append(scale)

    def between(self, source: Matrix, simulated: Matrix, weight: float) -> Matrix:
        local, self.turn = between(source, simulated, weight, self.turn)
        return local


class Chain:
    """The `bones` of an armature, of which physics moves those with `tracks`; these, the others that are wanted and all
    above them are taken in an `order`, parents first."""

    def __init__(self, armature, character: Character, source: Source, others: Iterable[int] = ()) -> None:
        self.bones = [armature.data.bones[name] for name in character.rig.names]
        self.tracks, self.order = _tracks(character), _chain(character, others)
        self._parents, self._carried = character.rig.parents.tolist(), (character.carrier >= 0).tolist()
        begin, _ = source.at(source.start)
        self._starts = {bone: self._local(begin, bone) for bone in self.order if bone in self.tracks}

    def posed(self, own: np.ndarray, targets: np.ndarray | None) -> tuple[dict[int, Matrix], dict[int, Matrix]]:
        """The bones' own transforms and their poses in the armature's space, where the source has them at `own` (n, 4,
        4) and physics at `targets` (n, 4, 4), or they are the source's alone."""

        def local(bone: int, posed: dict[int, Matrix]) -> Matrix:
            track = self.tracks.get(bone)
            if track is None or targets is None:
                return self._local(own, bone)
            if track.held:
                return self._starts[bone]
            aim = unposed(self.bones, bone, self._parents[bone], posed, Matrix(targets[bone]))
            return aimed(self._starts[bone], aim, track.roams)

        return self._walked(own, local)

    def blended(
        self, own: np.ndarray, simulated: dict[int, Matrix], weight: float
    ) -> tuple[dict[int, Matrix], dict[int, Matrix]]:
        """As `posed`, on the way from the source's to `simulated` transforms."""

        def local(bone: int, _) -> Matrix:
            track = self.tracks.get(bone)
            return simulated[bone] if track is None else track.between(self._local(own, bone), simulated[bone], weight)

        return self._walked(own, local)

    def _walked(self, own: np.ndarray, local: Callable[[int, dict[int, Matrix]], Matrix]):
        locals_: dict[int, Matrix] = {}
        posed: dict[int, Matrix] = {}
        for bone in self.order:
            if self._carried[bone]:
                locals_[bone] = local(bone, posed)
                posed[bone] = to_pose(self.bones, bone, self._parents[bone], posed, locals_[bone])
            else:
                posed[bone] = Matrix(own[bone])
        return locals_, posed

    def _local(self, poses: np.ndarray, bone: int) -> Matrix:
        return local_of(self.bones, poses, bone, self._parents[bone])


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


def bone_poses(character: Character, source: Source, poses: np.ndarray) -> np.ndarray:
    """Poses (F, bones, 4, 4) of the linked bones in the armature's space, without scale."""
    worlds = np.array([source.at(source.start + i)[1] for i in range(len(poses))])
    turns = np.swapaxes(rigid(worlds)[:, None, :3, :3], -1, -2)
    result = np.zeros((len(poses), len(character.rig.names), 4, 4))
    result[:, character.bones] = np.linalg.inv(worlds)[:, None] @ poses
    result[:, character.bones, :3, :3] = turns @ poses[..., :3, :3] @ np.swapaxes(character.offsets, -1, -2)
    return result


def local_of(bones, poses: np.ndarray, bone: int, parent: int) -> Matrix:
    """A bone's own transform (what its channels hold) in evaluated poses (n, 4, 4)."""
    above = {} if parent < 0 else {parent: Matrix(poses[parent])}
    return unposed(bones, bone, parent, above, Matrix(poses[bone]))


def unposed(bones, bone: int, parent: int, posed: dict[int, Matrix], pose: Matrix) -> Matrix:
    """Blender's own way from a pose in the armature's space to the bone's channels: all its inheritance flags count."""
    return _converted(bones, bone, parent, posed, pose, invert=True)


def to_pose(bones, bone: int, parent: int, posed: dict[int, Matrix], local: Matrix) -> Matrix:
    return _converted(bones, bone, parent, posed, local, invert=False)


def _converted(bones, bone: int, parent: int, posed: dict[int, Matrix], matrix: Matrix, *, invert: bool) -> Matrix:
    rest = bones[bone].matrix_local
    if parent < 0:
        return bones[bone].convert_local_to_pose(matrix, rest, invert=invert)
    return bones[bone].convert_local_to_pose(
        matrix, rest, parent_matrix=posed[parent], parent_matrix_local=bones[parent].matrix_local, invert=invert
    )


def aimed(start: Matrix, aim: Matrix, roams: bool) -> Matrix:
    """What the channels will hold: the scale, and the location of a jointed bone, stay those of the start pose."""
    location, _, scale = start.decompose()
    return Matrix.LocRotScale(aim.to_translation() if roams else location, aim.to_quaternion(), scale)
