"""Trajectory -> Action, on rigs with everything that rigs have."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import stage
from armature_dynamics.addon.operators import make_dynamic
from armature_dynamics.addon.rig import ConversionError
from mathutils import Euler
from rigs import chain, curves, key, make_rig, simulate, straighten, values, world_heads

MODES = ["QUATERNION", "AXIS_ANGLE", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"]


def exact(report):
    """Whether the rig plays what was simulated."""
    return (
        report.joint_separation_max_m <= 1e-6 and report.bake_error_max_m <= 1e-4 and report.bake_error_max_deg <= 0.01
    )


def test_each_bone_is_keyed_in_its_own_rotation_mode():
    """Mixed modes crash other bakes, or are forced to XYZ (field case 14)."""
    armature = chain(len(MODES), height=1.0)
    for bone, mode in zip(armature.pose.bones, MODES):
        bone.rotation_mode = mode
    report = simulate(armature, end=25)
    assert exact(report)
    assert [bone.rotation_mode for bone in armature.pose.bones] == MODES
    channels = {
        "QUATERNION": ("rotation_quaternion", 4), "AXIS_ANGLE": ("rotation_axis_angle", 4),
    }  # fmt: skip
    for bone, mode in zip(armature.pose.bones, MODES):
        channel, count = channels.get(mode, ("rotation_euler", 3))
        assert values(armature.animation_data.action, f'pose.bones["{bone.name}"].{channel}').shape == (25, 1 + count)


def test_small_turns_are_as_exact_by_axis_and_angle():
    """An arc cosine in single precision knows no angles between 0 and 0.02°: what is long was millimetres off."""
    armature = chain(2, height=5.0, length=4.0)
    make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    armature.pose.bones["bone1"].rotation_mode = "AXIS_ANGLE"
    bpy.context.scene.gravity = (0.0, 0.0, -0.01)
    report = simulate(armature, end=8)
    assert report.bake_error_max_m < 1e-5 and report.bake_error_max_deg < 1e-3


@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "ZYX"])
def test_keys_do_not_jump_while_a_body_tumbles(mode):
    """A flip between frames is invisible on the frames and ruins motion blur and retiming (field case 15)."""
    armature = chain(1, height=30.0)
    bone = armature.pose.bones[0]
    bone.rotation_mode = mode
    # half a turn a frame before the fall lets it spin through every orientation
    channel = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(mode, "rotation_euler")
    turns = {1: Euler((0.0, 0.0, 0.0), "ZYX"), 2: Euler((0.3, 0.1, 0.25), "ZYX")}
    frames = {
        frame: {"QUATERNION": turn.to_quaternion(), "ZYX": turn}.get(mode)
        or (turn.to_quaternion().angle, *(turn.to_quaternion().axis))
        for frame, turn in turns.items()
    }
    key(armature, bone.name, channel, frames)
    report = simulate(armature, end=48)
    assert exact(report)
    table = values(armature.animation_data.action, f'pose.bones["{bone.name}"].{channel}')[:, 1:]
    steps = np.abs(np.diff(table, axis=0)).max()
    assert np.ptp(table, axis=0).max() > 0.9
    assert steps < (0.6 if mode == "QUATERNION" else 1.7)


@pytest.mark.parametrize("rotation", [True, False])
@pytest.mark.parametrize("scale", ["FULL", "FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE", "NONE_LEGACY"])
@pytest.mark.parametrize("local", [True, False])
def test_inheritance_flags_are_inverted(rotation, scale, local):
    """Flags that a rigger chose stretch the rig elsewhere (field case 20); with a scaled bone they show."""
    armature = chain(4, height=1.0)
    for bone in armature.data.bones:
        bone.use_inherit_rotation = rotation
        bone.inherit_scale = scale
        bone.use_local_location = local
    armature.pose.bones["bone1"].scale = (1.3, 1.3, 1.3)
    armature.rotation_euler = (0.2, 0.5, 1.0)
    armature.scale = (0.7,) * 3
    assert exact(simulate(armature))


def test_connected_bones_get_rotations_only():
    """Location keys on connected bones do nothing and confuse (field case 19)."""
    armature = chain(3, height=1.0)
    simulate(armature)
    paths = {curve.data_path for curve in curves(armature.animation_data.action)}
    assert 'pose.bones["bone0"].location' in paths
    assert not {path for path in paths if path.endswith(('1"].location', '2"].location', ".scale"))}


def test_unconnected_bones_do_not_drift_off():
    """The joint holds a bone where it was at the start, also where that is not its rest place (field case 19)."""
    armature = make_rig(
        [
            ("a", (0, 0, 1), (0.4, 0, 1), None, False),
            ("b", (0.5, 0.1, 1), (0.9, 0, 1), "a", False),
            ("c", (1.0, 0, 1), (1.3, 0, 1), "b", False),
        ]
    )
    armature.pose.bones["c"].location = (0.05, 0.02, -0.1)
    before = world_heads(armature)
    report = simulate(armature, end=25)
    assert exact(report)
    bpy.context.scene.frame_set(25)
    after = world_heads(armature)
    assert np.linalg.norm(after["b"] - after["a"]) == pytest.approx(np.linalg.norm(before["b"] - before["a"]), abs=1e-5)
    action = armature.animation_data.action
    assert len(values(action, 'pose.bones["b"].location')) == 0
    assert len(values(action, 'pose.bones["c"].location')) == 1


def test_only_simulated_bones_are_written_and_the_others_play_on():
    """Other bones' keys vanish elsewhere, or every bone gets keys (field case 12)."""
    armature = make_rig(
        [
            ("body", (0, 0, 2), (0.4, 0, 2), None, False),
            ("limb", (0.4, 0, 2), (0.8, 0, 2), "body", True),
            ("face_lip", (0.4, 0, 2), (0.4, 0, 2.1), "body", False),
            ("prop_control", (3, 0, 0), (3, 0, 1), None, False),
        ]
    )
    key(armature, "face_lip", "rotation_quaternion", {1: (1, 0, 0, 0), 13: (0.9, 0.43, 0, 0)})
    key(armature, "prop_control", "location", {1: (0, 0, 0), 13: (0, 1, 0)})
    source = armature.animation_data.action
    untouched = [[tuple(point.co) for point in curve.keyframe_points] for curve in curves(source)]
    simulate(armature)
    action = armature.animation_data.action
    assert action != source
    for path in ('pose.bones["face_lip"].rotation_quaternion', 'pose.bones["prop_control"].location'):
        assert np.array_equal(values(action, path), values(source, path))
    assert not [curve for curve in curves(action) if "face_lip" in curve.data_path and "location" in curve.data_path]
    assert [[tuple(point.co) for point in curve.keyframe_points] for curve in curves(source)] == untouched


