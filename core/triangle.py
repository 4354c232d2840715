"""Where rounds (balls, capsules, tapered capsules) touch the triangles of a mesh."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .contact import Touches
from .mesh import PreparedMesh

TINY = 1e-9  # [m] closer to the surface than this an axis tells no direction; the face does
ALONG = 1e-14  # 1 - cos of a direction's angle to a face's normal below which it is that normal
SAME = np.cos(np.radians(15.0))  # touches with normals closer than this may be one
ROCKING = 0.02  # what a round touches when it turns by less than this [rad], it may touch in this step
INWARD = 0.3  # an end's ball that touches an edge further inward than this lies within the round there
# What is found per touch: the row of its pair, the part of the axis (0 and 1 at the ends), the normal, the distance of
# the axis there and its place.
Found = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
NOTHING = np.empty(0, np.intp), np.empty(0), np.empty((0, 3)), np.empty(0), np.empty((0, 3))
MIDDLE = 2  # kind of touch: 0 and 1 are the ends, 2 and 3 between them, nearer to the first or the second


def round_mesh(
    ends: np.ndarray,
    radii: np.ndarray,
    triangle: np.ndarray,
    owner: np.ndarray,
    prepared: PreparedMesh,
    reach: np.ndarray,
    goes_around: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> Touches:
    """Touches of rounds with one mesh, out of p candidate pairs of a round and a triangle, in the mesh's frame.

    ends (p, 2, 3), radii (p, 2); triangle (p,) numbers of the prepared mesh; owner (p,) which round, from 0: it becomes
    the touches' `pair`; reach (p,). All triangles that a round can touch must be among its candidates; where not all
    triangles are, `goes_around` tells of points (c, 3) whether the mesh of candidates (c,) goes around them.

    A round touches with the balls at its ends and where the axis between them is closest to an edge. An end inside a
    solid is pushed out through the nearest face, one that is through a shell back to the side of the axis' middle.
    Touches of a round in about one place and direction are one, the deepest, but for one that turning about it leads to
    first. Features name the part of the axis and the direction, not the triangle, so that a contact lives on while it
    slides over a mesh.
    """
    if not len(triangle):
        none, vectors = np.empty(0), np.empty((0, 3))
        return Touches(np.empty(0, dtype=np.intp), vectors, vectors, vectors, none, np.empty(0, dtype=np.intp))
    local = np.ones((len(triangle), 2, 4))
    np.subtract(ends, prepared.corners[triangle, :1], out=local[:, :, :3])
    gauge = local @ prepared.gauges[triangle]
    axis = ends[:, 1] - ends[:, 0]
    square = np.einsum("ij,ij->i", axis, axis)

    of_ends, inside, within = _of_ends(ends, radii, triangle, owner, prepared, reach, gauge, axis, square)
    sunk = np.zeros((int(owner.max()) + 1, 2), dtype=bool)
    keep = ~within
    if inside.any():
        keep &= _nearest_when_inside(of_ends, inside, owner, prepared.solid[triangle], sunk, radii, goes_around)
    of_ends = tuple(column[keep] for column in of_ends)
    outside = ~sunk.any(axis=1)[owner]
    pierced, end = _pierced(gauge, square)
    ridden = np.zeros(len(sunk), dtype=bool)
    ridden[owner[pierced]] = True
    of_edges = _of_edges(ends, radii, triangle, prepared, reach, gauge, axis, square, ridden[owner] & outside)
    parts = [of_ends, of_edges]
    if pierced.any():
        on_ridge = np.zeros(len(sunk), dtype=bool)
        on_ridge[owner[of_edges[0][of_edges[3] < 0]]] = True
        beyond = _beyond(ends, triangle, prepared, gauge[:, :, 6], pierced, end, outside & ~on_ridge[owner])
        through = np.zeros(sunk.shape, dtype=bool)
        through[owner[beyond[0]], beyond[1]] = True
        stays = ~through[owner[of_ends[0]], of_ends[1]]
        parts = [tuple(column[stays] for column in of_ends), of_edges, beyond]
    row, where, normal, distance, center = (np.concatenate(columns) for columns in zip(*parts))
    radius = radii[row, 0] + where * (radii[row, 1] - radii[row, 0])
    gap = distance - radius
    near = (gap < reach[row]).nonzero()[0]
    row = row[near]
    found = where[near], normal[near], center[near], gap[near], radius[near]
    return _distinct(owner[row], *found, np.sqrt(square[row]), triangle[row])


def _pierced(gauge: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each axis passes through its triangle (p,), and which end (p,) is beyond it from the axis' middle."""
    first, second = gauge[:, :, 6].T
    pierced = (first * second < 0.0) & (square > TINY * TINY)
    row = pierced.nonzero()[0]
    if len(row):
        share = first[row] / (first[row] - second[row])
        there = gauge[row, 0, :3] + share[:, None] * (gauge[row, 1, :3] - gauge[row, 0, :3])
        pierced[row] = there.max(axis=1) <= TINY
    return pierced, (np.abs(first) > np.abs(second)).astype(np.intp)


