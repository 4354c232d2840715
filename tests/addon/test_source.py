"""The source animation is sampled as it plays, whatever moves it and wherever it begins and ends."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import casting, preflight
from armature_dynamics.addon.operators import make_dynamic
from armature_dynamics.addon.problem import ConversionError
from connecting import empty, places
from rigs import chain, curves, key, make_rig, simulate, straighten, values


def on_a_path(armature):
    """Parented to a curve along which its Evaluation Time leads."""
    path = bpy.data.curves.new("Path", "CURVE")
    path.splines.new("POLY").points.add(1)
    path.splines[0].points[1].co = (12, 0, 0, 1)
    path.use_path, path.path_duration = True, 24
    for frame in (1, 25):
        path.eval_time = frame - 1
        path.keyframe_insert("eval_time", frame=frame)
    armature.parent = bpy.data.objects.new("Path", path)
    bpy.context.collection.objects.link(armature.parent)


def on_horseback(armature):
    """Parented to a bone that a constraint moves."""
    horse = make_rig([("back", (0, 0, 0), (0, 0, 1), None, False)], "Horse")
    horse.pose.bones["back"].constraints.new("COPY_LOCATION").target = led()
    armature.parent, armature.parent_type, armature.parent_bone = horse, "BONE", "back"


def led():
    """An object that goes 6 m in a second."""
    target = empty("Led", (0, 0, 0))
    for frame in (1, 25):
        target.location = ((frame - 1) / 4, 0, 0)
        target.keyframe_insert("location", frame=frame)
    return target


@pytest.mark.parametrize("carried", [on_a_path, on_horseback])
def test_what_carries_a_character_moves_it(carried):
    """It falls on from where it is, and with the speed that it has."""
    armature = chain(3, height=30.0)
    carried(armature)
    before = places(armature, "bone0", (12, 13), "head")
    simulate(armature, start=13, end=25)
    after = places(armature, "bone0", (13, 25), "head")
    assert after[0] == pytest.approx(before[1], abs=1e-3)
    assert after[1, 0] - after[0, 0] == pytest.approx(12 * (before[1, 0] - before[0, 0]), rel=0.2)
    assert before[1, 0] - before[0, 0] > 0.2


def led_by_a_constraint(armature):
    armature.pose.bones["bone0"].constraints.new("COPY_LOCATION").target = led()
    return {"mute_constraints": True}


def led_by_a_driver(armature):
    armature.pose.bones["bone0"].driver_add("location", 1).driver.expression = "frame / 8"
    return {"mute_drivers": True}


def cycled(armature):
    key(armature, "bone0", "location", {11: (0, 0, 0), 14: (0, 1, 0), 17: (0, 0, 0)})
    for curve in curves(armature.animation_data.action):
        curve.modifiers.new("CYCLES")
    return {}


def extrapolated(armature):
    key(armature, "bone0", "location", {11: (0, 0, 0), 17: (0, 1, 0)})
    straighten(armature)
    for curve in curves(armature.animation_data.action):
        curve.extrapolation = "LINEAR"
    return {}


@pytest.mark.parametrize("moved", [led_by_a_constraint, led_by_a_driver, cycled, extrapolated])
def test_what_moves_without_keys_is_kept_around_the_take(moved):
    """What leads to a fall is in the same shot, and what a take blends out into goes on."""
    armature = chain(3, height=5.0)
    settings = moved(armature)
    bpy.context.scene.frame_end = 34
    frames = [*range(1, 21), *range(30, 35)]
    before = places(armature, "bone0", frames, "head")
    simulate(armature, start=20, end=30, blend_out=5, **settings)
    assert np.abs(places(armature, "bone0", frames, "head") - before).max() < 1e-4
    assert len(np.unique(before.round(3), axis=0)) > 3


def test_what_only_its_keys_move_is_sampled_where_they_are():
    """A scene of an hour makes no take of a second long."""
    armature = chain(3, height=5.0)
    key(armature, "bone0", "location", {11: (0, 0, 0), 17: (0, 1, 0)})
    armature.pose.bones["bone0"].constraints.new("COPY_LOCATION").target = led()
    simulate(armature, start=20, end=30, blend_out=5)
    assert values(armature.animation_data.action, 'pose.bones["bone0"].location')[[0, -1], 0].tolist() == [11, 30]


@pytest.mark.parametrize("result", ["ACTION", "STRIP"])
def test_keys_outside_a_manual_frame_range_are_kept(result):
    """It says what to play, and so what to simulate, but moves nothing; nor does a take end where its source does."""
    armature = chain(3, height=5.0)
    key(armature, "bone0", "location", {-20: (0, 0, 0), 4: (0, 1, 0), 40: (0, 5, 0)})
    key(armature, "bone2", "rotation_quaternion", {-20: (1, 0, 0, 0), 40: (0.8, 0.6, 0, 0)})
    source = armature.animation_data.action
    source.use_frame_range = source.use_cyclic = True
    source.frame_start, source.frame_end = 1, 8
    make_dynamic(armature)
    assert casting.default_range(armature) == (1, 8)
    armature.pose.bones["bone2"].armature_dynamics.role = "ANIMATED"
    frames = range(-20, 6)
    before = places(armature, "bone0", frames, "head")
    simulate(armature, start=5, end=20, result=result)
    assert np.abs(places(armature, "bone0", frames, "head") - before).max() < 1e-4
    take = armature.armature_dynamics.action
    assert take.frame_range[1] >= 20 and not take.use_cyclic
    assert tuple(source.frame_range) == (1, 8)


def hidden(armature, frames):
    """Keys Disable in Viewports: {frame: value}."""
    for frame, value in frames.items():
        armature.hide_viewport = value
        armature.keyframe_insert("hide_viewport", frame=frame)


def test_an_armature_that_is_hidden_while_it_is_simulated_is_refused():
    """Blender does not evaluate it there: it would stand still for that time. Keys would hide it again after Show."""
    armature = chain(3, height=5.0)
    key(armature, "bone0", "location", {1: (0, 0, 0), 30: (0, 3, 0)})
    make_dynamic(armature)
    hidden(armature, {1: False, 12: True, 16: False})
    bpy.context.scene.frame_set(1)
    with pytest.raises(ConversionError, match=r"'Rig' is hidden at frame 12 by its keys, .*; show it there") as error:
        simulate(armature, start=8, end=20)
    assert not error.value.problem.fix
    armature.armature_dynamics.frame_start = 13
    found = preflight.look(armature)
    assert [problem.code for problem in found] == ["hidden"] and "at frame 13 by its keys," in found[0].text
    armature.animation_data.action = None
    armature.hide_viewport = True
    assert preflight.look(armature)[0].fix == "show"


@pytest.mark.parametrize("by", ["its keys", "an NLA strip", "a driver", "muted keys"])
def test_what_hides_an_armature_is_said_where_show_would_not_help(by):
    """What is muted hides nothing again, and is no reason to leave somebody without a button."""
    armature = chain(3, height=5.0)
    make_dynamic(armature)
    if by == "a driver":
        armature.driver_add("hide_viewport").driver.expression = "1"
    else:
        hidden(armature, {1: True})
    animation = armature.animation_data
    if by == "an NLA strip":
        action, animation.action = animation.action, None
        animation.nla_tracks.new().strips.new("Hide", 1, action)
    elif by == "muted keys":
        curves(animation.action)[0].mute = True
    bpy.context.view_layer.update()
    (problem,) = preflight.look(armature)
    told = "" if by == "muted keys" else f" by {by}"
    assert f"hidden at frame {armature.armature_dynamics.frame_start}{told}, so" in problem.text
    assert problem.fix == ("show" if by == "muted keys" else "")


@pytest.mark.parametrize("playhead", [6, 10])
def test_a_character_that_appears_and_vanishes_is_simulated_between(playhead):
    """Nobody sees it where the playhead stands, and what is not seen before and after needs no pose of its own."""
    armature = chain(3, height=5.0)
    key(armature, "bone0", "location", {1: (0, 0, 0), 40: (0, 8, 0)})
    make_dynamic(armature)
    frames = (3, 10, 26)
    before = places(armature, "bone0", frames, "head")
    hidden(armature, {1: True, 2: False, 5: True, 10: False, 30: True})
    bpy.context.scene.frame_set(playhead)
    report = simulate(armature, start=10, end=25, blend_out=4)
    assert report.ok and bpy.context.scene.frame_current == playhead
    assert np.abs(places(armature, "bone0", frames, "head") - before).max() < 1e-4
    kept = dict(values(armature.animation_data.action, 'pose.bones["bone0"].location')[:, [0, 2]])
    assert kept[1] == kept[2] and kept[4] == kept[9] and kept[29] == kept[40]
