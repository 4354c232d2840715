"""Connections: bones joined to other bones, to objects and to the world, for as long as the animator wants."""

import json
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import (
    command,
    connection_list,
    operators,
    report,
    stage,
    words,
)
from armature_dynamics.core import Event
from connecting import carry, connect, empty, key_enabled, mirrored_chain, places, swing
from rigs import chain, curves, grouped, key, make_rig, simulate
from test_life import snapshot

ENABLED = "armature_dynamics.connections[0].enabled"


@pytest.mark.parametrize("kind", ["BALL", "HINGE", "FIXED", "UNIVERSAL"])
def test_a_chain_hangs_on_a_moving_swing(kind):
    """What hangs on an animated object follows it to the hundredth of a millimetre, in the rig as Blender plays it."""
    armature, bar = chain(3), swing()
    connect(armature, "bone0", bar, at="HEAD", kind=kind, target_at="HEAD")
    report = simulate(armature, end=25, use_ground=False)
    assert report.ok, report.news()
    (told,) = report.connections
    assert (told["from"], told["to"], told["events"]) == ("bone0", "Bar", [])
    assert told["gap_max_m"] <= 1e-5 and told["force_max_N"] > 1
    frames = range(1, 26)
    heads = places(armature, "bone0", frames, "head")
    bars = [bpy.context.scene.frame_set(frame) or bar.matrix_world.translation[:] for frame in frames]
    assert np.abs(heads - np.array(bars)).max() <= 1e-5
    assert np.ptp(heads[:, 1]) > 0.5


def test_the_axis_of_a_hinge_is_the_targets():
    """A gate turns about the post's upright axis and does not sag."""
    armature = chain(1)
    connect(armature, "bone0", at="HEAD", kind="HINGE", axis="Z")
    assert simulate(armature, end=13, use_ground=False).ok
    assert np.abs(places(armature, "bone0", [1, 7, 13]) - (0.3, 0, 2)).max() < 1e-5
    armature.armature_dynamics.connections[0].axis = "Y"
    assert simulate(armature, end=13, use_ground=False).ok
    (tail,) = places(armature, "bone0", [7])
    assert tail[2] < 1.8 and abs(tail[1]) < 1e-5


def test_a_slider_slides():
    """A fall along a pole, and only along it."""
    armature = chain(1)
    connect(armature, "bone0", at="HEAD", kind="SLIDER", axis="Z")
    report = simulate(armature, end=13, use_ground=False)
    assert report.ok and report.connections[0]["gap_max_m"] <= 1e-5
    fallen = places(armature, "bone0", [1, 13])
    assert np.abs(fallen[1, :2] - fallen[0, :2]).max() < 1e-5
    assert fallen[0, 2] - fallen[1, 2] == pytest.approx(9.81 / 2 * 0.5**2, rel=0.02)


def test_a_slider_slides_off():
    """It falls along its pole until it is 0.2 m down, at √(2 · 0.2 / g), and then freely."""
    armature = chain(1)
    connect(armature, "bone0", at="HEAD", kind="SLIDER", axis="Z", name="pole", slide_distance=0.2)
    report = simulate(armature, end=13, use_ground=False)
    assert report.ok, report.news()
    (event,) = report.connections[0]["events"]
    assert event["kind"] == "region" and event["frame"] == pytest.approx(1 + 24 * (2 * 0.2 / 9.81) ** 0.5, abs=0.1)
    assert report.events() == [f"pole: slid off at frame {event['frame']:.4g}"]
    armature.armature_dynamics.connections[0].slide_distance = 0.0
    assert simulate(armature, end=13, use_ground=False).connections[0]["events"] == []


def test_only_sliders_slide_off():
    """What gives in every direction has no axis to slide along."""
    armature = chain(1)
    connect(armature, "bone0", at="HEAD", method="SPRINGY", stiffness=10.0, damping=1.0, slide_distance=0.01)
    report = simulate(armature, end=13, use_ground=False)
    assert report.connections[0]["gap_max_m"] > 0.05 and report.connections[0]["events"] == []


def test_two_armatures_hold_hands():
    """Both are simulated in one go, each gets its action, and they stay hand in hand."""
    left, right = chain(3, "Left"), mirrored_chain(0.9, "Right")
    operators.make_dynamic(right)
    right.armature_dynamics.frame_end = 77
    connect(left, "bone2", right, "bone2", target_at="TAIL")
    connect(left, "bone0", at="HEAD")
    report = simulate(left, end=25, use_ground=False)
    assert report.ok, report.news()
    assert report.bodies == 6
    assert [c["from"] for c in report.connections] == ["Left/bone2", "Left/bone0"]
    assert max(c["gap_max_m"] for c in report.connections) <= 1e-5
    frames = range(1, 26)
    hands = places(left, "bone2", frames), places(right, "bone2", frames)
    assert np.abs(hands[0] - hands[1]).max() <= 1e-5 and np.ptp(hands[0][:, 2]) > 0.1
    assert right.armature_dynamics.frame_end == 77
    assert left.animation_data.action != right.animation_data.action
    assert right.armature_dynamics.summary == left.armature_dynamics.summary


