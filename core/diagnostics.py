"""What can be checked about a state: energy and momentum."""

from __future__ import annotations

import numpy as np

from .dynamics import GRAVITY
from .kinematics import Kinematics, Motions, kinematics, motions
from .model import Model, State
from .spatial import cross


def energy(model: Model, state: State, gravity: np.ndarray = GRAVITY) -> float:
    """Kinetic energy, potential energy in gravity (3,) with zero at the world's origin, and that of the joints' springs
    at rest targets [J], of a model without keyed links."""
    kin = kinematics(model, state.q)
    return total_energy(model, kin, motions(model, kin, state.v), state, gravity)


def total_energy(model: Model, kin: Kinematics, moving: Motions, state: State, gravity: np.ndarray) -> float:
    """The energy of `energy` where the kinematics are known."""
    strain = model.coordinates.difference(model.coordinates.zero(), state.q)
    spring = 0.5 * (model.stiffness * strain * strain).sum() + 0.5 * (model.armature * state.v * state.v).sum()
    weight = (model.mass[:, None] * centers(model, kin)).sum(0) @ np.asarray(gravity)
    return float(kinetic_energy(kin, moving) + spring - weight)


def kinetic_energy(kin: Kinematics, moving: Motions) -> float:
    """That of all links that move so [J], without what joints' rotors have."""
    links = moving.links[:-1]
    return 0.5 * float((links * (kin.inertia @ links[:, :, None])[:, :, 0]).sum())


def centers(model: Model, kin: Kinematics) -> np.ndarray:
    """The links' centers of mass in the world (n, 3) [m]."""
    poses = kin.poses[model.assembly.slot]
    return poses[:, :3, 3] + (poses[:, :3, :3] @ model.center[:, :, None])[:, :, 0]


def momentum(model: Model, state: State) -> np.ndarray:
    """Angular momentum about the world's origin, then linear momentum, of all links together (6,), without keyed
    links."""
    kin = kinematics(model, state.q)
    links = motions(model, kin, state.v).links[:-1]
    result = (kin.inertia @ links[:, :, None])[:, :, 0]
    result[:, :3] += cross(kin.origins[:-1], result[:, 3:])
    return result.sum(0)
