"""Tests of the extension run inside Blender as a module; where there is none they are not collected."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"

if importlib.util.find_spec("bpy") is None:
    collect_ignore_glob = ["*"]


def load_extension():
    """The checkout as the package that Blender installs."""
    spec = importlib.util.spec_from_file_location("armature_dynamics", ROOT / "__init__.py")
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    return package


if importlib.util.find_spec("bpy") is not None:
    from leaving import pytest_sessionfinish  # noqa: F401

    extension = load_extension()


@pytest.fixture(scope="session", autouse=True)
def registered():
    """The extension, registered for the whole run; a class left at exit crashes 4.2 and hangs 4.5."""
    extension.register()
    yield
    extension.unregister()


@pytest.fixture(autouse=True)
def empty_file(registered):
    """An empty scene for each test."""
    import bpy

    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)


# Rigify makes Blender 4.2 crash at exit, whatever is done with it before: it runs in a process that ends without one
METARIG = """
import os, sys, bpy
bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
bpy.ops.preferences.addon_enable(module="rigify")
bpy.ops.object.armature_human_metarig_add()
bpy.ops.wm.save_as_mainfile(filepath=sys.argv[1])
os._exit(0)
"""


GENERATE = """bpy.ops.pose.rigify_generate()
bpy.data.objects.remove(bpy.data.objects["metarig"])
"""
GENERATED = METARIG.replace("bpy.ops.wm.save", GENERATE + "bpy.ops.wm.save")


@pytest.fixture(scope="session")
def metarig_file(tmp_path_factory):
    """A Blender file with Rigify's human metarig in it."""
    path = tmp_path_factory.mktemp("rigify") / "metarig.blend"
    subprocess.run([sys.executable, "-c", METARIG, str(path)], check=True, timeout=120, capture_output=True)
    return path


@pytest.fixture
def metarig(metarig_file):
    """Rigify's human metarig, the active object."""
    import bpy

    with bpy.data.libraries.load(str(metarig_file)) as (_, data):
        data.objects = ["metarig"]
    bpy.context.collection.objects.link(data.objects[0])
    bpy.context.view_layer.objects.active = data.objects[0]
    return data.objects[0]


@pytest.fixture
def person(metarig):
    """Rigify's human metarig, made dynamic."""
    import bpy

    bpy.ops.armature_dynamics.make_dynamic()
    return metarig


@pytest.fixture
def shared_file():
    """The path of a real character's file; skips where the shared data is not beside the checkout."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            if os.environ.get("CI") == "true":
                pytest.fail(f"{name} is needed in CI, beside the checkout in ../shared/data")
            pytest.skip(f"{name} is not beside the checkout in ../shared/data")
        return path

    return find


@pytest.fixture(scope="session")
def generated_file(tmp_path_factory):
    """A Blender file with the rig in it that Rigify generates from its human metarig."""
    return generated(tmp_path_factory, "human")


def generated(tmp_path_factory, kind: str) -> Path:
    """A Blender file with the rig in it that Rigify generates from one of its metarigs."""
    path, program = tmp_path_factory.mktemp("rigify") / "generated.blend", GENERATED.replace("human", kind)
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=300, capture_output=True)
    return path


@pytest.fixture(params=["shark", "basic_quadruped"])
def generated_animal(request, tmp_path_factory):
    """The rig that Rigify generates from an animal's metarig, made dynamic."""
    import bpy

    bpy.ops.wm.open_mainfile(filepath=str(generated(tmp_path_factory, request.param)))
    bpy.context.view_layer.objects.active = bpy.data.objects["rig"]
    assert bpy.ops.armature_dynamics.make_dynamic() == {"FINISHED"}
    return bpy.data.objects["rig"]


@pytest.fixture
def generated_rig(generated_file):
    """The rig that Rigify generates from its human metarig."""
    import bpy

    bpy.ops.wm.open_mainfile(filepath=str(generated_file))
    return bpy.data.objects["rig"]


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """A place for presets of the user's own."""
    import bpy

    def resource(kind, path="", create=False):
        folder = tmp_path / path
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    monkeypatch.setattr(bpy.utils, "user_resource", resource)
    bpy.utils.register_preset_path(str(tmp_path))
    yield tmp_path
    bpy.utils.unregister_preset_path(str(tmp_path))


@pytest.fixture(scope="session")
def expected(registered) -> dict:
    """The keys of a take of the character in `recorded`, made without any detour."""
    import bpy
    from recorded import made, simulated

    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    return simulated(made("SOURCE"))
