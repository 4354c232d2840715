"""Makers of large mechanisms for adaptive methods: seeded, in SI units, each with sizes to choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .joint import Joint
from .linkage import Link, Linkage
from .mechanisms import chain, frame_of, humanoid, rod

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
            piece.position, piece.rotation = np.array([0.0, length, 0.0]), _about_y(np.pi / 2 * (-1) ** index)
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
            bend = _about_x(-np.pi / 4) if index == 1 else np.eye(3)
            piece.position, piece.rotation = np.array([0.0, length, 0.0]), _about_y(np.pi / 2 * (-1) ** index) @ bend
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
        bond = _about_y(around) @ np.array([np.sin(TETRAHEDRAL), -np.cos(TETRAHEDRAL), 0.0])
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


def pendulum_chain(links: int = 200, *, length: float = 0.05) -> Linkage:
    """The pendulum that the adaptive-contact paper drops among pegs: a chain of `links` that starts horizontally."""
    return chain(links, length=length, mass=2.0 * length, radius=0.2 * length, horizontal=True)


def pegs(links: int = 200, *, length: float = 0.05, count: int = 12, seed: int = 0) -> list[tuple[np.ndarray, float]]:
    """The pegs of `pendulum_chain`: points (3,) [m] and radii [m] of rods along y below it, in its plane."""
    rng = np.random.default_rng(seed)
    reach = links * length
    height, along = rng.uniform(0.2, 0.9, count) * reach, rng.uniform(-0.6, 0.6, count) * reach
    return [(np.array([x, 0.0, -z]), 0.02 * reach) for x, z in zip(along, height)]


def thread(links: int = 300, *, length: float = 0.02) -> Linkage:
    """The thread that the adaptive-contact paper pulls through holes: a chain of universal joints with a free end."""
    return chain(links, "universal", length=length, mass=0.5 * length, radius=0.2 * length, horizontal=True)


def holes(links: int = 300, *, length: float = 0.02, count: int = 3) -> list[tuple[np.ndarray, float]]:
    """Centers (3,) [m] and radii [m] of the round holes, in walls across x, that `thread` is pulled through."""
    reach = links * length
    return [
        (np.array([reach * (1.0 + 0.1 * (k + 1)), 0.02 * reach * (-1) ** k, 0.0]), 2.0 * length) for k in range(count)
    ]


def snake(links: int = 500, *, length: float = 0.05) -> Linkage:
    """The snake that the adaptive-contact paper winds around a bridge: `links` with a free base and spherical joints,
    at rest a helix of two turns around a beam along x."""
    linkage = Linkage()
    reach = links * length
    radius = reach / (4.0 * np.pi) * 0.9
    rise = np.sqrt(reach**2 - (4.0 * np.pi * radius) ** 2)
    t = np.linspace(0.0, 4.0 * np.pi, links + 1)
    points = np.column_stack([rise * t / (4.0 * np.pi), radius * np.cos(t), radius * np.sin(t)])
    link, frame = None, np.eye(3)
    steps = np.diff(points, axis=0)
    chord = float(np.linalg.norm(steps[0]))
    for index, along in enumerate(steps):
        y = along / chord
        x = np.cross(y, np.array([1.0, 0.0, 0.0]))
        turned = frame_of(along=y, hinge=x / np.linalg.norm(x))
        joint = Joint("spherical" if link else "free")
        piece = rod(f"link.{index}", joint, length=chord, mass=length, radius=0.2 * length)
        piece.position = np.array([0.0, chord, 0.0]) if link else points[0].copy()
        piece.rotation = frame.T @ turned
        link, frame = linkage.add(piece, link), turned
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


def _about_x(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _about_y(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
