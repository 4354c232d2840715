"""Fewer keys: as few as there can be, and never further off than was allowed."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import reduction
from core.curve import LENGTHS, fitted, operators, segments, visited
from core.reduction import Skeleton, quaternions, reduced

MODES = ("QUATERNION", "AXIS_ANGLE", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


def finished(steps):
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def best_cubic(samples: np.ndarray) -> np.ndarray:
    """The cubic polynomial through both ends that is nearest to the samples (L + 1, C) inside, at the samples."""
    t = np.linspace(0, 1, len(samples))
    line = samples[0] + np.outer(t, samples[-1] - samples[0])
    basis = np.stack((t * (1 - t), t * t * (1 - t)), axis=1)
    return line + basis @ np.linalg.lstsq(basis, samples - line, rcond=None)[0]


def bezier(start, right, left, end, t):
    """De Casteljau's construction."""
    points = [start, right, left, end]
    while len(points) > 1:
        points = [(1 - t) * a + t * b for a, b in pairwise(points)]
    return points[0]


def rotation(axis: int, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    turn = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turn[i, i], turn[i, j], turn[j, i], turn[j, j] = c, -s, s, c
    return turn


def matrix(mode: str, values: np.ndarray) -> np.ndarray:
    """The rotation matrix of keyed numbers, by definitions of its own."""
    if mode == "QUATERNION":
        w, v = values[0], values[1:]
    elif mode == "AXIS_ANGLE":
        axis = values[1:] / (np.linalg.norm(values[1:]) or 1.0)
        w, v = np.cos(values[0] / 2), np.sin(values[0] / 2) * axis
    else:
        first, second, third = (rotation("XYZ".index(axis), values["XYZ".index(axis)]) for axis in mode)
        return third @ second @ first
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + (2 * w * cross + 2 * cross @ cross) / (w * w + v @ v)


class Rig:
    """A random skeleton with a forward pass of its own."""

    def __init__(self, random: np.random.Generator, frames: int, joints: int, rough: float) -> None:
        self.parents = np.array([-1, *(random.integers(0, joint) for joint in range(1, joints))])
        self.modes = tuple(random.choice(MODES, joints))
        self.turned = random.random(joints) < 0.8
        self.rests = [matrix("QUATERNION", random.normal(size=4)) for _ in range(joints)]
        self.offsets = random.normal(scale=0.3, size=(joints, 3))
        self.points = random.normal(scale=0.3, size=(joints, 3))
        time = np.linspace(0, 3, frames)[:, None, None]
        wave = np.sin(time * random.uniform(0.5, 4, (joints, 7)) + random.uniform(0, 6, (joints, 7)))
        wave += rough * random.normal(size=wave.shape)
        self.locations = 0.3 * wave[..., :3] * (random.random((joints, 1)) < 0.4)
        self.rotations = 0.6 * wave[..., 3:]
        for joint, mode in enumerate(self.modes):
            if mode == "QUATERNION":
                self.rotations[:, joint, 0] = 1.0
                self.rotations[:, joint] /= np.linalg.norm(self.rotations[:, joint], axis=1, keepdims=True)
            elif mode == "AXIS_ANGLE":
                self.rotations[:, joint, 1] += 2.0
            else:
                self.rotations[:, joint, 3] = 0.0

    def posed(self, locations: np.ndarray, rotations: np.ndarray):
        """Heads, rotations, points and what locations do, all (F, B, ...)."""
        shape = locations.shape[:2]
        heads, turns, shifts = np.zeros((*shape, 3)), np.zeros((*shape, 3, 3)), np.zeros((*shape, 3, 3))
        for frame in range(shape[0]):
            for joint, parent in enumerate(self.parents):
                above, place = (turns[frame, parent], heads[frame, parent]) if parent >= 0 else (np.eye(3), np.zeros(3))
                shifts[frame, joint] = above @ self.rests[joint]
                local = matrix(self.modes[joint], rotations[frame, joint])
                carried = above if self.turned[joint] else np.eye(3)
                turns[frame, joint] = carried @ self.rests[joint] @ local
                heads[frame, joint] = (
                    place + above @ self.offsets[joint] + shifts[frame, joint] @ locations[frame, joint]
                )
        return heads, turns, heads + (turns @ self.points[:, :, None])[..., 0], shifts

    def skeleton(self) -> Skeleton:
        heads, turns, _, shifts = self.posed(self.locations, self.rotations)
        return Skeleton(
            self.locations, self.rotations, self.modes, self.parents, self.turned, heads, turns, shifts, self.points,
            np.arange(len(self.parents)),
        )  # fmt: skip

    def errors(self, kept: np.ndarray) -> tuple[float, float]:
        """How far heads and points move [m] and joints turn [rad] at most, with only those keys."""
        channels = np.concatenate((self.locations, self.rotations), axis=-1)
        curve = fitted(channels, kept)[0]
        before = self.posed(self.locations, self.rotations)
        after = self.posed(curve[..., :3], curve[..., 3:])
        moved = max(np.linalg.norm(one - other, axis=-1).max() for one, other in zip(before[::2], after[::2]))
        chord = np.linalg.norm(before[1] - after[1], axis=(-1, -2)).max()
        return moved, 2 * np.arcsin(min(chord / np.sqrt(8), 1.0))


def slider(places: np.ndarray) -> Skeleton:
    """One joint that moves along, (F, 3) [m], and does not turn."""
    count = len(places)
    still = np.tile([1.0, 0, 0, 0], (count, 1, 1))
    axes = np.tile(np.eye(3), (count, 1, 1, 1))
    return Skeleton(
        places[:, None], still, ("QUATERNION",), np.array([-1]), np.array([False]), places[:, None], axes, axes,
        np.zeros((1, 3)), np.array([0]),
    )  # fmt: skip


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 24])
def test_segments_are_the_best_cubics(length):
    """The handles that Blender gets describe the polynomial of least squares, and pass three frames exactly."""
    random = np.random.default_rng(length)
    samples = random.normal(size=(length + 1, 2))
    expected = best_cubic(samples)
    assert np.allclose(segments(samples, length)[:, 0], expected[1:-1], atol=1e-9)
    right, left = operators(length)[0] @ samples
    times = np.linspace(0, 1, length + 1)
    drawn = [bezier(samples[0], right, left, samples[-1], t) for t in times]
    assert np.allclose(drawn, expected, atol=1e-9)
    assert length > 3 or np.allclose(drawn, samples, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_no_smaller_set_of_keys_would_do(seed):
    """Against brute force over all sets of keys of a short motion."""
    random = np.random.default_rng(seed)
    count, tolerance = 11, 0.1
    places = np.cumsum(np.cumsum(random.normal(scale=0.1, size=(count, 3)), axis=0), axis=0)
    kept = finished(reduced(slider(places), tolerance, 1.0, np.zeros(count, dtype=bool)))

    def good(first, last):
        return (
            np.linalg.norm(best_cubic(places[first : last + 1]) - places[first : last + 1], axis=1).max() <= tolerance
        )

    def enough(inner):
        return all(good(first, last) for first, last in pairwise((0, *inner, count - 1)))

    fewest = next(n for n in range(count - 1) if any(map(enough, combinations(range(1, count - 1), n))))
    assert kept.sum() == fewest + 2


@settings(max_examples=40)
@given(
    st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 6), st.sampled_from([0.0, 0.02, 0.5]),
    st.sampled_from([(1e-3, 2e-3), (0.02, 0.01), (1e-4, 1.0), (10.0, 1e-3)]),
)  # fmt: skip
def test_errors_stay_within_the_tolerance_down_the_chain(seed, frames, joints, rough, tolerance):
    """For any motion, smooth or noisy, in all rotation modes: measured by a forward pass that knows no keys."""
    random = np.random.default_rng(seed)
    rig = Rig(random, frames, joints, rough)
    fixed = random.random(frames) < 0.1
    kept = finished(reduced(rig.skeleton(), *tolerance, fixed))
    moved, turned = rig.errors(kept)
    assert moved <= tolerance[0] * (1 + 1e-6) + 1e-12 and turned <= tolerance[1] * (1 + 1e-6) + 1e-7
    assert kept[0].all() and kept[-1].all() and kept[fixed].all()


