"""The source motion: poses of a rig sampled from the animation that it has before physics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import bpy
import numpy as np

from . import compat, nla, switch
from .problem import ERROR, ConversionError, Problem
from .prop import may_move
from .rig import UNEVEN_SCALE, Rig, check_scale, is_hidden, refuse_hidden, rigid, scales
from .switch import Sampled


@dataclass(frozen=True)
class Source:
    """Frames `first`, first + 1, …, with physics taking over at `start`, up to `end`; there may be more after it.

    `poses` (F, n, 4, 4) of the bones as Blender evaluates them, in the armature's space; `worlds` (F, 4, 4) the
    armature's matrices. One frame stands for all where nothing is animated. `settings`, by their data paths: those that
    drivers or NLA strips move.
    """

    first: int
    start: int
    poses: np.ndarray
    worlds: np.ndarray
    end: int
    settings: dict[str, Sampled] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return max(self.end, self.first + len(self.poses) - 1)

    def at(self, frame: int) -> tuple[np.ndarray, np.ndarray]:
        """The bones' poses (n, 4, 4) and the armature's matrix (4, 4) at a scene frame, the last one after its end."""
        index = min(max(frame - self.first, 0), len(self.poses) - 1)
        return self.poses[index], self.worlds[index]

    def between(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """As `at` (F, n, 4, 4) and (F, 4, 4), at all frames from `first` to before `end`."""
        indices = np.clip(np.arange(first, end) - self.first, 0, len(self.poses) - 1)
        return self.poses[indices], self.worlds[indices]

    @property
    def _begin(self) -> int:
        return min(self.start - self.first, len(self.poses) - 1)

    @cached_property
    def start_poses(self) -> np.ndarray:
        """Rigid world poses (n, 4, 4) [m] of the bones at the start frame."""
        return rigid(self.worlds[self._begin] @ self.poses[self._begin])

    @cached_property
    def all_poses(self) -> np.ndarray:
        """Rigid world poses (F, n, 4, 4) [m] of all bones from the start frame to the end."""
        return self._rigid(slice(None))

    def world_poses(self, bones: Sequence[int]) -> np.ndarray:
        """`all_poses` of some bones."""
        return self.all_poses[:, bones] if "all_poses" in self.__dict__ else self._rigid(bones)

    def _rigid(self, bones: Sequence[int] | slice) -> np.ndarray:
        own = slice(self._begin, self.end - self.first + 1)
        return rigid(self.worlds[own, None] @ self.poses[own][:, bones])


def action_range(armature, *, keyed: bool = False) -> tuple[int, int] | None:
    """The whole frames that cover an armature's own action and the NLA strips below it, or None without any; all that
    are `keyed`, whatever the action's Manual Frame Range says."""
    ends = list(nla.span(armature) or ())
    for action in (compat.playing(armature), armature.armature_dynamics.source_action):
        span = (action.curve_frame_range if keyed else action.frame_range) if action else ()
        # glTF files bring ranges like 0.9999988 … 48
        ends += [round(float(frame)) for frame in span]
    return (min(ends), max(ends)) if ends else None


def sample(armature, rig: Rig, start: int, end: int, *, beyond: bool = False, endless: bool = False) -> Iterator[float]:
    """Samples what the armature does by itself up to `end`, yielding progress 0 … 1; returns the Source.

    Begins where its own action does, and the scene if its motion is `endless`, so that what happens before `start` can
    be kept, and goes on as far as those do if what comes `beyond` the end counts. The current frame is restored.
    """
    scene = bpy.context.scene
    current, subframe = scene.frame_current, scene.frame_subframe
    ends = [*(action_range(armature, keyed=True) or ()), *((scene.frame_start, scene.frame_end) if endless else ())]
    first, last = min([start, *ends]), max([end, *ends]) if beyond else end
    frames = range(first, last + 1) if may_move(armature) else range(start, start + 1)
    settings = {path: Sampled(frames[0], np.zeros(len(frames))) for path in sorted(switch.elsewhere(armature))}
    poses = np.empty((len(frames), len(rig.names), 4, 4))
    worlds = np.empty((len(frames), 4, 4))
    seen = np.empty(len(frames), dtype=bool)
    try:
        for i, frame in enumerate(frames):
            scene.frame_set(frame)
            if start <= frame <= end:
                refuse_hidden(armature)
            seen[i] = not is_hidden(armature)
            poses[i], worlds[i] = evaluated_poses(armature, rig)
            for path, setting in settings.items():
                setting.values[i] = _evaluated(armature).path_resolve(path)
            yield (i + 1) / len(frames)
    finally:
        scene.frame_set(current, subframe=subframe)
    if not seen.all():  # Blender evaluates it only where it is seen: around that it stays as it was last, or will be
        shown = np.flatnonzero(seen)
        nearest = shown[np.maximum(np.searchsorted(shown, range(len(frames)), "right") - 1, 0)]
        poses, worlds = poses[nearest], worlds[nearest]
    _check(rig, poses, worlds)
    return Source(frames[0], start, poses, worlds, end, settings)


