"""Makers of mechanisms with closed loops, each a new `Linkage` whose rest pose is its assembled start, in SI units.

Planar mechanisms lie in the world's xz plane; their angles turn from x toward z, about -y. A planar link's moments of
inertia about axes in the plane do not matter; they only have to belong to a rigid body.
"""

from __future__ import annotations

import numpy as np

from .joint import Joint
from .linkage import Link, Linkage
from .mechanisms import about_x, frame_of, rod
from .model import Model, State
from .spatial import pose, pose_inverse

HINGE = np.array([0.0, -1.0, 0.0])
"""The axis of planar hinges in the world (3,)."""


def n_four_bar(n: int) -> Linkage:
    """`n` four-bars in a row (IFToMM A02): n + 1 rockers and n couplers, rods of 1 m and 1 kg, the rockers upright.

    Rocker i stands at (i, 0, 0) and carries coupler i, whose tip is hinged to the tip of rocker i + 1. One freedom;
    where all rods are in line the mechanism could branch.
    """
    linkage = Linkage()
    rockers = []
    for i in range(n + 1):
        rockers.append(place(linkage, _slender(f"rocker.{i}", 1.0), (i, 0.0, 0.0), _turn(np.pi / 2)))
    for i in range(n):
        coupler = place(linkage, _slender(f"coupler.{i}", 1.0), (i, 0.0, 1.0), _turn(0.0), rockers[i])
        linkage.connect(coupler, rockers[i + 1], "hinge", at=np.array([0.0, 1.0, 0.0]), name=f"loop.{i}")
    return linkage


def n_four_bar_velocity(linkage: Linkage, speed: float = 1.0) -> np.ndarray:
    """Joint velocities (nv,) [rad/s] of an upright `n_four_bar` whose tips move at `speed` [m/s] along x; the couplers
    do not turn."""
    return np.array([-speed if link.name.startswith("rocker") else speed for link in linkage.links()])


FOUR_BAR_TORQUE = 6.0
"""The torque on the crank of `four_bar` [N m], about its hinge."""


def four_bar(ground: float = 2.0) -> Linkage:
    """The four-bar of Khan and Krovi, Table 1: rods of 1, 2.5 and 3 m and 1 kg each; gravity is theirs along -z.

    The left chain is crank and coupler, the right one the rocker. Their start angles close for no length of the
    `ground` rod [m]: theirs of the crank, 90°, is kept, and the others follow. With 2 m the crank can turn fully round.
    """
    crank, coupler, rocker = 1.0, 2.5, 3.0
    corner, pivot = np.array([0.0, crank]), np.array([ground, 0.0])
    tip = _meeting(corner, coupler, pivot, rocker)
    linkage = Linkage()
    first = place(linkage, _slender("crank", crank), (0.0, 0.0, 0.0), _turn(np.pi / 2))
    second = _slender("coupler", coupler)
    place(linkage, second, (corner[0], 0.0, corner[1]), _turn(_direction(tip - corner)), first)
    third = place(linkage, _slender("rocker", rocker), (ground, 0.0, 0.0), _turn(_direction(tip - pivot)))
    linkage.connect(second, third, "hinge", at=np.array([0.0, coupler, 0.0]), name="loop")
    return linkage


# Andrews' squeezing mechanism. Schiehlen, Multibody Systems Handbook (1990); Hairer and Wanner, Solving Ordinary
# Differential Equations II, VII.7; the DAE test set of Mazzia and Iavernaro. Points are (y, z) in a body's frame, whose
# y axis stands at the body's angle; its hinge is the origin.
ANDREWS = (
    # body, carrier, hinge in the carrier [m], mass [kg], moment of inertia [kg m²], center of mass [m]
    ("K1", None, (0.0, 0.0), 0.04325, 2.194e-6, (0.00092, 0.0)),
    ("K2", "K1", (0.007, 0.0), 0.00365, 4.410e-7, (-0.0115, 0.0)),
    ("K3", None, (-0.03635, 0.03273), 0.02373, 5.255e-6, (0.01043, -0.01874)),
    ("K5", None, (-0.06934, -0.00227), 0.07050, 1.169e-5, (0.02308, 0.00916)),
    ("K4", "K5", (0.04, 0.0), 0.00706, 5.667e-7, (0.0, -0.00579)),
    ("K7", None, (-0.06934, -0.00227), 0.05498, 1.912e-5, (-0.00449, -0.01228)),
    ("K6", "K7", (0.0, -0.04), 0.00706, 5.667e-7, (0.00579, 0.0)),
)
ANDREWS_KNEE = {"K2": (-0.028, 0.0), "K3": (0.0, -0.035), "K4": (0.0, -0.02), "K6": (0.02, 0.0)}
"""Where four of the bodies meet, in their frames [m]."""
ANDREWS_START = {
    "K1": -0.0617138900142764, "K2": 0.0, "K3": 0.45527981916307, "K4": 0.222668390165886, "K5": 0.48736497954384,
    "K6": -0.222668390165886, "K7": 1.23054744452982,
}  # fmt: skip
"""The angles β, Θ, γ, φ, δ, Ω and ε [rad] at the start, each that of a body against its carrier."""
ANDREWS_TORQUE = 0.033
"""The drive's torque on the crank K1 [N m]."""
ANDREWS_SPRING = (4530.0, 0.07785, (0.014, 0.072), (0.02, -0.018))
"""Stiffness [N/m], rest length [m], and the ends: in the world's (x, z) and in the frame of K3 [m]."""


