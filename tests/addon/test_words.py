"""The interface in another language: nothing is forgotten, and messages are translated whole."""

import re
import string

import bpy
import pytest
import shown
from armature_dynamics import addon
from armature_dynamics.addon import operators, preflight, setup, words
from armature_dynamics.addon.problem import ConversionError
from connecting import connect, empty, key_enabled
from rigs import chain, key, make_rig, simulate

ENGLISH = re.compile(r"\b(the|is|are|it|its|of|with|and|from|not|this|that|which|or|to|than|bones?|keys?|turn|set)\b")


@pytest.fixture(params=words.languages())
def language(request):
    return request.param


def test_there_is_a_language():
    """One completely."""
    assert "de" in words.languages()


def test_every_text_is_in_the_dictionary(language):
    """Whoever adds a label, a tooltip or a message adds it there."""
    texts, known = shown.all_texts(), words.dictionary(language)
    assert len(texts) > 500
    assert [text for text in texts if text not in known] == []
    assert [text for text in known if text not in texts] == []


def test_translations_have_the_same_holes(language):
    """Numbers and names that are only known later are neither lost nor made up, and lists stay lists."""
    for english, word in words.dictionary(language).items():
        count = english.count("{}")
        holes = [name for _, name, _, _ in string.Formatter().parse(word) if name is not None]
        assert sorted(holes) in ([""] * count, [str(i) for i in range(count)]), english
        word.format(*range(count))
        assert (english[:1] == " ", english[-1:] == " ") == (word[:1] == " ", word[-1:] == " "), english
        assert not ENGLISH.search(word), word


def test_units_stay(language):
    """A tooltip's unit is worth as much in every language."""
    for english, word in words.dictionary(language).items():
        if english.endswith("]"):
            assert word.endswith("]"), english


def clumsy():
    """A rig with many things wrong."""
    armature = make_rig(
        [
            ("hips", (0, 0, 1), (0, 0, 1.4), None, False),
            ("Head", (0, 0, 1.4), (0, 0, 1.401), "hips", True),
            ("arm.L", (0.2, 0, 1.4), (0.6, 0, 1.4), "hips", False),
            ("arm.R", (-0.2, 0, 1.4), (-0.6, 0, 1.4), "hips", False),
            ("loose", (2, 0, 1), (2, 0, 1.5), None, False),
        ]
    )
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones["arm.R"].roll = 1.0
    bpy.ops.object.mode_set(mode="OBJECT")
    operators.make_dynamic(armature)
    for bone in armature.pose.bones:
        bone.armature_dynamics.role = "SIMULATED"
    armature.pose.bones["arm.L"].lock_location = armature.pose.bones["arm.L"].lock_rotation = (True, True, False)
    armature.pose.bones["loose"].lock_location = (True, False, True)
    armature.pose.bones["arm.R"].constraints.new("LIMIT_ROTATION")
    armature.pose.bones["arm.R"].driver_add("location", 0)
    armature.pose.bones["arm.L"].armature_dynamics.shape = "NONE"
    armature.armature_dynamics.use_ground = False
    return armature


def untranslated(text, language):
    """The lines of a message that are English still."""
    return [line for line in words.said(text, language).splitlines() if ENGLISH.search(re.sub(r"'[^']*'", "", line))]


def test_what_pre_flight_finds_is_translated(language):
    """Problems are put together from bones, what is wrong, and what to do."""
    armature = clumsy()
    assert preflight.check(armature) > 5
    lines = "\n".join(problem.text for problem in armature.armature_dynamics.problems)
    assert untranslated(lines, language) == []
    assert [line for line in words.said(lines, language).splitlines() if line.startswith("Head: ")]


def test_results_and_warnings_are_translated(language):
    """All that a simulation says."""
    armature = clumsy()
    key(armature, "hips", "location", {1: (0, 0, 0), 13: (1, 0, 0)})
    connect(armature, "hips", empty("Bar", (0, 0, 1)), at="HEAD", target_at="HEAD", name="Hand")
    key_enabled(armature, {1: True, 5: False, 40: True})
    armature.armature_dynamics.mute_constraints = True
    report = simulate(armature, key_mode="REDUCED", loop_most=2)
    own = armature.armature_dynamics
    assert len(own.summary.splitlines()) > 10 and len(own.warnings.splitlines()) > 3
    assert untranslated(f"{own.summary}\n{own.warnings}", language) == []
    assert untranslated("; ".join(report.lines()), language) == []


