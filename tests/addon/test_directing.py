"""Directing: what bones follow, when, how firmly, and what holds them; on the rig as Blender evaluates it."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import casting, directing, intake, operators
from armature_dynamics.addon.connection_list import pin
from armature_dynamics.addon.fcurve import bone_path
from armature_dynamics.addon.guiding import guide
from armature_dynamics.addon.joint_frame import JointFrame
from armature_dynamics.addon.joint_range import roomy
from armature_dynamics.core import Joint, Link, Linkage, compile_model
from armature_dynamics.core.limits import Limits
from armature_dynamics.core.spatial import exponential
from rigs import chain, curves, finished, grouped, key, simulate, straighten, values, world_heads

FIRM = 8.0


@pytest.fixture
def walker(shared_file):
    """CesiumMan, who walks on and on, so many times slower than he does; made dynamic."""

    def open_walk(slower=1):
        intake.open_input(shared_file("CesiumMan.glb"))
        armature = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
        for curve in curves(armature.animation_data.action):
            for point in curve.keyframe_points:
                point.co.x = 1 + (point.co.x - 1) * slower
                point.interpolation, point.handle_left_type, point.handle_right_type = "BEZIER", *["AUTO_CLAMPED"] * 2
            curve.update()
            curve.modifiers.new("CYCLES")
        bpy.context.scene.render.fps = 24 * slower
        operators.make_dynamic(armature)
        return armature

    return open_walk


def simulated(armature):
    return [bone.name for bone in armature.pose.bones if bone.armature_dynamics.role == "SIMULATED"]


def ends(armature, frames):
    """World positions (F, n, 2, 3) of the simulated bones' heads and tails."""
    found, names = [], simulated(armature)
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        evaluated = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
        bones = [evaluated.pose.bones[name] for name in names]
        found.append([[evaluated.matrix_world @ end for end in (bone.head, bone.tail)] for bone in bones])
    return np.array(found)


def follow(armature, frequency, **settings):
    for name in simulated(armature):
        for setting, value in {"follow": frequency, **settings}.items():
            setattr(armature.pose.bones[name], f"armature_dynamics_{setting}", value)


def key_setting(armature, names, setting, frames, interpolation="CONSTANT"):
    for name in names:
        for frame, value in frames.items():
            setattr(armature.pose.bones[name], f"armature_dynamics_{setting}", value)
            armature.pose.bones[name].keyframe_insert(f"armature_dynamics_{setting}", frame=frame)
    for curve in curves(armature.animation_data.action):
        if curve.data_path.endswith(f"armature_dynamics_{setting}"):
            for point in curve.keyframe_points:
                point.interpolation = interpolation


def apart(one, other):
    """The farthest that any end is from where it was, frame by frame (F,) [m]."""
    return np.linalg.norm(one - other, axis=-1).max((1, 2))


@pytest.mark.parametrize("world", [False, True])
def test_a_walk_that_is_followed_at_8_hz_stays_within_two_centimetres(walker, world):
    """Pose matching: every simulated bone's head and tail, every frame, on the ground, with self-collision."""
    armature = walker()
    before = ends(armature, range(1, 97))
    follow(armature, FIRM, follow_world=world)
    report = simulate(armature, end=96)
    assert report.ok
    assert apart(before, ends(armature, range(1, 97))).max() < 0.02


def test_let_go_the_walker_collapses_and_rises_again(walker):
    """Follow keyed to 0 is a ragdoll, keyed up again it finds back into the walk."""
    armature = walker()
    frames = range(1, 131)
    before = ends(armature, frames)
    key_setting(armature, simulated(armature), "follow", {1: FIRM, 24: FIRM, 25: 0.0, 80: 0.0, 104: FIRM}, "LINEAR")
    report = simulate(armature, end=130)
    after = ends(armature, frames)
    hips = after[:, 0, 0, 2]
    assert report.ok
    assert apart(before, after)[:24].max() < 0.02
    assert hips[60:79].max() < 0.5 * hips[0]
    assert apart(before, after)[-10:].max() < 0.02


