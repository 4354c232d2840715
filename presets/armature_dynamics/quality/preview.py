import bpy

settings = bpy.context.object.armature_dynamics
shared = bpy.context.scene.armature_dynamics

settings.substeps = 4
settings.key_mode = "EVERY"
settings.key_step = 2
settings.key_distance = 1.0
settings.key_angle = 0.1
shared.adaptive = "OFF"
