"""Three loops that pull links and feed back forces: `python -m scripts.cases.coupling speed LINKS SECONDS`, with the
coupling loop in a process of its own while a molecule of so many links is simulated; `stability SECONDS`, a simulated
hand that holds a character of 30 bodies, in virtual time; or `plot`, Figure 5 of Morin and Redon (2007).

Molecules beyond EXACT links are simulated adaptively with ACTIVE joints, as the paper's.
"""

from __future__ import annotations

import json
import math
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from core import Adaptive, Joint, Simulation, compile_model
from core.companion import BIN, Companion, clock
from core.coupling import Coupling, sizes
from core.device import DeviceLoop
from core.device_simulated import SimulatedDevice
from core.grip import Grip
from core.hand import Springs, stable_stiffness
from core.live import Live
from core.mailbox import Mailboxes, Reader
from core.mechanisms import QUARTER_TURN, humanoid, rod
from core.mechanisms_large import molecule
from core.model import Model
from core.port import Limits
from core.threads import one_blas_thread

from .chain import peak_mb

PLOTS = Path(__file__).resolve().parents[2] / "docs"
SIZES = (40, 857, 13_000, 50_000)
EXACT, ACTIVE = 2000, 48
DAMPING = 0.5
"""Of the bonds [N m s/rad]."""
FRAME = 1 / 30
"""Seconds of a step of the molecules."""
STEPS = 3
"""At least so many steps are simulated, however long they take."""
RATES = (30, 60, 120)
TICK = 1e-3
"""Of virtual time [s]: every loop but the simulation takes a turn."""
SWAY, STILL = 2.5, 1.5
"""The hand moves for so many seconds, and holds still for so many."""
SETTLING = 12.0
"""The character hangs still before it is held; after a third of that it still swings, otherwise on every machine."""
TREMBLE = 0.02
"""What trembles no faster [m/s] does not; the noise of a device makes as much."""
LATE = 0.05
DROPOUTS = 1.7
"""One of LATE seconds in every so many."""


def speed(links: int, seconds: float) -> dict:
    linkage = molecule(links - 1)
    for link in linkage.links():
        link.joint.damping = DAMPING if link.joint.kind == "hinge" else 0.0
    model = compile_model(linkage)
    adaptive = Adaptive(joints=ACTIVE) if links > EXACT else None
    simulation = Simulation(
        model, gravity=np.zeros(3), frame_time=FRAME, substeps=1, adaptive=adaptive
    )  # fmt: skip
    swing = {"kind": "swing", "way": [0.2, 0.0, 0.1], "frequency": 0.5}
    steps = []
    with Mailboxes(sizes()) as boxes, one_blas_thread():
        live = Live(simulation, boxes)
        live.turn()
        with Companion(boxes, coupling=[Springs()], devices=[swing], measured=True) as companion:
            start = clock()
            held = None
            while clock() - start < seconds or len(steps) < STEPS:
                begin = clock()
                live.turn()
                spent = clock() - begin
                steps.append((begin, 1e3 * spent))
                time.sleep(max(0.0, FRAME - spent))
                if held is None and clock() - start > 0.2 * seconds:
                    live.hold(Grip(model.names[-1], (0.0, 0.0, 0.0)))
                    held = clock()
            measured = companion.end()
    bins = np.array(measured["bins"])
    usual = bins[bins[:, 3] > 0.8 * bins[:, 3].max()]
    return {
        "coupling_us": measured["us"], "coupling_us_p99": measured["us_p99"],
        "coupling_us_p99_quiet": float(np.percentile(bins[:, 2], 10)),
        "rate_hz": measured["rate_hz"], "rate_hz_quiet": float(usual[:, 3].mean() / BIN),
        "coupling_us_worst": measured["us_worst"],
        "step_ms": float(np.median([ms for _, ms in steps])), "steps": len(steps), "links": links, "peak_mb": peak_mb(),
        "course": {"start": measured["start"], "held": held, "bins": measured["bins"], "steps": steps},
    }  # fmt: skip


