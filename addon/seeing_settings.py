"""What is seen of simulations: settings of what is drawn, and what they measured, to be read as curves."""

from bpy.props import BoolProperty, FloatProperty, IntProperty


class SeeingSettings:
    """Settings of an armature object, for its property group."""

    show_shapes: BoolProperty(
        name="Collision Shapes",
        description="Draw what collides for each bone while the armature is selected",
        default=False,
    )
    show_contacts: BoolProperty(
        name="Contacts",
        description="Draw where the last simulation touched something, and the forces there, at the current frame",
        default=False,
    )
    show_activity: BoolProperty(
        name="Activity",
        description="Draw which bones moved in the last adaptive simulation, and which were as good as rigid, at the "
        "current frame",
        default=False,
    )
    show_joints: BoolProperty(
        name="Joints",
        description="Draw the joints' axes, and how far they may turn; red where they are at their limit. In Pose Mode "
        "those of the selected bones",
        default=False,
    )
    show_mass: BoolProperty(
        name="Center of Mass",
        description="Draw the character's center of mass, the place below it, and its way through the last simulation",
        default=False,
    )
    show_ghost: BoolProperty(
        name="Source Ghost",
        description="Draw the source animation as sticks beside the last simulation, as long as Blender runs",
        default=False,
    )
    live_every: IntProperty(
        name="Live Update",
        description="Draw the character while it is simulated, every so many frames; 0 is never [frames]",
        default=0,
        min=0,
        soft_max=24,
    )
    active_joints: FloatProperty(
        name="Active Joints",
        description="How many of the joints an adaptive simulation moved at the current frame; it keys this [percent]",
    )
    left_out: FloatProperty(
        name="Achieved Error",
        description="By how much an adaptive simulation left behind what it did not move, at the current frame; it "
        "keys this [part of the length of what is simulated]",
        precision=5,
    )
    use_curves: BoolProperty(
        name="Curves",
        description="The next simulation writes its energy, penetration, joint separation and contacts as curves of "
        "these settings, to be read in the Graph Editor",
        default=False,
    )
    energy: FloatProperty(
        name="Energy",
        description="Kinetic and potential energy of all that is simulated together, at the current frame; a "
        "simulation with Curves keys this [J]",
        precision=4,
    )
    penetration: FloatProperty(
        name="Penetration",
        description="How deep any contact is at the current frame; a simulation with Curves keys this [mm]",
        precision=4,
    )
    separation: FloatProperty(
        name="Separation",
        description="How far any joint is apart on the evaluated rig at the current frame; a simulation with Curves "
        "keys this [mm]",
        precision=6,
    )
    contacts: IntProperty(
        name="Contacts",
        description="How many contacts there are at the current frame; a simulation with Curves keys this [contacts]",
    )
