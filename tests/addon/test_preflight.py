"""Pre-flight: each problem is provoked, listed with the bone's name, mended by its button, and gone."""

import contextlib
import re
from pathlib import Path

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import casting, control, intake, objection, operators, preflight, problem
from armature_dynamics.addon.performance import Performance
from armature_dynamics.addon.problem import NOTE, ConversionError, Problem
from armature_dynamics.addon.remedy import FIXES
from mending import fix, problems
from rigs import chain, grouped, key, make_rig, puppet, simulate
from staging import body, collected, cube
from test_life import snapshot


def test_a_clean_metarig_has_no_problems(person):
    """What always cries wolf is not read; bones that are carried along are taken care of."""
    assert not person.armature_dynamics.problems and problems(person) == {}
    assert {each.severity for each in preflight.look(person)} == {NOTE}


def test_overlaps_of_the_start_pose_are_told_from_those_of_the_rest(person):
    """A hand in the chest passes through it for good; thighs beside the belly are how a body is built."""
    person.pose.bones["upper_arm.L"].rotation_mode = "XYZ"
    bones = set()
    for turn in np.linspace(-2.5, 2.5, 11):  # some way the arm goes through the trunk
        person.pose.bones["upper_arm.L"].rotation_euler = (0, 0, turn)
        bones = set(problems(person).get("overlap", [[]])[0])
        if bones & {"forearm.L", "hand.L"}:
            break
    assert bones & {"forearm.L", "hand.L"}
    found = problems(person)["overlap"]
    assert bpy.ops.armature_dynamics.select_problem(index=found[2]) == {"FINISHED"}
    assert person.mode == "POSE"
    assert {bone.name for bone in bpy.context.selected_pose_bones} == set(found[0])
    person.pose.bones["upper_arm.L"].rotation_euler = (0, 0, 0)
    assert "overlap" not in problems(person)


def test_bones_that_start_in_obstacles_are_told_with_what_they_are_in(person):
    """A hand in a wall leaps out of it or stays stuck: nobody finds out why who is not told which."""
    hand = person.matrix_world @ person.pose.bones["hand.L"].center
    wall = cube(hand, (0.2, 0.2, 0.2), size=1.0)
    wall.name = "Wall"
    body(wall, shape="BOX")
    bones, text, _ = problems(person)["inside"]
    assert "hand.L" in bones and "thigh.R" not in bones
    assert re.match(r"\S+: it starts 0\.\d+ m inside 'Wall'; pose it out of there at the start frame", text)
    told = [each.as_dict() for each in preflight.look(person) if each.code == "inside"]
    assert {each["bone"] for each in told} == set(bones)
    assert all(each in [warning.as_dict() for warning in simulate(person, end=3).warnings] for each in told)
    wall.location.x += 5.0
    assert "inside" not in problems(person)


def test_limits_that_the_start_pose_violates_are_listed_with_how_much(person):
    """A knee bent the wrong way."""
    shin = person.pose.bones["shin.L"]
    shin.rotation_mode = "XYZ"
    for turn in (-0.6, 0.6):
        shin.rotation_euler = (turn, 0, 0)
        if "limit_widened" in problems(person):
            break
    bones, text, index = problems(person)["limit_widened"]
    assert bones == ["shin.L"] and "°" in text
    assert not person.armature_dynamics.problems[index].fix
    shin.rotation_euler = (-turn, 0, 0)
    assert problems(person) == {}


def test_bones_without_a_collider_get_one(person):
    """They fall through the ground."""
    person.pose.bones["hand.L"].armature_dynamics.shape = "NONE"
    assert problems(person)["no_collider"][0] == ["hand.L"]
    fix(person, "no_collider")


def test_bones_that_would_be_skewed_are_told_before(person):
    """A cartoon's long arm is scaled along one axis: the forearm that turns in it was 4 cm off after the simulation."""
    arm, forearm = person.pose.bones["upper_arm.L"], person.data.bones["forearm.L"]
    arm.scale = (1, 1.4, 1)
    forearm.inherit_scale = "AVERAGE"
    assert "uneven_scale" not in problems(person)
    forearm.inherit_scale = "FULL"
    names, text, _ = problems(person)["uneven_scale"]
    assert names[0] == "upper_arm.L" and "(1, 1.4, 1)" in text
    fix(person, "uneven_scale")
    assert tuple(arm.scale) == (1, 1, 1)


