"""Integrators of high order for smooth motion: no limits, no contacts; loops as they are, from step to step.

Both work in the rotation vectors of each step (Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999). After
each step projected loops are closed again, in position and in velocity, so that nothing drifts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .closing import PROJECTIONS, close, connected_velocity
from .closure import Loops
from .dynamics import GRAVITY, acceleration
from .model import Model, State
from .spatial import cross

Forces = Callable[[Model, State], np.ndarray]

# Dormand and Prince 1980, A family of embedded Runge-Kutta formulae: stages, of which the last has the weights of order
# 5, and the difference of these from those of order 4.
STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
RK4_STAGES = ((), (1 / 2,), (0, 1 / 2), (0, 0, 1))
RK4_WEIGHTS = np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6])
SAFETY, SHRINK, GROW = 0.9, 0.2, 5.0


@dataclass(frozen=True)
class Smooth:
    """A smooth system: a model, `gravity` (3,), its `loops` (None for those that hold from the start), and as functions
    of the state `wrenches` (n, 6) on links and joint `forces` (nv,), as in `dynamics.closed_dynamics`. `projected`
    False leaves loops as the integrator has them."""

    model: Model
    gravity: np.ndarray = field(default_factory=lambda: GRAVITY)
    loops: Loops | None = None
    wrenches: Forces | None = None
    forces: Forces | None = None
    projected: bool = True

    def stages(self, state: State, h: float, table: tuple) -> np.ndarray:
        """The rates (stages, 2, nv) of rotation vectors and joint velocities at the stages of a step."""
        model = self.model
        rates = np.zeros((len(table), 2, model.nv))
        for i, row in enumerate(table):
            at, rates[i, 0] = stage(model, state, h, row, rates[:i])
            rates[i, 1] = acceleration(
                model, at, gravity=self.gravity, loops=self.loops,
                wrenches=self.wrenches and self.wrenches(model, at), forces=self.forces and self.forces(model, at),
            )  # fmt: skip
        return rates

    def moved(self, state: State, h: float, rates: np.ndarray) -> State:
        """The state after a step with mean rates (2, nv), its loops closed."""
        increment, change = h * rates
        q, v = self.model.coordinates.integrate(state.q, increment, 1.0), state.v + change
        loops = self.model.loops.closed() if self.loops is None else self.loops
        if self.projected and len(loops):
            q = close(self.model, q, loops, iterations=PROJECTIONS)
            v = connected_velocity(self.model, q, v, loops)
        return State(q, v, state.time + h)


def stage(model: Model, state: State, h: float, row: tuple, rates: np.ndarray) -> tuple[State, np.ndarray]:
    """The state at a stage of a step of `h` seconds, and its rates (nv,) of rotation vectors; `row` weighs the rates
    (stages, 2, nv) at the stages before."""
    turning = model.coordinates.quaternion_v
    increment, change = h * np.tensordot(row, rates, 1) if row else np.zeros((2, model.nv))
    v = state.v + change
    u, w = increment[turning], v[turning]
    half = cross(u, w)
    rate = v.copy()
    rate[turning] = w + 0.5 * half + cross(u, half) / 12.0
    return State(model.coordinates.integrate(state.q, increment, 1.0), v, state.time + h * sum(row)), rate


def rk4(
    model: Model, state: State, h: float, *, gravity: np.ndarray = GRAVITY, loops: Loops | None = None, **system
) -> State:
    """The state `h` seconds later by the classical fourth-order Runge-Kutta rule."""
    system = Smooth(model, gravity, loops, **system)
    return system.moved(state, h, np.tensordot(RK4_WEIGHTS, system.stages(state, h, RK4_STAGES), 1))


def dormand_prince(
    system: Smooth, state: State, until: float, *, tolerance: float = 1e-6, first: float = 1e-3
) -> tuple[State, list[State]]:
    """The state at time `until` [s] and all states on the way, in steps whose estimated error in any joint coordinate
    or velocity is within `tolerance` of its size or, below one, of one.

    Raises ValueError where the steps would have to vanish, as where the motion is not smooth.
    """
    path, h = [state], first
    while state.time < until * (1.0 - 1e-14):
        h = min(h, until - state.time)
        rates = system.stages(state, h, STAGES)
        error = h * np.tensordot(ERROR, rates, 1)
        scale = tolerance * np.maximum(1.0, np.abs(state.v))
        size = float(np.sqrt(np.mean((error / scale) ** 2)))
        if not np.isfinite(size) or size > 1.0:
            h *= max(SHRINK, SAFETY * size**-0.2) if np.isfinite(size) else SHRINK
            if h < 1e-12 * max(1.0, until):
                raise ValueError(f"the motion is not smooth at {state.time:.6g} s; use the default step there")
            continue
        # the last stage stands at the step's end: its row of the table is the fifth-order rule
        state = system.moved(state, h, np.tensordot(np.array([*STAGES[-1], 0.0]), rates, 1))
        path.append(state)
        h *= min(GROW, SAFETY * max(size, 1e-12) ** -0.2)
    return state, path