def character(fixed: bool = True) -> Model:
    """A limp man of 30 bodies, with fingers and a jaw, whose pelvis is fixed to the world or free."""
    linkage = humanoid(damping=0.5)
    links = {link.name: link for link in linkage.links()}
    for side in ("L", "R"):
        for finger in range(5):
            piece = rod(f"finger.{finger}.{side}", Joint("hinge", damping=0.01), length=0.07, mass=0.03)
            piece.position = np.array([0.0, 0.19, 0.02 * (finger - 2)])
            piece.shapes = []
            linkage.add(piece, links[f"hand.{side}"])
    jaw = rod("jaw", Joint("hinge", damping=0.05), length=0.08, mass=0.2)
    jaw.rotation, jaw.shapes = QUARTER_TURN.copy(), []
    linkage.add(jaw, links["head"])
    if fixed:
        links["pelvis"].joint = Joint("fixed")
    return compile_model(linkage)


def swayed(t: float) -> list[float]:
    """Where the hand goes at a time [s]: about, with stops, and after three of these the same way again."""
    whole, part = divmod(t, SWAY + STILL)
    part = min(part, SWAY) / SWAY
    # comes to rest smoothly
    angle = 2.0 * math.pi / 3.0 * (whole + part - math.sin(2.0 * math.pi * part) / (2.0 * math.pi))
    return [0.08 * math.sin(2.0 * angle), 0.06 * math.sin(3.0 * angle + 0.5), 0.05 - 0.05 * math.cos(angle)]


class Delayed:
    """A reader that learns everything later, by the `delay` [s] of a `clock`."""

    def __init__(self, reader: Reader, delay: float, now: Callable[[], float]) -> None:
        self.reader, self.delay, self.now = reader, delay, now
        self.message, self.number = reader.message, 0
        self._waiting: list[tuple[float, memoryview, int]] = []

    def fresh(self) -> bool:
        if self.reader.fresh():
            copied = memoryview(array("d", self.reader.message))
            self._waiting.append((self.now() + self.delay, copied, self.reader.number))
        due = [each for each in self._waiting if each[0] <= self.now() + 1e-9]
        if due:
            _, self.message, self.number = due[-1]
            del self._waiting[: len(due)]
        return bool(due)


@dataclass
class Session:
    """Three loops turned by hand in virtual time: a simulated `device` that holds a link of a `simulation`.

    `cost`: the share of a frame that its computing takes; `delay` [s] of the device's poses and forces on the way. What
    they say is in `lines`, with the time; `path` has (n, 3) where the `device` really was in every tick, and where the
    coupling took `hand` and `link` to be. Loops that are not `running` stand still.
    """

    simulation: Simulation
    device: SimulatedDevice
    springs: Springs = field(default_factory=Springs)
    cost: float = 0.5
    delay: float = 0.0
    lines: list[tuple[float, str]] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        say = lambda line: self.lines.append((self.now, line))  # noqa: E731
        self.boxes = Mailboxes(sizes())
        self.live = Live(self.simulation, self.boxes, say=say)
        self.coupling = Coupling(self.boxes, [self.springs], say)
        self.loop = DeviceLoop(self.device, self.boxes, say=say)
        if self.delay:
            hand, pose, share = self.coupling._each[0]
            self.coupling._each[0] = hand, Delayed(pose, self.delay, lambda: self.now), share
            self.loop._force = Delayed(self.loop._force, self.delay, lambda: self.now)
        self._step, self._tell = 0.0, math.inf
        self.path: dict[str, list[tuple]] = {"device": [], "hand": [], "link": []}
        self.running = {"simulation", "coupling", "device"}

    def run(self, seconds: float) -> Session:
        """So many seconds later."""
        frame = self.simulation.frame_time
        for _ in range(round(seconds / TICK)):
            now = self.now
            if "simulation" in self.running:
                if now + 1e-9 >= self._step:
                    self.live.advance(now)
                    self._tell, self._step = now + self.cost * frame, self._step + frame
                if now + 1e-9 >= self._tell:
                    self.live.tell(now, self._step)
                    self._tell = math.inf
            if "device" in self.running:
                self.loop.turn(now)
            if "coupling" in self.running:
                self.coupling.turn(now)
            own = self.coupling.hands[0]
            late = min(now - own._base, 2.0 * frame)
            self.path["device"].append(tuple(self.device.place))
            self.path["hand"].append(tuple(own.place))
            self.path["link"].append(tuple(x + late * v for x, v in zip(own._at, own._goes)))
            self.now = now + TICK
        return self

    def close(self) -> None:
        del self.coupling, self.loop, self.live
        self.boxes.close()


