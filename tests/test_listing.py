"""The extension's listing: its text and pictures fit the platform, and the manifest says the same."""

from __future__ import annotations

import re
import struct
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "listing"
TEXT = (FOLDER / "description.md").read_text(encoding="utf-8")
MANIFEST = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))

TAGS = {
    *("3D View", "Add Curve", "Add Mesh", "Animation", "Bake", "Camera", "Compositing", "Development", "Game Engine"),
    *("Geometry Nodes", "Grease Pencil", "Import-Export", "Lighting", "Material", "Modeling", "Mesh", "Node", "Object"),
    *("Paint", "Pipeline", "Physics", "Render", "Rigging", "Scene", "Sculpt", "Sequencer", "System", "Text Editor"),
    *("Tracking", "User Interface", "UV"),
}
"""Of add-ons, as the manual of Blender lists them."""

SIZES = {"icon.png": (256, 256)} | dict.fromkeys(
    ("featured.jpg", "window.jpg", "pile.jpg", "connections.jpg"), (1920, 1080)
)

LARGEST = 300_000
"""Of a picture [bytes]: the repository stays small."""


def size(path: Path) -> tuple[int, int]:
    """A picture's width and height, read from its header."""
    data = path.read_bytes()
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return struct.unpack(">II", data[16:24])
    at = 2
    while data[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    height, width = struct.unpack(">HH", data[at + 5 : at + 9])
    return width, height


@pytest.mark.parametrize("name", SIZES)
def test_pictures_have_the_platforms_sizes(name):
    """An icon of 256 by 256, and pictures as large as a screen; all of them light."""
    path = FOLDER / name
    assert size(path) == SIZES[name]
    assert 5_000 < path.stat().st_size <= LARGEST


def test_there_are_no_other_pictures():
    """What is not listed here is not looked at."""
    assert {path.name for path in FOLDER.iterdir()} == {*SIZES, "description.md"}


def test_lines_of_the_manifest_are_short_and_without_a_stop():
    """The platform and Blender refuse longer ones."""
    lines = [MANIFEST["tagline"], *MANIFEST["permissions"].values()]
    assert all(0 < len(line) <= 64 and line[-1].isalnum() for line in lines)


def test_tags_are_the_platforms():
    """Others are refused."""
    assert set(MANIFEST["tags"]) <= TAGS and MANIFEST["tags"]


def test_the_text_tells_of_every_permission_and_of_no_other():
    """Who reads the listing knows what the extension may do before it is installed."""
    part = TEXT.split("## Permissions")[1]
    allowed = {name.lower() for name in re.findall(r"\*\*(.+?)\*\*", part)}
    assert allowed == set(MANIFEST["permissions"]) == {"files"}
    used = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "addon").glob("*.py"))
    assert not re.search(r"\b(urllib|requests|socket|http\.client)\b|\.clipboard\b", used)


def test_the_text_is_a_page_long_and_plain():
    """Markdown as the platform has it: headings of the second level, lists, emphasis; no HTML and no pictures."""
    assert 1000 < len(TEXT) < 5000
    assert not re.search(r"<[a-z]|!\[|^# |^\|", TEXT, re.MULTILINE)
    assert re.findall(r"^## (.+)$", TEXT, re.MULTILINE)[-1] == "Permissions"
    assert max(map(len, TEXT.splitlines())) <= 120


def test_the_text_promises_what_there_is():
    """Buttons and presets by their names in the program."""
    labels = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "addon").glob("*.py"))
    for label in ("Make Dynamic", "Simulate", "Keep", "Restore Source", "Follow", "Grab", "Additive", "Pre-flight"):
        assert f"*{label}*" in TEXT and f'"{label}' in labels
    motions = {path.stem for path in (ROOT / "presets" / "armature_dynamics" / "motion").glob("*.py")}
    assert all(motion in TEXT for motion in motions)
    assert ("German" in TEXT) == (ROOT / "presets" / "words" / "de.json").exists()


def test_the_listing_stays_out_of_the_package():
    """Pictures for a web page are no part of the product."""
    assert "/docs/listing/" in MANIFEST["build"]["paths_exclude_pattern"]
