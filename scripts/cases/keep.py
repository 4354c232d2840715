"""What an animator waits for: Simulate and Keep of a falling metarig, of a tail and of a generated rig, and the sidebar
as it is drawn: `python -m scripts.cases.keep [metarig|tail|generated|draw …]`.

All with the defaults of Make Dynamic. `*_s` are the processor's seconds, which other programs do not change, `*_wall_s`
those on the wall. `longest_pause_s` is the longest time in which the window cannot be drawn, of all three: from a look
at the keyboard to the next, and that of the longest piece of work that begins in between.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from types import SimpleNamespace

import bpy
import numpy as np
from bl_ui.utils import PresetPanel

from scripts.bake import registered

FRAMES, CONTROLLED = 250, 120
"""Frames that are simulated, and of the generated rig."""
TAIL, TAIL_LENGTH, WAG = 100, 2.0, 24
"""Bones of the tail, its length [m], and frames of half a wag of what it hangs on."""
DRAWN, DRAWS = 200, 200
"""Bones of the armature that the sidebar is drawn for, and how often that is."""


def metarig():
    bpy.ops.object.armature_human_metarig_add()
    return bpy.context.object


def generated():
    bones = metarig()
    bpy.ops.pose.rigify_generate()
    bpy.data.objects.remove(bones)
    rig = bpy.data.objects["rig"]
    bpy.context.view_layer.objects.active = rig
    return rig


def row(count: int, length: float = TAIL_LENGTH):
    """A row of bones along x, one metre up."""
    armature = bpy.data.objects.new("Row", bpy.data.armatures.new("Row"))
    bpy.context.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    above = None
    for i in range(count):
        bone = armature.data.edit_bones.new(f"bone{i}")
        bone.head, bone.tail = ((length * part / count, 0, 1) for part in (i, i + 1))
        bone.parent, bone.use_connect = above, above is not None
        above = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    return armature


def tail():
    """A row of bones that sways about a first one more, which wags."""
    armature = row(TAIL + 1)
    root = armature.pose.bones[0]
    root.rotation_mode = "XYZ"
    for i, frame in enumerate(range(1, FRAMES + WAG, WAG)):
        root.rotation_euler = (0, 0, 0.5 * (-1) ** i)
        root.keyframe_insert("rotation_euler", frame=frame)
    return armature


class Pace:
    """The processor's and the wall's seconds of each kind of work, and the longest between two chances to draw."""

    def __init__(self) -> None:
        self.spent, self.wall, self.pause = defaultdict(float), 0.0, 0.0
        self.marks = time.process_time(), time.perf_counter()

    def tick(self, work: str) -> None:
        now = time.process_time(), time.perf_counter()
        cpu, wall = (after - before for before, after in zip(self.marks, now))
        self.spent[work] += cpu
        self.wall += wall
        self.pause = max(self.pause, cpu)
        self.marks = now


def kept(addon, armature, frames: int) -> tuple[dict, float]:
    """Simulates and keeps a dynamic armature; returns the seconds, by the work, and the longest pause."""
    settings = armature.armature_dynamics
    settings.frame_start, settings.frame_end = 1, frames
    steps, pace = addon.take.take(armature), Pace()
    while True:
        try:
            work = next(steps)[0]
        except StopIteration as stop:
            report = stop.value
            break
        pace.tick(work)
    pace.tick("finish")
    addon.stage.keep(armature)
    pace.tick("finish")
    figures = {"s": sum(pace.spent.values()), "wall_s": pace.wall, "by_work_s": dict(pace.spent), "ok": report.ok}
    return figures, pace.pause


class Layout:
    """Takes what panels put in, as fast as nothing."""

    def __getattr__(self, name: str):
        return self._part

    def _part(self, *_, **__) -> Layout:
        return Layout()


def draw(addon) -> float:
    """Milliseconds that all panels take to be drawn, of bones that all have something to be said of them."""
    armature = row(DRAWN)
    addon.operators.make_dynamic(armature)
    for bone in armature.pose.bones:
        bone.lock_rotation = (True, True, True)
    addon.preflight.check(armature)
    kept(addon, armature, 5)
    addon.connection_list.add(armature, "bone0")
    bone = armature.pose.bones[-1]
    context = SimpleNamespace(
        object=armature, scene=bpy.context.scene, mode="POSE", active_pose_bone=bone, bone=bone.bone,
        region=SimpleNamespace(width=300), preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0)),
    )  # fmt: skip
    # preset menus are drawn when they are opened
    panels = [cls for cls in addon.CLASSES if issubclass(cls, bpy.types.Panel) and not issubclass(cls, PresetPanel)]
    spent = []
    for _ in range(DRAWS):
        begin = time.process_time()
        for cls in panels:
            if not hasattr(cls, "poll") or cls.poll(context):
                cls.draw(SimpleNamespace(layout=Layout()), context)
        spent.append(1000 * (time.process_time() - begin))
    return float(np.median(spent))


def measured(addon, wanted: list[str]) -> dict:
    metrics, pauses = {}, []
    for make, frames in ((metarig, FRAMES), (tail, FRAMES), (generated, CONTROLLED)):
        name = make.__name__
        if name not in wanted:
            continue
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        if make != tail:
            bpy.ops.preferences.addon_enable(module="rigify")
        armature = make()
        addon.operators.make_dynamic(armature)
        if make == tail:
            addon.directing.sway(armature, "bone1", "tail")
            armature.pose.bones[0].armature_dynamics.role = "ANIMATED"
        figures, pause = kept(addon, armature, frames)
        metrics |= {f"{name}_{figure}": value for figure, value in figures.items()}
        pauses.append(pause)
    if pauses:
        metrics["longest_pause_s"] = addon.operators.SLICE + max(pauses)
    if "draw" in wanted:
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        metrics["draw_ms"] = draw(addon)
    return metrics


def main(*wanted: str) -> None:
    with registered() as extension:
        metrics = measured(extension.addon, list(wanted) or ["metarig", "tail", "generated", "draw"])
        print(json.dumps({"metrics": metrics, "blender": bpy.app.version_string}), flush=True)
    # and Rigify does so whatever was done
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
