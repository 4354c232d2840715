"""Makers of large mechanisms for adaptive methods: seeded, in SI units, each with sizes to choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .joint import Joint
from .kinematics import link_poses
from .linkage import Link, Linkage
from .mechanisms import about_x, about_y, chain, frame_of, humanoid, rod
from .model import Model
from .motion import Motion
from .shape import Capsule, Cylinder

BOND, ATOM = 0.15, 1.0
"""Length of a molecule's bonds [m] and mass of its atoms [kg]: 0.15 nm, a billion times as large."""
TETRAHEDRAL = np.arccos(-1.0 / 3.0)
"""The angle between bonds [rad]."""


def bicycle_chain(links: int = 30, *, pitch: float = 0.0127, mass: float = 0.0026) -> Linkage:
    """A bicycle chain of `links` with parallel hinges, the first jointed to the world; it reaches along +x at rest.

    `pitch` [m] and `mass` [kg] of a link: half an inch, and a chain of about 300 g. The quasi-statics paper has 30.
    """
    linkage = Linkage()
    link = None
    for index in range(links):
        piece = rod(f"link.{index}", Joint("hinge"), length=pitch, mass=mass, radius=0.3 * pitch)
        if link is None:
            piece.rotation = frame_of(along=np.array([1.0, 0.0, 0.0]), hinge=np.array([0.0, 1.0, 0.0]))
        else:
            piece.position = np.array([0.0, pitch, 0.0])
        link = linkage.add(piece, link)
    return linkage


