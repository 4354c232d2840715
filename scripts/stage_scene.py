"""What the example scenes are built of: people, bars, boxes, and the extension's buttons."""

from __future__ import annotations

import math
from itertools import pairwise

import bpy
import numpy as np
from demo_scene import attach, box, capsule, material
from mathutils import Matrix, Quaternion, Vector

RATE = 24
PICTURES = 6


def human(name: str, pose: dict[str, tuple[float, float]]) -> bpy.types.Object:
    """Rigify's metarig in a pose: degrees about the world's x and y axes for each bone."""
    bpy.ops.object.armature_human_metarig_add()
    rig = bpy.context.object
    rig.name = name
    for bone_name, (about_x, about_y) in pose.items():
        bone = rig.pose.bones[bone_name]
        rest = bone.bone.matrix_local.to_quaternion()
        turn = Quaternion((0, 1, 0), math.radians(about_y)) @ Quaternion((1, 0, 0), math.radians(about_x))
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = rest.inverted() @ turn @ rest
    bpy.context.view_layer.update()
    return rig


def mirrored(pose: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The pose with left and right exchanged."""
    other = {"L": "R", "R": "L"}
    return {
        (name[:-1] + other[name[-1]] if name[-2:] in (".L", ".R") else name): (about_x, -about_y)
        for name, (about_x, about_y) in pose.items()
    }


def row(name: str, points: list, first: str = "link") -> bpy.types.Object:
    """An armature of connected bones through points."""
    data = bpy.data.armatures.new(name)
    rig = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    parent = None
    for number, (head, tail) in enumerate(pairwise(points)):
        bone = data.edit_bones.new(f"{first}.{number + 1:03}")
        bone.head, bone.tail, bone.parent, bone.use_connect = head, tail, parent, parent is not None
        parent = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def make_dynamic(rig: bpy.types.Object, **settings) -> None:
    select(rig)
    bpy.ops.armature_dynamics.make_dynamic()
    for name, value in settings.items():
        setattr(rig.armature_dynamics, name, value)


def connect(rig: bpy.types.Object, bone: str, target=None, target_bone: str = "", **settings):
    """Add Connection, with the bone active and the target selected; returns it."""
    select(rig, target)
    rig.data.bones.active = rig.data.bones[bone]
    if target_bone:
        target.data.bones.active = target.data.bones[target_bone]
    bpy.ops.armature_dynamics.connection_add()
    connection = rig.armature_dynamics.connections[rig.armature_dynamics.connection_index]
    for name, value in settings.items():
        setattr(connection, name, value)
    return connection


def select(active: bpy.types.Object, other=None) -> None:
    bpy.ops.object.select_all(action="DESELECT")
    for thing in filter(None, (active, other)):
        thing.select_set(True)
    bpy.context.view_layer.objects.active = active


def switch(rig: bpy.types.Object, connection, frames: dict[int, bool]) -> None:
    """Keys a connection's Enabled."""
    number = list(rig.armature_dynamics.connections).index(connection)
    for frame, value in frames.items():
        connection.enabled = value
        rig.keyframe_insert(f"armature_dynamics.connections[{number}].enabled", frame=frame)


def simulate(rig: bpy.types.Object) -> None:
    select(rig)
    bpy.ops.armature_dynamics.simulate()
    bpy.ops.armature_dynamics.keep()
    print(rig.armature_dynamics.summary)
    for line in rig.armature_dynamics.warnings.splitlines():
        if "are carried along" not in line:
            print(f"warning: {line}")


def tail(rig: bpy.types.Object, bone: str) -> Vector:
    bpy.context.view_layer.update()
    return rig.matrix_world @ rig.pose.bones[bone].tail


def scenery(*boxes: tuple) -> bpy.types.Collection:
    """A collection of boxes: (name, lower corner, upper corner)."""
    collection = bpy.data.collections.new("Scenery")
    bpy.context.scene.collection.children.link(collection)
    for name, low, high in boxes:
        box(collection, name, low, high)
    return collection


FLOOR = ("Floor", (-8, -9, -0.2), (8, 9, 0))


def pole(name: str, start, end, radius: float) -> bpy.types.Object:
    """A round bar between two points; its x axis is along it and its origin in the middle."""
    start, end = Vector(start), Vector(end)
    mesh = capsule(radius, radius, (end - start).length, 1.0)
    mesh.transform(Matrix.Translation((0, -(end - start).length / 2, 0)))
    mesh.transform(Matrix.Rotation(-math.pi / 2, 4, "Z"))
    mesh.materials.append(material("Steel", (0.3, 0.32, 0.35), 0.25))
    bar = bpy.data.objects.new(name, mesh)
    bar.location = (start + end) / 2
    bar.rotation_mode = "QUATERNION"
    bar.rotation_quaternion = (end - start).to_track_quat("X", "Z")
    bpy.context.scene.collection.objects.link(bar)
    bpy.context.view_layer.update()
    return bar


def dress_links(rig: bpy.types.Object, radius: float, color: tuple) -> None:
    look = material(rig.name, color, 0.35)
    for bone in rig.data.bones:
        attach(rig, bone, capsule(radius, radius, bone.length, 1.0), look)


def spread(start: int, end: int) -> list[int]:
    """Frames for the pictures, evenly."""
    return [round(frame) for frame in np.linspace(start, end, PICTURES)]
