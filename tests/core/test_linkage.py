"""Linkages: their pointers, and what is refused before it can go wrong."""

from __future__ import annotations

import numpy as np
import pytest

from core.joint import FREEDOMS, Joint
from core.linkage import Link, Linkage, LinkageError
from core.mechanisms import chain, free_body, heavy_top, humanoid, pendulum, random_coordinates, random_tree
from core.model import compile_model
from core.shape import Sphere


def family() -> Linkage:
    linkage = Linkage()
    hips = linkage.add(Link("hips"))
    left = linkage.add(Link("left"), hips)
    linkage.add(Link("right"), hips)
    linkage.add(Link("foot"), left)
    linkage.add(Link("other"))
    return linkage


def test_links_point_at_parent_first_child_and_next_brother():
    """The four pointers are the data structure that connecting and cutting edit."""
    linkage = family()
    hips, left, right, foot, other = (linkage[name] for name in ("hips", "left", "right", "foot", "other"))
    assert (linkage.world.child, hips.child, left.child, foot.child) == (hips, left, foot, None)
    assert (hips.brother, left.brother, right.brother, other.brother) == (other, right, None, None)
    assert [link.parent for link in (hips, left, right, foot)] == [linkage.world, hips, hips, left]


def test_traversal_is_depth_first_with_brothers_in_the_order_they_were_added():
    """Files, reports and arrays name links in this order."""
    linkage = family()
    assert [link.name for link in linkage.links()] == ["hips", "left", "foot", "right", "other"]
    assert [link.name for link in linkage["hips"].children()] == ["left", "right"]
    assert compile_model(linkage).names == ("hips", "left", "foot", "right", "other")


def test_an_unknown_name_is_refused_by_name():
    """A misspelt bone must be found at once."""
    with pytest.raises(LinkageError, match="'knee'"):
        family()["knee"]


def test_a_deep_chain_compiles():
    """Traversal must not recurse: a rope may have thousands of links."""
    assert compile_model(chain(3000)).n == 3000


TILTED = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
REFUSED = {
    "no mass": {"mass": 0.0},
    "negative mass": {"mass": -1.0},
    "mass not a number": {"mass": np.nan},
    "infinite mass": {"mass": np.inf},
    "flat inertia": {"inertia": np.diag([1.0, 1.0, 0.0])},
    "negative inertia": {"inertia": np.diag([1.0, 1.0, -1.0])},
    "inertia of no body": {"inertia": np.diag([1.0, 1.0, 3.0])},
    "asymmetric inertia": {"inertia": TILTED},
    "inertia not a number": {"inertia": np.full((3, 3), np.nan)},
    "inertia of another shape": {"inertia": np.ones(3)},
    "position not a number": {"position": np.array([0.0, np.nan, 0.0])},
    "position of another shape": {"position": np.zeros(2)},
    "center not a number": {"center_of_mass": np.array([np.inf, 0.0, 0.0])},
    "rotation not a number": {"rotation": np.full((3, 3), np.nan)},
    "shear": {"rotation": TILTED},
    "scale": {"rotation": 2.0 * np.eye(3)},
    "mirroring": {"rotation": np.diag([1.0, 1.0, -1.0])},
    "a shape in place of a list": {"shapes": Sphere(np.zeros(3), 0.1)},
    "no joint": {"joint": "hinge"},
    "mass that is nothing": {"mass": None},
    "unknown joint": {"joint": Joint("welded")},
    "limits the wrong way round": {"joint": Joint("hinge", lower=1.0, upper=-1.0)},
    "one axis' limits the wrong way round": {"joint": Joint(lower=np.array([-1, 1, -1]), upper=np.array([1, -1, 1]))},
    "limit not a number": {"joint": Joint("hinge", upper=np.nan)},
    "a lower limit that nothing reaches": {"joint": Joint("hinge", lower=np.inf)},
    "an axis' upper limit that nothing keeps": {"joint": Joint(lower=-np.inf, upper=np.array([1.0, -np.inf, 1.0]))},
    "limit that is a word": {"joint": Joint("hinge", lower="low")},
    "damping that is nothing": {"joint": Joint("hinge", damping=1j)},
    "limits of another number": {"joint": Joint("hinge", upper=np.ones(3))},
    "limited free joint": {"joint": Joint("free", lower=-1.0)},
    "driven free joint": {"joint": Joint("free", stiffness=1.0)},
    "negative damping": {"joint": Joint("hinge", damping=-1.0)},
    "negative friction": {"joint": Joint("hinge", friction=-1.0)},
    "friction of a free joint": {"joint": Joint("free", friction=1.0)},
    "negative armature": {"joint": Joint("hinge", armature=-1.0)},
    "stiffness not a number": {"joint": Joint("hinge", stiffness=np.nan)},
    "infinite drive damping": {"joint": Joint("hinge", drive_damping=np.inf)},
}


