"""What the blocks of a partition are made of: small trees of links, and the freedoms within them. Index work only."""

from __future__ import annotations

import numpy as np

from .joint import FREEDOMS
from .model import SUBSPACE, Model
from .partition import Partition


class Blocks:
    """Of blocks with up to B leaves and d freedoms; the top's own joint belongs to none, and is number `joints`.

    `slot` (leaves + 1,) of each leaf in its block; `joint` (blocks, B) of the leaves; `tip` (blocks,): the tips' slots;
    `still` (blocks,): whether the top is the world. `jumps`: of each round the slots (blocks, B) 1, 2, 4 ... links
    nearer to the top, 0 for the top.
    `count` (blocks,) of freedoms, sorted by slots; `host` (blocks, d): whose joint's they are; `velocity` (blocks, d),
    nv for none, `axis` (blocks, d): which of the joint's six. `place` (nv + 1,): where each freedom is in the raveled
    (blocks, d), their number for those that are in none.
    With D = 6 + d, the top's six freedoms first: `carries` (blocks, D, B): 1 where a freedom moves a leaf; `couples`
    (blocks, D, D): 1 where the first moves the second's link and comes before it, a half on the diagonal.
    """

    def __init__(self, model: Model, p: Partition) -> None:
        blocks, most = p.members.shape
        leaves, joints = p.leaves, p.joints
        row, column = np.nonzero(p.members < leaves)
        self.slot = np.zeros(leaves + 1, dtype=int)
        self.slot[p.members[row, column]] = column
        joint = np.full(leaves + 1, joints)
        joint[p.joint_child[:-1]] = np.arange(joints)
        self.joint = joint[p.members]
        self.joint[:, 0] = joints
        self.tip = self.slot[p.tip[:blocks]]
        self.still = p.link[p.top[:blocks]] == p.n
        up = np.where(self.joint < joints, self.slot[p.joint_host[self.joint]], 0)
        self.jumps, jump = [], up
        while jump.any():
            self.jumps.append(jump)
            jump = np.take_along_axis(jump, jump, axis=1)
        beneath = np.zeros((blocks, most, most), dtype=bool)
        climbed = np.tile(np.arange(most), (blocks, 1))
        beneath[row, column, column] = True
        while climbed.any():
            climbed = np.take_along_axis(up, climbed, axis=1)
            beneath[row, climbed[row, column], column] = True
        self._freedoms(model, p)
        self._masks(p, beneath, model.nv)

    def _freedoms(self, model: Model, p: Partition) -> None:
        start = np.append(model.coordinates.v_start, np.full(p.joints - p.n, model.nv))
        counts = np.append(np.diff(start), 0)
        within = counts[self.joint]
        self.count = within.sum(1)
        axes = {kind: [axis for axis, _ in SUBSPACE[kind]] for kind in FREEDOMS}
        axes = np.array([axis for kind in model.coordinates.kinds.tolist() for axis in axes[kind]] + [0])
        shape = (len(p.members), int(self.count.max()))
        self.host, self.axis = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int)
        self.velocity = np.full(shape, model.nv)
        row, slot = np.nonzero(within)
        times = within[row, slot]
        ends = np.cumsum(times)
        nth = np.arange(times.sum()) - np.repeat(ends - times, times)
        row, slot = np.repeat(row, times), np.repeat(slot, times)
        column = np.arange(len(row)) - (np.cumsum(self.count) - self.count)[row]
        self.host[row, column] = slot
        self.velocity[row, column] = start[self.joint[row, slot]] + nth
        self.axis[row, column] = axes[self.velocity[row, column]]
        self.place = np.full(model.nv + 1, self.velocity.size)
        self.place[self.velocity[row, column]] = row * shape[1] + column

    def _masks(self, p: Partition, beneath: np.ndarray, nv: int) -> None:
        blocks, most = p.members.shape
        real = self.velocity < nv
        width = 6 + real.shape[1]
        self.carries = np.zeros((blocks, width, most))
        self.carries[:, :6] = (p.members < p.leaves)[:, None]
        self.carries[:, 6:] = beneath[np.arange(blocks)[:, None], self.host] & real[:, :, None]
        hosts = np.concatenate((np.zeros((blocks, 6), dtype=int), self.host), axis=1)
        couples = np.take_along_axis(self.carries, hosts[:, None], axis=2)
        couples[:, :, 6:] *= real[:, None]
        self.couples = np.triu(couples, 1)
        k = np.arange(width)
        self.couples[:, k, k] = 0.5
