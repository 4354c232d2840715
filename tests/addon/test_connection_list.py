"""The list of connections: adding, removing, keys, undo, saving, and what is refused."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import (
    compat,
    connection,
    operators,
    overlay,
    switch,
)
from armature_dynamics.addon.rig import ConversionError
from connecting import carry, connect, empty, key_enabled, swing
from rigs import chain, curves, make_rig, simulate, world_heads
from test_life import snapshot, undoing

ENABLED = "armature_dynamics.connections[0].enabled"


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


def test_removing_a_connection_takes_its_drivers_along():
    """As its keys: a driver left behind would switch another connection, or none."""
    armature = chain(3)
    for number, bone in enumerate(("bone0", "bone1", "bone2")):
        connect(armature, bone)
        armature.driver_add(switch.enabled_path(number)).driver.expression = f"frame < {number}"
    armature.driver_add("armature_dynamics.weight").driver.expression = "1"
    armature.armature_dynamics.connection_index = 1
    bpy.ops.armature_dynamics.connection_remove()
    left = {curve.data_path: curve.driver.expression for curve in armature.animation_data.drivers}
    assert left == {
        switch.enabled_path(0): "frame < 0", switch.enabled_path(1): "frame < 2", "armature_dynamics.weight": "1",
    }  # fmt: skip
    bpy.context.scene.frame_set(1)
    assert [c.enabled for c in armature.armature_dynamics.connections] == [False, True]


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


def copying_target(armature):
    bar, hook = empty(), empty("Hook")
    carry(hook, armature, "bone2", "COPY_TRANSFORMS")
    carry(bar, hook, "", "COPY_LOCATION")
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
    (copying_target, r"its target 'Bar' moves with 'Rig'; connect to a bone instead"),
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


def test_a_bone_among_all_selected_ones_is_pinned_to_the_object():
    """A metarig comes in with all bones selected: the hand is pinned to the balloon, not to its own hips; with nothing
    else to mean, to its place."""
    bar, armature = empty(), chain(4)
    operators.make_dynamic(armature)
    bpy.ops.object.select_all(action="DESELECT")
    armature.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    made = armature.armature_dynamics.connections
    every = "bone0 bone1 bone2 bone3"
    for chosen, balloon in ((every, True), (every, False), ("bone1 bone3", False)):
        for bone in armature.pose.bones:
            compat.select_bone(bone, bone.name in chosen)
        armature.data.bones.active = armature.data.bones["bone3"]
        bar.select_set(balloon)
        assert bpy.ops.armature_dynamics.pin() == {"FINISHED"}
    found = [(c.bone, c.target_kind, c.target, c.target_bone) for c in made]
    assert found == [
        ("bone3", "OBJECT", bar, ""), ("bone3", "WORLD", None, ""), ("bone3", "BONE", armature, "bone1"),
    ]  # fmt: skip


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
    assert connection.group(armature, 1) == [armature]
    report = simulate(armature, end=3)
    assert report.connections[0]["from"] == "bone0" and report.connections[0]["to"] == "world"
    assert world_heads(armature).keys() == {"bone0", "bone1"}
    assert compat.slot_identifier(armature) is not None
