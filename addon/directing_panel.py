"""The sidebar's part on directing: what the active bone follows, and the same for others."""

import bpy

from . import directing
from .fcurve import bone_path
from .motion import ARMATURE_DYNAMICS_PT_motion_presets
from .operators import OnDynamic
from .panel import SidebarPart
from .role import SIMULATED
from .words import said

WHERE = (
    ("SELECTED", "Selected", "The selected bones"),
    ("COLLECTION", "Collection", "The bones of the active bone's collections, and of the collections within"),
    ("ALL", "All", "Every simulated bone"),
)

FIRMNESS = (("Limp", 0.0), ("Loose", 2.0), ("Firm", 8.0))
"""Names of frequencies [Hz]."""


def _active(context) -> str | None:
    """The name of the active bone of the armature."""
    armature, bone = context.object, context.active_pose_bone
    if bone and bone.id_data == armature:
        return bone.name
    bone = armature.data.bones.active
    return bone.name if bone else None


def _bones(context, where: str) -> list[str]:
    """The names of the bones that are simulated or animated, which are meant."""
    armature = context.object
    if where == "SELECTED":
        return [bone.name for bone in context.selected_pose_bones or () if bone.id_data == armature]
    if where == "COLLECTION" and (name := _active(context)):
        collections = armature.data.bones[name].collections
        return list(dict.fromkeys(bone.name for collection in collections for bone in collection.bones_recursive))
    return [bone.name for bone in armature.pose.bones if bone.armature_dynamics.role == SIMULATED]


class _OnBones(OnDynamic):
    where: bpy.props.EnumProperty(name="Bones", description="Which bones", items=WHERE, default="ALL")


class ARMATURE_DYNAMICS_OT_follow(_OnBones, bpy.types.Operator):
    """Let bones follow their animation so firmly: the selected ones in Pose Mode, else all that are simulated"""

    bl_idname = "armature_dynamics.follow"
    bl_label = "Follow"

    frequency: bpy.props.FloatProperty(
        name="Frequency", description="How firmly, 0 is limp [Hz]", default=8.0, min=0.0, soft_max=20.0
    )

    def execute(self, context):
        for name in _bones(context, self.where):
            context.object.pose.bones[name].armature_dynamics_follow = self.frequency
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_direct(_OnBones, bpy.types.Operator):
    """Give other bones the active one's settings for directing"""

    bl_idname = "armature_dynamics.direct"
    bl_label = "Copy to Bones"

    def execute(self, context):
        bones, name = context.object.pose.bones, _active(context)
        if name is None:
            self.report({"ERROR"}, "No bone is active; select one in Pose Mode")
            return {"CANCELLED"}
        for other in _bones(context, self.where):
            for setting in directing.SETTINGS:
                setattr(bones[other], setting, getattr(bones[name], setting))
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_key_directing(_OnBones, bpy.types.Operator):
    """Set keys at the current frame on what bones follow"""

    bl_idname = "armature_dynamics.key_directing"
    bl_label = "Key Directing"

    setting: bpy.props.EnumProperty(
        name="Setting",
        description="What gets keys",
        items=(
            (directing.FOLLOW, "Follow", "How firmly they follow their animation"),
            (directing.AMOUNT, "Amount", "How much secondary motion there is"),
            (directing.HOLD, "Animated", "Whether they move as animated"),
            (directing.WEIGHT, "Gravity", "The share of gravity that acts"),
        ),
    )

    def execute(self, context):
        for name in _bones(context, self.where):
            path = bone_path(name, self.setting)
            context.object.keyframe_insert(path, frame=context.scene.frame_current, group=name)
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_sway(OnDynamic, bpy.types.Operator):
    """Let the active bone, and all that hangs from it, sway about its animation"""

    bl_idname = "armature_dynamics.sway"
    bl_label = "Sway"

    kind: bpy.props.StringProperty(name="Kind", description="Which of the ways to sway", default="tail")

    @classmethod
    def description(cls, context, properties):
        return said(directing.sways().get(properties.kind, {}).get("does", ""))

    def execute(self, context):
        name = _active(context)
        if name is None or self.kind not in directing.sways():
            self.report({"ERROR"}, "No bone is active, or there is no such way to sway; select a bone in Pose Mode")
            return {"CANCELLED"}
        directing.sway(context.object, name, self.kind)
        return {"FINISHED"}


class ARMATURE_DYNAMICS_MT_sway(bpy.types.Menu):
    bl_label = "Chain from Here"
    bl_description = "Let this bone, and all that hangs from it, sway about its animation"

    def draw(self, context):
        for kind, way in directing.sways().items():
            self.layout.operator("armature_dynamics.sway", text=way["title"]).kind = kind


class ARMATURE_DYNAMICS_PT_directing(SidebarPart, bpy.types.Panel):
    bl_label = "Directing"
    bl_order = 1

    def draw(self, context):
        layout, armature = self.layout, context.object
        posing = context.mode == "POSE"
        row = layout.row(align=True)
        for text, frequency in FIRMNESS:
            button = row.operator("armature_dynamics.follow", text=text)
            button.frequency, button.where = frequency, "SELECTED" if posing else "ALL"
        ARMATURE_DYNAMICS_PT_motion_presets.draw_menu(layout, text="Motion")
        column = layout.column()
        column.use_property_split = True
        column.prop(armature.armature_dynamics, "weight")
        name = _active(context)
        if name is None or name not in armature.pose.bones:
            layout.label(text="Select a bone in Pose Mode", icon="INFO")
            return
        layout.label(text=name, icon="BONE_DATA")
        own = armature.pose.bones[name]
        column = layout.column()
        column.use_property_split = True
        additive = getattr(own, directing.ADDITIVE)
        idle = directing.WEIGHT if additive else directing.AMOUNT
        for setting in directing.SETTINGS:
            row = column.row()
            row.active = setting != idle
            row.prop(own, setting)
        rows = [("Copy to", "direct", None), ("Key Follow", "key_directing", directing.FOLLOW)]
        if additive:
            rows.append(("Key Amount", "key_directing", directing.AMOUNT))
        for text, operator, setting in rows:
            row = layout.row(align=True)
            row.label(text=text)
            for where, label, _ in WHERE:
                if where != "SELECTED" or posing:
                    button = row.operator(f"armature_dynamics.{operator}", text=label)
                    button.where = where
                    if setting:
                        button.setting = setting
        layout.menu("ARMATURE_DYNAMICS_MT_sway", icon="CURVE_PATH")
        layout.operator("armature_dynamics.pin", icon="PINNED")


CLASSES = (
    ARMATURE_DYNAMICS_OT_follow,
    ARMATURE_DYNAMICS_OT_direct,
    ARMATURE_DYNAMICS_OT_key_directing,
    ARMATURE_DYNAMICS_OT_sway,
    ARMATURE_DYNAMICS_MT_sway,
    ARMATURE_DYNAMICS_PT_directing,
)
