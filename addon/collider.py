"""Shapes for bodies: around the skin a bone moves, or from the bone where no skin is bound."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..core import Box, Capsule, Hull, Sphere, TaperedCapsule
from ..core.shape import CORNERS, Shape
from .hull import convex_hull
from .preset import preset

REACH = (2.0, 98.0)
"""Percentiles of the skin's points that a shape spans: stray vertices must not make it grow."""

THINNEST = 0.05
"""Flesh thinner than this part of its length (a few vertices in a plane) does not show a bone's thickness."""

STUBBY, BLUNT = 1.2, 0.5
"""A capsule whose core is shorter than the first, with skin beyond it by more than the second, both as parts of its
radius, does not show what it is around: a helmet, or a box for a head."""

MOST_CORNERS = 32
"""Corners that the hull of a bone's skin keeps."""

TAPER = 0.75
"""How thick a tapered bone without skin is at its tail, as a part of its head."""

AUTO, CAPSULE, TAPERED, SPHERE, BOX, HULL, NONE = "AUTO", "CAPSULE", "TAPERED", "SPHERE", "BOX", "HULL", "NONE"


@dataclass(frozen=True)
class Manner:
    """How a bone collides: the `kind` of its shape, its `length` and `thickness` as factors, and its `surface`, the
    fields of a Surface."""

    kind: str = AUTO
    length: float = 1.0
    thickness: float = 1.0
    surface: dict = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Outline:
    """The box along the principal axes, longest first, of what a bone moves: `center` (3,), `axes` (3, 3) as rows,
    `half` (3,) [m]."""

    center: np.ndarray
    axes: np.ndarray
    half: np.ndarray

    @classmethod
    def of_points(cls, points: np.ndarray) -> _Outline:
        axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
        axes[2] = np.cross(axes[0], axes[1])  # right-handed
        low, high = np.percentile(points @ axes.T, REACH, axis=0)
        return cls((low + high) / 2 @ axes, axes, (high - low) / 2)

    @classmethod
    def of_capsule(cls, capsule: Capsule) -> _Outline:
        along = capsule.end - capsule.start
        half = np.array([np.linalg.norm(along) / 2 + capsule.radius, capsule.radius, capsule.radius])
        return cls((capsule.start + capsule.end) / 2, axes_along(along), half)

    def capsule(self) -> Capsule:
        radius = min((self.half[1] + self.half[2]) / 2, self.half[0])
        reach = (self.half[0] - radius) * self.axes[0]
        return Capsule(self.center - reach, self.center + reach, float(radius))


def capsule_around(points: np.ndarray) -> Capsule | None:
    """The capsule along the longest principal axis of points (k, 3) [m]; None where they have no thickness."""
    if len(points) < 3:
        return None
    outline = _Outline.of_points(points)
    if outline.half[2] <= THINNEST * outline.half[0]:
        return None
    return outline.capsule()


def is_blunt(capsule: Capsule, flesh: np.ndarray) -> bool:
    """Whether a capsule around points (k, 3) is no likeness of them."""
    core = capsule.end - capsule.start
    if np.linalg.norm(core) > STUBBY * capsule.radius:
        return False
    along = np.clip((flesh - capsule.start) @ core / max(core @ core, 1e-30), 0.0, 1.0)
    away = np.linalg.norm(flesh - capsule.start - along[:, None] * core, axis=1)
    return bool(np.percentile(away, REACH[1]) > (1 + BLUNT) * capsule.radius)


def capsule_of_segment(
    name: str, head: np.ndarray, end: np.ndarray, outline: np.ndarray, axes: np.ndarray, stature: float
) -> Capsule:
    """A human segment without skin, in the world: `head` and `end` (3,) are its joint and far end, `outline` (k, 3) the
    ends of all bones it carries, `axes` (3, 3) the character's left, front and up as columns."""
    segment = preset("human")["segments"][name]
    radius = segment["radius"] * stature
    if "width" in segment:
        reach = axes[:, 0] * (segment["width"] * stature / 2 - radius)
        return Capsule((head + end) / 2 - reach, (head + end) / 2 + reach, radius)
    if name == "foot":
        # lies on the sole, from the heel to the toes
        up, along = axes[:, 2], end - head
        along = along - (along @ up) * up
        along /= np.linalg.norm(along)
        low, high = np.sort((outline - head) @ along)[[0, -1]]
        base = head + ((outline - head) @ up).min() * up + radius * up
        return _between(base + low * along, base + high * along, radius, inside=True)
    if name == "hand":
        # fingers are carried along
        along = (end - head) / np.linalg.norm(end - head)
        end = head + max(float(((outline - head) @ along).max()) - radius, 0.0) * along
    return _between(head, end, radius, inside=name == "head")


