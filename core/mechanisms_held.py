"""Makers of figures that hold and are held: by bars, swings, each other and chains, each a new `Linkage` whose rest
pose is its assembled start, in SI units."""

from __future__ import annotations

import numpy as np

from .joint import Joint
from .linkage import Closure, Link, Linkage
from .mechanisms import about_x, about_y, frame_of, humanoid, rod
from .mechanisms_closed import place
from .motion import Motion
from .shape import Capsule, Sphere
from .spatial import pose, pose_inverse

GYMNAST = (
    # name, carrier, and the links of `humanoid` it is made of
    ("trunk", None, ("pelvis", "spine", "chest", "neck", "head", "clavicle.L", "clavicle.R")),
    ("upper_arm", "trunk", ("upper_arm",)),
    ("forearm", "upper_arm", ("forearm", "hand")),
    ("thigh", "trunk", ("thigh",)),
    ("shank", "thigh", ("shank", "foot")),
)
# Degrees as in mechanisms.RANGES, x bending forward; arms hang at 0. The shoulder blade adds 15° to raised arms.
BENDING = {"upper_arm": (-60, 195), "forearm": (0, 150), "thigh": (-15, 125), "shank": (-130, 0)}
TWIST_AND_SIDE = {"upper_arm": ((-80, 80), (-30, 170)), "thigh": ((-45, 45), (-45, 45))}
WIDEST = 175.0
"""No swing reaches farther [degrees]."""
HANGING = frame_of(along=np.array([0.0, 0.0, -1.0]), hinge=np.array([-1.0, 0.0, 0.0]))
"""The frame of a limb that hangs straight down (3, 3)."""
GRIP = 0.095
"""From the wrist to what a hand holds [m], along a hand of 0.189 m, at a height of 1.75 m."""


def gymnast(
    bends: dict[str, float],
    *,
    elbows_out: float = 0.0,
    height: float = 1.75,
    mass: float = 70.0,
    damping: float = 1.0,
    stiffness: float = 0.0,
) -> Linkage:
    """A man of 9 bodies and 16 joint freedoms beside the six of his trunk (Yamane and Nakamura, Fig. 13), facing -y.

    Shoulders and hips are spherical, elbows and knees hinges. `bends`: how far each limb bends forward at rest
    [degrees] from one that hangs straight down, the limits being those of a man; `elbows_out`: how far the elbows' axes
    are turned about the upper arms [degrees]. The hip joints are 0.905 m high at a `height` of 1.75 m; `mass` [kg];
    `damping` [N m s/rad] of every joint, and `stiffness` [N m/rad] toward the pose at rest.
    """
    source, linkage = humanoid(height=height, mass=mass), Linkage()
    made_of = {name: parts for name, _, parts in GYMNAST}
    for name, carrier, parts in GYMNAST:
        for suffix, mirror in (("", 1.0),) if carrier is None else ((".L", 1.0), (".R", -1.0)):
            pieces = [source[part if carrier is None else part + suffix] for part in parts]
            link = _welded(name if carrier is None else name + suffix, pieces)
            if carrier is None:
                link.joint, link.position, link.rotation = Joint("free"), pieces[0].position, pieces[0].rotation
                linkage.add(link)
                continue
            host = linkage["trunk" if carrier == "trunk" else carrier + suffix]
            stands = source["pelvis" if carrier == "trunk" else made_of[carrier][0] + suffix]
            link.joint = _limb_joint(name, bends[name], mirror)
            link.joint.damping, link.joint.stiffness = damping, stiffness
            link.position = (pose_inverse(stands.rest_pose()) @ pieces[0].rest_pose())[:3, 3]
            hanging = host.rest_pose()[:3, :3].T @ HANGING if carrier == "trunk" else np.eye(3)
            if name == "forearm":
                hanging = about_y(mirror * np.radians(elbows_out))
            link.rotation = hanging @ about_x(np.radians(bends[name]))
            linkage.add(link, host)
    return linkage


