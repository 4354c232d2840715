"""Bakes an armature of a file: python scripts/bake.py INPUT [--out OUT.blend] [--report R.json]; see --help."""

import importlib.util
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def load_extension():
    """The checkout as the package that Blender installs."""
    spec = importlib.util.spec_from_file_location("armature_dynamics", ROOT / "__init__.py")
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    return package


@contextmanager
def registered():
    """The extension, registered meanwhile: classes that are still registered at exit crash or hang some Blenders, and
    so do Rigify's."""
    import bpy

    extension = load_extension()
    extension.register()
    try:
        yield extension
    finally:
        if "rigify" in bpy.context.preferences.addons:
            bpy.ops.preferences.addon_disable(module="rigify")
        extension.unregister()


def in_environment() -> int:
    """Runs this program again with a Python that has Blender, made on demand; returns its exit code."""
    import environment

    try:
        python = environment.prepare(environment.default())
    except environment.PreparationError as problem:
        print(f"bake.py: {problem}", file=sys.stderr)
        return 2
    return subprocess.run([python, *sys.argv]).returncode


def main() -> int:
    if importlib.util.find_spec("bpy") is None:
        return in_environment()
    with registered():
        from armature_dynamics.addon import command

        return command.run(sys.argv[1:], "bake.py")


if __name__ == "__main__":
    sys.exit(main())
