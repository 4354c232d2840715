"""Panels: the sidebar tab Dynamics, and the active bone's role in its properties."""

import textwrap
from functools import lru_cache

import bpy

from . import readings, stage
from .adaptive_settings import BUDGET, OFF, SETTING
from .collider import NONE
from .keying import REDUCED, STEP
from .manual import draw_help
from .motion import ARMATURE_DYNAMICS_PT_quality_presets
from .override import refusal
from .rig_menu import ARMATURE_DYNAMICS_PT_rig_presets
from .role import IGNORED
from .surface import VALUES, materials
from .words import said

LETTER = 7.5
"""Width of a letter [pixels] that lines of text are broken for."""


def write(layout, context, text: str) -> None:
    """Draws lines of text in the language of the interface, broken where the region ends."""
    width = max(20, int(context.region.width / (LETTER * context.preferences.system.ui_scale)))
    for lines in _broken(said(text), width):
        column = layout.column(align=True)
        column.scale_y = 0.7
        for line in lines:
            column.label(text=line)


@lru_cache(maxsize=256)
def _broken(text: str, width: int) -> list[list[str]]:
    """The lines of each paragraph; panels are drawn often, and their text changes seldom."""
    return [textwrap.wrap(paragraph, width) for paragraph in text.splitlines()]


class ARMATURE_DYNAMICS_PT_sidebar(bpy.types.Panel):
    bl_label = "Armature Dynamics"
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "Dynamics"

    def draw_header_preset(self, context):
        draw_help(self.layout, "three-actions")

    def draw(self, context):
        layout = self.layout
        armature = context.object
        if armature is None or armature.type != "ARMATURE":
            layout.label(text="Select an armature", icon="INFO")
            return
        if not armature.is_editable:
            write(layout, context, refusal(armature.name))
        settings = armature.armature_dynamics
        if not settings.enabled:
            layout.operator("armature_dynamics.make_dynamic", icon="ARMATURE_DATA")
            ARMATURE_DYNAMICS_PT_rig_presets.draw_menu(layout, text="Rig")
            return
        row = layout.row(align=True)
        row.prop(settings, "frame_start")
        row.prop(settings, "frame_end")
        ARMATURE_DYNAMICS_PT_quality_presets.draw_menu(layout, text="Quality")
        column = layout.column()
        column.scale_y = 1.5
        column.operator("armature_dynamics.simulate", icon="PHYSICS")
        if settings.state == stage.SIMULATED:
            row = layout.row(align=True)
            row.operator("armature_dynamics.keep", icon="CHECKMARK")
            row.operator("armature_dynamics.discard", icon="TRASH")
        elif settings.state == stage.KEPT:
            layout.operator("armature_dynamics.restore_source", icon="LOOP_BACK")
        layout.operator("armature_dynamics.remove", icon="X")


def draw_surface(layout, settings) -> None:
    """The values of a surface, and a menu of materials."""
    column = layout.column()
    column.context_pointer_set("armature_dynamics_surface", settings)
    column.menu("ARMATURE_DYNAMICS_MT_surface")
    for name in VALUES:
        column.prop(settings, name)


class ARMATURE_DYNAMICS_MT_surface(bpy.types.Menu):
    bl_label = "Surface"
    bl_description = "Take the values of a material"

    def draw(self, context):
        for name in materials():
            self.layout.operator("armature_dynamics.set_surface", text=name.title()).material = name


class SidebarPart:
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "Dynamics"
    bl_parent_id = "ARMATURE_DYNAMICS_PT_sidebar"
    bl_order = 1

    @classmethod
    def poll(cls, context):
        armature = context.object
        return armature is not None and armature.type == "ARMATURE" and armature.armature_dynamics.enabled

    def draw_header_preset(self, context):
        draw_help(self.layout, type(self).bl_label)


class ARMATURE_DYNAMICS_PT_body(SidebarPart, bpy.types.Panel):
    bl_label = "Body"

    def draw(self, context):
        layout = self.layout
        layout.use_property_split, layout.use_property_decorate = True, False
        settings = context.object.armature_dynamics
        ARMATURE_DYNAMICS_PT_rig_presets.draw_menu(layout, text="Rig")
        for name in ("mass", "life_scale", "damping", "tone"):
            layout.prop(settings, name)
        draw_surface(layout, settings)
        if settings.root_control:
            layout.prop_search(settings, "root_control", context.object.pose, "bones")
        layout.prop(settings, "use_rig_limits")
        layout.prop(settings, "self_collision")
        layout.prop(settings, "meets")
        layout.prop(settings, "layers")


class ARMATURE_DYNAMICS_PT_scene(SidebarPart, bpy.types.Panel):
    bl_label = "Scene"

    def draw(self, context):
        layout = self.layout
        layout.use_property_split, layout.use_property_decorate = True, False
        settings = context.object.armature_dynamics
        layout.prop(settings, "use_ground")
        row = layout.row()
        row.active = settings.use_ground
        row.prop(settings, "ground_height")
        layout.prop(settings, "scenery")
        draw_surface(layout, settings.scenery_surface)
        layout.prop(settings, "substeps")
        layout.prop(settings, "mute_constraints")
        layout.prop(settings, "mute_drivers")


