"""The data files in `presets/`: what is known of humans and creatures, and how rigs name their bones."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "presets"


@cache
def preset(name: str) -> dict:
    """The content of `presets/<name>.json`."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@cache
def namings() -> list[dict]:
    """Every way of naming bones, those of a product before the plain words that anyone may use."""
    files = sorted((FOLDER / "naming").glob("*.json"))
    return sorted((json.loads(file.read_text(encoding="utf-8")) for file in files), key=lambda it: "fallback" in it)


@cache
def control_presets() -> list[dict]:
    """Every control map that is described by a file: `controls` of deform bones and `switches` of bones, by patterns of
    names, and the `root` control."""
    found = []
    for file in sorted((FOLDER / "control").glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        for part in ("controls", "switches"):
            content[part] = {re.compile(pattern): own for pattern, own in content[part].items()}
        found.append(content)
    return found
