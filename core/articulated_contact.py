"""Many contacts with what stands still, without their matrix: a step of Newton's method as one pass over the links.

Where a contact presses with impulses z and goes with velocities w, a step dz, dw of Newton's method on its cone is

    (1 − D + δ D) dz + D dw = r,   D (3, 3) the derivative of the projection, δ the damping,

so dz = C (r − D dw) with C = (1 − D + δ D)⁻¹: a damper, D and r being those of the contact alone. What touches one
link only adds Jᵀ C D J to its inertia, and articulated bodies answer with it as without, in a time that grows with the
links and not with the cube of the rows. What slips is pressed along another direction than it resists, so this inertia
is not symmetric. Limits, and contacts of links with each other, keep columns and are solved for with what those answer.

Sources: Featherstone 1999 (see tree.py) for the passes; for contacts as inertia of their links, Sathya and Carpentier
2024, "Constrained articulated body dynamics algorithms".
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from .cones import DAMPING_MAX, RELAXATION, Cones, by_axis
from .dynamics import respond
from .middle import Middle
from .rows import Rows, summed


class Articulated:
    """What unit impulses of `rows` do in the `middle` of a step, as an operator (rows, rows): `self @ impulses`."""

    def __init__(self, middle: Middle, rows: Rows) -> None:
        self.middle, self.model, self.resistance = middle, middle.world.model, middle.resistance
        self.rows, self.heavy, self.on = rows, middle.heavy, rows.on_links
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def moved(self, impulses: np.ndarray) -> np.ndarray:
        """What impulses (rows,) add to the joints' velocities (nv,)."""
        if self._last is None or self._last[0] is not impulses:
            forces = self.rows.forces(self.model, self.heavy, impulses)
            answer = respond(self.model, self.heavy, self.resistance, forces[:, None])
            self._last = impulses, answer[self.model.columns.slot_of, 0]
        return self._last[1]

    def __matmul__(self, impulses: np.ndarray) -> np.ndarray:
        return self.along(self.moved(impulses))

    def along(self, v: np.ndarray) -> np.ndarray:
        """The rows' velocities (rows,) with joint velocities `v` (nv,), all else at rest."""
        return self.rows.straight(self.model, self.heavy, v, None)

    def problem(self, u: np.ndarray, friction: np.ndarray, limits: int) -> Cones:
        """The problem of these rows, see `friction.solve`."""
        return _Problem(self, u, friction, limits)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """What unit impulses of the rows (rows,) do to themselves: exactly where contacts are with what stands still,
        else about that. Newton's method needs several times as many steps on what is scaled otherwise."""
        rows, limits, result = self.rows, self.rows.limits, np.zeros(len(self.rows.key))
        light = np.append(self.middle.world.light + self.resistance, np.inf)
        result[: len(limits)] = (limits.weights**2 / light[limits.freedoms]).sum(axis=1)
        links = self.middle.mobility
        for side in rows.sides:
            same, at = side.within(self.model), np.arange(len(rows.key))[side.at].reshape(len(side.link), -1)
            for which, link in ((slice(None), side.link), (same, side.against[same])):
                wrenches = side.wrenches[which]
                result[at[which]] += (wrenches @ links[link] * wrenches).sum(axis=2)
        return result


