"""The articulated-body and total-acceleration equations of every node of a partition, brought up to date where needed.

Redon and Lin 2006 (quasi-statics paper), sections 3 to 5: velocities are zero at each instant. A node with handle
forces f = (at its top, at its tip) answers with a = Φ f + b, and its total acceleration, the sum of q̈ᵀ W q̈ over its
joints, is fᵀ Ψ f + fᵀ p + η (eq. 8). Each handle's quantities stand in the frame of its own link, so what moves rigidly
needs no update, and a joint needs one transform between the two links it joins (section 5.1).

A node of K children is assembled at once. With F the forces across its K - 1 joints, each along the joint's own axes,
the children's handle forces are h = G [F; f], so that by virtual work Y = Gᵀ Φ G and Gᵀ b are the compliance and the
bias of the joints and of the node's handles together; likewise Z = Gᵀ Ψ G and Gᵀ p = (z, z_f). The joints' condition
(`dynamics._Tree`: B holds their axes, free ones scaled by the root of their armature, E is one on those)

    (B P B + E) x = -B (Y_Ff f + β),   F = B x,   P = Y_FF,   (β, β_f) = Gᵀ b

makes F = X (β; f) and q̈ = V (β; f); with X = (-K, T) and R = (X; (0, 1)) the node's coefficients are blocks of

    Φ' = Y_ff + Tᵀ Y_Ff,   b' = β_f + Tᵀ β,   H = Rᵀ Z R + Vᵀ W V,   Ψ' = H_ff,   p' = z_f + Tᵀ z + 2 H_fβ β,
    η' = Σ η + βᵀ H_ββ β - zᵀ K β

Joint forces Q are taken into the children's b, p and η first, as the forces G_F Q on their handles.
The world is a leaf with Φ = 0 that accelerates against gravity: then gravity bends nothing that falls freely.
"""

from __future__ import annotations

import numpy as np

from .joint import FREEDOMS
from .model import SUBSPACE, Model
from .partition import Partition
from .spatial import skew

_FOUR, _SIX = np.eye(4), np.eye(6)
CHUNK = 256
"""Nodes that are assembled at once: more do not fit the processor's cache."""
ROUNDING = 1e-13
"""What rounding adds to a total acceleration, as a share of the terms it is summed from; part of every bound."""
_SUM, _DOUBT = np.ones(25), np.full(25, ROUNDING)


