"""What the overlays show of joints, of the center of mass and of the source animation."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import balance, compat, ghost, operators, overlay, reach, readings, standing, take
from rigs import chain, curves, key, make_rig, simulate, values, world_heads


def drawn(armature, color, frame=1):
    """All points of the lines of one color."""
    color = color if len(color) == 4 else (*color, overlay.EDGE)
    found = [points for _, own, points in overlay.figures(armature, frame) if own == color]
    return np.concatenate([np.empty((0, 3)), *found])


def turn(armature, bone, **angles):
    armature.pose.bones[bone].rotation_mode = "XYZ"
    for axis, angle in angles.items():
        setattr(armature.pose.bones[bone].rotation_euler, axis, angle)
    bpy.context.view_layer.update()


def limited(height=2.0, **limits):
    """Two bones along x, the second of which may turn about its own axes by so many degrees."""
    armature = chain(2, height=height)
    limit = armature.pose.bones["bone1"].constraints.new("LIMIT_ROTATION")
    limit.owner_space = "LOCAL"
    for axis, (low, high) in limits.items():
        setattr(limit, f"use_limit_{axis}", True)
        setattr(limit, f"min_{axis}", np.radians(low))
        setattr(limit, f"max_{axis}", np.radians(high))
    limit.influence = 0.0  # it says how far, and stops nothing
    operators.make_dynamic(armature)
    own = armature.armature_dynamics
    own.use_rig_limits, own.show_joints = True, True
    return armature


def only_joint(armature):
    """What is drawn of the only joint that turns."""
    known = standing.known(armature)
    return known.reach.at(known.poses(armature))


def test_nothing_is_drawn_unasked():
    """Every overlay is a toggle that is off at first."""
    armature = chain(3)
    simulate(armature)
    assert overlay.figures(armature, 5) == []


def test_the_cone_is_the_ellipse_of_the_limits():
    """In the boundary the swing, as a rotation vector, satisfies the equation of an ellipse that is lopsided as the
    limits are, and where they end on the axes it turns by just that."""
    armature = limited(x=(-20, 60), y=(-15, 30), z=(-50, 35))
    seen = only_joint(armature)
    place = np.array([0.3, 0, 2])
    assert np.allclose(seen.arcs[0, 0], place, atol=1e-6), "the joint's place"
    directions = (seen.arcs[0, 1:] - place) / np.linalg.norm(seen.arcs[0, 1:] - place, axis=1, keepdims=True)
    bone = np.array(armature.data.bones["bone1"].matrix_local)[:3, :3]
    x, along, z = (directions @ bone).T
    angle = np.arccos(np.clip(along, -1, 1))
    # the axis of the turn from y to (x, along, z) is (z, 0, -x)
    swing = np.stack([z, -x], axis=1) * (angle / np.hypot(x, z))[:, None]
    half = np.radians(np.where(swing > 0, (60, 35), (20, 50)))
    assert np.allclose(((swing / half) ** 2).sum(axis=1), 1.0, atol=1e-4)
    assert np.allclose(np.degrees([swing[:, 0].max(), swing[:, 0].min()]), (60, -20), atol=0.01)
    assert np.allclose(np.degrees([swing[:, 1].max(), swing[:, 1].min()]), (35, -50), atol=0.01)
    # the dial stands out on the bone, and its x axis would twist about y from one end to the other
    dial = (seen.dials[0, 1:] - seen.dials[0, 0]) @ bone
    assert np.allclose(dial[:, 1], 0, atol=1e-6)
    assert np.allclose(np.degrees(np.arctan2(-dial[[0, -1], 2], dial[[0, -1], 0])), (-15, 30), atol=0.01)


def test_a_hinge_shows_an_arc_with_two_ends():
    """One axis that may turn is a hinge; its arc lies square to it."""
    armature = limited(x=(-10, 120), y=(0, 0), z=(0, 0))
    seen = only_joint(armature)
    bone = np.array(armature.data.bones["bone1"].matrix_local)[:3, :3]
    arc = (seen.arcs[0, 1:] - seen.arcs[0, 0]) @ bone
    assert np.allclose(arc[:, 0], 0, atol=1e-6) and not len(seen.dials)
    assert np.allclose(np.degrees(np.arctan2(arc[[0, -1], 2], arc[[0, -1], 1])), (-10, 120), atol=0.01)


@pytest.mark.parametrize(
    ("angles", "stopped"),
    [
        ({"x": 0}, False), ({"x": 55}, False), ({"x": 60}, True), ({"x": 80}, True), ({"x": -15}, False),
        ({"x": -20}, True), ({"z": 34}, False), ({"z": 40}, True), ({"y": 25}, False), ({"y": 31}, True),
        ({"y": -15}, True),
    ],
)  # fmt: skip
def test_a_joint_at_its_limit_is_red(angles, stopped):
    """Animators look for what stops a limb; each way of turning has its own sign of it."""
    armature = limited(x=(-20, 60), y=(-15, 30), z=(-50, 35))
    turn(armature, "bone1", **{axis: np.radians(angle) for axis, angle in angles.items()})
    assert bool(len(drawn(armature, overlay.STOPPED))) == stopped
    assert len(drawn(armature, overlay.RANGE)), "the twist or the swing is free still"


@pytest.mark.parametrize(("locked", "free"), [("z", "y"), ("y", "z")])
def test_what_hardly_turns_is_not_always_red(locked, free):
    """A locked axis is at its limit wherever it is: that would be no news."""
    armature = limited(x=(-40, 40), **{locked: (0, 0), free: (-20, 20)})
    for angle, stopped in ((0.3, False), (-0.5, False), (0.75, True)):
        turn(armature, "bone1", x=angle)
        assert bool(len(drawn(armature, overlay.STOPPED))) == stopped
    turn(armature, "bone1", x=0, **{locked: 0.1})
    assert len(drawn(armature, overlay.STOPPED))


def test_ranges_stay_with_the_bone_above_and_needles_with_the_bone():
    """The range belongs to the bone that carries the joint; the same turn of both moves all of it as one."""
    armature = limited(x=(-20, 60), y=(-15, 30), z=(-50, 35))
    before = only_joint(armature)
    turn(armature, "bone1", x=0.4, z=-0.3)
    bent = only_joint(armature)
    assert np.allclose(bent.arcs, before.arcs, atol=1e-6) and np.allclose(bent.axes, before.axes, atol=1e-6)
    tip = bent.needles[0, 1] - bent.needles[0, 0]
    assert np.allclose(tip / np.linalg.norm(tip), np.array(armature.pose.bones["bone1"].matrix)[:3, 1], atol=1e-6)
    armature.rotation_euler, armature.location = (0.3, 1.0, -0.4), (1, 2, 3)
    bpy.context.view_layer.update()
    world = np.array(armature.matrix_world)
    moved = only_joint(armature)
    for name in ("arcs", "dials", "needles", "axes"):
        assert np.allclose(getattr(bent, name) @ world[:3, :3].T + world[:3, 3], getattr(moved, name), atol=1e-5)


def test_ranges_follow_settings_and_edits():
    """What was prepared is prepared again when an animator changes what it depends on, and only then."""
    armature = limited(x=(-20, 60))
    first = standing.known(armature)
    assert standing.known(armature) is first
    armature.pose.bones["bone1"].constraints[0].max_x = 0.2
    second = standing.known(armature)
    assert second is not first
    bpy.ops.object.mode_set(mode="EDIT")
    assert standing.known(armature) is None
    armature.data.edit_bones["bone1"].head.z += 0.1
    bpy.ops.object.mode_set(mode="OBJECT")
    assert np.allclose(only_joint(armature).arcs[0, 0], (0.3, 0, 2.1), atol=1e-6)
    armature.pose.bones["bone1"].armature_dynamics.role = "IGNORED"
    assert not len(only_joint(armature).arcs)


def test_after_a_simulation_the_range_is_the_one_that_it_had():
    """A start pose outside the range widens it: what was simulated is within it, not red."""
    armature = limited(x=(-20, 60), y=(-15, 30), z=(-50, 35))
    turn(armature, "bone1", x=1.5)
    key(armature, "bone1", "rotation_euler", {1: (1.5, 0, 0)})
    assert len(drawn(armature, overlay.STOPPED))
    simulate(armature)
    bone = np.array(armature.data.bones["bone1"].matrix_local)[:3, :3]
    arc = (only_joint(armature).arcs[0, 1:] - only_joint(armature).arcs[0, 0]) @ bone
    widest = np.arctan2(arc[:, 2], arc[:, 1]).max()
    assert 1.5 < widest < 1.51


def test_in_pose_mode_only_selected_bones_show_their_joints():
    """Sixty cones at a time say nothing."""
    armature = chain(4)
    operators.make_dynamic(armature)
    armature.armature_dynamics.show_joints = True
    everything = len(drawn(armature, overlay.NEEDLE))
    bpy.ops.object.mode_set(mode="POSE")
    for bone in armature.pose.bones:
        compat.select_bone(bone, False)
    assert len(drawn(armature, overlay.NEEDLE)) == everything
    compat.select_bone(armature.pose.bones["bone2"], True)
    assert len(drawn(armature, overlay.NEEDLE)) == everything / 3


def test_controls_show_the_joints_of_the_bones_that_they_carry(generated_rig):
    """Animators of generated rigs never see the deform bones: they select controls."""
    operators.make_dynamic(generated_rig)
    generated_rig.armature_dynamics.show_joints = True
    bpy.context.view_layer.objects.active = generated_rig
    known = standing.known(generated_rig)
    seen = known.reach.at(known.poses(generated_rig))
    assert not seen.bent.any() and not seen.twisted.any(), "it stands as at rest"
    heads = {bone.name: generated_rig.matrix_world @ bone.head for bone in generated_rig.pose.bones}
    expected = np.array([heads[name] for name in known.reach.names])
    assert np.allclose(seen.arcs[:, 0], expected, atol=1e-4)
    bpy.ops.object.mode_set(mode="POSE")
    for bone in generated_rig.pose.bones:
        compat.select_bone(bone, bone.name == "upper_arm_fk.L")
    assert len(drawn(generated_rig, overlay.NEEDLE)) == 4, "the bone and its twist"
    shoulder = heads["DEF-upper_arm.L"]
    assert np.linalg.norm(drawn(generated_rig, overlay.NEEDLE)[0] - shoulder) < 1e-4


def test_a_person_standing_bends_nothing_to_its_end(person):
    """A recognised rig at rest is within all its ranges, and each of its joints has one."""
    known = standing.known(person)
    seen = known.reach.at(known.poses(person))
    assert len(known.reach.names) == (known.parents >= 0).sum() >= 15
    assert not seen.bent.any() and not seen.twisted.any()
    assert np.isfinite(seen.arcs).all() and np.isfinite(seen.dials).all()


def test_the_center_of_mass_is_the_mean_of_the_masses():
    """Two rods of one shape balance in the middle between theirs, above the circle on the ground."""
    armature = make_rig([("a", (0, 0, 1), (0, 0, 1.4), None, False), ("b", (0, 0, 1.4), (0, 0, 1.8), "a", True)])
    operators.make_dynamic(armature)
    armature.armature_dynamics.show_mass, armature.armature_dynamics.ground_height = True, -0.5
    turn(armature, "b", x=np.pi / 2)
    # from their tops and bottoms: (0, 0, 1.2) and 0.2 m beside (0, 0, 1.4)
    side = np.array(armature.pose.bones["b"].matrix)[:3, 1]
    expected = 0.5 * ((0, 0, 1.2) + np.array([0, 0, 1.4]) + 0.2 * side)
    known = standing.known(armature)
    assert np.allclose(balance.center(known, known.poses(armature)), expected, atol=1e-5)
    points = drawn(armature, overlay.MASS)
    ball, plumb, circle = points[:144], points[144:146], points[146:]
    assert np.allclose(ball.mean(axis=0), expected, atol=1e-5)
    assert np.allclose(plumb, [expected, (*expected[:2], -0.5)], atol=1e-5)
    assert np.allclose(circle[:, 2], -0.5)


def test_the_trace_falls_as_a_stone():
    """The center of mass of what is thrown goes its parabola, however it tumbles."""
    armature = chain(3, height=5.0)
    simulate(armature, end=13, use_ground=False, show_mass=True)
    trace = drawn(armature, overlay.TRACE)
    known = standing.known(armature)
    bpy.context.scene.frame_set(1)
    assert np.allclose(trace[0], balance.center(known, known.poses(armature)), atol=1e-5)
    bpy.context.scene.frame_set(13)
    assert np.allclose(trace[-1], balance.center(known, known.poses(armature)), atol=1e-5)
    fallen = 0.5 * 9.81 * (np.arange(13) / 24) ** 2
    points = balance.traces.kept(armature).points
    assert np.allclose(points[0] - points, np.outer(fallen, (0, 0, 1)), atol=1e-3)
    bpy.ops.armature_dynamics.discard()
    assert len(drawn(armature, overlay.MASS)) and not len(drawn(armature, overlay.TRACE)), "a trace of what is gone"


def test_the_ghost_does_what_the_source_did():
    """Compared with how the rig stands when the source plays, in the take and when it is kept."""
    armature = chain(3, height=1.0)
    armature.scale = (2, 2, 2)
    armature.rotation_euler.z = 0.7
    key(armature, "bone1", "rotation_quaternion", {1: (1, 0, 0, 0), 13: (0.8, 0.6, 0, 0)})
    bpy.context.scene.frame_set(9)
    expected = world_heads(armature)
    tip = np.array(armature.matrix_world @ armature.pose.bones["bone2"].tail)
    simulate(armature, end=13, show_ghost=True)
    bpy.context.scene.frame_set(9)
    for state in ("SIMULATED", "KEPT"):
        assert armature.armature_dynamics.state == state
        sticks = drawn(armature, overlay.GHOST, 9)
        places = np.array([*(expected[f"bone{i}"] for i in (0, 1, 1, 2, 2)), tip])
        assert np.allclose(sticks, places, atol=1e-5)
        assert not len(drawn(armature, overlay.GHOST, 14))
        bpy.ops.armature_dynamics.keep.poll() and bpy.ops.armature_dynamics.keep()
    bpy.ops.armature_dynamics.restore_source()
    assert not len(drawn(armature, overlay.GHOST, 9)) and ghost.ghosts.kept(armature)


def test_bounds_of_drawn_lines_hold_a_full_turn():
    """A joint without limits is drawn as one that turns all the way, not as numbers that are none."""
    armature = chain(2)
    operators.make_dynamic(armature)
    known = standing.known(armature)
    known.joints[1].lower, known.joints[1].upper = np.full(3, -np.inf), np.full(3, np.inf)
    seen = reach.Reach(known).at(known.poses(armature))
    assert np.isfinite(seen.arcs).all() and np.isfinite(seen.dials).all()
    assert not seen.bent.any() and not seen.twisted.any()


def test_curves_say_what_happened_on_each_frame():
    """In the Graph Editor: compared with what the report says of all frames, and with a stone's energy."""
    armature = chain(3, height=1.0)
    report = simulate(armature, end=25, mass=10.0, use_curves=True)
    action = armature.animation_data.action
    energy, depth, apart, contacts = (values(action, f"armature_dynamics.{name}") for name in readings.NAMES)
    assert energy[:, 0].tolist() == list(range(1, 26)) == contacts[:, 0].tolist()
    assert energy[0, 1] == pytest.approx(10.0 * 9.81 * 1.0, rel=1e-4) == report.energy_J[0], "at its height, at rest"
    assert energy[-1, 1] == pytest.approx(report.energy_J[1], rel=1e-5) and energy[-1, 1] < 0.2 * energy[0, 1]
    assert depth[:, 1].max() == pytest.approx(1e3 * report.penetration_max_m, rel=1e-5) and depth[0, 1] == 0
    assert (
        apart[:, 1].max() == pytest.approx(1e3 * report.joint_separation_max_m, rel=1e-5) and apart[:, 1].max() < 1e-3
    )
    assert contacts[:, 1].max() == report.contacts_max and contacts[0, 1] == 0
    bpy.context.scene.frame_set(25)
    assert armature.armature_dynamics.contacts == contacts[-1, 1] > 0
    assert 0 <= report.residual_max < 1e-2
    groups = {curve.group.name for curve in curves(action) if "armature_dynamics" in curve.data_path}
    assert groups == {"Simulation"}