def _beyond(
    ends: np.ndarray,
    triangle: np.ndarray,
    prepared: PreparedMesh,
    height: np.ndarray,
    pierced: np.ndarray,
    end: np.ndarray,
    free: np.ndarray,
) -> Found:
    """Ends pushed back through the triangles they have passed: all shells, and solids where nothing else holds the
    round (`free`) and the axis' middle is outside."""
    row = pierced.nonzero()[0]
    side = height[row, 1 - end[row]]
    keep = ~prepared.solid[triangle[row]] | ((side > 0.0) & free[row])
    row, side = row[keep], side[keep]
    kind = end[row]
    normal = np.sign(side)[:, None] * prepared.normals[triangle[row]]
    return row, kind, normal, -np.abs(height[row, kind]), ends[row, kind]


def _of_ends(
    ends: np.ndarray,
    radii: np.ndarray,
    triangle: np.ndarray,
    owner: np.ndarray,
    prepared: PreparedMesh,
    reach: np.ndarray,
    gauge: np.ndarray,
    axis: np.ndarray,
    square: np.ndarray,
) -> tuple[Found, np.ndarray, np.ndarray]:
    """Touches of the balls at the ends, whether each end is on the inner side of what it touches, and whether its ball
    lies within the round there, which touches with something else."""
    outside, along, height = gauge[:, :, :3], gauge[:, :, 3:6], gauge[:, :, 6]
    length = prepared.lengths[triangle][:, None]
    held = np.minimum(np.maximum(along, 0.0), length)
    beside = outside * outside + (along - held) ** 2
    over = np.maximum(np.maximum(outside[:, :, 0], outside[:, :, 1]), outside[:, :, 2]) <= 0.0
    least = np.minimum(np.minimum(beside[:, :, 0], beside[:, :, 1]), beside[:, :, 2])
    least[over] = 0.0
    distance = np.sqrt(height * height + least)
    near = distance < reach[:, None] + radii
    deep = (height < 0.0) & prepared.solid[triangle][:, None] & ~near
    if deep.any():  # inside or behind: the nearest of all that is solid tells
        asked = np.zeros((int(owner.max()) + 1, 2), dtype=bool)
        asked[owner[deep[:, 0]], 0] = asked[owner[deep[:, 1]], 1] = True
        near |= asked[owner] & prepared.solid[triangle][:, None]
    near[:, 1] &= square > TINY * TINY
    flat = near.reshape(-1).nonzero()[0]
    row = flat // 2
    kind = flat - 2 * row
    number, center = triangle[row], ends.reshape(-1, 3)[flat]
    over, distance, height = over.reshape(-1)[flat], distance.reshape(-1)[flat], height.reshape(-1)[flat]
    normal = np.copysign(1.0, height)[:, None] * prepared.normals[number]
    inside = height < 0.0
    keep, within = np.ones(len(row), dtype=bool), np.zeros(len(row), dtype=bool)
    aside = (~(over | (distance <= TINY))).nonzero()[0]
    if len(aside):
        index, by = flat[aside], row[aside]
        edge = beside.reshape(-1, 3)[index].argmin(axis=1)
        feature, place = _feature(prepared, number[aside], edge, held.reshape(-1, 3)[index, edge])
        away = (center[aside] - place) / distance[aside, None]
        level = np.einsum("ij,ij->i", away, normal[aside]) > 1.0 - ALONG
        away[level] = normal[aside[level]]
        normal[aside] = away
        inside[aside] = np.einsum("ij,ij->i", away, prepared.outward[feature]) < 0.0
        out = np.einsum("ij,ij->i", away, axis[by]) * (2 * kind[aside] - 1)
        inward = out > INWARD * np.sqrt(square[by]) + np.abs(radii[by, 1] - radii[by, 0])
        keep[aside], within[aside] = prepared.closest_there(feature, place, away), inward & ~level
    inside &= prepared.solid[number]
    sign = np.where(inside, -1.0, 1.0)
    found = row, kind, sign[:, None] * normal, sign * distance, center
    return tuple(column[keep] for column in found), inside[keep], within[keep]


