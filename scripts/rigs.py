"""Draws how each kind of rig falls after the three buttons: python scripts/rigs.py DATA writes out/rigs.png.

DATA is the folder with CesiumMan.glb, Fox.glb and cmu_131_01.bvh.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import environment
from environment import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(description="Draws how each kind of rig falls.")
    parser.add_argument("data", metavar="DATA", type=Path, help="folder with CesiumMan.glb, Fox.glb and cmu_131_01.bvh")
    parser.add_argument("names", metavar="NAME", nargs="*", help="which rigs; all without")
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"rigs.py: {options.data} is not a folder", file=sys.stderr)
        return 2
    python = environment.blender()
    script = ROOT / "scripts" / "rigs_scene.py"
    done = subprocess.run([python, script, options.data, ROOT / "out", *options.names], timeout=1800)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
