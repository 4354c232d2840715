"""Additive following: secondary motion on top of an animation, on rigs as Blender evaluates them."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import directing, intake, operators, setup
from armature_dynamics.addon.fcurve import bone_path
from rigs import chain, curves, key, simulate, values
from test_directing import apart, ends, key_setting, simulated

FPS = 24.0


def swung(count=2, stop=13, end=60, turn=-1.5):
    """A row of bones, the first of which is turned evenly, then held still; the others are additive."""
    armature = chain(count)
    armature.pose.bones["bone0"].rotation_mode = "XYZ"
    key(armature, "bone0", "rotation_euler", {1: (0, 0, 0), stop: (0, 0, turn), end: (0, 0, turn)})
    for curve in curves(armature.animation_data.action):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    operators.make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    return armature


def add(armature, frequency, ratio=0.3, amount=1.0):
    for name in simulated(armature):
        bone = armature.pose.bones[name]
        bone.armature_dynamics_follow, bone.armature_dynamics_follow_ratio = frequency, ratio
        bone.armature_dynamics_additive, bone.armature_dynamics_amount = True, amount


@pytest.mark.parametrize("whole", [False, True])
def test_amount_0_is_the_animation_itself(whole):
    """Nothing is added: to Blender's rounding, also where a whole character is meant."""
    armature = swung(4)
    if whole:
        armature.pose.bones["bone0"].armature_dynamics.role = "SIMULATED"
    add(armature, 1.0, amount=0.0)
    before = ends(armature, range(1, 61))
    assert simulate(armature, end=60, use_ground=False).ok
    assert apart(before, ends(armature, range(1, 61))).max() < 2e-6


@pytest.mark.parametrize("frequency", [0.05, 1.0, 6.0])
def test_a_still_pose_does_not_sag(frequency):
    """A row held out level, in full gravity: within 0.1 mm for five seconds, however soft."""
    armature = chain(5)
    operators.make_dynamic(armature)
    add(armature, frequency)
    before = ends(armature, [1])
    assert simulate(armature, end=120, use_ground=False).ok
    assert apart(before, ends(armature, range(1, 121, 7))).max() < 1e-4


@pytest.mark.parametrize("amount", [0.5, 1.0, 1.5])
def test_what_stops_swings_on_as_it_is_set(amount):
    """A bone behind one that stops goes on by e = amount · c / ω' exp(-ζωt) sin ω't, c being the turn about its
    joint that the stop leaves it; in gravity, and whatever its armature's damping is."""
    frequency, ratio = 1.5, 0.2
    armature = swung(turn=-0.6)
    add(armature, frequency, ratio, amount)
    before = ends(armature, range(1, 61))
    assert simulate(armature, end=60, use_ground=False, damping=0.5).ok
    after = ends(armature, range(1, 61))
    along, seen = (bones[:, 0, 1] - bones[:, 0, 0] for bones in (before, after))
    away = np.arctan2(np.cross(along, seen)[:, 2], (along * seen).sum(axis=1))
    omega, time = 2 * np.pi * frequency, (np.arange(60) - 12) / FPS
    swing = omega * np.sqrt(1 - ratio**2)
    shape = np.where(time > 0, np.exp(-ratio * omega * time) * np.sin(swing * time), 0.0)
    late = time > 2 / FPS
    size = (away[late] @ shape[late]) / (shape[late] @ shape[late])
    # all turn at 1.2 rad/s, and the bone's head is as far from the axis as it is long: the turn that a rod keeps about
    # its head is 1 + l · l/2 / (l²/3) times as fast
    assert abs(size) == pytest.approx(amount * 1.2 * 2.5 / swing, rel=0.1)
    assert np.abs(away[late] - size * shape[late]).max() < 0.05 * abs(size)


def test_amount_can_be_keyed():
    """None while a character walks in, all of it when it stops."""
    armature = swung(3, stop=25, end=60, turn=-3.0)
    add(armature, 1.5)
    key_setting(armature, simulated(armature), "amount", {1: 0.0, 21: 1.0})
    before = ends(armature, range(1, 61))
    assert simulate(armature, end=60, use_ground=False).ok
    away = apart(before, ends(armature, range(1, 61)))
    assert away[:20].max() < 0.005
    assert away[24:].max() > 0.1
    assert away[-1] < 0.3 * away.max()


def test_a_bone_that_holds_its_animation_has_nothing_added():
    """Animated is stronger than additive, until its key lets go."""
    armature = swung(3)
    add(armature, 1.0)
    key_setting(armature, simulated(armature), "hold", {1: True, 30: False})
    before = ends(armature, range(1, 61))
    assert simulate(armature, end=60, use_ground=False).ok
    assert apart(before, ends(armature, range(1, 61)))[:28].max() < 0.003


