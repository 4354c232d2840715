"""Fewer keys than one per frame, and blending with the source animation: on the rig as Blender evaluates it."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import command, operators, take
from armature_dynamics.addon.rig import ConversionError
from connecting import connect
from evaluated import differences, evaluated
from mathutils import Quaternion
from rigs import chain, curves, finished, key, make_rig, simulate, stop, values

MODES = ["QUATERNION", "AXIS_ANGLE", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"]
REDUCED = {"key_mode": "REDUCED", "key_distance": 1.0, "key_angle": 0.1}


def promised(report):
    return report.ok and report.joint_separation_max_m <= 1e-6


def turns(armature, bone, frames):
    """A bone's own rotation as keyed, frame by frame."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append(armature.pose.bones[bone].rotation_quaternion.copy())
    return found


def written(action):
    """All that curves are made of."""
    return {
        (curve.data_path, curve.array_index): [
            (tuple(k.co), tuple(k.handle_left), tuple(k.handle_right), k.interpolation, k.handle_left_type)
            for k in curve.keyframe_points
        ]
        for curve in curves(action)
    }


DEMO = """
import json, os, sys
import bpy
from bake import load_extension
load_extension().register()
import demo_scene
from evaluated import differences, evaluated
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.context.scene.render.fps = demo_scene.RATE
rig, stairs = demo_scene.character(), demo_scene.steps()
report, frames = demo_scene.simulate(rig, stairs), range(1, demo_scene.END + 1)
before = evaluated(rig, frames)
bpy.ops.armature_dynamics.restore_source()
rig.armature_dynamics.key_mode = "REDUCED"
report = demo_scene.simulate(rig, stairs)
print(json.dumps([report.keys, report.ok, report.lines(), *differences(before, evaluated(rig, frames))]), flush=True)
# Rigify makes the 4.2 wheel crash at exit
os._exit(0)
"""


def test_the_demo_needs_a_third_of_the_keys():
    """A fall down steps to 1 mm and 0.1 degrees: three times fewer keys, everywhere on the rig, hands and feet too."""
    here = Path(__file__).parent
    paths = {"PYTHONPATH": os.pathsep.join([str(here.parents[1] / "scripts"), str(here)])}
    done = subprocess.run(
        [sys.executable, "-c", DEMO], capture_output=True, text=True, timeout=300, env=os.environ | paths
    )
    assert done.returncode == 0, done.stderr[-2000:]
    keys, ok, lines, moved, turned = json.loads(done.stdout.strip().splitlines()[-1])
    assert ok and keys["every_frame"] >= 3 * keys["written"]
    assert moved <= 1.0 and turned <= 0.1
    assert moved == pytest.approx(1e3 * keys["moved_max_m"], abs=0.01)
    assert turned == pytest.approx(keys["turned_max_deg"], abs=0.001)
    assert any(f"{keys['written']} keys instead of {keys['every_frame']}" in line for line in lines)


