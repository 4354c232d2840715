"""What is wrong with a character, or should be known about it: said once, for the panel, reports and messages alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

ERROR, WARNING, NOTE = "ERROR", "WARNING", "NOTE"
"""It cannot be simulated; the result will suffer; it is taken care of, and only told."""

SEVERITIES = (ERROR, WARNING, NOTE)

NAMED = 6
"""Bones, or other things, that are named of a group. Reports in JSON and Select buttons have all of them."""


@dataclass(frozen=True)
class Problem:
    """Something the animator should know: a fixed `code`, the names of the `bones` it is about (or none), what is wrong
    (`text`) and what to do about it (`remedy`).

    `things`: names of the objects it is about; `fix`: which of `remedy.FIXES` mends it, or none; `amount`: the number
    in the text that differs from bone to bone.
    """

    code: str
    bones: tuple[str, ...]
    text: str
    remedy: str = ""
    severity: str = WARNING
    things: tuple[str, ...] = ()
    fix: str = ""
    amount: str = ""

    @property
    def bone(self) -> str:
        """The first bone it is about, or an empty string."""
        return self.bones[0] if self.bones else ""

    @property
    def message(self) -> str:
        return "; ".join(part for part in (self.text, self.remedy) if part)

    @property
    def line(self) -> str:
        return ": ".join(part for part in (self.bone, self.message) if part)

    def as_dict(self) -> dict:
        """The problem as an entry of the report."""
        return {"code": self.code, "bone": self.bone, "message": self.message}


class ConversionError(ValueError):
    """An armature that cannot be made dynamic; one line that names the thing and the remedy."""

    def __init__(self, problem: Problem | str) -> None:
        self.problem = refused(problem) if isinstance(problem, str) else problem
        named = f"bone {self.problem.bone!r}: " if self.problem.bones else ""
        super().__init__(named + self.problem.message)


def listed(names: Sequence[str]) -> str:
    """Names as a message has them: those of a long list are cut short."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def refused(reason: str | ValueError) -> Problem:
    """The problem that an error is about, which keeps a character from being simulated."""
    return reason.problem if isinstance(reason, ConversionError) else Problem("refused", (), str(reason), "", ERROR)


def gathered(problems: Iterable[Problem], *, notes: bool = False) -> list[tuple[Problem, str]]:
    """One problem for all bones that have the same, with a line for people; the worst first, notes if wanted."""
    groups: dict[tuple, list[Problem]] = {}
    for problem in problems:
        if notes or problem.severity != NOTE:
            # what is not about bones is about things that the text tells apart
            key = (problem.severity, problem.code, problem.fix, "" if problem.bones else problem.message)
            groups.setdefault(key, []).append(problem)
    found = []
    for own in sorted(groups.values(), key=lambda own: SEVERITIES.index(own[0].severity)):
        first, others = own[0], list(dict.fromkeys(_who(each) for each in own if each.bones != own[0].bones))
        line = first.line + (f". Also {listed(others)}" if others else "")
        found.append((replace(first, bones=tuple(dict.fromkeys(bone for each in own for bone in each.bones))), line))
    return found


def _who(problem: Problem) -> str:
    return " and ".join(problem.bones) + (f" ({problem.amount})" if problem.amount else "")