def test_nothing_jumps_where_follow_is_keyed_to_nothing(walker):
    """The velocity before and after the switch, seen through twenty times as many frames: forces change, not speeds."""
    slower, switch = 20, 251
    armature = walker(slower)
    key_setting(armature, simulated(armature), "follow", {201: FIRM, switch: 0.0})
    simulate(armature, start=201, end=switch + 3)
    x = ends(armature, range(switch - 2, switch + 3))
    before, after = 3 * x[2] - 4 * x[1] + x[0], -3 * x[2] + 4 * x[3] - x[4]
    speed = np.linalg.norm(before, axis=-1)
    assert np.linalg.norm(after - before, axis=-1).max() <= 0.05 * speed.max()
    fast = speed > 0.25 * speed.max()
    assert (np.linalg.norm(after - before, axis=-1)[fast] <= 0.05 * speed[fast]).all()


def test_physics_takes_over_with_the_speed_of_the_animation():
    """Animated until it is let go: a swung chain flies on as it was swung."""
    armature = chain(3)
    armature.pose.bones["bone0"].rotation_mode = "XYZ"
    key(armature, "bone0", "rotation_euler", {1: (0, 0, 0), 13: (0, 0, -3.0), 60: (0, 0, -3.0)})
    straighten(armature)
    operators.make_dynamic(armature)
    key_setting(armature, simulated(armature), "hold", {1: True, 9: False})
    before = ends(armature, range(1, 9))
    report = simulate(armature, end=14, use_ground=False)
    after = ends(armature, range(1, 15))
    assert report.ok
    assert apart(before, after[:8]).max() < 0.002
    # 3 rad in half a second about the head of the first bone: the tail of the last is 0.9 m from it
    speed = np.linalg.norm(np.diff(after[:, 2, 1], axis=0), axis=-1) * 24
    np.testing.assert_allclose(speed[8], 0.9 * 6.0, rtol=0.1)
    assert not np.allclose(after[13], before[7], atol=0.1)


def test_an_upper_body_is_simulated_on_animated_legs(walker):
    """Partial simulation by roles: the feet walk as animated, bit by bit, and the arms hang and swing."""
    armature = walker()
    for name in simulated(armature):
        if "leg" in name or name == "Skeleton_torso_joint_1":
            armature.pose.bones[name].armature_dynamics.role = "ANIMATED"
    before = {frame: _world(armature, frame) for frame in (1, 20, 40)}
    report = simulate(armature, end=48)
    assert report.ok
    for frame, heads in before.items():
        now = _world(armature, frame)
        for name in heads:
            if "leg" in name:
                np.testing.assert_array_equal(now[name], heads[name])
    assert (
        np.linalg.norm(_world(armature, 40)["Skeleton_arm_joint_R__3_"] - before[40]["Skeleton_arm_joint_R__3_"]) > 0.1
    )


def _world(armature, frame):
    bpy.context.scene.frame_set(frame)
    return world_heads(armature)


@pytest.mark.parametrize("method", ["PULL", "EXACT"])
def test_a_pin_holds_until_its_key_lets_go(method):
    """A chain hung from a pin at its end: held as firmly as is said, then it falls."""
    armature = chain(3)
    operators.make_dynamic(armature)
    connection = pin(armature, "bone2", at="TAIL")
    assert connection.method == "PULL" and connection.frequency == FIRM
    connection.method = method
    for frame, on in ((1, True), (40, False)):
        connection.enabled = on
        armature.keyframe_insert("armature_dynamics.connections[0].enabled", frame=frame)
    start = ends(armature, [1])[0, 2, 1]
    report = simulate(armature, end=50, use_ground=False)
    tail = ends(armature, range(1, 51))[:, 2, 1]
    away = np.linalg.norm(tail - start, axis=-1)
    assert report.ok
    # a swinging chain pulls with more than its weight; 4 mm are the sag of a hanging one
    assert away[:39].max() < (0.02 if method == "PULL" else 1e-4)
    assert away[49] > 0.5


