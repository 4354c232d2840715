"""Impulses obey Coulomb's law exactly, however redundant the contacts, and never bring in energy."""

import numpy as np
import pytest
from coulomb import GRAVITY, STEP, UP, assert_coulomb, rigid_body

from core.contact import tangents
from core.friction import energy, guard, solve

# Rod of length 1 and mass 1 at 45 degrees: rows normal, tangent in its plane, tangent across (reference-values.md).
ROD = np.array([[2.5, -1.5, 0.0], [-1.5, 2.5, 0.0], [0.0, 0.0, 2.5]])


def block(tilt=0.0, mass=2.0, half=(0.3, 0.2, 0.1)):
    """A block on a slope that rises along x by `tilt`: its J, inverse inertia and the twist a step of gravity adds."""
    x, y, z = half
    inertia = mass / 3.0 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    corners = [(i * x, j * y, -z) for i in (-1, 1) for j in (-1, 1)]
    J, inverse = rigid_body(mass, inertia, corners, [UP] * 4)
    return J, inverse, -GRAVITY * STEP * np.array([0, 0, 0, np.sin(tilt), 0, np.cos(tilt)])


def random_problem(rng, contacts, limits=4, per_body=3, bodies=12, slope=0.0):
    """Free bodies held together by random stiff couplings, with groups of redundant contacts on some of them."""
    freedoms = 6 * bodies
    mass = rng.uniform(1.0, 10.0, bodies)
    M = np.zeros((bodies, 6, bodies, 6))
    for i, m in enumerate(mass):
        M[i, :, i] = np.diag(np.concatenate((m * rng.uniform(0.003, 0.03, 3), np.full(3, m))))
    M = M.reshape(freedoms, freedoms)
    mix = np.eye(freedoms) + np.tril(rng.normal(scale=0.1, size=(freedoms, freedoms)), -1)
    M = mix.T @ M @ mix
    J = np.zeros((limits + 3 * contacts, freedoms))
    J[:limits] = rng.normal(size=(limits, freedoms)) * 0.3
    chosen = rng.choice(bodies, max(1, contacts // per_body), replace=False)
    for c in range(contacts):
        normal = UP + slope * rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        body = rng.choice(chosen)
        rows, _ = rigid_body(1.0, np.ones(3), [rng.uniform(-0.3, 0.3, 3) * [1, 1, 0.2] - [0, 0, 0.1]], [normal])
        J[limits + 3 * c : limits + 3 * c + 3, 6 * body : 6 * body + 6] = rows
    velocity = rng.normal(size=freedoms)
    velocity[5::6] -= 1.0
    G = J @ np.linalg.solve(M, J.T)
    return 0.5 * (G + G.T), J, velocity


def test_resting_box_carries_its_weight_without_creep():
    """Four corners are two too many; the net impulse must still be the weight, and nothing may drift."""
    J, inverse, fall = block()
    G, twist, warm = J @ inverse @ J.T, np.zeros(6), None
    for _ in range(300):
        warm, outcome = solve(G, J @ (twist + fall), np.full(4, 0.6), warm=warm)
        twist = twist + fall + inverse @ (J.T @ warm)
        assert outcome.residual <= 1e-8
        assert np.abs(J @ twist).max() <= 1e-8
    assert np.allclose(J.T @ warm, [0, 0, 0, 0, 0, 2.0 * GRAVITY * STEP], atol=1e-8)


@pytest.mark.parametrize(("tilt", "friction"), [(20.0, 0.6), (30.0, 0.6), (35.0, 0.6), (10.0, 0.1), (50.0, 0.9)])
def test_block_on_slope(tilt, friction):
    """It sticks iff tan(tilt) <= friction, else accelerates at g (sin - friction cos); it never leaves the slope."""
    tilt = np.radians(tilt)
    J, inverse, fall = block(tilt, half=(0.3, 0.3, 0.02))
    G, twist, warm = J @ inverse @ J.T, np.zeros(6), None
    for _ in range(240):
        u = J @ (twist + fall)
        warm, _ = solve(G, u, np.full(4, friction), warm=warm)
        assert_coulomb(G, u, friction, warm)
        twist = twist + fall + inverse @ (J.T @ warm)
    acceleration = max(0.0, GRAVITY * (np.sin(tilt) - friction * np.cos(tilt)))
    assert np.allclose(twist, [0, 0, 0, -acceleration, 0, 0], atol=1e-6)


def test_sliding_sphere_ends_rolling():
    """v = 5 v0 / 7 after 2 v0 / (7 friction g), and straight rolling from then on."""
    radius, friction, v0 = 0.1, 0.3, 2.0
    J, inverse = rigid_body(1.5, np.full(3, 0.4 * 1.5 * radius**2), [(0, 0, -radius)], [UP])
    G, twist, warm = J @ inverse @ J.T, np.array([0, 0, 0, v0, 0, 0.0]), None
    rolling = 2.0 * v0 / (7.0 * friction * GRAVITY)
    for step in range(120):
        twist = twist - [0, 0, 0, 0, 0, GRAVITY * STEP]
        warm, _ = solve(G, J @ twist, np.array([friction]), warm=warm)
        twist = twist + inverse @ (J.T @ warm)
        if (step + 1) * STEP < rolling:
            assert twist[3] == pytest.approx(v0 - friction * GRAVITY * STEP * (step + 1), abs=1e-7)
    assert np.allclose(twist, [0, 5 * v0 / 7 / radius, 0, 5 * v0 / 7, 0, 0], atol=1e-6)


def test_rod_impact_without_restitution_sticks():
    impulses, _ = solve(ROD, np.array([-1.0, 0.6, 0.0]), np.array([1.0]))
    assert np.allclose(impulses, [0.4, 0.0, 0.0], atol=1e-9)
    assert energy(ROD, np.array([-1.0, 0.6, 0.0]), impulses) == pytest.approx(-0.2)


def test_rod_impact_sliding_without_reversal():
    """u = (0, -1), friction 0.3, e = 0.5 (reference-values.md); the target -e u_n is subtracted from u."""
    free = np.array([-1.0, 0.0, 0.0])
    impulses, _ = solve(ROD, free - [0.5, 0, 0], np.array([0.3]))
    assert np.allclose(impulses, [0.731707317, 0.219512195, 0.0], atol=1e-8)
    assert np.allclose(free + ROD @ impulses, [0.5, -0.548780488, 0.0], atol=1e-8)
    assert energy(ROD, free, impulses) == pytest.approx(-0.243158834, abs=1e-8)


def test_guard_stops_the_energy_gain_of_newtons_rule():
    """Newton's rule gives the rod +0.1125 J; the blend keeps e = 0.8 of the rebound, where the energy is unchanged."""
    free = np.array([-1.0, 0.6, 0.0])
    inelastic, _ = solve(ROD, free, np.array([1.0]))
    elastic, _ = solve(ROD, free - [1.0, 0, 0], np.array([1.0]))
    assert energy(ROD, free, elastic) == pytest.approx(0.1125)
    kept = guard(ROD, free, elastic, inelastic)
    assert np.allclose(kept, [0.9, 0.3, 0.0], atol=1e-8)
    assert energy(ROD, free, kept) == pytest.approx(0.0, abs=1e-12)
    assert guard(ROD, free, inelastic, inelastic) is inelastic


def test_guard_never_lets_energy_rise():
    """Whatever impulses it is given."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        half = rng.normal(size=(9, rng.integers(1, 10)))
        G, free, impulses, inelastic = half @ half.T, *rng.normal(size=(3, 9))
        kept = guard(G, free, impulses, rng.choice([0.0, 1.0]) * inelastic)
        assert energy(G, free, kept) <= 1e-9


@pytest.mark.parametrize("friction", [0.0, 0.3, 0.6, 1.5])
@pytest.mark.parametrize("contacts", [1, 4, 12])
def test_random_problems_obey_the_law(contacts, friction):
    """Checked against the law itself, not the solver's own residual."""
    rng = np.random.default_rng(contacts)
    solved = 0
    for _ in range(20):
        G, J, velocity = random_problem(rng, contacts, slope=0.2)
        u = J @ velocity
        impulses, outcome = solve(G, u, np.full(contacts, friction), limits=4)
        assert np.isfinite(impulses).all()
        assert energy(G, u, impulses) <= 1e-9
        if outcome.residual <= 1e-8:
            assert_coulomb(G, u, friction, impulses, limits=4)
            solved += 1
    assert solved >= 19


@pytest.mark.parametrize("contacts", [12, 30, 60])
def test_warm_start_saves_iterations(contacts):
    """From the solution of a problem 2 % away a handful of iterations is enough."""
    rng = np.random.default_rng(7)
    counts = []
    for _ in range(12):
        G, J, velocity = random_problem(rng, contacts, per_body=5)
        friction = np.full(contacts, 0.6)
        warm, outcome = solve(G, J @ velocity, friction, limits=4)
        assert outcome.residual <= 1e-3
        velocity *= 1.0 + 0.02 * rng.normal(size=len(velocity))
        counts.append(solve(G, J @ velocity, friction, limits=4, warm=warm)[1].iterations)
    assert np.median(counts) <= 6


def test_sliding_contact_does_not_lift_off():
    """The convex relaxation would give it a normal velocity of friction times speed."""
    J, inverse, fall = block()
    G = J @ inverse @ J.T
    twist = np.array([0, 0, 0, 3.0, 1.0, 0]) + fall
    impulses, _ = solve(G, J @ twist, np.full(4, 0.6))
    assert abs((twist + inverse @ (J.T @ impulses))[5]) <= 1e-8


def test_wedge_that_jams():
    """A box pressed between two walls with much friction holds; the redundant, stuck contacts stay finite."""
    sides = [(s * 0.1, y, z) for s in (-1, 1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)]
    normals = [(-np.sign(x), 0.0, 0.0) for x, _, _ in sides]
    J, inverse = rigid_body(1.0, np.full(3, 0.01), sides, normals)
    G = J @ inverse @ J.T
    u = J @ [0, 0, 0, 0, 0, -GRAVITY * STEP]
    u[::3] -= 0.1
    impulses, outcome = solve(G, u, np.full(8, 2.0))
    assert np.isfinite(impulses).all()
    assert np.isfinite(outcome.residual)


def test_equalities_may_be_redundant_and_share_the_solution_with_contacts():
    """Bilateral rows come first; a row given twice makes G singular."""
    rng = np.random.default_rng(3)
    G, J, velocity = random_problem(rng, 4, limits=4)
    J = np.concatenate((J[:2], J[:2], J[2:]))
    M_inverse = np.eye(J.shape[1])
    G = J @ M_inverse @ J.T
    u = J @ velocity
    impulses, outcome = solve(G, u, np.full(4, 0.6), equalities=4, limits=2)
    assert outcome.converged
    assert_coulomb(G, u, 0.6, impulses, limits=2, equalities=4)


def test_contradicting_targets_stay_finite():
    """A limit that asks for more than its opposite allows has no solution; the impulses must stay usable."""
    row = np.array([[1.0], [-1.0]])
    impulses, outcome = solve(row @ row.T, np.array([-1.0, -1.0]), np.empty(0), limits=2)
    assert np.isfinite(impulses).all()
    assert not outcome.converged


def test_empty_and_idle_problems():
    """No rows, no motion, and contacts that separate need no impulse."""
    assert solve(np.empty((0, 0)), np.empty(0), np.empty(0))[0].shape == (0,)
    assert np.array_equal(solve(ROD, np.zeros(3), np.array([0.6]))[0], np.zeros(3))
    impulses, outcome = solve(ROD, np.array([0.5, 3.0, 1.0]), np.array([0.6]))
    assert np.array_equal(impulses, np.zeros(3))
    assert outcome.iterations == 0
    assert solve(np.eye(2), np.array([-1.0, 1.0]), np.empty(0), limits=2)[0] == pytest.approx([1.0, 0.0])


def test_contacts_that_nothing_can_move_are_left_out():
    """A keyed link pressed into the ground has zero rows in G; it must not spoil the solution of the others."""
    G = np.zeros((9, 9))
    G[3:6, 3:6] = ROD
    G[6, 6] = 2.0
    u = np.array([-50.0, 3.0, 0.0, -1.0, 0.6, 0.0, -1.0, 0.0, 0.0])
    for warm in (None, np.ones(9)):
        impulses, outcome = solve(G, u, np.ones(3), warm=warm)
        assert outcome.converged
        assert np.allclose(impulses, [0, 0, 0, 0.4, 0, 0, 0.5, 0, 0], atol=1e-8)
    assert np.array_equal(solve(np.zeros((3, 3)), u[:3], np.ones(1))[0], np.zeros(3))


def test_many_redundant_contacts_on_a_slope_do_not_creep():
    """30 degrees and friction 0.8: at the accuracy of a step, below a hundredth of a millimetre a second."""
    tilt, mass, half = np.radians(30.0), 2.0, (0.3, 0.2, 0.1)
    points = [(x, y, -half[2]) for x in np.linspace(-0.3, 0.3, 6) for y in np.linspace(-0.2, 0.2, 5)]
    J, inverse = rigid_body(mass, [0.033, 0.066, 0.086], points, [UP] * 30)
    G, twist, warm = J @ inverse @ J.T, np.zeros(6), None
    fall = -GRAVITY * STEP * np.array([0, 0, 0, np.sin(tilt), 0, np.cos(tilt)])
    path = np.zeros(6)
    for _ in range(240):
        u = J @ (twist + fall)
        warm, _ = solve(G, u, np.full(30, 0.8), warm=warm, tolerance=1e-5, sufficient=1e-4)
        twist = twist + fall + inverse @ (J.T @ warm)
        path += STEP * twist
    assert np.abs(path).max() <= 1e-5
    assert np.abs(twist).max() <= 1e-5


def stack(boxes, masses):
    """Cubes of 1 m on each other with contacts at the corners, a little out of line: J (12 boxes, 6 boxes), M^-1."""
    rng = np.random.default_rng(0)
    middle = np.column_stack((0.02 * rng.normal(size=(boxes, 2)), 0.5 + np.arange(boxes)))
    corners = np.array([(x, y, -0.5) for x in (-0.5, 0.5) for y in (-0.5, 0.5)])
    frame = tangents(UP[None])[0]
    J = np.zeros((boxes, 4, 3, boxes, 6))
    for upper in range(boxes):
        points = middle[upper] + corners
        for sign, body in ((1.0, upper), (-1.0, upper - 1)):
            if body >= 0:
                J[upper, :, :, body, :3] = sign * np.cross((points - middle[body])[:, None], frame)
                J[upper, :, :, body, 3:] = sign * frame
    inverse = np.repeat(1.0 / np.asarray(masses, dtype=float), 6) * np.tile([6.0, 6.0, 6.0, 1.0, 1.0, 1.0], boxes)
    return J.reshape(12 * boxes, 6 * boxes), inverse


@pytest.mark.parametrize("heaviest", [1.0, 10.0, 0.1])
def test_stack_of_ten_boxes_stands(heaviest):
    """Every box carries those above it, be they lighter or heavier, and none drifts."""
    masses = np.geomspace(1.0, heaviest, 10)
    J, inverse = stack(10, masses)
    G, v, path, warm = (J * inverse) @ J.T, np.zeros(60), np.zeros(60), None
    fall = np.tile([0, 0, 0, 0, 0, -GRAVITY * STEP], 10)
    residuals = []
    for _ in range(60):
        warm, outcome = solve(G, J @ (v + fall), np.full(40, 0.6), warm=warm)
        v = v + fall + inverse * (J.T @ warm)
        path += STEP * v
        residuals.append(outcome.residual)
    assert max(residuals[5:]) <= 1e-6
    assert np.abs(path).max() <= 1e-5
    floor = masses[::-1].cumsum()[::-1] * GRAVITY * STEP
    assert np.allclose(warm[::3].reshape(10, 4).sum(axis=1), floor, rtol=1e-5)


@pytest.mark.parametrize("limits", [6, 20])
def test_limits_and_contacts_at_once(limits):
    """A body that lies on the ground with its joints at their ends."""
    rng = np.random.default_rng(21)
    for _ in range(20):
        G, J, velocity = random_problem(rng, 16, limits=limits, per_body=4)
        impulses, outcome = solve(G, J @ velocity, np.full(16, 0.6), limits=limits)
        assert outcome.converged
        assert_coulomb(G, J @ velocity, 0.6, impulses, limits=limits, tolerance=1e-5)


@pytest.mark.parametrize("diagonal", [1e-7, 1e-9, 3e-11, 1e-14])
def test_a_contact_that_hardly_moves_does_not_hide_the_others(diagonal):
    """Two vertebrae that touch side by side have next to no say in it, and a body must not sink into the floor for it:
    their velocity over the root of so small a diagonal is the largest of all."""
    G = np.diag([1.0] * 6 + [diagonal] * 3)
    impulses, outcome = solve(
        G, np.array([-0.4, 0, 0, -0.4, 0, 0, 0.6, 0, 0]), np.full(3, 0.6), tolerance=1e-5, sufficient=1e-4
    )
    assert outcome.converged
    assert impulses[[0, 3]] == pytest.approx([0.4, 0.4], rel=1e-3)
    assert impulses[6] == 0.0
