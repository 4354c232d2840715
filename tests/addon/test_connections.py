"""Connections: bones joined to other bones, to objects and to the world, for as long as the animator wants."""

import json
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import (
    command,
    compat,
    connection,
    connection_list,
    operators,
    overlay,
    report,
    stage,
    switch,
)
from armature_dynamics.addon.rig import ConversionError
from armature_dynamics.core import Event
from rigs import chain, curves, key, make_rig, simulate, world_heads
from test_life import snapshot, undoing

ENABLED = "armature_dynamics.connections[0].enabled"


def connect(armature, bone, target=None, target_bone="", **settings):
    """What an animator sets up in the list of connections."""
    if not armature.armature_dynamics.enabled:
        operators.make_dynamic(armature)
    made = connection_list.add(armature, bone, target, target_bone)
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def key_enabled(armature, frames, index=0):
    """Keys a connection's Enabled: {frame: value}."""
    for frame, value in frames.items():
        armature.armature_dynamics.connections[index].enabled = value
        assert armature.keyframe_insert(switch.enabled_path(index), frame=frame)


def empty(name="Bar", location=(0, 0, 0)):
    thing = bpy.data.objects.new(name, None)
    thing.location = location
    bpy.context.collection.objects.link(thing)
    return thing


def swing():
    """An empty that is moved from side to side, and turned."""
    bar = empty(location=(0, 0, 2))
    for frame, y, turn in ((1, 0, 0), (7, 0.4, 0.5), (13, -0.3, -0.4), (25, 0.2, 0.3)):
        bar.location.y, bar.rotation_euler.x = y, turn
        bar.keyframe_insert("location", frame=frame)
        bar.keyframe_insert("rotation_euler", frame=frame)
    return bar


def mirrored_chain(x, name="Other", count=3, length=0.3, height=2.0):
    """A row of connected bones against x, whose last tail is at `x`."""
    begin = x + count * length
    rows = [
        (f"bone{i}", (begin - length * i, 0, height), (begin - length * (i + 1), 0, height),
         f"bone{i - 1}" if i else None, i > 0)
        for i in range(count)
    ]  # fmt: skip
    return make_rig(rows, name)


