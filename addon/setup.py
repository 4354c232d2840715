"""A character's whole setup as data: every setting of the armature, its bones and its connections, in a JSON file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import bpy

from . import data_file
from .connection_settings import ARMATURE_DYNAMICS_PG_connection
from .directing_settings import DIRECTED
from .problem import ConversionError, listed

VERSION = 1
"""Of the files: a newer one may mean what this program does not know."""

FORMAT = "Armature Dynamics setup"

STATE = frozenset(
    (
        *("name", "state", "tracks", "action", "preview", "partners", "connections", "connection_index", "written"),
        *("source_action", "source_slot", "source_animated", "source_switches"),
        *("source_mode", "source_location", "source_rotation", "source_scale"),
        *("active_joints", "left_out", "summary", "warnings", "problems"),
        *("muted", "muted_drivers", "unlocked", "known_as"),
    )
)
"""What is no setting: what plays, was measured or was turned off; and connections, which are a part of their own."""

RANGED = ("INT", "FLOAT")
"""The kinds of properties that have limits, beyond which Blender takes them for others or not at all."""

ROUNDING = 2.0**-24
"""How far a number may be from the nearest in single precision, as a part of it."""

NAMED_THINGS = {"Object": "objects", "Collection": "collections"}
"""Where Blender has what settings point to."""

KINDS = {
    "BOOLEAN": ("true or false", lambda value: isinstance(value, bool)),
    "INT": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "FLOAT": (
        "a finite number",
        # also of whole numbers that are too large for one
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf,
    ),
    "STRING": ("text", lambda value: isinstance(value, str)),
}
"""What a value of a kind of property is called, and whether one is."""


def settings_of(group) -> dict:
    """Everything that is set in a property group; others that it points to by their names."""
    return {prop.identifier: _value(group, prop) for prop in own_properties(group.bl_rna)}


def own_properties(rna) -> list:
    """The properties of a group that are settings."""
    # only a connection's name is a setting
    state = STATE - {"name"} if rna.identifier == ARMATURE_DYNAMICS_PG_connection.__name__ else STATE
    return [prop for prop in rna.properties if prop.identifier not in state | {"rna_type"}]


def _value(group, prop):
    value = getattr(group, prop.identifier)
    if prop.type == "POINTER":
        return settings_of(value) if isinstance(value, bpy.types.PropertyGroup) else value.name if value else ""
    return list(value) if getattr(prop, "is_array", False) else value


def bone_settings(bone) -> dict:
    """Everything that is set on a pose bone, what directs it included."""
    return settings_of(bone.armature_dynamics) | {"directing": {name: getattr(bone, name) for name in DIRECTED}}


def read(armature) -> dict:
    """The whole setup of an armature."""
    settings = armature.armature_dynamics
    return {
        "format": FORMAT,
        "version": VERSION,
        "armature": settings_of(settings),
        "bones": {bone.name: bone_settings(bone) for bone in armature.pose.bones},
        "connections": [settings_of(connection) for connection in settings.connections],
    }


def write_file(armature, path: Path) -> None:
    """Writes the setup to a file, whole or not at all. Raises ConversionError where it cannot be written."""
    data_file.write(path, json.dumps(read(armature), indent=1) + "\n")


def read_file(path: Path) -> dict:
    """The content of such a file. Raises ConversionError for what is none."""
    content = data_file.load(path)
    if content.get("format") != FORMAT:
        raise ConversionError(f"{path}: is no setup of Armature Dynamics; choose a file that Export Setup wrote")
    data_file.check_version(path, content, VERSION)
    return content


def apply(armature, content: dict) -> list[str]:
    """Gives an armature a setup; bones that the setup does not know keep theirs, and connections are replaced. Returns
    what of it is not in this file, one line each.

    Raises ConversionError, and changes nothing, where the setup is broken or fits no bone.
    """
    settings, bones = armature.armature_dynamics, armature.pose.bones
    for name, kind in (("armature", dict), ("bones", dict), ("connections", list)):
        if not isinstance(content.get(name), kind):
            raise ConversionError(f"the setup has no {name}; export it again")
    if not set(content["bones"]) & set(bones.keys()):
        raise ConversionError(f"armature {armature.name!r} has none of the setup's bones; select the right armature")
    missing: list[str] = []
    whole = checked_group(settings.bl_rna, content["armature"], "armature", missing)
    each = {name: _checked_bone(bones[0], own, f"bone {name!r}", missing) for name, own in content["bones"].items()}
    joints = [
        checked_group(ARMATURE_DYNAMICS_PG_connection.bl_rna, own, f"connection {number}", missing)
        for number, own in enumerate(content["connections"], 1)
    ]
    give(settings, whole)
    strangers = []
    for name, (own, directing) in each.items():
        if name in bones:
            give(bones[name].armature_dynamics, own)
            give(bones[name], directing)
        else:
            strangers.append(name)
    settings.connections.clear()
    settings.connection_index = 0
    for joint in joints:
        give(settings.connections.add(), joint)
    if strangers:
        missing.append(f"{len(strangers)} bones of the setup are not in the armature: {listed(strangers)}")
    return list(dict.fromkeys(missing))


def give_bone(bone, own: dict) -> None:
    """Gives a pose bone the `bone_settings` of another one."""
    settings, directing = _checked_bone(bone, own, f"bone {bone.name!r}", [])
    give(bone.armature_dynamics, settings)
    give(bone, directing)


def give(group, values: dict) -> None:
    """Gives a property group settings that were checked."""
    for name, value in values.items():
        if isinstance(value, dict):
            give(getattr(group, name), value)
        else:
            setattr(group, name, value)


def _checked_bone(bone, own, where: str, missing: list[str]) -> tuple[dict, dict]:
    """A bone's settings, and what directs it, as Blender takes them."""
    if not isinstance(own, dict):
        raise ConversionError(f"{where}: has no settings; export the setup again")
    rest = {name: value for name, value in own.items() if name != "directing"}
    directed = {name: bone.bl_rna.properties[name] for name in DIRECTED}
    settings = checked_group(bone.armature_dynamics.bl_rna, rest, where, missing)
    return settings, _checked_values(directed, own.get("directing"), where, missing)


