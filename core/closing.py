"""Closing loops: joint coordinates and velocities moved onto what the loops allow, and how much freedom that leaves.

Both moves are orthogonal in the mass matrix: they change as little as the links' inertia lets them, keep momentum, and
the velocity's never adds kinetic energy.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .closure import Loops
from .dynamics import respond
from .kinematics import Kinematics, kinematics, link_poses, motions
from .linkage import LinkageError
from .loops import LeastNorm, loop_rows, strands_of
from .model import Model, State

CLOSED = 1e-12
"""Loops are closed until no row is open by more than this [m or rad]."""
ITERATIONS, STRIDE, SHORTENINGS, APART = 60, 0.3, 4, 1e-6
"""In so many of Newton's iterations, each of no more than STRIDE [rad or m] in any joint, halved where that does not
bring the ends nearer; what stays open by more than APART cannot be assembled."""
PROJECTIONS, ALMOST = 20, 1e-9
"""Iterations that close loops which a step has hardly opened, and where the default step stops [m or rad]: near
singular poses every iteration brings only a digit or half of one."""


def close(
    model: Model, q: np.ndarray, loops: Loops, given: np.ndarray | None = None, *,
    iterations: int = ITERATIONS, enough: float = CLOSED,
) -> np.ndarray:  # fmt: skip
    """The joint coordinates (nq,) nearest to `q` with the projected loops closed as far as they can be, or open by less
    than `enough`; `given` as in `kinematics`."""
    loops = loops.select(~np.isin(np.arange(len(loops)), loops.loop[loops.soft]))
    if not len(loops):
        return q
    opening = lambda q: loops.gaps(link_poses(model, q, given)[0])  # noqa: E731
    gap, stretched = opening(q), False
    for _ in range(iterations):
        if np.abs(gap).max() < enough:
            break
        kin = kinematics(model, q, given)
        rows = loop_rows(model, kin, loops)
        answer = respond(model, _stretched(model, kin, loops) if stretched else kin, model.armature, rows.columns)
        move = answer[model.columns.slot_of] @ -LeastNorm.of(rows.columns.T @ answer).solve(gap)
        most = STRIDE / max(np.abs(move).max(initial=0.0), STRIDE)
        for share in most * 0.5 ** np.arange(SHORTENINGS):
            nearer = model.coordinates.integrate(q, move, share)
            left = opening(nearer)
            if left @ left < gap @ gap:
                q, gap = nearer, left
                break
        else:
            if stretched:
                break
            stretched = True
    return q


def _stretched(model: Model, kin: Kinematics, loops: Loops) -> Kinematics:
    """The kinematics in which links between a loop's ends turn the harder, the longer they are. Where a loop is
    stretched straight its ends come apart by the squares of the links' turns times their lengths, and light links
    must not take all of the turning."""
    strands = strands_of(loops, model, kin)
    inertia = kin.inertia.copy()
    np.add.at(inertia[:, :3, :3], strands.link, strands.against_turning(model.mass.sum() * strands.length**2))
    return replace(kin, inertia=inertia)


def assemble_loops(model: Model, q: np.ndarray, loops: Loops, given: np.ndarray | None) -> np.ndarray:
    """As `close`; raises LinkageError for a loop that stays open, saying by how much."""
    q = close(model, q, loops, given)
    poses = link_poses(model, q, given)[0]
    gap, apart = np.where(loops.soft, 0.0, np.abs(loops.gaps(poses))), loops.apart(poses)
    if gap.max(initial=0.0) > APART:
        worst = int(loops.loop[gap.argmax()])
        far = f"{apart[worst]:.3g} m" if apart[worst] > APART else f"{np.degrees(gap.max()):.3g}°"
        raise LinkageError(
            f"connection {loops.names[worst]!r} cannot be assembled: its ends stay {far} apart; "
            "move them within reach or let it connect later"
        )
    return q


def connected_velocity(
    model: Model, q: np.ndarray, v: np.ndarray, loops: Loops, given: tuple[np.ndarray | None, ...] = (None, None)
) -> np.ndarray:
    """The joint velocities (nv,) after projected loops have closed with relative velocity: impulses in the loops' rows
    stop it, without bounce (structure-varying paper, eq. 11-24, for any joint type, one chain or two).

    `given`: joint transforms (n, 4, 4) and twists (n, 6) of keyed links.
    """
    if not len(loops):
        return v
    kin = kinematics(model, q, given[0])
    rows = loop_rows(model, kin, loops)
    rigid = np.flatnonzero(~loops.soft)
    if not len(rigid):
        return v
    columns = rows.columns[:, rigid]
    answer = respond(model, kin, model.armature, columns)
    rate = rows.rate(motions(model, kin, v, given[1]).links)[rigid]
    return v - answer[model.columns.slot_of] @ LeastNorm.of(columns.T @ answer).solve(rate)


def freedoms(model: Model, state: State, loops: Loops, given: np.ndarray | None = None) -> tuple[int, int, int]:
    """The joints' freedoms N_J, those of closed virtual joints included; the number of independent constraints m; and
    the freedoms N_F = N_J − m (structure-varying paper, eq. 6); `given` as in `kinematics`."""
    own = sum(6 - int((loops.loop == k).sum()) for k in range(len(loops)))
    kin = kinematics(model, state.q, given)
    rows = loop_rows(model, kin, loops)
    rank = LeastNorm.of(rows.columns.T @ respond(model, kin, model.armature, rows.columns)).rank if len(loops) else 0
    # a virtual joint's own freedoms come with as many conditions: six close a loop whatever the joint
    return model.nv + own, rank + own, model.nv - rank
