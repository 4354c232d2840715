"""For scripts that a real Blender runs in a window, `-- FOLDER`: mouse and keys are moved from outside by `hands.sh`
in that folder, and what came of it is written to `found.json` there."""

import json
import sys
import time
import traceback
from pathlib import Path

import bpy

FOLDER = Path(sys.argv[-1])

PATIENCE = 180.0
"""Seconds after which what is waited for does not come any more."""

found: dict = {}


def view():
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    return window, area, {region.type: region for region in area.regions}


def over_view():
    window, area, regions = view()
    return bpy.context.temp_override(window=window, area=area, region=regions["WINDOW"])


def until(condition):
    """Waits for something to become true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited in vain, see line {condition.__code__.co_firstlineno}"
        yield 0.05


def ask(*arguments):
    """Lets xdotool do something, from outside."""
    asked, part = FOLDER / "asked", FOLDER / "part"
    part.write_text(" ".join(map(str, arguments)))
    part.rename(asked)
    yield from until(lambda: not asked.exists())
    yield 0.1


def point(region, x: float, from_top: float):
    """Moves the mouse to a place in a region."""
    top = view()[0].height - region.y - region.height
    yield from ask("mousemove", int(region.x + x), int(top + from_top))


def press(keys: str):
    """Presses keys, one after the other, with the mouse where it is."""
    yield from ask("key", keys)


def run(steps) -> None:
    """Runs the generator of what is done, which yields how long to wait [s]."""

    def on() -> float | None:
        try:
            return next(steps)
        except StopIteration:
            pass
        except Exception:
            found["error"] = traceback.format_exc()
        (FOLDER / "found.json").write_text(json.dumps(found))
        return None

    bpy.context.preferences.view.show_splash = False
    bpy.app.timers.register(on, first_interval=2.0)
