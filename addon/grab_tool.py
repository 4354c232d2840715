"""Where Grab is found: in the toolbar of the 3D view, in Object and Pose Mode, and in the sidebar."""

import bpy

from .panel import SidebarPart


class _GrabTool:
    bl_space_type = "VIEW_3D"
    bl_label = "Grab"
    bl_description = (
        "Let physics move the character as quickly as in life, and pull it: press on a bone or on its skin, and drag"
    )
    bl_icon = "brush.uv_sculpt.grab"
    bl_widget = None
    bl_keymap = (
        ("armature_dynamics.grab", {"type": "LEFTMOUSE", "value": "PRESS"}, {"properties": [("at_once", True)]}),
    )

    def draw_settings(context, layout, tool):
        layout.operator("armature_dynamics.grab", icon="PLAY")
        layout.prop(context.scene.armature_dynamics, "record")


class GrabInObjectMode(_GrabTool, bpy.types.WorkSpaceTool):
    bl_context_mode = "OBJECT"
    bl_idname = "armature_dynamics.grab_objects"


class GrabInPoseMode(_GrabTool, bpy.types.WorkSpaceTool):
    bl_context_mode = "POSE"
    bl_idname = "armature_dynamics.grab_bones"


TOOLS = (GrabInObjectMode, GrabInPoseMode)


class ARMATURE_DYNAMICS_PT_grab(SidebarPart, bpy.types.Panel):
    bl_label = "Grab"
    bl_order = 0

    def draw(self, context):
        row = self.layout.row(align=True)
        row.operator("armature_dynamics.grab", icon="PLAY")
        row.prop(context.scene.armature_dynamics, "record", toggle=True)


CLASSES = (ARMATURE_DYNAMICS_PT_grab,)


def attach() -> None:
    # toolbars are of windows
    if not bpy.app.background:
        for tool in TOOLS:
            bpy.utils.register_tool(tool, separator=tool is TOOLS[0])


def detach() -> None:
    if not bpy.app.background:
        for tool in reversed(TOOLS):
            bpy.utils.unregister_tool(tool)
