"""What can be checked about a state: energy and momentum."""

from __future__ import annotations

import numpy as np

from .dynamics import GRAVITY
from .kinematics import Kinematics, kinematics, motions
from .model import Model, State


def energy(model: Model, state: State, gravity: np.ndarray = GRAVITY, given: np.ndarray | None = None) -> float:
    """Kinetic energy, potential energy in gravity (3,) with zero at the world's origin, and that of the joints' springs
    at rest targets [J]. `given` (n, 4, 4): joint transforms of keyed links."""
    kin = kinematics(model, state.q, given)
    links = motions(model, kin, state.v).links[:-1]
    kinetic = 0.5 * (links * (kin.inertia @ links[:, :, None])[:, :, 0]).sum()
    strain = model.coordinates.difference(model.coordinates.zero(), state.q)
    spring = 0.5 * (model.stiffness * strain * strain).sum() + 0.5 * (model.armature * state.v * state.v).sum()
    return float(kinetic + spring - (model.mass[:, None] * centers(model, kin)).sum(0) @ np.asarray(gravity))


def centers(model: Model, kin: Kinematics) -> np.ndarray:
    """The links' centers of mass in the world (n, 3) [m]."""
    poses = kin.poses[model.assembly.slot]
    return poses[:, :3, 3] + (poses[:, :3, :3] @ model.center[:, :, None])[:, :, 0]


def momentum(model: Model, state: State, given: np.ndarray | None = None) -> np.ndarray:
    """Angular momentum about the world's origin, then linear momentum, of all links together (6,)."""
    kin = kinematics(model, state.q, given)
    return link_momenta(kin, motions(model, kin, state.v).links[:-1], kin.origin[model.assembly.cluster_of]).sum(0)


def link_momenta(kin: Kinematics, links: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Momenta (links, 6) of twists `links` (links, 6) about the point that lies `offset` (links, 3) before each
    cluster's origin."""
    result = (kin.inertia @ links[:, :, None])[:, :, 0]
    result[:, :3] += np.cross(offset, result[:, 3:])
    return result
