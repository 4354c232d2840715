"""Where the links are and how they move, in slots of the assembly (see assembly.py).

Poses come by pointer jumping: log2(depth) batched products within clusters, then among clusters. Everything else is
expressed along the world's axes about the origin of the link's cluster, the joint that carries its root: near, so that
nothing is lost to rounding, and common, so that masks of zeros and ones do all the sums over ancestors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .model import Columns, Model
from .spatial import cross, cross_force, cross_motion, skew

_POSE, _TRANSFORM = np.eye(4), np.eye(6)
"""The world's own."""


@dataclass(frozen=True)
class Kinematics:
    """A pose of the model.

    `poses` (links + 1, 4, 4) in the world, the last the world's own; `origin` (clusters, 3), and `origins` (links + 1,
    3) those of the links' clusters and the world's; `offset` (links, 3) of each link's origin from its cluster's;
    `transform` (links + 1, 6, 6): motions from the link's frame to the cluster's origin; `columns` (slots, 6): the
    motion subspaces; `inertia` (links, 6, 6).
    """

    poses: np.ndarray
    origin: np.ndarray
    origins: np.ndarray
    offset: np.ndarray
    transform: np.ndarray
    columns: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True)
class Motions:
    """Velocities of a pose, about the clusters' origins.

    `links` (links + 1, 6) twists, the last the world's; `above` (links, 6): those of the links' parents, about the
    links' clusters' origins; `rates` (slots, 6): columns times joint velocities.
    """

    links: np.ndarray
    above: np.ndarray
    rates: np.ndarray


