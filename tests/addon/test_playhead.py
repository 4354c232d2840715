"""A take is the same wherever the playhead stands, and leaves it there."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import connection, operators
from armature_dynamics.addon.problem import ConversionError
from connecting import connect, empty, key_enabled
from evaluated import evaluated
from mending import problems
from rigs import chain, curves, key, puppet, simulate


def falls_from(playhead: int, prepare) -> np.ndarray:
    """Where bones begin and end (frames, bones, 2, 3) in a take that is begun with the playhead at a frame."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    armature, scene = chain(3), bpy.context.scene
    operators.make_dynamic(armature)
    prepare(armature, scene)
    scene.frame_set(playhead, subframe=0.25)
    assert simulate(armature, end=13).ok
    assert (scene.frame_current, scene.frame_subframe) == (playhead, 0.25)
    return evaluated(armature, range(1, 14))[0]


def gravity(armature, scene) -> None:
    for frame, z in ((1, -9.81), (10, 9.81)):
        scene.gravity = (0.0, 0.0, z)
        scene.keyframe_insert("gravity", frame=frame)


def ground(armature, scene) -> None:
    for frame, height in ((1, 1.5), (10, 0.0)):
        armature.armature_dynamics.ground_height = height
        armature.keyframe_insert("armature_dynamics.ground_height", frame=frame)


def rotation_mode(armature, scene) -> None:
    bone = armature.pose.bones["bone1"]
    for frame, mode, channel in ((1, "QUATERNION", "rotation_quaternion"), (5, "XYZ", "rotation_euler")):
        bone.rotation_mode = mode
        bone.keyframe_insert("rotation_mode", frame=frame)
        bone.keyframe_insert(channel, frame=frame)


def test_muted_keys_of_settings_and_of_gravity_are_no_keys():
    """They count neither in time nor at the start."""
    armature, scene = chain(3), bpy.context.scene
    operators.make_dynamic(armature)
    armature.keyframe_insert("armature_dynamics.mass", frame=1)
    scene.keyframe_insert("gravity", frame=1)
    driver = armature.driver_add("armature_dynamics.damping")
    assert "timeless" in problems(armature)
    for curve in (*curves(armature.animation_data.action), *curves(scene.animation_data.action), driver):
        curve.mute = True
    assert "timeless" not in problems(armature)


@pytest.mark.parametrize("prepare", [gravity, ground, rotation_mode])
def test_what_is_keyed_counts_as_it_is_at_the_start(prepare):
    first = falls_from(1, prepare)
    assert np.ptp(first[..., 2], axis=0).min() > 0.3, "it falls"
    np.testing.assert_allclose(falls_from(11, prepare), first, atol=1e-5)


def test_keys_of_settings_that_do_not_count_in_time_are_told():
    """Those of what is directed, and of connections' Enabled, do count."""
    armature, scene = chain(3), bpy.context.scene
    operators.make_dynamic(armature)
    connect(armature, "bone0", empty(location=(0, 0, 2)), name="hook")
    key_enabled(armature, {1: True, 5: False})
    bone = armature.pose.bones["bone1"]
    bone.keyframe_insert("armature_dynamics_follow", frame=1)
    assert "timeless" not in problems(armature)
    ground(armature, scene)
    gravity(armature, scene)
    scene.keyframe_insert("armature_dynamics.joints", frame=1)
    armature.keyframe_insert("armature_dynamics.mass", frame=1)
    armature.keyframe_insert('pose.bones["bone1"].armature_dynamics.shape_thickness', frame=1)
    told = [each for each in simulate(armature).warnings if each.code == "timeless"]
    assert {each.bone: each.text.partition(": ")[2] for each in told} == {
        "": "Height, Mass, Joints, Gravity",
        "bone1": "Thickness",
    }


@pytest.mark.parametrize(("playhead", "start"), [(3, 10), (10, 3)])
def test_who_meets_and_what_is_held_counts_as_it_is_at_the_start(playhead, start):
    """Somebody who is hidden where the playhead stands may well be there when it begins, and the other way round."""
    one, other, bar = chain(2, "One"), chain(2, "Other", height=1.0), empty()
    for armature in (one, other):
        operators.make_dynamic(armature)
        armature.armature_dynamics.meets = True
    for frame, away in ((1, True), (6, False)):
        for thing in (other, bar):
            thing.hide_viewport = away
            thing.keyframe_insert("hide_viewport", frame=frame)
    bar.keyframe_insert("location", frame=1)
    bpy.context.scene.frame_set(playhead)
    bar.location.x = 5.0
    assert connection.group(one, start) == ([one, other] if start == 10 else [one])
    assert (bar.location.x, bpy.context.scene.frame_current) == (5.0, playhead), "what is not keyed stays"
    connect(one, "bone0", bar)
    if start == 10:
        assert connection.group(one, start) == [one, other]
    else:
        with pytest.raises(ConversionError, match="'Bar' is hidden"):
            connection.group(one, start)


@pytest.mark.parametrize("button", ["keep restore_source", "discard", "remove", "make_dynamic"])
def test_buttons_leave_what_is_not_keyed_of_other_things(button):
    """Somebody may be about to key where a prop is now."""
    bar, armature = empty(), puppet()
    bar.keyframe_insert("location", frame=1)
    key(armature, "lower ctl", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    simulate(armature)
    bar.location.x = 5.0
    for name in button.split():
        assert getattr(bpy.ops.armature_dynamics, name)() == {"FINISHED"}
    assert bar.location.x == 5.0
    if button != "make_dynamic":
        found = armature.pose.bones["lower ctl"].rotation_quaternion
        frame = bpy.context.scene.frame_current
        assert frame == 1 and tuple(found) == pytest.approx((1, 0, 0, 0), abs=1e-6)