def held(rate: int, seconds: float, *, fixed: bool = True, fault: str = "", share: float = 1.0) -> dict:
    """A hand of 300 g that holds the character's at so many steps a second, as stiffly as is stated, or a `share` of
    it; with the `fault` "delay" or "dropouts", of LATE seconds."""
    simulation = Simulation(character(fixed), frame_time=1.0 / rate)
    dropouts = [(t, t + LATE) for t in np.arange(1.0, seconds, DROPOUTS)] if fault == "dropouts" else []
    limits = Limits(force=30.0, slew=20_000.0)
    device = SimulatedDevice(swayed, mass=0.3, noise=2e-5, dropouts=dropouts, limits=limits)
    asked = share * 1e5
    session = Session(simulation, device, Springs(stiffness=asked), delay=LATE if fault == "delay" else 0.0)
    with one_blas_thread():
        session.run(SETTLING)
        session.live.hold(Grip("hand.L", (0.0, 0.09, 0.0)))
        session.run(seconds)
    own, after = session.coupling.hands[0], round((SETTLING + 0.1) / TICK)
    device_path, hand, link = (np.array(session.path[name])[after:] for name in ("device", "hand", "link"))
    moved = np.linalg.norm(np.diff(device_path, axis=0), axis=1) / TICK
    # how fast the hand trembles at the end of each time in which it is to be still
    whole, calm = round((SWAY + STILL) / TICK), round(0.4 / TICK)
    ends = [moved[end - calm - after : end - after] for end in range(whole, after + len(moved), whole)]
    ends = [float(np.sqrt((end * end).mean())) for end in ends[math.ceil(SETTLING / (SWAY + STILL)) :]]
    half = max(1, len(ends) // 2)
    result = {
        "stiffness": own.stiffness[0], "stable": stable_stiffness(own._masses[0], 1.0 / rate, own._delay),
        "put_in_j": device.put_in, "given_back_j": device.given_back,
        "returned": device.given_back / device.put_in, "growth": max(ends[half:]) / max(*ends[:half], TREMBLE),
        "tremble_mm_s": 1e3 * max(ends), "trembles_mm_s": [round(1e3 * end, 1) for end in ends],
        "away_mm": 1e3 * float(np.abs(hand - link).max()),
        "lines": sorted({line for _, line in session.lines}),
    }  # fmt: skip
    session.close()
    return result


def stability(seconds: float) -> dict:
    metrics: dict = {"rows": []}
    for rate in RATES:
        for fault in ("", "delay", "dropouts"):
            row = {"rate": rate, "fault": fault or "none"} | held(rate, seconds, fault=fault)
            metrics["rows"].append(row)
            print(
                *(f"{key} {format(value, '.4g') if isinstance(value, float) else value}" for key, value in row.items())
            )
    rows = metrics["rows"]
    return metrics | {name: max(row[name] for row in rows) for name in ("returned", "growth", "tremble_mm_s")}


def plot() -> dict:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(SIZES), figsize=(15, 4.2), sharey=True, layout="constrained")
    metrics = {}
    for axis, links in zip(axes, SIZES):
        result = speed(links, 8.0)
        course = result.pop("course")
        bins, steps = np.array(course["bins"]), np.array(course["steps"])
        times, held = BIN * bins[:, 0], course["held"] - course["start"]
        axis.semilogy(steps[:, 0] - course["start"], steps[:, 1], ".-", color="tab:blue", label="simulation step")
        axis.semilogy(times, 1e-3 * bins[:, 1], color="tab:red", label="coupling, median")
        axis.semilogy(times, 1e-3 * bins[:, 2], color="tab:red", alpha=0.4, lw=0.8, label="coupling, 99 %")
        axis.axvspan(held, times[-1], color="gray", alpha=0.12, label="link held")
        how = "all joints" if links <= EXACT else f"{ACTIVE} joints active"
        axis.set(title=f"{links:,} links, {how}", xlabel="time [s]", xlim=(0.0, times[-1]))
        axis.grid(alpha=0.3)
        metrics |= {f"{name}_{links}": value for name, value in result.items() if name not in ("links", "peak_mb")}
    axes[0].set_ylabel("time taken [ms]")
    axes[-1].legend(fontsize="small", loc="center right")
    figure.savefig(PLOTS / "coupling.png", dpi=100)
    return metrics


def main(arguments: list[str]) -> None:
    if arguments[0] == "plot":
        metrics = plot()
    elif arguments[0] == "stability":
        metrics = stability(float(arguments[1]))
    else:
        metrics = speed(int(arguments[1]), float(arguments[2]))
        del metrics["course"]
    print(json.dumps({"metrics": metrics}))


if __name__ == "__main__":
    main(sys.argv[1:])
