"""The force that a grabbed link feeds back to who pulls it, as an affine map of the pull (Morin and Redon 2007,
force-feedback paper).

A link that is pulled by f_u, by external forces f_ext and by its handles moves as (eq. 11)

    I a = f_u + f_ext + Σ f_i - v × I v,   and what is fed back is   f = f_ext + Σ f_i   (eq. 12):

all that acts on the link but the user, gravity among it, so that a link held still feeds back f = -f_u, a free one in
flight its weight. Of several grabs each is a user of its own; what the others pull with is external to it, on the same
link too. Since a is affine in the users' forces, a = A_0 + B f_u, so is f = F_0 + K f_u with

    F_0 = I A_0 + v × I v,   K = I B - 1,

and only A_0 and B are to be found: A_0 is what the step has solved, B comes by restricted passes (up_region.py) from
the step's own tree, in O(log n) for a grab and O(n_f log(n / n_f)) for n_f of them, besides the numbers of B itself;
rows of loops, which answer too, cost O(rows) more. Everything stands about the grab's point, along the world's axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .dynamics import Solution
from .hierarchy import vector
from .hybrid_model import HybridModel
from .loop_forces import LoopForces
from .model import Model
from .quasi_statics import QuasiStatics
from .spatial import cross, pose, pose_inverse, shift_force
from .up_region import UpRegion

FREEDOMS = {3: slice(3, 6), 6: slice(0, 6)}
"""What a grip of so many freedoms takes of (torque, force) and of (angular, linear)."""


@dataclass(frozen=True)
class Grab:
    """A hold of the link called `link`, at `point` (3,) [m] in its frame. `freedoms`: 6 for torque and force, 3 for a
    force alone."""

    link: str
    point: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0)
    freedoms: int = 6


@dataclass(frozen=True)
class AffineMap:
    """Of k grabs with m freedoms, each grab's in turn, what is fed back (m,) [N m, N] to the users' forces f_u (m,),
    F_0 + K f_u, and how the grabs' points accelerate (m,) [rad/s², m/s²], A_0 + B f_u; torques before forces, about the
    points, along the world's axes.

    `F_0` (m,), `K` (m, m), `A_0` (m,), `B` (m, m), symmetric: the inverse of the apparent inertia. Both hold in one
    instant; there the grabs have `frames` (k, 4, 4), their links' axes at their points, and `velocity` (k, 6) [rad/s,
    m/s].
    """

    F_0: np.ndarray
    K: np.ndarray
    A_0: np.ndarray
    B: np.ndarray
    frames: np.ndarray
    velocity: np.ndarray

    def force(self, f_u: np.ndarray) -> np.ndarray:
        """The fed-back forces (m,); raises ValueError where `f_u` (m,) is not finite or has another shape."""
        return self.F_0 + self.K @ self._checked(f_u)

    def acceleration(self, f_u: np.ndarray) -> np.ndarray:
        """The points' accelerations (m,) under the users' forces `f_u` (m,)."""
        return self.A_0 + self.B @ self._checked(f_u)

    def _checked(self, f_u: np.ndarray) -> np.ndarray:
        f_u = np.asarray(f_u, dtype=float)
        if f_u.shape != self.F_0.shape or not np.isfinite(f_u).all():
            raise ValueError(f"the users' forces have shape {f_u.shape}; give {len(self.F_0)} finite numbers")
        return f_u


class Feedback:
    """The grabs of links of a `body`: a model, the hybrid body of one, or its quasi-statics.

    Grabs are fixed; those of `holding`, `moved` and `released` are new ones, and `on` takes them to another body, as
    after an event or a refresh of the active joints. This costs O(log n) for each grab, beside what all grabs on one
    model share. Raises ValueError for links that the model does not have, points that are not finite, or held twice.
    """

    def __init__(self, body: Model | HybridModel | QuasiStatics, grabs: Sequence[Grab] = ()) -> None:
        self.body, self.grabs = body, tuple(grabs)
        model = body if isinstance(body, Model) else body.model
        self.model = model
        number = model.number
        taken = set()
        for grab in self.grabs:
            point = np.asarray(grab.point, dtype=float)
            if grab.link not in number:
                raise ValueError(f"no link is called {grab.link!r}; grab one of the model's")
            if point.shape != (3,) or not np.isfinite(point).all():
                raise ValueError(f"the grab of {grab.link!r} is at {grab.point}; give a point of 3 finite numbers")
            if grab.freedoms not in FREEDOMS:
                raise ValueError(f"the grab of {grab.link!r} has {grab.freedoms} freedoms; give it 3 or 6")
            if (grab.link, *point.tolist()) in taken:
                raise ValueError(f"two grabs hold {grab.link!r} at the same point; let one go")
            taken.add((grab.link, *point.tolist()))
        self.links = np.array([number[grab.link] for grab in self.grabs], dtype=int)
        points = np.array([grab.point for grab in self.grabs], dtype=float).reshape(-1, 3)
        k = len(self.grabs)
        # what is held in an instant, of all six numbers of each grab
        self.held = np.concatenate(
            [np.zeros(0, dtype=int), *(6 * i + np.arange(6)[FREEDOMS[x.freedoms]] for i, x in enumerate(self.grabs))]
        )
        shift = shift_force(-points)
        self.inertia = shift @ model.inertia[self.links] @ shift.swapaxes(-1, -2)
        self.heavy = model.mass[self.links][:, None], model.center[self.links] - points
        self.at = pose(np.broadcast_to(np.eye(3), (k, 3, 3)), points)
        if isinstance(body, QuasiStatics):
            return
        if isinstance(body, Model):
            self.slots = body.assembly.slot[self.links]
        else:
            self.slots = np.append(body.reduced.assembly.slot, body.reduced.assembly.links)[
                body.zones.zone_of(self.links)
            ]
            self.at = _within(body, self.links) @ self.at
        self.region = UpRegion((body if isinstance(body, Model) else body.reduced).assembly, self.slots)

    def holding(self, *grabs: Grab) -> Feedback:
        """With further grabs."""
        return Feedback(self.body, self.grabs + grabs)

    def moved(self, index: int, point: Sequence[float] | np.ndarray) -> Feedback:
        """With one of the grabs at another `point` (3,) of its link."""
        grabs = list(self._with(index))
        grabs[index] = replace(grabs[index], point=point)
        return Feedback(self.body, grabs)

    def released(self, index: int) -> Feedback:
        """Without one of the grabs."""
        grabs = self._with(index)
        return Feedback(self.body, grabs[:index] + grabs[index + 1 :])

    def _with(self, index: int) -> tuple[Grab, ...]:
        """The grabs, of which there is one of that number."""
        if not 0 <= index < len(self.grabs):
            raise ValueError(f"there is no grab {index}; give a number from 0 to {len(self.grabs) - 1}")
        return self.grabs

    def on(self, body: Model | HybridModel | QuasiStatics) -> Feedback:
        """The same grabs of another body."""
        return self if body is self.body else Feedback(body, self.grabs)

    def prepare(
        self,
        solved: Solution | QuasiStatics,
        applied: np.ndarray | None = None,
        added: np.ndarray | None = None,
    ) -> AffineMap:
        """The map in the instant that a step has `solved`: for a model its solution, for a hybrid body that of the
        reduced model, for quasi-statics themselves, which are brought up to date.

        `applied` (m,): the users' forces that were in it already, and `added` (m, m) an inertia that was put at the
        points to make them implicit; neither is in the map.
        """
        if isinstance(solved, QuasiStatics):
            if solved is not self.body:
                raise ValueError("the grabs are of another body than what was solved; take them there with `on`")
            return self._still(solved, applied)
        if solved.model is not (self.body.reduced if isinstance(self.body, HybridModel) else self.body):
            raise ValueError("the grabs are of another body than what was solved; take them there with `on`")
        if solved.kept is None:
            raise ValueError("nothing of the tree is kept; solve with kept={}")
        kin, slots, region, k = solved.kin, self.slots, self.region, len(self.slots)
        frames = kin.poses[slots] @ self.at
        arm = frames[:, :3, 3] - kin.origins[slots]
        shift = shift_force(arm)
        moves = shift.swapaxes(-1, -2)
        wrenches = np.zeros((k, 6, k, 6))
        wrenches[np.arange(k), :, np.arange(k)] = shift
        B = region.responses(kin, solved.kept, wrenches.reshape(k, 6, 6 * k))
        if solved.norm is not None:
            C = (moves @ region.motion(kin, solved.pulls)[:, :, solved.held]).reshape(6 * k, -1)
            B -= C @ solved.norm.solve(C.T)
        own = (moves @ region.motion(kin, solved.accelerations[:, None])).reshape(6 * k)
        A = own.copy().reshape(k, 6)
        inside = slots < len(solved.links)
        A[inside] += (moves[inside] @ solved.links[slots[inside], :, None])[:, :, 0]
        velocity = (moves @ solved.moving.links[slots][:, :, None])[:, :, 0]
        spin = velocity[:, :3]
        A[:, 3:] += cross(spin, velocity[:, 3:])
        return self._map(frames, velocity, A.reshape(-1), B, own, applied, added)

    def _still(self, quasi: QuasiStatics, applied: np.ndarray | None) -> AffineMap:
        """The map of quasi-statics, whose velocities are zero."""
        quasi.refresh()
        loops, k = self._loops, len(self.links)
        own = np.searchsorted(loops.leaves, self.links)
        poses = quasi.articulation.world_poses(loops.leaves)
        frames = poses[own] @ self.at
        turn = np.zeros((k, 6, 6))
        turn[:, :3, :3] = turn[:, 3:, 3:] = frames[:, :3, :3].swapaxes(-1, -2)
        units = np.zeros((len(loops.leaves), 6, 6 * k))
        columns = np.arange(6 * k).reshape(k, 1, 6)
        units[own[:, None, None], np.arange(6)[:, None], columns] = shift_force(self.at[:, :3, 3]) @ turn
        B, A = loops.answers(poses, units)
        # the world accelerates against gravity
        A = (A.reshape(k, 6) + np.concatenate((np.zeros(3), quasi.gravity))).reshape(-1)
        return self._map(frames, np.zeros((k, 6)), A, B, A, applied, None)

    @cached_property
    def _loops(self) -> LoopForces:
        """The forces of the loops of quasi-statics, in which held links count as ends, too."""
        return LoopForces(self.body.articulation, self.model, self.body.loops, self.links)

    def _map(self, frames, velocity, A, B, own, applied, added) -> AffineMap:
        """The map from what was solved: accelerations `A` (6k,) of the points, of which an added inertia has resisted
        `own` (6k,), and their responses `B` (6k, 6k)."""
        k, held = len(frames), self.held
        if added is not None:
            # of (M + Jᵀ Z J) the inverse of M, as it answers at the points
            Z = np.zeros_like(B)
            Z[np.ix_(held, held)] = added
            B = np.linalg.solve((np.eye(6 * k) - Z @ B).T, B).T
            B = 0.5 * (B + B.T)
            A = A + B @ (Z @ own)
        if applied is not None:
            f_u = np.zeros(6 * k)
            f_u[held] = vector("users' forces", applied, len(held))
            A = A - B @ f_u
        turn = np.zeros((k, 6, 6))
        turn[:, :3, :3] = turn[:, 3:, 3:] = frames[:, :3, :3]
        inertia = turn @ self.inertia @ turn.swapaxes(-1, -2)
        spin = velocity[:, :3]
        mass, center = self.heavy
        arm = (frames[:, :3, :3] @ center[:, :, None])[:, :, 0]
        force = (inertia @ A.reshape(k, 6, 1))[:, :, 0]
        force[:, :3] += cross(spin, (inertia[:, :3, :3] @ spin[:, :, None])[:, :, 0])
        force[:, 3:] += mass * cross(spin, cross(spin, arm))
        K = (inertia @ B.reshape(k, 6, 6 * k)).reshape(6 * k, 6 * k)
        K.reshape(-1)[:: 6 * k + 1] -= 1.0
        if len(held) < 6 * k:
            every = np.ix_(held, held)
            return AffineMap(force.reshape(-1)[held], K[every], A[held], B[every], frames, velocity)
        return AffineMap(force.reshape(-1), K, A, B, frames, velocity)


def _within(body: HybridModel, links: np.ndarray) -> np.ndarray:
    """Poses (k, 4, 4) of links in the frames of their zones' roots, or of the world."""
    if body.poses is None:
        return body.within[links]
    zone = body.zones.zone_of(links)
    frames = pose_inverse(body.poses[body.root[zone]])
    frames[zone < 0] = np.eye(4)
    return frames @ body.poses[links]
