"""Field cases that no other test shows, on real rigs; docs/field-cases.md says which test shows which case."""

import ast
import importlib.util
import random
import sys

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import take
from armature_dynamics.addon.source import action_range
from conftest import ROOT
from evaluated import evaluated
from rigs import curves, key, simulate, straighten
from staging import collected, mesh_object


def test_frames_shown_in_any_order_are_the_same(metarig):
    """Dropped frames, jumps and scrubbing change what other tools show (field cases 1 and 2); here keys are read."""
    simulate(metarig, end=30)
    bpy.ops.armature_dynamics.keep()
    forward, _ = evaluated(metarig, range(1, 31))
    frames = list(range(1, 31))
    random.Random(1).shuffle(frames)
    shuffled, _ = evaluated(metarig, frames)
    assert np.array_equal(shuffled, forward[[frame - 1 for frame in frames]])
    jumped, _ = evaluated(metarig, [1, 30])
    assert np.array_equal(jumped[1], forward[-1])


def test_a_take_may_start_anywhere(metarig):
    """Starting in mid-timeline gives garbage elsewhere (field case 3): from frame 157 it falls as from frame 1."""
    metarig.pose.bones["spine"].location = (0, 1.0, 0)
    simulate(metarig, start=1, end=20)
    first, _ = evaluated(metarig, range(1, 21))
    bpy.ops.armature_dynamics.discard()
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 150, 190
    bpy.context.scene.frame_set(150)
    simulate(metarig, start=157, end=176)
    later, _ = evaluated(metarig, range(157, 177))
    assert np.array_equal(first, later)
    assert action_range(metarig) == (157, 176)


def test_fractional_ranges_are_taken_as_whole_frames(shared_file):
    """An imported action from 0.9999988 to 48.0 crashes other tools (field case 7)."""
    bpy.ops.import_scene.gltf(filepath=str(shared_file("CesiumMan.glb")))
    armature = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    bpy.context.view_layer.objects.active = armature
    for curve in curves(armature.animation_data.action):
        for point in curve.keyframe_points:
            point.co.x += 0.4
    assert armature.animation_data.action.frame_range[0] % 1 > 0.1
    bpy.ops.armature_dynamics.make_dynamic()
    settings = armature.armature_dynamics
    assert (settings.frame_start, settings.frame_end) == (1, 48)
    with pytest.raises(TypeError):
        settings.frame_start = 1.5
    settings.frame_end = 6
    assert bpy.ops.armature_dynamics.simulate() == {"FINISHED"}


def test_versions_are_compared_whole():
    """`version[0] >= 4 and version[1] > 0` is false on 5.0 (field case 9): nobody looks at a part of a version."""
    parts = [
        f"{path.name}:{node.lineno}"
        for path in [ROOT / "__init__.py", *sorted((ROOT / "addon").glob("*.py"))]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("version")
    ]
    assert parts == []


def test_writing_keys_evaluates_no_frame(metarig):
    """Keying bone by bone and frame by frame takes others an hour (field case 18): no frame is shown meanwhile."""
    settings, looks, writing = metarig.armature_dynamics, [], []
    bpy.context.view_layer.objects.active = metarig
    bpy.ops.armature_dynamics.make_dynamic()
    settings.frame_end = 40

    def look(*_):
        looks.append(bpy.context.scene.frame_current)

    bpy.app.handlers.frame_change_post.append(look)
    try:
        for name, _ in take.take(metarig):
            if name == "bake":
                writing.append(len(looks))
    finally:
        bpy.app.handlers.frame_change_post.remove(look)
    assert len(writing) >= 40 and len(set(writing)) == 1
    assert looks, "the handler works"


def _thrown(armature, speed, turns):
    """Flies along -y with so many m/s and turns about its length so many times a second, until frame 5."""
    root = armature.pose.bones["spine"]
    root.rotation_mode = "XYZ"
    rate = bpy.context.scene.render.fps
    for frame in (1, 2, 3, 4, 5):
        key(armature, "spine", "location", {frame: (0, 0, speed * (frame - 1) / rate)})
        key(armature, "spine", "rotation_euler", {frame: (0, 2 * np.pi * turns * (frame - 1) / rate, 0)})
    straighten(armature)


def test_joints_hold_in_fast_motion(metarig):
    """Limbs fly off other ragdolls (field case 24): at 20 m/s and three turns a second all of them hold."""
    _thrown(metarig, speed=20.0, turns=3.0)
    report = simulate(metarig, start=3, end=60)
    assert report.joint_separation_max_m <= 1e-5, report.news()
    names = [bone.name for bone in metarig.data.bones]
    ends, _ = evaluated(metarig, range(3, 61))
    assert np.linalg.norm(np.diff(ends[:, names.index("hand.L"), 0], axis=0), axis=-1).max() > 0.5, "it is fast"
    pairs = [(bone.name, bone.parent.name) for bone in metarig.data.bones if bone.use_connect]
    gaps = [ends[:, names.index(a), 0] - ends[:, names.index(b), 1] for a, b in pairs]
    assert np.linalg.norm(gaps, axis=-1).max() <= 1e-4


@pytest.mark.slow
def test_a_thrown_rig_does_not_pass_a_sheet(metarig):
    """Thin colliders are passed through elsewhere (field case 25): a mesh of no thickness at all stops 15 m/s."""
    _thrown(metarig, speed=15.0, turns=0.0)
    wall = mesh_object("Wall", [(-5, -3, -5), (5, -3, -5), (5, -3, 5), (-5, -3, 5)], [(0, 1, 2, 3)])
    report = simulate(metarig, start=3, end=40, scenery=collected(wall))
    assert report.ok, report.news()
    ends, _ = evaluated(metarig, range(3, 41))
    assert ends[0, :, 0, 1].min() > -3.0, "it starts before the wall"
    body = [i for i, bone in enumerate(metarig.pose.bones) if bone.armature_dynamics.role == "SIMULATED"]
    assert ends[:, body, 0, 1].min() > -3.0
    assert ends[-1, body, 0, 1].min() < -2.0, "it reached the wall"


def test_the_oldest_and_the_newest_blender_are_tested():
    """An update breaks add-ons that nobody tries with it (field case 32)."""
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("environment", ROOT / "scripts" / "environment.py")
    environment = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = environment
    spec.loader.exec_module(environment)
    assert {"4.2", "4.5", "5.0", "newest"} <= set(environment.BLENDERS)
    assert 'blender_version_min = "4.2.0"' in (ROOT / "blender_manifest.toml").read_text(encoding="utf-8")
