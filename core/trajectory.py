"""Trajectory: the frames of a simulation, the single source of what the animator sees."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np


@dataclass(frozen=True, eq=False)
class Trajectory:
    """F frames of n links.

    `names` (n,); `frame_time` [s]; `q` (F, nq), `v` (F, nv) joint coordinates and velocities; `world` (F, n, 4, 4)
    poses; `contacts` (F,) number of contacts; `penetration` (F,) deepest overlap [m]; `limit_violation` (F,) [rad];
    `energy` (F,) kinetic and potential [J]; `substeps` (F,) steps that led to each frame; `residual` (F,) what the last
    of them left unsolved of contacts and limits, as a part of the fastest approach; `step_seconds` (steps,) what each
    step took.

    Of t contacts that press, in all frames: `touch_frame` (t,), `touch_link` and `touch_other` (t,) numbers of the
    links, -1 for the world, `touch_point` (t, 3) [m] and `touch_force` (t, 3) on the link [N].

    Of k connections, `loop_names` (k,): `loop_closed` (F, k); `loop_gap` (F, k) [m] how far their ends are apart, NaN
    where open; `loop_force` (F, k, 6) torque and force on the real link in the host's joint frame [N m, N]. Where a
    joint was cut, `q` and `v` are NaN beyond the coordinates that there were before.

    `active` (F, n): which links' joints moved, and `left_out` (F,) for how much the others did not, in the terms of
    `Adaptive.threshold`; all and 0 without adaptive simulation.
    """

    names: np.ndarray
    frame_time: float
    q: np.ndarray
    v: np.ndarray
    world: np.ndarray
    contacts: np.ndarray
    penetration: np.ndarray
    limit_violation: np.ndarray
    energy: np.ndarray
    substeps: np.ndarray
    residual: np.ndarray
    loop_closed: np.ndarray
    loop_gap: np.ndarray
    loop_force: np.ndarray
    active: np.ndarray
    left_out: np.ndarray
    touch_frame: np.ndarray
    touch_link: np.ndarray
    touch_other: np.ndarray
    touch_point: np.ndarray
    touch_force: np.ndarray
    loop_names: np.ndarray
    step_seconds: np.ndarray

    def __len__(self) -> int:
        return len(self.q)

    def poses(self) -> np.ndarray:
        """World poses (F, n, 4, 4) of the links' frames."""
        return self.world

    def save(self, path: str | os.PathLike) -> None:
        """Writes an .npz file, whole or not at all. Raises OSError where the folder cannot be written."""
        path = Path(path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".npz")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **{field.name: getattr(self, field.name) for field in fields(self)})
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike) -> Trajectory:
        """Reads what `save` wrote, to the last bit. Raises ValueError for any other file."""
        try:
            with np.load(path, allow_pickle=False) as data:
                values = {field.name: data[field.name] for field in fields(cls)}
        except (KeyError, ValueError, EOFError) as error:
            raise ValueError(f"{path} is not a trajectory ({error}); save one with Trajectory.save") from error
        values["frame_time"] = float(values["frame_time"])
        return cls(**values)


def padded(rows: tuple) -> np.ndarray:
    """Rows as one array; what structure changes make longer is NaN, or zero or False, where it was not there yet."""
    if not isinstance(rows[0], np.ndarray) or len({row.shape for row in rows}) == 1:
        return np.array(rows)
    result = np.full((len(rows), *np.max([row.shape for row in rows], axis=0)), np.nan)
    if rows[0].dtype == bool:
        result = np.zeros(result.shape, dtype=bool)
    for target, row in zip(result, rows):
        target[tuple(slice(size) for size in row.shape)] = row
    return result
