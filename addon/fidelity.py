"""How well the rig, as Blender evaluates it after baking, follows the trajectory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import bpy
import numpy as np

from .convert import Character
from .rig import rigid
from .source import Source, evaluated_poses


@dataclass(frozen=True)
class Fidelity:
    """Largest differences over all frames and bones: place [m], turn [deg], and how far a bone's joint is from where
    its parent carries it [m]; and the largest coordinate [m] of a bone in the world or from the armature's origin."""

    error_m: float
    error_deg: float
    separation_m: float
    reach_m: float


def measure(armature, character: Character, source: Source, poses: np.ndarray) -> Iterator[float]:
    """Evaluates the rig at each frame of link poses (F, n, 4, 4), yielding progress 0 … 1; returns the Fidelity."""
    scene = bpy.context.scene
    current, subframe = scene.frame_current, scene.frame_subframe
    links = list(character.linkage.links())
    number = {link: i for i, link in enumerate(links)}
    jointed = [i for i, link in enumerate(links) if link.parent in number]
    parents = [number[links[i].parent] for i in jointed]
    keyed = np.array([links[i].keyed for i in jointed], dtype=bool)
    held = _anchors(source.at(source.start)[0], character.bones, parents, jointed)
    worst = np.zeros(4)
    try:
        for i, expected in enumerate(poses):
            scene.frame_set(source.start + i)
            bones, world = evaluated_poses(armature, character.rig)
            bones = world @ bones[character.bones]
            actual = rigid(bones)
            actual[:, :3, :3] = actual[:, :3, :3] @ character.offsets
            place = np.linalg.norm(actual[:, :3, 3] - expected[:, :3, 3], axis=1).max()
            chord = np.linalg.norm(actual[:, :3, :3] - expected[:, :3, :3], axis=(1, 2)).max()
            turn = np.degrees(2 * np.arcsin(min(chord / np.sqrt(8), 1.0)))
            moving = _anchors(source.at(source.start + i)[0], character.bones, parents, jointed)
            anchors = np.where(keyed[:, None, None], moving, held)
            apart = np.linalg.norm((bones[parents] @ anchors)[:, :3, 0] - bones[jointed, :3, 3], axis=1)
            heads = bones[:, :3, 3]
            reach = np.abs([heads, heads - world[:3, 3]]).max()
            worst = np.maximum(worst, [place, turn, apart.max(initial=0.0), reach])
            yield (i + 1) / len(poses)
    finally:
        scene.frame_set(current, subframe=subframe)
    return Fidelity(*(float(value) for value in worst))


def _anchors(own: np.ndarray, bones: list[int], parents: list[int], jointed: list[int]) -> np.ndarray:
    """Where joints stand in their parents' bones (k, 4, 1) in evaluated poses (n, 4, 4). Bones' matrices in Blender are
    skewed by up to 3e-6, so this is asked of them as they are."""
    poses = own[bones]
    return np.linalg.inv(poses[parents]) @ poses[jointed][:, :, 3:]
