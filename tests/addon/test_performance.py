"""A performance: a character is simulated live, pulled by hands, and recorded as it was seen."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import stage
from armature_dynamics.addon.operators import make_dynamic
from armature_dynamics.addon.performance import HANDS, SAG, Performance
from armature_dynamics.addon.progress import finished
from conftest import generated
from rigs import chain, curves, key, make_rig, values

FRAME = 1 / 24


def bones(armature) -> np.ndarray:
    """Where all bones are seen (n, 4, 4)."""
    bpy.context.view_layer.update()
    evaluated = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([evaluated.matrix_world @ bone.matrix for bone in evaluated.pose.bones])


def playing(armature, start=1) -> Performance:
    """A performance that has begun, in a context of its own."""
    performance = Performance(armature, start)
    performance.__enter__()
    finished(performance.prepare())
    return performance


def drag(performance, hand: int, way, frames: int, clock: float) -> list[np.ndarray]:
    """Leads a hand by a way (3,) [m] in so many frames of a clock; returns what was seen in each."""
    armature = performance.take.armature
    begin, seen = performance.place(hand), []
    for i in range(frames):
        performance.move(hand, begin + np.array(way) * min(2.0 * i / frames, 1.0))
        assert performance.advance(clock + i * FRAME)
        seen.append(bones(armature))
    return seen


def look(armature, first: int, count: int) -> np.ndarray:
    """The same as it plays."""
    seen = []
    for frame in range(first, first + count):
        bpy.context.scene.frame_set(frame)
        seen.append(bones(armature))
    return np.array(seen)


def hand_of(performance, bone: str) -> int:
    """Holds a bone by its tail."""
    armature = performance.take.armature
    place = armature.matrix_world @ armature.pose.bones[bone].tail
    return performance.hold(performance.take.cast.actors[0], bone, place)


def test_a_hand_lifts_a_hand_and_the_keys_replay_it(person):
    """What the animator has seen is what is kept, to within a millimetre."""
    performance = playing(person, start=3)
    hand = hand_of(performance, "hand.L")
    below = performance.place(hand)[2]
    seen = drag(performance, hand, (0.1, -0.1, 0.7), 48, 10.0)
    assert performance.frame == 51
    number = list(person.pose.bones.keys()).index("hand.L")
    assert seen[-1][number][2, 3] > below + 0.4, "it was lifted"
    report = finished(performance.record())
    performance.__exit__(None, None, None)
    assert person.armature_dynamics.state == stage.SIMULATED
    assert report.frames == 49 and report.joint_separation_max_m < 1e-6
    kept = look(person, 4, 48)
    apart = np.linalg.norm(kept[:, :, :3, 3] - np.array(seen)[:, :, :3, 3], axis=-1)
    assert apart.max() < 1e-5
    assert np.abs(kept - seen).max() < 1e-4


def test_esc_leaves_the_file_as_it_was(person):
    """Playing is trying: bones, action, frame, mutes and modes are those of before."""
    key(person, "upper_arm.L", "rotation_quaternion", {1: (1, 0, 0, 0), 20: (0.9, 0.3, 0.1, 0)})
    person.pose.bones["thigh.R"].rotation_mode = "XYZ"
    person.pose.bones["thigh.R"].rotation_euler = 0.0, 7.0, 0.0
    bpy.context.scene.frame_set(7)
    before, actions = stage.record(person), list(bpy.data.actions)
    poses = bones(person)
    performance = playing(person, start=7)
    drag(performance, hand_of(performance, "hand.L"), (0.0, 0.0, 0.5), 12, 0.0)
    assert np.abs(bones(person) - poses).max() > 0.05
    performance.__exit__(None, None, None)
    assert stage.record(person) == before and list(bpy.data.actions) == actions
    assert bpy.context.scene.frame_current == 7
    assert person.armature_dynamics.state == stage.SOURCE
    assert np.abs(bones(person) - poses).max() == 0.0


@pytest.mark.parametrize("keyed", [False, True])
def test_deform_bones_of_a_control_rig_are_shown_where_its_controls_bring_them(generated_rig, keyed):
    """Controls are found for whole takes; what is seen while it plays is what these will do. They are seen there, too:
    left behind, the shapes that an animator knows would be far from the body."""
    if keyed:
        for name in ("torso", "upper_arm_fk.L"):
            key(generated_rig, name, "location", {1: (0, 0, 0), 30: (0, -0.3, 0)})
        bpy.context.scene.frame_set(1)
    make_dynamic(generated_rig)
    before = stage.record(generated_rig)
    performance = playing(generated_rig)
    seen = drag(performance, hand_of(performance, "DEF-hand.L"), (0.2, -0.2, 0.4), 20, 0.0)
    finished(performance.record())
    performance.__exit__(None, None, None)
    kept = look(generated_rig, 2, 20)
    names = list(generated_rig.pose.bones.keys())
    limbs = [names.index(f"DEF-{name}") for name in ("hand.L", "forearm.L", "shin.R", "foot.R", "spine.006")]
    controls = ("torso", "hand_fk.L", "forearm_fk.L", "shin_fk.R", "foot_fk.R", "chest")
    controls = [names.index(name) for name in controls]
    apart = np.linalg.norm(kept[:, :, :3, 3] - np.array(seen)[:, :, :3, 3], axis=-1)
    assert apart[:, limbs].max() < 1e-3 and apart[:, controls].max() < 1e-3
    bpy.context.scene.frame_set(1)
    stage.discard(generated_rig)
    after = stage.record(generated_rig)
    assert after.muted == before.muted and after.channels == before.channels


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "toe"), [("cat", "DEF-r_palm.004.R"), ("bird", "DEF-t_middle.003.R")])
def test_what_hangs_between_deform_bones_comes_along_once(kind, toe, tmp_path_factory):
    """A cat's toes hang from bones that hang from its feet: fallen by a metre, they were seen two metres lower. A
    bird's were seen where its shins would have taken them, two centimetres off."""
    bpy.ops.wm.open_mainfile(filepath=str(generated(tmp_path_factory, kind)))
    rig = bpy.context.view_layer.objects.active = bpy.data.objects["rig"]
    make_dynamic(rig)
    before = stage.record(rig)
    performance = playing(rig)
    for i in range(10):
        performance.advance(i * FRAME)
    seen = bones(rig)
    finished(performance.record())
    performance.__exit__(None, None, None)
    (kept,) = look(rig, 11, 1)
    deform = [i for i, bone in enumerate(rig.data.bones) if bone.use_deform]
    assert toe in rig.data.bones
    assert np.linalg.norm(kept[deform, :3, 3] - seen[deform, :3, 3], axis=-1).max() < 1e-4
    stage.discard(rig)
    assert stage.record(rig).muted == before.muted
    assert not any(own.mute for bone in rig.pose.bones if bone.bone.use_deform for own in bone.constraints)


