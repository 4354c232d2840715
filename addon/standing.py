"""An armature's physique as its settings are now, whether or not it was simulated with them."""

from __future__ import annotations

import numpy as np

from . import casting, physique
from .convert import convert
from .physique import Physique
from .rig import read_rig, refuse_hidden
from .source import Source


def known(armature) -> Physique | None:
    """With the joints' ranges of the last take, or those of the rest pose where there was none with these settings;
    None for what cannot be simulated, or while it is edited."""
    if armature.mode == "EDIT":
        return None
    looks = physique.looks_of(armature)
    found = physique.known(armature, looks) or physique.remember(armature, looks, _at_rest(armature))
    return found if found.names else None


def _at_rest(armature):
    try:
        refuse_hidden(armature)
        rig = read_rig(armature)
        poses = np.array([armature.data.bones[name].matrix_local for name in rig.names], dtype=float)
        source = Source(0, 0, poses[None], rig.world[None], 0)
        return convert(armature, rig, source, casting.roles(armature, rig), casting.options(armature))
    except ValueError:  # said when it is simulated
        return None
