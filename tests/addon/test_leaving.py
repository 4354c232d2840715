"""How a run of tests ends."""

import os
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest

CASE = """
import bpy

def test_export(tmp_path):
    bpy.ops.export_scene.gltf(filepath=str(tmp_path / "empty.glb"))
    assert (tmp_path / "empty.glb").exists() is {}
"""


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_is_pytests_own(holds, code, tmp_path):
    """Blender 4.2 crashes at exit after its own glTF exporter has run: neither may that refuse a change whose tests
    passed, nor what prevents it hide one that failed."""
    (tmp_path / "test_export.py").write_text(CASE.format(holds))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "leaving", "--junitxml=report.xml"]
    done = subprocess.run(
        [*command, "test_export.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert f"1 {'passed' if holds else 'failed'}" in done.stdout.splitlines()[-1]
    suite = xml.etree.ElementTree.parse(tmp_path / "report.xml").find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", str(code))
