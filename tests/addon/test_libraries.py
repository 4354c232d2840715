"""Characters that are set up in another file, and linked from there."""

import bpy
import pytest
from armature_dynamics import addon
from armature_dynamics.addon import connection_list, operators
from recorded import STATES, everything, go_back, made, press, simulated
from rigs import chain
from test_life import undoing


@pytest.mark.parametrize("state", STATES)
def test_a_linked_character_is_left_alone(state, tmp_path):
    """Settings of linked data are lost with the session: every button says so in one line instead."""
    path = tmp_path / "library.blend"
    made(state)
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(path), link=True) as (_, data):
        data.objects = ["Rig"]
    armature = data.objects[0]
    bpy.context.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    before = everything(armature)
    buttons = [cls.bl_idname.partition(".")[2] for cls in addon.CLASSES if issubclass(cls, operators.OnArmature)]
    assert {"make_dynamic", "simulate", "keep", "discard", "restore_source", "remove", "check"} <= set(buttons)
    for button in buttons:
        with pytest.raises(RuntimeError, match="library override"):
            getattr(bpy.ops.armature_dynamics, button)()
    assert everything(armature) == before


@pytest.mark.parametrize("state", STATES)
def test_a_library_override_is_simulated_and_saved(state, expected, tmp_path):
    """A character of the studio's library, with settings and a take of its own in the shot's file."""
    library, shot = tmp_path / "library.blend", tmp_path / "shot.blend"
    made(state)
    bpy.ops.wm.save_as_mainfile(filepath=str(library), check_existing=False)
    armature = linked_with_override(library, "Rig")
    assert simulated(armature) == expected
    armature.armature_dynamics.mass = 3.0
    armature.pose.bones["bone1"].armature_dynamics_follow = 2.0
    armature.pose.bones["bone1"].armature_dynamics.role = "ANIMATED"
    connection_list.add(armature, "bone1").enabled = False
    press("simulate")
    before = everything(armature)
    bpy.ops.wm.save_as_mainfile(filepath=str(shot), check_existing=False)
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    armature = overridden()
    assert everything(armature) == before
    press("keep")
    go_back(armature)
    assert armature.animation_data.action.name == "RigAction" and armature.animation_data.action.library


@pytest.mark.parametrize("prepared", [True, False], ids=["dynamic", "plain"])
def test_an_override_keeps_settings_that_its_library_never_had(prepared, tmp_path):
    """The library's rigger may never have opened Scenery Surface, nor know this extension: the shot's settings are
    saved all the same, each time."""
    library, shot = tmp_path / "library.blend", str(tmp_path / "shot.blend")
    character = chain(3)
    if prepared:
        operators.make_dynamic(character)
    bpy.ops.wm.save_as_mainfile(filepath=str(library), check_existing=False)
    armature = linked_with_override(library, "Rig")
    operators.make_dynamic(armature)
    own = armature.armature_dynamics
    own.mass, own.scenery_surface.friction, own.scenery_surface.restitution = 3.0, 0.25, 0.5
    armature.pose.bones["bone1"].armature_dynamics.role = "ANIMATED"
    connection_list.add(armature, "bone1").break_force = 7.5
    before = everything(armature)
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=shot, check_existing=False)
        bpy.ops.wm.open_mainfile(filepath=shot)
        assert everything(overridden()) == before


def linked_with_override(library, name: str):
    """An override of an armature of a file, in a new one."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(library), link=True) as (_, data):
        data.objects = [name]
    bpy.context.collection.objects.link(data.objects[0])
    data.objects[0].override_hierarchy_create(bpy.context.scene, bpy.context.view_layer)
    return overridden()


def overridden():
    armature = next(thing for thing in bpy.data.objects if thing.override_library and thing.type == "ARMATURE")
    bpy.context.view_layer.objects.active = armature
    return armature


@pytest.mark.slow
def test_a_generated_rig_goes_the_same_ways(generated_rig, tmp_path):
    """Controls, their switches and what is turned off for them come and go as well."""
    name, library, shot = generated_rig.name, tmp_path / "library.blend", tmp_path / "shot.blend"
    bpy.context.view_layer.objects.active = generated_rig
    with undoing() as possible:
        bpy.ops.ed.undo_push(message="before")
        seen = [everything(generated_rig)]
        for step in ("make_dynamic", "simulate", "keep", "restore_source", "simulate", "discard"):
            bpy.data.objects[name].armature_dynamics.frame_end = 6
            press(step)
            seen.append(everything(bpy.data.objects[name]))
        for _ in range(2 if possible else 0):
            for before in seen[-2:0:-1]:
                bpy.ops.ed.undo()
                assert everything(bpy.data.objects[name]) == before
            for after in seen[2:]:
                bpy.ops.ed.redo()
                assert everything(bpy.data.objects[name]) == after
    bpy.ops.wm.save_as_mainfile(filepath=str(library), check_existing=False)
    taken = simulated(bpy.data.objects[name])
    armature = linked_with_override(library, name)
    assert simulated(armature) == taken
    before = everything(armature)[1:5]
    bpy.ops.wm.save_as_mainfile(filepath=str(shot), check_existing=False)
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert everything(overridden())[1:5] == before
