"""Pre-flight: each problem is provoked, listed with the bone's name, mended by its button, and gone."""

import contextlib
import re
from pathlib import Path

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import intake, objection, operators, preflight, problem, rival, take
from armature_dynamics.addon.problem import NOTE, Problem
from armature_dynamics.addon.remedy import FIXES
from rigs import chain, key, make_rig, simulate, world_heads
from staging import body, collected, cube
from test_life import snapshot


def problems(armature):
    """What the panel lists after Check: {code: (names of bones, text, index)}."""
    bpy.context.view_layer.objects.active = armature
    bpy.context.view_layer.update()
    assert bpy.ops.armature_dynamics.check() == {"FINISHED"}
    listed = armature.armature_dynamics.problems
    return {item.code: (item.bones.split(), item.text, index) for index, item in enumerate(listed)}


def fix(armature, code):
    """Presses the button of a problem, which must then be gone."""
    index = problems(armature)[code][2]
    assert bpy.ops.armature_dynamics.fix(index=index) == {"FINISHED"}
    assert code not in [item.code for item in armature.armature_dynamics.problems], "the list must be new"
    assert code not in problems(armature)


def edit(armature, change):
    """Changes edit bones."""
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    change(armature.data.edit_bones)
    bpy.ops.object.mode_set(mode="OBJECT")


@pytest.fixture
def person(metarig):
    """Rigify's metarig, made dynamic."""
    bpy.ops.armature_dynamics.make_dynamic()
    return metarig


def test_a_clean_metarig_has_no_problems(person):
    """What always cries wolf is not read; bones that are carried along are taken care of."""
    assert not person.armature_dynamics.problems and problems(person) == {}
    assert {each.severity for each in preflight.look(person)} == {NOTE}


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_a_scale_that_works_is_no_problem(person, scale):
    """Mixamo's 0.01 is simulated in world metres as it is (field case 21)."""
    person.scale = (scale,) * 3
    assert problems(person) == {}


@pytest.mark.parametrize("parented", [False, True])
@pytest.mark.parametrize("scale", [(1, 1, 2), (-1, 1, 1), (0.5, -1.5, 0.5)])
def test_a_bad_scale_is_applied_and_all_stays_in_place(metarig, scale, parented):
    """The one thing that keeps a rig from Make Dynamic is mended where it is refused; nothing jumps."""
    thing = metarig
    metarig.rotation_euler, metarig.location = (0.1, 0.2, 0.5), (1, 2, 0.5)
    if parented:
        thing = metarig.parent = bpy.data.objects.new("Above", None)
        bpy.context.collection.objects.link(thing)
        thing.rotation_euler = (0.3, 0, 0.2)
    thing.scale = scale
    mug = cube(size=0.1)
    skin = cube(size=0.3)
    mug.parent, mug.parent_type, mug.parent_bone = metarig, "BONE", "hand.L"
    skin.parent = metarig
    bpy.context.view_layer.objects.active = metarig
    bpy.context.view_layer.update()
    heads, places = world_heads(metarig), [np.array(each.matrix_world) for each in (mug, skin)]
    with pytest.raises(RuntimeError, match="its scale"):
        bpy.ops.armature_dynamics.make_dynamic()
    assert [item.code for item in metarig.armature_dynamics.problems] == ["scale"], "shown before it is dynamic"
    fix(metarig, "scale")
    after = world_heads(metarig)
    assert all(np.allclose(after[name], head, atol=1e-5) for name, head in heads.items())
    assert np.allclose(np.linalg.norm(np.array(metarig.matrix_world)[:3, :3], axis=0), 1.0, atol=1e-5)
    for each, place in zip((mug, skin), places):
        assert np.allclose(each.matrix_world, place, atol=1e-5), each.name
    assert bpy.ops.armature_dynamics.make_dynamic() == {"FINISHED"}


def test_a_zero_scale_becomes_one(person):
    """Nothing can be applied of it."""
    person.scale = (1, 0, 1)
    fix(person, "scale")
    assert tuple(person.scale) == (1, 1, 1)


def test_an_animated_scale_is_not_applied(person):
    """Its keys would set it again on the next frame."""
    person.scale = (1, 1, 2)
    person.keyframe_insert("scale", frame=1)
    index = problems(person)["scale"][2]
    with pytest.raises(RuntimeError, match="'metarig': its scale is animated"):
        bpy.ops.armature_dynamics.fix(index=index)


def test_rolls_of_symmetric_bones_are_mirrored(person):
    """A pose pasted flipped, or settings mirrored, come out wrong on bones that are rolled differently."""
    roll = person.data.bones["forearm.R"].matrix_local.copy()

    def turn(bones):
        bones["forearm.R"].roll += 0.5

    edit(person, turn)
    person.pose.bones["forearm.R"].rotation_quaternion = (0.9, 0.1, 0.3, 0.3)
    bpy.context.view_layer.update()
    pose = world_heads(person)
    bones, text, _ = problems(person)["roll"]
    assert bones == ["forearm.R", "forearm.L"] and "28.6°" in text
    fix(person, "roll")
    assert np.allclose(person.data.bones["forearm.R"].matrix_local, roll, atol=1e-5)
    assert all(np.allclose(head, pose[name], atol=1e-5) for name, head in world_heads(person).items())


def test_a_roll_is_not_mirrored_under_keys(person):
    """Keys turn with the bone's own axes."""
    edit(person, lambda bones: setattr(bones["forearm.R"], "roll", 0.5))
    key(person, "forearm.R", "rotation_quaternion", {1: (1, 0, 0, 0)})
    with pytest.raises(RuntimeError, match=r"'forearm.R' has keys"):
        bpy.ops.armature_dynamics.fix(index=problems(person)["roll"][2])