def test_a_pinned_bone_stays_and_others_can_be_held():
    """Hands are left where they are, so that one mouse holds several; and are taken away again."""
    armature = chain(count=6, height=1.5)
    make_dynamic(armature)
    performance = playing(armature)
    first = hand_of(performance, "bone0")
    drag(performance, first, (0.0, 0.0, 0.0), 4, 0.0)
    performance.pin(first)
    second = hand_of(performance, "bone5")
    assert second != first
    drag(performance, second, (0.0, 0.0, 0.2), 48, 1.0)
    tops = [pull.ends[0] for pull in performance.pulls()]
    assert len(tops) == 2 and min(point[2] for point in tops) > 0.8, "it hangs from both hands"
    performance.release_pins()
    performance.release(second)
    seen = drag(performance, second, (0.0, 0.0, 0.0), 48, 4.0) if performance.holds(second) else None
    assert seen is None and not performance.pulls()
    for i in range(48):
        performance.advance(4.0 + i * FRAME)
    assert bones(armature)[:, 2, 3].max() < 0.3, "it has fallen"
    performance.__exit__(None, None, None)


def test_a_pin_that_is_pressed_again_is_led_on():
    """Without gravity what is pinned stands still under the mouse: a second hand at the very same point ended all."""
    bpy.context.scene.gravity = (0.0, 0.0, 0.0)
    armature = chain(count=3, height=1.5)
    make_dynamic(armature)
    performance = playing(armature)
    hand = hand_of(performance, "bone2")
    drag(performance, hand, (0.0, 0.0, 0.0), 3, 0.0)
    performance.pin(hand)
    assert hand_of(performance, "bone2") == hand and not performance.pulls()[0].is_pinned
    other = hand_of(performance, "bone0")
    assert other != hand
    seen = drag(performance, hand, (0.0, 0.0, 0.4), 48, 1.0)
    assert seen[-1][2, 2, 3] > 1.55 and len(performance.pulls()) == 2
    performance.__exit__(None, None, None)


