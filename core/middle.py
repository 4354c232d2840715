"""The middle of a step: the pose and the motion for which its equations are set up, and what acts there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from .constraints import STRAIGHT, curving, leaving
from .contact import Contacts
from .kinematics import Kinematics, Motions, bias, kinematics, link_poses, motions
from .mobility import mobilities
from .model import Model, State
from .rows import Rows
from .spatial import exponential, pose, quaternion_matrix
from .world import World

TURNED = 0.01
"""Axes that turn by less [rad] since accelerations were found let these stand."""


@dataclass(frozen=True)
class Middle:
    """Half a step of `h` seconds after a `state`: joint coordinates `q` (nq,) and their kinematics `kin`, the
    velocities `expected` there (nv,), and how the links are `moving` with these. What ball joints' axes have `turned`
    by (t, 3, 3) since accelerations were found, None where that is little.

    Of keyed links the transforms `given`, the twists there and at the step's end, `twist` and `twist_after`, and their
    rates of `change`, as `World.keyed` has them. Of force fields the `wrenches` (links, 6) and what makes links
    `heavier` (links, 6, 6), None without. The `force` (nv,) of springs and dampers, and their `resistance` (nv,).
    """

    world: World
    state: State
    h: float
    q: np.ndarray
    kin: Kinematics
    turned: np.ndarray | None
    expected: np.ndarray
    moving: Motions
    given: np.ndarray | None
    twist: np.ndarray | None
    twist_after: np.ndarray | None
    change: np.ndarray | None
    wrenches: np.ndarray | None
    heavier: np.ndarray | None
    force: np.ndarray
    resistance: np.ndarray

    @classmethod
    def of(cls, world: World, state: State, h: float) -> Middle:
        model, memory, time = world.model, state.memory, state.time + 0.5 * h
        # what led to the end of the last step leads to the middle of this
        known = memory is not None and memory.h == h and memory.v is state.v
        q = model.coordinates.moved(state.q, *(memory.way if known else model.coordinates.way(state.v, 0.5 * h)))
        given, twist, twist_after, change = world.keyed(time, h)
        kin = kinematics(model, q, given)
        turned = None if memory is None else _turned(model, kin, twist, state.v, 0.5 * memory.h + 0.25 * h)
        expected = state.v if memory is None else state.v + 0.5 * h * _along(model, memory.smooth, turned)
        moving = motions(model, kin, expected, twist)
        wrenches = heavier = None
        if acting := world.acting:
            start = motions(model, kin, state.v, twist).links if any(each.resists for each in acting) else None
            parts = [each.on_links(model, kin, start, moving.links, time, h) for each in acting]
            wrenches, heavier = (reduce(np.add, part) for part in zip(*parts))
        return cls(
            world, state, h, q, kin, turned, expected, moving, given, twist, twist_after, change, wrenches, heavier,
            *world.drive(q, state.v, h, time),
        )  # fmt: skip

    @cached_property
    def lasting(self) -> np.ndarray:
        """What lasts of the last step's contacts, as acceleration of the joints (nv,)."""
        return _along(self.world.model, self.state.memory.lasting, self.turned)

    @cached_property
    def heavy(self) -> Kinematics:
        """The kinematics with what makes links harder to accelerate."""
        loads = np.zeros((0, 6)) if self.state.memory is None else self.state.memory.loads
        heavy = self.world.taut(self.kin, self.h, loads)
        return heavy if self.heavier is None else replace(heavy, inertia=heavy.inertia + self.heavier)

    @cached_property
    def mobility(self) -> np.ndarray:
        """The links' accelerations by unit wrenches (links, 6, 6), see `mobilities`."""
        return mobilities(self.world.model, self.heavy, self.resistance)

    def led(self, v: np.ndarray) -> Motions:
        """How the links move with joint velocities `v` (nv,)."""
        return motions(self.world.model, self.kin, v, self.twist)

    def forces(self, moving: Motions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The forces (slots,) where links move so, and `kinematics.bias`'s accelerations (links, 6) and (joints, 6)."""
        model = self.world.model
        natural, links, across = bias(model, self.kin, moving, self.world.gravity, self.wrenches, self.change)
        natural[model.columns.slot_of] += self.force
        return natural, links, across

    def bend(self, rows: Rows, moving: Motions, meant: np.ndarray) -> None:
        """Has contacts meet what moves on curves where they are worth it, see `curve`."""
        curve = self.curve(rows.contacts, moving, meant, once=rows.curve.any())
        if curve is not None:
            rows.bend(curve, self.leaving(rows.contacts, curve))

    def curve(self, contacts: Contacts, moving: Motions, meant: np.ndarray, once: bool = False) -> np.ndarray | None:
        """What curves add to the velocities (k, 3) of long chains' contacts, None where that is nothing, unless it was
        something `once`: until the middle of the next step, as long as this, joints move on with the velocities that
        `meant` (nv,) here lead to, and keyed links with their twists."""
        world, model, h, v = self.world, self.world.model, self.h, 2.0 * meant - self.state.v
        if not len(contacts) or not world.is_long:
            return None
        turn = h * max(float(np.abs(moving.links[:, :3]).max()), world.bent(v))
        if 0.5 * world.deepest * turn * turn <= STRAIGHT and not once:
            return None
        given, twist = self.given, self.twist_after
        if given is not None:
            given = given @ pose(quaternion_matrix(exponential(h * twist[:, :3])), h * twist[:, 3:])
        later = link_poses(model, model.coordinates.moved(self.q, *model.coordinates.way(v, h)), given)[0]
        return curving(model, contacts, self.kin, motions(model, self.kin, v, twist), later, h)

    def leaving(self, contacts: Contacts, curve: np.ndarray) -> np.ndarray:
        """The lowest velocities (k,) that contacts are allowed on a `curve` (k, 3)."""
        # half a step before and after its end, what slides on a surface is as far off that as it curves away meanwhile
        return leaving(self.world, contacts.gap - 0.25 * self.h * curve[:, 0], self.h)


def _turned(model: Model, kin: Kinematics, twist: np.ndarray | None, v: np.ndarray, since: float) -> np.ndarray | None:
    """What turns accelerations (t, 3, 3) that were found along ball joints' axes so many seconds `since`: what pulls
    keeps its direction in the world, and the links spin with joint velocities `v` (nv,) under it."""
    turning = model.coordinates.turning
    # hinges above turn them, too; that some velocities are lengths only lets it be asked more often
    if not len(turning) or since * np.abs(v).max() < TURNED:
        return None
    slots = model.assembly.slot[turning]
    spin = motions(model, kin, v, twist).links[slots, None, :3] @ kin.poses[slots, :3, :3]
    return quaternion_matrix(exponential(-since * spin[:, 0]))


def _along(model: Model, acceleration: np.ndarray, turned: np.ndarray | None) -> np.ndarray:
    """An acceleration (nv,) with its parts along ball joints' axes `turned`."""
    if turned is None:
        return acceleration
    result, freedoms = acceleration.copy(), model.coordinates.quaternion_v
    result[freedoms] = (turned @ acceleration[freedoms][..., None])[..., 0]
    return result