def test_controls_that_have_another_name_are_told():
    """A control that was renamed after Make Dynamic was passed over, and its limb stayed as it was."""
    armature = puppet()
    armature.pose.bones["cog"]["free"] = 0
    operators.make_dynamic(armature)
    armature.armature_dynamics.switches = control.lines({("cog", "free"): 1.0})
    gone = {"control_gone", "root_gone", "switch_gone"}
    assert not gone & set(problems(armature))
    armature.data.bones["lower ctl"].name = "new"
    armature.data.bones["cog"].name = "middle"
    found = problems(armature)
    assert found["control_gone"][0] == ["lower"] and "'lower ctl' is gone" in found["control_gone"][1]
    assert "'lower ctl' is gone" in found["root_gone"][1]
    assert "bone 'cog' has no switch 'free'" in found["switch_gone"][1]
    armature.pose.bones["lower"].armature_dynamics.control = armature.armature_dynamics.root_control = "new"
    assert gone & set(problems(armature)) == {"switch_gone"}
    del armature.pose.bones["middle"]["free"]
    armature.data.bones["middle"].name = "cog"
    assert gone & set(problems(armature)) == {"switch_gone"}
    assert "switch_gone" in [each.code for each in simulate(armature, end=3).warnings]


@pytest.mark.parametrize(("bone", "code"), [("bone2", "scale_held"), ("bone0", "scale_carries")])
def test_scales_that_change_are_told_before(bone, code):
    """Bodies do not grow: the scale was lost without a word, or the rig was 1 m from where it should be."""
    armature = chain(5, height=1.0)
    operators.make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    armature.armature_dynamics.frame_end = 40
    for frames in ({1: (1, 1, 1), 40: (1, 1, 1)}, {40: (1, 1, 1), 60: (2, 2, 2)}):
        key(armature, bone, "scale", frames)
        assert not {"scale_held", "scale_carries"} & set(problems(armature)), "nothing changes while physics plays"
    key(armature, bone, "scale", {20: (1, 1.5, 1)})
    found = problems(armature)
    assert found[code][0] == [bone] and "remove the animation of its scale" in found[code][1]
    assert not {"scale_held", "scale_carries"} - {code} & set(found)
    group = grouped(armature)
    group.mute = True
    assert code not in problems(armature), "what is muted changes nothing"
    group.mute = False
    assert code in [each.code for each in simulate(armature, end=40).warnings]


def test_driven_and_layered_scales_are_told_before():
    """What changes a scale besides the action."""
    armature = chain(3, height=1.0)
    operators.make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    key(armature, "bone1", "scale", {1: (1, 1, 1), 40: (2, 2, 2)})
    strip = armature.animation_data.nla_tracks.new().strips.new("Growth", 101, armature.animation_data.action)
    armature.animation_data.action = None
    armature.armature_dynamics.frame_start, armature.armature_dynamics.frame_end = 101, 140
    assert problems(armature)["scale_held"][0] == ["bone1"]
    strip.mute = True
    assert "scale_held" not in problems(armature)
    armature.pose.bones["bone0"].driver_add("scale", 1)
    assert problems(armature)["scale_carries"][0] == ["bone0"]


def test_parts_that_nothing_joins_are_connected():
    """A rig of several roots falls to pieces; what a connection holds does not."""
    armature = make_rig(
        [
            ("body", (0, 0, 2), (0.5, 0, 2), None, False), ("limb", (0.5, 0, 2), (1, 0, 2), "body", True),
            ("hat", (0, 0, 2.2), (0, 0, 2.5), None, False), ("tassel", (0, 0, 2.5), (0, 0, 2.6), "hat", True),
            ("bag", (0, 0, 1.9), (0, 0, 1.6), None, False),
        ]
    )  # fmt: skip
    operators.make_dynamic(armature)
    armature.pose.bones["tassel"].armature_dynamics.role = "IGNORED"
    assert problems(armature)["loose"][0] == ["hat", "bag"] or problems(armature)["loose"][0] == ["bag", "hat"]
    fix(armature, "loose")
    assert len(armature.armature_dynamics.connections) == 2
    assert simulate(armature).ok
    armature.armature_dynamics.connections[0].enabled = False
    bpy.ops.armature_dynamics.discard()
    assert len(problems(armature)["loose"][0]) == 1


