"""Presets of rigs: what a kind of rig is, in a file that a rigger writes by hand or Blender's menu saves."""

import json

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import rig_preset, setup, words
from armature_dynamics.addon.problem import ConversionError
from conftest import ROOT
from evaluated import evaluated
from rigs import chain, character, curves, make_rig, named, simulate
from test_words import untranslated

FOLDER = ROOT / "presets" / "armature_dynamics" / "rig"
SHIPPED = sorted(path.stem for path in FOLDER.glob("*.json"))

MINIMAL = {"format": "Armature Dynamics rig", "version": 1}

WRONG = {
    "a setting that is unknown": (
        {"bones": {"bone.*": {"rol": "SIMULATED"}}},
        r"bone 'bone\.\*': there is no setting 'rol'; use 'limits', .*'role'",
    ),
    "a value of another kind": (
        {"bones": {"bone1": {"shape_length": "long"}}},
        r"bone 'bone1', shape_length: Length is 'long'; it must be a finite number",
    ),
    "a word that is none of the choices": (
        {"bones": {"bone1": {"role": "HERO"}}},
        r"Role is 'HERO'; it must be one of",
    ),
    "a pattern that is none": ({"bones": {"bone(1": {}}}, r"rig: 'bone\(1' is no pattern .*put a backslash"),
    "a control that is no name": ({"bones": {"bone1": {"control": "\\2"}}}, r"control '\\\\2' is no name .*brackets"),
    "limits that are no ranges": (
        {"bones": {"bone1": {"limits": [0, 90]}}},
        r"bone 'bone1': limits are \[0, 90\]; name x, y or z",
    ),
    "limits the wrong way round": (
        {"bones": {"bone1": {"limits": {"x": [90, 0]}}}},
        r"limits about x are \[90, 0\]; write the least and the most",
    ),
    "a bone without settings": ({"bones": {"bone1": 5}}, r"rig: 'bone1' is 5; it must be names and their settings"),
    "no list of bones": ({"bones": ["bone1"]}, r"rig: 'bones' is \[\"bone1\"\]; it must be names"),
    "a part that is unknown": (
        {"bone": {}},
        r"rig: there is no setting 'bone'; use 'armature', 'bones', 'root', 'switches'",
    ),
    "settings of the shot": ({"armature": {"frame_end": 5}}, r"armature: there is no setting 'frame_end'; use 'mass'"),
    "a root of another kind": ({"root": 3}, r"rig: 'root' is 3; it must be a name"),
    "switches without numbers": (
        {"bones": {"bone1": {}}, "switches": {"bone1": {"free": "on"}}},
        r"switches of 'bone1' are \{\"free\": \"on\"\}; name properties",
    ),
    "other bones": ({"bones": {"horse": {}}}, r"has none of the preset's bones; choose the preset of its rig"),
    "another format": (
        {"format": "Rigs"},
        r"is no rig of Armature Dynamics; its format must be 'Armature Dynamics rig'",
    ),
    "a newer version": ({"version": 2}, r"has version 2, and 1 is known; update"),
}


def apply(path):
    """What a click on a preset's name does."""
    return bpy.ops.armature_dynamics.rig_preset_apply(filepath=str(path))


def written(folder, **parts):
    path = folder / "rig preset.json"
    path.write_text(json.dumps(MINIMAL | parts), encoding="utf-8")
    return path


def roles(armature):
    return {bone.name: bone.armature_dynamics.role for bone in armature.pose.bones}


