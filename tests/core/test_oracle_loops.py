"""The oracles of closed loops against published values, and the closed mechanisms against the oracles."""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import oracle_loops
import pytest
from oracle import layout

from core.joint import FREEDOMS, Joint
from core.linkage import Link, Linkage
from core.mechanisms_closed import (
    ANDREWS_START,
    BRICARD_GRAVITY,
    FOUR_BAR_TORQUE,
    andrews,
    andrews_wrenches,
    bricard,
    four_bar,
    n_four_bar,
    n_four_bar_velocity,
)
from core.mechanisms_held import gymnast, high_bar, holding_hands, snapping_chain, swing, swing_motion
from core.model import State, compile_model

GRAVITY = np.array([0.0, 0.0, -9.81])
MAKERS = {
    "n_four_bar": lambda: n_four_bar(3), "four_bar": four_bar, "andrews": andrews, "bricard": bricard,
    "high_bar": high_bar, "swing": swing, "holding_hands": holding_hands, "snapping_chain": snapping_chain,
}  # fmt: skip


@pytest.fixture
def integrator() -> None:
    """Skips the test where scipy is missing, fails it where oracles are required."""
    if importlib.util.find_spec("scipy") is None:
        reason = "this oracle needs 'scipy', which is not installed"
        assert os.environ.get("ARMATURE_DYNAMICS_REQUIRE_ORACLES") != "1", reason
        pytest.skip(reason)


def at_rest(linkage: Linkage) -> np.ndarray:
    return compile_model(linkage).coordinates.zero()


def accelerated(linkage: Linkage, q, v, *, tau=None, wrenches=None, gravity=GRAVITY) -> np.ndarray:
    links = sum(1 for _ in linkage.links())
    tau = np.zeros(len(v)) if tau is None else tau
    wrenches = np.zeros((links, 6)) if wrenches is None else wrenches
    return oracle_loops.closed_acceleration(linkage, q, v, tau, wrenches, gravity)


@pytest.mark.usefixtures("integrator")
def test_the_n_four_bar_oracle_gives_the_published_positions():
    """IFToMM A02, N = 2 and 40, with eight digits."""
    position, velocity = oracle_loops.n_four_bar(2, [5.0, 10.0])
    assert position == pytest.approx(np.array([(-0.81131046, -0.58461555), (0.32845811, 0.94451854)]), abs=6e-9)
    assert velocity[1] == pytest.approx([1.42305147, -0.49486885], abs=6e-9)
    position, _ = oracle_loops.n_four_bar(40, [10.0])
    assert position[0] == pytest.approx([0.18051223, 0.98357274], abs=6e-9)


@pytest.mark.usefixtures("integrator")
def test_the_squeezer_oracle_gives_the_reference_solution():
    """The DAE test set's solution at 0.03 s, when the crank has turned two and a half times."""
    angles = oracle_loops.andrews([0.005, 0.01, 0.02, 0.03])
    assert angles[:3, 0] == pytest.approx([0.2110763859, 2.1601131315, 8.1849058897], abs=1e-8)
    assert angles[3] == pytest.approx(np.array([
        15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948, 0.5244099658805304,
        0.5347301163226948, 1.048080741042263,
    ]), abs=1e-8)  # fmt: skip


@pytest.mark.usefixtures("integrator")
def test_the_bricard_oracle_gives_the_published_positions():
    """IFToMM A04, over a whole period."""
    corner = oracle_loops.bricard([0.5, 1.0, 10.0])[:, 2]
    assert corner == pytest.approx(np.array([
        (0.7747178080, -0.9798150477, -0.1999061590), (0.2744813193, -0.8867079387, -0.4623300027),
        (0.9997309873, -0.9999999638, -0.0002689765),
    ]), abs=3e-10)  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_closed_mechanisms_start_assembled(name):
    """A simulation that starts with open loops begins with a jump. The squeezer's published start is good to 1e-12."""
    linkage = MAKERS[name]()
    assert np.abs(oracle_loops.closure_gap(linkage, at_rest(linkage))).max() < (1e-12 if name == "andrews" else 1e-14)


def test_mechanisms_have_one_freedom():
    """Constraints of planar loops and of Bricard's are not independent; counting them would leave none."""
    for linkage in (n_four_bar(2), n_four_bar(5), four_bar(), andrews(), bricard()):
        q = at_rest(linkage)
        assert len(q) - oracle_loops.independent_constraints(linkage, q) == 1


def test_the_high_bar_is_regular():
    """Parallel axes of elbows and bar would make its constraints dependent in every pose."""
    linkage = high_bar()
    jacobian = oracle_loops.constraint_jacobian(linkage, at_rest(linkage))
    assert np.linalg.svd(jacobian, compute_uv=False).min() > 0.1


