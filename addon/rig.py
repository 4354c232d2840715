"""A snapshot of an armature object in its rest pose, in world metres."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import bpy
import numpy as np

from . import compat, control, nla
from .control import ControlMap
from .fcurve import plays
from .override import refusal
from .problem import ERROR, ConversionError, Problem

UNEVEN_SCALE = 1e-3
"""How much an armature's scale may differ between its axes, relative."""

ROUNDS, SETTLED, BLOCK = 20, 1e-8, 4096
"""Rounds at most in which a rotation is found, the change in one after which the next would change nothing, and how
many are found at a time: few enough for the processor's cache."""


@dataclass(frozen=True)
class Rig:
    """The bones of one armature, parents before children, in world metres and without scale.

    `rest` (n, 4, 4) are rigid world poses of the bones; `heads`, `tails` (n, 3) their ends; `parents` (n,) the index of
    each parent or -1; `connected`, `deforms` (n,) flags. `world` (4, 4) is the armature's matrix. Where `controls`
    carry the deform bones, those have their parents among each other. `posed` (n,): the number of each pose bone, in
    Blender's order of those.
    """

    armature: str
    names: list[str]
    parents: np.ndarray
    rest: np.ndarray
    tails: np.ndarray
    connected: np.ndarray
    deforms: np.ndarray
    world: np.ndarray
    index: dict[str, int] = field(repr=False)
    posed: np.ndarray
    controls: ControlMap | None = None

    @property
    def heads(self) -> np.ndarray:
        return self.rest[:, :3, 3]

    @property
    def extent(self) -> np.ndarray:
        """The size (3,) [m] of the box around all bones at rest."""
        return np.ptp(np.concatenate([self.heads, self.tails]), axis=0)

    @cached_property
    def children(self) -> list[list[int]]:
        children: list[list[int]] = [[] for _ in self.names]
        for bone, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(bone)
        return children

    def ancestors(self, bone: int):
        """The bone, its parent, and so on up to its root."""
        while bone >= 0:
            yield bone
            bone = self.parents[bone]

    def descendants(self, bone: int):
        """The bone and everything below it."""
        pending = [bone]
        while pending:
            bone = pending.pop()
            yield bone
            pending.extend(self.children[bone])


def rigid(matrices: np.ndarray) -> np.ndarray:
    """Poses (..., 4, 4) without their scale and shear: the nearest rotation of each, the same origin."""
    result = matrices.copy()
    axes = result[..., :3, :3].reshape(-1, 3, 3)
    for first in range(0, len(axes), BLOCK):
        axes[first : first + BLOCK] = _nearest(axes[first : first + BLOCK])
    result[..., :3, :3] = axes.reshape(result[..., :3, :3].shape)
    return result


def angle_of(chord: np.ndarray) -> np.ndarray:
    """The angles [rad] between rotations whose matrices differ by so much in the Frobenius norm."""
    return 2 * np.arcsin(np.minimum(chord / np.sqrt(8), 1.0))


def _nearest(axes: np.ndarray) -> np.ndarray:
    """The nearest rotations (k, 3, 3), by Newton's iteration (Higham, Computing the polar decomposition, 1986): bones
    that are not sheared take two rounds."""
    near = np.moveaxis(axes, 0, -1).copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        near /= np.sqrt(np.square(near).sum(axis=(0, 1)) / 3)
        for _ in range(ROUNDS):
            before, near = near, (near + _opposite(near)) / 2
            away = np.abs(near - before).max(axis=(0, 1))
            if away.max() < SETTLED:
                break
    turns = np.moveaxis(near, -1, 0)
    # what is flat, or nearly so
    for i in np.flatnonzero(~(away < SETTLED)):
        u, _, vt = np.linalg.svd(axes[i])
        turns[i] = u @ vt
    return turns


def scales(matrices: np.ndarray) -> np.ndarray:
    """How long the axes (..., 3) of poses (..., 4, 4) are."""
    axes = matrices[..., :3, :3]
    return np.sqrt(np.einsum("...ij,...ij->...j", axes, axes))


def inverse(matrices: np.ndarray) -> np.ndarray:
    """Inverse matrices (..., 3, 3), a lot faster than those of numpy."""
    return np.moveaxis(_opposite(np.moveaxis(matrices, (-2, -1), (0, 1))), (1, 0), (-2, -1))


def _opposite(matrices: np.ndarray) -> np.ndarray:
    """The inverse transposes (3, 3, ...) of matrices."""
    one, other = matrices[[1, 2, 0]], matrices[[2, 0, 1]]
    cofactors = one[:, [1, 2, 0]] * other[:, [2, 0, 1]] - one[:, [2, 0, 1]] * other[:, [1, 2, 0]]
    return cofactors / (matrices[0] * cofactors[0]).sum(axis=0)


def posed(armature, numbers: np.ndarray, seats: np.ndarray | None = None) -> np.ndarray:
    """World poses (k, 4, 4) of the pose bones of these numbers (k,), or of what has its place (k, 4, 4) on them, where
    they are now. Quick, for drawing: without their scale, but not without shear."""
    buffer = np.empty((len(armature.pose.bones), 4, 4), dtype=np.float32)
    armature.pose.bones.foreach_get("matrix", buffer.reshape(-1))
    result = np.array(armature.matrix_world) @ buffer[numbers].swapaxes(1, 2)
    result = result if seats is None else result @ seats
    result[:, :3, :3] /= np.maximum(np.linalg.norm(result[:, :3, :3], axis=1, keepdims=True), 1e-30)
    return result


