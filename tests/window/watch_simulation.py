"""Run by a real Blender in a window: `-- EVERY OUT.json`, with `--enable-event-simulate`. Simulates the armature of the
file, drawing it every so many frames, stops it by Esc, simulates it again to its end, and writes how long it kept
Blender from drawing, how long nothing was drawn, and what was left."""

import json
import sys
import time
from itertools import pairwise

import bpy

FRAMES, STOPPED, ESC_AFTER, LONGEST = 100, 2000, 0.5, 60.0
"""Frames of a simulation, and of one that is stopped long before its end; seconds after the character moved until Esc;
and the most that is waited for one."""

drawn: list[float] = []
busy: list[tuple[float, float]] = []
shown: list[int] = []
"""Frames of which the character was drawn while it was simulated: sampling, too, goes through the scene's frames."""
outcome: dict = {}


def note(*_) -> None:
    drawn.append(time.perf_counter())


def armature():
    return next(thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE")


def left() -> dict:
    """All that a simulation may leave behind."""
    actions = sorted(action.name for action in bpy.data.actions)
    poses = [[round(x, 6) for row in bone.matrix for x in row] for bone in armature().pose.bones]
    state, frame = armature().armature_dynamics.state, bpy.context.scene.frame_current
    return {"actions": actions, "state": state, "poses": poses, "frame": frame}


def window_and_view() -> dict:
    window = bpy.context.window_manager.windows[0]
    area = next(area for area in window.screen.areas if area.type == "VIEW_3D")
    return {"window": window, "area": area, "region": next(r for r in area.regions if r.type == "WINDOW")}


def clock() -> None:
    """Lets the operator note how long each piece of its work takes."""
    operator = bpy.types.ARMATURE_DYNAMICS_OT_simulate
    work = operator.modal

    def modal(self, context, event):
        begin = time.perf_counter(), time.thread_time()
        try:
            return work(self, context, event)
        finally:
            if event.type == "TIMER":
                busy.append((time.perf_counter() - begin[0], time.thread_time() - begin[1]))

    operator.modal = modal
    puppets = next(module for name, module in sys.modules.items() if name.endswith(".addon.puppet")).Puppets
    show = puppets.show

    def noted(self, frame, poses):
        show(self, frame, poses)
        shown.append(frame)

    puppets.show = noted


def invoke(frames: int) -> None:
    settings = armature().armature_dynamics
    settings.frame_end = settings.frame_start + frames - 1
    drawn[:] = [time.perf_counter()]
    busy.clear()
    with bpy.context.temp_override(**window_and_view()):
        bpy.ops.armature_dynamics.simulate("INVOKE_DEFAULT")


def simulating() -> bool:
    window = bpy.context.window_manager.windows[0]
    return any(own.bl_idname == "ARMATURE_DYNAMICS_OT_simulate" for own in window.modal_operators)


def gaps() -> list[float]:
    return sorted((b - a for a, b in pairwise(drawn)), reverse=True)[:5]


def prepare() -> float:
    with bpy.context.temp_override(**window_and_view()):
        bpy.context.view_layer.objects.active = armature()
        armature().select_set(True)
        bpy.ops.armature_dynamics.make_dynamic()
        bpy.ops.view3d.view_all()
    armature().armature_dynamics.live_every = int(sys.argv[-2])
    bpy.types.SpaceView3D.draw_handler_add(note, (), "WINDOW", "POST_PIXEL")
    bpy.types.STATUSBAR_HT_header.append(note)
    outcome["before"] = left()
    clock()


def watch():
    """The steps of the watch, each when the one before is over; yields how long to wait [s]."""
    prepare()
    yield 3.0
    invoke(STOPPED)
    begin, every = time.perf_counter(), armature().armature_dynamics.live_every
    frame = outcome["before"]["frame"]
    while every and max(shown, default=frame) == frame and time.perf_counter() < begin + LONGEST:
        yield 0.05
    yield ESC_AFTER
    outcome["seen"] = max(shown, default=frame) - frame
    bpy.context.window_manager.windows[0].event_simulate(type="ESC", value="PRESS", x=200, y=200)
    while simulating() and time.perf_counter() < begin + LONGEST:
        yield 0.05
    outcome["stopped"], outcome["gaps_stopped"] = left(), gaps()
    invoke(FRAMES)
    begin = time.perf_counter()
    while simulating() and time.perf_counter() < begin + LONGEST:
        yield 0.05
    outcome["seconds"] = drawn[-1] - drawn[0]
    outcome["finished"], outcome["gaps"], outcome["redraws"] = left(), gaps(), len(drawn)
    outcome["pieces"] = len(busy)
    outcome["busy_wall"], outcome["busy"] = map(max, zip(*busy))
    with open(sys.argv[-1], "w", encoding="utf-8") as file:
        json.dump(outcome, file)
    bpy.context.scene.frame_set(20)


steps = watch()
bpy.app.timers.register(lambda: next(steps, None), first_interval=2.0)
