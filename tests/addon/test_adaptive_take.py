"""Adaptive simulation: its settings, what it reports, and what is left of it."""

import json
from dataclasses import replace

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import activity, command, overlay, readings, take
from connecting import connect, key_enabled
from rigs import chain, curves, key, make_rig, simulate, values

SHARE, ERROR = "armature_dynamics.active_joints", "armature_dynamics.left_out"


@pytest.fixture
def shared():
    return bpy.context.scene.armature_dynamics


@pytest.fixture
def rope():
    """A chain of twelve bones that hangs from an animated one, which is pulled aside and stops."""
    armature = chain(12, height=3.0, length=0.2)
    key(armature, "bone0", "location", {1: (0, 0, 0), 8: (0, 0, 0.3)})
    bpy.ops.armature_dynamics.make_dynamic()
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    armature.armature_dynamics.use_ground = False
    return armature


def dragged(count, length, places):
    """A chain that hangs straight down, its first bone keyed aside."""
    ends = [(0, 0, length * (1 - i / count)) for i in range(count + 1)]
    armature = make_rig([(f"b{i}", *ends[i : i + 2], f"b{i - 1}" if i else None, i > 0) for i in range(count)])
    key(armature, "b0", "location", {frame: (x, 0, 0) for frame, x in places.items()})
    bpy.ops.armature_dynamics.make_dynamic()
    armature.pose.bones["b0"].armature_dynamics.role = "ANIMATED"
    armature.armature_dynamics.use_ground, armature.armature_dynamics.life_scale = False, 1.0
    return armature


def played(armature):
    """The keys of everything that moves bones."""
    return {
        (curve.data_path, curve.array_index): [tuple(point.co) for point in curve.keyframe_points]
        for curve in curves(armature.animation_data.action)
        if curve.data_path not in (SHARE, ERROR)
    }


def paths(armature):
    return {curve.data_path for curve in curves(armature.animation_data.action)}


def by_activity(armature, frame):
    """The triangles that show activity, by their colours."""
    drawn = overlay.figures(armature, frame)
    return {color: points for _, color, points in drawn if color in (overlay.ACTIVE, overlay.RIGID)}


def tails(armature, frames):
    """World places (F, n, 3) of the bones' tails."""
    result = np.empty((len(frames), len(armature.pose.bones), 3), dtype=np.float32)
    for row, frame in zip(result, frames):
        bpy.context.scene.frame_set(frame)
        armature.pose.bones.foreach_get("tail", row.reshape(-1))
    return result


def test_off_leaves_no_trace_in_the_result(rope, shared):
    """Who does not ask for it gets the exact method, and neither curves nor lines about it."""
    report = simulate(rope)
    exact = played(rope)
    assert shared.adaptive == "OFF" and "adaptive" not in report.as_dict()
    assert not paths(rope) & {SHARE, ERROR} and activity.kept(rope) is None
    assert not any("joints active" in line for line in report.lines())
    shared.adaptive = "JOINTS"
    simulate(rope)
    shared.adaptive = "OFF"
    simulate(rope)
    assert played(rope) == exact and not paths(rope) & {SHARE, ERROR} and activity.kept(rope) is None


def test_no_error_is_the_exact_method(rope, shared):
    """A threshold of zero moves all joints, and so nothing differs that can be seen."""
    simulate(rope)
    exact = tails(rope, range(1, 14))
    shared.adaptive, shared.threshold = "THRESHOLD", 0.0
    report = simulate(rope)
    assert report.adaptive == {"active_share": 1.0, "error_max": 0.0}
    assert np.abs(tails(rope, range(1, 14)) - exact).max() < 1e-5


def test_an_error_means_the_same_in_any_number_of_steps(shared):
    """More steps a frame make a simulation finer: joints that are slow must not be stopped so much more often."""
    armature = dragged(40, 8.0, {1: 0.0, 20: 0.4})
    simulate(armature, end=24, substeps=40)
    exact = tails(armature, range(1, 25))
    shared.adaptive, shared.threshold = "THRESHOLD", 1e-3
    report = simulate(armature, end=24, substeps=40)
    assert report.adaptive["active_share"] < 1
    assert np.linalg.norm(tails(armature, range(1, 25)) - exact, axis=-1).max() < 0.01 * 8.0


