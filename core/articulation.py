"""The articulated-body and total-acceleration equations of every node of a partition, brought up to date where needed.

Redon and Lin 2006 (quasi-statics paper), sections 3 to 5: velocities are zero at each instant. A node with handle
forces f = (at its top, at its tip) answers with a = Φ f + b, and its total acceleration, the sum of q̈ᵀ W q̈ over its
joints, is fᵀ Ψ f + fᵀ p + η (eq. 8). Each handle's quantities stand in the frame of its own link, so what moves rigidly
needs no update, and a joint needs one transform between the two links it joins (section 5.1).

A node of K children is assembled at once. With F the forces across its K - 1 joints, each along the joint's own axes,
the children's handle forces are h = G [F; f], so that by virtual work Gᵀ Φ G and Gᵀ b are the compliance and the bias
of the joints and of the node's handles together; likewise Gᵀ Ψ G and Gᵀ p. The joints' condition (`dynamics._Tree`)

    (B P B + E) x = -B (Y f + β),   F = B x + Q,   P, Y blocks of Gᵀ Φ G,   β = G_Fᵀ (b + Φ G_F Q)

makes F = T f + F_0 and q̈ = D f + q_0, and with R = [T; 1] the node's coefficients are

    Φ' = Y_ff + Tᵀ Y,  b' = β_f + Tᵀ β,  Ψ' = Rᵀ Z R + Dᵀ W D,  p' = Rᵀ (2 Z_F F_0 + z) + 2 Dᵀ W q_0

The world is a leaf with Φ = 0 that accelerates against gravity: then gravity bends nothing that falls freely.
"""

from __future__ import annotations

import numpy as np

from .joint import FREEDOMS
from .model import SUBSPACE, Model
from .partition import Partition
from .spatial import skew

_SIX = np.eye(6)
CHUNK = 512
"""Nodes that are assembled at once: more do not fit the processor's cache."""
ROUNDING = 1e-13
"""What rounding adds to a total acceleration, as a share of the terms it is summed from; part of every bound."""