def test_a_hanging_character_stretches_the_spring_by_a_tenth_of_its_height():
    """Springs are as strong as what they hold is heavy, so that mice and giants are held alike; and twice as stiff give
    half as much. In rest the force is the weight."""
    for length in (0.03, 3.0):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        # held at its upper end, it hangs from the start
        rows = [
            (f"bone{i}", (0, 0, (9 + i) * length), (0, 0, (10 + i) * length), f"bone{i - 1}" if i else None, i > 0)
            for i in range(3)
        ]
        armature = make_rig(rows)
        make_dynamic(armature)
        performance = playing(armature)
        actor = performance.take.cast.actors[0]
        weight = 9.81 * sum(link.mass for link in actor.character.links)
        hand = hand_of(performance, "bone2")
        for factor, clock in ((1.0, 0.0), (2.0, 100.0)):
            if factor != 1.0:
                performance.stiffen(factor)
            for i in range(200):
                performance.advance(clock + i * FRAME)
            (pull,) = performance.pulls()
            sag = np.linalg.norm(pull.ends[1] - pull.ends[0])
            assert pull.force == pytest.approx(weight, rel=0.02)
            assert sag == pytest.approx(SAG * actor.character.height / factor, rel=0.02)
            # the body answers a hand that holds it still with its weight
            assert np.linalg.norm(pull.feedback) == pytest.approx(weight, rel=0.05)
        assert performance.holds(hand)
        performance.__exit__(None, None, None)


def test_a_mouse_that_is_torn_away_launches_nobody():
    """Springs are no stronger than three times the weight: a hand a hundred metres away pulls no harder."""
    armature = chain(count=4, height=0.1)
    make_dynamic(armature)
    performance = playing(armature)
    hand = hand_of(performance, "bone3")
    performance.advance(0.0)
    performance.advance(FRAME)
    performance.move(hand, performance.place(hand) + np.array([0.0, 0.0, 100.0]))
    links = performance.take.cast.links
    masses, centers = np.array([link.mass for link in links]), np.array([link.center_of_mass for link in links])
    heights = []
    for i in range(12):
        performance.advance((2 + i) * FRAME)
        poses = performance.take.simulation.poses
        middles = (poses[:, :3, :3] @ centers[:, :, None])[:, :, 0] + poses[:, :3, 3]
        heights.append(masses @ middles[:, 2] / masses.sum())
    # the ground carries what lies on it: no more than the pull lifts
    speeds = np.diff(heights) / FRAME
    assert (speeds < 3.0 * 9.81 * FRAME * np.arange(2, 13)).all() and speeds[-1] > 5.0
    performance.__exit__(None, None, None)


def test_other_bones_keep_their_animation():
    """A performance goes along with what is keyed, frame by frame of the scene."""
    armature = chain(count=4, height=1.0)
    key(armature, "bone0", "location", {1: (0, 0, 0), 25: (0, 1.0, 0)})
    make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    performance = playing(armature)
    for i in range(24):
        performance.advance(i * FRAME)
    assert np.allclose(armature.pose.bones["bone0"].location, (0, 1.0, 0), atol=1e-5)
    with pytest.raises(ValueError, match="follows its keys and cannot be pulled"):
        hand_of(performance, "bone0")
    finished(performance.record())
    performance.__exit__(None, None, None)
    action = armature.animation_data.action
    assert len(values(action, 'pose.bones["bone2"].rotation_quaternion')) == 25
    assert len(curves(action)) > 3


def test_what_is_keyed_of_directing_counts_from_where_it_begins():
    """Played from frame 50 on, the character follows as is keyed there, not as at the settings' first frame."""
    armature = chain(count=3, height=2.0)
    make_dynamic(armature)
    armature.armature_dynamics.frame_start, armature.armature_dynamics.frame_end = 1, 60
    for bone in armature.pose.bones:
        bone.armature_dynamics_follow_world = True
        for frame, frequency in ((1, 8.0), (49, 8.0), (50, 0.0)):
            bone.armature_dynamics_follow = frequency
            bone.keyframe_insert("armature_dynamics_follow", frame=frame)
    fallen = []
    for start in (1, 50):
        performance = playing(armature, start=start)
        for i in range(12):
            performance.advance(i * FRAME)
        fallen.append(2.0 - bones(armature)[:, 2, 3].mean())
        performance.__exit__(None, None, None)
    assert fallen[0] < 0.05 and fallen[1] > 0.5


