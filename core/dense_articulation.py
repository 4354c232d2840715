"""An articulation of blocks of links, each solved at once: cheaper than a tree of small nodes where most of the joints
are computed anyhow.

A block accelerates with x = (its top, its joints). With s the freedoms' axes about the top's origin, I_c the inertia of
all that a freedom moves (Featherstone's composite bodies) and J the handles' motions, forces f on the handles give

    M x = Jᵀ f + g,   M = s I_c sᵀ where one freedom carries the other,

so that Φ = J M⁻¹ Jᵀ and b = J M⁻¹ g, and Ψ, p and η are products of the joints' rows of M⁻¹ (Jᵀ, g). The world does not
move but accelerates against gravity, as in articulation.py.
"""

from __future__ import annotations

import numpy as np

from .articulation import CHUNK, Articulation
from .blocks import Blocks
from .crown import Crown, CrownedDescent
from .error_queue import Descent
from .model import Model
from .partition import Partition
from .spatial import cross, force_maps, skew


def _spatial() -> np.ndarray:
    """The (16, 36) map of a pseudo-inertia, Σ m (p, 1) (p, 1)ᵀ, to a spatial inertia, angular first."""
    table = np.zeros((4, 4, 6, 6))
    for i, unit in enumerate(skew(np.eye(3))):
        table[i, 3, :3, 3:], table[i, 3, 3:, :3] = unit, unit.T
        table[3, 3, 3 + i, 3 + i] = 1.0
        for j in range(3):
            table[j, j, i, i] += 1.0
            table[j, i, i, j] -= 1.0
    return table.reshape(16, 36)


_SPATIAL = _spatial()
CROWN = 24
"""So many of the highest inner nodes are solved at once."""


