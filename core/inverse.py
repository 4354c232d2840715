"""Inverse dynamics of closed chains: independent joints, and the torques of some joints that make a given motion.

Structure-varying paper, section 2: loops are cut open virtually, and what torques of the open tree do is taken to the
independent joints by the principle of virtual work. It is a diagnosis, with dense matrices, and not made for speed.
Keyed links stand still.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .closure import Loops
from .dynamics import GRAVITY, acceleration
from .kinematics import Kinematics, kinematics, motions
from .loops import RANK, loop_rows
from .model import Model, State

DEPENDENT = RANK**0.5
"""Columns below this share of the first pivot depend on the others; RANK is of eigenvalues, which are squares."""
DEAD = 1e-7
"""Rows below this share of the largest forbid nothing."""
MISSED = 1e-8
"""How much of the torques or accelerations asked for, by their size, may be missed through rounding."""


@dataclass(frozen=True)
class IndependentCoordinates:
    """A choice of joint freedoms that moves all others: `independent` (N_F,), the indices of θ_G, and `dependent` (m,),
    of θ_S. `H` (m, N_F) with θ̇_S = H θ̇_G (eq. 9 and 10); `W` (nv, N_F) with joint velocities W θ̇_G (eq. 1)."""

    independent: np.ndarray
    dependent: np.ndarray
    H: np.ndarray
    W: np.ndarray

    @property
    def rank(self) -> int:
        """The number m of independent constraints."""
        return len(self.dependent)

    @property
    def freedoms(self) -> int:
        """N_F, the freedoms of the whole mechanism (eq. 6)."""
        return len(self.independent)


def independent_coordinates(model: Model, q: np.ndarray, loops: Loops | None = None) -> IndependentCoordinates:
    """Independent joint freedoms in the pose `q` (nq,), the dependent ones being those that the loops determine best.

    `loops`: None for those that hold from the start. Compliant ones forbid nothing.
    """
    kin = kinematics(model, q)
    J = _constraints(model, kin, unit_motions(model, kin), loops)
    dependent = np.sort(_pivots(J))
    independent = np.setdiff1d(np.arange(model.nv), dependent)
    H = -np.linalg.lstsq(J[:, dependent], J[:, independent], rcond=None)[0]
    W = np.zeros((model.nv, len(independent)))
    W[independent], W[dependent] = np.eye(len(independent)), H
    return IndependentCoordinates(independent, dependent, H, W)


def actuator_torques(
    model: Model,
    state: State,
    accelerations: np.ndarray,
    actuated: np.ndarray,
    loops: Loops | None = None,
    gravity: np.ndarray = GRAVITY,
) -> np.ndarray:
    """The least torques τ_A (k,) [N m, N] of the freedoms `actuated` (k,) with which the joints have `accelerations`
    (nv,) (eq. 3 and 4), gravity (3,) and the joints' own springs and dampers acting too.

    Raises ValueError where the loops do not allow the accelerations or the actuated joints cannot produce them.
    """
    loops = model.loops.closed() if loops is None else loops
    kin = kinematics(model, state.q)
    moves = unit_motions(model, kin)
    missing = accelerations - acceleration(model, state, gravity=gravity, loops=loops)
    opening = np.abs(_constraints(model, kin, moves, loops) @ missing)
    if opening.max(initial=0.0) > MISSED * max(1.0, np.abs(accelerations).max(initial=0.0)):
        raise ValueError(f"the loops do not allow these accelerations: a row would open by {opening.max():.3g} per s²")
    # What acts without torques, the loops' forces among it, is in the motion without them. τ_O is what is left.
    W = independent_coordinates(model, state.q, loops).W
    wanted = W.T @ (joint_inertia(model, kin, moves) @ missing)
    torques = np.linalg.lstsq(W[actuated].T, wanted, rcond=DEPENDENT)[0]
    short = np.abs(W[actuated].T @ torques - wanted).max(initial=0.0)
    if short > MISSED * max(1.0, np.abs(wanted).max(initial=0.0)):
        raise ValueError(f"the actuated joints cannot produce this motion: they are short of {short:.3g} N m or N")
    return torques


def unit_motions(model: Model, kin: Kinematics) -> np.ndarray:
    """The links' twists (nv, links + 1, 6), about their clusters' origins, for each joint velocity alone at one."""
    return np.array([motions(model, kin, unit).links for unit in np.eye(model.nv)]).reshape(model.nv, -1, 6)


def joint_inertia(model: Model, kin: Kinematics, moves: np.ndarray) -> np.ndarray:
    """The joint-space inertia (nv, nv), armature included, from `unit_motions`."""
    moves = moves[:, :-1]
    return np.einsum("ild,lde,jle->ij", moves, kin.inertia, moves, optimize=True) + np.diag(model.armature)


def _constraints(model: Model, kin: Kinematics, moves: np.ndarray, loops: Loops | None) -> np.ndarray:
    """The projected loops' constraint matrix J_C (rows, nv) of eq. 5, its rows of length one."""
    rows = loop_rows(model, kin, model.loops.closed() if loops is None else loops)
    J = np.array([rows.rate(links) for links in moves]).reshape(model.nv, -1).T[~rows.loops.soft]
    length = np.sqrt((J * J).sum(-1))
    alive = length > DEAD * length.max(initial=0.0)
    return J[alive] / length[alive, None]


def _pivots(J: np.ndarray) -> np.ndarray:
    """Independent columns of `J` (r, n), as many as its rank, by Gram and Schmidt's method, the longest first."""
    left, chosen, longest = J.copy(), [], 0.0
    for _ in range(min(J.shape)):
        length = np.sqrt((left * left).sum(0))
        best = int(length.argmax())
        longest = longest or length[best]
        if length[best] <= DEPENDENT * longest:
            break
        unit = left[:, best] / length[best]
        left -= np.outer(unit, unit @ left)
        left[:, best] = 0.0
        chosen.append(best)
    return np.array(chosen, dtype=int)