def andrews() -> Linkage:
    """Andrews' squeezing mechanism (IFToMM A03) at its start: seven bodies, three loops, one freedom, no gravity.

    The spring and the drive are `andrews_wrenches`. See `ANDREWS` for the sources; the inertias are those of balls.
    """
    linkage = Linkage()
    bodies: dict[str, Link] = {}
    for name, carrier, hinge, mass, inertia, center in ANDREWS:
        link = Link(
            name, Joint("hinge"), mass=mass, inertia=inertia * np.eye(3), center_of_mass=np.array([0.0, *center])
        )
        if carrier is None:
            place(linkage, link, (hinge[0], 0.0, hinge[1]), _turn(ANDREWS_START[name]))
        else:
            link.position, link.rotation = np.array([0.0, *hinge]), about_x(ANDREWS_START[name])
            linkage.add(link, bodies[carrier])
        bodies[name] = link
    knee = {name: np.array([0.0, *point]) for name, point in ANDREWS_KNEE.items()}
    for name in ("K3", "K4", "K6"):
        linkage.connect(bodies["K2"], bodies[name], "hinge", at=knee["K2"], seat=knee[name], name=f"K2-{name}")
    return linkage


def andrews_angles(model: Model, q: np.ndarray) -> np.ndarray:
    """β, Θ, γ, φ, δ, Ω and ε (7,) [rad] as in the DAE test set, from the joint coordinates (nq,) of `andrews`."""
    return np.array([start + q[model.number[name]] for name, start in ANDREWS_START.items()])


def andrews_wrenches(model: Model, state: State) -> np.ndarray:
    """The wrenches (n, 6) of drive and spring on the bodies of `andrews`: torque about the body's origin [N m], force
    [N], along the world's axes."""
    stiffness, length, fixed, moving = ANDREWS_SPRING
    crank, rocker = model.number["K1"], model.number["K3"]
    arm = _turn(ANDREWS_START["K3"] + state.q[rocker]) @ np.array([0.0, *moving])
    reach = model.placement[rocker, :3, 3] + arm - np.array([fixed[0], 0.0, fixed[1]])
    stretched = np.linalg.norm(reach)
    force = -stiffness * (stretched - length) / stretched * reach
    wrenches = np.zeros((model.n, 6))
    wrenches[crank, :3] = ANDREWS_TORQUE * HINGE
    wrenches[rocker] = np.concatenate((np.cross(arm, force), force))
    return wrenches


BRICARD_POINTS = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
BRICARD_AXES = "yzxyzx"
BRICARD_GRAVITY = np.array([0.0, -9.81, 0.0])


def bricard() -> Linkage:
    """Bricard's mechanism (IFToMM A04) under `BRICARD_GRAVITY`: five rods of 1 kg, boxes of 0.1 m by 0.1 m by 1 m.

    Their corners are `BRICARD_POINTS` [m], with a hinge about one of `BRICARD_AXES` at each. The ground closes the
    loop, whose five constraints are only four independent ones, so that one freedom is left.
    """
    axes = dict(zip("xyz", np.eye(3)))
    points = np.array(BRICARD_POINTS, dtype=float)
    linkage = Linkage()
    link = None
    for i in range(5):
        along, hinge = points[i + 1] - points[i], axes[BRICARD_AXES[i]]
        piece = rod(f"rod.{i}", Joint("hinge"), radius=0.05)
        piece.inertia, piece.shapes = np.diag([1.01, 0.02, 1.01]) / 12.0, []
        link = place(linkage, piece, points[i], frame_of(along=along, hinge=hinge), link)
    linkage.connect(None, link, "hinge", at=pose(np.eye(3), points[5]), name="loop")  # the last hinge is about x
    return linkage


def place(linkage: Linkage, link: Link, point, frame: np.ndarray, parent: Link | None = None) -> Link:
    """Adds `link` so that it rests at `point` (3,) with the axes `frame` (3, 3) of the world."""
    carrier = np.eye(4) if parent is None else parent.rest_pose()
    own = pose_inverse(carrier) @ pose(frame, np.asarray(point, dtype=float))
    link.rotation, link.position = own[:3, :3], own[:3, 3]
    return linkage.add(link, parent)


def _slender(name: str, length: float) -> Link:
    """A hinged rod of 1 kg and no width, which passes others, but for a small moment of inertia about its length."""
    link = rod(name, Joint("hinge"), length=length)
    link.inertia = length**2 * np.diag([1.0 / 12.0, 1e-4, 1.0 / 12.0])
    link.shapes = []
    return link


def _turn(angle: float) -> np.ndarray:
    """The frame (3, 3) of a planar link whose y axis stands at `angle` [rad] to the world's x axis."""
    return frame_of(along=np.array([np.cos(angle), 0.0, np.sin(angle)]), hinge=HINGE)


def _direction(vector: np.ndarray) -> float:
    return float(np.arctan2(vector[1], vector[0]))


def _meeting(a: np.ndarray, from_a: float, b: np.ndarray, from_b: float) -> np.ndarray:
    """The point (2,) at the distances `from_a` and `from_b` from `a` and `b`, on the left on the way from a to b."""
    span = np.linalg.norm(b - a)
    along = (from_a**2 - from_b**2 + span**2) / (2.0 * span)
    x, y = (b - a) / span
    return a + along * np.array([x, y]) + np.sqrt(from_a**2 - along**2) * np.array([-y, x])
