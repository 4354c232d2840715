"""Limits that a rigger wrote, read as joint limits on request."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import operators
from rigs import character, make_rig, simulate


def _limit(armature, bone, **ranges):
    """A Limit Rotation constraint: axis = (lowest, highest) in degrees."""
    constraint = armature.pose.bones[bone].constraints.new("LIMIT_ROTATION")
    constraint.owner_space = "LOCAL"
    for axis, (low, high) in ranges.items():
        setattr(constraint, f"use_limit_{axis}", True)
        setattr(constraint, f"min_{axis}", np.radians(low))
        setattr(constraint, f"max_{axis}", np.radians(high))
    return constraint


def _angles(armature, bone, frames):
    """A bone's own turn about its x, y and z axes (F, 3) [degrees], as evaluated."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        own = armature.pose.bones[bone]
        local = armature.convert_space(pose_bone=own, matrix=own.matrix, from_space="POSE", to_space="LOCAL")
        found.append(np.degrees(local.to_euler("XYZ")))
    return np.array(found)


def test_our_limits_are_kept_apart(metarig):
    """Nobody gets a rigger's limits unasked: they are often for inverse kinematics alone."""
    _limit(metarig, "forearm.L", x=(20, 80), y=(0, 0), z=(0, 0))
    ours = {link.name: link.joint for link in character(metarig)[0].links}
    theirs = {link.name: link.joint for link in character(metarig, rig_limits=True)[0].links}
    assert np.degrees(ours["forearm.L"].upper[0]) == pytest.approx(150, abs=1)
    assert np.degrees([theirs["forearm.L"].lower[0], theirs["forearm.L"].upper[0]])[1] == pytest.approx(80, abs=1e-3)
    assert np.array_equal(ours["forearm.R"].upper, theirs["forearm.R"].upper)


def test_a_hinge_has_the_range_of_its_constraint(metarig):
    """Asymmetric, and without zero: a knee that is never straight (field case 22)."""
    for side in "LR":
        _limit(metarig, f"shin.{side}", x=(10, 60), y=(0, 0), z=(0, 0))
        metarig.pose.bones[f"shin.{side}"].rotation_mode = "XYZ"
        metarig.pose.bones[f"shin.{side}"].rotation_euler.x = np.radians(30)
    report = simulate(metarig, end=60, use_rig_limits=True, mute_constraints=True)
    assert report.ok, report.news()
    for side in "LR":
        x, y, z = _angles(metarig, f"shin.{side}", range(1, 61)).T
        assert x.min() >= 9.0 and x.max() <= 61.0
        assert max(np.abs(y).max(), np.abs(z).max()) < 0.1
        assert np.ptp(x) > 10, "it bends"


def test_limits_for_inverse_kinematics_count_too(metarig):
    """A chain set up for IK knows which way its joints bend."""
    arm = metarig.pose.bones["forearm.R"]
    arm.lock_ik_y = arm.lock_ik_z = True
    arm.use_ik_limit_x, arm.ik_min_x, arm.ik_max_x = True, 0.0, np.radians(40)
    link = next(link for link in character(metarig, rig_limits=True)[0].links if link.name == "forearm.R")
    assert link.joint.kind == "hinge"
    assert np.degrees(link.joint.upper[0] - link.joint.lower[0]) == pytest.approx(40, abs=0.2)


def test_a_ball_joint_stays_in_a_range_without_zero():
    """The middle of the range becomes the middle of the cone."""
    armature = make_rig([("a", (0, 0, 2), (0, 0.5, 2), None, False), ("b", (0, 0.5, 2), (0, 1.0, 2), "a", True)])
    _limit(armature, "b", x=(20, 60), y=(-10, 10), z=(-15, 30))
    armature.pose.bones["b"].rotation_mode = "XYZ"
    armature.pose.bones["b"].rotation_euler = np.radians((40, 0, 5))
    operators.make_dynamic(armature)
    armature.pose.bones["a"].armature_dynamics.role = "ANIMATED"
    report = simulate(armature, end=48, use_rig_limits=True, mute_constraints=True)
    assert report.ok, report.news()
    x, y, z = _angles(armature, "b", range(1, 49)).T
    assert x.min() >= 18 and x.max() <= 62
    assert y.min() >= -12 and y.max() <= 12
    assert z.min() >= -17 and z.max() <= 32
