"""Coulomb's law, written out, and contacts of a rigid body to which it applies."""

import numpy as np

from core.contact import tangents

GRAVITY = 9.81
STEP = 1.0 / 240.0
UP = np.array([0.0, 0.0, 1.0])


def rigid_body(mass, inertia, points, normals):
    """Contact rows J (3k, 6) of a body at the origin for twists (angular, linear), and its inverse inertia (6, 6)."""
    frames = tangents(np.asarray(normals, dtype=float))
    J = np.concatenate((np.cross(np.asarray(points, dtype=float)[:, None], frames), frames), axis=2).reshape(-1, 6)
    return J, np.diag(np.concatenate((1.0 / np.asarray(inertia, dtype=float), np.full(3, 1.0 / mass))))


def assert_coulomb(G, u, friction, impulses, limits=0, equalities=0, tolerance=1e-6):
    """The law itself, written out: complementarity, the cone, and slip straight against the friction."""
    w = G @ impulses + u
    scale = tolerance * max(np.abs(u).max(), 1e-12)
    force = scale / G.diagonal().max() + tolerance * np.abs(impulses).max()
    assert np.abs(w[:equalities]).max(initial=0.0) <= scale
    w, impulses = w[equalities:], impulses[equalities:]
    normal_w = np.concatenate((w[:limits], w[limits::3]))
    normal_p = np.concatenate((impulses[:limits], impulses[limits::3]))
    assert normal_w.min(initial=0.0) >= -scale
    assert normal_p.min(initial=0.0) >= 0.0
    assert (np.minimum(normal_w / scale, normal_p / force) <= 1.0).all()
    bound = friction * impulses[limits::3]
    slip, push = w[limits:].reshape(-1, 3)[:, 1:], impulses[limits:].reshape(-1, 3)[:, 1:]
    speed, size = np.linalg.norm(slip, axis=1), np.linalg.norm(push, axis=1)
    assert (size <= bound * (1 + 1e-12) + 1e-15).all()
    sliding = speed > 10 * scale
    assert np.allclose(size[sliding], bound[sliding], rtol=1e-6, atol=10 * force)
    against = (slip * push).sum(axis=1)[sliding]
    assert np.allclose(against, -(speed * size)[sliding], rtol=1e-5, atol=10 * force * scale)
