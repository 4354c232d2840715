"""Run by a real Blender in a window: `-- FOLDER`. Drives the sidebar with mouse and keys as an animator does; see
mouse.py. Buttons are looked for by moving the mouse down the sidebar, where Blender says what is under it."""

import hashlib
import sys
import time
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).parent))

from mouse import ask, found, over_view, point, press, run, until, view

ROUNDS = 17
"""Times that three steps are undone and redone."""

LONG = 5000
"""Frames of the simulation that is stopped."""

STEP = 14
"""How far the mouse goes down at a time to look for a button [pixels at a scale of 1]; they are 20 high."""

LEFT, RIGHT = 0.3, 0.7
"""Where buttons of operators are, the first of two in a row, and settings, as parts of the sidebar's width."""

HELP = 62
"""How far the middle of a header's help button is from the sidebar's right edge [pixels at a scale of 1]."""

OVERLAYS = ("show_shapes", "show_contacts", "show_activity")


def armature():
    return bpy.data.objects["metarig"]


def settings():
    return armature().armature_dynamics


def state() -> tuple:
    """What undo must bring back: what plays, and a digest of its keys."""
    animation = armature().animation_data
    action, keys = animation.action if animation else None, hashlib.sha256()
    for curve in curves(action):
        keys.update(repr([curve.data_path, [tuple(key.co) for key in curve.keyframe_points]]).encode())
    bones = [tuple(bone.rotation_quaternion) for bone in armature().pose.bones]
    roles = [bone.armature_dynamics.role for bone in armature().pose.bones]
    return settings().enabled, settings().state, action and action.name, keys.hexdigest(), bones, roles


def curves(action) -> list:
    if action is None:
        return []
    if hasattr(action, "layers"):
        return [curve for bag in action.layers[0].strips[0].channelbags for curve in bag.fcurves]
    return list(action.fcurves)


def drawn():
    """Waits until the sidebar shows what is now."""
    seen: list = []
    handle = bpy.types.SpaceView3D.draw_handler_add(lambda: seen.append(True), (), "UI", "POST_PIXEL")
    view()[2]["UI"].tag_redraw()
    yield from until(lambda: bool(seen))
    bpy.types.SpaceView3D.draw_handler_remove(handle, "UI")
    yield 0.2


def under() -> str:
    """The path of the setting, or the call of the operator, whose button in the sidebar is under the mouse."""
    window, area, regions = view()
    with bpy.context.temp_override(window=window, area=area, region=regions["UI"]):
        if bpy.context.property:
            return bpy.context.property[1]
        if not bpy.ops.ui.copy_python_command_button.poll():
            return ""
        bpy.ops.ui.copy_python_command_button()
        return bpy.context.window_manager.clipboard


def scroll(button: int):
    """Turns the wheel over the sidebar: 4 is up, 5 down."""
    sidebar = view()[2]["UI"]
    yield from point(sidebar, sidebar.width / 2, sidebar.height / 2)
    yield from ask("click", "--repeat", 12, "--delay", 20, button)
    yield from drawn()


def find(what: str, x: float):
    """Moves the mouse down the sidebar, so far from its left edge, until it is over a button: first in the part that is
    shown, then from the top on, scrolling. What was too slow to be seen the first time is seen the second."""
    step = int(STEP * bpy.context.preferences.system.ui_scale)
    for page in range(6):
        yield from drawn()
        sidebar = view()[2]["UI"]
        for from_top in range(step, sidebar.height, step):
            yield from point(sidebar, x, from_top)
            if what in under():
                return
        for _ in range(3 if page == 0 else 1):
            yield from scroll(4 if page == 0 else 5)
    raise AssertionError(f"there is no {what} in the sidebar")


def click(what: str, part: float = LEFT):
    """Finds a button at that part of the sidebar's width, and clicks it."""
    sidebar, scale = view()[2]["UI"], bpy.context.preferences.system.ui_scale
    yield from find(what, part * (sidebar.width - 20 * scale))
    yield from ask("click", 1)


def open_panel(part: str):
    """Clicks the header of a panel, which is where the help button is that opens this part of the manual."""
    sidebar, scale = view()[2]["UI"], bpy.context.preferences.system.ui_scale
    yield from find(f'help(part="{part}")', sidebar.width - HELP * scale)
    yield from ask("mousemove_relative", "--", int(-100 * scale), 0, "click", 1)


def is_tab(name: str) -> bool:
    """Opens a tab of the sidebar, which can be done once it has been drawn."""
    sidebar = view()[2]["UI"]
    try:
        sidebar.active_panel_category = name
    except (AttributeError, TypeError):
        return False
    sidebar.tag_redraw()
    return True