def millipede(legs: int = 1000, *, leg_links: int = 10, spine_per_pair: int = 6, length: float = 0.1) -> Linkage:
    """A robot of `legs` in pairs along a spine of free base: 1,000 legs of 10 links and 3,000 links of spine are the
    quasi-statics paper's 13,000 links.

    Rods of `length` [m] and 1 kg/m; the spine reaches along +x, legs stick out along ±y and then hang down. Hinges turn
    by turns about both directions across the bone.
    """
    linkage = Linkage()
    spine = None
    for index in range(legs // 2 * spine_per_pair):
        piece = rod(f"spine.{index}", Joint("hinge" if spine else "free"), length=length, mass=length)
        if spine is None:
            piece.rotation = frame_of(along=np.array([1.0, 0.0, 0.0]), hinge=np.array([0.0, 1.0, 0.0]))
        else:
            piece.position, piece.rotation = np.array([0.0, length, 0.0]), about_y(np.pi / 2 * (-1) ** index)
        spine = linkage.add(piece, spine)
        if index % spine_per_pair == spine_per_pair // 2 - 1:
            for side in (1.0, -1.0):
                _leg(
                    linkage, spine, f"leg.{index // spine_per_pair}.{'L' if side > 0 else 'R'}", side, leg_links, length
                )
    return linkage


def _leg(linkage: Linkage, spine: Link, name: str, side: float, links: int, length: float) -> None:
    link = spine
    for index in range(links):
        piece = rod(f"{name}.{index}", Joint("hinge"), length=length, mass=length)
        if index == 0:
            piece.position = np.array([0.0, 0.5 * length, 0.0])
            piece.rotation = frame_of(along=np.array([side, 0.0, 0.0]), hinge=np.array([0.0, 0.0, 1.0]))
        else:
            bend = about_x(-np.pi / 4) if index == 1 else np.eye(3)
            piece.position, piece.rotation = np.array([0.0, length, 0.0]), about_y(np.pi / 2 * (-1) ** index) @ bend
        link = linkage.add(piece, link)


def molecule(joints: int = 50_000, seed: int = 0, *, branching: float = 0.03) -> Linkage:
    """A random molecule without rings: `joints` bonds that turn, between `joints` + 1 groups, the first of free base.

    Bonds leave an atom at the tetrahedral angle, up to three besides the one that it hangs by; a new one grows at the
    newest atom or, with probability `branching`, at any atom with a bond left. A group is an atom and the hydrogen
    around it: a ball of 1 kg and as far across as a bond is long.
    """
    rng = np.random.default_rng(seed)
    linkage = Linkage()
    inertia = 0.4 * ATOM * (0.5 * BOND) ** 2 * np.eye(3)

    def atom(index: int, joint: Joint) -> Link:
        # a joint turns about x, along which lies the bond that the atom hangs by; the first atom's points along y
        center = np.array([0.0, BOND, 0.0]) if index == 0 else np.array([BOND, 0.0, 0.0])
        return Link(f"atom.{index}", joint, mass=ATOM, center_of_mass=center, inertia=inertia.copy())

    atoms = [linkage.add(atom(0, Joint("free")))]
    left = [3]
    open_ones, place = [0], {0: 0}
    last = 0
    for index in range(1, joints + 1):
        host = last
        if left[host] == 0 or rng.random() < branching:
            host = open_ones[int(rng.integers(len(open_ones)))]
        around = 2.0 * np.pi * left[host] / 3.0
        bond = about_y(around) @ np.array([np.sin(TETRAHEDRAL), -np.cos(TETRAHEDRAL), 0.0])
        piece = atom(index, Joint("hinge"))
        piece.position = atoms[host].center_of_mass
        atoms.append(linkage.add(piece, atoms[host]))
        piece.rotation = _frame_along(_from_bond(host) @ bond, rng.uniform(0.0, 2.0 * np.pi))
        left[host] -= 1
        left.append(3)
        place[index] = len(open_ones)
        open_ones.append(index)
        if left[host] == 0:
            k, end = place.pop(host), open_ones.pop()
            if end != host:
                open_ones[k], place[end] = end, k
        last = index
    return linkage


def _from_bond(host: int) -> np.ndarray:
    """Turns y, along which the first atom's bond points, to x, along which all others do."""
    return np.eye(3) if host == 0 else np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def _frame_along(x: np.ndarray, angle: float) -> np.ndarray:
    """A rotation (3, 3) whose x axis is `x`, turned about it by `angle`."""
    across = np.cross(x, np.eye(3)[int(np.abs(x).argmin())])
    across /= np.linalg.norm(across)
    y = np.cos(angle) * across + np.sin(angle) * np.cross(x, across)
    return np.column_stack([x, y, np.cross(x, y)])


def pendulum_chain(links: int = 200, *, length: float = 0.05, damping: float = 0.05) -> Linkage:
    """The pendulum that the adaptive-contact paper lets swing among pegs: a chain of `links` that starts straight, half
    way to the horizontal, and does not touch itself."""
    linkage = chain(links, length=length, mass=2.0 * length, radius=0.2 * length, damping=damping)
    first = next(linkage.links())
    first.rotation = frame_of(along=np.array([1.0, 0.0, -1.0]) / np.sqrt(2.0), hinge=np.array([0.0, 1.0, 0.0]))
    return _through_itself(linkage)


def pegs(links: int = 200, *, length: float = 0.05, count: int = 12, seed: int = 0) -> list[Capsule]:
    """The pegs of `pendulum_chain`: rods along y at places drawn at random on the other side of its plane."""
    rng = np.random.default_rng(seed)
    reach = links * length
    away, angle = rng.uniform(0.3, 0.95, count) * reach, rng.uniform(-0.1, 0.9, count)
    across = np.array([0.0, 0.2 * reach, 0.0])
    middles = np.column_stack((-away * np.sin(angle), np.zeros(count), -away * np.cos(angle)))
    return [Capsule(middle - across, middle + across, 0.02 * reach) for middle in middles]


def thread(links: int = 300, *, length: float = 0.02, damping: float = 2e-2) -> Linkage:
    """The thread that the adaptive-contact paper pulls through holes: a keyed lead at the origin, from which `links`
    with universal joints hang along -z; it does not touch itself."""
    linkage = Linkage()
    lead = Link("lead", Joint("fixed"), mass=0.5 * length, inertia=1e-6 * np.eye(3), keyed=True)
    link = linkage.add(lead)
    for index in range(links):
        piece = rod(
            f"link.{index}", Joint("universal", damping=damping), length=length, mass=0.5 * length, radius=0.2 * length
        )
        if link is lead:
            piece.rotation = frame_of(along=np.array([0.0, 0.0, -1.0]), hinge=np.array([0.0, 1.0, 0.0]))
        else:
            piece.position = np.array([0.0, length, 0.0])
        link = linkage.add(piece, link)
    return _through_itself(linkage)


def holes(links: int = 300, *, length: float = 0.02, count: int = 3, sides: int = 16) -> list[Capsule]:
    """The rims of the round holes that `thread` is pulled through, in walls across z by turns on either side."""
    reach, around = links * length, 2.0 * np.pi * np.arange(sides) / sides
    rim = 2.5 * length * np.column_stack((np.cos(around), np.sin(around), np.zeros(sides)))
    places = _hole_places(reach, count)
    return [
        Capsule(place + one, place + other, 0.25 * length)
        for place in places for one, other in zip(rim, np.roll(rim, -1, axis=0))
    ]  # fmt: skip


def threading(model: Model, frames: int, frame_time: float, seconds: float = 5.0) -> Motion:
    """The motion of the thread's lead through its `holes` within so many `seconds`; the rest hangs as at rest."""
    poses = link_poses(model, model.coordinates.zero())[0][model.assembly.slot]
    reach = -float(poses[-1, 2, 3])
    places = np.concatenate((np.zeros((1, 3)), _hole_places(reach, 3), [[0.0, 0.0, 0.4 * reach]]))
    way = np.clip(np.arange(frames) * frame_time / seconds, 0.0, 1.0)
    way = way * way * (3.0 - 2.0 * way) * places[-1, 2]
    # between holes half a cosine, so that the lead goes straight through each
    k = np.clip(np.searchsorted(places[:, 2], way, side="right") - 1, 0, len(places) - 2)
    share = (way - places[k, 2]) / (places[k + 1, 2] - places[k, 2])
    aside = places[k, 0] + (places[k + 1, 0] - places[k, 0]) * (0.5 - 0.5 * np.cos(np.pi * share))
    moved = np.broadcast_to(poses, (frames, *poses.shape)).copy()
    moved[:, :, 0, 3] += aside[:, None]
    moved[:, :, 2, 3] += way[:, None]
    return Motion(moved, frame_time)


def _hole_places(reach: float, count: int) -> np.ndarray:
    k = np.arange(count)
    return np.column_stack((0.02 * reach * (-1.0) ** k, 0.0 * k, 0.1 * reach * (k + 1)))


def snake(links: int = 500, *, length: float = 0.05, damping: float = 0.1) -> Linkage:
    """The snake that the adaptive-contact paper winds around a bridge: `links` with a free base and spherical joints,
    at rest a helix of two turns around a `bridge` along x; it does not touch itself."""
    linkage = Linkage()
    points = _helix(links, length)
    link, frame = None, np.eye(3)
    steps = np.diff(points, axis=0)
    chord = float(np.linalg.norm(steps[0]))
    for index, along in enumerate(steps):
        y = along / chord
        x = np.cross(y, np.array([1.0, 0.0, 0.0]))
        turned = frame_of(along=y, hinge=x / np.linalg.norm(x))
        joint = Joint("spherical", damping=damping) if link else Joint("free")
        piece = rod(f"link.{index}", joint, length=chord, mass=length, radius=0.2 * length)
        piece.position = np.array([0.0, chord, 0.0]) if link else points[0].copy()
        piece.rotation = frame.T @ turned
        link, frame = linkage.add(piece, link), turned
    return _through_itself(linkage)


def bridge(links: int = 500, *, length: float = 0.05) -> list[Cylinder]:
    """The bridge that `snake` winds around, a round beam along x that it just touches."""
    points = _helix(links, length)
    # the chords' middles are nearer to the axis than their ends
    middles = 0.5 * (points[1:] + points[:-1])
    radius = float(np.sqrt((middles[:, 1:] ** 2).sum(axis=1)).min()) - 0.2 * length
    ends = points[[0, -1], 0] + np.array([-1.0, 1.0]) * links * length
    return [Cylinder(np.array([ends[0], 0.0, 0.0]), np.array([ends[1], 0.0, 0.0]), radius)]


def _helix(links: int, length: float) -> np.ndarray:
    """Points (links + 1, 3) of two turns around x, about `length` apart."""
    reach = links * length
    radius = reach / (4.0 * np.pi) * 0.9
    rise = np.sqrt(reach**2 - (4.0 * np.pi * radius) ** 2)
    t = np.linspace(0.0, 4.0 * np.pi, links + 1)
    return np.column_stack([rise * t / (4.0 * np.pi), radius * np.cos(t), radius * np.sin(t)])


def _through_itself(linkage: Linkage) -> Linkage:
    """The linkage with shapes that do not touch each other."""
    for link in linkage.links():
        link.shapes = [replace(shape, family="own") for shape in link.shapes]
    return linkage


def crowd(people: int = 200, *, spacing: float = 2.5) -> Linkage:
    """`people` humanoids on a square grid, `spacing` [m] apart, in one linkage."""
    linkage = Linkage()
    side = int(np.ceil(np.sqrt(people)))
    for k in range(people):
        links: dict[int, Link] = {}
        for link in humanoid().links():
            host = links.get(id(link.parent))
            place = link.position if host else link.position + spacing * np.array([k % side, k // side, 0.0])
            piece = replace(link, name=f"{link.name}.{k}", position=place, parent=None, child=None, brother=None)
            links[id(link)] = linkage.add(piece, host)
    return linkage