def test_nothing_to_land_on_is_said(person):
    """A character that falls out of sight was meant to land."""
    person.armature_dynamics.use_ground = False
    fix(person, "nothing_below")
    assert person.armature_dynamics.use_ground
    person.armature_dynamics.use_ground = False
    person.armature_dynamics.scenery = collected(cube((0, 0, -1)))
    assert problems(person) == {}
    person.armature_dynamics.scenery = None
    bpy.context.scene.use_gravity = False
    assert problems(person) == {}


def test_a_ground_above_the_feet_is_lowered(person):
    """The character would start in it."""
    person.location.z = -1.5
    fix(person, "ground_lowered")
    assert person.armature_dynamics.ground_height == pytest.approx(-1.5, abs=0.05)


def test_scenery_that_is_excluded_is_shown(person):
    """What the view layer does not evaluate cannot be landed on."""
    stairs = bpy.data.collections.new("Stairs")
    bpy.context.scene.collection.children.link(stairs)
    thing = cube(location=(5, 0, 0))
    bpy.context.collection.objects.unlink(thing)
    stairs.objects.link(thing)
    person.armature_dynamics.scenery = stairs
    assert problems(person) == {}
    bpy.context.view_layer.layer_collection.children["Stairs"].exclude = True
    assert "'Cube'" in problems(person)["scenery_ignored"][1]
    fix(person, "scenery_ignored")
    assert thing.name in bpy.context.view_layer.objects


def test_rigid_bodies_that_blender_moves_are_made_animated(person):
    """They are ignored otherwise."""
    body(cube(location=(5, 0, 0)), "ACTIVE")
    fix(person, "scenery_ignored")


def test_an_empty_range_becomes_the_actions(person):
    """Reversed ranges crash elsewhere (field case 7)."""
    key(person, "thigh.L", "rotation_quaternion", {3: (1, 0, 0, 0), 30: (1, 0, 0, 0)})
    person.armature_dynamics.frame_start, person.armature_dynamics.frame_end = 20, 10
    with pytest.raises(RuntimeError, match="not a range"):
        bpy.ops.armature_dynamics.simulate()
    assert [item.code for item in person.armature_dynamics.problems] == ["frame_range"], "shown where it can be mended"
    fix(person, "frame_range")
    assert (person.armature_dynamics.frame_start, person.armature_dynamics.frame_end) == (3, 30)


@pytest.mark.parametrize("ends", [(1048570, 1048575), (-1048575, -1048570)])
def test_frames_that_blender_does_not_have_are_refused(ends):
    """It stays at its last one, and the bones of all others would seem not to be where they were simulated."""
    armature = chain(2)
    operators.make_dynamic(armature)
    armature.armature_dynamics.frame_start, armature.armature_dynamics.frame_end = ends
    with pytest.raises(RuntimeError, match="leave Blender's, which end at 1048574"):
        bpy.ops.armature_dynamics.simulate()
    fix(armature, "frame_range")
    assert (armature.armature_dynamics.frame_start, armature.armature_dynamics.frame_end) == casting.DEFAULT_RANGE


def test_time_that_is_stretched_is_not(person):
    """Keys would play at other frames than those they are made of: what came out was a decimetre off."""
    render = bpy.context.scene.render
    render.frame_map_old, render.frame_map_new = 100, 200
    with pytest.raises(RuntimeError, match="stretched from 100 to 200"):
        bpy.ops.armature_dynamics.simulate()
    with pytest.raises(ValueError, match="Time Stretching"):
        Performance(person, 1)
    fix(person, "time_stretched")
    assert render.frame_map_old == render.frame_map_new == 100