def _nearest_when_inside(
    found: Found,
    inside: np.ndarray,
    owner: np.ndarray,
    solid: np.ndarray,
    sunk: np.ndarray,
    radii: np.ndarray,
    goes_around: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
) -> np.ndarray:
    """Which touches (c,) of ends count: not those on the inner side, but for the nearest of an end that is inside.

    An end is inside a solid if it is on the inner side of the nearest that it touches; then `sunk` (rounds, 2) is set.
    Farther in than its radius there may be something nearer that is no candidate, which `goes_around` rules out.
    """
    row, kind, distance = found[0], found[1], np.abs(found[3])
    place = owner[row] * 2 + kind
    order = np.lexsort((distance, ~solid[row], place))
    first = np.ones(len(order), dtype=bool)
    first[1:] = place[order[1:]] != place[order[:-1]]
    nearest = order[first]
    nearest = nearest[inside[nearest]]
    far = nearest[distance[nearest] > radii[row[nearest], kind[nearest]]]
    if goes_around and len(far):
        nearest = np.setdiff1d(nearest, far[~goes_around(row[far], found[4][far])])
    sunk.reshape(-1)[place[nearest]] = True
    keep = ~(inside | (sunk.reshape(-1)[place] & solid[row]))
    keep[nearest] = True
    return keep


def _of_edges(
    ends: np.ndarray,
    radii: np.ndarray,
    triangle: np.ndarray,
    prepared: PreparedMesh,
    reach: np.ndarray,
    gauge: np.ndarray,
    axis: np.ndarray,
    square: np.ndarray,
    ridden: np.ndarray,
) -> Found:
    """Touches of the axis between its ends with edges.

    Distance less radius is convex along the axis and along the edge, so what is least on the whole edge's line and lies
    beyond a corner is least at that corner. Where a solid is `ridden` (p,), the axis passing through it below a ridge
    with both ends outside, the distance is negative.
    """
    rows = (prepared.crest[triangle] & (square > TINY * TINY)[:, None]).reshape(-1).nonzero()[0]
    if not len(rows):
        return NOTHING
    row = rows // 3
    edge = rows - 3 * row
    outside, along = gauge[row, :, edge], gauge[row, :, edge + 3]
    height, square, length = gauge[row, :, 6], square[row], prepared.lengths[triangle[row], edge]
    rise, drift, climb = along[:, 1] - along[:, 0], outside[:, 1] - outside[:, 0], height[:, 1] - height[:, 0]
    skew = np.maximum(drift * drift + climb * climb, 1e-12 * square)
    share = -(drift * outside[:, 0] + climb * height[:, 0]) / skew
    taper = radii[row, 1] - radii[row, 0]
    tapers = taper.any()
    if tapers:
        apart = np.hypot(outside[:, 0] + share * drift, height[:, 0] + share * climb)
        share += _lean(apart, taper, skew)
    held = along[:, 0] + share * rise
    free = (held > 0.0) & (held < length)
    held = np.minimum(np.maximum(held, 0.0), length)
    # At a corner: the axis' closest to it; outside and height are distances in the plane across the edge.
    offset = along[:, 0] - held
    corner = -(drift * outside[:, 0] + climb * height[:, 0] + rise * offset) / square
    if tapers:
        there = outside[:, 0] + corner * drift, height[:, 0] + corner * climb, offset + corner * rise
        corner += _lean(np.sqrt(there[0] ** 2 + there[1] ** 2 + there[2] ** 2), taper, square)
    share = np.where(free, share, corner)
    apart = (outside[:, 0] + share * drift) ** 2 + (height[:, 0] + share * climb) ** 2 + (offset + share * rise) ** 2
    near = (share > 0.0) & (share < 1.0)
    near &= apart < (np.maximum(reach[row], 0.0) + np.maximum(radii[row, 0], radii[row, 1])) ** 2
    near &= apart > TINY * TINY
    near = near.nonzero()[0]
    if not len(near):
        return NOTHING
    row, edge, share, held, distance = row[near], edge[near], share[near], held[near], np.sqrt(apart[near])
    number = triangle[row]
    feature, place = _feature(prepared, number, edge, held)
    center = ends[row, 0] + share[:, None] * axis[row]
    normal = (center - place) / distance[:, None]
    below = (np.einsum("ij,ij->i", normal, prepared.outward[feature]) < 0.0) & prepared.solid[number]
    sign = np.where(below, -1.0, 1.0)
    normal *= sign[:, None]
    keep = ~below | (ridden[row] & (distance < 2 * radii[row].max(axis=1)))
    there = prepared.closest_there(feature, place, normal)
    left = (keep & ~(there | below)).nonzero()[0]
    face, leaves = _left_over(prepared, number[left], edge[left], feature[left], normal[left])
    left, face = left[leaves], face[leaves]
    distance[left] *= np.einsum("ij,ij->i", face, normal[left])
    normal[left] = face
    there[left] = True
    keep &= there
    return tuple(x[keep] for x in (row, share, normal, sign * distance, center))


