"""The example scenes, built by the extension's buttons in a process of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PLACES = Path(__file__).with_name("example_places.py")
RELEASE = 27
"""The frame at which the gymnast's right hand lets go."""


def built(name: str, folder: Path) -> tuple[str, dict[str, np.ndarray]]:
    """What the example printed, and the hands' places (frames, 3) [m] in the frame of what they hold."""
    command = [sys.executable, str(PLACES), name, str(folder)]
    scripts = {"PYTHONPATH": str(PLACES.parents[2] / "scripts")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | scripts)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.strip().splitlines()[-1])
    assert result["code"] == 0
    return done.stdout, {bone: np.array(path) for bone, path in result["places"].items()}


def moved(places: np.ndarray) -> float:
    return float(np.abs(places - places[0]).max())


def limits(text: str) -> float:
    """How far joints were beyond their limits, as reported [degrees]."""
    return float(re.search(r"Limits exceeded by ([0-9.e+-]+)°", text).group(1))


@pytest.mark.slow
def test_high_bar_holds_until_the_right_hand_lets_go(tmp_path):
    text, hands = built("high-bar", tmp_path)
    assert "cut at frame 27" in text
    assert moved(hands["hand.L"]) < 1e-5
    assert moved(hands["hand.R"][:RELEASE]) < 1e-5
    assert moved(hands["hand.R"]) > 0.1
    assert limits(text) < 1.0
    assert "breaks a promise" not in text


@pytest.mark.slow
def test_swing_loses_the_thighs_and_never_the_hands(tmp_path):
    text, hands = built("swing", tmp_path)
    off = re.findall(r"^thigh\.[LR] to Plate: slid off at frame ([0-9.]+)", text, re.MULTILINE)
    assert len(off) == 2 and all(96 < float(frame) < 172 for frame in off), "he sits until it swings high"
    assert moved(hands["hand.L"]) < 1e-5
    assert moved(hands["hand.R"]) < 1e-5
    assert limits(text) < 1.0
    assert "warning" not in text and "breaks a promise" not in text
