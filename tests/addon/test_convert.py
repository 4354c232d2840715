"""Armature object -> Linkage."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import intake, operators
from armature_dynamics.addon.joint_frame import JointFrame
from armature_dynamics.addon.joint_range import widened
from armature_dynamics.addon.rig import ConversionError, read_rig, refuse_hidden
from connecting import carry
from mathutils import Matrix, Quaternion
from rigs import chain, character, make_rig
from staging import cube

HUMANS = ["metarig", "CesiumMan.glb", "RiggedFigure.glb", "cmu_131_01.bvh"]


@pytest.fixture(params=HUMANS)
def human(request, shared_file):
    if request.param == "metarig":
        return request.getfixturevalue("metarig")
    intake.open_input(shared_file(request.param))
    return next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")


def segment_links(person, segment):
    """The links of a segment."""
    links = list(person.linkage.links())
    return [link for link, bone in zip(links, person.bones) if person.anatomy.segments.get(bone) == segment]


def test_humans_become_fifteen_to_twenty_bodies(human):
    """Fingers, faces and helpers as bodies would cost time and jitter."""
    person, _ = character(human)
    assert person.anatomy is not None
    assert 15 <= len(person.bones) <= 20


def test_a_human_weighs_what_a_person_of_that_height_does(human):
    """A ragdoll of the wrong mass falls right but hits wrong."""
    person, _ = character(human)
    mass = sum(link.mass for link in person.linkage.links())
    assert mass == pytest.approx(70 * (person.height / 1.75) ** 3, rel=1e-9)
    thighs = segment_links(person, "thigh")
    assert thighs[0].mass / mass == pytest.approx(0.1416, rel=0.01)


def test_the_users_mass_is_the_total(metarig):
    """Who knows the mass must not need to know its distribution."""
    person, _ = character(metarig, mass=80.0)
    assert sum(link.mass for link in person.linkage.links()) == pytest.approx(80.0)


@pytest.mark.parametrize(("segment", "forward"), [("shank", -1), ("forearm", 1)])
def test_knees_bend_backwards_and_elbows_forwards(human, segment, forward):
    """A knee that bends the other way is the mistake everyone sees."""
    person, _ = character(human)
    front = person.anatomy.axes[:, 1]
    bent = Matrix.Rotation(np.pi / 2, 3, "X")
    hinges = segment_links(person, segment)
    assert len(hinges) == 2
    for link in hinges:
        assert link.joint.kind == "hinge"
        rest = person.rig.rest[person.bones[list(person.linkage.links()).index(link.parent)], :3, :3]
        parent = rest @ person.offsets[list(person.linkage.links()).index(link.parent)]
        direction = (parent @ link.rotation @ np.array(bent))[:, 1]
        assert forward * direction @ front > 0.9
        assert link.joint.lower[0] <= 0 and np.degrees(link.joint.upper[0]) > 120


def test_a_bent_rest_pose_counts_within_the_range(shared_file):
    """CesiumMan stands with knees bent by 25°: his knee has 105° left, not 130°."""
    intake.open_input(shared_file("CesiumMan.glb"))
    armature = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    person, _ = character(armature)
    links = list(person.linkage.links())
    for knee in segment_links(person, "shank"):
        thigh, shank = (person.bones[links.index(link)] for link in (knee.parent, knee))
        parent = person.rig.rest[thigh, :3, :3] @ person.offsets[links.index(knee.parent)]
        rest = person.rig.rest[shank, :3, :3] @ person.offsets[links.index(knee)]
        turn = Matrix((parent @ knee.rotation).T @ rest).to_quaternion()
        assert np.degrees(2 * np.arctan2(turn.x, turn.w)) == pytest.approx(25, abs=3)


POSES = [
    ("thigh.L", "front", 100, True),
    ("thigh.L", "front", -60, False),
    ("thigh.L", "side", 40, True),
    ("thigh.L", "side", -60, False),
    ("thigh.R", "side", -40, True),
    ("upper_arm.L", "side", 100, True),
    ("upper_arm.R", "side", -100, True),
    ("upper_arm.L", "front", 80, True),
    ("upper_arm.R", "front", 80, True),
    ("shin.L", "front", -110, True),
    ("shin.L", "front", 45, False),
    ("forearm.R", "front", 90, True),
    ("foot.L", "front", 45, False),
    ("foot.L", "front", -40, True),
    ("spine.006", "side", 15, True),
    ("spine.006", "side", 40, False),
]


@pytest.mark.parametrize(("bone", "toward", "angle", "human"), POSES)
def test_ranges_are_those_of_people(metarig, bone, toward, angle, human):
    """Poses that people can take start as they are; others are taken too, but the range is widened and it is said."""
    # the metarig looks along -y: what hangs down swings forward about -x, and toward its left about -y
    axis = {"front": (-1, 0, 0), "side": (0, -1, 0)}[toward]
    turn_in_world(metarig, bone, Quaternion(axis, np.radians(angle)))
    person, _ = character(metarig)
    widened = [warning.bone for warning in person.warnings if warning.code == "limit_widened"]
    assert widened == ([] if human else [bone])


def turn_in_world(armature, bone, turn):
    """Turns a pose bone about its head by a rotation in the armature's axes."""
    pose_bone = armature.pose.bones[bone]
    bpy.context.view_layer.update()
    head = Matrix.Translation(pose_bone.head)
    pose_bone.matrix = head @ turn.to_matrix().to_4x4() @ head.inverted() @ pose_bone.matrix
    bpy.context.view_layer.update()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("angles", [(0.0, 0.0, 0.0), (0.3, 0.0, -0.2), (-0.1, 0.2, 0.0)])
