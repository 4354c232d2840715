"""What a take measured on each frame, as curves of the armature's own settings, for the Graph Editor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core import Trajectory
from . import compat
from .fcurve import write_lines

NAMES = ("energy", "penetration", "separation", "contacts")
"""The settings of the armature that curves are for."""


def of(trajectory: Trajectory, rows: slice, separation: np.ndarray) -> list[np.ndarray]:
    """A column (F,) for each name, of all that was simulated together: energy [J], penetration and `separation` (F,)
    [m] of the joints in mm, and the number of contacts, in some rows of the trajectory."""
    return [
        trajectory.energy[rows], 1e3 * trajectory.penetration[rows], 1e3 * separation, trajectory.contacts[rows]
    ]  # fmt: skip


def replace(
    armature, action, slot: str, group: str, names: Sequence[str], columns: Sequence[np.ndarray], first: int
) -> None:
    """Writes settings of the armature of these names as curves of an action of its, in a `slot`, on frames from `first`
    on, in place of those that its source may have; none where there are no columns (F,)."""
    holder = compat.channels(armature, action, slot)
    paths = [f"armature_dynamics.{name}" for name in names]
    for curve in [curve for curve in holder.fcurves if curve.data_path in paths]:
        holder.fcurves.remove(curve)
    if not columns:
        return
    own = holder.groups.get(group) or holder.groups.new(group)
    for path, values in zip(paths, columns):
        write_lines(holder, own, path, np.asarray(values, dtype=float)[:, None], first)
