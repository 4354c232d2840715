"""Python environments of this checkout, made on demand: Blender as a module, the tests' oracles, the benchmarks' peers.

Standard library only, and old syntax, so that any Python gets far enough to be told which one is needed.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

PYTEST = ("pytest>=8", "hypothesis>=6")
TEST = (*PYTEST, "ruff==0.17.*")
PEERS = {"mujoco": "mujoco>=3.2", "drake": "drake>=1.40", "pinocchio": "pin>=3.9", "pybullet": "pybullet>=3.2.5"}
"""Engines that the benchmarks compare with, each in an environment of its own: any may be missing on a system."""

MODULES = {"bpy": "bpy", "mujoco": "mujoco", "pin": "pinocchio", "drake": "pydrake.multibody", "pybullet": "pybullet"}
"""What each requirement must let a program import before an environment counts as made."""

DEBIAN_PACKAGES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libICE.so.6": "libice6",
    "libSM.so.6": "libsm6",
    "libX11.so.6": "libx11-6",
    "libXext.so.6": "libxext6",
    "libXfixes.so.3": "libxfixes3",
    "libXi.so.6": "libxi6",
    "libXrender.so.1": "libxrender1",
    "libXxf86vm.so.1": "libxxf86vm1",
    "libgomp.so.1": "libgomp1",
    "libxkbcommon.so.0": "libxkbcommon0",
}


class PreparationError(RuntimeError):
    """An environment cannot be made; the message is one line that says what to do."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment `folder` in the checkout: a `python` version and what pip puts there."""

    label: str
    folder: str
    python: str
    requirements: tuple[str, ...]

    def using(self, *requirements: str) -> Environment:
        """The same environment with more in it."""
        return Environment(self.label, self.folder, self.python, self.requirements + requirements)


BLENDERS = {
    "4.2": Environment("Blender 4.2", ".venv-4.2", "3.11", ("bpy==4.2.*", "numpy==1.26.*")),
    "4.5": Environment("Blender 4.5", ".venv-4.5", "3.11", ("bpy==4.5.*",)),
    "5.0": Environment("Blender 5.0", ".venv-5.0", "3.11", ("bpy==5.0.*",)),
    "newest": Environment("newest Blender", ".venv-newest", "3.13", ("bpy>=5.3",)),
}
NEWEST_BLENDER = {"3.11": "5.0", "3.13": "newest"}
"""The newest Blender that each Python can import."""

CORE_ALONE = Environment("core alone, numpy 1.24", ".venv-core", "3.11", ("numpy==1.24.*", *PYTEST))


def blender() -> str:
    """The Python of the default Blender, made on demand; where that fails, ends the program with a line on why."""
    try:
        return prepare(default())
    except PreparationError as problem:
        sys.exit(str(problem))


def oracles() -> Environment:
    """`.venv-oracles`: the engines that the core's tests compare with, on the newest Python there is. Blender 5.0 wants
    numpy 1, Pinocchio numpy 2."""
    pinocchio = f"{PEERS['pinocchio']}; sys_platform != 'win32'"
    wanted = ("numpy>=2", "scipy>=1.11", *PYTEST, PEERS["mujoco"], pinocchio)
    return Environment("core against its oracles", ".venv-oracles", newest_python(), wanted)


def newest_python() -> str:
    """The newest Python that is found of those that Blender's module is made for."""
    version = next(filter(find_python, sorted(NEWEST_BLENDER, reverse=True)), None)
    if version is None:
        running = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise PreparationError(f"Blender's module is not made for Python {running}: install Python 3.11 or 3.13")
    return version


def default() -> Environment:
    """`.venv`, with the newest Blender that the running Python supports, else one that is found."""
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    blender = BLENDERS[NEWEST_BLENDER[running if running in NEWEST_BLENDER else newest_python()]]
    return Environment(blender.label, ".venv", blender.python, blender.requirements)


def matrix() -> list[Environment]:
    """Every supported Blender, the default one first, in `.venv`."""
    first = default()
    return [first] + [blender for blender in BLENDERS.values() if blender.label != first.label]


def peer(engine: str) -> Environment:
    """The environment of one of `PEERS`."""
    return Environment(engine, f".venv-{engine}", default().python, ("numpy", PEERS[engine]))


