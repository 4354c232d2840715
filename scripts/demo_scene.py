"""The demo inside Blender: a Rigify metarig loses its footing at the top of a flight of steps. Run by demo.py."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from pathlib import Path

import bpy
import numpy as np
from bake import registered
from mathutils import Matrix, Quaternion, Vector

RATE = 24
START, END = 7, 90
"""Physics takes over from the animation at frame START."""
PICTURES = 6
SIZE = (320, 420)
SAMPLES = 16

STEPS, TREAD, RISE, WIDTH = 5, 0.32, 0.17, 2.2
SPEED = 1.5
"""How fast the character walks toward the steps [m/s]; it faces -y."""

STRIDE = {  # degrees about the world's x axis (positive is forward for what points up), then about y
    "spine": (8, 0), "spine.001": (5, 0), "spine.003": (4, 0), "spine.005": (8, 0),
    "thigh.L": (-38, 0), "shin.L": (24, 0), "thigh.R": (16, 0), "shin.R": (34, 0), "foot.R": (14, 0),
    "upper_arm.L": (22, 38), "upper_arm.R": (-26, -38), "forearm.L": (-12, 0), "forearm.R": (-28, 0),
}  # fmt: skip

LIMBS = {  # bone: radii [m] at its head and its tail, and how much wider than deep
    "spine": (0.125, 0.115, 1.3), "spine.001": (0.115, 0.118, 1.3), "spine.002": (0.118, 0.135, 1.3),
    "spine.003": (0.135, 0.095, 1.45), "spine.004": (0.055, 0.052, 1.0), "spine.006": (0.07, 0.098, 0.95),
    "shoulder": (0.05, 0.062, 1.0), "upper_arm": (0.056, 0.043, 1.0), "forearm": (0.043, 0.032, 1.0),
    "hand": (0.034, 0.04, 1.0), "thigh": (0.088, 0.06, 1.0), "shin": (0.058, 0.038, 1.0),
    "foot": (0.04, 0.043, 1.15), "toe": (0.04, 0.034, 1.25),
}  # fmt: skip


def character() -> bpy.types.Object:
    """The metarig, walking off the landing: frames 1 to START of an ordinary animation."""
    bpy.ops.preferences.addon_enable(module="rigify")
    bpy.ops.object.armature_human_metarig_add()
    rig = bpy.context.object
    for name, angles in STRIDE.items():
        bone = rig.pose.bones[name]
        rest = bone.bone.matrix_local.to_quaternion()
        turn = Quaternion((0, 1, 0), math.radians(angles[1])) @ Quaternion((1, 0, 0), math.radians(angles[0]))
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = rest.inverted() @ turn @ rest
        bone.keyframe_insert("rotation_quaternion", frame=1)
    hips = rig.pose.bones["spine"]
    to_bone = hips.bone.matrix_local.to_3x3().inverted()
    for frame in (1, START + 1):
        hips.location = to_bone @ Vector((0, -SPEED * (frame - START) / RATE, -0.07))
        hips.keyframe_insert("location", frame=frame)
    return rig


def steps() -> bpy.types.Collection:
    """A landing under the character's feet, STEPS steps down toward -y, and the floor: boxes."""
    collection = bpy.data.collections.new("Steps")
    bpy.context.scene.collection.children.link(collection)
    edge, floor = -0.28, -STEPS * RISE
    box(collection, "Landing", (-WIDTH / 2, edge, floor), (WIDTH / 2, 1.6, 0))
    for number in range(1, STEPS):
        front = edge - number * TREAD
        box(collection, f"Step {number}", (-WIDTH / 2, front, floor), (WIDTH / 2, front + TREAD, -number * RISE))
    box(collection, "Floor", (-8, -9, floor - 0.2), (8, 9, floor))
    return collection


def box(collection: bpy.types.Collection, name: str, low: tuple, high: tuple) -> None:
    low, high = Vector(low), Vector(high)
    corners = [[(low, high)[(i >> axis) & 1][axis] for axis in range(3)] for i in range(8)]
    middle = (low + high) / 2
    faces = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([Vector(corner) - middle for corner in corners], [], faces)
    thing = bpy.data.objects.new(name, mesh)
    thing.location = middle
    collection.objects.link(thing)