def test_an_object_without_animation_gets_an_action_that_plays():
    """animation_data may not exist, and an action without its slot plays nothing (field cases 10 and 11)."""
    armature = chain(2)
    assert armature.animation_data is None
    simulate(armature)
    bpy.context.scene.frame_set(1)
    high = world_heads(armature)["bone0"][2]
    bpy.context.scene.frame_set(12)
    assert world_heads(armature)["bone0"][2] < high - 0.5


def test_what_came_before_the_start_is_kept():
    """A walk that ends in a fall is still a walk before it."""
    armature = chain(2, height=5.0)
    key(armature, "bone0", "location", {1: (0, 0, 0), 10: (0, 1, 0), 20: (0, 1, 1)})
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    scene = bpy.context.scene
    expected = {}
    for frame in (1, 4, 9, 10):
        scene.frame_set(frame)
        expected[frame] = {bone.name: np.array(bone.matrix) for bone in armature.pose.bones}
    simulate(armature, start=10, end=20)
    for frame, poses in expected.items():
        scene.frame_set(frame)
        for bone in armature.pose.bones:
            assert np.abs(np.array(bone.matrix) - poses[bone.name]).max() < 1e-5


def test_the_velocity_of_the_animation_is_taken_over():
    """A thrown body flies on: what was animated at 2.4 m/s is 2.4 m further after a second."""
    armature = chain(1, height=30.0)
    armature.data.bones[0].use_local_location = False
    key(armature, "bone0", "location", {1: (0, 0, 0), 11: (0, 1, 0)})
    straighten(armature)
    simulate(armature, start=5, end=29)
    scene = bpy.context.scene
    scene.frame_set(5)
    begin = world_heads(armature)["bone0"]
    scene.frame_set(29)
    end = world_heads(armature)["bone0"]
    assert end[1] - begin[1] == pytest.approx(2.4, rel=0.01)
    assert end[2] - begin[2] == pytest.approx(-0.5 * 9.81, rel=0.01)