def _left_over(
    prepared: PreparedMesh, triangle: np.ndarray, edge: np.ndarray, feature: np.ndarray, away: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The normals (c, 3) of the faces over which directions `away` (c, 3) leave the normal cones of edges, and whether
    they do so by little.

    An axis that is nearly parallel to a face touches what bounds it on one side or, turned by next to nothing, on the
    other. Both hold it: would one of them be gone at once, a body at rest would rock between them.
    """
    outward = prepared.outward[feature]
    into = -prepared.gauges[triangle, :3, edge]
    over = np.einsum("ij,ij->i", into, away)
    # the other face is the first one's image in the plane of the edge and its outward normal
    lean = 2.0 * np.einsum("ij,ij->i", outward, away)
    beyond = lean * np.einsum("ij,ij->i", outward, into) - over
    first = over > beyond
    normal = prepared.normals[triangle]
    second = 2.0 * np.einsum("ij,ij->i", outward, normal)[:, None] * outward - normal
    face = np.where(first[:, None], normal, second)
    face *= np.sign(np.einsum("ij,ij->i", face, away))[:, None]
    across = np.abs(np.einsum("ij,ij->i", prepared.gauges[triangle, :3, edge + 3], away)) < TINY
    told = lean != 0.0
    return face, across & told & (np.maximum(over, beyond) < ROCKING) & (np.minimum(over, beyond) <= 0.0)


def _feature(
    prepared: PreparedMesh, triangle: np.ndarray, edge: np.ndarray, held: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The feature (c,) and the place (c, 3) on an edge of a triangle, `held` (c,) [m] from its start."""
    corner = np.where(held >= prepared.lengths[triangle, edge], (edge + 1) % 3, edge + 3)
    corner = np.where(held <= 0.0, edge, corner)
    place = prepared.corners[triangle, edge] + held[:, None] * prepared.gauges[triangle, :3, edge + 3]
    return prepared.features[triangle, corner], place


def _lean(apart: np.ndarray, taper: np.ndarray, square: np.ndarray) -> np.ndarray:
    """How far (in parts of the axis) the least distance less radius lies from the least distance `apart` from a line.

    For an axis whose distance from that line is √(apart² + square (s - s0)²) and whose radius grows by `taper` in all.
    """
    steep = square - taper * taper
    return np.where(steep > 0.0, apart * taper / np.sqrt(square * np.maximum(steep, 1e-300)), np.sign(taper) * 1e9)


def _distinct(
    pair: np.ndarray,
    where: np.ndarray,
    normal: np.ndarray,
    center: np.ndarray,
    gap: np.ndarray,
    radius: np.ndarray,
    length: np.ndarray,
    triangle: np.ndarray,
) -> Touches:
    """One touch for each place on a round, that is a part of its axis and a direction: the deepest, and the one that it
    would turn to about it, lest it rocks between the two.
    """
    kind = np.where(where <= 0.0, 0, np.where(where >= 1.0, 1, MIDDLE + (where > 0.5)))
    order = np.lexsort((triangle, gap, pair))
    of = pair[order]
    first = of.searchsorted(of)
    number = np.arange(len(order))
    better = number - first
    worse = number.repeat(better)
    better = np.arange(len(worse)) - (better.cumsum() - better - first).repeat(better)
    i, j = order[better], order[worse]
    alike = np.einsum("ij,ij->i", normal[i], normal[j]) > SAME
    i, j = i[alike], j[alike]
    apart = np.abs(where[i] - where[j]) * length[i]
    # what a turn about the deeper one, and how small a one, leads to
    turn = np.where(apart < 0.1 * radius[i], np.inf, (gap[j] - gap[i]) / np.maximum(apart, TINY))
    between = kind >= MIDDLE
    alike = (apart < 0.5 * radius[i]) | (kind[i] == kind[j]) | (between[i] & between[j])
    keep, alone = np.ones(len(order), dtype=bool), np.ones(len(order), dtype=bool)
    while len(i):
        beaten, leans = np.zeros((2, len(order)), dtype=bool)
        beaten[j] = True
        best = ~beaten[i]
        # the partner of what nothing deeper is near to: what turning about it leads to first
        least = np.where(alone, ROCKING, -np.inf)
        np.minimum.at(least, i[best], np.where(alone[i[best]], turn[best], np.inf))
        other = turn > least[i]
        leans[i[best & ~other & between[j]]] = True
        keep[j[best & other & (alike | (leans[i] & between[j]))]] = False
        alone[j[best]] = False
        still = keep[i] & keep[j] & ~best
        i, j, turn, alike = i[still], j[still], turn[still], alike[still]
    keep &= ~_bridged(pair, where, normal, gap, kind, order[keep[order]])

    # Which of 26 directions, each as wide as the gap between two: those along the axes are in the middle of theirs.
    toward = np.rint(1.49 * normal) @ (9.0, 3.0, 1.0) + 13.0
    name = 4 * toward.astype(np.intp) + kind
    kept = keep.nonzero()[0]
    kept = kept[np.lexsort((triangle[kept], name[kept], pair[kept]))]
    pair, name = pair[kept], name[kept]
    number = np.arange(len(kept))
    new = np.ones(len(kept), dtype=bool)
    new[1:] = (name[1:] != name[:-1]) | (pair[1:] != pair[:-1])
    feature = name + 128 * (number - np.maximum.accumulate(np.where(new, number, 0)))
    point = center[kept] - radius[kept, None] * normal[kept]
    return Touches(pair, point, center[kept], normal[kept], gap[kept], feature)


def _bridged(
    pair: np.ndarray, where: np.ndarray, normal: np.ndarray, gap: np.ndarray, kind: np.ndarray, kept: np.ndarray
) -> np.ndarray:
    """Which touches (c,) between the ends are farther than the line on which both ends touch: they are never met before
    these. `kept` (k,) are the numbers of those that count, the deepest of each pair first."""
    end = np.full((2, int(pair.max(initial=-1)) + 2), -1)
    for side in (0, 1):
        of_side = kept[kind[kept] == side][::-1]
        end[side, pair[of_side]] = of_side
    first, second = end[:, pair]
    line = gap[first] + where * (gap[second] - gap[first])
    same = np.minimum(*(np.einsum("ij,ij->i", normal[one], normal) for one in (first, second))) > SAME
    return (kind >= MIDDLE) & (first >= 0) & (second >= 0) & same & (gap >= line)