def checked_group(rna, own, where: str, missing: list[str]) -> dict:
    return _checked_values({prop.identifier: prop for prop in own_properties(rna)}, own, where, missing)


def _checked_values(known: dict, own, where: str, missing: list[str]) -> dict:
    """Settings as Blender takes them. Raises ConversionError for what is no setting, or none of these values."""
    if not isinstance(own, dict):
        raise ConversionError(f"{where}: has no settings; export the setup again")
    values = {}
    for name, value in own.items():
        if name not in known:
            raise ConversionError(f"{where}: there is no setting {name!r}; update the extension")
        values[name] = _checked(known[name], value, where, missing)
    return values


def _checked(prop, value, where: str, missing: list[str]):
    """A value as Blender takes it. Raises ConversionError for what is none of this property."""
    if prop.type == "ENUM":
        names = [item.identifier for item in prop.enum_items]
        if value not in names:
            raise ConversionError(f"{where}: {prop.name} is {value!r}; it must be one of {', '.join(names)}")
        return value
    if prop.type == "POINTER" and prop.fixed_type.identifier in NAMED_THINGS:
        return _found(prop, value, where, missing)
    if prop.type == "POINTER":
        return checked_group(prop.fixed_type, value, f"{where}, {prop.name}", missing)
    what, fits = KINDS[prop.type]
    many = getattr(prop, "is_array", False)
    values = value if many else [value]
    if not isinstance(values, list) or not all(map(fits, values)) or (many and len(values) != prop.array_length):
        wanted = f"{prop.array_length} times {what}" if many else what
        raise ConversionError(f"{where}: {prop.name} is {value!r}; it must be {wanted}")
    if prop.type in RANGED and not all(_in_range(prop, own) for own in values):
        low, high = prop.hard_min, prop.hard_max
        raise ConversionError(f"{where}: {prop.name} is {value!r}; it must be from {low:g} to {high:g}")
    return value


def _in_range(prop, value: float) -> bool:
    # who writes 0.001 means the single-precision number that Blender has as limit
    return prop.hard_min - ROUNDING * abs(prop.hard_min) <= value <= prop.hard_max


def _found(prop, name, where: str, missing: list[str]):
    """What a name means in this file, or None."""
    if not isinstance(name, str):
        raise ConversionError(f"{where}: {prop.name} is {name!r}; it must be a name")
    things = getattr(bpy.data, NAMED_THINGS[prop.fixed_type.identifier])
    if name and name not in things:
        missing.append(f"{where}: {prop.name} {name!r} is not in this file; choose it anew")
    return things.get(name) if name else None
