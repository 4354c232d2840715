"""The whole road with real characters: what the program promises holds for each of them."""

import json

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import command, intake
from rigs import simulate

CHARACTERS = {
    "CesiumMan.glb": 17,
    "RiggedFigure.glb": 17,
    "Fox.glb": 22,
    "cmu_131_01.bvh": 18,
    "metarig": 19,
}
"""Files, and the bodies they become."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARACTERS)
def test_a_real_character_becomes_a_ragdoll_and_comes_back(name, request, shared_file, tmp_path):
    """The figures of the issue: joints together, bake exact, nothing sinks, limbs in their ranges, no energy gained."""
    path = request.getfixturevalue("metarig_file") if name == "metarig" else shared_file(name)
    report = tmp_path / "report.json"
    command.run([str(path), "--out", str(tmp_path / "out.blend"), "--report", str(report)], "bake.py")
    measured = json.loads(report.read_text(encoding="utf-8"))
    assert measured["bodies"] == CHARACTERS[name]
    assert measured["joint_separation_max_m"] <= 1e-6
    assert measured["bake_error_max_m"] <= 1e-4 and measured["bake_error_max_deg"] <= 0.01
    assert measured["limit_violation_max_deg"] <= 1.0
    assert measured["ok"], measured["warnings"]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.02, 20.0])
def test_toys_and_giants_keep_the_same_promises(metarig, scale):
    """Small characters jitter elsewhere (field case 27): tolerances go with size."""
    metarig.scale = (scale,) * 3
    bpy.context.view_layer.update()
    report = simulate(metarig, end=36)
    assert report.ok, report.news()


@pytest.mark.slow
def test_muscle_tone_holds_the_animated_pose(shared_file):
    """Between a corpse and a puppet: with tone, limbs stay near the walk."""
    away = []
    for tone in (0.0, 10.0):
        intake.open_input(shared_file("CesiumMan.glb"))
        armature = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
        source = _turns(armature, 30)
        simulate(armature, end=30, tone=tone)
        between = np.abs((_turns(armature, 30) * source).sum(axis=1)).clip(max=1.0)
        away.append(np.degrees(2 * np.arccos(between)).mean())
    assert away[1] < 0.4 * away[0]


def _turns(armature, frame):
    """Each bone's own rotation (n, 4) at a frame."""
    bpy.context.scene.frame_set(frame)
    return np.array([bone.matrix_basis.to_quaternion() for bone in armature.pose.bones])
