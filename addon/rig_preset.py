"""What is known of a kind of rig, in a JSON file, by patterns of its bones' names: which of them physics moves, their
shares of the mass, limits, shapes and controls. A setup without the shot: it fits every character of that rig."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from math import degrees, radians
from pathlib import Path

import numpy as np

from . import control, data_file, setup
from .control import Switches
from .operators import make_dynamic
from .problem import ConversionError, listed
from .properties import ARMATURE_DYNAMICS_PG_bone
from .rig import refuse_unusable
from .role import IGNORED, SIMULATED
from .surface import VALUES

FORMAT = "Armature Dynamics rig"

VERSION = 1

WHOLE = (
    *("mass", "damping", "tone", *VALUES, "self_collision", "use_rig_limits", "layers"),
    *("mute_constraints", "mute_drivers"),
)
"""Settings of an armature that are about the rig: not about the shot, as frames and scenery are."""

PARTS = {"armature": dict, "bones": dict, "root": str, "switches": dict}
"""Parts of a file, and what each is."""

WHERE = "rig"
"""What a mistake is said to be in that is in no bone's settings."""

REMARKS = ("format", "version", "name", "about")

LIMITS = ("use_limits", "limit_lower", "limit_upper")
"""Settings of a bone that a file has as ranges of axes in degrees."""


@dataclass(frozen=True)
class Plan:
    """A preset for one armature: settings of the `whole`, of each of its `bones`, the `root` control and the switches,
    or None where those that are there stay; and the names that it has no bones for."""

    whole: dict
    bones: dict[str, dict]
    root: str
    switches: Switches | None
    missing: list[str]


def load(path: Path) -> dict:
    """The content of such a file. Raises ConversionError for what is none."""
    content = data_file.load(path)
    if content.get("format") != FORMAT:
        raise ConversionError(f"{path}: is no rig of Armature Dynamics; its format must be {FORMAT!r}")
    data_file.check_version(path, content, VERSION)
    return content


def apply(armature, path: Path) -> list[str]:
    """Makes an armature dynamic, if it is not, and gives it the preset in a file; returns the names that it has no
    bones for.

    Raises ConversionError, and changes nothing, where the file is broken or fits no bone.
    """
    refuse_unusable(armature)
    content = load(path)
    try:
        plan = planned(armature, content)
    except ConversionError as error:
        raise ConversionError(f"{path}: {error}") from error
    settings = armature.armature_dynamics
    if not settings.enabled:
        make_dynamic(armature)
    setup.give(settings, plan.whole)
    for name, own in plan.bones.items():
        setup.give(armature.pose.bones[name].armature_dynamics, own)
    if plan.switches is not None:
        settings.root_control, settings.switches = plan.root, control.lines(plan.switches)
    return plan.missing


def planned(armature, content: dict) -> Plan:
    """What a preset means for an armature. Raises ConversionError for what is broken, or fits no bone."""
    parts = _parts(content)
    whole = _settings(armature.armature_dynamics.bl_rna, parts["armature"], "armature", WHOLE)
    rules = {_pattern(text): _rule(text, own) for text, own in parts["bones"].items()}
    mapped = any("control" in own for own in rules.values())
    missing, bones, met = [], {}, set()
    plain = defaults(ARMATURE_DYNAMICS_PG_bone.bl_rna) | {"role": IGNORED}
    for bone in armature.pose.bones:
        pattern = next((pattern for pattern in rules if pattern.fullmatch(bone.name)), None)
        own = dict(rules[pattern]) if pattern else {}
        met.add(pattern)
        if "control" in own:
            own["control"] = _expanded(pattern.fullmatch(bone.name), own["control"])
            if own["control"] not in armature.pose.bones:
                missing.append(own.pop("control"))
        bones[bone.name] = plain | own
        if not mapped:
            del bones[bone.name]["control"]
    if met <= {None}:
        raise ConversionError(
            f"armature {armature.name!r} has none of the preset's bones; choose the preset of its rig"
        )
    missing[:0] = [_bare(pattern.pattern) for pattern in rules if pattern not in met]
    if parts["root"] and parts["root"] not in armature.pose.bones:
        missing.append(parts["root"])
    switches = _switches(armature, parts["switches"], missing)
    return Plan(whole, bones, parts["root"], switches if mapped else None, list(dict.fromkeys(missing)))


def told(missing: list[str]) -> str:
    """One line about names that an armature has no bones for."""
    return f"{len(missing)} names of the preset are not in the armature: {listed(missing)}"


def _parts(content: dict) -> dict:
    _refuse_unknown(WHERE, content, PARTS, REMARKS)
    return {name: _kept(name, content.get(name, kind()), kind) for name, kind in PARTS.items()}


def _refuse_unknown(where: str, names, known, more=()) -> None:
    for name in names:
        if name not in known and name not in more:
            raise ConversionError(f"{where}: there is no setting {name!r}; use {', '.join(map(repr, known))}")


def _kept(name: str, value, kind: type):
    if not isinstance(value, kind):
        what = "a name" if kind is str else "names and their settings"
        raise ConversionError(f"{WHERE}: {name!r} is {_json(value)[:40]}; it must be {what}")
    return value


def _settings(rna, said: dict, where: str, known) -> dict:
    """Settings as Blender takes them. Raises ConversionError for others than are known, and for other values."""
    _refuse_unknown(where, said, known)
    values = {}
    for name, value in said.items():
        values |= setup.checked_group(rna, {name: value}, f"{where}, {name}", [])
    return values