def test_cesium_man_needs_a_third_of_the_keys(shared_file):
    """The same out of a walk that was imported; what physics does not move keeps its keys to the last bit."""
    bpy.ops.import_scene.gltf(filepath=str(shared_file("CesiumMan.glb")))
    armature = next(thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE")
    source = written(armature.animation_data.action)
    frames = range(1, 73)
    simulate(armature, start=12, end=72)
    full, before = written(armature.animation_data.action), evaluated(armature, frames)
    report = simulate(armature, start=12, end=72, **REDUCED)
    fewer, after = written(armature.animation_data.action), evaluated(armature, frames)
    assert promised(report)
    moved, turned = differences(before, after)
    assert moved <= 1.0 and turned <= 0.1
    same = [path for path in full if full[path] == source.get(path)]
    own = [path for path in full if path not in same]
    assert same and all(fewer[path] == source[path] for path in same)
    counts = [sum(len(curves_[path]) for path in own) for curves_ in (full, fewer)]
    assert counts == [report.keys["every_frame"], report.keys["written"]] and counts[0] >= 3 * counts[1]


@pytest.mark.parametrize("rotation", [True, False])
@pytest.mark.parametrize("local", [True, False])
def test_the_tolerance_holds_in_all_modes_and_inheritance(rotation, local):
    """Each bone keeps its rotation mode (field case 14), and errors add up as its flags have it."""
    armature = chain(len(MODES), height=1.0)
    for bone, mode in zip(armature.pose.bones, MODES):
        bone.rotation_mode = mode
        bone.bone.use_inherit_rotation = rotation or bone.name in ("bone2", "bone6")
        bone.bone.use_local_location = local
    armature.pose.bones["bone1"].scale = (1.3,) * 3
    armature.rotation_euler, armature.scale = (0.2, 0.5, 1.0), (0.7,) * 3
    simulate(armature, end=40)
    before = evaluated(armature, range(1, 41))
    report = simulate(armature, end=40, **REDUCED)
    moved, turned = differences(before, evaluated(armature, range(1, 41)))
    assert promised(report) and report.keys["every_frame"] >= 2.5 * report.keys["written"]
    assert moved <= 1.0 and turned <= 0.1
    assert [bone.rotation_mode for bone in armature.pose.bones] == MODES


@pytest.mark.parametrize(("distance", "angle"), [(0.05, 90.0), (1000.0, 0.02), (20.0, 2.0)])
def test_both_tolerances_count(distance, angle):
    """Millimetres for what is far from its joint, degrees for what is near."""
    armature = chain(5, height=1.5)
    armature.pose.bones["bone0"].rotation_quaternion = Quaternion((1, 1, 0), 0.5)
    armature.pose.bones["bone2"].rotation_quaternion = Quaternion((0, 1, 1), 0.8)
    simulate(armature, end=40)
    before = evaluated(armature, range(1, 41))
    simulate(armature, end=40, key_mode="REDUCED", key_distance=distance, key_angle=angle)
    moved, turned = differences(before, evaluated(armature, range(1, 41)))
    assert moved <= distance and turned <= angle


def test_all_channels_of_a_bone_share_their_frames():
    """Keys that stand together can be edited together; the first, the last and that of the start stay."""
    armature = chain(3, height=2.0)
    key(armature, "bone0", "location", {1: (0, 0, 0), 10: (0, 0.3, 0), 20: (0, 0.3, 0.5)})
    simulate(armature, start=8, end=40, **REDUCED)
    action = armature.animation_data.action
    frames = [values(action, f'pose.bones["bone0"].{path}')[:, 0] for path in ("location", "rotation_quaternion")]
    assert np.array_equal(*frames)
    assert {1, 8, 40} <= set(frames[0]) and len(frames[0]) < 15


def test_fewer_quaternions_do_not_flip():
    """Sign continuity is the last operation (field case 15): between keys that are far apart it shows all the more."""
    armature = chain(1, height=30.0)
    key(armature, "bone0", "rotation_quaternion", {1: (1, 0, 0, 0), 2: (0.98, 0.1, 0.05, 0.17)})
    simulate(armature, end=48)
    before = evaluated(armature, range(1, 49))
    simulate(armature, end=48, **REDUCED)
    table = values(armature.animation_data.action, 'pose.bones["bone0"].rotation_quaternion')[:, 1:]
    assert (table[1:] * table[:-1]).sum(axis=1).min() > 0
    moved, turned = differences(before, evaluated(armature, range(1, 49)))
    assert moved <= 1.0 and turned <= 0.1


@pytest.mark.parametrize("step", [2, 5])
def test_every_nth_frame_is_keyed(step):
    """Counted from the start frame; the report speaks of the frames that have keys."""
    armature = chain(3, height=2.0)
    simulate(armature, start=3, end=30)
    before = evaluated(armature, range(3, 31))
    report = simulate(armature, start=3, end=30, key_mode="STEP", key_step=step)
    frames = values(armature.animation_data.action, 'pose.bones["bone1"].rotation_quaternion')[:, 0]
    assert np.array_equal(frames, sorted({*range(3, 31, step), 30}))
    assert promised(report)
    after = evaluated(armature, range(3, 31))
    moved, turned = differences(before, after)
    assert moved == pytest.approx(1e3 * report.keys["moved_max_m"], abs=0.01)
    on_keys = [frame - 3 for frame in range(3, 31, step)]
    moved, turned = differences([part[on_keys] for part in before], [part[on_keys] for part in after])
    assert moved < 0.01 and turned < 0.002
    if step <= 3:  # curves between pass two frames exactly
        assert differences(before, after)[0] < 0.01


def test_fewer_keys_hold_hands():
    """A connection may gape by what the tolerance allows at both ends, and that is no broken promise."""
    armature, other = chain(3, "One", height=2.0), chain(3, "Other", height=2.0)
    other.location.y = 0.3
    operators.make_dynamic(other)
    connect(armature, "bone2", other, "bone2")
    report = simulate(armature, end=40, **REDUCED)
    assert promised(report) and 0 < report.gap_m() <= 2e-3
    assert report.keys["every_frame"] > 2 * report.keys["written"]
    assert len(values(other.animation_data.action, 'pose.bones["bone1"].rotation_quaternion')) < 20


@pytest.mark.parametrize("mode", ["EVERY", "STEP", "REDUCED"])
def test_a_character_that_is_only_animated_takes_part(mode):
    """It gets no keys by physics, whatever keys the others get, and plays on."""
    armature, other = chain(3, "One", height=2.0), chain(3, "Other", height=2.0)
    other.location.y = 0.3
    key(other, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 30: (0.8, 0.6, 0, 0)})
    before = evaluated(other, range(1, 31))
    operators.make_dynamic(other)
    for bone in other.pose.bones:
        bone.armature_dynamics.role = "ANIMATED"
    connect(armature, "bone2", other, "bone2")
    report = simulate(armature, end=30, **REDUCED | {"key_mode": mode})
    assert report.bake_error_max_m < 2e-3
    assert differences(before, evaluated(other, range(1, 31)))[0] < 0.01
    assert ("moved_max_m" in report.keys) == (mode != "EVERY")


