"""What is directed of a pose bone."""

from bpy.props import BoolProperty, FloatProperty

DIRECTED = {
    "armature_dynamics_follow": FloatProperty(
        name="Follow (Hz)",
        description="How firmly the bone follows its animation, as the frequency at which it swings back to it, "
        "whatever it weighs: 0 limp, 2 loosely, 8 within a centimetre. On the topmost bone it holds the whole "
        "character up. Can be keyed [Hz]",
        default=0.0,
        min=0.0,
        soft_max=20.0,
        precision=2,
    ),
    "armature_dynamics_follow_ratio": FloatProperty(
        name="Damping",
        description="Whether the bone swings about its animation before it comes to rest there: below 1 it does, "
        "at 1 it does not. Can be keyed [damping ratio]",
        default=1.0,
        min=0.0,
        soft_max=2.0,
    ),
    "armature_dynamics_follow_world": BoolProperty(
        name="In World Space",
        description="Keep the direction that the bone has in the world, as if hung from outside, instead of its turn "
        "against the bone above",
        default=False,
        options=set(),
    ),
    "armature_dynamics_additive": BoolProperty(
        name="Additive",
        description="Secondary motion on top of the animation: gravity, and what else the animation takes, are "
        "carried. The bone rests where it is animated, however softly it follows; when it is moved it lags, swings on "
        "and answers what it meets",
        default=False,
        options=set(),
    ),
    "armature_dynamics_amount": FloatProperty(
        name="Amount",
        description="How much secondary motion there is where Additive is on: 0 none, 1 as much as the bone's mass "
        "makes, 2 twice as much. Can be keyed [factor]",
        default=1.0,
        min=0.0,
        soft_max=2.0,
    ),
    "armature_dynamics_hold": BoolProperty(
        name="Animated",
        description="While this is on the bone moves as it is animated, against the bone above or, without one, in "
        "the world; when its key turns it off, physics takes over with the speed that it has. Can be keyed",
        default=False,
    ),
    "armature_dynamics_weight": FloatProperty(
        name="Gravity",
        description="The share of gravity that acts on this bone, times that of its armature; can be keyed [factor]",
        default=1.0,
        soft_min=0.0,
        soft_max=2.0,
    ),
}
"""Settings of pose bones that can be keyed: Blender's own ways of keying reach nothing deeper."""
