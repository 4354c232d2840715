"""The passes up and down an assembly tree, a level at a time: divide and conquer.

Featherstone's algorithm (A Divide-and-Conquer Articulated-Body Algorithm, 1999; its equations stand in the
quasi-statics paper, eq. 1-7) in complement form. A node with handles 1 and 2 accelerates as a = Φ f + b. Joining A's
handle 2 to B's handle 1, with P = Φ_2^A + Φ_1^B, the force across the joint is f = B x + S Q0, where B's columns are
the joint's constrained axes and its free axes scaled by √Z, Z being what resists the joint's own acceleration (armature
and the implicit part of springs and dampers):

    (Bᵀ P B + E) x = Bᵀ (Φ_21^A f_1^A − Φ_12^B f_2^B + β),   β = b_2^A − b_1^B + c − P S Q0

with E one on the free axes and zero elsewhere. Without resistance x vanishes on the free axes and only the constrained
block is solved, as it should; one 6 × 6 form serves every joint type. A run of several joints is joined at once by the
same equation with P block tridiagonal: P_j on the diagonal, −Φ_12 of the node between two joints beside it. Several
right-hand sides, the unit impulses of constraints among them, are columns of the same pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .assembly import Leaves, Level, Runs
from .kinematics import Kinematics
from .model import Model
from .spatial import shift_force

Kept = dict[tuple[str, int], tuple[np.ndarray, ...]]
"""What the batches of a tree keep, by their kind and the first leaf link, node made or joint raked: of leaves their
joint-space inertia (count, f, f) and, in larger trees, H⁻¹ of their handles' columns (count, f, 12); of runs the matrix
of x, all joints' axes and scales, and the forces across the joints per handle force (runs, 6k, 12); of rakes W at the
joints (r, 6, 6) and the maps (r, 6, 6) that take forces to the hosts' clusters."""


@dataclass
class _Node:
    """Coefficients of all nodes: `phi` (nodes, 12, 12), `b` (nodes, 12, columns), `f` the handles' forces like b."""

    phi: np.ndarray
    b: np.ndarray
    f: np.ndarray


def leaf_inertia(
    leaves: Leaves, inertia: np.ndarray, columns: np.ndarray, z: np.ndarray, symmetric: bool = True
) -> np.ndarray:
    """The joint-space inertia (count, freedoms, freedoms) of leaves: composite bodies, then one product and a mask."""
    count, m, f = leaves.count, leaves.links, leaves.freedoms
    composite = (leaves.descends @ inertia.reshape(count, m, 36)).reshape(count * m, 6, 6).take(leaves.carriers, axis=0)

    def carried(composite: np.ndarray) -> np.ndarray:
        """How what a freedom carries answers to it, along the freedoms that carry its link."""
        return ((composite @ columns[..., None])[..., 0] @ columns.swapaxes(-1, -2)) * leaves.upper

    half = carried(composite)
    other = half if symmetric else carried(composite.swapaxes(-1, -2))
    h = other + half.swapaxes(-1, -2)
    h += leaves.padding
    h.reshape(count, f * f)[:, :: f + 1] += leaves.freedom_view(z)
    return h


