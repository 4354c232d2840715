"""From poses to bones' own transforms and back, through all of Blender's ways of inheriting."""

from __future__ import annotations

import numpy as np
from mathutils import Matrix

from ..core.spatial import matrix_quaternion, pose, quaternion_matrix
from .rig import inverse, scales

EVEN = 1e-5
"""How much a bone's axes may differ in length, or be skewed, relative, for it to count as not squashed. Those of
Blender are skewed by up to 3e-6."""

UNSCALED = ("NONE", "NONE_LEGACY")
"""Ways of inheriting scale that do not."""


class Inheritance:
    """From poses to the own transforms of `bones` that hang from `parents` (n,), and back, for any of them at any
    number of frames. Where all is `even`, which is where nothing is squashed that bones hang from, Blender's ways of
    inheriting scale come to two; else Blender's `convert_local_to_pose` is asked, one by one, of bones that do not
    inherit all that there is."""

    def __init__(self, bones: list, parents: np.ndarray, even: bool) -> None:
        self._bones, self._parents = bones, parents
        rest = np.array([*(bone.matrix_local for bone in bones), np.eye(4)], dtype=float)
        self._rest, self._offsets = rest[:-1, :3, :3], np.linalg.inv(rest[parents]) @ rest[:-1]
        self._turns = np.array([bone.use_inherit_rotation for bone in bones])
        self._grows = np.array([bone.inherit_scale not in UNSCALED for bone in bones])
        self._local = np.array([bone.use_local_location for bone in bones])
        full = np.array([bone.inherit_scale == "FULL" for bone in bones])
        self._known = even | (self._turns & full)

    def locals(self, bones: np.ndarray, above: np.ndarray, poses: np.ndarray) -> np.ndarray:
        """The own transforms (F, k, 4, 4) of bones (k,) with `poses` (F, k, 4, 4), where their parents have those
        `above` (F, k, 4, 4): for roots the unit matrix."""
        if not self._known[bones].all():
            return self._asked(bones, above, poses, invert=True)
        axes, slides, origins = self._spaces(bones, above)
        result = np.zeros_like(poses)
        result[..., :3, :3] = inverse(axes) @ poses[..., :3, :3]
        result[..., :3, 3:] = inverse(slides) @ (poses[..., :3, 3:] - origins)
        result[..., 3, 3] = 1.0
        return result

    def poses(self, bones: np.ndarray, above: np.ndarray, locals_: np.ndarray) -> np.ndarray:
        """The way back."""
        if not self._known[bones].all():
            return self._asked(bones, above, locals_, invert=False)
        axes, slides, origins = self._spaces(bones, above)
        result = np.zeros_like(locals_)
        result[..., :3, :3] = axes @ locals_[..., :3, :3]
        result[..., :3, 3:] = slides @ locals_[..., :3, 3:] + origins
        result[..., 3, 3] = 1.0
        return result

    def _spaces(self, bones: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What turns and scales (F, k, 3, 3) bones, what moves them (F, k, 3, 3), and from where (F, k, 3, 1)."""
        spaces = above @ self._offsets[bones]
        axes, origins = spaces[..., :3, :3], spaces[..., :3, 3:]
        turns, grows, local = (flags[bones, None, None] for flags in (self._turns, self._grows, self._local))
        slides = axes if local.all() else np.where(local, axes, above[..., :3, :3])
        if not (turns.all() and grows.all()):
            sizes = np.linalg.norm(axes[..., :1], axis=-2, keepdims=True)
            axes = np.where(turns, axes, sizes * self._rest[bones]) / np.where(grows, 1.0, sizes)
        return axes, slides, origins

    def _asked(self, bones: np.ndarray, above: np.ndarray, matrices: np.ndarray, *, invert: bool) -> np.ndarray:
        result = np.empty_like(matrices)
        for k, bone in enumerate(bones.tolist()):
            parent = int(self._parents[bone])
            for own, parent_pose, matrix in zip(result[:, k], above[:, k], matrices[:, k]):
                posed = {parent: Matrix(parent_pose)}
                own[...] = _converted(self._bones, bone, parent, posed, Matrix(matrix), invert=invert)
        return result


def is_even(poses: np.ndarray) -> bool:
    """Whether none of the poses (..., 4, 4) is squashed."""
    axes, sizes = poses[..., :3, :3], scales(poses)
    skew = np.einsum("...ij,...ij->...j", axes, axes[..., [1, 2, 0]])
    least, most = sizes.min(axis=-1), sizes.max(axis=-1)
    return bool((most - least <= EVEN * most).all() and (np.abs(skew).max(axis=-1) <= EVEN * most**2).all())


def decomposed(locals_: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Locations (..., 3), rotations (..., 4) and scales (..., 3) of own transforms (..., 4, 4)."""
    sizes = scales(locals_)
    return locals_[..., :3, 3], matrix_quaternion(locals_[..., :3, :3] / sizes[..., None, :]), sizes


def composed(locations: np.ndarray, rotations: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The way back."""
    return pose(quaternion_matrix(rotations) * sizes[..., None, :], locations)


def local_of(bones, poses: np.ndarray, bone: int, parent: int) -> Matrix:
    """A bone's own transform (what its channels hold) in evaluated poses (n, 4, 4)."""
    above = {} if parent < 0 else {parent: Matrix(poses[parent])}
    return unposed(bones, bone, parent, above, Matrix(poses[bone]))


def unposed(bones, bone: int, parent: int, posed: dict[int, Matrix], pose: Matrix) -> Matrix:
    """Blender's own way from a pose in the armature's space to the bone's channels: all its inheritance flags count."""
    return _converted(bones, bone, parent, posed, pose, invert=True)


def to_pose(bones, bone: int, parent: int, posed: dict[int, Matrix], local: Matrix) -> Matrix:
    return _converted(bones, bone, parent, posed, local, invert=False)


def _converted(bones, bone: int, parent: int, posed: dict[int, Matrix], matrix: Matrix, *, invert: bool) -> Matrix:
    rest = bones[bone].matrix_local
    if parent < 0:
        return bones[bone].convert_local_to_pose(matrix, rest, invert=invert)
    return bones[bone].convert_local_to_pose(
        matrix, rest, parent_matrix=posed[parent], parent_matrix_local=bones[parent].matrix_local, invert=invert
    )
