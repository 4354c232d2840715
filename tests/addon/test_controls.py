"""Rigs that are posed by controls: simulated through their deform bones, the result on the controls."""

import re

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import control, operators, probe, stage
from armature_dynamics.addon.preset import control_presets
from armature_dynamics.addon.rig import read_rig
from evaluated import differences, evaluated
from rigs import curves, finished, key, make_rig, puppet, simulate, take

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(generated_rig):
    """The rig that Rigify generates, made dynamic."""
    bpy.context.view_layer.objects.active = generated_rig
    assert bpy.ops.armature_dynamics.make_dynamic() == {"FINISHED"}
    return generated_rig


def _controls(armature):
    return {bone.name: own for bone in armature.pose.bones if (own := bone.armature_dynamics.control)}


def _ends(armature, frames):
    """Heads and tails (F, n, 2, 3) [m] of the simulated deform bones as Blender evaluates them; and their names."""
    names = [bone.name for bone in armature.data.bones]
    kept = [i for i, name in enumerate(names) if armature.pose.bones[name].armature_dynamics.role == "SIMULATED"]
    return evaluated(armature, frames)[0][:, kept], [names[i] for i in kept]


def test_the_map_is_found_by_looking_at_the_rig(rig):
    """No list of names is needed: what the file says of Rigify's rigs is what constraints and a look at them tell."""
    own = rig.armature_dynamics
    described = probe.Found(_controls(rig), own.root_control, control.switches(rig))
    snapshot = read_rig(rig)
    seen = probe.derive(rig, snapshot, sorted(described.controls, key=snapshot.names.index))
    assert seen == described
    assert described.root == "torso"
    assert set(described.controls.values()) >= {"spine_fk", "upper_arm_fk.L", "forearm_fk.L", "hand_fk.L", "shin_fk.R"}
    assert described.switches == {
        (f"{limb}_parent.{side}", "IK_FK"): 1.0 for limb in ("upper_arm", "thigh") for side in "LR"
    }


def test_looking_at_a_rig_leaves_it_as_it_was(generated_rig):
    """Controls are turned to see what they carry: nobody may notice."""
    key(generated_rig, "torso", "location", {1: (0, 0, 0), 20: (0, -1, 0)})
    bpy.context.scene.frame_set(13)
    generated_rig.pose.bones["hand_ik.L"].location = (0.1, 0.2, 0.3)
    generated_rig.pose.bones["thigh_parent.L"]["IK_FK"] = 0.25
    bpy.context.view_layer.update()
    before = evaluated(generated_rig, [13])
    generated_rig.pose.bones["hand_ik.L"].location = (0.1, 0.2, 0.3)
    snapshot = read_rig(generated_rig, chain=True)
    names = [name for name in snapshot.names if re.fullmatch(r"DEF-(thigh|shin|spine\.00\d|forearm)(\.[LR])?", name)]
    assert probe.derive(generated_rig, snapshot, names).controls["DEF-shin.L"] == "shin_fk.L"
    assert generated_rig.pose.bones["thigh_parent.L"]["IK_FK"] == 0.25
    assert np.allclose(generated_rig.pose.bones["hand_ik.L"].location, (0.1, 0.2, 0.3))
    assert generated_rig.animation_data.action is not None
    bpy.context.view_layer.update()
    assert max(differences(before, evaluated(generated_rig, [13]))) < 1e-3


def test_the_deform_bones_fall_by_keys_of_the_controls(rig):
    """What is drawn falls, limp and in one piece; keys are on the controls, where the animator goes on."""
    start, names = _ends(rig, [1])
    report = simulate(rig, end=72)
    assert report.ok, report.news()
    assert report.bake_error_max_m <= 1e-4 and report.bake_error_max_deg <= 0.01
    written = {curve.data_path.split('"')[1] for curve in curves(rig.animation_data.action)}
    assert written == {*_controls(rig).values(), "torso", *(bone for bone, _ in control.switches(rig))}
    assert not any(name.startswith(("DEF-", "ORG-", "MCH-")) for name in written)
    ends, _ = _ends(rig, [1, 72])
    assert np.abs(ends[0] - start[0]).max() < 1e-4, "the first frame is the source's"
    assert start[0, names.index("DEF-spine"), 0, 2] - ends[1, names.index("DEF-spine"), 0, 2] > 0.5