def test_a_range_of_nothing_is_widened_to_the_start_pose(angles):
    """A joint that is locked about an axis may start turned about it: its limits must be numbers that hold the pose."""
    frame = JointFrame("spherical", np.eye(3), np.eye(3), np.zeros(3), np.zeros(3))
    lower, upper, outside = widened(frame, np.array(angles))
    assert (lower <= angles).all() and (angles <= upper).all()
    assert np.isfinite([lower, upper]).all()
    assert outside == pytest.approx(max(np.hypot(angles[0], angles[2]), abs(angles[1])), abs=1e-6)
    sides = np.where(np.array(angles) < 0, -lower, upper)[[0, 2]]
    assert np.hypot(*(np.array(angles)[[0, 2]] / sides)) <= 1.0


def test_any_start_pose_is_reached_exactly(metarig):
    """Starting in any pose but the rest pose explodes elsewhere (field case 28)."""
    rng = np.random.default_rng(5)
    for bone in metarig.pose.bones:
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion(rng.normal(size=3), rng.uniform(-0.6, 0.6))
    metarig.pose.bones["thigh.L"].location = (0.03, -0.02, 0.05)
    person, motion = character(metarig)
    from armature_dynamics.core import Motion, Simulation, compile_model

    poses = person.link_poses(motion)
    model = compile_model(person.linkage)
    simulation = Simulation(model, motion=Motion(poses, 1 / 24))
    next(simulation.run(1))
    assert np.abs(simulation.trajectory.poses()[0] - poses[0]).max() < 1e-6
    assert simulation.trajectory.limit_violation[0] == 0


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_scale_rotation_and_parents_are_folded_in(scale):
    """Mixamo and FBX characters come at 0.01 or 100, turned and parented (field case 21)."""
    plain, _ = character(chain())
    rows = [
        (
            f"b{i}",
            (0.3 * i / scale, 0, 2 / scale),
            (0.3 * (i + 1) / scale, 0, 2 / scale),
            f"b{i - 1}" if i else None,
            i > 0,
        )
        for i in range(4)
    ]
    armature = make_rig(rows, "Scaled")
    parent = bpy.data.objects.new("Parent", None)
    bpy.context.collection.objects.link(parent)
    armature.parent = parent
    parent.scale = (scale,) * 3
    parent.rotation_euler = (0.3, 0.4, 0.5)
    scaled, _ = character(armature)
    for a, b in zip(plain.linkage.links(), scaled.linkage.links()):
        assert b.mass == pytest.approx(a.mass, rel=1e-4)
        assert np.linalg.norm(b.center_of_mass) == pytest.approx(np.linalg.norm(a.center_of_mass), rel=1e-4)
        assert b.shapes[0].radius == pytest.approx(a.shapes[0].radius, rel=1e-4)


