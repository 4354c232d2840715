"""Grab, by events that are made up, in views and on a window manager that are: what its keys do, and how it ends."""

from __future__ import annotations

import os
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import curtain, grab, stage
from armature_dynamics.addon.operators import make_dynamic
from mathutils import Matrix
from rigs import chain
from test_pick import SIZE, pixel, seen_from

FRAME = 1 / 24
CLASS = grab.ARMATURE_DYNAMICS_OT_grab

Tool = type("Tool", (), {name: own for name, own in vars(CLASS).items() if callable(own) or isinstance(own, property)})
"""The operator, without Blender's part of it."""


class Desk:
    """A window with two views side by side, along y from the front and along -y from behind, of an armature."""

    def __init__(self, armature, monkeypatch) -> None:
        self.armature, self.timers, self.texts = armature, [], []
        now = iter(np.arange(1_000_000) * FRAME)
        monkeypatch.setattr(grab, "clock", lambda: float(next(now)))
        monkeypatch.setattr(grab, "bpy", SimpleNamespace(app=SimpleNamespace(background=False)))
        _, front = seen_from((0.45, -5.0, 1.0))
        back = SimpleNamespace(**vars(front))
        back.view_matrix = front.view_matrix @ Matrix.Translation((0.9, 0, 0)) @ Matrix.Rotation(np.pi, 4, "Z")
        projection = front.perspective_matrix @ front.view_matrix.inverted()
        back.perspective_matrix = projection @ back.view_matrix
        self.views = [
            SimpleNamespace(type="WINDOW", x=i * SIZE, y=0, width=SIZE, height=SIZE, data=view)
            for i, view in enumerate((front, back))
        ]
        area = SimpleNamespace(
            type="VIEW_3D", regions=self.views, header_text_set=self.texts.append, tag_redraw=lambda: None
        )
        window = SimpleNamespace(screen=SimpleNamespace(areas=[area]))
        manager = SimpleNamespace(
            event_timer_add=lambda *_, **__: self.timers.append(1), event_timer_remove=lambda _: self.timers.pop(),
            modal_handler_add=lambda _: None, windows=[window],
        )  # fmt: skip
        self.context = SimpleNamespace(
            area=area, window=window, window_manager=manager, object=armature, scene=bpy.context.scene,
            workspace=SimpleNamespace(status_text_set=self.texts.append),
        )  # fmt: skip
        monkeypatch.setattr(curtain, "bpy", SimpleNamespace(context=self.context, app=bpy.app))
        self.tool = Tool()
        self.tool.at_once, self.said = False, []
        self.tool.report = lambda kind, text: self.said.append(text)
        assert self.tool.invoke(self.context, self.event("NONE")) == {"RUNNING_MODAL"}
        while self.tool._work == self.tool._prepared:
            assert self.tick() == {"RUNNING_MODAL"}

    def event(self, kind: str, value: str = "PRESS", place=(-1, -1), **keys):
        held = {"alt": False, "ctrl": False, "shift": False, **keys}
        return SimpleNamespace(type=kind, value=value, mouse_x=place[0], mouse_y=place[1], **held)

    def does(self, kind: str, value: str = "PRESS", place=(-1, -1), **keys) -> set[str]:
        return self.tool.modal(self.context, self.event(kind, value, place, **keys))

    def tick(self) -> set[str]:
        return self.does("TIMER", "NOTHING", self.tool._mouse)

    def frames(self, count: int) -> None:
        end = self.tool._performance.frame + count
        while self.tool._performance.frame < end:
            assert self.tick() == {"RUNNING_MODAL"}

    def over(self, view: int, place) -> tuple[float, float]:
        x, y = pixel(self.views[view].data, place)
        return x + self.views[view].x, y

    @property
    def left(self) -> list:
        """What is not given back."""
        memory = [name for name in os.listdir("/dev/shm") if name.startswith(f"adgrab-{os.getpid()}-")]
        drawn = getattr(self.tool, "_drawing", None)
        return [*memory, *self.timers, *(drawn._handles if drawn else ()), *curtain._playing]


