"""Free flight: a tree that nothing but gravity acts on keeps its angular momentum and flies along a parabola.

An integrator in joint coordinates keeps both only to its order. Each frame that a tree spends in free flight therefore
ends with a rigid correction of the whole tree, by its root's free joint, that makes them exact; it is of the size of
the integrator's own error. Joint forces, springs, limits and armature act between links and change neither.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .kinematics import kinematics, motions
from .model import Model, State
from .spatial import cross, skew


@dataclass(frozen=True)
class Balance:
    """Per tree: center of mass (trees, 3), its velocity (trees, 3), the angular momentum (trees, 3) and inertia
    (trees, 3, 3) about it, and the root link's pose (trees, 3, 4)."""

    center: np.ndarray
    velocity: np.ndarray
    angular: np.ndarray
    inertia: np.ndarray
    root: np.ndarray


class Flight:
    """The trees of a model that can fly: those whose root has a free joint and that carry no keyed link."""

    def __init__(self, model: Model) -> None:
        a, c = model.assembly, model.coordinates
        roots = np.flatnonzero((model.parent < 0) & (c.kinds == "free"))
        keyed = np.isin(roots, model.trees[model.keyed])
        self.roots = roots[~keyed]
        self.model = model
        tree = np.full(model.n, -1)
        for number, root in enumerate(self.roots.tolist()):
            tree[model.trees == root] = number
        self.slot_tree = np.full(a.links, -1)
        self.slot_tree[a.slot] = tree
        self.member = (np.arange(len(self.roots))[:, None] == self.slot_tree).astype(float)
        mass = np.zeros(a.links)
        mass[a.slot] = model.mass
        self.mass = self.member @ mass
        self.weights = self.member * mass / np.maximum(self.mass, 1e-300)[:, None]
        self.slot_center = np.zeros((a.links, 3, 1))
        self.slot_center[a.slot, :, 0] = model.center
        self.root_slot = a.slot[self.roots]
        self.root_q = c.q_start[self.roots]
        self.root_v = c.v_start[self.roots]
        self.rest_rotation = model.placement[self.roots][:, :3, :3]

    def measure(self, state: State) -> Balance:
        """The balance of every flying tree."""
        a = self.model.assembly
        kin = kinematics(self.model, state.q)
        links = motions(self.model, kin, state.v).links[:-1]
        place = kin.poses[:-1, :3, 3] + (kin.poses[:-1, :3, :3] @ self.slot_center)[:, :, 0]
        center = self.weights @ place
        # about the center of mass of the link's tree
        offset = kin.origin.take(a.cluster_of, axis=0) - self.member.T @ center
        momenta = (kin.inertia @ links[:, :, None])[:, :, 0]
        momenta[:, :3] += cross(offset, momenta[:, 3:])
        total = self.member @ momenta
        across = skew(offset)
        moment = across @ kin.inertia[:, 3:, :3]
        inertia = kin.inertia[:, :3, :3] + moment + moment.swapaxes(-1, -2) - across @ kin.inertia[:, 3:, 3:] @ across
        inertias = (self.member @ inertia.reshape(-1, 9)).reshape(-1, 3, 3)
        velocity = total[:, 3:] / self.mass[:, None]
        return Balance(center, velocity, total[:, :3], inertias, kin.poses[self.root_slot, :3, :4])

    def keep(self, start: State, end: State, touched: np.ndarray, gravity: np.ndarray) -> State:
        """The state `end`, made exact for the trees that flew freely since `start`: those with none of their links
        among the `touched` (slots)."""
        if not len(self.roots):
            return end
        trees = self.slot_tree[touched]
        flying = np.ones((len(self.roots), 1), dtype=bool)
        flying[trees[trees >= 0]] = False
        if not flying.any():
            return end
        h = end.time - start.time
        before, now = self.measure(start), self.measure(end)
        center = before.center + h * before.velocity + 0.5 * h * h * gravity
        spin = np.linalg.solve(now.inertia, (before.angular - now.angular)[:, :, None])[:, :, 0] * flying
        move = (center - now.center) * flying
        arm = now.root[:, :, 3] - now.center
        change = (before.velocity + h * gravity - now.velocity) * flying + np.cross(spin, arm)
        to_rest = self.rest_rotation.swapaxes(-1, -2)
        q, v = end.q.copy(), end.v.copy()
        q[self.root_q[:, None] + np.arange(4, 7)] += (to_rest @ move[:, :, None])[:, :, 0]
        v[self.root_v[:, None] + np.arange(3)] += (now.root[:, :, :3].swapaxes(-1, -2) @ spin[:, :, None])[:, :, 0]
        v[self.root_v[:, None] + np.arange(3, 6)] += (to_rest @ change[:, :, None])[:, :, 0]
        return replace(end, q=q, v=v)
