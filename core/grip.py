"""Links that are held and pulled while they are simulated: springs from a point of a link to where a hand is.

The virtual coupling of Colgate, Stanley and Brown (Issues in the haptic display of tool use, 1995), whose link side
stands in the steps themselves: they are implicit in it, as in joints' drives, so that no stiffness is too high for a
step, however long. What the hand feels of it is told by the coupling loop (coupling.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from .guidance import implicit
from .hybrid_model import HybridModel
from .kinematics import Kinematics
from .linkage import LinkageError
from .model import Model
from .spatial import cross, logarithm, matrix_quaternion, rigid_inertia

AHEAD = 0.1
"""A hand is taken to move on as it did for so long [s]."""


@dataclass(frozen=True)
class Grip:
    """A hold of the `link` of that name at a `point` (3,) [m] in its frame, of 3 freedoms, where it only pulls, or 6,
    where it turns the link as well."""

    link: str
    point: Sequence[float] = (0.0, 0.0, 0.0)
    freedoms: int = 3

    def __post_init__(self) -> None:
        if np.shape(self.point) != (3,) or not np.isfinite(self.point).all():
            raise LinkageError(f"link {self.link!r} is held at {self.point}; give three finite numbers [m]")
        if self.freedoms not in (3, 6):
            raise LinkageError(f"link {self.link!r} is held with {self.freedoms} freedoms; give 3 or 6")


@dataclass
class Aim:
    """Where a hand is at `time` [s] and how it moves: `pose` (4, 4), `velocity` (3,) and `spin` (3,), and the springs
    to there: `stiffness` [N/m, N m/rad] and `damping` [N s/m, N m s/rad] against ways and turns (2,)."""

    pose: np.ndarray = field(default_factory=lambda: np.eye(4))
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(3))
    spin: np.ndarray = field(default_factory=lambda: np.zeros(3))
    stiffness: np.ndarray = field(default_factory=lambda: np.zeros(2))
    damping: np.ndarray = field(default_factory=lambda: np.zeros(2))
    time: float = 0.0


@dataclass(frozen=True)
class Grips:
    """The grips of a world's links, each with its aim, which changes between steps. `slots` (k,) of the links in the
    assembly of the world's model, and `at` (k, 3) in the frames of those.

    `last`: of the last step what `Feedback.prepare` takes: how it was `solved`, the `forces` (6k,) on the links,
    torques before forces, and the `inertia` (6k, 6k) that made it implicit, at the points. `resists`: as of `Fields`.
    """

    grips: tuple[Grip, ...] = ()
    aims: tuple[Aim, ...] = ()
    slots: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    at: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    last: dict = field(default_factory=dict)
    resists: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.grips)

    def holding(self, model: Model, grip: Grip, aim: Aim) -> Grips:
        """With a further grip. Raises LinkageError for a link that is not there or that keys move."""
        if grip.link not in model.number:
            raise LinkageError(f"no link is called {grip.link!r}; hold one of the model's")
        if model.keyed[model.number[grip.link]]:
            raise LinkageError(f"link {grip.link!r} follows its keys and cannot be pulled; hold one that is simulated")
        return Grips((*self.grips, grip), (*self.aims, aim)).on(model)

    def released(self, grip: Grip) -> Grips:
        """Without a grip."""
        kept = np.flatnonzero([each is not grip for each in self.grips])
        pick = lambda values: tuple(values[i] for i in kept)  # noqa: E731
        return Grips(pick(self.grips), pick(self.aims), self.slots[kept], self.at[kept])

    def on(self, model: Model) -> Grips:
        """The same grips of a model that is laid out differently."""
        slots = [model.assembly.slot[model.number[grip.link]] for grip in self.grips]
        at = np.array([grip.point for grip in self.grips], dtype=float).reshape(-1, 3)
        return replace(self, slots=np.array(slots, dtype=int), at=at)

    def gathered(self, body: HybridModel) -> Grips:
        """The same grips of the zones of a hybrid body."""
        if not len(self):
            return self
        within = body.slot_within[self.slots]
        at = (within[:, :3, :3] @ self.at[:, :, None])[:, :, 0] + within[:, :3, 3]
        return replace(self, slots=body.slot_zone[self.slots], at=at)

    def on_links(
        self, model: Model, kin: Kinematics, start: np.ndarray, expected: np.ndarray, time: float, h: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `Fields.on_links`."""
        slot, k = self.slots, len(self)
        arm = self._arms(kin.poses) + kin.offset[slot]
        inertia = model.slot_inertia[slot]
        # what turns and what moves at least
        light = np.stack((inertia[:, 3, 3], inertia[:, [0, 1, 2], [0, 1, 2]].min(axis=1)), axis=1)
        stiffness, damping = (np.array([getattr(aim, name) for aim in self.aims]) for name in ("stiffness", "damping"))
        stiffness, damping = (values * self._turning for values in (stiffness, damping))
        lead, resistance = implicit(stiffness, damping, light, h)
        away, turned, late, whirl = self._errors(kin.poses, arm + kin.origins[slot], arm, start[slot], time)
        force = -stiffness[:, :1] * away - (damping + lead)[:, :1] * late
        torque = -stiffness[:, 1:] * turned - (damping + lead)[:, 1:] * whirl
        wrenches, added = np.zeros((model.assembly.links, 6)), np.zeros((model.assembly.links, 6, 6))
        np.add.at(wrenches, slot, np.concatenate((torque + cross(arm, force), force), axis=1))
        np.add.at(added, slot, rigid_inertia(resistance[:, 0], arm, resistance[:, 1, None, None] * np.eye(3)))
        self.last["forces"] = np.concatenate((torque, force), axis=1).reshape(-1)
        self.last["inertia"] = np.diag(np.repeat(resistance[:, ::-1], 3, axis=1).reshape(6 * k))
        return wrenches, added

    def pulls(self, poses: np.ndarray, time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points (k, 3), torques (k, 3) and forces (k, 3) of springs alone in poses (links + 1, 4, 4) of the slots."""
        arm, still = self._arms(poses), np.zeros((len(self), 6))
        points = arm + poses[self.slots, :3, 3]
        away, turned, _, _ = self._errors(poses, points, arm, still, time)
        stiffness = np.array([aim.stiffness for aim in self.aims]) * self._turning
        return points, -stiffness[:, 1:] * turned, -stiffness[:, :1] * away

    @property
    def _turning(self) -> np.ndarray:
        """Ones (k, 2), and zeros for grips that do not turn their links."""
        return np.array([(1.0, grip.freedoms == 6) for grip in self.grips])

    def _arms(self, poses: np.ndarray) -> np.ndarray:
        """The points (k, 3) from the links' origins, along the world's axes."""
        return (poses[self.slots, :3, :3] @ self.at[:, :, None])[:, :, 0]

    def _errors(
        self, poses: np.ndarray, points: np.ndarray, arm: np.ndarray, twist: np.ndarray, time: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """How far (k, 3) the links' points and axes are from the hands, and how much faster."""
        aims = self.aims
        goal, velocity, spin = (np.array([getattr(aim, x) for aim in aims]) for x in ("pose", "velocity", "spin"))
        ahead = np.clip([time - aim.time for aim in aims], 0.0, AHEAD)[:, None]
        away = points - goal[:, :3, 3] - ahead * velocity
        late = twist[:, 3:] + cross(twist[:, :3], arm) - velocity
        turn = poses[self.slots, :3, :3] @ goal[:, :3, :3].swapaxes(-1, -2)
        return away, logarithm(matrix_quaternion(turn)) - ahead * spin, late, twist[:, :3] - spin
