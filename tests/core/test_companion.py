"""Loops in processes of their own: they start, meet, end and die without hanging anybody or leaving anything."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from array import array
from pathlib import Path

import numpy as np
import pytest

from core.companion import Companion, Loop, clock, python, report, run
from core.coupling import sizes
from core.grip import Grip
from core.hand import Springs
from core.live import Live
from core.mailbox import SEGMENTS, Mailboxes
from core.mechanisms import chain
from core.model import compile_model
from core.simulation import Simulation

ROOT = Path(__file__).parents[2]
SWING = {"kind": "swing", "way": [0.05, 0.0, 0.0], "frequency": 1.0}
PARENT = """
import sys, time
from core.companion import Companion
from core.coupling import sizes
from core.hand import Springs
from core.mailbox import Mailboxes
boxes = Mailboxes(sizes())
companion = Companion(boxes, coupling=[Springs()])
forces = boxes.reader("forces")
while not forces.fresh():
    time.sleep(0.01)
print(boxes.name, companion.process.pid, flush=True)
time.sleep(60)
"""


PATIENCE = 30.0


def until(happens, seconds: float = PATIENCE) -> bool:
    """Whether something happens, soon or, on a busy machine, later."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happens():
            return True
        time.sleep(0.01)
    return False


def living() -> tuple[Simulation, Mailboxes]:
    model = compile_model(chain(4, "spherical", damping=0.1))
    return Simulation(model, frame_time=1 / 60), Mailboxes(sizes())


def test_a_hand_in_another_process_pulls_and_feels(capfd):
    """Nothing but shared memory between them: the link follows the hand of another process, which feels it."""
    simulation, boxes = living()
    said: list[str] = []
    with boxes, Companion(boxes, coupling=[Springs(stiffness=50.0)], devices=[SWING], measured=True) as companion:
        live, forces = Live(simulation, boxes, say=said.append), boxes.reader("forces")
        live.hold(Grip("link.3", (0.0, 0.05, 0.0)))
        felt, moved = [], []

        def frame() -> bool:
            live.turn()
            time.sleep(1 / 60)
            forces.fresh()
            felt.append(abs(forces.message[4]))
            moved.append(abs(simulation.moving("link.3")[0][0, 3]))
            return max(felt) > 0.1 and max(moved) > 0.02

        assert until(frame)
        assert companion.process.poll() is None
        measured = companion.end(PATIENCE)
    assert measured["us"] > 0.0
    assert measured["rate_hz"] > 0.0
    assert companion.process.poll() is not None
    errors = capfd.readouterr().err
    assert "Traceback" not in errors
    assert "resource_tracker" not in errors


def test_a_companion_that_is_killed_is_noticed_and_nothing_hangs():
    """A crash of one loop is a line in the others."""
    simulation, boxes = living()
    said: list[str] = []
    with boxes:
        live = Live(simulation, boxes, say=said.append)
        live.hold(Grip("link.3"))
        companion = Companion(boxes, coupling=[Springs(stiffness=50.0)], devices=[SWING])

        def pulled() -> bool:
            live.turn()
            return bool(simulation.world.grips.aims[0].stiffness.any())

        assert until(pulled)
        os.kill(companion.process.pid, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        assert until(lambda: not pulled())
        assert any("the coupling has stalled" in line for line in said)
        assert companion.end() == {}


@pytest.mark.skipif(not SEGMENTS.is_dir(), reason="this system does not list its shared memory")
def test_a_companion_whose_parent_is_killed_ends_and_leaves_no_memory():
    """Blender may be killed: its loops must not spin on for ever, nor its memory stay."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    name, child = parent.stdout.readline().split()
    assert (SEGMENTS / name).exists()
    parent.kill()
    parent.wait()
    assert until(lambda: not (SEGMENTS / name).exists())
    # the child has its errors where its parent had them
    assert until(lambda: not Path(f"/proc/{child}").exists())
    assert parent.stderr.read() == ""


def test_companions_come_and_go_while_the_memory_stays():
    """A device is plugged out and in again; the coupling goes on."""
    with Mailboxes(sizes()) as boxes:
        told = boxes.reader("pose.0")
        for _ in range(2):
            with Companion(boxes, devices=[SWING]):
                assert until(told.fresh)


def test_a_driver_reaches_a_device_in_a_process_of_its_own():
    """The loop of a vendor's driver: datagrams in, poses in shared memory, forces back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, Mailboxes(sizes()) as boxes:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as driver,
            Companion(boxes, devices=[{"kind": "udp", "port": port}]),
        ):
            driver.bind(("127.0.0.1", 0))
            told, number = boxes.reader("pose.0"), iter(range(1, 10**6))

            def arrives() -> bool:
                driver.sendto(struct.pack("<8d", next(number), 0.1, 0.2, 0.3, 1, 0, 0, 0), ("127.0.0.1", port))
                return told.fresh()

            assert until(arrives)
            assert told.message.tolist()[2:5] == [0.1, 0.2, 0.3]
            driver.settimeout(10.0)
            assert struct.unpack("<6d", driver.recv(100)) == (0.0,) * 6


def test_loops_are_turned_at_their_rates_and_late_turns_are_not_made_up_for():
    """A loop that was put aside for a second must not then run a thousand turns at once."""
    ended, fast, slow = threading.Event(), [], []

    def turn(now: float) -> None:
        if len(fast) == 5:
            time.sleep(0.2)
        fast.append(now)
        if len(fast) > 60:
            ended.set()

    loops = [Loop(turn, 1000.0), Loop(slow.append, 100.0)]
    run([loops[0].measured(), loops[1]], ended)
    assert np.diff(fast).min() > 0.0
    # on the grid of the rate; the turn after a late one may follow at once, never two, however busy the machine is
    assert np.subtract(fast[2:], fast[:-2]).min() > 1e-3 - 1e-9
    assert fast[6] - fast[5] > 0.2
    assert loops[0].count == len(fast)
    assert slow


def test_reports_are_medians_and_percentiles():
    """Figures that are quoted: microseconds from nanoseconds."""
    loop = Loop(print, 1.0, durations=array("q", range(1000, 102_000, 1000)), times=array("d", np.arange(101) * 0.01))
    loop.count = 101
    told = report(loop)
    assert told["us"] == pytest.approx(51.0)
    assert told["us_p99"] == pytest.approx(100.0)
    assert told["us_worst"] == pytest.approx(101.0)
    assert told["rate_hz"] == pytest.approx(100.0)
    assert len(told["bins"]) == pytest.approx(20, abs=1)


def test_the_python_that_is_started_is_this_one(monkeypatch):
    """In Blender `sys.executable` is its Python, in some builds Blender itself, which must not be started again."""
    assert python() == sys.executable
    monkeypatch.setattr(sys, "executable", "/somewhere/blender")
    assert Path(python()).stem.startswith("python")
    assert subprocess.run([python(), "-c", "print(1)"], capture_output=True, text=True).stdout == "1\n"
    assert clock() <= clock()
