"""Scale, roll and length: what is wrong with a rig's form is listed, and mended with all in its place."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import operators
from mending import edit, fix, problems
from rigs import chain, key, world_heads
from staging import cube


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


@pytest.mark.parametrize("how", ["posed", "keyed", "driven", "constrained"])
@pytest.mark.parametrize("scale", [(1, 1, 2), (-1, 1, 1), (-1, -1, -1), (2, 0, 1)])
def test_a_bad_scale_is_not_applied_under_poses(scale, how):
    """They would show something else, 0.25 m off, without a word."""
    armature = chain(3)
    bone = armature.pose.bones["bone1"]
    if how == "posed":
        bone.rotation_quaternion = (0.8, 0, 0.6, 0)
    elif how == "keyed":
        key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 9: (0.8, 0, 0.6, 0)})
    elif how == "driven":
        bone.driver_add("rotation_quaternion", 1)
    else:
        constraint = bone.constraints.new("COPY_ROTATION")
        constraint.target = cube()
        constraint.target.rotation_euler = (1, 2, 3)
    armature.scale = scale
    bpy.context.view_layer.update()
    heads = world_heads(armature)
    with pytest.raises(RuntimeError, match="would not stay in place, bone1; clear their pose"):
        bpy.ops.armature_dynamics.fix(index=problems(armature)["scale"][2])
    assert tuple(armature.scale) == scale
    assert all(np.allclose(head, heads[name], atol=1e-6) for name, head in world_heads(armature).items())


@pytest.mark.parametrize("scale", [(1, 1, 2), (-1, 1, 1), (-1, -1, -1)])
def test_a_scale_is_applied_under_the_keys_of_its_object(scale):
    """The object turns as before: not to the other side, as it did where all axes were mirrored."""
    armature = chain(3)
    armature.scale = scale
    for frame, angle in ((1, 0.4), (9, 1.4)):
        armature.rotation_euler = (0.2, 0.3, angle)
        armature.keyframe_insert("rotation_euler", frame=frame)
        armature.location = (angle, 1, 0)
        armature.keyframe_insert("location", frame=frame)
    before = {}
    for frame in (1, 5, 9):
        bpy.context.scene.frame_set(frame)
        before[frame] = world_heads(armature)
    fix(armature, "scale")
    for frame, heads in before.items():
        bpy.context.scene.frame_set(frame)
        assert all(np.allclose(head, heads[name], atol=1e-5) for name, head in world_heads(armature).items())


def test_a_parents_scale_is_not_applied_under_keys(person):
    """What turns in it is skewed another way on each frame."""
    above = person.parent = cube()
    above.scale = (1, 1, 2)
    person.keyframe_insert("rotation_euler", frame=1)
    with pytest.raises(RuntimeError, match=r"object 'metarig' is animated .* is not its own; remove"):
        bpy.ops.armature_dynamics.fix(index=problems(person)["scale"][2])


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
