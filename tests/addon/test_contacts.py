"""Characters on real scenery: stairs of one mesh, platforms that move, and each other."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import overlay, touches
from rigs import chain, make_rig, simulate, values, world_heads
from staging import body, collected, cube, mesh_object

STEPS, TREAD, RISE, WIDTH = 3, 0.3, 0.18, 2.0
FRAMES = 96


def staircase(name="Stairs"):
    """Stairs as one closed mesh, from a landing at the world's origin down toward -y."""
    profile = [(0.8, -STEPS * RISE), (0.8, 0.0)]
    for step in range(STEPS):
        profile += [(-0.3 - step * TREAD, -step * RISE), (-0.3 - step * TREAD, -(step + 1) * RISE)]
    count = len(profile)
    sides = [[(x, y, z) for y, z in profile] for x in (-WIDTH / 2, WIDTH / 2)]
    faces = [(i, (i + 1) % count, count + (i + 1) % count, count + i) for i in range(count)]
    faces += [tuple(range(count))[::-1], tuple(range(count, 2 * count))]
    stairs = mesh_object(name, [*sides[0], *sides[1]], faces)
    stairs.data.update()
    return stairs


def lift(top, frames):
    """A platform whose top is at `top`, moved by {frame: (x, y, z)}."""
    thing = cube(scale=(1.5, 1.5, 0.1))
    for frame, offset in frames.items():
        thing.location = np.add(top, offset) - (0, 0, 0.1)
        thing.keyframe_insert("location", frame=frame)
    return thing


def heads_at(armature, frame):
    """World places (n, 3) of the joints that collide and move."""
    bpy.context.scene.frame_set(frame)
    bodies = [bone.name for bone in armature.pose.bones if bone.armature_dynamics.role != "IGNORED"]
    heads = world_heads(armature)
    return np.array([heads[name] for name in bodies])


@pytest.mark.slow
def test_a_person_falls_down_a_mesh_staircase_onto_a_moving_platform(metarig):
    """The whole road: one unapplied, mirrored mesh, a keyframed platform, and a body that comes to rest on it."""
    stairs = staircase()
    stairs.scale.x = -1
    foot = -STEPS * RISE
    platform = lift((0, -0.3 - STEPS * TREAD - 1.2, foot), {1: (0, 0, 0), 40: (0, 0, 0), FRAMES: (0.4, -0.4, 0.3)})
    metarig.location = (0, 0.1, 0.02)
    for frame, y in ((1, 0.4), (7, 0.0)):
        metarig.location.y = y
        metarig.keyframe_insert("location", frame=frame)
    report = simulate(metarig, start=6, end=FRAMES, scenery=collected(stairs, platform), use_ground=False)
    assert report.ok, report.news()
    assert report.scenery["taken"] == ["Cube", "Stairs"]
    assert report.contacts_max > 20

    def seen(frame):
        """Places of all heads beside the middle of the platform's top."""
        heads = heads_at(metarig, frame)
        return heads - np.add(platform.matrix_world.translation, (0, 0, 0.1))

    last = seen(FRAMES)
    assert last[:, 2].min() > -0.05 and last[:, 2].max() < 0.6, "it lies on the platform"
    assert (np.abs(last[:, :2]).max(axis=1) < 1.5).mean() > 0.7
    slid = np.linalg.norm(last - seen(FRAMES - 12), axis=1)
    assert np.median(slid) < 0.15, "it rides along: the platform has moved on"


@pytest.mark.slow
def test_a_character_carries_another(metarig):
    """One is animated on all fours and walks; the other falls onto the back and is carried along."""
    carrier = bpy.data.objects.new("Carrier", metarig.data.copy())
    bpy.context.collection.objects.link(carrier)
    bpy.context.view_layer.objects.active = carrier
    simulate_nothing(carrier, metarig)
    carrier.rotation_euler = (np.pi / 2, 0, 0)
    for frame, x in ((1, 0.0), (24, 0.0), (60, 0.5)):
        carrier.location = (x, 0.8, 0.3)
        carrier.keyframe_insert("location", frame=frame)
    metarig.rotation_euler = (np.pi / 2, 0, 0)
    metarig.location = (0, 0.8, 0.62)
    report = simulate(metarig, end=60, meets=True)
    assert report.ok, report.news()
    before, after = heads_at(metarig, 24), heads_at(metarig, 60)
    below = heads_at(carrier, 60)
    hips = 0  # the first bone that moves
    assert after[hips, 2] - below[hips, 2] > 0.2, "it did not fall through"
    assert after[hips, 0] - before[hips, 0] == pytest.approx(0.5, abs=0.1), "it was carried"


