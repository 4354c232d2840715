"""The shapes of links and scenery as arrays: what they are, where they are in a pose, and how much room they take."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .contact import tangents
from .shape import Box, Capsule, Cylinder, Hull, Mesh, Plane, Sphere, TaperedCapsule
from .spatial import pose

ROUND, BOX, HULL, CYLINDER, MESH, PLANE = range(6)
"""The kinds of shapes, in the order in which a pair of them is put."""
KINDS = {
    Sphere: ROUND, Capsule: ROUND, TaperedCapsule: ROUND, Box: BOX, Hull: HULL, Cylinder: CYLINDER, Mesh: MESH,
    Plane: PLANE,
}  # fmt: skip


@dataclass(frozen=True)
class Placed:
    """Shapes in a pose: `ends` (rounds, 2, 3) of axes; `rotation` (framed, 3, 3) and `position` (framed, 3) of all that
    is not round."""

    ends: np.ndarray
    rotation: np.ndarray
    position: np.ndarray


class Geometry:
    """G shapes, those of links before those of the scenery, which stand still.

    `link` (G,): the slot of the link each belongs to, the world's for scenery, and `slot` (G,) that of what moves it:
    of the link too, or of the rigid zone that it is part of; `number` (G,) tells shapes apart for good. `kind` (G,);
    `row` (G,) among the rounds, or among the framed, all others. Of rounds: `radii` (R, 2). Of the framed: `half` (F,
    3) extents of the box around them in their own frame; for a cylinder, along z, its radius twice and half its length;
    `frames` (F, 4, 4) in their links'. A plane's z axis is its normal. `surface` (G, 4): friction, restitution, rolling
    and torsion; `layers` and `family` (G,), families from 1, 0 for none.
    """

    def __init__(self, shapes: Sequence, slots: np.ndarray, moving: int) -> None:
        unknown = [type(shape).__name__ for shape in shapes if type(shape) not in KINDS]
        if unknown:
            raise ValueError(f"a {unknown[0]} cannot be touched; give {', '.join(kind.__name__ for kind in KINDS)}")
        self.shapes, self.moving = list(shapes), moving
        self.kind = np.array([KINDS[type(shape)] for shape in shapes], dtype=np.intp)
        self.number, self.count = np.arange(len(shapes)), len(shapes)
        self._index()
        self._hang(slots)
        ends = [_ends(self.shapes[i]) for i in self.rounds]
        self.radii = np.array([radii for *_, radii in ends], dtype=float).reshape(-1, 2)
        self._ends = np.ones((len(ends), 2, 4))
        self._ends[:, :, :3] = np.array([(start, end) for start, end, _ in ends], dtype=float).reshape(-1, 2, 3)
        frames = [_frame(self.shapes[i]) for i in self.framed]
        self.frames = np.array([frame for frame, *_ in frames], dtype=float).reshape(-1, 4, 4)
        self._middle = np.array([middle for _, middle, _ in frames], dtype=float).reshape(-1, 3)
        self.half = np.array([half for *_, half in frames], dtype=float).reshape(-1, 3)
        self.surface = np.array(
            [(s.friction, s.restitution, s.rolling, s.torsion) for s in shapes], dtype=float
        ).reshape(-1, 4)
        self.layers = np.array([shape.layers for shape in shapes], dtype=np.int64)
        families = {name: number for number, name in enumerate(sorted({"", *(s.family for s in shapes)}))}
        self.family = np.array([families[shape.family] for shape in shapes], dtype=np.intp)

    def _index(self) -> None:
        is_round = self.kind == ROUND
        self.row = np.where(is_round, np.cumsum(is_round), np.cumsum(~is_round)) - 1
        self.rounds, self.framed = np.flatnonzero(is_round), np.flatnonzero(~is_round)
        self.moving_rounds = int(is_round[: self.moving].sum())
        self.moving_framed = self.moving - self.moving_rounds

    def _hang(self, slots: np.ndarray) -> None:
        self.link = slots
        self._move_by(slots)

    def _move_by(self, slots: np.ndarray) -> None:
        self.slot = slots
        self._round_slot = slots[self.rounds[: self.moving_rounds]]
        self._frame_slot = slots[self.framed[: self.moving_framed]]

    def rehung(self, moved: np.ndarray) -> Geometry:
        """The same shapes where links' slots (n + 1,) have `moved` to others."""
        geometry = copy.copy(self)
        geometry._hang(moved[self.slot])
        return geometry

    def gathered(self, zone: np.ndarray, within: np.ndarray) -> Geometry:
        """The same shapes where links (n + 1,) are parts of a `zone` each, in which they have poses `within` (n + 1, 4,
        4)."""
        geometry = copy.copy(self)
        geometry._move_by(zone[self.link])
        r, f = self.moving_rounds, self.moving_framed
        geometry._ends = self._ends.copy()
        geometry._ends[:r, :, :3] = self._ends[:r] @ within[self._round_slot, :3].swapaxes(-1, -2)
        if f:
            geometry.frames = np.concatenate((within[self._frame_slot] @ self.frames[:f], self.frames[f:]))
        return geometry

    def only(self, kept: np.ndarray) -> Geometry:
        """The shapes `kept` (k,) alone, ascending, all of the scenery among them."""
        geometry = copy.copy(self)
        geometry.shapes = [self.shapes[i] for i in kept.tolist()]
        geometry.moving = int((kept < self.moving).sum())
        for name in ("number", "kind", "surface", "layers", "family"):
            setattr(geometry, name, getattr(self, name)[kept])
        geometry._index()
        geometry.link = self.link[kept]
        geometry._move_by(self.slot[kept])
        rounds, framed = (self.row[kept[which]] for which in (geometry.rounds, geometry.framed))
        geometry.radii, geometry._ends = self.radii[rounds], self._ends[rounds]
        for name in ("frames", "_middle", "half"):
            setattr(geometry, name, getattr(self, name)[framed])
        return geometry

    def placed(self, poses: np.ndarray) -> Placed:
        """The shapes with their links at poses (links + 1, 4, 4)."""
        r, f = self.moving_rounds, self.moving_framed
        ends = self._ends[:r] @ poses.take(self._round_slot, axis=0)[:, :3].transpose(0, 2, 1)
        frames = poses.take(self._frame_slot, axis=0) @ self.frames[:f] if f else self.frames
        if r < len(self._ends):
            ends = np.concatenate((ends, self._ends[r:, :, :3]))
        if 0 < f < len(self.frames):
            frames = np.concatenate((frames, self.frames[f:]))
        return Placed(ends, frames[:, :3, :3], frames[:, :3, 3])

    def bounds(self, placed: Placed, moving: bool) -> tuple[np.ndarray, np.ndarray]:
        """The corners (k, 3) of boxes around the shapes of links, or of the scenery."""
        rounds = slice(0, self.moving_rounds) if moving else slice(self.moving_rounds, None)
        framed = slice(0, self.moving_framed) if moving else slice(self.moving_framed, None)
        ends, radii = placed.ends[rounds], self.radii[rounds, :, None]
        low, high = np.minimum.reduce(ends - radii, axis=1), np.maximum.reduce(ends + radii, axis=1)
        if not len(self.half[framed]):
            return low, high
        rotation = placed.rotation[framed]
        middle = placed.position[framed] + (rotation @ self._middle[framed, :, None])[:, :, 0]
        half = (np.abs(rotation) @ self.half[framed, :, None])[:, :, 0]
        # in the shapes' own order
        first = 0 if moving else self.moving
        order = np.concatenate((self.rounds[rounds], self.framed[framed])) - first
        corners = np.empty((2, len(order), 3))
        corners[0, order] = np.concatenate((low, middle - half))
        corners[1, order] = np.concatenate((high, middle + half))
        return corners[0], corners[1]


