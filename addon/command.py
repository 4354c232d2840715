"""The command line: bakes an armature of a file without a window."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import bpy

from . import casting, connection, operators
from .adaptive_settings import BUDGET, JOINTS, OFF, SETTING, THRESHOLD
from .data_file import is_other, replace
from .intake import open_input
from .keying import REDUCED, STEP
from .objection import LAST_FRAME
from .problem import ConversionError, Problem
from .report import Report
from .take import take

BAD_INPUT, NOT_OK = 2, 1
"""Exit codes: what was asked for cannot be done; or it was done, and a promise of the report is broken."""

ADAPTIVE = {"error": THRESHOLD, "joints": JOINTS, "budget": BUDGET}
"""What `--adaptive` calls the modes."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str):
        raise ConversionError(f"{message}; see --help")

    def parse_args(self, arguments: list[str]):
        joined: list[str] = []
        for own in arguments:
            if joined[-1:] == ["--frames"]:  # a frame before 0 would be taken for another option
                joined[-1] += f"={own}"
            else:
                joined.append(own)
        return super().parse_args(joined)


def run_in_blender(arguments: list[str]) -> int:
    """`blender -b FILE --command armature_dynamics bake …`; returns the exit code."""
    parser = _Parser(prog="armature_dynamics")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    _add_options(commands.add_parser("bake", help="simulate an armature of the open file and bake it"))

    def opened(_: argparse.Namespace) -> list[Problem]:
        if not bpy.data.filepath:
            raise ConversionError("no file is open; give one: blender -b FILE --command armature_dynamics bake")
        return []

    return _answered(lambda: _bake(parser.parse_args(arguments), opened))


def run(arguments: list[str], program: str) -> int:
    """`bake.py INPUT …`; returns the exit code."""
    parser = _Parser(prog=program, description="Simulates an armature of a file and bakes it to keyframes.")
    parser.add_argument("input", metavar="INPUT", help="a .blend, .glb, .gltf, .fbx or .bvh file")
    _add_options(parser)
    return _answered(lambda: _bake(parser.parse_args(arguments), lambda options: open_input(Path(options.input))))


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--armature", metavar="NAME", help="which armature; not needed where there is only one")
    parser.add_argument("--frames", metavar="A:B", type=_frames, help="first and last frame; default: the action's")
    parser.add_argument("--substeps", metavar="N", type=_substeps, help="steps per frame; default: what it needs")
    parser.add_argument("--no-ground", action="store_true", help="fall without end")
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument("--key-step", metavar="N", type=_step, help="a key on every N-th frame; default: on every one")
    keys.add_argument("--reduce-keys", metavar="MM:DEG", type=_tolerance, help="as few keys as stay within so much")
    parser.add_argument("--blend", metavar="IN:OUT", type=_blend, help="frames to blend from and to the animation")
    parser.add_argument(
        "--adaptive", metavar="MODE:VALUE", type=_adaptive,
        help="move few joints: error:1e-3, joints:100 or budget:20 (ms per frame); off for all; default: the file's",
    )  # fmt: skip
    parser.add_argument("--out", metavar="OUT.blend", type=Path, help="where the baked file goes")
    parser.add_argument("--report", metavar="R.json", type=Path, help="where the measurements go")


def _frames(text: str) -> tuple[int, int]:
    first, separator, last = text.partition(":")
    try:
        frames = int(first), int(last)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of whole frames; write it as 1:120") from None
    if not separator or frames[1] <= frames[0]:
        raise argparse.ArgumentTypeError(f"{text!r} ends before it has begun; the last frame must come after the first")
    if max(map(abs, frames)) > LAST_FRAME:
        raise argparse.ArgumentTypeError(f"{text!r} leaves Blender's frames, -{LAST_FRAME} to {LAST_FRAME}")
    return frames


