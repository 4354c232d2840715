"""Loops: what hangs on a cycle of animation swings in it."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import operators
from evaluated import differences, evaluated
from rigs import chain, curves, key, simulate


@pytest.fixture
def tail():
    """A tail whose first bone wags once in 24 frames."""
    armature = chain(4, height=2.0)
    armature.pose.bones["bone0"].rotation_mode = "XYZ"
    key(armature, "bone0", "rotation_euler", {1: (0, 0, 0), 7: (0, 0, 0.5), 19: (0, 0, -0.5), 25: (0, 0, 0)})
    for curve in curves(armature.animation_data.action):
        curve.modifiers.new("CYCLES")
    operators.make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    return armature


def _seam(armature):
    return differences(evaluated(armature, [1]), evaluated(armature, [25]))


def test_a_loop_closes_and_its_gap_is_told(tail):
    """A game's walk repeats: the tail must be at its end where it is at its start (field case 5)."""
    once = simulate(tail, end=25, use_ground=False)
    assert once.loop == {} and _seam(tail)[0] > 50, "it hangs down by then"
    report = simulate(tail, end=25, loop_most=30)
    assert report.ok, report.news()
    assert 1 < report.loop["cycles"] < 30 and report.frames == 25
    millimetres, degrees = _seam(tail)
    assert millimetres < 3.0 and degrees < 0.1 + 0.01
    assert report.loop["gap_deg"] == pytest.approx(degrees, abs=0.01)
    assert any(line.startswith(f"After {report.loop['cycles']} cycles the last frame is") for line in report.lines())
    keys = {key.co[0] for curve in curves(tail.animation_data.action) for key in curve.keyframe_points}
    assert min(keys) == 1 and max(keys) == 25


def test_a_loop_goes_on_as_fast_as_it_began(tail):
    """A seam in the velocity is seen as a jerk."""
    simulate(tail, end=25, use_ground=False, loop_most=20)
    ends = evaluated(tail, range(1, 26))[0]
    step = np.linalg.norm(np.diff(ends, axis=0), axis=-1).max()
    begin, end = ends[1] - ends[0], ends[-1] - ends[-2]
    inner = np.linalg.norm(np.diff(ends, 2, axis=0), axis=-1).max()
    assert np.linalg.norm(begin - end, axis=-1).max() <= inner * 1.05 < step


def test_what_does_not_close_is_told(tail):
    """Two times are too few: the gap is in the report."""
    report = simulate(tail, end=25, use_ground=False, loop_most=2, damping=0.0)
    assert report.loop["cycles"] == 2 and report.loop["gap_deg"] > 0.1


def test_without_a_loop_all_is_as_it_was(tail):
    """One time is the default."""
    assert tail.armature_dynamics.loop_most == 1
    assert "loop" not in simulate(tail, end=10).as_dict()
    bpy.ops.armature_dynamics.discard()