def test_a_pin_leads_a_bone_to_an_object():
    """Pulled to the origin of what is selected, wherever that moves."""
    armature = chain(3)
    target = bpy.data.objects.new("Target", None)
    bpy.context.collection.objects.link(target)
    for frame, place in ((1, (0.9, 0.0, 2.0)), (30, (0.5, 0.3, 2.2)), (60, (0.5, 0.3, 2.2))):
        target.location = place
        target.keyframe_insert("location", frame=frame)
    operators.make_dynamic(armature)
    pin(armature, "bone2", target)
    simulate(armature, end=60, use_ground=False, damping=1.0)
    assert np.linalg.norm(ends(armature, [60])[0, 2, 1] - (0.5, 0.3, 2.2)) < 0.02


@pytest.mark.parametrize("whole", [False, True])
def test_gravity_is_scaled(whole):
    """On the moon everything falls, six times slower."""
    fallen = []
    for weight in (1.0, 1 / 6):
        armature = chain(1)
        operators.make_dynamic(armature)
        if whole:
            armature.armature_dynamics.weight = weight
        else:
            armature.pose.bones["bone0"].armature_dynamics_weight = weight
        simulate(armature, end=13, use_ground=False)
        fallen.append(2.0 - ends(armature, [13])[0, 0, 0, 2])
        bpy.data.objects.remove(armature)
    assert fallen[0] == pytest.approx(0.5 * 9.81 * 0.25, rel=1e-3)
    assert fallen[1] == pytest.approx(fallen[0] / 6, rel=1e-3)


def test_a_muted_group_directs_nothing():
    """As Blender plays it: what the settings themselves say counts then."""
    armature = chain(1)
    operators.make_dynamic(armature)
    key_setting(armature, ["bone0"], "follow", {1: 5.0})
    group = grouped(armature)
    assert len(directing.directed(armature)) == 1
    group.mute = True
    assert directing.directed(armature) == {}


def test_nothing_directed_is_simulated_as_it_ever_was():
    """Defaults take the old road: there is no guide at all."""
    armature = chain(2)
    operators.make_dynamic(armature)
    cast, _ = finished(casting.cast_of(armature, [armature], 1, 3, beyond=False))
    assert guide(cast, 1) is None


def test_buttons_set_and_key_what_they_say():
    """Selected bones, a collection's, or all: one click each, nothing typed."""
    armature = chain(4)
    operators.make_dynamic(armature)
    data = armature.data
    tip = data.collections.new("Tip")
    for name in ("bone2", "bone3"):
        tip.assign(data.bones[name])
    data.bones.active = data.bones["bone3"]

    def strengths():
        return [round(bone.armature_dynamics_follow, 3) for bone in armature.pose.bones]

    assert bpy.ops.armature_dynamics.follow() == {"FINISHED"}
    assert strengths() == [8.0] * 4
    armature.pose.bones["bone3"].armature_dynamics_follow = 2.0
    armature.pose.bones["bone3"].armature_dynamics_follow_world = True
    assert bpy.ops.armature_dynamics.direct(where="COLLECTION") == {"FINISHED"}
    assert strengths() == [8.0, 8.0, 2.0, 2.0]
    assert armature.pose.bones["bone2"].armature_dynamics_follow_world
    bpy.context.scene.frame_set(7)
    assert bpy.ops.armature_dynamics.key_directing(where="COLLECTION") == {"FINISHED"}
    path = bone_path("bone2", directing.FOLLOW)
    np.testing.assert_array_equal(values(armature.animation_data.action, path), [[7.0, 2.0]])
    assert len(curves(armature.animation_data.action)) == 2