def test_what_keeps_an_armature_from_being_simulated_is_mended(person):
    """Every refusal with one obvious way out has a button."""
    person.data.pose_position = "REST"
    fix(person, "rest_position")
    for bone in person.pose.bones:
        bone.armature_dynamics.role = "IGNORED"
    fix(person, "all_ignored")
    person.pose.bones["hand.L"].scale = (-1, 1, 1)
    assert problems(person)["pose"][0][0] == "hand.L"
    fix(person, "pose")
    person.animation_data_create().nla_tracks.new()
    person.animation_data.action_blend_type = "ADD"
    fix(person, "blending")
    away = bpy.data.collections.new("Away")
    bpy.context.scene.collection.children.link(away)
    bpy.context.scene.collection.objects.unlink(person)
    away.objects.link(person)
    away.hide_viewport = True
    found = preflight.look(person)
    assert [each.code for each in found] == ["hidden"]
    FIXES[found[0].fix].apply(person, [], list(found[0].things))
    assert problems(person) == {}


def test_looking_changes_nothing():
    """Not even a pose that has no keys yet, nor what plays, nor where somebody just put another thing."""
    other, armature = cube(location=(5, 0, 0)), chain(3, height=1.0)
    other.keyframe_insert("location", frame=1)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    bpy.ops.armature_dynamics.make_dynamic()
    bpy.context.scene.frame_set(4)
    armature.pose.bones["bone1"].rotation_quaternion = (0, 1, 0, 0)
    armature.pose.bones["bone2"].rotation_quaternion = (0, 0, 1, 0)
    other.location.x = 7.0
    before = snapshot(armature)
    preflight.look(armature)
    assert snapshot(armature) == before and other.location.x == 7.0
    simulate(armature, mute_constraints=True)
    bpy.context.scene.frame_set(9)
    before = snapshot(armature)
    preflight.look(armature)
    assert snapshot(armature) == before


def test_simulate_says_what_preflight_says(person):
    """One source: what is listed before is what the report has after."""
    person.pose.bones["forearm.L"].driver_add("rotation_quaternion", 1)
    person.pose.bones["hand.L"].lock_rotation = (True, True, True)
    person.pose.bones["hand.R"].armature_dynamics.shape = "NONE"
    person.armature_dynamics.use_ground = False
    before = [each.as_dict() for each in preflight.look(person)]
    after = [each.as_dict() for each in simulate(person, end=5).warnings]
    assert len({each["code"] for each in before}) >= 5
    assert all(each in after for each in before)


@pytest.mark.parametrize("what", ["blends", "directed", "directed later", "force field", "nobody moves", "partner"])
def test_what_simulate_refuses_preflight_refuses(what):
    """Not a button that says all is well, and one beside it that says no."""
    armature, shared = chain(3, height=1.0), bpy.context.scene.armature_dynamics
    operators.make_dynamic(armature)
    bone = armature.pose.bones["bone1"]
    if what == "blends":
        armature.armature_dynamics.blend_in, armature.armature_dynamics.frame_end = 100, 13
    elif what == "nobody moves":
        for each in armature.pose.bones:
            each.armature_dynamics.role = "ANIMATED"
    elif what == "partner":
        partner = chain(2, "Partner", height=2.0)
        operators.make_dynamic(partner)
        armature.armature_dynamics.meets = partner.armature_dynamics.meets = True
        assert problems(armature) == {}
        partner.data.pose_position = "REST"
    elif what == "force field":
        bpy.ops.object.effector_add(type="WIND")
        assert problems(armature) == {}
        shared.adaptive = "JOINTS"
    else:
        bone.armature_dynamics_follow = 2.0 if what == "directed" else 0.0
        bone.keyframe_insert("armature_dynamics_follow", frame=1)
        bone.armature_dynamics_follow = 2.0
        bone.keyframe_insert("armature_dynamics_follow", frame=10)
        assert problems(armature) == {}
        shared.adaptive = "JOINTS"
    (listed,) = preflight.look(armature)
    with pytest.raises(ConversionError) as error:
        simulate(armature)
    assert listed.severity == "ERROR" and listed == error.value.problem


