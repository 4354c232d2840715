"""The menu of rigs: Blender's own preset menu, on files that tell what a kind of rig is."""

from __future__ import annotations

import os
from pathlib import Path

import bpy
from bl_operators.presets import AddPresetBase
from bl_ui.utils import PresetPanel

from . import preflight, rig_preset
from .operators import OnArmature, OnDynamic
from .problem import ConversionError
from .words import said

FOLDER = "armature_dynamics/rig"
"""Where Blender finds them, below each of its folders of presets."""

KIND = ".json"


class ARMATURE_DYNAMICS_PT_rig_presets(PresetPanel, bpy.types.Panel):
    bl_label = "Rig"
    preset_subdir = FOLDER
    preset_extensions = {KIND}
    preset_operator = "armature_dynamics.rig_preset_apply"
    preset_add_operator = "armature_dynamics.rig_preset_add"


def give(operator, armature, path: Path) -> set[str]:
    """Gives an armature the preset in a file, for an operator that tells what happened."""
    begun = armature.armature_dynamics.enabled
    try:
        missing = rig_preset.apply(armature, path)
    except ConversionError as error:
        operator.report({"ERROR"}, said(str(error)))
        return {"CANCELLED"}
    if missing:
        operator.report({"WARNING"}, said(rig_preset.told(missing)))
    found = 0 if begun else preflight.check(armature)
    if found:
        operator.report({"WARNING"}, said(f"Problems found: {found}; see Pre-flight in the sidebar"))
    return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_rig_preset_apply(OnArmature, bpy.types.Operator):
    """Take roles, shares of the mass, limits, shapes and controls of the bones from this preset, and make the armature
    dynamic if it is not"""

    bl_idname = "armature_dynamics.rig_preset_apply"
    bl_label = "Apply Rig Preset"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}

    filepath: bpy.props.StringProperty(subtype="FILE_PATH", options={"HIDDEN", "SKIP_SAVE"})

    def execute(self, context):
        return give(self, context.object, Path(self.filepath))


class ARMATURE_DYNAMICS_OT_rig_preset_add(OnDynamic, bpy.types.Operator):
    """Save what the bones of this armature are as a preset for others with such a rig, or remove one"""

    bl_idname = "armature_dynamics.rig_preset_add"
    bl_label = "Add Rig Preset"
    bl_options = {"REGISTER", "INTERNAL"}

    name: bpy.props.StringProperty(options={"HIDDEN", "SKIP_SAVE"})
    remove_name: bpy.props.BoolProperty(options={"HIDDEN", "SKIP_SAVE"})

    def execute(self, context):
        return self._remove() if self.remove_name else self._add(context)

    def _add(self, context):
        name = AddPresetBase.as_filename(self.name)
        if not name or bpy.utils.preset_find(name, FOLDER, ext=KIND):
            text = f"there is a preset {self.name!r} already; choose another name" if name else "Type a name first"
            self.report({"ERROR"}, said(text))
            return {"CANCELLED"}
        folder = bpy.utils.user_resource("SCRIPTS", path=os.path.join("presets", FOLDER), create=True)
        try:
            rig_preset.write(context.object, Path(folder, name + KIND))
        except ConversionError as error:
            self.report({"ERROR"}, said(str(error)))
            return {"CANCELLED"}
        return {"FINISHED"}

    def _remove(self):
        path = bpy.utils.preset_find(self.name, FOLDER, display_name=True, ext=KIND)
        own = bpy.utils.user_resource("SCRIPTS", path=os.path.join("presets", FOLDER))
        if not path or Path(path).parent != Path(own):
            self.report({"ERROR"}, said(f"the preset {self.name!r} comes along; only presets of your own are removed"))
            return {"CANCELLED"}
        Path(path).unlink()
        return {"FINISHED"}


CLASSES = (
    ARMATURE_DYNAMICS_PT_rig_presets,
    ARMATURE_DYNAMICS_OT_rig_preset_apply,
    ARMATURE_DYNAMICS_OT_rig_preset_add,
)