def dress(rig: bpy.types.Object, color: tuple = (0.85, 0.23, 0.06)) -> None:
    """A body to be seen: a tapered capsule along each larger bone, and its joints. Physics knows nothing of it."""
    skin, joints = material("Skin", color, 0.4), material("Joints", (0.05, 0.06, 0.08), 0.3)
    for bone in rig.data.bones:
        shape = LIMBS.get(bone.name) or LIMBS.get(bone.name.removesuffix(".L").removesuffix(".R"))
        if shape:
            start, end, wide = shape
            attach(rig, bone, capsule(start, end, bone.length, wide), skin)
            if bone.name.startswith(("forearm", "shin", "upper_arm", "hand", "foot")):
                attach(rig, bone, capsule(start * 1.06, start * 1.06, 0.0, 1.0), joints)


def capsule(start: float, end: float, length: float, wide: float) -> bpy.types.Mesh:
    """The hull of two balls `length` [m] apart along y, stretched across by `wide`."""
    around, rings = 32, 10
    profile = [(-start * math.cos(a), start * math.sin(a)) for a in np.linspace(0, math.pi / 2, rings)]
    profile += [(length + end * math.sin(a), end * math.cos(a)) for a in np.linspace(0, math.pi / 2, rings)]
    points = [
        (wide * r * math.cos(t), y, r * math.sin(t))
        for y, r in profile
        for t in np.linspace(0, 2 * math.pi, around, endpoint=False)
    ]
    faces = [
        (ring + i, ring + around + i, ring + around + (i + 1) % around, ring + (i + 1) % around)
        for ring in range(0, len(points) - around, around)
        for i in range(around)
    ]
    mesh = bpy.data.meshes.new("Limb")
    mesh.from_pydata(points, [], faces)
    mesh.polygons.foreach_set("use_smooth", [True] * len(mesh.polygons))
    return mesh


def attach(rig: bpy.types.Object, bone: bpy.types.Bone, mesh: bpy.types.Mesh, look: bpy.types.Material) -> None:
    """Hangs a mesh, modelled from the bone's head along y, under the bone."""
    mesh.materials.append(look)
    limb = bpy.data.objects.new(f"{mesh.name} {bone.name}", mesh)
    bpy.context.scene.collection.objects.link(limb)
    limb.parent, limb.parent_type, limb.parent_bone = rig, "BONE", bone.name
    # a child of a bone hangs at its tail
    limb.matrix_parent_inverse = Matrix.Translation((0, -bone.length, 0))


