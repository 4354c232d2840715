"""From poses to channels and back: for many bones at once as for one."""

import itertools

import numpy as np
import pytest
from armature_dynamics.addon.inheritance import Inheritance, composed, decomposed, is_even
from armature_dynamics.addon.keying import between
from armature_dynamics.addon.rig import inverse, rigid
from rigs import key, make_rig, simulate

FLAGS = list(
    itertools.product(
        (True, False), ("FULL", "FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE", "NONE_LEGACY"), (True, False), (True, False)
    )
)


def turned(rng, *shape):
    """Poses (..., 4, 4) anywhere, without scale."""
    quaternions = rng.normal(size=(*shape, 4))
    quaternions /= np.linalg.norm(quaternions, axis=-1, keepdims=True)
    return composed(rng.normal(size=(*shape, 3)), quaternions, np.ones((*shape, 3)))


def test_many_bones_inherit_as_one_does():
    """What is done for all bones at once is Blender's own way, whatever flags a rigger chose (field case 20)."""
    rng = np.random.default_rng(2)
    rows = []
    for k in range(len(FLAGS)):
        places = rng.normal(size=(3, 3))
        rows += [
            (f"above{k}", places[0], places[1], None, False),
            (f"bone{k}", places[1], places[2], f"above{k}", False),
        ]
    armature = make_rig(rows)
    for k, (rotation, scale, local, is_root) in enumerate(FLAGS):
        bone = armature.data.bones[f"above{k}" if is_root else f"bone{k}"]
        bone.use_inherit_rotation, bone.inherit_scale, bone.use_local_location = rotation, scale, local
    bones = list(armature.data.bones)
    number = {bone.name: i for i, bone in enumerate(bones)}
    parents = np.array([number[bone.parent.name] if bone.parent else -1 for bone in bones])
    poses = turned(rng, 3, len(bones) + 1)
    poses[..., :3, :3] *= rng.uniform(0.3, 3.0, size=(3, len(bones) + 1, 1, 1))
    poses[:, -1] = np.eye(4)
    asked = np.arange(len(bones)), poses[:, parents]
    for way in ("locals", "poses"):
        once, singly = (
            getattr(Inheritance(bones, parents, even), way)(*asked, poses[:, :-1]) for even in (True, False)
        )
        assert np.abs(once - singly).max() < 1e-5 * np.abs(singly).max()


def test_what_is_squashed_is_not_taken_for_even():
    """A skewed bone has no rotation that those below it could inherit."""
    poses = turned(np.random.default_rng(3), 5)
    assert is_even(2.0 * poses)
    stretched = poses.copy()
    stretched[4, :3, :3] *= (1.0, 1.001, 1.0)
    assert not is_even(stretched)
    skewed = poses.copy()
    skewed[1, :3, 0] += 1e-3 * skewed[1, :3, 1]
    assert not is_even(skewed)


@pytest.mark.parametrize("scale", [(1.3, 0.8, 1.1), (0.5, 1.0, 1.0)])
def test_bones_below_a_squashed_one_turn_as_simulated(scale):
    """A squashed bone skews those below it, whose channels must make up for it."""
    rows = [
        (f"bone{i}", (0.2 * i, 0, 2), (0.2 * (i + 1), 0, 2), f"bone{i - 1}" if i else None, i > 0) for i in range(6)
    ]
    armature = make_rig(rows)
    armature.pose.bones["bone2"].scale = scale
    key(armature, "bone0", "rotation_quaternion", {1: (1, 0, 0, 0), 20: (0.6, 0.0, 0.8, 0.0)})
    key(armature, "bone3", "rotation_quaternion", {1: (0.9, 0.1, 0.3, 0.1)})
    report = simulate(armature, end=20)
    assert report.bake_error_max_deg <= 0.01


def test_transforms_are_taken_apart_and_put_together():
    """Channels hold what there was."""
    rng = np.random.default_rng(4)
    poses, scales = turned(rng, 50), rng.uniform(0.5, 2.0, size=(50, 3))
    poses[:, :3, :3] *= scales[:, None]
    locations, rotations, found = decomposed(poses)
    assert found == pytest.approx(scales)
    assert composed(locations, rotations, found) == pytest.approx(poses)


def test_what_tumbles_past_half_a_turn_does_not_turn_back():
    """The turn is told from frame to frame."""
    before, angles = None, np.linspace(0.0, 9.0, 30)
    for angle in angles:
        turn = np.array([[np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)]])
        own, simulated = (composed(np.zeros((1, 3)), own, np.ones((1, 3))) for own in (np.eye(1, 4), turn))
        way, before = between(own, simulated, 0.5, before)
        assert way[0, :2, 0] == pytest.approx([np.cos(angle / 2), np.sin(angle / 2)], abs=1e-6)


def test_the_nearest_rotation_is_that_of_singular_values():
    """Whatever a matrix is: skewed, mirrored or flat."""
    rng = np.random.default_rng(5)
    poses = turned(rng, 40)
    poses[:, :3, :3] += np.linspace(0.0, 0.4, 40)[:, None, None] * rng.normal(size=(40, 3, 3))
    poses[7, :3, :3] @= np.diag([1.0, 1.0, -1.0])
    poses[9, :3, :3] @= np.diag([1.0, 1.0, 0.0])
    poses[11, :3, :3] *= 1e-6
    u, _, vt = np.linalg.svd(poses[:, :3, :3])
    found = rigid(poses)
    assert found[:, :3, :3] == pytest.approx(u @ vt, abs=1e-12)
    assert np.array_equal(found[:, :, 3], poses[:, :, 3])
    assert inverse(poses[12:, :3, :3]) == pytest.approx(np.linalg.inv(poses[12:, :3, :3]))
    assert rigid(np.empty((3, 0, 4, 4))).shape == (3, 0, 4, 4)
