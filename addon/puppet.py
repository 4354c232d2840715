"""Characters that are posed without keys, frame by frame, while they are simulated."""

from __future__ import annotations

import bpy
import numpy as np
from mathutils import Matrix

from . import rival, stage
from .bake import axis_angles
from .cast import Actor, Cast
from .chain import Chain, bone_poses
from .convert import Character
from .inheritance import decomposed, local_of, to_pose, unposed
from .led import LedControls
from .rig import refuse_hidden, refuse_unusable
from .role import ANIMATED


class Puppets:
    """The actors of a cast, shown where its simulation has them, and the scene's frame with it; a context that gives
    everything back as it was."""

    def __init__(self, members: list, cast: Cast) -> None:
        self._scene = bpy.context.scene
        self._came = self._scene.frame_current, self._scene.frame_subframe
        self._before = [(member, stage.record(member)) for member in members]
        for actor in cast.actors:
            stage.mute_rivals(actor.armature, actor.character)
        self._puppets = [_Puppet(actor) for actor in cast.actors]

    @property
    def posed(self) -> list[set[int]]:
        """The numbers of the bones that are posed of each actor."""
        return [puppet.moved for puppet in self._puppets]

    def __enter__(self) -> Puppets:
        return self

    def __exit__(self, *_) -> None:
        before, self._before = self._before, []
        if before:
            self._scene.frame_set(self._came[0], subframe=self._came[1])
        stage.restore_all(before)

    def show(self, frame: int, poses: np.ndarray) -> None:
        """Shows all links at poses (n, 4, 4) at the scene's `frame`."""
        for puppet in self._puppets:
            puppet.aim(frame, poses[puppet.actor.links])
        self._scene.frame_set(frame)
        for puppet in self._puppets:
            puppet.show(frame)


class _Puppet:
    """An actor whose bones' own channels are set after each frame's animation, which says where the others are.

    Where controls carry the deform bones, these are led along, and the deform bones are posed, with their constraints
    turned off: what deforms the skin is exact, how long ever it takes to find the controls' own places.
    """

    def __init__(self, actor: Actor) -> None:
        self.actor, self._controls = actor, None
        armature, character, source = actor.armature, actor.character, actor.source
        if character.rig.controls is None:
            self._pose = Chain(armature, character, source)
        else:
            self._pose, self._controls = _Deformed(armature, character, source), LedControls(actor)
        self.bones = {bone: character.rig.names[bone] for bone in self._pose.tracks}

    @property
    def moved(self) -> set[int]:
        """The numbers of all bones that are posed."""
        return set(self.bones) | (self._controls.bones if self._controls else set())

    def aim(self, frame: int, poses: np.ndarray) -> None:
        """Tells, before a frame is set, the `poses` (n, 4, 4) of links to be shown there. Raises ConversionError where
        the armature is edited or hidden meanwhile, ReferenceError where it is gone."""
        refuse_unusable(self.actor.armature)
        refuse_hidden(self.actor.armature)
        world = self.actor.source.at(frame)[1]
        self._targets = bone_poses(self.actor.character, world[None], poses[None])
        if self._controls:
            self._controls.lead(self._targets[0])

    def show(self, frame: int) -> None:
        """Poses the armature, which stands at the scene's `frame`."""
        own = self._controls.led(self._targets[0]) if self._controls else self.actor.source.at(frame)[0]
        locals_, _ = self._pose.posed(own[None], self._targets, shown=False)
        bones = self.actor.armature.pose.bones
        for bone, name in self.bones.items():
            posed, channels = bones[name], locals_[0, bone]
            posed.matrix_basis = Matrix(channels)
            if posed.rotation_mode == "AXIS_ANGLE":
                # Blender's own way, by the arc cosine, has small angles off by up to 0.02°
                posed.rotation_axis_angle = axis_angles(decomposed(channels[None])[1])[0]


class _Deformed:
    """In place of a Chain, for deform bones that links carry, whatever they hang from, and for bones between them."""

    def __init__(self, armature, character: Character, source) -> None:
        rig, data = character.rig, armature.data.bones
        self._bones = [data[name] for name in rig.names]
        self._parents = [rig.index[bone.parent.name] if bone.parent else -1 for bone in self._bones]
        deform = [i for i, bone in enumerate(self._bones) if bone.use_deform and _is_carried(character, i)]
        self._carrier = carried = {bone: int(character.carrier[bone]) for bone in deform}
        for bone in deform:
            chain, above = [], self._parents[bone]
            while above >= 0 and above not in carried:
                chain.append(above)
                above = self._parents[above]
            # what hangs from what is posed comes along, and would carry the bone twice
            carried |= dict.fromkeys(chain if above >= 0 else (), carried[bone])
        self.tracks = sorted(carried, key=lambda bone: len(self._bones[bone].parent_recursive))
        begin, _ = source.at(source.start)
        self._scales = {bone: self._local(begin, bone).to_scale() for bone in carried}
        self._kept = {bone: np.linalg.inv(begin[self._carrier[bone]]) @ begin[bone] for bone in carried}
        names = {rig.names[bone] for bone in carried}
        rivals = rival.rivals(armature, names)
        for name in names:
            pose_bone, own = armature.pose.bones[name], rival.Muted.of([each for each in rivals if each.holder == name])
            before = rival.muted(pose_bone)
            both = rival.Muted(before.constraints + own.constraints, before.drivers + own.drivers)
            rival.mute(armature, pose_bone, both)

    def posed(self, own: np.ndarray, targets: np.ndarray, shown: bool) -> tuple[np.ndarray, None]:
        """As `Chain.posed`, at one frame, and never shown."""
        (own,), (targets,), locals_ = own, targets, np.empty_like(own)
        posed: dict[int, Matrix] = {}
        for bone in self.tracks:
            parent, carrier = self._parents[bone], self._carrier[bone]
            above = {} if parent < 0 else {parent: posed.get(parent) or Matrix(own[parent])}
            aim = Matrix(targets[carrier] if carrier == bone else targets[carrier] @ self._kept[bone])
            place, turn, _ = unposed(self._bones, bone, parent, above, aim).decompose()
            local = Matrix.LocRotScale(place, turn, self._scales[bone])
            posed[bone], locals_[0, bone] = to_pose(self._bones, bone, parent, above, local), local
        return locals_, None

    def _local(self, poses: np.ndarray, bone: int) -> Matrix:
        return local_of(self._bones, poses, bone, self._parents[bone])


def _is_carried(character: Character, bone: int) -> bool:
    carrier = int(character.carrier[bone])
    return carrier >= 0 and character.roles[carrier] != ANIMATED
