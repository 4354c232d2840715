"""What overlaps where a simulation starts: links that go through each other from then on, and what is pushed apart."""

from __future__ import annotations

import numpy as np

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


def _overlapping(world: World, poses: np.ndarray, others: bool = True) -> set[tuple[str, str]]:
    """The pairs of links of one body that overlap in poses (links + 1, 4, 4) of the slots, and with `others` those of
    two that do so deeply."""
    model = world.model
    contacts = world.collider.contacts(poses, 0.0)
    link_of = np.full(model.assembly.links + 1, -1)
    link_of[model.assembly.slot] = np.arange(model.n)
    one, other = link_of[contacts.link], link_of[contacts.other]
    scenery = np.append(np.bincount(model.trees, ~model.keyed, model.n)[model.trees] == 0, True)
    thickness = np.array([min((shape.thickness for shape in own), default=0.0) for own in model.shapes] + [0.0])
    trees = np.append(model.trees, -1)
    deep = others & (contacts.gap < -PASSING * np.minimum(thickness[one], thickness[other]))
    overlap = (trees[one] == trees[other]) & (contacts.gap < -TOUCHING * world.size)
    through = ~scenery[one] & ~scenery[other] & (deep | overlap)
    return {tuple(sorted((model.names[a], model.names[b]))) for a, b in zip(one[through], other[through])}
