"""What an animator keyed by hand in a take, on what physics does not write: the next take has it too."""

from __future__ import annotations

from . import activity, compat, readings
from .fcurve import copied, same
from .switch import OWN

Channel = tuple[str, int]
"""Data path and index of a curve."""

MEASURED = {f"armature_dynamics.{name}" for name in (*activity.NAMES, *readings.NAMES)}
"""Data paths of what takes measure of themselves."""


def carry(armature, action, slot: str, old=None, old_slot: str = "") -> None:
    """Takes curves that were edited in an `old` take over into a new one, `action`, except where physics wrote either.
    Remembers what physics wrote. Keys of settings are the source's, which has them already."""
    settings = armature.armature_dynamics
    source = _channels(settings.source_action, settings.source_slot)
    written, before = _changed(_channels(action, slot), source), _parsed(settings.written)
    settings.written = "\n".join(f"{index} {path}" for path, index in sorted(written))
    taken = _channels(old, old_slot) if old else {}
    edited = {
        channel: taken[channel]
        for channel in _changed(taken, source) - written - before
        if channel[0] not in MEASURED and not OWN.match(channel[0])
    }
    if edited:
        holder = compat.channels(armature, action, slot)
        for curve in [curve for curve in holder.fcurves if (curve.data_path, curve.array_index) in edited]:
            holder.fcurves.remove(curve)
        for curve in edited.values():
            copied(holder, curve)


def _channels(action, slot: str) -> dict[Channel, object]:
    return {(curve.data_path, curve.array_index): curve for curve in compat.curves(action, slot)}


def _changed(own: dict[Channel, object], source: dict[Channel, object]) -> set[Channel]:
    """The channels whose curves are not the source's."""
    return {channel for channel, curve in own.items() if channel not in source or not same(curve, source[channel])}


def _parsed(lines: str) -> set[Channel]:
    return {(path, int(index)) for index, _, path in (line.partition(" ") for line in lines.splitlines())}