def test_deform_bones_stay_jointed_on_the_evaluated_rig(rig):
    """An upper arm ends where the forearm begins, on every frame, whatever the rig puts between them."""
    simulate(rig, end=48)
    frames = range(1, 49)
    ends, names = evaluated(rig, frames)[0], [bone.name for bone in rig.data.bones]
    for upper, lower in (
        ("DEF-upper_arm.L.001", "DEF-forearm.L"), ("DEF-forearm.R.001", "DEF-hand.R"),
        ("DEF-thigh.L.001", "DEF-shin.L"), ("DEF-shin.R.001", "DEF-foot.R"),
        ("DEF-spine", "DEF-spine.001"), ("DEF-spine.001", "DEF-spine.002"), ("DEF-spine.002", "DEF-spine.003"),
    ):  # fmt: skip
        gap = np.linalg.norm(ends[:, names.index(upper), 1] - ends[:, names.index(lower), 0], axis=1).max()
        assert gap <= 1e-4, (upper, lower, gap)
    lengths = np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=2)
    limbs = [i for i, name in enumerate(names) if re.match(r"DEF-(upper_arm|forearm|thigh|shin)", name)]
    assert (np.ptp(lengths[:, limbs], axis=0) < 1e-4).all(), "nothing stretches"


def test_tails_that_run_to_the_body_hang_from_it(generated_animal):
    """Rigify's animals have spines that begin at the tail's tip, whose controls turn each other along, and legs that
    hang from helpers between two bones: all come to their place."""
    animal = generated_animal
    animal.location.z = 1.0
    tail = [f"DEF-spine{number}" for number in ("", ".001", ".002")]
    assert [_controls(animal)[name] for name in tail] == ["spine", "spine.001", "spine.002"]
    parents = control.deform_parents(animal)
    assert parents[tail[0]] == "root" and [parents[tail[k + 1]] for k in range(2)] == tail[:2]
    assert "DEF-spine.00" in next(name for name, above in parents.items() if above == tail[2]), "the body's first"
    report = simulate(animal, end=24)
    assert report.ok, report.news()
    assert report.bake_error_max_m <= 1e-4
    assert not any("fights" in line for line in report.news()), "its curl adds to the keys"


@pytest.mark.parametrize("generated_animal", ["cat"], indirect=True)
def test_what_hangs_from_another_bone_than_it_seems_is_moved_there(generated_animal):
    """A cat's belly hangs from the middle of a spine whose controls Blender only places to rounding: it comes along
    with its own deform bone, not eleven millimetres beside it."""
    report = simulate(generated_animal, end=60)
    assert report.ok, report.news()
    assert report.bake_error_max_m <= 2e-5


def _tail(count):
    """Deform bones that copy controls, each of which turns along with the one above about x, as Rigify's tails do."""
    rows = []
    for k in range(count):
        ends = (0, 0.1 * k, 2), (0, 0.1 * (k + 1), 2)
        rows += [(f"{kind} {k}", *ends, f"{kind} {k - 1}" if k else None, k > 0) for kind in ("control", "meat")]
    armature = make_rig(rows)
    for k in range(count):
        constraint = armature.pose.bones[f"meat {k}"].constraints.new("COPY_TRANSFORMS")
        constraint.target, constraint.subtarget = armature, f"control {k}"
        armature.data.bones[f"control {k}"].use_deform = False
        if k:
            constraint = armature.pose.bones[f"control {k}"].constraints.new("COPY_ROTATION")
            constraint.target, constraint.subtarget = armature, f"control {k - 1}"
            constraint.owner_space = constraint.target_space = "LOCAL"
            constraint.mix_mode, constraint.use_y, constraint.use_z = "BEFORE", False, False
    bpy.context.view_layer.update()
    return armature


def test_tails_of_any_length_curl_as_physics_says():
    """Each control adds the turn of the one above to its own: in a tail of twenty that adds up."""
    tail = _tail(20)
    tail.rotation_euler = (0.4, 0.0, 0.3)
    report = simulate(tail, end=36)
    assert report.ok, report.news()
    assert report.bake_error_max_m <= 1e-4 and report.bake_error_max_deg <= 0.01


def test_fewer_keys_of_curling_tails_stay_within_what_they_may_change():
    """What is left out at one control turns all below it twice, as they hang from it and turn along with it."""
    tail = _tail(8)
    tail.rotation_euler = (0.4, 0.0, 0.3)
    report = simulate(tail, end=48, key_mode="REDUCED", key_distance=1.0, key_angle=0.1)
    assert report.ok, report.news()
    assert report.bake_error_max_m <= 1.1e-3 and report.bake_error_max_deg <= 0.11
    assert report.keys["written"] < 0.8 * report.keys["every_frame"]


