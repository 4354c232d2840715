"""Subsystems that exchange states at their cut joints: the motion of the whole, in any number of processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest

from core.distributed import PATIENCE, SubsystemError, Workers, simulate
from core.linkage import Closure, Linkage, LinkageError
from core.mechanisms import random_tree
from core.mechanisms_closed import FOUR_BAR_TORQUE, bricard, four_bar, n_four_bar, n_four_bar_velocity
from core.mechanisms_held import swing
from core.model import State, compile_model
from core.smooth import rk4
from core.subsystems import Subsystem, split
from core.threads import one_blas_thread

H = 1e-3
TORQUE = np.array([FOUR_BAR_TORQUE, 0.0, 0.0])
METHODS = {
    "projected": (Closure(), True), "stabilised": (Closure(baumgarte=10.0), False),
    "compliant": (Closure(method="compliance", stiffness=1e6, damping=10.0), False),
}  # fmt: skip
"""How the loop is kept, and whether steps end with closing it."""


def closed_by(closure: Closure, linkage: Linkage) -> Linkage:
    for link in linkage.virtual_links():
        link.closure = closure
    return linkage


def whole(linkage: Linkage, state: State, steps: int, **system) -> tuple[np.ndarray, np.ndarray]:
    """The path of the undivided mechanism."""
    model, path = compile_model(linkage), [state]
    with one_blas_thread():
        for _ in range(steps):
            path.append(rk4(model, path[-1], H, **system))
    return np.array([s.q for s in path]), np.array([s.v for s in path])


def difference(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> float:
    return max(float(np.abs(x - y).max()) for x, y in zip(a, b))


def four_bar_parts(method: str) -> tuple[tuple[Subsystem, ...], Linkage, State]:
    closure, projected = METHODS[method]
    linkage = closed_by(closure, four_bar())
    return split(linkage, forces=TORQUE, projected=projected), linkage, compile_model(linkage).rest_state()


def two_trees(seed: int) -> Linkage:
    """Two random trees of all joint kinds, of several clusters, that hold each other twice and the world once."""
    rng, linkage = np.random.default_rng(seed), Linkage()
    for prefix in "AB":
        tree = random_tree(6, rng, branching=0.0, drives=True)
        for link in tree.links():
            link.name = prefix + link.name
        linkage.add(next(tree.world.children()))
    links = list(linkage.links())
    linkage.connect(links[3], links[11], "spherical", at=rng.normal(size=3), name="stiff")
    spring = Closure("compliance", 1e3, 10.0)
    linkage.connect(links[8], links[5], "hinge", at=rng.normal(size=3), name="soft", closure=spring)
    linkage.connect(None, links[5], "universal", at=rng.normal(size=3), name="ground")
    return linkage


@pytest.mark.parametrize("method", METHODS)
def test_the_four_bar_moves_as_an_undivided_one(method):
    """The paper's left and right chain, by both methods: only rounding may tell them from the whole."""
    parts, linkage, start = four_bar_parts(method)
    assert [(part.name, part.model.nv) for part in parts] == [("crank", 2), ("rocker", 1)]
    there = whole(linkage, start, 100, forces=lambda *_: TORQUE, projected=METHODS[method][1])
    # a spring of 1e6 N/m makes 1e-10 N of what rounding makes of its length
    assert difference(simulate(parts, start, H, 100), there) < (1e-10 if method == "compliant" else 1e-12)


@pytest.mark.parametrize(("maker", "steps"), [(lambda: n_four_bar(2), 100), (bricard, 30)])
def test_any_number_of_subsystems(maker, steps):
    """Three chains in a row, the middle one in two loops; and a single one that the world closes."""
    linkage = maker()
    model = compile_model(linkage)
    v = np.zeros(model.nv) if model.nv == 5 else n_four_bar_velocity(linkage)
    start = State(model.coordinates.zero(), v)
    assert difference(simulate(split(linkage), start, H, steps), whole(linkage, start, steps)) < 1e-11


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_subsystems_of_any_joints_and_both_methods_at_once(seed):
    """Quaternions, springs, dampers, a loop to the world, projected and compliant joints between the same two trees."""
    linkage = two_trees(seed)
    start = compile_model(linkage).rest_state()
    there = whole(linkage, start, 40)
    assert np.abs(there[1][-1]).max() > 0.01
    assert difference(simulate(split(linkage), start, H, 40), there) < 1e-10 * max(1.0, np.abs(there[1]).max())


@pytest.mark.parametrize("method", METHODS)
def test_two_processes_move_as_one(method):
    """To the last digit: the same operations in the same order, wherever they are done."""
    parts, _, start = four_bar_parts(method)
    assert difference(simulate(parts, start, H, 30), simulate(parts, start, H, 30, processes=True)) == 0.0
    assert not multiprocessing.active_children()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["projected", "compliant"])
def test_a_driven_four_bar_in_two_processes_are_those_in_one(method):
    """The paper's study, 0.4 s at a fixed step of 1 ms (its benchmark takes 10 s): equal in one process and two, and to
    the undivided four-bar but for rounding, which a driven mechanism may magnify."""
    parts, linkage, start = four_bar_parts(method)
    one = simulate(parts, start, H, 400)
    assert difference(one, simulate(parts, start, H, 400, processes=True)) <= 1e-12
    there = whole(linkage, start, 400, forces=lambda *_: TORQUE, projected=METHODS[method][1])
    assert difference(one, there) < 1e-7


def failing(harm: Callable[[BaseProcess], None]) -> tuple[str, float, str]:
    """The error of a long run whose second process is harmed on the way, how long after [s], and the memory's name."""
    parts, _, start = four_bar_parts("projected")
    with Workers(parts, start, H, 100_000) as workers:
        harmed = []

        def strike() -> None:
            while workers.awaited[1] > time.monotonic() + PATIENCE:  # still starting
                time.sleep(0.05)
            harmed.append(time.monotonic())
            harm(workers.processes[1])

        threading.Thread(target=strike).start()
        with pytest.raises(SubsystemError) as failure:
            workers.run()
    return str(failure.value), time.monotonic() - harmed[0], workers.memory.name


def gone(memory: str) -> bool:
    try:
        SharedMemory(memory).close()
    except FileNotFoundError:
        return True
    return False


def test_a_process_that_dies_is_named_and_nothing_is_left():
    """A killed subsystem must end the run at once, not leave it waiting, nor memory or processes behind."""
    message, seconds, memory = failing(lambda process: process.kill())
    assert message == "subsystem 'rocker': its process has ended"
    assert seconds < 2.0
    assert gone(memory)
    assert not multiprocessing.active_children()


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
def test_a_process_that_hangs_is_named_and_nothing_is_left():
    """One that lives and says nothing is as bad as a dead one."""
    message, seconds, memory = failing(lambda process: os.kill(process.pid, signal.SIGSTOP))
    assert message == f"subsystem 'rocker' has not answered for {PATIENCE:g} s"
    assert seconds < 2.0
    assert gone(memory)
    assert not multiprocessing.active_children()


def test_what_goes_wrong_in_a_process_is_told():
    """The reason is in the process that failed; the coordinator must not hide it."""
    parts, _, start = four_bar_parts("compliant")
    object.__setattr__(parts[1], "forces", np.zeros(5))
    with pytest.raises(SubsystemError, match=r"subsystem 'rocker': ValueError: .*shape"):
        simulate(parts, start, H, 3, processes=True)
    assert not multiprocessing.active_children()


def test_keyed_links_are_refused():
    """Their motion is no subsystem's state."""
    with pytest.raises(LinkageError, match="'swing' is keyed"):
        split(swing())
