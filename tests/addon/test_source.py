"""The source animation is sampled as it plays, whatever moves it and wherever it begins and ends."""

import bpy
import numpy as np
import pytest
from connecting import empty
from rigs import chain, make_rig, simulate, world_heads


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
    before = heads(armature, (12, 13))
    simulate(armature, start=13, end=25)
    after = heads(armature, (13, 25))
    assert after[0] == pytest.approx(before[1], abs=1e-3)
    assert after[1, 0] - after[0, 0] == pytest.approx(12 * (before[1, 0] - before[0, 0]), rel=0.2)
    assert before[1, 0] - before[0, 0] > 0.2


def heads(armature, frames, bone="bone0"):
    """Where a bone's head is in the world (F, 3) [m]."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append(world_heads(armature)[bone])
    return np.array(found)