def test_a_stopped_reduction_leaves_nothing():
    """Esc while keys are chosen is like Esc at any other moment."""
    armature = chain(3, height=1.0)
    simulate(armature, end=12)
    actions = [action.name for action in bpy.data.actions]
    armature.armature_dynamics.key_mode = "REDUCED"
    stop(armature, "bake", 0.7)
    assert [action.name for action in bpy.data.actions] == actions


@pytest.fixture
def waver():
    """A chain that waves its end, also after the simulated frames."""
    armature = chain(3, height=3.0)
    key(armature, "bone0", "location", {1: (0, 0, 0), 60: (0, 1, 0)})
    for frame in range(1, 62, 10):
        turn = Quaternion((0, 1, 1), 0.6 * (-1) ** (frame // 10))
        key(armature, "bone1", "rotation_quaternion", {frame: turn})
    return armature


@pytest.mark.parametrize("mode", ["EVERY", "REDUCED"])
def test_blends_come_out_of_the_animation_and_go_back_into_it(waver, mode):
    """Half way in time a joint is half way between both turns (slerp), and after the end the animation goes on."""
    before = evaluated(waver, range(1, 61))
    own = turns(waver, "bone1", range(1, 61))
    simulate(waver, start=5, end=45)
    simulated, fallen = evaluated(waver, range(1, 46)), turns(waver, "bone1", range(1, 46))
    report = simulate(waver, start=5, end=45, key_mode=mode, blend_in=10, blend_out=20)
    after, mixed = evaluated(waver, range(1, 61)), turns(waver, "bone1", range(1, 61))
    assert promised(report)
    close = (1.0, 0.1) if mode == "REDUCED" else (0.01, 0.002)

    def same(one, other, frames):
        index = [frame - 1 for frame in frames]
        found = differences([part[index] for part in one], [part[index] for part in other])
        return found[0] <= close[0] and found[1] <= close[1]

    assert same(before, after, [*range(1, 6), *range(45, 61)])
    assert same(simulated, after, range(15, 26))
    assert not same(simulated, after, [10]) and not same(before, after, [10])
    half = own[9].slerp(fallen[9], 0.5)
    assert half.rotation_difference(mixed[9]).angle < 2e-3
    quarter = own[29].slerp(fallen[29], 1 - 0.25**2 * (3 - 2 * 0.25))
    assert quarter.rotation_difference(mixed[29]).angle < 2e-3


def test_blends_have_no_jumps(waver):
    """No frame may move much more than those of the animation and of the simulation do."""
    simulate(waver, start=5, end=45)
    fastest = np.abs(np.diff(evaluated(waver, range(5, 46))[0], axis=0)).max()
    simulate(waver, start=5, end=45, blend_in=12, blend_out=12)
    ends = evaluated(waver, range(1, 61))[0]
    assert np.abs(np.diff(ends, axis=0)).max() < 2 * fastest
    # where the blend begins, speed changes no more than in any frame of free fall
    assert np.abs(np.diff(ends, n=2, axis=0))[3:5].max() < 0.03


def test_what_tumbles_on_blends_back_the_way_it_came():
    """The shorter way round changes sides at half a turn, and that would be a jump."""
    armature = chain(1, height=30.0)
    turn = Quaternion((0, 0, 1), 0.2)
    key(armature, "bone0", "rotation_quaternion", {1: (1, 0, 0, 0), 2: turn, 3: turn, 40: turn})
    report = simulate(armature, end=40, blend_in=36)
    assert promised(report)
    steps = [a.rotation_difference(b).angle for a, b in pairwise(turns(armature, "bone0", range(1, 41)))]
    simulate(armature, end=40, blend_in=0)
    free = [a.rotation_difference(b).angle for a, b in pairwise(turns(armature, "bone0", range(1, 41)))]
    # more than a whole turn; twice a smooth step grows by 1.7 a frame at most
    assert sum(free) > 2 * np.pi and max(steps) < 1.8 * max(free)


def test_blends_carry_animated_and_ignored_bones():
    """A keyed hook above, a twist bone between, a keyed prop below (field case 26): all meet in the blend."""
    armature = make_rig(
        [
            ("hook", (0, 0, 2), (0.3, 0, 2), None, False),
            ("arm", (0.3, 0, 2), (0.6, 0, 2), "hook", True),
            ("twist", (0.6, 0, 2), (0.7, 0, 2), "arm", True),
            ("hand", (0.8, 0, 2.05), (1.0, 0, 2), "twist", False),
            ("prop", (1.0, 0, 2), (1.3, 0, 2), "hand", True),
        ]
    )
    armature.armature_dynamics.enabled = True
    for bone, role in zip(armature.pose.bones, ("ANIMATED", "SIMULATED", "IGNORED", "SIMULATED", "ANIMATED")):
        bone.armature_dynamics.role = role
    for bone in ("hook", "twist", "prop"):
        key(armature, bone, "rotation_quaternion", {1: (1, 0, 0, 0), 30: (0.8, 0.3, 0.5, 0)})
    key(armature, "hand", "location", {1: (0, 0, 0), 30: (0.05, 0.02, 0)})
    before = evaluated(armature, range(1, 31))
    report = simulate(armature, start=6, end=30, blend_in=6, blend_out=8)
    assert promised(report)
    after = evaluated(armature, range(1, 31))
    ends = [0, 4, 5, 29]
    assert differences([part[ends] for part in before], [part[ends] for part in after])[0] < 0.01
    assert differences(before, after)[0] > 100


def test_hands_that_are_held_come_from_animations_of_different_lengths():
    """What goes on after the end is each armature's own; while both blend, their connection need not hold."""
    armature, other = chain(3, "One", height=2.0), chain(3, "Other", height=2.0)
    other.location.y = 0.3
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 50: (0.8, 0.6, 0, 0)})
    key(other, "bone1", "rotation_quaternion", {5: (1, 0, 0, 0), 70: (0.8, 0, 0.6, 0)})
    before = [evaluated(one, range(1, 71)) for one in (armature, other)]
    operators.make_dynamic(other)
    connect(armature, "bone2", other, "bone2")
    report = simulate(armature, start=8, end=40, blend_in=5, blend_out=8)
    assert promised(report) and report.gap_m() < 1e-5
    for one, motion in zip((armature, other), before):
        after = evaluated(one, range(1, 71))
        index = [*range(5, 8), *range(39, 70)]
        assert differences([part[index] for part in motion], [part[index] for part in after])[0] < 0.01
        assert differences(motion, after)[0] > 10


