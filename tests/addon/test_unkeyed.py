"""What the animator has changed and not keyed outlives a simulation, where nothing else has moved it."""

import bpy
from armature_dynamics.addon.operators import make_dynamic
from armature_dynamics.addon.progress import finished
from armature_dynamics.addon.take import take
from armature_dynamics.addon.unkeyed import Unkeyed
from connecting import empty
from rigs import chain, simulate
from test_performance import drag, hand_of, playing

AT = 7
"""The current frame."""


def scene_with_changes():
    """An armature, and a function that tells what is changed by hand of other animated things."""
    armature, other, thing = chain(count=3, height=1.0), chain(count=2, name="Other"), empty()
    make_dynamic(armature)
    lamp = bpy.data.lights.new("Lamp", "POINT")
    bone = other.pose.bones["bone1"]
    thing["cus\\tom"], bone["list"] = 0.5, [1.0, 2.0]
    keyed = (
        (thing, "location"), (thing, "hide_render"), (thing, '["cus\\\\tom"]'), (thing, "rotation_mode"),
        (bone, "rotation_quaternion"), (bone, '["list"]'), (lamp, "energy"), (armature, "location"),
    )  # fmt: skip
    for owner, path in keyed:
        for frame in (1, 20):
            owner.keyframe_insert(path, frame=frame)
    bpy.context.scene.frame_set(AT)
    thing.location, thing.hide_render, thing["cus\\tom"] = (1.0, 2.0, 3.0), True, 0.75
    thing.rotation_mode = "AXIS_ANGLE"
    bone.rotation_quaternion, bone["list"][1], lamp.energy = (0.6, 0.0, 0.8, 0.0), 5.0, 77.0

    def told():
        return (
            tuple(thing.location), thing.hide_render, thing["cus\\tom"], thing.rotation_mode,
            tuple(bone.rotation_quaternion), list(bone["list"]), lamp.energy,
        )  # fmt: skip

    return armature, told


def test_a_performance_gives_it_back():
    """Esc leaves the file as it was, and what was posed beside the character is not lost by Enter either."""
    for record in (False, True):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        armature, told = scene_with_changes()
        armature.location.x = 3.0
        before = told()
        performance = playing(armature, start=AT)
        drag(performance, hand_of(performance, "bone2"), (0.0, 0.2, 0.0), 5, 0.0)
        assert told() != before, "it plays as it is keyed"
        if record:
            finished(performance.record())
        performance.__exit__(None, None, None)
        assert told() == before
        assert record or armature.location.x == 3.0


def test_a_simulation_gives_it_back():
    """Whether it comes to its end or not."""
    armature, told = scene_with_changes()
    before = told()
    steps = take(armature)
    for _ in range(20):
        next(steps)
    steps.close()
    assert told() == before
    simulate(armature, end=12)
    assert told() == before


def test_what_strips_play_is_given_back_too():
    """Objects and materials that are animated by NLA alone, and an armature whose simulation was stopped."""
    armature, thing, material = chain(count=2), empty(), bpy.data.materials.new("Paint")
    for owner, path in ((thing, "location"), (material, "roughness"), (armature, "location")):
        for frame in (1, 20):
            owner.keyframe_insert(path, frame=frame)
        animation = owner.animation_data
        animation.nla_tracks.new().strips.new("Strip", 1, animation.action)
        animation.action = None
    bpy.context.scene.frame_set(AT)
    thing.location, material.roughness, armature.location.x = (1.0, 2.0, 3.0), 0.75, 4.0
    simulate(armature, end=12)
    assert (tuple(thing.location), material.roughness) == ((1.0, 2.0, 3.0), 0.75)
    armature.location.x = 5.0
    steps = take(armature)
    for _ in range(5):
        next(steps)
    steps.close()
    assert armature.location.x == 5.0


def test_another_frame_has_its_own():
    """Whoever looks at another frame meanwhile sees that as it is keyed."""
    _, told = scene_with_changes()
    changed = Unkeyed()
    bpy.context.scene.frame_set(AT + 1)
    keyed = told()
    changed.restore()
    assert told() == keyed and keyed[0] == (0.0, 0.0, 0.0)
