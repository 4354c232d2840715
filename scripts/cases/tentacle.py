"""A tentacle of 1,000 bones dragged by its animated root, baked with all joints and with those that matter:
`python -m scripts.cases.tentacle`.

What an animator does: one chain of bones, keys on the first one, Make Dynamic with all its defaults, no ground. All
bakes are whole takes in one process, from reading the rig to the keys that are measured. `TIME` names the clock that
counts: the processor's, which other programs do not change.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict

import bpy
import numpy as np

from scripts.bake import registered

BONES, LENGTH, FRAMES, STOP = 1000, 20.0, 100, 60
"""The root is dragged up to the frame STOP, and stands still then. LENGTH [m]."""
WAY = 4.0
"""How far the root is dragged [m]."""
THRESHOLD = 1e-3
JOINTS = 40
"""As many as are within a hundredth of the length, too."""


def tentacle(bones: int = BONES, length: float = LENGTH, way: float = WAY, stop: int = STOP):
    """An armature that hangs straight down, and whose first bone is dragged aside."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    data = bpy.data.armatures.new("Tentacle")
    armature = bpy.data.objects.new("Tentacle", data)
    bpy.context.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    above = None
    for i in range(bones):
        bone = data.edit_bones.new(f"bone{i}")
        bone.head, bone.tail = ((0, 0, length * (1 - part / bones)) for part in (i, i + 1))
        bone.parent, bone.use_connect = above, above is not None
        above = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    root = armature.pose.bones[0]
    for frame, part in ((1, 0.0), (stop, 1.0)):
        root.location = (part * way, 0, 0)
        root.keyframe_insert("location", frame=frame)
    return armature


def seconds(steps) -> tuple[object, dict[str, float], float]:
    """Runs a take; returns its report, the processor's seconds of each kind of work, and those on the wall."""
    spent, begin, wall = defaultdict(float), time.process_time(), time.perf_counter()
    while True:
        try:
            work = next(steps)[0]
        except StopIteration as stop:
            return stop.value, dict(spent), time.perf_counter() - wall
        now = time.process_time()
        spent[work], begin = spent[work] + now - begin, now


def places(armature, frames: int) -> np.ndarray:
    """World places (frames, bones, 3) of the bones' tails as they play."""
    result = np.empty((frames, len(armature.pose.bones), 3), dtype=np.float32)
    for i in range(frames):
        bpy.context.scene.frame_set(1 + i)
        armature.pose.bones.foreach_get("tail", result[i].reshape(-1))
    return result


def bakes(addon, armature, threshold: float = THRESHOLD, frames: int = FRAMES) -> dict:
    """The bakes of a tentacle with all joints, by the threshold, and with JOINTS, by the extension's package."""
    addon.operators.make_dynamic(armature)
    settings, shared = armature.armature_dynamics, bpy.context.scene.armature_dynamics
    # what is dragged by its keys is Animated; all else stays as Make Dynamic has it
    armature.pose.bones[0].armature_dynamics.role = "ANIMATED"
    # so long, it is taken for one whose units are centimetres
    settings.life_scale = 1.0
    settings.frame_start, settings.frame_end, settings.use_ground = 1, frames, False
    shared.threshold, shared.joints, found = threshold, JOINTS, {}
    for name, mode in (("exact", "OFF"), ("adaptive", "THRESHOLD"), ("few", "JOINTS")):
        shared.adaptive = mode
        report, spent, wall = seconds(addon.take.take(armature))
        found[name] = report, spent, wall, places(armature, frames)
    _, theirs, _, exact = found["exact"]
    length = sum(bone.length for bone in armature.data.bones)
    metrics: dict = {}
    for name, (report, spent, wall, near) in found.items():
        off = np.linalg.norm(near.astype(float) - exact, axis=-1).max(axis=1) / length
        own = {
            "s": sum(spent.values()),
            "by_work_s": spent,
            "wall_s": wall,
            "substeps": report.substeps,
            "contacts": report.contacts_max,
        }
        if report.adaptive:
            own |= {
                "speedup": sum(theirs.values()) / sum(spent.values()),
                "simulate_speedup": theirs["simulate"] / spent["simulate"],
                "difference_share": float(off.max()),
                "difference_share_end": float(off[-1]),
                "active_share": report.adaptive["active_share"],
                "error_max": report.adaptive["error_max"],
            }
        metrics |= {f"{name}_{key}": value for key, value in own.items()}
    way, tip = exact[-1, 0] - exact[0, 0], np.linalg.norm(exact[:, -1] - exact[0, -1], axis=-1)
    metrics |= {"way_m": float(np.linalg.norm(way)), "tip_way_share": float(tip.max() / length)}
    # the line that the case is for
    return metrics | {name: metrics[f"adaptive_{name}"] for name in ("speedup", "difference_share")}


def main(
    way: str = f"{WAY}", length: str = f"{LENGTH}", threshold: str = f"{THRESHOLD}", stop: str = f"{STOP}"
) -> None:
    with registered() as extension:
        armature = tentacle(way=float(way), length=float(length), stop=int(stop))
        metrics = bakes(extension.addon, armature, float(threshold))
        print(json.dumps({"metrics": metrics, "blender": bpy.app.version_string}))


if __name__ == "__main__":
    main(*sys.argv[1:])
