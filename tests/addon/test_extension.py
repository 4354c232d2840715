"""The extension as Blender's own tools see it."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import bpy
import pytest
from conftest import ROOT

INSTALLED = """
import sys
import bpy
bpy.ops.extensions.package_install_files(filepath=sys.argv[1], repo="user_default", enable_on_install=True)
assert "bl_ext.user_default.armature_dynamics" in bpy.context.preferences.addons
data = bpy.data.armatures.new("Rig")
rig = bpy.data.objects.new("Rig", data)
bpy.context.collection.objects.link(rig)
bpy.context.view_layer.objects.active = rig
bpy.ops.object.mode_set(mode="EDIT")
bone = data.edit_bones.new("bone")
bone.head, bone.tail = (0, 0, 1), (0.5, 0, 1)
bpy.ops.object.mode_set(mode="OBJECT")
assert bpy.ops.armature_dynamics.make_dynamic() == {"FINISHED"}
rig.armature_dynamics.frame_end = 5
assert bpy.ops.armature_dynamics.simulate() == {"FINISHED"}
assert bpy.ops.armature_dynamics.keep() == {"FINISHED"}
bpy.ops.preferences.addon_disable(module="bl_ext.user_default.armature_dynamics")
assert not hasattr(bpy.types.Object, "armature_dynamics")
print("all well")
"""


def blender_ext(*arguments):
    """Blender's own extension builder."""
    tool = Path(bpy.utils.resource_path("LOCAL"), "scripts", "addons_core", "bl_pkg", "cli", "blender_ext.py")
    return subprocess.run([sys.executable, str(tool), *arguments], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The built zip."""
    path = tmp_path_factory.mktemp("build") / "armature_dynamics.zip"
    built = blender_ext("build", "--source-dir", str(ROOT), "--output-filepath", str(path))
    assert built.returncode == 0, built.stdout + built.stderr
    return path


def test_the_package_is_valid(package):
    """Blender refuses to install what does not validate."""
    for what in (ROOT, package):
        done = blender_ext("validate", str(what))
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_holds_the_product_and_nothing_else(package):
    """Tests, scripts and environments are for developers."""
    names = zipfile.ZipFile(package).namelist()
    tops = {name.split("/")[0] for name in names if not name.startswith("docs/manual/")} - {"README.md"}
    assert tops <= {"__init__.py", "blender_manifest.toml", "LICENSE", "addon", "core", "presets", "docs"}
    assert {name for name in names if name.startswith("docs/")} - {"docs/"} == {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "manual").iterdir()
    } | ({"docs/manual/"} & set(names)), "only the manual of the documents"


@pytest.mark.slow
def test_it_installs_from_its_zip_and_leaves_cleanly(package, tmp_path):
    """A fresh Blender, with settings of its own: install, all three operators, disable, and no crash at exit."""
    variables = {**os.environ, "BLENDER_USER_RESOURCES": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", INSTALLED, str(package)], capture_output=True, text=True, timeout=120,
                          env=variables)  # fmt: skip
    assert "all well" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_only_compat_asks_for_the_version():
    """Version tests in many places are forgotten in one of them (field cases 8 and 9)."""
    asking = [
        path.name for path in sorted((ROOT / "addon").glob("*.py")) if re.search(r"app\.version\b", path.read_text())
    ]
    assert asking == ["compat.py"]
