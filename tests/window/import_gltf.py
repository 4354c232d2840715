"""Run by a real Blender without a window: `-- IN.glb OUT.blend`."""

import sys

import bpy

source, target = sys.argv[-2:]
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.import_scene.gltf(filepath=source)
bpy.ops.wm.save_as_mainfile(filepath=target)
