"""Where links touch scenery: speculative contacts of capsules with planes and boxes.

A sphere is a capsule of zero length. Every array operation covers all pairs of a kind at once: a step pays for the
number of numpy calls, not for the number of shapes.
"""

from __future__ import annotations

import numpy as np

from .contact import Contacts
from .shape import Box, Plane, Scenery, Shape, Sphere

TINY = 1e-12  # [m] distances up to this are none
# Boxes are larger by this [m]: a capsule exactly above an edge is then above the face, not just beside it.
SKIN = 1e-9


class Collider:
    """Contact generation between the shapes of links and scenery that stands still.

    `shapes` holds one list of Sphere or Capsule per link, in the link's frame; `scenery` Planes and Boxes.
    """

    def __init__(self, shapes: list[list[Shape]], scenery: list[Scenery]) -> None:
        flat = [(link, shape) for link, of_link in enumerate(shapes) for shape in of_link]
        planes = [s for s in scenery if isinstance(s, Plane)]
        boxes = [s for s in scenery if isinstance(s, Box)]
        unknown = [s for s in scenery if not isinstance(s, (Plane, Box))]
        if unknown:
            raise ValueError(f"scenery must be Plane or Box, not {type(unknown[0]).__name__}")

        count = len(flat)
        ends = [(s.center, s.center) if isinstance(s, Sphere) else (s.start, s.end) for _, s in flat]
        self._link = np.array([link for link, _ in flat], dtype=np.intp)
        self._links = len(shapes)
        self._every_link_once = np.array_equal(self._link, np.arange(len(shapes)))
        self._ends = np.ones((count, 2, 4))
        self._ends[:, :, :3] = np.array(ends, dtype=float).reshape(count, 2, 3)
        self._radius = np.array([s.radius for _, s in flat], dtype=float)
        self._length = np.sqrt(((self._ends[:, 1] - self._ends[:, 0]) ** 2).sum(axis=1))
        self._compile_planes([s for _, s in flat], planes)
        self._compile_boxes([s for _, s in flat], boxes)

    def _compile_planes(self, shapes: list[Shape], planes: list[Plane]) -> None:
        """Tables over (capsule, end, plane), flattened; the flat index is the contact's key."""
        count, self._planes = len(shapes), len(planes)
        normals = _rows([p.normal for p in planes])
        normals = normals / np.sqrt((normals * normals).sum(axis=1, keepdims=True))
        points = _rows([p.point for p in planes])
        shape = (count, 2, len(planes))
        radius = np.broadcast_to(self._radius[:, None, None], shape).copy()
        # The second end of a sphere repeats the first: an infinite gap keeps it out.
        radius[self._length <= TINY, 1] = -np.inf
        self._plane_normals = np.ascontiguousarray(normals.T)
        self._plane_offset = (radius + (normals * points).sum(axis=1)).reshape(2 * count, len(planes))
        pair = np.indices(shape).reshape(3, -1)
        self._plane_capsule, self._plane_end, self._plane_index = pair[0], 2 * pair[0] + pair[1], pair[2]
        self._plane_normal = normals[pair[2]]
        friction, restitution = _surfaces(shapes, planes)
        self._plane_friction = friction[pair[0], pair[2]]
        self._plane_restitution = restitution[pair[0], pair[2]]

    def _compile_boxes(self, shapes: list[Shape], boxes: list[Box]) -> None:
        """Tables over (capsule, box), flattened."""
        count, self._boxes = len(shapes), len(boxes)
        rotation = np.array([b.rotation for b in boxes], dtype=float).reshape(-1, 3, 3)
        center = _rows([b.center for b in boxes])
        half = _rows([b.half for b in boxes]) + SKIN
        # World points times this (3, 3 * boxes), less the offset, are the points in all boxes' frames.
        self._box_frames = np.ascontiguousarray(rotation.transpose(1, 0, 2).reshape(3, -1))
        self._box_offset = (rotation.transpose(0, 2, 1) @ center[:, :, None]).reshape(-1)
        self._box_half = half
        self._box_base = 2 * count * self._planes
        capsule, box = np.indices((count, len(boxes))).reshape(2, -1)
        self._pair_capsule, self._pair_half, self._pair_rotation = capsule, half[box], rotation[box]
        self._pair_radius = self._radius[capsule]
        # Half a radius apart two contacts do the work of one, and only make the constraint problem singular.
        length = np.maximum(self._length, TINY)
        self._pair_same = np.minimum(0.5 * self._radius / length, np.where(self._length > TINY, 0.25, 1.0))[capsule]
        friction, restitution = _surfaces(shapes, boxes)
        self._pair_friction, self._pair_restitution = friction.reshape(-1), restitution.reshape(-1)

    def __bool__(self) -> bool:
        return bool(self._planes or self._boxes)

    def contacts(self, poses: np.ndarray, margin: float | np.ndarray) -> Contacts:
        """Contacts with a gap below `margin` [m], a scalar or one per link (n,), for poses (n + 1, 4, 4) of links."""
        margin = np.asarray(margin, dtype=float)
        poses = poses[:-1]
        if not self._every_link_once:
            poses = poses.take(self._link, axis=0)
            margin = margin.take(self._link) if margin.ndim else margin
        reach = margin if margin.ndim else np.full(len(self._radius), margin)
        ends = self._ends @ poses[:, :3].transpose(0, 2, 1)
        parts = []
        if self._planes and len(ends):
            self._touch_planes(ends, reach, parts)
        if self._boxes and len(ends):
            self._touch_boxes(ends, reach, parts)
        if not parts:
            return Contacts.none()
        columns = parts[0] if len(parts) == 1 else [np.concatenate(pair) for pair in zip(*parts, strict=True)]
        link, *places, friction, restitution, key = columns
        still = np.zeros(len(link))
        world = np.full(len(link), len(poses) if self._every_link_once else self._links)
        return Contacts(link, world, *places, friction, restitution, still, still, key)

    def _touch_planes(self, ends: np.ndarray, reach: np.ndarray, parts: list) -> None:
        ends = ends.reshape(-1, 3)
        gap = ends @ self._plane_normals
        gap -= self._plane_offset
        hit = (gap.reshape(len(reach), -1) < reach[:, None]).reshape(-1).nonzero()[0]
        if not len(hit):
            return
        capsule, normal = self._plane_capsule[hit], self._plane_normal[hit]
        center = ends[self._plane_end[hit]]
        point = center - self._radius[capsule][:, None] * normal
        columns = self._link[capsule], point, center, normal, gap.reshape(-1)[hit]
        parts.append((*columns, self._plane_friction[hit], self._plane_restitution[hit], hit))

    def _touch_boxes(self, ends: np.ndarray, reach: np.ndarray, parts: list) -> None:
        count = len(reach)
        local = ends.reshape(-1, 3) @ self._box_frames
        local -= self._box_offset
        local = local.reshape(count, 2, self._boxes, 3)
        start, end = local[:, 0], local[:, 1]
        # The segment's bounding box, in each box's own frame, against the box.
        apart = np.maximum(np.minimum(start, end) - self._box_half, -(np.maximum(start, end) + self._box_half))
        apart = np.maximum(np.maximum(apart[:, :, 0], apart[:, :, 1]), apart[:, :, 2])
        pair = (apart < (reach + self._radius)[:, None]).reshape(-1).nonzero()[0]
        if not len(pair):
            return
        start = start.reshape(-1, 3)[pair]
        along = end.reshape(-1, 3)[pair] - start
        radius, capsule = self._pair_radius[pair], self._pair_capsule[pair]
        where, normal, distance, fresh = _capsule_box(start, along, self._pair_half[pair], self._pair_same[pair])
        gap = distance - radius[:, None]
        hit = (fresh & (gap < reach[capsule][:, None])).reshape(-1).nonzero()[0]
        if not len(hit):
            return
        row = hit // 3
        pair, capsule = pair[row], capsule[row]
        normal = (self._pair_rotation[pair] @ normal.reshape(-1, 3, 1)[hit])[:, :, 0]
        first = ends[capsule, 0]
        center = first + where.reshape(-1, 1)[hit] * (ends[capsule, 1] - first)
        point = center - radius[row][:, None] * normal
        key = self._box_base + 3 * pair + (hit - 3 * row)
        columns = self._link[capsule], point, center, normal, gap.reshape(-1)[hit]
        parts.append((*columns, self._pair_friction[pair], self._pair_restitution[pair], key))