def high_bar(*, bar: float = 2.4, release: float = np.inf, damping: float = 1.0) -> Linkage:
    """A `gymnast` who hangs with straight arms from a bar along x at the height `bar` [m] (Yamane and Nakamura, Fig.
    14): hinges join his hands to it, of which the right one is cut after `release` seconds.

    With 16 + 6 + 1 + 1 = 24 joint freedoms, and 23 after the release. His elbows point outward: were their axes along
    the bar, the shoulders, as far apart as the hands, could not turn in the second order though they can in the first.
    """
    bends = {"upper_arm": 180.0, "forearm": 0.0, "thigh": 0.0, "shank": 0.0}
    linkage = gymnast(bends, elbows_out=90.0, damping=damping)
    grip = _grip(linkage, ".L")
    linkage["trunk"].position += np.array([0.0, -grip[1], bar - grip[2]])
    for suffix in (".L", ".R"):
        times = ((release, False),) if suffix == ".R" and np.isfinite(release) else ()
        at, closure = pose(np.eye(3), _grip(linkage, suffix)), Closure(times=times)
        linkage.connect(None, linkage["forearm" + suffix], "hinge", at=at, name="bar" + suffix, closure=closure)
    return linkage


ROPE = 2.5
"""From the top of `swing` to its plate [m]."""
PLATE = 0.3
"""Length of its plate, forward [m]."""


def swing(*, damping: float = 5.0, stiffness: float = 150.0, method: str = "compliance") -> Linkage:
    """A `gymnast` who sits on a swing (Yamane and Nakamura, Fig. 15), which is one keyed link that turns about x at its
    top, `ROPE` above the plate; `swing_motion` moves it.

    Spherical joints hold his hands to the rods. His thighs slide forward and back along the plate, until they leave
    its `PLATE` and are cut. With 16 + 6 + 3 + 3 + 1 + 1 = 30 joint freedoms, and 28 without the thighs'.

    `damping` [N m s/rad] and `stiffness` [N m/rad] of his joints are enough to sit upright and too little to stay on a
    swing that goes high. The thighs' closures are kept by `method`. Exactly kept they are singular: hips as far apart
    as the parallel slides can move one before the other in the first order and not in the second.
    """
    bends = {"upper_arm": -15.0, "forearm": 140.0, "thigh": 90.0, "shank": -90.0}
    linkage = gymnast(bends, damping=damping, stiffness=stiffness)
    hand, hip = _grip(linkage, ".L"), linkage["thigh.L"].rest_pose()[:3, 3]
    linkage["trunk"].position += np.array([0.0, -hand[1], 0.0])  # the rods stand in the plane y = 0
    seat = hip[2] - linkage["thigh.L"].shapes[0].radius
    frame = Link("swing", Joint("hinge"), position=np.array([0.0, 0.0, seat + ROPE]), mass=10.0, keyed=True)
    frame.center_of_mass, frame.inertia = np.array([0.0, 0.0, -ROPE]), np.diag([1.0, 1.0, 1.0])
    side, low = hand[0], -ROPE - 0.02
    frame.shapes = [Capsule(np.array([x, 0.0, 0.0]), np.array([x, 0.0, low]), 0.01) for x in (side, -side)]
    frame.shapes += [Capsule(np.array([side, y, low]), np.array([-side, y, low]), 0.02) for y in (-0.13, 0.0, 0.13)]
    linkage.add(frame)
    for suffix in (".L", ".R"):
        hold = _grip(linkage, suffix) - frame.position
        linkage.connect(frame, linkage["forearm" + suffix], "spherical", at=hold, name="rod" + suffix)
    region = (np.array([-PLATE / 2, -np.inf, -np.inf]), np.array([PLATE / 2, np.inf, np.inf]))
    for suffix, x in ((".L", hip[0]), (".R", -hip[0])):
        at = pose(
            frame_of(along=np.array([1.0, 0.0, 0.0]), hinge=np.array([0.0, -1.0, 0.0])), np.array([x, 0.0, -ROPE])
        )
        closure = Closure(method=method, stiffness=1e5, damping=1e3, region=region)
        linkage.connect(frame, linkage["thigh" + suffix], "prismatic", at=at, name="plate" + suffix, closure=closure)
    return linkage


def swing_motion(linkage: Linkage, frames: int, frame_time: float, *, amplitude: float = 1.4) -> Motion:
    """A motion for `swing`: it swings as a pendulum of `ROPE` would, the amplitude growing from nothing to `amplitude`
    [rad] over the `frames`, each `frame_time` [s]; the man turns with it as if he were a part of it."""
    time = frame_time * np.arange(frames)
    angle = amplitude * time / max(time[-1], frame_time) * np.sin(np.sqrt(9.81 / ROPE) * time)
    top = linkage["swing"].position
    turn = np.array([about_x(a) for a in angle])
    moved = pose(turn, top - turn @ top)
    return Motion(moved[:, None] @ np.array([link.rest_pose() for link in linkage.links()]), frame_time)