@pytest.mark.parametrize(
    ("scale", "reason"),
    [
        ((1, 1, 2), "differs between axes"),
        ((-1, 1, 1), "negative"),
        ((0, 1, 1), "zero"),
        ((float("nan"), 1, 1), "finite"),
    ],
)
def test_scales_without_meaning_are_refused(scale, reason):
    """A stretched rig has no masses and no angles; the animator is told to apply the scale."""
    armature = chain()
    armature.scale = scale
    bpy.context.view_layer.update()
    with pytest.raises(ConversionError, match=f"'Rig'.*{reason}.*scale"):
        read_rig(armature)


def test_what_cannot_be_dynamic_is_refused_by_name():
    """One line that says what is wrong with which object and what to do."""
    with pytest.raises(ConversionError, match="select an armature"):
        read_rig(None)
    cube = bpy.data.objects.new("Cube", bpy.data.meshes.new("Cube"))
    with pytest.raises(ConversionError, match="'Cube' is not an armature"):
        read_rig(cube)
    with pytest.raises(ConversionError, match="'Bare' has no bones"):
        read_rig(make_rig([], "Bare"))
    armature = chain(2, "Idle")
    with pytest.raises(ConversionError, match=r"'Idle'.*ignored"):
        character(armature, roles=["IGNORED"] * 2)


def test_an_armature_that_cannot_move_now_is_refused():
    """In Edit Mode and in rest position no key would show."""
    armature = chain(2)
    armature.data.pose_position = "REST"
    with pytest.raises(ConversionError, match="Pose Position"):
        read_rig(armature)
    armature.data.pose_position = "POSE"
    bpy.ops.object.mode_set(mode="EDIT")
    with pytest.raises(ConversionError, match="Edit Mode"):
        read_rig(armature)
    bpy.ops.object.mode_set(mode="OBJECT")


@pytest.mark.parametrize("how", ["object", "collection", "layer"])
def test_a_hidden_armature_is_refused(how):
    """Blender does not evaluate it: every frame would show the same pose."""
    armature = chain(2)
    collection = bpy.data.collections.new("Hidden")
    bpy.context.scene.collection.children.link(collection)
    collection.objects.link(armature)
    bpy.context.scene.collection.objects.unlink(armature)
    skin = bpy.data.objects.new("Skin", bpy.data.meshes.new("Skin"))
    bpy.context.scene.collection.objects.link(skin)
    skin.modifiers.new("Armature", "ARMATURE").object = armature
    armature.hide_set(True)
    refuse_hidden(armature)
    armature.hide_set(False)
    armature.hide_viewport = how == "object"
    collection.hide_viewport = how == "collection"
    bpy.context.view_layer.layer_collection.children["Hidden"].exclude = how == "layer"
    with pytest.raises(ConversionError, match=r"'Rig' is hidden.*show it"):
        refuse_hidden(armature)


def test_a_mirrored_bone_is_refused_by_name():
    """No rotation mirrors: the bone would turn inside out."""
    armature = chain(3)
    armature.pose.bones["bone1"].scale = (-1, 1, 1)
    with pytest.raises(ConversionError, match=r"'bone1': it is mirrored.*positive"):
        character(armature)


def test_a_linked_armature_is_refused(tmp_path):
    """Keys cannot be written to what is read-only; an override can."""
    chain(2, "Linked")
    path = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(path), link=True) as (_, data):
        data.objects = ["Linked"]
    bpy.context.collection.objects.link(data.objects[0])
    with pytest.raises(ConversionError, match=r"'Linked' is linked.*override"):
        read_rig(data.objects[0])