def puppet(name="Puppet"):
    """Three deform bones in an arm, carried by controls of odd names as long as a property says so; else by others."""
    rows = [
        ("Master Knob", (0, 0, 1.5), (0, 0.2, 1.5), None, False),
        ("wheel a", (0, 0, 1.5), (0.3, 0, 1.5), "Master Knob", False),
        ("wheel b", (0.3, 0, 1.5), (0.6, 0, 1.5), "wheel a", False),
        ("wheel c", (0.6, 0, 1.5), (0.8, 0, 1.5), "wheel b", False),
        ("ghost a", (0, 0, 1.5), (0.3, 0, 1.5), "Master Knob", False),
        ("ghost b", (0.3, 0, 1.5), (0.6, 0, 1.5), "ghost a", False),
        ("ghost c", (0.6, 0, 1.5), (0.8, 0, 1.5), "ghost b", False),
        ("meat.a", (0, 0, 1.5), (0.3, 0, 1.5), None, False),
        ("meat.b", (0.3, 0, 1.5), (0.6, 0, 1.5), "meat.a", False),
        ("meat.c", (0.6, 0, 1.5), (0.8, 0, 1.5), "meat.b", False),
    ]
    armature = make_rig(rows, name)
    knob = armature.pose.bones["Master Knob"]
    knob["by wheels"] = 0.0
    for letter in "abc":
        bone = armature.pose.bones[f"meat.{letter}"]
        for control in ("ghost", "wheel"):
            constraint = bone.constraints.new("COPY_TRANSFORMS")
            constraint.target, constraint.subtarget = armature, f"{control} {letter}"
        driver = constraint.driver_add("influence").driver
        driver.type, variable = "AVERAGE", driver.variables.new()
        variable.targets[0].id = armature
        variable.targets[0].data_path = 'pose.bones["Master Knob"]["by wheels"]'
        for other in ("wheel", "ghost"):
            armature.data.bones[f"{other} {letter}"].use_deform = False
    armature.data.bones["Master Knob"].use_deform = False
    bpy.context.view_layer.update()
    return armature


PUPPET = {
    "armature": {"mass": 6.0},
    "bones": {
        "meat\\.([ab])": {"control": "wheel \\1", "mass_share": 0.4},
        "meat\\.c": {
            "control": "wheel c",
            "shape": "SPHERE",
            "limits": {"x": [-10, 20], "y": [0, 0], "z": [0, 0]},
        },
    },
    "root": "wheel a",
    "switches": {"Master Knob": {"by wheels": 1}},
}


def test_a_rig_of_controls_is_described_by_hand(tmp_path):
    """A rigger's own controls, whatever they are called: simulated through what deforms, keys on the wheels."""
    armature = puppet()
    assert apply(written(tmp_path, **PUPPET)) == {"FINISHED"}
    own = armature.armature_dynamics
    assert (own.enabled, own.root_control, own.mass) == (True, "wheel a", 6.0)
    assert own.switches == 'pose.bones["Master Knob"]["by wheels"] = 1'
    assert {name for name, role in roles(armature).items() if role == "SIMULATED"} == {"meat.a", "meat.b", "meat.c"}
    report = simulate(armature, end=24)
    assert report.ok, report.news()
    assert report.bake_error_max_m <= 1e-4 and report.bake_error_max_deg <= 0.01
    paths = {curve.data_path.split('"')[1] for curve in curves(armature.animation_data.action)}
    assert paths == {"wheel a", "wheel b", "wheel c", "Master Knob"}
    bpy.context.scene.frame_set(24)
    places = {bone.name: np.array(bone.matrix) for bone in armature.pose.bones}
    for letter in "abc":
        assert np.allclose(places[f"meat.{letter}"], places[f"wheel {letter}"], atol=1e-5)
    assert places["meat.a"][2, 3] < 1.2, "it falls"
    bpy.ops.armature_dynamics.discard()
    assert armature.pose.bones["Master Knob"]["by wheels"] == 0.0


def test_the_manuals_example_is_one(tmp_path):
    """Who copies it has something that works."""
    text = (ROOT / "docs" / "manual.md").read_text(encoding="utf-8")
    path = tmp_path / "example.json"
    path.write_text(text.split("```json\n")[1].split("```")[0], encoding="utf-8")
    armature = puppet()
    assert rig_preset.apply(armature, path) == ["meat.hat"]
    assert armature.pose.bones["meat.b"].armature_dynamics.control == "wheel b"
    part = text.split("| setting of a bone |")[1].split("\n\n")[0]
    known = {*rig_preset.defaults(armature.pose.bones[0].armature_dynamics.bl_rna), "limits"} - set(rig_preset.LIMITS)
    named = [name for row in part.splitlines()[2:] for name in row.split("|")[1].strip().split(", ")]
    assert set(named) == known


