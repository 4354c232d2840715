"""Forward dynamics by divide and conquer, a level of the assembly tree at a time (see tree.py), loops included."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .closure import Loops
from .kinematics import Kinematics, Motions, bias, kinematics, motions
from .loops import LeastNorm, loop_rows
from .model import Model, State
from .spatial import cross
from .tree import Kept, Tree, leaf_inertia

GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True)
class Solution:
    """A moving pose of `model` whose accelerations have been solved; restricted passes start from it.

    `kin`, `moving`: the pose and its velocities; `accelerations` (slots,) of all freedom slots, of clusters' bases too,
    with all that acts, and `links` (links, 6), what the links accelerate by themselves (`kinematics.bias`); `kept` by
    `respond`. `pull` (r,): the forces in the rows of the loops, and `pulls` (slots, r) the accelerations of unit forces
    there; the rows `held` (h,) answer further forces (slots,) with -`norm`.solve(pullsᵀ forces).
    """

    model: Model
    kin: Kinematics
    moving: Motions
    accelerations: np.ndarray
    links: np.ndarray
    kept: Kept | None
    pull: np.ndarray = field(default_factory=lambda: np.zeros(0))
    pulls: np.ndarray | None = None
    held: np.ndarray | None = None
    norm: LeastNorm | None = None


def respond(
    model: Model,
    kin: Kinematics,
    resistance: np.ndarray,
    forces: np.ndarray,
    acceleration: np.ndarray | None = None,
    across: np.ndarray | None = None,
    kept: Kept | None = None,
    symmetric: bool = True,
) -> np.ndarray:
    """The accelerations (slots, columns) of all freedom slots under `forces` (slots, columns).

    `resistance` (nv,) adds to the joints' own inertia. `acceleration` (links, 6) and `across` (joints, 6) are the bias
    accelerations of `kinematics.bias` and belong to the first column alone. What restricted passes need (up_region.py)
    is left in `kept`. Where links' inertias are not `symmetric`, what they resist is not what they answer with, as
    where they slip.
    """
    a = model.assembly
    z = np.zeros(len(forces))
    z[model.columns.slot_of] = resistance
    if a.nodes == 0:
        answers = []
        for leaves in a.levels[0].leaves:
            h = leaf_inertia(leaves, leaves.link_view(kin.inertia), leaves.freedom_view(kin.columns), z, symmetric)
            if kept is not None:
                kept["leaves", leaves.first_link] = (h,)
            answers.append(np.linalg.solve(h, leaves.freedom_view(forces)).reshape(-1, forces.shape[1]))
        return answers[0] if len(answers) == 1 else np.concatenate(answers)
    return Tree(model, kin, z, forces, acceleration, across, kept, symmetric).solve()


def acceleration(model: Model, state: State, **given) -> np.ndarray:
    """The joint accelerations (nv,) of smooth motion, loops included; see `closed_dynamics`."""
    return closed_dynamics(model, state, **given)[0]


def closed_dynamics(
    model: Model,
    state: State,
    *,
    forces: np.ndarray | None = None,
    wrenches: np.ndarray | None = None,
    gravity: np.ndarray = GRAVITY,
    loops: Loops | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The joint accelerations (nv,) of smooth motion and the forces (r,) in the rows of the loops.

    Gravity (3,), joint springs and dampers at rest targets, joint `forces` (nv,), and `wrenches` (n, 6): torque about
    each link's origin and force, along the world's axes. `loops`: None for those that hold from the start. Projected
    loops get the forces of least norm that keep C̈ + 2σ Ċ + σ² C = 0 (four-bar paper's stabilised projection);
    compliant ones −K C − D Ċ.
    """
    solved = solution(model, state, None, forces=forces, wrenches=wrenches, gravity=gravity, loops=loops)
    return solved.accelerations[model.columns.slot_of], solved.pull


def solution(
    model: Model,
    state: State,
    kept: Kept | None,
    *,
    forces: np.ndarray | None = None,
    wrenches: np.ndarray | None = None,
    gravity: np.ndarray = GRAVITY,
    loops: Loops | None = None,
) -> Solution:
    """The smooth motion of `closed_dynamics`; restricted passes can start from it where `kept` is not None."""
    a = model.assembly
    loops = model.loops.closed() if loops is None else loops
    kin = kinematics(model, state.q)
    moving = motions(model, kin, state.v)
    outer = None
    if wrenches is not None:
        outer = np.zeros((a.links, 6))
        outer[a.slot] = wrenches
        outer[:, :3] += cross(kin.offset, outer[:, 3:])
    natural, links, across = free_forces(model, state, kin, moving, np.asarray(gravity, dtype=float), forces, outer)
    if not len(loops):
        answer = respond(model, kin, model.armature, natural[:, None], links, across, kept)
        return Solution(model, kin, moving, answer[:, 0], links, kept)
    rows = loop_rows(model, kin, loops)
    answer = respond(
        model, kin, model.armature, np.concatenate((natural[:, None], rows.columns), axis=1), links, across, kept
    )
    rate = rows.rate(moving.links)
    pull = np.where(loops.soft, -loops.stiffness * rows.gap - loops.damping * rate, 0.0)
    delassus = rows.columns.T @ answer[:, 1:]
    opening = rows.columns.T @ answer[:, 0] + rows.rate(np.concatenate((links, np.zeros((1, 6)))))
    opening += rows.turning(kin, moving) + delassus @ pull
    opening += 2.0 * loops.baumgarte * rate + loops.baumgarte**2 * rows.gap
    rigid = np.flatnonzero(~loops.soft)
    norm = LeastNorm.of(delassus[np.ix_(rigid, rigid)])
    pull[rigid] = -norm.solve(opening[rigid])
    pulls = answer[:, 1:]
    return Solution(model, kin, moving, answer[:, 0] + pulls @ pull, links, kept, pull, pulls, rigid, norm)


def free_forces(
    model: Model,
    state: State,
    kin: Kinematics,
    moving: Motions,
    gravity: np.ndarray,
    forces: np.ndarray | None,
    wrenches: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `kinematics.bias` returns, with joint springs and dampers at rest targets and joint `forces` (nv,) among the
    freedom slots' forces; `wrenches` (links, 6) about the clusters' origins."""
    natural, links, across = bias(model, kin, moving, gravity, wrenches)
    strain = model.coordinates.difference(model.coordinates.zero(), state.q)
    spring = model.coordinates.spring_force(strain, model.stiffness * strain)
    passive = -spring - (model.damping + model.drive_damping + model.rubbing(state.v)) * state.v
    natural[model.columns.slot_of] += passive if forces is None else passive + forces
    return natural, links, across
