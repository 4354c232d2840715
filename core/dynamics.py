"""Forward dynamics by divide and conquer, a level of the assembly tree at a time.

Featherstone's algorithm (A Divide-and-Conquer Articulated-Body Algorithm, 1999; its equations stand in the quasi-statics
paper, eq. 1-7) in complement form. A node with handles 1 and 2 accelerates as a = Φ f + b. Joining A's handle 2 to B's
handle 1, with P = Φ_2^A + Φ_1^B, the force across the joint is f = B x + S Q0, where B's columns are the joint's
constrained axes and its free axes scaled by √Z, Z being what resists the joint's own acceleration (armature and the
implicit part of springs and dampers):

    (Bᵀ P B + E) x = Bᵀ (Φ_21^A f_1^A − Φ_12^B f_2^B + β),   β = b_2^A − b_1^B + c − P S Q0

with E one on the free axes and zero elsewhere. Without resistance x vanishes on the free axes and only the constrained
block is solved, as it should; one 6 × 6 form serves every joint type. Several right-hand sides, the unit impulses of
constraints among them, are columns of the same pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .assembly import Leaves, Level
from .kinematics import Kinematics, bias, kinematics, motions
from .model import Model, State
from .spatial import cross, shift_force

GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass
class _Node:
    """Coefficients of all nodes: `phi` (nodes, 12, 12), `b` (nodes, 12, columns), `f` the handles' forces like b."""

    phi: np.ndarray
    b: np.ndarray
    f: np.ndarray


def respond(
    model: Model,
    kin: Kinematics,
    resistance: np.ndarray,
    forces: np.ndarray,
    acceleration: np.ndarray | None = None,
    across: np.ndarray | None = None,
) -> np.ndarray:
    """The accelerations (slots, columns) of all freedom slots under `forces` (slots, columns).

    `resistance` (nv,) adds to the joints' own inertia. `acceleration` (links, 6) and `across` (joints, 6) are the bias
    accelerations of `kinematics.bias` and belong to the first column alone.
    """
    a = model.assembly
    z = np.zeros(len(forces))
    z[model.columns.slot_of] = resistance
    if a.nodes == 0:
        result = np.empty_like(forces)
        for leaves in a.levels[0].leaves:
            h = _joint_inertia(leaves, leaves.link_view(kin.inertia), leaves.freedom_view(kin.columns), z)
            leaves.freedom_view(result)[...] = np.linalg.solve(h, leaves.freedom_view(forces))
        return result
    return _Tree(model, kin, z, forces, acceleration, across).solve()


