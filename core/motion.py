"""The source motion: where the animation has the links, frame by frame, and between frames."""

from __future__ import annotations

import copy

import numpy as np

from .checks import are_numbers, are_rotations
from .guide import Guide
from .model import Model
from .spatial import (
    cross,
    exponential,
    logarithm,
    matrix_quaternion,
    pose,
    quaternion_conjugate,
    quaternion_matrix,
    quaternion_multiply,
)

ROUNDED = 1e-3
"""How far the matrices of an animation may be from rotations, as they come in single precision through many parents."""
SPAN = 1e-5
"""Twists of keyed links are differences over this long before and after [s]."""


class Motion:
    """World poses of a model's links at consecutive frames.

    `poses` (frames, n, 4, 4) [m], `frame_time` [s]. Before the first and after the last frame the pose is held.
    Between frames keyed links follow a curve with continuous velocity (Hermite, rotations in rotation vectors). A
    `guide` tells how firmly the others follow; None, not at all.
    """

    def __init__(self, poses: np.ndarray, frame_time: float, guide: Guide | None = None) -> None:
        self.poses = np.asarray(poses, dtype=float)
        if not (are_numbers(frame_time) and frame_time > 0):
            raise ValueError(f"the motion's frame time is {frame_time}; give a positive number of seconds")
        self.frame_time, self.guide = float(frame_time), guide
        if self.poses.ndim != 4 or self.poses.shape[2:] != (4, 4) or len(self.poses) == 0:
            raise ValueError(f"motion poses have shape {self.poses.shape}; give (frames, links, 4, 4)")
        if not np.isfinite(self.poses).all():
            frame, link = np.argwhere(~np.isfinite(self.poses).all((-1, -2)))[0]
            raise ValueError(f"the motion's frame {frame} of link number {link} is not finite; check the animation")
        if not (rigid := are_rotations(self.poses[..., :3, :3], ROUNDED)).all():
            frame, link = np.argwhere(~rigid)[0]
            raise ValueError(
                f"the motion's frame {frame} of link number {link} is no rotation; remove scale, shear and mirroring"
            )

    def __len__(self) -> int:
        return len(self.poses)

    def released(self, link: int) -> Motion:
        """The same motion, which does not guide that link any more."""
        guide = self.guide and self.guide.released(link)
        return Motion(self.poses, self.frame_time, guide)


