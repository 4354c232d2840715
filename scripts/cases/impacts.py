"""Impacts and friction against closed forms, and random impacts: `python -m scripts.cases.impacts [COUNT]`.

The closed forms are those of reference-values.md; prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from core import Link, Linkage, Plane, Simulation, Sphere, State, compile_model
from core.contact import tangents
from core.dynamics import respond
from core.impact import Law, collide
from core.joint import Joint
from core.kinematics import kinematics, motions, push
from core.mechanisms import random_coordinates, random_tree
from core.model import Model
from core.propagation import impacts
from core.spatial import cross
from core.threads import one_blas_thread
from core.trajectory import Trajectory

G = 9.81
RADIUS = 0.1
H = 1 / 2000
RODS = 0.75
"""Share of single rods among random impacts; the others are of trees."""
LINKS, CONTACTS, BATCH, SHOTS = 30, 8, 6, 5
"""Of a tree at most, of an impact of a tree at most, impacts solved at once, and such batches per tree."""


def _body(inertia: np.ndarray, shapes: list) -> Linkage:
    """A free body of 1 kg."""
    linkage = Linkage()
    linkage.add(Link("body", Joint("free"), inertia=np.diag(inertia), shapes=shapes))
    return linkage


def _ball(friction: float = 0.0, restitution: float = 0.0) -> Linkage:
    sphere = Sphere(np.zeros(3), RADIUS, friction=friction, restitution=restitution)
    return _body(0.4 * RADIUS**2 * np.ones(3), [sphere])


def _sled(friction: float) -> Linkage:
    corners = [(x, y, -0.04) for x in (-0.2, 0.2) for y in (-0.2, 0.2)]
    return _body(np.array([0.02, 0.02, 0.03]), [Sphere(np.array(c), 0.01, friction=friction) for c in corners])


def _path(
    linkage: Linkage, plane: Plane, height: float, velocity: tuple, seconds: float, gravity: tuple = (0.0, 0.0, -G)
) -> Trajectory:
    """Every step of a free body from a height above the origin."""
    model = compile_model(linkage)
    q, v = model.rest_state().q, np.zeros(6)
    q[6], v[3:] = height, velocity
    simulation = Simulation(
        model, scenery=[plane], frame_time=H, substeps=1, gravity=np.array(gravity), state=State(q, v)
    )
    for _ in simulation.run(round(seconds / H) + 1):
        pass
    return simulation.trajectory


def _on_incline(linkage: Linkage, angle: float, friction: float, above: float, seconds: float) -> float:
    """How far a body gets that lies on an incline at rest, as a share of where it gets without friction."""
    # along the incline's axes it is gravity that leans
    gravity = G * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    path = _path(linkage, Plane(friction=friction), above, (0.0, 0.0, 0.0), seconds, tuple(gravity))
    return path.q[-1, 4] / (0.5 * gravity[0] * seconds**2)


def bounces(restitution: float = 0.7) -> dict[str, tuple[float, float]]:
    """A ball from 1 m: when it lands, how high it bounces, where its bounces end."""
    fall = np.sqrt(2 / G)
    path = _path(_ball(restitution=restitution), Plane(), 1 + RADIUS, (0.0, 0.0, 0.0), 5 * fall)
    height, speed = path.q[:, 6] - RADIUS, path.v[:, 5]
    # in flight the energy tells the apex, and with the speed when it lands
    apex = height + speed**2 / (2 * G)
    landings = 1 + np.flatnonzero(np.diff(apex) < -1e-3 * apex[:-1])
    landings = landings[np.append(True, np.diff(landings) > 5)]
    before = landings - 1
    lands = before * H + (speed[before] + np.sqrt(2 * G * apex[before])) / G
    flight = 2 * np.sqrt(2 * apex[landings + 2] / G)
    result = {
        "fall": (lands[0], fall),
        # a geometric series from the third landing on
        "rest": (lands[2] + flight[2] / (1 - flight[2] / flight[1]), fall * (1 + restitution) / (1 - restitution)),
    }
    for n in range(1, 4):
        result[f"apex {n}"] = (apex[landings[n - 1] + 2], restitution ** (2 * n))
    return result


def slides(friction: float = 0.3, speed: float = 2.0) -> dict[str, tuple[float, float]]:
    """A block that slides to a stop: when and where."""
    path = _path(_sled(friction), Plane(friction=friction), 0.05, (speed, 0.0, 0.0), 1.0)
    v = path.v[:, 3]
    last = np.flatnonzero(v > 1e-3 * speed)[-1]
    stop = last * H * speed / (speed - v[last])
    return {
        "stop time": (stop, speed / (friction * G)),
        "stop distance": (path.q[-1, 4], speed**2 / (2 * friction * G)),
    }


def inclines() -> dict[str, tuple[float, float]]:
    """A block and a ball on both sides of the friction angle and of that of rolling."""
    result = {}
    for degrees, friction in ((20, 0.4), (30, 0.6), (20, 0.3), (40, 0.6)):
        angle = np.radians(degrees)
        slip = max(0.0, 1 - friction / np.tan(angle))
        result[f"block {degrees}° {friction}"] = _on_incline(_sled(friction), angle, friction, 0.05, 0.5), slip
    for degrees, friction in ((20, 0.15), (30, 0.5), (40, 0.2)):
        angle = np.radians(degrees)
        rolls = friction >= 2 / 7 * np.tan(angle)
        share = 5 / 7 if rolls else 1 - friction / np.tan(angle)
        result[f"ball {degrees}° {friction}"] = _on_incline(_ball(friction), angle, friction, RADIUS, 0.5), share
    return result


def rolls(friction: float = 0.25, speed: float = 3.0) -> dict[str, tuple[float, float]]:
    """A ball that slides until it rolls: when, where and how fast."""
    path = _path(_ball(friction), Plane(friction=friction), RADIUS, (speed, 0.0, 0.0), 1.0)
    slip = path.v[:, 3] - RADIUS * path.v[:, 1]
    last = np.flatnonzero(slip > 1e-3 * speed)[-1]
    time = last * H * speed / (speed - slip[last])
    decay = (speed - path.v[last, 3]) / (last * H)
    rest = time - last * H
    return {
        "rolling speed": (path.v[-1, 3], 5 / 7 * speed),
        "rolling time": (time, 2 * speed / (7 * friction * G)),
        "rolling distance": (
            path.q[last, 4] + path.v[last, 3] * rest - 0.5 * decay * rest**2, 12 * speed**2 / (49 * friction * G)
        ),
    }  # fmt: skip


def glances(friction: float = 0.3, restitution: float = 0.5, fall: float = 2.0) -> dict[str, tuple[float, float]]:
    """A ball that hits the ground at an angle, on both sides of the bound between grip and slip."""
    result, bound = {}, 7 / 2 * friction * (1 + restitution) * fall
    for speed in (0.7 * bound, 0.99 * bound, 1.01 * bound, 1.5 * bound):
        linkage = _ball(friction, restitution)
        path = _path(linkage, Plane(friction=friction), RADIUS + 0.0105, (speed, 0.0, -fall), 0.02, (0.0, 0.0, 0.0))
        after = 5 / 7 * speed if speed <= bound else speed - friction * (1 + restitution) * fall
        result[f"glance {speed:.4g}"] = path.v[-1, 3], after
        result[f"rebound {speed:.4g}"] = path.v[-1, 5], restitution * fall
    return result


def rod() -> dict[str, tuple[float, float]]:
    """A slanted rod that hits the ground with its end, by each of the laws: impulse, velocity and energy."""
    linkage = _body(np.array([1e-3, 1 / 12, 1 / 12]), [])
    c = np.sqrt(0.5)
    linkage["body"].rotation = np.array([[c, 0, -c], [0, 1, 0], [c, 0, c]])
    model = compile_model(linkage)
    end = np.array([[-0.5 * c, 0.0, -0.5 * c]])
    inverse = Touched(model, model.rest_state().q, np.zeros(1, np.intp), end, np.array([[0.0, 0.0, 1.0]])).inverse
    result = {}
    for law, u, friction, e, (pt, pn), normal, gain in (
        (Law.WORK, (0.6, -1.0), 1.0, 1.0, (0.26410225, 0.84017042), 0.704272674, -0.045),
        (Law.POISSON, (0.6, -1.0), 1.0, 1.0, (0.24, 0.8), 0.64, -0.072),
        (Law.NEWTON, (0.6, -1.0), 1.0, 1.0, (0.375, 1.025), 1.0, 0.1125),
        (Law.WORK, (0.0, -1.0), 0.3, 0.5, (0.219512195, 0.731707317), 0.5, -0.243158834),
    ):
        before = np.array([[u[1], u[0], 0.0]])
        p = collide(inverse[None], before, np.array([friction]), np.array([e]), law)[0]
        after = before[0] + inverse @ p
        name = f"rod {law.value} {friction}"
        result |= {
            f"{name} tangential": (p[1], pt), f"{name} normal": (p[0], pn), f"{name} velocity": (after[0], normal),
            f"{name} energy": (0.5 * p @ (before[0] + after), gain),
        }  # fmt: skip
    return result


class Touched:
    """Contacts (k) of a model in a pose: their inverse inertia (3 k, 3 k), and velocities from those of the joints."""

    def __init__(self, model: Model, q: np.ndarray, link: np.ndarray, point: np.ndarray, normal: np.ndarray) -> None:
        """Links (k,) by number, points (k, 3) in the world, normals (k, 3) into the link."""
        self.model, self.kin, self.slot = model, kinematics(model, q), model.assembly.slot[link]
        frames = tangents(normal)
        arm = point - self.kin.origins[self.slot]
        self.wrenches = np.concatenate((cross(arm[:, None, :], frames), frames), axis=-1)
        columns = np.zeros((len(model.columns.link), 3 * len(link)))
        push(model, self.kin, self.slot, self.wrenches, columns)
        inverse = columns.T @ respond(model, self.kin, np.zeros(model.nv), columns)
        self.inverse = 0.5 * (inverse + inverse.T)

    def velocity(self, v: np.ndarray) -> np.ndarray:
        links = motions(self.model, self.kin, v).links[self.slot]
        return (self.wrenches @ links[:, :, None]).reshape(-1)


def random_rods(count: int, rng: np.random.Generator) -> tuple[int, int]:
    """Rods of random slenderness and bearing that hit something with an end: gains of energy, and approaches left."""
    direction = rng.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    slender = rng.uniform(1e-3, 0.5, count)[:, None, None]
    spread = direction[:, :, None] * direction[:, None, :]
    inertia = (np.eye(3) - spread) / 12 + slender**2 * (0.25 * np.eye(3) + 0.25 * spread)
    arm = -0.5 * direction
    lever = np.zeros((count, 3, 3))
    for row, column, axis, sign in (
        (0, 1, 2, -1),
        (1, 0, 2, 1),
        (0, 2, 1, 1),
        (2, 0, 1, -1),
        (1, 2, 0, -1),
        (2, 1, 0, 1),
    ):
        lever[:, row, column] = sign * arm[:, axis]
    inverse = np.eye(3) + lever.transpose(0, 2, 1) @ np.linalg.inv(inertia) @ lever
    u = rng.normal(size=(count, 3))
    u[:, 0] = -np.abs(u[:, 0])
    p = collide(inverse, u, rng.uniform(0, 1.5, count), rng.uniform(0, 1, count))
    after = u + (inverse @ p[:, :, None])[:, :, 0]
    gain = (p * (u + after)).sum(-1)
    speed = np.sqrt((u * u).sum(-1))
    return int((gain > 1e-12 * np.abs(p * u).sum(-1)).sum()), int((after[:, 0] < -1e-9 * speed).sum())


def random_trees(count: int, rng: np.random.Generator) -> tuple[int, int]:
    """The same of trees in random poses and motion, several contacts at once."""
    gains = approaching = 0
    while count > 0:
        linkage = random_tree(int(rng.integers(1, LINKS + 1)), rng)
        model = compile_model(linkage)
        q, _ = random_coordinates(linkage, rng)
        k = CONTACTS * BATCH
        link = rng.integers(0, len(model.names), k)
        normal = rng.normal(size=(k, 3))
        normal /= np.linalg.norm(normal, axis=1)[:, None]
        point = kinematics(model, q).poses[model.assembly.slot[link], :3, 3] + 0.2 * rng.normal(size=(k, 3))
        touched = Touched(model, q, link, point, normal)
        for _ in range(SHOTS):
            # several impacts of the same tree, each with a motion and contacts of its own, at once
            shot = np.repeat(np.arange(BATCH), rng.integers(1, CONTACTS + 1, BATCH))
            rows = (3 * rng.permutation(k)[: len(shot), None] + np.arange(3)).reshape(-1)
            own = np.repeat(shot, 3)
            inverse = np.where(own[:, None] == own, touched.inverse[np.ix_(rows, rows)], 0.0)
            u = np.array([touched.velocity(rng.normal(size=model.nv)) for _ in range(BATCH)])[own, rows]
            p = impacts(inverse, u, rng.uniform(0, 1.5, len(shot)), rng.uniform(0, 1, len(shot)))
            after = u + inverse @ p
            # contacts that nearly block each other press so hard that doubles round away what is to be seen
            exact = p * (u + (u + inverse.astype(np.longdouble) @ p))
            gain, work = np.bincount(own, exact.astype(float)), np.bincount(own, np.abs(p * u))
            speed = np.zeros(BATCH)
            np.maximum.at(speed, own, np.abs(u))
            gains += int((gain > 1e-12 * work).sum())
            left = (after[::3] < -1e-9 * speed[shot]) & (inverse.diagonal()[::3] > 1e-12 * inverse.diagonal().max())
            approaching += int(np.bincount(shot, left, BATCH).astype(bool).sum())
            count -= BATCH
    return gains, approaching


def main(count: int = 100_000) -> None:
    begin = time.perf_counter()
    with one_blas_thread():
        cases = bounces() | slides() | inclines() | rolls() | glances() | rod()
        errors = {name: abs(got - known) / (abs(known) or 1.0) for name, (got, known) in cases.items()}
        literal = time.perf_counter() - begin
        rng = np.random.default_rng(0)
        rods = round(RODS * count)
        gains, approaching = np.add(random_rods(rods, rng), random_trees(count - rods, rng))
    worst = max(errors, key=errors.get)
    metrics = {
        "max_error_rel": float(errors[worst]),
        "worst": worst,
        "values": len(errors),
        "energy_gains": int(gains),
        "approaching": int(approaching),
        "impacts": count,
        "literal_seconds": literal,
        "seconds": time.perf_counter() - begin,
    }
    print(json.dumps({"metrics": metrics}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
