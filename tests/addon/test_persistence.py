"""A character that is set up, through undo, files, libraries and duplicates: nothing is lost, and what is simulated
again is the same to the last bit."""

import bpy
import numpy as np
import pytest
from armature_dynamics import addon
from armature_dynamics.addon import compat, connection_list, operators
from rigs import chain, curves, key, world_heads
from test_life import undoing

ROUNDS = 4
"""Each undoes and redoes the thirteen steps of `ROAD`: 52 times in all."""

STATES = ("SOURCE", "SIMULATED", "KEPT")


def press(button: str, **options):
    """Presses a button as the panel does, with an undo step of its own."""
    assert getattr(bpy.ops.armature_dynamics, button)("EXEC_DEFAULT", True, **options) == {"FINISHED"}


def keys(action) -> dict:
    """All that the keys of an action are, as bytes."""
    found = {}
    for curve in curves(action):
        points = curve.keyframe_points
        numbers = [np.empty(2 * len(points), dtype=np.float32) for _ in range(3)]
        kinds = [np.empty(len(points), dtype=np.int32) for _ in range(3)]
        for name, values in zip(("co", "handle_left", "handle_right"), numbers):
            points.foreach_get(name, values)
        for name, values in zip(("interpolation", "handle_left_type", "handle_right_type"), kinds):
            points.foreach_get(name, values)
        found[curve.data_path, curve.array_index] = [values.tobytes() for values in (*numbers, *kinds)]
    return found


def told(group) -> dict:
    """The values of all settings of a group."""
    found = {}
    for setting in group.bl_rna.properties:
        value = getattr(group, setting.identifier)
        if setting.identifier == "rna_type":
            continue
        if setting.type == "COLLECTION":
            value = [told(each) for each in value]
        elif isinstance(value, bpy.types.PropertyGroup):
            value = told(value)
        elif isinstance(value, bpy.types.ID):
            value = value.name
        found[setting.identifier] = tuple(value) if getattr(setting, "is_array", False) else value
    return found


def posed(armature) -> dict:
    """What bones hold and where they are."""
    heads = world_heads(armature)
    return {
        bone.name: (
            told(bone.armature_dynamics),
            bone.armature_dynamics_follow,
            bone.rotation_mode,
            tuple(bone.location),
            tuple(bone.rotation_quaternion),
            tuple(bone.scale),
            [constraint.mute for constraint in bone.constraints],
            tuple(heads[bone.name]),
        )
        for bone in armature.pose.bones
    }


def everything(armature) -> tuple:
    """All that a file says about an armature."""
    return (
        {action.name_full: (keys(action), action.use_fake_user) for action in bpy.data.actions},
        armature.animation_data.action.name,
        compat.slot_identifier(armature),
        told(armature.armature_dynamics),
        posed(armature),
        sorted(thing.name for thing in bpy.data.objects),
    )


def animated():
    """A row of bones with animation, a constraint, and a bone that physics leaves alone."""
    armature = chain(4, height=1.0)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 10: (0.8, 0.6, 0, 0)})
    key(armature, "bone3", "rotation_quaternion", {2: (1, 0, 0, 0), 7: (0.6, 0, 0.8, 0)})
    armature.pose.bones["bone2"].constraints.new("LIMIT_ROTATION").use_limit_x = True
    bpy.context.scene.frame_set(4)
    return armature


def set_up(armature) -> None:
    settings = armature.armature_dynamics
    settings.frame_end, settings.mass, settings.mute_constraints = 9, 12.5, True
    armature.pose.bones["bone3"].armature_dynamics.role = "IGNORED"
    armature.pose.bones["bone2"].armature_dynamics_follow = 3.0
    connection_list.add(armature, "bone0").enabled = False


def made(state: str):
    """An animated armature that was set up, with a take or without."""
    armature = animated()
    operators.make_dynamic(armature)
    set_up(armature)
    for button in ((), ("simulate",), ("simulate", "keep"))[STATES.index(state)]:
        press(button)
    assert armature.armature_dynamics.state == state
    return armature


def go_back(armature) -> None:
    """Plays the source again, from any state."""
    bpy.context.view_layer.objects.active = armature
    button = {"SIMULATED": "discard", "KEPT": "restore_source"}.get(armature.armature_dynamics.state)
    if button:
        press(button)


def simulated(armature) -> dict:
    """The keys of a new take."""
    bpy.context.view_layer.objects.active = armature
    press("simulate")
    return keys(armature.animation_data.action)


@pytest.fixture(scope="module")
def expected(registered) -> dict:
    """The keys of a take that was made without any detour."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    return simulated(made("SOURCE"))


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
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(library), link=True) as (_, data):
        data.objects = ["Rig"]
    bpy.context.collection.objects.link(data.objects[0])
    data.objects[0].override_hierarchy_create(bpy.context.scene, bpy.context.view_layer)
    armature = overridden()
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


def overridden():
    armature = next(thing for thing in bpy.data.objects if thing.override_library)
    bpy.context.view_layer.objects.active = armature
    return armature
