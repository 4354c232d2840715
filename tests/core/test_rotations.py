"""Rotations as matrices and as quaternions."""

import numpy as np
import pytest

from core.spatial import matrix_quaternion, quaternion_matrix


def test_every_rotation_has_its_quaternion():
    """Whichever component is the longest, half turns among them, for which w is zero."""
    rng = np.random.default_rng(1)
    quaternions = rng.normal(size=(400, 4)) * rng.choice([1.0, 1e-3, 1e-9], size=(400, 4))
    quaternions = np.concatenate((quaternions, np.eye(4), [(0.0, 3.0, 4.0, 0.0), (0.0, 1.0, -1.0, 1e-12)]))
    quaternions /= np.linalg.norm(quaternions, axis=1)[:, None]
    found = matrix_quaternion(quaternion_matrix(quaternions))
    assert (found[:, 0] >= 0).all()
    assert np.abs((found * quaternions).sum(axis=1)) == pytest.approx(np.ones(len(found)), abs=1e-14)
    assert np.abs(quaternion_matrix(found) - quaternion_matrix(quaternions)).max() < 1e-14


def test_a_matrix_that_is_nearly_a_rotation_has_that_of_the_nearest_one():
    """Blender's matrices are of single precision, and skewed by a few times that."""
    rng = np.random.default_rng(2)
    quaternions = rng.normal(size=(7, 30, 4))
    quaternions /= np.linalg.norm(quaternions, axis=-1)[..., None]
    noisy = quaternion_matrix(quaternions) + 3e-6 * rng.normal(size=(7, 30, 3, 3))
    u, _, vt = np.linalg.svd(noisy)
    assert quaternion_matrix(matrix_quaternion(noisy)) == pytest.approx(u @ vt, abs=1e-10)
    assert matrix_quaternion(np.empty((3, 0, 3, 3))).shape == (3, 0, 4)
