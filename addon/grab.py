"""The tool Grab: a character is simulated live in the 3D view, and pulled by the mouse."""

from __future__ import annotations

import bpy
import numpy as np
from bpy_extras import view3d_utils

from . import casting, curtain, override, preflight
from .operators import SLICE
from .performance import Performance, clock
from .pick import pick, view_under
from .problem import refused
from .spring import Drawing
from .words import said

TICK = 1 / 120
"""Seconds between two looks at the clock."""

STIFFER = 2.0
"""By how much a key makes springs stiffer."""

DEEPER = 0.06
"""How much farther a turn of the wheel takes the hand, relative to its distance from the eye."""

TELLING = 0.25
"""Seconds between two texts in the header."""

KEYS = "Drag: pull   Wheel: depth   P: pin   R: release   +/-: stiffer, softer   Enter: end   Esc: discard"
FINISH = ("RET", "NUMPAD_ENTER", "SPACE")
STIFFEN = {"PLUS": STIFFER, "EQUAL": STIFFER, "NUMPAD_PLUS": STIFFER, "MINUS": 1 / STIFFER, "NUMPAD_MINUS": 1 / STIFFER}
WHEEL = {"WHEELUPMOUSE": 1.0, "WHEELDOWNMOUSE": -1.0}
LOOKING = {"MIDDLEMOUSE", "TRACKPADPAN", "TRACKPADZOOM", "MOUSEROTATE", "NDOF_MOTION", *WHEEL}
DIGITS = {f"NUMPAD_{digit}" for digit in range(10)}
"""What turns the view while it plays; wheels only while nothing is held."""


def armature_of(thing):
    """The armature that is meant where an object is active: itself, or what deforms it."""
    return thing if thing is None or thing.type == "ARMATURE" else thing.find_armature()