def check_scale(name: str, world: np.ndarray) -> None:
    """Raises ConversionError unless the scale in an armature's world matrix (4, 4) is a plain positive one."""
    if not np.isfinite(world).all():
        raise ConversionError(
            f"armature {name!r}: its transform is not a finite number; reset its location, rotation and scale"
        )
    scales = np.linalg.norm(world[:3, :3], axis=0)
    if scales.min() < 1e-9:
        raise _scaled(name, "is zero", "set a scale above zero and apply it (Ctrl+A, Scale)")
    if np.linalg.det(world[:3, :3]) < 0:
        raise _scaled(name, "is negative (mirrored)")
    skew = world[:3, :3] / scales
    if np.ptp(scales) > UNEVEN_SCALE * scales.max() or np.abs(skew.T @ skew - np.eye(3)).max() > UNEVEN_SCALE:
        raise _scaled(name, f"differs between axes ({', '.join(f'{s:.4g}' for s in scales)})")


def _scaled(name: str, how: str, remedy: str = "apply the scale (Ctrl+A, Scale)") -> ConversionError:
    return ConversionError(Problem("scale", (), f"armature {name!r}: its scale {how}", remedy, ERROR, fix="scale"))


def is_hidden(thing) -> bool:
    """Whether an object is kept from being evaluated; the eye in the outliner does not do that."""
    # asked first because it brings the view layer up to date
    graph = bpy.context.evaluated_depsgraph_get()
    # a visible skin brings a hidden armature into the dependency graph, but not its animation
    return (
        not thing.evaluated_get(graph).is_evaluated
        or thing.hide_viewport
        or thing.name not in bpy.context.view_layer.objects
        or all(collection.hide_viewport for collection in thing.users_collection)
    )


def hider(thing) -> str:
    """What hides an object at the scene's frame and would do so again, if it were shown; nothing where that is set by
    hand or by collections."""
    animation = thing.animation_data
    if not (thing.hide_viewport and animation):
        return ""
    ways = {
        "a driver": animation.drivers,
        "its keys": compat.curves(animation.action, compat.slot_identifier(thing)),
        "an NLA strip": nla.curves(thing),
    }
    hiding = (by for by, own in ways.items() for curve in own if curve.data_path == "hide_viewport" and plays(curve))
    return next(hiding, "")


def read_rig(armature, world: np.ndarray | None = None, *, chain: bool | None = None) -> Rig:
    """The snapshot of an armature object, standing at `world` (4, 4) or where it is now; ConversionError when there is
    nothing that could be simulated.

    `chain`: whether deform bones have their parents among each other; None where controls carry them.
    """
    refuse_unusable(armature)
    world = np.array(armature.matrix_world, dtype=float) if world is None else world
    check_scale(armature.name, world)
    if control.is_mapped(armature) if chain is None else chain:
        parents = control.deform_parents(armature)
    else:
        parents = {bone.name: bone.parent.name if bone.parent else None for bone in armature.data.bones}
    bones = [armature.data.bones[name] for name in control.ordered(parents)]
    index = {bone.name: i for i, bone in enumerate(bones)}
    rest = rigid(world @ np.array([bone.matrix_local for bone in bones], dtype=float))
    tails = np.array([bone.tail_local for bone in bones], dtype=float) @ world[:3, :3].T + world[:3, 3]
    if not (np.isfinite(rest).all() and np.isfinite(tails).all()):
        raise ConversionError(f"armature {armature.name!r}: a bone's rest position is not a finite number")
    return Rig(
        armature=armature.name,
        names=[bone.name for bone in bones],
        parents=np.array([index.get(parents[bone.name], -1) for bone in bones]),
        rest=rest,
        tails=tails,
        connected=np.array(
            [bone.use_connect and bone.parent is not None and bone.parent.name == parents[bone.name] for bone in bones]
        ),
        deforms=np.array([bone.use_deform for bone in bones]),
        world=world,
        index=index,
        posed=np.array([index[bone.name] for bone in armature.pose.bones]),
        controls=control.read(armature, index),
    )


def refuse_unusable(armature) -> None:
    """Raises ConversionError for what is no armature that could be simulated as it is."""
    if armature is None or armature.type != "ARMATURE":
        raise ConversionError(
            "no armature: select an armature object"
            if armature is None
            else f"{armature.name!r} is not an armature; select an armature object"
        )
    if not armature.is_editable:
        raise ConversionError(refusal(repr(armature.name)))
    if not armature.data.bones:
        raise ConversionError(f"armature {armature.name!r} has no bones; add bones in Edit Mode")
    if armature.mode == "EDIT":
        raise ConversionError(f"armature {armature.name!r} is being edited; leave Edit Mode (Tab)")
    if armature.animation_data and armature.animation_data.use_tweak_mode:
        raise ConversionError(f"armature {armature.name!r}: one of its NLA strips is being edited; leave it (Tab)")
    if armature.data.pose_position == "REST":
        text = f"armature {armature.name!r} shows its rest position"
        remedy = "switch to Pose Position in its data properties"
        raise ConversionError(Problem("rest_position", (), text, remedy, ERROR, fix="pose_position"))


def refuse_hidden(armature) -> None:
    """Raises ConversionError for an armature that Blender does not evaluate at the scene's frame."""
    if not is_hidden(armature):
        return
    frame, by = bpy.context.scene.frame_current, hider(armature)
    text = f"armature {armature.name!r} is hidden at frame {frame}, so Blender does not evaluate it"
    if by:
        text = f"armature {armature.name!r} is hidden at frame {frame} by {by}, so Blender does not evaluate it"
    fix = "" if by else "show"
    raise ConversionError(Problem("hidden", (), text, "show it there", ERROR, things=(armature.name,), fix=fix))
