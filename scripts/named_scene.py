"""Rigs as other programs name, place and scale their bones, built bone by bone; only names and scales are theirs."""

from __future__ import annotations

import math

import bpy

Row = tuple[str, tuple, tuple, str | None, bool]

LIMBS = {
    "shoulder": ((0.03, 0.0, 1.42), (0.17, 0.01, 1.42)),
    "arm": ((0.17, 0.01, 1.42), (0.44, 0.02, 1.42)),
    "forearm": ((0.44, 0.02, 1.42), (0.69, 0.01, 1.42)),
    "hand": ((0.69, 0.01, 1.42), (0.77, 0.01, 1.42)),
    "thigh": ((0.09, 0.0, 0.93), (0.09, -0.005, 0.52)),
    "shank": ((0.09, -0.005, 0.52), (0.09, 0.025, 0.1)),
    "foot": ((0.09, 0.025, 0.1), (0.1, -0.1, 0.025)),
    "toe": ((0.1, -0.1, 0.025), (0.1, -0.18, 0.02)),
}
"""Heads and tails [m] of a left half in a T-pose, facing -y."""

TRUNK = {
    "pelvis": ((0, 0.0, 0.96), (0, 0.0, 1.06)),
    "spine": ((0, 0.0, 1.06), (0, 0.01, 1.17)),
    "chest": ((0, 0.01, 1.17), (0, 0.02, 1.29)),
    "breast": ((0, 0.02, 1.29), (0, 0.01, 1.45)),
    "neck": ((0, 0.01, 1.45), (0, -0.01, 1.53)),
    "head": ((0, -0.01, 1.53), (0, -0.01, 1.72)),
}

FINGERS = 3


def mixamo() -> bpy.types.Object:
    """As an FBX of Mixamo's comes in: centimetres, y up, with fingers, toes and bones that only mark an end."""
    names = {"pelvis": "Hips", "spine": "Spine", "chest": "Spine1", "breast": "Spine2", "neck": "Neck", "head": "Head",
             "shoulder": "{}Shoulder", "arm": "{}Arm", "forearm": "{}ForeArm", "hand": "{}Hand",
             "thigh": "{}UpLeg", "shank": "{}Leg", "foot": "{}Foot", "toe": "{}ToeBase"}  # fmt: skip
    names = {part: f"mixamorig:{name}" for part, name in names.items()}
    rows = _person(names, ("Left", "Right"), "mixamorig:{}HandIndex{}")
    rows.append(("mixamorig:HeadTop_End", TRUNK["head"][1], (0, -0.01, 1.76), names["head"], False))
    rows = [(name, _y_up(head), _y_up(tail), parent, connected) for name, head, tail, parent, connected in rows]
    rig = _built("Mixamo", rows)
    rig.scale, rig.rotation_euler = (0.01,) * 3, (math.pi / 2, 0, 0)
    bpy.context.view_layer.update()
    return rig


def vrm() -> bpy.types.Object:
    """As a VRM of VRoid's comes in: a root bone, hair and skirt that hang on springs, eyes."""
    names = {"pelvis": "J_Bip_C_Hips", "spine": "J_Bip_C_Spine", "chest": "J_Bip_C_Chest",
             "breast": "J_Bip_C_UpperChest", "neck": "J_Bip_C_Neck", "head": "J_Bip_C_Head",
             "shoulder": "J_Bip_{}_Shoulder", "arm": "J_Bip_{}_UpperArm", "forearm": "J_Bip_{}_LowerArm",
             "hand": "J_Bip_{}_Hand", "thigh": "J_Bip_{}_UpperLeg", "shank": "J_Bip_{}_LowerLeg",
             "foot": "J_Bip_{}_Foot", "toe": "J_Bip_{}_ToeBase"}  # fmt: skip
    rows = [("Root", (0, 0, 0), (0, 0.1, 0), None, False)]
    rows += _person(names, ("L", "R"), "J_Bip_{}_Index{}", root="Root")
    for side, x in (("L", 0.03), ("R", -0.03)):
        rows.append((f"J_Adj_{side}_FaceEye", (x, -0.08, 1.6), (x, -0.1, 1.6), "J_Bip_C_Head", False))
        rows.append((f"J_Sec_Hair1_{side}", (2 * x, 0.05, 1.7), (3 * x, 0.1, 1.6), "J_Bip_C_Head", False))
        rows.append((f"J_Sec_Hair2_{side}", (3 * x, 0.1, 1.6), (3 * x, 0.1, 1.45), f"J_Sec_Hair1_{side}", True))
    return _built("VRM", rows)


def biped() -> bpy.types.Object:
    """As a character of 3ds Max's Biped comes in: a root in the pelvis, and names with blanks."""
    names = {"pelvis": "Pelvis", "spine": "Spine", "chest": "Spine1", "breast": "Spine2", "neck": "Neck",
             "head": "Head", "shoulder": "{} Clavicle", "arm": "{} UpperArm", "forearm": "{} Forearm",
             "hand": "{} Hand", "thigh": "{} Thigh", "shank": "{} Calf", "foot": "{} Foot",
             "toe": "{} Toe0"}  # fmt: skip
    names = {part: f"Bip001 {name}" for part, name in names.items()}
    root = ("Bip001", TRUNK["pelvis"][0], (0, 0.1, TRUNK["pelvis"][0][2]), None, False)
    return _built("Biped", [root, *_person(names, ("L", "R"), "Bip001 {} Finger{}", root=root[0])])


