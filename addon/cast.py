"""All that is simulated together: characters as one linkage, and the objects they are connected to or land on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..core import Joint, Link, Linkage
from ..core.shape import Scenery
from ..core.spatial import pose_inverse
from .convert import Character
from .prop import Prop
from .source import Source


@dataclass(frozen=True)
class Actor:
    """An armature, its source animation and the character it becomes; `first` is the number of its first link among
    all that are simulated."""

    armature: bpy.types.Object
    source: Source
    character: Character
    first: int = 0

    @property
    def links(self) -> slice:
        return slice(self.first, self.first + len(self.character.bones))


@dataclass(frozen=True, eq=False)
class Cast:
    """The actors with one `linkage` for all, whose `links` are in the order of the model's; and the props, of which
    those that are `linked` follow the actors among the links, with their shapes. The shapes of the others are the
    `scenery`, which stands still. `poses` (F, n, 4, 4) [m]: the source motion of all."""

    actors: list[Actor]
    props: list[Prop]
    linked: list[Prop]
    scenery: list[Scenery]
    linkage: Linkage
    links: list[Link]
    poses: np.ndarray

    def actor(self, armature) -> Actor:
        return next(actor for actor in self.actors if actor.armature == armature)

    def until(self, end: int) -> Cast:
        """The same cast, to be simulated up to another frame."""
        return replace(self, actors=[replace(actor, source=replace(actor.source, end=end)) for actor in self.actors])

    def label(self, armature, bone: str) -> str:
        """What a bone is called where there may be several characters."""
        return f"{armature.name}/{bone}" if len(self.actors) > 1 else bone

    @property
    def standing(self) -> list[Prop]:
        """The props whose shapes are the scenery, in its order."""
        return [prop for prop in self.props if prop.shape and prop not in self.linked]

    def prop(self, thing) -> Prop:
        """The prop that an object is; of None, the world."""
        return next(prop for prop in self.props if prop.thing == thing)

    def number(self, prop: Prop) -> int | None:
        """The number of a prop's link; None for one that stands still and is as good as the world."""
        return len(self.links) - len(self.linked) + self.linked.index(prop) if prop in self.linked else None


def assemble(actors: list[Actor], props: list[Prop], needed: set) -> Cast:
    """One linkage of all; a single actor's links stay as they are, those of several are called ARMATURE/BONE. Objects
    that move become links, and those that are `needed` as links."""
    linkage = actors[0].character.linkage
    placed, first = [], 0
    for actor in actors:
        links = actor.character.links
        if len(actors) > 1:
            for link in links:
                link.name = f"{actor.armature.name}/{link.name}"
        if actor is not actors[0]:
            for root in list(actor.character.linkage.world.children()):
                linkage.add(root)
        placed.append(replace(actor, character=replace(actor.character, linkage=linkage), first=first))
        first += len(links)
    props = [*props, Prop(None, np.eye(4)[None])]
    linked = [prop for prop in props if prop.moves or prop.thing in needed]
    taken = {link.name for link in linkage.links()}
    for prop in linked:
        pose, name = prop.poses[0], unused(prop.thing.name if prop.thing else "fixed to the world", taken)
        shapes = [prop.shape.moved(pose_inverse(pose))] if prop.shape else []
        still = {"mass": 0.0, "inertia": np.zeros((3, 3)), "keyed": True}
        linkage.add(Link(name, Joint("fixed"), pose[:3, 3], pose[:3, :3], shapes=shapes, **still))
    scenery = [prop.shape for prop in props if prop.shape and prop not in linked]
    motions = [actor.character.link_poses(actor.source) for actor in actors]
    motions += [prop.poses[:, None] for prop in linked]
    frames = max(map(len, motions))
    # one frame stands for all where nothing is animated
    motions = [np.broadcast_to(motion, (frames, *motion.shape[1:])) for motion in motions]
    return Cast(placed, props, linked, scenery, linkage, list(linkage.links()), np.concatenate(motions, axis=1))


def unused(name: str, taken: set[str]) -> str:
    """The name, with a number after it if it is taken; it is taken then."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} {number}"
    taken.add(free)
    return free
