"""Measures one case, with the peers it is compared with in the same run; the last line is one JSON object.

python3 scripts/bench.py humanoid --json
python3 scripts/bench.py chain --links 1000 --peers --json
python3 scripts/bench.py blender --json
python3 scripts/bench.py tentacle --json
python3 scripts/bench.py keep --json
python3 scripts/bench.py n-four-bar --n 40 --json
python3 scripts/bench.py ragdoll-pile --peers --json
python3 scripts/bench.py quasi-statics --model molecule --forces 1 --eps 2^-19 --json
python3 scripts/bench.py coupling --links 857 --json
python3 scripts/bench.py prepare --json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import environment
from environment import ROOT, PreparationError

LIMIT, CHAIN_LIMIT, PEER_LIMIT, PLOT_LIMIT, LARGE_LIMIT = 280, 140, 35, 900, 1800
"""Seconds for a whole case; for our chain and for each peer's: a case ends within five minutes. Plots and large
models take longer."""
STABILITY = 60
"""Virtual seconds for which a hand holds a character."""


class MeasurementError(RuntimeError):
    """A part of a case gave no figures; the message is the reason."""


def measure(python: Path, *arguments: str, limit: float = LIMIT) -> dict:
    """Runs a module of scripts/cases; returns the JSON object on its last line."""
    command = [str(python), "-m", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"not done within {limit:.0f} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        crash = f"ended by signal {-done.returncode}" if done.returncode < 0 else last
        raise MeasurementError(crash)
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure_ours(*arguments: str, limit: float = LIMIT, using: tuple[str, ...] = ()) -> dict:
    return measure(environment.prepare(environment.default().using(*using)), *arguments, limit=limit)["metrics"]


def humanoid(options: argparse.Namespace) -> dict:
    return measure_ours("scripts.cases.humanoid")


def chain(options: argparse.Namespace) -> dict:
    links = str(options.links)
    metrics = measure_ours("scripts.cases.chain", links, limit=CHAIN_LIMIT)
    if options.peers:
        for engine in environment.PEERS:
            print(f"measuring {engine}", flush=True)
            try:
                python = environment.prepare(environment.peer(engine))
                metrics[f"{engine}_ms"] = measure(python, "scripts.cases.peers", engine, links, limit=PEER_LIMIT)["ms"]
            except (PreparationError, MeasurementError) as reason:
                metrics |= {f"{engine}_ms": None, f"{engine}_reason": str(reason)}
    return metrics


def blender(options: argparse.Namespace) -> dict:
    return measure_ours("scripts.cases.blender")


def loops(options: argparse.Namespace) -> dict:
    sizes = (str(options.n),) if options.case == "n-four-bar" else ()
    return measure_ours("scripts.cases.loops", options.case, *sizes)


def four_bar(options: argparse.Namespace) -> dict:
    return measure_ours("scripts.cases.four_bar", using=("matplotlib>=3.8",))


def contacts(options: argparse.Namespace) -> dict:
    return measure_ours(f"scripts.cases.{options.case.replace('-', '_')}")


def ragdoll_pile(options: argparse.Namespace) -> dict:
    metrics = contacts(options)
    if options.peers:
        try:
            python = environment.prepare(environment.peer("mujoco"))
            metrics |= measure(python, "scripts.cases.ragdoll_pile", "mujoco")["metrics"]
        except (PreparationError, MeasurementError) as reason:
            metrics["mujoco_reason"] = str(reason)
    return metrics


def quasi_statics(options: argparse.Namespace) -> dict:
    module = "scripts.cases.quasi_statics"
    if options.plot:
        return measure_ours(module, "plot", limit=PLOT_LIMIT, using=("matplotlib>=3.8",))
    exponent = "0" if options.eps is None else f"{options.eps:g}"
    return measure_ours(module, options.model or "molecule", str(options.forces), exponent, str(options.steps))


def adaptive(options: argparse.Namespace) -> dict:
    module = "scripts.cases.adaptive_dynamics"
    if options.case == "adaptive-dynamics":
        limit = LIMIT if options.scale <= 1 else LARGE_LIMIT
        return measure_ours(module, options.model or "pendulum", str(options.scale), limit=limit)
    if options.plot:
        return measure_ours(module, "plot", limit=PLOT_LIMIT, using=("matplotlib>=3.8",))
    metrics = measure_ours(module, options.case.removeprefix("adaptive-"))
    if options.case == "crowd" and options.peers:
        try:
            metrics |= measure(environment.prepare(environment.peer("mujoco")), module, "mujoco")["metrics"]
        except (PreparationError, MeasurementError) as reason:
            metrics["mujoco_reason"] = str(reason)
    return metrics


def prepare(options: argparse.Namespace) -> dict:
    return measure_ours("scripts.cases.force_feedback")


def tentacle(options: argparse.Namespace) -> dict:
    return measure_ours("scripts.cases.tentacle")


def keep(options: argparse.Namespace) -> dict:
    return measure_ours("scripts.cases.keep")


def coupling(options: argparse.Namespace) -> dict:
    module = "scripts.cases.coupling"
    if options.case == "coupling-stability":
        return measure_ours(module, "stability", str(STABILITY), limit=PLOT_LIMIT)
    if options.plot:
        return measure_ours(module, "plot", limit=PLOT_LIMIT, using=("matplotlib>=3.8",))
    return measure_ours(module, "speed", str(options.links), "10")


def exponent(text: str) -> float:
    """k of a threshold 2^-k."""
    if not text.startswith("2^-"):
        raise argparse.ArgumentTypeError(f"{text!r} is no threshold; write 2^-K, for example 2^-19")
    try:
        value = float(text[3:])
    except ValueError:
        value = float("nan")
    if not 0 < value < 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no threshold; write 2^-K with a number K from 0 to 100")
    return value


CONTACTS = ("impacts", "stacks", "tunnel", "humanoid-contact")
LOOPS = ("n-four-bar", "andrews", "bricard", "high-bar", "swing", "humanoid-loops")
CASES = {"humanoid": humanoid, "chain": chain, "blender": blender, "four-bar": four_bar} | dict.fromkeys(LOOPS, loops)
CASES |= dict.fromkeys(CONTACTS, contacts) | {"ragdoll-pile": ragdoll_pile, "quasi-statics": quasi_statics}
CASES |= dict.fromkeys(("adaptive-dynamics", "adaptive-size", "adaptive-curve", "crowd"), adaptive)
CASES |= {"tentacle": tentacle, "keep": keep, "prepare": prepare}
CASES |= {"coupling": coupling, "coupling-stability": coupling}
MODELS = {
    "quasi-statics": ("molecule", "millipede", "bicycle"), "adaptive-dynamics": ("pendulum", "thread", "bridge")
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--links", type=int, default=1000, help="of the chain, or the molecule held (default 1000)")
    parser.add_argument("--n", type=int, default=2, help="number of four-bars (default 2)")
    parser.add_argument("--peers", action="store_true", help="measure MuJoCo, Drake, Pinocchio and PyBullet too")
    parser.add_argument("--model", choices=sum(MODELS.values(), ()), help="of quasi-statics or adaptive dynamics")
    parser.add_argument("--scale", type=float, default=1.0, help="of adaptive dynamics: times the paper's links")
    parser.add_argument("--forces", type=int, default=1, help="links that are pulled (default 1)")
    parser.add_argument("--eps", type=exponent, metavar="2^-K", help="error threshold; default: a table over several")
    parser.add_argument("--steps", type=int, default=0, help="steps of quasi-statics; default: as many as 4 min allow")
    parser.add_argument(
        "--plot", action="store_true", help="draw the figures of quasi-statics, adaptive-curve or coupling"
    )
    parser.add_argument("--json", action="store_true", help="no table, only the JSON object at the end")
    options = parser.parse_args()
    if options.links < 1:
        parser.error(f"--links is {options.links}; give a whole number of at least 1")
    if options.n < 1:
        parser.error(f"--n is {options.n}; give a whole number of at least 1")
    if options.forces < 1 or options.steps < 0:
        parser.error(f"--forces is {options.forces} and --steps {options.steps}; give at least 1 and 0")
    if options.model and options.model not in MODELS.get(options.case, ()):
        parser.error(
            f"{options.case} has no model {options.model}; it has {', '.join(MODELS.get(options.case, ['none']))}"
        )
    if not 0.05 <= options.scale <= 100:
        parser.error(f"--scale is {options.scale}; give a number from 0.05 to 100")
    params = {"links": options.links, "peers": options.peers} if options.case == "chain" else {}
    params |= {"links": options.links} if options.case == "coupling" else {}
    params |= {"n": options.n} if options.case == "n-four-bar" else {}
    if options.case == "quasi-statics":
        eps = None if options.eps is None else f"2^-{options.eps:g}"
        params |= {"model": options.model or "molecule", "forces": options.forces, "eps": eps, "plot": options.plot}
    if options.case == "adaptive-dynamics":
        params |= {"model": options.model or "pendulum", "scale": options.scale}
    try:
        metrics = CASES[options.case](options)
    except (PreparationError, MeasurementError) as problem:
        print(f"{options.case}: {problem}", file=sys.stderr)
        return 1
    if not options.json:
        for name, value in metrics.items():
            number = isinstance(value, int | float)
            print(f"{name:<28} {format(value, '.4g') if number else value}")
    machine = {"system": platform.system(), "machine": platform.machine(), "cores": os.cpu_count(), "cpu": processor()}
    print(json.dumps({"case": options.case, "params": params, "metrics": metrics, "machine": machine}))
    return 0


def processor() -> str:
    """The processor's name as the system tells it."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    sys.exit(main())
