"""A character that is set up, through undo, files, libraries and duplicates: nothing is lost, and what is simulated
again is the same to the last bit."""

import bpy
import pytest
from armature_dynamics.addon import operators, touches
from recorded import STATES, animated, everything, go_back, keys, made, posed, press, set_up, simulated, told
from rigs import chain
from test_life import undoing

ROUNDS = 4
"""Each undoes and redoes the thirteen steps of `ROAD`: 52 times in all."""

ROAD = (
    "make_dynamic", set_up, "check", "simulate", "simulate", "discard", "simulate", "keep", "restore_source",
    "simulate", "keep", "simulate", "discard",
)  # fmt: skip
"""What an animator does, one undo step each."""


def test_undo_and_redo_all_the_way():
    """Undo after simulating crashes elsewhere (field case 29); here each step there and back is as it was."""
    name = animated().name
    with undoing() as possible:
        bpy.ops.ed.undo_push(message="before")
        seen = [everything(bpy.data.objects[name])]
        for step in ROAD:
            if callable(step):
                step(bpy.data.objects[name])
                bpy.ops.ed.undo_push(message="settings")
            else:
                press(step)
            seen.append(everything(bpy.data.objects[name]))
        for _ in range(ROUNDS if possible else 0):
            for before in seen[-2::-1]:
                bpy.ops.ed.undo()
                assert everything(bpy.data.objects[name]) == before
            for after in seen[1:]:
                bpy.ops.ed.redo()
                assert everything(bpy.data.objects[name]) == after


def test_what_is_simulated_after_undo_is_the_same(expected):
    """What a take had in mind is taken back with it."""
    name = made("SOURCE").name
    with undoing() as possible:
        bpy.ops.ed.undo_push(message="before")
        assert simulated(bpy.data.objects[name]) == expected
        for _ in range(3 if possible else 0):
            bpy.ops.ed.undo()
            assert simulated(bpy.data.objects[name]) == expected
            press("keep")
            bpy.ops.ed.undo()
            assert simulated(bpy.data.objects[name]) == expected


@pytest.mark.parametrize("state", STATES)
def test_a_file_brings_all_back(state, expected, tmp_path):
    """Save, close, open: the next day begins where this one ended."""
    armature = made(state)
    name, before, path = armature.name, everything(armature), tmp_path / "saved.blend"
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
        bpy.ops.wm.open_mainfile(filepath=str(path))
        assert everything(bpy.data.objects[name]) == before
    armature = bpy.data.objects[name]
    assert simulated(armature) == expected
    go_back(armature)
    assert armature.animation_data.action.name == "RigAction"
    assert not armature.pose.bones["bone2"].constraints[0].mute


@pytest.mark.parametrize("state", STATES)
def test_an_appended_character_is_set_up(state, expected, tmp_path):
    """It comes beside one of the same name, whose actions have the same names, too (field case 30)."""
    armature, path = made(state), tmp_path / "library.blend"
    settings, pose = told(armature.armature_dynamics), posed(armature)
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False, copy=True)
    with bpy.data.libraries.load(str(path)) as (_, data):
        data.objects = ["Rig"]
    other, own = bpy.data.objects["Rig"], everything(bpy.data.objects["Rig"])[1:4]
    armature = data.objects[0]
    bpy.context.collection.objects.link(armature)
    assert posed(armature) == pose
    changed = {name for name, value in told(armature.armature_dynamics).items() if value != settings[name]}
    assert changed <= {"action", "source_action"}, "only names of actions may have changed"
    assert simulated(armature) == expected
    go_back(armature)
    assert keys(armature.animation_data.action) == keys(bpy.data.actions["RigAction"])
    assert everything(other)[1:4] == own
    assert simulated(other) == expected


