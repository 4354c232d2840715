"""Opens what the command line is given: a Blender file, or a character to import into an empty one."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np

from . import compat
from .problem import ConversionError, Problem

KINDS = (".blend", ".glb", ".gltf", ".fbx", ".bvh")

UNITS = {
    "metres": 1.0,
    "centimetres": 0.01,
    "inches": 0.0254,
    "CMU's inches": 0.0254 / 0.45,
    "decimetres": 0.1,
    "millimetres": 0.001,
}
"""Lengths that character files are written in [m]."""

HUMAN = 1.7
"""Height [m] that motion capture is expected to show: it records people."""

TALLEST = 10.0
"""Imported characters above this height [m] are taken to be in smaller units."""


def open_input(path: Path) -> list[Problem]:
    """Replaces what is in memory by a file's content. Raises ConversionError where that cannot be done."""
    path = path.resolve()
    kind = path.suffix.lower()
    if path.is_dir():
        raise ConversionError(f"{path}: is a folder; name a file in it")
    if kind not in KINDS:
        raise ConversionError(f"{path}: files of this kind are not read; give one of {', '.join(KINDS)}")
    if not path.is_file():
        raise ConversionError(f"{path}: there is no such file; check the path")
    try:
        if kind == ".blend":
            bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
            return []
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        _import(path, kind)
    except (RuntimeError, OSError, ValueError, KeyError, IndexError, UnicodeDecodeError) as error:
        # operators end with where they were called from
        reason = [line for line in str(error).strip().splitlines() if not line.startswith("Location:")]
        raise ConversionError(
            f"{path}: cannot be read ({reason[-1] if reason else type(error).__name__}); export it again"
        ) from error
    return _scaled(capture=kind == ".bvh")


def _import(path: Path, kind: str) -> None:
    if kind == ".bvh":
        _check_bvh(path)
        bpy.ops.import_anim.bvh(filepath=str(path), update_scene_fps=True, update_scene_duration=True)
    elif kind == ".fbx":
        compat.import_fbx(str(path))
    else:
        bpy.ops.import_scene.gltf(filepath=str(path))


def _check_bvh(path: Path) -> None:
    """Raises ValueError for what Blender's importer cannot parse: its operator would print a traceback first."""
    from io_anim_bvh.import_bvh import read_bvh

    try:
        read_bvh(bpy.context, str(path))
    except Exception as error:
        raise ValueError(str(error)) from error


def _scaled(*, capture: bool) -> list[Problem]:
    """Makes imported characters the size of living things, and says so."""
    armatures = [thing for thing in bpy.data.objects if thing.type == "ARMATURE" and thing.data.bones]
    if not armatures:
        return []
    bpy.context.view_layer.update()
    height = max(_height(armature) for armature in armatures)
    unit = _unit(height, human=capture)
    factor = UNITS[unit]
    if factor != 1.0:
        for thing in bpy.data.objects:
            if thing.parent is None:
                thing.location *= factor
                thing.scale *= factor
        bpy.context.view_layer.update()
    return [
        Problem(
            "unit",
            (),
            f"the character is {height:.4g} units tall; units were taken to be {unit}, so that it is "
            f"{height * factor:.3g} m tall",
        )
    ]


def _unit(height: float, *, human: bool) -> str:
    """The unit in which something of that height is a human, or at least no taller than living things are."""
    if human:
        return min(UNITS, key=lambda name: abs(np.log(height * UNITS[name] / HUMAN)))
    return next((name for name in ("metres", "centimetres") if height * UNITS[name] <= TALLEST), "millimetres")


def life_scale(armature, *, human: bool) -> float:
    """How large an armature is in life, relative to the scene: 1 unless it is taller than living things are."""
    height = _height(armature)
    return UNITS[_unit(height, human=human)] if height > TALLEST else 1.0


def _height(armature) -> float:
    """How tall an armature's joints stand at rest, in world units."""
    joints = np.array([armature.matrix_world @ bone.head_local for bone in armature.data.bones])
    height = float(np.ptp(joints[:, 2]))
    return height or float(np.linalg.norm(np.ptp(joints, axis=0))) or max(b.length for b in armature.data.bones)
