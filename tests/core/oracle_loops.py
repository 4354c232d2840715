"""Closed loops without the code under test: three mechanisms integrated on their own, and dense formulas.

The mechanisms have one freedom. Their equation of motion is Lagrange's along the curve of assembled poses: with the
kinetic energy m u² / 2 and the potential V, m u' + (dm/ds) u² / 2 + dV/ds = force. Derivatives along the curve are by
complex step, exact to rounding. `solve_ivp` is scipy's.

The dense formulas take any linkage. They differentiate the gap of its closed virtual links, from forward kinematics in
extended precision, numerically. Keyed links stand still.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from oracle import layout, load, per_freedom
from oracle_extended import REAL, _joint

from core.linkage import Link, Linkage

TINY = 1e-40
"""The complex step."""
G = 9.81


# One mechanism at a time -------------------------------------------------------------------------------------------


def n_four_bar(n: int, times: np.ndarray, *, speed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity (times, 2) of B0 of the n-four-bar (A02): couplers only move along, so that the angle of
    the rockers from upright obeys (n + (n + 1) / 3) a = g (n + (n + 1) / 2) sin(angle)."""
    pull = G * (n + (n + 1) / 2) / (n + (n + 1) / 3)
    angle, rate = _solve(lambda y: np.array([y[1], pull * np.sin(y[0])]), np.array([0.0, speed]), times)
    position = np.stack((np.sin(angle), np.cos(angle)), -1)
    return position, rate[:, None] * position[:, ::-1] * (1.0, -1.0)


ANDREWS_START = np.array([
    -0.0617138900142764, 0.0, 0.45527981916307, 0.222668390165886, 0.48736497954384, -0.222668390165886,
    1.23054744452982,
])  # fmt: skip


def andrews(times: np.ndarray) -> np.ndarray:
    """The angles (times, 7) of Andrews' squeezer (A03) in the order and by the formulas of the DAE test set (Mazzia and
    Iavernaro; Hairer and Wanner, Solving Ordinary Differential Equations II, VII.7), along the crank's angle."""
    return _solve(lambda y: _along_the_curve(y, **_ANDREWS)[0], np.append(ANDREWS_START, 0.0), times)[:-1].T


