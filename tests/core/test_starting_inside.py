"""What overlaps at the start passes, if it belongs together, or comes out gently."""

from __future__ import annotations

import numpy as np
import pytest
from free_bodies import ON_LINKS, bodies, cube, places, run, shape

from core.joint import Joint
from core.linkage import Link, Linkage
from core.mechanisms import humanoid
from core.model import Model, State, compile_model
from core.motion import Motion
from core.shape import Box, Capsule, Cylinder, Hull, Plane, Sphere
from core.simulation import Simulation


def test_a_standing_person_has_no_links_that_pass():
    """Those that are listed do not collide any more."""
    assert Simulation(compile_model(humanoid()), scenery=[Plane()]).passing == ()


def siblings(gap: float, angle: float) -> Model:
    """Two balls on one root, so far apart."""
    linkage = Linkage()
    root = linkage.add(Link("root", Joint("free"), inertia=0.01 * np.eye(3)))
    for name, side in (("left", -1.0), ("right", 1.0)):
        link = Link(name, Joint("prismatic"), inertia=0.01 * np.eye(3), shapes=[Sphere(np.zeros(3), 0.1)])
        link.position = side * (0.1 + gap / 2) * np.array([np.cos(angle), np.sin(angle), 0.0])
        linkage.add(link, root)
    return compile_model(linkage)


@pytest.mark.parametrize("gap", [0.0, -1e-15, -1e-9])
def test_links_that_just_touch_do_not_pass(gap):
    """What lies side by side at rest, as the legs of a figure, touches; rounding errors must not let it through."""
    assert all(Simulation(siblings(gap, angle)).passing == () for angle in np.linspace(0.0, 3.0, 40))


def test_links_of_one_body_that_overlap_pass_and_are_listed():
    """Skinned characters overlap where they are thick; pushed apart they would burst."""
    assert Simulation(siblings(-0.02, 0.3)).passing == (("left", "right"),)


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "hull"])
def test_bodies_at_the_same_place_pass_and_others_part(kind):
    """Coincident shapes have no direction out of each other."""
    model, state = bodies({"shapes": [shape(kind)], "at": (0, 0, 1)}, {"shapes": [shape(kind)], "at": (0, 0, 1)})
    simulation = run(model, state, 24, scenery=[Plane()])
    assert simulation.passing == (("b0", "b1"),)
    assert np.linalg.norm(simulation.trajectory.v, axis=1).max() < 15.0


LANDS = {
    "plane": Plane(np.array([0.0, 0.0, 1.0])), "box": Box(np.zeros(3), np.ones(3)), "hull": cube(1.0, Hull),
    "mesh": cube(1.0), "mesh inside out": cube(1.0, inside_out=True),
    "cylinder": Cylinder(np.array([0.0, 0.0, -1.0]), np.array([0.0, 0.0, 1.0]), 1.0),
}  # fmt: skip


@pytest.mark.parametrize("land", LANDS)
@pytest.mark.parametrize("kind", ON_LINKS)
@pytest.mark.parametrize("height", [1.05, 0.93])
def test_what_starts_in_scenery_is_pushed_out_gently_and_rests(height, kind, land):
    """Never launched, never stuck inside, and no reason to take a hundred steps a frame."""
    model, state = bodies({"shapes": [shape(kind)], "at": (0.01, 0.02, height)})
    simulation = run(model, state, 72, 12, scenery=[LANDS[land]])
    path, ascent = simulation.trajectory, np.diff(places(simulation, "b0")[:, 2]) * 24
    assert path.penetration[0] > 0.02
    assert path.penetration[-1] < 0.01
    assert places(simulation, "b0")[-1, 2] > 1.02
    assert ascent.max() <= 1.0
    assert np.linalg.norm(path.v[-1]) < 0.2


@pytest.mark.parametrize("land", LANDS)
@pytest.mark.parametrize("kind", ON_LINKS)
def test_what_starts_wholly_inside_scenery_comes_out(kind, land):
    """A link that touches no face of a closed mesh from within is in it all the same."""
    model, state = bodies({"shapes": [shape(kind)], "at": (0.01, 0.02, 0.6)})
    simulation = run(model, state, 144, 12, scenery=[LANDS[land]])
    height = places(simulation, "b0")[:, 2]
    assert height[-1] > 1.02
    assert np.diff(height).max() * 24 <= 1.0


@pytest.mark.parametrize(
    ("kind", "height", "depth"),
    [("sphere", 1.05, 0.05), ("sphere", 1.08, None), ("box", 1.06, 0.04), ("box", 1.2, None), ("capsule", 0.4, 0.7)],
)
def test_what_starts_deep_in_scenery_is_told_by_name(kind, height, depth):
    """Who wonders why a limb leaps or hangs finds it named; feet that sink in a little are not worth a word."""
    own = {
        "sphere": Sphere(np.zeros(3), 0.1), "box": Box(np.zeros(3), np.full(3, 0.1)),
        "capsule": Capsule(np.zeros(3), np.array([0.0, 0.0, 1.0]), 0.1),
    }[kind]  # fmt: skip
    model, _ = bodies({"shapes": [own]}, {"shapes": [shape("sphere")]})
    at = np.tile([1.0, 0, 0, 0, 0, 0, 3.0], 2)
    at[4:7] = (0.0, 0.0, height)
    inside = Simulation(
        model, scenery=[Sphere(np.array([0.0, 9.0, 0.0]), 1.0), LANDS["plane"]], state=State(at, np.zeros(12))
    ).inside
    assert [(link, thing) for link, thing, _ in inside] == ([("b0", 1)] if depth else [])
    assert [deep for _, _, deep in inside] == pytest.approx([depth] if depth else [])


@pytest.mark.parametrize("plate", [Box(np.zeros(3), np.array([1.0, 1.0, 0.01])), cube(np.array([1.0, 1.0, 0.01]))])
def test_what_is_stuck_through_something_is_told_with_its_name(plate):
    """A beam through a plate, which a link that is keyed carries: who looks for it finds both."""
    linkage = Linkage()
    linkage.add(Link("beam", Joint("free"), shapes=[Box(np.zeros(3), np.array([0.05, 0.05, 0.5]))]))
    linkage.add(Link("plate", Joint("fixed"), shapes=[plate], keyed=True))
    motion = Motion(np.tile(np.eye(4), (2, 2, 1, 1)), 1 / 24)
    assert Simulation(compile_model(linkage), motion=motion).inside == (("beam", "plate", pytest.approx(0.51)),)
