"""What is remembered of armatures while Blender runs, for drawing; files do not hold it."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

_all: list[Memory] = []


class Memory(Generic[T]):
    """One thing of each armature, by the session's number of the object, which no other object gets."""

    def __init__(self) -> None:
        self._kept: dict[int, T] = {}
        _all.append(self)

    def keep(self, armature, thing: T | None) -> None:
        """Remembers it in place of what was; None forgets."""
        self._kept.pop(armature.session_uid, None)
        if thing is not None:
            self._kept[armature.session_uid] = thing

    def kept(self, armature) -> T | None:
        return self._kept.get(armature.session_uid)


def forget_all() -> None:
    """Forgets everything of all armatures."""
    for memory in _all:
        memory._kept.clear()