def places(armature, bone, frames, end="tail"):
    """World places (F, 3) of a bone's end, as evaluated."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        evaluated = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
        found.append(evaluated.matrix_world @ getattr(evaluated.pose.bones[bone], end))
    return np.array(found)


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


def test_switches_are_read_exactly():
    """Keys between frames, ramps and cycles: what counts is what Blender evaluates."""
    armature = chain(1)
    connect(armature, "bone0")
    key_enabled(armature, {1: True, 4.25: False, 9: True, 30: False})
    found = switch.read_switch(armature, 0, 2, 20)
    assert found.closed and found.changes == ((4.25, False), (9.0, True)) and found.outside == ((30.0, False),)
    assert switch.read_switch(armature, 0, 5, 8) == switch.Switch(
        False, (), ((4.25, False), (9.0, True), (30.0, False))
    )
    assert switch.read_switch(armature, 0, 9, 20) == switch.Switch(True, (), ((4.25, False), (30.0, False)))
    curve = switch.enabled_curve(armature, 0)
    for point in curve.keyframe_points:
        point.interpolation = "LINEAR"
    found = switch.read_switch(armature, 0, 2, 20).changes
    assert [now for _, now in found] in ([False, True], [True, False, True, False], [True])


def test_a_key_outside_the_range_is_told():
    """A cut that never comes is a mistake in the keys or in the range."""
    armature = chain(1)
    connect(armature, "bone0")
    key_enabled(armature, {1: True, 40: False})
    report = simulate(armature, end=5)
    assert [warning.code for warning in report.warnings if "frame 40" in warning.message] == ["event_outside"]


def test_keys_that_are_set_while_a_take_plays_count():
    """Simulate, look, move the cut, simulate again, discard: the cut stays where she put it."""
    armature = chain(1)
    connect(armature, "bone0", at="HEAD")
    simulate(armature, end=13, use_ground=False)
    key_enabled(armature, {1: True, 5: False})
    report = simulate(armature, end=13, use_ground=False)
    assert report.connections[0]["events"] == [{"frame": 5.0, "kind": "cut"}]
    key_enabled(armature, {5: True, 8: False})
    bpy.ops.armature_dynamics.discard()
    assert switch.read_switch(armature, 0, 1, 13).changes == ((8.0, False),)


def test_removing_a_connection_takes_its_keys_along():
    """Keys find connections by number: those behind the removed one move up."""
    armature = chain(2)
    connect(armature, "bone0")
    connect(armature, "bone1")
    key_enabled(armature, {1: True, 5: False}, 0)
    key_enabled(armature, {1: True, 9: False}, 1)
    armature.armature_dynamics.connection_index = 0
    bpy.ops.armature_dynamics.connection_remove()
    assert [c.bone for c in armature.armature_dynamics.connections] == ["bone1"]
    assert [curve.data_path for curve in curves(armature.animation_data.action)] == [ENABLED]
    assert switch.read_switch(armature, 0, 1, 13).changes == ((9.0, False),)
    bpy.ops.armature_dynamics.connection_remove()
    assert not bpy.ops.armature_dynamics.connection_remove.poll()


def hinge_on_the_way(armature):
    connect(armature, "bone0", kind="HINGE", target_at="HEAD")
    key_enabled(armature, {1: False, 3: True})


def slid_off_already(armature):
    bar = empty(location=(0, 0, 2.5))
    connect(armature, "bone0", bar, at="HEAD", target_at="HEAD", kind="SLIDER", axis="Z", slide_distance=0.2)


def hidden_target(armature):
    connect(armature, "bone0", empty()).target.hide_viewport = True


def deleted_target(armature):
    connect(armature, "bone0", empty())
    bpy.data.objects.remove(bpy.data.objects["Bar"])


def unlinked_target(armature):
    bar = empty()
    connect(armature, "bone0", bar)
    bpy.context.collection.objects.unlink(bar)


def still_target(armature):
    connect(armature, "bone0", chain(2, "Other"), "bone1")


def carried_target(armature):
    bar = empty()
    bar.parent = armature
    connect(armature, "bone0", bar)


def keyed_only(armature):
    operators.make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    connect(armature, "bone0")


def far_apart(armature):
    connect(armature, "bone0", at="HEAD", name="root")
    connect(armature, "bone2", empty(location=(9, 0, 2)), target_at="HEAD", name="reach")


BAD = [
    (lambda a: connect(a, "gone"), r"connection 'gone to world': armature 'Rig' has no bone 'gone'"),
    (lambda a: connect(a, "bone0", a, "gone"), r"connection 'bone0 to gone': 'Rig' has no bone 'gone'"),
    (lambda a: connect(a, "bone0", a, "bone0"), r"both its ends are on bone 'bone0'"),
    (lambda a: connect(a, "bone0", target_kind="OBJECT"), r"its target is gone or was never chosen"),
    (lambda a: connect(a, "bone0", empty(), target_kind="BONE"), r"'Bar' has no bones"),
    (lambda a: connect(a, "bone0", grab_distance=0.1, enabled=False), r"grabbing needs a place on the target"),
    (hinge_on_the_way, r"making a hinge on the way needs a place on the target; connect to an object there"),
    (slid_off_already, r"it starts 0.5 m from its place, where it has slid off; let Slides Off be more"),
    (hidden_target, r"its target 'Bar' is hidden"),
    (deleted_target, r"its target is gone or was never chosen"),
    (unlinked_target, r"its target 'Bar' is not in the scene"),
    (still_target, r"armature 'Other' is not dynamic; select it and press Make Dynamic"),
    (carried_target, r"its target 'Bar' moves with 'Rig'"),
    (keyed_only, r"physics moves neither of its ends"),
    (far_apart, r"'reach'.*[0-9] m"),
]


@pytest.mark.parametrize(
    ("prepare", "line"), BAD, ids=[line.split("'")[-1] + str(i) for i, (_, line) in enumerate(BAD)]
)
def test_bad_connections_are_refused_in_one_line(prepare, line):
    """The animator learns which connection it is and what to do, before anything is simulated or changed."""
    armature = chain(3)
    prepare(armature)
    bpy.context.view_layer.objects.active = armature
    before = snapshot(armature)
    with pytest.raises(ValueError, match=line) as refused:
        simulate(armature, end=5, use_ground=False)
    assert "\n" not in str(refused.value)
    assert snapshot(armature) == before


def test_a_bone_that_nothing_carries_cannot_be_connected():
    """An ignored root is not in the simulation at all."""
    armature = make_rig(
        [("body", (0, 0, 2), (0.3, 0, 2), None, False), ("control", (1, 0, 2), (1, 0, 2.3), None, False)]
    )
    connect(armature, "body", armature, "control")
    armature.pose.bones["control"].armature_dynamics.role = "IGNORED"
    with pytest.raises(ConversionError, match="bone 'control' is ignored and hangs on no simulated bone"):
        simulate(armature, end=3)


def test_the_add_button_takes_what_is_selected():
    """Two bones, a bone and an object, a bone and another rig's bone, or a bone alone."""
    other, bar = chain(2, "Other"), empty()
    armature = chain(3)
    operators.make_dynamic(armature)
    bpy.ops.object.select_all(action="DESELECT")
    armature.select_set(True)
    made = armature.armature_dynamics.connections
    armature.data.bones.active = armature.data.bones["bone1"]
    bpy.ops.armature_dynamics.connection_add()
    bar.select_set(True)
    bpy.ops.armature_dynamics.connection_add()
    bar.select_set(False)
    other.select_set(True)
    other.data.bones.active = other.data.bones["bone1"]
    bpy.ops.armature_dynamics.connection_add()
    found = [(c.name, c.bone, c.target_kind, c.target, c.target_bone) for c in made]
    assert found == [
        ("bone1 to world", "bone1", "WORLD", None, ""),
        ("bone1 to Bar", "bone1", "OBJECT", bar, ""),
        ("bone1 to bone1", "bone1", "BONE", other, "bone1"),
    ]
    assert armature.armature_dynamics.connection_index == 2


