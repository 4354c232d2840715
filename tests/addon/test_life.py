"""Operators, undo, and settings that live in a file."""

import contextlib

import bpy
import numpy as np
import pytest
from armature_dynamics import addon
from armature_dynamics.addon import compat, stage, take
from mending import fix
from rigs import chain, curves, finished, key, simulate, stop, world_heads
from staging import cube


def snapshot(armature):
    """Everything a take could leave behind."""
    return (
        sorted(action.name for action in bpy.data.actions),
        sorted(thing.name for thing in bpy.data.objects),
        getattr(armature.animation_data and armature.animation_data.action, "name", None),
        compat.slot_identifier(armature),
        armature.armature_dynamics.state,
        bpy.context.scene.frame_current,
        {name: tuple(np.round(head, 6)) for name, head in world_heads(armature).items()},
        {bone.name: tuple(bone.rotation_quaternion) for bone in armature.pose.bones},
    )


@pytest.fixture(params=[True, False], ids=["animated", "unanimated"])
def armature(request):
    """A chain, with an animation of its own or without."""
    armature = chain(3, height=1.0)
    armature.pose.bones["bone2"].rotation_quaternion = (0.8, 0, 0, 0.6)
    if request.param:
        key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    bpy.context.scene.frame_set(4)
    return armature


def test_the_three_operators_make_a_ragdoll(armature):
    """Make Dynamic, Simulate, Keep: the animator's whole road."""
    assert bpy.ops.armature_dynamics.make_dynamic() == {"FINISHED"}
    armature.armature_dynamics.frame_end = 12
    assert bpy.ops.armature_dynamics.simulate() == {"FINISHED"}
    assert armature.armature_dynamics.state == "SIMULATED"
    assert bpy.ops.armature_dynamics.keep() == {"FINISHED"}
    assert armature.armature_dynamics.state == "KEPT"
    assert curves(armature.animation_data.action)


def test_making_it_dynamic_again_keeps_the_animators_settings(person):
    """Default Roles, or the button once more, gives bones their roles anew: the shot's range and what else was set
    stay, until Remove Dynamics forgets them."""
    own, bone = person.armature_dynamics, person.pose.bones["shin.L"]
    solver = bone.constraints.new("IK")
    solver.target, solver.chain_count = cube(), 2
    chosen = {"frame_start": 5, "frame_end": 33, "life_scale": 0.5, "mute_constraints": False, "mass": 3.0}
    for name, value in chosen.items():
        setattr(own, name, value)
    for each in person.pose.bones:
        each.armature_dynamics.role = "IGNORED"
    fix(person, "all_ignored")
    bpy.ops.armature_dynamics.make_dynamic()
    assert bone.armature_dynamics.role == "SIMULATED"
    assert {name: getattr(own, name) for name in chosen} == chosen
    bpy.ops.armature_dynamics.remove()
    bpy.ops.armature_dynamics.make_dynamic()
    found = {"frame_start": 1, "frame_end": 120, "life_scale": 1.0, "mute_constraints": True, "mass": 3.0}
    assert {name: getattr(own, name) for name in chosen} == found


def test_discard_leaves_what_was_there_before(armature):
    """An animator tries physics out and changes her mind: nothing may have changed."""
    bpy.ops.armature_dynamics.make_dynamic()
    before = snapshot(armature)
    simulate(armature)
    bpy.ops.armature_dynamics.discard()
    after = snapshot(armature)
    assert after == before


def test_restore_source_keeps_the_take(armature):
    """The source is one click away, and the take stays in the file."""
    source = armature.animation_data.action if armature.animation_data else None
    simulate(armature)
    taken = armature.animation_data.action
    bpy.ops.armature_dynamics.keep()
    bpy.ops.armature_dynamics.restore_source()
    assert armature.animation_data.action == source
    assert taken.name in bpy.data.actions and taken.use_fake_user


