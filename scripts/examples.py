"""Builds example scenes: python scripts/examples.py [NAME ...], all without names.

Each writes out/NAME.blend and a picture of some of its frames, out/NAME.png, and prints the result.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import environment
from environment import ROOT

NAMES = ("high-bar", "swing", "holding-hands", "snapping-chain", "pile")


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds example scenes in out/.")
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"which: {', '.join(NAMES)}")
    names = parser.parse_args().names or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"examples.py: there is no example {unknown[0]!r}; choose from {', '.join(NAMES)}", file=sys.stderr)
        return 2
    python = environment.blender()
    script = ROOT / "scripts" / "example_scene.py"
    return max(subprocess.run([python, script, name, ROOT / "out"], timeout=900).returncode for name in names)


if __name__ == "__main__":
    sys.exit(main())
