"""Locks, constraints and drivers: what holds the bones that physics moves is listed, and let go while a take plays."""

import bpy
import pytest
from armature_dynamics.addon import rival, take
from mending import fix, problems
from rigs import chain, curves, grouped, simulate, world_heads
from staging import cube


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


@pytest.mark.parametrize("change", ["rename", "rename and move", "remove", "take again"])
def test_a_renamed_constraint_is_turned_on_again(change):
    """A rigger tidies up while a take plays: what was on before is on after Discard, and what was off is off."""
    armature = chain(3)
    stack = armature.pose.bones["bone1"].constraints
    for name in ("off", "first", "second", "third"):
        stack.new("LIMIT_ROTATION").name = name
    stack["off"].mute = True
    simulate(armature, end=3, mute_constraints=True)
    assert all(own.mute for own in stack)
    if change == "remove":
        stack.remove(stack["first"])
    else:
        stack["second"].name = "renamed"
    if change == "rename and move":
        stack.move(2, 0)
        stack.new("LIMIT_SCALE").name = "new"
    if change == "take again":
        simulate(armature, end=3)
        assert all(own.mute for own in stack)
        stack["renamed"].name = "renamed again"
    bpy.ops.armature_dynamics.discard()
    assert [own.name for own in stack if own.mute] == ["off"]
    assert rival.muted(armature.pose.bones["bone1"]) == rival.Muted()


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


@pytest.mark.parametrize("switch", ["enabled", "mute"])
@pytest.mark.parametrize("playhead", [1, 15])
@pytest.mark.parametrize("result", ["ACTION", "STRIP"])
def test_a_constraint_that_keys_turn_on_is_off_while_a_take_plays(switch, playhead, result):
    """Where keys have it off now, it is a rival all the same; the source's keys have it again afterwards."""
    armature, target = chain(3), bpy.data.objects.new("Target", None)
    bpy.context.collection.objects.link(target)
    target.location = (3.0, 3.0, 3.0)
    constraint = armature.pose.bones["bone0"].constraints.new("COPY_LOCATION")
    constraint.target = target
    for frame, on in ((1, False), (10, True)):
        setattr(constraint, switch, on == (switch == "enabled"))
        constraint.keyframe_insert(switch, frame=frame)
    scene = bpy.context.scene
    for _ in range(2):
        scene.frame_set(playhead)
        assert simulate(armature, end=20, mute_constraints=True, result=result).ok
    for frame in (1, 9, 10, 20):
        scene.frame_set(frame)
        assert constraint.mute and world_heads(armature)["bone0"][0] == pytest.approx(0.0, abs=1e-4)
    bpy.ops.armature_dynamics.discard()
    assert [scene.frame_set(frame) or constraint.mute for frame in (1, 20)] == [True, False]


@pytest.mark.parametrize("what", ["curve", "group", "driver"])
def test_muted_keys_and_drivers_turn_no_constraint_on(what):
    """What is off, and stays so as its switch does not move, fights nothing."""
    armature = chain(3)
    constraint = armature.pose.bones["bone0"].constraints.new("LIMIT_LOCATION")
    constraint.mute = True
    if what == "driver":
        moving = constraint.driver_add("mute")
    else:
        constraint.keyframe_insert("mute", frame=1)
        (moving,) = curves(armature.animation_data.action)
    assert rival.rivals(armature, {"bone0"})
    (grouped(armature) if what == "group" else moving).mute = True
    assert not rival.rivals(armature, {"bone0"})