def still(armature, rig: Rig, frame: int) -> Source:
    """What the armature does by itself at one frame. The current frame is restored."""
    scene = bpy.context.scene
    current, subframe = scene.frame_current, scene.frame_subframe
    try:
        scene.frame_set(frame)
        refuse_hidden(armature)
        poses, world = evaluated_poses(armature, rig)
    finally:
        scene.frame_set(current, subframe=subframe)
    _check(rig, poses[None], world[None])
    return Source(frame, frame, poses[None], world[None], frame)


def evaluated_poses(armature, rig: Rig) -> tuple[np.ndarray, np.ndarray]:
    """The bones' poses (n, 4, 4) in the armature's space and its matrix (4, 4), as Blender evaluates them now; deform
    bones that controls carry are where their bodies are."""
    evaluated = _evaluated(armature)
    bones = evaluated.pose.bones
    buffer = np.empty(16 * len(bones), dtype=np.float32)
    bones.foreach_get("matrix", buffer)
    poses = np.empty((len(rig.names), 4, 4))
    poses[rig.posed] = buffer.reshape(-1, 4, 4).swapaxes(1, 2)
    poses = rig.controls.bodied(poses) if rig.controls else poses
    return poses, np.array(evaluated.matrix_world, dtype=float)


def _evaluated(armature):
    return armature.evaluated_get(bpy.context.evaluated_depsgraph_get())


def deform_ends(armature, rig: Rig) -> np.ndarray:
    """The heads and tails (n, 4, 2) of the bones as Blender evaluates them now, in the armature's space."""
    bones = _evaluated(armature).pose.bones
    ends = np.ones((len(rig.names), 4, 2))
    for i, end in enumerate(("head", "tail")):
        buffer = np.empty(3 * len(bones), dtype=np.float32)
        bones.foreach_get(end, buffer)
        ends[rig.posed, :3, i] = buffer.reshape(-1, 3)
    return ends


def _check(rig: Rig, poses: np.ndarray, worlds: np.ndarray) -> None:
    for world in worlds:
        check_scale(rig.armature, world)
    sizes = scales(worlds).mean(axis=1)
    if np.ptp(sizes) > UNEVEN_SCALE * sizes.max():
        raise ConversionError(
            f"armature {rig.armature!r}: its scale changes from frame to frame ({sizes.min():.4g} to "
            f"{sizes.max():.4g}); remove the animation of its scale"
        )
    broken = ~np.isfinite(poses).all(axis=(0, 2, 3))
    if broken.any():
        raise _posed(rig, broken, "its pose is not a finite number", "clear its transform or its keys")
    flat = scales(poses).min(axis=(0, 2)) < 1e-9
    if flat.any():
        raise _posed(rig, flat, "it is scaled to zero", "clear its scale", "clear_scale")
    mirrored = (np.linalg.det(poses[..., :3, :3]) < 0).any(axis=0)
    if mirrored.any():
        raise _posed(rig, mirrored, "it is mirrored by a negative scale", "make its scale positive", "clear_scale")


def _posed(rig: Rig, which: np.ndarray, text: str, remedy: str, fix: str = "") -> ConversionError:
    """The error of the bones (n,) that are posed so."""
    bones = tuple(rig.names[bone] for bone in np.flatnonzero(which))
    return ConversionError(Problem("pose", bones, text, remedy, ERROR, fix=fix))
