"""Run by a real Blender in a window, by manual.py: sets a character up, and takes a picture of each panel."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np

OUT = Path(sys.argv[sys.argv.index("--") + 1])

SHOWN: set[str] = set()
"""The parts of the sidebar that are drawn."""

PICTURES = {
    "three-actions": set(),
    "grab": {"grab"},
    "pre-flight": {"preflight"},
    "body": {"body"},
    "directing": {"directing"},
    "connections": {"connections"},
    "keys": {"keys"},
    "setup": {"setup"},
    "rigs": set(),
}
"""Names of pictures, and the part of the sidebar that each shows."""

MENUS = {"rigs": "ARMATURE_DYNAMICS_PT_rig_presets"}
"""Pictures of what opens in the viewport instead."""

EMPTY: list[np.ndarray] = []
"""The screen before anything opens."""

PARTS = (
    *("grab", "preflight", "body", "scene", "directing", "connections", "adaptive"),
    *("keys", "display", "result", "warnings", "setup"),
)

TABS = 28
"""Width of the column of tabs [pixels]."""


def find() -> tuple:
    window = bpy.context.window_manager.windows[0]
    return window, next(area for area in window.screen.areas if area.type == "VIEW_3D")


def prepare() -> None:
    """A person who hangs by a hand, simulated."""
    window, area = find()
    region = next(region for region in area.regions if region.type == "WINDOW")
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.object.select_all(action="SELECT")
        bpy.ops.object.delete()
        bpy.ops.preferences.addon_enable(module="rigify")
        bpy.ops.object.armature_human_metarig_add()
        rig = bpy.context.object
        rig.name, rig.location.z = "Ada", 0.6
        rig.pose.bones["foot.L"].lock_rotation[0] = True
        bpy.ops.armature_dynamics.make_dynamic()
        rig.data.bones.active = rig.data.bones["hand.L"]
        bpy.ops.armature_dynamics.pin()
        connection = rig.armature_dynamics.connections[0]
        connection.name, connection.method = "left hand", "EXACT"
        rig.armature_dynamics.frame_end = 40
        rig.armature_dynamics.key_mode, rig.armature_dynamics.result = "REDUCED", "STRIP"
        bpy.ops.armature_dynamics.simulate("EXEC_DEFAULT")
        bpy.ops.armature_dynamics.check()
        bpy.context.scene.frame_set(22)
        rig.armature_dynamics.show_shapes = True
        area.spaces.active.region_3d.view_rotation = (0.74, 0.62, 0.17, 0.20)
        bpy.ops.view3d.view_all()
    area.spaces.active.show_region_ui = True
    for part in PARTS:
        single(getattr(bpy.types, f"ARMATURE_DYNAMICS_PT_{part}"))
    bpy.app.timers.register(lambda: show(list(PICTURES)), first_interval=1.5)


def single(panel) -> None:
    """Lets a part of the sidebar be drawn, and open, only where it is asked for."""
    part = panel.__name__.rpartition("_PT_")[2]
    bpy.utils.unregister_class(panel)
    panel.bl_options = set()
    panel.poll = classmethod(lambda cls, context: part in SHOWN)
    bpy.utils.register_class(panel)


def show(names: list[str]) -> None:
    """Draws the first of these, waits, and takes its picture."""
    window, area = find()
    sidebar = next(region for region in area.regions if region.type == "UI")
    sidebar.active_panel_category = "Dynamics"
    SHOWN.clear()
    SHOWN.update(PICTURES[names[0]])
    area.tag_redraw()
    if names[0] in MENUS:
        region = next(region for region in area.regions if region.type == "WINDOW")
        with bpy.context.temp_override(window=window, area=area, region=region):
            bpy.ops.wm.call_panel("INVOKE_DEFAULT", name=MENUS[names[0]])
    bpy.app.timers.register(lambda: shoot(names), first_interval=2.0)


def shoot(names: list[str]) -> None:
    """Asks for a picture of the screen, and goes on when it is there."""
    (OUT / "ready").touch()
    bpy.app.timers.register(lambda: cut(names), first_interval=0.5)


def cut(names: list[str]) -> float | None:
    """Takes the sidebar, or what has opened, out of the picture of the screen, which is the window's."""
    if (OUT / "ready").exists():
        return 0.5
    _, area = find()
    sidebar = next(region for region in area.regions if region.type == "UI")
    region = next(region for region in area.regions if region.type == "WINDOW")
    pixels = loaded(OUT / "screen.png")
    own = pixels[sidebar.y : sidebar.y + sidebar.height, sidebar.x : sidebar.x + sidebar.width]
    if names[0] in MENUS:
        save(opened(pixels, region), OUT / f"{names[0]}.png")
    else:
        save(own[lowest(own) :], OUT / f"{names[0]}.png")
    EMPTY[:] = EMPTY or [pixels]
    if names[0] == "three-actions":
        whole = pixels[region.y : region.y + region.height // 2 * 2, region.x : region.x + region.width // 2 * 2]
        save(whole.reshape(region.height // 2, 2, region.width // 2, 2, 4).mean(axis=(1, 3)), OUT / "viewport.png")
    (OUT / "screen.png").unlink()
    if names[1:]:
        show(names[1:])
    else:
        (OUT / "finished").touch()
    return None


def loaded(path: Path) -> np.ndarray:
    """A picture's pixels (height, width, 4), the lowest row first."""
    image = bpy.data.images.load(str(path))
    pixels = np.empty(4 * image.size[0] * image.size[1], dtype=np.float32)
    image.pixels.foreach_get(pixels)
    pixels = pixels.reshape(image.size[1], image.size[0], 4)
    bpy.data.images.remove(image)
    return pixels


def opened(pixels: np.ndarray, region) -> np.ndarray:
    """What is in a region now and was not before."""
    part = slice(region.y, region.y + region.height), slice(region.x, region.x + region.width)
    new = np.abs(pixels[part] - EMPTY[0][part]).max(axis=2) > 0.02
    # what has opened is as wide and as high all along; its shadow is not
    shares = [new.mean(axis=axis) for axis in (1, 0)]
    rows, columns = (np.flatnonzero(share > 0.7 * share.max()) for share in shares)
    return pixels[part][rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def lowest(pixels: np.ndarray) -> int:
    """The row below which a panel is empty."""
    inner = pixels[:, 4:-TABS, :3]
    drawn = np.flatnonzero(np.ptp(inner, axis=1).max(axis=1) > 0.02)
    return max(int(drawn[0]) - 8, 0) if len(drawn) else 0


def save(pixels: np.ndarray, path: Path) -> None:
    image = bpy.data.images.new(path.stem, pixels.shape[1], pixels.shape[0])
    image.pixels.foreach_set(np.ascontiguousarray(pixels).ravel())
    image.filepath_raw, image.file_format = str(path), "PNG"
    image.save()
    bpy.data.images.remove(image)


def begin() -> None:
    """Another file closes the splash screen."""
    bpy.ops.wm.read_homefile(use_splash=False)
    bpy.context.preferences.system.use_region_overlap = False
    bpy.app.timers.register(prepare, first_interval=2.0)


bpy.app.timers.register(begin, first_interval=3.0)
