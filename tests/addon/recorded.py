"""A character that is set up, and all that a file says about it, to compare it with what it says later."""

import bpy
import numpy as np
from armature_dynamics.addon import compat, connection_list, operators
from rigs import chain, curves, key, world_heads

STATES = ("SOURCE", "SIMULATED", "KEPT")


def press(button: str, **options):
    """Presses a button as the panel does, with an undo step of its own."""
    assert getattr(bpy.ops.armature_dynamics, button)("EXEC_DEFAULT", True, **options) == {"FINISHED"}


def keys(action) -> dict:
    """All that the keys of an action are, as bytes."""
    found = {}
    for curve in curves(action):
        points = curve.keyframe_points
        numbers = [np.empty(2 * len(points), dtype=np.float32) for _ in range(3)]
        kinds = [np.empty(len(points), dtype=np.int32) for _ in range(3)]
        for name, values in zip(("co", "handle_left", "handle_right"), numbers):
            points.foreach_get(name, values)
        for name, values in zip(("interpolation", "handle_left_type", "handle_right_type"), kinds):
            points.foreach_get(name, values)
        found[curve.data_path, curve.array_index] = [values.tobytes() for values in (*numbers, *kinds)]
    return found


def told(group) -> dict:
    """The values of all settings of a group."""
    found = {}
    for setting in group.bl_rna.properties:
        value = getattr(group, setting.identifier)
        if setting.identifier == "rna_type":
            continue
        if setting.type == "COLLECTION":
            value = [told(each) for each in value]
        elif isinstance(value, bpy.types.PropertyGroup):
            value = told(value)
        elif isinstance(value, bpy.types.ID):
            value = value.name
        found[setting.identifier] = tuple(value) if getattr(setting, "is_array", False) else value
    return found


def posed(armature) -> dict:
    """What bones hold and where they are."""
    heads = world_heads(armature)
    return {
        bone.name: (
            told(bone.armature_dynamics),
            bone.armature_dynamics_follow,
            bone.rotation_mode,
            tuple(bone.location),
            tuple(bone.rotation_quaternion),
            tuple(bone.scale),
            [constraint.mute for constraint in bone.constraints],
            {name: value for name, value in bone.items() if isinstance(value, (int, float))},
            tuple(heads[bone.name]),
        )
        for bone in armature.pose.bones
    }


def everything(armature) -> tuple:
    """All that a file says about an armature."""
    return (
        {action.name_full: (keys(action), action.use_fake_user) for action in bpy.data.actions},
        getattr(armature.animation_data and armature.animation_data.action, "name", None),
        compat.slot_identifier(armature),
        told(armature.armature_dynamics),
        posed(armature),
        sorted(thing.name for thing in bpy.data.objects),
    )


def animated():
    """A row of bones with animation, a constraint, and a bone that physics leaves alone."""
    armature = chain(4, height=1.0)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    key(armature, "bone3", "rotation_quaternion", {2: (1, 0, 0, 0), 7: (0.6, 0, 0.8, 0)})
    armature.pose.bones["bone2"].constraints.new("LIMIT_ROTATION").use_limit_x = True
    bpy.context.scene.frame_set(4)
    return armature


def set_up(armature) -> None:
    settings = armature.armature_dynamics
    settings.frame_end, settings.mass, settings.mute_constraints = 9, 12.5, True
    armature.pose.bones["bone3"].armature_dynamics.role = "IGNORED"
    armature.pose.bones["bone2"].armature_dynamics_follow = 3.0
    connection_list.add(armature, "bone0").enabled = False


def made(state: str):
    """An animated armature that was set up, with a take or without."""
    armature = animated()
    operators.make_dynamic(armature)
    set_up(armature)
    for button in ((), ("simulate",), ("simulate", "keep"))[STATES.index(state)]:
        press(button)
    assert armature.armature_dynamics.state == state
    return armature


def go_back(armature) -> None:
    """Plays the source again, from any state."""
    bpy.context.view_layer.objects.active = armature
    button = {"SIMULATED": "discard", "KEPT": "restore_source"}.get(armature.armature_dynamics.state)
    if button:
        press(button)


def simulated(armature) -> dict:
    """The keys of a new take."""
    bpy.context.view_layer.objects.active = armature
    press("simulate")
    return keys(armature.animation_data.action)