def test_what_was_not_animated_blends_back_into_its_pose():
    """The source of a still character is its pose."""
    armature = chain(3, height=2.0)
    armature.pose.bones["bone1"].rotation_quaternion = (0.8, 0.6, 0, 0)
    bpy.context.view_layer.update()
    before = evaluated(armature, [1])
    assert promised(simulate(armature, end=30, blend_out=10, **REDUCED))
    assert differences(before, evaluated(armature, [30]))[0] < 0.01
    assert differences(before, evaluated(armature, [20]))[0] > 500


def test_blends_that_do_not_fit_are_refused():
    """In and out must not overlap."""
    with pytest.raises(ConversionError, match=r"8 frames in and 9 out, more than there are from 1 to 13; shorten it"):
        simulate(chain(2), blend_in=8, blend_out=9)


def test_the_defaults_key_every_frame_and_blend_nothing():
    """Nobody loses keys who did not ask for it."""
    armature = chain(2)
    report = simulate(armature, end=13)
    table = values(armature.animation_data.action, 'pose.bones["bone1"].rotation_quaternion')
    assert np.array_equal(table[:, 0], range(1, 14)) and "keys" not in report.as_dict()
    assert {k.interpolation for curve in curves(armature.animation_data.action) for k in curve.keyframe_points} == {
        "LINEAR"
    }