def test_bones_of_next_to_no_length_are_ignored():
    """A splinter of a bone whirls about (field case 23)."""
    armature = chain(3)
    edit(armature, lambda bones: setattr(bones["bone2"], "tail", (0.601, 0, 2)))
    operators.make_dynamic(armature)
    assert "zero_length" not in problems(armature), "by default it is carried along"
    armature.pose.bones["bone2"].armature_dynamics.role = "SIMULATED"
    assert problems(armature)["zero_length"][0] == ["bone2"]
    fix(armature, "zero_length")
    assert armature.pose.bones["bone2"].armature_dynamics.role == "IGNORED"


def test_locked_channels_that_the_result_needs_are_unlocked_until_the_source_is_back(person):
    """A rigger's locks are for hands, and hands cannot correct the result; a hinge needs its own axis only."""
    knee, hip, root = (person.pose.bones[name] for name in ("shin.L", "thigh.L", "spine"))
    knee.lock_rotation = (False, True, True)
    hip.lock_location = (True, True, True)
    assert problems(person) == {}
    hip.lock_rotation, root.lock_location = (False, True, True), (True, False, True)
    bones, text, _ = problems(person)["locked"]
    assert bones == ["spine", "thigh.L"] and "location xz" in text
    fix(person, "locked")
    assert not any(hip.lock_rotation) and not any(root.lock_location) and all(hip.lock_location)
    simulate(person)
    bpy.ops.armature_dynamics.discard()
    assert tuple(hip.lock_rotation) == (False, True, True) and tuple(root.lock_location) == (True, False, True)


@pytest.mark.parametrize("holder", ["foot.L", "toe.L"])
def test_constraints_are_reported_before_and_muted_while_it_plays(person, holder):
    """IK fights the baked keys (field case 13), also from a bone that is not simulated itself."""
    target = bpy.data.objects.new("Target", None)
    bpy.context.collection.objects.link(target)
    target.location = person.data.bones["foot.L"].tail_local + person.data.bones["foot.L"].vector
    constraint = person.pose.bones[holder].constraints.new("IK")
    constraint.target, constraint.chain_count = target, 3
    bones, text, _ = problems(person)["constraint"]
    assert {"foot.L", "shin.L"} <= set(bones) and "'IK'" in text and "Mute Constraints" in text
    fix(person, "constraint")
    assert not constraint.mute, "the source needs it"
    for _ in range(2):
        report = simulate(person, end=20)
        assert report.ok and constraint.mute
    bpy.ops.armature_dynamics.keep()
    bpy.ops.armature_dynamics.restore_source()
    assert not constraint.mute


def test_constraints_that_move_nothing_physics_moves_are_no_problem(person):
    """Muted ones, those without a target or influence, those of fingers."""
    thing = cube()
    for name, change in (
        ("thigh.L", {"mute": True}), ("thigh.R", {"target": None}), ("shin.L", {"influence": 0.0}), ("f_ring.01.L", {}),
    ):  # fmt: skip
        constraint = person.pose.bones[name].constraints.new("COPY_ROTATION")
        constraint.target = thing
        for setting, value in change.items():
            setattr(constraint, setting, value)
    assert problems(person) == {}
    constraint = person.pose.bones["shin.L"].constraints[0]
    constraint.keyframe_insert("influence", frame=1)
    assert problems(person)["constraint"][0] == ["shin.L"], "an influence that is zero now may be keyed"


def test_drivers_are_muted_while_it_plays(person):
    """A driven channel ignores its keys."""
    driver = person.pose.bones["forearm.L"].driver_add("rotation_quaternion", 1)
    driver.driver.expression = "0.3"
    bpy.context.view_layer.update()
    bones, text, _ = problems(person)["driver"]
    assert bones == ["forearm.L"] and "rotation_quaternion[1]" in text
    fix(person, "driver")
    for _ in range(2):
        report = simulate(person, end=20)
        assert report.ok and person.animation_data.drivers[0].mute
    bpy.ops.armature_dynamics.discard()
    assert not person.animation_data.drivers[0].mute
    bpy.context.view_layer.update()
    assert person.pose.bones["forearm.L"].rotation_quaternion[1] == pytest.approx(0.3)


def test_a_take_that_is_stopped_leaves_drivers_on(person):
    """Esc leaves everything as it was."""
    person.pose.bones["forearm.L"].driver_add("rotation_quaternion", 1)
    person.armature_dynamics.mute_drivers = True
    steps = take.take(person)
    for work, _ in steps:
        if work == "measure":
            assert person.animation_data.drivers[0].mute
            break
    steps.close()
    assert not person.animation_data.drivers[0].mute
    assert rival.muted(person.pose.bones["forearm.L"]) == rival.Muted()


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
    person.armature_dynamics.scenery = collected(cube())
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
    """Not even a pose that has no keys yet, nor what plays."""
    armature = chain(3, height=1.0)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    bpy.ops.armature_dynamics.make_dynamic()
    bpy.context.scene.frame_set(4)
    armature.pose.bones["bone1"].rotation_quaternion = (0, 1, 0, 0)
    armature.pose.bones["bone2"].rotation_quaternion = (0, 0, 1, 0)
    before = snapshot(armature)
    preflight.look(armature)
    assert snapshot(armature) == before
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
def test_a_generated_rigify_rig_is_mended_by_its_buttons(generated_rig):
    """Its deform bones are driven by constraints, locked and in pieces: four buttons later it is a ragdoll."""
    bpy.context.view_layer.objects.active = generated_rig
    bpy.ops.armature_dynamics.make_dynamic()
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
