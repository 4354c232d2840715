"""The extension as users get it: built and validated by Blender's own builder, installed from its zip."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

bpy = pytest.importorskip("bpy", reason="the package needs Blender (bpy), which is not installed")

ROOT = Path(__file__).resolve().parent.parent
BUILDER = Path(bpy.utils.system_resource("SCRIPTS")) / "addons_core" / "bl_pkg" / "cli" / "blender_ext.py"


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """The extension's zip."""
    folder = tmp_path_factory.mktemp("built")
    run(BUILDER, "build", "--source-dir", ROOT, "--output-dir", folder)
    return next(folder.glob("*.zip"))


def run(*arguments, **variables) -> str:
    """Runs a script in a Python of its own and returns what it prints; a crash or a hang of Blender fails the test."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, env={**os.environ, **variables})
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_sources_and_zip_are_valid(archive):
    """Blender refuses an extension whose manifest or layout its builder does not accept."""
    assert "Success" in run(BUILDER, "validate", ROOT)
    assert "Success" in run(BUILDER, "validate", archive)


def test_zip_holds_the_extension_and_nothing_else(archive):
    """Users download what runs: no tests, scripts or environments."""
    names = zipfile.ZipFile(archive).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops <= {"__init__.py", "blender_manifest.toml", "addon", "core", "presets", "docs", "LICENSE", "README.md"}
    assert not [name for name in names if name.startswith("docs/") and not "docs/manual/".startswith(name[:12])]
    assert {"__init__.py", "blender_manifest.toml", "LICENSE"} <= tops
    assert not [name for name in names if "__pycache__" in name]


def test_installed_from_zip_it_runs_and_unregisters_cleanly(archive, tmp_path):
    """What users do, from install to disable; a class that is left behind crashes Blender 4.2 at exit."""
    printed = run(Path(__file__).with_name("installed_extension.py"), archive, BLENDER_USER_RESOURCES=str(tmp_path))
    outcome = json.loads(printed.strip().splitlines()[-1])
    assert outcome["installed"]
    assert outcome["results"] == [["FINISHED"]] * 3
    assert outcome["fell_m"] == pytest.approx(0.5 * 9.81 * (11 / 24) ** 2, rel=0.2), "bones in the air must fall freely"
    assert outcome["left_behind"] == []
