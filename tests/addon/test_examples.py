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


CHAIN = """
import os, sys
from pathlib import Path
import example_scene
assert example_scene.main("snapping-chain", Path(sys.argv[1]), picture=False) == 0
sys.stdout.flush()
# Rigify makes the 4.2 wheel crash at exit
os._exit(0)
"""


@pytest.mark.slow
def test_the_chain_snaps_where_it_hangs_lowest(tmp_path):
    """What its picture shows: it breaks on the way, as its weight is stopped, at no other time."""
    scripts = {"PYTHONPATH": str(PLACES.parents[2] / "scripts")}
    command = [sys.executable, "-c", CHAIN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | scripts)
    assert done.returncode == 0, done.stderr[-2000:]
    broke = re.findall(r"^weak link: broke at frame ([0-9.]+)", done.stdout, re.MULTILINE)
    assert len(broke) == 1 and 5 < float(broke[0]) < 9, "between its third and fourth picture"
    assert "promise" not in done.stdout


PILE = """
import json, os, sys
from pathlib import Path
import bpy, example_scene
code = example_scene.main("pile", Path(sys.argv[1]), picture=False)
scene, platform, floor = bpy.context.scene, bpy.data.objects["Platform"], bpy.data.objects["Floor"]
people = [bpy.data.objects[name] for name in ("Ann", "Ben", "Cas")]
places = []
for frame in range(scene.frame_end - 12, scene.frame_end + 1):
    scene.frame_set(frame)
    top = platform.matrix_world.translation
    joints = [[rig.matrix_world @ rig.pose.bones[bone].head - top for bone in sys.argv[2:]] for rig in people]
    places.append([[list(joint) for joint in person] for person in joints])
print(json.dumps({"code": code, "places": places}), flush=True)
# Rigify makes the 4.2 wheel crash at exit
os._exit(0)
"""
JOINTS = ("spine", "spine.003", "spine.006", "shin.L", "shin.R", "foot.L", "foot.R", "forearm.L", "forearm.R")


@pytest.mark.slow
def test_three_people_fall_down_stairs_and_rest_in_a_pile(tmp_path):
    """Scenery is chosen on one of those who meet, and carries all: nobody falls through stairs, platform or floor."""
    scripts = {"PYTHONPATH": str(PLACES.parents[2] / "scripts")}
    command = [sys.executable, "-c", PILE, str(tmp_path), *JOINTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | scripts)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.strip().splitlines()[-1])
    assert result["code"] == 0
    assert "3 objects as scenery" in done.stdout
    assert "promise" not in done.stdout
    # the platform sets 200 kg moving at up to 0.6 m/s
    assert float(re.search(r"Energy gained ([0-9.e+-]+) J", done.stdout).group(1)) < 40
    assert float(re.search(r"Sinks in by ([0-9.]+) mm", done.stdout).group(1)) < 18
    assert limits(done.stdout) < 1.0
    places = np.array(
        result["places"]
    )  # (frames, people, joints, 3) [m] beside the platform's middle, 5 cm below its top
    last = places[-1]
    assert last[..., 2].min() > 0.05 - 0.3, "above the floor"
    assert last[..., 2].max() < 1.0, "nobody stands"
    aboard = (np.abs(last[..., 0]) < 1.5) & (np.abs(last[..., 1]) < 1.59)
    assert aboard.mean() > 0.4 and last[aboard][:, 2].min() > 0.05, "on the platform"
    slid = np.linalg.norm(last - places[0], axis=-1)
    assert np.median(slid) < 0.005 and slid.max() < 0.1, "at rest on what has moved"