def capsule_of_bone(head: np.ndarray, end: np.ndarray) -> Capsule:
    """Any other bone without skin, in the world."""
    return _between(head, end, preset("creature")["radius"] * float(np.linalg.norm(end - head)), inside=False)


def _between(start: np.ndarray, end: np.ndarray, radius: float, *, inside: bool) -> Capsule:
    """From joint to joint, or with its caps kept between the two ends."""
    if inside:
        length = float(np.linalg.norm(end - start))
        cap = min(radius / length, 0.5) * (end - start)
        return Capsule(start + cap, end - cap, radius)
    return Capsule(start, end, radius)


def shapes_of(capsule: Capsule, flesh: np.ndarray | None, head: np.ndarray, how: Manner) -> list[Shape]:
    """What collides for a bone, in the world at rest: the shape asked for around its `flesh` (k, 3), or in the place of
    its `capsule` where there is none; `head` (3,) is the bone's. Empty for none."""
    if how.kind == NONE:
        return []
    is_capsule = how.kind in (AUTO, CAPSULE)
    if is_capsule and (how.length, how.thickness) == (1.0, 1.0):
        return [replace(capsule, **how.surface)]
    outline = _Outline.of_capsule(capsule) if is_capsule or flesh is None else _Outline.of_points(flesh)
    outline = replace(outline, half=outline.half * [how.length, how.thickness, how.thickness])
    if how.kind == SPHERE:
        return [Sphere(outline.center, float(outline.half.mean()), **how.surface)]
    if how.kind == TAPERED:
        return [_tapered(outline, flesh, head, how)]
    found = _hull(outline, flesh, how) if how.kind == HULL and flesh is not None else None
    if found:
        return [found]
    if how.kind in (BOX, HULL):
        return [Box(outline.center, outline.half, outline.axes.T, **how.surface)]
    return [replace(outline.capsule(), **how.surface)]


def _hull(outline: _Outline, flesh: np.ndarray, how: Manner) -> Hull | None:
    places = (flesh - outline.center) @ outline.axes.T * [how.length, how.thickness, how.thickness]
    found = convex_hull(places @ outline.axes + outline.center, MOST_CORNERS)
    return Hull(*found, **how.surface) if found else None


def _tapered(outline: _Outline, flesh: np.ndarray | None, head: np.ndarray, how: Manner) -> Shape:
    """The two balls that fit the two halves of the flesh, each within its end."""
    thick = float(outline.half[1:].mean())
    first = np.sign((head - outline.center) @ outline.axes[0]) or -1.0  # which end the head is at
    along = -first * outline.axes[0]
    radii = np.array([1.0, TAPER]) * thick
    if flesh is not None:
        places = (flesh - outline.center) @ outline.axes.T
        far = -first * places[:, 0] > 0
        halves = [np.percentile(places[side][:, 1:], REACH, axis=0) for side in (~far, far) if side.any()]
        if len(halves) == 2:
            radii = how.thickness * np.array([np.ptp(half, axis=0).mean() / 2 for half in halves])
    radii = np.clip(radii, THINNEST * thick, outline.half[0])
    start = outline.center - (outline.half[0] - radii[0]) * along
    end = outline.center + (outline.half[0] - radii[1]) * along
    if np.linalg.norm(end - start) <= abs(radii[0] - radii[1]):  # one ball holds the other
        larger = int(np.argmax(radii))
        return Sphere((start, end)[larger], float(radii[larger]), **how.surface)
    return TaperedCapsule(start, end, float(radii[0]), float(radii[1]), **how.surface)


def axes_along(way: np.ndarray) -> np.ndarray:
    """Right-handed axes, the rows (3, 3), the first along a way (3,), or along z where that has no length."""
    length = float(np.linalg.norm(way))
    first = way / length if length > 0 else np.array([0.0, 0.0, 1.0])
    second = np.eye(3)[np.argmin(np.abs(first))]
    second = second - (second @ first) * first
    second /= np.linalg.norm(second)
    return np.array([first, second, np.cross(first, second)])


def balls(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Balls around points (k, 3) with radii (k,), zero for corners, whose convex hull is the shape."""
    if isinstance(shape, Sphere):
        return np.array([shape.center]), np.array([shape.radius])
    if isinstance(shape, TaperedCapsule):
        return np.array([shape.start, shape.end]), np.array([shape.radius, shape.end_radius])
    if isinstance(shape, Capsule):
        return np.array([shape.start, shape.end]), np.array([shape.radius, shape.radius])
    if isinstance(shape, Box):
        return CORNERS * shape.half @ shape.rotation.T + shape.center, np.zeros(8)
    return shape.vertices, np.zeros(len(shape.vertices))