class Articulation:
    """Coefficients of the nodes of `partition`, whose joints are as `up` and `down` say (see `place`).

    `phi`, `psi` (nodes + 1, 12, 12); `linear` (nodes + 1, 12, 2): b and p; `eta` (nodes + 1,). Of inner nodes, with
    m = 6 (arity - 1): `answer` (inner, 2 m, 13): F, then q̈, as affine maps of the handle forces; `inverse` (inner, 2 m,
    m): -K with F_0 = -K β + Q, then q_0 from β. `pose` (nodes + 1, 4, 4): of a node's top link in the frame of its
    parent's; `reach` (nodes + 1, 4, 4): of its tip link in that of its top.
    `applied` (joints + 1, 6): joint forces Q along the axes. `free` (joints + 1, 6): which axes are freedoms, and
    `velocity` (joints + 1, 6) their indices, nv for none. `factor` (joints + 1, 6, 6): C with W = Cᵀ C, None for ones.
    """

    def __init__(self, model: Model, partition: Partition, gravity: np.ndarray, factor: np.ndarray | None) -> None:
        p = partition
        self.partition, self.factor = p, factor
        inner, joints, m = len(p.child), p.joints + 1, 6 * (p.arity - 1)
        self.phi, self.psi = np.zeros((p.nodes + 1, 12, 12)), np.zeros((p.nodes + 1, 12, 12))
        self.linear, self.eta = np.zeros((p.nodes + 1, 12, 2)), np.zeros(p.nodes + 1)
        self.answer, self.inverse = np.zeros((inner, 2 * m, 13)), np.zeros((inner, 2 * m, m))
        self.mixed, self.inside = np.zeros((inner, 12, m)), np.zeros((inner, m, m))
        self.pose = np.broadcast_to(np.eye(4), (p.nodes + 1, 4, 4)).copy()
        self.reach = self.pose.copy()
        self.up, self.down, self.joint_pose = (
            np.zeros((joints, 6, 6)),
            np.zeros((joints, 6, 6)),
            np.zeros((joints, 4, 4)),
        )
        self.applied = np.zeros((joints, 6))
        self._axes(model)
        body = np.flatnonzero(p.link < p.n)
        inverse = np.linalg.inv(model.inertia)[p.link[body]] / p.share[body, None, None]
        self.phi[body] = np.tile(0.5 * (inverse + inverse.swapaxes(-1, -2)), (1, 2, 2))
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
        self.turned[:-1][: p.n] = np.isin(c.kinds, ("universal", "free"))
        self.universal = np.zeros(p.joints + 1, dtype=bool)
        self.universal[: p.n] = c.kinds == "universal"
        self.unit = self.free.astype(float)
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
        self.up[joints], self.down[joints] = axes, -(force @ axes)

    def load(self, leaves: np.ndarray, wrenches: np.ndarray) -> None:
        """`leaves` (k,) are pulled by `wrenches` (k, 6) about their links' origins, along their links' axes."""
        self.linear[leaves, :, 0] = (self.phi[leaves, :, :6] @ wrenches[:, :, None])[:, :, 0]

    def update(self, moved: np.ndarray, loaded: np.ndarray) -> None:
        """Brings up to date all of the inner nodes `moved`, and b, p and η of the inner nodes `loaded`, whose joints or
        children have changed. Both are ascending and closed upward; all of what is moved is loaded."""
        p = self.partition
        cuts, also = (np.searchsorted(some, p.starts[1:]).tolist() for some in (loaded, moved))
        for level in range(p.levels):
            for nodes in _chunks(moved[also[level] : also[level + 1]]):
                self._assemble(nodes)
            for nodes in _chunks(loaded[cuts[level] : cuts[level + 1]]):
                self._bias(nodes)

    def _assemble(self, nodes: np.ndarray) -> None:
        p = self.partition
        row = nodes - p.leaves
        k, arity, m = len(row), p.arity, 6 * (p.arity - 1)
        child, joint, hanging = p.child[row], p.joint[row], p.hanging[row]
        G = np.zeros((k, arity, 12, m + 12))
        up, down, blocks = self.up[joint], self.down[joint], G.reshape(k, arity, 2, 6, arity + 1, 6)
        blocks[:, 0, 0, :, -2] = _SIX
        for j in range(arity - 1):
            blocks[:, j + 1, 0, :, j] = up[:, j]
        blocks[:, :, 1, :, :-2] = hanging[:, :, None, :-1, None] * down.swapaxes(1, 2)[:, None]
        blocks[:, :, 1, :, -1] = hanging[:, :, -1, None, None] * _SIX
        flat = G.reshape(k, 12 * arity, m + 12)
        across = flat.swapaxes(-1, -2)
        Y = across @ (self.phi[child] @ G).reshape(flat.shape)
        Z = across @ (self.psi[child] @ G).reshape(flat.shape)

        scale, unit = self.scale[joint].reshape(k, m), self.unit[joint].reshape(k, m)
        P, outer = Y[:, :m, :m], Y[:, :m, m:]
        matrix = P * scale[:, :, None] * scale[:, None, :]
        matrix.reshape(k, m * m)[:, :: m + 1] += unit
        right = np.empty((k, m, m + 12))
        right[:, :, :m] = _diagonal(scale)
        right[:, :, m:] = scale[:, :, None] * outer
        x = np.linalg.solve(matrix, right)
        x *= -scale[:, :, None]
        free = self.free[joint].reshape(k, m, 1)
        moving = P @ x
        moving[:, :, m:] += outer
        moving.reshape(k, -1)[:, :: m + 13] += 1.0
        moving *= free
        T, D = x[:, :, m:], moving[:, :, m:]
        self.inverse[row, :m], self.inverse[row, m:] = x[:, :, :m], moving[:, :, :m]
        self.answer[row, :m, :12], self.answer[row, m:, :12] = T, D
        phi = Y[:, m:, m:] + T.swapaxes(-1, -2) @ outer
        self.phi[nodes] = 0.5 * (phi + phi.swapaxes(-1, -2))
        mixed = Z[:, :, :m] @ T + Z[:, :, m:]
        weighed = self._weighed(joint, D)
        psi = T.swapaxes(-1, -2) @ mixed[:, :m] + mixed[:, m:] + weighed.swapaxes(-1, -2) @ weighed
        self.psi[nodes] = 0.5 * (psi + psi.swapaxes(-1, -2))
        self.mixed[row], self.inside[row] = 2.0 * mixed[:, :m].swapaxes(-1, -2), Z[:, :m, :m]
        self._poses(nodes, child, joint)

    def _poses(self, nodes: np.ndarray, child: np.ndarray, joint: np.ndarray) -> None:
        p = self.partition
        row, at = nodes - p.leaves, np.arange(len(nodes))
        reach, step, carrier = self.reach[child], self.joint_pose[joint], p.carrier[row]
        tips = reach
        for j in range(p.arity - 1):
            pose = tips[at, carrier[:, j]] @ step[:, j]
            self.pose[child[:, j + 1]] = pose
            tips[:, j + 1] = pose @ reach[:, j + 1]
        self.reach[nodes] = tips[at, p.tip_child[row]]
        self.pose[p.nodes] = np.eye(4)

    def _weighed(self, joint: np.ndarray, motion: np.ndarray) -> np.ndarray:
        """Joint accelerations (k, m, columns) scaled so that their squares are what W makes of them."""
        if self.factor is None:
            return motion
        k, m, columns = motion.shape
        return (self.factor[joint] @ motion.reshape(k, -1, 6, columns)).reshape(k, m, columns)

    def across(self, row: np.ndarray, joint: np.ndarray, handles: np.ndarray) -> np.ndarray:
        """Gᵀ of the children's `handles` (k, arity, 12, columns), accelerations or what is summed like them: along the
        axes of the joints, (k, m, columns), and at the node's handles, (k, 12, columns)."""
        k, arity, _, columns = handles.shape
        tips = handles[:, :, 6:].reshape(k, arity, 6 * columns)
        hung = (self.partition.hanging[row].swapaxes(-1, -2) @ tips).reshape(k, arity, 6, columns)
        along = self.up[joint].swapaxes(-1, -2) @ handles[:, 1:, :6] + self.down[joint].swapaxes(-1, -2) @ hung[:, :-1]
        return along.reshape(k, -1, columns), np.concatenate((handles[:, 0, :6], hung[:, -1]), axis=1)

    def handles(self, row: np.ndarray, joint: np.ndarray, forces: np.ndarray, outer: np.ndarray) -> np.ndarray:
        """The children's handle forces (k, arity, 12) under `forces` (k, m) across the joints and `outer` (k, 12)."""
        k, arity = len(row), self.partition.arity
        forces = forces.reshape(k, arity - 1, 6, 1)
        result = np.empty((k, arity, 12))
        result[:, 0, :6] = outer[:, :6]
        result[:, 1:, :6] = (self.up[joint] @ forces)[..., 0]
        hung = np.concatenate(((self.down[joint] @ forces)[..., 0], outer[:, None, 6:]), axis=1)
        result[:, :, 6:] = self.partition.hanging[row] @ hung
        return result

    def _bias(self, nodes: np.ndarray) -> None:
        p = self.partition
        row = nodes - p.leaves
        m, child, joint = 6 * (p.arity - 1), p.child[row], p.joint[row]
        linear, Q = self.linear[child], self.applied[joint].reshape(len(row), m)
        active = Q.any()
        if active:
            pushes = self.handles(row, joint, Q, np.zeros((len(row), 12)))
            linear[..., 0] += (self.phi[child] @ pushes[..., None])[..., 0]
        along, ends = self.across(row, joint, linear)
        start = self.inverse[row] @ along[:, :, :1]
        if active:
            start[:, :m, 0] += Q
        self.answer[row, :, 12:] = start
        F, q = start[:, :m], self._weighed(joint, start[:, m:])
        maps = self.answer[row, :, :12]
        T, D = maps[:, :m], self._weighed(joint, maps[:, m:])
        ends += T.swapaxes(-1, -2) @ along
        ends[:, :, 1:] += self.mixed[row] @ F + 2.0 * (D.swapaxes(-1, -2) @ q)
        self.linear[nodes] = ends
        inner = (F * (self.inside[row] @ F + along[:, :, 1:])).sum((1, 2)) + (q * q).sum((1, 2))
        self.eta[nodes] = inner + self.eta[child].sum(1)

    def total(self, nodes: np.ndarray, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Total accelerations (k,) of `nodes` (k,) under handle `forces` (k, 12) (eq. 8), at most as much too small as
        the second (k,) says, which is already added: rounding counts in the bound."""
        terms = np.concatenate((
            forces * ((self.psi[nodes] @ forces[:, :, None])[:, :, 0]), forces * self.linear[nodes, :, 1],
            self.eta[nodes, None],
        ), axis=1)  # fmt: skip
        doubt = ROUNDING * np.abs(terms).sum(1)
        return np.maximum(terms.sum(1), 0.0) + doubt, doubt

    def world_poses(self, leaves: np.ndarray) -> np.ndarray:
        """World poses (k, 4, 4) of the links of `leaves` (k,): a product along their paths, O(log n) each."""
        poses = self.pose[leaves]
        for above in self.partition.ancestry[leaves].T:
            if (above == self.partition.nodes).all():
                break
            poses = self.pose[above] @ poses
        return poses


def _diagonal(values: np.ndarray) -> np.ndarray:
    result = np.zeros((*values.shape, values.shape[-1]))
    result.reshape(len(values), -1)[:, :: values.shape[-1] + 1] = values
    return result


def _chunks(nodes: np.ndarray) -> list[np.ndarray]:
    return [nodes[i : i + CHUNK] for i in range(0, len(nodes), CHUNK)]
