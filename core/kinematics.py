"""Where the links are and how they move, in slots of the assembly (see assembly.py).

Poses come by pointer jumping: log2(depth) batched products within clusters, then among clusters. Everything else is
expressed along the world's axes about the origin of the link's cluster, the joint that carries its root: near, so that
nothing is lost to rounding, and common, so that masks of zeros and ones do all the sums over ancestors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .model import Model
from .spatial import cross, cross_force, cross_motion, skew


@dataclass(frozen=True)
class Kinematics:
    """A pose of the model.

    `poses` (links + 1, 4, 4) in the world, the last the world's own; `origin` (clusters, 3); `offset` (links, 3) of each
    link's origin from its cluster's; `transform` (links + 1, 6, 6): motions from the link's frame to the cluster's origin;
    `columns` (slots, 6): the motion subspaces; `inertia` (links, 6, 6).
    """

    poses: np.ndarray
    origin: np.ndarray
    offset: np.ndarray
    transform: np.ndarray
    columns: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True)
class Motions:
    """Velocities of a pose, about the clusters' origins.

    `links` (links + 1, 6) twists, the last the world's; `local` (slots,): the velocity of every freedom slot, the twist of
    a floating cluster's base included; `rates` (slots, 6): columns times velocities; `keyed` (links, 6) given relative
    twists, or None.
    """

    links: np.ndarray
    local: np.ndarray
    rates: np.ndarray
    keyed: np.ndarray | None


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
        joint[:] = np.eye(4)
    joint[a.slot] = transforms
    poses = np.empty((a.links + 1, 4, 4))
    poses[-1] = np.eye(4)
    np.matmul(model.slot_placement, joint, out=poses[:-1])
    for ancestor in model.link_jumps:
        poses[:-1] = poses.take(ancestor, axis=0) @ poses[:-1]
    if a.base.any():
        base = poses.take(np.append(a.cluster_attach, a.links), axis=0)
        for ancestor in model.cluster_jumps:
            base[:-1] = base.take(ancestor, axis=0) @ base[:-1]
        poses[:-1] = base.take(a.cluster_of, axis=0) @ poses[:-1]
    return poses, joint


def kinematics(model: Model, q: np.ndarray, given: np.ndarray | None = None) -> Kinematics:
    """The pose with joint coordinates `q` (nq,)."""
    a, c = model.assembly, model.columns
    poses, joint = link_poses(model, q, given)
    rotation, position = poses[:-1, :3, :3], poses[:-1, :3, 3]
    origin = position.take(a.cluster_root, axis=0)
    offset = position - origin.take(a.cluster_of, axis=0)
    moment = skew(offset) @ rotation
    transform = np.zeros((a.links + 1, 6, 6))
    transform[-1] = np.eye(6)
    transform[:-1, :3, :3] = transform[:-1, 3:, 3:] = rotation
    force = transform[:-1].copy()
    transform[:-1, 3:, :3] = moment
    force[:, :3, 3:] = moment
    inertia = force @ model.slot_inertia @ force.swapaxes(-1, -2)

    own = c.own
    if len(c.rest_slot):
        own = own.copy()
        axes = joint[c.rest_link, c.rest_row, :3]
        own[c.rest_slot[:, None], c.rest_part[:, None] + np.arange(3)] = axes
        if len(c.third_slot):
            x = own[c.third_of]
            own[c.third_slot, 0], own[c.third_slot, 1] = -x[:, 1], x[:, 0]
    columns = (transform.take(c.link, axis=0) @ own[:, :, None])[:, :, 0]
    return Kinematics(poses, origin, offset, transform, columns, inertia)


def _shifted(motion: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Motions about points `offset` (..., 3) away from where `motion` (..., 6) is given."""
    result = motion.copy()
    result[..., 3:] += cross(motion[..., :3], offset)
    return result


