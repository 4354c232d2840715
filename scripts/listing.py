"""Makes the pictures of the extension's listing, in docs/listing/: python scripts/listing.py [NAME ...]; all without.

That of the window needs a real Blender, where ../shared/tools/blender-window is there.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import environment
import manual
from environment import ROOT

FOLDER = ROOT / "docs" / "listing"

RENDERED = ("icon.png", "featured.jpg", "pile.jpg", "connections.jpg")
WINDOW = "window.jpg"

PHOTOGRAPHER = """for i in $(seq 1200); do [ -e {0}/ready ] && break; sleep 0.5; done
import -window root -quality 88 {0}/window.jpg"""
"""Runs beside Blender, and takes a picture of the screen when all is drawn."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"which: {', '.join((*RENDERED, WINDOW))}")
    names = parser.parse_args().names or (*RENDERED, WINDOW)
    unknown = [name for name in names if name not in (*RENDERED, WINDOW)]
    if unknown:
        print(f"listing.py: there is no picture {unknown[0]!r}", file=sys.stderr)
        return 2
    if WINDOW in names and not manual.BLENDER.exists():
        print(f"listing.py: there is no {manual.BLENDER.name} in {manual.BLENDER.parent}: name others", file=sys.stderr)
        return 1
    python = environment.blender()
    for name in names:
        if name == WINDOW:
            photograph(python)
        else:
            subprocess.run([python, ROOT / "scripts" / "listing_scene.py", name, FOLDER], check=True, timeout=1800)
    return 0


def photograph(python: Path | str) -> None:
    """A Blender with a simulated character in its window."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, ROOT / "scripts" / "listing_scene.py", "window.blend", folder], check=True, timeout=300)
        clicks = Path(folder) / "clicks"
        clicks.write_text(PHOTOGRAPHER.format(shlex.quote(folder)), encoding="utf-8")
        window = ["-o", f"{folder}/last.png", "-w", "5", "-s", "1920x1080", "-x", str(clicks)]
        manual.in_window(python, window, ROOT / "scripts" / "listing_window_scene.py", folder)
        shutil.copy(Path(folder) / WINDOW, FOLDER / WINDOW)


if __name__ == "__main__":
    sys.exit(main())
