"""The articulated-body and total-acceleration equations of every node of a partition, brought up to date where needed.

Redon and Lin 2006 (quasi-statics paper), sections 3 to 5: velocities are zero at each instant. A node with handle
forces f = (at its top, at its tip) answers with a = Φ f + b, and its total acceleration, the sum of q̈ᵀ W q̈ over its
joints, is fᵀ Ψ f + fᵀ p + η (eq. 8). Each handle's quantities stand in the frame of its own link, so what moves rigidly
needs no update, and a joint needs one transform between the two links it joins (section 5.1).

A node of K children is assembled at once. With F the forces across its K - 1 joints, each along the joint's own axes,
the children's handle forces are h = G [F; f], so that by virtual work Y = Gᵀ Φ G and Gᵀ b are the compliance and the
bias of the joints and of the node's handles together; likewise (z, z_f) = Gᵀ p. The joints' condition
(`tree.Tree`: B holds their axes, free ones scaled by the root of their armature, E is one on those)

    (B P B + E) x = -B (Y_Ff f + β),   F = B x,   P = Y_FF,   (β, β_f) = Gᵀ b

makes F = X (β; f) and q̈ = V (β; f); with X = (-K, T) and h = R (β; f) the node's coefficients are blocks of

    Φ' = Y_ff + Tᵀ Y_Ff,   b' = β_f + Tᵀ β,   H = Rᵀ Ψ R + Vᵀ W V,   Ψ' = H_ff,   p' = z_f + Tᵀ z + 2 H_fβ β,
    η' = Σ η + βᵀ H_ββ β - zᵀ K β

Joint forces Q are taken into the children's b, p and η first, as the forces G_F Q on their handles.
The world is a leaf with Φ = 0 that accelerates against gravity: then gravity bends nothing that falls freely.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from .joint import FREEDOMS
from .model import SUBSPACE, Model
from .partition import Partition
from .spatial import force_maps, skew

_FOUR, _SIX = np.eye(4), np.eye(6)
BATCH, CHUNK = 1024, 256
"""Up to so many nodes are brought up to date as one batch; of more, so many at once: more do not fit the cache."""
ROUNDING = 1e-13
"""What rounding adds to a total acceleration, as a share of the terms it is summed from; part of every bound."""
_SUM, _DOUBT = np.ones(25), np.full(25, ROUNDING)


class Articulation:
    """Coefficients of the nodes of `partition`, whose joints are as they were placed (see `place`).

    `pairs` (nodes + 1, 2, 12, 12): Φ and Ψ; `linear` (nodes + 1, 12, 2): b and p; `eta` (nodes + 1,). Of inner nodes,
    with m = 6 (arity - 1): `shape` (inner, 12 arity, m + 12): G; `answer` (inner, 2 m, m + 12): X, then V; `start`
    (inner, 2 m): F, then q̈, without handle forces; `squares` (inner, m + 12, m): H_ββ, then H_fβ. `drift` (inner, m):
    accelerations across the joints that velocities make by themselves, where something moves; β is taken less these.
    `pose` (nodes + 1, 4, 4): of a node's top link in the frame of its parent's; `reach` (nodes + 1, 4, 4): of its tip
    link in that of its top; both as of the last `move`.
    `applied` (joints + 1, 6): joint forces Q along the axes. `free` (joints + 1, 6): which axes are freedoms, and
    `velocity` (joints + 1, 6) their indices, nv for none. `factor` (joints + 1, 6, 6): C with W = Cᵀ C, None for ones.
    `movable` (inner,): how many of a node's principal joints have freedoms; `opens` (inner, arity): which children can
    be opened.
    """

    drift: np.ndarray | None = None

    def __init__(self, model: Model, partition: Partition, gravity: np.ndarray, factor: np.ndarray | None) -> None:
        p = partition
        self.partition, self.factor = p, factor
        inner, m = len(p.child), 6 * (p.arity - 1)
        self.pairs, self.linear = np.zeros((p.nodes + 1, 2, 12, 12)), np.zeros((p.nodes + 1, 12, 2))
        self.eta = np.zeros(p.nodes + 1)
        self.shape = np.zeros((inner, 12 * p.arity, m + 12))
        self._ports[:, 0, 0, :, -2] = self._ports[np.arange(inner), p.tip_child, 1, :, -1] = _SIX
        self.ones = np.ones(p.arity)
        self.answer, self.start = np.zeros((inner, 2 * m, m + 12)), np.zeros((inner, 2 * m))
        self.squares = np.zeros((inner, m + 12, m))
        self.pose = np.broadcast_to(np.eye(4), (p.nodes + 1, 4, 4)).copy()
        self.reach, self.joint_pose = self.pose.copy(), np.zeros((p.joints + 1, 4, 4))
        self.applied, self.active = np.zeros((p.joints + 1, 6)), False
        row, column = np.nonzero(p.joint < p.joints)
        self._column = np.zeros(p.joints, dtype=int)
        self._column[p.joint[row, column]] = column
        self.opens = p.opens
        self._axes(model)
        self._leaves(model, gravity)

    @property
    def _ports(self) -> np.ndarray:
        """`shape` by children, handles, and joints; no attribute, as copies of two would be of two arrays."""
        p = self.partition
        return self.shape.reshape(len(self.shape), p.arity, 2, 6, p.arity + 1, 6)

    def _leaves(self, model: Model, gravity: np.ndarray) -> None:
        p = self.partition
        body = np.flatnonzero(p.link < p.n)
        # what keys move may weigh nothing: its joint holds it, whatever it weighs
        inertia = np.where((model.keyed & (model.mass == 0.0))[:, None, None], _SIX, model.inertia)
        inverse = np.linalg.inv(inertia)[p.link[body]] / p.share[body, None, None]
        self.pairs[body, 0] = np.tile(0.5 * (inverse + inverse.swapaxes(-1, -2)), (1, 2, 2))
        world = np.flatnonzero(p.link == p.n)
        self.linear[world, :, 0] = np.tile(np.concatenate((np.zeros(3), -gravity)), 2)

    def _axes(self, model: Model) -> None:
        p, c = self.partition, model.coordinates
        self.free = np.zeros((p.joints + 1, 6), dtype=bool)
        self.velocity = np.full((p.joints + 1, 6), c.nv)
        for kind in FREEDOMS:
            some = np.flatnonzero(c.kinds == kind)
            for d, (axis, _) in enumerate(SUBSPACE[kind]):
                self.free[some, axis], self.velocity[some, axis] = True, c.v_start[some] + d
        self.turned = np.zeros(p.joints + 1, dtype=bool)
        self.turned[: p.n] = np.isin(c.kinds, ("universal", "free"))
        self.universal = np.zeros(p.joints + 1, dtype=bool)
        self.universal[: p.n] = c.kinds == "universal"
        self.movable = self.free.any(-1)[p.joint].sum(-1)
        self.unit, self.unit_free = self.free.astype(float), self.free.astype(float)
        self.scale = np.where(self.free, np.sqrt(np.append(model.armature, 0.0)[self.velocity]), 1.0)
        # the parts of the world stand still by themselves; parts of links are joined rigidly
        parts = np.arange(p.n, p.joints)
        still = np.append(parts[p.link[p.joint_child[parts]] == p.n], p.joints)
        self.unit[still], self.scale[still] = 1.0, 0.0
        self.place(parts, np.broadcast_to(np.eye(4), (len(parts), 4, 4)), np.eye(4))

    def place(self, joints: np.ndarray, poses: np.ndarray, turn: np.ndarray) -> None:
        """Where `joints` (k,) hold their links: `poses` (k, 4, 4) in the links that carry them, and the joints' own
        transforms `turn` (k, 4, 4)."""
        self.joint_pose[joints] = poses
        axes = np.broadcast_to(_SIX, (len(joints), 6, 6))
        which = np.flatnonzero(self.turned[joints])
        if len(which):
            axes = axes.copy()
            axes[which] = self.turned_axes(joints[which], turn[which])
        row, column = self.partition.owner[joints] - self.partition.blocks, self._column[joints]
        self._ports[row, column + 1, 0, :, column] = axes
        self._ports[row, self.partition.carrier[row, column], 1, :, column] = -(force_maps(poses) @ axes)

    def turned_axes(self, joints: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """The axes (k, 6, 6) in the links' frames of `joints` (k,) that turn some of them."""
        axes = np.tile(_SIX, (len(joints), 1, 1))
        universal = self.universal[joints]
        first = turn[universal, 0, :3]
        axes[universal, :3, 0] = first
        axes[universal, :3, 1] = skew(first) @ [0.0, 0.0, -1.0]
        axes[~universal, 3:, 3:] = turn[~universal, :3, :3].swapaxes(-1, -2)
        return axes

    def load(self, leaves: np.ndarray, wrenches: np.ndarray) -> None:
        """`leaves` (k,) are pulled by `wrenches` (k, 6) about their links' origins, along their links' axes."""
        self.linear[leaves, :, 0] = (self.pairs[leaves, 0, :, :6] @ wrenches[:, :, None])[:, :, 0]

    def move(self, moved: np.ndarray) -> None:
        """Brings the poses of and within the inner nodes `moved` up to date, as `update` does their coefficients."""
        p = self.partition
        row = moved - p.blocks
        child, carrier, tip = p.child[row], p.carrier[row], p.tip_child[row]
        steps, at = self.joint_pose[p.joint[row]], np.arange(len(row))
        for s in self._slices(moved):
            tips, k = self.reach[child[s]], at[: s.stop - s.start]
            for j in range(p.arity - 1):
                pose = (tips[k, carrier[s, j]] if j else tips[:, 0]) @ steps[s, j]
                steps[s, j] = pose
                tips[:, j + 1] = pose @ tips[:, j + 1]
            self.reach[moved[s]] = tips[k, tip[s]]
        self.pose[child[:, 0]], self.pose[child[:, 1:]] = _FOUR, steps
        self.pose[p.nodes] = self.reach[p.nodes] = _FOUR

    def _slices(self, nodes: np.ndarray) -> list[slice]:
        """The levels of ascending inner `nodes` from the lowest up, without those that have none."""
        cuts = np.searchsorted(nodes, self.partition.starts[1:]).tolist()
        return [slice(a, b) for a, b in pairwise(cuts) if b > a]

    def batches(self, nodes: np.ndarray) -> Iterator[tuple[np.ndarray, list[slice]]]:
        """Ascending inner `nodes` from the lowest up, as many at a time as fit the cache, and their levels."""
        slices = self._slices(nodes)
        if len(nodes) <= BATCH:
            if slices:
                yield nodes, slices
            return
        for s in slices:
            for first in range(s.start, s.stop, CHUNK):
                some = nodes[first : min(first + CHUNK, s.stop)]
                yield some, [slice(0, len(some))]

    def reveal(self, nodes: np.ndarray) -> None:
        """Makes `start` of the inner `nodes`, and b, p and η of their children, valid, whose parents' are."""

    def update(self, moved: np.ndarray, loaded: np.ndarray) -> None:
        """Brings up to date all coefficients of the inner nodes `moved`, and b, p and η of the inner nodes `loaded`,
        whose joints or children have changed. Both are ascending and closed upward; what is moved is loaded too."""
        only = np.setdiff1d(loaded, moved, assume_unique=True) if len(loaded) > len(moved) else loaded[:0]
        if len(loaded) <= BATCH:
            full, light = Batch(self, moved, True), Batch(self, only, False)
            parts = [(moved[s.start], full, s) for s in self._slices(moved)]
            parts += [(only[s.start], light, s) for s in self._slices(only)]
            for _, batch, s in sorted(parts, key=lambda part: part[0]):
                batch.run(s)
            full.keep()
            light.keep()
            return
        cuts, also = (np.searchsorted(some, self.partition.starts[1:]).tolist() for some in (only, moved))
        for level in range(self.partition.levels):
            for nodes, edges, full in ((moved, also, True), (only, cuts, False)):
                for i in range(edges[level], edges[level + 1], CHUNK):
                    some = nodes[i : min(i + CHUNK, edges[level + 1])]
                    batch = Batch(self, some, full)
                    batch.run(slice(0, len(some)))
                    batch.keep()

    def settle(self) -> None:
        """Brings up to date what an update may put off."""

    def weighed(self, joint: np.ndarray, motion: np.ndarray) -> np.ndarray:
        """Joint accelerations (k, m, columns) scaled so that their squares are what W makes of them."""
        if self.factor is None:
            return motion
        k, m, columns = motion.shape
        return (self.factor[joint] @ motion.reshape(k, m // 6, 6, columns)).reshape(k, m, columns)

    def total(self, nodes: np.ndarray, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Total accelerations (k,) of `nodes` (k,) under handle `forces` (k, 12) (eq. 8), at most as much too small as
        the second (k,) says, which is already added: rounding counts in the bound."""
        terms = np.empty((len(nodes), 25))
        np.multiply(forces, (self.pairs[nodes, 1] @ forces[:, :, None])[:, :, 0], out=terms[:, :12])
        np.multiply(forces, self.linear[nodes, :, 1], out=terms[:, 12:24])
        terms[:, 24] = self.eta[nodes]
        doubt = np.abs(terms) @ _DOUBT
        return np.maximum(terms @ _SUM, 0.0) + doubt, doubt

    def open(self, nodes: np.ndarray, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of `nodes` (k,) under handle `forces` (k, 12): the joints (j,) and their accelerations (j, 6) along the axes,
        the nodes (l,) below that can be opened in turn and the forces (l, 12) on their handles."""
        p = self.partition
        self.reveal(nodes)
        row = nodes - p.blocks
        k, m = len(row), 6 * (p.arity - 1)
        answer = (self.answer[row, :, m:] @ forces[:, :, None])[:, :, 0]
        answer += self.start[row]
        inner = self.opens[row]
        handles = self.shape[row] @ np.concatenate((answer[:, :m], forces), axis=1)[:, :, None]
        below, handles = p.child[row][inner], handles.reshape(k, p.arity, 12)[inner]
        return p.joint[row].ravel(), answer[:, m:].reshape(-1, 6), below, handles

    def world_poses(self, leaves: np.ndarray) -> np.ndarray:
        """World poses (k, 4, 4) of the links of `leaves` (k,): a product along their paths, O(log n) each."""
        poses = self.pose[leaves]
        above = self.partition.ancestry[leaves].T
        for nodes in above[: int((above < self.partition.nodes).any(1).sum())]:
            poses = self.pose[nodes] @ poses
        return poses


class Batch:
    """Inner nodes of several levels that are brought up to date together: what does not depend on the levels below is
    gathered, and what the levels above do not need is written, for all of them at once. `full`: Φ, Ψ and the maps too,
    else b, p and η alone."""

    def __init__(self, articulation: Articulation, nodes: np.ndarray, full: bool) -> None:
        self.articulation, self.nodes, self.full = articulation, nodes, full
        a, p = articulation, articulation.partition
        self.row = row = nodes - p.blocks
        k, self.m = len(row), 6 * (p.arity - 1)
        m, width = self.m, self.m + 12
        self.child, self.joint = p.child[row], p.joint[row]
        self.G = a.shape[row]
        self.across = np.ascontiguousarray(self.G.swapaxes(-1, -2))
        self.start = np.empty((k, 2 * m))
        if a.active:
            self.Q = a.applied[self.joint].reshape(k, m, 1)
        if a.drift is not None:
            self.drift = a.drift[row]
        if not full:
            self.answer, self.squares = a.answer[row], a.squares[row]
            return
        self.answer, self.squares = np.empty((k, 2 * m, width)), np.empty((k, width, m))
        scale = a.scale[self.joint].reshape(k, m, 1)
        self.scale, self.scales = scale, scale * scale.swapaxes(-1, -2)
        self.unit, self.free = a.unit[self.joint].reshape(k, m), a.unit_free[self.joint].reshape(k, m, 1)
        self.right = np.empty((k, m, width))
        self.right[:, :, :m] = np.eye(m)

    def run(self, s: slice) -> None:
        """Brings those `s` of one level up to date."""
        if self.full:
            self.assemble(s)
        self.bias(s)

    def keep(self) -> None:
        self.articulation.start[self.row] = self.start
        if self.full:
            self.keep_maps()

    def keep_maps(self) -> None:
        a = self.articulation
        a.answer[self.row], a.squares[self.row] = self.answer, self.squares

    def assemble(self, s: slice) -> None:
        a, m = self.articulation, self.m
        G, scale, right = self.G[s], self.scale[s], self.right[s]
        k, rows, width = G.shape
        pairs = a.pairs[self.child[s]]
        Y = self.across[s] @ (pairs[:, :, 0] @ G.reshape(k, -1, 12, width)).reshape(k, rows, width)
        P, outer = Y[:, :m, :m], Y[:, :m, m:]
        right[:, :, m:] = outer
        matrix = P * self.scales[s]
        matrix.reshape(k, m * m)[:, :: m + 1] += self.unit[s]
        X, V = self.answer[s, :m], self.answer[s, m:]
        np.multiply(np.linalg.solve(matrix, scale * right), -scale, out=X)
        np.add(P @ X, right, out=V)
        V *= self.free[s]
        handles = G[:, :, :m] @ X
        handles[:, :, m:] += G[:, :, m:]
        weighed = a.weighed(self.joint[s], V)
        H = handles.swapaxes(-1, -2) @ (pairs[:, :, 1] @ handles.reshape(k, -1, 12, width)).reshape(k, rows, width)
        H += weighed.swapaxes(-1, -2) @ weighed
        self.squares[s] = H[:, :, :m]
        made = np.empty((k, 2, 12, 12))
        np.add(Y[:, m:, m:], X[:, :, m:].swapaxes(-1, -2) @ outer, out=made[:, 0])
        made[:, 1] = H[:, m:, m:]
        made = made + made.swapaxes(-1, -2)
        made *= 0.5
        a.pairs[self.nodes[s]] = made

    def bias(self, s: slice) -> None:
        a, m, child = self.articulation, self.m, self.child[s]
        linear, eta = a.linear[child], a.eta[child] @ a.ones
        if a.active:
            pushes = (self.G[s, :, :m] @ self.Q[s]).reshape(*child.shape, 1, 12, 1)
            answers = (a.pairs[child] @ pushes)[..., 0]
            pushes = pushes[:, :, 0, :, 0]
            eta += (pushes * (answers[:, :, 1] + linear[..., 1])).sum((1, 2))
            linear += np.stack((answers[:, :, 0], 2.0 * answers[:, :, 1]), axis=-1)
        along = self.across[s] @ linear.reshape(len(child), -1, 2)
        if a.drift is not None:
            along[:, :m, 0] -= self.drift[s]
        beta, maps = along[:, :m, :1], self.answer[s]
        start, squares = maps[:, :, :m] @ beta, self.squares[s] @ beta
        eta += (beta.swapaxes(-1, -2) @ squares[:, :m])[:, 0, 0]
        eta += (along[:, None, :m, 1] @ start[:, :m])[:, 0, 0]
        if a.active:
            start[:, :m] += self.Q[s]
        self.start[s], a.eta[self.nodes[s]] = start[:, :, 0], eta
        ends = maps[:, :m, m:].swapaxes(-1, -2) @ along[:, :m]
        ends += along[:, m:]
        squares = squares[:, m:, 0]
        ends[:, :, 1] += squares
        ends[:, :, 1] += squares
        a.linear[self.nodes[s]] = ends
