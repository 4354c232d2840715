"""The end of what plays live: everything is given back, whoever ends it, and in whichever window."""

from __future__ import annotations

from contextlib import ExitStack, suppress

import bpy
from bpy.app.handlers import persistent

BEFORE = ("undo_pre", "redo_pre", "load_pre", "save_pre")
"""What can be done in a second window, and takes the data away that is played on, or keeps it as it is played."""

_playing: list[ExitStack] = []
"""What is to be given back: of one performance at most. Blender forgets operators whose classes are unregistered."""


def is_up(given: ExitStack | None = None) -> bool:
    """Whether something plays, or the one whose this is."""
    return given in _playing if given else bool(_playing)


def lift(workspace, area) -> ExitStack:
    """A stack that gives back what a performance that begins in an area takes; `close` it at its end."""
    given = ExitStack()
    _playing.append(given)
    given.callback(_playing.clear)
    given.callback(_tidy, workspace, area)
    return given


def fall(*_) -> None:
    """Ends what plays; what was removed meanwhile needs nothing back."""
    while _playing:
        with suppress(ReferenceError):
            _playing[-1].close()


def _tidy(workspace, area) -> None:
    workspace.status_text_set(None)
    # its window may have been closed
    if any(area == own for window in bpy.context.window_manager.windows for own in window.screen.areas):
        area.header_text_set(None)
    redraw()


def redraw() -> None:
    """Draws all 3D views anew."""
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            if area.type == "VIEW_3D":
                area.tag_redraw()


_fall = persistent(fall)


def attach() -> None:
    for name in BEFORE:
        getattr(bpy.app.handlers, name).append(_fall)


def detach() -> None:
    fall()
    for name in BEFORE:
        getattr(bpy.app.handlers, name).remove(_fall)
