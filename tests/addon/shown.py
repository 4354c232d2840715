"""Every text that the interface may show: what Blender knows of classes and settings, and what the code says."""

from __future__ import annotations

import ast
import inspect
import json
import re
from itertools import product
from pathlib import Path

import bpy
from armature_dynamics import addon
from armature_dynamics.addon import directing_panel, remedy, report, setup
from bl_ui.utils import PresetPanel
from conftest import ROOT

NOT_SHOWN = {"command.py", "intake.py", "properties.py"}
"""Files that talk to the command line only, and the one that Blender knows all of."""

NEVER_DRAWN = setup.STATE - {"active_joints", "left_out", "connections"} | {"switches", "connection_index"}
"""Settings that no panel has, and no curve."""

NO_WORDS = re.compile(
    r"\\|bpy\.context|_|^\{\}( (to|and|Dynamics|Settings|Source|times)( \{\})?|, \{\})?$"
    r"|^Armature Dynamics (setup|rig)$|^bone \{\}: $| and $"
)
"""Patterns, code, and names of data."""

REFUSING = {
    "simulation.py": "SimulationError", "closing.py": "LinkageError", "grip.py": "LinkageError", "live.py": "say",
} | dict.fromkeys(("adaptive.py", "checks.py", "mesh.py", "hull.py"), "ValueError")  # fmt: skip
"""Files of the core, and the errors in them that what an animator does may lead to, or what says it."""

WORDS = ("sample", "prepare", "simulate", "bake", "measure", "grabbing", "fixed", "hinge", "slider", "universal",
         "ball", "armature", "bones", "connections", " and ")  # fmt: skip
"""Single words that messages have in them."""


def templates(node: ast.AST) -> list[str]:
    """What a literal, an f-string or a choice between such may be, with {} for what is only known later."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else ["{}"]
    if isinstance(node, ast.IfExp):
        return templates(node.body) + templates(node.orelse)
    if isinstance(node, ast.FormattedValue):
        return templates(node.value) if isinstance(node.value, ast.IfExp) else ["{}"]
    if isinstance(node, ast.JoinedStr):
        return ["".join(parts) for parts in product(*map(templates, node.values))]
    return ["{}"]


def literals(path: Path) -> set[str]:
    """The literals and f-strings of a file that are no docstrings; of one in another, as in a join, both."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for outer in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
        for value in outer.values:
            chosen = isinstance(value, ast.FormattedValue) and isinstance(value.value, ast.IfExp)
            inner = ast.walk(value) if chosen or isinstance(value, ast.Constant) else ()
            skipped |= {id(node) for node in inner}
            if isinstance(value, ast.FormattedValue) and value.format_spec:
                skipped |= {id(node) for node in ast.walk(value.format_spec)}
    return {
        text
        for node in ast.walk(tree)
        if id(node) not in skipped and isinstance(node, ast.Constant | ast.JoinedStr)
        for text in templates(node)
    }


def raised(path: Path, error: str) -> set[str]:
    """The messages of one kind of error in a file, or of one method."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    calls = [call for call in calls if error in (getattr(call.func, "id", ""), getattr(call.func, "attr", ""))]
    return {text for call in calls for text in templates(call.args[0])}


def of_code() -> list[str]:
    """Sentences and phrases in the code, and what panels are told to show."""
    found = []
    for path in [*sorted((ROOT / "addon").glob("*.py")), *(ROOT / "core" / name for name in REFUSING)]:
        if path.name not in NOT_SHOWN:
            found += sorted(
                text
                for text in (literals(path) if path.parent.name == "addon" else raised(path, REFUSING[path.name]))
                if " " in text.strip() and re.search(r"[a-z]{2}", text.replace("{}", "")) and not NO_WORDS.search(text)
            )
            tree = ast.parse(path.read_text(encoding="utf-8"))
            named = [word for word in ast.walk(tree) if isinstance(word, ast.keyword) and word.arg == "text"]
            found += [word.value.value for word in named if isinstance(word.value, ast.Constant) and word.value.value]
    found += [name for name, _ in directing_panel.FIRMNESS]
    found += [fix.label for fix in remedy.FIXES.values()]
    return [*found, *report.HAPPENED.values(), *WORDS]


def of_blender() -> list[str]:
    """Labels and tooltips of the registered classes and settings."""
    found = []
    for cls in addon.CLASSES:
        # Blender's preset menus take the name of the preset that was used last
        labels = () if issubclass(cls, PresetPanel) else ("bl_label", "bl_description", "bl_category")
        found += [getattr(cls, name, "") for name in labels]
        if issubclass(cls, bpy.types.Operator):
            found.append(" ".join((cls.__doc__ or "").split()))
        for prop in _declared(cls):
            found += _texts(prop)
    for name in setup.DIRECTED:
        found += _texts(bpy.types.PoseBone.bl_rna.properties[name])
    return [text for text in found if text]


def _declared(cls) -> list:
    """The settings that a class and its mixins of ours declare, as far as they are drawn."""
    if cls.__name__.endswith(("_PG_problem", "_PG_partner")):
        return []
    ours = [owner for owner in cls.__mro__ if owner.__module__.startswith("armature_dynamics")]
    names = {name for owner in ours for name in inspect.get_annotations(owner)} - NEVER_DRAWN
    if issubclass(cls, bpy.types.Operator):
        rna = getattr(bpy.ops.armature_dynamics, cls.bl_idname.split(".")[1]).get_rna_type()
    else:
        rna = cls.bl_rna
    return [prop for prop in rna.properties if prop.identifier in names and not prop.is_hidden]


def _texts(prop) -> list[str]:
    items = prop.enum_items if prop.type == "ENUM" else ()
    return [prop.name, prop.description, *(text for item in items for text in (item.name, item.description))]


def of_presets() -> list[str]:
    """Names and explanations in the data files."""
    found = []
    for name, part in (("surface", "surfaces"), ("sway", None)):
        content = json.loads((ROOT / "presets" / f"{name}.json").read_text(encoding="utf-8"))
        for key, row in (content[part] if part else content).items():
            if isinstance(row, dict):
                found += [row.get("title", key.title()), row.get("does", row.get("about"))]
    return found + [
        path.stem.replace("_", " ") for path in sorted((ROOT / "presets" / "armature_dynamics").glob("*/*.*"))
    ]


def all_texts() -> list[str]:
    """Each once, without those that are all placeholders."""
    return list(dict.fromkeys([*of_blender(), *of_presets(), *of_code()]))
