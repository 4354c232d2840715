"""Where links touch: scenery, each other and themselves.

Few shapes are near others at any moment. A sweep along one axis finds the moving pairs whose boxes meet, a tree of
boxes what is near of the scenery; each kind of pair is then one function of all its pairs at once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np

from .bounds import BoxTree, overlapping
from .buried import Solid
from .clipping import polytope_plane
from .contact import Contacts, Meeting
from .geometry import BOX, HULL, MESH, PLANE, ROUND, Geometry, Placed
from .neighbours import Neighbours, far
from .rounds import round_round
from .shape import Mesh, Scenery, Shape, Sphere
from .touching import Touching

FEW = 1024
"""So many pairs that may meet are looked at one by one, without a sweep."""
MIX = np.uint64(0x9E3779B97F4A7C15)
"""Spreads pairs and features over the keys,"""
MOST = np.uint64(6)
"""which leave room for as many bits, by which callers tell rows."""


class Collider:
    """Contact generation between the shapes of links, and with scenery.

    `shapes` holds a list per slot, in the link's frame. What never meets: links that are both `keyed` (slots,), a link
    and its `parent` (slots,), -1 for none, and `apart` (k, 2), pairs of slots.
    """

    def __init__(
        self,
        shapes: Sequence[Sequence[Shape | Mesh]],
        scenery: Sequence[Scenery] = (),
        *,
        keyed: np.ndarray | None = None,
        parent: np.ndarray | None = None,
        apart: np.ndarray | None = None,
    ) -> None:
        links = len(shapes)
        own = [shape for of_link in shapes for shape in of_link]
        slots = np.repeat(np.arange(links), [len(of_link) for of_link in shapes])
        self.moving = len(own)
        self.geometry = Geometry([*own, *scenery], np.append(slots, np.full(len(scenery), links)), len(own))
        self._hang(np.zeros(links, bool) if keyed is None else keyed, np.full(links, -1) if parent is None else parent)
        self.touching = Touching(self.geometry)
        self.apart = np.empty(0, dtype=np.intp)
        self._compile_tree()
        self._compile_planes()
        self._buried: list[tuple[int, np.ndarray]] = []
        self.separate(np.empty((0, 2), np.intp) if apart is None else apart)

    def __bool__(self) -> bool:
        """Whether anything can touch at all."""
        scenery = len(self.geometry.shapes) > self.moving
        return self.moving > 0 and (scenery or self._pairs is None or len(self._pairs[0]) > 0)

    def _hang(self, keyed: np.ndarray, parent: np.ndarray) -> None:
        self.links = self.bodies = len(keyed)
        self.keyed, self.parent = np.append(keyed, True), np.append(parent, -2)

    def gathered(self, zone: np.ndarray, within: np.ndarray, keyed: np.ndarray, bend: np.ndarray) -> Collider:
        """The same shapes on links that are parts of rigid zones: the `zone` (n + 1,) of each, its pose `within` (n +
        1, 4, 4) there, and which zones are `keyed` (zones,). Contacts are then between zones, but not between links of
        the same `bend` (n + 1,): a joint that stands in for others makes a corner where there is none."""
        collider = copy.copy(self)
        collider.geometry = self.geometry.gathered(zone, within)
        collider.touching = copy.copy(self.touching)
        collider.touching.geometry = collider.geometry
        collider.bodies, collider.keyed, collider.bend = len(keyed), np.append(keyed, True), bend
        collider._pair()
        return collider

    def rehung(self, moved: np.ndarray, keyed: np.ndarray, parent: np.ndarray, apart: np.ndarray) -> Collider:
        """The same shapes where slots (n + 1,) have `moved` to others; of those the rest, as in `Collider`."""
        collider = copy.copy(self)
        collider.geometry = self.geometry.rehung(moved)
        collider.touching = copy.copy(self.touching)
        collider.touching.geometry = collider.geometry
        collider._hang(keyed, parent)
        collider.separate(apart)
        return collider

    def only(self, moving: np.ndarray) -> Collider:
        """The same with the shapes `moving` (k,), ascending, of the links alone, and all of the scenery."""
        collider, less = copy.copy(self), self.moving - len(moving)
        kept = np.concatenate((moving, np.arange(self.moving, len(self.geometry.shapes))))
        collider.geometry = self.geometry.only(kept)
        collider.touching = self.touching.only(kept, collider.geometry)
        collider.moving = len(moving)
        if self._tree is not None:
            collider._shape = self._shape - less
        collider._planes = self._planes - less
        number = np.full(self.moving, -1)
        number[moving] = np.arange(len(moving))
        collider._standing = [(number[a[on]], b[on]) for a, b in self._standing for on in [number[a] >= 0]]
        rounds = self.geometry.row[moving[self.geometry.kind[moving] == ROUND]]
        collider._offsets = self._offsets[(2 * rounds[:, None] + np.arange(2)).reshape(-1)]
        collider._pair()
        return collider

    def reachable(self, poses: np.ndarray, room: np.ndarray) -> np.ndarray:
        """The shapes (k,) of links, ascending, that may meet anything while none of them gets farther than `room` (n +
        1,) [m] of what it is part of from where they are at poses (n + 1, 4, 4)."""
        g = self.geometry
        if self._buried:
            return np.arange(self.moving)
        low, high = g.bounds(g.placed(poses), moving=True)
        far = room[g.slot[: self.moving], None]
        low, high = low - far, high + far
        found = np.zeros(self.moving, dtype=bool)
        if len(self._planes):
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            gap = middle @ self._normals.T - half @ np.abs(self._normals).T - self._heights
            found |= (gap < 0.0).any(axis=1)
        if self._tree is not None:
            body, thing = self._tree.near(low, high)
            found[body[self._meet(body, self._shape[thing])]] = True
        a, b = overlapping(low, high) if self._pairs is None else self._pairs
        if self._pairs is not None:
            near = ((low[a] <= high[b]) & (low[b] <= high[a])).all(axis=1)
            a, b = a[near], b[near]
        meet = self._meet(a, b)
        found[a[meet]] = found[b[meet]] = True
        return found.nonzero()[0]

    def separate(self, apart: np.ndarray) -> None:
        """Says which pairs of slots (k, 2) never meet, beside neighbours."""
        low, high = np.sort(np.asarray(apart, dtype=np.intp).reshape(-1, 2), axis=1).T
        self.apart = np.unique(low * (self.links + 1) + high)
        self._pair()

    def _pair(self) -> None:
        """Lists the pairs of moving shapes that may meet, where these are few: rounds, and all others."""
        self._met, self._stood = (None,), (None,)
        self._pairs = self._neighbours = self._mixed = None
        family = self.geometry.family[: self.moving]
        if self.moving and family[0] > 0 and (family == family[0]).all():
            self._pairs = (np.empty(0, dtype=np.intp),) * 2
        elif self.moving * (self.moving - 1) // 2 <= FEW:
            a, b = np.triu_indices(self.moving, 1)
            met = self._meet(a, b).nonzero()[0]
            self._pairs = self._in_order(a[met], b[met])
        else:
            return
        rounds = self.geometry.kind[self._pairs[1]] == ROUND
        self._neighbours = Neighbours(self.geometry, *(x[rounds] for x in self._pairs))
        self._mixed = tuple(x[~rounds] for x in self._pairs)

    def bury(self, poses: np.ndarray) -> None:
        """Remembers what is inside solid meshes of the scenery at poses (n + 1, 4, 4): it is to come out."""
        g = self.geometry
        low, high = g.bounds(g.placed(poses), moving=True)
        self._buried, self._solids = [], {}
        for mesh in range(self.moving, len(g.shapes)):
            if g.kind[mesh] == MESH and self.touching.solids[mesh].solid.all():
                solid = Solid(self.touching.solids[mesh])
                inside = np.flatnonzero(solid.holds(0.5 * (low + high)) & self._meet(np.arange(self.moving), mesh))
                if len(inside):
                    self._buried.append((mesh, inside))
                    self._solids[mesh] = solid

    def _inside(self, low: np.ndarray, high: np.ndarray, rounds: bool) -> Iterator[tuple[np.ndarray, int]]:
        """The `rounds` or polytopes that still are buried in each mesh, by their boxes `low` and `high`; its number."""
        for mesh, shapes in self._buried:
            shapes = shapes[(self.geometry.kind[shapes] == ROUND) == rounds]
            shapes = shapes[self._solids[mesh].holds(0.5 * (low[shapes] + high[shapes]))]
            if len(shapes):
                yield shapes, mesh

    def _solids_dug_out(self, placed: Placed) -> Iterator[tuple[np.ndarray, ...]]:
        """Buried polytopes leave by the plane of the nearest face."""
        g = self.geometry
        low, high = g.bounds(placed, moving=True)
        for shapes, mesh in self._inside(low, high, rounds=False):
            normal, offset = self._solids[mesh].way_out(low[shapes], high[shapes])
            for kind in (BOX, HULL):
                own = np.flatnonzero(g.kind[shapes] == kind)
                if len(own):
                    a = shapes[own]
                    row = g.row[a]
                    vertices = self.touching.polytopes(a, placed.rotation[row], placed.position[row]).vertices
                    touches = polytope_plane(vertices, normal[own], offset[own], np.full(len(own), np.inf))
                    yield a[touches.pair], np.full(len(touches.pair), mesh), *touches[1:]

    def _meet(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Whether pairs of shapes may meet."""
        g = self.geometry
        left, right = g.slot[a], g.slot[b]
        meet = (g.layers[a] & g.layers[b]) != 0
        meet &= (g.family[a] != g.family[b]) | (g.family[a] == 0)
        meet &= (left != right) & ~(self.keyed[left] & self.keyed[right])
        if g.link is not g.slot:
            left, right = g.link[a], g.link[b]
            meet &= self.bend[left] != self.bend[right]
        meet &= (self.parent[left] != right) & (self.parent[right] != left)
        if len(self.apart):
            pair = np.minimum(left, right) * (self.links + 1) + np.maximum(left, right)
            known = np.minimum(self.apart.searchsorted(pair), len(self.apart) - 1)
            meet &= self.apart[known] != pair
        return meet

    def _compile_tree(self) -> None:
        """The scenery's primitives, triangles of meshes and other shapes whole, in one tree of boxes."""
        g = self.geometry
        still = g.placed(np.tile(np.eye(4), (self.bodies + 1, 1, 1)))
        low, high = (list(corners[:, None]) for corners in g.bounds(still, moving=False))
        shape, part = [], []
        bounded = [i for i in range(self.moving, len(g.shapes)) if g.kind[i] != PLANE]
        for i in bounded:
            if g.kind[i] == MESH:
                corners = self.touching.solids[i].corners
                low[i - self.moving], high[i - self.moving] = corners.min(axis=1), corners.max(axis=1)
            part.append(np.arange(len(low[i - self.moving])))
            shape.append(np.full(len(part[-1]), i))
        if bounded:
            self._shape, self._part = np.concatenate(shape), np.concatenate(part)
            chosen = [np.concatenate([corners[i - self.moving] for i in bounded]) for corners in (low, high)]
            self._tree = BoxTree(*chosen)
        else:
            self._tree = None

    def _compile_planes(self) -> None:
        """Tables over (end of a round, plane); a pair that may not meet has its plane infinitely far below."""
        g = self.geometry
        rounds, planes = g.rounds[: g.moving_rounds], np.flatnonzero(g.kind == PLANE)
        frames = g.placed(np.tile(np.eye(4), (self.bodies + 1, 1, 1)))
        normals, points = frames.rotation[g.row[planes], :, 2], frames.position[g.row[planes]]
        radius = np.repeat(g.radii[: len(rounds), :, None], len(planes), axis=2)
        a, b = (pair.reshape(-1) for pair in np.meshgrid(rounds, planes, indexing="ij"))
        apart = ~self._meet(a, b).reshape(len(rounds), 1, len(planes))
        radius[np.broadcast_to(apart, radius.shape)] = -np.inf
        # the second end of a sphere repeats the first
        radius[np.array([isinstance(g.shapes[i], Sphere) for i in rounds], dtype=bool), 1] = -np.inf
        self._planes, self._normals, self._heights = planes, normals, (normals * points).sum(axis=1)
        self._standing = [
            (a[met], b[met])
            for kind in (BOX, HULL)
            for a, b in [
                np.meshgrid(np.flatnonzero(g.kind[: self.moving] == kind), np.arange(len(planes)), indexing="ij")
            ]
            for met in [self._meet(a, planes[b])]
        ]
        self._offsets = (radius + (normals * points).sum(axis=1)).reshape(2 * len(rounds), len(planes))

    def contacts(
        self,
        poses: np.ndarray,
        margin: float | np.ndarray,
        still: np.ndarray | None = None,
        travel: np.ndarray | None = None,
    ) -> Contacts:
        """Contacts of links that may come as near as `margin` [m], a scalar or one per link (n,), from poses
        (n + 1, 4, 4) when they have gone their ways `travel` (n, 3), none by default.

        The margins of two links add up, as does what their ways differ by. Pairs of which both links are `still`
        (n + 1,) are left out.
        """
        touches = self._touches(poses, margin, still, travel)
        return Contacts.none() if touches is None else self._contacts(*touches)

    def overlaps(self, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The shapes (k,) and (k,) that touch or overlap in poses (n + 1, 4, 4), and their gaps (k,) [m]; those of
        links are numbered in turn, then those of the scenery."""
        a, b, *_, gap, _ = self._touches(poses, 0.0, None, None) or (np.empty(0, np.intp),) * 7
        return a, b, gap

    def _touches(
        self, poses: np.ndarray, margin: float | np.ndarray, still: np.ndarray | None, travel: np.ndarray | None
    ) -> tuple[np.ndarray, ...] | None:
        """For `contacts` which shapes touch which, and how; None where none do."""
        g = self.geometry
        placed = g.placed(poses)
        slot = g.slot[: self.moving]
        if g.link is not g.slot and np.ndim(margin):
            # what is part of the world goes nowhere
            margin = np.append(margin, 0.0)
            travel = None if travel is None else np.append(travel, np.zeros((1, 3)), axis=0)
        margin = np.full(len(slot), float(margin)) if np.ndim(margin) == 0 else margin.take(slot)
        reach = margin
        if travel is not None:
            travel = travel.take(slot, axis=0)
            reach = margin + np.sqrt(np.add.reduce(travel * travel, axis=1))
        found = []
        if len(self._planes) and g.moving_rounds:
            found.append(self._rounds_on_planes(placed, reach))
        found += [self._solids_on_planes(placed, reach, *pairs) for pairs in self._standing if len(pairs[0])]
        if self._buried:
            found += self._solids_dug_out(placed)
        if self._neighbours:
            found.append(self._rounds_on_rounds(placed, reach, margin, travel, still))
        if self._mixed is None or len(self._mixed[0]) or self._tree is not None or self._buried:
            a, b, part, reach = self._near(placed, reach, margin, travel, still)
            for p, q, touches in self.touching.touch(placed, a, b, part, reach):
                found.append((p[touches.pair], q[touches.pair], *touches[1:]))
        if len(found) > 1:
            return tuple(np.concatenate(column) for column in zip(*found, strict=True))
        return found[0] if found else None

    def _near(
        self, placed: Placed, reach: np.ndarray, margin: np.ndarray, travel: np.ndarray | None, still: np.ndarray | None
    ) -> tuple[np.ndarray, ...]:
        """Pairs of shapes that may touch, a of a lower kind than b, the triangle of b where b is a mesh of the scenery,
        else -1, and how far apart they may be."""
        g = self.geometry
        low, high = g.bounds(placed, moving=True)
        # from high of b to low of a and from high of a to low of b at once
        below = -high
        one, other = np.concatenate((low.T, below.T)), np.concatenate((below.T, low.T))
        a, b = self._mixed if self._pairs is not None else self._sweep(low, high, margin, travel)
        if still is not None:
            awake = ~(still[g.slot[a]] & still[g.slot[b]])
            a, b = a[awake], b[awake]
        most = far(a, b, margin, travel)
        met = (np.maximum.reduce(one.take(a, axis=1) + other.take(b, axis=1)) <= most).nonzero()[0]
        if self._pairs is None:
            met = met[self._meet(a[met], b[met])]
        a, b, most = a.take(met), b.take(met), most.take(met)
        part = np.full(len(a), -1)
        if self._tree is not None:
            low, high = low - reach[:, None], high + reach[:, None]
            if still is None:
                body, thing = self._tree.near(low, high)
            else:
                moves = (~still[g.slot[: self.moving]]).nonzero()[0]
                body, thing = self._tree.near(low[moves], high[moves])
                body = moves[body]
            shape = self._shape[thing]
            met = self._meet(body, shape)
            body, shape, thing = body[met], shape[met], thing[met]
            triangle = np.where(g.kind[shape] == MESH, self._part[thing], -1)
            a, b, part = np.append(a, body), np.append(b, shape), np.append(part, triangle)
            most = np.append(most, reach[body])
        for shapes, mesh in self._inside(low, high, rounds=True):
            number, triangle = self._solids[mesh].nearest(low[shapes], high[shapes])
            body = shapes[number]
            new = ~np.isin(body, a[b == mesh])
            a, b = np.append(a, body[new]), np.append(b, np.full(new.sum(), mesh))
            part, most = np.append(part, triangle[new]), np.append(most, reach[body[new]])
        if self._pairs is None or self._tree is not None:
            a, b = self._in_order(a, b)
        return a, b, part, most

    def _in_order(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of shapes with the lower kind first."""
        swap = self.geometry.kind[a] > self.geometry.kind[b]
        return np.where(swap, b, a), np.where(swap, a, b)

    def _sweep(
        self, low: np.ndarray, high: np.ndarray, margin: np.ndarray, travel: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of moving shapes in boxes low, high that may come near each other."""
        reach = margin
        if travel is not None:
            # only how they move against each other counts: seen from what moves like the middle, less reaches far
            travel = travel - 0.5 * (travel.min(axis=0) + travel.max(axis=0))
            reach = margin + np.sqrt((travel * travel).sum(axis=1))
        return overlapping(low - reach[:, None], high + reach[:, None])

    def _solids_on_planes(
        self, placed: Placed, reach: np.ndarray, a: np.ndarray, plane: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Boxes or hulls `a` over planes."""
        row = self.geometry.row[a]
        vertices = self.touching.polytopes(a, placed.rotation[row], placed.position[row]).vertices
        touches = polytope_plane(vertices, self._normals[plane], self._heights[plane], reach[a])
        return a[touches.pair], self._planes[plane[touches.pair]], *touches[1:]

    def _rounds_on_planes(self, placed: Placed, reach: np.ndarray) -> tuple[np.ndarray, ...]:
        g = self.geometry
        count = g.moving_rounds
        rounds = g.rounds[:count]
        ends = placed.ends[:count].reshape(-1, 3)
        gap = ends @ self._normals.T
        gap -= self._offsets
        hit = (gap.reshape(count, -1) < reach.take(rounds)[:, None]).reshape(-1).nonzero()[0]
        code = hit.tobytes()
        if self._stood[0] != code:
            # mostly the same ends are near the same planes as in the step before
            end, plane = np.divmod(hit, len(self._planes))
            pair, normal = (rounds.take(end // 2), self._planes.take(plane)), self._normals.take(plane, axis=0)
            self._stood = code, end, pair, normal, g.radii.take(end)[:, None] * normal, end % 2
        _, end, pair, normal, down, feature = self._stood
        center = ends.take(end, axis=0)
        return *pair, center - down, center, normal, gap.take(hit), feature

    def _rounds_on_rounds(
        self, placed: Placed, reach: np.ndarray, margin: np.ndarray, travel: np.ndarray | None, still: np.ndarray | None
    ) -> tuple[np.ndarray, ...]:
        near = self._neighbours.near(placed, margin, travel, reach.max())
        most = far(near.a, near.b, margin, travel)
        if still is not None:
            most[still[self.geometry.slot[near.a]] & still[self.geometry.slot[near.b]]] = -np.inf
        (one, other), (radii, others) = near.rows, near.radii
        touches = round_round(placed.ends.take(one, axis=0), radii, placed.ends.take(other, axis=0), others, most)
        return near.a.take(touches.pair), near.b.take(touches.pair), *touches[1:]

    def _contacts(
        self, a: np.ndarray, b: np.ndarray, point: np.ndarray, center: np.ndarray, normal: np.ndarray, gap: np.ndarray,
        feature: np.ndarray,
    ) -> Contacts:  # fmt: skip
        """Touches of shapes a and b as contacts of links."""
        g = self.geometry
        if g.link is not g.slot:
            moves = (~(self.keyed[g.slot[a]] & self.keyed[g.slot[b]])).nonzero()[0]
            a, b, point, center, normal, gap, feature = (x[moves] for x in (a, b, point, center, normal, gap, feature))
        code = a.tobytes() + b.tobytes() + feature.tobytes()
        if self._met[0] != code:
            # mostly the same things touch as in the step before
            self._met = code, *self._meeting(a, b, feature)
        _, meeting, turned, inward = self._met
        if turned is not None:
            point = np.where(turned, point - gap[:, None] * normal, point)
            center = np.where(turned, point, center)
            normal = np.where(turned, -normal, normal)
        if inward is not None:
            point = point - (inward * gap)[:, None] * normal
        return Contacts(meeting, point, center, normal, gap)

    def _meeting(
        self, a: np.ndarray, b: np.ndarray, feature: np.ndarray
    ) -> tuple[Meeting, np.ndarray | None, np.ndarray | None]:
        """What meets where shapes a and b touch with a feature; which contacts have to be `turned` (k, 1), for the
        link to come before the world, and how far between the surfaces (k,) their points lie, None for none."""
        g = self.geometry
        link, other = g.slot.take(a), g.slot.take(b)
        mine, theirs = g.surface.take(a, axis=0), g.surface.take(b, axis=0)
        surface = np.maximum(mine, theirs)
        friction = np.sqrt(mine[:, 0] * theirs[:, 0])
        key = (g.number[a] * g.count + g.number[b]).astype(np.uint64) * MIX + feature.astype(np.uint64)
        key = (key * MIX >> MOST).astype(np.int64)
        turned = link == self.bodies
        link, other = np.where(turned, other, link), np.where(turned, link, other)
        parts = link, other
        if g.link is not g.slot:
            one, two = g.link.take(a), g.link.take(b)
            parts = np.where(turned, two, one), np.where(turned, one, two)
        between = other != self.bodies
        meeting = Meeting(link, other, *parts, friction, *surface[:, 1:].T, key)
        return meeting, turned[:, None] if turned.any() else None, 0.5 * between if between.any() else None
