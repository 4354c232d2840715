"""Long chains of short links that slide along scenery or hit it: what moves one joint moves all that hang from it, so
that forces of velocities which are found at the wrong velocities feed on themselves."""

from dataclasses import replace

import numpy as np
import pytest

from core import Adaptive, Capsule, Joint, Linkage, Motion, Plane, Simulation, State, World, compile_model
from core.constraints import curving, gather
from core.contact import tangents
from core.kinematics import kinematics, link_poses, motions
from core.mechanisms import chain
from core.mechanisms_large import bridge, pendulum_chain, snake
from core.revision import FixedPoint
from core.spatial import exponential, pose, quaternion_matrix

LENGTH = 0.05


def sliding(linkage: Linkage, *, substeps: int, frames: int, adaptive: Adaptive | None = None) -> np.ndarray:
    """The energy (frames,) [J] of a snake that moves along itself around its beam at 1 m/s."""
    model = compile_model(linkage)
    poses = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
    later = poses.copy()
    later[:-1] = poses[1:]
    later[-1, :3, 3] += poses[-1, :3, 3] - poses[-2, :3, 3]
    state = model.state_from_poses(poses, later, float(np.linalg.norm(poses[1, :3, 3] - poses[0, :3, 3])))
    simulation = Simulation(model, scenery=bridge(model.n), state=state, substeps=substeps, adaptive=adaptive)
    list(simulation.run(frames))
    return simulation.trajectory.energy


def test_a_chain_that_slides_around_a_beam_without_friction_keeps_its_energy():
    """A contact that holds a chain on its curve works on nothing; steps that left it out of what they expect to come
    took and gave six times as much."""
    linkage = snake(60, damping=0.0)
    for link in linkage.links():
        link.shapes = [replace(shape, friction=0.0) for shape in link.shapes]
    energy = sliding(linkage, substeps=40, frames=6)
    # the first frame meets the beam
    assert np.ptp(energy[1:]) < 5e-4 * energy[0]


@pytest.mark.slow
def test_a_snake_that_slips_off_its_beam_gains_no_energy_however_few_joints_move():
    """Whipping ends work on what lies on the beam. Revisions that ended as soon as they overshot, and at a tenth of a
    zone's length, let it gain from frame 44 on; with 300 links and 50 joints it exploded."""
    energy = sliding(snake(250), substeps=30, frames=56, adaptive=Adaptive(joints=40))
    assert (np.diff(energy[1:]) < 0.0).all()


@pytest.mark.parametrize("slope", [-4.0, -1.5, -0.5, 0.5, 0.8])
def test_a_fixed_point_is_found_though_answers_overshoot(slope):
    """Of what answers in proportion, the third guess is the answer, as far as LEAST allows."""
    point, meant, seen = FixedPoint(), np.array([1.0, -2.0]), []
    for _ in range(4):
        off = slope * meant - meant
        seen.append(float(np.abs(off).max()))
        meant = point.next(meant, off, seen[-1])
    assert min(seen[2:]) < 1e-12 if slope < 0.0 else seen[-1] < 0.6 * seen[0]


@pytest.mark.parametrize(("spin", "substeps"), [(10.0, 1), (20.0, 1), (40.0, 1), (40.0, 2)])
def test_a_rope_that_spins_around_a_beam_gains_no_energy(spin, substeps):
    """Each link rolls under the friction of the beam, by which the chain turns at the speed that contacts leave it and
    not at that before: found at the latter, forces fed on themselves and brought in 20 times the energy. What contacts
    are met with on curves has to count for friction and energy too: without, the faster one exploded in frame 4."""
    links, short = 128, 1e-4
    model = compile_model(snake(links))
    poses = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
    turn = quaternion_matrix(exponential(np.array([0.0, spin * short, 0.0])))
    state = model.state_from_poses(poses, poses @ pose(turn, np.zeros(3)), short)
    simulation = Simulation(model, scenery=bridge(links), state=state, frame_time=1 / 360, substeps=substeps)
    list(simulation.run(13))
    energy = simulation.trajectory.energy
    assert (np.diff(energy) < 0.0).all()


def test_contacts_are_met_on_the_curves_of_their_links():
    """Rows have the velocities by which gaps close, and surfaces slip, within a step in which joints keep theirs."""
    model = compile_model(chain(60, "spherical", length=0.1, radius=0.02, horizontal=True))
    rng = np.random.default_rng(0)
    q = model.coordinates.integrate(model.coordinates.zero(), rng.standard_normal(model.nv), 0.02)
    v, h = 3.0 * rng.standard_normal(model.nv), 1e-3
    kin, later = (kinematics(model, model.coordinates.integrate(q, v, t)) for t in (0.0, h))
    floor = Plane(np.array([0.0, 0.0, kin.poses[:-1, 2, 3].min() - 0.03]))
    world = World(model, (floor,))
    moving = motions(model, kin, v)
    still = np.zeros((model.assembly.links, 6))
    near = gather(world, kin, moving, still, q, v, h, np.zeros(model.assembly.links + 1, dtype=int))
    rows = near.rows(world, kin)
    contacts = rows.contacts
    assert len(contacts) > 10
    straight = rows.velocity(model, kin, v, None).reshape(-1, 3)
    rows.curve[:] = curving(model, contacts, kin, moving, later.poses, h)
    # what is round touches below its middle, wherever that goes
    center = np.append(contacts.center, np.ones((len(contacts), 1)), axis=1)
    local = np.linalg.solve(kin.poses[contacts.link], center[..., None])
    frames, mean = tangents(contacts.normal), 0.0
    for t, weight in zip(*np.polynomial.legendre.leggauss(4)):
        end = kinematics(model, model.coordinates.integrate(q, v, 0.5 * h * (1.0 + t)))
        twist = motions(model, end, v).links[contacts.link]
        center = (end.poses[contacts.link] @ local)[:, :3, 0]
        arm = center + contacts.point - contacts.center - end.origins[contacts.link]
        velocity = twist[:, 3:] + np.cross(twist[:, :3], arm)
        mean = mean + 0.5 * weight * (frames @ velocity[..., None])[..., 0]
    curved = rows.velocity(model, kin, v, None).reshape(-1, 3)
    np.testing.assert_allclose(curved, mean, atol=1e-4)
    lower = (later.poses[contacts.link] @ local)[:, 2, 0] - contacts.center[:, 2]
    np.testing.assert_allclose(curved[:, 0], lower / h, atol=1e-9)
    assert np.abs(straight - mean).max() > 0.1


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


def test_a_tail_that_is_dragged_over_the_floor_lies_on_it_where_frames_are_seen():
    """Held on the floor in the middles of steps, its end was 1.4 mm in it at their ends."""
    linkage = chain(100, "spherical", length=0.03, mass=0.02, radius=0.01, damping=2e-3, horizontal=True)
    next(linkage.links()).keyed = True
    model = compile_model(linkage)
    poses = np.tile(link_poses(model, model.coordinates.zero())[0][model.assembly.slot], (73, 1, 1, 1))
    poses[:, :, 0, 3] -= (1.5 * np.sin(np.linspace(0.0, 3.0, 73)) ** 2)[:, None]
    poses[:, :, 1, 3] += (0.5 * np.sin(np.linspace(0.0, 6.0, 73)))[:, None]
    poses[:, :, 2, 3] += 0.3
    simulation = Simulation(model, scenery=[Plane()], motion=Motion(poses, 1 / 24))
    list(simulation.run(10))
    assert simulation.trajectory.contacts.max() > 0
    assert simulation.trajectory.penetration.max() < 5e-4
