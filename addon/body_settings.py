"""What is said of a bone as a body: its share of the mass, and how far its joint turns."""

from math import pi

from bpy.props import BoolProperty, FloatProperty, FloatVectorProperty


# without get=, update= and the like, which make Blender 4.2 crash at exit
class BodySettings:
    """Settings of a bone's body and joint, for property groups."""

    mass_share: FloatProperty(
        name="Mass Share",
        description="Part of the character's whole mass; 0 estimates it. What is not shared out is spread among the "
        "others as it is estimated [0 to 1]",
        default=0.0,
        min=0.0,
        max=1.0,
        precision=4,
    )
    use_limits: BoolProperty(
        name="Own Limits",
        description="Whether the joint turns as far as is said here, about the bone's own axes from its rest pose",
        default=False,
    )
    limit_lower: FloatVectorProperty(
        name="Least",
        description="How far the joint turns backward about the bone's x, y and z axis. Where least and most are the "
        "same it does not; a joint that turns about one axis alone is a hinge [degrees]",
        size=3,
        subtype="EULER",
        default=(-pi, -pi, -pi),
        min=-pi,
        max=pi,
    )
    limit_upper: FloatVectorProperty(
        name="Most",
        description="How far the joint turns forward about the bone's x, y and z axis; 180° is as far as it likes "
        "[degrees]",
        size=3,
        subtype="EULER",
        default=(pi, pi, pi),
        min=-pi,
        max=pi,
    )