def material(name: str, color: tuple, roughness: float) -> bpy.types.Material:
    look = with_nodes(bpy.data.materials.new(name))
    surface = next(node for node in look.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    surface.inputs["Base Color"].default_value = (*color, 1)
    surface.inputs["Roughness"].default_value = roughness
    return look


def with_nodes(owner):
    """A material or a world with its shader nodes, which Blenders before 5.0 make only when asked to."""
    if owner.node_tree is None:
        owner.use_nodes = True
    return owner


def studio(scenery: bpy.types.Collection, eye=(5.0, -4.6, 1.3), aim=(0, -1.22, 0.38), lens: float = 42) -> None:
    """Light, a camera at `eye` that looks at `aim`, Cycles' settings, and the scenery's look."""
    scene = bpy.context.scene
    concrete, floor = material("Concrete", (0.16, 0.24, 0.32), 0.7), material("Floor", (0.5, 0.52, 0.54), 0.9)
    for thing in scenery.objects:
        thing.data.materials.append(floor if thing.name == "Floor" else concrete)
        if thing.name != "Floor":
            bevel = thing.modifiers.new("Bevel", "BEVEL")
            bevel.width, bevel.segments = 0.012, 2
    world = with_nodes(bpy.data.worlds.new("Sky"))
    background = next(node for node in world.node_tree.nodes if node.type == "BACKGROUND")
    background.inputs["Color"].default_value = (0.75, 0.85, 1.0, 1)
    background.inputs["Strength"].default_value = 0.7
    scene.world = world
    sun = bpy.data.lights.new("Sun", "SUN")
    sun.energy, sun.angle, sun.color = 4.0, math.radians(6), (1.0, 0.93, 0.83)
    lamp = bpy.data.objects.new("Sun", sun)
    lamp.rotation_euler = Vector((-0.75, 0.5, -1.1)).to_track_quat("-Z", "Y").to_euler()
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.location = eye
    camera.rotation_euler = (Vector(aim) - camera.location).to_track_quat("-Z", "Y").to_euler()
    camera.data.lens, camera.data.sensor_fit = lens, "VERTICAL"
    for thing in (lamp, camera):
        scene.collection.objects.link(thing)
    scene.camera = camera
    scene.render.engine = "CYCLES"
    scene.cycles.device, scene.cycles.samples, scene.cycles.use_denoising = "CPU", SAMPLES, True
    scene.cycles.max_bounces, scene.render.use_persistent_data = 4, True
    scene.render.resolution_x, scene.render.resolution_y, scene.render.resolution_percentage = *SIZE, 100
    scene.view_settings.view_transform = "AgX"
    scene.view_settings.look = "AgX - Medium High Contrast"


def contact_sheet(frames: list[int], path: Path) -> None:
    """Renders the frames side by side into one picture."""
    gap = np.ones((SIZE[1], 6, 4), dtype=np.float32)
    panels = [part for frame in frames for part in (rendered(frame), gap)]
    save(np.concatenate(panels[:-1], axis=1), path)


def rendered(frame: int) -> np.ndarray:
    """A frame's pixels (height, width, 4), the lowest row first."""
    scene = bpy.context.scene
    scene.frame_set(frame)
    with tempfile.TemporaryDirectory() as folder:
        scene.render.filepath = str(Path(folder, "frame.png"))
        bpy.ops.render.render(write_still=True)
        image = bpy.data.images.load(scene.render.filepath)
        scene.render.filepath = ""
        pixels = np.empty((image.size[1], image.size[0], 4), dtype=np.float32)
        image.pixels.foreach_get(pixels.ravel())
        bpy.data.images.remove(image)
    return pixels


def save(pixels: np.ndarray, path: Path) -> None:
    """Writes pixels as `rendered` has them to a PNG file."""
    image = bpy.data.images.new(path.stem, pixels.shape[1], pixels.shape[0])
    image.pixels.foreach_set(np.ascontiguousarray(pixels).ravel())
    image.filepath_raw, image.file_format = str(path), "PNG"
    image.save()
    bpy.data.images.remove(image)


def simulate(rig: bpy.types.Object, steps: bpy.types.Collection):
    """Make Dynamic, Simulate and Keep, as the panel's buttons do; returns the report."""
    from armature_dynamics.addon import operators, stage, take
    from armature_dynamics.addon.progress import finished

    operators.make_dynamic(rig)
    settings = rig.armature_dynamics
    settings.frame_start, settings.frame_end = START, END
    settings.scenery, settings.use_ground = steps, False
    report = finished(take.take(rig))
    stage.keep(rig)
    return report


def main(folder: Path) -> int:
    folder.mkdir(exist_ok=True)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    with registered():
        scene = bpy.context.scene
        scene.render.fps, scene.frame_start, scene.frame_end = RATE, 1, END
        rig, stairs = character(), steps()
        report = simulate(rig, stairs)
        report.input = "Rigify human metarig"
        dress(rig)
        studio(stairs)
        bpy.context.preferences.filepaths.save_version = 0
        bpy.ops.wm.save_as_mainfile(filepath=str(folder / "demo.blend"), check_existing=False)
        frames = [round(frame) for frame in np.linspace(START, END, PICTURES)]
        contact_sheet(frames, folder / "demo.png")
        (folder / "demo.json").write_text(json.dumps(report.as_dict(), indent=1, ensure_ascii=False), encoding="utf-8")
        for name, value in report.as_dict().items():
            print(f"{name:<24} {len(value) if name == 'warnings' else value}")
        print(f"written: {', '.join(f'{folder.name}/demo.{kind}' for kind in ('blend', 'png', 'json'))}")
        return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
