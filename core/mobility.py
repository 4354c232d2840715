"""What wrenches on links do to these links in a whole tree: operational-space inverse inertias, in one pass down.

What surrounds a node answers the accelerations a that its handles have without it by forces f = -X a on these. X is
zero at the top. In a run whose ends are surrounded by X, with P and R what the forces across its joints and on its ends
move the joints apart by (see tree.py), the joints, without what surrounds the ends, answer by forces

    Γ apart,   Γ = Bᵀ (B P Bᵀ + E)⁻¹ B,   B the joints' axes, scaled as there.

Where U a is how a node's handles move the joints apart, and N a how they move the run's ends, the ends move by V a with
V = N − Rᵀ Γ U, and what surrounds the node is Uᵀ Γ U + Vᵀ X V. In a leaf H⁻¹ is what links answer with, less what the
surroundings of its handles take.

Source: the operational-space inertia of Khatib 1987, its recursion down the tree as in Kreutz-Delgado, Jain and
Rodriguez 1992, "Recursive formulation of operational space control", in the form of Featherstone's divide and conquer.
"""

from __future__ import annotations

import numpy as np

from .assembly import Leaves, Level, Runs
from .kinematics import Kinematics
from .model import Model
from .tree import Kept, Tree, leaf_inertia


def mobilities(model: Model, kin: Kinematics, resistance: np.ndarray) -> np.ndarray:
    """The accelerations of links by unit wrenches on them (links, 6, 6), both about their clusters' origins, where
    joints resist with `resistance` (nv,) besides their inertia."""
    a = model.assembly
    z = np.zeros(len(kin.columns))
    z[model.columns.slot_of] = resistance
    result = np.empty((a.links, 6, 6))
    if a.nodes == 0:
        for leaves in a.leaves:
            h = leaf_inertia(leaves, leaves.link_view(kin.inertia), leaves.freedom_view(kin.columns), z)
            leaves.link_view(result)[...] = _within(leaves, kin, h)[1]
        return result
    kept: Kept = {}
    tree = Tree(model, kin, z, np.zeros((len(z), 1)), None, None, kept, True)
    tree.up()
    around = np.zeros((a.nodes, 12, 12))
    for level in reversed(a.levels):
        if len(level.rakes):
            _to_pendants(tree, kept, level, around, result)
        for runs in level.runs:
            _to_nodes(tree, runs, around)
        for leaves in level.leaves:
            h, *handles = kept["leaves", leaves.first_link]
            jacobian, mobility = _within(leaves, kin, h)
            if leaves.nodes is not None:
                ends = jacobian @ handles[0][:, None]
                mobility -= ends @ around[leaves.nodes][:, None] @ ends.swapaxes(-1, -2)
            leaves.link_view(result)[...] = mobility
    return result


def _within(leaves: Leaves, kin: Kinematics, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The links' Jacobians (count, links, 6, freedoms) and what they answer with (count, links, 6, 6) in leaves of
    joint-space inertia `h` (count, freedoms, freedoms), with nothing on their handles."""
    jacobian = leaves.freedom_view(kin.columns).swapaxes(-1, -2)[:, None] * leaves.moves[:, :, None]
    flat = jacobian.reshape(leaves.count, 6 * leaves.links, leaves.freedoms)
    answers = np.linalg.solve(h, flat.swapaxes(-1, -2)).swapaxes(-1, -2).reshape(jacobian.shape)
    return jacobian, answers @ jacobian.swapaxes(-1, -2)


def _joined(tree: Tree, joints: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Γ (r, 6k, 6k) of `joints` (r, k) that forces across them move `apart` (r, 6k, 6k)."""
    r, k = joints.shape
    scaled, each = np.zeros((r, k, 6, k, 6)), np.arange(k)
    scaled[:, each, :, each] = (tree.scale[joints][..., None] * tree.axes[joints]).swapaxes(0, 1)
    scaled = scaled.reshape(r, 6 * k, 6 * k)
    matrix = scaled @ apart @ scaled.swapaxes(-1, -2)
    matrix.reshape(r, -1)[:, :: 6 * k + 1] += tree.unit[joints].reshape(r, 6 * k)
    return scaled.swapaxes(-1, -2) @ np.linalg.solve(matrix, scaled)


def _to_nodes(tree: Tree, runs: Runs, around: np.ndarray) -> None:
    """What is `around` nodes (nodes, 12, 12), from the runs made of them to their nodes."""
    k = runs.joints.shape[1]
    each = np.arange(k)
    apart, right = tree.between(tree.node.phi[runs.nodes])
    joined = _joined(tree, runs.joints, apart)
    handles = np.zeros((k + 1, k, 6, 12))
    handles[each, each, :, 6:], handles[each + 1, each, :, :6] = np.eye(6), -np.eye(6)
    handles = handles.reshape(k + 1, 6 * k, 12)
    ends = np.zeros((k + 1, 12, 12))
    ends[0, :6, :6], ends[-1, 6:, 6:] = np.eye(6), np.eye(6)
    pulled = joined[:, None] @ handles
    moved = ends - right.swapaxes(-1, -2)[:, None] @ pulled
    outer = around[runs.made][:, None]
    around[runs.nodes] = handles.swapaxes(-1, -2) @ pulled + moved.swapaxes(-1, -2) @ outer @ moved


def _to_pendants(tree: Tree, kept: Kept, level: Level, around: np.ndarray, mobility: np.ndarray) -> None:
    """As `_to_nodes` for pendants, from the `mobility` (links, 6, 6) of the links that carry them."""
    top, joint, host = level.rakes.T
    resists, shift = kept["rake", int(joint[0])]
    back = shift.swapaxes(-1, -2)
    # without the pendant itself
    carried = mobility[host] @ shift @ resists @ back
    without = np.linalg.solve(np.eye(6) - carried, mobility[host])
    apart = tree.node.phi[top][:, :6, :6] + back @ without @ shift
    around[top, :6, :6] = _joined(tree, joint[:, None], apart)
