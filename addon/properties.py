"""Settings: on the armature object what is simulated and how, on its pose bones what each of them is, on the scene what
all simulations share."""

import bpy
from bpy.props import (
    BoolProperty,
    BoolVectorProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from .adaptive_settings import ARMATURE_DYNAMICS_PG_scene
from .body_settings import BodySettings
from .collider import AUTO, BOX, CAPSULE, HULL, NONE, SPHERE, TAPERED
from .connection_settings import ARMATURE_DYNAMICS_PG_connection
from .directing_settings import DIRECTED
from .keying import EVERY, REDUCED, STEP
from .nla import ACTION, STRIP
from .override import OWN, overridable, own_setting
from .role import ANIMATED, IGNORED, SIMULATED
from .seeing_settings import SeeingSettings
from .surface import LAYERS, SurfaceSettings

GROUPS = BoolVectorProperty(
    name="Collision Groups",
    description="What has a group in common collides; the groups are those of Blender's rigid bodies",
    size=LAYERS,
    subtype="LAYER",
    default=(True, *[False] * (LAYERS - 1)),
)


@overridable
class ARMATURE_DYNAMICS_PG_partner(bpy.types.PropertyGroup):
    """An armature that was simulated together with this one."""

    armature: PointerProperty(
        type=bpy.types.Object, name="Armature", description="An armature that was simulated together with this one"
    )


@overridable
class ARMATURE_DYNAMICS_PG_problem(bpy.types.PropertyGroup):
    """A problem that Pre-flight found, or the same of several bones; see `problem.Problem`."""

    code: StringProperty(name="Code", description="What kind of problem it is")
    severity: StringProperty(name="Severity", description="ERROR where it cannot be simulated, else WARNING")
    text: StringProperty(name="Text", description="What is wrong, with which bone, and what to do")
    bones: StringProperty(name="Bones", description="Names of the bones it is about, one a line")
    things: StringProperty(name="Objects", description="Names of the objects it is about, one a line")
    fix: StringProperty(name="Fix", description="What its button does; empty where there is none")


@overridable
class ARMATURE_DYNAMICS_PG_surface(SurfaceSettings, bpy.types.PropertyGroup):
    """The surface of what has no settings of its own."""


@overridable
class ARMATURE_DYNAMICS_PG_armature(SurfaceSettings, SeeingSettings, bpy.types.PropertyGroup):
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
    life_scale: FloatProperty(
        name="Life Scale",
        description="How large the character is in life, relative to the scene: 0.01 where a unit stands for a "
        "centimetre. It falls as quickly as in life [factor]",
        default=1.0,
        min=1e-4,
        soft_max=1.0,
        precision=4,
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
    weight: FloatProperty(
        name="Gravity",
        description="The share of the scene's gravity that acts on this character; can be keyed [factor]",
        default=1.0,
        soft_min=0.0,
        soft_max=2.0,
    )
    self_collision: BoolProperty(
        name="Self-Collision",
        description="Whether the character's own bones collide with each other; neighbours never do",
        default=True,
    )
    use_rig_limits: BoolProperty(
        name="Rig's Limits",
        description="Joints bend as far as Limit Rotation constraints in local space, and limits for inverse "
        "kinematics, let the bones that have some; not as far as a person's or an animal's",
        default=False,
    )
    meets: BoolProperty(
        name="Meet Others",
        description="Armatures that have this turned on are simulated together, and can touch and carry each other",
        default=False,
    )
    layers: GROUPS
    use_ground: BoolProperty(name="Ground", description="Land on a level ground", default=True)
    ground_height: FloatProperty(
        name="Height",
        description="Height of the ground in the world; a character that starts below it gets a lower one [m]",
        default=0.0,
    )
    scenery: PointerProperty(
        type=bpy.types.Collection,
        name="Scenery",
        description="Objects in this collection are obstacles, each as it is seen, also while it moves. Passive and "
        "animated rigid bodies always are, with the shape, friction, bounciness and groups of their own",
    )
    scenery_surface: PointerProperty(
        type=ARMATURE_DYNAMICS_PG_surface,
        name="Scenery Surface",
        description="The surface of the ground, and of scenery that is no rigid body",
    )
    loop_most: IntProperty(
        name="Loop",
        description="The animation between Start and End is a loop: it is simulated over and over, at most so many "
        "times, until the last frame meets the first, and the last time is kept. 1 is no loop [times]",
        default=1,
        min=1,
        soft_max=20,
    )
    result: EnumProperty(
        name="Result",
        description="What the simulation is written to. The source animation stays as it is",
        items=(
            (ACTION, "Action", "An action of its own, which plays in place of the source's"),
            (STRIP, "NLA Strip", "A strip above all of the source's NLA tracks, which can be muted and have influence"),
        ),
        default=ACTION,
    )
    key_mode: EnumProperty(
        name="Keys",
        description="Which frames the result has keys on; those of bones that are not simulated stay as they are",
        items=(
            (EVERY, "Every Frame", "A key on every frame, with straight lines between"),
            (STEP, "Every n-th Frame", "Keys on every n-th frame, with curves that follow the frames between"),
            (REDUCED, "Reduced", "As few keys as stay within a tolerance, all along the chains of bones"),
        ),
        default=EVERY,
    )
    key_step: IntProperty(
        name="Step", description="Frames from one key to the next [frames]", default=2, min=1, soft_max=12
    )
    key_distance: FloatProperty(
        name="Distance (mm)",
        description="How far the ends of bones may be in the world from where they are with a key on every frame [mm]",
        default=1.0,
        min=0.001,
        soft_max=100.0,
        precision=3,
    )
    key_angle: FloatProperty(
        name="Angle (°)",
        description="How far bones may be turned in the world from how they are with a key on every frame [degrees]",
        default=0.1,
        min=0.001,
        soft_max=10.0,
        precision=3,
    )
    blend_in: IntProperty(
        name="Blend In",
        description="Frames over which the source animation becomes the simulation, from the start on [frames]",
        default=0,
        min=0,
        soft_max=48,
    )
    blend_out: IntProperty(
        name="Blend Out",
        description="Frames over which the simulation becomes the source animation again, up to the end; it goes on "
        "from there [frames]",
        default=0,
        min=0,
        soft_max=48,
    )
    mute_constraints: BoolProperty(
        name="Mute Constraints",
        description="Turn off constraints of simulated bones, which would fight the keys; Discard turns them on again",
        default=False,
    )
    mute_drivers: BoolProperty(
        name="Mute Drivers",
        description="Turn off drivers of simulated bones, which would fight the keys; Discard turns them on again",
        default=False,
    )
    problems: CollectionProperty(
        type=ARMATURE_DYNAMICS_PG_problem, name="Problems", description="What Pre-flight found when it last looked"
    )
    connections: CollectionProperty(
        type=ARMATURE_DYNAMICS_PG_connection,
        name="Connections",
        description="Joints between bones of this armature and other bones, objects or the world",
    )
    connection_index: IntProperty(
        name="Active Connection", description="Which connection is shown [number in the list]", default=0
    )
    partners: CollectionProperty(
        type=ARMATURE_DYNAMICS_PG_partner,
        name="Partners",
        description="The armatures of the same simulation; they are kept and discarded together",
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
    root_control: StringProperty(
        name="Root Control", description="The control that carries the whole character; physics places it"
    )
    switches: StringProperty(
        name="Switches",
        description="Custom properties of bones that let controls carry the deform bones, and their values, one a line",
    )
    source_switches: StringProperty(
        name="Source Switches", description="The switches as they were before physics, one a line"
    )
    tracks: StringProperty(
        name="NLA Tracks",
        description="Names of the tracks that the last simulation added, lowest first, one a line",
    )
    written: StringProperty(
        name="Written",
        description="The channels that physics wrote into the last take, index and data path, one a line",
    )
    action: PointerProperty(type=bpy.types.Action, name="Dynamics Action", description="The action that physics wrote")
    preview: BoolProperty(
        name="Preview", description="Whether the last simulation was made with a time budget", default=False
    )
    summary: StringProperty(name="Result", description="What the last simulation measured")
    warnings: StringProperty(name="Warnings", description="What the last simulation had to say, one warning a line")


@overridable
class ARMATURE_DYNAMICS_PG_bone(SurfaceSettings, BodySettings, bpy.types.PropertyGroup):
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
    shape: EnumProperty(
        name="Shape",
        description="What collides for this bone, and for the ignored bones that it carries",
        items=(
            (
                AUTO,
                "Automatic",
                "A capsule around the skin or along the bone; for a person's head that is no capsule, its convex hull",
            ),
            (CAPSULE, "Capsule", "A round bar with round ends"),
            (TAPERED, "Tapered Capsule", "As thick at both ends as the skin is there"),
            (SPHERE, "Sphere", "A ball of the skin's mean size"),
            (BOX, "Box", "The box along the skin's longest direction"),
            (HULL, "Convex Hull", "The skin without its hollows, with 32 corners at most; a box where there is none"),
            (NONE, "None", "Nothing: it passes through everything"),
        ),
        default=AUTO,
    )
    shape_length: FloatProperty(
        name="Length",
        description="How much longer the shape is than what it stands for [factor]",
        default=1.0,
        min=0.01,
        soft_max=3.0,
    )
    shape_thickness: FloatProperty(
        name="Thickness",
        description="How much thicker the shape is than what it stands for [factor]",
        default=1.0,
        min=0.01,
        soft_max=3.0,
    )
    use_surface: BoolProperty(
        name="Own Surface", description="Whether the bone has another surface than its armature", default=False
    )
    use_layers: BoolProperty(
        name="Own Groups", description="Whether the bone has other collision groups than its armature", default=False
    )
    layers: GROUPS
    known_as: StringProperty(name="Known As", description="What the bone was called last")
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
        name="Muted Constraints",
        description="Names of the constraints that were turned off, one a line; after an empty line those of the rest",
    )
    muted_drivers: StringProperty(
        name="Muted Drivers", description="Channels whose drivers were turned off, and their index, one a line"
    )
    control: StringProperty(
        name="Control",
        description="The bone that carries this one, and that gets the keys in its stead; empty where it has its own",
    )
    unlocked: StringProperty(name="Unlocked", description="Channels that Pre-flight unlocked, one a line")


CLASSES = (
    ARMATURE_DYNAMICS_PG_connection,
    ARMATURE_DYNAMICS_PG_partner,
    ARMATURE_DYNAMICS_PG_problem,
    ARMATURE_DYNAMICS_PG_surface,
    ARMATURE_DYNAMICS_PG_armature,
    ARMATURE_DYNAMICS_PG_bone,
    ARMATURE_DYNAMICS_PG_scene,
)


def attach() -> None:
    """Gives scenes, objects and pose bones their settings; after the classes are registered."""
    bpy.types.Scene.armature_dynamics = PointerProperty(type=ARMATURE_DYNAMICS_PG_scene, name="Armature Dynamics")
    for owner, group in (
        (bpy.types.Object, ARMATURE_DYNAMICS_PG_armature),
        (bpy.types.PoseBone, ARMATURE_DYNAMICS_PG_bone),
    ):
        owner.armature_dynamics = PointerProperty(type=group, name="Armature Dynamics", override=OWN)
    for name, setting in DIRECTED.items():
        setattr(bpy.types.PoseBone, name, own_setting(setting))


def detach() -> None:
    for name in DIRECTED:
        delattr(bpy.types.PoseBone, name)
    del bpy.types.PoseBone.armature_dynamics
    del bpy.types.Object.armature_dynamics
    del bpy.types.Scene.armature_dynamics
