"""What connects bones in the tests."""

import bpy
import numpy as np
from armature_dynamics.addon import (
    connection_list,
    operators,
    switch,
)
from rigs import make_rig


def connect(armature, bone, target=None, target_bone="", **settings):
    """What an animator sets up in the list of connections."""
    if not armature.armature_dynamics.enabled:
        operators.make_dynamic(armature)
    made = connection_list.add(armature, bone, target, target_bone)
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def key_enabled(armature, frames, index=0):
    """Keys a connection's Enabled: {frame: value}."""
    for frame, value in frames.items():
        armature.armature_dynamics.connections[index].enabled = value
        assert armature.keyframe_insert(switch.enabled_path(index), frame=frame)


def empty(name="Bar", location=(0, 0, 0)):
    thing = bpy.data.objects.new(name, None)
    thing.location = location
    bpy.context.collection.objects.link(thing)
    return thing


def carry(thing, armature, bone, hold):
    """Lets a bone carry an object: as its parent, or by a constraint of that type, which is returned."""
    if hold == "parent":
        thing.parent, thing.parent_type, thing.parent_bone = armature, "BONE", bone
        return None
    constraint = thing.constraints.new(hold)
    end = constraint.targets.new() if hold == "ARMATURE" else constraint
    end.target, end.subtarget = armature, bone
    return constraint


def swing():
    """An empty that is moved from side to side, and turned."""
    bar = empty(location=(0, 0, 2))
    for frame, y, turn in ((1, 0, 0), (7, 0.4, 0.5), (13, -0.3, -0.4), (25, 0.2, 0.3)):
        bar.location.y, bar.rotation_euler.x = y, turn
        bar.keyframe_insert("location", frame=frame)
        bar.keyframe_insert("rotation_euler", frame=frame)
    return bar


def mirrored_chain(x, name="Other", count=3, length=0.3, height=2.0):
    """A row of connected bones against x, whose last tail is at `x`."""
    begin = x + count * length
    rows = [
        (f"bone{i}", (begin - length * i, 0, height), (begin - length * (i + 1), 0, height),
         f"bone{i - 1}" if i else None, i > 0)
        for i in range(count)
    ]  # fmt: skip
    return make_rig(rows, name)


def places(armature, bone, frames, end="tail"):
    """World places (F, 3) of a bone's end, as evaluated."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        evaluated = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
        found.append(evaluated.matrix_world @ getattr(evaluated.pose.bones[bone], end))
    return np.array(found)