def test_an_action_without_a_slot_comes_back():
    """A new action has no slot that plays: it is put back all the same, and so is one whose slot was not chosen."""
    armature = chain(2, height=1.0)
    armature.animation_data_create().action = bpy.data.actions.new("Empty")
    before = snapshot(armature)
    for _ in range(2):
        bpy.ops.armature_dynamics.make_dynamic()
        simulate(armature)
        simulate(armature)
        bpy.ops.armature_dynamics.discard()
        assert snapshot(armature) == before
        if compat.SLOTTED:
            armature.animation_data.action.slots.new("OBJECT", "Unused")
            armature.animation_data.action_slot = None
            before = snapshot(armature)
            assert before[3] == compat.NO_SLOT


def test_bones_added_since_and_changed_modes_come_back(armature):
    """What was not there before has nothing to go back to; numbers of another rotation mode would be another pose."""
    simulate(armature)
    armature.pose.bones["bone2"].rotation_mode = "XYZ"
    bpy.ops.object.mode_set(mode="EDIT")
    bone = armature.data.edit_bones.new("new")
    bone.tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.armature_dynamics.discard()
    assert tuple(armature.pose.bones["new"].scale) == (1, 1, 1)
    assert tuple(armature.pose.bones["new"].rotation_quaternion) == (1, 0, 0, 0)
    assert armature.pose.bones["bone2"].rotation_mode == "QUATERNION"
    assert np.allclose(armature.pose.bones["bone2"].rotation_quaternion, (0.8, 0, 0, 0.6))


def test_a_linked_action_comes_back_beside_its_namesake(tmp_path):
    """Names are unique only within a library."""
    library = tmp_path / "library.blend"
    bpy.data.libraries.write(str(library), {bpy.data.actions.new("Walk")}, fake_user=True)
    armature = chain(2, height=1.0)
    bpy.data.actions["Walk"].use_fake_user = True
    with bpy.data.libraries.load(str(library), link=True) as (_, data):
        data.actions = ["Walk"]
    armature.animation_data_create().action = data.actions[0]
    simulate(armature)
    bpy.ops.armature_dynamics.discard()
    assert armature.animation_data.action == data.actions[0] and data.actions[0].library


def test_discard_leaves_no_empty_animation_and_no_user(armature):
    """A pointer to the source would keep it in the file for good."""
    action = armature.animation_data.action if armature.animation_data else None
    users = action.users if action else 0
    simulate(armature)
    bpy.ops.armature_dynamics.discard()
    assert armature.armature_dynamics.source_action is None
    assert action.users == users if action else armature.animation_data is None


@pytest.mark.parametrize("work", ["sample", "prepare", "simulate", "bake", "measure"])
def test_a_take_that_is_stopped_leaves_nothing(armature, work):
    """Esc at any moment: no action, no keys, no moved playhead (design: keys are written in one go at the end)."""
    bpy.ops.armature_dynamics.make_dynamic()
    armature.armature_dynamics.frame_end = 12
    before = snapshot(armature)
    stop(armature, work)
    assert snapshot(armature) == before


def test_a_stopped_second_take_leaves_the_first(armature):
    """Esc in a second try must not cost the first."""
    simulate(armature)
    before = snapshot(armature)
    stop(armature, "measure")
    assert snapshot(armature) == before


@pytest.mark.parametrize("kept", [True, False])
def test_an_action_that_is_chosen_instead_of_a_take_is_the_source(kept):
    """Walk is simulated, then Run is keyed, and simulated: what is seen is what starts, and none of them is lost."""
    armature = chain(3, height=1.0)
    bone = armature.pose.bones["bone1"]
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0)})
    walk = armature.animation_data.action
    rival = bone.constraints.new("COPY_ROTATION")
    rival.target = bpy.data.objects.new("Aim", None)
    simulate(armature, mute_constraints=True)
    assert rival.mute
    if kept:
        bpy.ops.armature_dynamics.keep()
    run = armature.animation_data.action = bpy.data.actions.new("Run")
    key(armature, "bone1", "rotation_quaternion", {1: (0.8, 0.6, 0, 0)})
    bpy.ops.armature_dynamics.check()
    assert not rival.mute
    before = world_heads(armature)
    simulate(armature)
    assert armature.armature_dynamics.source_action == run and walk.use_fake_user
    bpy.context.scene.frame_set(1)
    assert all(np.allclose(head, before[name], atol=1e-5) for name, head in world_heads(armature).items())
    bpy.ops.armature_dynamics.discard()
    assert armature.animation_data.action == run and not rival.mute
    assert [action.name for action in bpy.data.actions if "Dynamics" in action.name and action.users] == (
        ["Rig Dynamics"] if kept else []
    )


