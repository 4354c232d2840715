"""Which frames of a take are keyed, and how it blends with the source animation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..core.curve import fitted
from ..core.reduction import Skeleton, reduced
from ..core.spatial import exponential, quaternion_conjugate, quaternion_multiply
from .convert import Character
from .inheritance import composed, decomposed
from .problem import ConversionError
from .rig import rigid
from .source import Source

EVERY, STEP, REDUCED = "EVERY", "STEP", "REDUCED"

AIM = 0.98
"""Part of the tolerance that is aimed for: Blender evaluates curves in single precision."""

NO_TURN = 1e-6
"""Turns by less than twice as much [rad] have no axis."""


@dataclass(frozen=True)
class Keying:
    """A key on every frame, on every `step`-th one, or as few as stay within `meters` and `radians` in the world; and
    over how many frames the take comes in from the source animation and goes out to it."""

    mode: str = EVERY
    step: int = 1
    meters: float = 0.0
    radians: float = 0.0
    blend_in: int = 0
    blend_out: int = 0

    def check(self, start: int, end: int) -> None:
        if self.blend_in + self.blend_out > end - start:
            raise ConversionError(
                f"blending takes {self.blend_in} frames in and {self.blend_out} out, more than there are from {start} "
                f"to {end}; shorten it"
            )

    @property
    def tolerance(self) -> tuple[float, float]:
        """What keys may leave out [m, rad]."""
        return self.meters, self.radians

    @property
    def blends(self) -> bool:
        return self.blend_in > 0 or self.blend_out > 0

    def frames(self, source: Source) -> range:
        """The frames that a take writes."""
        return range(source.first, (source.last if self.blend_out else source.end) + 1)

    def weight(self, frame: int, source: Source) -> float:
        """How much of the pose at a frame is the simulation's, 0 … 1; it changes smoothly."""
        if not source.start <= frame <= source.end:
            return 0.0
        return _ramp(frame - source.start, self.blend_in) * _ramp(source.end - frame, self.blend_out)

    def fixed(self, source: Source) -> np.ndarray:
        """Which of these frames (F,) are keyed whatever happens in between: where it begins and ends, where
        physics does, and with a step, every so many frames."""
        frames = np.array(self.frames(source))
        always = np.isin(frames, (frames[0], source.start, source.end, frames[-1]))
        return always | ((frames - source.start) % self.step == 0) if self.mode == STEP else always


EVERY_FRAME = Keying()


def of(settings) -> Keying:
    """The Keying of an armature's settings."""
    blends = {"blend_in": settings.blend_in, "blend_out": settings.blend_out}
    if settings.key_mode == STEP:
        return Keying(STEP, settings.key_step, **blends)
    if settings.key_mode == REDUCED:
        angle = float(np.radians(settings.key_angle))
        return Keying(REDUCED, meters=settings.key_distance / 1000, radians=angle, **blends)
    return Keying(**blends)


def shortened(keys: Keying, frames: int) -> Keying:
    """`keys` with blends that fit into so many frames."""
    longest = max(frames - 1, 0) // 2
    return replace(keys, blend_in=min(keys.blend_in, longest), blend_out=min(keys.blend_out, longest))


def summed(keys: list[dict[str, float]]) -> dict[str, float]:
    """The keys of several armatures as one."""
    names = dict.fromkeys(name for own in keys for name in own if "max" in name)
    most = {name: max(own.get(name, 0.0) for own in keys) for name in names}
    return {name: sum(own[name] for own in keys) for name in ("written", "every_frame")} | most


def _ramp(passed: int, frames: int) -> float:
    x = min(passed / frames, 1.0) if frames else 1.0
    return x * x * (3 - 2 * x)


Turns = tuple[np.ndarray, np.ndarray]
"""Axes (k, 3) and angles (k,) [rad]; angles may be of several turns, in both directions."""


def between(source: np.ndarray, simulated: np.ndarray, weight: float, before: Turns | None) -> tuple[np.ndarray, Turns]:
    """Bones' own transforms (k, 4, 4) on the way from their source's to the simulated ones; and the turns from one to
    the other, which are to be told at the next frame: what tumbles on by more than half a turn must not take the other
    way round."""
    (places, rotations, scales), (aims, turned, stretches) = decomposed(source), decomposed(simulated)
    turns = quaternion_multiply(quaternion_conjugate(rotations), turned)
    sines = np.linalg.norm(turns[:, 1:], axis=1)
    angles = 2 * np.arctan2(sines, turns[:, 0])
    last, most = before or (np.array([0.0, 1.0, 0.0]), 0.0)
    axes = np.where((sines > NO_TURN)[:, None], turns[:, 1:] / np.maximum(sines, NO_TURN)[:, None], last)
    if before:
        back = np.where((axes * last).sum(axis=1) < 0, -1.0, 1.0)
        axes, angles = back[:, None] * axes, back * angles
    angles += 2 * np.pi * np.round((most - angles) / (2 * np.pi))
    parts = quaternion_multiply(rotations, exponential((weight * angles)[:, None] * axes))
    way = composed(places + weight * (aims - places), parts, scales + weight * (stretches - scales))
    return way, (axes, angles)


