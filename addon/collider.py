"""Capsules for bodies: around the skin a bone moves, or from the bone where no skin is bound."""

from __future__ import annotations

import numpy as np

from ..core import Capsule
from .preset import preset

REACH = (2.0, 98.0)
"""Percentiles of the skin's points that a capsule spans: stray vertices must not make it grow."""


THINNEST = 0.05
"""Flesh thinner than this part of its length (a few vertices in a plane) does not show a bone's thickness."""


def capsule_around(points: np.ndarray) -> Capsule | None:
    """The capsule along the longest principal axis of points (k, 3) [m]; None where they have no thickness."""
    if len(points) < 3:
        return None
    axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    low, high = np.percentile(points @ axes.T, REACH, axis=0)
    center = (low + high) / 2 @ axes
    half = (high - low) / 2
    if half[2] <= THINNEST * half[0]:
        return None
    radius = min((half[1] + half[2]) / 2, half[0])
    reach = (half[0] - radius) * axes[0]
    return Capsule(center - reach, center + reach, float(radius))


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


def moved(capsule: Capsule, rotation: np.ndarray, origin: np.ndarray) -> Capsule:
    """A world capsule in the frame with that `rotation` (3, 3) and `origin` (3,)."""
    return Capsule(
        (capsule.start - origin) @ rotation,
        (capsule.end - origin) @ rotation,
        capsule.radius,
        friction=capsule.friction,
        restitution=capsule.restitution,
    )


def volume(capsule: Capsule) -> float:
    """[m³]"""
    length = float(np.linalg.norm(capsule.end - capsule.start))
    return np.pi * capsule.radius**2 * (length + 4.0 / 3.0 * capsule.radius)
