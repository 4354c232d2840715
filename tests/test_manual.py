"""The manual: it is whole, its page is that of its text, and every panel, setting and button leads to a part of it."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "manual.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)


def script():
    """scripts/manual.py, which needs what lies beside it."""
    path = ROOT / "scripts" / "manual.py"
    beside = importlib.util.spec_from_file_location("environment", path.with_name("environment.py"))
    spec = importlib.util.spec_from_file_location("manual_script", path)
    sys.modules["environment"] = importlib.util.module_from_spec(beside)
    module = sys.modules["environment"]
    try:
        beside.loader.exec_module(module)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    finally:
        del sys.modules["environment"]
    return made


def test_the_page_is_that_of_the_text():
    """Help buttons open the page; whoever changes the text makes it again: python scripts/manual.py."""
    page = (ROOT / "docs" / "manual" / "index.html").read_text(encoding="utf-8")
    assert page == script().rendered(TEXT)
    assert not re.search(r"\*\w|\]\(|<p>[#|]", page), "something was not turned into a page"


def test_every_picture_is_there_and_in_use():
    """A manual without its pictures is half of one."""
    used = re.findall(r"!\[.+?\]\((manual/.+?)\)", TEXT)
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs" / "manual").glob("*.png")}
    assert len(used) >= 6 and set(used) == there


def test_every_part_of_the_sidebar_has_a_heading():
    """The ? in a panel's header opens the part that is called as the panel is."""
    labels = []
    for path in sorted((ROOT / "addon").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and any("SidebarPart" in ast.unparse(base) for base in node.bases):
                labels += [own.value.value for own in node.body if isinstance(own, ast.Assign)
                           and own.targets[0].id == "bl_label"]  # fmt: skip
    assert len(labels) >= 10 and [label for label in labels if label not in HEADINGS] == []