def test_inverse_kinematics_hand_over_without_a_jump(rig):
    """A walk on IK feet ends in a fall on FK controls: what is seen goes on from where it was."""
    key(rig, "torso", "location", {1: (0, 0, -0.05), 20: (0, -0.2, -0.15)})
    key(rig, "foot_ik.L", "location", {1: (0, 0, 0), 20: (0, -0.2, 0.2)})
    key(rig, "hand_ik.R", "location", {1: (0.1, 0, 0), 20: (0.2, -0.2, 0.2)})
    key(rig, "foot_heel_ik.L", "rotation_euler", {1: (0, 0, 0), 20: (0.8, 0, 0)})
    before = evaluated(rig, range(1, 11))
    report = simulate(rig, start=10, end=20)
    assert report.ok, report.news()
    after = evaluated(rig, range(1, 11))
    shown = [i for i, bone in enumerate(rig.data.bones) if bone.use_deform]
    assert np.abs(before[0] - after[0])[:, shown].max() < 2e-4
    values = {frame: _switch(rig, frame) for frame in (1, 9, 10, 20)}
    assert values == {1: 0.0, 9: 0.0, 10: 1.0, 20: 1.0}
    ends, _ = _ends(rig, range(7, 14))
    steps = np.linalg.norm(np.diff(ends, 2, axis=0), axis=-1)
    assert steps.max() < 0.03, "it goes on as fast as it was"


def _switch(rig, frame):
    bpy.context.scene.frame_set(frame)
    return float(rig.pose.bones["thigh_parent.L"]["IK_FK"])


def test_only_the_limbs_that_physics_moves_leave_their_inverse_kinematics(rig):
    """An arm goes limp, the feet stay on their IK: their switches and controls are nobody's business."""
    for bone in rig.pose.bones:
        own = bone.armature_dynamics
        if own.role == "SIMULATED" and not re.search(r"(arm|hand)\.L$", bone.name):
            own.role = "ANIMATED"
    key(rig, "torso", "location", {1: (0, 0, -0.1), 20: (0, -0.1, -0.2)})
    report = simulate(rig, end=20)
    assert report.ok, report.news()
    written = {curve.data_path.split('"')[1] for curve in curves(rig.animation_data.action)}
    assert written == {"torso", "shoulder.L", "upper_arm_fk.L", "forearm_fk.L", "hand_fk.L", "upper_arm_parent.L"}
    ends, _ = evaluated(rig, range(1, 21))
    legs = [i for i, bone in enumerate(rig.data.bones) if re.match(r"DEF-(thigh|shin|foot|toe)", bone.name)]
    bpy.ops.armature_dynamics.restore_source()
    source, _ = evaluated(rig, range(1, 21))
    assert np.array_equal(ends[:, legs], source[:, legs])


@pytest.mark.parametrize("scale", [0.3, 4.0])
def test_a_scaled_turned_and_parented_rig_falls_alike(rig, scale):
    """Rigs are scaled to their scene (field case 21)."""
    empty = bpy.data.objects.new("Above", None)
    bpy.context.collection.objects.link(empty)
    empty.rotation_euler, empty.scale = (0, 0, 0.5), (1.2,) * 3
    rig.parent, rig.scale, rig.rotation_euler, rig.location = empty, (scale,) * 3, (0.3, 0.2, 1.0), (3, -2, 1)
    bpy.context.view_layer.update()
    report = simulate(rig, end=24)
    assert report.ok, report.news()


def test_discard_turns_the_switches_back(rig):
    """An animator who changes her mind has her IK feet again."""
    key(rig, "hand_ik.L", "location", {1: (0, 0, 0), 20: (0, -0.3, 0.2)})
    rig.pose.bones["upper_arm_parent.L"]["IK_FK"] = 0.5
    before = evaluated(rig, [1, 12])
    simulate(rig, end=12)
    assert rig.pose.bones["upper_arm_parent.L"]["IK_FK"] == 1.0
    simulate(rig, end=12)
    bpy.ops.armature_dynamics.discard()
    assert rig.pose.bones["upper_arm_parent.L"]["IK_FK"] == 0.5
    assert max(differences(before, evaluated(rig, [1, 12]))) < 1e-3


