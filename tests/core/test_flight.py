"""Free flight: what is kept exactly, and what is taken out where no step is short enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core import State, compile_model
from core.flight import Flight
from core.joint import Joint
from core.kinematics import kinematics, motions
from core.mechanisms import humanoid, random_tree
from scripts.cases.tunnel import PLATES, against, run

NOTHING = np.empty((0, 2), dtype=int)


def floating(seed: int):
    """A chain of random joints whose first link flies, or, for seed 0, a person."""
    if seed == 0:
        return compile_model(humanoid())
    linkage = random_tree(3 + seed, seed=seed, branching=0.0)
    next(linkage.links()).joint = Joint("free")
    return compile_model(linkage)


def balance(model, state: State) -> tuple[np.ndarray, float]:
    """Momentum and angular momentum about the world's origin (6,), and kinetic energy, link by link."""
    kin = kinematics(model, state.q)
    links = motions(model, kin, state.v).links[:-1]
    momenta = (kin.inertia @ links[:, :, None])[:, :, 0]
    turning = momenta[:, :3] + np.cross(kin.origins[:-1], momenta[:, 3:])
    return np.append(momenta[:, 3:].sum(axis=0), turning.sum(axis=0)), 0.5 * float((links * momenta).sum())


@pytest.mark.parametrize("seed", range(10))
def test_calming_takes_out_energy_and_no_momentum(seed):
    """What a whirl has gained goes; where the body flies to, and how it turns on the whole, stays."""
    rng = np.random.default_rng(seed)
    model = floating(seed)
    q = model.coordinates.integrate(model.coordinates.zero(), rng.normal(size=model.nv), 1.0)
    before = State(q, rng.normal(size=model.nv))
    after = replace(before, v=before.v + np.append(np.zeros(6), 5.0 * rng.normal(size=model.nv - 6)))
    flight = Flight(model, model.loops.closed())
    after, _ = flight.keep(before, after, NOTHING, np.zeros(3))
    calmed = flight.calmed(before, after, NOTHING)
    momentum, energy = balance(model, calmed)
    np.testing.assert_allclose(
        momentum, balance(model, before)[0], rtol=0, atol=1e-11 * np.abs(before.v).max() * model.mass.sum()
    )
    assert energy == pytest.approx(balance(model, before)[1], rel=1e-11)
    assert np.array_equal(calmed.q, after.q)


def test_calm_motion_is_left_alone():
    """Only a gain is taken out: a body that has lost energy in its joints does not get it back."""
    model = floating(3)
    before = State(model.coordinates.zero(), np.random.default_rng(3).normal(size=model.nv))
    flight = Flight(model, model.loops.closed())
    after, _ = flight.keep(before, replace(before, v=0.5 * before.v), NOTHING, np.zeros(3))
    np.testing.assert_allclose(flight.calmed(before, after, NOTHING).v, after.v, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_a_whirl_that_no_step_can_follow_stays_finite():
    """A light box that heavy rods drag about turns at a thousand radians a second; it doubled its energy and ended in
    an error. A frame in which it touches something is no free flight, and may gain a little."""
    case = against(np.random.default_rng(673), PLATES[673 % 3])
    energy = run(case).energy
    assert (energy - np.minimum.accumulate(energy)).max() < 0.1 * energy[0]