def _substeps(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return int(text)


def _step(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LAST_FRAME:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of frames, 1 or more")
    return int(text)


def _tolerance(text: str) -> tuple[float, float]:
    try:
        millimeters, degrees = map(float, text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a tolerance; write it as MM:DEGREES, as 1:0.1") from None
    if not (0.001 <= millimeters < math.inf and 0.001 <= degrees <= 180):
        raise argparse.ArgumentTypeError(f"{text!r} is not a tolerance; both must be at least 0.001")
    return millimeters, degrees


def _blend(text: str) -> tuple[int, int]:
    first, separator, last = text.partition(":")
    if not (separator and first.isdecimal() and last.isdecimal()) or max(int(first), int(last)) > LAST_FRAME:
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers of frames; write it as 10:20")
    return int(first), int(last)


def _adaptive(text: str) -> tuple[str, float]:
    if text == "off":
        return OFF, 0.0
    name, _, number = text.partition(":")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if name not in ADAPTIVE or math.isnan(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not error:1e-3, joints:100, budget:20 or off")
    mode = ADAPTIVE[name]
    limits = bpy.types.Scene.bl_rna.properties["armature_dynamics"].fixed_type.properties[SETTING[mode]]
    if not limits.hard_min <= value <= limits.hard_max or (mode == JOINTS and value != int(value)):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give a {'whole ' * (mode == JOINTS)}number from {limits.hard_min:g} to {limits.hard_max:g}"
        )
    return mode, value


def _answered(work: Callable[[], Report]) -> int:
    """Runs the work and turns its outcome into lines and an exit code."""
    try:
        report = work()
    except (ValueError, OSError) as error:
        print(f"armature_dynamics: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0 if report.ok else NOT_OK


def _bake(options: argparse.Namespace, open_file: Callable[[argparse.Namespace], list[Problem]]) -> Report:
    source = getattr(options, "input", bpy.data.filepath)
    for path in (options.out, options.report):
        if path:
            _check_writable(path)
    if options.out and options.out.suffix != ".blend":
        raise ConversionError(f"{options.out}: the baked file is a Blender file; let its name end in .blend")
    if options.report:
        _check_report(options.report, [Path(source), *filter(None, [options.out])])
    warnings = open_file(options)
    armature = _find(options.armature, options.frames)
    if not armature.armature_dynamics.enabled:
        operators.make_dynamic(armature)
    _set(armature.armature_dynamics, options)
    report = _followed(take(armature, final=True))
    report.input = source
    report.warnings[:0] = warnings
    if options.out:
        save = partial(bpy.ops.wm.save_as_mainfile, copy=True, check_existing=False)
        replace(options.out, lambda path: save(filepath=str(path)))
    if options.report:
        text = json.dumps(report.as_dict(), indent=1, ensure_ascii=False) + "\n"
        replace(options.report, lambda path: path.write_text(text, encoding="utf-8"))
    print(f"{report.armature}: {'ok' if report.ok else 'NOT ok'}")
    print("\n".join([*report.lines(), *report.events(), *(f"warning: {line}" for line in report.news())]))
    return report


def _set(settings, options: argparse.Namespace) -> None:
    """Gives an armature's settings, and the scene's, what the options say."""
    if options.frames:
        settings.frame_start, settings.frame_end = options.frames
    if options.substeps:
        settings.substeps = options.substeps
    if options.no_ground:
        settings.use_ground = False
    if options.key_step:
        settings.key_mode, settings.key_step = STEP, options.key_step
    if options.reduce_keys:
        settings.key_mode = REDUCED
        settings.key_distance, settings.key_angle = options.reduce_keys
    if options.blend:
        settings.blend_in, settings.blend_out = options.blend
    if options.adaptive:
        _set_adaptive(*options.adaptive)


def _set_adaptive(mode: str, value: float) -> None:
    shared = bpy.context.scene.armature_dynamics
    shared.adaptive = mode
    if mode != OFF:
        setattr(shared, SETTING[mode], int(value) if mode == JOINTS else value)
    # who asks for a time budget here wants it in this bake
    shared.budget_when_baking |= mode == BUDGET


def _find(name: str | None, frames: tuple[int, int] | None):
    armatures = {thing.name: thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE"}
    there = ", ".join(repr(other) for other in armatures) or "none"
    if name is None and len(armatures) == 1:
        return next(iter(armatures.values()))
    leader = _leader(list(armatures.values()), frames) if name is None else None
    if leader:
        return leader
    if name is None and armatures:
        raise ConversionError(f"the scene has several armatures; choose one with --armature: {there}")
    if name not in armatures:
        raise ConversionError(f"the scene has no armature{f' {name!r}' if name else ''}; it has: {there}")
    return armatures[name]


def _leader(armatures: list, frames: tuple[int, int] | None):
    """The armature with which all the dynamic ones are simulated, so that there is nothing to choose; or None."""
    dynamic = [armature for armature in armatures if armature.armature_dynamics.enabled]
    for armature in dynamic:
        targets = {link.target for _, link in connection.live(armature) if link.target_kind == "BONE"}
        if targets - {None, armature} or armature.armature_dynamics.meets:
            start = (frames or casting.frames(armature))[0]
            return armature if set(connection.group(armature, start)) == set(dynamic) else None
    return None


def _followed(steps) -> Report:
    """Runs a take, with one line that tells how far it is: rewritten on a terminal, else once for each kind of work."""
    rewrites, last = sys.stdout.isatty(), ""
    while True:
        try:
            work, progress = next(steps)
        except StopIteration as stop:
            if rewrites:
                print()
            return stop.value
        if rewrites:
            print(f"\r{work:10} {100 * progress:3.0f} %", end="", flush=True)
        elif work != last:
            print(f"{work} …", flush=True)
        last = work


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise ConversionError(f"{path}: is a folder; name a file in it")
    if is_other(path):
        raise ConversionError(f"{path}: is a device or a pipe, which a file would replace; name a file")
    try:
        handle, probe = tempfile.mkstemp(dir=path.resolve().parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ConversionError(f"{path}: its folder cannot be written ({error.strerror}); choose another") from error
    os.close(handle)
    os.unlink(probe)


def _check_report(path: Path, scenes: list[Path]) -> None:
    """Raises ConversionError where a report would replace one of the scenes, or what has the name of one."""
    place = path.resolve()
    if place.suffix.lower() == ".blend" or any(place == scene.resolve() for scene in scenes):
        raise ConversionError(f"{path}: the report would take the place of a scene; let its name end in .json")
