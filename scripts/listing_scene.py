"""One picture of the extension's listing inside Blender: NAME FOLDER. Run by listing.py."""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import demo_scene
import example_scene
import numpy as np
from bake import registered
from demo_scene import END, dress, material, studio
from mathutils import Vector
from stage_scene import RATE, human, make_dynamic, scenery, simulate

SIZE = (1920, 1080)
SAMPLES = 16
QUALITY = 82
"""Of JPEG files [%]: what keeps a picture below 300 kB."""

ICON = 256
FALL = {7: 0.72, 19: 0.5, 28: 0.28, 40: 0.0}
"""Frames of the fall down the steps, and how pale the character is then: the last one has its color."""

HALF = (SIZE[0] // 2, SIZE[1] // 2)

VIEWS = {
    "high-bar": (36, (HALF[0], SIZE[1]), (6.4, -6.2, 2.2), (0.0, -0.1, 1.85), 58),
    "swing": (122, HALF, (5.0, -8.6, 2.9), (0.0, 0.75, 2.6), 70),
    "holding-hands": (18, HALF, (5.6, -6.2, 2.1), (0.0, -0.45, 0.75), 78),
}
"""Examples: the frame to show of each, the picture's size, and the camera's eye, aim and lens."""


def featured() -> np.ndarray:
    """The whole fall of the demo in one picture, as photographs with a flashing light show it."""
    rig, stairs = demo_scene.character(), demo_scene.steps()
    demo_scene.simulate(rig, stairs)
    dress(rig)
    limbs = [thing for thing in bpy.data.objects if thing.parent == rig]
    for frame, pale in FALL.items():
        bpy.context.scene.frame_set(frame)
        for limb in limbs:
            copy = bpy.data.objects.new(f"{limb.name} {frame}", limb.data.copy())
            copy.matrix_world = limb.matrix_world
            skin = limb.data.materials[0].name.startswith("Skin")
            color = np.array((0.85, 0.23, 0.06) if skin else (0.05, 0.06, 0.08))
            name = f"{'Skin' if skin else 'Joints'} at {frame}"
            look = bpy.data.materials.get(name) or material(name, tuple(color * (1 - pale) + 0.75 * pale), 0.4)
            copy.data.materials[0] = look
            bpy.context.scene.collection.objects.link(copy)
    for limb in limbs:
        limb.hide_render = True
    studio(stairs, eye=(6.0, -3.4, 1.2), aim=(0.0, -0.62, 0.42), lens=42)
    return rendered(END)


def pile() -> np.ndarray:
    """Three characters on a platform that moves."""
    frames = example_scene.EXAMPLES["pile"]()
    frame(eye=(4.2, -5.4, 2.1), aim=(-0.1, -1.7, 0.05), lens=48)
    return rendered(frames[1] + 8)


def connections() -> np.ndarray:
    """Three examples of connections side by side: one at the left, two at the right."""
    parts = []
    for name, (number, size, eye, aim, lens) in VIEWS.items():
        bpy.ops.wm.read_factory_settings(use_empty=True)
        bpy.ops.preferences.addon_enable(module="rigify")
        bpy.context.scene.render.fps = RATE
        example_scene.EXAMPLES[name]()
        frame(eye, aim, lens)
        parts.append(rendered(number, size))
    left, upper, lower = parts
    # pictures are stored from below
    return np.concatenate([left, np.concatenate([lower, upper])], axis=1)


def icon() -> np.ndarray:
    """A character in the middle of a fall on a round field; nothing around it."""
    floor = scenery()
    rig = human("Ada", {"thigh.L": (-70, 8), "shin.L": (60, 0), "thigh.R": (20, -8), "shin.R": (50, 0),
                        "upper_arm.L": (40, -75), "forearm.L": (-40, 0), "upper_arm.R": (-30, 70),
                        "forearm.R": (-35, 0)})  # fmt: skip
    rig.location.z, rig.rotation_euler = 2.0, (0.5, 0.45, 0.95)
    make_dynamic(rig, frame_start=1, frame_end=20, use_ground=False)
    simulate(rig)
    dress(rig)
    bpy.context.scene.frame_set(12)
    bpy.context.view_layer.update()
    heads = [rig.matrix_world @ bone.head for bone in rig.pose.bones if not bone.parent or len(bone.children) < 4]
    low, high = (Vector(map(edge, *heads)) for edge in (min, max))
    aim = (low + high) / 2
    studio(floor, eye=aim + Vector((2.2, -4.0, 0.9)), aim=aim, lens=46)
    scene = bpy.context.scene
    scene.render.film_transparent = True
    return on_disc(rendered(12, (2 * ICON, 2 * ICON)))


def on_disc(pixels: np.ndarray) -> np.ndarray:
    """A picture with an alpha over a round dark field, half as large."""
    size = pixels.shape[0]
    across = np.linspace(-1, 1, size)
    away = np.hypot(across[:, None], across[None])
    field = np.empty_like(pixels)
    field[..., :3] = np.array((0.10, 0.17, 0.25)) * (1.15 - 0.35 * away[..., None])
    field[..., 3] = np.clip((0.97 - away) * size / 2, 0, 1)
    alpha = pixels[..., 3:]
    over = np.concatenate(
        [pixels[..., :3] * alpha + field[..., :3] * (1 - alpha), np.maximum(alpha, field[..., 3:])], 2
    )
    return over.reshape(size // 2, 2, size // 2, 2, 4).mean(axis=(1, 3))


def frame(eye, aim, lens: float) -> None:
    """Moves the camera."""
    camera = bpy.context.scene.camera
    camera.location = eye
    camera.rotation_euler = (Vector(aim) - camera.location).to_track_quat("-Z", "Y").to_euler()
    camera.data.lens = lens


def rendered(frame: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    """As `demo_scene.rendered`, in a size [pixels]."""
    scene = bpy.context.scene
    scene.render.resolution_x, scene.render.resolution_y, scene.cycles.samples = *size, SAMPLES
    return demo_scene.rendered(frame)


def save(pixels: np.ndarray, path: Path) -> None:
    image = bpy.data.images.new(path.stem, pixels.shape[1], pixels.shape[0], alpha=True)
    image.pixels.foreach_set(np.ascontiguousarray(pixels, dtype=np.float32).ravel())
    image.filepath_raw = str(path)
    image.file_format = "PNG" if path.suffix == ".png" else "JPEG"
    image.save(quality=0 if path.suffix == ".png" else QUALITY)
    bpy.data.images.remove(image)


def window() -> None:
    """What listing_window_scene.py simulates: the demo's character and steps, in the colors of the viewport."""
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, END
    rig, stairs = demo_scene.character(), demo_scene.steps()
    rig.name = "Ada"
    dress(rig)
    for collection in rig.data.collections:
        collection.is_visible = not collection.name.startswith(("Face", "Fingers"))
    for limb in (thing for thing in bpy.data.objects if thing.parent == rig):
        limb.color = (0.85, 0.3, 0.12, 1) if limb.data.materials[0].name == "Skin" else (0.1, 0.11, 0.13, 1)
    for thing in stairs.objects:
        thing.color = (0.55, 0.57, 0.6, 1) if thing.name == "Floor" else (0.32, 0.42, 0.52, 1)


PICTURES = {"icon.png": icon, "featured.jpg": featured, "pile.jpg": pile, "connections.jpg": connections}


def main(name: str, folder: Path) -> int:
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.preferences.addon_enable(module="rigify")
    with registered():
        bpy.context.scene.render.fps = RATE
        if name == "window.blend":
            window()
            bpy.ops.wm.save_as_mainfile(filepath=str(folder / name), check_existing=False)
            return 0
        save(PICTURES[name](), folder / name)
        print(f"written: {name}, {(folder / name).stat().st_size / 1000:.0f} kB")
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