def holding_hands(*, damping: float = 0.0) -> Linkage:
    """Two `humanoid`s side by side, their links named A. and B.: the left hand of A holds the right hand of B."""
    linkage = Linkage()
    for prefix in ("A.", "B."):
        person = humanoid(damping=damping)
        for link in person.links():
            link.name = prefix + link.name
        for root in list(person.world.children()):
            linkage.add(root)
    left, right = linkage["A.hand.L"], linkage["B.hand.R"]
    palm = np.array([0.0, GRIP, 0.0])
    apart = (left.rest_pose() @ [*palm, 1.0] - right.rest_pose() @ [*palm, 1.0])[:3]
    linkage["B.pelvis"].position = linkage["B.pelvis"].position + apart
    linkage.connect(left, right, "spherical", at=palm, name="hands")
    return linkage


def snapping_chain(links: int = 21, *, ball: float = 5.0, break_force: float = 500.0) -> Linkage:
    """A hanging chain of rods, 0.1 m and 0.1 kg each, whose lower half is folded up; at its end is a free `ball` [kg].

    The ball, held by a spherical joint that breaks above `break_force` [N], falls beside the chain. When the chain is
    straight it stops the ball, or breaks.
    """
    linkage, link, end = Linkage(), None, np.zeros(3)
    for i in range(links):
        height = np.sign(i - links // 2)  # down, one rod across, and up again
        along = np.array([0.0 if height else 1.0, 0.0, float(height)])
        piece = rod(f"link.{i}", Joint("spherical", damping=1e-3), length=0.1, mass=0.1)
        link = place(linkage, piece, end, frame_of(along=along, hinge=np.array([0.0, 1.0, 0.0])), link)
        end = end + 0.1 * along
    radius = 0.1
    weight = Link("ball", Joint("free"), mass=ball, position=end + np.array([radius, 0.0, 0.0]))
    weight.inertia, weight.shapes = 0.4 * ball * radius**2 * np.eye(3), [Sphere(np.zeros(3), radius)]
    linkage.add(weight)
    closure = Closure(break_force=break_force)
    linkage.connect(link, weight, "spherical", at=np.array([0.0, 0.1, 0.0]), name="hook", closure=closure)
    return linkage


def _welded(name: str, pieces: list[Link]) -> Link:
    """One link of the `pieces` as they rest, in the frame of the first."""
    frames = [pose_inverse(pieces[0].rest_pose()) @ piece.rest_pose() for piece in pieces]
    masses = np.array([piece.mass for piece in pieces])
    centers = np.array([(x @ [*piece.center_of_mass, 1.0])[:3] for x, piece in zip(frames, pieces)])
    link = Link(name, mass=float(masses.sum()), center_of_mass=masses @ centers / masses.sum())
    link.inertia = np.zeros((3, 3))
    for x, piece, offset in zip(frames, pieces, centers - link.center_of_mass):
        turn = x[:3, :3]
        link.inertia += turn @ piece.inertia @ turn.T
        link.inertia += piece.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
        for shape in piece.shapes:
            start, end = ((x @ [*point, 1.0])[:3] for point in (shape.start, shape.end))
            link.shapes.append(Capsule(start, end, shape.radius))
    return link


def _limb_joint(name: str, bend: float, mirror: float) -> Joint:
    """The joint of a limb that rests at a `bend` [degrees], on the left (`mirror` 1) or on the right (-1)."""
    lower, upper = np.clip(np.array(BENDING[name]) - bend, -WIDEST, WIDEST)
    if name not in TWIST_AND_SIDE:
        return Joint("hinge", np.radians(lower), np.radians(upper))
    others = np.array([sorted(mirror * np.array(limits)) for limits in TWIST_AND_SIDE[name]])
    limits = np.radians([(lower, upper), *others])
    return Joint("spherical", limits[:, 0], limits[:, 1])


def _grip(linkage: Linkage, suffix: str) -> np.ndarray:
    """Where the palm of a `gymnast` is in the world at rest (3,)."""
    forearm = linkage["forearm" + suffix]
    wrist = forearm.shapes[1].start - np.array([0.0, forearm.shapes[1].radius, 0.0])
    return (forearm.rest_pose() @ [*(wrist + np.array([0.0, GRIP, 0.0])), 1.0])[:3]