def _ends(shape: Sphere | Capsule | TaperedCapsule) -> tuple:
    """Both ends of a round's axis and the radii there."""
    if isinstance(shape, Sphere):
        return shape.center, shape.center, (shape.radius, shape.radius)
    return shape.start, shape.end, (shape.radius, getattr(shape, "end_radius", shape.radius))


def _frame(shape: Box | Cylinder | Hull | Mesh | Plane) -> tuple:
    """The frame (4, 4) of a shape in its link's, and the middle and half extents of the box around it there."""
    if isinstance(shape, Box):
        return (
            pose(np.asarray(shape.rotation, dtype=float), np.asarray(shape.center, dtype=float)),
            np.zeros(3),
            shape.half,
        )
    if isinstance(shape, Cylinder):
        axis = np.subtract(shape.end, shape.start)
        length = float(np.linalg.norm(axis))
        middle = np.add(shape.start, shape.end) / 2
        along, *across = tangents(axis[None] / length)[0]
        return pose(np.array([*across, along]).T, middle), np.zeros(3), (shape.radius, shape.radius, length / 2)
    if isinstance(shape, Plane):
        up, *level = tangents(shape.normal[None])[0]
        return pose(np.array([*level, up]).T, np.asarray(shape.point, dtype=float)), np.zeros(3), np.zeros(3)
    low, high = np.min(shape.vertices, axis=0), np.max(shape.vertices, axis=0)
    return np.eye(4), (low + high) / 2, (high - low) / 2