def test_a_take_that_is_stopped_leaves_nothing(rig):
    """Esc while the controls are written: no action, no switch, no moved playhead."""
    bpy.context.scene.frame_set(3)
    own = rig.armature_dynamics
    own.frame_start, own.frame_end = 1, 12
    for stop in ("simulate", "bake", "measure"):
        for name, _ in (steps := take.take(rig)):
            if name == stop:
                steps.close()
                break
        assert (own.state, len(bpy.data.actions), bpy.context.scene.frame_current) == (stage.SOURCE, 0, 3)
        assert rig.pose.bones["thigh_parent.L"]["IK_FK"] == 0.0


def test_fewer_keys_and_blends_work_on_controls_too(rig):
    """The same settings of Keys, within the same tolerance; and back to the animation at the end."""
    key(rig, "torso", "location", {1: (0, 0, -0.05), 30: (0, -0.2, -0.1)})
    source = evaluated(rig, [36])
    report = simulate(rig, end=36, key_mode="REDUCED", key_distance=1.0, key_angle=0.1)
    assert report.ok, report.news()
    assert report.keys["written"] < report.keys["every_frame"] / 2
    report = simulate(rig, end=36, key_mode="EVERY", blend_in=5, blend_out=8)
    assert report.ok, report.news()
    shown = [i for i, bone in enumerate(rig.data.bones) if bone.name in _controls(rig)]
    away = np.abs(source[0] - evaluated(rig, [36])[0])[0].max(axis=(1, 2))
    assert {rig.data.bones[i].name: away[i] for i in shown if away[i] > 1e-3} == {}


def test_limbs_that_are_stretched_at_the_start_stay_so(rig):
    """Inverse kinematics pulls limbs long, in Rigify always a little: no foot jumps when the controls take over."""
    rig.pose.bones["torso"].location = (0, 0, 0.15)
    bpy.context.view_layer.update()
    before, _ = _ends(rig, [1])
    report = simulate(rig, end=12)
    assert report.ok, report.news()
    assert np.abs(before - _ends(rig, [1])[0]).max() < 5e-4


def test_what_no_control_carries_is_listed(rig):
    """Rigify's neck bends two bones by one control: the second follows, and it is said."""
    report = simulate(rig, end=3)
    assert [problem.bone for problem in report.warnings if problem.code == "undriven"] == ["DEF-spine.005"]


def test_any_rig_of_copies_is_understood():
    """A rigger's own names, no preset: the controls get the keys."""
    armature = puppet()
    report = simulate(armature, end=12)
    assert report.ok, report.news()
    assert _controls(armature) == {"lower": "lower ctl", "upper": "upper ctl"}
    assert armature.armature_dynamics.root_control == "lower ctl"
    written = {curve.data_path.split('"')[1] for curve in curves(armature.animation_data.action)}
    assert written == {"lower ctl", "upper ctl"}


def test_a_preset_file_describes_a_rig(monkeypatch):
    """What cannot be seen can be written down: the file's word counts before a look."""
    armature = puppet()
    armature.pose.bones["cog"]["free"] = 0
    content = {
        "controls": {re.compile("(lower|upper)"): r"\1 ctl"},
        "root": "lower ctl",
        "switches": {re.compile("cog"): {"free": 1, "missing": 2}},
    }
    monkeypatch.setattr(probe, "control_presets", lambda: [content])
    operators.make_dynamic(armature)
    assert armature.armature_dynamics.root_control == "lower ctl"
    assert control.switches(armature) == {("cog", "free"): 1.0}
    report = finished(take.take(armature))
    assert report.ok, report.news()
    assert armature.pose.bones["cog"]["free"] == 1
    bpy.ops.armature_dynamics.discard()
    assert armature.pose.bones["cog"]["free"] == 0


def test_presets_of_controls_can_be_read():
    """Every file has what is asked of it."""
    for preset in control_presets():
        assert preset["controls"] and isinstance(preset["root"], str) and isinstance(preset["switches"], dict)


def test_settings_of_a_map_survive_saving(rig, tmp_path):
    """The map lives on the bones, like roles."""
    before = _controls(rig)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "rig.blend"))
    assert _controls(bpy.data.objects["rig"]) == before
    assert simulate(bpy.data.objects["rig"], end=5).ok


def test_a_rig_of_its_own_bones_has_no_map(metarig):
    """Nothing changes for rigs whose bones are posed themselves."""
    operators.make_dynamic(metarig)
    assert _controls(metarig) == {} and read_rig(metarig).controls is None
