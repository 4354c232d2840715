import bpy

motion = bpy.context.window_manager.armature_dynamics_motion

motion.root = 2.5
motion.follow = 1.2
motion.ratio = 0.3
motion.world = False
motion.additive = False
motion.amount = 1.0
motion.weight = 1.0
motion.damping = 0.3