def motions(model: Model, kin: Kinematics, v: np.ndarray, keyed: np.ndarray | None = None) -> Motions:
    """The velocities with joint velocities `v` (nv,).

    `keyed` (n, 6): twists of keyed links against their parents, in their own frames.
    """
    a, c = model.assembly, model.columns
    local = np.append(v, 0.0).take(c.velocity)
    rates = kin.columns * local[:, None]
    links = np.zeros((a.links + 1, 6))
    given = None
    if keyed is not None:
        given = np.zeros((a.links, 6))
        given[a.slot] = (kin.transform[a.slot] @ keyed[:, :, None])[:, :, 0]
        between = given[a.cluster_root] * a.base[:, None]
        given[a.cluster_root[a.base]] = 0.0
    for leaves in (batch for level in a.levels for batch in level.leaves):
        twist = leaves.moves @ leaves.freedom_view(rates)
        if given is not None:
            twist += leaves.descends.swapaxes(-1, -2) @ leaves.link_view(given)
        leaves.link_view(links)[...] = twist
    if a.base.any():
        # twists of clusters' bases add up along the tree when taken about one point of it
        count = len(a.cluster_root)
        base = np.zeros((count + 1, 6))
        carried = np.flatnonzero(a.base)
        above = a.cluster_parent[carried]
        base[carried] = _shifted(links[a.cluster_attach[carried]], kin.origin[carried] - kin.origin[above])
        base[a.joint_cluster] += rates[a.freedoms :].reshape(-1, 6, 6).sum(1)
        if given is not None:
            base[:-1] += between
        centre = kin.origin - kin.origin[_tree_root(model)]
        base[:-1] = _shifted(base[:-1], -centre)
        for ancestor in model.cluster_jumps:
            base[:-1] += base.take(ancestor, axis=0)
        base[:-1] = _shifted(base[:-1], centre) * a.base[:, None]
        links[:-1] += base.take(a.cluster_of, axis=0)
        for leaves in (batch for level in a.levels for batch in level.leaves):
            if leaves.floats.any():
                part = base[leaves.first_cluster : leaves.first_cluster + leaves.count]
                leaves.freedom_view(local)[leaves.floats, :6] = part[leaves.floats]
        if given is not None:
            given[a.cluster_root[a.base]] = between[a.base]
    return Motions(links, local, rates, given)


def _tree_root(model: Model) -> np.ndarray:
    """The root cluster of each cluster's tree."""
    a = model.assembly
    return a.cluster_of[a.slot[model.trees]][_first_link_of_cluster(a)]


def _first_link_of_cluster(a) -> np.ndarray:
    link_of_slot = np.zeros(a.links, dtype=int)
    link_of_slot[a.slot] = np.arange(len(a.slot))
    return link_of_slot[a.cluster_root]


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
    origins; the links' accelerations (links, 6) with all joint accelerations zero, within their cluster; and those across
    the joints between clusters (joints, 6). `keyed_change` (n, 6): rates of change of the keyed twists in their frames.
    """
    a, c = model.assembly, model.columns
    turning = cross_motion(moving.links.take(c.carrier[: a.freedoms], axis=0), moving.rates[: a.freedoms])
    across = np.zeros((len(a.joint_cluster), 6))
    acceleration = np.empty((a.links, 6))
    given = None
    if moving.keyed is not None:
        given = cross_motion(moving.links[:-1], moving.keyed)
        given[a.slot] += (kin.transform[a.slot] @ keyed_change[:, :, None])[:, :, 0]
        roots = a.cluster_root[a.joint_cluster]
        across += given[roots]
        given[roots] = 0.0
    for leaves in (batch for level in a.levels for batch in level.leaves):
        part = leaves.moves @ leaves.freedom_view(turning)
        if given is not None:
            part += leaves.descends.swapaxes(-1, -2) @ leaves.link_view(given)
        leaves.link_view(acceleration)[...] = part
    if len(across):
        rates = moving.rates[a.freedoms :].reshape(-1, 6, 6)
        rest = (rates * c.joint_rest[:, :, None]).sum(1)
        own = rates.sum(1) - rest
        child = moving.links[a.cluster_root[a.joint_cluster]]
        across += cross_motion(child, own) + cross_motion(child - own, rest)
    free_fall = acceleration.copy()
    free_fall[:, 3:] -= gravity
    momentum = (kin.inertia @ moving.links[:-1, :, None])[:, :, 0]
    force = (kin.inertia @ free_fall[:, :, None])[:, :, 0] + cross_force(moving.links[:-1], momentum)
    if wrenches is not None:
        force -= wrenches
    result = np.zeros(len(c.link))
    for leaves in (batch for level in a.levels for batch in level.leaves):
        total = leaves.moves.swapaxes(-1, -2) @ leaves.link_view(force)
        np.negative((total * leaves.freedom_view(kin.columns)).sum(-1), out=leaves.freedom_view(result))
    return result, acceleration, across