def test_bones_without_a_body_are_welded_and_listed(metarig):
    """The animator sees which bones are carried along, and by which (field case 23)."""
    person, _ = character(metarig)
    reasons = {warning.bone: warning.code for warning in person.warnings}
    assert reasons["f_index.01.L"] == "welded_finger"
    assert reasons["jaw"] == "welded_face"
    assert reasons["toe.R"] == "welded_toe"
    assert len(reasons) == len(metarig.data.bones) - len(person.bones)


def test_zero_length_bones_are_welded(shared_file):
    """BVH files have joints on top of each other; a body without length has no inertia (field case 23)."""
    intake.open_input(shared_file("cmu_131_01.bvh"))
    person, _ = character(next(thing for thing in bpy.data.objects if thing.type == "ARMATURE"))
    reasons = {warning.bone: warning.code for warning in person.warnings}
    assert reasons["Chest2"] == "welded_zero_length"
    assert reasons["LHipJoint"].startswith("welded_")


def test_an_animal_gets_a_body_for_each_bone_that_moves_skin(shared_file):
    """Unknown rigs must work too: the fox's two empty root bones stay, its 22 bones with skin are bodies."""
    intake.open_input(shared_file("Fox.glb"))
    armature = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    person, _ = character(armature)
    assert person.anatomy is None
    assert len(person.bones) == 22
    assert {link.joint.kind for link in person.linkage.links()} == {"free", "spherical"}
    assert 0.4 < person.height < 1.2


def test_colliders_follow_the_skin(shared_file):
    """The tails of glTF bones point anywhere; a thigh is found by the skin around it (field case 23)."""
    intake.open_input(shared_file("CesiumMan.glb"))
    person, _ = character(next(thing for thing in bpy.data.objects if thing.type == "ARMATURE"))
    for thigh in segment_links(person, "thigh"):
        capsule = thigh.shapes[0]
        assert 0.03 < capsule.radius < 0.1
        # along the thigh, which is the link's y
        along = np.abs(capsule.end - capsule.start)
        assert along[1] > 3 * max(along[0], along[2])


def test_half_a_mesh_with_a_mirror_is_a_whole_skin():
    """Characters are modelled by halves; the other half's limbs are bodies too."""
    armature = make_rig(
        [
            ("root", (0, 0, 1), (0, 0, 1.5), None, False),
            ("arm.L", (0.2, 0, 1.4), (0.8, 0, 1.4), "root", False),
            ("arm.R", (-0.2, 0, 1.4), (-0.8, 0, 1.4), "root", False),
        ]
    )
    bpy.ops.mesh.primitive_cube_add(size=1, location=(0, 0, 0))
    mesh = bpy.context.object
    for vertex in mesh.data.vertices:
        vertex.co = (0.5 + 0.6 * vertex.co.x, 0.1 * vertex.co.y, 1.4 + 0.1 * vertex.co.z)
    mesh.vertex_groups.new(name="arm.L").add(range(8), 1.0, "REPLACE")
    mesh.modifiers.new("Mirror", "MIRROR")
    mesh.modifiers.new("Armature", "ARMATURE").object = armature
    person, _ = character(armature)
    left, right = (person.linkage[name].shapes[0] for name in ("arm.L", "arm.R"))
    assert left.radius == pytest.approx(right.radius) and left.radius < 0.1


def test_a_rig_with_two_roots_becomes_two_bodies_and_a_pole_none():
    """IK poles are not limbs; a second root falls on its own."""
    armature = make_rig(
        [
            ("a", (0, 0, 1), (0, 0, 2), None, False),
            ("b", (2, 0, 1), (2, 0, 2), None, False),
            ("knee_pole", (0, -2, 1), (0, -2, 1.5), None, False),
        ]
    )
    person, _ = character(armature)
    assert [link.name for link in person.linkage.links()] == ["a", "b"]
    assert {link.joint.kind for link in person.linkage.links()} == {"free"}