def test_shares_limits_and_shapes_are_those_of_the_file(tmp_path):
    """What physics gets is what the rigger wrote: kilograms, degrees, and a hinge where one axis is free."""
    armature = puppet()
    apply(written(tmp_path, **PUPPET))
    own, _motion = character(armature, roles=list(roles(armature).values()), mass=6.0)
    names = [own.rig.names[bone] for bone in own.bones]
    masses = {name: link.mass for name, link in zip(names, own.links)}
    assert masses == pytest.approx({"meat.a": 2.4, "meat.b": 2.4, "meat.c": 1.2})
    wrist = own.links[names.index("meat.c")]
    assert wrist.joint.kind == "hinge"
    assert np.degrees([wrist.joint.lower[0], wrist.joint.upper[0]]) == pytest.approx([-10, 20], abs=1e-4)
    assert len(wrist.shapes) == 1 and type(wrist.shapes[0]).__name__ == "Sphere"
    spherical = own.links[names.index("meat.b")]
    assert spherical.joint.kind == "spherical"


def test_shares_leave_something_for_the_others():
    """Mass cannot be negative; and where all are said they are parts of one."""
    armature = chain(3)
    for bone, share in zip(armature.pose.bones, (0.5, 0.5, 0.0)):
        bone.armature_dynamics.mass_share = share
    with pytest.raises(ConversionError, match=r"come to 1, which leaves nothing for 'bone2'; make them less than 1"):
        simulate(armature)
    armature.pose.bones["bone2"].armature_dynamics.mass_share = 1.0
    own, _ = character(armature, mass=8.0)
    assert [link.mass for link in own.links] == pytest.approx([2.0, 2.0, 4.0])


def test_what_is_saved_is_the_same_take_on_another_one(tmp_path, own_folder):
    """A preset is worth what it gives the next character: the same motion to the last bit."""
    armature = puppet()
    apply(written(tmp_path, **PUPPET))
    own = armature.pose.bones["meat.b"].armature_dynamics
    own.use_limits, own.limit_lower, own.limit_upper = True, (-0.3, -0.1, -1.234567), (1.1, 0.1, 0.7654321)
    own.shape_thickness, own.mass_share, own.use_surface, own.friction = 1.37, 0.123, True, 0.1
    armature.armature_dynamics.damping, armature.armature_dynamics.layers[3] = 0.31, True
    assert bpy.ops.armature_dynamics.rig_preset_add(name="Old Puppet") == {"FINISHED"}
    path = own_folder / "presets" / "armature_dynamics" / "rig" / "Old_Puppet.json"
    assert json.loads(path.read_text())["bones"]["meat\\.b"]["mass_share"] == 0.123
    assert '"limits": {"x": [-10.0, 20.0], "y": [0.0, 0.0]' in path.read_text()
    simulate(armature, end=12)
    first, settings = evaluated(armature, range(1, 13)), rig_preset.read(armature)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    other = puppet("Other")
    assert apply(bpy.utils.preset_find("Old_Puppet", "armature_dynamics/rig", ext=".json")) == {"FINISHED"}
    assert rig_preset.read(other) == settings
    simulate(other, end=12)
    assert all(np.array_equal(one, two) for one, two in zip(first, evaluated(other, range(1, 13))))