def andrews_motion(time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Its angles, their rates and accelerations (7,) at one time."""
    return _motion(_ANDREWS, np.append(ANDREWS_START, 0.0), time)


def _andrews_along(q: np.ndarray) -> np.ndarray:
    jacobian = _andrews_jacobian(q)
    return np.concatenate(([1.0], np.linalg.solve(jacobian[:, 1:], -jacobian[:, 0])))


def _andrews_jacobian(q: np.ndarray) -> np.ndarray:
    beta, theta, gamma, phi, delta, omega, epsilon = q
    rr, d, ss, e, zt, zf, u = 0.007, 0.028, 0.035, 0.02, 0.04, 0.02, 0.04
    knee = np.array([-rr * np.sin(beta) + d * np.sin(beta + theta), rr * np.cos(beta) - d * np.cos(beta + theta)])
    second = d * np.array([np.sin(beta + theta), -np.cos(beta + theta)])
    fourth = -e * np.array([np.cos(phi + delta), np.sin(phi + delta)])
    sixth = zf * np.array([np.sin(omega + epsilon), -np.cos(omega + epsilon)])
    result = np.zeros((6, 7), dtype=q.dtype)
    result[:, 0], result[:, 1] = np.tile(knee, 3), np.tile(second, 3)
    result[:2, 2] = -ss * np.array([np.cos(gamma), np.sin(gamma)])
    result[2:4, 3], result[2:4, 4] = fourth, fourth + zt * np.array([np.sin(delta), -np.cos(delta)])
    result[4:, 5], result[4:, 6] = sixth, sixth - u * np.array([np.cos(epsilon), np.sin(epsilon)])
    return result


def _andrews_mass(q: np.ndarray) -> np.ndarray:
    _, theta, _, phi, _, omega, _ = q
    m1, m2, m3, m4, m5, m6, m7 = 0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498
    i1, i2, i3, i4, i5, i6, i7 = 2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5
    rr, ra, da, sa, sb, ta, tb = 0.007, 0.00092, 0.0115, 0.01874, 0.01043, 0.02308, 0.00916
    zt, u, ua, ub, near, far = 0.04, 0.04, 0.01228, 0.00449, 0.02 - 0.01421, 0.02 - 0.01421
    result = np.zeros((7, 7), dtype=q.dtype)
    result[0, 0] = m1 * ra**2 + m2 * (rr**2 - 2 * da * rr * np.cos(theta) + da**2) + i1 + i2
    result[0, 1] = result[1, 0] = m2 * (da**2 - da * rr * np.cos(theta)) + i2
    result[1, 1] = m2 * da**2 + i2
    result[2, 2] = m3 * (sa**2 + sb**2) + i3
    result[3, 3] = m4 * near**2 + i4
    result[3, 4] = result[4, 3] = m4 * (near**2 + zt * near * np.sin(phi)) + i4
    result[4, 4] = m4 * (zt**2 + 2 * zt * near * np.sin(phi) + near**2) + m5 * (ta**2 + tb**2) + i4 + i5
    result[5, 5] = m6 * far**2 + i6
    result[5, 6] = result[6, 5] = m6 * (far**2 - u * far * np.sin(omega)) + i6
    result[6, 6] = m6 * (far**2 - 2 * u * far * np.sin(omega) + u**2) + m7 * (ua**2 + ub**2) + i6 + i7
    return result


def _andrews_potential(q: np.ndarray) -> complex:
    c, s = np.cos(q[2]), np.sin(q[2])
    x, y = 0.02 * c + 0.018 * s - 0.03635 - 0.014, 0.02 * s - 0.018 * c + 0.03273 - 0.072
    return 4530.0 / 2 * (np.sqrt(x * x + y * y) - 0.07785) ** 2


_ANDREWS = {"along": _andrews_along, "mass": _andrews_mass, "potential": _andrews_potential, "force": 0.033}

BRICARD = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
BRICARD_AXES = np.eye(3)[[1, 2, 0, 1, 2]]


def bricard(times: np.ndarray) -> np.ndarray:
    """The points P0 to P5 (times, 6, 3) of Bricard's mechanism (A04), along the first hinge's angle."""
    path = _solve(lambda y: _along_the_curve(y, **_BRICARD)[0], np.zeros(6), times)[:-1]
    return np.array([_bricard_pose(q)[2] for q in path.T])


def bricard_motion(time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The angles of its first five hinges, their rates and accelerations (5,) at one time."""
    return _motion(_BRICARD, np.zeros(6), time)


def _bricard_along(q: np.ndarray) -> np.ndarray:
    """From the five constraints of the last hinge, which are four."""
    turns, axes, points = _bricard_pose(q)
    end = turns[4][:, 0]
    rows = np.array([[*_cross(a, points[5] - p), *_cross(a, end)[1:]] for a, p in zip(axes, points)]).T
    rest, first = rows[:, 1:], rows[:, 0]
    return np.concatenate(([1.0], np.linalg.solve(rest.T @ rest, -rest.T @ first)))


def _bricard_pose(q: np.ndarray) -> tuple[list, list, list]:
    """Rotations of the five rods, the five hinges' axes and six points in the world."""
    turn, turns, axes, points = np.eye(3, dtype=q.dtype), [], [], [BRICARD[0].astype(q.dtype)]
    for i, axis in enumerate(BRICARD_AXES):
        axes.append(turn @ axis)
        cross = np.cross(np.eye(3), axis)
        turn = turn @ (np.eye(3) + np.sin(q[i]) * cross + (1 - np.cos(q[i])) * cross @ cross)
        turns.append(turn)
        points.append(points[-1] + turn @ (BRICARD[i + 1] - BRICARD[i]))
    return turns, axes, points


def _bricard_mass(q: np.ndarray) -> np.ndarray:
    turns, axes, points = _bricard_pose(q)
    result = np.zeros((5, 5), dtype=q.dtype)
    for k, turn in enumerate(turns):
        thin = 1.0 - np.abs(BRICARD[k + 1] - BRICARD[k])
        inertia = turn @ np.diag(np.where(thin == 0, 0.02, 1.01) / 12.0) @ turn.T
        center = (points[k] + points[k + 1]) / 2
        moves = np.array([_cross(a, center - p) for a, p in zip(axes[: k + 1], points)])
        spins = np.array(axes[: k + 1])
        result[: k + 1, : k + 1] += moves @ moves.T + spins @ inertia @ spins.T
    return result


def _bricard_potential(q: np.ndarray) -> complex:
    heights = [point[1] for point in _bricard_pose(q)[2]]
    return G * sum((low + high) / 2 for low, high in pairwise(heights))


_BRICARD = {"along": _bricard_along, "mass": _bricard_mass, "potential": _bricard_potential}


def _along_the_curve(
    y: np.ndarray, along: Callable, mass: Callable, potential: Callable, force: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """The rate of change of the joint angles and the speed along the curve, which are `y`; and the accelerations of
    the angles."""
    q, u = y[:-1], y[-1]
    direction = along(q)
    beyond = q + 1j * TINY * direction
    after = along(beyond)
    resistance = after @ mass(beyond) @ after
    slope, rise = resistance.imag / TINY, potential(beyond).imag / TINY
    faster = (force - slope * u * u / 2 - rise) / resistance.real
    return np.append(u * direction, faster), faster * direction + u * u * after.imag / TINY


def _motion(mechanism: dict, start: np.ndarray, time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y = _solve(lambda y: _along_the_curve(y, **mechanism)[0], start, [time])[:, 0]
    rate, acceleration = _along_the_curve(y, **mechanism)
    return y[:-1], rate[:-1], acceleration


def _solve(rate: Callable, start: np.ndarray, times: np.ndarray) -> np.ndarray:
    from scipy.integrate import solve_ivp

    times = np.asarray(times, dtype=float)
    found = solve_ivp(
        lambda _, y: rate(y), (0.0, times[-1]), start, method="DOP853", t_eval=times, rtol=1e-13, atol=1e-13
    )
    assert found.success, found.message
    return found.y


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


# Any linkage -------------------------------------------------------------------------------------------------------

STEP = REAL(1e-3)
"""Of fourth-order differences, in radians and metres: 1e-12 of truncation, and 1e-13 of rounding."""
RANK = 1e-8
"""Singular values below this share of the largest are of constraints that depend on others."""


def closed_acceleration(
    linkage: Linkage, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray, gravity: np.ndarray,
    inertia: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Joint accelerations (nv,) with all virtual links closed, the arguments being those of `oracle`: M a = f + Jᵀ λ
    and J a = -(dJ/dt) v, where dependent constraints share their load by the pseudo-inverse."""

    def open_chain(forces: np.ndarray) -> np.ndarray:
        oracle = load("extended")
        return oracle.acceleration(linkage, q, v, forces, wrenches, gravity, inertia).astype(float)

    free = open_chain(tau)
    yields = np.array([open_chain(tau + unit) - free for unit in np.eye(len(v))])  # the inverse of the mass matrix
    jacobian = constraint_jacobian(linkage, q)
    speed = max(1.0, np.abs(v).max(initial=0.0))  # the path is differentiated over STEP radians, however fast it is
    curved = speed**2 * _second_difference(lambda s: closure_gap(linkage, displaced(linkage, q, s * v / speed)))
    missing = -curved - jacobian @ free
    return free + yields @ jacobian.T @ np.linalg.pinv(jacobian @ yields @ jacobian.T, RANK, hermitian=True) @ missing


def mass_matrix(linkage: Linkage, q: np.ndarray) -> np.ndarray:
    """The joint-space inertia (nv, nv), as the inverse of the accelerations that unit forces cause from rest."""
    count = sum(1 for _ in linkage.links())
    size = len(per_freedom(linkage, "damping"))
    rest, none = np.zeros(size), np.zeros((count, 6))
    columns = [load("extended").acceleration(linkage, q, rest, unit, none, np.zeros(3)) for unit in np.eye(size)]
    return np.linalg.inv(np.array(columns, dtype=float))


def constraint_jacobian(linkage: Linkage, q: np.ndarray) -> np.ndarray:
    """The derivative (rows, nv) of `closure_gap` by the joint velocities."""
    size = len(per_freedom(linkage, "damping"))
    columns = [_difference(lambda s, e=e: closure_gap(linkage, displaced(linkage, q, s * e))) for e in np.eye(size)]
    return np.array(columns).T


def independent_constraints(linkage: Linkage, q: np.ndarray) -> int:
    """The rank of the closed loops' constraints."""
    sizes = np.linalg.svd(constraint_jacobian(linkage, q), compute_uv=False)
    return int((sizes > RANK * sizes[0]).sum())


def assembled(linkage: Linkage, q: np.ndarray) -> np.ndarray:
    """Joint coordinates near `q` that close all loops, by Newton's method with least changes."""
    for _ in range(50):
        gap = closure_gap(linkage, q).astype(float)
        if np.abs(gap).max() < 1e-14:
            return q
        q = displaced(linkage, q, -np.linalg.pinv(constraint_jacobian(linkage, q), RANK) @ gap).astype(float)
    assert np.abs(gap).max() < 1e-12, f"the loops stay open by {np.abs(gap).max()}"
    return q


def compatible(linkage: Linkage, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The joint velocities nearest to `v` that keep all loops closed."""
    jacobian = constraint_jacobian(linkage, q)
    return v - np.linalg.pinv(jacobian, RANK) @ (jacobian @ v)


def closure_gap(linkage: Linkage, q: np.ndarray) -> np.ndarray:
    """What the virtual links' joints forbid (rows,) [m, rad near zero]: each real link's seat against its host."""
    poses = link_poses(linkage, q)
    return np.concatenate([_gap(poses, link) for link in linkage.virtual_links()])


def _gap(poses: dict[Link, np.ndarray], link: Link) -> np.ndarray:
    joint, seat = poses[link.parent] @ _rest(link), poses[link.real] @ _square(link.seat)
    turn = joint[:3, :3].T @ seat[:3, :3]
    apart = joint[:3, :3].T @ (seat[:3, 3] - joint[:3, 3])
    turned = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    return {
        "fixed": lambda: np.concatenate((turned, apart)),
        "hinge": lambda: np.concatenate(([turn[1, 0], turn[2, 0]], apart)),
        "prismatic": lambda: np.concatenate((turned, apart[1:])),
        "universal": lambda: np.concatenate(([turn[0, 2]], apart)),
        "spherical": lambda: apart,
    }[link.joint.kind]()


def link_poses(linkage: Linkage, q: np.ndarray) -> dict[Link, np.ndarray]:
    """Each link's pose (4, 4) in the world, in extended precision; the world's own too."""
    poses = {linkage.world: np.eye(4, dtype=REAL)}
    for link, at_q, _ in _moving(linkage):
        pose = np.eye(4, dtype=REAL)
        kind = "fixed" if link.keyed else link.joint.kind
        pose[:3, :3], pose[:3, 3] = _joint(kind, np.asarray(q[at_q], dtype=REAL), np.zeros(6, dtype=REAL))[:2]
        poses[link] = poses[link.parent] @ _rest(link) @ pose
    return poses


def displaced(linkage: Linkage, q: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """The coordinates, in extended precision, after moving with joint velocities `moved` (nv,) for a second."""
    result = np.array(q, dtype=REAL)
    for link, at_q, at_v in _moving(linkage):
        own, by = result[at_q], np.asarray(moved[at_v], dtype=REAL)
        if not link.keyed and link.joint.kind in ("spherical", "free"):
            angle = np.sqrt(by[:3] @ by[:3])
            sine = np.sin(angle / 2) / angle * by[:3] if angle > 0 else by[:3] / 2
            w, x = np.cos(angle / 2), own[1:4].copy()
            own[:4] = [own[0] * w - x @ sine, *(own[0] * sine + w * x + np.cross(x, sine))]
            own[4:] += by[3:]
        else:
            own += by
    return result


def _moving(linkage: Linkage):
    """`layout`, but that keyed links have no coordinates."""
    if any(link.keyed for link in linkage.links()):
        q = v = 0
        for link, at_q, at_v in layout(linkage):
            sizes = (0, 0) if link.keyed else (at_q.stop - at_q.start, at_v.stop - at_v.start)
            yield link, slice(q, q + sizes[0]), slice(v, v + sizes[1])
            q, v = q + sizes[0], v + sizes[1]
    else:
        yield from layout(linkage)


def _rest(link: Link) -> np.ndarray:
    pose = np.eye(4, dtype=REAL)
    pose[:3, :3], pose[:3, 3] = link.rotation, link.position
    return _square(pose)


def _square(pose: np.ndarray) -> np.ndarray:
    """The pose with its rotation orthonormal to the last digit."""
    result = np.array(pose, dtype=REAL)
    turn = result[:3, :3]
    result[:3, :3] = turn @ (1.5 * np.eye(3, dtype=REAL) - 0.5 * turn.T @ turn)
    return result


def _difference(f: Callable) -> np.ndarray:
    near, far = f(STEP) - f(-STEP), f(2 * STEP) - f(-2 * STEP)
    return ((8 * near - far) / (12 * STEP)).astype(float)


def _second_difference(f: Callable) -> np.ndarray:
    near, far = f(STEP) + f(-STEP), f(2 * STEP) + f(-2 * STEP)
    return ((16 * near - far - 30 * f(REAL(0))) / (12 * STEP * STEP)).astype(float)


# When links connect ------------------------------------------------------------------------------------------------


def connection_jacobians(linkage: Linkage, q: np.ndarray, link: Link) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """J1 and J2 (6, nv) of the seat on the real link and of the joint's frame on the host of a virtual `link`, and Jn
    (6, p) of its freedoms: angular, then linear velocity of the seat's origin along the world's axes."""

    def frames(moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        poses = link_poses(linkage, displaced(linkage, q, moved))
        return poses[link.real] @ _square(link.seat), poses[link.parent] @ _rest(link)

    size = len(per_freedom(linkage, "damping"))
    here = frames(np.zeros(size))
    jacobians = np.zeros((2, 6, size))
    for i, unit in enumerate(np.eye(size)):
        for k in range(2):
            rate = _difference(lambda s, unit=unit, k=k: frames(s * unit)[k])
            spin = rate[:3, :3] @ here[k][:3, :3].T
            jacobians[k, :, i] = [spin[2, 1], spin[0, 2], spin[1, 0], *rate[:3, 3]]
    reach = (here[0][:3, 3] - here[1][:3, 3]).astype(float)
    jacobians[1, 3:] += np.cross(jacobians[1, :3].T, reach).T  # of the host's point where the seat is
    axes = here[1][:3, :3].astype(float)
    columns = {
        "fixed": [],
        "hinge": [[*axes[:, 0], 0, 0, 0]],
        "prismatic": [[0, 0, 0, *axes[:, 0]]],
        "universal": [[*axes[:, 0], 0, 0, 0], [*here[0][:3, 2].astype(float), 0, 0, 0]],
        "spherical": [[*axis, 0, 0, 0] for axis in np.eye(3)],
    }[link.joint.kind]
    return jacobians[0], jacobians[1], np.array(columns).reshape(-1, 6).T


def velocity_after_connection(
    A1: np.ndarray, J1: np.ndarray, v1: np.ndarray, J2: np.ndarray, v2: np.ndarray | None, Jn: np.ndarray,
    A2: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Joint velocities after two links connect, and the impulse F1 on the second chain (k,).

    Yamane and Nakamura, eq. 15 to 19 for two chains of inertia `A1` and `A2`, and eq. 21 to 24 for one chain, where
    `v2` and `A2` are None and so is the second result. `J1`, `J2` (k, n): of the point on either side; `Jn` (k, p): of
    the new joint. k is 6, or fewer where only so many rows are independent.
    """
    inverse = np.linalg.inv(A1)
    if v2 is None:
        B, v = (J1 - J2) @ inverse @ (J1 - J2).T, (J1 - J2) @ v1
    else:
        B, v = J1 @ inverse @ J1.T + J2 @ np.linalg.inv(A2) @ J2.T, J1 @ v1 - J2 @ v2
    compliance = np.linalg.inv(B)
    C = Jn @ np.linalg.inv(Jn.T @ compliance @ Jn) @ Jn.T @ compliance if Jn.shape[1] else np.zeros_like(B)
    impulse = compliance @ (np.eye(len(B)) - C) @ v
    if v2 is None:
        # eq. 21 with J1 - J2 in place of its J1, as eq. 20 with F2 = -F1 has it
        return v1 - inverse @ (J1 - J2).T @ impulse, None, impulse
    return v1 - inverse @ J1.T @ impulse, v2 + np.linalg.inv(A2) @ J2.T @ impulse, impulse