def simulate_nothing(carrier, other):
    """Makes both dynamic, and all bones of one follow their animation."""
    from armature_dynamics.addon import operators

    for armature in (carrier, other):
        operators.make_dynamic(armature)
        armature.armature_dynamics.meets = True
    for bone in carrier.pose.bones:
        if bone.armature_dynamics.role == "SIMULATED":
            bone.armature_dynamics.role = "ANIMATED"


def test_characters_that_meet_do_not_fall_through_each_other():
    """Two rods fall crosswise: the upper one comes to rest on the lower one."""
    lower, upper = chain(1, "Lower", length=1.0, height=0.3), chain(1, "Upper", length=1.0, height=0.8)
    upper.location, upper.rotation_euler = (0.5, -0.5, 0), (0, 0, np.pi / 2)
    from armature_dynamics.addon import operators

    for armature in (lower, upper):
        operators.make_dynamic(armature)
        armature.armature_dynamics.meets = True
    report = simulate(lower, end=30)
    assert report.bodies == 2 and report.ok, report.news()
    # rods of radius 15 % of their length: the lower one's axis lies at 15 cm, the upper one's at 45 cm
    assert heads_at(lower, 30)[0, 2] == pytest.approx(0.15, abs=0.02)
    assert heads_at(upper, 30)[0, 2] > 0.4
    for armature in (lower, upper):
        armature.armature_dynamics.layers = [armature == lower, armature == upper] + 18 * [False]
    simulate(lower, end=30)
    assert heads_at(upper, 30)[0, 2] == pytest.approx(0.15, abs=0.03), "without a group in common they pass"


def test_contacts_and_forces_are_kept_for_drawing():
    """At rest the forces at the points that are drawn carry the character's weight, at its place."""
    armature = chain(2, height=0.3)
    report = simulate(armature, end=40, mass=10.0, show_contacts=True)
    met = touches.kept(armature)
    points, arrows = met.at(40)
    assert len(points) and report.contacts_max >= len(points)
    assert np.abs(points[:, 2]).max() < 0.01
    # an arrow that carries all the weight is half as long as the character is tall
    upward = (arrows[1::2] - arrows[::2])[:, 2].sum()
    assert upward == pytest.approx(0.5 * 0.09, rel=0.05), "rods of radius 4.5 cm lie on the ground"
    assert ("LINES", overlay.FORCE) in [drawn[:2] for drawn in overlay.figures(armature, 40)]
    assert len(met.at(1)[0]) == 0, "it begins in the air"


def test_bones_that_overlap_at_the_start_are_let_through_and_told():
    """Thighs that touch at the hips must not push the legs apart, and who wonders finds the pair in the report."""
    armature = make_rig([
        ("hips", (0, 0, 1.0), (0, 0, 1.2), None, False),
        ("left", (0.05, 0, 1.0), (0.05, 0, 0.5), "hips", False),
        ("right", (-0.05, 0, 1.0), (-0.05, 0, 0.5), "hips", False),
    ])  # fmt: skip
    bpy.context.scene.use_gravity = False
    report = simulate(armature, end=13, use_ground=False)
    assert report.passing == [("left", "right")]
    assert "left and right" in "\n".join(report.lines())
    assert report.ok and report.contacts_max == 0, "they do not meet at all"
    report = simulate(armature, end=13, use_ground=False, self_collision=False)
    assert report.passing == [], "a family does not meet anyway"


def test_who_moves_nothing_is_told_so():
    """A carrier alone is an animation, not a simulation."""
    from armature_dynamics.addon.rig import ConversionError

    armature = chain(2)
    simulate_nothing(armature, armature)
    with pytest.raises(ConversionError, match="set the bones that physics should move to Simulated"):
        simulate(armature)


def test_results_do_not_depend_on_the_playhead_or_on_what_is_hidden():
    """The same take, twice: once with the playhead elsewhere, the eye closed, and hidden things in the way."""
    takes = []
    for disturbed in (False, True):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        armature = chain(3, height=1.6)
        stage = mesh_object("Wedge", [(-2, -2, 0), (2, -2, 0), (2, 2, 0), (-2, 2, 0), (0, 0, 1)],
                            [(3, 2, 1, 0), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)])  # fmt: skip
        for frame, z in ((1, 0.0), (20, 0.4)):
            stage.location.z = z
            stage.keyframe_insert("location", frame=frame)
        if disturbed:
            hidden = cube(location=(0.4, 0, 1))
            body(hidden, "PASSIVE", "BOX")
            hidden.hide_viewport = True
            stage.hide_set(True)
            bpy.context.scene.frame_set(17)
        report = simulate(armature, end=30, scenery=collected(stage))
        assert ("Cube" in report.scenery["ignored"]) == disturbed
        takes.append(values(armature.animation_data.action, 'pose.bones["bone0"].location'))
    assert len(takes[0]) == 30
    assert np.array_equal(takes[0], takes[1])