def test_a_discarded_take_leaves_the_action_that_took_its_place():
    armature = chain(3, height=1.0)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0)})
    walk = armature.animation_data.action
    simulate(armature)
    run = armature.animation_data.action = bpy.data.actions.new("Run")
    bpy.ops.armature_dynamics.discard()
    assert armature.animation_data.action == run and walk.use_fake_user


def test_a_take_that_was_pushed_down_is_what_the_next_one_starts_from():
    armature = chain(3, height=1.0)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    simulate(armature)
    bpy.ops.armature_dynamics.keep()
    animation = armature.animation_data
    animation.nla_tracks.new().strips.new("Fall", 1, animation.action)
    animation.action = None
    bpy.context.scene.frame_set(8)
    before = world_heads(armature)
    simulate(armature, start=8)
    bpy.context.scene.frame_set(8)
    assert all(np.allclose(head, before[name], atol=1e-5) for name, head in world_heads(armature).items())
    bpy.ops.armature_dynamics.discard()
    assert animation.action is None and len(animation.nla_tracks) == 1


def test_undo_takes_a_take_back(armature):
    """Undo after simulating crashes elsewhere, through references that are stale by then (field case 29)."""
    name = armature.name
    bpy.ops.ed.undo_push(message="before")
    with undoing() as override:
        bpy.ops.armature_dynamics.make_dynamic("EXEC_DEFAULT", True)
        bpy.data.objects[name].armature_dynamics.frame_end = 12
        bpy.ops.armature_dynamics.simulate("EXEC_DEFAULT", True)
        bpy.ops.ed.undo_push(message="after")
        if override:
            bpy.ops.ed.undo()
            bpy.ops.ed.undo()
            print("undone")
            assert bpy.data.objects[name].armature_dynamics.state == "SOURCE"
            assert not [action for action in bpy.data.actions if "Dynamics" in action.name]
            bpy.ops.ed.redo()
    bpy.context.view_layer.objects.active = bpy.data.objects[name]
    assert bpy.ops.armature_dynamics.make_dynamic.poll()


@contextlib.contextmanager
def undoing():
    """A context in which undo works without a window: yields whether there is one."""
    window = bpy.context.window_manager.windows[0] if bpy.context.window_manager.windows else None
    if window is None:
        yield False
        return
    with bpy.context.temp_override(window=window):
        yield True


def test_settings_survive_duplicating_and_saving(armature, tmp_path):
    """Append, link or duplicate loses settings elsewhere (field case 30)."""
    bpy.ops.armature_dynamics.make_dynamic()
    armature.armature_dynamics.mass = 12.5
    armature.pose.bones["bone1"].armature_dynamics.role = "ANIMATED"
    twin = armature.copy()
    twin.name = "Twin"
    bpy.context.collection.objects.link(twin)
    twin.armature_dynamics.mass = 3.0
    assert armature.armature_dynamics.mass == 12.5
    path = tmp_path / "saved.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(path)) as (_, data):
        data.objects = ["Rig", "Twin"]
    rig, twin = data.objects
    assert (rig.armature_dynamics.mass, twin.armature_dynamics.mass) == (12.5, 3.0)
    assert rig.pose.bones["bone1"].armature_dynamics.role == "ANIMATED"
    assert twin.pose.bones["bone1"].armature_dynamics.role == "ANIMATED"