def mmd() -> bpy.types.Object:
    """As an MMD model comes in: roots above each other, an upper and a lower body, twist bones, and legs on IK."""
    rows = [
        ("全ての親", (0, 0, 0), (0, 0, 0.2), None, False),
        ("センター", (0, 0, 0.6), (0, 0, 0.5), "全ての親", False),
        ("グルーブ", (0, 0, 0.62), (0, 0, 0.7), "センター", False),
        ("腰", (0, 0.01, 0.98), (0, 0.01, 1.05), "グルーブ", False),
        ("下半身", (0, 0.0, 1.06), (0, 0.0, 0.94), "腰", False),
        ("上半身", (0, 0.0, 1.06), (0, 0.01, 1.2), "腰", False),
        ("上半身2", (0, 0.01, 1.2), (0, 0.01, 1.45), "上半身", True),
        ("首", *TRUNK["neck"], "上半身2", True),
        ("頭", *TRUNK["head"], "首", True),
    ]
    for side, x in (("左", 1), ("右", -1)):
        place = {part: tuple(_mirrored(end, x) for end in ends) for part, ends in LIMBS.items()}
        for part in ("arm", "forearm", "hand"):
            place[part] = tuple(_lowered(point, x) for point in place[part])
        arm, forearm = place["arm"], place["forearm"]
        rows += [
            (f"{side}肩", *place["shoulder"], "上半身2", False),
            (f"{side}腕", *arm, f"{side}肩", True),
            (f"{side}腕捩", _between(*arm, 0.6), _between(*arm, 0.75), f"{side}腕", False),
            (f"{side}ひじ", *forearm, f"{side}腕捩", False),
            (f"{side}手捩", _between(*forearm, 0.6), _between(*forearm, 0.75), f"{side}ひじ", False),
            (f"{side}手首", *place["hand"], f"{side}手捩", False),
            (f"{side}人指１", place["hand"][1], _between(*place["hand"], 1.5), f"{side}手首", False),
            (f"{side}足", *place["thigh"], "下半身", False),
            (f"{side}ひざ", *place["shank"], f"{side}足", True),
            (f"{side}足首", *place["foot"], f"{side}ひざ", True),
            (f"{side}足ＩＫ", place["foot"][0], _mirrored((0.09, 0.12, 0.1), x), "全ての親", False),
        ]
    rig = _built("MMD", rows)
    for side in "左右":
        constraint = rig.pose.bones[f"{side}ひざ"].constraints.new("IK")
        constraint.target, constraint.subtarget, constraint.chain_count = rig, f"{side}足ＩＫ", 2
    bpy.context.view_layer.update()
    return rig


def _person(names: dict[str, str], sides: tuple[str, str], finger: str, root: str | None = None) -> list[Row]:
    rows, above = [], root
    for part, ends in TRUNK.items():
        rows.append((names[part], *ends, above, above not in (None, root)))
        above = names[part]
    for side, x in zip(sides, (1, -1)):
        for first, chain in (
            ("breast", ("shoulder", "arm", "forearm", "hand")),
            ("pelvis", ("thigh", "shank", "foot", "toe")),
        ):
            above = names[first]
            for i, part in enumerate(chain):
                name = names[part].format(side)
                rows.append((name, *(_mirrored(end, x) for end in LIMBS[part]), above, i > 0))
                above = name
        above = names["hand"].format(side)
        for number in range(FINGERS):
            ends = [(x * (0.77 + 0.025 * (number + i)), 0.0, 1.42) for i in (0, 1)]
            rows.append((finger.format(side, number + 1), *ends, above, False))
            above = rows[-1][0]
    return rows


def _built(name: str, rows: list[Row]) -> bpy.types.Object:
    data = bpy.data.armatures.new(name)
    rig = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for bone_name, head, tail, parent, connected in rows:
        bone = data.edit_bones.new(bone_name)
        bone.head, bone.tail, bone.parent = head, tail, data.edit_bones.get(parent or "")
        bone.use_connect = connected
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def _mirrored(point: tuple, x: int) -> tuple:
    return (x * point[0], *point[1:])


def _lowered(point: tuple, x: int) -> tuple:
    """A point of an arm of the T-pose in an A-pose, turned down about the shoulder."""
    shoulder, turn = (x * LIMBS["arm"][0][0], LIMBS["arm"][0][2]), math.radians(38)
    out, up = x * (point[0] - shoulder[0]), point[2] - shoulder[1]
    return (
        shoulder[0] + x * (out * math.cos(turn) + up * math.sin(turn)),
        point[1],
        shoulder[1] + up * math.cos(turn) - out * math.sin(turn),
    )


def _between(head: tuple, tail: tuple, share: float) -> tuple:
    return tuple(a + share * (b - a) for a, b in zip(head, tail))


def _y_up(point: tuple) -> tuple:
    x, y, z = point
    return (100 * x, 100 * z, -100 * y)