class Tree:
    """One pass up and down an assembly tree with more than single leaves."""

    def __init__(
        self, model: Model, kin: Kinematics, z: np.ndarray, forces: np.ndarray, acceleration: np.ndarray | None,
        across: np.ndarray | None, kept: Kept | None, symmetric: bool,
    ) -> None:  # fmt: skip
        a = model.assembly
        self.kept, self.symmetric = kept, symmetric
        columns = forces.shape[1]
        self.kin, self.assembly, self.forces, self.z = kin, a, forces, z
        self.result = np.zeros_like(forces)
        self.node = _Node(
            np.empty((a.nodes, 12, 12)), np.empty((a.nodes, 12, columns)), np.zeros((a.nodes, 12, columns))
        )
        self.bias_acceleration = acceleration
        self.across = across
        axes = kin.columns[a.freedoms :].reshape(-1, 6, 6)
        free = model.columns.free
        self.axes = axes
        self.scale = np.where(free, np.sqrt(z[a.freedoms :].reshape(-1, 6)), 1.0)
        self.unit = free.astype(float)
        joint_forces = forces[a.freedoms :].reshape(-1, 6, columns)
        self.applied = axes.swapaxes(-1, -2) @ joint_forces
        self.raked = any(len(level.rakes) for level in a.levels)
        self.inertia = kin.inertia.copy() if self.raked else kin.inertia
        if self.raked:
            self.load = np.zeros((a.links, 6, columns))
            self.link_acceleration = np.zeros((a.links, 6, columns))
        # what the way up leaves for the way down
        self._solved: Kept = {}

    def solve(self) -> np.ndarray:
        self.up()
        for level in reversed(self.assembly.levels):
            if len(level.rakes):
                self._rakes_down(level)
            for runs in level.runs:
                self._runs_down(runs)
            for leaves in level.leaves:
                self._leaves_down(leaves)
        return self.result

    def up(self) -> None:
        for level in self.assembly.levels:
            for leaves in level.leaves:
                self._leaves_up(leaves)
            for runs in level.runs:
                self._runs_up(runs)
            if len(level.rakes):
                self._rakes_up(level)

    def _leaves_up(self, leaves: Leaves) -> None:
        columns = leaves.freedom_view(self.kin.columns)
        forces = leaves.freedom_view(self.forces)
        h = leaf_inertia(leaves, leaves.link_view(self.inertia), columns, self.z, self.symmetric)
        if self.raked and leaves.first_link < len(self.load):
            load = leaves.link_view(self.load)
            summed = leaves.moves.swapaxes(-1, -2) @ load.reshape(leaves.count, leaves.links, 6 * load.shape[-1])
            summed = summed.reshape(leaves.count, leaves.freedoms, 6, load.shape[-1])
            forces = forces - (columns[:, :, None, :] @ summed)[:, :, 0]
        key = "leaves", leaves.first_link
        if leaves.nodes is None:
            self._solved[key] = (np.linalg.solve(h, forces),)
            if self.kept is not None:
                self.kept[key] = (h,)
            return
        rows = np.arange(leaves.count)
        handles = np.zeros((leaves.count, leaves.freedoms, 12))
        handles[:, :6, :6] = np.eye(6) * leaves.floats[:, None, None]
        clusters = leaves.first_cluster + rows
        there = self.kin.origin[self.assembly.joint_cluster[leaves.joints]] - self.kin.origin[clusters]
        shift = shift_force(there) * leaves.joined[:, None, None]
        handles[:, :, 6:] = (columns * leaves.moves[rows, leaves.handles][:, :, None]) @ shift
        answer = np.linalg.solve(h, np.concatenate((handles, forces), axis=-1))
        coefficients = handles.swapaxes(-1, -2) @ answer
        self.node.phi[leaves.nodes] = coefficients[:, :, :12]
        b = coefficients[:, :, 12:]
        if self.bias_acceleration is not None:
            moved = leaves.link_view(self.bias_acceleration)[rows, leaves.handles]
            b[:, 6:, 0] += (shift.swapaxes(-1, -2) @ moved[:, :, None])[:, :, 0]
        self.node.b[leaves.nodes] = b
        self._solved[key] = (answer,)
        if self.kept is not None:
            self.kept[key] = h, answer[:, :, :12]

    def _leaves_down(self, leaves: Leaves) -> None:
        (answer,) = self._solved.pop(("leaves", leaves.first_link))
        if leaves.nodes is not None:
            answer = answer[:, :, 12:] + answer[:, :, :12] @ self.node.f[leaves.nodes]
        leaves.freedom_view(self.result)[...] = answer
        if self.raked:
            columns = leaves.freedom_view(self.kin.columns)
            part = columns[:, :, :, None] * answer[:, :, None, :]
            moved = leaves.moves @ part.reshape(leaves.count, leaves.freedoms, 6 * answer.shape[-1])
            moved = moved.reshape(leaves.count, leaves.links, 6, answer.shape[-1])
            if self.bias_acceleration is not None:
                moved[..., 0] += leaves.link_view(self.bias_acceleration)
            leaves.link_view(self.link_acceleration)[...] = moved

    def _join(
        self, joints: np.ndarray, p: np.ndarray, right: np.ndarray, left: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Solves `joints` (r, k) with compliance `p` (r, 6k, 6k) against `right` (r, 6k, columns): the forces across
        them and their accelerations, like `right`, `left`ᵀ times the forces, by default the first of `right`, and the
        matrix (r, 6k, 6k) of x."""
        r, k = joints.shape
        axes, scale = self.axes[joints], self.scale[joints].reshape(r, 6 * k, 1)

        def along_axes(x: np.ndarray) -> np.ndarray:
            return (axes @ x.reshape(r, k, 6, -1)).reshape(r, 6 * k, -1)

        inner = along_axes(along_axes(p).swapaxes(-1, -2)) * scale
        matrix = inner * scale.swapaxes(-1, -2)
        if not self.symmetric:
            matrix = np.ascontiguousarray(matrix.swapaxes(-1, -2))
        matrix.reshape(r, -1)[:, :: 6 * k + 1] += self.unit[joints].reshape(r, 6 * k)
        outer = along_axes(right)
        scaled = scale * outer
        x = np.linalg.solve(matrix, scaled)
        acceleration = inner.swapaxes(-1, -2) @ x - outer
        force = (axes.swapaxes(-1, -2) @ (scale * x).reshape(r, k, 6, -1)).reshape(r, 6 * k, -1)
        ends = scaled[:, :, :12] if left is None else scale * along_axes(left)
        return force, acceleration, ends.swapaxes(-1, -2) @ x, matrix

    def between(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How the k joints between nodes in series, `phi` (r, k + 1, 12, 12), move apart by the forces across them (r,
        6k, 6k), and by those on the handles at both ends (r, 6k, 12)."""
        r, k = len(phi), phi.shape[1] - 1
        p, right, between = np.zeros((r, k, 6, k, 6)), np.zeros((r, k, 6, 12)), np.arange(k)
        p[:, between, :, between] = (phi[:, :-1, 6:, 6:] + phi[:, 1:, :6, :6]).swapaxes(0, 1)
        if k > 1:
            inside = phi[:, 1:-1, :6, 6:].swapaxes(0, 1)
            p[:, between[:-1], :, between[1:]] = -inside
            back = inside.swapaxes(-1, -2) if self.symmetric else phi[:, 1:-1, 6:, :6].swapaxes(0, 1)
            p[:, between[1:], :, between[:-1]] = -back
        right[:, 0, :, :6] = phi[:, 0, 6:, :6]
        right[:, -1, :, 6:] = -phi[:, -1, :6, 6:]
        return p.reshape(r, 6 * k, 6 * k), right.reshape(r, 6 * k, 12)

    def _runs_up(self, runs: Runs) -> None:
        joints, node = runs.joints, self.node
        (r, k), columns = joints.shape, self.applied.shape[-1]
        phi, b = node.phi[runs.nodes], node.b[runs.nodes]
        p, ends = self.between(phi)
        applied = self.applied[joints].reshape(r, 6 * k, columns)
        beta = b[:, :-1, 6:] - b[:, 1:, :6] - (p @ applied).reshape(r, k, 6, columns)
        if self.across is not None:
            beta[..., 0] += self.across[joints]
        right = np.concatenate((ends, beta.reshape(r, 6 * k, columns)), axis=2)
        left = right[:, :, :12]
        if not self.symmetric:
            left = np.zeros((r, k, 6, 12))
            left[:, 0, :, :6] = phi[:, 0, :6, 6:].swapaxes(-1, -2)
            left[:, -1, :, 6:] = -phi[:, -1, 6:, :6].swapaxes(-1, -2)
            left = left.reshape(r, 6 * k, 12)
        force, acceleration, coupled, matrix = self._join(joints, p, right, None if self.symmetric else left)
        made = -coupled[:, :, :12]
        made[:, :6, :6] += phi[:, 0, :6, :6]
        made[:, 6:, 6:] += phi[:, -1, 6:, 6:]
        node.phi[runs.made] = made
        made_b = -coupled[:, :, 12:] - left.swapaxes(-1, -2) @ applied
        made_b[:, :6] += b[:, 0, :6]
        made_b[:, 6:] += b[:, -1, 6:]
        node.b[runs.made] = made_b
        force[:, :, 12:] += applied
        self._solved["run", runs.made.start] = (force, acceleration)
        if self.kept is not None:
            self.kept["run", runs.made.start] = matrix, self.axes, self.scale, force[:, :, :12]

    def _runs_down(self, runs: Runs) -> None:
        force, acceleration = self._solved.pop(("run", runs.made.start))
        (r, k), f = runs.joints.shape, self.node.f
        handles = f[runs.made]
        across = (force[:, :, 12:] + force[:, :, :12] @ handles).reshape(r, k, 6, -1)
        f[runs.nodes[:, 0], :6] = handles[:, :6]
        f[runs.nodes[:, :-1], 6:] = -across
        f[runs.nodes[:, 1:], :6] = across
        f[runs.nodes[:, -1], 6:] = handles[:, 6:]
        self._joint_result(runs.joints, acceleration[:, :, 12:] + acceleration[:, :, :12] @ handles)

    def _rakes_up(self, level: Level) -> None:
        top, joint, host = level.rakes.T
        p, b, applied = self.node.phi[top][:, :6, :6], self.node.b[top][:, :6], self.applied[joint]
        right = np.empty((len(top), 6, 6 + b.shape[-1]))
        right[:, :, :6] = np.eye(6)
        right[:, :, 6:] = -b - p @ applied
        if self.across is not None:
            right[:, :, 6] += self.across[joint]
        force, acceleration, _, _ = self._join(joint[:, None], p, right)
        force[:, :, 6:] += applied
        shift = shift_force(self._pendant_offset(joint, host))
        absorbed = shift @ force[:, :, :6] @ shift.swapaxes(-1, -2)
        load = shift @ force[:, :, 6:]
        if self.bias_acceleration is not None:
            load[:, :, 0] += (absorbed @ self.bias_acceleration[host][:, :, None])[:, :, 0]
        np.add.at(self.inertia, host, absorbed)
        np.add.at(self.load, host, load)
        self._solved["rake", int(joint[0])] = (force, acceleration, shift)
        if self.kept is not None:
            self.kept["rake", int(joint[0])] = force[:, :, :6], shift

    def _rakes_down(self, level: Level) -> None:
        top, joint, host = level.rakes.T
        force, acceleration, shift = self._solved.pop(("rake", int(joint[0])))
        moved = shift.swapaxes(-1, -2) @ self.link_acceleration[host]
        self.node.f[top, :6] = force[:, :, 6:] + force[:, :, :6] @ moved
        self._joint_result(joint, acceleration[:, :, 6:] + acceleration[:, :, :6] @ moved)

    def _pendant_offset(self, joint: np.ndarray, host: np.ndarray) -> np.ndarray:
        a, origin = self.assembly, self.kin.origin
        return origin[a.joint_cluster[joint]] - origin[a.cluster_of[host]]

    def _joint_result(self, joint: np.ndarray, acceleration: np.ndarray) -> None:
        a = self.assembly
        self.result[a.freedoms :].reshape(-1, 6, acceleration.shape[-1])[joint] = acceleration.reshape(
            *joint.shape, 6, -1
        )
