"""A hand's springs: what they pull with, how stiff they may be, and how they go when something is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.hand import FADE, PATIENCE, Hand, Springs, rotation_between, stable_damping, stable_stiffness
from core.spatial import exponential

PERIOD = 1 / 60
UPRIGHT = [1.0, 0.0, 0.0, 0.0]


def held(
    place=(0.0, 0.0, 0.0), velocity=(0.0, 0.0, 0.0), *, grip=1, freedoms=3, mass=10.0, turn=UPRIGHT, spin=(0.0,) * 3
):
    return [grip, freedoms, mass, 1.0, *place, *turn, *velocity, *spin]


def holding(say=lambda line: None, springs=None, **what) -> Hand:
    """A hand that has held a link at rest for a while, at the time 0."""
    hand = Hand(springs or Springs(stiffness=200.0, turning=3.0), say)
    hand.move([-0.2, 0.0, 5.0, 6.0, 7.0, *UPRIGHT], -0.2)
    hand.learn(held(**what), -0.2, -0.2, PERIOD)
    for k in range(1, 201):
        now = -0.2 + 1e-3 * k
        hand.move([now, 0.0, 5.0, 6.0, 7.0, *UPRIGHT], now)
        hand.pull(now, 1e-3, True)
    return hand


def test_a_hand_pulls_by_its_springs_stiffness():
    """Morin and Redon 2007, eq. 9: f_u = k_s (x_h - x_s), from where hand and link met."""
    hand = holding()
    assert hand.share == 1.0
    assert hand.pulls.tolist() == [0.0] * 6
    hand.move([0.001, 0.0, 5.02, 6.0, 6.99, *UPRIGHT], 0.001)
    for k in range(200):
        hand.move([0.002 + 1e-3 * k, 0.0, 5.02, 6.0, 6.99, *UPRIGHT], 0.002 + 1e-3 * k)
    hand.pull(0.201, 1e-3, True)
    assert hand.pulls.tolist() == pytest.approx([0, 0, 0, 4.0, 0.0, -2.0], abs=1e-6)


def test_it_turns_what_it_holds_where_its_device_does():
    """Torques for devices of 6 freedoms: along the rotation from the link's axes to the hand's."""
    tilt = np.array([0.1, -0.2, 0.05])
    for freedoms, expected in ((6, 3.0 * tilt), (3, np.zeros(3))):
        hand = holding(freedoms=freedoms)
        for k in range(200):
            hand.move([1e-3 * (k + 1), 0.0, 5.0, 6.0, 7.0, *exponential(tilt)], 1e-3 * (k + 1))
        hand.pull(0.2, 1e-3, True)
        assert hand.pulls.tolist()[:3] == pytest.approx(expected.tolist(), abs=1e-6)


def test_links_go_on_between_steps_without_a_jump():
    """Thirty steps a second told as they come would be thirty kicks a second."""
    hand = holding()
    places, now = [], 0.0
    for step in range(30):
        now = step * PERIOD
        x = 0.05 * math.sin(4.0 * now)
        hand.learn(held((x, 0, 0), (0.2 * math.cos(4.0 * now), 0, 0)), now, now, PERIOD)
        for k in range(16):
            hand.move([now, 0.0, 5.0, 6.0, 7.0, *UPRIGHT], now)
            hand.pull(now + 1e-3 * k, 1e-3, True)
            spring = 200.0 * (hand.place[0] - 0.05 * math.sin(4.0 * (now + 1e-3 * k)))
            places.append((-hand.pulls[3], spring, hand._goes[0]))
    force, spring, _ = np.array(places[100:]).T
    assert np.abs(np.diff(force)).max() < 2.5
    assert np.abs(np.array(places)[100:, 2]).max() < 0.3


@pytest.mark.parametrize("simulated", [True, False])
def test_forces_fade_when_another_loop_is_silent(simulated):
    """A loop that dies is noticed within 0.2 s by the others, forces end smoothly, and one line says it."""
    said: list[str] = []
    hand = holding(said.append)
    hand.move([0.0, 0.0, 5.1, 6.0, 7.0, *UPRIGHT], 0.0)
    forces = []
    for k in range(400):
        now = 1e-3 * k
        if not simulated:
            hand.move([now, 0.0, 5.1, 6.0, 7.0, *UPRIGHT], now)
        hand.pull(now, 1e-3, simulated or now < PATIENCE)
        forces.append(hand.pulls[3])
    gone = next(k for k in range(100, 400) if abs(forces[k]) < 1e-9)
    assert abs(forces[140]) > 15.0
    assert PATIENCE + FADE <= 0.2
    assert gone <= 200
    assert np.abs(np.diff(forces[100:])).max() < 1.5 * 20.0 / (FADE / 1e-3)
    assert len(said) == 1
    assert ("device" if simulated else "simulation") in said[0]
    # it comes back as smoothly, a device from where the link is: it may have been anywhere meanwhile
    for k in range(100):
        now = 0.4 + 1e-3 * k
        hand.move([now, 0.0, 5.1, 6.0, 7.0, *UPRIGHT], now)
        hand.pull(now, 1e-3, True)
        forces.append(hand.pulls[3])
    assert forces[-1] == pytest.approx(0.0 if simulated else 20.0, abs=0.1)
    assert np.abs(np.diff(forces[401:])).max() < 2.0


def test_a_hand_that_is_lost_lets_go_until_it_grips_anew():
    """A device that jumps must not take the character along."""
    said: list[str] = []
    hand = holding(said.append)
    hand.move([1e-3, 1.0, 6.0, 6.0, 7.0, *UPRIGHT], 1e-3)
    hand.pull(1e-3, 1e-3, True)
    assert abs(hand.pulls[3]) <= 200.0
    for k in range(2, 100):
        hand.move([1e-3 * k, 1.0, 6.0, 6.0, 7.0, *UPRIGHT], 1e-3 * k)
        hand.pull(1e-3 * k, 1e-3, True)
    assert hand.lost
    assert hand.pulls.tolist() == [0.0] * 6
    assert said == ["the device's pose has jumped or is not finite; its hand lets go"]
    hand.learn(held(grip=2), 0.1, 0.1, PERIOD)
    hand.move([0.101, 1.0, 6.0, 6.0, 7.0, *UPRIGHT], 0.101)
    hand.pull(0.2, 0.1, True)
    assert not hand.lost
    assert hand.place == [0.0, 0.0, 0.0]


def test_springs_beyond_the_stable_range_are_lowered_and_it_is_said():
    """Literal values of the stated formula: 0.5 m / (T + 2 τ)², and 0.5 · 0.2 kg / (2 τ)²."""
    assert stable_stiffness(2.0, 0.02) == pytest.approx(2500.0)
    assert stable_stiffness(2.0, 0.02, 0.005) == pytest.approx(min(1.0 / 9e-4, 0.1 / 1e-4))
    assert stable_stiffness(2.0, 0.01, 0.05) == pytest.approx(10.0)
    assert stable_damping(10.0) == 10.0
    assert stable_damping(100.0) == pytest.approx(0.1 / 0.004)
    assert stable_damping(100.0, 0.048) == pytest.approx(1.0)
    said: list[str] = []
    hand = holding(said.append, Springs(stiffness=1e9), mass=2.0)
    assert hand.stiffness[0] == pytest.approx(3600.0)
    assert hand.damping[0] == pytest.approx(1.4 * math.sqrt(7200.0))
    assert said == ["the stiffness is beyond the stable range and was lowered; take shorter steps for more"]
    for _ in range(5):
        hand.learn(held(mass=2.0), 0.0, 0.0, PERIOD)
    assert len(said) == 1
    assert holding(springs=Springs(stiffness=1e9, stiffest=700.0)).stiffness[0] == 700.0


def test_nothing_is_pulled_harder_than_a_hand_can():
    """A hand that has gone far away pulls a character; it does not tear it apart."""
    hand = holding(springs=Springs(stiffness=200.0, strength=30.0))
    for k in range(300):
        hand.move([1e-3 * k, 0.0, 5.0 + 1e-3 * k, 6.0 + 1e-3 * k, 7.0, *UPRIGHT], 1e-3 * k)
        hand.pull(1e-3 * k, 1e-3, True)
    assert np.linalg.norm(hand.pulls.tolist()) == pytest.approx(30.0)


@pytest.mark.parametrize("name", ["stiffness", "turning", "strength", "stiffest"])
def test_springs_that_are_none_are_refused(name):
    for value in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=name):
            Springs(**{name: value})


def test_rotation_between_is_the_shortest_way():
    """Half a turn and a little more goes back the other way."""
    assert rotation_between(UPRIGHT, [math.cos(1.7), 0.0, math.sin(1.7), 0.0]) == pytest.approx(
        [0.0, 3.4 - 2.0 * math.pi, 0.0]
    )
