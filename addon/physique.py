"""What an armature's bones are as physics: their joints, masses and places, prepared for drawing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core import Joint
from . import rig_limit
from .convert import Character
from .memory import Memory
from .reach import Reach
from .rig import posed


@dataclass(frozen=True, eq=False)
class Physique:
    """The n links of an armature, parents first.

    `names` (n,) of their bones; `bodies` (n,) numbers of the pose bones that they are seen on, and `seats` (n, 4, 4)
    their places on those, in the armature's space; `offsets` (n, 3, 3): the rotation of each link's frame there.
    `parents` (n,) number of the link that carries each, or -1; `joints` (n,), and `zeros` (n, 3, 3) their frames in the
    parent's. `masses` (n,) [kg] and their `centers` (n, 3) [m] in the links' frames; the character's `height` [m].
    `looks`: what the armature's settings were.
    """

    looks: tuple
    names: list[str]
    bodies: np.ndarray
    seats: np.ndarray
    offsets: np.ndarray
    parents: np.ndarray
    joints: list[Joint]
    zeros: np.ndarray
    masses: np.ndarray
    centers: np.ndarray
    height: float

    @cached_property
    def reach(self) -> Reach:
        return Reach(self)

    def poses(self, armature) -> np.ndarray:
        """Poses (n, 4, 4) of the links in the world, where the bones are now."""
        result = posed(armature, self.bodies, self.seats)
        result[:, :3, :3] = result[:, :3, :3] @ self.offsets
        return result


_memory: Memory[Physique] = Memory()


def known(armature, looks: tuple) -> Physique | None:
    """What was prepared for an armature, if it still looks so."""
    found = _memory.kept(armature)
    return found if found and found.looks == looks else None


def remember(armature, looks: tuple, character: Character | None) -> Physique:
    """Prepares what an armature is in a take, or None: that it is nothing."""
    physique = _of(armature, looks, character) if character else _nothing(looks)
    _memory.keep(armature, physique)
    return physique


def looks_of(armature) -> tuple:
    """All that a physique depends on and animators change: cheap to read, for every drawing."""
    settings = armature.armature_dynamics
    rest = np.empty(16 * len(armature.data.bones), dtype=np.float32)
    armature.data.bones.foreach_get("matrix_local", rest)
    return (
        round(float(np.linalg.norm(np.array(armature.matrix_world)[:3, 0])), 6), settings.frame_start, settings.mass,
        rig_limit.looks_of(armature) if settings.use_rig_limits else (), rest.tobytes(),
        [_looks(bone.name, bone.armature_dynamics) for bone in armature.pose.bones],
    )  # fmt: skip


def _looks(name: str, own) -> tuple:
    limits = (*own.limit_lower, *own.limit_upper) if own.use_limits else ()
    return name, own.role, own.control, own.mass_share, limits


def _nothing(looks: tuple) -> Physique:
    none = np.empty((0, 3, 3))
    return Physique(
        looks, [], np.empty(0, int), none, none, np.empty(0, int), [], none, np.empty(0), np.empty((0, 3)), 0.0
    )


def _of(armature, looks: tuple, character: Character) -> Physique:
    rig, links = character.rig, character.links
    bodies, seats = np.array(character.bones), np.tile(np.eye(4), (len(links), 1, 1))
    if rig.controls:
        carried = {bone: k for k, bone in enumerate(rig.controls.deforms.tolist())}
        for i, k in ((i, carried[bone]) for i, bone in enumerate(character.bones) if bone in carried):
            bodies[i], seats[i] = rig.controls.bodies[k], rig.controls.seats[k]
    index = {link: i for i, link in enumerate(links)}
    number = {bone.name: i for i, bone in enumerate(armature.pose.bones)}
    return Physique(
        looks=looks,
        names=[rig.names[bone] for bone in character.bones],
        bodies=np.array([number[rig.names[bone]] for bone in bodies]),
        seats=seats,
        offsets=character.offsets,
        parents=np.array([index.get(link.parent, -1) for link in links]),
        joints=[link.joint for link in links],
        zeros=np.array([link.rotation for link in links]),
        masses=np.array([link.mass for link in links]),
        centers=np.array([link.center_of_mass for link in links]),
        height=character.height,
    )