@pytest.mark.parametrize("asked", ["Left", "Right"])
def test_a_shared_simulation_is_kept_and_discarded_as_a_whole(asked):
    """Half a simulation is a hand held by nobody."""
    left, right = chain(3, "Left"), mirrored_chain(0.9, "Right")
    key(right, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    operators.make_dynamic(right)
    connect(left, "bone2", right, "bone2")
    bpy.context.scene.frame_set(1)
    before = snapshot(left), snapshot(right)
    simulate(bpy.data.objects[asked], end=5)
    bpy.context.view_layer.objects.active = bpy.data.objects[asked]
    bpy.ops.armature_dynamics.keep()
    assert [thing.armature_dynamics.state for thing in (left, right)] == ["KEPT", "KEPT"]
    bpy.ops.armature_dynamics.restore_source()
    assert [thing.armature_dynamics.state for thing in (left, right)] == ["SOURCE", "SOURCE"]
    for action in [action for action in bpy.data.actions if "Dynamics" in action.name]:
        bpy.data.actions.remove(action)
    simulate(bpy.data.objects[asked], end=5)
    bpy.ops.armature_dynamics.discard()
    assert (snapshot(left), snapshot(right)) == before


def test_a_partner_that_was_simulated_alone_since_is_on_its_own():
    """Discarding the one must not take the other's later take away; nor does a duplicate belong."""
    left, right = chain(3, "Left"), mirrored_chain(0.9, "Right")
    operators.make_dynamic(right)
    connect(left, "bone2", right, "bone2")
    simulate(left, end=5)
    twin = left.copy()
    bpy.context.collection.objects.link(twin)
    assert stage.together(twin) == [twin, right][:1]
    connection_list.remove(left, 0)
    simulate(right, end=5)
    assert stage.together(left) == [left]


@pytest.mark.parametrize("work", ["sample", "simulate", "bake", "measure"])
def test_a_shared_take_that_is_stopped_leaves_nothing(work):
    """Esc leaves both as they were."""
    from armature_dynamics.addon import take

    left, right = chain(3, "Left"), mirrored_chain(0.9, "Right")
    operators.make_dynamic(right)
    connect(left, "bone2", right, "bone2")
    left.armature_dynamics.frame_end = 6
    before = snapshot(left), snapshot(right)
    steps = take.take(left)
    for now, progress in steps:
        if now == work and progress > 0.6:
            break
    steps.close()
    assert (snapshot(left), snapshot(right)) == before


def test_a_key_cuts_between_two_frames():
    """The animator says when a hand lets go: at frame 7.25, not at 7 or 8."""
    armature = chain(2)
    connect(armature, "bone0", at="HEAD", kind="FIXED", name="grip")
    key_enabled(armature, {1: True, 7.25: False})
    report = simulate(armature, end=13, use_ground=False)
    assert report.connections[0]["events"] == [{"frame": 7.25, "kind": "cut"}]
    assert report.events() == ["grip: cut at frame 7.25"]
    heads = places(armature, "bone0", range(1, 14), "head")
    assert np.abs(heads[:7] - heads[0]).max() <= 1e-5
    assert heads[12, 2] < heads[0, 2] - 0.1
    action = armature.animation_data.action
    assert ENABLED in {curve.data_path for curve in curves(action)}, "the viewport shows when it holds"


def test_a_key_connects_on_the_way():
    """A body is caught where it is then: nothing jumps."""
    armature = chain(1)
    connect(armature, "bone0", at="HEAD")
    key_enabled(armature, {1: False, 5.5: True})
    report = simulate(armature, end=13, use_ground=False)
    assert report.ok, report.news()
    (told,) = report.connections
    assert told["events"] == [{"frame": 5.5, "kind": "connect"}] and told["gap_max_m"] <= 1e-5
    heads = places(armature, "bone0", range(1, 14), "head")
    assert heads[0, 2] - heads[5, 2] == pytest.approx(9.81 / 2 * (4.5 / 24) ** 2, abs=0.02)
    assert np.abs(heads[5:] - heads[5]).max() <= 1e-5


def test_what_is_let_go_can_be_caught_again():
    """A trapeze act: cut and connected again, each time between frames, on a bar that swings."""
    armature, bar = chain(3), swing()
    connect(armature, "bone0", bar, at="HEAD", name="grip")
    key_enabled(armature, {1: True, 5.5: False, 7.5: True, 9.25: False})
    report = simulate(armature, end=13, use_ground=False)
    (told,) = report.connections
    assert [(event["kind"], event["frame"]) for event in told["events"]] == [
        ("cut", 5.5), ("connect", 7.5), ("cut", 9.25)
    ]  # fmt: skip
    assert report.ok and told["gap_max_m"] <= 1e-5, report.news()


def test_it_breaks_when_pulled_too_hard():
    """A chain that snaps under its own weight falls."""
    armature = chain(2)
    made = connect(armature, "bone0", at="HEAD", name="hook", break_force=1e6)
    report = simulate(armature, end=13, use_ground=False)
    assert report.connections[0]["events"] == []
    made.break_force = 0.5 * report.connections[0]["force_max_N"]
    report = simulate(armature, end=13, use_ground=False)
    (event,) = report.connections[0]["events"]
    assert event["kind"] == "break" and 1 <= event["frame"] <= 13
    assert "hook: broke at frame" in report.events()[0]
    assert places(armature, "bone0", [13], "head")[0, 2] < 1.99


def test_it_grabs_what_comes_near():
    """A falling hand catches the bar."""
    armature, bar = chain(1), empty(location=(0, 0.005, 1.8))
    connect(armature, "bone0", bar, at="HEAD", target_at="HEAD", enabled=False, grab_distance=0.03)
    report = simulate(armature, end=13, use_ground=False, substeps=8)
    assert report.ok, report.news()
    (event,) = report.connections[0]["events"]
    assert event["kind"] == "grab" and 5 < event["frame"] < 7
    apart = np.linalg.norm(places(armature, "bone0", range(7, 14), "head") - (0, 0.005, 1.8), axis=1)
    assert apart.max() <= 0.0301 and np.ptp(apart) <= 1e-5


def test_a_springy_connection_gives():
    """A bungee: its ends come apart, and that breaks no promise."""
    armature = chain(2)
    connect(armature, "bone0", at="HEAD", method="SPRINGY", stiffness=500.0, damping=20.0)
    report = simulate(armature, end=25, use_ground=False)
    assert report.ok, report.news()
    assert 1e-4 < report.connections[0]["gap_max_m"] < 1


def test_a_welded_bone_holds_by_its_carrier():
    """A finger that is carried along can hold on, the hand pulls."""
    armature = chain(3)
    connect(armature, "bone2")
    armature.pose.bones["bone2"].armature_dynamics.role = "IGNORED"
    report = simulate(armature, end=13, use_ground=False)
    assert report.bodies == 2 and report.connections[0]["gap_max_m"] <= 1e-5
    assert np.abs(places(armature, "bone2", [1, 13]) - (0.9, 0, 2)).max() <= 1e-5


def test_an_animated_bone_can_hold():
    """The hand that is keyed swings what hangs on it."""
    armature = make_rig(
        [("hand", (0, 0, 2), (0.3, 0, 2), None, False), ("toy", (0.3, 0, 2), (0.3, 0, 1.6), None, False)]
    )
    operators.make_dynamic(armature)
    armature.pose.bones["hand"].armature_dynamics.role = "ANIMATED"
    key(armature, "hand", "location", {1: (0, 0, 0), 13: (0, 0.2, 0.5)})
    connect(armature, "hand", armature, "toy", target_at="HEAD")
    report = simulate(armature, end=13, use_ground=False)
    assert report.connections[0]["gap_max_m"] <= 1e-5
    apart = places(armature, "hand", range(1, 14)) - places(armature, "toy", range(1, 14), "head")
    assert np.abs(apart).max() <= 1e-5


def test_an_off_connection_is_as_good_as_none():
    """Unticked and without keys it neither holds nor joins armatures, and its ends may be missing."""
    left, right = chain(2, "Left"), mirrored_chain(0.6, "Right")
    connect(left, "gone", right, "gone", enabled=False)
    report = simulate(left, end=3)
    assert report.connections == [] and right.armature_dynamics.state == "SOURCE"


def test_a_connection_without_a_name_is_called_by_its_ends():
    """Whoever empties the field has simulated for nothing otherwise."""
    armature, bar = chain(2), empty()
    for target, target_bone in ((None, ""), (bar, ""), (armature, "bone0")):
        connect(armature, "bone1", target, target_bone, name="", method="PULL")
    report = simulate(armature, end=3)
    assert [told["name"] for told in report.connections] == ["bone1 to world", "bone1 to Bar", "bone1 to bone0"]
    armature.armature_dynamics.connections[1].target = None
    with pytest.raises(ValueError, match="connection 'bone1 to object': its target is gone"):
        simulate(armature, end=3)


@pytest.mark.parametrize("what", ["curve", "group"])
def test_muted_keys_cut_nothing(what):
    """Nor does Blender play what the speaker in the channels has muted, of one channel or of all in a group."""
    armature = chain(1)
    connect(armature, "bone0", at="HEAD", kind="FIXED")
    key_enabled(armature, {1: True, 3: False})
    (curve,) = curves(armature.animation_data.action)
    (curve if what == "curve" else grouped(armature)).mute = True
    armature.armature_dynamics.connections[0].enabled = True
    assert simulate(armature, end=5, use_ground=False).connections[0]["events"] == []


def test_a_key_outside_the_range_is_told():
    """A cut that never comes is a mistake in the keys or in the range."""
    armature = chain(1)
    connect(armature, "bone0")
    key_enabled(armature, {1: True, 40: False})
    report = simulate(armature, end=5)
    assert [warning.code for warning in report.warnings if "frame 40" in warning.message] == ["event_outside"]


def test_both_armatures_are_saved_by_the_command_line(tmp_path):
    """Connections are settings of the file: the command line needs to be told nothing."""
    left, right = chain(3, "Left"), mirrored_chain(0.9, "Right")
    operators.make_dynamic(right)
    connect(left, "bone2", right, "bone2")
    path, out, report = tmp_path / "hands.blend", tmp_path / "out.blend", tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    options = ["--frames", "1:9", "--out", str(out), "--report", str(report)]
    assert command.run([str(path), *options], "bake.py") == 0
    told = json.loads(report.read_text(encoding="utf-8"))["connections"]
    assert list(told[0]) == ["name", "from", "to", "events", "gap_max_m", "force_max_N"]
    assert (told[0]["from"], told[0]["to"]) == ("Left/bone2", "Right/bone2")
    bpy.ops.wm.open_mainfile(filepath=str(out))
    for name in ("Left", "Right"):
        assert curves(bpy.data.objects[name].animation_data.action)
        assert bpy.data.objects[name].armature_dynamics.state == "SIMULATED"


def test_connections_that_jam_are_told_with_their_frame():
    """Half a second at 24 frames a second from frame 10 is frame 22."""
    happened = [Event(0.5, "", "singular"), Event(0.6, "hands", "cut")]
    (warning,) = report.jams(SimpleNamespace(events=happened, frame_time=1 / 24), 10)
    assert warning.code == "singular"
    assert "at frame 22:" in warning.message


def test_settings_of_partners_that_do_not_count_are_told():
    """One fell at another's life scale, over another's frames, and nothing said so."""
    armature, other = chain(count=2), chain(count=2, name="Other")
    for each in (armature, other):
        operators.make_dynamic(each)
        each.armature_dynamics.meets = True
        each.armature_dynamics.frame_end = 3
    other.armature_dynamics.key_step, other.armature_dynamics.mass = 7, 3.0
    assert "overruled" not in [each.code for each in simulate(armature, end=3).warnings]
    other.armature_dynamics.life_scale, other.armature_dynamics.key_mode = 0.1, "STEP"
    labels = [other.armature_dynamics.bl_rna.properties[name].name for name in ("life_scale", "key_mode")]
    (warning,) = [each for each in simulate(armature, end=3).warnings if each.code == "overruled"]
    assert "'Other'" in warning.message and "'Rig'" in warning.message and ", ".join(labels) in warning.message
    german = words.said(warning.message, "de")
    assert all(words.dictionary("de")[label] in german for label in labels) and "Armatur 'Other'" in german


@pytest.mark.parametrize("hold", ["parent", "CHILD_OF", "ARMATURE"])
@pytest.mark.parametrize("role", ["SIMULATED", "ANIMATED"])
def test_who_hangs_from_a_simulated_bone_is_not_simulated_with_it(role, hold):
    """Where its bones are depends on what is simulated then: it was written metres away, and nothing told why. A bone
    that is keyed may carry others."""
    armature, other, between = chain(count=2), chain(count=2, name="Other"), empty()
    carry(between, armature, "bone1", hold)
    other.parent = between
    for each in (armature, other):
        operators.make_dynamic(each)
        each.armature_dynamics.meets = True
    for bone in armature.pose.bones:
        bone.armature_dynamics.role = role
    if role == "SIMULATED":
        with pytest.raises(ValueError, match=r"'Other' hangs from bone 'bone1' of 'Rig'.*connect their bones"):
            simulate(other, end=3)
        other.armature_dynamics.meets = False
    assert simulate(other, end=3).bodies == (2 if role == "SIMULATED" else 4)