def _joint_inertia(leaves: Leaves, inertia: np.ndarray, columns: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The joint-space inertia (count, freedoms, freedoms) of leaves: composite bodies, then one product and a mask."""
    count, m, f = leaves.count, leaves.links, leaves.freedoms
    composite = (leaves.descends @ inertia.reshape(count, m, 36)).reshape(count * m, 6, 6)
    carrier = leaves.carrier + m * np.arange(count)[:, None]
    momentum = (composite.take(carrier, axis=0) @ columns[..., None])[..., 0]
    half = (momentum @ columns.swapaxes(-1, -2)) * leaves.upper
    h = half + half.swapaxes(-1, -2)
    h += leaves.padding
    h.reshape(count, f * f)[:, :: f + 1] += leaves.freedom_view(z)
    return h


def acceleration(
    model: Model,
    state: State,
    *,
    forces: np.ndarray | None = None,
    wrenches: np.ndarray | None = None,
    gravity: np.ndarray = GRAVITY,
) -> np.ndarray:
    """The joint accelerations (nv,) of smooth motion: gravity (3,), joint springs and dampers at rest targets, joint
    `forces` (nv,), and `wrenches` (n, 6): torque about each link's origin and force, along the world's axes."""
    a = model.assembly
    kin = kinematics(model, state.q)
    moving = motions(model, kin, state.v)
    outer = None
    if wrenches is not None:
        outer = np.zeros((a.links, 6))
        outer[a.slot] = wrenches
        outer[:, :3] += cross(kin.offset, outer[:, 3:])
    natural, links, across = bias(model, kin, moving, np.asarray(gravity, dtype=float), outer)
    strain = model.coordinates.difference(model.coordinates.zero(), state.q)
    passive = -model.stiffness * strain - (model.damping + model.drive_damping) * state.v
    total = passive if forces is None else passive + forces
    natural[model.columns.slot_of] += total
    answer = respond(model, kin, model.armature, natural[:, None], links, across)
    return answer[model.columns.slot_of, 0]


class _Tree:
    """One pass up and down an assembly tree with more than single leaves."""

    def __init__(self, model, kin, z, forces, acceleration, across) -> None:
        a = model.assembly
        columns = forces.shape[1]
        self.model, self.kin, self.assembly, self.forces, self.z = model, kin, a, forces, z
        self.result = np.zeros_like(forces)
        self.node = _Node(np.empty((a.nodes, 12, 12)), np.empty((a.nodes, 12, columns)), np.zeros((a.nodes, 12, columns)))
        self.bias_acceleration = acceleration
        self.across = across
        axes = kin.columns[a.freedoms :].reshape(-1, 6, 6)
        free = model.columns.free
        self.axes = axes
        self.scale = np.where(free, np.sqrt(z[a.freedoms :].reshape(-1, 6)), 1.0)[:, :, None]
        self.unit = np.zeros((len(axes), 6, 6))
        self.unit[:, range(6), range(6)] = free
        joint_forces = forces[a.freedoms :].reshape(-1, 6, columns)
        self.applied = axes.swapaxes(-1, -2) @ joint_forces
        self.raked = any(len(level.rakes) for level in a.levels)
        self.inertia = kin.inertia.copy() if self.raked else kin.inertia
        if self.raked:
            self.load = np.zeros((a.links, 6, columns))
            self.link_acceleration = np.zeros((a.links, 6, columns))
        self.kept: dict[int, tuple] = {}

    def solve(self) -> np.ndarray:
        levels = self.assembly.levels
        for level in levels:
            for leaves in level.leaves:
                self._leaves_up(leaves)
            if len(level.pairs):
                self._pairs_up(level)
            if len(level.rakes):
                self._rakes_up(level)
        for level in reversed(levels):
            if len(level.rakes):
                self._rakes_down(level)
            if len(level.pairs):
                self._pairs_down(level)
            for leaves in level.leaves:
                self._leaves_down(leaves)
        return self.result

    def _leaves_up(self, leaves: Leaves) -> None:
        columns = leaves.freedom_view(self.kin.columns)
        forces = leaves.freedom_view(self.forces)
        h = _joint_inertia(leaves, leaves.link_view(self.inertia), columns, self.z)
        if self.raked and leaves.first_link < len(self.load):
            load = leaves.link_view(self.load)
            summed = leaves.moves.swapaxes(-1, -2) @ load.reshape(leaves.count, leaves.links, 6 * load.shape[-1])
            summed = summed.reshape(leaves.count, leaves.freedoms, 6, -1)
            forces = forces - (columns[:, :, None, :] @ summed)[:, :, 0]
        if leaves.nodes is None:
            self.kept[leaves.first_link] = (np.linalg.solve(h, forces),)
            return
        rows = np.arange(leaves.count)
        handles = np.zeros((leaves.count, leaves.freedoms, 12))
        handles[:, range(6), range(6)] = leaves.floats[:, None]
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
        self.kept[leaves.first_link] = (answer,)

    def _leaves_down(self, leaves: Leaves) -> None:
        (answer,) = self.kept.pop(leaves.first_link)
        if leaves.nodes is not None:
            answer = answer[:, :, 12:] + answer[:, :, :12] @ self.node.f[leaves.nodes]
        leaves.freedom_view(self.result)[...] = answer
        if self.raked:
            columns = leaves.freedom_view(self.kin.columns)
            part = columns[:, :, :, None] * answer[:, :, None, :]
            moved = leaves.moves @ part.reshape(leaves.count, leaves.freedoms, -1)
            moved = moved.reshape(leaves.count, leaves.links, 6, -1)
            if self.bias_acceleration is not None:
                moved[..., 0] += leaves.link_view(self.bias_acceleration)
            leaves.link_view(self.link_acceleration)[...] = moved

    def _across(self, joint: np.ndarray, p: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solves joints: with compliance `p` (k, 6, 6) and right-hand sides (k, 6, r), the forces and joint accelerations
        they give, and the rows that enter the joined node's coefficients, solved and unsolved."""
        axes, scale = self.axes[joint], self.scale[joint]
        scaled = axes * scale
        inner = axes @ p @ scaled.swapaxes(-1, -2)
        outer = axes @ right
        x = np.linalg.inv(scale * inner + self.unit[joint]) @ (scale * outer)
        return scaled.swapaxes(-1, -2) @ x, inner @ x - outer, (scale * outer, x)

    def _pairs_up(self, level: Level) -> None:
        first, second, joint = level.pairs.T
        node = self.node
        phi_a, phi_b, b_a, b_b = node.phi[first], node.phi[second], node.b[first], node.b[second]
        p = phi_a[:, 6:, 6:] + phi_b[:, :6, :6]
        applied = self.applied[joint]
        count, columns = len(joint), applied.shape[-1]
        right = np.empty((count, 6, 12 + columns))
        right[:, :, :6] = phi_a[:, 6:, :6]
        np.negative(phi_b[:, :6, 6:], out=right[:, :, 6:12])
        beta = right[:, :, 12:]
        beta[...] = b_a[:, 6:] - b_b[:, :6] - p @ applied
        if self.across is not None:
            beta[:, :, 0] += self.across[joint]
        force, acceleration, (rows, x) = self._across(joint, p, right)
        coupled = rows[:, :, :12].swapaxes(-1, -2) @ x
        phi = -coupled[:, :, :12]
        phi[:, :6, :6] += phi_a[:, :6, :6]
        phi[:, 6:, 6:] += phi_b[:, 6:, 6:]
        b = -coupled[:, :, 12:] - right[:, :, :12].swapaxes(-1, -2) @ applied
        b[:, :6] += b_a[:, :6]
        b[:, 6:] += b_b[:, 6:]
        node.phi[level.made], node.b[level.made] = phi, b
        force[:, :, 12:] += applied
        self.kept[-1 - level.made.start] = (force, acceleration)

    def _pairs_down(self, level: Level) -> None:
        first, second, joint = level.pairs.T
        force, acceleration = self.kept.pop(-1 - level.made.start)
        handles = self.node.f[level.made]
        f = force[:, :, 12:] + force[:, :, :12] @ handles
        self.node.f[first, :6] = handles[:, :6]
        self.node.f[first, 6:] = -f
        self.node.f[second, :6] = f
        self.node.f[second, 6:] = handles[:, 6:]
        self._joint_result(joint, acceleration[:, :, 12:] + acceleration[:, :, :12] @ handles)

    def _rakes_up(self, level: Level) -> None:
        top, joint, host = level.rakes.T
        p, b, applied = self.node.phi[top][:, :6, :6], self.node.b[top][:, :6], self.applied[joint]
        right = np.empty((len(top), 6, 6 + b.shape[-1]))
        right[:, :, :6] = np.eye(6)
        right[:, :, 6:] = -b - p @ applied
        if self.across is not None:
            right[:, :, 6] += self.across[joint]
        force, acceleration, _ = self._across(joint, p, right)
        force[:, :, 6:] += applied
        shift = shift_force(self._pendant_offset(joint, host))
        absorbed = shift @ force[:, :, :6] @ shift.swapaxes(-1, -2)
        load = shift @ force[:, :, 6:]
        if self.bias_acceleration is not None:
            load[:, :, 0] += (absorbed @ self.bias_acceleration[host][:, :, None])[:, :, 0]
        np.add.at(self.inertia, host, absorbed)
        np.add.at(self.load, host, load)
        self.kept[("rake", int(joint[0]))] = (force, acceleration, shift)

    def _rakes_down(self, level: Level) -> None:
        top, joint, host = level.rakes.T
        force, acceleration, shift = self.kept.pop(("rake", int(joint[0])))
        moved = shift.swapaxes(-1, -2) @ self.link_acceleration[host]
        self.node.f[top, :6] = force[:, :, 6:] + force[:, :, :6] @ moved
        self._joint_result(joint, acceleration[:, :, 6:] + acceleration[:, :, :6] @ moved)

    def _pendant_offset(self, joint: np.ndarray, host: np.ndarray) -> np.ndarray:
        a, origin = self.assembly, self.kin.origin
        return origin[a.joint_cluster[joint]] - origin[a.cluster_of[host]]

    def _joint_result(self, joint: np.ndarray, acceleration: np.ndarray) -> None:
        a = self.assembly
        self.result[a.freedoms :].reshape(-1, 6, acceleration.shape[-1])[joint] = acceleration
