"""Force fields: wind, force, vortex, turbulence and drag, as Blender's effectors act on its rigid bodies.

A field acts at a link's center of mass alone and knows neither the link's size nor its mass. What it does there is a
push P and a resistance R against motion, F = P − R v: steps take the second implicitly (`Fields.on_links`), so no drag
is too strong for a step. Directions, distances and falloffs follow Blender's manual, Physics, Forces, Force Fields, and
were measured on its rigid bodies; the units here are SI, while Blender's depend on the frame rate (see the extension's
effector.py).

Not supported: fields around surfaces or vertices, absorption by what stands in the way, torques, and the types boid,
charge, curve guide, fluid flow, harmonic, Lennard-Jones, magnetic and texture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from .diagnostics import centers
from .kinematics import Kinematics
from .model import Model
from .noise import turbulence
from .spatial import cross, rigid_inertia

FALLOFFS = ("sphere", "tube", "cone")
SHAPES = ("point", "line", "plane")


@dataclass(frozen=True, kw_only=True)
class Falloff:
    """How a field fades: as (1 + d − `least`)^−`power` where the distance d [m] is above `least`, and to nothing beyond
    `most`.

    `kind` "sphere" takes the distance from what the field comes from, "tube" and "cone" that along its axis, and fade
    likewise by `radial_power`, `radial_least` and `radial_most`, of the distance from the axis [m] or of the angle with
    it in degrees. `side` 1 or -1: only where the axis points to, or away from. All is scaled by `weight`.
    """

    kind: str = "sphere"
    power: float = 0.0
    least: float = 0.0
    most: float = np.inf
    radial_power: float = 0.0
    radial_least: float = 0.0
    radial_most: float = np.inf
    side: int = 0
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in FALLOFFS:
            raise ValueError(f"a falloff is of kind {self.kind!r}; choose one of {', '.join(FALLOFFS)}")

    def share(self, distance: np.ndarray, away: np.ndarray, height: np.ndarray) -> np.ndarray:
        """The part (n,) that is left of a field at `distance` (n,) from its source, `away` (n, 3) from its origin and
        `height` (n,) along its axis."""
        if self.kind == "sphere":
            result = _faded(distance, self.least, self.most, self.power)
        else:
            flat = np.sqrt(np.maximum((away * away).sum(-1) - height * height, 0.0))
            radial = flat if self.kind == "tube" else np.degrees(np.arctan2(flat, height))
            result = _faded(np.abs(height), self.least, self.most, self.power)
            result *= _faded(radial, self.radial_least, self.radial_most, self.radial_power)
        return result * (self.side * height >= 0.0) * max(self.weight, 0.0)


def _faded(distance: np.ndarray, least: float, most: float, power: float) -> np.ndarray:
    return (1.0 + np.maximum(distance - least, 0.0)) ** -power * (distance <= most)


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """Where a field is and how strong: one value, or one for each frame.

    `origin` (3,) or (F, 3) [m] and its `axis`, likewise; `strength` () or (F,), whose unit the kind of field tells, and
    `gust` () or (F,), added to it unchanged all the way to its frame from the one before. `flow` [N s/m]: how much the
    field's medium resists motion. The field comes from its origin, or with the `shape` "line" from its axis, or "plane"
    from the plane across it.
    """

    origin: np.ndarray = field(default_factory=lambda: np.zeros(3))
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    strength: np.ndarray | float = 0.0
    gust: np.ndarray | float = 0.0
    flow: float = 0.0
    shape: str = "point"
    falloff: Falloff = Falloff()

    def __post_init__(self) -> None:
        named = type(self).__name__
        if self.shape not in SHAPES:
            raise ValueError(f"a {named} has shape {self.shape!r}; choose one of {', '.join(SHAPES)}")
        for name, ndim in self._sampled().items():
            value = np.asarray(getattr(self, name), dtype=float)
            if value.ndim not in (ndim, ndim + 1) or value.size == 0 or not np.isfinite(value).all():
                raise ValueError(
                    f"a {named} has no finite {name}, one or one for each frame; its shape is {value.shape}"
                )
            object.__setattr__(self, name, value)
        length = np.sqrt((self.axis * self.axis).sum(-1, keepdims=True))
        if self.axis.shape[-1:] != (3,) or self.origin.shape[-1:] != (3,) or length.min() < 1e-9:
            raise ValueError(f"a {named} needs an origin and an axis of three numbers, the axis not zero")
        object.__setattr__(self, "axis", self.axis / length)

    def _sampled(self) -> dict[str, int]:
        """What may be given for each frame, and how many dimensions one value has."""
        return {"origin": 1, "axis": 1, "strength": 0, "gust": 0}

    def act(self, frame: float, points: np.ndarray, velocities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The push (n, 3) [N] on bodies at `points` (n, 3) [m], and how much (n,) [N s/m] it resists `velocities`
        (n, 3), at a `frame` of the samples."""
        axis = _between(self.axis, 1, frame)
        axis = axis / max(float(np.sqrt(axis @ axis)), 1e-12)
        away = points - _between(self.origin, 1, frame)
        height = away @ axis
        lever = self._lever(away, height[:, None] * axis)
        distance = np.sqrt((lever * lever).sum(-1))
        share = self.falloff.share(distance, away, height)
        power = share * (_between(self.strength, 0, frame) + _held(self.gust, frame))
        push, resistance = self._act(_Place(frame, points, axis, away, lever, distance, share, power), velocities)
        return push, resistance + self.flow * share

    def _lever(self, away: np.ndarray, along: np.ndarray) -> np.ndarray:
        """The way (n, 3) from what the field comes from."""
        return {"point": away, "line": away - along, "plane": along}[self.shape]

    def _act(self, place: _Place, velocities: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """Push and resistance without flow."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Place:
    """Where bodies are in a field at a `frame`: `points` (n, 3), the way there from the field's origin, `away` (n, 3),
    and from what it comes from, `lever` (n, 3) and its length `distance` (n,); the `share` (n,) of the field that is
    left there, and its strength, `power` (n,)."""

    frame: float
    points: np.ndarray
    axis: np.ndarray
    away: np.ndarray
    lever: np.ndarray
    distance: np.ndarray
    share: np.ndarray
    power: np.ndarray


class Wind(Field):
    """Pushes along its axis: `strength` [N]."""

    def _act(self, place: _Place, velocities: np.ndarray) -> tuple[np.ndarray, float]:
        return place.power[:, None] * place.axis, 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Force(Field):
    """Pushes away from what it comes from: `strength` [N], or [N m²] falling with the squared distance where it is
    `inverse_square`."""

    inverse_square: bool = False

    def _act(self, place: _Place, velocities: np.ndarray) -> tuple[np.ndarray, float]:
        near = place.distance < 1e-7
        apart = np.where(near, 1.0, place.distance)
        size = np.where(near, 0.0, place.power) / (apart**3 if self.inverse_square else apart)
        return size[:, None] * place.lever, 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Vortex(Field):
    """Turns bodies around its axis: `strength` [N/m] times the distance from it.

    Where it is a "point", times the distance from its origin. Else it also draws bodies to the axis, by `pull` [m/N]
    times its squared strength times the distance, and resists motion by `resistance` [N s/m] wherever it reaches.
    """

    pull: float = 0.0
    resistance: float = 0.0

    def _lever(self, away: np.ndarray, along: np.ndarray) -> np.ndarray:
        return away if self.shape == "point" else away - along

    def _act(self, place: _Place, velocities: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        around = cross(np.broadcast_to(place.axis, place.away.shape), place.away)
        power = place.power[:, None]
        if self.shape == "point":
            radius = np.sqrt((around * around).sum(-1))
            return power * around * (place.distance / np.maximum(radius, 1e-12))[:, None], 0.0
        return power * (around - self.pull * power * place.lever), self.resistance * (place.share > 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Turbulence(Field):
    """Pushes every which way: `strength` [N] times a smooth noise in space, whose coarsest swirls are `size` [m] wide.

    The noise stands still in the world, or moves with the field's origin where it is not `still`. `noise` is a function
    of points (n, 3) that returns numbers (n,) from -1 to 1; by default one with the statistics of Blender's.
    """

    size: float = 1.0
    still: bool = False
    noise: Callable[[np.ndarray], np.ndarray] = turbulence

    def _act(self, place: _Place, velocities: np.ndarray) -> tuple[np.ndarray, float]:
        spots = (place.points if self.still else place.away + place.axis) / (self.size or 1.0)
        turned = spots[:, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]].reshape(-1, 3)
        return place.power[:, None] * self.noise(turned).reshape(-1, 3), 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Drag(Field):
    """Resists motion: by `strength` [N s/m] times the velocity, and `quadratic` () or (F,) [N s²/m²] times its
    square."""

    quadratic: np.ndarray | float = 0.0

    def _sampled(self) -> dict[str, int]:
        return {**super()._sampled(), "quadratic": 0}

    def _act(self, place: _Place, velocities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        speed = np.sqrt((velocities * velocities).sum(-1))
        return np.zeros_like(place.away), place.power + place.share * _between(self.quadratic, 0, place.frame) * speed


@dataclass(frozen=True)
class Fields:
    """Fields that act together; their samples are `frame_time` [s] apart, the first of them at time 0. `resists`:
    whether velocities count where a step starts."""

    fields: tuple[Field, ...]
    frame_time: float = 1.0 / 24.0
    resists: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.fields)

    def act(self, time: float, points: np.ndarray, velocities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The push (n, 3) [N] on bodies with centers of mass `points` (n, 3), and the resistance (n,) [N s/m] that they
        meet at `velocities` (n, 3)."""
        push, resistance = np.zeros(points.shape), np.zeros(len(points))
        for each in self.fields:
            more, against = each.act(max(time / self.frame_time, 0.0), points, velocities)
            push += more
            resistance += against
        return push, resistance

    def forces(self, time: float, points: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        """The forces (n, 3) [N], for integrators that see them where a step begins."""
        push, resistance = self.act(time, points, velocities)
        return push - resistance[:, None] * velocities

    def on_links(
        self, model: Model, kin: Kinematics, start: np.ndarray, expected: np.ndarray, time: float, h: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """What a step of `h` seconds needs: wrenches (links, 6) about the clusters' origins, and inertias (links, 6, 6)
        to add to the links' own, which make the step implicit in the resistance.

        Twists (links + 1, 6) with the velocities where the step starts, and with those expected in its middle, at which
        the resistance is taken.
        """
        a = model.assembly
        points = centers(model, kin)
        arm = points - kin.origins[a.slot]
        start, expected = (t[a.slot, 3:] + cross(t[a.slot, :3], arm) for t in (start, expected))
        push, resistance = self.act(time, points, expected)
        force = push - resistance[:, None] * start
        wrenches, added = np.zeros((a.links, 6)), np.zeros((a.links, 6, 6))
        wrenches[a.slot, :3], wrenches[a.slot, 3:] = cross(arm, force), force
        added[a.slot] = rigid_inertia(implicit(resistance, model.mass, h), arm, np.zeros((3, 3)))
        return wrenches, added


def implicit(resistance: np.ndarray, mass: np.ndarray, h: float) -> np.ndarray:
    """The mass (n,) that a step of `h` seconds adds to a body's own, to slow it by the exponential law of resistance.

    It is half of h times the resistance in short steps and all of it in long ones: motion dies and is not reversed.
    """
    x = h * np.maximum(resistance, 0.0) / np.maximum(mass, 1e-12)
    far = np.maximum(x, 1e-3)
    return h * np.maximum(resistance, 0.0) * np.where(x < 1e-3, 0.5 + x / 12.0, -1.0 / np.expm1(-far) - 1.0 / far)


def _between(samples: np.ndarray, ndim: int, frame: float) -> np.ndarray:
    """Samples at a frame, straight between those beside it and held before the first and after the last."""
    if samples.ndim == ndim:
        return samples
    first = min(int(frame), len(samples) - 1)
    second = min(first + 1, len(samples) - 1)
    return samples[first] + min(frame - first, 1.0) * (samples[second] - samples[first])


def _held(samples: np.ndarray, frame: float) -> np.ndarray:
    """The sample of the frame that a moment leads to."""
    return samples if samples.ndim == 0 else samples[min(int(np.ceil(frame - 1e-9)), len(samples) - 1)]
