"""Hand-made keys in a take: the next take has them, and what physics writes is physics'."""

import bpy
import numpy as np
import pytest
from rigs import curves, key, make_rig, simulate, values

FACE, LIMB = 'pose.bones["face"].rotation_quaternion', 'pose.bones["limb"].rotation_quaternion'


@pytest.fixture(params=["action", "nothing"])
def armature(request):
    """A body with a face that is not simulated, and an animation of it or none."""
    armature = make_rig(
        [
            ("body", (0, 0, 2), (0.4, 0, 2), None, False),
            ("limb", (0.4, 0, 2), (0.8, 0, 2), "body", True),
            ("face", (0.4, 0, 2), (0.4, 0, 2.1), "body", False),
        ]
    )
    if request.param == "action":
        key(armature, "face", "rotation_quaternion", {1: (1, 0, 0, 0), 13: (0.9, 0.43, 0, 0)})
        key(armature, "limb", "rotation_quaternion", {1: (1, 0, 0, 0), 13: (0.8, 0.6, 0, 0)})
    bpy.ops.armature_dynamics.make_dynamic()
    armature.pose.bones["face"].armature_dynamics.role = "IGNORED"
    return armature


def smiling(armature):
    """Edits the take that plays, by hand."""
    key(armature, "face", "rotation_quaternion", {1: (1, 0, 0, 0), 7: (0.6, 0, 0.8, 0)})


@pytest.mark.parametrize("kept", [False, True])
def test_edits_of_other_bones_are_in_the_next_take(armature, kept):
    """An hour's work on the face survives another try at the fall."""
    simulate(armature)
    smiling(armature)
    face = values(armature.animation_data.action, FACE)
    if kept:
        bpy.ops.armature_dynamics.keep()
    for mass in (3.0, 4.0):
        simulate(armature, mass=mass)
        assert np.array_equal(values(armature.animation_data.action, FACE), face)


def test_the_source_stays_as_it_is(armature):
    """Edits of a take are the take's: the source comes back without them."""
    source = armature.animation_data.action if armature.animation_data else None
    before = values(source, FACE) if source else None
    simulate(armature)
    smiling(armature)
    simulate(armature)
    bpy.ops.armature_dynamics.discard()
    assert (armature.animation_data.action if armature.animation_data else None) == source
    assert source is None or np.array_equal(values(source, FACE), before)
    simulate(armature)
    now = values(armature.animation_data.action, FACE)
    assert np.array_equal(now, before) if source else len(now) == 0


def test_what_physics_wrote_is_no_edit(armature):
    """A bone that was simulated and is not any more plays its own animation again, not the last take's."""
    simulate(armature)
    expected = (
        values(armature.armature_dynamics.source_action, LIMB) if armature.armature_dynamics.source_action else []
    )
    armature.pose.bones["limb"].armature_dynamics.role = "ANIMATED"
    simulate(armature)
    assert np.array_equal(values(armature.animation_data.action, LIMB), expected) or not len(expected)
    assert len(values(armature.animation_data.action, LIMB)) == len(expected)


def test_what_physics_writes_wins(armature):
    """Hand-made keys on a bone that is simulated now are not mixed into the result."""
    simulate(armature)
    smiling(armature)
    armature.pose.bones["face"].armature_dynamics.role = "SIMULATED"
    report = simulate(armature)
    assert report.bake_error_max_m < 1e-4 and len(values(armature.animation_data.action, FACE)) == 13


def test_edits_go_along_into_a_strip(armature):
    """The way the result is kept does not matter."""
    simulate(armature)
    smiling(armature)
    face = values(armature.animation_data.action, FACE)
    simulate(armature, result="STRIP")
    assert np.array_equal(values(armature.armature_dynamics.action, FACE), face)
    simulate(armature)
    assert np.array_equal(values(armature.armature_dynamics.action, FACE), face)
    bpy.context.scene.frame_set(7)
    assert tuple(armature.pose.bones["face"].rotation_quaternion) == pytest.approx((0.6, 0, 0.8, 0), abs=1e-6)


def test_edits_survive_a_reload(armature, tmp_path):
    """The next try may be another day."""
    simulate(armature)
    smiling(armature)
    face = values(armature.animation_data.action, FACE)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "ada.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "ada.blend"))
    again = bpy.data.objects["Rig"]
    simulate(again)
    assert np.array_equal(values(again.animation_data.action, FACE), face)
    assert len(curves(again.animation_data.action)) > 4
