"""Which of the contacts that are near may press in a step: among many links in a heap, few do.

Those that do not have no impulse, and what they would answer need not be known. A step is solved with those that have
pressed in the last one or approach, and again with those that this has made approach, until there are none (an active
set; Nocedal and Wright 2006, Numerical Optimization, chapter 16.5). What comes of it is the step with all of them.
"""

from __future__ import annotations

import numpy as np

from .answers import Answers
from .constraints import Near, parting, recall
from .kinematics import motions
from .middle import Middle

IDLE = 32
"""Contacts that do not press are left out where they are more than so many, and more than those that do: else to find
out which they are, in several solutions, costs more than it saves."""
SLACK = 3e-5
"""What is left out may approach faster than allowed by this share of the fastest, as good as the solver's residual."""


def may_press(
    middle: Middle, near: Near, forces: tuple[np.ndarray, ...], curved: bool
) -> np.ndarray | None:  # fmt: skip
    """Which contacts (k,) have pressed in the last step, or would be missed if none did under `Middle.forces`; None
    where none are to be left out."""
    k, memory = len(near.contacts), middle.state.memory
    if k <= IDLE:
        return None
    none = np.zeros(k, dtype=bool)
    alone = Answers.of(middle, near.only(none).rows(middle.world, middle.kin), forces, near.asleep)
    presses = missed(middle, near, none, alone.free()[0], curved) > 0.0
    if memory is not None:
        presses |= recall(near.contacts.meeting.row_keys[: 3 * k : 3], memory.keys, memory.impulses) > 0.0
    return _unless_most(presses)


def missed(middle: Middle, near: Near, presses: np.ndarray, v: np.ndarray, curved: bool) -> np.ndarray:
    """By how much (k,) [m/s] contacts that were not thought to be among the `presses` (k,) approach faster than allowed
    where a step ends with joint velocities `v` (nv,), and by SLACK: less than zero where they do not, -inf for those;
    `curved`: on the curves that links move on."""
    model, rest = middle.world.model, near.only(~presses)
    contacts, bound = rest.contacts, rest.bound[len(near.limits) :]
    speed = parting(model, middle.kin, motions(model, middle.kin, v, middle.twist_after), contacts)
    if curved and middle.world.is_long:
        halfway = 0.5 * (middle.state.v + v)
        curve = middle.curve(contacts, middle.led(halfway), halfway)
        if curve is not None:
            speed, bound = speed + curve[:, 0], middle.leaving(contacts, curve)
    result = np.full(len(presses), -np.inf)
    result[~presses] = bound - SLACK * np.abs(speed).max(initial=0.0) - speed
    return result


def grown(presses: np.ndarray, late: np.ndarray, doubled: bool) -> np.ndarray | None:
    """Which contacts press (k,), with those that were `late` (k,), as `missed` says, and where their number is to be
    `doubled` with the nearest to being so; None where none are to be left out any more."""
    more = late > 0.0
    if doubled:
        more[np.argsort(-late, kind="stable")[: np.count_nonzero(presses)]] = True
    return _unless_most(presses | more)


def _unless_most(presses: np.ndarray) -> np.ndarray | None:
    """`presses` (k,), or None where so many press that none are to be left out, see IDLE."""
    pressing = np.count_nonzero(presses)
    return presses if len(presses) - pressing > max(IDLE, pressing) else None