def test_curves_go_with_the_simulation(person):
    """Who does not ask for them gets none, and neither Discard nor a new simulation leaves any."""
    simulate(person, end=4, use_curves=True)
    simulate(person, end=4, use_curves=False)
    assert not [curve for curve in curves(person.animation_data.action) if "armature_dynamics." in curve.data_path]
    simulate(person, end=4, use_curves=True)
    bpy.context.scene.frame_set(2)
    assert person.armature_dynamics.energy > 0
    bpy.ops.armature_dynamics.discard()
    bpy.context.scene.frame_set(3)
    assert person.armature_dynamics.energy == person.armature_dynamics.contacts == 0


def test_the_report_names_what_was_left_unsolved():
    """The panel has time, errors, energy and the residuals of constraints and contacts, each with its unit."""
    armature = chain(2, height=0.3)
    simulate(armature, end=13)
    text = armature.armature_dynamics.summary
    for part in (" s, ", "Joints apart", "Bake exact", "Sinks in", "solved to", "Limits exceeded", "Energy gained"):
        assert part in text


@pytest.mark.parametrize("frame", [1, 40])
def test_a_running_simulation_is_seen_on_the_character_itself(frame):
    """Every n-th frame the rig, and so its skin, is where the simulation is then; after Esc, and wherever the playhead
    stood, all is as before."""
    armature = chain(3, height=2.0)
    key(armature, "bone0", "location", {30: (0, 0, 0), 40: (0, 0.5, 0)})
    operators.make_dynamic(armature)
    own = armature.armature_dynamics
    own.frame_start, own.frame_end, own.live_every, own.use_ground = 1, 25, 5, False
    bpy.context.scene.frame_set(frame)
    before, heights = world_heads(armature), []
    steps = take.take(armature)
    for name, _ in steps:
        if name == "simulate" and bpy.context.scene.frame_current == 1 + 5 * len(heights):
            heights.append(np.mean([place[2] for place in world_heads(armature).values()]))
        if len(heights) == 3:
            break
    fallen = 0.5 * 9.81 * (np.array([0, 5, 10]) / 24) ** 2
    assert np.allclose(heights[0] - np.array(heights), fallen, atol=1e-3)
    assert heights[0] == pytest.approx(2.0, abs=1e-4)
    steps.close()
    assert all(np.array_equal(before[name], place) for name, place in world_heads(armature).items())
    assert bpy.context.scene.frame_current == frame
    assert (
        own.state == "SOURCE" and armature.animation_data.action.name in bpy.data.actions and len(bpy.data.actions) == 1
    )


def test_what_is_seen_while_it_runs_changes_nothing():
    """The same keys with and without, and the playhead is back."""
    taken = []
    for every in (0, 2):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        armature = chain(3)
        bpy.context.scene.frame_set(7)
        simulate(armature, end=9, live_every=every)
        assert bpy.context.scene.frame_current == 7
        taken.append({curve.data_path + str(curve.array_index): [tuple(k.co) for k in curve.keyframe_points]
                      for curve in curves(armature.animation_data.action)})  # fmt: skip
    assert taken[0] == taken[1]
