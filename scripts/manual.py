"""Makes the manual that help buttons open: python scripts/manual.py writes docs/manual/index.html from docs/manual.md.

With --pictures it also photographs the panels in a real Blender, where ../shared/tools/blender-window is there.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import environment
from environment import ROOT

SOURCE, PAGE = ROOT / "docs" / "manual.md", ROOT / "docs" / "manual" / "index.html"

BLENDER = ROOT.parent / "shared" / "tools" / "blender-window"

STYLE = """body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif; color: #222; }
img { max-width: 100%; } table { border-collapse: collapse; } td, th { padding: 0.2rem 0.8rem 0.2rem 0;
text-align: left; vertical-align: top; border-bottom: 1px solid #ccc; } nav { columns: 3; }
pre { padding: 0.5rem; overflow-x: auto; font-size: 0.85rem; background: #f3f3f3; }"""

PHOTOGRAPHER = """for i in $(seq 600); do
  [ -e {0}/finished ] && break
  if [ -e {0}/ready ]; then import -window root {0}/screen.png; rm {0}/ready; fi
  sleep 0.2
done"""
"""Runs beside Blender, and takes a picture of the screen when one is asked for."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", action="store_true", help="also photograph the panels in a real Blender")
    options = parser.parse_args()
    if options.pictures:
        if not BLENDER.exists():
            print(f"manual.py: there is no {BLENDER.name} in {BLENDER.parent}; leave out --pictures", file=sys.stderr)
            return 1
        photograph(environment.blender())
    PAGE.write_text(rendered(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def photograph(python: Path | str) -> None:
    """Lets the extension take pictures of itself."""
    with tempfile.TemporaryDirectory() as folder:
        clicks = Path(folder) / "clicks"
        clicks.write_text(PHOTOGRAPHER.format(shlex.quote(str(PAGE.parent))), encoding="utf-8")
        window = ["-o", f"{folder}/last.png", "-w", "5", "-s", "1600x1300", "-x", str(clicks)]
        try:
            in_window(python, window, ROOT / "scripts" / "manual_scene.py", PAGE.parent)
        finally:
            for name in ("ready", "finished", "screen.png"):
                (PAGE.parent / name).unlink(missing_ok=True)


def in_window(python: Path | str, window: list[str], scene: Path, *arguments) -> None:
    """Runs a script in a real Blender's window, with a fresh home that the extension is installed in. `window` is what
    the window tool is told."""
    with tempfile.TemporaryDirectory() as folder:
        build = "import bpy; print(bpy.utils.system_resource('SCRIPTS'))"
        printed = subprocess.run([python, "-c", build], check=True, capture_output=True, text=True, timeout=60).stdout
        builder = Path(printed.strip().splitlines()[-1]) / "addons_core" / "bl_pkg" / "cli" / "blender_ext.py"
        archive = Path(folder) / "extension.zip"
        made = [python, builder, "build", "--source-dir", ROOT, "--output-filepath", archive]
        subprocess.run(list(map(str, made)), check=True, timeout=120)
        run = {"cwd": ROOT, "env": {**os.environ, "BLENDER_WINDOW_HOME": folder}, "timeout": 900, "check": True}
        install = ["--command", "extension", "install-file", "-r", "user_default", "-e", archive]
        subprocess.run([str(BLENDER), "-b", "5.2", "-n", "--", *map(str, install)], **run)
        told = ["--python", scene, "--", *arguments]
        subprocess.run([str(BLENDER), "-b", "5.2", *window, "--", *map(str, told)], **run)


def rendered(text: str) -> str:
    """The page of a manual: headings, paragraphs, numbered lists, tables, files, pictures, and words that stand out."""
    blocks = re.split(r"\n{2,}", text.strip())
    title = blocks[0].lstrip("# ")
    headings = [block[3:] for block in blocks if block.startswith("## ")]
    links = "\n".join(f'<div><a href="#{slug(heading)}">{html.escape(heading)}</a></div>' for heading in headings)
    first, rest = blocks[:2], blocks[2:]
    body = "\n".join([*map(_block, first), f"<nav>\n{links}\n</nav>", *map(_block, rest)])
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        f"<style>\n{STYLE}\n</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def slug(heading: str) -> str:
    """What a heading is called in an address; as `addon/manual.py` has it."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _block(block: str) -> str:
    lines = block.splitlines()
    if block.startswith("```"):
        return "<pre>" + html.escape("\n".join(lines[1:-1]), quote=False) + "</pre>"
    if block.startswith("## "):
        return f'<h2 id="{slug(block[3:])}">{_inline(block[3:])}</h2>'
    if block.startswith("# "):
        return f"<h1>{_inline(block[2:])}</h1>"
    if block.startswith("| "):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("| ---")]
        kinds = ["th"] + ["td"] * (len(rows) - 1)
        cells = ["".join(f"<{kind}>{_inline(cell)}</{kind}>" for cell in row) for kind, row in zip(kinds, rows)]
        return "<table>\n" + "\n".join(f"<tr>{row}</tr>" for row in cells) + "\n</table>"
    if re.match(r"\d+\. ", block):
        items = re.split(r"\n?\d+\. ", block)[1:]
        return "<ol>\n" + "\n".join(f"<li>{_inline(' '.join(item.split()))}</li>" for item in items) + "\n</ol>"
    return f"<p>{_inline(' '.join(lines))}</p>"


def _inline(text: str) -> str:
    text = html.escape(text, quote=False)
    text = re.sub(r"!\[(.*?)\]\(manual/(.*?)\)", r'<img src="\2" alt="\1">', text)
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", text)


if __name__ == "__main__":
    sys.exit(main())