class ARMATURE_DYNAMICS_OT_grab(bpy.types.Operator):
    """Let physics move the character now, from this frame on, as quickly as in life, and pull it with the mouse: press
    on a bone or on its skin. Enter writes what was seen as keyframes, Esc leaves everything as it was"""

    bl_idname = "armature_dynamics.grab"
    bl_label = "Play Live"
    bl_options = {"UNDO"}

    at_once: bpy.props.BoolProperty(
        name="At Once",
        description="Take hold of what is under the mouse",
        default=False,
        options={"HIDDEN", "SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context):
        armature = armature_of(context.object)
        if armature is None or not armature.armature_dynamics.enabled:
            cls.poll_message_set(said("Select an armature, and make it dynamic"))
            return False
        if not armature.is_editable:
            cls.poll_message_set(said(override.refusal(armature.name)))
            return False
        if curtain.is_up():
            cls.poll_message_set(said("It plays already, perhaps in another window; end that by Enter or Esc"))
            return False
        return True

    def execute(self, context):
        self.report({"ERROR"}, said("Grab is done by hand, in a window; without one, use Simulate"))
        return {"CANCELLED"}

    def invoke(self, context, event):
        if bpy.app.background or context.window is None:
            return self.execute(context)
        area = context.area if context.area and context.area.type == "VIEW_3D" else _largest_view(context)
        if area is None:
            self.report({"ERROR"}, said("there is no 3D view to grab in; open one"))
            return {"CANCELLED"}
        self._area, self._armature = area, armature_of(context.object)
        self._hand = self._depth = self._region = None
        self._mouse = event.mouse_x, event.mouse_y
        self._pressed = self.at_once
        self._due = self._told = 0.0
        self._line, self._wants_end = "", False
        try:
            self._performance = Performance(self._armature, context.scene.frame_current)
        except ValueError as error:
            return self._refuse(error)
        manager = context.window_manager
        self._given = curtain.lift(context.workspace, area)
        self._given.enter_context(self._performance)
        self._given.callback(manager.event_timer_remove, manager.event_timer_add(TICK, window=context.window))
        self._steps, self._work = self._performance.prepare(), self._prepared
        self._given.callback(lambda: self._steps and self._steps.close())
        manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context, event):
        if not curtain.is_up(self._given):
            self.report({"WARNING"}, said("Play Live ended, as the file was saved or undone; nothing was changed"))
            return {"CANCELLED"}
        if event.type == "ESC" and event.value == "PRESS":
            self.cancel(context)
            self.report({"INFO"}, said("Nothing was changed"))
            return {"CANCELLED"}
        try:
            if event.type == "TIMER":
                return self._work(context)
            return self._answer(context, event)
        except ValueError as error:
            self.cancel(context)
            return self._refuse(error)
        except ReferenceError:
            self.cancel(context)
            self.report({"ERROR"}, said("Play Live ended, as an object was removed that it needs"))
            return {"CANCELLED"}
        except BaseException:
            self.cancel(context)
            raise

    def cancel(self, context):
        curtain.fall()

    def _refuse(self, error: ValueError):
        preflight.keep(self._armature, [refused(error)])
        self.report({"ERROR"}, said(str(error)))
        return {"CANCELLED"}

    def _prepared(self, context):
        """A piece of the work before the first frame."""
        if not self._stepped(context):
            return {"RUNNING_MODAL"}
        self._steps, self._work = None, self._played
        self._drawing, self._due = Drawing(self._performance), clock()
        self._given.callback(self._drawing.over)
        context.workspace.status_text_set(said(KEYS))
        if self._pressed:
            self._press()
        return {"RUNNING_MODAL"}

    def _played(self, context):
        """A frame, if its time has come."""
        if self._wants_end:
            return self._end(context)
        now = clock()
        if now < self._due:
            return {"RUNNING_MODAL"}
        self._due = max(self._due + casting.frame_time(), now)
        self._lead()
        if not self._performance.advance(now):
            self._wants_end = True
        self._tell(now)
        curtain.redraw()
        return {"RUNNING_MODAL"}

    def _end(self, context):
        if not context.scene.armature_dynamics.record or self._performance.frame == self._performance.start:
            self.cancel(context)
            self.report({"INFO"}, said("Nothing was changed"))
            return {"CANCELLED"}
        self._drawing.over()
        self._steps, self._work = self._performance.record(), self._recorded
        return {"RUNNING_MODAL"}

    def _recorded(self, context):
        """A piece of the work after the last frame."""
        if not self._stepped(context):
            return {"RUNNING_MODAL"}
        report, self._steps = self._report, None
        self.cancel(context)
        for line in dict.fromkeys(self._performance.news):
            self.report({"WARNING"}, said(line))
        if not report.ok:
            self.report({"WARNING"}, said("The simulation breaks a promise: see Warnings in the sidebar"))
        self.report({"INFO"}, said("; ".join(report.lines())))
        return {"FINISHED"}

    def _stepped(self, context) -> bool:
        """Whether the steps have come to their end."""
        end = clock() + SLICE
        while clock() < end:
            try:
                name, progress = next(self._steps)
            except StopIteration as stop:
                self._report = stop.value
                return True
        context.workspace.status_text_set(said(f"Armature Dynamics: {name} {100 * progress:.0f} %   Esc: stop"))
        return False

    def _answer(self, context, event):
        """What the mouse and keys do."""
        self._mouse = event.mouse_x, event.mouse_y
        playing, inside = self._work == self._played, view_under(self._area, self._mouse) is not None
        if event.type == "LEFTMOUSE":
            self._pressed = event.value == "PRESS" and inside
            if playing and self._pressed:
                self._press()
            elif playing:
                self._let_go()
        elif not playing:
            return {"RUNNING_MODAL"}
        elif event.type == "MOUSEMOVE":
            self._lead()
            self._area.tag_redraw()
        elif event.type in WHEEL and self._performance.holds(self._hand):
            self._deepen(WHEEL[event.type])
        elif inside and _looks(event):
            return {"PASS_THROUGH"}
        elif event.value == "PRESS":
            self._key(event.type)
        # all else waits: an undo in the middle would take the data away that this works on
        return {"RUNNING_MODAL"}

    def _key(self, key: str) -> None:
        if key in FINISH:
            self._wants_end = True
        elif key in STIFFEN:
            self._performance.stiffen(STIFFEN[key])
        elif key == "P" and self._performance.holds(self._hand):
            self._performance.pin(self._hand)
            self._hand = None
        elif key == "R":
            if self._performance.holds(self._hand):
                self._performance.release(self._hand)
            self._performance.release_pins()

    def _press(self) -> None:
        """Takes hold of what is under the mouse."""
        region = view_under(self._area, self._mouse)
        if region is None or self._performance.holds(self._hand):
            return
        self._region = region
        found = pick(self._performance.take.cast, region, region.data, self._pixel)
        if found is None:
            return
        try:
            self._hand, self._depth = self._performance.hold(found.actor, found.bone, found.place), found.place
        except ValueError as error:
            self._performance.news.append(str(error))

    def _let_go(self) -> None:
        if self._performance.holds(self._hand):
            self._performance.release(self._hand)
        self._hand = None

    def _lead(self) -> None:
        """Takes the hand to where the mouse is, as far away as it was."""
        if self._performance.holds(self._hand):
            place = view3d_utils.region_2d_to_location_3d(self._region, self._region.data, self._pixel, self._depth)
            self._performance.move(self._hand, place)

    def _deepen(self, turns: float) -> None:
        """Takes the hand farther from the eye."""
        view = self._region.data
        away = np.array(view3d_utils.region_2d_to_vector_3d(self._region, view, self._pixel))
        eye = np.array(view3d_utils.region_2d_to_origin_3d(self._region, view, self._pixel))
        far = (self._depth - eye) @ away if view.is_perspective else view.view_distance
        self._depth = self._depth + DEEPER * turns * far * away
        self._lead()

    def _tell(self, now: float) -> None:
        """What the header says: how quickly time goes, and what was the last thing to go wrong."""
        if now < self._told + TELLING:
            return
        self._told, pace = now, self._performance.pace
        time = "real time" if pace > 0.95 else f"slow motion: {pace:.2f} of real time"
        line = said(f"frame {self._performance.frame}: {time}")
        if self._performance.news:
            line += "   " + said(self._performance.news[-1])
        if line != self._line:
            self._line = line
            self._area.header_text_set(line)

    @property
    def _pixel(self) -> tuple[float, float]:
        """Where the mouse is in the region of the hand."""
        return self._mouse[0] - self._region.x, self._mouse[1] - self._region.y


def _looks(event) -> bool:
    """Whether an event only turns the view: with these keys the wheel changes the frame, and 0 the camera."""
    changes = event.alt or (event.ctrl and event.type == "NUMPAD_0")
    return not changes and (event.type in LOOKING or event.type in DIGITS)


def _largest_view(context):
    views = [area for area in context.window.screen.areas if area.type == "VIEW_3D"]
    return max(views, key=lambda area: area.width * area.height, default=None)


CLASSES = (ARMATURE_DYNAMICS_OT_grab,)
