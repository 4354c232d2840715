"""Throws a Rigify character down a flight of steps: writes out/demo.blend and out/demo.png, and prints the report."""

from __future__ import annotations

import subprocess
import sys

import environment
from environment import ROOT


def main() -> int:
    python = environment.blender()
    return subprocess.run([python, ROOT / "scripts" / "demo_scene.py", ROOT / "out"], timeout=600).returncode


if __name__ == "__main__":
    sys.exit(main())