@pytest.mark.parametrize(("fps", "base"), [(24, 1.0), (30, 1.001), (120, 0.999996)])
def test_time_runs_at_the_scenes_rate(fps, base):
    """fps_base is ignored elsewhere (field case 4): a body falls 4.905 m in a second of any rate."""
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = fps, base
    armature = chain(1, height=30.0)
    simulate(armature, start=1, end=fps + 1)
    scene.frame_set(1)
    high = world_heads(armature)["bone0"][2]
    scene.frame_set(fps + 1)
    seconds = fps * base / fps
    assert high - world_heads(armature)["bone0"][2] == pytest.approx(0.5 * 9.81 * seconds**2, rel=1e-4)


def test_the_playhead_does_not_matter_and_stays():
    """Recording with the playhead elsewhere mangles the result elsewhere (field case 6)."""
    results = []
    for frame in (1, 7, 300):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        armature = chain(3, height=1.0)
        key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
        bpy.context.scene.frame_set(frame)
        simulate(armature, start=3, end=15)
        assert bpy.context.scene.frame_current == frame
        results.append(values(armature.animation_data.action, 'pose.bones["bone0"].location'))
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def test_a_second_take_starts_from_the_source_again():
    """The result feeds back into the target elsewhere (field case 16); here both takes are the same."""
    armature = chain(3, height=1.0)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    source = armature.animation_data.action
    simulate(armature)
    first = values(armature.animation_data.action, 'pose.bones["bone0"].location')
    simulate(armature)
    assert np.array_equal(first, values(armature.animation_data.action, 'pose.bones["bone0"].location'))
    assert armature.armature_dynamics.source_action == source
    assert len([action for action in bpy.data.actions if "Dynamics" in action.name]) == 1


def test_simulated_and_animated_bones_carry_each_other():
    """A keyed child of a simulated parent, and a simulated child of a keyed parent (field case 26)."""
    armature = chain(4, height=3.0)
    names = ("SIMULATED", "ANIMATED", "SIMULATED", "SIMULATED")
    armature.armature_dynamics.enabled = True
    for bone, role in zip(armature.pose.bones, names):
        bone.armature_dynamics.role = role
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 12: (0.8, 0.6, 0, 0), 24: (0.8, -0.6, 0, 0)})
    report = simulate(armature, end=20)
    assert exact(report)
    assert report.bodies == 4
    keyed = values(armature.animation_data.action, 'pose.bones["bone1"].rotation_quaternion')
    assert np.array_equal(
        keyed, values(armature.armature_dynamics.source_action, 'pose.bones["bone1"].rotation_quaternion')
    )


def test_a_bone_connected_to_what_is_not_simulated_hangs_from_it():
    """A connected bone cannot come loose: the one above it becomes its hook."""
    armature = chain(3, height=3.0)
    armature.armature_dynamics.enabled = True
    for bone, role in zip(armature.pose.bones, ("IGNORED", "SIMULATED", "SIMULATED")):
        bone.armature_dynamics.role = role
    before = world_heads(armature)
    report = simulate(armature, end=20)
    assert exact(report)
    bpy.context.scene.frame_set(20)
    after = world_heads(armature)
    assert np.allclose(before["bone1"], after["bone1"], atol=1e-5)
    assert after["bone2"][2] < before["bone2"][2] - 0.1


def test_bones_between_simulated_ones_hold_still():
    """A twist bone's animation between two bodies would pull their joint apart."""
    armature = chain(3, height=3.0)
    armature.armature_dynamics.enabled = True
    for bone, role in zip(armature.pose.bones, ("SIMULATED", "IGNORED", "SIMULATED")):
        bone.armature_dynamics.role = role
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 12: (0.8, 0.6, 0, 0)})
    report = simulate(armature, start=4, end=20)
    assert exact(report) and report.bodies == 2