def test_the_command_line_reduces_and_blends(tmp_path):
    """The same settings, for scripts."""
    armature = chain(3, "Chain", height=1.0)
    path, out = tmp_path / "chain.blend", tmp_path / "report.json"
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 30: (0.8, 0.6, 0, 0)})
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    options = [str(path), "--frames", "1:30", "--report", str(out)]
    assert command.run([*options, "--reduce-keys", "2:0.5", "--blend", "3:4"], "bake.py") == 0
    own = bpy.data.objects["Chain"].armature_dynamics
    assert (own.key_mode, own.blend_in, own.blend_out) == ("REDUCED", 3, 4)
    assert (own.key_distance, own.key_angle) == (2.0, 0.5)
    keys = json.loads(out.read_text(encoding="utf-8"))["keys"]
    assert keys["written"] < keys["every_frame"] / 2 and keys["moved_max_m"] <= 2e-3 and keys["turned_max_deg"] <= 0.5
    assert command.run([*options, "--key-step", "4"], "bake.py") == 0
    action = bpy.data.objects["Chain"].animation_data.action
    assert list(values(action, 'pose.bones["bone1"].rotation_quaternion')[:, 0]) == [*range(1, 30, 4), 30]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--key-step", "0"], "'0' is not a whole number of frames"),
        (["--reduce-keys", "1"], "'1' is not a tolerance; write it as MM:DEGREES"),
        (["--reduce-keys", "0:1"], "both must be at least 0.001"),
        (["--reduce-keys", "nan:1"], "both must be at least 0.001"),
        (["--blend", "3"], "'3' is not two numbers of frames"),
        (["--blend", "9999999999:1"], "'9999999999:1' is not two numbers of frames"),
        (["--key-step", "2", "--reduce-keys", "1:1"], "not allowed with"),
    ],
)
def test_the_command_line_explains(capsys, arguments, line):
    """What is wrong, and how it is written."""
    assert command.run(["chain.blend", *arguments], "bake.py") == 2
    assert line in capsys.readouterr().err


def test_the_same_take_twice_is_the_same():
    """Choosing keys depends on nothing but the motion."""
    armature = chain(4, height=1.0)
    simulate(armature, end=30, **REDUCED)
    first = written(armature.animation_data.action)
    finished(take.take(armature))
    assert written(armature.animation_data.action) == first
