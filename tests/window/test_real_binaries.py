"""The zip in real Blender binaries, which behave unlike the bpy module: the command line, and the panel in a window."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BLENDER = ROOT.parent / "shared" / "tools" / "blender-window"
CESIUM_MAN = ROOT.parent / "shared" / "data" / "CesiumMan.glb"
HERE = Path(__file__).parent
ROOM = "grep -o '/[^ ]*/blender-window/[^ ]*' /proc/mounts | tac | xargs -r umount -l; exec \"$@\""
"""Run with mounts of its own, which end with it: what an ended run has left mounted is in no other's way."""

pytestmark = [
    pytest.mark.window,
    pytest.mark.skipif(not BLENDER.exists(), reason=f"the real binaries are run by {BLENDER.name}, which is not here"),
]


class RealBlender:
    """A real Blender with a fresh home, where the zip is installed."""

    def __init__(self, version: str, archive: Path, home: Path) -> None:
        self.version, self.home = version, home
        self.run("--command", "extension", "install-file", "-r", "user_default", "-e", archive)

    def run(
        self, *arguments, picture: Path | None = None, until: Path | None = None, folder: Path | None = None,
        size: str = "1600x900",
    ) -> str:  # fmt: skip
        """Runs it, in a window that is photographed where a picture is asked for, once it has written `until`, or with
        hands that do what is asked for in a `folder`; returns what it printed."""
        # beside other tests software OpenGL has drawn nothing yet after half as long
        options = ["-o", picture, "-w", 30] if picture else ["-n"]
        if until:
            waiting = picture.with_suffix(".sh")
            waiting.write_text(f"for i in $(seq 300); do [ -s {until} ] && break; sleep 1; done\n")
            options += ["-x", waiting]
        if folder:
            options = ["-o", picture, "-w", 5, "-x", HERE / "hands.sh"]
        room = ["unshare", "--mount", "bash", "-c", ROOM, BLENDER]
        command = [*room, BLENDER, "-b", self.version, "-s", size, *options, "--", *arguments]
        variables = {**os.environ, "BLENDER_WINDOW_HOME": str(self.home), "FOLDER": str(folder)}
        # the first call makes the root that Blender runs in, which takes minutes
        done = subprocess.run(
            list(map(str, command)), cwd=ROOT, env=variables, timeout=900, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture(scope="module", params=["4.3", "5.2"])
def blender(request, tmp_path_factory) -> RealBlender:
    bpy = pytest.importorskip("bpy", reason="the zip is built by Blender (bpy), which is not installed")
    builder = Path(bpy.utils.system_resource("SCRIPTS")) / "addons_core" / "bl_pkg" / "cli" / "blender_ext.py"
    folder = tmp_path_factory.mktemp("real")
    subprocess.run(
        [sys.executable, builder, "build", "--source-dir", ROOT, "--output-dir", folder], check=True, timeout=60
    )
    return RealBlender(request.param, next(folder.glob("*.zip")), tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def man(blender, tmp_path_factory) -> Path:
    """The walking man as a Blender file."""
    path = tmp_path_factory.mktemp("man") / "man.blend"
    blender.run("-b", "--python-exit-code", 1, "--python", HERE / "import_gltf.py", "--", CESIUM_MAN, path)
    return path


def test_command_line_bakes(blender, man, tmp_path):
    """Farms and scripts run the extension by Blender's own `--command`."""
    report, baked = tmp_path / "report.json", tmp_path / "baked.blend"
    blender.run("-b", man, "--command", "armature_dynamics", "bake", "--report", report, "--out", baked)
    assert json.loads(report.read_text())["ok"]
    assert baked.stat().st_size > 0


def test_a_hand_couples_in_a_process_of_blenders_own_python(blender, tmp_path):
    """Who has no Python of their own has Blender's: the coupling's loop runs in it, feels, and ends."""
    out = tmp_path / "found.json"
    printed = blender.run("-b", "--python-exit-code", 1, "--python", HERE / "couple.py", "--", out)
    found = json.loads(out.read_text())
    assert found["felt"] > 0.1, (found, printed)
    # it has ended by itself, not by being killed, and so could tell what it has measured
    assert found["left"] == 0, (found, printed)
    assert found["rate_hz"] > 0, (found, printed)


def test_panel_is_drawn_in_a_window(blender, man, tmp_path):
    """Panels and overlays that fail to draw show only in a window; the picture is kept in out/ to be looked at."""
    picture = tmp_path / "panel.png"
    arguments = ["--python-exit-code", 1, man, "--python", HERE / "show_panel.py", "--", tmp_path / "drawn"]
    printed = blender.run(*arguments, picture=picture, until=tmp_path / "drawn")
    assert "Traceback" not in printed
    assert picture.stat().st_size > 50_000, "the picture is as good as empty"
    kept = ROOT / "out" / f"panel-{blender.version}.png"
    kept.parent.mkdir(exist_ok=True)
    shutil.copy(picture, kept)


def test_long_work_lets_blender_draw_and_esc_leaves_nothing(blender, man, tmp_path):
    """A window that hangs is killed by its user. What the operator keeps to itself is its own time; how quickly Blender
    draws between is the machine's, and is kept in out/."""
    kept = ROOT / "out" / f"long-work-{blender.version}.json"
    kept.parent.mkdir(exist_ok=True)
    found = tmp_path / "found.json"
    blender.run(
        "--enable-event-simulate", man, "--python", HERE / "watch_simulation.py", "--", 4, found,
        picture=tmp_path / "end.png", until=found,
    )  # fmt: skip
    shutil.copy(found, kept)
    outcome = json.loads(found.read_text())
    assert outcome["seen"] > 0, "the character moves while it runs"
    assert outcome["stopped"] == outcome["before"]
    assert outcome["finished"]["state"] == "SIMULATED"
    assert len(outcome["finished"]["actions"]) == len(outcome["before"]["actions"]) + 1
    assert outcome["redraws"] > outcome["pieces"] / 2, "pieces of its work, between which Blender draws"
    assert outcome["busy"] < 0.3, "seconds of the processor's time"


def test_an_animators_day(blender, tmp_path):
    """The product is judged inside Blender's window: the three actions, Esc, undo and redo, overlays, a fix and two
    characters, by mouse and keys."""
    picture = tmp_path / "day.png"
    printed = blender.run("--python", HERE / "animators_day.py", "--", tmp_path, picture=picture, folder=tmp_path)
    found = json.loads((tmp_path / "found.json").read_text())
    assert "error" not in found and "Traceback" not in printed, found.get("error", printed)
    assert found["esc_leaves_nothing"] and found["kept"]
    assert found["undone"] == [[True, "SIMULATED"], [True, "SOURCE"], [False, "SOURCE"]]
    assert found["there_and_back"] > 16
    assert found["overlays"] == ["show_shapes", "show_contacts", "show_activity"]
    assert found["problem_found"] and found["problem_mended"]
    assert found["beside_m"] == pytest.approx(0.3)
    assert found["two_states"] == ["SIMULATED", "SIMULATED"]
    kept = ROOT / "out" / f"day-{blender.version}.png"
    kept.parent.mkdir(exist_ok=True)
    shutil.copy(picture, kept)


def test_a_mouse_lifts_a_hand_and_it_is_kept(blender, tmp_path):
    """Grab is done by hand: what the mouse has pulled and the window has shown is what the keys replay, and Esc leaves
    nothing of it. How often it was drawn is kept in out/: a small window, as software draws it here."""
    script, picture = HERE / "grab_hand.py", tmp_path / "end.png"
    printed = blender.run("--python", script, "--", tmp_path, picture=picture, folder=tmp_path, size="640x480")
    found = json.loads((tmp_path / "found.json").read_text())
    assert "error" not in found and "Traceback" not in printed, found.get("error", printed)
    kept = ROOT / "out"
    kept.mkdir(exist_ok=True)
    shutil.copy(tmp_path / "grab.png", kept / f"grab-{blender.version}.png")
    shutil.copy(tmp_path / "found.json", kept / f"grab-{blender.version}.json")
    assert min(found["lifted_m"], found["lifted_again_m"], found["pinned_m"]) > 0.2 > found["released_m"] + 0.2
    assert found["esc_leaves_nothing"]
    assert found["frames"] > 10 and found["apart_m"] < 1e-3
    assert found["frame_after"] == 0 and found["undone"]


def test_it_is_pulled_from_every_view_and_while_the_scene_plays(blender, tmp_path):
    """Playback rests while it plays live, all views show it, and the hand goes where the mouse does in each of a quad
    view's."""
    script, picture = HERE / "grab_views.py", tmp_path / "end.png"
    printed = blender.run("--python", script, "--", tmp_path, picture=picture, folder=tmp_path, size="1000x700")
    found = json.loads((tmp_path / "found.json").read_text())
    assert "error" not in found and "Traceback" not in printed, found.get("error", printed)
    assert found["playing"] and found["plays_on"] and found["areas"] == 2
    assert found["frames"] > 20 and found["apart_m"] < 1e-4
    for right, upward, toward in (found["while_playing_m"], *found["quads_m"]):
        assert right > 0.1 and abs(upward) + abs(toward) < 0.1 * right
    assert len(found["quads_m"]) == 4


def test_the_interface_speaks_german(blender, man, tmp_path):
    """Only real Blenders are built with languages: labels, buttons, tooltips and messages, in its own catalogs."""
    texts, picture = tmp_path / "texts.json", tmp_path / "german.png"
    script = HERE / "show_german.py"
    printed = blender.run("--python-exit-code", 1, man, "--python", script, "--", texts, picture=picture)
    assert "Traceback" not in printed
    found = json.loads(texts.read_text(encoding="utf-8"))
    words = json.loads((ROOT / "presets" / "words" / "de.json").read_text(encoding="utf-8"))
    assert all(found[text] == words[text] for text in ("Make Dynamic", "Bounciness", "Every n-th Frame", "Wood")), found
    assert found["tooltip"].startswith("Lässt die Physik die Armatur"), found
    assert "sind kein Bereich; das Ende muss nach dem Start kommen" in found["refused"], found
    kept = ROOT / "out" / f"german-{blender.version}.png"
    kept.parent.mkdir(exist_ok=True)
    shutil.copy(picture, kept)
