"""Bones that are renamed while a take plays: their animation, what is set for them and what hangs from them follow."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import operators
from connecting import connect, empty
from evaluated import evaluated
from rigs import chain, curves, key, simulate


def waving():
    """A chain whose last bone waves, and whose first hangs from the world."""
    armature = chain(3)
    key(armature, "bone2", "location", {1: (0, 0, 0)})
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 13: (0.9, 0.436, 0, 0)})
    operators.make_dynamic(armature)
    connect(armature, "bone0", empty(location=(0, 0, 2)), name="hook")
    return armature


@pytest.mark.parametrize("result", ["ACTION", "STRIP"])
def test_the_source_plays_on_renamed_bones(result):
    armature = waving()
    before = evaluated(armature, [13])[0]
    simulate(armature, result=result)
    for old, new in (("bone1", 'elbow "left"'), ("bone2", "bone1"), ("bone0", "bone2")):
        armature.data.bones[old].name = new
    bpy.ops.armature_dynamics.discard()
    np.testing.assert_allclose(evaluated(armature, [13])[0], before, atol=1e-5)
    assert {curve.data_path.split('"]')[0] for curve in curves(armature.animation_data.action)} == {
        'pose.bones["elbow \\"left\\"',
        'pose.bones["bone1',
    }


@pytest.mark.parametrize("state", ["SOURCE", "SIMULATED", "KEPT"])
def test_the_next_take_is_that_of_the_source(state):
    """What physics wrote under the old name is no edit by hand, and connections hold the bone by its new one."""
    takes = []
    for rename in (False, True):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        armature = waving()
        if state != "SOURCE":
            simulate(armature)
        if state == "KEPT":
            bpy.ops.armature_dynamics.keep()
        if rename:
            armature.data.bones["bone1"].name = "elbow"
            armature.data.bones["bone0"].name = "shoulder"
        armature.pose.bones[1].armature_dynamics.role = "ANIMATED"
        assert simulate(armature).ok
        takes.append(evaluated(armature, range(1, 14))[0])
    assert armature.armature_dynamics.connections["hook"].bone == "shoulder"
    np.testing.assert_allclose(takes[1], takes[0], atol=1e-5)


def test_an_action_that_others_play_keeps_its_names():
    other, armature = chain(3, name="Other"), waving()
    action = armature.animation_data.action
    simulate(armature)
    other.animation_data_create().action = action
    armature.data.bones["bone1"].name = "elbow"
    bpy.ops.armature_dynamics.discard()
    assert {curve.data_path.split('"')[1] for curve in curves(action)} == {"bone1", "bone2"}
