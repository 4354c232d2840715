"""What is kept goes out through Blender's own exporters and comes back the same: files are how people hand it on."""

import re
from collections.abc import Callable
from typing import NamedTuple

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import compat
from evaluated import evaluated
from rigs import chain, key, make_rig, simulate

START, END = 1, 25

EXACT = 1e-3
"""What a format may lose [m]."""


class Format(NamedTuple):
    """How one is written and read with Blender's own operators, and the add-on that brings them; whether the file says
    where the armature object is."""

    ending: str
    addon: str
    writes: Callable
    reads: Callable
    placed: bool = True


FORMATS = {
    "glTF": Format(
        ".glb",
        "io_scene_gltf2",
        lambda path: bpy.ops.export_scene.gltf(filepath=path),
        lambda path: bpy.ops.import_scene.gltf(filepath=path),
    ),
    "FBX": Format(
        ".fbx",
        "io_scene_fbx",
        lambda path: bpy.ops.export_scene.fbx(filepath=path, bake_anim_simplify_factor=0.0),
        compat.import_fbx,
    ),
    "BVH": Format(
        ".bvh",
        "io_anim_bvh",
        lambda path: bpy.ops.export_anim.bvh(filepath=path, frame_start=START, frame_end=END),
        lambda path: bpy.ops.import_anim.bvh(filepath=path, frame_start=START, axis_forward="Y", axis_up="Z"),
        placed=False,
    ),
    "USD": Format(
        ".usdc",
        "",
        lambda path: bpy.ops.wm.usd_export(filepath=path, export_animation=True),
        lambda path: bpy.ops.wm.usd_import(filepath=path),
    ),
}


@pytest.fixture(params=FORMATS)
def file_format(request):
    """One of the formats; skips where the Blender that runs has no exporter for it."""
    own = FORMATS[request.param]
    if own.addon:
        bpy.ops.preferences.addon_enable(module=own.addon)
    elif "usd_export" not in dir(bpy.ops.wm):
        pytest.skip(f"Blender {bpy.app.version_string} was built without USD")
    return own


def skin(armature):
    """A mesh with a small tetrahedron at each bone, which follows it."""
    corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    bones = armature.data.bones
    vertices = [corner for bone in bones for corner in np.array(bone.head_local) + 0.3 * bone.length * corners]
    faces = [4 * i + np.array(face) for i in range(len(bones)) for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))]
    mesh = bpy.data.meshes.new("Skin")
    mesh.from_pydata(vertices, [], [tuple(map(int, face)) for face in faces])
    thing = bpy.data.objects.new("Skin", mesh)
    bpy.context.collection.objects.link(thing)
    for i, bone in enumerate(bones):
        thing.vertex_groups.new(name=bone.name).add(range(4 * i, 4 * i + 4), 1.0, "REPLACE")
    thing.parent = armature
    thing.modifiers.new("Armature", "ARMATURE").object = armature


def loose():
    """Bones that are not connected, of every kind of rotation, under an armature that is turned, moved and scaled."""
    armature = make_rig(
        [
            ("hips", (0, 0, 1), (0, 0, 1.4), None, False),
            ("chest", (0, 0.05, 1.45), (0, 0, 1.9), "hips", False),
            ("arm.L", (0.2, 0, 1.85), (0.6, 0, 1.8), "chest", False),
            ("arm.R", (-0.2, 0, 1.85), (-0.6, 0, 1.8), "chest", False),
            ("leg.L", (0.1, 0, 0.95), (0.1, 0.02, 0.5), "hips", False),
        ]
    )
    for bone, mode in zip(armature.pose.bones, ("QUATERNION", "XYZ", "AXIS_ANGLE", "ZXY", "QUATERNION")):
        bone.rotation_mode = mode
    armature.location, armature.rotation_euler, armature.scale = (0.3, -2, 0.4), (0.1, 0.2, 1.3), (0.8,) * 3
    return armature


