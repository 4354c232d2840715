"""Builds an example scene and prints where its hands are in what they hold, frame by frame: NAME FOLDER. The scripts
must be on the path."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import bpy
import example_scene

HELD = {"high-bar": "Bar", "swing": "Swing"}


def main(name: str, folder: str) -> None:
    code = example_scene.main(name, Path(folder), picture=False)
    scene, rig = bpy.context.scene, bpy.context.object
    held = bpy.data.objects[HELD[name]]
    places: dict[str, list] = {"hand.L": [], "hand.R": []}
    for frame in range(scene.frame_start, scene.frame_end + 1):
        scene.frame_set(frame)
        for bone, path in places.items():
            path.append(list(held.matrix_world.inverted() @ (rig.matrix_world @ rig.pose.bones[bone].tail)))
    print(json.dumps({"code": code, "places": places}), flush=True)
    # Rigify makes the 4.2 wheel crash at exit
    os._exit(0)


main(*sys.argv[1:])