def test_errors_of_the_skeleton_are_those_of_a_forward_pass():
    """What is reported is what happens."""
    rig = Rig(np.random.default_rng(3), 30, 6, 0.02)
    kept = np.zeros((30, 6), dtype=bool)
    kept[[0, 7, 13, 22, 29]] = True
    skeleton = rig.skeleton()
    moved, turned = skeleton.errors(fitted(skeleton.channels, kept)[0])
    assert (moved.max(), turned.max()) == pytest.approx(rig.errors(kept), rel=1e-6)


def test_smooth_motion_needs_a_third_of_the_keys_at_most():
    """Three frames are always met exactly, and a swing needs far fewer keys than that."""
    rig = Rig(np.random.default_rng(5), 121, 5, 0.0)
    kept = finished(reduced(rig.skeleton(), 1e-3, np.radians(0.1), np.zeros(121, dtype=bool)))
    assert kept.sum(axis=0).max() <= 41 and kept.sum() < kept.size / 6


def test_what_stands_still_needs_its_ends_only():
    """A body that came to rest costs next to nothing; a segment has a length of a few."""
    kept = finished(reduced(slider(np.ones((60, 3))), 1e-3, 1e-3, np.zeros(60, dtype=bool)))
    assert kept.sum() <= 3


def test_a_single_frame_is_kept():
    """A simulation that ends at once still leaves its first pose."""
    assert finished(reduced(slider(np.ones((1, 3))), 1e-3, 1e-3, np.zeros(1, dtype=bool))).all()


