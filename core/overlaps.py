"""What overlaps where a simulation starts: links that go through each other from then on, and what is pushed apart."""

from __future__ import annotations

import numpy as np

from .model import Model
from .world import World

PASSING = 0.25
"""Links of different bodies that start overlapping by more than this part of the thinner one's thickness are let
through; by less, they are pushed apart."""
TOUCHING = 1e-6
"""Links of one body that overlap by less than this part of its size just touch."""


def let_through(world: World, poses: np.ndarray) -> tuple[World, tuple[tuple[str, str], ...]]:
    """The world in which pairs of links pass that overlap in poses (links + 1, 4, 4) of the slots, and these pairs: of
    one body all, of two those that overlap deeply, while scenery pushes out what starts in it; and all those of one
    body that overlap where the motion guides them."""
    world.collider.bury(poses)
    names = _overlapping(world, poses)
    if world.guidance:
        for frame in world.guidance.frames():
            poses[world.model.assembly.slot] = frame
            names |= _overlapping(world, poses, others=False)
    passing = tuple(sorted(names))
    for a, b in passing:
        world = world.apart(a, b)
    return world, passing


def inside(world: World, poses: np.ndarray) -> tuple[tuple[str, str | int, float], ...]:
    """The links that are in scenery by more than PASSING of their thickness in poses (links + 1, 4, 4) of the slots:
    their names, which of the scenery it is, the name of the link where it is one, and how deep they are [m]. They are
    pushed out gently, or held by what they are stuck through."""
    model, geometry = world.model, world.collider.geometry
    a, b, gap = world.collider.overlaps(poses)
    scenery, thickness = _scenery(model), _thickness(model)
    # whichever of the two is none of the scenery
    swap = scenery[model.link_of[geometry.slot[a]]]
    a, b = np.where(swap, b, a), np.where(swap, a, b)
    one, other = model.link_of[geometry.slot[a]], model.link_of[geometry.slot[b]]
    found: dict[tuple[str, str | int], float] = {}
    for k in np.flatnonzero(~scenery[one] & scenery[other] & (gap < -PASSING * thickness[one])):
        thing = model.names[other[k]] if other[k] >= 0 else int(b[k]) - world.collider.moving
        pair = model.names[one[k]], thing
        found[pair] = max(found.get(pair, 0.0), -float(gap[k]))
    return tuple((link, thing, depth) for (link, thing), depth in found.items())


def _overlapping(world: World, poses: np.ndarray, others: bool = True) -> set[tuple[str, str]]:
    """The pairs of links of one body that overlap in poses (links + 1, 4, 4) of the slots, and with `others` those of
    two that do so deeply."""
    model = world.model
    contacts = world.collider.contacts(poses, 0.0)
    one, other = model.link_of[contacts.link], model.link_of[contacts.other]
    scenery, thickness = _scenery(model), _thickness(model)
    trees = np.append(model.trees, -1)
    deep = others & (contacts.gap < -PASSING * np.minimum(thickness[one], thickness[other]))
    overlap = (trees[one] == trees[other]) & (contacts.gap < -TOUCHING * world.size)
    through = ~scenery[one] & ~scenery[other] & (deep | overlap)
    return {tuple(sorted((model.names[a], model.names[b]))) for a, b in zip(one[through], other[through])}


def _scenery(model: Model) -> np.ndarray:
    """Which links are as good as scenery (n + 1,), the world last."""
    return np.append(np.bincount(model.trees, ~model.keyed, model.n)[model.trees] == 0, True)


def _thickness(model: Model) -> np.ndarray:
    """How thick links are where they are thinnest (n + 1,) [m], the world last."""
    return np.array([min((shape.thickness for shape in own), default=0.0) for own in model.shapes] + [0.0])
