"""Panels: the sidebar tab Dynamics, and the active bone's role in its properties."""

import textwrap

import bpy

from . import stage
from .role import SIMULATED

LETTER = 7.5
"""Width of a letter [pixels] that lines of text are broken for."""


def _write(layout, context, text: str) -> None:
    """Draws lines of text, broken where the region ends."""
    width = max(20, int(context.region.width / (LETTER * context.preferences.system.ui_scale)))
    for paragraph in text.splitlines():
        column = layout.column(align=True)
        column.scale_y = 0.7
        for line in textwrap.wrap(paragraph, width):
            column.label(text=line)


class ARMATURE_DYNAMICS_PT_sidebar(bpy.types.Panel):
    bl_label = "Armature Dynamics"
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "Dynamics"

    def draw(self, context):
        layout = self.layout
        armature = context.object
        if armature is None or armature.type != "ARMATURE":
            layout.label(text="Select an armature", icon="INFO")
            return
        settings = armature.armature_dynamics
        if not settings.enabled:
            layout.operator("armature_dynamics.make_dynamic", icon="ARMATURE_DATA")
            return
        row = layout.row(align=True)
        row.prop(settings, "frame_start")
        row.prop(settings, "frame_end")
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


class SidebarPart:
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "Dynamics"
    bl_parent_id = "ARMATURE_DYNAMICS_PT_sidebar"

    @classmethod
    def poll(cls, context):
        armature = context.object
        return armature is not None and armature.type == "ARMATURE" and armature.armature_dynamics.enabled


class ARMATURE_DYNAMICS_PT_body(SidebarPart, bpy.types.Panel):
    bl_label = "Body"

    def draw(self, context):
        layout = self.layout
        layout.use_property_split = True
        settings = context.object.armature_dynamics
        for name in ("mass", "damping", "tone", "friction", "restitution"):
            layout.prop(settings, name)


class ARMATURE_DYNAMICS_PT_scene(SidebarPart, bpy.types.Panel):
    bl_label = "Scene"

    def draw(self, context):
        layout = self.layout
        layout.use_property_split = True
        settings = context.object.armature_dynamics
        layout.prop(settings, "use_ground")
        row = layout.row()
        row.active = settings.use_ground
        row.prop(settings, "ground_height")
        layout.prop(settings, "scenery")
        layout.prop(settings, "substeps")
        layout.prop(settings, "mute_constraints")


class ARMATURE_DYNAMICS_PT_result(SidebarPart, bpy.types.Panel):
    bl_label = "Result"
    bl_order = 2

    @classmethod
    def poll(cls, context):
        return super().poll(context) and bool(context.object.armature_dynamics.summary)

    def draw(self, context):
        _write(self.layout, context, context.object.armature_dynamics.summary)


class ARMATURE_DYNAMICS_PT_warnings(SidebarPart, bpy.types.Panel):
    bl_label = "Warnings"
    bl_order = 2

    @classmethod
    def poll(cls, context):
        return super().poll(context) and bool(context.object.armature_dynamics.warnings)

    def draw(self, context):
        _write(self.layout, context, context.object.armature_dynamics.warnings)


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
        layout.use_property_split = True
        bone = context.object.pose.bones.get(context.bone.name)
        if bone is None:
            return
        layout.prop(bone.armature_dynamics, "role", expand=True)
        layout.operator("armature_dynamics.set_role", icon="PASTEDOWN")
        if bone.armature_dynamics.role == SIMULATED and any(not constraint.mute for constraint in bone.constraints):
            layout.label(text="Its constraints fight the keys: see Mute Constraints", icon="ERROR")


CLASSES = (
    ARMATURE_DYNAMICS_PT_sidebar,
    ARMATURE_DYNAMICS_PT_body,
    ARMATURE_DYNAMICS_PT_scene,
    ARMATURE_DYNAMICS_PT_result,
    ARMATURE_DYNAMICS_PT_warnings,
    ARMATURE_DYNAMICS_PT_bone,
)
