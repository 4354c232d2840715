"""The linkage a person edits: links that point at each other.

Connectivity is the four pointers of Yamane and Nakamura (Dynamics Computation of Structure-Varying Kinematic
Chains, section 3): `parent`, `child` (the first), `brother` (the next with the same parent), and `real` for a
virtual link, which closes a loop. Numbers are SI units and radians.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from .checks import are_numbers, are_rotations, several
from .joint import FREEDOMS, Joint
from .shape import Shape
from .spatial import pose, pose_inverse


class LinkageError(ValueError):
    """A linkage that cannot be simulated; the message names the link and the remedy."""


METHODS = ("projection", "compliance")
"""How a loop is kept closed."""


@dataclass
class Closure:
    """How a virtual link holds its real link, and when.

    `method`: "projection" keeps the loop closed exactly; "compliance" by a spring of `stiffness` [N/m and N m/rad] and
    `damping` [N s/m and N m s/rad] along each constrained direction. `baumgarte` σ [1/s] is what smooth integrators
    pull projected loops together with, besides their projection. `closed` says whether it holds at the start; `times`
    ((s, bool), ...) when it connects or is cut later. It is cut where its load exceeds `break_force` [N] or
    `break_torque` [N m], or where the real link's point leaves `region`, a box (lower (3,), upper (3,)) [m] in the
    joint's rest frame; while open, it connects where its ends come nearer than `grab_distance` [m].
    """

    method: str = "projection"
    stiffness: float = 1e6
    damping: float = 1e3
    baumgarte: float = 0.0
    closed: bool = True
    times: tuple[tuple[float, bool], ...] = ()
    break_force: float = np.inf
    break_torque: float = np.inf
    grab_distance: float = 0.0
    region: tuple | None = None

    def check(self, name: str, kind: str) -> None:
        """Raises LinkageError where a connection `name` with a joint of that `kind` cannot be simulated."""
        problem = self.problem()
        if kind not in FREEDOMS or kind == "free":
            problem = f"joint kind {kind!r} holds nothing", "use fixed, hinge, prismatic, universal or spherical"
        if problem:
            raise LinkageError(f"connection {name!r}: {problem[0]}; {problem[1]}")

    def problem(self) -> tuple[str, str] | None:
        """What cannot be simulated, and the remedy."""
        if self.method not in METHODS:
            return f"unknown method {self.method!r}", f"use one of {', '.join(METHODS)}"
        for name in ("stiffness", "damping", "baumgarte", "grab_distance"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                return f"{name} is {value}", "give a finite number of at least zero"
        for name in ("break_force", "break_torque"):
            if not getattr(self, name) > 0:
                return f"{name} is {getattr(self, name)}", "give a positive number"
        if not all(np.isfinite(time) for time, _ in self.times):
            return f"its times are {self.times}", "give finite seconds"
        if self.method == "compliance" and self.stiffness + self.damping == 0:
            return "it has neither stiffness nor damping", "give it one, or choose projection"
        if self.region is not None:
            box = np.asarray(self.region, dtype=float)
            if box.shape != (2, 3) or np.isnan(box).any() or (box[0] >= box[1]).any():
                return f"its region is {self.region}", "give a lower and an upper corner"
        return None


@dataclass(eq=False)
class Link:
    """A rigid body and the joint that carries it.

    The link's frame has its origin at the joint. With all joint coordinates zero it stands at `position` (3,) [m] and
    `rotation` (3, 3) in the parent's frame; for a root the parent is the world.

    `mass` [kg]; `center_of_mass` (3,) [m] and `inertia` (3, 3) [kg m²] about the center of mass, in the link's frame.
    `keyed` links follow the source motion instead of the dynamics and drive the links they carry.

    A virtual link closes a loop: its `real` link is held, within the joint's freedoms, where the virtual link stands;
    `seat` (4, 4) is the virtual link's frame in the real one, `closure` how it is held. It has no mass and no shapes.
    """

    name: str
    joint: Joint = field(default_factory=Joint)
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    mass: float = 1.0
    center_of_mass: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.eye(3))
    shapes: list[Shape] = field(default_factory=list)
    keyed: bool = False

    parent: Link | None = field(default=None, repr=False)
    child: Link | None = field(default=None, repr=False)
    brother: Link | None = field(default=None, repr=False)
    real: Link | None = field(default=None, repr=False)
    seat: np.ndarray = field(default_factory=lambda: np.eye(4), repr=False)
    closure: Closure = field(default_factory=Closure, repr=False)

    def validate(self) -> None:
        """Raises LinkageError where the link or its joint cannot be simulated."""
        if not (are_numbers(self.position, 3) and are_numbers(self.center_of_mass, 3)):
            self._refuse("its position or center of mass is not three finite numbers", "check the bone's transforms")
        if not are_numbers(self.rotation, 3, 3):
            self._refuse("its rotation is not a finite 3 by 3 matrix", "check the bone's transforms")
        if not are_rotations(self.rotation):
            self._refuse("its rotation is not a pure rotation", "remove scale, shear and mirroring")
        try:
            several("its shapes", self.shapes)
        except ValueError as error:
            raise LinkageError(f"link {self.name!r}: {error}") from None
        self._validate_mass()
        self._validate_joint()

    def validate_virtual(self, members: set[int], world: Link) -> None:
        """The same for a virtual link, whose real link must be among `members`."""
        for what, frame in (("rest frame", pose(self.rotation, self.position)), ("seat", self.seat)):
            if not are_numbers(frame, 4, 4) or not are_rotations(np.asarray(frame)[:3, :3]) or self.child:
                self._refuse(f"its {what} is no pose of a link without children", "give a point (3,) or pose (4, 4)")
        if self.real is self.parent:
            self._refuse(f"it connects {self.real.name!r} to itself", "choose another link or the world")
        if id(self.real) not in members or self.parent.real is not None:
            self._refuse("an end of it is not in the linkage", "add the link first")
        if self.real.keyed and (self.parent is world or self.parent.keyed):
            self._refuse("both its ends are keyed, so nothing could give way", "set one of them to simulated")
        self.closure.check(self.name, self.joint.kind)

    def _validate_mass(self) -> None:
        if not (are_numbers(self.mass) and (self.mass > 0 or self.keyed)):
            self._refuse(f"mass {self.mass} is not positive", "give it a positive mass or weld it to its parent")
        if not are_numbers(self.inertia, 3, 3):
            self._refuse("its inertia is not a finite 3 by 3 matrix", "compute it from its shape")
        inertia = np.asarray(self.inertia, dtype=float)
        if np.abs(inertia - inertia.T).max() > 1e-9 * np.abs(inertia).max():
            self._refuse("its inertia is not symmetric", "compute it from its shape")
        principal = np.linalg.eigvalsh(inertia)
        if not self.keyed and (principal[0] <= 0 or principal[2] > (principal[0] + principal[1]) * (1 + 1e-6)):
            self._refuse("its inertia belongs to no rigid body", "moments must be positive, none above the others' sum")

    def _validate_joint(self) -> None:
        joint = self.joint
        if not isinstance(joint, Joint):
            self._refuse(f"its joint is {joint!r}", "give a Joint of some kind")
        if joint.kind not in FREEDOMS:
            self._refuse(f"unknown joint kind {joint.kind!r}", f"use one of {', '.join(FREEDOMS)}")
        d = FREEDOMS[joint.kind]
        values = {}
        for name in ("lower", "upper", "damping", "friction", "armature", "stiffness", "drive_damping"):
            try:
                value = values[name] = np.asarray(getattr(joint, name), dtype=float)
            except (TypeError, ValueError):
                self._refuse(f"{name} is {getattr(joint, name)!r}", f"give a number or {d} numbers")
            if value.ndim > 1 or (value.ndim == 1 and value.shape != (d,)):
                self._refuse(f"{name} has shape {value.shape}", f"give a number or {d} numbers")
            if name in ("lower", "upper"):
                free = -np.inf if name == "lower" else np.inf
                if np.isnan(value).any() or (value == -free).any():
                    self._refuse(f"{name} is {value}", f"give a number, or {free} where there is no limit")
            elif not (np.isfinite(value).all() and (value >= 0).all()):
                self._refuse(f"{name} is {value}", "give a finite number of at least zero")
        lower, upper = values.pop("lower"), values.pop("upper")
        if (lower > upper).any():
            self._refuse(f"lower limit {lower} is above upper limit {upper}", "swap them")
        if joint.kind == "free":
            if np.isfinite(lower).any() or np.isfinite(upper).any():
                self._refuse("a free joint has no limits", "remove them or choose another joint")
            if any(value.any() for value in values.values()):
                self._refuse(
                    "a free joint has no passive mechanics", "set damping, friction, armature and drives to zero"
                )

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise LinkageError(f"link {self.name!r}: {what}; {remedy}")

    def rest_pose(self) -> np.ndarray:
        """The pose (4, 4) of the link in the world with all joint coordinates zero."""
        link, rest = self, np.eye(4)
        while link is not None:
            rest = pose(np.asarray(link.rotation, dtype=float), np.asarray(link.position, dtype=float)) @ rest
            link = link.parent
        return rest

    def top(self) -> Link:
        """What the link hangs on in the end: the world, or a link that hangs nowhere yet."""
        link = self
        while link.parent is not None:
            link = link.parent
        return link

    def children(self) -> Iterator[Link]:
        """The links this one carries, in the order they were added."""
        link = self.child
        while link is not None:
            yield link
            link = link.brother


class Linkage:
    """A forest of links under the world. `world` is not simulated; the roots are its children."""

    def __init__(self) -> None:
        self.world = Link("world", joint=Joint("fixed"), mass=0.0)

    def add(self, link: Link, parent: Link | None = None) -> Link:
        """Hangs `link` under `parent` (the world when None) as the last brother; returns `link`. Raises LinkageError
        where it hangs here already, or would carry itself."""
        parent = self.world if parent is None else parent
        if link.parent or link.child or link is parent:  # of new links there is nothing to ask, however deep they hang
            top = parent.top()
            if top is link:
                link._refuse(f"it would carry itself by {parent.name!r}", "hang it under a link that it does not carry")
            if top is link.top():
                link._refuse(f"it hangs under {link.parent.name!r} already", "add every link once")
        link.parent, link.brother = parent, None
        last = None
        for last in parent.children():  # noqa: B007 - the last one is wanted
            pass
        if last is None:
            parent.child = link
        else:
            last.brother = link
        return link

    def connect(
        self,
        host: Link | None,
        real: Link,
        joint: str | Joint,
        *,
        at: np.ndarray,
        seat: np.ndarray | None = None,
        name: str | None = None,
        closure: Closure | None = None,
    ) -> Link:
        """Closes a loop: adds a virtual link of `real` under `host` (the world when None) and returns it.

        `at` (3,) or (4, 4): the joint's rest frame in the host; `seat`, likewise, the frame in the real link that is
        held there, by default where `at` is in it with all joint coordinates zero.
        """
        host = self.world if host is None else host
        for end in (host, real):
            if end is None or end.top() is not self.world:
                name = getattr(end, "name", end)
                raise LinkageError(f"{name!r} is no link of this linkage; add it before connecting")
        at = _frame(at)
        seat = pose_inverse(real.rest_pose()) @ host.rest_pose() @ at if seat is None else _frame(seat)
        virtual = Link(
            name or f"{host.name}-{real.name}", Joint(joint) if isinstance(joint, str) else joint,
            at[:3, 3], at[:3, :3], mass=0.0, real=real, seat=seat, closure=closure or Closure(),
        )  # fmt: skip
        return self.add(virtual, host)

    def cut(self, link: Link) -> None:
        """Cuts the joint of `link`: a virtual link is removed, any other hangs under the world by a free joint, at its
        rest pose (structure-varying paper, section 4.2)."""
        if link.real is None:
            rest = link.rest_pose()
            link.position, link.rotation, link.joint = rest[:3, 3], rest[:3, :3], Joint("free")
        if link.parent is None:
            raise LinkageError(f"link {link.name!r} is not in this linkage any more; it was cut before")
        before = None
        for brother in link.parent.children():
            if brother is link:
                break
            before = brother
        if before is None:
            link.parent.child = link.brother
        else:
            before.brother = link.brother
        link.parent = link.brother = None
        if link.real is None:
            self.add(link)

    def _all(self) -> Iterator[Link]:
        """Real and virtual links below the world, parents before children, depth first."""
        pending = list(self.world.children())[::-1]
        while pending:
            link = pending.pop()
            yield link
            pending.extend(list(link.children())[::-1])

    def links(self) -> Iterator[Link]:
        """Every real link below the world, parents before children, depth first."""
        return (link for link in self._all() if link.real is None)

    def virtual_links(self) -> Iterator[Link]:
        """The virtual links, one for each loop."""
        return (link for link in self._all() if link.real is not None)

    def validate(self) -> None:
        """Raises LinkageError for the first thing that cannot be simulated, naming the link and the remedy."""
        seen: set[str] = set()
        members = {id(link) for link in self.links()}
        for link in self._all():
            if link.name in seen:
                link._refuse("its name is taken", "give every link a name of its own")
            seen.add(link.name)
            if link.real is None:
                link.validate()
            else:
                link.validate_virtual(members, self.world)
        if not members:
            raise LinkageError("the linkage has no links; add at least one")

    def __getitem__(self, name: str) -> Link:
        for link in self._all():
            if link.name == name:
                return link
        raise LinkageError(f"no link is called {name!r}")


def _frame(place: np.ndarray) -> np.ndarray:
    """A pose (4, 4) from a pose or a point (3,)."""
    place = np.asarray(place, dtype=float)
    if place.shape not in ((3,), (4, 4)):
        raise LinkageError(f"a connection's place has shape {place.shape}; give a point (3,) or a pose (4, 4)")
    return pose(np.eye(3), place) if place.shape == (3,) else place