def test_what_begins_after_its_range_goes_along_with_the_scene():
    """An armature that a moving object carries is carried on, as it is seen: not left where its range ended."""
    armature, carrier = chain(count=3, height=1.5), bpy.data.objects.new("Carrier", None)
    bpy.context.collection.objects.link(carrier)
    armature.parent = carrier
    for frame, x in ((1, 0.0), (101, 10.0)):
        carrier.location.x = x
        carrier.keyframe_insert("location", frame=frame)
    make_dynamic(armature)
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"
    armature.armature_dynamics.frame_start, armature.armature_dynamics.frame_end = 1, 20
    bpy.context.scene.frame_set(51)
    begin = bones(armature)[0, 0, 3]
    performance = playing(armature, start=51)
    for i in range(20):
        performance.advance(i * FRAME)
    seen = bones(armature)[0, 0, 3]
    bpy.context.scene.frame_set(71)
    assert begin == pytest.approx(5.0, abs=0.2) and seen - begin > 1.5
    assert performance.take.simulation.poses[0, 0, 3] == pytest.approx(seen, abs=1e-4)
    performance.__exit__(None, None, None)


def test_without_gravity_hands_pull_as_on_earth():
    """Where nothing weighs anything hands would be no stronger than that, and hold nothing."""
    armature = chain(count=3, height=1.5)
    make_dynamic(armature)
    bpy.context.scene.use_gravity = False
    performance = playing(armature)
    mass = sum(link.mass for link in performance.take.cast.links)
    hand = hand_of(performance, "bone2")
    drag(performance, hand, (0.0, 0.0, 0.5), 72, 0.0)
    (pull,) = performance.pulls()
    assert pull.strength == pytest.approx(3.0 * 9.81 * mass)
    assert np.linalg.norm(pull.ends[1] - pull.ends[0]) < 0.1
    performance.__exit__(None, None, None)


def test_keys_that_are_held_down_make_springs_no_stiffer_than_can_be_simulated():
    """Held keys repeat: 200 times twice as stiff ends no performance, nor half as stiff."""
    armature = chain(count=3, height=1.5)
    make_dynamic(armature)
    performance = playing(armature)
    hand = hand_of(performance, "bone2")
    drag(performance, hand, (0.0, 0.0, 0.0), 3, 0.0)
    strength = performance.pulls()[0].strength
    for factor, most in ((2.0, 1024.0), (0.5, 1.0 / 1024.0)):
        for _ in range(2000):
            performance.stiffen(factor)
        drag(performance, hand, (0.3, 0.0, 0.3), 24, 1.0)
        assert performance.pulls()[0].strength == pytest.approx(most * strength)
    performance.__exit__(None, None, None)


def test_what_is_edited_or_removed_while_it_plays_ends_it():
    """In another window: what is posed is not there any more."""
    for mode in ("EDIT", "REMOVED"):
        armature, other = chain(count=3, height=1.5), chain(count=2, name="Other")
        make_dynamic(armature)
        performance = playing(armature)
        performance.advance(0.0)
        if mode == "EDIT":
            bpy.context.view_layer.objects.active = armature
            bpy.ops.object.mode_set(mode="EDIT")
            with pytest.raises(ValueError, match="is being edited"):
                performance.advance(FRAME)
            bpy.ops.object.mode_set(mode="OBJECT")
        else:
            bpy.data.objects.remove(armature)
            with pytest.raises(ReferenceError):
                performance.advance(FRAME)
        performance.__exit__(None, None, None)
        bpy.data.objects.remove(other)


def test_there_are_so_many_hands_and_no_more():
    """One line says so."""
    armature = chain(count=4)
    make_dynamic(armature)
    performance = playing(armature)
    for _ in range(HANDS):
        hand_of(performance, "bone1")
    with pytest.raises(ValueError, match=f"there are {HANDS} hands"):
        hand_of(performance, "bone2")
    performance.__exit__(None, None, None)


def test_too_slow_for_the_clock_fewer_joints_move_and_then_time_slows():
    """A frame that comes late costs the adaptive budget first; without one, or at its least, the pace tells."""
    bpy.context.scene.armature_dynamics.adaptive = "THRESHOLD"
    armature = chain(count=30, height=3.0, length=0.1)
    make_dynamic(armature)
    performance = playing(armature)
    adaptive = lambda: performance.take.simulation.system.chooser.adaptive.budget  # noqa: E731
    budgets = []
    for i in range(30):
        performance.advance(2.0 * i * FRAME)
        budgets.append(adaptive())
    assert budgets[-1] == pytest.approx(0.1 * FRAME) and budgets[5] < budgets[1]
    assert performance.pace == pytest.approx(0.5, abs=0.01)
    for i in range(60):
        performance.advance(100.0 + 0.9 * i * FRAME)
    assert adaptive() == pytest.approx(0.6 * FRAME)
    assert performance.pace == pytest.approx(1.0, abs=0.01)
    performance.__exit__(None, None, None)