def prepare(environment: Environment) -> Path:
    """Makes `environment` where it is not there yet, in full; returns its Python.

    A stamp file in the folder names what was installed. It goes before an install starts and comes back, in one
    move, when it is done: an install that was interrupted is begun again.
    """
    folder = ROOT / environment.folder
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "stamp.json"
    made = json.loads(stamp.read_text()) if stamp.exists() else None
    fresh = made is None or made["python"] != environment.python
    wanted = set(environment.requirements).union([] if fresh else made["requirements"])
    if fresh or wanted != set(made["requirements"]):
        stamp.unlink(missing_ok=True)
        if fresh:
            create(environment, folder)
        install(environment, python, sorted(wanted))
        made = {"python": environment.python, "requirements": sorted(wanted), "imported": []}
        write(stamp, made)
    names = sorted({re.split(r"[^\w]", requirement)[0] for requirement in environment.requirements} & set(MODULES))
    if not set(names) <= set(made["imported"]):
        check_imports(environment, python, [name for name in names if applies(name)])
        write(stamp, {**made, "imported": sorted({*made["imported"], *names})})
    return python


def applies(name: str) -> bool:
    """Whether the requirement exists on this system at all."""
    return name != "pin" or os.name != "nt"


def create(environment: Environment, folder: Path) -> None:
    base = find_python(environment.python)
    if base is None:
        raise PreparationError(
            f"{environment.label} needs Python {environment.python}, which was not found: install it and run this again"
        )
    print(f"making {environment.folder} for {environment.label} (Python {environment.python})", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run([base, "-m", "venv", folder], capture_output=True, text=True)
    if done.returncode:
        remedy = f"sudo apt-get install python{environment.python}-venv" if shutil.which("apt-get") else "install venv"
        raise PreparationError(f"{base} cannot make a virtual environment: {remedy}, and run this again")


def install(environment: Environment, python: Path, requirements: list[str]) -> None:
    names = [requirement.split(";")[0] for requirement in requirements]
    print(f"installing into {environment.folder}: {', '.join(dict.fromkeys(names))}", flush=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *requirements], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["no reason given"]
        raise PreparationError(f"pip cannot install into {environment.folder}: {reasons[-1]}")


def check_imports(environment: Environment, python: Path, names: list[str]) -> None:
    """Raises unless every package imports; on a bare Debian in CI, installs the shared libraries first."""
    command = [python, "-c", "".join(f"import {MODULES[name]}\n" for name in names)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if not done.returncode:
        return
    missing = missing_libraries(ROOT / environment.folder, done.stderr)
    if not missing:
        raise PreparationError(f"{environment.folder}: {(done.stderr.strip() or 'import crashed').splitlines()[-1]}")
    remedy = installing_line(missing)
    if os.environ.get("CI") and shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run("apt-get update -q && " + remedy.replace("install", "install -y -q"), shell=True, check=True)
        missing = missing_libraries(ROOT / environment.folder, "")
    if missing or subprocess.run(command, timeout=300).returncode:
        raise PreparationError(f"Blender needs shared libraries; install them with: {remedy}")


def missing_libraries(folder: Path, error: str) -> list[str]:
    """Sonames that the loader does not find: the one in the import's `error`, and all that ldd tells of bpy's."""
    missing = set(re.findall(r"(lib[^\s:]+\.so[.\d]*): cannot open shared object", error))
    for module in folder.glob("lib/python*/site-packages/bpy/__init__*.so"):
        if shutil.which("ldd"):
            listing = subprocess.run(["ldd", module], capture_output=True, text=True).stdout
            missing.update(line.split()[0] for line in listing.splitlines() if "not found" in line)
    return sorted(missing)


def installing_line(missing: list[str]) -> str:
    """The command that installs shared libraries on this system."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    if shutil.which("apt-get"):
        return f"{sudo}apt-get install {' '.join(DEBIAN_PACKAGES.get(name, name) for name in missing)}"
    for manager in ("dnf", "zypper"):
        if shutil.which(manager):
            return f"{sudo}{manager} install {' '.join(repr(f'{name}()(64bit)') for name in missing)}"
    if shutil.which("pacman"):
        return f"{sudo}pacman -S {' '.join(name.split('.so')[0].lower() for name in missing)}"
    return f"your package manager: {' '.join(missing)}"


def find_python(version: str) -> str | None:
    """A Python of this version: the running one, one on the path, the Windows launcher's, or one of pyenv's."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    commands = [[sys.executable], [f"python{version}"], ["py", f"-{version}"]]
    commands += [[path] for path in sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/python"), reverse=True)]
    for command in commands:
        if shutil.which(command[0]) and version_of(command) == version:
            return ask(command, "sys._base_executable")
    return None


def version_of(command: list[str]) -> str | None:
    return ask(command, "'%d.%d' % sys.version_info[:2]")


def ask(command: list[str], expression: str) -> str | None:
    """What a Python prints for an expression; None where it does not run, as a pyenv shim may not."""
    done = subprocess.run([*command, "-c", f"import sys; print({expression})"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def write(path: Path, content: dict) -> None:
    """Writes a JSON file in one move."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1))
    part.replace(path)
