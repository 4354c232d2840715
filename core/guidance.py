"""A source motion that is followed by muscles: drives whose strength is a frequency, and what they know beforehand.

A freedom is driven towards the motion like a damped spring of that frequency: stiffness I (2πf)², damping 2ζ I 2πf, I
being the inertia that it moves: of its link and all that hangs from it as one rigid body, about the freedom's axis in
the rest pose, and the joint's armature. So 8 Hz feel alike for a finger and for a thigh. A free joint is driven from
the world, all others from the link above; a link that follows the world's axes is turned from the world as well. Steps
are implicit in all of it: no frequency is too high.

Springs lag behind what they drive by its acceleration over (2πf)², and sag by gravity's. What the motion needs is
therefore fed forward: on each link the force and torque along the world's axes that move it as animated in gravity
(accelerations are second differences of frames), and in the joints what their own dampers and springs take. Torques of
joints instead would turn with a link that has lost its way and drive it farther off. The share f⁴ / (f⁴ + (4 Hz)⁴) of
it acts, so that soft drives still lag and sag, and no more on a link than on those above it: what hangs from something
limp falls too.

An additive link has its own forces carried instead: gravity, the joint's damper, and of the force that accelerates it
as animated, wherever it is, the share 1 - amount. What is left of that is what a passenger feels, and drives a spring
of just that frequency and damping: with e the way off the motion, e'' + 2ζω e' + ω² e = -amount · a for a bone about
its joint and the motion's acceleration a. So e is in proportion to the amount, none at 0; what rests stays in place
however soft it is; what stops swings on and decays; contacts, fields and other links act as ever. It takes one
simulation and no blending: the difference of two would pass through what both have met.
"""

from __future__ import annotations

import numpy as np

from .guide import TIMED, Course, Guide, Samples
from .joint import Coordinates
from .kinematics import Kinematics, accelerations, motions
from .model import SUBSPACE, Model
from .motion import Follower
from .spatial import (
    cross,
    cross_force,
    cross_motion,
    logarithm,
    matrix_quaternion,
    quaternion_conjugate,
    quaternion_matrix,
    quaternion_multiply,
    shift_force,
    skew,
)

FIRM = 4.0
"""At this frequency [Hz] half of the force that the motion takes is fed forward: below it springs swing, above it they
are in place."""


