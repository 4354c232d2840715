"""The response in the middle of a step: accelerations without the impulses of limits and contacts, and by these."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .articulated_contact import Articulated
from .dynamics import respond
from .kinematics import motions
from .loops import Hold, LeastNorm, loop_rows
from .middle import Middle
from .rows import Rows
from .tree import Kept


@dataclass(frozen=True)
class Answers:
    """The freedom slots' accelerations `alone`, without the rows' impulses (slots,), and by unit impulses of the rows,
    `pushes` (slots, width), in the columns of their packing; `moves` (nv, width) are the joints' part of these.
    `delassus` (rows, rows): the rows' velocities by each other's unit impulses, an operator where they have no columns.
    `hold` keeps loops closed throughout, None without any: by impulses `coupling` (r, rows) for each of the rows'.

    `sleeps`: the slots that sleep, None for none; `kept` by `respond`, where hands ask for it.
    """

    middle: Middle
    rows: Rows
    sleeps: np.ndarray | None
    kept: Kept | None
    alone: np.ndarray
    pushes: np.ndarray
    moves: np.ndarray
    delassus: np.ndarray | Articulated
    hold: Hold | None
    coupling: np.ndarray

    @classmethod
    def of(cls, middle: Middle, rows: Rows, forces: tuple[np.ndarray, ...], asleep: np.ndarray) -> Answers:
        """The response to `Middle.forces` and unit impulses of `rows`; what is `asleep` (slots + 1,) does not move."""
        world, kin, c = middle.world, middle.kin, middle.world.model.columns
        natural, links, across = forces
        sleeps = (asleep[c.owner] > 0).nonzero()[0] if np.count_nonzero(asleep) else None
        if sleeps is not None:
            natural[sleeps] = 0.0
        closing = loop_rows(world.model, kin, world.loops) if len(world.loops) else None
        columns = (natural[:, None], rows.columns, *((closing.columns,) if closing else ()))
        kept = {} if world.grips else None
        columns = np.concatenate(columns, axis=1)
        answer = respond(world.model, middle.heavy, middle.resistance, columns, links, across, kept)
        width = rows.columns.shape[1]
        alone, pushes = answer[:, 0], answer[:, 1 : 1 + width]
        hold, coupling = None, np.zeros((0, len(rows.key)))
        if closing:
            hold = Hold.of(closing, answer[:, 1 + width :], middle.h)
            coupling = hold.coupling(pushes)
            pushes = pushes + hold.pulls @ coupling
        moves = pushes.take(c.slot_of, axis=0)
        delassus = Articulated(middle, rows) if rows.on_links else rows.packing.together(rows.columns, pushes)
        return cls(middle, rows, sleeps, kept, alone, pushes, moves, delassus, hold, coupling)

    def to(self, forces: tuple[np.ndarray, ...]) -> Answers:
        """With the forces of other velocities in the same pose."""
        natural, links, across = forces
        if self.sleeps is not None:
            natural[self.sleeps] = 0.0
        middle = self.middle
        answer = respond(middle.world.model, middle.heavy, middle.resistance, natural[:, None], links, across)
        return replace(self, alone=answer[:, 0])

    def free(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Joint velocities (nv,) at the step's end without contacts and limits, the acceleration (nv,) to these, and
        the loops' impulses (r,)."""
        middle, model = self.middle, self.middle.world.model
        smooth = self.alone[model.columns.slot_of]
        free = middle.state.v + middle.h * smooth
        if not self.hold:
            return free, smooth, np.zeros(0)
        links = motions(model, middle.kin, free, middle.twist_after).links
        pull = self.hold.impulses(self.hold.rows.rate(links))
        free = free + self.hold.pulls[model.columns.slot_of] @ pull
        return free, (free - middle.state.v) / middle.h, pull

    def moved(self, impulses: np.ndarray) -> np.ndarray:
        """What impulses of the rows (rows,) add to the joints' velocities (nv,)."""
        if isinstance(self.delassus, Articulated):
            return self.delassus.moved(impulses)
        return self.rows.packing.spread(self.moves, self.middle.world.model.columns.slot_of, impulses)

    def accelerations(self, impulses: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """The accelerations of all slots (slots,) with impulses of the rows (rows,) and of the loops (r,)."""
        spread = self.rows.packing.spread(self.pushes, np.arange(len(self.pushes)), impulses)
        change = self.alone + spread / self.middle.h
        if self.hold:
            change += self.hold.pulls @ pull / self.middle.h
        return change

    def held(self, met: np.ndarray) -> dict:
        """The parts of a `Solution` by which loops answer further forces, and with them the limits and contacts that
        press, rows `met` (m,): for a moment these hold like loops do."""
        inverse, columns = np.zeros((0, 0)), np.zeros((len(self.pushes), 0))
        if self.hold:
            inverse, columns = self.hold.norm.inverse, self.hold.pulls
        r, m = len(inverse), len(met)
        if r + m == 0:
            return {}
        among = LeastNorm.of(self.delassus[np.ix_(met, met)])
        both = np.zeros((r + m, r + m))
        both[:r, :r], both[r:, r:] = inverse, among.inverse
        columns = np.concatenate((columns, self.rows.packing.apart(self.pushes, met)), axis=1)
        return {"pulls": columns, "held": np.arange(r + m), "norm": LeastNorm(both, among.rank)}