def test_keys_set_while_a_take_plays_count_in_the_next():
    """Directing goes in circles: look at the result, key, simulate again."""
    armature = chain(2)
    key(armature, "bone0", "rotation_quaternion", {1: (1, 0, 0, 0), 13: (1, 0, 0, 0)})
    simulate(armature)
    assert ends(armature, [13])[0, 0, 0, 2] < 1.0
    key_setting(armature, simulated(armature), "follow", {1: FIRM}, "BEZIER")
    simulate(armature)
    assert ends(armature, [13])[0, 0, 0, 2] == pytest.approx(2.0, abs=0.01)
    bpy.ops.armature_dynamics.discard()
    path = bone_path("bone0", directing.FOLLOW)
    np.testing.assert_array_equal(values(armature.animation_data.action, path), [[1.0, FIRM]])


@pytest.mark.parametrize("kind", sorted(directing.sways()))
def test_a_tail_sways_the_more_the_nearer_to_its_tip(kind):
    """One click for tails and hair: late where the body turns, and back in place when it rests."""
    armature = chain(5)
    key(armature, "bone0", "rotation_quaternion", {1: (1, 0, 0, 0), 9: (0.966, 0, 0, 0.259), 60: (0.966, 0, 0, 0.259)})
    operators.make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    armature.data.bones.active = armature.data.bones["bone1"]
    assert bpy.ops.armature_dynamics.sway(kind=kind) == {"FINISHED"}
    strengths = [armature.pose.bones[f"bone{i}"].armature_dynamics_follow for i in range(1, 5)]
    first, last = directing.sways()[kind]["follow"]
    np.testing.assert_allclose(strengths, np.geomspace(first, last, 4), rtol=1e-6)
    before = ends(armature, range(1, 61))
    assert simulate(armature, end=60, use_ground=False).ok
    away = np.linalg.norm(ends(armature, range(1, 61)) - before, axis=-1)[:, :, 1]
    assert away[:, 3].max() > 0.05 and away[:, 0].max() < away[:, 3].max()
    if kind == "secondary":
        assert away[-1].max() < 0.005


@pytest.mark.parametrize("seed", range(20))
def test_a_joint_finds_room_for_all_that_is_followed(seed):
    """No frame of the animation is beyond a limit that physics keeps, and no limit is moved farther than it must."""
    rng = np.random.default_rng(seed)
    wide = rng.uniform(0.1, 1.2)
    turns = exponential(wide * rng.normal(size=(30, 3)) * rng.uniform(0.05, 1.0, 3))
    low, high = -np.radians(rng.uniform(2, 90, 3)), np.radians(rng.uniform(2, 90, 3))
    frame, more = roomy(JointFrame("spherical", np.eye(3), np.eye(3), low, high), turns)
    linkage = Linkage()
    base = linkage.add(Link("base", Joint("fixed"), keyed=True))
    linkage.add(Link("bone", Joint("spherical", frame.lower, frame.upper)), base)
    limits = Limits(compile_model(linkage))
    assert max(limits.violation(turn) for turn in turns) < 1e-9
    assert more <= 2 * wide * 3
    again, none = roomy(frame, turns)
    assert none < 1e-9 and again.kind == "spherical"


def test_a_hinge_that_is_followed_beside_its_axis_becomes_a_ball():
    """Animators bend knees sideways by a few degrees; what stays on the axis remains a hinge."""
    hinge = JointFrame("hinge", np.eye(3), np.eye(3), np.array([0.0]), np.array([2.0]))
    bent = exponential(np.array([[0.1, 0.0, 0.0], [1.0, 0.0, 0.0], [2.2, 0.0, 0.0]]))
    frame, more = roomy(hinge, bent)
    assert (
        frame.kind == "hinge"
        and frame.upper[0] == pytest.approx(2.2, abs=0.01)
        and more == pytest.approx(0.2, abs=0.01)
    )
    frame, _ = roomy(hinge, np.concatenate((bent, exponential(np.array([[1.0, 0.1, 0.05]])))))
    assert frame.kind == "spherical"
