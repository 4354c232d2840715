"""Run by a real Blender in a window: `-- DONE`. Simulates the armature of the file, which hangs on an object by an arm,
turns all overlays on, opens the sidebar on the tab Dynamics, and writes the file DONE when that was drawn."""

import sys
from pathlib import Path

import bpy


def show() -> None:
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    region = next(region for region in area.regions if region.type == "WINDOW")
    armature = next(thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE")
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.context.view_layer.objects.active = armature
        armature.select_set(True)
        bpy.ops.armature_dynamics.make_dynamic()
        bpy.ops.object.empty_add(location=(0.5, 0, 2.2))
        bpy.context.view_layer.objects.active = armature
        armature.select_set(True)
        armature.data.bones.active = next(bone for bone in armature.data.bones if "arm" in bone.name)
        bpy.ops.armature_dynamics.connection_add()
        bpy.ops.armature_dynamics.simulate()
        settings = armature.armature_dynamics
        for overlay in ("shapes", "joints", "mass", "contacts", "activity", "ghost"):
            setattr(settings, f"show_{overlay}", True)
        bpy.context.scene.frame_set(settings.frame_end)
        bpy.ops.view3d.view_all()
    area.spaces.active.show_region_ui = True
    bpy.app.timers.register(lambda: open_tab(area), first_interval=1.0)


def open_tab(area: bpy.types.Area) -> None:
    """The tab can be chosen once the sidebar has been drawn."""
    sidebar = next(region for region in area.regions if region.type == "UI")
    sidebar.active_panel_category = "Dynamics"
    sidebar.tag_redraw()
    # the next timer is looked at when all that has been drawn
    bpy.app.timers.register(lambda: Path(sys.argv[-1]).write_text("drawn") and None, first_interval=2.0)


bpy.app.timers.register(show, first_interval=2.0)
