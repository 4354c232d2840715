"""What is remembered of armatures while Blender runs, for drawing; files do not hold it."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

_all: list[Memory] = []


class Memory(Generic[T]):
    """One thing of each armature, by the session's number of the object, which no other object gets."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[int | None, T]] = {}
        _all.append(self)

    def keep(self, armature, thing: T | None) -> None:
        """Remembers it in place of what was; None forgets."""
        self._kept.pop(armature.session_uid, None)
        if thing is not None:
            self._kept[armature.session_uid] = self._of(armature), thing

    def kept(self, armature) -> T | None:
        of, thing = self._kept.get(armature.session_uid, (None, None))
        return thing if of == self._of(armature) else None

    def _of(self, armature) -> int | None:
        """What the thing stands and falls with, beside the armature."""
        return None


class TakeMemory(Memory[T]):
    """One thing of the take that each armature plays. Undo brings back other takes."""

    def _of(self, armature) -> int | None:
        action = armature.armature_dynamics.action
        return action.session_uid if action else None


def forget_all() -> None:
    """Forgets everything of all armatures."""
    for memory in _all:
        memory._kept.clear()
