"""The sidebar's part on whole setups: to files, from files, to other bones and to the other side."""

from pathlib import Path

import bpy
from bpy_extras.io_utils import ExportHelper, ImportHelper

from . import data_file, rig_menu, rig_preset, setup, twin
from .operators import OnArmature, OnDynamic
from .panel import SidebarPart
from .problem import ConversionError
from .words import said


class ARMATURE_DYNAMICS_OT_export_setup(OnDynamic, ExportHelper, bpy.types.Operator):
    """Write all settings of this armature, its bones and connections to a file. Keys of settings stay in the actions"""

    bl_idname = "armature_dynamics.export_setup"
    bl_label = "Export Setup"

    filename_ext = ".json"
    filter_glob: bpy.props.StringProperty(default="*.json", options={"HIDDEN"})

    def execute(self, context):
        try:
            setup.write_file(context.object, Path(self.filepath))
        except ConversionError as error:
            self.report({"ERROR"}, said(str(error)))
            return {"CANCELLED"}
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_import_setup(OnArmature, ImportHelper, bpy.types.Operator):
    """Take all settings of this armature, or what a rig's bones are, from a file; bones are found by name"""

    bl_idname = "armature_dynamics.import_setup"
    bl_label = "Import Setup"
    bl_options = {"REGISTER", "UNDO"}

    filename_ext = ".json"
    filter_glob: bpy.props.StringProperty(default="*.json", options={"HIDDEN"})

    def execute(self, context):
        path = Path(self.filepath)
        try:
            if data_file.load(path).get("format") == rig_preset.FORMAT:
                return rig_menu.give(self, context.object, path)
            missing = setup.apply(context.object, setup.read_file(path))
        except ConversionError as error:
            self.report({"ERROR"}, said(str(error)))
            return {"CANCELLED"}
        for line in missing:
            self.report({"WARNING"}, said(line))
        return {"FINISHED"}


def _selected(context) -> list[str]:
    """The names of the armature's bones that are selected in Pose Mode."""
    bones = context.selected_pose_bones if context.mode == "POSE" else ()
    return [bone.name for bone in bones or () if bone.id_data == context.object]


class ARMATURE_DYNAMICS_OT_copy_settings(OnArmature, bpy.types.Operator):
    """Give the selected bones all settings of the active one: role, collision and directing"""

    bl_idname = "armature_dynamics.copy_settings"
    bl_label = "Copy Settings to Selected Bones"

    @classmethod
    def poll(cls, context):
        if not super().poll(context):
            return False
        if context.mode != "POSE" or not context.active_pose_bone:
            cls.poll_message_set(said("Select bones in Pose Mode"))
            return False
        return True

    def execute(self, context):
        done = twin.copy(context.object, context.active_pose_bone.name, _selected(context))
        self.report({"INFO"}, said(f"{done} bones got the settings"))
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_mirror_settings(OnDynamic, bpy.types.Operator):
    """Give the bones on the other side all settings of the selected ones, their limits and connections, mirrored. In
    Object Mode those on the right get the settings of the left"""

    bl_idname = "armature_dynamics.mirror_settings"
    bl_label = "Mirror Settings"

    def execute(self, context):
        armature = context.object
        names = _selected(context) if context.mode == "POSE" else twin.left(armature)
        try:
            done = twin.mirror(armature, names)
        except ConversionError as error:
            self.report({"ERROR"}, said(str(error)))
            return {"CANCELLED"}
        self.report({"INFO"}, said(f"{done} bones got the settings of the other side"))
        return {"FINISHED"}


class ARMATURE_DYNAMICS_PT_setup(SidebarPart, bpy.types.Panel):
    bl_label = "Setup"
    bl_options = {"DEFAULT_CLOSED"}
    bl_order = 3

    def draw(self, context):
        layout = self.layout
        row = layout.row(align=True)
        row.operator("armature_dynamics.import_setup", text="Import", icon="IMPORT")
        row.operator("armature_dynamics.export_setup", text="Export", icon="EXPORT")
        layout.operator("armature_dynamics.copy_settings", icon="PASTEDOWN")
        layout.operator("armature_dynamics.mirror_settings", icon="MOD_MIRROR")


CLASSES = (
    ARMATURE_DYNAMICS_OT_export_setup,
    ARMATURE_DYNAMICS_OT_import_setup,
    ARMATURE_DYNAMICS_OT_copy_settings,
    ARMATURE_DYNAMICS_OT_mirror_settings,
    ARMATURE_DYNAMICS_PT_setup,
)
