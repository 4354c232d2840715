"""Settings of one connection of an armature."""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, PointerProperty, StringProperty

from .override import overridable

STILL: set = set()
"""The options of a setting that cannot be animated."""


@overridable
class ARMATURE_DYNAMICS_PG_connection(bpy.types.PropertyGroup):
    """A joint between a bone and something else, which may be closed and opened while physics runs."""

    name: StringProperty(
        name="Name", description="What the connection is called in results and warnings", options=STILL
    )
    bone: StringProperty(name="Bone", description="The bone of this armature that is connected", options=STILL)
    at: EnumProperty(
        name="At",
        description="Which end of the bone the joint is at",
        items=(
            ("TAIL", "Tail", "The joint is at the bone's tail, where that is at the start frame"),
            ("HEAD", "Head", "The joint is at the bone's head, where that is at the start frame"),
        ),
        default="TAIL",
        options=STILL,
    )
    target_kind: EnumProperty(
        name="To",
        description="What the bone is connected to",
        items=(
            ("BONE", "Bone", "A bone of this armature or of another one, which is then simulated together with it"),
            ("OBJECT", "Object", "Any object; it moves as it is animated, and physics does not move it"),
            ("WORLD", "World", "A fixed place in the world"),
        ),
        default="WORLD",
        options=STILL,
    )
    # without poll=, which makes Blender 4.2 crash at exit
    target: PointerProperty(
        type=bpy.types.Object,
        name="Target",
        description="The object or armature that the bone is connected to",
        options=STILL,
    )
    target_bone: StringProperty(
        name="Target Bone", description="The bone of the target that the bone is connected to", options=STILL
    )
    target_at: EnumProperty(
        name="Target At",
        description="Where on the target the joint is",
        items=(
            ("THERE", "Same Place", "Where the bone's end is at the start frame, as if a rod held it there"),
            ("HEAD", "Head or Origin", "At the target bone's head or the object's origin"),
            ("TAIL", "Tail", "At the target bone's tail; for an object its origin"),
        ),
        default="THERE",
        options=STILL,
    )
    kind: EnumProperty(
        name="Joint",
        description="How the two may still move against each other",
        items=(
            ("FIXED", "Fixed", "Not at all"),
            ("HINGE", "Hinge", "Turn about the axis"),
            ("SLIDER", "Slider", "Slide along the axis"),
            ("UNIVERSAL", "Universal", "Turn about the axis, and about one across it"),
            ("BALL", "Ball", "Turn in every direction"),
        ),
        default="BALL",
        options=STILL,
    )
    axis: EnumProperty(
        name="Axis",
        description="The axis of the joint, one of the target's own axes at the start frame; "
        "for the world one of the world's",
        items=(("X", "X", "The target's X axis"), ("Y", "Y", "The target's Y axis"), ("Z", "Z", "The target's Z axis")),
        default="X",
        options=STILL,
    )
    enabled: BoolProperty(
        name="Enabled",
        description="Whether the connection holds; its keyframes connect and cut while physics runs",
        default=True,
    )
    break_force: FloatProperty(
        name="Break Force",
        description="It breaks when pulled harder than this; 0 never [N]",
        default=0.0,
        min=0.0,
        options=STILL,
    )
    break_torque: FloatProperty(
        name="Break Torque",
        description="It breaks when twisted harder than this; 0 never [N m]",
        default=0.0,
        min=0.0,
        options=STILL,
    )
    grab_distance: FloatProperty(
        name="Grab Distance",
        description="While it is open, it connects by itself when its two ends come nearer than this; 0 never [m]",
        default=0.0,
        min=0.0,
        precision=3,
        options=STILL,
    )
    slide_distance: FloatProperty(
        name="Slides Off",
        description="A slider is cut when it has slid farther than this from its place, either way; 0 never [m]",
        default=0.0,
        min=0.0,
        precision=3,
        options=STILL,
    )
    method: EnumProperty(
        name="Method",
        description="How the connection is held together",
        items=(
            ("EXACT", "Exact", "Its ends do not come apart"),
            ("SPRINGY", "Springy", "A stiff spring with a damper draws its ends together"),
            ("PULL", "Pull", "A spring of a frequency, however heavy the character is, draws its ends together"),
        ),
        default="EXACT",
        options=STILL,
    )
    frequency: FloatProperty(
        name="Frequency",
        description="How firmly a pull holds: the frequency at which the whole character would swing on it. It sags "
        "by 4 mm at 8, by 25 cm at 1 [Hz]",
        default=8.0,
        min=0.01,
        soft_max=20.0,
        precision=2,
        options=STILL,
    )
    ratio: FloatProperty(
        name="Damping Ratio",
        description="Whether a pull swings before it comes to rest: below 1 it does, at 1 it does not [damping ratio]",
        default=1.0,
        min=0.0,
        soft_max=2.0,
        options=STILL,
    )
    stiffness: FloatProperty(
        name="Stiffness",
        description="How strongly a springy connection resists coming apart [N/m and N m/rad]",
        default=1e4,
        min=0.0,
        options=STILL,
    )
    damping: FloatProperty(
        name="Damping",
        description="How strongly a springy connection resists moving apart [N s/m and N m s/rad]",
        default=1e2,
        min=0.0,
        options=STILL,
    )