@pytest.mark.parametrize("state", STATES)
def test_a_duplicate_is_on_its_own(state, expected):
    """What happens to one of two does not happen to the other."""
    armature = made(state)
    bpy.ops.object.select_all(action="DESELECT")
    armature.select_set(True)
    bpy.ops.object.duplicate()
    twin = bpy.context.object
    before = everything(armature)[1:5]
    assert twin != armature and posed(twin) == posed(armature)
    assert simulated(twin) == expected
    assert everything(armature)[1:5] == before
    go_back(twin)
    assert everything(armature)[1:5] == before
    assert simulated(armature) == expected
    go_back(armature)
    left = {action.name for action in bpy.data.actions if "Dynamics" in action.name and not action.use_fake_user}
    assert not left, "takes that nobody kept are gone"


def couple() -> list[str]:
    """The names of two armatures that are simulated together, and were; the second is the active one."""
    pair = [chain(3, "Left", height=1.0), chain(3, "Right", height=1.4)]
    for armature in pair:
        operators.make_dynamic(armature)
        armature.armature_dynamics.meets, armature.armature_dynamics.frame_end = True, 9
    press("simulate")
    return [armature.name for armature in pair]


def takes(names: list[str]) -> list:
    """What armatures of these names play."""
    played = [bpy.data.objects[name] for name in names]
    return [(thing.armature_dynamics.state, keys(getattr(thing.animation_data, "action", None))) for thing in played]


def test_undo_takes_back_what_was_done_to_two():
    """One button press is one step, however many armatures it is about."""
    names = couple()
    with undoing() as possible:
        bpy.ops.ed.undo_push(message="before")
        before = takes(names)
        press("keep")
        press("restore_source")
        assert takes(names) == [("SOURCE", {})] * 2
        for _ in range(3 if possible else 0):
            bpy.ops.ed.undo()
            bpy.ops.ed.undo()
            assert takes(names) == before
            bpy.ops.ed.redo()
            bpy.ops.ed.redo()
            assert takes(names) == [("SOURCE", {})] * 2
            bpy.ops.ed.undo()
            bpy.ops.ed.undo()
            press("discard")
            assert takes(names) == [("SOURCE", {})] * 2
            bpy.ops.ed.undo()
            assert takes(names) == before
            press("keep")
            press("restore_source")


@pytest.mark.parametrize("way", ["duplicated", "appended", "saved"])
def test_two_stay_together(way, tmp_path):
    """Those that were simulated together are discarded together, and no others with them."""
    names, path = couple(), tmp_path / "two.blend"
    before = takes(names)
    if way == "duplicated":
        for name in names:
            bpy.data.objects[name].select_set(True)
        bpy.ops.object.duplicate()
        others = [thing.name for thing in bpy.context.selected_objects]
    else:
        bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False, copy=way == "appended")
        if way == "appended":
            with bpy.data.libraries.load(str(path)) as (_, data):
                data.objects = list(names)
            for thing in data.objects:
                bpy.context.collection.objects.link(thing)
            others = [thing.name for thing in data.objects]
        else:
            bpy.ops.wm.open_mainfile(filepath=str(path))
            others, names = names, []
    assert len(others) == 2 and not set(others) & set(names)
    assert takes(others) == before
    bpy.context.view_layer.objects.active = bpy.data.objects[others[0]]
    press("discard")
    assert takes(others) == [("SOURCE", {})] * 2
    assert takes(names) == before[: len(names)]


def test_contacts_of_a_take_that_is_undone_are_not_drawn():
    """They are kept beside the file, which knows nothing of them."""
    name = animated().name
    operators.make_dynamic(bpy.data.objects[name])
    with undoing() as possible:
        bpy.ops.ed.undo_push(message="before")
        press("simulate")
        first = touches.kept(bpy.data.objects[name])
        press("simulate")
        second = touches.kept(bpy.data.objects[name])
        assert first and second and first is not second
        if possible:
            bpy.ops.ed.undo()
            assert touches.kept(bpy.data.objects[name]) is None
            bpy.ops.ed.redo()
            assert touches.kept(bpy.data.objects[name]) is second
