"""Nonlinear animation: sources that play from strips, and results that are strips above them."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import casting, nla, preflight, stage
from armature_dynamics.addon.problem import ConversionError
from connecting import connect, key_enabled
from evaluated import differences, evaluated
from rigs import chain, curves, key, simulate, stop, straighten, world_heads
from test_bake import exact
from test_life import snapshot

FRAMES = range(-3, 25)


def waving(count=3):
    """A chain with an animation of its own, which also keys a bone's place."""
    armature = chain(count, height=1.0)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0), 20: (1, 0, 0, 0)})
    bpy.context.view_layer.update()
    return armature


def resting():
    armature = chain(3, height=1.0)
    armature.pose.bones["bone2"].rotation_quaternion = (0.8, 0, 0, 0.6)
    return armature


def pushed_down(armature, start=1.0, scale=1.0):
    """The action that plays becomes a strip, as Push Down does it."""
    action = armature.animation_data.action
    bpy.context.view_layer.update()
    armature.animation_data.action = None
    strip = armature.animation_data.nla_tracks.new().strips.new("Wave", 1, action)
    strip.scale = scale
    strip.frame_start_ui = start
    return armature


def also_keyed(armature):
    """With an action above its strip."""
    key(armature, "bone2", "rotation_quaternion", {1: (1, 0, 0, 0), 15: (0.6, 0, 0, 0.8)})
    return armature


SOURCES = {
    "an action": waving,
    "nothing": resting,
    "a strip": lambda: pushed_down(waving()),
    "both": lambda: also_keyed(pushed_down(waving())),
}


@pytest.fixture(params=SOURCES)
def armature(request):
    """A chain whose source animation is of one of these kinds."""
    return SOURCES[request.param]()


def tracks(armature):
    """All that the NLA editor shows."""
    animation = armature.animation_data
    return [
        (track.name, track.mute, [(strip.name, strip.action.name, strip.frame_start) for strip in track.strips])
        for track in (animation.nla_tracks if animation else ())
    ]


def everything(armature):
    return snapshot(armature), tracks(armature)


def played(armature):
    """Its motion; the playhead stays."""
    frame = bpy.context.scene.frame_current
    motion = evaluated(armature, FRAMES)
    bpy.context.scene.frame_set(frame)
    return motion


def same(one, other):
    moved, turned = differences(one, other)
    return moved < 0.01 and turned < 0.01


def test_a_strip_plays_what_an_action_does(armature):
    """Where the result is kept must not change it: before, during and after the simulation."""
    simulate(armature, start=4, end=16)
    expected = played(armature)
    report = simulate(armature, start=4, end=16, result="STRIP")
    assert exact(report) and report.ok
    assert same(played(armature), expected)
    assert armature.animation_data.action is None


def test_a_strip_blends_as_an_action_does(armature):
    """Blending in and out goes on in the source animation after the end."""
    simulate(armature, start=4, end=16, blend_in=3, blend_out=4, key_mode="REDUCED")
    expected = played(armature)
    simulate(armature, result="STRIP", start=4, end=16)
    assert same(played(armature), expected)


def test_the_source_and_its_tracks_stay_as_they_are(armature):
    """Layers are there so that what is below is not touched; one click takes the new one away."""
    bpy.ops.armature_dynamics.make_dynamic()
    keys = {
        action.name: [[tuple(point.co) for point in curve.keyframe_points] for curve in curves(action)]
        for action in bpy.data.actions
    }
    before, motion = everything(armature), played(armature)
    simulate(armature, result="STRIP")
    assert tracks(armature)[: len(before[1])] == before[1] and len(tracks(armature)) > len(before[1])
    for name, old in keys.items():
        assert [[tuple(p.co) for p in curve.keyframe_points] for curve in curves(bpy.data.actions[name])] == old
    bpy.ops.armature_dynamics.discard()
    assert everything(armature) == before and same(played(armature), motion)


def test_restore_takes_the_kept_strip_away(armature):
    """The take's action stays in the file, to be used again."""
    before = tracks(armature)
    simulate(armature, result="STRIP")
    action = armature.armature_dynamics.action
    bpy.ops.armature_dynamics.keep()
    bpy.ops.armature_dynamics.restore_source()
    assert tracks(armature) == before
    assert action.name in bpy.data.actions and action.use_fake_user
    assert armature.armature_dynamics.tracks == ""


@pytest.mark.parametrize("kept", [False, True])
def test_a_second_take_replaces_the_first_ones_strip(armature, kept):
    """Strips do not pile up, and the first result is not the second's source."""
    before = tracks(armature)
    simulate(armature, result="STRIP")
    motion, first = played(armature), tracks(armature)
    if kept:
        bpy.ops.armature_dynamics.keep()
    simulate(armature)
    assert len(tracks(armature)) == len(first) and same(played(armature), motion)
    simulate(armature, result="ACTION")
    assert tracks(armature) == before and same(played(armature), motion)


