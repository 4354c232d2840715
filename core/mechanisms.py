"""Makers of test mechanisms: seeded, in SI units, each a new `Linkage` with the world's z axis up.

A link's y axis runs along its bone and a hinge turns about x, as `joint.py` says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .joint import COORDINATES, FREEDOMS, Joint
from .linkage import Link, Linkage
from .shape import Capsule

QUARTER_TURN = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
"""A turn of 90° about y (3, 3)."""


def about_x(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def about_y(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def rod(name: str, joint: Joint, *, length: float = 1.0, mass: float = 1.0, radius: float = 0.01) -> Link:
    """A uniform solid cylinder of `length` [m], `radius` [m] and `mass` [kg] along +y from its joint; a capsule."""
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    along = mass * radius**2 / 2.0
    return Link(
        name,
        joint,
        mass=mass,
        center_of_mass=np.array([0.0, length / 2.0, 0.0]),
        inertia=np.diag([across, along, across]),
        shapes=[_capsule_within(length, radius)],
    )


def chain(
    links: int,
    kind: str = "hinge",
    *,
    length: float = 0.1,
    mass: float = 0.1,
    radius: float = 0.01,
    horizontal: bool = False,
    **joint,
) -> Linkage:
    """A serial chain of `links` rods, the first jointed to the world at the origin; hinge axes alternate by 90°.

    Each rod has `length` [m], `mass` [kg] and `radius` [m]; at rest the chain hangs along -z or, when `horizontal`,
    reaches along +x. `joint` holds further fields of `Joint`, the same for every link.
    """
    linkage = Linkage()
    link = None
    for index in range(links):
        if link is None:
            down = np.array([1.0, 0.0, 0.0] if horizontal else [0.0, 0.0, -1.0])
            position, rotation = np.zeros(3), frame_of(along=down, hinge=np.array([0.0, 1.0, 0.0]))
        else:
            position, rotation = np.array([0.0, length, 0.0]), QUARTER_TURN if index % 2 else QUARTER_TURN.T
        piece = rod(f"link.{index}", Joint(kind, **joint), length=length, mass=mass, radius=radius)
        piece.position, piece.rotation = position, rotation.copy()
        link = linkage.add(piece, link)
    return linkage


def pendulum(**joint) -> Linkage:
    """A hinge pendulum that swings as a point mass at 1 m does (IFToMM A01), in the world's xz plane.

    At rest its axis y points along -x, level with the pivot, from where it falls. A point has no valid inertia, so the
    mass of 1 kg is spread: c = 0.5 m and I = 0.25 kg m² give the reduced length (I + m c²) / (m c) = 1 m.
    """
    linkage = Linkage()
    bob = Link("bob", Joint("hinge", **joint), center_of_mass=np.array([0.0, 0.5, 0.0]), inertia=0.25 * np.eye(3))
    bob.rotation = frame_of(along=np.array([-1.0, 0.0, 0.0]), hinge=np.array([0.0, 1.0, 0.0]))
    linkage.add(bob)
    return linkage


def heavy_top() -> Linkage:
    """The heavy top of Brüls, Cardona and Arnold (2012): 15 kg, its center of mass 1 m from the fixed point along y."""
    linkage = Linkage()
    inertia = np.diag([0.234375, 0.46875, 0.234375])
    linkage.add(Link("top", Joint("spherical"), mass=15.0, center_of_mass=np.array([0.0, 1.0, 0.0]), inertia=inertia))
    return linkage


def free_body(inertia: Sequence[float] = (1.0, 2.0, 3.0), *, mass: float = 1.0) -> Linkage:
    """One free body of `mass` [kg] with its origin at the center of mass and principal `inertia` (3,) [kg m²]."""
    linkage = Linkage()
    linkage.add(Link("body", Joint("free"), mass=mass, inertia=np.diag(np.asarray(inertia, dtype=float))))
    return linkage


def random_tree(
    count: int,
    seed: int | np.random.Generator = 0,
    *,
    kinds: Sequence[str] = tuple(FREEDOMS),
    branching: float = 0.5,
    passive: bool = True,
    drives: bool = False,
) -> Linkage:
    """`count` links with random joints of `kinds`, placements, masses, centers of mass and inertias.

    `branching` 0 makes a serial chain; 1 hangs each link under any earlier one or the world, which makes a forest.
    `passive` adds damping and armature, `drives` stiffness and drive damping, to all but free joints.
    """
    rng = np.random.default_rng(seed)
    linkage = Linkage()
    links: list[Link] = []
    for index in range(count):
        joint = _random_joint(rng, str(rng.choice(list(kinds))), passive=passive, drives=drives)
        anyone = rng.random() < branching
        host = int(rng.integers(-1, index)) if anyone else index - 1
        links.append(linkage.add(_random_link(rng, f"link.{index}", joint), links[host] if host >= 0 else None))
    return linkage


def random_coordinates(linkage: Linkage, seed: int | np.random.Generator = 0) -> tuple[np.ndarray, np.ndarray]:
    """Joint coordinates (nq,) [rad, m, unit quaternions] and velocities (nv,) [rad/s, m/s], in the links' order."""
    rng = np.random.default_rng(seed)
    q, v = [np.zeros(0)], [np.zeros(0)]
    for link in linkage.links():
        coordinates = rng.normal(size=COORDINATES[link.joint.kind])
        if link.joint.kind in ("spherical", "free"):
            coordinates[:4] /= np.linalg.norm(coordinates[:4])
        q.append(coordinates)
        v.append(rng.normal(size=FREEDOMS[link.joint.kind]))
    return np.concatenate(q), np.concatenate(v)