def test_tolerances_below_rounding_keep_all_keys():
    """What remains of the errors then is rounding, which no further key takes away."""
    rig = Rig(np.random.default_rng(3), 30, 4, 1.0)
    assert finished(reduced(rig.skeleton(), 1e-20, 1e-20, np.zeros(30, dtype=bool))).all()


def test_long_motions_are_reduced_in_pieces(monkeypatch):
    """A minute must not take gigabytes; the pieces meet in keys."""
    monkeypatch.setattr(reduction, "PIECE", 50)
    rig = Rig(np.random.default_rng(8), 121, 3, 0.0)
    kept = finished(reduced(rig.skeleton(), 1e-3, 1e-3, np.zeros(121, dtype=bool)))
    moved, turned = rig.errors(kept)
    assert kept[[0, 40, 80, 120]].all()
    assert moved <= 1e-3 * (1 + 1e-6) and turned <= 1e-3 * (1 + 1e-6) and kept.sum() < kept.size / 3


def test_keys_stay_where_no_share_is_small_enough(monkeypatch):
    """The tolerance is a promise: without time to search, all keys of a chain are kept."""
    rig = Rig(np.random.default_rng(2), 40, 4, 0.0)
    monkeypatch.setattr(reduction, "ROUNDS", 1)
    monkeypatch.setattr(reduction.Skeleton, "reach", lambda skeleton: np.full(4, 1e-3))
    kept = finished(reduced(rig.skeleton(), 1e-4, 1e-1, np.zeros(40, dtype=bool)))
    moved, turned = rig.errors(kept)
    assert moved <= 1e-4 * (1 + 1e-6) and turned <= 1e-1
    assert kept[:, 0].all()


@pytest.mark.parametrize("mode", MODES)
def test_rotation_modes_mean_what_they_mean(mode):
    """Euler orders are easily taken backwards."""
    values = np.random.default_rng(1).normal(size=(5, 1, 4))
    for value, (w, *v) in zip(values[:, 0], quaternions(values, (mode,))[:, 0]):
        assert np.allclose(matrix("QUATERNION", np.array([w, *v])), matrix(mode, value), atol=1e-12)


def test_steps_visit_frames():
    """Each joint has keys of its own."""
    steps = np.array([[2, 1], [9, 3], [2, 9], [9, 9]])
    assert np.array_equal(visited(steps).T, [[1, 0, 1, 0, 1], [1, 1, 0, 0, 1]])
    assert LENGTHS[:3] == (1, 2, 3)