def test_a_secondary_motion_is_one_click():
    """The preset for chains is additive; the preset of motion, too, and others take it back."""
    armature = swung(4)
    armature.data.bones.active = armature.data.bones["bone1"]
    assert bpy.ops.armature_dynamics.sway(kind="secondary") == {"FINISHED"}
    added = [armature.pose.bones[f"bone{i}"].armature_dynamics_additive for i in range(4)]
    assert added == [False, True, True, True]
    bpy.ops.object.mode_set(mode="OBJECT")
    for name, expected in (("secondary", True), ("limp", False)):
        path = bpy.utils.preset_find(name, "armature_dynamics/motion")
        bpy.ops.script.execute_preset(filepath=path, menu_idname="ARMATURE_DYNAMICS_PT_motion_presets")
        assert armature.pose.bones["bone2"].armature_dynamics_additive is expected


def test_a_preset_of_before_is_not_additive(tmp_path):
    """Files that people saved do not know the setting: what was chosen last must not stay in them."""
    armature = swung(3)
    names = ("root", "follow", "ratio", "world", "weight", "damping")
    old = tmp_path / "old.py"
    old.write_text(
        "import bpy\nmotion = bpy.context.window_manager.armature_dynamics_motion\n"
        + "".join(f"motion.{name} = {'False' if name == 'world' else 1.0}\n" for name in names)
    )
    for path in (bpy.utils.preset_find("secondary", "armature_dynamics/motion"), str(old)):
        bpy.ops.script.execute_preset(filepath=path, menu_idname="ARMATURE_DYNAMICS_PT_motion_presets")
    assert not armature.pose.bones["bone1"].armature_dynamics_additive


def test_a_cycle_with_secondary_motion_is_a_loop():
    """A walk's tail swings in when it was simulated a few times over, and then its ends meet."""
    armature = chain(3)
    armature.pose.bones["bone0"].rotation_mode = "XYZ"
    turns = {1: 0.0, 7: 0.4, 13: 0.0, 19: -0.4, 25: 0.0}
    key(armature, "bone0", "rotation_euler", {frame: (0, 0, turn) for frame, turn in turns.items()})
    operators.make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    add(armature, 2.0)
    report = simulate(armature, end=25, use_ground=False, loop_most=12)
    assert report.ok and 1 < report.loop["cycles"] < 12
    assert report.loop["gap_deg"] < 0.5


def test_settings_travel(tmp_path):
    """JSON, copying and keys know them."""
    armature = swung(4)
    add(armature, 2.0, amount=0.25)
    setup.write_file(armature, tmp_path / "setup.json")
    add(armature, 1.0, amount=1.0)
    setup.apply(armature, setup.read_file(tmp_path / "setup.json"))
    assert armature.pose.bones["bone3"].armature_dynamics_amount == 0.25
    armature.pose.bones["bone1"].armature_dynamics_amount = 1.5
    armature.data.bones.active = armature.data.bones["bone1"]
    assert bpy.ops.armature_dynamics.direct(where="ALL") == {"FINISHED"}
    assert armature.pose.bones["bone3"].armature_dynamics_amount == 1.5
    bpy.context.scene.frame_set(5)
    assert bpy.ops.armature_dynamics.key_directing(where="ALL", setting=directing.AMOUNT) == {"FINISHED"}
    path = bone_path("bone3", directing.AMOUNT)
    np.testing.assert_array_equal(values(armature.animation_data.action, path), [[5.0, 1.5]])


@pytest.mark.parametrize(("name", "part", "kind"), [("Fox.glb", "Tail", "tail"), ("CesiumMan.glb", "arm_joint", "arm")])
def test_a_real_character_gets_secondary_motion(name, part, kind, shared_file):
    """A fox's tail and a walker's arms: all else is bit by bit as animated, the chosen bones trail within reach."""
    intake.open_input(shared_file(name))
    armature = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    operators.make_dynamic(armature)
    for bone in armature.pose.bones:
        if part not in bone.name and bone.armature_dynamics.role == "SIMULATED":
            bone.armature_dynamics.role = "ANIMATED"
    add(armature, 2.0, 0.4)
    first, last = armature.armature_dynamics.frame_start, armature.armature_dynamics.frame_end
    frames = range(first, last + 1)
    others = [
        bone.name for bone in armature.pose.bones if bone.name not in simulated(armature) and part not in bone.name
    ]

    def stood():
        found = []
        for frame in frames:
            bpy.context.scene.frame_set(frame)
            evaluated = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
            found.append([np.array(evaluated.pose.bones[bone].matrix) for bone in others])
        return np.array(found)

    before, still = ends(armature, frames), stood()
    report = simulate(armature, start=first, end=last)
    assert report.ok, report.news()
    np.testing.assert_array_equal(stood(), still)
    away, size = apart(before, ends(armature, frames)), np.ptp(before.reshape(-1, 3), axis=0).max()
    assert 0.01 * size < away.max() < 0.4 * size