def _pattern(text: str) -> re.Pattern:
    try:
        return re.compile(text)
    except re.error as error:
        raise ConversionError(
            f"{WHERE}: {text!r} is no pattern ({error}); put a backslash before signs of a name"
        ) from error


def _expanded(match: re.Match, template: str) -> str:
    try:
        return match.expand(template)
    except (re.error, IndexError) as error:
        raise ConversionError(
            f"bone {match.re.pattern!r}: control {template!r} is no name ({error}); a backslash and a "
            "number stand for what is in brackets"
        ) from error


def _rule(text: str, own) -> dict:
    """Settings of a bone as Blender takes them, from what a file says of it."""
    own, rna, where = dict(_kept(text, own, dict)), ARMATURE_DYNAMICS_PG_bone.bl_rna, f"bone {text!r}"
    limits = _limits(where, own.pop("limits")) if "limits" in own else {}
    known = ["limits", *(name for name in defaults(rna) if name not in LIMITS)]
    return {"role": SIMULATED} | _settings(rna, own, where, known) | limits


def _limits(where: str, ranges) -> dict:
    """Ranges [degrees] about a bone's axes; an axis that has none turns freely."""
    if not isinstance(ranges, dict) or not set(ranges) <= set("xyz"):
        raise ConversionError(
            f"{where}: limits are {_json(ranges)[:40]}; name x, y or z, and the least and the most degrees of each"
        )
    lower, upper = [-180.0] * 3, [180.0] * 3
    for axis, ends in ranges.items():
        numbers = isinstance(ends, list) and len(ends) == 2 and all(type(end) in (int, float) for end in ends)
        if not numbers or not -180 <= ends[0] <= ends[1] <= 180:
            raise ConversionError(
                f"{where}: limits about {axis} are {_json(ends)[:40]}; write the least and the most degrees"
            )
        lower["xyz".index(axis)], upper["xyz".index(axis)] = map(float, ends)
    return {"use_limits": True, "limit_lower": list(map(radians, lower)), "limit_upper": list(map(radians, upper))}


def _switches(armature, said: dict, missing: list[str]) -> Switches:
    """What custom properties of bones have to be; names of those that are not there are added to `missing`."""
    found: Switches = {}
    for text, own in said.items():
        pattern = _pattern(text)
        if not isinstance(own, dict) or not all(type(value) in (int, float, bool) for value in own.values()):
            raise ConversionError(f"switches of {text!r} are {_json(own)[:40]}; name properties, and a number for each")
        bones = [bone for bone in armature.pose.bones if pattern.fullmatch(bone.name)]
        missing += [] if bones else [_bare(text)]
        for bone in bones:
            missing += [f'{bone.name}["{name}"]' for name in own if name not in bone]
            found.update({(bone.name, name): float(value) for name, value in own.items() if name in bone})
    return found


def defaults(rna) -> dict:
    """The settings of a group when it is new."""
    return {
        prop.identifier: list(prop.default_array) if getattr(prop, "is_array", False) else prop.default
        for prop in setup.own_properties(rna)
    }


def read(armature) -> dict:
    """The preset that an armature's settings make; of bones, what differs from how they are when new."""
    settings = armature.armature_dynamics
    bones = {_escaped(bone.name): _said(bone.armature_dynamics) for bone in armature.pose.bones}
    switches: dict[str, dict] = {}
    for (bone, name), value in control.switches(armature).items():
        switches.setdefault(_escaped(bone), {})[name] = _short(value)
    return {
        "format": FORMAT,
        "version": VERSION,
        "armature": {name: _short(value) for name, value in setup.settings_of(settings).items() if name in WHOLE},
        "bones": {name: own for name, own in bones.items() if own != {"role": IGNORED}},
        "root": settings.root_control,
        "switches": switches,
    }


def _said(own) -> dict:
    """What a file says of a bone: its role, and what differs from how it is when new."""
    plain, values = defaults(own.bl_rna), setup.settings_of(own)
    said = {name: _short(value) for name, value in values.items() if value != plain[name] and name not in LIMITS}
    said = {"role": own.role} | said
    if own.use_limits:
        ends = zip("xyz", own.limit_lower, own.limit_upper)
        said["limits"] = {axis: [_in_degrees(least), _in_degrees(most)] for axis, least, most in ends}
    if "control" in said:
        said["control"] = said["control"].replace("\\", "\\\\")
    return said


def write(armature, path: Path) -> None:
    """Writes the armature's preset to a file. Raises ConversionError where it cannot be written."""
    parts = []
    for name, own in read(armature).items():
        rows = [f"  {_json(key)}: {_json(value)}" for key, value in own.items()] if isinstance(own, dict) else []
        parts.append(f" {_json(name)}: " + ("{\n" + ",\n".join(rows) + "\n }" if rows else _json(own)))
    data_file.write(path, "{\n" + ",\n".join(parts) + "\n}\n")


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(value):
    """A number as Blender holds it, in as few digits as mean the same."""
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _in_degrees(angle: float) -> float:
    exact = degrees(angle)
    rounded = (float(f"{exact:.{digits}g}") for digits in range(1, 10))
    return next((short for short in rounded if np.float32(radians(short)) == np.float32(angle)), exact)


def _escaped(name: str) -> str:
    """A pattern that fits one name."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", name)


def _bare(pattern: str) -> str:
    return pattern.replace("\\", "")