def day():
    yield from morning()
    yield from three_actions()
    yield from there_and_back()
    yield from look_and_mend()
    yield from two()


def morning():
    """A metarig, and the sidebar on its tab."""
    bpy.ops.preferences.addon_enable(module="rigify")
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    with over_view():
        bpy.ops.object.armature_human_metarig_add()
    armature().location.z = 0.2
    view()[1].spaces.active.show_region_ui = True
    yield from until(lambda: is_tab("Dynamics"))
    bpy.ops.ed.undo_push(message="morning")
    yield 2.0


def three_actions():
    """Make Dynamic, Simulate, which is first stopped, and Keep: by the mouse."""
    yield from click("make_dynamic(")
    yield from until(lambda: settings().enabled)
    before, usual = state(), settings().frame_end
    # no machine is done with so much before the key is pressed
    settings().frame_end = LONG
    yield from click("simulate(")
    yield 1.0
    yield from press("Escape")
    yield 1.0
    settings().frame_end = usual
    found["esc_leaves_nothing"] = state() == before and not bpy.data.actions
    drawn: list = []
    handle = bpy.types.SpaceView3D.draw_handler_add(lambda: drawn.append(time.monotonic()), (), "WINDOW", "POST_PIXEL")
    begin = time.monotonic()
    yield from click("simulate(")
    yield from until(lambda: settings().state == "SIMULATED")
    found["simulated_s"] = time.monotonic() - begin
    bpy.types.SpaceView3D.draw_handler_remove(handle, "WINDOW")
    found["view_drawn"] = len(drawn)
    yield from click("keep(")
    yield from until(lambda: settings().state == "KEPT")
    found["kept"] = bool(curves(armature().animation_data.action))


def there_and_back():
    """Undo and redo by their keys."""
    yield from point(view()[2]["WINDOW"], 400, 400)
    after, befores = state(), []
    for _ in range(3):
        last = state()
        yield from press("ctrl+z")
        yield from until(lambda last=last: state() != last)
        befores.append(state())
    found["undone"] = [before[:2] for before in befores]
    for _ in range(ROUNDS):
        yield from press("ctrl+shift+z ctrl+shift+z ctrl+shift+z")
        yield from until(lambda: state() == after)
        yield from press("ctrl+z ctrl+z ctrl+z")
        yield from until(lambda: state() == befores[-1])
    yield from press("ctrl+shift+z ctrl+shift+z ctrl+shift+z")
    yield from until(lambda: state() == after)
    found["there_and_back"] = ROUNDS


def look_and_mend():
    """Overlays, and a problem that its button mends: by the mouse."""
    yield from open_panel("viewport-display")
    for name in OVERLAYS:
        yield from click(name, RIGHT)
        yield from until(lambda name=name: getattr(settings(), name))
    found["overlays"] = [name for name in OVERLAYS if getattr(settings(), name)]
    bpy.context.scene.frame_set(30)
    yield from drawn()
    armature().pose.bones["thigh.L"].lock_rotation = (True, True, True)
    yield from click("check(")
    yield from until(lambda: settings().problems)
    codes = [problem.code for problem in settings().problems]
    found["problem_found"] = "locked" in codes
    yield from click(f"fix(index={codes.index('locked')})")
    yield from until(lambda: not any(armature().pose.bones["thigh.L"].lock_rotation))
    found["problem_mended"] = "locked" not in [problem.code for problem in settings().problems]


def two():
    """A second character, which the first one meets: by mouse and keys."""
    yield from click("meets", RIGHT)
    yield from until(lambda: settings().meets)
    yield from find("frame_end", RIGHT * view()[2]["UI"].width)
    yield from press("Return ctrl+a 2 0 Return")
    yield from until(lambda: settings().frame_end == 20)
    yield from point(view()[2]["WINDOW"], 400, 400)
    yield from press("shift+d x period 3 Return")
    yield from until(lambda: len(bpy.data.objects) == 2)
    name = next(thing.name for thing in bpy.data.objects if thing != armature())
    yield from until(lambda: bpy.context.view_layer.objects.active.name == name)
    found["beside_m"] = bpy.data.objects[name].location.x - armature().location.x
    yield from click("simulate(")
    yield from until(lambda: bpy.data.objects[name].armature_dynamics.state == "SIMULATED")
    found["two_states"] = [bpy.data.objects[each].armature_dynamics.state for each in ("metarig", name)]
    yield 1.0


run(day())
