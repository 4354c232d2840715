"""What is kept of takes beside the file, while Blender runs, for drawing."""

from __future__ import annotations


class Kept:
    """One thing of each armature's last take, by numbers of the session, which no other object gets. Undo brings
    back other takes: what is kept is of the one that it was put for."""

    def __init__(self) -> None:
        self._things: dict[int, tuple[int | None, object]] = {}

    def put(self, armature, thing) -> None:
        """Keeps a thing of the take that an armature plays; None keeps nothing."""
        self._things.pop(armature.session_uid, None)
        if thing is not None:
            self._things[armature.session_uid] = _take(armature), thing

    def get(self, armature):
        """The thing that is kept of an armature's take, or None."""
        take, thing = self._things.get(armature.session_uid, (None, None))
        return thing if take == _take(armature) else None

    def clear(self) -> None:
        self._things.clear()


def _take(armature) -> int | None:
    action = armature.armature_dynamics.action
    return action.session_uid if action else None