def _capsule_box(
    start: np.ndarray, along: np.ndarray, half: np.ndarray, same: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Three places on each segment that may touch its box, in the box's frame.

    start, along, half (p, 3); segment points are start + t along, t in [0, 1]. The places are both ends of the part of
    the segment that lies above the nearest face (the whole segment where no part does), and the closest point. Where
    the closest point is within `same` (p,), in units of t, of an end of that part it takes the end's place, so the
    three columns are persistent features. Returns t (p, 3), normal (p, 3, 3), distance (p, 3) of the axis from the
    box, negative inside, and whether the place is a contact of its own (p, 3).
    """
    slope = along + 1e-200  # parallel to a slab: crossed far away, but at a finite t
    enter = (-half - start) / slope
    leave = (half - start) / slope
    near, far = np.minimum(enter, leave), np.maximum(enter, leave)
    t_closest = _closest(start, along, half, near, far)

    foot = start + t_closest[:, None] * along
    away = np.abs(foot - np.maximum(np.minimum(foot, half), -half))
    nearest = away.argmax(axis=1)
    rows = np.arange(len(start))
    inside = away[rows, nearest] <= TINY
    sunk = inside.nonzero()[0]
    if len(sunk):
        sides = start[sunk], along[sunk], half[sunk], near[sunk], far[sunk]
        nearest[sunk], side, t_closest[sunk] = _nearest_face(*sides)
    near[rows, nearest] = 0.0
    far[rows, nearest] = 1.0
    first = np.maximum(np.maximum(near[:, 0], near[:, 1]), np.maximum(near[:, 2], 0.0))
    last = np.minimum(np.minimum(far[:, 0], far[:, 1]), np.minimum(far[:, 2], 1.0))
    beside = first > last
    first[beside], last[beside] = 0.0, 1.0
    t = np.empty((len(start), 3))
    t[:, 0], t[:, 1], t[:, 2] = first, last, t_closest

    merged = np.abs(t[:, :2] - t[:, 2:]) <= same[:, None]
    at_first, at_last = merged[:, 0], merged[:, 1]
    fresh = np.ones(t.shape, dtype=bool)
    fresh[:, 1] = (at_last > at_first) | (last - first > same)
    fresh[:, 2] = ~(at_first | at_last)
    np.copyto(t[:, 0], t_closest, where=at_first)
    np.copyto(t[:, 1], t_closest, where=at_last > at_first)
    place = start[:, None] + t[:, :, None] * along[:, None]
    half = half[:, None]
    offset = place - np.maximum(np.minimum(place, half), -half)
    distance = np.sqrt(np.add.reduce(offset * offset, axis=2))
    normal = offset / np.maximum(distance, TINY)[:, :, None]
    if len(sunk):
        face = nearest[sunk]
        distance[sunk] = place[sunk, :, face] * side[:, None] - half[sunk, 0, face][:, None]
        normal[sunk] = (np.eye(3)[face] * side[:, None])[:, None]
    return t, normal, distance, fresh


def _closest(start: np.ndarray, along: np.ndarray, half: np.ndarray, near: np.ndarray, far: np.ndarray) -> np.ndarray:
    """Parameter (p,) of the point of each segment that is closest to its box; the first one of several.

    The squared distance is convex in t and its slope is linear between the six crossings of the slabs (near, far), so
    the slopes at the sorted crossings bracket the minimum and interpolation gives it exactly.
    """
    count = len(start)
    t = np.zeros((count, 8))
    t[:, :3], t[:, 3:6], t[:, 7] = near, far, 1.0
    np.minimum(np.maximum(t, 0.0, out=t), 1.0, out=t)
    t.sort(axis=1)
    half = half[:, None]
    foot = start[:, None] + t[:, :, None] * along[:, None]
    foot -= np.maximum(np.minimum(foot, half), -half)
    slope = (foot @ along[:, :, None]).reshape(count, 8)
    # Among the inner six of the eight, so that there is a neighbour on both sides.
    left = np.add.reduce(slope[:, 1:7] < 0.0, axis=1) + np.arange(0, 8 * count, 8)
    t, slope, right = t.reshape(-1), slope.reshape(-1), left + 1
    before, left = slope[left], t[left]
    part = -before / np.maximum(slope[right] - before, 1e-200)
    return left + np.minimum(np.maximum(part, 0.0), 1.0) * (t[right] - left)


def _nearest_face(
    start: np.ndarray, along: np.ndarray, half: np.ndarray, near: np.ndarray, far: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The face through which each segment that enters its box leaves with the least motion.

    Returns the face's axis (p,), its side (p,) as +-1, and the parameter (p,) of the deepest point.
    """
    first = np.maximum(near.max(axis=1), 0.0)
    last = np.maximum(np.minimum(far.min(axis=1), 1.0), first)
    head, tail = start + first[:, None] * along, start + last[:, None] * along
    depth = np.concatenate((half - np.minimum(head, tail), half + np.maximum(head, tail)), axis=1)
    face = depth.argmin(axis=1)
    axis, side = face % 3, np.where(face < 3, 1.0, -1.0)
    rows = np.arange(len(axis))
    return axis, side, np.where(side * along[rows, axis] > 0.0, first, last)


def _rows(vectors: list) -> np.ndarray:
    return np.array(vectors, dtype=float).reshape(-1, 3)


def _surfaces(shapes: list[Shape], scenery: list) -> tuple[np.ndarray, np.ndarray]:
    """Friction and restitution (shapes, scenery) of the pairs."""
    ours = np.array([(s.friction, s.restitution) for s in shapes], dtype=float).reshape(-1, 2)
    theirs = np.array([(s.friction, s.restitution) for s in scenery], dtype=float).reshape(-1, 2)
    return np.sqrt(ours[:, :1] * theirs[:, 0]), np.maximum(ours[:, 1:], theirs[:, 1])