def test_discarding_a_duplicates_take_leaves_the_originals(armature):
    """A duplicate shares its action until it is simulated; discarding one must not take the other's away."""
    simulate(armature)
    taken = armature.animation_data.action
    twin = armature.copy()
    bpy.context.collection.objects.link(twin)
    stage.discard(twin)
    assert taken.name in bpy.data.actions and armature.animation_data.action == taken
    stage.discard(armature)
    assert not [action for action in bpy.data.actions if "Dynamics" in action.name]


def test_there_are_no_helper_objects(armature):
    """Hidden collections break simulations that are made of helper objects (field case 31)."""
    before = {thing.name for thing in bpy.data.objects}
    simulate(armature)
    assert {thing.name for thing in bpy.data.objects} == before
    assert bpy.context.scene.rigidbody_world is None


def test_registering_twice_in_a_row_leaves_nothing():
    """What stays registered crashes 4.2 and hangs 4.5 at exit."""
    addon.unregister()
    assert not hasattr(bpy.types.Object, "armature_dynamics")
    assert not [name for name in dir(bpy.types) if name.startswith("ARMATURE_DYNAMICS")]
    addon.register()
    assert hasattr(bpy.types.PoseBone, "armature_dynamics")


def test_every_setting_says_what_it_is():
    """A tooltip, with the unit where there is one."""
    for cls in addon.properties.CLASSES:
        for prop in cls.bl_rna.properties:
            if prop.identifier in ("rna_type", "name"):
                continue
            assert prop.description, prop.identifier
            if prop.type == "FLOAT":
                assert prop.description.rstrip().endswith("]"), prop.identifier


def test_bad_settings_are_refused_in_one_line(armature):
    """Reversed ranges crash elsewhere (field case 7); here the operator says what is wrong and changes nothing."""
    bpy.ops.armature_dynamics.make_dynamic()
    armature.armature_dynamics.frame_start = 20
    armature.armature_dynamics.frame_end = 10
    before = snapshot(armature)
    with pytest.raises(RuntimeError, match="frames 20 to 10 are not a range"):
        bpy.ops.armature_dynamics.simulate()
    assert snapshot(armature) == before


def test_a_simulation_that_blows_up_keeps_the_frames_before(armature, monkeypatch):
    """The animator sees where it went wrong, and which bone did."""
    from armature_dynamics.core import Simulation, SimulationError

    steps = Simulation.steps

    def broken(self, frames):
        for frame in steps(self, frames):
            yield frame
            if frame == 5:
                raise SimulationError("link 'bone1' is no longer finite at frame 6; use more substeps")

    monkeypatch.setattr(Simulation, "steps", broken)
    report = simulate(armature)
    assert not report.ok and report.frames == 6
    assert "bone1" in next(warning.message for warning in report.warnings if warning.code == "not_finite")
    assert armature.armature_dynamics.state == stage.SIMULATED


def test_identical_takes_are_identical(armature):
    """A take can be made again on another day."""
    simulate(armature)
    first = [[tuple(point.co) for point in curve.keyframe_points] for curve in curves(armature.animation_data.action)]
    stage.discard(armature)
    simulate(armature)
    second = [[tuple(point.co) for point in curve.keyframe_points] for curve in curves(armature.animation_data.action)]
    assert first == second


def test_progress_is_reported_all_the_way(armature):
    """The progress bar moves through all four parts of the work."""
    bpy.ops.armature_dynamics.make_dynamic()
    armature.armature_dynamics.frame_end = 12
    seen = []
    steps = take.take(armature)

    def watched():
        result = yield from steps
        return result

    for work, progress in watched():
        assert 0 <= progress <= 1
        seen.append(work)
    assert list(dict.fromkeys(seen)) == ["sample", "prepare", "simulate", "bake", "measure"]
    assert finished(take.take(armature)).ok
