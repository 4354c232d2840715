"""An oracle of handle forces: Newton's and Euler's equations link by link, for given joint accelerations.

It shares with the code under test the joints' transforms and nothing else: no spatial vectors, no trees, no batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.model import Model, State

X, Z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])


@dataclass
class Link:
    """Rotation, origin, angular velocity and acceleration, the origin's velocity and acceleration, and the axes of its
    joint's freedoms as (turns, axis), all in the world."""

    R: np.ndarray
    p: np.ndarray
    w: np.ndarray
    alpha: np.ndarray
    v: np.ndarray
    a: np.ndarray
    axes: list[tuple[bool, np.ndarray]]


def links_of(model: Model, state: State, accelerations: np.ndarray) -> list[Link]:
    """The motion of every link; keyed links stand still against their parents."""
    c, transforms = model.coordinates, model.coordinates.transforms(state.q)
    world = Link(np.eye(3), *np.zeros((5, 3)), [])
    links: list[Link] = []
    for i, kind in enumerate(c.kinds.tolist()):
        above = links[model.parent[i]] if model.parent[i] >= 0 else world
        u, du = (x[c.v_start[i] : c.v_start[i + 1]] for x in (state.v, accelerations))
        rest, at = above.R @ model.placement[i, :3, :3], above.R @ model.placement[i, :3, 3]
        R, slid = rest @ transforms[i, :3, :3], rest @ transforms[i, :3, 3]
        w, alpha, slide, slip = above.w.copy(), above.alpha.copy(), np.zeros(3), np.zeros(3)
        axes = []
        if kind == "universal":
            axes = [(True, rest @ X), (True, R @ Z)]
            alpha += axes[0][1] * du[0] + np.cross(above.w, axes[0][1]) * u[0]
            w += axes[0][1] * u[0] + axes[1][1] * u[1]
            alpha += axes[1][1] * du[1] + np.cross(w, axes[1][1]) * u[1]
        elif kind in ("hinge", "spherical", "free"):
            own = R[:, : 1 if kind == "hinge" else 3]
            axes = [(True, axis) for axis in own.T]
            turn = own @ u[: len(axes)]
            w, alpha = w + turn, alpha + own @ du[: len(axes)] + np.cross(above.w, turn)
        if kind in ("prismatic", "free"):
            own = rest[:, :1] if kind == "prismatic" else rest
            axes += [(False, axis) for axis in own.T]
            slide, slip = own @ u[-own.shape[1] :], own @ du[-own.shape[1] :]
        r = at + slid
        v = above.v + np.cross(above.w, r) + slide
        a = above.a + np.cross(above.alpha, r) + np.cross(above.w, np.cross(above.w, r) + 2.0 * slide) + slip
        links.append(Link(R, above.p + r, w, alpha, v, a, axes))
    return links


def joint_forces(
    model: Model, links: list[Link], outer: np.ndarray, gravity: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The wrenches (n, 6) that joints exert on the links that they carry, and those (n, 6) of all their handles, both
    about the links' origins; `outer` (n, 6): the wrenches on the links, besides gravity."""
    joint, children = np.zeros((model.n, 6)), np.zeros((model.n, 6))
    for i in range(model.n - 1, -1, -1):
        link, mass = links[i], model.mass[i]
        c = link.R @ model.center[i]
        # about the center of mass, from the inertia about the origin
        about = model.inertia[i, :3, :3] - mass * (model.center[i] @ model.center[i] * np.eye(3))
        about = link.R @ (about + mass * np.outer(model.center[i], model.center[i])) @ link.R.T
        force = mass * (link.a + np.cross(link.alpha, c) + np.cross(link.w, np.cross(link.w, c)) - gravity)
        torque = about @ link.alpha + np.cross(link.w, about @ link.w) + np.cross(c, force)
        joint[i] = np.concatenate((torque, force)) - outer[i] - children[i]
        if (p := model.parent[i]) >= 0:
            arm = link.p - links[p].p
            children[p] -= np.concatenate((joint[i, :3] + np.cross(arm, joint[i, 3:]), joint[i, 3:]))
    return joint, joint + children


def powers(links: list[Link], joint: np.ndarray) -> np.ndarray:
    """What the joints' wrenches do along their freedoms (nv,) [N m, N]."""
    result = [axis @ (joint[i, :3] if turns else joint[i, 3:]) for i, x in enumerate(links) for turns, axis in x.axes]
    return np.array(result)
