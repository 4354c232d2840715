"""One example scene inside Blender, made with the extension's buttons alone: NAME FOLDER. Run by examples.py."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import bpy
import demo_scene
from bake import registered
from demo_scene import START, STRIDE, box, contact_sheet, dress, material, studio
from mathutils import Matrix, Vector
from pile_scene import pile
from stage_scene import (
    FLOOR,
    RATE,
    connect,
    dress_links,
    human,
    make_dynamic,
    mirrored,
    pole,
    row,
    scenery,
    simulate,
    spread,
    switch,
    tail,
)


def high_bar() -> list[int]:
    """A gymnast swings down round a bar; the right hand lets go on the way."""
    arms = {"upper_arm.L": (0, -118), "upper_arm.R": (0, 118), "forearm.L": (-4, -14), "forearm.R": (-4, 14)}
    rig = human("Gymnast", {**arms, "hand.L": (0, -6), "hand.R": (0, 6), "thigh.L": (-6, 0), "thigh.R": (-6, 0)})
    grip = (tail(rig, "hand.L") + tail(rig, "hand.R")) / 2
    height = 2.75
    swung = Matrix.Translation((0, 0, height)) @ Matrix.Rotation(math.radians(-75), 4, "X") @ Matrix.Translation(-grip)
    rig.matrix_world = swung @ rig.matrix_world
    bar = pole("Bar", (-1.2, 0, height), (1.2, 0, height), 0.02)
    posts = scenery(
        FLOOR, ("Post 1", (-1.28, -0.04, 0), (-1.2, 0.04, height)), ("Post 2", (1.2, -0.04, 0), (1.28, 0.04, height))
    )
    make_dynamic(rig, frame_start=1, frame_end=64, tone=0.4, damping=0.3, scenery=posts)
    connect(rig, "hand.L", bar, kind="HINGE", axis="X")
    right = connect(rig, "hand.R", bar, kind="HINGE", axis="X")
    switch(rig, right, {1: True, 27: False})
    simulate(rig)
    dress(rig)
    studio(posts, eye=(6.9, -5.8, 2.0), aim=(0, -0.05, 1.55), lens=33)
    return [1, 12, 20, 28, 40, 56]


def holding_hands() -> list[int]:
    """Two people walk off the top of some steps hand in hand."""
    pose = {**STRIDE, "upper_arm.L": (-4, 22), "forearm.L": (-6, 0)}
    left, right = human("Ann", pose), human("Ben", mirrored(pose))
    reach, speed = tail(left, "hand.L").x, demo_scene.SPEED / RATE
    for rig, x in ((left, -reach), (right, reach)):
        for frame in (1, START + 1):
            rig.location = (x, speed * (START - frame), -0.07)
            rig.keyframe_insert("location", frame=frame)
    stairs = demo_scene.steps()
    for rig in (left, right):
        make_dynamic(rig)
    make_dynamic(left, frame_start=START, frame_end=60, substeps=16, scenery=stairs, use_ground=False)
    bpy.context.scene.frame_set(START)
    connect(left, "hand.L", right, "hand.R", target_at="TAIL", kind="BALL")
    simulate(left)
    dress(left)
    dress(right, (0.06, 0.32, 0.75))
    studio(stairs, eye=(5.6, -6.2, 2.1), aim=(0.1, -1.0, 0.4))
    return spread(START, 60)


SEATED = {  # where the left limbs point: left, forward, up
    "upper_arm": (0.28, -0.2, -1), "forearm": (0.05, 0.8, 1), "hand": (0.1, 0.4, 1),
    "thigh": (0.06, 1, 0), "shin": (0, -0.05, -1), "foot": (0, 0.7, -0.7),
}  # fmt: skip
TOP, ROPE, FRONT, BACK = 4.2, 2.5, 0.3, 0.1
"""The swing's axis, how far below it the plate is, and how far the plate reaches before and behind the hips [m]."""
SWUNG = {1: 0, 20: -12, 58: 24, 96: -40, 134: 46, 172: -22, 210: 10, 248: 0}
"""Frames, and how far back the swing is turned then [degrees]: in the time of a pendulum, high, and out again."""


