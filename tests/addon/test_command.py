"""The command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import bpy
import pytest
from armature_dynamics.addon import command, data_file
from conftest import ROOT
from rigs import chain

KEYS = [
    "input", "armature", "blender", "bodies", "dofs", "frames", "substeps", "seconds", "ms_per_step",
    "joint_separation_max_m", "bake_error_max_m", "bake_error_max_deg", "penetration_max_m", "limit_violation_max_deg",
    "energy_gain_max_J", "contacts_max", "passing", "scenery", "connections", "warnings", "ok",
]  # fmt: skip


@pytest.fixture
def saved(tmp_path):
    """A Blender file with a chain in it."""
    chain(3, "Chain", height=1.0)
    path = tmp_path / "chain.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    return path


def test_a_file_is_baked_and_reported(saved, tmp_path, capsys):
    """Input, output, report: the keys are those that scripts rely on."""
    out, report = tmp_path / "out.blend", tmp_path / "report.json"
    options = ["--frames", "1:13", "--substeps", "8", "--out", str(out), "--report", str(report)]
    assert command.run([str(saved), *options], "bake.py") == 0
    content = json.loads(report.read_text(encoding="utf-8"))
    assert list(content) == KEYS
    assert list(content["seconds"]) == ["convert", "simulate", "bake", "total"]
    assert list(content["ms_per_step"]) == ["median", "p95"]
    assert (content["frames"], content["substeps"], content["bodies"], content["armature"]) == (13, 8, 3, "Chain")
    assert content["ok"] is True
    assert "simulate" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chain.blend", "out.blend", "report.json"]
    bpy.ops.wm.open_mainfile(filepath=str(out))
    assert bpy.data.objects["Chain"].animation_data.action


def test_frames_before_zero_are_frames(saved, tmp_path):
    """A minus begins an option elsewhere; here it is how animators write a run-up."""
    report = tmp_path / "r.json"
    assert command.run([str(saved), "--frames", "-5:-2", "--report", str(report)], "bake.py") == 0
    assert json.loads(report.read_text(encoding="utf-8"))["frames"] == 4


def test_a_device_is_no_place_for_a_file():
    """The outputs of a shell are links in /dev, and root may replace them; asked of the check, so that no test can."""
    assert all(data_file.is_other(Path("/dev", name)) for name in ("null", "stdout", "stderr"))


def test_a_link_keeps_pointing_to_what_is_written(saved, tmp_path):
    """Whoever lets latest.blend be a link finds the result where it points."""
    for name in ("v1.blend", "r1.json"):
        (tmp_path / name).write_text("old")
        (tmp_path / f"latest{name[2:]}").symlink_to(name)
    out, report = tmp_path / "latest.blend", tmp_path / "latest.json"
    assert command.run([str(saved), "--frames", "1:3", "--out", str(out), "--report", str(report)], "bake.py") == 0
    assert out.is_symlink() and report.is_symlink()
    assert json.loads((tmp_path / "r1.json").read_text(encoding="utf-8"))["frames"] == 3
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "v1.blend"))
    assert bpy.data.objects["Chain"].animation_data.action


def test_warnings_say_what_about_which_bone(shared_file, tmp_path):
    """Scripts filter warnings by their code and bone."""
    report = tmp_path / "report.json"
    command.run([str(shared_file("RiggedFigure.glb")), "--frames", "1:3", "--report", str(report)], "bake.py")
    warnings = json.loads(report.read_text(encoding="utf-8"))["warnings"]
    assert warnings and all(list(warning) == ["code", "bone", "message"] for warning in warnings)


BAD = [
    (["missing.blend"], "missing.blend: there is no such file"),
    (["notes.txt"], "notes.txt: files of this kind are not read"),
    (["broken.blend"], "broken.blend: cannot be read"),
    (["broken.glb"], "broken.glb: cannot be read"),
    (["chain.blend", "--armature", "Nobody"], "'Nobody'; it has: 'Chain'"),
    (["chain.blend", "--frames", "20:10"], "'20:10' ends before it has begun"),
    (["chain.blend", "--frames", "5:5"], "'5:5' ends before it has begun"),
    (["chain.blend", "--frames", "1.5:10"], "'1.5:10' is not a range of whole frames"),
    (["chain.blend", "--frames", "7"], "'7' is not a range of whole frames"),
    (["chain.blend", "--substeps", "0"], "'0' is not a whole number"),
    (["chain.blend", "--out", "nowhere/out.blend"], "its folder cannot be written"),
    (["chain.blend", "--report", "chain.blend/r.json"], "its folder cannot be written"),
    (["chain.blend", "--out", "out.png"], "let its name end in .blend"),
    (["chain.blend", "--speed", "3"], "--speed"),
    (["folder"], "folder: is a folder; name a file in it"),
    (["chain.blend", "--out", "folder"], "folder: is a folder; name a file in it"),
    (["chain.blend", "--report", "folder"], "folder: is a folder; name a file in it"),
    (["chain.blend", "--report", "chain.blend"], "chain.blend: the report would take the place of a scene"),
    (["broken.bvh", "--report", "broken.bvh"], "broken.bvh: the report would take the place of a scene"),
    (["chain.blend", "--out", "x.blend", "--report", "x.blend"], "x.blend: the report would take the place of a scene"),
    (["chain.blend", "--report", "r.BLEND"], "r.BLEND: the report would take the place of a scene; let its name end"),
    (["chain.blend", "--report", "linked.json"], "linked.json: the report would take the place of a scene"),
    (["chain.blend", "--report", "pipe"], "pipe: is a device or a pipe, which a file would replace; name a file"),
    (["chain.blend", "--out", "pipe.blend"], "pipe.blend: is a device or a pipe"),
    (["broken.bvh"], "broken.bvh: cannot be read (This is not a BVH file)"),
    (["chain.blend", "--frames", "--no-ground"], "'--no-ground' is not a range of whole frames"),
    (["chain.blend", "--frames"], "expected one argument"),
    (["chain.blend", "--substeps", "²"], "'²' is not a whole number"),
    (["chain.blend", "--frames", "1:1048575"], "'1:1048575' leaves Blender's frames"),
    ([], "INPUT"),
]


@pytest.mark.parametrize(("arguments", "line"), BAD, ids=[" ".join(arguments) or "nothing" for arguments, _ in BAD])
def test_bad_input_is_one_line_and_code_two(saved, tmp_path, capfd, monkeypatch, arguments, line):
    """Scripts and people learn what is wrong and what to do, and no file has changed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("no rig")
    (tmp_path / "broken.blend").write_bytes(b"BLENDER-v500 and then nothing")
    (tmp_path / "broken.glb").write_bytes(b"glTF\x02\x00\x00\x00")
    (tmp_path / "broken.bvh").write_text("no motion")
    (tmp_path / "folder").mkdir()
    (tmp_path / "linked.json").symlink_to("chain.blend")
    os.mkfifo("pipe")
    (tmp_path / "pipe.blend").symlink_to("pipe")
    before = {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}
    assert command.run(arguments, "bake.py") == 2
    printed = capfd.readouterr()
    ours = [row for row in printed.err.splitlines() if row.startswith("armature_dynamics: ")]
    assert len(ours) == 1 and line in ours[0]
    assert "broken.bvh" not in arguments or "Traceback" not in printed.out + printed.err
    assert {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kind", ["fbx", "bvh"])
def test_other_formats_are_imported(kind, tmp_path):
    """What Blender itself exports comes back in."""
    armature = chain(4, "Chain", height=1.0)
    armature.select_set(True)
    bpy.context.view_layer.objects.active = armature
    path = tmp_path / f"chain.{kind}"
    if kind == "fbx":
        bpy.ops.export_scene.fbx(filepath=str(path))
    else:
        bpy.ops.export_anim.bvh(filepath=str(path))
    report = tmp_path / "report.json"
    command.run([str(path), "--frames", "1:3", "--report", str(report)], "bake.py")
    assert json.loads(report.read_text(encoding="utf-8"))["bodies"] >= 4


def test_several_armatures_must_be_told_apart(saved, capsys):
    """Guessing which one was meant would be wrong half of the time."""
    chain(2, "Other")
    bpy.ops.wm.save_as_mainfile(filepath=str(saved), check_existing=False)
    assert command.run([str(saved)], "bake.py") == 2
    assert "--armature: 'Chain', 'Other'" in capsys.readouterr().err
    assert command.run([str(saved), "--armature", "Other", "--frames", "1:3"], "bake.py") == 0


def test_motion_capture_sets_the_rate_and_the_size(shared_file, tmp_path):
    """120 / 0.999996 frames a second (field case 4), and a person of human height whatever the units."""
    report = tmp_path / "report.json"
    command.run([str(shared_file("cmu_131_01.bvh")), "--frames", "100:110", "--report", str(report)], "bake.py")
    render = bpy.context.scene.render
    assert render.fps / render.fps_base == pytest.approx(120 / 0.999996, rel=1e-7)
    heights = [warning for warning in json.loads(report.read_text(encoding="utf-8"))["warnings"]
               if warning["code"] == "unit"]  # fmt: skip
    assert "inches" in heights[0]["message"]


def test_blenders_own_command_does_the_same(saved, tmp_path, capsys):
    """`blender -b FILE --command armature_dynamics bake` shares the code and the options."""
    report = tmp_path / "report.json"
    bpy.ops.wm.open_mainfile(filepath=str(saved))
    assert command.run_in_blender(["bake", "--frames", "1:13", "--report", str(report)]) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["input"] == str(saved)
    assert command.run_in_blender(["bake", "--frames", "9:1"]) == 2
    assert command.run_in_blender(["cook"]) == 2
    assert capsys.readouterr().err.count("armature_dynamics: ") == 2


@pytest.mark.slow
def test_the_script_runs_by_itself(saved):
    """scripts/bake.py in a process of its own: it ends, with the right code, and without a crash at exit."""
    script = [sys.executable, str(ROOT / "scripts" / "bake.py")]
    good = subprocess.run([*script, str(saved), "--frames", "1:3"], capture_output=True, text=True, timeout=120)
    assert good.returncode == 0, good.stderr
    bad = subprocess.run([*script, "missing.glb"], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 2 and "missing.glb" in bad.stderr