# A man standing with his arms out, facing -y: joints in the world at a height of 1.75 m, segment lengths scaled from
# de Leva 1996 (1.741 m). Mass in % of the body; center of mass from the joint and radii of gyration in % of the length,
# about the axes x (transverse), y (longitudinal) and z (sagittal): de Leva's Table 4, male. Neck and clavicles are no
# segments of that table: they are cylinders whose shares are taken out of the head's and the upper trunk's.
SEGMENTS = (
    # name, parent, bone, joint [m], length [m], radius [m], mass, center, radii of gyration
    ("pelvis", None, "up", (0, 0, 0.905), 0.146, 0.11, 11.17, 38.85, (55.1, 58.7, 61.5)),
    ("spine", "pelvis", "up", (0, 0, 1.051), 0.215, 0.10, 16.33, 54.98, (38.3, 46.8, 48.2)),
    ("chest", "spine", "up", (0, 0, 1.266), 0.243, 0.11, 13.56, 49.34, (32.0, 46.5, 50.5)),
    ("neck", "chest", "up", (0, 0, 1.509), 0.090, 0.04, 1.40, 50.0, (40.0, 39.0, 40.0)),
    ("head", "neck", "up", (0, 0, 1.599), 0.151, 0.075, 5.54, 33.6, (50.7, 42.0, 48.8)),
    ("clavicle", "chest", "out", (0.02, 0, 1.436), 0.170, 0.05, 1.20, 50.0, (32.0, 21.0, 32.0)),
    ("upper_arm", "clavicle", "out", (0.19, 0, 1.436), 0.283, 0.045, 2.71, 57.72, (26.9, 15.8, 28.5)),
    ("forearm", "upper_arm", "out", (0.473, 0, 1.436), 0.270, 0.035, 1.62, 45.74, (26.5, 12.1, 27.6)),
    ("hand", "forearm", "out", (0.743, 0, 1.436), 0.189, 0.025, 0.61, 36.24, (23.5, 18.4, 28.8)),
    ("thigh", "pelvis", "down", (0.09, 0, 0.905), 0.424, 0.07, 14.16, 40.95, (32.9, 14.9, 32.9)),
    ("shank", "thigh", "down", (0.09, 0, 0.481), 0.436, 0.05, 4.33, 43.95, (24.6, 10.2, 25.1)),
    ("foot", "shank", "forward", (0.09, 0, 0.045), 0.260, 0.035, 1.37, 19.15, (24.5, 12.4, 25.7)),
)
BONES = {  # the axes y (along the bone) and z of a link's frame in the world
    "up": ((0, 0, 1), (0, -1, 0)),
    "out": ((1, 0, 0), (0, -1, 0)),
    "down": ((0, 0, -1), (0, -1, 0)),
    "forward": ((0, -1, 0), (0, 0, 1)),
}
TRUNK = {"pelvis": 0.07, "spine": 0.05, "chest": 0.07}
"""Half the length [m] of the capsules that lie across the trunk."""

# Degrees about x, y (twist) and z on the left; on the right those about y and z change sign. AAOS and Merck ranges, the
# trunk's and the neck's halved over two joints each; a shoulder's 180° of abduction is 90° up and down from here, its
# reach about x the AAOS horizontal one. Clavicles and the turn of the foot are ours.
RANGES = {
    "spine": ((-12.5, 40), (-22.5, 22.5), (-17.5, 17.5)),
    "chest": ((-12.5, 40), (-22.5, 22.5), (-17.5, 17.5)),
    "neck": ((-27.5, 25), (-35, 35), (-17.5, 17.5)),
    "head": ((-27.5, 25), (-35, 35), (-17.5, 17.5)),
    "clavicle": ((-15, 15), (-5, 5), (-10, 20)),
    "upper_arm": ((-45, 130), (-90, 70), (-90, 90)),
    "forearm": ((0, 150),),
    "hand": ((-30, 20), (-80, 80), (-80, 70)),
    "thigh": ((-15, 125), (-45, 45), (-45, 45)),
    "shank": ((-130, 0),),
    "foot": ((-50, 20), (-35, 25), (-10, 10)),
}


