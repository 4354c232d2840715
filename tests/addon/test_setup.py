"""Whole setups: to a file and back, from bone to bone, and to the other side."""

import json
import os

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import compat, properties, setup, twin
from armature_dynamics.addon.problem import ConversionError
from connecting import connect, empty
from rigs import chain, make_rig, simulate

PASSING = {
    "a setting of another kind": ({"armature": {"mass": "heavy"}}, r"Mass is 'heavy'; it must be a finite number"),
    "a number that is none": ({"armature": {"mass": float("nan")}}, r"Mass is nan"),
    "a frame that Blender cannot count to": (
        {"armature": {"frame_end": 10**12}},
        r"End is 1000000000000; it must be from",
    ),
    "a mass that Blender cannot weigh": ({"armature": {"mass": 1e300}}, r"Mass is 1e\+300; it must be from 0 to"),
    "a mass beyond all": ({"armature": {"mass": 10**400}}, r"Mass is 10+; it must be from 0 to"),
    "less than nothing": ({"armature": {"substeps": -5}}, r"is -5; it must be from 0 to 1000"),
    "one of three too many": ({"bones": {"bone1": {"limit_upper": [0, 4, 0]}}}, r"bone1'.*must be from -3.14159 to 3"),
    "a setting that is unknown": ({"armature": {"colour": 1}}, r"no setting 'colour'; update"),
    "a word that is none of the choices": (
        {"bones": {"bone1": {"role": "HERO"}}},
        r"bone1'.*Role is 'HERO'.*SIMULATED",
    ),
    "too few groups": ({"armature": {"layers": [True]}}, r"20 times true or false"),
    "state": ({"armature": {"state": "KEPT"}}, r"no setting 'state'"),
    "a connection without a kind": ({"connections": [{"kind": 3}]}, r"connection 1: Joint is 3"),
    "something deeper": ({"armature": {"scenery_surface": {"friction": None}}}, r"Scenery Surface: Friction is None"),
    "a bone that is no object": ({"bones": {"bone0": 5}}, r"bone 'bone0': has no settings"),
}


@pytest.fixture
def character():
    """A chain with something set everywhere."""
    armature = chain(4)
    bar, stage = empty("Bar"), bpy.data.collections.new("Stage")
    connect(armature, "bone3", bar, kind="HINGE", axis="Z", break_force=120.0, target_at="HEAD")
    connect(armature, "bone0", method="PULL", frequency=3.5)
    own = armature.armature_dynamics
    own.mass, own.frame_end, own.key_mode, own.scenery, own.result = 12.5, 44, "REDUCED", stage, "STRIP"
    own.layers = [i in (1, 5) for i in range(20)]
    own.friction, own.scenery_surface.friction = 0.125, 0.75
    bone = armature.pose.bones["bone2"]
    bone.armature_dynamics.role, bone.armature_dynamics.shape = "ANIMATED", "BOX"
    bone.armature_dynamics.shape_length, bone.armature_dynamics_follow = 1.5, 2.25
    return armature


def run(name, path):
    return getattr(bpy.ops.armature_dynamics, name)(filepath=str(path))


def test_a_setup_comes_back_from_its_file(character, tmp_path):
    """Every setting, on the same rig in another file."""
    before = setup.read(character)
    assert run("export_setup", tmp_path / "ada.json") == {"FINISHED"}
    assert [path.name for path in tmp_path.iterdir()] == ["ada.json"]
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    armature = chain(4)
    empty("Bar")
    bpy.data.collections.new("Stage")
    assert setup.read(armature) != before
    assert run("import_setup", tmp_path / "ada.json") == {"FINISHED"}
    assert setup.read(armature) == before
    own = armature.armature_dynamics
    assert (own.enabled, own.mass, own.scenery.name) == (True, 12.5, "Stage")
    assert [tuple(c.name for c in own.connections), own.connections[0].target.name] == [
        ("bone3 to Bar", "bone0 to world"),
        "Bar",
    ]
    assert armature.pose.bones["bone2"].armature_dynamics_follow == 2.25


