"""Settings: on the armature object what is simulated and how, on its pose bones what each of them is."""

import bpy
from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from .role import ANIMATED, IGNORED, SIMULATED


class ARMATURE_DYNAMICS_PG_armature(bpy.types.PropertyGroup):
    """Settings of one armature object."""

    enabled: BoolProperty(
        name="Dynamic", description="Whether this armature was made dynamic, and its bones have roles", default=False
    )
    frame_start: IntProperty(
        name="Start", description="Frame at which physics takes over from the animation [frames]", default=1
    )
    frame_end: IntProperty(name="End", description="Last frame that is simulated [frames]", default=120)
    substeps: IntProperty(
        name="Substeps",
        description="Simulation steps per frame; more are slower and follow fast motion better. "
        "0 takes as many as the motion of each frame needs [steps per frame]",
        default=0,
        min=0,
        max=1000,
    )
    mass: FloatProperty(
        name="Mass",
        description="Mass of the whole character; 0 estimates it from height or volume [kg]",
        default=0.0,
        min=0.0,
        precision=3,
    )
    damping: FloatProperty(
        name="Damping",
        description="How quickly limbs stop swinging by themselves: 0 never, 1 without swinging back [damping ratio]",
        default=0.5,
        min=0.0,
        soft_max=1.0,
    )
    tone: FloatProperty(
        name="Muscle Tone",
        description="How strongly joints pull toward the animated pose: 0 limp, 1 about enough to hold a limb level "
        "[part of the limb's weight per radian]",
        default=0.0,
        min=0.0,
        soft_max=10.0,
    )
    friction: FloatProperty(
        name="Friction",
        description="Coulomb's friction coefficient of the character's surface [no unit]",
        default=0.6,
        min=0.0,
        soft_max=2.0,
    )
    restitution: FloatProperty(
        name="Bounciness",
        description="Part of the impact speed that comes back [0 to 1]",
        default=0.0,
        min=0.0,
        max=1.0,
    )
    use_ground: BoolProperty(name="Ground", description="Land on a level ground", default=True)
    ground_height: FloatProperty(
        name="Height",
        description="Height of the ground in the world; a character that starts below it gets a lower one [m]",
        default=0.0,
    )
    scenery: PointerProperty(
        type=bpy.types.Collection,
        name="Scenery",
        description="Meshes in this collection are obstacles, each as a box around it; passive rigid bodies always are",
    )
    mute_constraints: BoolProperty(
        name="Mute Constraints",
        description="Turn off constraints of simulated bones, which would fight the keys; Discard turns them on again",
        default=False,
    )
    state: EnumProperty(
        name="State",
        description="What the armature plays",
        items=(
            ("SOURCE", "Source", "The animation it had before physics"),
            ("SIMULATED", "Simulated", "A simulation that can be kept or discarded"),
            ("KEPT", "Kept", "A simulation that was kept"),
        ),
        default="SOURCE",
    )
    source_action: PointerProperty(
        type=bpy.types.Action, name="Source Action", description="The action that played before physics"
    )
    source_slot: StringProperty(name="Source Slot", description="The slot of the source action that played")
    source_animated: BoolProperty(
        name="Source Animated", description="Whether there was animation data before physics", default=True
    )
    action: PointerProperty(type=bpy.types.Action, name="Dynamics Action", description="The action that physics wrote")
    summary: StringProperty(name="Result", description="What the last simulation measured")
    warnings: StringProperty(name="Warnings", description="What the last simulation had to say, one warning a line")


class ARMATURE_DYNAMICS_PG_bone(bpy.types.PropertyGroup):
    """Settings of one pose bone."""

    role: EnumProperty(
        name="Role",
        description="What moves this bone during a simulation",
        items=(
            (SIMULATED, "Simulated", "Physics moves it"),
            (ANIMATED, "Animated", "Its own animation moves it, and it drives the simulated bones it carries"),
            (IGNORED, "Ignored", "It is carried along by the next bone upwards that is not ignored"),
        ),
        default=IGNORED,
    )
    source_mode: StringProperty(
        name="Source Mode", description="Rotation mode before physics; empty where nothing was recorded"
    )
    source_location: FloatVectorProperty(
        name="Source Location", description="Location before physics [armature units]", size=3
    )
    source_rotation: FloatVectorProperty(
        name="Source Rotation",
        description="Rotation before physics, in the bone's rotation mode [rad or quaternion]",
        size=4,
    )
    source_scale: FloatVectorProperty(name="Source Scale", description="Scale before physics [factor]", size=3)
    muted: StringProperty(
        name="Muted Constraints", description="Names of the constraints that were turned off, one a line"
    )


CLASSES = (ARMATURE_DYNAMICS_PG_armature, ARMATURE_DYNAMICS_PG_bone)


def attach() -> None:
    """Gives objects and pose bones their settings; after the classes are registered."""
    bpy.types.Object.armature_dynamics = PointerProperty(type=ARMATURE_DYNAMICS_PG_armature, name="Armature Dynamics")
    bpy.types.PoseBone.armature_dynamics = PointerProperty(type=ARMATURE_DYNAMICS_PG_bone, name="Armature Dynamics")


def detach() -> None:
    del bpy.types.PoseBone.armature_dynamics
    del bpy.types.Object.armature_dynamics