def test_a_preset_is_removed_and_never_overwritten(own_folder):
    """Blender's own + and -; those that come along stay."""
    chain(3)
    assert not bpy.ops.armature_dynamics.rig_preset_add.poll()
    bpy.ops.armature_dynamics.make_dynamic()
    add = bpy.ops.armature_dynamics.rig_preset_add
    assert add(name="Eel") == {"FINISHED"}
    with pytest.raises(RuntimeError, match="there is a preset 'Eel' already; choose another name"):
        add(name="Eel")
    with pytest.raises(RuntimeError, match="Type a name"):
        add(name=" ")
    assert add(name="Eel", remove_name=True) == {"FINISHED"}
    assert not list(own_folder.rglob("*.json"))
    with pytest.raises(RuntimeError, match="'Mixamo' comes along; only presets of your own"):
        add(name="Mixamo", remove_name=True)


def test_a_preset_says_all_of_a_bone(tmp_path):
    """Whatever was set before: the same preset makes the same rig. Limits and shapes of before are gone."""
    armature = chain(4)
    bpy.ops.armature_dynamics.make_dynamic()
    own = armature.pose.bones["bone1"].armature_dynamics
    own.shape, own.use_limits, own.mass_share = "BOX", True, 0.5
    armature.armature_dynamics.tone, armature.armature_dynamics.frame_end = 2.0, 77
    apply(written(tmp_path, bones={"bone1": {}, "bone[12]": {"role": "ANIMATED"}}))
    assert roles(armature) == {"bone0": "IGNORED", "bone1": "SIMULATED", "bone2": "ANIMATED", "bone3": "IGNORED"}
    assert (own.shape, own.use_limits, own.mass_share) == ("AUTO", False, 0.0)
    assert (armature.armature_dynamics.tone, armature.armature_dynamics.frame_end) == (2.0, 77)


def test_a_rig_that_lacks_bones_is_told_in_one_line(tmp_path):
    """What fits is taken; the rest is named, controls and properties too."""
    armature = chain(2)
    parts = {
        "bones": {"bone\\d": {"control": "bone1"}, "hat": {}, "tail\\.\\d+": {}},
        "root": "cog",
        "switches": {"bone0": {"free": 1}, "knob": {"on": 1}},
    }
    missing = rig_preset.apply(armature, written(tmp_path, **parts))
    assert missing == ["hat", "tail.d+", "cog", 'bone0["free"]', "knob"]
    assert rig_preset.told(missing) == (
        '5 names of the preset are not in the armature: hat, tail.d+, cog, bone0["free"], knob'
    )
    assert rig_preset.told(list("abcdefgh")).endswith("a, b, c, d, e, f and 2 more")
    assert roles(armature) == {"bone0": "SIMULATED", "bone1": "SIMULATED"}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_file_is_refused_in_one_line(wrong, tmp_path):
    """The file, the place in it, and what to write; nothing is half applied, nor is the armature made dynamic."""
    armature = chain(3)
    before = setup.read(armature)
    parts, message = WRONG[wrong]
    path = written(tmp_path, **({"armature": {"mass": 99.0}} | parts))
    with pytest.raises(ConversionError, match=message) as error:
        rig_preset.apply(armature, path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)
    for code in words.languages():
        assert untranslated(str(error.value).replace(str(path), "file"), code) == []
    with pytest.raises(RuntimeError, match="rig preset"):
        apply(path)
    assert setup.read(armature) == before


def test_files_that_are_none(tmp_path):
    """Whatever a preset folder has in it."""
    armature, path = chain(2), tmp_path / "rig.json"
    for text, message in (("{", "is no JSON file"), ("[1]", "is no rig"), ("\x00", "is no JSON file")):
        path.write_text(text)
        with pytest.raises(ConversionError, match=message):
            rig_preset.apply(armature, path)
    with pytest.raises(ConversionError, match="cannot be read"):
        rig_preset.apply(armature, tmp_path / "none.json")


def test_import_reads_a_rig_too(tmp_path):
    """A file from a colleague, wherever it is; + keeps it in the menu."""
    armature = chain(3)
    path = written(tmp_path, bones={"bone[01]": {}})
    assert bpy.ops.armature_dynamics.import_setup(filepath=str(path)) == {"FINISHED"}
    assert roles(armature) == {"bone0": "SIMULATED", "bone1": "SIMULATED", "bone2": "IGNORED"}
    assert armature.armature_dynamics.enabled