def test_a_rig_that_was_edited_after_it_was_posed_is_read_right():
    """Bones and pose bones need not stand in the same order; whoever mixes them up moves the wrong limbs."""
    armature = chain(3, height=3.0)
    bpy.context.view_layer.update()
    bpy.ops.object.mode_set(mode="EDIT")
    late = armature.data.edit_bones.new("late")
    late.head, late.tail, late.parent = (0.3, 0, 3), (0.3, 0.5, 3), armature.data.edit_bones["bone0"]
    armature.data.edit_bones["bone1"].use_connect = False
    armature.data.edit_bones["bone1"].parent = late
    bpy.ops.object.mode_set(mode="OBJECT")
    armature.pose.bones["late"].rotation_quaternion = (0.9, 0.1, 0.3, 0.2)
    armature.pose.bones["bone2"].rotation_quaternion = (0.9, 0.3, 0.0, 0.2)
    report = simulate(armature, end=20)
    assert exact(report) and report.ok


def test_a_moving_armature_object_is_accounted_for():
    """Root motion on the object: bones are keyed against it, frame by frame (field case 21)."""
    armature = chain(3, height=4.0)
    for frame, place in ((1, (0, 0, 0)), (20, (0, 3, 1))):
        armature.location = place
        armature.keyframe_insert("location", frame=frame)
    assert exact(simulate(armature, start=5, end=20))


def test_far_from_the_origin_single_precision_counts():
    """At a hundred metres Blender's own numbers are coarser than a micrometre."""
    armature = chain(6, height=1.0)
    armature.pose.bones["bone0"].location = (90, 70, 80)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    key(armature, "bone2", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.6, 0, 0, 0.8)})
    report = simulate(armature, start=5, end=40, use_ground=False)
    assert report.joint_separation_max_m > 1e-6
    assert not [warning for warning in report.warnings if warning.code in ("joints_apart", "bake_error")]


def test_an_animated_scale_of_the_armature_is_refused():
    """Bodies do not grow."""
    armature = chain(2)
    for frame, scale in ((1, 1.0), (10, 1.5)):
        armature.scale = (scale,) * 3
        armature.keyframe_insert("scale", frame=frame)
    with pytest.raises(ConversionError, match=r"'Rig': its scale changes.*remove"):
        simulate(armature)


def test_drivers_that_fight_are_reported():
    """A driven channel ignores its keys."""
    armature = chain(3, height=3.0)
    armature.pose.bones["bone2"].driver_add("rotation_quaternion", 1)
    assert [warning.bone for warning in simulate(armature).warnings if warning.code == "driver"] == ["bone2"]


def test_blending_with_nla_tracks_is_refused():
    """What is added to other tracks does not show what was keyed."""
    armature = chain(2)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    armature.animation_data.nla_tracks.new()
    armature.animation_data.action_blend_type = "ADD"
    with pytest.raises(ConversionError, match=r"'Rig': its action is blended.*Replace"):
        simulate(armature)


def test_automatic_substeps_are_worded_as_the_most():
    """Frames take as many as they need; the number is that of the worst."""
    armature = chain(2, height=1.0)
    assert "up to" in simulate(armature).lines()[1]
    assert simulate(armature, substeps=8).lines()[1] == "13 frames of 8 steps"


def test_constraints_that_fight_are_reported_and_muted_reversibly():
    """IK fights the baked keys (field case 13): it is said before, and Discard brings it back."""
    armature = chain(3, height=3.0)
    target = bpy.data.objects.new("Target", None)
    bpy.context.collection.objects.link(target)
    target.location = (0.5, 0, 3.3)
    constraint = armature.pose.bones["bone2"].constraints.new("IK")
    constraint.target = target
    report = simulate(armature)
    assert [warning.bone for warning in report.warnings if warning.code == "constraint"] == ["bone2"]
    assert not report.ok
    report = simulate(armature, mute_constraints=True)
    assert exact(report) and constraint.mute
    stage.discard(armature)
    assert not constraint.mute
