"""Run by a real Blender in a window: `-- FOLDER`. Grabs a chain while the scene plays, beside a second 3D view, and
from each of the four of a quad view; see mouse.py."""

import sys
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))

from bpy_extras import view3d_utils
from mathutils import Vector
from mouse import ask, found, over_view, point, press, run, until, view

STEPS, WAY = 8, 50
"""How far the mouse drags [pixels], in how many moves."""

shown: dict[int, list] = {}
areas: set[int] = set()


def armature():
    return bpy.data.objects["Rig"]


def ends() -> list[list[float]]:
    """Where Blender has the bones."""
    own = armature().evaluated_get(bpy.context.evaluated_depsgraph_get())
    return [list(own.matrix_world @ bone.tail) for bone in own.pose.bones]


def note() -> None:
    shown[bpy.context.scene.frame_current] = ends()
    areas.add(bpy.context.area.as_pointer())


def make() -> None:
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    data = bpy.data.armatures.new("Rig")
    rig = bpy.data.objects.new("Rig", data)
    bpy.context.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    rig.select_set(True)
    bpy.ops.object.mode_set(mode="EDIT")
    above = None
    for i in range(3):
        bone = data.edit_bones.new(f"bone{i}")
        bone.head, bone.tail, bone.parent = (0.3 * i - 0.45, 0, 1), (0.3 * i - 0.15, 0, 1), above
        bone.use_connect, above = i > 0, bone
    bpy.ops.object.mode_set(mode="OBJECT")


def grabbing() -> bool:
    window = bpy.context.window_manager.windows[0]
    return any(own.bl_idname == "ARMATURE_DYNAMICS_OT_grab" for own in window.modal_operators)


def frames(count: int):
    end = bpy.context.scene.frame_current + count
    yield from until(lambda: bpy.context.scene.frame_current >= end)


def drag(region, data):
    """Presses on the last bone in a region and drags it to the right; returns how far it went to the right, upward and
    toward who looks [m]."""
    place = Vector(ends()[1]) / 2 + Vector(ends()[2]) / 2
    x, y = view3d_utils.location_3d_to_region_2d(region, data, place)
    yield from point(region, x, region.height - y)
    yield from ask("mousedown", 1)
    yield from until(grabbing)
    begin = bpy.context.scene.frame_current
    yield from until(lambda: bpy.context.scene.frame_current > begin + 3)
    before = Vector(ends()[2])
    for i in range(STEPS):
        yield from point(region, x + WAY * (i + 1) / STEPS, region.height - y)
    yield from frames(20)
    turn = data.view_matrix.to_3x3()
    went = turn @ (Vector(ends()[2]) - before)
    yield from ask("mouseup", 1)
    return list(went)


def day():
    make()
    scene = bpy.context.scene
    scene.use_gravity = False
    with over_view():
        bpy.ops.armature_dynamics.make_dynamic()
    armature().armature_dynamics.use_ground = False
    with over_view():
        bpy.ops.screen.area_split(direction="VERTICAL", factor=0.5)
    yield 0.5
    with over_view():
        bpy.ops.view3d.view_axis(type="FRONT")
        bpy.ops.view3d.view_all()
        bpy.ops.wm.tool_set_by_id(name="armature_dynamics.grab_objects")
    yield 2.0
    window, area, regions = view()
    handle = bpy.types.SpaceView3D.draw_handler_add(note, (), "WINDOW", "POST_PIXEL")
    # while the scene plays
    with over_view():
        bpy.ops.screen.animation_play()
    yield from until(lambda: bpy.context.scene.frame_current > 5)
    found["playing"] = window.screen.is_animation_playing
    shown.clear()
    areas.clear()
    found["while_playing_m"] = yield from drag(regions["WINDOW"], area.spaces.active.region_3d)
    found["areas"] = len(areas)
    yield from press("Return")
    yield from until(lambda: not grabbing())
    yield from until(lambda: armature().armature_dynamics.state == "SIMULATED")
    found["plays_on"] = window.screen.is_animation_playing
    with over_view():
        bpy.ops.screen.animation_cancel(restore_frame=False)
    first, last = armature().animation_data.action.frame_range
    seen, apart = {frame: poses for frame, poses in shown.items() if first < frame <= last}, 0.0
    for frame, poses in seen.items():
        scene.frame_set(frame)
        apart = max(apart, *((Vector(a) - Vector(b)).length for a, b in zip(poses, ends())))
    found["frames"], found["apart_m"] = len(seen), apart
    with over_view():
        bpy.ops.armature_dynamics.discard()
    scene.frame_set(1)
    with over_view():
        bpy.ops.screen.region_quadview()
    yield 2.0
    with over_view():
        bpy.ops.view3d.view_all()
    yield 2.0
    window, area, _ = view()
    quads = [own for own in area.regions if own.type == "WINDOW"]
    found["quads_m"] = []
    for region in quads:
        scene.frame_set(1)
        yield 0.5
        went = yield from drag(region, region.data)
        found["quads_m"].append(went)
        yield from press("Escape")
        yield from until(lambda: not grabbing())
        yield 0.3
    bpy.types.SpaceView3D.draw_handler_remove(handle, "WINDOW")


run(day())
