"""Long chains of short links that slide along scenery or hit it: what moves one joint moves all that hang from it, so
that forces of velocities which are found at the wrong velocities feed on themselves."""

from dataclasses import replace

import numpy as np
import pytest

from core import Capsule, Joint, Plane, Simulation, State, compile_model
from core.kinematics import bias, kinematics, link_poses, motions, whole
from core.mechanisms import chain
from core.mechanisms_large import bridge, pendulum_chain, snake
from core.spatial import exponential, pose, quaternion_matrix

LENGTH = 0.05


def sliding(links: int, *, substeps: int, frames: int) -> np.ndarray:
    """The energy (frames,) [J] of a snake that moves along itself around a smooth beam at 1 m/s."""
    linkage = snake(links, damping=0.0)
    for link in linkage.links():
        link.shapes = [replace(shape, friction=0.0) for shape in link.shapes]
    model = compile_model(linkage)
    poses = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
    later = poses.copy()
    later[:-1] = poses[1:]
    later[-1, :3, 3] += poses[-1, :3, 3] - poses[-2, :3, 3]
    state = model.state_from_poses(poses, later, float(np.linalg.norm(poses[1, :3, 3] - poses[0, :3, 3])))
    simulation = Simulation(model, scenery=bridge(links), state=state, substeps=substeps)
    list(simulation.run(frames))
    return simulation.trajectory.energy


def test_a_chain_that_slides_around_a_beam_without_friction_keeps_its_energy():
    """A contact that holds a chain on its curve works on nothing; steps that left it out of what they expect to come
    took and gave six times as much."""
    energy = sliding(60, substeps=40, frames=6)
    # the first frame meets the beam
    assert np.ptp(energy[1:]) < 5e-4 * energy[0]


def test_a_rope_that_spins_around_a_beam_gains_no_energy():
    """Each link rolls under the friction of the beam, by which the chain turns at the speed that contacts leave it and
    not at that before: found at the latter, forces fed on themselves and brought in 20 times the energy."""
    links, spin, short = 128, 10.0, 1e-4
    model = compile_model(snake(links))
    poses = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
    turn = quaternion_matrix(exponential(np.array([0.0, spin * short, 0.0])))
    state = model.state_from_poses(poses, poses @ pose(turn, np.zeros(3)), short)
    simulation = Simulation(model, scenery=bridge(links), state=state, frame_time=1 / 360, substeps=1)
    list(simulation.run(13))
    energy = simulation.trajectory.energy
    assert (np.diff(energy) < 0.0).all()


def test_a_long_chain_that_hits_a_peg_loses_energy():
    """Links that are stopped turn by half a radian in the step: what is found from their velocities before is wrong by
    so much that it exploded, with contacts by the thousand."""
    links, speed = 400, 1.5
    model = compile_model(pendulum_chain(links, damping=0.5))
    v = np.zeros(model.nv)
    v[0] = speed
    along, reach = np.array([1.0, 0.0, -1.0]) / np.sqrt(2.0), links * LENGTH
    before = Simulation(model, state=State(model.coordinates.zero(), v), gravity=np.zeros(3))
    way = before.moving(model.names[-1])[1][3:]
    radius = 0.02 * reach
    middle = 0.5 * reach * along + way / np.linalg.norm(way) * (radius + 0.5 * LENGTH)
    across = np.array([0.0, 0.2 * reach, 0.0])
    peg = Capsule(middle - across, middle + across, radius)
    simulation = Simulation(
        model, scenery=[peg], state=State(model.coordinates.zero(), v), substeps=20, gravity=np.zeros(3)
    )
    most = 0
    for _ in simulation.run(4):
        memory = simulation.state.memory
        most = max(most, 0 if memory is None else len(memory.contacts))
    energy = simulation.trajectory.energy
    # a rod of 2 kg/m about its end
    assert energy[0] == pytest.approx(0.5 * 2.0 * reach**3 / 3.0 * speed**2, rel=1e-3)
    assert (np.diff(energy) <= 0.0).all()
    assert 0 < most < 60


def test_links_turn_as_their_joints_go_on():
    """Bias accelerations of all links: second differences of their places while joints keep their velocities."""
    model = compile_model(chain(60, "spherical", length=0.1))
    rng = np.random.default_rng(0)
    q = model.coordinates.integrate(model.coordinates.zero(), rng.standard_normal(model.nv), 0.2)
    v, short, slot = rng.standard_normal(model.nv), 1e-4, model.assembly.slot
    kin = kinematics(model, q)
    moving = motions(model, kin, v)
    turning = whole(model, kin, *bias(model, kin, moving, np.zeros(3))[1:])[slot]
    twist, arm = moving.links[slot], kin.poses[slot, :3, 3] - kin.origins[slot]
    velocity = twist[:, 3:] + np.cross(twist[:, :3], arm)
    found = turning[:, 3:] + np.cross(turning[:, :3], arm) + np.cross(twist[:, :3], velocity)
    before, now, after = (
        link_poses(model, model.coordinates.integrate(q, v, t))[0][slot, :3, 3] for t in (-short, 0.0, short)
    )
    expected = (before - 2.0 * now + after) / short**2
    assert np.abs(expected).max() > 10.0
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_a_rope_that_is_thrown_onto_the_floor_stays_on_it():
    """It went in by 13 mm where what a link meets on a curve was only that of the links near it."""
    linkage = chain(40, "spherical", length=0.05, mass=0.05, radius=0.01, damping=2e-3, horizontal=True)
    first = next(linkage.links())
    first.joint, first.position = Joint("free"), np.array([0.0, 0.0, 0.6])
    model = compile_model(linkage)
    v = 0.3 * np.random.default_rng(1).standard_normal(model.nv)
    v[:6] = 3.0, 0.0, 0.0, 1.0, 0.0, 0.0
    simulation = Simulation(model, scenery=[Plane()], state=State(model.rest_state().q, v))
    list(simulation.run(37))
    assert simulation.trajectory.penetration.max() < 1e-3