class _Problem(Cones):
    """The problem of what is articulated."""

    def __init__(self, G: Articulated, u: np.ndarray, friction: np.ndarray, limits: int) -> None:
        k = len(friction)
        super().__init__(G.diagonal, u, friction, by_axis(limits, k, len(u)), limits + np.arange(k), k, 0)
        self.G, self.m = G, limits
        self.size = self._sorted(self.unit)
        side, own = G.rows.sides[0], G.on.own
        self.place = np.full(k, -1)
        self.place[own] = np.arange(len(own))
        self.link = side.link[own]
        self.wrenches = self.size[limits:].reshape(k, 3)[own, :, None] * side.wrenches[own]

    def _sorted(self, x: np.ndarray) -> np.ndarray:
        """Rows (rows,) as they came, of those in order."""
        result = np.empty_like(x)
        result[self.order] = x
        return result

    def first_damping(self, residual: float) -> float:
        # many contacts of what is stiff press in place of each other: with less, most of a step leads too far
        return DAMPING_MAX

    def start(self, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # what was just solved for is known to move all so
        return self.scaled(guess), self._velocity(self.G @ guess / self.speed)

    def velocity(self, z: np.ndarray) -> np.ndarray:
        return self._velocity(self.G @ (self.size * self._sorted(z)))

    def _velocity(self, gain: np.ndarray) -> np.ndarray:
        return (self.size * gain).take(self.order) + self.u

    def direction(
        self, w: np.ndarray, gap: tuple[np.ndarray, ...], damping: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        F, x, share, length = gap
        slides = (share > 0.0) & (share < 1.0)
        slip = x[self.split :].reshape(2, -1) / length
        drag = self.friction * slides * slip
        try:
            dz, dw = self._step(x[: self.split] > 0.0, share, slides * slip, drag, damping, -F)
        except np.linalg.LinAlgError:
            return None
        return (dz, dw) if np.isfinite(dz @ dz) else None

    def _step(
        self, presses: np.ndarray, share: np.ndarray, slip: np.ndarray, drag: np.ndarray, damping: float, r: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The dz and dw, both (rows,), of (1 - D + damping D) dz + D dw = r, where D is one for limits and normals that
        press (m + k,), `drag` (2, k) from normals to tangents, and for tangents `share` (k,) less what is along `slip`
        (2, k), unit vectors or zero."""
        m, r, limits = self.m, self._sorted(r), presses[: self.m].nonzero()[0]
        # what neither presses nor has to change does nothing
        some = (presses[m:] | (r[m:].reshape(-1, 3) != 0.0).any(axis=1)).nonzero()[0]
        C, S = _dampers(presses[m:][some].astype(float), share[some], slip[:, some], drag[:, some], damping)
        dz, contacts = r, r[m:].reshape(-1, 3, 1)
        dz[limits] /= damping
        contacts[some] = C @ contacts[some]
        dw = self.size * self.G.along(self._answer(self.size * dz, limits, some, S, damping))
        dz[limits] -= dw[limits] / damping
        contacts[some] -= S @ dw[m:].reshape(-1, 3, 1)[some]
        return dz.take(self.order), dw.take(self.order)

    def _answer(
        self, impulses: np.ndarray, limits: np.ndarray, some: np.ndarray, S: np.ndarray, damping: float
    ) -> np.ndarray:
        """What `impulses` (rows,) add to the joints' velocities (nv,) where `limits` (l,) resist with 1 / damping and
        `some` of the contacts (c,) with `S` (c, 3, 3)."""
        G, m = self.G, self.m
        place, presses = self.place[some], S[:, 0, 0] > 0.0
        own, others = (presses & (place >= 0)).nonzero()[0], (presses & (place < 0)).nonzero()[0]
        wrenches, link = self.wrenches[place[own]], self.link[place[own]]
        inertia = (wrenches.swapaxes(-1, -2) @ (S[own] @ wrenches)).reshape(-1, 36)
        inertia = G.heavy.inertia + summed(link, inertia, len(G.heavy.inertia)).reshape(-1, 6, 6)
        columns = np.zeros((len(G.model.columns.link), 0))
        if len(limits) + len(others):
            rows = np.append(limits, m + (3 * some[others, None] + np.arange(3)).reshape(-1))
            columns = G.on.columns(np.isin(G.on.others, some[others]))
            columns = columns[:, np.append(limits, np.arange(m, columns.shape[1]))] * self.size[rows]
        forces = np.concatenate((G.rows.forces(G.model, G.heavy, impulses)[:, None], columns), axis=1)
        answers = respond(G.model, replace(G.heavy, inertia=inertia), G.resistance, forces, symmetric=False)
        change, answers = answers[:, 0], answers[:, 1:]
        if columns.shape[1]:
            rest = _diagonal(np.full(len(limits), 1.0 / damping), S[others])
            dw = np.linalg.solve(np.eye(len(rest)) + columns.T @ answers @ rest, (columns.T @ change)[:, None])[:, 0]
            change = change - answers @ (rest @ dw)
        return change[G.model.columns.slot_of]

    def admm(
        self, z: np.ndarray, multiplier: np.ndarray | None, penalty: float, iterations: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Cones.admm`."""
        dual = (-self.velocity(z) if multiplier is None else multiplier) / penalty
        all_of_them, none = np.ones(self.split, dtype=bool), np.zeros((2, len(self.friction)))
        for _ in range(iterations):
            b = penalty * (z - dual) - self.u
            mixed = RELAXATION * self._step(all_of_them, np.ones(len(self.friction)), none, none, penalty, b)[0]
            mixed += (1.0 - RELAXATION) * z
            mixed += dual
            z = self.project(mixed)[0]
            dual = mixed - z
        return z, penalty * dual


def _dampers(
    presses: np.ndarray, share: np.ndarray, slip: np.ndarray, drag: np.ndarray, damping: float
) -> tuple[np.ndarray, np.ndarray]:
    """C = (1 - D + damping D)⁻¹ and C D, both (k, 3, 3), of the D that `_Problem._step` tells of."""
    keep, (first, second) = 1.0 - damping, slip
    along = share * (1.0 - first * first - second * second)
    normal, across = 1.0 / (1.0 - keep * presses), 1.0 / (1.0 - keep * share)
    slide = 1.0 / (1.0 - keep * along)
    C, S = np.zeros((2, len(share), 3, 3))
    for matrix, pressed, dragged, aside, on in (
        (C, normal, keep * normal * slide, across, slide),
        (S, normal * presses, (keep * normal * presses + 1.0) * slide, across * share, slide * along),
    ):
        turn = on - aside
        matrix[:, 0, 0] = pressed
        matrix[:, 1, 0], matrix[:, 2, 0] = dragged * drag
        matrix[:, 1, 1], matrix[:, 2, 2] = aside + turn * first * first, aside + turn * second * second
        matrix[:, 1, 2] = matrix[:, 2, 1] = turn * first * second
    return C, S


def _diagonal(scalars: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """The matrix of `scalars` (s,) and `blocks` (b, 3, 3) on its diagonal."""
    size = len(scalars) + 3 * len(blocks)
    result = np.diag(np.append(scalars, np.zeros(3 * len(blocks))))
    at = np.arange(len(scalars), size).reshape(-1, 3)
    result[at[:, :, None], at[:, None, :]] = blocks
    return result
