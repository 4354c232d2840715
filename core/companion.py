"""Loops in processes of their own, beside the one that simulates: `python -m core.companion`, with what to run as JSON.

They are started with the Python that runs this, in Blender its own, and meet the others in mailboxes alone. Who has
started them holds their standard input open: when that closes, whatever it died of, they end and leave no memory.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from .coupling import Coupling, sizes
from .device import DeviceLoop
from .device_udp import UdpDevice
from .hand import Springs
from .mailbox import Mailboxes
from .port import Limits

RATE = 12_500.0
"""Turns of the coupling in a second."""
SPIN = 1.5e-4
"""What is due sooner than this [s] is not slept for: no system wakes in time."""
REMEMBERED = 1 << 20
"""So many turns are measured."""

clock = time.perf_counter
"""The same in all processes of a machine [s]."""


class Companion:
    """A process with the coupling of these `springs`, one for each hand, or with the device of one hand; a context that
    ends it. With `measured`, `end` returns what turns took, see `report`. Raises OSError where Python does not start.
    """

    def __init__(self, boxes: Mailboxes, hands: int = 1, *, measured: bool = False, **what: object) -> None:
        told = {"name": boxes.name, "hands": hands, "measured": measured, **what}
        self.process = subprocess.Popen(
            [python(), "-m", f"{Path(__file__).parent.name}.companion", json.dumps(told)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip

    @classmethod
    def coupling(cls, boxes: Mailboxes, springs: Sequence[Springs] = (Springs(),), **how: object) -> Companion:
        """The coupling loop, at `rate` [1/s]."""
        return cls(boxes, len(springs), coupling=[asdict(each) for each in springs], **how)

    @classmethod
    def udp_device(
        cls, boxes: Mailboxes, port: int, hand: int = 0, hands: int = 1, limits: Limits | None = None, **how: object
    ) -> Companion:
        """The loop of a driver that sends to a `port` of this machine."""
        return cls(boxes, hands, device={"port": port, "hand": hand, "limits": asdict(limits or Limits())}, **how)

    def __enter__(self) -> Companion:
        return self

    def __exit__(self, *_) -> None:
        self.end()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self, patience: float = 2.0) -> dict:
        """Ends it, and returns what it has measured."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        output = self.process.stdout
        if output.closed:
            return {}
        with output:
            lines = output.read().splitlines()
        return json.loads(lines[-1]) if lines else {}


def python() -> str:
    """The Python of this process: in Blender that which comes with it, where `sys.executable` is not Blender itself."""
    if Path(sys.executable or "").stem.lower().startswith("python"):
        return sys.executable
    for folder in (Path(sys.prefix) / "bin", Path(sys.prefix)):
        for found in sorted(folder.glob("python3*")) or sorted(folder.glob("python.exe")):
            return str(found)
    raise OSError(f"there is no Python in {sys.prefix}, so that grabbing has no process of its own; reinstall Blender")


def run(turn: Callable[[float], None], rate: float, ended: threading.Event, durations: array | None = None) -> float:
    """Turns at the `rate` [1/s] until it has `ended`; returns for how long [s]. Late turns are not made up for."""
    period, count = 1.0 / rate, 0
    start = due = clock()
    room = 0 if durations is None else len(durations)
    nanoseconds = time.perf_counter_ns
    is_set = ended.is_set
    # nothing may come in between
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        while not is_set():
            now = clock()
            if now < due:
                if due - now > SPIN:
                    time.sleep(due - now - SPIN)
                continue
            begin = nanoseconds()
            turn(now)
            spent = nanoseconds() - begin
            if count < room:
                durations[count] = spent
            count += 1
            due += period
            if due < now:
                due = now
    finally:
        gc.enable()
    if durations is not None:
        del durations[min(count, room) :]
    return clock() - start


def report(durations: Sequence[int], seconds: float) -> dict:
    """Median, 99th percentile and largest of turns [µs], and how many there were in a second."""
    if not len(durations):
        return {}
    ordered = sorted(durations)
    pick = lambda share: ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1e-3  # noqa: E731
    return {"us": pick(0.5), "us_p99": pick(0.99), "us_worst": pick(1.0), "rate_hz": len(ordered) / seconds}


def _until_orphaned(ended: threading.Event) -> None:
    with contextlib.suppress(OSError, ValueError):
        while sys.stdin.read(1):
            pass
    ended.set()


def main(told: dict) -> None:
    """Runs what it is told until it is orphaned."""
    ended = threading.Event()
    say = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    try:
        boxes = Mailboxes(sizes(told["hands"]), told["name"])
    except FileNotFoundError:
        return
    device = None
    if "coupling" in told:
        turn = Coupling(boxes, [Springs(**each) for each in told["coupling"]], say).turn
        rate = told.get("rate", RATE)
    else:
        given = told["device"]
        device = DeviceLoop(UdpDevice(given["port"], limits=Limits(**given["limits"])), boxes, given["hand"], say)
        turn, rate = device.turn, told.get("rate", device.device.rate)
    durations = array("q", bytes(8 * REMEMBERED)) if told["measured"] else None
    threading.Thread(target=_until_orphaned, args=(ended,), daemon=True).start()
    try:
        seconds = run(turn, rate, ended, durations)
    finally:
        if device:
            device.close()
        del turn, device
        boxes.unlink()
        boxes.close()
    if durations is not None:
        print(json.dumps(report(durations, seconds)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