class Guidance:
    """How a model follows its source motion. `course`: of its joints. `follows`: whether their drives do as well.
    `resists`: as of `Fields`."""

    def __init__(
        self, model: Model, follower: Follower, guide: Guide, gravity: np.ndarray, follows: bool = False
    ) -> None:
        frames = len(follower.poses)
        if len(guide.world) != model.n:
            raise ValueError(f"the guide has {len(guide.world)} links, the model {model.n}; make it for this model")
        for rows in (getattr(guide, name) for name in TIMED):
            if len(rows) not in (1, frames):
                raise ValueError(f"the guide has {len(rows)} frames, the motion {frames}; give as many, or one for all")
        self.poses, self.followed = follower.poses, (guide.frequency > 0.0).any(axis=1)
        self.model, time = model, follower.frame_time
        self.frame_time = time
        self.acting = (guide.frequency > 0.0).any(axis=1) | (guide.weight != 1.0).any(axis=1)
        self.course = Course(model.coordinates, follower.q, time)
        link = np.repeat(np.arange(model.n), np.diff(model.coordinates.v_start))
        turned = guide.world & (model.parent >= 0) & ~model.keyed & (guide.frequency > 0.0).any(axis=0)
        carried = _carried(model)
        self.inertia = _about_freedoms(model, carried) + model.armature
        self.ratio = Samples(guide.ratio[:, link], time)
        self.rate = Samples(2.0 * np.pi * guide.frequency[:, link] * ~turned[link], time)
        carries, faithful = guide.carried, _faithful(model, guide)
        self.follower, self.additive = follower, bool(carries.any())
        self.carries = Samples(carries[:, link], time)
        self.feed = Samples(_passive(model, self.course, carries[:, link], faithful[:, link], follows), time)
        share = np.where(carries, 0.0, faithful)
        needed = share[:, :, None] * _needed(model, follower.poses, time, guide.weight, gravity)
        needed[..., 3:] += (np.where(carries, -1.0, guide.weight - 1.0) * model.mass)[:, :, None] * gravity
        self.wrenches = Samples(needed.reshape(len(needed), -1), time)
        forward = np.where(carries, (1.0 - guide.amount) * faithful, 0.0)
        self.forward, self.geared = Samples(forward, time), Samples(forward[:, link] * model.armature, time)

        self.turned = np.flatnonzero(turned)
        self.turned_slot = model.assembly.slot[self.turned]
        self.resists = len(self.turned) > 0
        self.carried = carried[self.turned, :3, :3]
        own = np.trace(model.inertia[self.turned, :3, :3], axis1=1, axis2=2)
        self.heavier = np.trace(self.carried, axis1=1, axis2=2) / np.maximum(own, 1e-300)
        turns = matrix_quaternion(follower.poses[:, self.turned, :3, :3]).reshape(frames, -1)
        self.balls = Coordinates(["spherical"] * len(self.turned))
        self.turning = Course(self.balls, turns, time)
        self.turned_ratio = Samples(guide.ratio[:, self.turned], time)
        self.turned_rate = Samples(2.0 * np.pi * guide.frequency[:, self.turned], time)
        self.turned_carries = Samples(carries[:, self.turned], time)

    def frames(self) -> np.ndarray:
        """The motion's frames (k, n, 4, 4) in which links follow it."""
        return self.poses[np.broadcast_to(self.followed, len(self.poses))]

    def acts(self, start: float, end: float) -> bool:
        """Whether anything is followed, or weighs other than it does, from one time to another [s]."""
        if len(self.acting) == 1:
            return bool(self.acting[0])
        first, last = (
            min(max(int(np.floor(time)), 0), len(self.acting) - 1)
            for time in (start / self.frame_time + 1e-6, end / self.frame_time + 1.0 - 1e-6)
        )
        return bool(self.acting[first : last + 1].any())

    def drive(
        self, q: np.ndarray, v: np.ndarray, h: float, time: float, light: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `World.drive`: forces (nv,) for the end of the coming half step, and how much they resist (nv,)."""
        rate, target = self.rate.at(time), self.course.at(time)
        stiffness, damping = self.inertia * rate * rate, 2.0 * self.ratio.at(time) * self.inertia * rate
        lead, resistance = implicit(stiffness, damping, light, h)
        c = self.model.coordinates
        strain = c.difference(target[0], q)
        force = self.feed.at(time) - c.spring_force(strain, stiffness * strain) - (damping + lead) * (v - target[1])
        if self.additive:
            # what resists is the change of what is off the motion, not the motion's own
            resisting = (resistance - 0.5 * h * (damping + lead)) * self.carries.at(time)
            force += (resisting + self.geared.at(time)) * target[2]
        return force, resistance

    def on_links(
        self, model: Model, kin: Kinematics, start: np.ndarray, expected: np.ndarray, time: float, h: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `Fields.on_links`."""
        a = model.assembly
        wrenches, added = np.zeros((a.links, 6)), np.zeros((a.links, 6, 6))
        arm = (kin.poses[a.slot, :3, :3] @ model.center[:, :, None])[:, :, 0] + kin.offset[a.slot]
        given = self.wrenches.at(time).reshape(-1, 6)
        wrenches[a.slot, :3], wrenches[a.slot, 3:] = given[:, :3] + cross(arm, given[:, 3:]), given[:, 3:]
        forward = np.zeros(a.links)
        forward[a.slot] = self.forward.at(time)
        if np.count_nonzero(forward):
            wrenches += forward[:, None] * self._moving(kin, expected, time, h)
        if len(self.turned):
            slot = self.turned_slot
            rotation = kin.poses[slot, :3, :3]
            target, spin, bend = self.turning.at(time)
            away = self.balls.difference(target, matrix_quaternion(rotation).reshape(-1)).reshape(-1, 3, 1)
            rate = self.turned_rate.at(time)
            stiffness, damping = rate * rate, 2.0 * self.turned_ratio.at(time) * rate
            lead, resistance = implicit(stiffness, damping, 1.0 / self.heavier, h)
            inertia = rotation @ self.carried @ rotation.swapaxes(-1, -2)
            late = start[slot, :3, None] - quaternion_matrix(target.reshape(-1, 4)) @ spin.reshape(-1, 3, 1)
            pull = stiffness[:, None, None] * (rotation @ away) + (damping + lead)[:, None, None] * late
            if self.additive:
                own = (resistance - 0.5 * h * (damping + lead)) * self.turned_carries.at(time)
                pull -= own[:, None, None] * (quaternion_matrix(target.reshape(-1, 4)) @ bend.reshape(-1, 3, 1))
            wrenches[slot, :3] -= (inertia @ pull)[:, :, 0]
            added[slot, :3, :3] = resistance[:, None, None] * inertia
        return wrenches, added

    def _moving(self, kin: Kinematics, twists: np.ndarray, time: float, h: float) -> np.ndarray:
        """The wrenches (links, 6), about the clusters' origins, that make the links accelerate as animated where they
        are, with `twists` (links + 1, 6): M(q) q̈ + C(q, v) q̇ of Paden and Panja 1988, q being the motion's. As C is
        Christoffel's (Niemeyer and Slotine 1991), what is off the motion cannot gain energy from it."""
        model, a, c = self.model, self.model.assembly, self.model.columns
        keyed = change = None
        if model.keyed.any():
            _, (start, end) = self.follower.course(time, time + np.array([-0.5, 0.5]) * h)
            keyed, change = 0.5 * (start + end), (end - start) / h
        _, speed, rate = self.course.at(time)
        aim = motions(model, kin, speed, keyed)
        # columns turn with the links as they are: those fixed in a rest frame with the link above
        twists, aimed, fixed = twists[:-1], aim.links[:-1], np.zeros((a.links, 6))
        np.add.at(fixed, c.rest_link, aim.rates.take(c.rest, axis=0))
        turning = cross_motion(twists, aimed - aim.above - fixed) + cross_motion(self._above(kin, twists), fixed)
        if change is not None:
            turning[a.slot] += (kin.transform[a.slot] @ change[:, :, None])[:, :, 0]
        rates = accelerations(model, kin, rate, turning) - 0.5 * cross_motion(twists, aimed)
        momenta, own = ((kin.inertia @ each[:, :, None])[:, :, 0] for each in (aimed, twists))
        turned = cross_force(twists, momenta) + cross_force(aimed, own)
        return (kin.inertia @ rates[:, :, None])[:, :, 0] + 0.5 * turned

    def _above(self, kin: Kinematics, twists: np.ndarray) -> np.ndarray:
        """The twists (links, 6) of the links above, about the links' clusters' origins."""
        slot, hung = self.model.assembly.slot, self.model.parent >= 0
        link, above = slot[hung], slot[self.model.parent[hung]]
        result = np.zeros_like(twists)
        result[link] = twists[above]
        result[link, 3:] += cross(result[link, :3], kin.origins[link] - kin.origins[above])
        return result


def implicit(stiffness: np.ndarray, damping: np.ndarray, light: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """What a step of `h` seconds adds to the damping of springs, and what these resist as inertia.

    The midpoint rule (a `share` of 0) is of second order but rings where springs are stiff for the step and for the
    least inertia they move, `light`; the backward rule (1) does not. Each freedom gets what it needs of the latter.
    """
    share = h * (damping + h * stiffness) / light
    share = share / (1.0 + share)
    resistance = (0.5 + 0.5 * share) * h * damping + (0.25 + 0.75 * share) * h * h * stiffness
    return share * h * stiffness, resistance


def _carried(model: Model) -> np.ndarray:
    """The inertias (n, 6, 6) of links and all that hangs from them as rigid bodies, in the rest pose, in their
    frames."""
    result = model.inertia.copy()
    rotation = np.zeros((model.n, 6, 6))
    rotation[:, :3, :3] = rotation[:, 3:, 3:] = model.placement[:, :3, :3]
    lift = shift_force(model.placement[:, :3, 3]) @ rotation
    for i in range(model.n - 1, -1, -1):
        if (parent := model.parent[i]) >= 0:
            result[parent] += lift[i] @ result[i] @ lift[i].T
    return result


def _about_freedoms(model: Model, inertia: np.ndarray) -> np.ndarray:
    """The links' inertias (n, 6, 6) about the axis of each freedom (nv,)."""
    result = np.zeros(model.nv)
    for start, kind, own in zip(model.coordinates.v_start, model.coordinates.kinds, inertia, strict=False):
        axes = [axis for axis, _ in SUBSPACE[kind]]
        result[start : start + len(axes)] = own[axes, axes]
    return result


def _faithful(model: Model, guide: Guide) -> np.ndarray:
    """How much (F, n) of its motion each link is taken to make, which is fed forward."""
    result = np.where(guide.carried, 1.0, guide.frequency**4 / (guide.frequency**4 + FIRM**4))
    for i in range(model.n):
        if model.keyed[i]:
            result[:, i] = 1.0
        if (parent := model.parent[i]) >= 0:
            result[:, i] = np.minimum(result[:, i], result[:, parent])
    return result


def _passive(model: Model, course: Course, carries: np.ndarray, faithful: np.ndarray, follows: bool) -> np.ndarray:
    """The joint forces (F, nv) that are fed of dampers, unless additive links have theirs carried, and of springs where
    they do not follow the motion themselves, in it."""
    c, rate = model.coordinates, course.slope / course.frame_time
    dampers = np.where(carries, 0.0, faithful) * model.damping * rate
    if follows or not model.stiffness.any():
        return dampers
    strains = [c.difference(c.zero(), q) for q in course.q]
    springs = np.array([c.spring_force(strain, model.stiffness * strain) for strain in strains])
    return dampers + np.where(carries, 1.0, faithful) * (model.drive_damping * rate + springs)


def _needed(model: Model, poses: np.ndarray, frame_time: float, weight: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """The torques and forces (F, n, 6) about the centers of mass that move the links as in `poses` (F, n, 4, 4)."""
    rotation, position = poses[..., :3, :3], poses[..., :3, 3]
    center = position + (rotation @ model.center[:, :, None])[..., 0]
    turn = matrix_quaternion(rotation)
    steps = logarithm(quaternion_multiply(turn[1:], quaternion_conjugate(turn[:-1])))
    spin = _mean(steps) / frame_time if len(steps) else np.zeros_like(center)
    lever = skew(model.center)
    about = model.inertia[:, :3, :3] + model.mass[:, None, None] * (lever @ lever)
    inertia = rotation @ about @ rotation.swapaxes(-1, -2)
    momentum = (inertia @ spin[..., None])[..., 0]
    torque = (inertia @ (_change(steps, len(poses)) / frame_time**2)[..., None])[..., 0] + np.cross(spin, momentum)
    force = model.mass[:, None] * _change(np.diff(center, axis=0), len(poses)) / frame_time**2
    return np.concatenate((torque, force - (weight * model.mass)[..., None] * gravity), axis=-1)


def _mean(steps: np.ndarray) -> np.ndarray:
    """Per frame the mean of the steps (F - 1, ...) before and after it."""
    return 0.5 * (np.concatenate((steps[:1], steps)) + np.concatenate((steps, steps[-1:])))


def _change(steps: np.ndarray, frames: int) -> np.ndarray:
    """Per frame the change from the step before it to that after; at the ends that of the frame beside."""
    if frames < 3:
        return np.zeros((frames, *steps.shape[1:]))
    change = np.diff(steps, axis=0)
    return np.concatenate((change[:1], change, change[-1:]))
