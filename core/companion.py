"""Loops in processes of their own, beside the one that simulates: `python -m core.companion`, with what to run as JSON.

They are started with the Python that runs this, in Blender its own, and meet the others in mailboxes alone. Who has
started them holds their standard input open: when that closes without a word, whatever it died of, they end and leave
no memory.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from .coupling import Coupling, sizes
from .device import Device, DeviceLoop
from .device_simulated import SimulatedDevice
from .device_udp import UdpDevice
from .hand import Springs
from .mailbox import Mailboxes
from .port import Limits

RATE = 12_500.0
"""Turns of the coupling in a second."""
SPIN = 1.5e-4
"""What is due sooner than this [s] is not slept for: no system wakes in time."""
REMEMBERED = 1 << 20
"""So many turns are measured,"""
BIN = 0.05
"""in bins of so many seconds."""

clock = time.perf_counter
"""The same in all processes of a machine [s]."""


class Companion:
    """A process beside this one, with the `coupling` of these springs, one for each hand, turned `rate` times a second,
    or the `devices` of hands, as keywords of what `plugged` takes, or both; a context that ends it. With `measured`,
    `end` returns what the coupling's turns took, see `report`. Raises OSError where no Python is found.
    """

    def __init__(
        self, boxes: Mailboxes, hands: int = 1, *, coupling: Sequence[Springs] = (), devices: Sequence[dict] = (),
        rate: float = RATE, measured: bool = False,
    ) -> None:  # fmt: skip
        told = {"name": boxes.name, "hands": hands, "coupling": [asdict(each) for each in coupling], "rate": rate,
                "devices": list(devices), "measured": measured}  # fmt: skip
        self.process = subprocess.Popen(
            [python(), "-m", f"{Path(__file__).parent.name}.companion", json.dumps(told)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip

    def __enter__(self) -> Companion:
        return self

    def __exit__(self, *_) -> None:
        self.end()

    def end(self, patience: float = 5.0) -> dict:
        """Ends it, and returns what it has measured."""
        if self.process.stdout.closed:
            return {}
        try:
            told, _ = self.process.communicate("end", timeout=patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            told, _ = self.process.communicate()
        return json.loads(told.splitlines()[-1]) if told else {}


def python() -> str:
    """The Python of this process: in Blender that which comes with it, where `sys.executable` is not Blender itself."""
    if Path(sys.executable or "").stem.lower().startswith("python"):
        return sys.executable
    for folder in (Path(sys.prefix) / "bin", Path(sys.prefix)):
        for found in sorted(folder.glob("python3*")) or sorted(folder.glob("python.exe")):
            return str(found)
    raise OSError(f"there is no Python in {sys.prefix}, so that grabbing has no process of its own; reinstall Blender")


def plugged(kind: str, hand: int = 0, limits: dict | None = None, **how) -> tuple[int, Device]:
    """The device of a hand: of the kind "udp", as `UdpDevice`, or "swing", a simulated hand that goes to and fro along
    a `way` (3,) [m], `frequency` times a second. A vendor's driver that is a library becomes a kind of its own here."""
    limits = Limits(**(limits or {}))
    if kind == "udp":
        return hand, UdpDevice(limits=limits, **how)
    if kind == "swing":
        way, rate = how["way"], 2.0 * math.pi * how["frequency"]
        return hand, SimulatedDevice(lambda t: [x * math.sin(rate * t) for x in way], limits=limits)
    raise ValueError(f"there is no device of kind {kind!r}; plug in udp or swing")


@dataclass
class Loop:
    """A `turn` that is to be taken `rate` times in a second, the next when it is `due`; turns that are late are not
    made up for. `durations` [ns] and `times` [s] of turns, where there is room for them."""

    turn: Callable[[float], None]
    rate: float
    due: float = 0.0
    durations: array | None = None
    times: array | None = None
    count: int = 0

    def measured(self) -> Loop:
        self.durations, self.times = (array(kind, bytes(8 * REMEMBERED)) for kind in "qd")
        return self


def run(loops: Sequence[Loop], ended: threading.Event) -> None:
    """Turns loops until they have ended; between turns it waits without sleeping, unless there is time for that."""
    nanoseconds, is_set = time.perf_counter_ns, ended.is_set
    # nothing may come in between
    gc.collect()
    gc.freeze()
    gc.disable()
    while not is_set():
        now = clock()
        for loop in loops:
            if now < loop.due:
                continue
            begin = nanoseconds()
            loop.turn(now)
            spent = nanoseconds() - begin
            if loop.durations is not None and loop.count < REMEMBERED:
                loop.durations[loop.count], loop.times[loop.count] = spent, now
            loop.count += 1
            loop.due = max(loop.due + 1.0 / loop.rate, now)
            now = clock()
        rest = min(loop.due for loop in loops) - clock()
        if rest > SPIN:
            time.sleep(rest - SPIN)
    gc.enable()


def report(loop: Loop) -> dict:
    """Of a loop that was measured the median `us`, 99th percentile `us_p99` and largest `us_worst` of its turns [µs],
    and `rate_hz`; of the `bins` of BIN seconds from `start` [s] on that have turns, each one's number, median, 99th
    percentile and count."""
    spent, times = np.array(loop.durations[: loop.count]) * 1e-3, np.array(loop.times[: loop.count])
    if len(spent) < 2:
        return {}
    bins = np.floor((times - times[0]) / BIN).astype(int)
    edges = np.flatnonzero(np.diff(bins)) + 1
    whole = [
        [int(number), float(np.median(part)), float(np.percentile(part, 99)), len(part)]
        for number, part in zip(bins[np.append(0, edges)], np.split(spent, edges)[:-1])
    ]
    middle, most = np.percentile(spent, (50, 99))
    return {
        "us": float(middle), "us_p99": float(most), "us_worst": float(spent.max()),
        "rate_hz": (len(times) - 1) / (times[-1] - times[0]), "start": float(times[0]), "bins": whole,
    }  # fmt: skip


def _until_told(ended: threading.Event, orphaned: threading.Event) -> None:
    """Waits for a word from who has started this process; without one it has died."""
    with contextlib.suppress(OSError, ValueError):
        if not sys.stdin.read(1):
            orphaned.set()
    ended.set()


def main(told: dict) -> None:
    """Runs what it is told until it is to end."""
    ended, orphaned = threading.Event(), threading.Event()
    say = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    try:
        boxes = Mailboxes(sizes(told["hands"]), told["name"])
    except FileNotFoundError:
        return
    loops, devices = [], []
    if told["coupling"]:
        loops.append(Loop(Coupling(boxes, [Springs(**each) for each in told["coupling"]], say).turn, told["rate"]))
    for given in told["devices"]:
        hand, device = plugged(**given)
        devices.append(DeviceLoop(device, boxes, hand, say))
        loops.append(Loop(devices[-1].turn, device.rate))
    first = loops[0].measured() if told["measured"] else None
    threading.Thread(target=_until_told, args=(ended, orphaned), daemon=True).start()
    try:
        run(loops, ended)
    finally:
        for each in devices:
            each.close()
        if orphaned.is_set():
            boxes.unlink()
        boxes.close()
    if first:
        print(json.dumps(report(first)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
