"""docs/field-cases.md names tests that exist, for every case."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
TABLE = TESTS.parent / "docs" / "field-cases.md"
CASES = range(1, 33)


def rows() -> dict[int, tuple[str, list[str]]]:
    """Whether a case passes, and the names of its tests, by its number."""
    found = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].isdigit():
            found[int(cells[0])] = cells[2], re.findall(r"\w+::\w+", cells[3])
    return found


def names() -> set[str]:
    """Every test in the folders of tests, as file::test."""
    return {
        f"{path.stem}::{node.name}"
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_case_is_in_the_table():
    """A case that is left out is forgotten."""
    assert sorted(rows()) == list(CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_tests_of_a_case_exist(case):
    """A test that is renamed takes its line in the table along; what passes has a test."""
    passes, tests = rows()[case]
    assert passes in ("yes", "in part", "no")
    assert tests or passes == "no"
    assert not set(tests) - names()