def swing() -> list[int]:
    """A man tries to stay seated on a swing, which is animated. He slides off its plate and hangs by his hands."""
    rig = human("Man", {})
    sit(rig)
    hand, hip = tail(rig, "hand.L"), rig.pose.bones["thigh.L"].head
    seat = TOP - ROPE
    rig.location = (0, -hand.y, seat + 0.095 - hip.z)
    top = bpy.data.objects.new("Swing", None)
    top.location = (0, 0, TOP)
    bpy.context.scene.collection.objects.link(top)
    for frame, angle in SWUNG.items():
        top.rotation_euler.x = math.radians(angle)
        top.keyframe_insert("rotation_euler", index=0, frame=frame)
    bpy.context.scene.frame_set(1)
    ropes = [pole(f"Rope.{'LR'[x < 0]}", (x, 0, seat), (x, 0, TOP), 0.014) for x in (hand.x, -hand.x)]
    wide, back = hand.x + 0.04, hip.y - hand.y
    box(bpy.context.scene.collection, "Plate", (-wide, back - FRONT, seat - 0.03), (wide, back + BACK, seat))
    plate = bpy.data.objects["Plate"]
    plate.data.materials.append(material("Wood", (0.45, 0.2, 0.06), 0.5))
    for thing in (*ropes, plate, pole("Beam", (-0.8, 0, TOP), (0.8, 0, TOP), 0.03)):
        hang(thing, top)
    posts = scenery(
        FLOOR, ("Post 1", (-0.88, -0.05, 0), (-0.78, 0.05, TOP)), ("Post 2", (0.78, -0.05, 0), (0.88, 0.05, TOP))
    )
    make_dynamic(rig, frame_start=1, frame_end=220, tone=4.0, damping=1.0, scenery=posts)
    for suffix, rope in zip((".L", ".R"), ropes):
        connect(rig, "hand" + suffix, rope, kind="BALL")
        # springy: two exact sliders side by side would hold the hips twice
        connect(
            rig, "thigh" + suffix, plate, at="HEAD", kind="SLIDER", axis="Y", slide_distance=FRONT,
            method="SPRINGY", stiffness=1e5, damping=1e3,
        )  # fmt: skip
    simulate(rig)
    dress(rig)
    studio(posts, eye=(9.2, -5.4, 2.6), aim=(0, 0.1, 2.25), lens=38)
    return [1, 96, 122, 150, 172, 192]


def sit(rig: bpy.types.Object) -> None:
    """Points the limbs as SEATED says, and keys them."""
    for name, (left, forward, up) in SEATED.items():
        for suffix, sign in ((".L", 1), (".R", -1)):
            bpy.context.view_layer.update()
            bone = rig.pose.bones[name + suffix]
            bone.rotation_mode = "QUATERNION"
            turn = (bone.tail - bone.head).rotation_difference(Vector((sign * left, -forward, up)))
            joint = Matrix.Translation(bone.head)
            bone.matrix = joint @ turn.to_matrix().to_4x4() @ joint.inverted() @ bone.matrix
            bone.keyframe_insert("rotation_quaternion", frame=1)
    bpy.context.view_layer.update()


def hang(thing: bpy.types.Object, carrier: bpy.types.Object) -> None:
    """Parents a thing where it is."""
    bpy.context.view_layer.update()
    thing.parent = carrier
    thing.matrix_parent_inverse = carrier.matrix_world.inverted()


def snapping_chain() -> list[int]:
    """A chain between two posts falls into its bow, which is too much for its middle link."""
    span, height, count = 0.9, 2.0, 7
    # links in zigzag: a chain that is straight between its posts could not fall
    across = [(span * i / count, 0.05 * (i % 2)) for i in range(count + 1)]
    left = row("Left Chain", [(x - span, y, height) for x, y in across])
    right = row("Right Chain", [(span - x, -y, height) for x, y in across])
    posts = scenery(
        FLOOR,
        ("Post 1", (-span - 0.1, -0.05, 0), (-span - 0.02, 0.05, height + 0.1)),
        ("Post 2", (span + 0.02, -0.05, 0), (span + 0.1, 0.05, height + 0.1)),
    )
    make_dynamic(right, mass=4.0, damping=0.02)
    make_dynamic(left, mass=4.0, damping=0.02, substeps=20, frame_start=1, frame_end=60)
    for rig in (left, right):
        connect(rig, "link.001", at="HEAD")
    connect(left, f"link.{count:03}", right, f"link.{count:03}", target_at="TAIL", name="weak link", break_force=400.0)
    simulate(left)
    for rig in (left, right):
        dress_links(rig, 0.022, (0.25, 0.27, 0.3))
    studio(posts, eye=(2.6, -5.0, 1.6), aim=(0, 0, 1.05), lens=42)
    return [1, 5, 7, 9, 12, 18]


EXAMPLES = {
    "high-bar": high_bar,
    "swing": swing,
    "holding-hands": holding_hands,
    "snapping-chain": snapping_chain,
    "pile": pile,
}
"""Each builds a scene, simulates it and returns the frames to show."""


def main(name: str, folder: Path, picture: bool = True) -> int:
    folder.mkdir(exist_ok=True)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.preferences.addon_enable(module="rigify")
    with registered():
        scene = bpy.context.scene
        scene.render.fps = RATE
        frames = EXAMPLES[name]()
        scene.frame_start, scene.frame_end = 1, bpy.context.object.armature_dynamics.frame_end
        bpy.context.preferences.filepaths.save_version = 0
        bpy.ops.wm.save_as_mainfile(filepath=str(folder / f"{name}.blend"), check_existing=False)
        if picture:
            contact_sheet(frames, folder / f"{name}.png")
        print(f"written: {folder.name}/{name}.blend" + (f", {folder.name}/{name}.png" if picture else ""))
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
