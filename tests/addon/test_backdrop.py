"""What a performance goes along with: animation beyond its range, and connections that change while bones are held."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon.operators import make_dynamic
from armature_dynamics.addon.progress import finished
from connecting import connect, empty, key_enabled, mirrored_chain
from rigs import chain, key
from test_performance import FRAME, bones, drag, hand_of, look, playing

RANGE, LONGER = 12, 30


def moving(thing) -> None:
    """Keys an object to go on after the range."""
    for frame, y in ((1, 0.0), (LONGER, 2.0)):
        thing.location.y = y
        thing.keyframe_insert("location", index=1, frame=frame)
    bpy.context.scene.frame_set(1)


def keyed_bone(armature):
    key(armature, "bone0", "location", {1: (0, 0, 0), LONGER: (0, 2.0, 0)})
    armature.pose.bones["bone0"].armature_dynamics.role = "ANIMATED"


def carrier(armature):
    armature.parent = empty()
    moving(armature.parent)


def bar(armature):
    target = empty(location=(0, 0, 2))
    moving(target)
    connect(armature, "bone0", target)


def switch(armature):
    connect(armature, "bone0")
    key_enabled(armature, {1: True, RANGE + 1: False})


@pytest.mark.parametrize("animate", [keyed_bone, carrier, bar, switch])
def test_it_ends_where_animation_goes_on_that_is_not_known(animate):
    """After the range's end what is animated stood still in the simulation and went on in the scene: what was seen
    there was a metre off, and what was kept, too."""
    armature = chain(count=3, height=2.0)
    make_dynamic(armature)
    animate(armature)
    armature.armature_dynamics.frame_start, armature.armature_dynamics.frame_end = 1, RANGE
    performance = playing(armature)
    while performance.advance(performance.frame * FRAME):
        assert performance.frame <= LONGER
    assert performance.frame == RANGE and f"ended at frame {RANGE}: " in performance.news[-1]
    report = finished(performance.record())
    performance.__exit__(None, None, None)
    assert report.ok and report.frames == RANGE and not report.news()[1:]


@pytest.mark.parametrize("result", ["ACTION", "STRIP"])
@pytest.mark.parametrize("animate", [keyed_bone, carrier, bar])
def test_it_plays_on_where_all_that_is_animated_stands_still(animate, result):
    """A longer take than the range is nobody's harm then, wherever that has been before; a strip is as long."""
    armature = chain(count=3, height=2.0)
    make_dynamic(armature)
    animate(armature)
    armature.armature_dynamics.frame_start, armature.armature_dynamics.frame_end = 1, LONGER
    armature.armature_dynamics.result = result
    performance = playing(armature)
    seen = drag(performance, hand_of(performance, "bone2"), (0.3, 0.0, -0.3), LONGER + 20, 0.0)
    report = finished(performance.record())
    performance.__exit__(None, None, None)
    assert report.ok and report.frames == LONGER + 21
    assert np.abs(look(armature, 2, LONGER + 20) - seen).max() < 1e-4


def test_what_looks_at_the_character_is_no_animation_of_its_own(generated_rig):
    """Helpers of a control rig, and what tracks a place from a simulated bone, move because that does."""
    armature = chain(count=3, height=2.0)
    make_dynamic(armature)
    track = armature.pose.bones["bone2"].constraints.new("DAMPED_TRACK")
    track.target = empty(location=(0, 0, 3))
    armature.pose.bones["bone2"].armature_dynamics.role = "ANIMATED"
    make_dynamic(generated_rig)
    for each in (armature, generated_rig):
        each.armature_dynamics.frame_start, each.armature_dynamics.frame_end = 1, 3
        performance = playing(each)
        for i in range(10):
            assert performance.advance(i * FRAME)
        performance.__exit__(None, None, None)


def test_what_holds_by_keys_is_let_go_and_caught_while_it_is_pulled():
    """The hand keeps what it holds, whatever becomes of connections; and the keys replay that."""
    armature = chain(count=4, height=2.0)
    connect(armature, "bone0")
    key_enabled(armature, {1: True, 15: False, 25: True})
    performance = playing(armature)
    hand = hand_of(performance, "bone3")
    seen = np.array(drag(performance, hand, (0.2, -0.2, 0.5), 39, 0.0))
    assert performance.holds(hand)
    report = finished(performance.record())
    performance.__exit__(None, None, None)
    ends = seen[:, 1, :3, 3]  # of bone0, in frames 2, 3, …
    assert np.linalg.norm(ends[:14] - (0.3, 0.0, 2.0), axis=1).max() < 1e-5
    assert np.linalg.norm(ends[22] - (0.3, 0.0, 2.0)) > 0.1
    assert np.linalg.norm(ends[23:] - ends[23], axis=1).max() < 1e-3
    assert report.ok and np.abs(look(armature, 2, 39) - seen).max() < 1e-4


def test_what_breaks_under_the_pull_stays_in_the_hand():
    """A character is torn off what holds it, and is not launched: it hangs from the hand then."""
    armature = chain(count=4, height=2.0)
    connect(armature, "bone0", break_force=30.0)
    performance = playing(armature)
    hand = hand_of(performance, "bone3")
    seen = np.array(drag(performance, hand, (1.5, 0.0, 1.5), 120, 0.0))
    assert performance.holds(hand)
    speeds = np.linalg.norm(np.diff(seen[:, :, :3, 3], axis=0), axis=-1) / FRAME
    assert np.linalg.norm(seen[-1, 1, :3, 3] - (0.3, 0.0, 2.0)) > 0.5 and speeds.max() < 15.0
    assert speeds[-1].max() < 1.5
    report = finished(performance.record())
    performance.__exit__(None, None, None)
    assert report.ok and np.abs(look(armature, 2, 120) - seen).max() < 1e-4


@pytest.mark.parametrize("pulled", ["Rig", "Other"])
def test_two_hand_in_hand_part_while_one_is_pulled(pulled):
    """Both are simulated as one, and written, whichever is active; after they have parted only one hangs in the air."""
    armature, other = chain(count=3, height=2.0), mirrored_chain(0.9)
    make_dynamic(other)
    connect(armature, "bone2", other, "bone2")
    key_enabled(armature, {1: True, 13: False})
    performance = playing(armature)
    own = next(actor for actor in performance.take.cast.actors if actor.armature.name == pulled)
    hand = performance.hold(own, "bone1", own.armature.matrix_world @ own.armature.pose.bones["bone1"].head)
    seen = {armature: [], other: []}
    for i in range(60):
        assert performance.advance(i * FRAME)
        for each, poses in seen.items():
            poses.append(bones(each))
    assert performance.holds(hand)
    report = finished(performance.record())
    performance.__exit__(None, None, None)
    assert report.ok
    for each, poses in seen.items():
        poses = np.array(poses)
        assert np.abs(look(each, 2, 60) - poses).max() < 1e-4
        assert (poses[-1, :, 2, 3].max() > 1.0) == (each.name == pulled)
