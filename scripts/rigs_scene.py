"""A sheet of rigs inside Blender: each by Make Dynamic, Simulate and Keep, at start, middle and end. Run by rigs.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import bpy
import demo_scene
import named_scene
import numpy as np
from bake import registered
from demo_scene import box, capsule, material, rendered, save, studio
from mathutils import Matrix, Vector

SIZE = (340, 300)
COLUMNS = 2
SAMPLES = 12
EXPOSURE = -0.9
FALL = 0.8
"""The second picture shows the rig this long [s] after the start."""


def metarig(data: Path) -> bpy.types.Object:
    bpy.ops.object.armature_human_metarig_add()
    return bpy.context.object


def generated(data: Path) -> bpy.types.Object:
    bpy.ops.object.armature_human_metarig_add()
    bones = bpy.context.object
    bpy.ops.pose.rigify_generate()
    bpy.data.objects.remove(bones)
    return bpy.data.objects["rig"]


def imported(name: str) -> Callable[[Path], bpy.types.Object]:
    def bring(data: Path) -> bpy.types.Object:
        if name.endswith(".bvh"):
            bpy.ops.import_anim.bvh(filepath=str(data / name))
        else:
            bpy.ops.import_scene.gltf(filepath=str(data / name))
        return next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")

    return bring


RIGS: dict[str, Callable[[Path], bpy.types.Object]] = {
    "Rigify metarig": metarig,
    "Generated Rigify rig": generated,
    "CesiumMan.glb": imported("CesiumMan.glb"),
    "cmu_131_01.bvh": imported("cmu_131_01.bvh"),
    "Mixamo names, 0.01": lambda data: named_scene.mixamo(),
    "VRM names": lambda data: named_scene.vrm(),
    "MMD names, legs on IK": lambda data: named_scene.mmd(),
    "Fox.glb": imported("Fox.glb"),
}
"""What each is called in the picture, and how it comes in."""


def shown(name: str, data: Path) -> list[np.ndarray]:
    """Three pictures of a rig that was simulated by the three buttons."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.preferences.addon_enable(module="rigify")
    rig = RIGS[name](data)
    bpy.context.view_layer.objects.active = rig
    bpy.context.view_layer.update()
    for press in ("make_dynamic", "simulate", "keep"):
        assert getattr(bpy.ops.armature_dynamics, press)() == {"FINISHED"}, (name, press)
    print(f"{name}: {'; '.join(rig.armature_dynamics.summary.splitlines())}")
    settings, scene = rig.armature_dynamics, bpy.context.scene
    start = settings.frame_start
    scene.frame_set(start)
    height, low = dress(rig)
    middle = start + round(FALL * scene.render.fps / scene.render.fps_base)
    place(rig, name, height, low)
    pictures = []
    for number, frame in enumerate((start, min(middle, settings.frame_end), settings.frame_end)):
        bpy.data.objects["Name"].hide_render = number != 1
        pictures.append(rendered(frame))
    return pictures


def dress(rig: bpy.types.Object) -> tuple[float, float]:
    """Shows what collides where a rig has no mesh; returns the character's height and lowest point."""
    from armature_dynamics.addon import preflight
    from armature_dynamics.addon.collider import balls

    actor = preflight.start(rig)
    character, poses = actor.character, actor.character.start_poses(actor.source)
    bare = not any(thing.find_armature() == rig for thing in bpy.data.objects if thing.type == "MESH")
    look = material("Body", (0.85, 0.23, 0.06), 0.4)
    names, controls = character.rig.names, character.rig.controls
    for link, bone, pose in zip(character.links, character.bones, poses) if bare else ():
        for shape in link.shapes:
            points, radii = balls(shape.moved(pose))
            start, end = Vector(points[0]), Vector(points[-1])
            mesh = capsule(float(radii[0]), float(radii[-1]), (end - start).length, 1.0)
            mesh.materials.append(look)
            limb = bpy.data.objects.new(link.name, mesh)
            bpy.context.scene.collection.objects.link(limb)
            carrier = int(controls.bodies[list(controls.deforms).index(bone)]) if controls else bone
            limb.parent, limb.parent_type, limb.parent_bone = rig, "BONE", names[carrier]
            along = (
                (end - start).to_track_quat("Y", "Z")
                if (end - start).length
                else Vector((0, 1, 0)).to_track_quat("Y", "Z")
            )
            limb.matrix_world = Matrix.Translation(start) @ along.to_matrix().to_4x4()
    return character.height, min(0.0, character.lowest)


def place(rig: bpy.types.Object, name: str, height: float, low: float) -> None:
    """The floor, the name, light and a camera, as far away as the character is large."""
    scene = bpy.context.scene
    floor = bpy.data.collections.new("Floor")
    scene.collection.children.link(floor)
    box(floor, "Floor", (-20 * height, -20 * height, low - 0.1 * height), (20 * height, 20 * height, low))
    body = rig.matrix_world @ rig.pose.bones[0].head
    size = max(height, max(rig.dimensions[0], rig.dimensions[1]) if name == "Fox.glb" else 0)
    aim = Vector((body.x, body.y - 0.1 * size, low + 0.36 * size))
    studio(floor, eye=aim + size * Vector((1.5, -1.95, 0.65)), aim=aim, lens=42)
    scene.camera.data.clip_end, scene.camera.data.clip_start = 100 * size, 0.01 * size
    words = bpy.data.curves.new("Name", "FONT")
    words.body, words.size, words.align_x = name, 0.14 * size, "CENTER"
    words.materials.append(material("Ink", (0.02, 0.02, 0.03), 0.9))
    sign = bpy.data.objects.new("Name", words)
    scene.collection.objects.link(sign)
    sign.parent = scene.camera
    sign.matrix_parent_inverse = Matrix()
    sign.location, sign.scale = (0, -0.5 * size, -2.0 * size), (0.5,) * 3
    sign.visible_shadow = False
    scene.view_settings.exposure = EXPOSURE
    scene.cycles.samples, scene.render.resolution_x, scene.render.resolution_y = SAMPLES, *SIZE


def main(data: Path, folder: Path, names: list[str]) -> int:
    folder.mkdir(exist_ok=True)
    with registered():
        strips = [np.concatenate(shown(name, data), axis=1) for name in names]
        gap = np.ones((SIZE[1], 8, 4), dtype=np.float32)
        rows = []
        for first in range(0, len(strips), COLUMNS):
            row = strips[first : first + COLUMNS]
            row += [np.ones_like(strips[0])] * (min(COLUMNS, len(strips)) - len(row))
            rows.append(np.concatenate([part for strip in row for part in (strip, gap)][:-1], axis=1))
        line = np.ones((8, rows[0].shape[1], 4), dtype=np.float32)
        # pictures are stored from below
        sheet = np.concatenate([part for row in reversed(rows) for part in (row, line)][:-1], axis=0)
        # half as large: without the grain of few samples, which does not compress
        sheet = sheet.reshape(sheet.shape[0] // 2, 2, sheet.shape[1] // 2, 2, 4).mean(axis=(1, 3))
        save(sheet, folder / "rigs.png")
        print(f"written: {folder.name}/rigs.png")
        return 0


if __name__ == "__main__":
    demo_scene.SIZE = SIZE
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or list(RIGS)))
