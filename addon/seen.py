"""What is remembered of a take, for drawing."""

from __future__ import annotations

import numpy as np

from . import balance, ghost, physique
from .cast import Actor
from .rig import rigid


def keep(actor: Actor, played: dict[int, np.ndarray], poses: np.ndarray, before: np.ndarray) -> None:
    """An actor whose links were at `poses` (F, n, 4, 4), but for the frames where bones are `played` as a blend, see
    `Baked`, and where the source animation had them `before` (F, n, 4, 4)."""
    armature, character, source = actor.armature, actor.character, actor.source
    own = physique.remember(armature, physique.looks_of(armature), character)
    poses = poses.copy()
    for frame, bones in played.items():
        shown = rigid(source.at(frame)[1] @ bones[character.bones])
        shown[:, :3, :3] = shown[:, :3, :3] @ character.offsets
        poses[frame - source.start] = shown
    points = balance.center(own, poses).astype(np.float32)
    balance.traces.keep(armature, balance.Trace(points, source.start))
    ghost.ghosts.keep(armature, ghost.of(character, source, before))
