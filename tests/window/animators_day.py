"""Run by a real Blender in a window: `-- FOLDER`. Drives the sidebar with mouse and keys as an animator does, by asking
`hands.sh` in that folder, and writes to `found.json` there what came of it."""

import hashlib
import json
import sys
import time
import traceback
from pathlib import Path

import bpy

FOLDER = Path(sys.argv[-1])

PATIENCE = 90.0
"""Seconds after which what is waited for does not come any more."""

ROUNDS = 17
"""Times that three steps are undone and redone."""

LONG = 5000
"""Frames of the simulation that is stopped."""

BUTTON, SIMULATE, BELOW = 38, 98, 128
"""Where buttons are in the sidebar [pixels from its top]: the only one, Simulate, and the row below."""

found: dict = {}


def view():
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    return window, area, {region.type: region for region in area.regions}


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


def until(condition):
    """Waits for something to become true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited in vain, see line {condition.__code__.co_firstlineno}"
        yield 0.1


def ask(*arguments):
    """Lets xdotool do something, from outside."""
    asked, part = FOLDER / "asked", FOLDER / "part"
    part.write_text(" ".join(map(str, arguments)))
    part.rename(asked)
    yield from until(lambda: not asked.exists())
    yield 0.2


def point(region, x: float, from_top: float):
    """Moves the mouse to a place in a region."""
    top = view()[0].height - region.y - region.height
    yield from ask("mousemove", int(region.x + x), int(top + from_top))


def drawn():
    """Waits until the sidebar shows what is now."""
    seen: list = []
    handle = bpy.types.SpaceView3D.draw_handler_add(lambda: seen.append(True), (), "UI", "POST_PIXEL")
    view()[2]["UI"].tag_redraw()
    yield from until(lambda: bool(seen))
    bpy.types.SpaceView3D.draw_handler_remove(handle, "UI")
    yield 0.2


def click(from_top: float, part: float = 0.5):
    """Clicks so far below the sidebar's top, at that part of its width."""
    yield from drawn()
    sidebar, scale = view()[2]["UI"], bpy.context.preferences.system.ui_scale
    yield from point(sidebar, part * (sidebar.width - 20 * scale), from_top * scale)
    yield from ask("click", 1)


def press(keys: str):
    """Presses keys, one after the other, with the mouse where it is."""
    yield from ask("key", keys)


def is_tab(name: str) -> bool:
    """Opens a tab of the sidebar, which can be done once it has been drawn."""
    sidebar = view()[2]["UI"]
    try:
        sidebar.active_panel_category = name
    except (AttributeError, TypeError):
        return False
    sidebar.tag_redraw()
    return True


def over_view():
    window, area, regions = view()
    return bpy.context.temp_override(window=window, area=area, region=regions["WINDOW"])


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
    yield from click(BUTTON)
    yield from until(lambda: settings().enabled)
    before, usual = state(), settings().frame_end
    # no machine is done with so much before the key is pressed
    settings().frame_end = LONG
    yield from click(SIMULATE)
    yield 1.0
    yield from press("Escape")
    yield 1.0
    settings().frame_end = usual
    found["esc_leaves_nothing"] = state() == before and not bpy.data.actions
    drawn: list = []
    handle = bpy.types.SpaceView3D.draw_handler_add(lambda: drawn.append(time.monotonic()), (), "WINDOW", "POST_PIXEL")
    begin = time.monotonic()
    yield from click(SIMULATE)
    yield from until(lambda: settings().state == "SIMULATED")
    found["simulated_s"] = time.monotonic() - begin
    bpy.types.SpaceView3D.draw_handler_remove(handle, "WINDOW")
    found["view_drawn"] = len(drawn)
    yield from click(BELOW, 0.25)
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
    """Overlays, and a problem that its button mends."""
    for name in ("show_shapes", "show_contacts", "show_activity"):
        setattr(settings(), name, True)
    bpy.context.scene.frame_set(30)
    view()[1].tag_redraw()
    yield 1.0
    armature().pose.bones["thigh.L"].lock_rotation = (True, True, True)
    with over_view():
        bpy.ops.armature_dynamics.check("INVOKE_DEFAULT")
        codes = [problem.code for problem in settings().problems]
        found["problem_found"] = "locked" in codes
        bpy.ops.armature_dynamics.fix("INVOKE_DEFAULT", index=codes.index("locked"))
    yield 0.5
    found["problem_mended"] = not any(armature().pose.bones["thigh.L"].lock_rotation)


def two():
    """A second character that the first one meets."""
    with over_view():
        bpy.ops.object.select_all(action="DESELECT")
        armature().select_set(True)
        bpy.ops.object.duplicate()
    other = bpy.context.object
    other.location.x += 0.3
    for each in (armature(), other):
        each.armature_dynamics.meets, each.armature_dynamics.frame_end = True, 20
    name = other.name
    with over_view():
        bpy.ops.armature_dynamics.simulate("INVOKE_DEFAULT")
    yield from until(lambda: bpy.data.objects[name].armature_dynamics.state == "SIMULATED")
    found["two_states"] = [thing.armature_dynamics.state for thing in (armature(), bpy.data.objects[name])]
    yield 1.0


def run() -> None:
    steps = day()

    def on() -> float | None:
        try:
            return next(steps)
        except StopIteration:
            pass
        except Exception:
            found["error"] = traceback.format_exc()
        (FOLDER / "found.json").write_text(json.dumps(found))
        return None

    bpy.context.preferences.view.show_splash = False
    bpy.app.timers.register(on, first_interval=2.0)


run()