def humanoid(*, height: float = 1.75, mass: float = 70.0, damping: float = 0.0) -> Linkage:
    """A man of 19 bodies and 52 freedoms standing on z = 0 with his arms out, facing -y, his left toward +x.

    `height` [m], `mass` [kg], `damping` [N m s/rad] of every joint. The pelvis is free, knees and elbows are hinges,
    all other joints spherical; positive x bends a joint forward. Sources: see `SEGMENTS` and `RANGES`.
    """
    linkage = Linkage()
    scale = height / 1.75
    links: dict[str | None, Link | None] = {None: None}
    rest = {None: (np.zeros(3), np.eye(3))}
    for name, host, bone, joint, length, radius, share, center, radii in SEGMENTS:
        for suffix, mirror in ((".L", 1.0), (".R", -1.0)) if joint[0] else (("", 1.0),):
            carrier = host if host in links else f"{host}{suffix}"
            along, front = (np.array(axis) * (mirror, 1.0, 1.0) for axis in BONES[bone])
            place, frame = np.array(joint) * (mirror * scale, scale, scale), frame_of(along=along, front=front)
            origin, turn = rest[carrier]
            link = Link(name + suffix, _human_joint(name, mirror, damping), mass=mass * share / 100.0)
            link.position, link.rotation = turn.T @ (place - origin), turn.T @ frame
            link.center_of_mass = np.array([0.0, center / 100.0 * length * scale, 0.0])
            link.inertia = link.mass * np.diag(np.square(np.array(radii) / 100.0 * length * scale))
            link.shapes = [_human_capsule(name, length * scale, radius * scale, scale)]
            links[link.name], rest[link.name] = linkage.add(link, links[carrier]), (place, frame)
    return linkage


def frame_of(*, along: np.ndarray, hinge: np.ndarray | None = None, front: np.ndarray | None = None) -> np.ndarray:
    """The rotation (3, 3) whose y axis is `along` and whose x axis is `hinge` or whose z axis is `front`."""
    x = np.cross(along, front) if hinge is None else hinge
    return np.column_stack([x, along, np.cross(x, along)])


def _capsule_within(length: float, radius: float) -> Capsule:
    """A capsule along +y that ends at 0 and at `length`."""
    inset = min(radius, length / 2.0)
    return Capsule(np.array([0.0, inset, 0.0]), np.array([0.0, length - inset, 0.0]), radius)


def _human_capsule(name: str, length: float, radius: float, scale: float) -> Capsule:
    """Along the bone; across it for the trunk; a foot's reaches from heel to toes, 45 mm below the ankle."""
    if name in TRUNK:
        across, middle = TRUNK[name] * scale, length / 2.0
        return Capsule(np.array([-across, middle, 0.0]), np.array([across, middle, 0.0]), radius)
    if name == "foot":
        return Capsule(np.array([0.0, -0.03, -0.01]) * scale, np.array([0.0, 0.16, -0.01]) * scale, radius)
    return _capsule_within(length, radius)


def _human_joint(name: str, mirror: float, damping: float) -> Joint:
    if name not in RANGES:
        return Joint("free")
    lower, upper = np.radians(np.array(RANGES[name], dtype=float)).T
    if len(lower) == 1:
        return Joint("hinge", float(lower[0]), float(upper[0]), damping)
    if mirror < 0.0:
        lower, upper = np.array([lower[0], *-upper[1:]]), np.array([upper[0], *-lower[1:]])
    return Joint("spherical", lower, upper, damping)


def _random_joint(rng: np.random.Generator, kind: str, *, passive: bool, drives: bool) -> Joint:
    """A joint with passive mechanics on the scale of links of about 1 kg and 0.3 m."""
    joint = Joint(kind)
    if kind not in ("fixed", "free"):
        size = FREEDOMS[kind]
        if passive:
            joint.damping, joint.armature = rng.uniform(0.0, 0.3, size), rng.uniform(0.0, 0.05, size)
        if drives:
            joint.stiffness, joint.drive_damping = rng.uniform(0.0, 50.0, size), rng.uniform(0.0, 2.0, size)
    return joint


def _random_link(rng: np.random.Generator, name: str, joint: Joint) -> Link:
    mass = float(np.exp(rng.uniform(np.log(0.5), np.log(5.0))))
    spread = rng.uniform(0.05, 0.2, 3)  # a body's extent along each principal axis makes any inertia physically valid
    principal = np.square(spread).sum() - np.square(spread)
    axes = _random_rotation(rng)
    inertia = mass * (axes * principal) @ axes.T
    return Link(
        name,
        joint,
        position=0.2 * rng.normal(size=3),
        rotation=_random_rotation(rng),
        mass=mass,
        center_of_mass=0.1 * rng.normal(size=3),
        inertia=(inertia + inertia.T) / 2.0,
    )


def _random_rotation(rng: np.random.Generator) -> np.ndarray:
    """Uniform over all rotations (3, 3), from the QR decomposition of a Gaussian matrix."""
    axes, upper = np.linalg.qr(rng.normal(size=(3, 3)))
    axes = axes * np.sign(np.diag(upper))
    return axes * np.linalg.det(axes)
