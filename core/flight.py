"""Free flight: a body that nothing but gravity acts on keeps its angular momentum and flies along a parabola.

An integrator in joint coordinates keeps both only to its order. Each frame that a body, a tree or several that loops
join, spends in free flight therefore ends with a rigid correction of the whole body, by its roots' free joints, that
makes them exact; it is of the size of the integrator's own error. Joint forces, springs, limits, loops and armature act
between links and change neither. Where steps cannot be short enough for a whirl of links, `calmed` takes out what its
motion within the body has gained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .closure import Loops
from .groups import joined
from .kinematics import kinematics, motions
from .model import Model, State
from .spatial import TINY, cross, skew


@dataclass(frozen=True)
class Balance:
    """Per body: center of mass (bodies, 3), its velocity (bodies, 3), the angular momentum (bodies, 3) and inertia
    (bodies, 3, 3) and kinetic energy (bodies,) about it; and the root links' poses (roots, 3, 4)."""

    center: np.ndarray
    velocity: np.ndarray
    angular: np.ndarray
    inertia: np.ndarray
    kinetic: np.ndarray
    root: np.ndarray


class Flight:
    """The bodies of a model that can fly: trees whose root has a free joint and that carry no keyed link, those that
    loops join together as one, without those that loops tie to anything else."""

    def __init__(self, model: Model, loops: Loops) -> None:
        a, c = model.assembly, model.coordinates
        ends = model.link_of[np.stack((loops.host, loops.real))]
        # the world is 0, so that what is tied to it belongs to it
        tree = np.append(model.trees + 1, 0)
        body = joined(model.n + 1, tree[ends])[tree[:-1]] - 1
        flies = (model.parent >= 0) | (c.kinds == "free")
        grounded = body[~flies | model.keyed]
        flying = ~np.isin(body, np.append(grounded, -1))
        bodies = np.unique(body[flying])
        self.model, self.count = model, len(bodies)
        self.roots = np.flatnonzero((model.parent < 0) & flying)
        self.root_body = np.searchsorted(bodies, body[self.roots])
        self.slot_body = np.full(a.links + 1, -1)
        self.slot_body[a.slot] = np.where(flying, np.searchsorted(bodies, body), -1)
        self.member = (np.arange(self.count)[:, None] == self.slot_body[:-1]).astype(float)
        mass = np.zeros(a.links)
        mass[a.slot] = model.mass
        self.mass = self.member @ mass
        self.weights = self.member * mass / np.maximum(self.mass, TINY)[:, None]
        self.slot_center = np.zeros((a.links, 3, 1))
        self.slot_center[a.slot, :, 0] = model.center
        self.root_slot = a.slot[self.roots]
        self.root_q = c.q_start[self.roots]
        self.root_v = c.v_start[self.roots]
        # of what does not fly the last, -1
        self.freedom_body = np.repeat(self.slot_body[a.slot], np.diff(c.v_start))
        self.rest_rotation = model.placement[self.roots][:, :3, :3]

    def measure(self, state: State) -> Balance:
        """The balance of every flying body."""
        a = self.model.assembly
        kin = kinematics(self.model, state.q)
        links = motions(self.model, kin, state.v).links[:-1]
        place = kin.poses[:-1, :3, 3] + (kin.poses[:-1, :3, :3] @ self.slot_center)[:, :, 0]
        center = self.weights @ place
        # about the center of mass of the link's body
        offset = kin.origin.take(a.cluster_of, axis=0) - self.member.T @ center
        momenta = (kin.inertia @ links[:, :, None])[:, :, 0]
        kinetic = 0.5 * self.member @ (links * momenta).sum(axis=1)
        momenta[:, :3] += cross(offset, momenta[:, 3:])
        total = self.member @ momenta
        across = skew(offset)
        moment = across @ kin.inertia[:, 3:, :3]
        inertia = kin.inertia[:, :3, :3] + moment + moment.swapaxes(-1, -2) - across @ kin.inertia[:, 3:, 3:] @ across
        inertias = (self.member @ inertia.reshape(-1, 9)).reshape(-1, 3, 3)
        velocity = total[:, 3:] / self.mass[:, None]
        kinetic -= 0.5 * self.mass * (velocity * velocity).sum(axis=1)
        return Balance(center, velocity, total[:, :3], inertias, kinetic, kin.poses[self.root_slot, :3, :4])

    def _as_one(self, balance: Balance, together: np.ndarray) -> Balance:
        """The balance of all bodies `together` (bodies,) with the same number, for each of them."""
        member = (together[:, None] == together).astype(float)
        share = member * self.mass / (member @ self.mass)[:, None]
        center, velocity = share @ balance.center, share @ balance.velocity
        arm, drift = balance.center - center, balance.velocity - velocity
        across = skew(arm)
        angular = balance.angular + self.mass[:, None] * cross(arm, drift)
        inertia = balance.inertia - self.mass[:, None, None] * (across @ across)
        whole = np.einsum("ij,jkl->ikl", member, inertia)
        kinetic = balance.kinetic + 0.5 * self.mass * (drift * drift).sum(axis=1)
        return Balance(center, velocity, member @ angular, whole, member @ kinetic, balance.root)

    def _flown(
        self, start: State, end: State, touched: np.ndarray
    ) -> tuple[np.ndarray, Balance | None, Balance | None]:
        """Which bodies (bodies, 1) flew freely from `start` to `end`, and the balances then, of those that touched each
        other as one."""
        bodies = self.slot_body[touched]
        bodies = bodies[bodies[:, 0] != bodies[:, 1]]
        # the last is all that does not fly
        together = joined(self.count + 1, bodies.T % (self.count + 1))
        flying = (together != together[-1])[:-1, None]
        together = together[:-1]
        if not flying.any():
            return flying, None, None
        before, now = self.measure(start), self.measure(end)
        if (together != np.arange(self.count)).any():
            before, now = self._as_one(before, together), self._as_one(now, together)
        return flying, before, now

    def calmed(self, start: State, end: State, touched: np.ndarray) -> State:
        """The state `end` without what bodies that flew freely since `start` have gained in energy beside that of their
        centers of mass; `touched` as in `keep`, after which this comes.

        The motion within a body is what is left without the rigid motion that has its momenta. Energy is the sum of
        both's, so scaling the former changes no momentum.
        """
        flying, before, now = self._flown(start, end, touched)
        if not flying.any():
            return end

        spin = np.linalg.solve(now.inertia, now.angular[:, :, None])[:, :, 0]
        rigid = 0.5 * (spin * now.angular).sum(axis=1)
        share = np.maximum(before.kinetic - rigid, 0.0) / np.maximum(now.kinetic - rigid, TINY)
        share = np.where(flying[:, 0], np.sqrt(np.minimum(share, 1.0)), 1.0)
        body = self.root_body
        arm = now.root[:, :, 3] - now.center[body]
        inward = now.root[:, :, :3].swapaxes(-1, -2)
        turning = (inward @ spin[body][:, :, None])[:, :, 0]
        moving = now.velocity[body] + np.cross(spin[body], arm)
        moving = (self.rest_rotation.swapaxes(-1, -2) @ moving[:, :, None])[:, :, 0]
        v = end.v * np.append(share, 1.0)[self.freedom_body]
        rest = 1.0 - share[body, None]
        v[self.root_v[:, None] + np.arange(3)] += rest * turning
        v[self.root_v[:, None] + np.arange(3, 6)] += rest * moving
        return replace(end, v=v)

    def keep(self, start: State, end: State, touched: np.ndarray, gravity: np.ndarray) -> tuple[State, float]:
        """The state `end`, made exact for the bodies that flew freely since `start`; those that `touched` (t, 2), pairs
        of slots, as one, unless one of them touched what does not fly; and how far [m] the farthest had strayed."""
        flying, before, now = self._flown(start, end, touched)
        if not flying.any():
            return end, 0.0
        h = end.time - start.time
        center = before.center + h * before.velocity + 0.5 * h * h * gravity
        spin = np.linalg.solve(now.inertia, (before.angular - now.angular)[:, :, None])[:, :, 0] * flying
        body = self.root_body
        move = ((center - now.center) * flying)[body]
        arm = now.root[:, :, 3] - now.center[body]
        change = ((before.velocity + h * gravity - now.velocity) * flying)[body] + np.cross(spin[body], arm)
        to_rest = self.rest_rotation.swapaxes(-1, -2)
        turned = now.root[:, :, :3].swapaxes(-1, -2) @ spin[body][:, :, None]
        q, v = end.q.copy(), end.v.copy()
        q[self.root_q[:, None] + np.arange(4, 7)] += (to_rest @ move[:, :, None])[:, :, 0]
        v[self.root_v[:, None] + np.arange(3)] += turned[:, :, 0]
        v[self.root_v[:, None] + np.arange(3, 6)] += (to_rest @ change[:, :, None])[:, :, 0]
        return replace(end, q=q, v=v), float(np.sqrt((move * move).sum(axis=1)).max(initial=0.0))
