"""How a body moves as a whole, in a few numbers that fit any rig; and how much work a simulation is. Blender's own
preset menus save and load both."""

from __future__ import annotations

from pathlib import Path

import bpy
from bl_operators.presets import AddPresetBase
from bl_ui.utils import PresetPanel
from bpy.props import BoolProperty, FloatProperty, PointerProperty

from .directing import ADDITIVE, AMOUNT, FOLLOW, RATIO, WEIGHT, WORLD
from .operators import OnDynamic
from .role import SIMULATED

FOLDER = str(Path(__file__).resolve().parent.parent)
"""Where Blender finds `presets/armature_dynamics/`."""

DIRECTED = {
    "follow": FOLLOW,
    "ratio": RATIO,
    "world": WORLD,
    "additive": ADDITIVE,
    "amount": AMOUNT,
    "weight": WEIGHT,
}
"""The bones' settings that a motion has, by its own names."""


class ARMATURE_DYNAMICS_PG_motion(bpy.types.PropertyGroup):
    """A material of motion, on its way from bones to a preset or back."""

    root: FloatProperty(
        name="Root Follow",
        description="How firmly the topmost bones follow their animation, which holds the body up; 0 lets it fall [Hz]",
        default=0.0,
        min=0.0,
    )
    follow: FloatProperty(
        name="Follow", description="How firmly all other bones follow their animation [Hz]", default=0.0, min=0.0
    )
    ratio: FloatProperty(
        name="Damping Ratio", description="Whether bones swing about it: below 1 [damping ratio]", default=1.0, min=0.0
    )
    world: BoolProperty(name="In World Space", description="Whether bones keep their direction in the world")
    additive: BoolProperty(
        name="Additive", description="Whether it is secondary motion on top of the animation, which rests as animated"
    )
    amount: FloatProperty(
        name="Amount", description="How much secondary motion there is [factor]", default=1.0, min=0.0
    )
    weight: FloatProperty(name="Gravity", description="The share of gravity that acts on bones [factor]", default=1.0)
    damping: FloatProperty(
        name="Damping",
        description="How quickly limbs stop swinging by themselves, where all bones are meant [damping ratio]",
        default=0.5,
        min=0.0,
    )


def meant(context) -> list:
    """The simulated bones that a material is for: the selected ones in Pose Mode, else all of them."""
    armature = context.object
    chosen = armature.pose.bones
    if context.mode == "POSE":
        selected = {bone.name for bone in context.selected_pose_bones or () if bone.id_data == armature}
        chosen = [bone for bone in chosen if bone.name in selected]
    return [bone for bone in chosen if bone.armature_dynamics.role == SIMULATED]


def _is_root(bone) -> bool:
    return not any(above.armature_dynamics.role == SIMULATED for above in bone.parent_recursive)


def read(motion, context) -> None:
    """Takes the motion from the active bone, if that is meant, or the first one that is."""
    bones = meant(context) or list(context.object.pose.bones)
    roots, others = [bone for bone in bones if _is_root(bone)], [bone for bone in bones if not _is_root(bone)]
    active = context.active_pose_bone
    model = active if active in others else (others or roots)[0]
    for name, setting in DIRECTED.items():
        setattr(motion, name, getattr(model, setting))
    motion.root = getattr(roots[0], FOLLOW) if roots else 0.0
    motion.damping = context.object.armature_dynamics.damping


def give(motion, context) -> int:
    """Gives the bones that are meant the motion, and where those are all, the armature its damping; returns how many
    bones there are."""
    bones = meant(context)
    for bone in bones:
        for name, setting in DIRECTED.items():
            setattr(bone, setting, getattr(motion, name))
        if _is_root(bone):
            setattr(bone, FOLLOW, motion.root)
    if context.mode != "POSE":
        context.object.armature_dynamics.damping = motion.damping
    return len(bones)


class ARMATURE_DYNAMICS_PT_motion_presets(PresetPanel, bpy.types.Panel):
    bl_label = "Motion"
    preset_subdir = "armature_dynamics/motion"
    preset_operator = "script.execute_preset"
    preset_add_operator = "armature_dynamics.motion_preset_add"

    @classmethod
    def reset_cb(cls, context):
        # presets that people saved before do not know these
        for name in ("additive", "amount"):
            context.window_manager.armature_dynamics_motion.property_unset(name)

    @classmethod
    def post_cb(cls, context, filepath):
        give(context.window_manager.armature_dynamics_motion, context)


class ARMATURE_DYNAMICS_OT_motion_preset_add(OnDynamic, AddPresetBase, bpy.types.Operator):
    """Save how the bones move as a preset, or remove one"""

    bl_idname = "armature_dynamics.motion_preset_add"
    bl_label = "Add Motion Preset"
    bl_options = {"REGISTER", "INTERNAL"}
    preset_menu = "ARMATURE_DYNAMICS_PT_motion_presets"
    preset_subdir = "armature_dynamics/motion"
    preset_defines = ["motion = bpy.context.window_manager.armature_dynamics_motion"]
    preset_values = [f"motion.{name}" for name in ("root", *DIRECTED, "damping")]

    def pre_cb(self, context):
        read(context.window_manager.armature_dynamics_motion, context)


class ARMATURE_DYNAMICS_PT_quality_presets(PresetPanel, bpy.types.Panel):
    bl_label = "Quality"
    preset_subdir = "armature_dynamics/quality"
    preset_operator = "script.execute_preset"
    preset_add_operator = "armature_dynamics.quality_preset_add"


class ARMATURE_DYNAMICS_OT_quality_preset_add(OnDynamic, AddPresetBase, bpy.types.Operator):
    """Save how exactly the armature is simulated and keyed as a preset, or remove one"""

    bl_idname = "armature_dynamics.quality_preset_add"
    bl_label = "Add Quality Preset"
    bl_options = {"REGISTER", "INTERNAL"}
    preset_menu = "ARMATURE_DYNAMICS_PT_quality_presets"
    preset_subdir = "armature_dynamics/quality"
    preset_defines = [
        "settings = bpy.context.object.armature_dynamics",
        "shared = bpy.context.scene.armature_dynamics",
    ]
    preset_values = [
        *(f"settings.{name}" for name in ("substeps", "key_mode", "key_step", "key_distance", "key_angle")),
        *(f"shared.{name}" for name in ("adaptive", "threshold", "joints", "budget", "budget_when_baking")),
    ]


CLASSES = (
    ARMATURE_DYNAMICS_PG_motion,
    ARMATURE_DYNAMICS_PT_motion_presets,
    ARMATURE_DYNAMICS_OT_motion_preset_add,
    ARMATURE_DYNAMICS_PT_quality_presets,
    ARMATURE_DYNAMICS_OT_quality_preset_add,
)


def attach() -> None:
    """Lets Blender know the motion that is on its way, and the presets that come along; after the classes."""
    bpy.types.WindowManager.armature_dynamics_motion = PointerProperty(
        type=ARMATURE_DYNAMICS_PG_motion, name="Motion", description="The material of motion of a preset"
    )
    bpy.utils.register_preset_path(FOLDER)


def detach() -> None:
    bpy.utils.unregister_preset_path(FOLDER)
    del bpy.types.WindowManager.armature_dynamics_motion
