"""What test_package.py runs in a Blender of its own: installs the zip, uses the extension, and takes it away again."""

from __future__ import annotations

import json
import sys

import bpy

NAME = "bl_ext.user_default.armature_dynamics"


def traces() -> set[str]:
    """Everything that an extension can leave behind in Blender."""
    found = {f"type {name}" for name in dir(bpy.types)}
    for owner in (bpy.types.Object, bpy.types.PoseBone, bpy.types.Bone, bpy.types.Scene, bpy.types.WindowManager):
        found |= {f"{owner.__name__}.{prop.identifier}" for prop in owner.bl_rna.properties}
    for handlers in dir(bpy.app.handlers):
        functions = getattr(bpy.app.handlers, handlers)
        if isinstance(functions, list):
            found |= {f"handler {handlers} {function.__module__}.{function.__qualname__}" for function in functions}
    found |= {f"manual {address}" for address, _ in bpy.utils.manual_map()}
    for keymap in bpy.context.window_manager.keyconfigs.addon.keymaps:
        found |= {f"key {keymap.name} {item.idname}" for item in keymap.keymap_items}
    return found


def small_armature() -> bpy.types.Object:
    """Three bones in a row, held out level one metre up."""
    bpy.ops.object.add(type="ARMATURE", enter_editmode=True)
    bones = bpy.context.object.data.edit_bones
    for number in range(3):
        bone = bones.new(f"bone.{number}")
        bone.head, bone.tail = (0.3 * number, 0, 1), (0.3 * (number + 1), 0, 1)
        bone.parent = bones.get(f"bone.{number - 1}")
        bone.use_connect = number > 0
    bpy.ops.object.mode_set(mode="OBJECT")
    return bpy.context.object


def lowest(armature: bpy.types.Object, frame: int) -> float:
    bpy.context.scene.frame_set(frame)
    return min((armature.matrix_world @ bone.head).z for bone in armature.pose.bones)


def main(archive: str) -> dict:
    bpy.ops.wm.read_factory_settings(use_empty=True)
    before = traces()
    bpy.ops.extensions.package_install_files(filepath=archive, repo="user_default", enable_on_install=True)
    installed = NAME in bpy.context.preferences.addons
    armature = small_armature()
    results = [bpy.ops.armature_dynamics.make_dynamic()]
    armature.armature_dynamics.frame_start, armature.armature_dynamics.frame_end = 1, 12
    results += [bpy.ops.armature_dynamics.simulate(), bpy.ops.armature_dynamics.keep()]
    fell = lowest(armature, 1) - lowest(armature, 12)
    bpy.ops.preferences.addon_disable(module=NAME)
    return {
        "installed": installed,
        "results": [sorted(result) for result in results],
        "fell_m": fell,
        "left_behind": sorted(traces() - before),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