class DenseArticulation(Articulation):
    """Coefficients of a partition with `blocks`; D = 6 + d freedoms of each, the top's first.

    `inside` (blocks, B, 4, 4): poses of the leaves in the top's frame; `axes` (blocks, D, 6): s; `mass` (blocks, D, D):
    M; `handles` (blocks, 12, D): J; `solution` (blocks, D, 13): M⁻¹ (Jᵀ, g), as of the last `move` and `update`.
    `wrench` (leaves + 1, 6) pulls at each leaf's origin, along its axes.
    """

    def __init__(self, model: Model, partition: Partition, gravity: np.ndarray, factor: np.ndarray | None) -> None:
        p, self.blocks = partition, Blocks(model, partition)
        still = self.blocks.still
        blocks, width, most = self.blocks.carries.shape
        self.inside = np.zeros((blocks, most, 4, 4))
        self.axes, self.mass = np.zeros((blocks, width, 6)), np.zeros((blocks, width, width))
        self.handles, self.solution = np.zeros((blocks, 12, width)), np.zeros((blocks, width, 13))
        self.axes[~still, :6] = self.handles[~still, :6, :6] = np.eye(6)
        armature = np.append(model.armature, 1.0)[self.blocks.velocity]
        self._unit = np.concatenate((np.repeat(still[:, None], 6, axis=1), armature), axis=1)
        self.wrench = np.zeros((p.leaves + 1, 6))
        self._gravity, self._weight, self._fall = gravity, np.zeros((blocks, width)), np.zeros((blocks, 12))
        inertia = np.append(model.inertia, np.zeros((1, 6, 6)), axis=0)[p.link] * p.share[:, None, None]
        turning = inertia[:, :3, :3]
        self._pseudo = np.zeros((p.leaves + 1, 4, 4))
        self._pseudo[:-1, :3, :3] = 0.5 * turning.trace(axis1=1, axis2=2)[:, None, None] * np.eye(3) - turning
        self._pseudo[:-1, :3, 3] = self._pseudo[:-1, 3, :3] = inertia[:, [2, 0, 1], [4, 5, 3]]
        self._pseudo[:-1, 3, 3] = inertia[:, 3, 3]
        # the freedoms' axes in the links' frames
        own = np.eye(6)[self.blocks.axis]
        own[self.blocks.velocity == model.nv] = 0.0
        self._own = own
        self._to_tip = self.blocks.carries[np.arange(blocks), :, self.blocks.tip][:, :, None]
        # where freedoms are among six of each leaf, the last for none
        at = self.blocks.host * 6 + self.blocks.axis
        self._spot = np.where(self.blocks.velocity < model.nv, at, 6 * most)
        self._crown: Crown | None = None
        self._moved = self._loaded = self._unplaced = np.zeros(0, dtype=int)
        self._stale = np.zeros(p.nodes + 1, dtype=bool)
        super().__init__(model, partition, gravity, factor)
        self.opens = (p.child < p.nodes) & np.append(self.blocks.count > 0, np.ones(len(p.child) + 1, bool))[p.child]

    def _leaves(self, model: Model, gravity: np.ndarray) -> None:
        """Blocks are brought up to date as other nodes are."""

    def place(self, joints: np.ndarray, poses: np.ndarray, turn: np.ndarray) -> None:
        within = self.partition.owner[joints] < self.partition.blocks
        turn = np.broadcast_to(turn, poses.shape)
        super().place(joints[~within], poses[~within], turn[~within])
        joints = joints[within]
        self.joint_pose[joints] = poses[within]
        which = np.flatnonzero(self.turned[joints])
        if len(which):
            some = joints[which]
            row, axis = np.nonzero(self.free[some])
            axes = self.turned_axes(some, turn[within][which])
            self._own.reshape(-1, 6)[self.blocks.place[self.velocity[some][row, axis]]] = axes[row, :, axis]

    def load(self, leaves: np.ndarray, wrenches: np.ndarray) -> None:
        self.wrench[leaves] = wrenches

    def move(self, moved: np.ndarray) -> None:
        cut = int(np.searchsorted(moved, self.partition.blocks))
        for first in range(0, cut, CHUNK):
            some = moved[first : min(first + CHUNK, cut)]
            row = np.arange(len(some))
            poses = self.joint_pose[self.blocks.joint[some]]
            poses[:, 0] = np.eye(4)
            for jump in self.blocks.jumps:
                poses = poses[row[:, None], jump[some]] @ poses
            self.inside[some] = poses
            self.reach[some] = poses[row, self.blocks.tip[some]]
        moved, crown = moved[cut:], self._crown
        others = len(self._unplaced) and (crown is None or self._unplaced is not crown.nodes)
        if crown is not None and not others and crown.holds(moved).all():
            crown.place()
            self._unplaced = crown.nodes
            return
        if len(self._unplaced):
            moved = np.union1d(moved, self._unplaced)
        super().move(moved)
        self._unplaced = moved[:0]

    def world_poses(self, leaves: np.ndarray) -> np.ndarray:
        block = self.partition.block[leaves]
        return super().world_poses(block) @ self.inside[block, self.blocks.slot[leaves]]

    def update(self, moved: np.ndarray, loaded: np.ndarray) -> None:
        also, cut = np.searchsorted(moved, self.partition.blocks), np.searchsorted(loaded, self.partition.blocks)
        for first in range(0, int(also), CHUNK):
            self._assemble(moved[first : min(first + CHUNK, int(also))])
        only = np.setdiff1d(loaded[:cut], moved[:also], assume_unique=True) if cut > also else loaded[:0]
        for first in range(0, len(only), CHUNK):
            self._load(only[first : first + CHUNK])
        self._defer(moved[also:], loaded[cut:])

    def _defer(self, moved: np.ndarray, loaded: np.ndarray) -> None:
        """Brings inner nodes up to date but for the highest, which may be solved at once as they are (see crown.py)."""
        self._stale[loaded] = False
        rest = self._loaded[self._stale[self._loaded]]
        if len(rest):
            super().update(np.intersect1d(self._moved, rest, assume_unique=True), rest)
            self._stale[rest] = False
        if len(self._moved):
            moved = np.union1d(moved, np.setdiff1d(self._moved, rest, assume_unique=True))
        cut = max(len(loaded) - CROWN, 0)
        if cut:
            first = loaded[cut]
            also = int(np.searchsorted(moved, first))
            super().update(moved[:also], loaded[:cut])
            moved, loaded = moved[also:], loaded[cut:]
        self._moved, self._loaded = moved, loaded
        self._stale[loaded] = True

    def settle(self) -> None:
        """Brings up to date what has been put off."""
        super().update(self._moved, self._loaded)
        self._stale[self._loaded] = False
        self._moved = self._loaded = self._moved[:0]

    def total(self, nodes: np.ndarray, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._stale[nodes].any():
            self.settle()
        return super().total(nodes, forces)

    def descent(self) -> Descent:
        """A descent from the root; what has been put off is found on the way."""
        p = self.partition
        if not p.levels:
            return Descent(self)
        nodes = self._loaded if len(self._loaded) else np.array([p.root])
        if self._crown is None or not np.array_equal(self._crown.nodes, nodes):
            self._crown = Crown(self, nodes)
        self._crown.solve()
        return CrownedDescent(self._crown)

    def _assemble(self, blocks: np.ndarray) -> None:
        poses, own = self.inside[blocks], self._own[blocks]
        k, d, _ = own.shape
        row = np.arange(k)
        s = self.axes[blocks]
        frames = poses[row[:, None], self.blocks.host[blocks]]
        turned = own.reshape(k, d, 2, 3) @ frames[:, :, :3, :3].swapaxes(-1, -2)
        s[:, 6:, :3] = turned[:, :, 0]
        s[:, 6:, 3:] = turned[:, :, 1] + cross(frames[:, :, :3, 3], turned[:, :, 0])
        pseudo = poses @ self._pseudo[self.partition.members[blocks]] @ poses.swapaxes(-1, -2)
        composite = self.blocks.carries[blocks] @ pseudo.reshape(k, -1, 16) @ _SPATIAL
        momentum = (composite.reshape(k, -1, 6, 6) @ s[:, :, :, None])[:, :, :, 0]
        half = s @ momentum.swapaxes(-1, -2)
        half *= self.blocks.couples[blocks]
        mass = half + half.swapaxes(-1, -2)
        mass.reshape(k, -1)[:, :: 7 + d] += self._unit[blocks]
        tip = poses[row, self.blocks.tip[blocks]]
        handles = self.handles[blocks]
        handles[:, 6:] = ((s * self._to_tip[blocks]) @ force_maps(tip)).swapaxes(-1, -2)
        still = np.flatnonzero(self.blocks.still[blocks])
        if len(still):
            self._weight[blocks[still]] = momentum[still, :, 3:] @ self._gravity
            self._fall[blocks[still], 3:6] = -self._gravity
            self._fall[blocks[still], 9:] = -self._gravity @ tip[still, :3, :3]
        self.axes[blocks], self.mass[blocks], self.handles[blocks] = s, mass, handles
        right = np.concatenate((handles.swapaxes(-1, -2), self._pull(blocks, poses, s)[:, :, None]), axis=2)
        self._keep(blocks, handles, np.linalg.solve(mass, right))

    def _load(self, blocks: np.ndarray) -> None:
        pull = self._pull(blocks, self.inside[blocks], self.axes[blocks])
        solution = self.solution[blocks]
        solution[:, :, 12:] = np.linalg.solve(self.mass[blocks], pull[:, :, None])
        self._keep(blocks, self.handles[blocks], solution)

    def _pull(self, blocks: np.ndarray, poses: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Generalised forces g (k, D)."""
        result, wrench = self._weight[blocks], self.wrench[self.partition.members[blocks]]
        some = np.flatnonzero(wrench.any((1, 2)))
        if len(some):
            poses, wrench = poses[some], wrench[some]
            turned = wrench.reshape(*wrench.shape[:2], 2, 3) @ poses[:, :, :3, :3].swapaxes(-1, -2)
            turned[:, :, 0] += cross(poses[:, :, :3, 3], turned[:, :, 1])
            result[some] += (s[some] * (self.blocks.carries[blocks[some]] @ turned.reshape(wrench.shape))).sum(-1)
        if self.active:
            joint = self.blocks.joint[blocks[:, None], self.blocks.host[blocks]]
            result[:, 6:] += self.applied[joint, self.blocks.axis[blocks]]
        return result

    def _keep(self, blocks: np.ndarray, handles: np.ndarray, solution: np.ndarray) -> None:
        self.solution[blocks] = solution
        ends, joints = handles @ solution, solution[:, 6:]
        if self.factor is not None:
            spread = self.factor[self.blocks.joint[blocks]] @ self._spread(blocks, joints)
            joints = spread.reshape(len(blocks), -1, 13)
        squares = joints.swapaxes(-1, -2) @ joints
        made = np.empty((len(blocks), 2, 12, 12))
        made[:, 0] = 0.5 * (ends[:, :, :12] + ends[:, :, :12].swapaxes(-1, -2))
        made[:, 1] = squares[:, :12, :12]
        self.pairs[blocks] = made
        self.linear[blocks, :, 0] = ends[:, :, 12] + self._fall[blocks]
        self.linear[blocks, :, 1] = 2.0 * squares[:, :12, 12]
        self.eta[blocks] = squares[:, 12, 12]

    def _spread(self, blocks: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values (k, d, columns) of freedoms as those (k, B, 6, columns) of all axes of the leaves' joints."""
        k, _, columns = values.shape
        most = self.inside.shape[1]
        result = np.zeros((k, 6 * most + 1, columns))
        result[np.arange(k)[:, None], self._spot[blocks]] = values
        return result[:, :-1].reshape(k, most, 6, columns)

    def open(self, nodes: np.ndarray, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        inner = nodes >= self.partition.blocks
        if inner.all():
            return super().open(nodes, forces)
        some = nodes[~inner]
        solution = self.solution[some, 6:]
        values = solution[:, :, :12] @ forces[~inner, :, None] + solution[:, :, 12:]
        joints = self.blocks.joint[some]
        real = joints < self.partition.joints
        joints, motion = joints[real], self._spread(some, values)[:, :, :, 0][real]
        more, moves, below, handles = super().open(nodes[inner], forces[inner])
        return np.concatenate((joints, more)), np.concatenate((motion, moves)), below, handles

    def respond(self, units: np.ndarray, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What wrenches (k, 6, r) on `leaves` (k), about their origins and along their axes, make of their blocks:
        these (l,), the accelerations (l, 12, r) of their handles, of the wrenches' own rows (r, r), and what these (r,)
        are by all else but handle forces."""
        blocks, at = np.unique(self.partition.block[leaves], return_inverse=True)
        r, slot = units.shape[-1], self.blocks.slot[leaves]
        pose = self.inside[blocks[at], slot]
        force = pose[:, :3, :3] @ units[:, 3:]
        sums = np.zeros((len(blocks), self.inside.shape[1], 6, r))
        sums[at, slot, :3] = pose[:, :3, :3] @ units[:, :3] + skew(pose[:, :3, 3]) @ force
        sums[at, slot, 3:] = force
        moved = self.blocks.carries[blocks] @ sums.reshape(len(blocks), -1, 6 * r)
        right = (self.axes[blocks][:, :, :, None] * moved.reshape(len(blocks), -1, 6, r)).sum(2)
        solved = np.linalg.solve(self.mass[blocks], right)
        opening = np.einsum("ldr,ld->r", right, self.solution[blocks, :, 12])
        opening -= np.einsum("lbir,i->r", sums[self.blocks.still[blocks], :, 3:], self._gravity)
        return blocks, self.handles[blocks] @ solved, np.einsum("ldr,lds->rs", right, solved), opening