def test_connections_survive_duplicating_and_saving(tmp_path):
    """Settings, pointers and keys live in the file."""
    armature = chain(2)
    connect(armature, "bone0", empty(), kind="SLIDER", axis="Z", break_force=7.5, grab_distance=0.25)
    key_enabled(armature, {1: True, 5: False})
    path = tmp_path / "saved.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    bpy.ops.wm.open_mainfile(filepath=str(path))
    armature = bpy.data.objects["Rig"]
    twin = armature.copy()
    for rig in (armature, twin):
        (made,) = rig.armature_dynamics.connections
        assert (made.bone, made.target.name, made.kind, made.axis) == ("bone0", "Bar", "SLIDER", "Z")
        assert (made.break_force, made.grab_distance) == (7.5, 0.25)
    assert switch.read_switch(armature, 0, 1, 9).changes == ((5.0, False),)


def test_undo_takes_a_connection_back():
    """Add and remove are steps of their own."""
    name = chain(2).name
    operators.make_dynamic(bpy.data.objects[name])
    bpy.ops.ed.undo_push(message="before")
    with undoing() as possible:
        bpy.ops.armature_dynamics.connection_add("EXEC_DEFAULT", True)
        assert len(bpy.data.objects[name].armature_dynamics.connections) == 1
        if possible:
            bpy.ops.ed.undo()
            assert len(bpy.data.objects[name].armature_dynamics.connections) == 0


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


def test_lines_lead_from_the_bone_to_its_target():
    """The overlay's geometry; it is drawn only where there is a window, and no handler is left behind."""
    armature, bar = chain(1), empty(location=(0, 0, 5))
    made = connect(armature, "bone0", bar)
    bpy.context.view_layer.update()
    points = np.array(overlay.segments(armature, made))
    assert np.allclose(points[0], (0.3, 0, 2)) and np.allclose(points[-1], (0, 0, 5)) and len(points) % 2 == 0
    made.target_kind = "WORLD"
    assert np.allclose(np.mean(overlay.segments(armature, made), axis=0), (0.3, 0, 2), atol=1e-6)
    made.bone = "gone"
    assert overlay.segments(armature, made) == []
    assert overlay._handlers == []


def test_names_that_clash_are_told_apart():
    """An object may be called like a bone, and two connections alike."""
    armature, bar = chain(2), swing()
    bar.name = "bone0"
    connect(armature, "bone0", bar, at="HEAD", name="bone1")
    connect(armature, "bone1", name="bone1", enabled=True, kind="BALL", method="SPRINGY", stiffness=10.0)
    report = simulate(armature, end=5, use_ground=False)
    assert [told["name"] for told in report.connections] == ["bone1 2", "bone1 3"]


def test_an_armature_alone_is_named_as_before():
    """Only where there are several do bones carry their armature's name."""
    armature = chain(2)
    connect(armature, "bone0")
    assert connection.group(armature) == [armature]
    report = simulate(armature, end=3)
    assert report.connections[0]["from"] == "bone0" and report.connections[0]["to"] == "world"
    assert world_heads(armature).keys() == {"bone0", "bone1"}
    assert compat.slot_identifier(armature) is not None


def test_connections_that_jam_are_told_with_their_frame():
    """Half a second at 24 frames a second from frame 10 is frame 22."""
    happened = [Event(0.5, "", "singular"), Event(0.6, "hands", "cut")]
    (warning,) = report.jams(SimpleNamespace(events=happened, frame_time=1 / 24), 10)
    assert warning.code == "singular"
    assert "at frame 22:" in warning.message