REFUSED = {
    "blending": lambda armature: setattr(armature.armature_dynamics, "blend_in", 100),
    "roles": lambda armature: [setattr(bone.armature_dynamics, "role", "IGNORED") for bone in armature.pose.bones],
    "scale": lambda armature: setattr(armature, "scale", (1, 2, 1)),
    "mirrored": lambda armature: setattr(armature, "scale", (-1, 1, 1)),
    "hidden": lambda armature: setattr(armature, "hide_viewport", True),
    "hidden by keys": lambda armature: [
        setattr(armature, "hide_viewport", True),
        armature.keyframe_insert("hide_viewport", frame=1),
    ],
    "rest": lambda armature: setattr(armature.data, "pose_position", "REST"),
    "pose": lambda armature: setattr(armature.pose.bones[1], "scale", (0, 0, 0)),
    "target": lambda armature: connect(armature, "bone1", armature, "bone9"),
    "ends": lambda armature: connect(armature, "bone1", armature, "bone1"),
    "apart": lambda armature: connect(armature, "bone1", empty("Bar", (9, 9, 9)), target_at="HEAD"),
    "grab": lambda armature: connect(armature, "bone1", kind="HINGE", grab_distance=1.0),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals_are_translated(what, language):
    """One line that says what to do is no help in a language one does not read."""
    armature = chain(3)
    operators.make_dynamic(armature)
    REFUSED[what](armature)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        simulate(armature)
    message = str(error.value)
    assert words.said(message, language) != message and untranslated(message, language) == []


def test_settings_are_called_by_their_labels(language):
    """What a message tells to turn on is called as on the panel."""
    known = words.dictionary(language)
    assert known["Mute Drivers"] in words.said("arm: the driver of its location[0]: it fights the keys; turn on "
                                               "Mute Drivers", language)  # fmt: skip
    content = setup.read(chain(1))
    content["armature"]["mass"] = "heavy"
    with pytest.raises(ConversionError) as error:
        setup.apply(bpy.context.object, content)
    assert known["Mass"] in words.said(str(error.value), language)


def test_names_stay_as_they_are(language):
    """A bone that is called Head is not renamed in a warning."""
    line = words.said("Head: it overlaps 'Tail' at the start, so that they pass through each other; pose them apart at "
                      "the start frame. Also Hair and Wood, Fix and Pin and 3 more", language)  # fmt: skip
    assert line.startswith("Head: ") and "'Tail'" in line and "Hair and Wood, Fix and Pin" in line
    assert "3 more" not in line and "Also" not in line


def test_english_stays_english():
    """Where Blender speaks English, or a language without a dictionary, messages are as they were made."""
    assert words.language() == ""
    line = "frames 20 to 10 are not a range; the end must come after the start"
    assert words.said(line) == line == words.said(line, "")


def test_blender_gets_labels_buttons_and_tooltips(monkeypatch):
    """In both of its contexts, under both names of the language, and tooltips with their line breaks."""
    catalogs = {}
    monkeypatch.setattr(words, "bpy", type("Bpy", (), {"app": type("App", (), {"translations": type("T", (), {
        "register": staticmethod(lambda name, given: catalogs.update(given))})})}))  # fmt: skip
    words.register(addon.CLASSES)
    assert set(catalogs) == {"de", "de_DE"}
    german, known = catalogs["de_DE"], words.dictionary("de")
    assert german["*", "Muscle Tone"] == german["Operator", "Muscle Tone"] == known["Muscle Tone"]
    for cls in addon.CLASSES:
        if issubclass(cls, bpy.types.Operator):
            seen = getattr(bpy.ops.armature_dynamics, cls.bl_idname.split(".")[1]).get_rna_type().description
            assert german["*", seen], seen
    assert not [text for _, text in german if "{}" in text]


def test_settings_have_a_context_of_their_own():
    """Blender's own catalog has some of the words for something else."""
    armature = chain(1)
    connect(armature, "bone0")
    own, bone = armature.armature_dynamics, armature.pose.bones[0]
    groups = {
        own: "restitution",
        own.scenery_surface: "friction",
        own.connections[0]: "kind",
        bone: "armature_dynamics_follow",
    }
    for group, name in groups.items():
        assert group.bl_rna.properties[name].translation_context == words.NAME