@dataclass(frozen=True)
class Choice:
    """The frames (F, B) on which bones are keyed, and what the fewer keys change: the most that a bone's end moves [m]
    and a bone turns [rad]."""

    kept: np.ndarray
    moved: float = 0.0
    turned: float = 0.0


def choose(keying: Keying, skeleton: Skeleton, source: Source) -> Iterator[float]:
    """Chooses the keys of a skeleton over the frames of the source, yielding progress 0 … 1; returns the Choice."""
    fixed = keying.fixed(source)
    if keying.mode == REDUCED:
        kept = yield from reduced(skeleton, AIM * keying.meters, AIM * keying.radians, fixed)
    else:
        kept = np.repeat(fixed[:, None], len(skeleton.parents), axis=1)
    moved, turned = skeleton.errors(fitted(skeleton.channels, kept)[0])
    return Choice(kept, float(moved.max(initial=0.0)), float(turned.max(initial=0.0)))


def skeleton(
    armature, character: Character, source: Source, bones: list[int], poses: np.ndarray, locations: np.ndarray,
    rotations: list[np.ndarray],
) -> Skeleton:  # fmt: skip
    """The Skeleton of the bones that are keyed, parents first, from the poses (F, n, 4, 4) of all bones above them in
    the armature's space, their locations (F, B, 3) and rotations (F, 3 or 4) in their own modes."""
    rig, data = character.rig, [armature.data.bones[name] for name in character.rig.names]
    # some Blenders make arrays of single precision out of their own vectors
    turns = [values.astype(float) for values in rotations]
    number = {bone: i for i, bone in enumerate(bones)}
    above = [next((number[other] for other in list(rig.ancestors(bone))[1:] if other in number), -1) for bone in bones]
    scale = float(np.linalg.norm(source.worlds[0, :3, :3], axis=0).mean())
    owners = [
        next((number[other] for other in rig.ancestors(bone) if other in number), -1) for bone in range(len(data))
    ]
    carried = [bone for bone, owner in enumerate(owners) if owner >= 0]
    owned = [owners[bone] for bone in carried]
    rest = np.linalg.inv(rig.rest[bones])[owned]
    sizes = np.linalg.norm(poses[:, bones][:, :, :3, :3], axis=2).max(axis=0)[owned]
    points = [sizes * (rest @ _column(ends[carried]))[:, :3, 0] for ends in (rig.heads, rig.tails)]
    return Skeleton(
        locations=locations.astype(float),
        rotations=np.stack([np.pad(values, ((0, 0), (0, 4 - values.shape[1]))) for values in turns], axis=1),
        modes=tuple(armature.pose.bones[rig.names[bone]].rotation_mode for bone in bones),
        parents=np.array(above, dtype=int),
        turned=np.array([_turns_with(data, rig, bone, number) for bone in bones], dtype=bool),
        heads=scale * poses[:, bones][:, :, :3, 3],
        frames=rigid(poses[:, bones])[..., :3, :3],
        shifts=scale * np.stack([_shift(data, rig, bone, poses) for bone in bones], axis=1),
        points=np.concatenate(points),
        owners=np.array(owned * 2, dtype=int),
    )


def _column(points: np.ndarray) -> np.ndarray:
    return np.concatenate((points, np.ones((len(points), 1))), axis=1)[:, :, None]


def _turns_with(data: list, rig, bone: int, keyed: dict[int, int]) -> bool:
    """Whether a bone inherits the rotation of the next one above it that is keyed."""
    for other in rig.ancestors(bone):
        if other != bone and other in keyed:
            return True
        if not data[other].use_inherit_rotation:
            return False
    return False


def _shift(data: list, rig, bone: int, poses: np.ndarray) -> np.ndarray:
    """How a bone's location moves it in the armature's space (F, 3, 3), as Blender has it."""
    parent, rest = rig.parents[bone], np.array(data[bone].matrix_local.to_3x3())
    if parent < 0:
        return np.broadcast_to(rest if data[bone].use_local_location else np.eye(3), (len(poses), 3, 3))
    turned = poses[:, parent, :3, :3]
    return turned @ np.array(data[parent].matrix_local.to_3x3()).T @ rest if data[bone].use_local_location else turned
