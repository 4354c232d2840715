"""The articulated-body algorithm in extended precision (80 bits on x86): an oracle that needs numpy alone.

Featherstone, Rigid Body Dynamics Algorithms, table 7.1, one link at a time in the link's own frame. It settles who is
right where MuJoCo and Pinocchio lose digits: on chains of hundreds of links MuJoCo keeps about nine.
"""

from __future__ import annotations

import numpy as np
from oracle import layout, per_freedom

from core.linkage import Link, Linkage

REAL = np.longdouble


def acceleration(
    linkage: Linkage, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray, gravity: np.ndarray,
    inertia: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Joint accelerations (nv,); see `oracle`."""
    forces = (tau - per_freedom(linkage, "damping") * v).astype(REAL)
    armature = (per_freedom(linkage, "armature") + (0.0 if inertia is None else inertia)).astype(REAL)
    bodies = {linkage.world: _Body.still(gravity)}
    for (link, at_q, at_v), wrench in zip(layout(linkage), wrenches, strict=True):
        bodies[link] = _Body(link, bodies[link.parent], q[at_q], v[at_v], wrench)
    for link, _, at_v in reversed(list(layout(linkage))):
        bodies[link].gather(bodies[link.parent], forces[at_v], armature[at_v])
    result = np.zeros(len(v), dtype=REAL)
    for link, _, at_v in layout(linkage):
        result[at_v] = bodies[link].accelerate(bodies[link.parent])
    return result


class _Body:
    """A link's motion and its articulated inertia, in its own frame."""

    @classmethod
    def still(cls, gravity: np.ndarray) -> _Body:
        """The world, which falls upward in place of gravity."""
        world = cls.__new__(cls)
        world.turn, world.velocity = np.eye(3, dtype=REAL), np.zeros(6, dtype=REAL)
        world.acceleration = np.concatenate([np.zeros(3), -np.asarray(gravity)]).astype(REAL)
        world.inertia, world.force = np.zeros((6, 6), dtype=REAL), np.zeros(6, dtype=REAL)
        return world

    def __init__(self, link: Link, parent: _Body, q: np.ndarray, v: np.ndarray, wrench: np.ndarray) -> None:
        turn, shift, self.axes, drift = _joint(link.joint.kind, q.astype(REAL), v.astype(REAL))
        rest = link.rotation.astype(REAL)
        rest = rest @ (1.5 * np.eye(3, dtype=REAL) - 0.5 * rest.T @ rest)  # orthonormal to the last digit
        turn, shift = rest @ turn, link.position.astype(REAL) + rest @ shift
        self.turn = parent.turn @ turn
        self.from_parent = np.zeros((6, 6), dtype=REAL)
        self.from_parent[:3, :3] = self.from_parent[3:, 3:] = turn.T
        self.from_parent[3:, :3] = -turn.T @ _skew(shift)
        own = self.axes @ v.astype(REAL)
        self.velocity = self.from_parent @ parent.velocity + own
        self.drift = drift + _cross(self.velocity) @ own
        arm = link.mass * _skew(link.center_of_mass.astype(REAL))
        self.inertia = np.zeros((6, 6), dtype=REAL)
        self.inertia[:3, :3] = link.inertia - arm @ arm / link.mass
        self.inertia[:3, 3:], self.inertia[3:, :3] = arm, -arm
        self.inertia[3:, 3:] = link.mass * np.eye(3)
        outer = np.concatenate([self.turn.T @ wrench[:3], self.turn.T @ wrench[3:]])
        self.force = -_cross(self.velocity).T @ (self.inertia @ self.velocity) - outer

    def gather(self, parent: _Body, forces: np.ndarray, armature: np.ndarray) -> None:
        """Adds what this body and all it carries put on `parent`."""
        self.resistance = self.inertia @ self.axes
        self.inner = self.axes.T @ self.resistance + np.diag(armature)
        self.drive = forces - self.axes.T @ self.force
        inertia = self.inertia - self.resistance @ _solve(self.inner, self.resistance.T)
        force = self.force + inertia @ self.drift + self.resistance @ _solve(self.inner, self.drive)
        inertia = self.from_parent.T @ inertia @ self.from_parent
        parent.inertia = parent.inertia + (inertia + inertia.T) / 2
        parent.force = parent.force + self.from_parent.T @ force

    def accelerate(self, parent: _Body) -> np.ndarray:
        """The joint's accelerations, those of `parent` being known."""
        given = self.from_parent @ parent.acceleration + self.drift
        result = _solve(self.inner, self.drive - self.resistance.T @ given)
        self.acceleration = given + self.axes @ result
        return result


def _joint(kind: str, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The turn (3, 3) and shift (3,) from the link's frame to the joint's rest frame, the motion subspace (6, d) in the
    link's frame, and its apparent rate of change times `v` (6,)."""
    turn, shift = np.eye(3, dtype=REAL), np.zeros(3, dtype=REAL)
    axes, drift = np.eye(6, dtype=REAL), np.zeros(6, dtype=REAL)
    if kind == "fixed":
        axes = axes[:, :0]
    elif kind == "hinge":
        turn, axes = _turn_x(q[0]), axes[:, :1]
    elif kind == "prismatic":
        shift[0], axes = q[0], axes[:, 3:4]
    elif kind == "universal":
        about_z = _turn_z(q[1])
        turn, axes = _turn_x(q[0]) @ about_z, axes[:, [0, 2]]
        axes[:3, 0] = about_z[0]
        drift[:3] = np.cross(about_z[0], np.array([0, 0, v[1]], dtype=REAL)) * v[0]
    elif kind == "spherical":
        turn, axes = _turn(q), axes[:, :3]
    else:
        turn, shift = _turn(q[:4]), q[4:]
        axes[3:, 3:] = turn.T
        drift[3:] = -np.cross(v[:3], turn.T @ v[3:])
    return turn, shift, axes, drift


def _turn_x(angle: np.floating) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]], dtype=REAL)


def _turn_z(angle: np.floating) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=REAL)


def _turn(quaternion: np.ndarray) -> np.ndarray:
    """R = 1 + 2 w [u] + 2 [u]² of a unit quaternion (w, u)."""
    w, *u = quaternion / np.sqrt((quaternion**2).sum())
    cross = _skew(np.array(u, dtype=REAL))
    return np.eye(3, dtype=REAL) + 2 * w * cross + 2 * cross @ cross


def _skew(a: np.ndarray) -> np.ndarray:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]], dtype=REAL)


def _cross(velocity: np.ndarray) -> np.ndarray:
    """The matrix of v × for motions; minus its transpose is that for forces."""
    result = np.zeros((6, 6), dtype=REAL)
    result[:3, :3] = result[3:, 3:] = _skew(velocity[:3])
    result[3:, :3] = _skew(velocity[3:])
    return result


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gaussian elimination of a positive definite matrix; numpy's own solver has no extended precision."""
    matrix, result = matrix.copy(), right.copy()
    size = len(matrix)
    for i in range(size):
        for j in range(i + 1, size):
            factor = matrix[j, i] / matrix[i, i]
            matrix[j] -= factor * matrix[i]
            result[j] -= factor * result[i]
    for i in reversed(range(size)):
        result[i] = (result[i] - matrix[i, i + 1 :] @ result[i + 1 :]) / matrix[i, i]
    return result
