"""Closed loops as rows: in a pose, the unit wrenches that the conditions of closure.py are the power of.

Rows may be redundant or singular (a planar loop's are): solutions are of least norm, by a rank-revealing factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .closure import Loops
from .kinematics import Kinematics, Motions, link_poses, push
from .model import Model
from .spatial import cross

_IDENTITY = np.eye(3)

RANK = 1e-10
"""Eigenvalues of the scaled Delassus matrix below this share of the largest are dependent rows."""
CLOSED, CORRECTIONS = 1e-9, 5
"""After a step loops are closed until they are open by less than this [m or rad], in so many corrections."""


@dataclass(frozen=True)
class LoopRows:
    """The r rows of loops in one pose: `gap` (r,); axes `n`, `s` and seats `p` (r, 3) in the world; the unit wrenches
    `on_real` and, reversed, `on_host` (r, 6) about the links' clusters' origins; `columns` (slots, r)."""

    loops: Loops
    gap: np.ndarray
    n: np.ndarray
    s: np.ndarray
    p: np.ndarray
    on_real: np.ndarray
    on_host: np.ndarray
    columns: np.ndarray

    def rate(self, links: np.ndarray) -> np.ndarray:
        """Rates of the gaps (r,) from twists (links + 1, 6), or the same of accelerations."""
        real, host = self.loops.real[self.loops.loop], self.loops.host[self.loops.loop]
        return (self.on_real * links[real] - self.on_host * links[host]).sum(-1)

    def turning(self, kin: Kinematics, moving: Motions) -> np.ndarray:
        """What the velocities add to the gaps' second derivatives (r,), besides the links' own accelerations."""

        def motion(link: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            twist = moving.links[link]
            return twist[:, :3], twist[:, 3:] + cross(twist[:, :3], self.p - kin.origins[link])

        (w_real, v_real), (w_host, v_host) = (
            motion(ends[self.loops.loop]) for ends in (self.loops.real, self.loops.host)
        )
        turned = cross(w_host, self.n)
        slide = (self.n * cross(w_real - w_host, v_real)).sum(-1) + (turned * (v_real - v_host)).sum(-1)
        twist = ((w_real - w_host) * (cross(cross(w_real, self.s), self.n) + cross(self.s, turned))).sum(-1)
        return np.where(self.loops.turns, twist, slide)

    def wrenches(self, forces: np.ndarray) -> np.ndarray:
        """Torque and force (k, 6) on each real link, about its seat and along the world's axes, from the rows' `forces`
        (r,)."""
        loops = self.loops
        pushed = np.where(loops.turns[:, None], cross(self.s, self.n), self.n) * forces[:, None]
        result = np.zeros((len(loops), 2, 3))
        np.add.at(result, (loops.loop, np.where(loops.turns, 0, 1)), pushed)
        return result.reshape(-1, 6)


def loop_rows(model: Model, kin: Kinematics, loops: Loops) -> LoopRows:
    """The rows in a pose of the model."""
    gap, n, s, p = loops.directions(kin.poses)
    real, host = loops.real[loops.loop], loops.host[loops.loop]
    along = np.where(loops.turns[:, None], 0.0, n)
    twist = np.where(loops.turns[:, None], cross(s, n), 0.0)
    on_real, on_host = (
        np.concatenate((twist + cross(p - kin.origins[link], along), along), axis=-1) for link in (real, host)
    )
    columns = np.zeros((len(model.columns.link), len(gap)))
    push(model, kin, real, on_real[:, None, :], columns)
    push(model, kin, host, -on_host[:, None, :], columns)
    return LoopRows(loops, gap, n, s, p, on_real, on_host, columns)


@dataclass(frozen=True)
class Strands:
    """The links that loops' loads pass, s of them: their slots `link` (s,); the directions `along` (s, 3) and `length`
    (s,) [m] from their joints to where the load comes from; the `loop` (s,), and whether they are on the `host`'s side
    (s,), where its load pulls the other way."""

    link: np.ndarray
    along: np.ndarray
    length: np.ndarray
    loop: np.ndarray
    host: np.ndarray

    def against_turning(self, amount: np.ndarray) -> np.ndarray:
        """Inertias (s, 3, 3) of `amount` (s,) [kg m²] that resist turning, but not about the strand itself."""
        return amount[:, None, None] * (_IDENTITY - self.along[:, :, None] * self.along[:, None, :])


def strands_of(loops: Loops, model: Model, kin: Kinematics, rows: np.ndarray | None = None) -> Strands:
    """The strands in a pose; `rows` as in `Loops.strands`, where they are known."""
    link, further, loop, host = (loops.strands(model.assembly.slot, model.parent) if rows is None else rows).T
    at, seat = loops.frames(kin.poses)
    ends = np.where((host > 0)[:, None], at[loop, :3, 3], seat[loop, :3, 3])
    arm = np.where((further < 0)[:, None], ends, kin.poses[further, :3, 3]) - kin.poses[link, :3, 3]
    length = np.sqrt((arm * arm).sum(-1))
    return Strands(link, arm / np.maximum(length, 1e-300)[:, None], length, loop, host > 0)


@dataclass(frozen=True)
class LeastNorm:
    """The least-norm solutions of G x = b for a symmetric, positive semidefinite and often singular G.

    `inverse` (r, r), in scaled rows; `rank`: of G.
    """

    inverse: np.ndarray
    rank: int

    @classmethod
    def of(cls, G: np.ndarray) -> LeastNorm:
        diagonal = G.diagonal()
        alive = np.flatnonzero(diagonal > 1e-14 * diagonal.max(initial=0.0))
        inverse = np.zeros_like(G)
        if not len(alive):
            return cls(inverse, 0)
        scale = 1.0 / np.sqrt(diagonal[alive])
        values, vectors = np.linalg.eigh(G[np.ix_(alive, alive)] * scale * scale[:, None])
        kept = values > RANK * values[-1]
        vectors = vectors[:, kept] * scale[:, None]
        inverse[np.ix_(alive, alive)] = (vectors / values[kept]) @ vectors.T
        return cls(inverse, int(kept.sum()))

    def solve(self, b: np.ndarray) -> np.ndarray:
        return self.inverse @ b


@dataclass(frozen=True)
class Hold:
    """Loops held together through one step of `h` seconds, at the velocity level; the rest of the step's constraints
    see a system in which they are closed already.

    Projected rows end the step without velocity. Compliant ones end it with the impulse of their spring and damper
    there: with w = G x + u that is x = -h (K (C + h w / 2) + D w), a row with 1 / (h (h K / 2 + D)) on its diagonal.
    """

    rows: LoopRows
    pulls: np.ndarray
    norm: LeastNorm
    aim: np.ndarray

    @classmethod
    def of(cls, rows: LoopRows, pulls: np.ndarray, h: float) -> Hold:
        """`pulls` (slots, r): the accelerations of the rows' unit forces."""
        loops, G = rows.loops, rows.columns.T @ pulls
        give = np.zeros(len(rows.gap))
        soft = loops.soft
        if soft.any():
            give[soft] = 1.0 / (h * (0.5 * h * loops.stiffness[soft] + loops.damping[soft]))
            G.reshape(-1)[:: len(G) + 1] += give
        return cls(rows, pulls, LeastNorm.of(G), give * h * loops.stiffness * rows.gap)

    def impulses(self, rate: np.ndarray) -> np.ndarray:
        """Impulses (r,) of the rows where their velocities are `rate` (r,) without."""
        return -self.norm.solve(rate + self.aim)

    def coupling(self, pushes: np.ndarray) -> np.ndarray:
        """What of the rows' impulses (r, columns) answers unit impulses whose accelerations are `pushes` (slots,
        columns)."""
        return -self.norm.solve(self.rows.columns.T @ pushes)

    def closed(self, model: Model, q: np.ndarray, given: np.ndarray | None) -> tuple[np.ndarray, bool]:
        """Joint coordinates (nq,) near `q` with the projected loops closed, by Newton's method with the step's own
        matrix, and whether that was enough; `given` as in `kinematics`."""
        loops, moves, best, before = self.rows.loops, self.pulls[model.columns.slot_of], q, np.inf
        for _ in range(CORRECTIONS + 1):
            gap = np.where(loops.soft, 0.0, loops.gaps(link_poses(model, q, given)[0]))
            worst = float(np.abs(gap).max())
            if worst < CLOSED:
                return q, True
            if not worst < before:
                break
            best, before = q, worst
            q = model.coordinates.integrate(q, moves @ -self.norm.solve(gap), 1.0)
        return best, False