@pytest.mark.parametrize(("name", "bones"), [("CesiumMan.glb", {"leg_joint_L_1"}), ("Fox.glb", set())])
def test_characters_of_others(shared_file, name, bones):
    """Real files have real problems, few, and each says which bone it is."""
    intake.open_input(shared_file(name))
    armature = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    bpy.context.view_layer.objects.active = armature
    bpy.ops.armature_dynamics.make_dynamic()
    found = problems(armature)
    assert set(found) <= {"limit_widened", "ground_lowered", "overlap"}
    assert bones <= {bone for own, _, _ in found.values() for bone in own}
    fix(armature, "ground_lowered")


@pytest.mark.slow
def test_a_generated_rigify_rig_has_no_problems(generated_rig):
    """Its deform bones are driven by constraints, locked and in pieces: none of that is in the way of its controls."""
    bpy.context.view_layer.objects.active = generated_rig
    bpy.ops.armature_dynamics.make_dynamic()
    assert problems(generated_rig) == {}


@pytest.mark.slow
def test_deform_bones_without_a_control_are_mended_by_buttons(generated_rig):
    """Whoever empties the map has bones that are driven by constraints and locked: their buttons mend it."""
    bpy.context.view_layer.objects.active = generated_rig
    bpy.ops.armature_dynamics.make_dynamic()
    control.write(generated_rig, {}, "", {})
    assert "DEF-thigh.L" in problems(generated_rig)["constraint"][0]
    before = _switches(generated_rig)
    for code in list(problems(generated_rig)):
        fix(generated_rig, code)
    assert problems(generated_rig) == {}
    report = simulate(generated_rig, end=20)
    assert _switches(generated_rig) != before
    assert report.ok, report.news()
    bpy.ops.armature_dynamics.discard()
    assert _switches(generated_rig) == before


def _switches(armature):
    """Each bone's muted constraints and locks."""
    return {
        bone.name: ([own.name for own in bone.constraints if own.mute], *bone.lock_rotation, *bone.lock_location)
        for bone in armature.pose.bones
    }


def test_undo_takes_a_fix_back():
    """A button that cannot be taken back is not pressed."""
    armature = chain(3, height=1.0)
    bpy.ops.armature_dynamics.make_dynamic()
    armature.pose.bones["bone1"].lock_rotation = (True, True, True)
    name = armature.name
    windows = bpy.context.window_manager.windows
    bpy.ops.ed.undo_push(message="before")
    with bpy.context.temp_override(window=windows[0]) if windows else contextlib.nullcontext():
        bpy.ops.armature_dynamics.check()
        bpy.ops.armature_dynamics.fix("EXEC_DEFAULT", True, index=0)
        assert not any(bpy.data.objects[name].pose.bones["bone1"].lock_rotation)
        if windows:
            print("undone")
            bpy.ops.ed.undo()
            assert all(bpy.data.objects[name].pose.bones["bone1"].lock_rotation)


def test_many_bones_with_one_problem_are_one_line():
    """A panel of thirty lines about constraints is read by nobody."""
    found = [Problem("limit", (f"b{i}",), f"off by {i}°", amount=f"{i}°") for i in range(9)]
    found += [Problem("note", (), "all is well", severity=NOTE), Problem("bad", (), "stops", severity=problem.ERROR)]
    (first, line), (second, longer) = problem.gathered(found)
    assert (first.code, line) == ("bad", "stops")
    assert second.bones == tuple(f"b{i}" for i in range(9))
    assert longer.startswith("b0: off by 0°. Also b1 (1°), b2 (2°)") and longer.endswith("and 2 more")


def test_every_fix_that_is_named_exists():
    """A problem whose button does nothing."""
    texts = [path.read_text(encoding="utf-8") for path in Path(objection.__file__).parent.glob("*.py")]
    named = {name for text in texts for name in re.findall(r'fix="(\w+)"', text)}
    assert named <= set(FIXES)