@pytest.fixture
def desk(monkeypatch):
    """A chain of bones that plays."""
    armature = chain(count=3, height=1.0)
    make_dynamic(armature)
    yield Desk(armature, monkeypatch)
    curtain.fall()


@pytest.mark.parametrize("view", [0, 1])
def test_the_hand_goes_where_the_mouse_is_in_each_of_several_views(desk, view):
    """In a quad view each of the four is seen from elsewhere."""
    begin = (0.45, 0.0, 1.0)
    x, y = desk.over(view, begin)
    desk.does("LEFTMOUSE", "PRESS", (x, y))
    (pull,) = desk.tool._performance.pulls()
    assert np.allclose(pull.ends[1], begin, atol=0.05)
    desk.frames(3)
    desk.does("MOUSEMOVE", "NOTHING", (x + 80, y + 80))
    desk.frames(3)
    hand = desk.tool._performance.pulls()[0].ends[1]
    # 80 pixels of 400 are a fifth of the half width at five metres, which is one metre
    side = (1.0, -1.0)[view] * (hand[0] - begin[0])
    assert side == pytest.approx(hand[2] - begin[2], abs=0.05) and side > 0.5


def test_keys_that_change_more_than_the_view_wait(desk):
    """With Alt the wheel changes the frame, Ctrl 0 the camera; without, they only turn the view."""
    inside = (10, 10)
    assert desk.does("WHEELUPMOUSE", place=inside) == {"PASS_THROUGH"}
    assert desk.does("NUMPAD_0", place=inside) == {"PASS_THROUGH"}
    assert desk.does("WHEELUPMOUSE", place=inside, alt=True) == {"RUNNING_MODAL"}
    assert desk.does("NUMPAD_0", place=inside, ctrl=True) == {"RUNNING_MODAL"}
    assert desk.does("Z", place=inside, ctrl=True) == {"RUNNING_MODAL"}


@pytest.mark.parametrize("end", ["ESC", "undo", "save", "extension", "error"])
def test_whatever_ends_it_everything_is_given_back(desk, end, tmp_path, monkeypatch):
    """In a second window all can be done meanwhile. Nothing may go on being drawn, and nothing stay posed."""
    fresh = chain(count=3, height=1.0, name="Fresh")
    posed = stage.record(fresh).channels
    desk.does("LEFTMOUSE", "PRESS", desk.over(0, (0.45, 0.0, 1.0)))
    desk.frames(5)
    assert stage.record(desk.armature).channels != posed and desk.left
    assert not CLASS.poll(desk.context), "one at a time"
    if end == "ESC":
        assert desk.does("ESC") == {"CANCELLED"}
    elif end == "extension":
        curtain.detach()
        curtain.attach()
    elif end == "error":
        monkeypatch.setattr(desk.tool._performance, "advance", lambda now: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            desk.frames(1)
    elif end == "save":
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "saved.blend"), copy=True)
    else:
        for handler in list(bpy.app.handlers.undo_pre):
            handler(bpy.context.scene, None)
    assert not desk.left
    assert stage.record(desk.armature).channels == posed and bpy.context.scene.frame_current == 1
    assert not list(bpy.data.actions)
    if end in ("undo", "save"):
        assert desk.does("MOUSEMOVE") == {"CANCELLED"} and "ended" in desk.said[-1]


def test_an_armature_that_is_removed_while_it_plays_ends_it_with_a_line(desk):
    """What Blender has taken away is not written to."""
    desk.frames(2)
    bpy.data.objects.remove(desk.armature)
    while (answer := desk.tick()) == {"RUNNING_MODAL"}:
        pass
    assert answer == {"CANCELLED"} and desk.said == ["Play Live ended, as an object was removed that it needs"]
    assert not desk.left


def test_enter_records_and_what_is_seen_is_kept(desk):
    """Everything is given back then, too, but the take."""
    desk.does("LEFTMOUSE", "PRESS", desk.over(0, (0.45, 0.0, 1.0)))
    desk.frames(12)
    desk.does("RET")
    while (answer := desk.tick()) == {"RUNNING_MODAL"}:
        pass
    assert answer == {"FINISHED"} and not desk.left
    assert desk.armature.armature_dynamics.state == stage.SIMULATED
    assert bpy.context.scene.frame_current == 1
