"""Presets of motion and quality, by Blender's own menus: those that come along, and those that people save."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import compat
from conftest import ROOT
from rigs import chain, simulate

FOLDER = ROOT / "presets" / "armature_dynamics"
MOTIONS = sorted(path.stem for path in (FOLDER / "motion").glob("*.py"))
QUALITIES = sorted(path.stem for path in (FOLDER / "quality").glob("*.py"))


def use(kind, name):
    """What a click on a preset's name does."""
    path = bpy.utils.preset_find(name, f"armature_dynamics/{kind}")
    assert path, name
    menu = f"ARMATURE_DYNAMICS_PT_{kind}_presets"
    assert bpy.ops.script.execute_preset(filepath=path, menu_idname=menu) == {"FINISHED"}


def simulated(armature):
    """The bones below the topmost one."""
    return [bone for bone in armature.pose.bones if bone.armature_dynamics.role == "SIMULATED" and bone.parent]


def follows(armature):
    return [round(bone.armature_dynamics_follow, 3) for bone in armature.pose.bones]


@pytest.fixture
def armature():
    armature = chain(4, height=1.5)
    bpy.ops.armature_dynamics.make_dynamic()
    return armature


def test_the_presets_that_come_along_are_found():
    """Those that the manual names."""
    assert MOTIONS == ["cloth-like", "drunk", "limp", "rigid", "secondary", "tense"]
    assert QUALITIES == ["preview", "production", "production_with_few_keys"]
    for kind, names in (("motion", MOTIONS), ("quality", QUALITIES)):
        for name in names:
            assert bpy.utils.preset_find(name, f"armature_dynamics/{kind}")


@pytest.mark.parametrize("name", MOTIONS)
def test_every_motion_makes_a_sound_simulation(person, name):
    """A preset is worth what it moves like on a person."""
    use("motion", name)
    report = simulate(person, end=20)
    assert report.ok, report.news()


def test_motions_differ_as_they_are_called(person):
    """What is rigid keeps its pose as it falls, what is limp does not."""
    bent = {}
    for name in MOTIONS:
        use("motion", name)
        simulate(person, end=30)
        bpy.context.scene.frame_set(30)
        turns = [2 * np.arccos(min(abs(bone.matrix_basis.to_quaternion().w), 1.0)) for bone in simulated(person)]
        bent[name] = np.degrees(np.max(turns))
        bpy.ops.armature_dynamics.discard()
    assert bent["rigid"] < 10 < bent["tense"] < bent["limp"]


def test_roots_are_held_up_apart(armature):
    """Only the topmost bone holds a body up: what is rigid falls all the same."""
    use("motion", "rigid")
    assert follows(armature) == [0.0, 12.0, 12.0, 12.0]
    use("motion", "drunk")
    assert follows(armature) == [2.5, 1.2, 1.2, 1.2]


def test_in_pose_mode_the_selected_bones_are_meant(armature):
    """One limp arm on a tense character."""
    use("motion", "tense")
    damping = armature.armature_dynamics.damping
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    armature.data.bones.active = armature.data.bones["bone2"]
    compat.select_bone(armature.pose.bones["bone2"], True)
    use("motion", "limp")
    assert follows(armature) == [0.0, 3.0, 0.0, 3.0]
    assert armature.armature_dynamics.damping == damping


def test_a_motion_is_saved_used_and_removed(armature, own_folder):
    """What an animator found out about one rig, on the next one."""
    for bone, value in zip(armature.pose.bones, (1.0, 5.5, 5.5, 5.5)):
        bone.armature_dynamics_follow, bone.armature_dynamics_follow_ratio = value, 0.4
    armature.armature_dynamics.damping = 0.25
    assert bpy.ops.armature_dynamics.motion_preset_add(name="Old Man") == {"FINISHED"}
    saved = own_folder / "presets" / "armature_dynamics" / "motion" / "Old_Man.py"
    assert "motion.follow = 5.5" in saved.read_text()
    use("motion", "limp")
    use("motion", "Old_Man")
    assert follows(armature) == [1.0, 5.5, 5.5, 5.5]
    assert armature.pose.bones["bone2"].armature_dynamics_follow_ratio == pytest.approx(0.4)
    assert armature.armature_dynamics.damping == 0.25
    other = chain(2, "Other")
    bpy.ops.armature_dynamics.make_dynamic()
    use("motion", "Old_Man")
    assert follows(other) == [1.0, 5.5]
    assert bpy.ops.armature_dynamics.motion_preset_add(name="Old Man", remove_name=True) == {"FINISHED"}
    assert not saved.exists()


def test_a_quality_is_saved_and_used(armature, own_folder):
    """The studio's own idea of a preview."""
    own, shared = armature.armature_dynamics, bpy.context.scene.armature_dynamics
    own.substeps, own.key_mode, own.key_step, shared.adaptive, shared.joints = 3, "STEP", 4, "JOINTS", 12
    assert bpy.ops.armature_dynamics.quality_preset_add(name="Quick") == {"FINISHED"}
    use("quality", "production")
    assert (own.substeps, own.key_mode, shared.adaptive) == (0, "EVERY", "OFF")
    use("quality", "Quick")
    assert (own.substeps, own.key_mode, own.key_step, shared.adaptive, shared.joints) == (3, "STEP", 4, "JOINTS", 12)


def test_presets_need_a_dynamic_armature():
    """Elsewhere there is nothing to save."""
    assert not bpy.ops.armature_dynamics.motion_preset_add.poll()
    assert not bpy.ops.armature_dynamics.quality_preset_add.poll()