def test_curves_tell_how_much_moved_and_how_much_that_left_out(rope, shared):
    """Animators read in the Graph Editor where the simulation was coarse."""
    shared.adaptive, shared.joints = "JOINTS", 4
    report = simulate(rope)
    share, error = values(rope.animation_data.action, SHARE), values(rope.animation_data.action, ERROR)
    assert share[:, 0].tolist() == error[:, 0].tolist() == list(range(1, 14))
    assert share[:, 1].max() <= 100 * 4 / 11 + 1e-3 and share[:, 1].min() > 0
    assert report.adaptive["active_share"] == pytest.approx(share[:, 1].mean() / 100, rel=1e-5)
    assert report.adaptive["error_max"] == pytest.approx(error[:, 1].max(), rel=1e-5)
    # a bound beyond the length says nothing
    assert error[:, 1].max() > 1.0
    assert "joints active on average, too few to bound the error" in rope.armature_dynamics.summary
    (line,) = replace(report, adaptive={"active_share": 0.25, "error_max": 0.012}).fewer_joints()
    assert line == "25 % of the joints active on average, error 1.2e-02 of the length at most"
    bpy.context.scene.frame_set(7)
    assert rope.armature_dynamics.active_joints == pytest.approx(share[6, 1])
    groups = {curve.group.name for curve in curves(rope.animation_data.action) if curve.data_path in (SHARE, ERROR)}
    assert groups == {"Adaptive"}


@pytest.mark.slow
def test_a_dragged_tentacle_is_where_the_exact_one_is(shared):
    """Nobody sees the difference: with a thousandth of the length as threshold or with forty joints, which stand in for
    all others, it is a hundredth at most, at every frame."""
    length, frames = 20.0, 100
    tentacle = dragged(1000, length, {1: 0.0, 60: 4.0})
    simulate(tentacle, end=frames)
    exact = tails(tentacle, range(1, frames + 1))
    shared.threshold, shared.joints = 1e-3, 40
    for mode, share in (("THRESHOLD", 0.9), ("JOINTS", 0.041)):
        shared.adaptive = mode
        report = simulate(tentacle, end=frames)
        off = np.linalg.norm(tails(tentacle, range(1, frames + 1)) - exact, axis=-1)
        assert report.ok and report.adaptive["active_share"] < share
        assert off.max() <= 0.01 * length


@pytest.mark.parametrize("end", ["discard", "keep"])
def test_discard_and_restore_take_it_back(rope, shared, end):
    """Nothing of a simulation is left on the armature."""
    shared.adaptive = "THRESHOLD"
    simulate(rope)
    bpy.context.scene.frame_set(7)
    rope.armature_dynamics.show_activity = True
    assert rope.armature_dynamics.active_joints > 0
    getattr(bpy.ops.armature_dynamics, end)()
    if end == "keep":
        bpy.ops.armature_dynamics.restore_source()
    own = rope.armature_dynamics
    assert (own.active_joints, own.left_out, own.preview) == (0, 0, False)
    assert not paths(rope) & {SHARE, ERROR} and not by_activity(rope, 7)


def test_a_take_that_is_stopped_tells_nothing(rope, shared):
    """Esc leaves everything as it was, what curves have already told included."""
    shared.adaptive, shared.joints = "JOINTS", 2
    rope.armature_dynamics.use_curves, rope.armature_dynamics.frame_end = True, 13
    bpy.context.scene.frame_set(9)
    steps = take.take(rope)
    assert any(now == "measure" for now, _ in steps) and next(steps)
    steps.close()
    own = rope.armature_dynamics
    assert [getattr(own, name) for name in (*activity.NAMES, *readings.NAMES)] == [0] * 6


def test_more_joints_than_there_are_are_all_of_them(rope, shared):
    """A budget outlives the character that it was made for."""
    shared.adaptive, shared.joints = "JOINTS", 500
    report = simulate(rope)
    assert [line for line in report.news() if "500 joints were to move, and there are 11" in line]
    assert report.ok and report.adaptive["active_share"] == 1.0


def test_what_makes_no_sense_cannot_be_entered(shared):
    """Negative thresholds and empty budgets end at the field."""
    shared.threshold, shared.joints, shared.budget = -1.0, -5, -3.0
    assert (shared.threshold, shared.joints) == (0.0, 1) and shared.budget > 0


def test_a_preview_cannot_be_kept(rope, shared):
    """A time budget gives another motion on every machine: what is kept must be asked for."""
    shared.adaptive, shared.budget = "BUDGET", 50.0
    report = simulate(rope)
    assert [line for line in report.news() if "this is a preview" in line]
    assert not bpy.ops.armature_dynamics.keep.poll()
    shared.budget_when_baking = True
    assert bpy.ops.armature_dynamics.keep() == {"FINISHED"}
    bpy.ops.armature_dynamics.restore_source()
    shared.budget_when_baking = False
    shared.adaptive = "THRESHOLD"
    simulate(rope)
    assert bpy.ops.armature_dynamics.keep() == {"FINISHED"}


