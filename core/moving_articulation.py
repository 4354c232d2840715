"""Coefficients of a partition's nodes while a few joints move: the dynamics of hybrid bodies (Gayle, Lin and Manocha
2006, after Redon, Galoppo and Lin 2005).

A node is opened when it, or a node within it, has an active joint; joints of all other nodes have no velocity. Handles
accelerate as points do: with the classical accelerations of their links' origins, velocities enter through the links'
angular velocities ω and the joints' own velocities alone. A link pulls at its origin with

    -(ω × I ω, m ω × (ω × c)),   and across a joint at r from its parent's origin, of relative velocity (ω_r, ṙ),

the acceleration c = (ω_p × ω_r, ω_p × (ω_p × r) + 2 ω_p × ṙ) drifts by itself; a universal joint, whose second axis its
first turns, adds ω_1 × ω_2. What drifts, along the joint's axes, is taken off β (articulation.py).

Of a node that is not opened all this depends on the angular velocity of its top alone, through the six products
w = (ω_x², ω_y², ω_z², ω_x ω_y, ω_y ω_z, ω_z ω_x): its b and p are linear, its η is quadratic in (1, w). Those columns
are found when the node comes to rest and hold until a joint in it moves or something pulls at it anew, whatever moves
above. Opened nodes have numbers instead, brought up to date from those of the unopened nodes below them.
"""

from __future__ import annotations

import numpy as np

from .articulation import ROUNDING, Articulation, Batch
from .model import Model
from .partition import Partition
from .spatial import cross
from .spin import COLUMNS, centripetal, gyroscopic, products, turned_products


