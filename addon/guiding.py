"""How a cast follows its source motion."""

from __future__ import annotations

import numpy as np

from ..core.guide import Guide
from .cast import Cast
from .cycle import ONCE, Cycle
from .directing import ADDITIVE, AMOUNT, FOLLOW, RATIO, WEIGHT, WORLD, directed, sampled


def guide(cast: Cast, start: int, cycle: Cycle = ONCE) -> Guide | None:
    """How the cast follows its source motion from frame `start` on, as often as that is repeated; None where nothing
    is directed."""
    frames, links = len(cast.poses), len(cast.links)
    frequency, (ratio, weight, amount) = np.zeros((frames, links)), np.ones((3, frames, links))
    world, additive = np.zeros((2, links), dtype=bool)
    for actor in cast.actors:
        armature, names = actor.armature, [actor.character.rig.names[bone] for bone in actor.character.bones]
        curves = directed(armature) | actor.source.settings
        each = [sampled(curves, armature, name, start, frames) for name in names]
        timed = ((FOLLOW, frequency), (RATIO, ratio), (WEIGHT, weight), (AMOUNT, amount))
        for setting, table in timed:
            table[:, actor.links] = np.stack([values[setting] for values in each], axis=1)
        for setting, flags in ((WORLD, world), (ADDITIVE, additive)):
            flags[actor.links] = [getattr(armature.pose.bones[name], setting) for name in names]
    keyed = [link.keyed for link in cast.links]
    frequency[:, keyed] = 0.0
    if not frequency.any() and (weight == 1.0).all():
        return None
    frequency, ratio, amount = (np.maximum(table, 0.0) for table in (frequency, ratio, amount))
    frequency, ratio, weight, amount = map(cycle.repeated, (frequency, ratio, weight, amount))
    return Guide(frequency, ratio, world, weight, additive, amount)