def test_the_n_four_bar_has_the_published_energy():
    """35.835 J at the start for N = 2, and compatible velocities: B0 at 1 m/s along x."""
    linkage = n_four_bar(2)
    q, v = at_rest(linkage), n_four_bar_velocity(linkage)
    assert np.abs(oracle_loops.constraint_jacobian(linkage, q) @ v).max() < 1e-12
    heights = [(link.rest_pose() @ [*link.center_of_mass, 1.0])[2] for link in linkage.links()]
    kinetic = v @ oracle_loops.mass_matrix(linkage, q) @ v / 2
    assert kinetic + 9.81 * sum(heights) == pytest.approx(35.835, abs=1e-12)
    # B0 is the origin of the first coupler's frame
    tips = [oracle_loops.link_poses(linkage, oracle_loops.displaced(linkage, q, t * v)) for t in (-1e-6, 1e-6)]
    moved = tips[1][linkage["coupler.0"]][:3, 3] - tips[0][linkage["coupler.0"]][:3, 3]
    assert (moved / 2e-6).astype(float) == pytest.approx([1.0, 0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("angle", [0.0, 0.7, -2.0])
def test_closed_acceleration_of_the_n_four_bar(angle):
    """The dense oracle against the one-line equation of motion, with redundant constraints."""
    linkage = n_four_bar(3)
    turn = n_four_bar_velocity(linkage)
    found = accelerated(linkage, angle * turn, 1.3 * turn)
    assert found == pytest.approx(9.81 * 5.0 / (3 + 4 / 3) * np.sin(angle) * turn, abs=1e-9)


def test_closed_acceleration_of_the_squeezer():
    """The DAE test set's initial accelerations check every mass, length and the spring of the linkage."""
    linkage = andrews()
    model = compile_model(linkage)
    wrenches = andrews_wrenches(model, model.rest_state())
    found = accelerated(linkage, np.zeros(7), np.zeros(7), wrenches=wrenches, gravity=np.zeros(3))
    found = dict(zip(model.names, found))
    assert found.pop("K1") == pytest.approx(14222.4439199541, abs=1e-6)
    assert found.pop("K2") == pytest.approx(-10666.8329399656, abs=1e-6)
    assert list(found.values()) == pytest.approx([0.0] * 5, abs=1e-5)


@pytest.mark.usefixtures("integrator")
def test_closed_acceleration_of_the_squeezer_in_motion():
    """Where it is fast: 36,000 rad/s² and more."""
    linkage = andrews()
    model = compile_model(linkage)
    order = [list(ANDREWS_START).index(name) for name in model.names]
    angles, v, expected = (values[order] for values in oracle_loops.andrews_motion(0.0123))
    q = angles - np.array(list(ANDREWS_START.values()))[order]
    wrenches = andrews_wrenches(model, State(q, v))
    found = accelerated(linkage, q, v, wrenches=wrenches, gravity=np.zeros(3))
    assert found == pytest.approx(expected, abs=1e-8 * np.abs(expected).max())


@pytest.mark.usefixtures("integrator")
@pytest.mark.parametrize("time", [1e-9, 0.7, 3.0])
def test_closed_acceleration_of_bricard(time):
    """In space, with dependent constraints, at rest and in motion."""
    q, v, expected = oracle_loops.bricard_motion(time)
    found = accelerated(bricard(), q, v, gravity=BRICARD_GRAVITY)
    assert found == pytest.approx(expected, abs=1e-7)


def test_closed_acceleration_of_the_four_bar():
    """Khan and Krovi's equations, eq. 17 to 19, with the coupler's own mass in M22, away from the start."""
    linkage = four_bar()
    q = oracle_loops.assembled(linkage, np.array([0.4, 0.0, 0.0]))
    v = oracle_loops.compatible(linkage, q, np.array([-1.7, 0.0, 0.0]))
    poses = oracle_loops.link_poses(linkage, q)
    theta, alpha, phi = (float(np.arctan2(*poses[linkage[name]][[2, 0], 1])) for name in ("crank", "coupler", "rocker"))
    absolute = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    rates = absolute @ v
    (l1, l2, l3), m, g = (1.0, 2.5, 3.0), 1.0, 9.81
    cross = m * l1 * l2 / 2
    mass = np.diag([m * l1**2 / 3 + m * l1**2, m * l2**2 / 3, m * l3**2 / 3])
    mass[0, 1] = mass[1, 0] = cross * np.cos(alpha - theta)
    bias = cross * np.sin(alpha - theta) * np.array([-(rates[1] ** 2), rates[0] ** 2, 0.0])
    weight = m * g * np.array([1.5 * l1 * np.cos(theta), l2 / 2 * np.cos(alpha), l3 / 2 * np.cos(phi)])
    angles, lengths = np.array([theta, alpha, phi]), np.array([-l1, -l2, l3])
    jacobian = np.array([-lengths * np.sin(angles), lengths * np.cos(angles)])
    drift = np.array([-lengths * np.cos(angles), -lengths * np.sin(angles)]) @ rates**2
    forces = np.array([FOUR_BAR_TORQUE, 0.0, 0.0]) - bias - weight
    system = np.block([[mass, jacobian.T], [jacobian, np.zeros((2, 2))]])
    expected = np.linalg.solve(absolute, np.linalg.solve(system, np.concatenate((forces, -drift)))[:3])
    assert accelerated(linkage, q, v, tau=np.array([FOUR_BAR_TORQUE, 0.0, 0.0])) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("maker", "count", "left"), [(high_bar, 24, 23), (swing, 30, 28)])
def test_the_paper_s_figures_have_its_freedoms(maker, count, left):
    """Yamane and Nakamura, section 6: joint freedoms with closed loops, and after the right hand or both thighs."""
    linkage = maker()
    model = compile_model(linkage)
    virtual = {link.name: FREEDOMS[link.joint.kind] for link in linkage.virtual_links()}
    assert model.nv == 22
    assert model.nv + sum(virtual.values()) == count
    cut = ("bar.R",) if maker is high_bar else ("plate.L", "plate.R")
    assert model.nv + sum(freedoms for name, freedoms in virtual.items() if name not in cut) == left


def test_the_gymnast_weighs_what_a_man_does():
    """Welding must neither lose nor invent mass, nor move a standing man's center of mass."""
    linkage = gymnast({"upper_arm": 0.0, "forearm": 0.0, "thigh": 0.0, "shank": 0.0}, mass=80.0)
    masses = np.array([link.mass for link in linkage.links()])
    centers = np.array([(link.rest_pose() @ [*link.center_of_mass, 1.0])[:3] for link in linkage.links()])
    assert masses.sum() == pytest.approx(80.0)
    assert (masses @ centers / 80.0)[2] == pytest.approx(0.57 * 1.75, abs=0.02)


def test_the_swing_s_motion_starts_at_rest_and_grows():
    """Nothing jumps in the first frame; the top stays; the plate reaches the amplitude."""
    linkage = swing()
    motion = swing_motion(linkage, 300, 1 / 24, amplitude=1.0)
    names = [link.name for link in linkage.links()]
    poses = motion.poses[:, names.index("swing")]
    assert motion.poses[0] == pytest.approx(np.array([link.rest_pose() for link in linkage.links()]), abs=1e-12)
    assert poses[:, :3, 3] == pytest.approx(np.tile(linkage["swing"].position, (300, 1)), abs=1e-12)
    angle = np.arctan2(poses[:, 2, 1], poses[:, 1, 1])
    assert abs(angle[1]) < 1e-3
    assert 0.85 < np.abs(angle).max() <= 1.0


def two_chains(rng: np.random.Generator, kind: str) -> tuple[Linkage, Link]:
    """Two hinged chains in one linkage, and a virtual link between their ends."""
    linkage = Linkage()
    ends = []
    for chain in range(2):
        end = None
        for i in range(7):
            link = Link(f"{chain}.{i}", Joint(("spherical", "hinge", "universal")[i % 3]), mass=1.0 + 0.1 * i)
            link.position, link.inertia = 0.3 * rng.normal(size=3), np.diag([0.02, 0.03, 0.04])
            end = linkage.add(link, end)
        ends.append(end)
    virtual = linkage.connect(ends[1], ends[0], kind, at=0.2 * rng.normal(size=3))
    return linkage, virtual


@pytest.mark.parametrize("kind", ["fixed", "hinge", "prismatic", "universal", "spherical"])
def test_velocity_after_connection(kind):
    """Eq. 11 to 14 hold, the joint's constraint too, and two chains do as one that holds both."""
    rng = np.random.default_rng(3)
    linkage, virtual = two_chains(rng, kind)
    q = at_rest(linkage)
    v = rng.normal(size=sum(FREEDOMS[link.joint.kind] for link in linkage.links()))
    A = oracle_loops.mass_matrix(linkage, q)
    J1, J2, Jn = oracle_loops.connection_jacobians(linkage, q, virtual)
    after, none, impulse = oracle_loops.velocity_after_connection(A, J1, v, J2, None, Jn)
    assert none is None
    assert A @ (after - v) == pytest.approx(-(J1 - J2).T @ impulse, abs=1e-9)
    assert Jn.T @ impulse == pytest.approx(np.zeros(Jn.shape[1]), abs=1e-9)
    assert oracle_loops.constraint_jacobian(linkage, q) @ after == pytest.approx(0.0, abs=1e-8)
    assert after @ A @ after < v @ A @ v
    first = sum(at.stop - at.start for link, _, at in layout(linkage) if link.name.startswith("0."))
    one, two = slice(None, first), slice(first, None)
    after1, after2, _ = oracle_loops.velocity_after_connection(
        A[one, one], J1[:, one], v[one], J2[:, two], v[two], Jn, A[two, two]
    )
    assert np.concatenate((after1, after2)) == pytest.approx(after, abs=1e-9)


def test_two_balls_that_connect_go_on_together():
    """1 kg at 3 m/s welded to 2 kg at rest: 1 m/s, and an impulse of 2 N s."""
    one = np.eye(3)
    after1, after2, impulse = oracle_loops.velocity_after_connection(
        one, one, np.array([3.0, 0, 0]), one, np.zeros(3), np.zeros((3, 0)), 2 * one
    )
    assert after1 == pytest.approx([1.0, 0.0, 0.0])
    assert after2 == pytest.approx([1.0, 0.0, 0.0])
    assert impulse == pytest.approx([2.0, 0.0, 0.0])
