"""What is drawn of hands that hold bones: springs with their forces in newtons, and arrows for what comes back."""

from __future__ import annotations

import bpy
import numpy as np
from bpy_extras import view3d_utils

from .overlay import paint
from .performance import Performance, Pull

TURNS, WIDTH = 8, 0.012
"""A spring's turns, and how wide they are [part of the character's height]."""

LENGTH = 0.25
"""How long the arrow of a force is that carries the character's weight [part of its height]."""

BARB = 0.15
"""How long the barbs of arrows are [part of them]."""

SOFT, HARD, PINNED, BACK = (0.4, 0.9, 0.4, 1.0), (1.0, 0.3, 0.2, 1.0), (0.4, 0.7, 1.0, 1.0), (1.0, 0.85, 0.2, 1.0)
"""Colours of springs that pull weakly, and as hard as they can, of those of pins, and of what comes back."""

TEXT, MARGIN, POINT = 14.0, 12.0, 9.0
"""Sizes of the letters, their distance from the hand, and hands [pixels]."""


def coil(ends: np.ndarray, across: np.ndarray, width: float) -> np.ndarray:
    """A spring between two ends (2, 3) as a line (k, 3) in the plane of its way and the vector `across` (3,)."""
    along = np.concatenate(([0.0], np.linspace(0.1, 0.9, 2 * TURNS), [1.0]))
    side = np.zeros(len(along))
    side[1:-1] = np.where(np.arange(2 * TURNS) % 2, width, -width)
    way = ends[1] - ends[0]
    length = np.linalg.norm(way)
    across = np.cross(way / max(length, 1e-12), across)
    across /= max(np.linalg.norm(across), 1e-12)
    return ends[0] + along[:, None] * way + side[:, None] * across


def arrow(start: np.ndarray, way: np.ndarray, eye: np.ndarray) -> np.ndarray:
    """An arrow from a place along a way (3,), as ends in pairs (6, 3), flat to who looks along `eye` (3,)."""
    tip, side = start + way, np.cross(way, eye)
    side *= np.linalg.norm(way) / max(np.linalg.norm(side), 1e-12)
    back = tip - BARB * way
    return np.array([start, tip, tip, back + 0.5 * BARB * side, tip, back - 0.5 * BARB * side])


def figures(pulls: list[Pull], eye: np.ndarray) -> list[tuple]:
    """What is drawn, to who looks along `eye` (3,): kind, color and places in the world."""
    drawn = []
    for pull in pulls:
        hard = min(pull.force / pull.strength, 1.0)
        color = tuple(float(a + hard * (b - a)) for a, b in zip(PINNED if pull.is_pinned else SOFT, HARD))
        drawn.append(("LINE_STRIP", color, coil(pull.ends, eye, WIDTH * pull.height)))
        drawn.append(("POINTS", color, pull.ends))
        way = LENGTH * pull.height * pull.feedback / pull.weight
        drawn.append(("LINES", BACK, arrow(pull.ends[1], way, eye)))
    return [(kind, color, points.astype(np.float32)) for kind, color, points in drawn]


class Drawing:
    """Draws the pulls of a performance in all 3D views until it is `over`."""

    def __init__(self, performance: Performance) -> None:
        add, self._performance = bpy.types.SpaceView3D.draw_handler_add, performance
        self._handles = [
            add(draw, (), "WINDOW", kind) for draw, kind in ((self._lines, "POST_VIEW"), (self._text, "POST_PIXEL"))
        ]

    def over(self) -> None:
        while self._handles:
            bpy.types.SpaceView3D.draw_handler_remove(self._handles.pop(), "WINDOW")

    def _lines(self) -> None:
        eye = np.array(bpy.context.region_data.view_matrix)[2, :3]
        paint(figures(self._performance.pulls(), eye), POINT)

    def _text(self) -> None:
        import blf

        region, view, scale = bpy.context.region, bpy.context.region_data, bpy.context.preferences.system.ui_scale
        blf.size(0, TEXT * scale)
        for pull in self._performance.pulls():
            place = view3d_utils.location_3d_to_region_2d(region, view, pull.ends[1])
            if place:
                blf.color(0, 1.0, 1.0, 1.0, 1.0)
                blf.position(0, place.x + MARGIN * scale, place.y + MARGIN * scale, 0.0)
                blf.draw(0, force_text(pull.force))


def force_text(newtons: float) -> str:
    """A force as it is written: "38 N", "1.2 kN"."""
    return f"{newtons / 1000:.1f} kN" if newtons >= 1000 else f"{newtons:.{0 if newtons >= 10 else 1}f} N"
