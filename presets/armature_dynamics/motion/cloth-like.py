import bpy

motion = bpy.context.window_manager.armature_dynamics_motion

motion.root = 8.0
motion.follow = 0.4
motion.ratio = 0.2
motion.world = False
motion.additive = False
motion.amount = 1.0
motion.weight = 0.6
motion.damping = 0.1