class Articulation:
    """Coefficients of the nodes of `partition`, whose joints are as they were placed (see `place`).

    `pairs` (nodes + 1, 2, 12, 12): Φ and Ψ; `linear` (nodes + 1, 12, 2): b and p; `eta` (nodes + 1,). Of inner nodes,
    with m = 6 (arity - 1): `shape` (inner, 12 arity, m + 12): G; `answer` (inner, 2 m, m + 12): X, then V; `start`
    (inner, 2 m): F, then q̈, without handle forces; `squares` (inner, m + 12, m): H_ββ, then H_fβ.
    `pose` (nodes + 1, 4, 4): of a node's top link in the frame of its parent's; `reach` (nodes + 1, 4, 4): of its tip
    link in that of its top; both as of the last `move`.
    `applied` (joints + 1, 6): joint forces Q along the axes. `free` (joints + 1, 6): which axes are freedoms, and
    `velocity` (joints + 1, 6) their indices, nv for none. `factor` (joints + 1, 6, 6): C with W = Cᵀ C, None for ones.
    """

    def __init__(self, model: Model, partition: Partition, gravity: np.ndarray, factor: np.ndarray | None) -> None:
        p = partition
        self.partition, self.factor = p, factor
        inner, m = len(p.child), 6 * (p.arity - 1)
        self.pairs, self.linear = np.zeros((p.nodes + 1, 2, 12, 12)), np.zeros((p.nodes + 1, 12, 2))
        self.eta = np.zeros(p.nodes + 1)
        self.shape = np.zeros((inner, 12 * p.arity, m + 12))
        self._blocks = self.shape.reshape(inner, p.arity, 2, 6, p.arity + 1, 6)
        self._blocks[:, 0, 0, :, -2] = self._blocks[np.arange(inner), p.tip_child, 1, :, -1] = _SIX
        self._ones, self._identity, self._handles = np.ones(p.arity), np.eye(m), np.eye(m + 12)[m:]
        self.answer, self.start = np.zeros((inner, 2 * m, m + 12)), np.zeros((inner, 2 * m))
        self.squares = np.zeros((inner, m + 12, m))
        self.pose = np.broadcast_to(np.eye(4), (p.nodes + 1, 4, 4)).copy()
        self.reach, self.joint_pose = self.pose.copy(), np.zeros((p.joints + 1, 4, 4))
        self.applied, self.active = np.zeros((p.joints + 1, 6)), False
        row, column = np.nonzero(p.joint < p.joints)
        self._column = np.zeros(p.joints, dtype=int)
        self._column[p.joint[row, column]] = column
        self._axes(model)
        body = np.flatnonzero(p.link < p.n)
        inverse = np.linalg.inv(model.inertia)[p.link[body]] / p.share[body, None, None]
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
        rotation, arm = poses[:, :3, :3], poses[:, :3, 3]
        force = np.zeros((len(joints), 6, 6))
        force[:, :3, :3] = force[:, 3:, 3:] = rotation
        force[:, :3, 3:] = skew(arm) @ rotation
        axes = np.broadcast_to(_SIX, force.shape)
        which = np.flatnonzero(self.turned[joints])
        if len(which):
            axes = axes.copy()
            universal = which[self.universal[joints[which]]]
            other = which[~self.universal[joints[which]]]
            first = turn[universal, 0, :3]
            axes[universal, :3, 0] = first
            axes[universal, :3, 1] = np.cross([0.0, 0.0, 1.0], first)
            axes[other, 3:, 3:] = turn[other, :3, :3].swapaxes(-1, -2)
        row, column = self.partition.owner[joints] - self.partition.leaves, self._column[joints]
        self._blocks[row, column + 1, 0, :, column] = axes
        self._blocks[row, self.partition.carrier[row, column], 1, :, column] = -(force @ axes)

    def load(self, leaves: np.ndarray, wrenches: np.ndarray) -> None:
        """`leaves` (k,) are pulled by `wrenches` (k, 6) about their links' origins, along their links' axes."""
        self.linear[leaves, :, 0] = (self.pairs[leaves, 0, :, :6] @ wrenches[:, :, None])[:, :, 0]

    def move(self, moved: np.ndarray) -> None:
        """Brings the poses of and within the inner nodes `moved` up to date, as `update` does their coefficients."""
        for nodes in self.partition.by_level(moved):
            self._poses(nodes)

    def update(self, moved: np.ndarray, loaded: np.ndarray) -> None:
        """Brings up to date all coefficients of the inner nodes `moved`, and b, p and η of the inner nodes `loaded`,
        whose joints or children have changed. Both are ascending and closed upward; what is moved is loaded too."""
        p = self.partition
        cuts, also = (np.searchsorted(some, p.starts[1:]).tolist() for some in (loaded, moved))
        for level in range(p.levels):
            for i in range(also[level], also[level + 1], CHUNK):
                self._assemble(moved[i : min(i + CHUNK, also[level + 1])])
            for i in range(cuts[level], cuts[level + 1], CHUNK):
                self._bias(loaded[i : min(i + CHUNK, cuts[level + 1])])

    def _assemble(self, nodes: np.ndarray) -> None:
        p = self.partition
        row = nodes - p.leaves
        k, m = len(row), 6 * (p.arity - 1)
        child, joint, G = p.child[row], p.joint[row], self.shape[row]
        width = G.shape[2]
        pulled = self.pairs[child] @ G.reshape(k, p.arity, 1, 12, width)
        pulled = pulled.swapaxes(1, 2).reshape(k, 2, 12 * p.arity, width)
        both = np.ascontiguousarray(G.swapaxes(-1, -2))[:, None] @ pulled
        Y, Z = both[:, 0], both[:, 1]
        P, outer = Y[:, :m, :m], Y[:, :m, m:]
        scale = self.scale[joint].reshape(k, m, 1)
        right = np.empty((k, m, width))
        right[:, :, :m], right[:, :, m:] = self._identity, outer
        matrix = P * (scale * scale.swapaxes(-1, -2))
        matrix.reshape(k, m * m)[:, :: m + 1] += self.unit[joint].reshape(k, m)
        X = np.linalg.solve(matrix, scale * right)
        X *= -scale
        V = P @ X
        V += right
        V *= self.unit_free[joint].reshape(k, m, 1)
        self.answer[row, :m], self.answer[row, m:] = X, V
        R = np.empty((k, width, width))
        R[:, :m], R[:, m:] = X, self._handles
        weighed = self._weighed(joint, V)
        H = np.ascontiguousarray(R.swapaxes(-1, -2)) @ (Z @ R) + weighed.swapaxes(-1, -2) @ weighed
        self.squares[row] = H[:, :, :m]
        made = np.empty((k, 2, 12, 12))
        made[:, 0] = Y[:, m:, m:] + X[:, :, m:].swapaxes(-1, -2) @ outer
        made[:, 1] = H[:, m:, m:]
        made += made.swapaxes(-1, -2)
        made *= 0.5
        self.pairs[nodes] = made

    def _poses(self, nodes: np.ndarray) -> None:
        p = self.partition
        row, at = nodes - p.leaves, np.arange(len(nodes))
        child = p.child[row]
        tips, step, carrier = self.reach[child], self.joint_pose[p.joint[row]], p.carrier[row]
        for j in range(p.arity - 1):
            pose = (tips[at, carrier[:, j]] if j else tips[:, 0]) @ step[:, j]
            self.pose[child[:, j + 1]] = pose
            tips[:, j + 1] = pose @ tips[:, j + 1]
        self.reach[nodes] = tips[at, p.tip_child[row]]
        self.pose[p.nodes] = _FOUR

    def _weighed(self, joint: np.ndarray, motion: np.ndarray) -> np.ndarray:
        """Joint accelerations (k, m, columns) scaled so that their squares are what W makes of them."""
        if self.factor is None:
            return motion
        k, m, columns = motion.shape
        return (self.factor[joint] @ motion.reshape(k, -1, 6, columns)).reshape(k, m, columns)

    def _bias(self, nodes: np.ndarray) -> None:
        p = self.partition
        row = nodes - p.leaves
        m, child = 6 * (p.arity - 1), p.child[row]
        linear, eta, G = self.linear[child], self.eta[child] @ self._ones, self.shape[row]
        if self.active:
            Q = self.applied[p.joint[row]].reshape(len(row), m, 1)
            pushes = (G[:, :, :m] @ Q).reshape(*child.shape, 1, 12, 1)
            answers = (self.pairs[child] @ pushes)[..., 0]
            pushes = pushes[:, :, 0, :, 0]
            eta += (pushes * (answers[:, :, 1] + linear[..., 1])).sum((1, 2))
            linear += np.stack((answers[:, :, 0], 2.0 * answers[:, :, 1]), axis=-1)
        along = G.swapaxes(-1, -2) @ linear.reshape(len(row), -1, 2)
        beta, maps = along[:, :m, :1], self.answer[row]
        start = (maps[:, :, :m] @ beta)[:, :, 0]
        squares = (self.squares[row] @ beta)[:, :, 0]
        eta += (beta.swapaxes(-1, -2) @ squares[:, :m, None])[:, 0, 0]
        eta += (along[:, None, :m, 1] @ start[:, :m, None])[:, 0, 0]
        if self.active:
            start[:, :m] += Q[:, :, 0]
        self.start[row], self.eta[nodes] = start, eta
        ends = along[:, m:] + maps[:, :m, m:].swapaxes(-1, -2) @ along[:, :m]
        ends[:, :, 1] += 2.0 * squares[:, m:]
        self.linear[nodes] = ends

    def total(self, nodes: np.ndarray, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Total accelerations (k,) of `nodes` (k,) under handle `forces` (k, 12) (eq. 8), at most as much too small as
        the second (k,) says, which is already added: rounding counts in the bound."""
        terms = np.empty((len(nodes), 25))
        np.multiply(forces, (self.pairs[nodes, 1] @ forces[:, :, None])[:, :, 0], out=terms[:, :12])
        np.multiply(forces, self.linear[nodes, :, 1], out=terms[:, 12:24])
        terms[:, 24] = self.eta[nodes]
        doubt = np.abs(terms) @ _DOUBT
        return np.maximum(terms @ _SUM, 0.0) + doubt, doubt

    def world_poses(self, leaves: np.ndarray) -> np.ndarray:
        """World poses (k, 4, 4) of the links of `leaves` (k,): a product along their paths, O(log n) each."""
        poses = self.pose[leaves]
        for above in self.partition.ancestry[leaves].T:
            if (above == self.partition.nodes).all():
                break
            poses = self.pose[above] @ poses
        return poses