def test_what_it_does_not_know_is_refused(rope, shared):
    """Joints are chosen by what pulls at them: a choice that is blind to it would prove nothing."""
    shared.adaptive = "THRESHOLD"
    rope.pose.bones["bone5"].armature_dynamics_follow = 2.0
    with pytest.raises(RuntimeError, match=r"its bones are directed.*turn Adaptive off"):
        bpy.ops.armature_dynamics.simulate()


def test_characters_share_one_budget(shared):
    """Those that are simulated together are one model."""
    ropes = [chain(6, name, height=3.0) for name in ("One", "Other")]
    ropes[1].location.y = 2.0
    for armature in ropes:
        bpy.context.view_layer.objects.active = armature
        bpy.ops.armature_dynamics.make_dynamic()
        armature.armature_dynamics.meets = True
    shared.adaptive, shared.joints = "JOINTS", 5
    simulate(ropes[0])
    kept = [activity.kept(armature) for armature in ropes]
    assert (sum(own.active.sum(axis=1) for own in kept) <= 5 + 2).all()  # what floats moves besides
    assert all(SHARE in paths(armature) for armature in ropes)


def test_bones_are_drawn_by_their_activity(rope, shared):
    """Colours of the overlay: the bones themselves keep theirs."""
    shared.adaptive, shared.joints = "JOINTS", 4
    simulate(rope)
    rope.armature_dynamics.show_activity = True
    active = activity.kept(rope).at(9)
    drawn = by_activity(rope, 9)
    assert len(drawn[overlay.ACTIVE]) == 24 * active.sum() and len(drawn[overlay.RIGID]) == 24 * (~active).sum()
    bpy.context.scene.frame_set(9)
    rope.location.x = 5.0
    bpy.context.view_layer.update()
    points = np.concatenate(list(by_activity(rope, 9).values()))
    places = np.array([rope.matrix_world @ bone.head for bone in rope.pose.bones[1:]])
    assert np.abs(points[:, None] - places).sum(-1).min(axis=0).max() < 1e-5
    assert not any(map(len, by_activity(rope, 100).values()))


@pytest.mark.parametrize(
    ("option", "share"), [("error:0", 1.0), ("joints:2", 2 / 11), ("budget:1000", None), ("off", None)]
)
def test_the_command_line_says_how(rope, tmp_path, option, share):
    """The same settings, for scripts; a time budget that is asked for here is meant for this bake."""
    path, report = tmp_path / "rope.blend", tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    options = ["--frames", "1:6", "--adaptive", option, "--report", str(report)]
    assert command.run([str(path), *options], "bake.py") == 0
    content = json.loads(report.read_text(encoding="utf-8"))
    assert ("adaptive" in content) == (option != "off")
    if share:
        assert content["adaptive"]["active_share"] <= share + 1e-6


def test_the_command_line_ignores_a_files_time_budget(rope, shared, tmp_path):
    """A bake is the same wherever it is made, unless somebody wants it otherwise."""
    shared.adaptive = "BUDGET"
    path, report = tmp_path / "rope.blend", tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    assert command.run([str(path), "--frames", "1:4", "--report", str(report)], "bake.py") == 0
    content = json.loads(report.read_text(encoding="utf-8"))
    assert "adaptive" not in content
    assert [warning for warning in content["warnings"] if "was ignored" in warning["message"]]


@pytest.mark.parametrize(
    "option", ["error:-1", "error:nan", "joints:0", "joints:2.5", "joints:inf", "budget:0", "few", "joints"]
)
def test_the_command_line_refuses_bad_values(rope, tmp_path, capsys, option):
    """One line, and exit code 2."""
    path = tmp_path / "rope.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    assert command.run([str(path), "--adaptive", option], "bake.py") == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("mode", ["THRESHOLD", "JOINTS"])
def test_what_it_is_connected_to_weighs_nothing(shared, mode):
    """An object, or the world where a connection is made on the way, is a body of no mass: adaptive takes of them ended
    with an error, or at the first contact."""
    shared.adaptive = mode
    armature = chain(20, height=2.0, length=0.1)
    connect(armature, "bone0")
    key_enabled(armature, {1: False, 25: True})
    report = simulate(armature, end=40)
    assert report.ok and report.frames == 40
