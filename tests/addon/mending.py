"""Finding and mending what Pre-flight lists."""

import bpy


def problems(armature):
    """What the panel lists after Check: {code: (names of bones, text, index)}."""
    bpy.context.view_layer.objects.active = armature
    bpy.context.view_layer.update()
    assert bpy.ops.armature_dynamics.check() == {"FINISHED"}
    listed = armature.armature_dynamics.problems
    return {item.code: (item.bones.split(), item.text, index) for index, item in enumerate(listed)}


def fix(armature, code):
    """Presses the button of a problem, which must then be gone."""
    index = problems(armature)[code][2]
    assert bpy.ops.armature_dynamics.fix(index=index) == {"FINISHED"}
    assert code not in [item.code for item in armature.armature_dynamics.problems], "the list must be new"
    assert code not in problems(armature)


def edit(armature, change):
    """Changes edit bones."""
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    change(armature.data.edit_bones)
    bpy.ops.object.mode_set(mode="OBJECT")
