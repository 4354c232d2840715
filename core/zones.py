"""Rigid zones of a hybrid body: what moves as one while all but a few joints hold still (Redon, Galoppo and Lin 2005).

Every node of the partition has the inertia of all its links as one body, which holds as long as its joints rest; the
nodes below those that active joints open are the pieces of the zones. Costs O(k log(n / k)) for k active joints.

An active joint can stand in for those at rest around it: half of what lies on the way to the next active one, on either
side. They would turn under its torque like dampers in series with its own, so it turns that much more easily. Else a
chain of which few joints move resists bending as many times as much as there are joints for each that does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .model import Model
from .moving_articulation import MovingArticulation
from .spatial import force_maps, pose_inverse

FREEST = 1e-9
"""A joint at rest resists by no less than this part of what the one does that resists most."""


@dataclass(frozen=True)
class Zones:
    """The zones of k active joints: the bodies of a linkage that moves as the hybrid body does.

    `links` (k,), ascending, whose joints are active: the roots of the zones; what no active joint carries belongs to
    the world. `parent` (k,): the zone that carries each, which comes before it, -1 for the world's; `placement` (k, 4,
    4): the joint's rest frame in the frame of that zone's root, or of the world; `world` (k, 4, 4): the roots' poses;
    `inertia` (k, 6, 6) about the root's origin along its axes.
    The pieces are nodes (p,) of the partition: `piece` (p,), its `zone` (p,), -1 for the world's, its top's `pose` (p,
    4, 4) in the frame of the zone's root, and its `mass` (p, 6, 6): its inertia about its top's origin, along its axes.
    """

    links: np.ndarray
    parent: np.ndarray
    placement: np.ndarray
    world: np.ndarray
    inertia: np.ndarray
    piece: np.ndarray
    zone: np.ndarray
    pose: np.ndarray
    mass: np.ndarray
    mobility: np.ndarray
    zone_of: Callable[[np.ndarray], np.ndarray]
    bend_of: Callable[[np.ndarray], np.ndarray]


class RigidNodes:
    """The `inertia` (nodes + 1, 6, 6) of the links of every node as one body, about its top's origin along its axes,
    and the `mobility` (nodes + 1, 3, 3) of its tip against its top, of all joints on the way; of nodes that are
    `stale`, ascending, as they were before a joint in them moved."""

    def __init__(self, articulation: MovingArticulation, model: Model) -> None:
        self.articulation, self.partition = articulation, articulation.partition
        p = self.partition
        self.inertia = np.zeros((p.nodes + 1, 6, 6))
        body = np.flatnonzero(p.link < p.n)
        self.inertia[body] = model.inertia[p.link[body]] * p.share[body, None, None]
        self.stale = np.arange(p.leaves, p.nodes)
        self.mobility, self._leads = np.zeros((p.nodes + 1, 3, 3)), p.leads
        damping = np.append(model.damping + model.drive_damping, 0.0)[articulation.velocity]
        yields = articulation.free.copy()
        # a spring keeps what it has turned by, and no joint holds what floats
        yields[: p.n][model.coordinates.kinds == "free"] = False
        yields &= np.append(model.stiffness, 0.0)[articulation.velocity] == 0.0
        least = FREEST * damping.max(initial=0.0)
        self._depth = np.zeros(p.n + 1)
        for i, host in enumerate(model.parent.tolist()):
            self._depth[i] = self._depth[host] + 1.0
        self._rates = np.where(yields & (least > 0.0), 1.0 / np.maximum(damping, least or 1.0), 0.0)

    def update(self, opened: np.ndarray) -> None:
        """Brings all but the `opened` nodes up to date, ascending and closed upward."""
        p, a = self.partition, self.articulation
        for nodes, slices in a.batches(np.setdiff1d(self.stale, opened, assume_unique=True)):
            row = nodes - p.leaves
            child = p.child[row]
            shift, turn = force_maps(a.pose[child]), a.pose[child][..., :3, :3] * self._leads[row][..., None, None]
            axes, back = a._axes_of(row)[..., :3, :], a.pose[child][..., :3, :3].swapaxes(-1, -2)
            own = np.zeros((*child.shape, 3, 3))
            own[:, 1:] = (axes * self._rates[p.joint[row]][..., None, :]) @ axes.swapaxes(-1, -2)
            for s in slices:
                self.inertia[nodes[s]] = (shift[s] @ self.inertia[child[s]] @ shift[s].swapaxes(-1, -2)).sum(1)
                self.mobility[nodes[s]] = (turn[s] @ (own[s] + self.mobility[child[s]]) @ back[s]).sum(1)
        self.stale = np.intersect1d(self.stale, opened, assume_unique=True)

    def zones(self, links: np.ndarray, placement: np.ndarray) -> Zones:
        """The zones of active joints `links` (k,); `placement` (n, 4, 4) of all joints' rest frames."""
        p, a = self.partition, self.articulation
        links = np.sort(links)
        opened = a.openings(links)
        self.update(opened)
        child = a.below(opened)
        below = np.setdiff1d(child, opened)
        piece = below[below < p.nodes]
        roots, hosts = a.ends(links)
        places = _Nesting(a.enters[links], a.exits[links])
        parent, zone = places.parent, places.innermost(a.enters[p.link[p.top[piece]]])
        # the world's frame comes last, where -1 finds it
        frames = np.concatenate((pose_inverse(a.world[roots]), np.eye(4)[None]))
        poses = frames[zone] @ a.world[piece]
        shift, mass = force_maps(poses), self.inertia[piece]
        inertia = np.zeros((len(links) + 1, 6, 6))
        np.add.at(inertia, zone, shift @ mass @ shift.swapaxes(-1, -2))
        host = frames[parent] @ a.world[hosts] @ a.reach[hosts]
        mobility = self._mobility(links, places, roots, piece, child[:, 1:], p.joint[opened - p.leaves])
        return Zones(
            links, parent, host @ placement[links], a.world[roots], inertia[:-1], piece, zone, poses, mass, mobility,
            lambda some: places.innermost(a.enters[some]), lambda some: self._bends(links, places, some),
        )  # fmt: skip

    def _mobility(
        self, links: np.ndarray, places: _Nesting, roots: np.ndarray, piece: np.ndarray, carried: np.ndarray,
        joints: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """`Zones.mobility`, of the pieces and of the opened nodes' `joints` that rest, which carry the nodes `carried`:
        half of what is on the way to other active joints goes to those, half to the joint that carries its zone."""
        p, a = self.partition, self.articulation
        rests = (joints < p.n) & ~np.isin(joints, links)
        joints, carried = joints[rests], carried[rests]
        turn = a.world[carried, :3, :3] @ a.axes_of(joints)[:, :3]
        resting = (turn * self._rates[joints, None]) @ turn.swapaxes(-1, -2)
        turn = a.world[piece, :3, :3]
        own = np.concatenate((turn @ self.mobility[piece] @ turn.swapaxes(-1, -2), resting))
        zone = places.innermost(a.enters[np.concatenate((p.link[p.top[piece]], joints))])
        end = np.concatenate((p.link[p.tip[piece]], joints))
        first, last = places.carried(zone, a.enters[end], a.exits[end])
        way = last > first
        steps, total = np.zeros((len(links) + 1, 3, 3)), np.zeros((len(links) + 1, 3, 3))
        np.add.at(steps, first[way], own[way])
        np.subtract.at(steps, last[way], own[way])
        total[places.order] = np.cumsum(steps[:-1], axis=0)
        # the world's own come last, where nobody asks for them
        np.add.at(total, zone[way], own[way])
        axes = a.world[roots, :3, :3] @ a.axes_of(links)[:, :3]
        along = 0.5 * (axes * (total[:-1] @ axes)).sum(1)[a.free[links]]
        return np.maximum(along, 0.0)

    def _bends(self, links: np.ndarray, places: _Nesting, some: np.ndarray) -> np.ndarray:
        """`Zones.bend_of` links `some` (m,)."""
        a, roots = self.articulation, np.append(links, -1)
        zone = places.innermost(a.enters[some])
        result = np.where(roots[zone] == some, zone, len(links) + np.arange(len(some)))
        first, last = places.carried(zone, a.enters[some], a.exits[some])
        way = np.flatnonzero(last > first)
        beyond, zone = places.order[first[way]], zone[way]
        # the world's depth comes last, where -1 finds it
        top = self._depth[roots[zone]]
        nearer = 2.0 * (self._depth[some[way]] - top) > self._depth[links[beyond]] - top
        result[way] = np.where(nearer, beyond, np.where(zone >= 0, zone, result[way]))
        return result


class _Nesting:
    """Intervals (k,), each within another or apart, by ascending starts: `parent` (k,), the innermost around each, or
    -1; their `order` (k,), those within one after each other."""

    def __init__(self, starts: np.ndarray, ends: np.ndarray) -> None:
        order = np.argsort(starts)
        parent, around = np.full(len(starts), -1), []
        ending = ends.tolist()
        for i, start in zip(order.tolist(), starts[order].tolist()):
            while around and ending[around[-1]] <= start:
                around.pop()
            parent[i] = around[-1] if around else -1
            around.append(i)
        self.parent = parent
        self.order = np.lexsort((starts, parent))
        self._first, self._within = starts[self.order], parent[self.order]
        at = np.concatenate((ends, starts))
        # where several end, the outermost ends last, and then another may start
        order = np.lexsort((np.concatenate((-starts, np.ones_like(starts))), at))
        self._at = at[order]
        self._after = np.concatenate(([-1], np.concatenate((parent, np.arange(len(starts))))[order]))

    def carried(self, within: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of the `order`, from the first up to the last (m,), are right within the intervals `within` (m,), -1
        for those in none, and start from `starts` (m,) up to `ends` (m,)."""
        span = int(self._at[-1]) + 2 if len(self._at) else 1
        place = (self._within + 1) * span + self._first
        return tuple(np.searchsorted(place, (within + 1) * span + np.minimum(at, span - 1)) for at in (starts, ends))

    def innermost(self, places: np.ndarray) -> np.ndarray:
        """The innermost interval around each of the `places` (m,), or -1."""
        return self._after[np.searchsorted(self._at, places, side="right")]