class Follower:
    """A motion in a model's joints: transforms and twists of keyed links and joint targets at any time.

    `keyed` (k,): the keyed links; of all others transforms are ones and twists are zero.
    """

    def __init__(self, model: Model, motion: Motion) -> None:
        if motion.poses.shape[1] != model.n:
            raise ValueError(
                f"the motion has {motion.poses.shape[1]} links, the model {model.n}; sample it from the same rig"
            )
        self.model, self.frame_time, self.frames = model, motion.frame_time, len(motion)
        self.poses, self.guide = motion.poses, motion.guide
        relative = model.relative(motion.poses)
        self.keyed = np.flatnonzero(model.keyed)
        self.position = relative[:, self.keyed][..., :3, 3]
        self.turn = matrix_quaternion(relative[:, self.keyed][..., :3, :3])
        opposite = (self.turn[1:] * self.turn[:-1]).sum(-1) < 0
        self.turn[1:] *= np.cumprod(np.where(opposite, -1.0, 1.0), axis=0)[..., None]
        self.velocity = _slopes(self.position) / self.frame_time
        self.step = step = logarithm(quaternion_multiply(quaternion_conjugate(self.turn[:-1]), self.turn[1:]))
        self.spin = _averaged(step, self.turn.shape[:-1]) / self.frame_time
        # the rate of a rotation vector u that turns with ω, to second order in u
        self.end_rate = self.spin[1:] + 0.5 * cross(step, self.spin[1:])
        self.q = model.coordinates.from_transforms(relative)

    def select(self, model: Model, links: np.ndarray, q: np.ndarray) -> Follower:
        """The same motion of a `model` of some of the links, by the links' numbers and those of its coordinates; all
        keyed links are among them."""
        follower = copy.copy(self)
        follower.model, follower.q, follower.keyed = model, self.q[:, q], np.flatnonzero(model.keyed)
        return follower

    def _intervals(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = np.clip(times / self.frame_time, 0.0, self.frames - 1.0)
        first = np.minimum(place.astype(int), max(self.frames - 2, 0))
        return first, place - first

    def transforms(self, time: float) -> np.ndarray:
        """The links' poses in their joints' rest frames (n, 4, 4)."""
        turn, position = self._places(np.array([time]))
        return self._of_all(turn[0], position[0])

    def _of_all(self, turn: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Transforms of all links (n, 4, 4) from the quaternions (k, 4) and positions (k, 3) of the keyed ones."""
        result = np.tile(np.eye(4), (self.model.n, 1, 1))
        result[self.keyed] = pose(quaternion_matrix(turn), position)
        return result

    def _places(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The quaternions (t, k, 4) and positions (t, k, 3) of the keyed links at `times` (t,)."""
        k, s = self._intervals(times)
        if self.frames == 1:
            return self.turn[k], self.position[k]
        dt, s = self.frame_time, s[:, None, None]
        b0, b1, m0, m1 = (1 + 2 * s) * (1 - s) ** 2, s * s * (3 - 2 * s), s * (1 - s) ** 2, s * s * (s - 1)
        position = (
            b0 * self.position[k] + b1 * self.position[k + 1] + dt * (m0 * self.velocity[k] + m1 * self.velocity[k + 1])
        )
        vector = b1 * self.step[k] + dt * (m0 * self.spin[k] + m1 * self.end_rate[k])
        return quaternion_multiply(self.turn[k], exponential(vector)), position

    def course(self, time: float, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The links' poses in their joints' rest frames (n, 4, 4) at a time, and their twists against their parents (t,
        n, 6) in their own frames at the times `ends` (t,), zero beyond the motion."""
        count, last, span = len(ends), (self.frames - 1) * self.frame_time, SPAN
        turn, position = self._places(np.concatenate(([time], ends, ends - span, ends + span)))
        twists = np.zeros((count, self.model.n, 6))
        inside = (ends >= -span) & (ends <= last + span) & (self.frames > 1)
        if inside.any():
            own, before, after = turn[1:].reshape(3, count, *turn.shape[1:])[:, inside]
            _, early, late = position[1:].reshape(3, count, *position.shape[1:])[:, inside]
            passed = np.minimum(ends + span, last) - np.maximum(ends - span, 0.0)
            turned = logarithm(quaternion_multiply(quaternion_conjugate(before), after))
            moved = (quaternion_matrix(own).swapaxes(-1, -2) @ (late - early)[..., None])[..., 0]
            rates = np.concatenate((turned, moved), axis=-1) / passed[inside, None, None]
            twists[np.flatnonzero(inside)[:, None], self.keyed] = rates
        return self._of_all(turn[0], position[0]), twists

    def target(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Joint coordinates (nq,) and velocities (nv,) of the motion."""
        (k,), (s,) = self._intervals(np.array([time]))
        if self.frames == 1:
            return self.q[0], np.zeros(self.model.nv)
        velocity = self.model.coordinates.difference(self.q[k], self.q[k + 1]) / self.frame_time
        q = self.model.coordinates.integrate(self.q[k], velocity, s * self.frame_time)
        return q, velocity if time < (self.frames - 1) * self.frame_time else np.zeros_like(velocity)


def _slopes(values: np.ndarray) -> np.ndarray:
    """Differences per frame along the first axis, of second order also at the ends where there are three frames."""
    frames = len(values)
    return np.gradient(values, axis=0, edge_order=min(frames - 1, 2)) if frames > 1 else np.zeros_like(values)


def _averaged(steps: np.ndarray, shape: tuple) -> np.ndarray:
    """Values per frame from steps between frames: the mean of the steps before and after, extrapolated at the ends."""
    result = np.zeros((*shape, 3))
    if len(steps):
        result[0] = 1.5 * steps[0] - 0.5 * steps[min(1, len(steps) - 1)]
        result[-1] = 1.5 * steps[-1] - 0.5 * steps[max(-2, -len(steps))]
        result[1:-1] = 0.5 * (steps[:-1] + steps[1:])
    return result
