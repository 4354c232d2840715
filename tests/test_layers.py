"""The layers of the checkout: what each may import, and the rules that keep it readable."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = sorted((ROOT / "core").rglob("*.py"))
ADDON = [ROOT / "__init__.py", *sorted((ROOT / "addon").rglob("*.py"))]
SCRIPTS = sorted((ROOT / "scripts").rglob("*.py"))
COMMANDS = [path for path in sorted((ROOT / "scripts").glob("*.py")) if not path.stem.endswith("_scene")]
BLENDER = {"bpy", "mathutils", "bpy_extras", "bl_math", "bmesh", "gpu", "gpu_extras", "blf", "addon_utils"}
BLENDER |= {"bl_operators", "bl_ui"}  # Blender's own scripts, whose classes are there to be built on
BLENDER |= {"rigify", "io_anim_bvh"}  # add-ons that every supported Blender brings along


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=(3, 11))


def imports(path: Path) -> list[tuple[int, str]]:
    """(dots, module) of every import in a file, inside functions too; `from . import a` counts as `.a`."""
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.level, node.module)] if node.module else [(node.level, a.name) for a in node.names]
    return found


@pytest.mark.parametrize("path", CORE, ids=name)
def test_core_imports_numpy_and_the_standard_library_only(path):
    """The core must run, and be tested, where there is no Blender; inside Blender it is nested, hence relative."""
    depth = len(path.relative_to(ROOT / "core").parts)
    for dots, module in imports(path):
        if dots:
            assert dots <= depth, f"{name(path)} reaches out of core/: {'.' * dots}{module}"
        else:
            top = module.split(".")[0]
            assert top == "numpy" or top in sys.stdlib_module_names, f"{name(path)} imports {module}"


def test_core_imports_go_one_way():
    """From spatial up to simulation: a cycle would mean that two files are one thought."""
    modules = {path.relative_to(ROOT / "core").with_suffix("").as_posix().replace("/", "."): path for path in CORE}
    uses = {
        module: {used.split(".")[0] for dots, used in imports(path) if dots} & set(modules) - {"__init__", module}
        for module, path in modules.items()
        if module != "__init__"
    }
    while uses:
        ready = {module for module, used in uses.items() if not used}
        assert ready, f"imports in core/ go round: {uses}"
        uses = {module: used - ready for module, used in uses.items() if module not in ready}


@pytest.mark.parametrize("path", ADDON, ids=name)
def test_addon_imports_what_every_blender_has(path):
    """An extension without wheels has the standard library, numpy and Blender's modules, and itself by dots."""
    for dots, module in imports(path):
        top = module.split(".")[0]
        assert dots or top in BLENDER | {"numpy"} or top in sys.stdlib_module_names, f"{name(path)} imports {module}"


@pytest.mark.parametrize("path", ADDON, ids=name)
def test_only_compat_asks_for_the_version_of_blender(path):
    """One module knows the differences between Blenders, so that dropping a version is one edit."""
    if path.stem != "compat":
        asked = [node.lineno for node in ast.walk(tree(path)) if ast.unparse(node) == "bpy.app.version"]
        assert not asked, f"{name(path)} branches on the version in lines {asked}"


@pytest.mark.parametrize("path", COMMANDS, ids=name)
def test_scripts_start_without_blender(path):
    """The two commands of the README start on a machine that has Python and nothing else."""
    for node in tree(path).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for top in (module.split(".")[0] for module in names):
                own = any(script.stem == top for script in COMMANDS)
                assert own or top in sys.stdlib_module_names, f"{name(path)} imports {top}"


@pytest.mark.parametrize("path", [*CORE, *ADDON, *SCRIPTS], ids=name)
def test_house_rules(path):
    """A newcomer can guess a file from the job; nothing edits the import path behind a reader's back."""
    assert path.stem not in {"utils", "util", "helpers", "manager", "common", "misc"}
    assert ast.get_docstring(tree(path)), f"{name(path)} has no docstring"
    text = ast.unparse(tree(path))
    assert "sys.path." not in text and "sys.path +=" not in text, f"{name(path)} edits sys.path"