class MovingArticulation(Articulation):
    """Coefficients with velocities; `linear`, `eta` and `start` hold at the velocities of the last `refresh`: of opened
    nodes, their children, and what has been revealed since.

    `columns` (nodes + 1, 12, 2, 7): b and p of nodes that are not opened, `quadratic` (nodes + 1, 7, 7): η, and `begun`
    (inner, 2 m, 7): `start`, all for (1, w) of the node's top. `spin` (nodes + 1, 3): angular velocities of the tops,
    in their frames. `opened` (o,): the opened nodes, ascending, closed upward, with the root. `blur` (nodes + 1, 13):
    the sizes of the terms that p and η are summed from. `world` (nodes + 1, 4, 4): the tops' poses, where needed.
    """

    def __init__(self, model: Model, partition: Partition, gravity: np.ndarray, factor: np.ndarray | None) -> None:
        super().__init__(model, partition, gravity, factor)
        p = partition
        inner, m = self.start.shape[0], 6 * (p.arity - 1)
        self.drift = np.zeros((inner, m))
        self.columns = np.zeros((p.nodes + 1, 12, 2, COLUMNS))
        self.quadratic = np.zeros((p.nodes + 1, COLUMNS, COLUMNS))
        self.begun = np.zeros((inner, 2 * m, COLUMNS))
        self.spin, self.blur = np.zeros((p.nodes + 1, 3)), np.zeros((p.nodes + 1, 13))
        self.world = np.broadcast_to(np.eye(4), (p.nodes + 1, 4, 4)).copy()
        self.rates = np.zeros((p.joints + 1, 6))
        self.opened, self._stale = np.array([p.root]), np.zeros(0, dtype=int)
        self._is_opened = np.zeros(p.nodes + 1, dtype=bool)
        self._is_opened[p.root] = True
        self._active = np.zeros(0, dtype=int)
        # keyed joints move without freedoms, and accelerate by themselves
        self.keyed = np.flatnonzero(model.keyed)
        self.led, self.swerve = np.zeros((2, len(self.keyed), 6))
        self.columns[: p.leaves, :, 0, 0] = self.linear[: p.leaves, :, 0]
        body = np.flatnonzero(p.link < p.n)
        link = p.link[body]
        pull = np.empty((len(body), 6, 6))
        # parts of a link have their shares of its inertia, and accelerate as the whole does
        pull[:, :3] = gyroscopic(model.inertia[link, :3, :3])
        pull[:, 3:] = model.mass[link, None, None] * centripetal(model.center[link])
        pull *= p.share[body, None, None]
        self.columns[body, :, 0, 1:] = -self.pairs[body, 0, :, :6] @ pull
        self._order(model)

    def _order(self, model: Model) -> None:
        """When a walk through the forest enters and leaves each link; the world first."""
        n, parent = model.n, model.parent.tolist()
        size = [1] * n
        for i in range(n - 1, -1, -1):
            if parent[i] >= 0:
                size[parent[i]] += size[i]
        enters, room = [0] * n, [0] * (n + 1)
        room[n] = 1
        for i, host in enumerate(parent):
            enters[i] = room[host]
            room[host] += size[i]
            room[i] = enters[i] + 1
        self.enters = np.array([*enters, 0])
        self.exits = self.enters + np.array([*size, n + 1])

    def load(self, leaves: np.ndarray, wrenches: np.ndarray) -> None:
        self.columns[leaves, :, 0, 0] = (self.pairs[leaves, 0, :, :6] @ wrenches[:, :, None])[:, :, 0]

    def lead(self, twists: np.ndarray, changes: np.ndarray) -> None:
        """How keyed links (k,) move against their parents: `twists` (k, 6) and their rates of change, in the links' own
        frames."""
        self.led, self.swerve = twists, changes.copy()
        # the link's frame turns by itself against the parent's
        self.swerve[:, 3:] += cross(twists[:, :3], twists[:, 3:])

    def openings(self, active: np.ndarray) -> np.ndarray:
        """The nodes (o,) that active and keyed joints open, ascending, closed upward, with the root."""
        p = self.partition
        owner = p.owner[np.concatenate((active, self.keyed))]
        return np.unique(np.concatenate((owner, p.ancestors(owner), [p.root])))

    def refresh(
        self, moved: np.ndarray, loaded: np.ndarray, active: np.ndarray, rates: np.ndarray, drag: np.ndarray
    ) -> None:
        """Brings everything up to date that the next look needs. The inner nodes `moved`, whose poses are up to date,
        and `loaded`, both ascending and closed upward, are those of `Articulation.update`; `active` joints (k,) move
        with `rates` (k, 6) against the forces `drag` (k, 6), along their axes, and no others."""
        for nodes, slices in self.batches(moved):
            batch = Batch(self, nodes, True)
            for s in slices:
                batch.assemble(s)
            batch.keep_maps()
        self._open(self.openings(active))
        stale = np.union1d(self._stale, np.union1d(moved, loaded))
        opened = self._is_opened[stale]
        self._stale = stale[opened]
        for nodes, slices in self.batches(stale[~opened]):
            resting = _Resting(self, nodes)
            for s in slices:
                resting.bias(s)
            resting.keep()
        self._turn(active, rates)
        at_rest = self.applied[active]
        self.applied[active] = at_rest - drag
        self.active = self.active or bool(drag.any())
        for nodes, slices in self.batches(self.opened):
            batch = Batch(self, nodes, False)
            for s in slices:
                batch.bias(s)
            batch.keep()
        self.applied[active] = at_rest

    def _open(self, opened: np.ndarray) -> None:
        self._is_opened[self.opened] = False
        self._is_opened[opened] = True
        self.opened, self.blur[opened] = opened, 0.0

    def below(self, opened: np.ndarray) -> np.ndarray:
        """The nodes right below `opened` ones, with those; their tops' world poses are brought up to date."""
        p = self.partition
        child = p.child[opened - p.leaves]
        for s in reversed(self._slices(opened)):
            those = child[s]
            self.world[those] = self.world[opened[s], None] @ self.pose[those]
        self.world[p.nodes] = np.eye(4)
        return child

    def ends(self, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nodes that principal `joints` (k,) carry, and those at whose tips these hang."""
        p = self.partition
        row, column = p.owner[joints] - p.leaves, self._column[joints]
        return p.child[row, column + 1], p.child[row, p.carrier[row, column]]

    def axes_of(self, joints: np.ndarray) -> np.ndarray:
        """The axes (k, 6, 6) of principal joints (k,), in the frames of the links they carry."""
        row, column = self.partition.owner[joints] - self.partition.leaves, self._column[joints]
        return self._ports[row, column + 1, 0, :, column]

    def _turn(self, active: np.ndarray, rates: np.ndarray) -> None:
        """The angular velocities of all nodes below opened ones, what is known of them, and the joints' drifts."""
        p = self.partition
        self.rates[self._active] = 0.0
        self.rates[active], self._active = rates, active
        self.rates[self.keyed] = self.led
        child = self.below(self.opened)
        row = self.opened - p.leaves
        axes = self._axes_of(row)
        joint = p.joint[row]
        own = (axes @ self.rates[joint][..., None])[..., 0]
        # in the world's frame a link's angular velocity is the sum over the moving joints that carry it
        moves = (self.rates[joint] != 0.0).any(-1)
        turn = np.ones((np.count_nonzero(moves), 4))
        turn[:, :3] = (self.world[child[:, 1:][moves], :3, :3] @ own[moves][:, :3, None])[:, :, 0]
        link = joint[moves]
        at = np.concatenate((self.enters[link], self.exits[link]))
        order = np.argsort(at, kind="stable")
        sums = np.zeros((len(at) + 1, 4))
        np.cumsum(np.concatenate((turn, -turn))[order], axis=0, out=sums[1:])
        # their number says where nothing is left but what rounding leaves
        sums[sums[:, 3] == 0.0] = 0.0
        those = child[child < p.nodes]
        total = sums[np.searchsorted(at[order], self.enters[p.link[p.top[those]]], side="right"), :3]
        self.spin[those] = (total[:, None] @ self.world[those, :3, :3])[:, 0]
        self._evaluate(those[~self._is_opened[those]])
        self._drift(row, joint, child[:, 1:], axes, own)

    def _axes_of(self, row: np.ndarray) -> np.ndarray:
        """The axes (k, arity - 1, 6, 6) of principal joints, in their children's frames."""
        k = np.arange(self.partition.arity - 1)
        return self._ports[row[:, None], k + 1, 0, :, k]

    def _arms(self, joint: np.ndarray) -> np.ndarray:
        """The way from the parent's origin to the child's, in the child's frame, at each `joint`."""
        pose = self.joint_pose[joint]
        return (pose[..., None, :3, 3] @ pose[..., :3, :3])[..., 0, :]

    def _drift(self, row, joint, child, axes, own) -> None:
        p = self.partition
        turn, slide = own[..., :3], own[..., 3:]
        above = self.spin[child] - turn
        c = np.empty(own.shape)
        c[..., :3] = cross(above, turn)
        c[..., 3:] = cross(above, cross(above, self._arms(joint)) + 2.0 * slide)
        if len(self.keyed):
            swerve = np.zeros((p.joints + 1, 6))
            swerve[self.keyed] = self.swerve
            c += swerve[joint]
        drift = (c[..., None, :] @ axes)[..., 0, :]
        universal = self.universal[joint]
        if universal.any():
            rates = self.rates[joint[universal]]
            drift[universal, 1] -= rates[:, 0] * rates[:, 2]
        self.drift[row] = drift.reshape(len(row), -1)

    def _evaluate(self, nodes: np.ndarray) -> None:
        """b, p and η of unopened `nodes` at the angular velocities of their tops."""
        x = products(self.spin[nodes])[:, :, None]
        columns, quadratic = self.columns[nodes], self.quadratic[nodes]
        terms = quadratic * (x * x.swapaxes(-1, -2))
        self.linear[nodes] = (columns.reshape(-1, 24, COLUMNS) @ x).reshape(-1, 12, 2)
        self.eta[nodes] = terms.sum((1, 2))
        self.blur[nodes, :12] = (np.abs(columns[:, :, 1]) @ np.abs(x))[:, :, 0]
        self.blur[nodes, 12] = np.abs(terms).sum((1, 2))

    def reveal(self, nodes: np.ndarray) -> None:
        nodes = nodes[~self._is_opened[nodes]]
        if not len(nodes):
            return
        p = self.partition
        row, spin = nodes - p.leaves, self.spin[nodes]
        child = p.child[row]
        self.start[row] = (self.begun[row] @ products(spin)[:, :, None])[:, :, 0]
        self.spin[child] = (spin[:, None, None] @ self.pose[child, :3, :3])[:, :, 0]
        self._evaluate(child[p.opens[row]])

    def total(self, nodes: np.ndarray, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `Articulation.total`; what rounds off where velocities' terms cancel is in the bound too."""
        totals, doubt = super().total(nodes, forces)
        blur = self.blur[nodes]
        more = ROUNDING * ((np.abs(forces) * blur[:, :12]).sum(1) + blur[:, 12])
        return totals + more, doubt + more


class _Resting(Batch):
    """Nodes that are not opened: their b, p, η and `start` for all angular velocities of their tops at once."""

    def __init__(self, articulation: MovingArticulation, nodes: np.ndarray) -> None:
        super().__init__(articulation, nodes, False)
        a, k = articulation, len(nodes)
        rotation = a.pose[self.child, :3, :3]
        self.turned = turned_products(rotation)
        arms = a._arms(self.joint)
        # what drifts, where no joint moves, is ω × (ω × r)
        own = centripetal(arms) @ self.turned[:, 1:, 1:, 1:]
        self.still = (a._axes_of(self.row)[..., 3:, :].swapaxes(-1, -2) @ own).reshape(k, self.m, 6)
        self.begun = np.empty((k, 2 * self.m, COLUMNS))

    def bias(self, s: slice) -> None:
        a, m, child, turned = self.articulation, self.m, self.child[s], self.turned[s]
        k, c = len(child), COLUMNS
        linear, quadratic = a.columns[child], a.quadratic[child]
        if a.active:
            pushes = (self.G[s, :, :m] @ self.Q[s]).reshape(*child.shape, 1, 12, 1)
            answers = (a.pairs[child] @ pushes)[..., 0]
            push = pushes[:, :, 0].swapaxes(-1, -2)
            quadratic[:, :, 0] += (push @ linear[:, :, :, 1])[:, :, 0]
            quadratic[:, :, 0, 0] += (push[:, :, 0] * answers[:, :, 1]).sum(-1)
            linear[:, :, :, 0, 0] += answers[:, :, 0]
            linear[:, :, :, 1, 0] += 2.0 * answers[:, :, 1]
        linear = linear.reshape(k, -1, 24, c) @ turned
        eta = (turned.swapaxes(-1, -2) @ quadratic @ turned).sum(1)
        along = self.across[s] @ linear.reshape(k, -1, 2 * c)
        beta, maps = along[:, :m, :c], self.answer[s]
        beta[:, :, 1:] -= self.still[s]
        start, squares = maps[:, :, :m] @ beta, self.squares[s] @ beta
        eta += beta.swapaxes(-1, -2) @ squares[:, :m]
        eta += along[:, :m, c:].swapaxes(-1, -2) @ start[:, :m]
        if a.active:
            start[:, :m, :1] += self.Q[s]
        self.begun[s], a.quadratic[self.nodes[s]] = start, eta
        ends = maps[:, :m, m:].swapaxes(-1, -2) @ along[:, :m]
        ends += along[:, m:]
        ends[:, :, c:] += 2.0 * squares[:, m:]
        a.columns[self.nodes[s]] = ends.reshape(k, 12, 2, c)

    def keep(self) -> None:
        self.articulation.begun[self.row] = self.begun
