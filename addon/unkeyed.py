"""What was changed by hand and not keyed, which Blender forgets whenever the frame changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import bpy

from . import compat, nla

NEAR = 1e-6
"""Values that differ by less, relative to what is above 1, are those that are keyed."""

CUSTOM = re.compile(r'(?P<holder>.*)\["(?P<name>(?:[^"\\]|\\.)*)"\]')
"""The data path of a custom property."""


class Unkeyed:
    """All animated values of the file that are not as the current frame has them by their actions, and all that strips
    play, of which only Blender knows how the frame has them."""

    def __init__(self) -> None:
        scene = bpy.context.scene
        self._frame = scene.frame_current_final
        self._found = [found for thing in _animated() for found in _changed(thing, self._frame)]

    def restore(self, without: Iterable = ()) -> None:
        """Gives the values back, but those of some objects; nothing where another frame is current by now."""
        if bpy.context.scene.frame_current_final != self._frame:
            return
        others = list(without)
        for thing, path, index, value in self._found:
            # what was removed meanwhile needs nothing back
            with suppress(ReferenceError, ValueError, KeyError):
                if thing not in others:
                    _give(thing, path, index, value)


@contextmanager
def visited(frame: int) -> Iterator[None]:
    """The scene at another frame for a while; what is not keyed is as before afterwards."""
    scene = bpy.context.scene
    if scene.frame_current_final == frame:
        yield
        return
    before, came = Unkeyed(), (scene.frame_current, scene.frame_subframe)
    scene.frame_set(frame)
    try:
        yield
    finally:
        scene.frame_set(came[0], subframe=came[1])
        before.restore()


def _animated() -> Iterator:
    """Everything of the file, and not of libraries, that plays an action or strips."""
    data = bpy.data
    for each in data.bl_rna.properties:
        own = getattr(data, each.identifier)
        for thing in own if isinstance(own, bpy.types.bpy_prop_collection) else ():
            if thing.library:
                continue
            for holder in (thing, getattr(thing, "node_tree", None)):
                animation = getattr(holder, "animation_data", None)
                if animation and (animation.action or animation.nla_tracks):
                    yield holder


def _changed(thing, frame: float) -> Iterator[tuple]:
    """An animated thing, with the data path, index and value of what is not as it is keyed, or played by a strip."""
    values: dict[str, object] = {}
    animation = thing.animation_data
    curves = [(curve, True) for curve in compat.curves(animation.action, compat.slot_identifier(thing))]
    curves += [(curve, False) for track in animation.nla_tracks for curve in nla.curves_of(track.strips)]
    for curve, is_known in curves:
        path, index = curve.data_path, curve.array_index
        if path not in values:
            values[path] = _value(thing, path)
        value = values[path]
        if hasattr(value, "__len__") and not isinstance(value, str):
            value = value[index] if index < len(value) else None
        else:
            index = -1
        is_known = is_known and not isinstance(value, str)
        if value is None or (is_known and _is_near(float(value), curve.evaluate(frame))):
            continue
        yield thing, path, index, value


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * max(abs(one), 1.0)


def _value(thing, path: str):
    """What is there, or None: actions may have curves for what is gone."""
    try:
        value = thing.path_resolve(path)
    except ValueError:
        return None
    return tuple(value) if hasattr(value, "__len__") and not isinstance(value, str) else value


def _give(thing, path: str, index: int, value) -> None:
    custom = CUSTOM.fullmatch(path)
    if index >= 0:
        thing.path_resolve(path)[index] = value
    elif custom:
        holder, name = custom["holder"], re.sub(r"\\(.)", r"\1", custom["name"])
        (thing.path_resolve(holder) if holder else thing)[name] = value
    else:
        holder, _, name = path.rpartition(".")
        setattr(thing.path_resolve(holder) if holder else thing, name, value)