def walker():
    """A chain that has an animation of its own, which stays in the file."""
    armature = chain(4, height=1.2)
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 12: (0.8, 0.6, 0, 0)})
    return armature


def heads(armature):
    """Places of all bones' heads (F, 3) in the world, by name."""
    ends, _ = evaluated(armature, range(START, END + 1))
    return {bone.name: ends[:, i, 0] for i, bone in enumerate(armature.data.bones)}


def kept(armature, **settings):
    """Simulated and kept, with the playback range on it, as people do before they export."""
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = START, END
    report = simulate(armature, START, END, **settings)
    assert report.ok
    bpy.ops.armature_dynamics.keep()


def plain(name):
    """A bone's name with what USD allows."""
    return re.sub(r"\W", "_", name)


def lost(armature, own, path, names=None):
    """How far [m] the heads of bones are off, the worst of all frames, after the kept armature was written and read
    into an empty file; of those called so, or of all."""
    before, world, fps = heads(armature), armature.matrix_world.copy(), bpy.context.scene.render.fps
    result = armature.armature_dynamics.action.name
    own.writes(str(path))
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    bpy.context.scene.render.fps = fps
    own.reads(str(path))
    (armature,) = (thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    if not own.placed:
        armature.matrix_world = world
    # a file with several animations plays the first by name; people choose
    for action in bpy.data.actions:
        if result in action.name:
            compat.assign_action(armature, action, "")
    after = {plain(name): places for name, places in heads(armature).items()}
    before = {name: places for name, places in before.items() if names is None or name in names}
    assert max(np.ptp(places, axis=0).max() for places in before.values()) > 0.3, "nothing fell"
    return max(np.linalg.norm(after[plain(name)] - places, axis=1).max() for name, places in before.items())


@pytest.mark.parametrize("build", [loose, walker], ids=["loose bones", "with a source"])
def test_a_kept_fall_survives_the_way_out_and_back(build, file_format, tmp_path):
    """Keyframes are worth what other programs make of them."""
    armature = build()
    skin(armature)
    kept(armature)
    assert lost(armature, file_format, tmp_path / f"kept{file_format.ending}") < EXACT


def test_reduced_keys_survive_too(file_format, tmp_path):
    """Exporters sample curves: fewer keys with handles must not come out as straight lines."""
    armature = walker()
    skin(armature)
    kept(armature, key_mode="REDUCED")
    assert lost(armature, file_format, tmp_path / f"reduced{file_format.ending}") < EXACT


def test_a_result_in_a_strip_survives(file_format, tmp_path):
    """Exporters take strips apart: each is an animation of its own, or all are evaluated together."""
    armature = walker()
    skin(armature)
    kept(armature, result="STRIP")
    assert lost(armature, file_format, tmp_path / f"strip{file_format.ending}") < EXACT


def test_a_persons_fall_survives(person, file_format, tmp_path):
    """Many bones, names with dots, and bones without keys that are carried along."""
    skin(person)
    kept(person)
    assert lost(person, file_format, tmp_path / f"person{file_format.ending}") < EXACT


def test_a_real_characters_fall_survives(shared_file, file_format, tmp_path):
    """One that came from a file and has a skin and a walk of its own."""
    bpy.ops.import_scene.gltf(filepath=str(shared_file("CesiumMan.glb")))
    (armature,) = (thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    bpy.context.view_layer.objects.active = armature
    kept(armature)
    assert lost(armature, file_format, tmp_path / f"cesium{file_format.ending}") < EXACT


def test_a_generated_rigs_fall_survives_in_its_deform_bones(generated_rig, file_format, tmp_path):
    """Controls get the keys; what other programs need are the bones that deform the skin."""
    bpy.context.view_layer.objects.active = generated_rig
    skin(generated_rig)
    kept(generated_rig)
    deforming = {bone.name for bone in generated_rig.data.bones if bone.use_deform}
    assert lost(generated_rig, file_format, tmp_path / f"rig{file_format.ending}", deforming) < EXACT