@pytest.mark.parametrize(
    ("naming", "names"),
    [
        ("Mixamo", ["mixamorig:Hips", "mixamorig:Spine", "mixamorig:Spine1", "mixamorig:Neck", "mixamorig:Head",
                    "mixamorig:{}Arm", "mixamorig:{}ForeArm", "mixamorig:{}Hand",
                    "mixamorig:{}UpLeg", "mixamorig:{}Leg", "mixamorig:{}Foot", ("Left", "Right")]),
        ("VRM", ["J_Bip_C_Hips", "J_Bip_C_Spine", "J_Bip_C_Chest", "J_Bip_C_Neck", "J_Bip_C_Head",
                 "J_Bip_{}_UpperArm", "J_Bip_{}_LowerArm", "J_Bip_{}_Hand",
                 "J_Bip_{}_UpperLeg", "J_Bip_{}_LowerLeg", "J_Bip_{}_Foot", ("L", "R")]),
        ("MMD", ["センター", "上半身", "上半身2", "首", "頭", "{}腕", "{}ひじ", "{}手首",
                 "{}足", "{}ひざ", "{}足首", ("左", "右")]),
        ("Unreal mannequin", ["pelvis", "spine_01", "spine_02", "neck_01", "head",
                              "upperarm_{}", "lowerarm_{}", "hand_{}",
                              "thigh_{}", "calf_{}", "foot_{}", ("l", "r")]),
        ("3ds Max Biped", ["Bip001 Pelvis", "Bip001 Spine", "Bip001 Spine1", "Bip001 Neck", "Bip001 Head",
                           "Bip001 {} UpperArm", "Bip001 {} Forearm", "Bip001 {} Hand",
                           "Bip001 {} Thigh", "Bip001 {} Calf", "Bip001 {} Foot", ("L", "R")]),
        ("3ds Max Biped", ["ValveBiped.Bip01_Pelvis", "ValveBiped.Bip01_Spine", "ValveBiped.Bip01_Spine1",
                           "ValveBiped.Bip01_Neck1", "ValveBiped.Bip01_Head1", "ValveBiped.Bip01_{}_UpperArm",
                           "ValveBiped.Bip01_{}_Forearm", "ValveBiped.Bip01_{}_Hand", "ValveBiped.Bip01_{}_Thigh",
                           "ValveBiped.Bip01_{}_Calf", "ValveBiped.Bip01_{}_Foot", ("L", "R")]),
        ("DAZ", ["hip", "abdomenLower", "chestLower", "neckLower", "head", "{}ShldrBend", "{}ForearmBend", "{}Hand",
                 "{}ThighBend", "{}Shin", "{}Foot", ("l", "r")]),
        ("DAZ", ["hip", "abdomen", "chest", "neck", "head", "{}Shldr", "{}ForeArm", "{}Hand",
                 "{}Thigh", "{}Shin", "{}Foot", ("l", "r")]),
        ("MakeHuman", ["root", "spine05", "spine04", "neck01", "head", "upperarm01.{}", "lowerarm01.{}", "wrist.{}",
                       "upperleg01.{}", "lowerleg01.{}", "foot.{}", ("L", "R")]),
        ("Plain humanoid", ["Hips", "Spine", "Chest", "Neck", "Head", "{}UpperArm", "{}LowerArm", "{}Hand",
                            "{}UpperLeg", "{}LowerLeg", "{}Foot", ("Left", "Right")]),
    ],
)  # fmt: skip
def test_common_namings_are_recognised(naming, names):
    """A rig straight from its shop is a person without any settings; in a T-pose its arms bend forward."""
    pelvis, spine, chest, neck, head, arm, forearm, hand, thigh, shank, foot, sides = names
    rows = [
        (pelvis, (0, 0, 1.0), (0, 0, 1.1), None, False),
        (spine, (0, 0, 1.1), (0, 0, 1.3), pelvis, True),
        (chest, (0, 0, 1.3), (0, 0, 1.5), spine, True),
        (neck, (0, 0, 1.5), (0, 0, 1.6), chest, True),
        (head, (0, 0, 1.6), (0, 0, 1.8), neck, True),
    ]
    for side, x in zip(sides, (1, -1)):
        rows += [
            (arm.format(side), (0.2 * x, 0, 1.45), (0.5 * x, 0, 1.45), chest, False),
            (forearm.format(side), (0.5 * x, 0, 1.45), (0.75 * x, 0, 1.45), arm.format(side), True),
            (hand.format(side), (0.75 * x, 0, 1.45), (0.9 * x, 0, 1.45), forearm.format(side), True),
            (thigh.format(side), (0.1 * x, 0, 1.0), (0.1 * x, 0, 0.55), pelvis, False),
            (shank.format(side), (0.1 * x, 0, 0.55), (0.1 * x, 0, 0.1), thigh.format(side), True),
            (foot.format(side), (0.1 * x, 0, 0.1), (0.1 * x, -0.15, 0.02), shank.format(side), True),
        ]
    person, _ = character(make_rig(rows))
    assert person.anatomy.naming == naming
    assert len(person.bones) == 17
    links = list(person.linkage.links())
    for elbow in segment_links(person, "forearm"):
        parent = (
            person.rig.rest[person.bones[links.index(elbow.parent)], :3, :3] @ person.offsets[links.index(elbow.parent)]
        )
        bent = parent @ elbow.rotation @ np.array(Matrix.Rotation(np.pi / 2, 3, "X"))
        assert -bent[1, 1] > 0.99
    assert not [warning for warning in person.warnings if warning.code == "limit_widened"]


