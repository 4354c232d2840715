"""Runs the tests: on the default Blender, or with --all on every supported one. Makes the environments it needs.

python3 scripts/test.py [--all] [--window] [--lint] [pytest's arguments]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import environment
from environment import ROOT, Environment, PreparationError

MINUTES = 60
"""Time limit of one environment's tests, more than a slow machine takes: a class or timer left registered makes some
Blenders hang at exit."""

running: set[subprocess.Popen] = set()
"""Processes to end when this one is told to stop."""


@dataclass(frozen=True)
class Run:
    """One process of tests: in `where`, the arguments for pytest or another module."""

    label: str
    where: Environment
    arguments: tuple[str, ...]
    module: str = "pytest"


@dataclass(frozen=True)
class Outcome:
    """What a run came to; `trouble` says what went wrong beside failed tests, or is empty."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    trouble: str = ""

    @property
    def counts(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Other arguments go to pytest.")
    parser.add_argument("--all", action="store_true", help="every supported Blender, and the core alone on old numpy")
    parser.add_argument("--window", action="store_true", help="also the tests that run the real Blender binaries")
    parser.add_argument("--lint", action="store_true", help="also ruff")
    options, rest = parser.parse_known_args()
    try:
        runs = plan(options.all, options.window, options.lint, tuple(rest))
        for where in {run.where.folder: run.where for run in runs}.values():
            environment.prepare(where)
    except PreparationError as problem:
        print(problem, file=sys.stderr)
        return 1
    together = len(runs) > 1
    with ThreadPoolExecutor(2 if together else 1) as pool:
        outcomes = []
        for run, (outcome, output) in zip(runs, pool.map(lambda run: execute(run, quiet=together), runs)):
            outcomes.append(outcome)
            print(f"\n== {run.label}\n{output}", end="", flush=True)
    print()
    for run, outcome in zip(runs, outcomes):
        print(f"{run.label:<28} {outcome.counts}{'; ' + outcome.trouble if outcome.trouble else ''}")
    total = Outcome(*(sum(getattr(outcome, name) for outcome in outcomes) for name in ("passed", "failed", "skipped")))
    print(total.counts)
    return 1 if total.failed else 0


def plan(everything: bool, window: bool, lint: bool, rest: tuple[str, ...]) -> list[Run]:
    """The runs in the order of their report, the longest first: the core against its oracles and on the oldest numpy,
    where its tests are asked for, and all else on each Blender."""
    blenders = [blender.using(*environment.TEST) for blender in environment.matrix()[: None if everything else 1]]
    paths = [argument for argument in rest if Path(ROOT, argument.split("::")[0]).exists()]
    options = [argument for argument in rest if argument not in paths]
    core = [path for path in paths if path.startswith("tests/core")] if paths else ["tests/core"]
    others = [path for path in paths if path not in core] if paths else ["tests"]
    runs = [Run("lint", blenders[0], ("check", "--quiet", "."), "ruff")] if lint else []
    # the core knows no Blender, and what it does with Blender's numpy the add-on's tests see
    if core:
        runs.append(Run(environment.oracles().label, environment.oracles(), ("-m", "not window", *options, *core)))
    if core and everything:
        alone = ("-m", "not window and not slow", *options, *core)
        runs.append(Run(environment.CORE_ALONE.label, environment.CORE_ALONE, alone))
    if others:
        addon = ("-m", "not window and not core", *options, *others)
        runs += [Run(blender.label, blender, addon) for blender in blenders]
    if window:
        runs.append(Run("real Blender binaries", blenders[0], ("-m", "window", *options, "tests/window")))
    return runs


def execute(run: Run, quiet: bool) -> tuple[Outcome, str]:
    """Runs one in a process of its own, within the time limit; returns what it printed when `quiet`."""
    python = environment.prepare(run.where)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [str(python), "-m", run.module, *run.arguments]
        if run.module == "pytest":
            command += ["-rs", "-q", f"--junitxml={report}", "-p", "no:cacheprovider"]
        start = time.monotonic()
        with open(Path(folder, "output"), "w+") as sink:
            code = finish(command, sink if quiet else None, has_oracles(run.where))
            sink.seek(0)
            output = sink.read()
        failed = int(code != 0)
        outcome = read(report, code) if run.module == "pytest" else Outcome(passed=1 - failed, failed=failed)
    return outcome, output + f"{run.label}: {time.monotonic() - start:.0f} s\n"


def has_oracles(where: Environment) -> bool:
    """Whether a skipped comparison with another engine is a failure; there is no Pinocchio for Windows."""
    return os.name != "nt" and where == environment.oracles()


def finish(command: list[str], sink, required: bool) -> int | None:
    """The exit code of a command; None when it had to be ended, with its children, at the time limit."""
    # one BLAS thread: the matrices are small, and two runs share the machine
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if required:
        variables["ARMATURE_DYNAMICS_REQUIRE_ORACLES"] = "1"
    process = subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=sink, stderr=sink and subprocess.STDOUT, start_new_session=True
    )
    running.add(process)
    try:
        return process.wait(MINUTES * 60)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end(process)
        process.wait()
        running.discard(process)


def end(process: subprocess.Popen) -> None:
    """Ends a process, if it has not ended, and what it started."""
    with contextlib.suppress(ProcessLookupError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def read(report: Path, code: int | None) -> Outcome:
    """Counts from pytest's report, which is written last. A process that hung, ended before it, or ended in another way
    than its tests did is one failure more."""
    passed = failed = skipped = 0
    if report.exists():
        for suite in xml.etree.ElementTree.parse(report).iter("testsuite"):
            counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")}
            failed += counts["failures"] + counts["errors"]
            skipped += counts["skipped"]
            passed += counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"]
    if code is None:
        trouble = f"did not end within {MINUTES} minutes"
    elif not report.exists():
        trouble = f"ended before its report, exit code {code}"
    elif code == 5:
        trouble = "no test was run"
    elif code != int(failed > 0):
        trouble = f"exit code {code}"
    else:
        return Outcome(passed, failed, skipped)
    return Outcome(passed, failed + 1, skipped, trouble)


def stop(*_) -> None:
    for process in list(running):
        end(process)
    os._exit(130)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    sys.exit(main())
