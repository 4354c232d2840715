"""The list of an armature's connections in the sidebar: adding, removing and editing them."""

import bpy

from . import switch
from .cast import unused
from .connection import called
from .operators import OnArmature
from .panel import SidebarPart


def add(armature, bone: str, target=None, target_bone: str = ""):
    """A new connection of a bone to a bone of an armature, to an object, or to the world; returns it."""
    settings = armature.armature_dynamics
    taken = {connection.name for connection in settings.connections}
    connection = settings.connections.add()
    connection.bone = bone
    if target:
        connection.target_kind = "BONE" if target.type == "ARMATURE" else "OBJECT"
        connection.target, connection.target_bone = target, target_bone
    connection.name = unused(called(connection), taken)
    settings.connection_index = len(settings.connections) - 1
    return connection


def pin(armature, bone: str, target=None, target_bone: str = "", at: str = "TAIL"):
    """A new connection that pulls a bone's end to a bone's head, to an object's origin, or to where it starts in the
    world; returns it."""
    connection = add(armature, bone, target, target_bone)
    connection.at, connection.method = at, "PULL"
    connection.target_at = "HEAD" if target else "THERE"
    return connection


def remove(armature, index: int) -> None:
    """Removes a connection, its keyframes and its drivers."""
    settings = armature.armature_dynamics
    switch.forget(armature, index)
    settings.connections.remove(index)
    settings.connection_index = max(0, min(settings.connection_index, len(settings.connections) - 1))


def _active_bone(armature):
    bones = armature.data.bones
    return bones.active or bones[0]


def _active_name(context) -> str:
    bone = context.active_pose_bone
    # the active pose bone may be another armature's
    return bone.name if bone and bone.id_data == context.object else _active_bone(context.object).name


def _other_end(context) -> tuple:
    """What else is selected: an object and, where that is an armature, the name of a bone of it. Another bone of the
    same armature is meant where it is the only one: whoever comes from Edit Mode has all of them selected."""
    armature = context.object
    bones = [bone for bone in context.selected_pose_bones or () if bone != context.active_pose_bone]
    for bone in bones:
        if bone.id_data != armature:
            return bone.id_data, bone.name
    for thing in context.selected_objects:
        if thing != armature:
            named = thing.type == "ARMATURE" and thing.data.bones
            return thing, _active_bone(thing).name if named else ""
    return (armature, bones[0].name) if len(bones) == 1 else (None, "")


class _OnABone(OnArmature):
    @classmethod
    def poll(cls, context):
        return super().poll(context) and bool(context.object.data.bones)


class ARMATURE_DYNAMICS_OT_connection_add(_OnABone, bpy.types.Operator):
    """Connect the active bone: to the other bone or object that is selected, else to the world"""

    bl_idname = "armature_dynamics.connection_add"
    bl_label = "Add Connection"

    def execute(self, context):
        add(context.object, _active_name(context), *_other_end(context))
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_pin(_OnABone, bpy.types.Operator):
    """Pull the end of the active bone to the other object or bone that is selected, else to where it is at the start
    frame. Keys of Enabled turn it on and off; the method Exact holds it without give"""

    bl_idname = "armature_dynamics.pin"
    bl_label = "Pin"

    at: bpy.props.EnumProperty(
        name="End",
        description="Which end of the bone is pinned",
        items=(("TAIL", "Tail", "The bone's tail"), ("HEAD", "Head", "The bone's head")),
    )

    def execute(self, context):
        armature = context.object
        pin(armature, _active_name(context), *_other_end(context), at=self.at)
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_connection_remove(OnArmature, bpy.types.Operator):
    """Remove the connection and its keyframes"""

    bl_idname = "armature_dynamics.connection_remove"
    bl_label = "Remove Connection"

    @classmethod
    def poll(cls, context):
        if not super().poll(context):
            return False
        settings = context.object.armature_dynamics
        return settings.connection_index < len(settings.connections)

    def execute(self, context):
        remove(context.object, context.object.armature_dynamics.connection_index)
        return {"FINISHED"}


class ARMATURE_DYNAMICS_UL_connections(bpy.types.UIList):
    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index=0):
        layout.prop(item, "name", text="", emboss=False, icon="LINKED" if item.enabled else "UNLINKED")
        layout.prop(item, "enabled", text="")


class ARMATURE_DYNAMICS_PT_connections(SidebarPart, bpy.types.Panel):
    bl_label = "Connections"
    bl_order = 1

    def draw(self, context):
        layout = self.layout
        armature = context.object
        settings = armature.armature_dynamics
        row = layout.row()
        row.template_list(
            "ARMATURE_DYNAMICS_UL_connections", "", settings, "connections", settings, "connection_index", rows=3
        )
        column = row.column(align=True)
        column.operator("armature_dynamics.connection_add", text="", icon="ADD")
        column.operator("armature_dynamics.connection_remove", text="", icon="REMOVE")
        if settings.connection_index < len(settings.connections):
            layout.use_property_split = True
            _draw_ends(layout, armature, settings.connections[settings.connection_index])
            _draw_joint(layout, settings.connections[settings.connection_index])


def _draw_ends(layout, armature, connection) -> None:
    column = layout.column()
    column.prop_search(connection, "bone", armature.data, "bones")
    column.row().prop(connection, "at", expand=True)
    column = layout.column()
    column.prop(connection, "target_kind")
    if connection.target_kind == "WORLD":
        return
    column.prop(connection, "target")
    target = connection.target
    if connection.target_kind == "BONE" and target and target.type == "ARMATURE":
        column.prop_search(connection, "target_bone", target.data, "bones")
    column.prop(connection, "target_at")


def _draw_joint(layout, connection) -> None:
    column = layout.column()
    column.prop(connection, "kind")
    row = column.row()
    row.active = connection.kind in ("HINGE", "SLIDER", "UNIVERSAL")
    row.prop(connection, "axis", expand=True)
    column = layout.column()
    column.prop(connection, "enabled")
    for name in ("break_force", "break_torque", "grab_distance"):
        column.prop(connection, name)
    if connection.kind == "SLIDER":
        column.prop(connection, "slide_distance")
    column = layout.column()
    column.prop(connection, "method")
    if connection.method == "SPRINGY":
        column.prop(connection, "stiffness")
        column.prop(connection, "damping")
    if connection.method == "PULL":
        column.prop(connection, "frequency")
        column.prop(connection, "ratio")


CLASSES = (
    ARMATURE_DYNAMICS_OT_connection_add,
    ARMATURE_DYNAMICS_OT_connection_remove,
    ARMATURE_DYNAMICS_OT_pin,
    ARMATURE_DYNAMICS_UL_connections,
    ARMATURE_DYNAMICS_PT_connections,
)
