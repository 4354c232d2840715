"""The port of a device: whatever is wanted of it, forces stay in their limits and give back no more than was put in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.port import GAP, LOAN, Limits, Port

DT = 1e-3
UNIT = np.array([1 / 0.05, 1 / 0.05, 1 / 0.05, 1.0, 1.0, 1.0])
"""Torques as forces at 5 cm."""
wrenches = st.tuples(*[st.floats(-40, 40)] * 6)


def size(wrench) -> float:
    return float(np.linalg.norm(np.asarray(wrench) * UNIT))


def taken(port: Port, wanted, ways) -> np.ndarray:
    """The forces (n, 6) of so many turns, after each of which the hand moves by one of the `ways` (n, 6)."""
    forces, way = [], (0.0,) * 6
    for k, (want, after) in enumerate(zip(wanted, ways)):
        port.moved(way, k * DT)
        forces.append(port.turn(tuple(want), k * DT, DT))
        way = tuple(after)
    port.moved(way, len(forces) * DT)
    return np.array(forces)


@given(
    seed=st.integers(0, 10_000), slew=st.sampled_from([300.0, 5000.0, 50_000.0]), worst=st.booleans(),
    pace=st.integers(1, 200),
)  # fmt: skip
def test_no_hand_and_no_loop_gets_out_more_than_was_put_in(seed, slew, worst, pace):
    """Passivity is what keeps a hand safe, so it must hold against adversaries: forces that jump about, and hands at
    top speed that turn whenever it hurts."""
    rng = np.random.default_rng(seed)
    port, force, way, checked = Port(Limits(slew=slew)), np.zeros(6), np.zeros(6), 0.0
    put_in = given_back = 0.0
    for k in range(600):
        port.moved(tuple(way), k * DT)
        wanted = 40.0 * np.sin(0.01 * k * rng.uniform(0.5, 1.5, 6) + seed) / UNIT
        before, force = force, np.array(port.turn(tuple(wanted), k * DT, DT))
        assert size(force) <= 8.0 + 1e-9
        assert size(force - before) <= slew * DT + 1e-9
        along = force * UNIT
        if worst and size(force) > 0:
            along = along / np.linalg.norm(along) * (1.0 if (k // pace) % 2 else -1.0)
        else:
            along = rng.normal(size=6)
            along /= np.linalg.norm(along)
        way = 2.0 * DT * along * UNIT
        work = float(force @ way)
        put_in, given_back = put_in + max(-work, 0.0), given_back + max(work, 0.0)
        assert given_back <= put_in + LOAN + 1e-9
        checked = max(checked, size(force))
    assert port.energy == pytest.approx(put_in - given_back + float(force @ way), abs=1e-9)
    assert checked > 0.0


def test_a_spring_is_felt_as_it_is():
    """What is passive by itself must not be touched, or every hand would feel the controller and not the character."""
    port, x, differences = Port(Limits(force=20.0, slew=20_000.0)), 0.0, []
    for k in range(3000):
        before, x = x, 0.03 * (1.0 - math.cos(2.0 * math.pi * k * DT))
        port.moved((0, 0, 0, x - before, 0, 0), k * DT)
        force = port.turn((0, 0, 0, -300.0 * x, 0, 0), k * DT, DT)
        if k > 200:
            differences.append(abs(force[3] + 300.0 * x))
    # the samples of a spring are active: between two it gives back a little more than it took
    assert np.quantile(differences, 0.9) < 0.05
    assert max(differences) < 2.0


def test_a_motor_gives_what_was_put_in_and_stops():
    """A simulation that has gone wild is one: the hand feels it fade, not pull on."""
    port = Port()
    braked = taken(port, [(0, 0, 0, -5, 0, 0)] * 500, [(0, 0, 0, 4e-4, 0, 0)] * 500)
    assert braked[-1, 3] == -5.0
    pulled = taken(port, [(0, 0, 0, 5, 0, 0)] * 2000, [(0, 0, 0, 4e-4, 0, 0)] * 2000)
    assert pulled.max() > 4.0
    assert abs(pulled[-1, 3]) < 1e-2
    assert port.given_back <= port.put_in + LOAN


def test_forces_that_are_no_numbers_and_devices_that_are_silent_get_none():
    """A fault is told once, and what acts goes away at the slew rate, not at once."""
    said: list[str] = []
    port = Port(Limits(slew=1000.0), said.append)
    taken(port, [(0, 0, 0, -5, 0, 0)] * 500, [(0, 0, 0, 4e-4, 0, 0)] * 500)
    force = [port.turn((math.nan,) * 6, 0.5 + k * DT, DT)[3] for k in range(10)]
    assert force[:3] == pytest.approx([-4.0, -3.0, -2.0])
    assert force[-1] == 0.0
    assert said == ["the force for the device is not finite; it gets none"]
    now = 0.6
    for k in range(30):
        port.moved((0, 0, 0, 4e-4, 0, 0), now + k * DT)
        held = port.turn((0, 0, 0, -5, 0, 0), now + k * DT, DT)
    assert held[3] < -1.0
    silent = [port.turn((0, 0, 0, -5, 0, 0), now + (30 + k) * DT, DT)[3] for k in range(30)]
    assert silent[round(GAP / DT) - 5] < -1.0
    assert silent[-1] == 0.0


@pytest.mark.parametrize("name", ["force", "slew", "speed", "jump", "radius"])
def test_limits_that_limit_nothing_are_refused(name):
    """Zero, or no number, would be no force or any."""
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"limit of {name}"):
            Limits(**{name: value})
    assert Limits(slew=6000.0, speed=2.0).stiffness == 3000.0