def test_the_same_setup_makes_the_same_simulation(character, tmp_path):
    """What a setup is for: the result of another day and another file."""
    run("export_setup", tmp_path / "ada.json")
    places = []
    for name in ("first", "second"):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        armature = chain(4, name)
        empty("Bar")
        bpy.data.collections.new("Stage")
        run("import_setup", tmp_path / "ada.json")
        simulate(armature, end=10)
        bpy.context.scene.frame_set(10)
        places.append([list(bone.matrix.translation) for bone in armature.pose.bones])
    assert places[0] == places[1]


def test_what_is_not_there_is_told(character, tmp_path):
    """Another rig and another scene: what fits is taken, and the rest is named in a line each."""
    run("export_setup", tmp_path / "ada.json")
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    armature = chain(2)
    missing = setup.apply(armature, setup.read_file(tmp_path / "ada.json"))
    assert len(missing) == 3
    assert "Scenery 'Stage' is not in this file" in missing[0]
    assert "connection 1: Target 'Bar' is not in this file" in missing[1]
    assert missing[2] == "2 bones of the setup are not in the armature: bone2, bone3"
    assert armature.armature_dynamics.mass == 12.5


@pytest.mark.parametrize("wrong", PASSING)
def test_a_wrong_setup_changes_nothing(character, wrong):
    """One clear line, whichever part is wrong, and not half a setup."""
    part, message = PASSING[wrong]
    content = json.loads(json.dumps(setup.read(character)))
    before = setup.read(character)
    content["armature"]["mass"] = 99.0
    for name, own in part.items():
        if name == "connections":
            content[name] = own
        for key, value in own.items() if isinstance(own, dict) else ():
            if isinstance(value, dict) and key in content[name]:
                content[name][key].update(value)
            else:
                content[name][key] = value
    with pytest.raises(ConversionError, match=message) as error:
        setup.apply(character, content)
    assert "\n" not in str(error.value)
    assert setup.read(character) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON file"),
        ("[1, 2]", "is no setup of Armature Dynamics"),
        ('{"format": "Armature Dynamics setup", "version": 2}', "has version 2, and 1 is known; update"),
        ('{"format": "Armature Dynamics setup"}', "has version None"),
        ('{"format": "Armature Dynamics setup", "version": 1}', "has no armature"),
        ("\x00\xff", "is no JSON file"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(character, tmp_path, text, message):
    """Whatever somebody picks in the file browser."""
    path = tmp_path / "wrong.json"
    path.write_bytes(text.encode("latin-1"))
    before = setup.read(character)
    with pytest.raises(RuntimeError, match=message):
        run("import_setup", path)
    assert setup.read(character) == before
    with pytest.raises(RuntimeError, match="cannot be read"):
        run("import_setup", tmp_path / "none.json")


def test_limits_of_settings_may_be_written_as_they_are_read(character):
    """Blender's 0.001 is a little more in single precision."""
    content = setup.read(character)
    content["armature"] |= {"key_distance": 0.001, "life_scale": 0.0001, "frame_end": 2**31 - 1}
    assert setup.apply(character, content) == []
    assert character.armature_dynamics.key_distance == pytest.approx(0.001)


def test_another_rigs_setup_is_refused(character):
    """A horse's setup on a man fits no bone: the wrong armature is selected."""
    content = setup.read(character)
    content["bones"] = {f"horse {name}": own for name, own in content["bones"].items()}
    with pytest.raises(ConversionError, match="none of the setup's bones"):
        setup.apply(character, content)


def test_a_file_that_cannot_be_written_is_left_as_it_was(character, tmp_path, monkeypatch):
    """A full disk costs nobody an old setup."""
    path = tmp_path / "ada.json"
    path.write_text("old")

    def full(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "write_text", full)
    with pytest.raises(RuntimeError, match="No space left"):
        run("export_setup", path)
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_a_setup_goes_where_a_link_points_and_replaces_no_device(character, tmp_path):
    """What is shared stays shared, and what is no file is not made one."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RuntimeError, match="is no file that could be replaced"):
        run("export_setup", tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "shared.json").write_text("old")
    (tmp_path / "own.json").symlink_to("shared.json")
    run("export_setup", tmp_path / "own.json")
    assert (tmp_path / "own.json").is_symlink() and setup.read_file(tmp_path / "shared.json")


def test_every_setting_is_in_a_setup_or_known_to_be_none():
    """Whoever adds a setting decides: it is saved unless it is on the list of what is state."""
    armature = chain(1)
    connect(armature, "bone0")
    content = setup.read(armature)
    parts = {
        properties.ARMATURE_DYNAMICS_PG_armature: content["armature"],
        properties.ARMATURE_DYNAMICS_PG_bone: content["bones"]["bone0"],
        properties.ARMATURE_DYNAMICS_PG_connection: content["connections"][0],
    }
    for cls, own in parts.items():
        names = {prop.identifier for prop in cls.bl_rna.properties} - {"rna_type"}
        assert names - set(own) <= setup.STATE, cls
    assert set(content["bones"]["bone0"]["directing"]) == set(properties.DIRECTED)
    json.dumps(content, allow_nan=False)


def pair():
    """Two arms, with rolls as Blender's Symmetrize makes them."""
    armature = make_rig(
        [
            ("hips", (0, 0, 1), (0, 0, 1.4), None, False),
            ("arm.L", (0.2, 0, 1.4), (0.6, 0.1, 1.3), "hips", False),
            ("hand.L", (0.6, 0.1, 1.3), (0.8, 0.1, 1.25), "arm.L", True),
            ("arm.R", (-0.2, 0, 1.4), (-0.6, 0.1, 1.3), "hips", False),
            ("hand.R", (-0.6, 0.1, 1.3), (-0.8, 0.1, 1.25), "arm.R", True),
        ]
    )
    bpy.ops.object.mode_set(mode="EDIT")
    for name in ("arm", "hand"):
        left, right = (armature.data.edit_bones[f"{name}.{side}"] for side in "LR")
        left.roll = 0.4
        right.roll = -0.4
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.armature_dynamics.make_dynamic()
    return armature


def select(armature, *names):
    bpy.ops.object.mode_set(mode="POSE")
    for bone in armature.pose.bones:
        compat.select_bone(bone, bone.name in names)
    armature.data.bones.active = armature.data.bones[names[0]]


def test_settings_go_to_the_selected_bones():
    """Role, collision and directing in one click."""
    armature = chain(4)
    bpy.ops.armature_dynamics.make_dynamic()
    own = armature.pose.bones["bone1"]
    own.armature_dynamics.role, own.armature_dynamics.shape, own.armature_dynamics_follow = "ANIMATED", "BOX", 3.0
    own.armature_dynamics.friction, own.armature_dynamics.control = 0.3, "bone0"
    select(armature, "bone1", "bone3")
    assert bpy.ops.armature_dynamics.copy_settings() == {"FINISHED"}
    other = armature.pose.bones["bone3"]
    expected = setup.bone_settings(own) | {"control": ""}
    assert setup.bone_settings(other) == expected
    assert armature.pose.bones["bone2"].armature_dynamics.shape == "AUTO"


def test_settings_go_to_the_other_side():
    """One side is set up by hand, the other by a click."""
    armature = pair()
    own = armature.pose.bones["arm.L"]
    own.armature_dynamics.shape, own.armature_dynamics_follow = "SPHERE", 3.0
    bar = empty("Bar.L")
    empty("Bar.R")
    connect(armature, "hand.L", bar, kind="HINGE", axis="Y", break_force=50.0, name="")
    connect(armature, "hand.L", armature, "arm.L", kind="BALL", name="")
    assert bpy.ops.armature_dynamics.mirror_settings() == {"FINISHED"}
    other = armature.pose.bones["arm.R"]
    assert (other.armature_dynamics.shape, other.armature_dynamics_follow) == ("SPHERE", 3.0)
    ends = [(c.bone, c.target.name, c.target_bone, c.kind) for c in armature.armature_dynamics.connections]
    assert ends[2:] == [("hand.R", "Bar.R", "", "HINGE"), ("hand.R", "Rig", "arm.R", "BALL")]
    mirrored = armature.armature_dynamics.connections[2]
    assert (mirrored.axis, mirrored.break_force) == ("Y", 50.0)
    armature.armature_dynamics.connections[0].break_force = 70.0
    bpy.ops.armature_dynamics.mirror_settings()
    assert len(armature.armature_dynamics.connections) == 4
    assert armature.armature_dynamics.connections[2].break_force == 70.0


def test_only_the_selected_side_is_taken():
    """From the right to the left, and not the hand."""
    armature = pair()
    for name in ("arm.R", "hand.R"):
        armature.pose.bones[name].armature_dynamics.shape = "BOX"
    select(armature, "arm.R")
    assert bpy.ops.armature_dynamics.mirror_settings() == {"FINISHED"}
    shapes = [armature.pose.bones[name].armature_dynamics.shape for name in ("arm.L", "hand.L")]
    assert shapes == ["BOX", "AUTO"]


def limited(armature):
    """Limits of an arm that are lopsided about every axis."""
    bone = armature.pose.bones["arm.L"]
    constraint = bone.constraints.new("LIMIT_ROTATION")
    constraint.owner_space = "LOCAL"
    for i, axis in enumerate("xyz"):
        for owner, least, most in ((constraint, "min_", "max_"), (bone, "ik_min_", "ik_max_")):
            setattr(owner, least + axis, -0.2 - 0.1 * i)
            setattr(owner, most + axis, 0.9 + 0.1 * i)
        setattr(constraint, f"use_limit_{axis}", True)
        setattr(bone, f"use_ik_limit_{axis}", True)
    return constraint


def test_limits_are_mirrored_as_poses_are():
    """A limit is right where Blender's own mirrored pose stops: at the mirror image of where the left one does."""
    armature = pair()
    limited(armature)
    twin.mirror(armature, ["arm.L"])
    tips = []
    for side, signs in (("L", (1, 1, 1)), ("R", (1, -1, -1))):
        bone = armature.pose.bones[f"arm.{side}"]
        bone.rotation_mode = "XYZ"
        bone.rotation_euler = [3.0 * sign * turn for sign, turn in zip(signs, (1, -1, 1))]
        bpy.context.view_layer.update()
        tips.append(np.array([*bone.matrix.col[0][:3], *bone.tail]))
        bone.rotation_euler = (0, 0, 0)
    left, right = tips
    assert np.allclose(right, left * np.array([1, -1, -1, -1, 1, 1]), atol=1e-5)
    other = armature.pose.bones["arm.R"]
    assert (other.ik_min_x, other.ik_max_x) == pytest.approx((-0.2, 0.9))
    assert (other.ik_min_y, other.ik_max_y) == pytest.approx((-1.0, 0.3))
    assert (other.ik_min_z, other.ik_max_z) == pytest.approx((-1.1, 0.4))


def test_what_is_no_mirror_image_is_refused():
    """Limits about other axes would bend the elbow backward; and both sides at once have no winner."""
    armature = pair()
    with pytest.raises(ConversionError, match="one side only"):
        twin.mirror(armature, ["arm.L", "arm.R"])
    with pytest.raises(ConversionError, match="none of these bones"):
        twin.mirror(armature, ["hips"])
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones["arm.R"].roll += 1.0
    bpy.ops.object.mode_set(mode="OBJECT")
    limited(armature)
    armature.pose.bones["hand.L"].armature_dynamics.shape = "BOX"
    with pytest.raises(ConversionError, match=r"another roll than 'arm.R'.*mirror its roll"):
        twin.mirror(armature, ["hand.L", "arm.L"])
    assert armature.pose.bones["hand.R"].armature_dynamics.shape == "AUTO"