class ARMATURE_DYNAMICS_PT_adaptive(SidebarPart, bpy.types.Panel):
    bl_label = "Adaptive"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context):
        layout = self.layout
        layout.use_property_split, layout.use_property_decorate = True, False
        shared = context.scene.armature_dynamics
        layout.prop(shared, "adaptive", text="Mode")
        if shared.adaptive != OFF:
            layout.prop(shared, SETTING[shared.adaptive])
        if shared.adaptive == BUDGET:
            layout.prop(shared, "budget_when_baking")


class ARMATURE_DYNAMICS_PT_keys(SidebarPart, bpy.types.Panel):
    bl_label = "Keys"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context):
        layout = self.layout
        layout.use_property_split, layout.use_property_decorate = True, False
        settings = context.object.armature_dynamics
        layout.prop(settings, "result")
        layout.prop(settings, "loop_most")
        layout.prop(settings, "key_mode")
        for name in {STEP: ("key_step",), REDUCED: ("key_distance", "key_angle")}.get(settings.key_mode, ()):
            layout.prop(settings, name)
        column = layout.column(align=True)
        column.prop(settings, "blend_in")
        column.prop(settings, "blend_out")
        layout.prop(settings, "use_curves")


class ARMATURE_DYNAMICS_PT_display(SidebarPart, bpy.types.Panel):
    bl_label = "Viewport Display"
    bl_options = {"DEFAULT_CLOSED"}
    bl_order = 2

    def draw(self, context):
        layout = self.layout
        layout.use_property_split, layout.use_property_decorate = True, False
        settings = context.object.armature_dynamics
        for name in ("shapes", "joints", "mass", "contacts", "activity", "ghost"):
            layout.prop(settings, f"show_{name}")
        layout.prop(settings, "live_every")


class ARMATURE_DYNAMICS_PT_result(SidebarPart, bpy.types.Panel):
    bl_label = "Report"
    bl_order = 2

    @classmethod
    def poll(cls, context):
        return super().poll(context) and bool(context.object.armature_dynamics.summary)

    def draw(self, context):
        settings = context.object.armature_dynamics
        write(self.layout, context, settings.summary)
        if settings.use_curves and settings.state != stage.SOURCE:
            column = self.layout.column()
            column.use_property_split, column.use_property_decorate, column.enabled = True, False, False
            for name in readings.NAMES:
                column.prop(settings, name)


class ARMATURE_DYNAMICS_PT_warnings(SidebarPart, bpy.types.Panel):
    bl_label = "Warnings"
    bl_order = 2

    @classmethod
    def poll(cls, context):
        return super().poll(context) and bool(context.object.armature_dynamics.warnings)

    def draw(self, context):
        write(self.layout, context, context.object.armature_dynamics.warnings)
        self.layout.operator("armature_dynamics.select_carried", icon="RESTRICT_SELECT_OFF")


class ARMATURE_DYNAMICS_PT_bone(bpy.types.Panel):
    bl_label = "Armature Dynamics"
    bl_space_type = "PROPERTIES"
    bl_region_type = "WINDOW"
    bl_context = "bone"

    @classmethod
    def poll(cls, context):
        armature = context.object
        return (
            context.bone is not None
            and armature is not None
            and armature.type == "ARMATURE"
            and armature.armature_dynamics.enabled
        )

    def draw(self, context):
        layout = self.layout
        layout.use_property_split, layout.use_property_decorate = True, False
        bone = context.object.pose.bones.get(context.bone.name)
        if bone is None:
            return
        layout.prop(bone.armature_dynamics, "role", expand=True)
        layout.operator("armature_dynamics.set_role", icon="PASTEDOWN")
        if bone.armature_dynamics.control:
            layout.prop_search(bone.armature_dynamics, "control", context.object.pose, "bones")
        for problem in context.object.armature_dynamics.problems:
            if bone.name in problem.bones.splitlines():
                write(layout, context, problem.text)
        if bone.armature_dynamics.role != IGNORED:
            _draw_body(layout, bone.armature_dynamics)
            _draw_collision(layout, bone.armature_dynamics)


def _draw_body(layout, own) -> None:
    layout.prop(own, "mass_share")
    layout.prop(own, "use_limits")
    if own.use_limits:
        layout.prop(own, "limit_lower")
        layout.prop(own, "limit_upper")


def _draw_collision(layout, own) -> None:
    column = layout.column()
    column.prop(own, "shape")
    if own.shape == NONE:
        return
    column.prop(own, "shape_length")
    column.prop(own, "shape_thickness")
    layout.prop(own, "use_surface")
    if own.use_surface:
        draw_surface(layout, own)
    layout.prop(own, "use_layers")
    if own.use_layers:
        layout.prop(own, "layers")
    layout.operator("armature_dynamics.copy_collision", icon="PASTEDOWN")


CLASSES = (
    ARMATURE_DYNAMICS_MT_surface,
    ARMATURE_DYNAMICS_PT_sidebar,
    ARMATURE_DYNAMICS_PT_body,
    ARMATURE_DYNAMICS_PT_scene,
    ARMATURE_DYNAMICS_PT_adaptive,
    ARMATURE_DYNAMICS_PT_keys,
    ARMATURE_DYNAMICS_PT_display,
    ARMATURE_DYNAMICS_PT_result,
    ARMATURE_DYNAMICS_PT_warnings,
    ARMATURE_DYNAMICS_PT_bone,
)
