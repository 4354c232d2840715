"""Small rigs, and short ways to do with them what an animator does."""

import importlib.util

import bpy
import numpy as np
from armature_dynamics.addon import compat, convert, operators, rig, source, take
from armature_dynamics.addon.progress import finished
from conftest import ROOT


def named(kind):
    """A rig as another program names its bones; see scripts/named_scene.py."""
    spec = importlib.util.spec_from_file_location("named_scene", ROOT / "scripts" / "named_scene.py")
    scene = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scene)
    armature = getattr(scene, kind)()
    bpy.context.view_layer.objects.active = armature
    return armature


def make_rig(bones, name="Rig"):
    """An armature object from (name, head, tail, parent or None, connected) rows."""
    data = bpy.data.armatures.new(name)
    armature = bpy.data.objects.new(name, data)
    bpy.context.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    for bone_name, head, tail, parent, connected in bones:
        bone = data.edit_bones.new(bone_name)
        bone.head, bone.tail = head, tail
        if parent:
            bone.parent = data.edit_bones[parent]
            bone.use_connect = connected
    bpy.ops.object.mode_set(mode="OBJECT")
    return armature


def chain(count=4, name="Rig", length=0.3, height=2.0):
    """A row of connected bones along x."""
    rows = [
        (f"bone{i}", (length * i, 0, height), (length * (i + 1), 0, height), f"bone{i - 1}" if i else None, i > 0)
        for i in range(count)
    ]
    return make_rig(rows, name)


def puppet():
    """Two deform bones that copy two controls of other names, and a switch between these and a third that is IK."""
    rows = [
        ("cog", (0, 0, 1), (0, 0.2, 1), None, False),
        ("lower ctl", (0, 0, 1), (0, 0, 1.3), "cog", False),
        ("upper ctl", (0, 0, 1.3), (0, 0, 1.6), "lower ctl", False),
        ("lower", (0, 0, 1), (0, 0, 1.3), None, False),
        ("upper", (0, 0, 1.3), (0, 0, 1.6), "lower", True),
    ]
    armature = make_rig(rows)
    for name in ("lower", "upper"):
        constraint = armature.pose.bones[name].constraints.new("COPY_TRANSFORMS")
        constraint.target, constraint.subtarget = armature, f"{name} ctl"
    for name in ("cog", "lower ctl", "upper ctl"):
        armature.data.bones[name].use_deform = False
    bpy.context.view_layer.update()
    return armature


def simulate(armature, start=1, end=13, **settings):
    """Make Dynamic, then a take; returns its report."""
    if not armature.armature_dynamics.enabled:
        operators.make_dynamic(armature)
    own = armature.armature_dynamics
    own.frame_start, own.frame_end = start, end
    for name, value in settings.items():
        setattr(own, name, value)
    return finished(take.take(armature))


def character(armature, start=1, roles=None, **options):
    """The linkage of an armature as it stands."""
    bpy.context.view_layer.update()
    snapshot = rig.read_rig(armature)
    motion = finished(source.sample(armature, snapshot, start, start))
    return convert.convert(armature, snapshot, motion, roles, convert.Options(**options)), motion


def straighten(armature):
    """Joins an armature's keys by straight lines."""
    for curve in curves(armature.animation_data.action):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"


def stop(armature, work, progress=0.0):
    """Simulates until one kind of work is done so far, and stops there, as Esc does."""
    steps = take.take(armature)
    for now, done in steps:
        if now == work and done >= progress:
            break
    steps.close()


def curves(action):
    """The curves of an action's only or first slot."""
    if hasattr(action, "layers") and action.layers:
        return list(action.layers[0].strips[0].channelbags[0].fcurves)
    return list(action.fcurves) if hasattr(action, "fcurves") else []


def grouped(armature):
    """All channels of an armature's action in a group of their own, which is returned."""
    action = armature.animation_data.action
    group = compat.channels(armature, action, compat.slot_identifier(armature)).groups.new("Group")
    for curve in curves(action):
        curve.group = group
    return group


def values(action, path):
    """Keyframes (F, 1 + k): frames, then the values of each index of a data path."""
    found = sorted((curve for curve in curves(action) if curve.data_path == path), key=lambda curve: curve.array_index)
    columns = [[key.co[1] for key in curve.keyframe_points] for curve in found]
    frames = [key.co[0] for key in found[0].keyframe_points] if found else []
    return np.column_stack([frames, *columns]) if found else np.empty((0, 1))


def key(armature, bone, channel, frames):
    """Keys a bone's channel: {frame: value}."""
    pose_bone = armature.pose.bones[bone]
    for frame, value in frames.items():
        setattr(pose_bone, channel, value)
        pose_bone.keyframe_insert(channel, frame=frame)


def world_heads(armature):
    """World positions of all bones' heads now, as evaluated."""
    evaluated = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return {bone.name: np.array(evaluated.matrix_world @ bone.head) for bone in evaluated.pose.bones}
