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
    """Every control map in the presets of rigs: `controls` of deform bones and `switches` of bones, by patterns of
    names, and the `root` control."""
    found = []
    for file in sorted((FOLDER / "armature_dynamics" / "rig").glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        controls = {re.compile(text): own["control"] for text, own in content["bones"].items() if "control" in own}
        switches = {re.compile(text): own for text, own in content.get("switches", {}).items()}
        if controls:
            found.append({"controls": controls, "root": content["root"], "switches": switches})
    return found