@pytest.mark.parametrize("end", ["discard", "restore", "again"])
def test_tracks_of_a_take_that_were_renamed_are_its_tracks_still(armature, end):
    """A name is for people: the result is taken away all the same, and is not the next one's source."""
    bpy.ops.armature_dynamics.make_dynamic()
    before, motion = everything(armature), played(armature)
    simulate(armature, result="STRIP")
    first, taken = played(armature), len(tracks(armature)) - len(before[1])
    for track in list(armature.animation_data.nla_tracks)[-taken:]:
        track.name = f"my {track.name}"
    if end == "again":
        simulate(armature)
        assert same(played(armature), first) and len(tracks(armature)) == len(before[1]) + taken
    if end == "restore":
        bpy.ops.armature_dynamics.keep()
        bpy.ops.armature_dynamics.restore_source()
    else:
        bpy.ops.armature_dynamics.discard()
    assert same(played(armature), motion) and tracks(armature) == before[1]


def test_a_second_take_of_a_long_name_stays():
    """Blender cuts tracks' names off: the new tracks were taken for the old ones, and the result was nowhere."""
    armature = waving()
    armature.name = 60 * "ü"
    for _ in range(3):
        simulate(armature, result="STRIP")
        names = [track.name for track in armature.animation_data.nla_tracks]
        assert len(set(names)) == len(names) == 2
        assert armature.animation_data.nla_tracks[-1].strips[0].action == armature.armature_dynamics.action
    bpy.ops.armature_dynamics.discard()
    assert not armature.animation_data.nla_tracks


@pytest.mark.parametrize("work", ["sample", "simulate", "bake", "measure"])
@pytest.mark.parametrize("second", [False, True])
def test_a_take_that_is_stopped_leaves_no_strip(armature, work, second):
    """Esc at any moment, of a first take or of a second one."""
    bpy.ops.armature_dynamics.make_dynamic()
    armature.armature_dynamics.frame_end = 12
    armature.armature_dynamics.result = "STRIP"
    if second:
        simulate(armature)
    before = everything(armature)
    stop(armature, work)
    assert everything(armature) == before


def test_a_muted_strip_shows_the_source():
    """What a layer is good for: to compare, and to fade."""
    armature = waving()
    expected = turns(armature)
    simulate(armature, result="STRIP")
    assert not np.allclose(turns(armature), expected, atol=0.1)
    armature.animation_data.nla_tracks[armature.armature_dynamics.tracks.splitlines()[-1]].mute = True
    assert np.allclose(turns(armature), expected, atol=1e-6)


def turns(armature):
    """What the bone with keys plays, frame by frame."""
    found = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        found.append(tuple(armature.pose.bones["bone1"].rotation_quaternion))
    return found


def test_what_is_keyed_above_the_strip_stays_above():
    """Hand-made edits survive a second take; restoring the source leaves them in the file."""
    armature = waving()
    armature.pose.bones["bone2"].armature_dynamics.role = "IGNORED"
    simulate(armature, result="STRIP")
    key(armature, "bone2", "rotation_quaternion", {1: (0.6, 0, 0, 0.8), 10: (0.8, 0, 0, 0.6)})
    edits = armature.animation_data.action
    name = edits.name
    simulate(armature)
    assert armature.animation_data.action == edits
    bpy.ops.armature_dynamics.discard()
    assert armature.animation_data.action != edits and bpy.data.actions[name].use_fake_user


def test_switches_that_are_keyed_above_the_strip_count():
    """Simulate, look, set a cut, simulate again: its keys go into the source."""
    armature = chain(1)
    connect(armature, "bone0", at="HEAD")
    bpy.context.view_layer.update()
    simulate(armature, end=13, use_ground=False, result="STRIP")
    key_enabled(armature, {1: True, 5: False})
    report = simulate(armature, end=13, use_ground=False)
    assert report.connections[0]["events"] == [{"frame": 5.0, "kind": "cut"}]
    bpy.ops.armature_dynamics.discard()
    report = simulate(armature, end=13, use_ground=False)
    assert report.connections[0]["events"] == [{"frame": 5.0, "kind": "cut"}]


def test_strips_are_a_source_like_actions():
    """A shifted strip at another speed is what Blender plays; so it is what physics begins with."""
    armature = pushed_down(waving(), start=3.0, scale=0.5)
    assert casting.default_range(armature) == (3, 13)
    before = evaluated(armature, range(-3, 6))
    report = simulate(armature, start=5, end=13)
    assert exact(report) and report.ok
    assert same(evaluated(armature, range(-3, 6)), before)


def test_the_velocity_of_a_strip_is_taken_over():
    """A thrown body flies on: what a strip moves at 2.4 m/s is 2.4 m further after a second."""
    armature = chain(1, height=30.0)
    armature.data.bones[0].use_local_location = False
    key(armature, "bone0", "location", {1: (0, 0, 0), 11: (0, 1, 0)})
    straighten(armature)
    pushed_down(armature)
    simulate(armature, start=5, end=29)
    bpy.context.scene.frame_set(5)
    begin = world_heads(armature)["bone0"]
    bpy.context.scene.frame_set(29)
    assert world_heads(armature)["bone0"][1] - begin[1] == pytest.approx(2.4, rel=0.01)