def test_an_animal_with_a_humans_names_is_no_human():
    """Rigify's horse and cat have upper arms and thighs: as people they would hang from the world by their rump."""
    rows = [
        ("Hips", (0, 0.6, 1.0), (0, 0.4, 1.0), None, False),
        ("Spine", (0, 0.4, 1.0), (0, 0, 1.0), "Hips", True),
        ("Chest", (0, 0, 1.0), (0, -0.5, 1.0), "Spine", True),
        ("Neck", (0, -0.5, 1.0), (0, -0.7, 1.2), "Chest", True),
        ("Head", (0, -0.7, 1.2), (0, -1.0, 1.2), "Neck", True),
    ]
    for side, x in (("Left", 0.1), ("Right", -0.1)):
        for upper, lower, end, y, carrier in (
            ("UpperArm", "LowerArm", "Hand", -0.4, "Chest"),
            ("UpperLeg", "LowerLeg", "Foot", 0.6, "Hips"),
        ):
            rows += [
                (side + upper, (x, y, 0.9), (x, y, 0.5), carrier, False),
                (side + lower, (x, y, 0.5), (x, y, 0.1), side + upper, True),
                (side + end, (x, y, 0.1), (x, y - 0.1, 0), side + lower, True),
            ]
    animal, _ = character(make_rig(rows))
    assert animal.anatomy is None
    assert next(animal.linkage.links()).joint.kind == "free"


@pytest.mark.parametrize(
    ("holding", "simulated"),
    [
        ([5], [0, 1, 2, 3, 4, 5]),
        ([3, 5], [0, 1, 2, 3, 4, 5]),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
        ([0, 2, 4], [0, 2, 4]),
    ],
    ids=["a sword", "a sword and a shield", "a robot on its base", "a robot with links between its parts"],
)
def test_what_a_bone_holds_does_not_make_the_others_no_bodies(holding, simulated):
    """Parts that hang from most bones are the body; what hangs from few is a prop, and the bones are bodies as they are
    without it."""
    armature = chain(6)
    for number in holding:
        carry(cube(size=0.1), armature, f"bone{number}", "parent")
    operators.make_dynamic(armature)
    roles = [bone.armature_dynamics.role for bone in armature.pose.bones]
    assert [number for number, role in enumerate(roles) if role == "SIMULATED"] == simulated


def test_the_default_roles_are_written_to_the_bones(metarig):
    """What the program decided is there to see and to change."""
    naming, simulated, carried = operators.make_dynamic(metarig)
    assert naming == "Rigify" and simulated == 19 and carried == 140
    assert metarig.pose.bones["thigh.L"].armature_dynamics.role == "SIMULATED"
    assert metarig.pose.bones["jaw"].armature_dynamics.role == "IGNORED"