def link_poses(model: Model, q: np.ndarray, given: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """World poses (links + 1, 4, 4) in slots, and the joints' transforms (links, 4, 4).

    `given` (n, 4, 4): the joint transforms of keyed links, where the model has some.
    """
    a = model.assembly
    transforms = model.coordinates.transforms(q)
    if given is not None:
        transforms = np.where(model.keyed[:, None, None], given, transforms)
    joint = np.empty((a.links, 4, 4))
    if len(a.slot) != a.links:
        joint[:] = _POSE
    joint[a.slot] = transforms
    poses = np.empty((a.links + 1, 4, 4))
    poses[-1] = _POSE
    np.matmul(model.slot_placement, joint, out=poses[:-1])
    for ancestor in model.link_jumps:
        poses[:-1] = poses.take(ancestor, axis=0) @ poses[:-1]
    if len(a.joint_cluster):
        base = poses.take(np.append(a.cluster_attach, a.links), axis=0)
        for ancestor in model.cluster_jumps:
            base[:-1] = base.take(ancestor, axis=0) @ base[:-1]
        poses[:-1] = base.take(a.cluster_of, axis=0) @ poses[:-1]
    return poses, joint


def kinematics(model: Model, q: np.ndarray, given: np.ndarray | None = None) -> Kinematics:
    """The pose with joint coordinates `q` (nq,)."""
    a, c = model.assembly, model.columns
    poses, joint = link_poses(model, q, given)
    rotation, position = np.ascontiguousarray(poses[:-1, :3, :3]), np.ascontiguousarray(poses[:-1, :3, 3])
    origin = position.take(a.cluster_root, axis=0)
    origins = np.zeros((a.links + 1, 3))
    origins[:-1] = origin.take(a.cluster_of, axis=0)
    offset = position - origins[:-1]
    moment = skew(offset) @ rotation
    transform = np.zeros((a.links + 1, 6, 6))
    transform[-1] = _TRANSFORM
    transform[:-1, :3, :3] = transform[:-1, 3:, 3:] = rotation
    force = transform[:-1].copy()
    transform[:-1, 3:, :3] = moment
    force[:, :3, 3:] = moment
    inertia = force @ model.slot_inertia @ force.swapaxes(-1, -2)
    columns = transform[c.link, :, c.axis]
    if len(c.rest):
        _rest_columns(c, transform, joint, columns)
    return Kinematics(poses, origin, origins, offset, transform, columns, inertia)


def _rest_columns(c: Columns, transform: np.ndarray, joint: np.ndarray, columns: np.ndarray) -> None:
    """Fills in the columns that are fixed in a joint's rest frame."""
    direction = (transform[c.rest_link, :3, :3] @ joint[c.rest_link, c.rest_row, :3, None])[:, :, 0]
    columns[c.rest, :3] = 0.0
    columns[c.rest, 3:] = direction
    if c.slides:
        return
    # only joints that pass through the link's origin turn in their rest frame
    turns = c.rest_part != 3
    rotation, moment = transform[c.rest_link[turns], :3, :3], transform[c.rest_link[turns], 3:, :3]
    columns[c.rest[turns], :3] = direction[turns]
    columns[c.rest[turns], 3:] = (moment @ (rotation.swapaxes(-1, -2) @ direction[turns, :, None]))[:, :, 0]
    if len(c.third):
        slot, first = c.third.T
        columns[slot, :3] = cross(transform[c.link[slot], :3, 2], columns[first, :3])


def _shifted(motion: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Motions about points `offset` (..., 3) away from where `motion` (..., 6) is given."""
    result = motion.copy()
    result[..., 3:] += cross(motion[..., :3], offset)
    return result


def motions(model: Model, kin: Kinematics, v: np.ndarray, keyed: np.ndarray | None = None) -> Motions:
    """The velocities with joint velocities `v` (nv,).

    `keyed` (n, 6): twists of keyed links against their parents, in their own frames.
    """
    given = None
    if keyed is not None:
        given = np.zeros((model.assembly.links, 6))
        given[model.assembly.slot] = (kin.transform[model.assembly.slot] @ keyed[:, :, None])[:, :, 0]
    return _summed(model, kin, kin.columns * model.columns.slotted(v)[:, None], given)


def accelerations(model: Model, kin: Kinematics, rate: np.ndarray, turning: np.ndarray) -> np.ndarray:
    """The links' accelerations (links, 6), about the clusters' origins, with joint accelerations `rate` (nv,) and
    `turning` (links, 6), those against their parents that there are besides."""
    return _summed(model, kin, kin.columns * model.columns.slotted(rate)[:, None], turning).links[:-1]


def _summed(model: Model, kin: Kinematics, rates: np.ndarray, given: np.ndarray | None) -> Motions:
    """What joints' `rates` (slots, 6), and what is `given` (links, 6) at joints besides, come to down the tree."""
    a = model.assembly
    links = np.zeros((a.links + 1, 6))
    if given is not None:
        between = given[a.cluster_root[a.joint_cluster]]
        given[a.cluster_root[a.joint_cluster]] = 0.0
    for leaves in a.leaves:
        twist = np.matmul(leaves.moves, leaves.freedom_view(rates), out=leaves.link_view(links))
        if given is not None:
            twist += leaves.descends.swapaxes(-1, -2) @ leaves.link_view(given)
    if not len(a.joint_cluster):
        return Motions(links, links.take(a.parent, axis=0), rates)
    joints = rates[a.freedoms :].reshape(-1, 6, 6).sum(1)
    if given is not None:
        joints += between
    base = np.zeros((len(a.cluster_root) + 1, 6))
    arm = kin.origin[a.joint_cluster] - kin.origin[a.cluster_parent[a.joint_cluster]]
    base[a.joint_cluster] = _shifted(links[a.cluster_attach[a.joint_cluster]], arm) + joints
    # along the tree these add up when taken about one point of it
    center = kin.origin - kin.origin[a.cluster_tree]
    base[:-1] = _shifted(base[:-1], -center)
    for ancestor in model.cluster_jumps:
        base[:-1] += base.take(ancestor, axis=0)
    base[:-1] = _shifted(base[:-1], center)
    links[:-1] += base.take(a.cluster_of, axis=0)
    above = links.take(a.parent, axis=0)
    above[a.cluster_root[a.joint_cluster]] = base[a.joint_cluster] - joints
    return Motions(links, above, rates)


def bias(
    model: Model,
    kin: Kinematics,
    moving: Motions,
    gravity: np.ndarray,
    wrenches: np.ndarray | None = None,
    keyed_change: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the links do by themselves.

    Returns the freedom slots' forces (slots,) of velocities, gravity (3,) and `wrenches` (links, 6) about the clusters'
    origins; the links' accelerations (links, 6) with all joint accelerations zero, within their cluster; and those
    across the joints between clusters (joints, 6). `keyed_change` (n, 6): rates of change of the keyed twists in their
    frames.
    """
    a, c = model.assembly, model.columns
    links = moving.links[:-1]
    # Columns turn with the link, whose own joint velocity is links - above: links × (links - above) = above × links.
    # Those fixed in the rest frame turn with the parent: of own = moved + rest, links × moved + above × rest is
    # (above + rest) × own.
    if len(c.rest):
        base = moving.above.copy()
        np.add.at(base, c.rest_link, moving.rates.take(c.rest, axis=0))
        turning = cross_motion(base, links - moving.above)
    else:
        turning = cross_motion(moving.above, links)
    if keyed_change is not None:
        turning[a.slot] += (kin.transform[a.slot] @ keyed_change[:, :, None])[:, :, 0]
    roots = a.cluster_root[a.joint_cluster]
    across = turning[roots]
    turning[roots] = 0.0
    acceleration = np.empty((a.links, 6))
    for leaves in a.leaves:
        np.matmul(leaves.descends.swapaxes(-1, -2), leaves.link_view(turning), out=leaves.link_view(acceleration))
    free_fall = acceleration.copy()
    free_fall[:, 3:] -= gravity
    momentum = (kin.inertia @ links[:, :, None])[:, :, 0]
    force = (kin.inertia @ free_fall[:, :, None])[:, :, 0] + cross_force(links, momentum)
    if wrenches is not None:
        force -= wrenches
    return -pushed(model, kin, force), acceleration, across


def pushed(model: Model, kin: Kinematics, wrenches: np.ndarray) -> np.ndarray:
    """What `wrenches` (links, 6) about the clusters' origins are on the freedom slots (slots,)."""
    result = np.zeros(len(model.columns.link))
    for leaves in model.assembly.leaves:
        total = leaves.moves.swapaxes(-1, -2) @ leaves.link_view(wrenches)
        total *= leaves.freedom_view(kin.columns)
        np.add.reduce(total, axis=-1, out=leaves.freedom_view(result))
    return result


def push(
    model: Model,
    kin: Kinematics,
    link: np.ndarray,
    wrenches: np.ndarray,
    columns: np.ndarray,
    at: slice | np.ndarray | None = None,
    against: np.ndarray | None = None,
) -> None:
    """Adds `wrenches` (k, w, 6) on `link` (k,), about the links' clusters' origins, as forces on the freedom slots to
    w of the `columns` (slots, any) each, those `at` (k w,), or else the first. What acts on the world moves nothing.
    The opposite acts on `against` (k,) where that is of the same cluster."""
    width = wrenches.shape[1]
    at = slice(0, len(link) * width) if at is None else at
    if model.assembly.whole:
        (leaves,) = model.assembly.leaves
        moves = leaves.moves_or_world.take(link, axis=0)
        if against is not None:
            moves -= leaves.moves_or_world.take(against, axis=0)
        slots = len(kin.columns)
        pushes = (wrenches.reshape(-1, 6) @ kin.columns.T).reshape(len(link), width, slots) * moves[:, None]
        columns[:, at] += pushes.reshape(len(link) * width, slots).T
        return
    at = np.arange(columns.shape[1])[at].reshape(-1, width)
    for leaves in model.assembly.leaves:
        place = link - leaves.first_link
        inside = np.flatnonzero((place >= 0) & (place < leaves.count * leaves.links))
        if not len(inside):
            continue
        cluster, within = np.divmod(place[inside], leaves.links)
        moves = leaves.moves[cluster, within]
        if against is not None:
            other = against[inside] - leaves.first_link - leaves.links * cluster
            both = np.flatnonzero((other >= 0) & (other < leaves.links))
            moves[both] -= leaves.moves[cluster[both], other[both]]
        subspace = leaves.freedom_view(kin.columns)[cluster]
        pushes = (subspace @ wrenches[inside].swapaxes(-1, -2)) * moves[:, :, None]
        slots = leaves.first_freedom + leaves.freedoms * cluster[:, None] + np.arange(leaves.freedoms)
        columns[slots[:, :, None], at[inside, None, :]] += pushes
