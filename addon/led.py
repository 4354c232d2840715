"""Controls that go along, frame by frame, with the deform bones that they will carry once keys say so."""

from __future__ import annotations

import bpy
import numpy as np

from . import nla
from .bake import CHANNELS
from .cast import Actor
from .conduct import brought, kept, parent_pose
from .fcurve import bone_path
from .hold import holds_of
from .inheritance import local_of, to_pose
from .source import evaluated_poses
from .switch import source_curves


class LedControls:
    """The controls of an actor, to be seen near its deform bones: how they hang from each other is taken from the
    frame before, not looked for until they are in place."""

    def __init__(self, actor: Actor) -> None:
        armature, character, source = actor.armature, actor.character, actor.source
        self._armature, self._rig = armature, character.rig
        self._bones = [armature.data.bones[name] for name in character.rig.names]
        self._holds = holds_of(armature, character, source)
        begin = self._seen = source.at(source.start)[0]
        self._starts = [local_of(self._bones, begin, hold.bone, hold.parent) for hold in self._holds]
        self._carriers = [int(character.carrier[hold.deform]) for hold in self._holds]
        self._seats = [
            np.linalg.inv(begin[carrier]) @ begin[hold.deform] for carrier, hold in zip(self._carriers, self._holds)
        ]
        paths = {bone_path(self._rig.names[bone], channel) for bone in self.bones for channel in CHANNELS}
        curves = (*source_curves(armature), *nla.curves(armature))
        self._is_keyed = any(curve.data_path in paths for curve in curves)

    @property
    def bones(self) -> set[int]:
        """The controls' numbers in the rig."""
        return {hold.bone for hold in self._holds}

    def lead(self, targets: np.ndarray) -> None:
        """Poses the controls, before a frame is set, so that the deform bones come to `targets` (n, 4, 4) in the
        armature's space."""
        stands, bones = {}, self._armature.pose.bones
        for hold, start, carrier, seat in zip(self._holds, self._starts, self._carriers, self._seats):
            above = parent_pose(hold, self._seen, stands)
            aim = brought(self._bones, hold, above, targets[carrier] @ seat)
            local = kept(start, aim, start.to_scale(), hold.roams)
            bones[self._rig.names[hold.bone]].matrix_basis = local
            stands[hold.bone] = to_pose(self._bones, hold.bone, hold.parent, above, local)

    def led(self, targets: np.ndarray) -> np.ndarray:
        """Where all bones are (n, 4, 4) once the frame is set."""
        if self._is_keyed:
            # keys have taken them back
            self.lead(targets)
            bpy.context.view_layer.update()
        self._seen = evaluated_poses(self._armature, self._rig)[0]
        return self._seen
