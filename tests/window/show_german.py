"""Run by a real Blender in a window: turns the interface to German, simulates the file's armature, writes what some of
the texts are then to the file that is named after `--`, and opens the sidebar on the tab Dynamics."""

import json
import sys
from pathlib import Path

import bpy

OWN = bpy.types.Object.bl_rna.properties["armature_dynamics"].fixed_type.properties["mass"].translation_context

TEXTS = {"Make Dynamic": "Operator", "Bounciness": OWN, "Every n-th Frame": OWN, "Wood": "Operator"}


def speak_german() -> None:
    """Blenders differ in what they call it."""
    view = bpy.context.preferences.view
    for name in ("de_DE", "de"):
        try:
            view.language = name
        except TypeError:
            continue
        view.use_translate_interface = view.use_translate_tooltips = True
        return


def show() -> None:
    speak_german()
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    region = next(region for region in area.regions if region.type == "WINDOW")
    armature = next(thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE")
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.context.view_layer.objects.active = armature
        armature.select_set(True)
        bpy.ops.armature_dynamics.make_dynamic()
        bpy.ops.armature_dynamics.simulate()
        armature.armature_dynamics.frame_end = armature.armature_dynamics.frame_start
        try:
            bpy.ops.armature_dynamics.simulate()
            refused = ""
        except RuntimeError as error:
            refused = str(error)
        bpy.ops.view3d.view_all()
    tooltip = bpy.ops.armature_dynamics.simulate.get_rna_type().description
    found = {text: bpy.app.translations.pgettext_iface(text, context) for text, context in TEXTS.items()}
    found |= {"tooltip": bpy.app.translations.pgettext_tip(tooltip), "refused": refused}
    Path(sys.argv[sys.argv.index("--") + 1]).write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    area.spaces.active.show_region_ui = True
    bpy.app.timers.register(lambda: open_tab(area), first_interval=1.0)


def open_tab(area: bpy.types.Area) -> None:
    """The tab can be chosen once the sidebar has been drawn."""
    sidebar = next(region for region in area.regions if region.type == "UI")
    sidebar.active_panel_category = "Dynamics"
    sidebar.tag_redraw()


bpy.app.timers.register(show, first_interval=2.0)
