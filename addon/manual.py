"""The manual that comes along, and which part of it is about what: for help buttons, and for Online Manual in the menus
of settings and buttons."""

from __future__ import annotations

import re
from pathlib import Path

import bpy

PAGE = Path(__file__).resolve().parent.parent / "docs" / "manual" / "index.html"

ARMATURE, BONE, POSE = (
    "bpy.types.armature_dynamics_pg_armature.",
    "bpy.types.armature_dynamics_pg_bone.",
    "bpy.types.posebone.armature_dynamics_",
)

PARTS = {
    "pre-flight": ("check", "fix", "select_problem"),
    "body": ("set_role", "select_carried", "set_surface", "copy_collision"),
    "directing": ("follow", "direct", "key_directing", "sway", "motion_*"),
    "connections": ("pin", "connection_*"),
    "quality": ("quality_*",),
    "rigs": ("rig_preset_*",),
    "setup": ("*_setup", "copy_settings", "mirror_settings"),
    "grab": ("grab",),
    "three-actions": ("*",),
}
"""Parts of the manual, and the operators that each is about; the first that fits counts."""

SETTINGS = {
    "keys": tuple(ARMATURE + name for name in ("result", "key_*", "blend_*", "loop_*")),
    "three-actions": tuple(ARMATURE + name for name in ("frame_*", "enabled")),
    "scene": tuple(ARMATURE + name for name in ("use_ground", "ground_height", "scenery*", "substeps", "mute_*")),
    "viewport-display": (ARMATURE + "show_*",),
    "grab": ("bpy.types.armature_dynamics_pg_scene.record",),
    "adaptive": (
        *(ARMATURE + name for name in ("active_joints", "left_out")),
        "bpy.types.armature_dynamics_pg_scene.*",
    ),
    "connections": ("bpy.types.armature_dynamics_pg_connection.*", ARMATURE + "connection*"),
    "directing": (POSE + "*", ARMATURE + "weight", "bpy.types.armature_dynamics_pg_motion.*"),
    "body": (ARMATURE + "*", BONE + "*", "bpy.types.armature_dynamics_pg_surface.*"),
}
"""The same of settings."""


def slug(heading: str) -> str:
    """What a heading is called in an address."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def address(part: str = "") -> str:
    return PAGE.as_uri() + (f"#{part}" if part else "")


def mapping() -> tuple[str, tuple[tuple[str, str], ...]]:
    """Where Blender finds what is written about each operator and setting."""
    buttons = ((f"bpy.ops.armature_dynamics.{name}", part) for part, names in PARTS.items() for name in names)
    settings = ((name, part) for part, names in SETTINGS.items() for name in names)
    return address() + "#", (*buttons, *settings)


class ARMATURE_DYNAMICS_OT_help(bpy.types.Operator):
    """Open the manual where it is about this"""

    bl_idname = "armature_dynamics.help"
    bl_label = "Help"
    bl_options = {"INTERNAL"}

    part: bpy.props.StringProperty(name="Part", description="Which part of the manual", options={"HIDDEN"})

    def execute(self, context):
        bpy.ops.wm.url_open(url=address(self.part))
        return {"FINISHED"}


CLASSES = (ARMATURE_DYNAMICS_OT_help,)


def draw_help(layout, heading: str) -> None:
    """A button that opens the manual at a heading."""
    layout.operator("armature_dynamics.help", text="", icon="QUESTION", emboss=False).part = slug(heading)


def attach() -> None:
    bpy.utils.register_manual_map(mapping)


def detach() -> None:
    bpy.utils.unregister_manual_map(mapping)
