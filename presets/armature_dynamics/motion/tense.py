import bpy

motion = bpy.context.window_manager.armature_dynamics_motion

motion.root = 0.0
motion.follow = 3.0
motion.ratio = 0.8
motion.world = False
motion.additive = False
motion.amount = 1.0
motion.weight = 1.0
motion.damping = 0.8