def test_the_rigs_that_come_along_are_found():
    """Those that the manual names, by Blender's menu."""
    names = ["Biped", "MMD", "Mixamo", "Motion_Capture", "Rigify", "Rigify_Metarig", "Unreal", "VRM", "VRM_with_Hair"]
    assert names == SHIPPED
    for name in SHIPPED:
        assert bpy.utils.preset_find(name, "armature_dynamics/rig", ext=".json") == str(FOLDER / f"{name}.json")


@pytest.mark.parametrize(("name", "kind"), [("Mixamo", "mixamo"), ("VRM", "vrm"), ("MMD", "mmd"), ("Biped", "biped")])
def test_the_rigs_that_come_along_say_what_make_dynamic_finds(name, kind):
    """Back to where it began, whatever was tried on the bones since."""
    rig = named(kind)
    bpy.ops.armature_dynamics.make_dynamic()
    found = setup.read(rig)
    for bone in rig.pose.bones:
        bone.armature_dynamics.role = "IGNORED"
    assert rig_preset.apply(rig, FOLDER / f"{name}.json") == []
    assert setup.read(rig) == found


def test_the_metarig_and_motion_capture_too(metarig, shared_file):
    """The same for these two."""
    bpy.ops.armature_dynamics.make_dynamic()
    found = setup.read(metarig)
    assert rig_preset.apply(metarig, FOLDER / "Rigify_Metarig.json") == []
    assert setup.read(metarig) == found
    bpy.ops.import_anim.bvh(filepath=str(shared_file("cmu_131_01.bvh")))
    captured = bpy.context.object
    bpy.ops.armature_dynamics.make_dynamic()
    found = setup.read(captured)
    assert rig_preset.apply(captured, FOLDER / "Motion_Capture.json") == []
    assert setup.read(captured) == found


@pytest.mark.slow
def test_the_generated_rig_too(generated_rig):
    """With its map of controls and their switches."""
    bpy.context.view_layer.objects.active = generated_rig
    bpy.ops.armature_dynamics.make_dynamic()
    found = setup.read(generated_rig)
    assert rig_preset.apply(generated_rig, FOLDER / "Rigify.json") == []
    assert setup.read(generated_rig) == found


def test_hair_falls_with_the_body():
    """A preset does what Make Dynamic does not: hair is simulated, light and within its limits."""
    rig = named("vrm")
    assert rig_preset.apply(rig, FOLDER / "VRM_with_Hair.json") == []
    report = simulate(rig, end=20)
    assert report.ok, report.news()
    assert any("J_Sec_Hair2_L" in curve.data_path for curve in curves(rig.animation_data.action))


def test_own_limits_are_mirrored():
    """The other arm bends as far, the other way about y and z."""
    armature = make_rig(
        [
            ("hips", (0, 0, 1), (0, 0, 1.4), None, False),
            ("arm.L", (0.2, 0, 1.4), (0.6, 0, 1.4), "hips", False),
            ("arm.R", (-0.2, 0, 1.4), (-0.6, 0, 1.4), "hips", False),
        ]
    )
    bpy.ops.object.mode_set(mode="EDIT")
    for name in ("arm.L", "arm.R"):
        armature.data.edit_bones[name].align_roll((0, 0, 1))
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.armature_dynamics.make_dynamic()
    own, other = (armature.pose.bones[name].armature_dynamics for name in ("arm.L", "arm.R"))
    own.use_limits, own.limit_lower, own.limit_upper = True, (-0.25, -0.5, -1), (2, 0.125, 0.75)
    assert bpy.ops.armature_dynamics.mirror_settings() == {"FINISHED"}
    assert other.use_limits
    assert (list(other.limit_lower), list(other.limit_upper)) == ([-0.25, -0.125, -0.75], [2, 0.5, 1])
