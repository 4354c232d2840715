"""Run by a real Blender in a window, by listing.py: the fall of the demo, as an animator has it before her."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy

OUT = Path(sys.argv[sys.argv.index("--") + 1])

START, SHOWN = 7, 30
"""The frame at which physics takes over, as in the demo, and the one that the window shows."""

CLOSED = ("body", "scene", "directing", "connections", "preflight", "warnings")
"""Parts of the sidebar that would hide the report."""


def begin() -> None:
    """Opens the scene that listing_scene.py made."""
    bpy.ops.wm.open_mainfile(filepath=str(OUT / "window.blend"), load_ui=False)
    bpy.app.timers.register(prepare, first_interval=2.0)


def prepare() -> None:
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    region = next(region for region in area.regions if region.type == "WINDOW")
    space = area.spaces.active
    with bpy.context.temp_override(window=window, area=area, region=region):
        rig = bpy.data.objects["Ada"]
        bpy.context.view_layer.objects.active = rig
        bpy.ops.armature_dynamics.make_dynamic()
        own = rig.armature_dynamics
        own.frame_start, own.frame_end, own.use_ground = START, bpy.context.scene.frame_end, False
        own.scenery = bpy.data.collections["Steps"]
        bpy.ops.armature_dynamics.simulate("EXEC_DEFAULT")
        own.show_mass = own.show_contacts = own.show_ghost = True
        rig.select_set(True)
        bpy.context.scene.frame_set(SHOWN)
        space.shading.color_type, space.shading.show_shadows, space.shading.show_cavity = "OBJECT", True, True
        space.overlay.show_relationship_lines = False
        view = space.region_3d
        view.view_rotation, view.view_location, view.view_distance = (0.74, 0.52, 0.25, 0.34), (0, -1.1, 0.25), 5.2
    space.show_region_ui = True
    for part in CLOSED:
        panel = getattr(bpy.types, f"ARMATURE_DYNAMICS_PT_{part}")
        bpy.utils.unregister_class(panel)
        panel.bl_options = {"DEFAULT_CLOSED"}
        bpy.utils.register_class(panel)
    bpy.app.timers.register(show, first_interval=1.5)


def show() -> None:
    """Draws all, and asks for the picture."""
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    next(region for region in area.regions if region.type == "UI").active_panel_category = "Dynamics"
    for area in window.screen.areas:
        area.tag_redraw()
    bpy.app.timers.register((OUT / "ready").touch, first_interval=4.0)


bpy.app.timers.register(begin, first_interval=3.0)
