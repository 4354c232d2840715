"""Run by a real Blender in a window: `-- FOLDER`. Grabs the hand of a metarig with the mouse, discards that, grabs it
again, records it, and compares what was shown with what plays; see mouse.py."""

import statistics
import sys
import time
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))

from bpy_extras import view3d_utils
from mouse import FOLDER, ask, found, over_view, point, press, run, until, view

BONE, LIFT, DRAGS, HOLD = "hand.L", 0.5, 14, 36
"""What is held, how far the mouse takes it up [m], in how many moves, and for how many frames it stays there."""

HEAVY = ("floor", "axis_x", "axis_y", "outline_selected")
"""Overlays that take software OpenGL longer to draw than all else."""

shown: dict[int, list] = {}
drawn: list[float] = []
spent: list[float] = []


def clock() -> None:
    """Notes how long a frame takes, without its drawing."""
    performance = sys.modules[type(bpy.context.scene.armature_dynamics).__module__.rpartition(".")[0] + ".performance"]
    advance = performance.Performance.advance

    def timed(self, *arguments):
        begin = time.perf_counter()
        try:
            return advance(self, *arguments)
        finally:
            spent.append(time.perf_counter() - begin)

    performance.Performance.advance = timed


def armature():
    return bpy.data.objects["metarig"]


def heads() -> list[list[float]]:
    """Where Blender has the bones."""
    own = armature().evaluated_get(bpy.context.evaluated_depsgraph_get())
    return [list(own.matrix_world @ bone.head) for bone in own.pose.bones]


def note() -> None:
    """What is drawn, and when."""
    drawn.append(time.perf_counter())
    shown[bpy.context.scene.frame_current] = heads()


def state() -> list:
    own = armature()
    channels = [(tuple(b.location), tuple(b.rotation_quaternion), tuple(b.scale)) for b in own.pose.bones]
    mutes = [constraint.mute for bone in own.pose.bones for constraint in bone.constraints]
    action = own.animation_data and own.animation_data.action
    actions = [each.name for each in bpy.data.actions]
    return [channels, mutes, action, actions, bpy.context.scene.frame_current, own.armature_dynamics.state]


def grabbing() -> bool:
    window = bpy.context.window_manager.windows[0]
    return any(own.bl_idname == "ARMATURE_DYNAMICS_OT_grab" for own in window.modal_operators)


def height() -> float:
    """Of the bone that is held [m]."""
    return heads()[list(armature().pose.bones.keys()).index(BONE)][2]


def frames(count: int):
    """Waits for so many frames."""
    end = bpy.context.scene.frame_current + count
    yield from until(lambda: bpy.context.scene.frame_current > end)


def drag(picture: str = ""):
    """Presses the left button over the hand, moves the mouse up in steps, pins it there, and releases it."""
    _, area, regions = view()
    region, bone = regions["WINDOW"], armature().pose.bones[BONE]
    place = armature().matrix_world @ ((bone.head + bone.tail) / 2)
    x, y = view3d_utils.location_3d_to_region_2d(region, area.spaces.active.region_3d, place)
    place.z += LIFT
    _, top = view3d_utils.location_3d_to_region_2d(region, area.spaces.active.region_3d, place)
    yield from point(region, x, region.height - y)
    yield from ask("mousedown", 1)
    yield from until(grabbing)
    yield from until(lambda: bpy.context.scene.frame_current > 5)
    handle = bpy.types.SpaceView3D.draw_handler_add(note, (), "WINDOW", "POST_PIXEL")
    shown.clear()
    drawn.clear()
    for i in range(DRAGS):
        yield from point(region, x + 3 * i, region.height - y - (top - y) * (i + 1) / DRAGS)
    yield from frames(HOLD)
    if picture:
        yield from ask("exec", "import", "-window", "root", FOLDER / picture)
    lifted = [height()]
    yield from press("p")
    yield from ask("mouseup", 1)
    yield from frames(HOLD)
    lifted.append(height())
    yield from press("r")
    yield from frames(HOLD)
    lifted.append(height())
    bpy.types.SpaceView3D.draw_handler_remove(handle, "WINDOW")
    return lifted


def play():
    """Lets Blender play what was recorded, for how often it draws by itself."""
    times: list[float] = []
    handle = bpy.types.SpaceView3D.draw_handler_add(
        lambda: times.append(time.perf_counter()), (), "WINDOW", "POST_PIXEL"
    )
    with over_view():
        bpy.ops.screen.animation_play()
    yield 4.0
    with over_view():
        bpy.ops.screen.animation_cancel()
    bpy.types.SpaceView3D.draw_handler_remove(handle, "WINDOW")
    found["blenders_own_per_s"] = (len(times) - 1) / (times[-1] - times[0])


def day():
    bpy.ops.preferences.addon_enable(module="rigify")
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    with over_view():
        bpy.ops.object.armature_basic_human_metarig_add()
        bpy.ops.armature_dynamics.make_dynamic()
        bpy.ops.view3d.view_all()
        bpy.ops.wm.tool_set_by_id(name="armature_dynamics.grab_objects")
    with over_view():
        bpy.ops.screen.screen_full_area()
    yield 0.5
    with over_view():
        bpy.ops.view3d.view_all()
    bpy.context.preferences.system.viewport_aa = "OFF"
    for name in HEAVY:
        setattr(view()[1].spaces.active.overlay, f"show_{name}", False)
    clock()
    yield 2.0
    bpy.ops.ed.undo_push(message="before")
    before, start, below = state(), bpy.context.scene.frame_current, height()
    lifted = yield from drag()
    found["lifted_m"] = lifted[0] - below
    yield from press("Escape")
    yield from until(lambda: not grabbing())
    yield 0.5
    found["esc_leaves_nothing"] = state() == before
    lifted = yield from drag("grab.png")
    found["seconds"], found["drawings"] = drawn[-1] - drawn[0], len(drawn)
    found["frame_ms"] = 1e3 * statistics.median(spent)
    found["redraws_per_s"] = (len(drawn) - 1) / (drawn[-1] - drawn[0])
    yield from press("Return")
    yield from until(lambda: not grabbing())
    yield from until(lambda: armature().armature_dynamics.state == "SIMULATED")
    found["lifted_again_m"], found["pinned_m"], found["released_m"] = (each - below for each in lifted)
    found["frame_after"] = bpy.context.scene.frame_current - start
    apart = 0.0
    for frame, seen in sorted(shown.items()):
        bpy.context.scene.frame_set(frame)
        for a, b in zip(seen, heads()):
            apart = max(apart, sum((x - y) ** 2 for x, y in zip(a, b)) ** 0.5)
    found["frames"], found["apart_m"] = len(shown), apart
    yield from play()
    found["summary"] = armature().armature_dynamics.summary
    yield from press("ctrl+z")
    yield from until(lambda: armature().armature_dynamics.state == "SOURCE")
    found["undone"] = state()[:2] == before[:2]


run(day())