def test_places_and_sizes_that_strips_key_hold_still():
    """A joint stays where it was at the start, though the strip below goes on moving it."""
    armature = chain(3, height=1.0)
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones["bone1"].use_connect = False
    bpy.ops.object.mode_set(mode="OBJECT")
    key(armature, "bone1", "location", {1: (0, 0, 0), 20: (0, 0.3, 0)})
    key(armature, "bone2", "scale", {1: (1, 1, 1), 20: (1.5, 1.5, 1.5)})
    assert exact(simulate(pushed_down(armature), start=5, end=18))


@pytest.mark.parametrize("way", ["strip", "driver"])
def test_a_switch_is_read_from_strips_and_drivers(way):
    """What makes a hand let go is whatever moves its switch."""
    armature = chain(1)
    connect(armature, "bone0", at="HEAD")
    path = "armature_dynamics.connections[0].enabled"
    if way == "strip":
        key_enabled(armature, {1: True, 5: False})
        pushed_down(armature, start=3.0)
        frame = 7.0
    else:
        armature.driver_add(path).driver.expression = "frame < 6"
        frame = 6.0
    bpy.context.view_layer.update()
    assert nla.span(armature) == ((3, 7) if way == "strip" else None)
    report = simulate(armature, start=1, end=13, use_ground=False)
    assert report.connections[0]["events"] == [{"frame": frame, "kind": "cut"}]


def test_following_is_read_from_strips():
    """Follow that is keyed to 0 in a strip lets go there: until then the bone stays where it was."""
    armature = chain(2, height=3.0)
    for frame, value in ((1, 12.0), (10, 12.0), (11, 0.0)):
        for bone in armature.pose.bones:
            bone.armature_dynamics_follow = value
            armature.keyframe_insert(f'pose.bones["{bone.name}"].armature_dynamics_follow', frame=frame)
    pushed_down(armature)
    bpy.context.scene.frame_set(1)
    simulate(armature, start=1, end=24, use_ground=False)
    heights = []
    for frame in (10, 24):
        bpy.context.scene.frame_set(frame)
        heights.append(world_heads(armature)["bone1"][2])
    assert heights[0] > 2.95 and heights[1] < 2.0


def test_what_would_not_play_is_refused():
    """A solo track silences the result, and so does an NLA that is off: one line says what to do."""
    armature = pushed_down(waving())
    bpy.ops.armature_dynamics.make_dynamic()
    armature.armature_dynamics.result = "STRIP"
    armature.animation_data.use_nla = False
    with pytest.raises(ConversionError, match=r"'Rig': its NLA is turned off.*Action"):
        simulate(armature)
    assert [problem.code for problem in preflight.look(armature) if "NLA" in problem.text]
    armature.animation_data.use_nla = True
    armature.animation_data.nla_tracks[0].is_solo = True
    with pytest.raises(ConversionError, match=r"'Rig': one of its NLA tracks plays solo.*star"):
        simulate(armature)


def test_a_strip_that_is_being_edited_is_left_first():
    """In tweak mode Blender lets nobody change the action; nor can what is below be seen."""
    armature = pushed_down(waving())
    bpy.ops.armature_dynamics.make_dynamic()
    tweak(armature, armature.animation_data.nla_tracks[0])
    with pytest.raises(ConversionError, match=r"one of its NLA strips is being edited; leave it \(Tab\)"):
        simulate(armature)
    assert len(preflight.look(armature)) == 1


def tweak(armature, track):
    """Tab in the NLA editor."""
    track.select = track.strips[0].select = True
    armature.animation_data.nla_tracks.active = track
    armature.animation_data.use_tweak_mode = True
    assert armature.animation_data.use_tweak_mode


@pytest.mark.parametrize("button", ["discard", "restore_source", "remove"])
def test_the_source_comes_back_while_the_strip_is_being_edited(button):
    """Whoever mends the result in its strip may still give it up."""
    armature = waving()
    bpy.ops.armature_dynamics.make_dynamic()
    motion, before = played(armature), tracks(armature)
    simulate(armature, result="STRIP")
    tweak(armature, armature.animation_data.nla_tracks[-1])
    getattr(bpy.ops.armature_dynamics, button)()
    assert tracks(armature) == before and same(played(armature), motion)
    assert not armature.animation_data.use_tweak_mode


def test_a_generated_rigs_controls_get_a_strip(generated_rig):
    """Switches of controls and helpers count in strips as in actions."""
    bpy.context.view_layer.objects.active = generated_rig
    report = simulate(generated_rig, end=8, result="STRIP")
    assert report.ok and report.bake_error_max_m < 1e-4
    before = bpy.data.actions[0].name
    bpy.ops.armature_dynamics.discard()
    assert not tracks(generated_rig) and before not in bpy.data.actions


def test_a_duplicate_has_strips_of_its_own():
    """Discarding one character's take must not take another's away."""
    armature = waving()
    simulate(armature, result="STRIP")
    twin = armature.copy()
    bpy.context.collection.objects.link(twin)
    own = tracks(armature)
    stage.discard(twin)
    assert tracks(armature) == own and not tracks(twin)
    assert armature.armature_dynamics.action.name in bpy.data.actions
