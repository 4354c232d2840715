"""How a cast follows its source motion."""

from __future__ import annotations

import numpy as np

from ..core.guide import Guide
from .cast import Cast
from .directing import FOLLOW, RATIO, WEIGHT, directed, sampled


def guide(cast: Cast, start: int) -> Guide | None:
    """How the cast follows its source motion from frame `start` on; None where nothing is directed."""
    frames, links = len(cast.poses), len(cast.links)
    frequency, ratio, weight = np.zeros((frames, links)), np.ones((frames, links)), np.ones((frames, links))
    world = np.zeros(links, dtype=bool)
    for actor in cast.actors:
        armature, names = actor.armature, [actor.character.rig.names[bone] for bone in actor.character.bones]
        curves = directed(armature) | actor.source.settings
        each = [sampled(curves, armature, name, start, frames) for name in names]
        frequency[:, actor.links] = np.stack([values[FOLLOW] for values in each], axis=1)
        ratio[:, actor.links] = np.stack([values[RATIO] for values in each], axis=1)
        weight[:, actor.links] = np.stack([values[WEIGHT] for values in each], axis=1)
        world[actor.links] = [armature.pose.bones[name].armature_dynamics_follow_world for name in names]
    keyed = [link.keyed for link in cast.links]
    frequency[:, keyed] = 0.0
    if not frequency.any() and (weight == 1.0).all():
        return None
    return Guide(np.maximum(frequency, 0.0), np.maximum(ratio, 0.0), world, weight)