@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_simulated_is_refused_with_the_links_name(fields):
    """An animator can only mend a rig whose error says which bone and what to do."""
    linkage = Linkage()
    linkage.add(Link("thigh", **{"joint": Joint("hinge"), **fields}), linkage.add(Link("pelvis", Joint("free"))))
    with pytest.raises(LinkageError) as caught:
        compile_model(linkage)
    message = str(caught.value)
    assert "'thigh'" in message and ";" in message and "\n" not in message


def test_a_name_used_twice_is_refused():
    """Keyframes find their bone by name."""
    linkage = Linkage()
    linkage.add(Link("arm"), linkage.add(Link("arm")))
    with pytest.raises(LinkageError, match="'arm'"):
        compile_model(linkage)


def test_a_link_is_added_once():
    """A link that was its own brother was compiled until the memory was full."""
    linkage = Linkage()
    arm = linkage.add(Link("arm"))
    with pytest.raises(LinkageError, match="link 'arm': it hangs under 'world' already; add every link once"):
        linkage.add(arm)
    assert compile_model(linkage).names == ("arm",)


def test_no_link_carries_itself():
    """Neither at once nor by those that it carries."""
    linkage = Linkage()
    hips, arm, hand = Link("hips"), Link("arm"), Link("hand")
    linkage.add(hand, linkage.add(arm, hips))
    for parent in (hips, hand):
        with pytest.raises(LinkageError, match=f"link 'hips': it would carry itself by '{parent.name}'"):
            linkage.add(hips, parent)
    linkage.add(hips)
    with pytest.raises(LinkageError, match="link 'world': it would carry itself"):
        linkage.add(linkage.world, hand)
    assert compile_model(linkage).names == ("hips", "arm", "hand")


def test_an_empty_linkage_is_refused():
    """A rig whose bones are all ignored has nothing to simulate."""
    with pytest.raises(LinkageError):
        compile_model(Linkage())


@pytest.mark.parametrize("kind", FREEDOMS)
def test_limits_and_passive_mechanics_take_one_number_or_one_per_freedom(kind):
    """A person gives one number; a converted rig gives one per axis."""
    size = FREEDOMS[kind]
    number = {} if kind == "free" else {"lower": -1.0, "damping": 0.5}
    array = {} if kind == "free" else {"lower": np.full(size, -1.0), "damping": np.full(size, 0.5)}
    models = []
    for fields in (number, array):
        linkage = Linkage()
        linkage.add(Link("part", Joint(kind, **fields)))
        models.append(compile_model(linkage))
    assert models[0].lower.shape == (size,)
    for name in ("lower", "damping"):
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))


@pytest.mark.parametrize(
    ("make", "links", "freedoms"),
    [
        (humanoid, 19, 52),
        (pendulum, 1, 1),
        (heavy_top, 1, 3),
        (free_body, 1, 6),
        (lambda: chain(5), 5, 5),
        (lambda: chain(4, "spherical", horizontal=True), 4, 12),
    ],
)
def test_mechanisms_have_the_size_they_are_quoted_with(make, links, freedoms):
    """Benchmarks and tests are quoted by these numbers."""
    model = compile_model(make())
    assert (model.n, model.nv) == (links, freedoms)


def test_the_humanoid_has_human_measures():
    """A person of 1.75 m and 70 kg who stands on the ground, the same on both sides."""
    model = compile_model(humanoid())
    assert model.mass.sum() == pytest.approx(70.0)
    ends = np.array([rest_ends(humanoid(), name) for name in ("head", "foot.L", "foot.R")])
    assert ends[0, :, 2].max() == pytest.approx(1.75, abs=1e-3)
    assert ends[1:, :, 2].min() == pytest.approx(0.0, abs=1e-12)
    for name in ("clavicle", "upper_arm", "forearm", "hand", "thigh", "shank", "foot"):
        left, right = rest_ends(humanoid(), f"{name}.L"), rest_ends(humanoid(), f"{name}.R")
        np.testing.assert_allclose(left * (-1, 1, 1), right, atol=1e-12)


def rest_ends(linkage: Linkage, name: str) -> np.ndarray:
    """The lowest and the highest points (4, 3) of a link's capsule at its two ends, in the world at rest."""
    link = linkage[name]
    capsule = link.shapes[0]
    points = np.array([capsule.start, capsule.end])
    while link is not linkage.world:
        points, link = link.position + points @ link.rotation.T, link.parent
    up = np.array([0.0, 0.0, capsule.radius])
    return np.concatenate([points - up, points + up])


def test_random_mechanisms_repeat_from_their_seed():
    """A failing test must fail again."""
    first, second = random_tree(20, 3), random_tree(20, 3)
    for one, other in zip(first.links(), second.links(), strict=True):
        assert (one.name, one.joint.kind, one.mass) == (other.name, other.joint.kind, other.mass)
        np.testing.assert_array_equal(one.inertia, other.inertia)
    for one, other in zip(random_coordinates(first, 1), random_coordinates(second, 1), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_keyed_link_may_have_a_joint_with_values_for_each_freedom():
    linkage = Linkage()
    linkage.add(Link("base", Joint("universal", damping=np.array([0.1, 0.2])), keyed=True))
    assert compile_model(linkage).nv == 0
