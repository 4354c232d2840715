"""Runs the subsystems of a mechanism together, in one process or each in a process of its own.

A coordinator adds what the subsystems tell, always in their order, solves for the forces in the rows of cut joints and
tells all. Numbers pass through shared memory; pipes carry a byte that says they are there, so that a process that ends
is noticed at once. Either way the same operations are done: the trajectories are equal to the last digit.

Processes are started afresh ("spawn"): a script that uses them needs the usual `if __name__ == "__main__":`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory

import numpy as np

from .loops import LeastNorm
from .model import State
from .subsystems import Exchange, Subsystem, Talk
from .threads import one_blas_thread

PATIENCE, STARTING, WATCH = 1.5, 60.0, 0.1
"""A subsystem that does not answer for so long has failed [s]; its process may take longer to start; how often the
coordinator looks."""
DONE, FAILED = 254, 255
"""What a process says besides an `Exchange`."""


class SubsystemError(RuntimeError):
    """A subsystem's process has failed; the message names the subsystem."""


def simulate(
    parts: tuple[Subsystem, ...], state: State, h: float, steps: int, *, processes: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Joint coordinates (steps + 1, nq) and velocities (steps + 1, nv) of a mechanism in its subsystems `parts`, from
    its `state` in steps of `h` seconds. Raises SubsystemError where the process of a subsystem fails or hangs."""
    if processes:
        with Workers(parts, state, h, steps) as workers:
            return workers.run()
    paths = [np.empty((steps + 1, width(part))) for part in parts]
    talks = [part.run(begun(path, part, state), h) for part, path in zip(parts, paths)]
    with one_blas_thread():
        said = [next(talk, None) for talk in talks]
        while said[0] is not None:
            answer = answered(said[0][0], [numbers for _, numbers in said])
            said = [reply(talk, answer) for talk in talks]
    return joined(parts, paths)


def answered(kind: Exchange, told: list[np.ndarray]) -> np.ndarray:
    """The coordinator's answer to what all `told`, see `subsystems.Talk`."""
    total = np.add.reduce(told)
    if kind == Exchange.ENDS:
        return total
    G, wanted = np.split(total, [len(total)], axis=1)
    return np.vstack((-LeastNorm.of(G).solve(wanted), np.abs(wanted).max(0)))


def reply(talk: Talk, answer: np.ndarray) -> tuple[Exchange, np.ndarray] | None:
    """What a subsystem tells after an answer; None at the end."""
    try:
        return talk.send(answer)
    except StopIteration:
        return None


def width(part: Subsystem) -> int:
    """Numbers in a row of a subsystem's path."""
    return part.model.nq + part.model.nv


def begun(path: np.ndarray, part: Subsystem, state: State) -> np.ndarray:
    """The path of a subsystem with the mechanism's state at its start."""
    path[0, : part.model.nq], path[0, part.model.nq :] = state.q[part.q], state.v[part.v]
    return path


def joined(parts: tuple[Subsystem, ...], paths: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities of the mechanism from the subsystems' paths."""
    q, v = zip(*(np.split(path, [part.model.nq], axis=1) for part, path in zip(parts, paths)))
    return np.concatenate(q, axis=1), np.concatenate(v, axis=1)


class Workers:
    """The subsystems in `processes` of their own, for one run; a context that ends them and frees their memory.

    The memory's `views`: what each subsystem tells, the answer to all, and each one's path.
    """

    def __init__(self, parts: tuple[Subsystem, ...], state: State, h: float, steps: int) -> None:
        rows = parts[0].rows
        self.parts = parts
        self.shapes = {
            Exchange.ENDS: (parts[0].ends.count, 22),
            Exchange.PUSH: (rows, rows + 1),
            Exchange.SHUT: (rows, rows + 2),
        }
        told = max(22 * parts[0].ends.count, (rows + 1) * (rows + 2))
        sizes = [told] * (len(parts) + 1) + [(steps + 1) * width(part) for part in parts]
        self.memory = SharedMemory(create=True, size=8 * sum(sizes))
        self.processes: list = []
        self.pipes: list[Connection] = []
        self.awaited, self.late, self.over = (0, np.inf), None, threading.Event()
        try:
            self.views = shared(self.memory, sizes)
            for path, part in zip(self.views[len(parts) + 1 :], parts):
                begun(path.reshape(steps + 1, -1), part, state)
            spawn = multiprocessing.get_context("spawn")
            for index, part in enumerate(parts):
                pipe, end = spawn.Pipe()
                self.pipes.append(pipe)
                given = (part, h, end, self.memory.name, sizes, index)
                self.processes.append(spawn.Process(target=work, args=given, daemon=True, name=part.name))
                self.processes[-1].start()
                end.close()
            threading.Thread(target=self._watch, daemon=True).start()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_) -> None:
        self.over.set()
        for process, pipe in zip(self.processes, self.pipes):
            if process.pid is not None:
                process.kill()
                process.join(1.0)
            pipe.close()
        self.views = None
        self.memory.unlink()
        # an error on its way may still hold an array: then the memory goes with it
        with contextlib.suppress(BufferError):
            self.memory.close()

    def run(self) -> tuple[np.ndarray, np.ndarray]:
        """Answers until all are done; see `simulate`."""
        count = len(self.parts)
        patience = STARTING
        with one_blas_thread():
            while (kind := self._heard(patience)) != DONE:
                shape = self.shapes[kind]
                answer = answered(kind, [view[: shape[0] * shape[1]].reshape(shape) for view in self.views[:count]])
                self.views[count][: answer.size] = answer.reshape(-1)
                for pipe in self.pipes:
                    with contextlib.suppress(OSError):  # who has ended is missed at once
                        pipe.send_bytes(bytes([kind]))
                patience = PATIENCE
        return joined(self.parts, [p.reshape(-1, width(part)) for part, p in zip(self.parts, self.views[count + 1 :])])

    def _heard(self, patience: float) -> int:
        """What all subsystems say, which is the same."""
        for index, (part, pipe) in enumerate(zip(self.parts, self.pipes)):
            self.awaited = index, time.monotonic() + patience
            said = b""
            with contextlib.suppress(EOFError, OSError):
                said = pipe.recv_bytes()
            if self.late is not None:
                raise SubsystemError(f"subsystem {self.parts[self.late].name!r} has not answered for {patience:g} s")
            if not said:
                raise SubsystemError(f"subsystem {part.name!r}: its process has ended")
            if said[0] == FAILED:
                raise SubsystemError(f"subsystem {part.name!r}: {said[1:].decode()}")
        self.awaited = 0, np.inf
        return said[0]

    def _watch(self) -> None:
        """Ends a process that keeps the coordinator waiting for too long, which that notices at once."""
        while not self.over.wait(WATCH):
            index, until = self.awaited
            if time.monotonic() > until:
                self.late = index
                self.processes[index].kill()
                return


def shared(memory: SharedMemory, sizes: list[int]) -> list[np.ndarray]:
    """Arrays of so many numbers, one after the other in the memory."""
    return np.split(np.ndarray(sum(sizes), buffer=memory.buf), np.cumsum(sizes)[:-1])


def work(part: Subsystem, h: float, pipe: Connection, name: str, sizes: list[int], index: int) -> None:
    """The process of the subsystem `index`, until its path is full or the coordinator has gone."""
    memory = SharedMemory(name)
    try:
        with one_blas_thread():
            talk_through(part, h, pipe, shared(memory, sizes), index)
        pipe.send_bytes(bytes([DONE]))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as problem:
        pipe.send_bytes(bytes([FAILED]) + f"{type(problem).__name__}: {problem}".encode())
    memory.close()


def talk_through(part: Subsystem, h: float, pipe: Connection, views: list[np.ndarray], index: int) -> None:
    """Runs a subsystem, what it tells and is told passing through `views`, see `Workers`."""
    count = len(views) // 2
    told, heard = views[index], views[count]
    talk = part.run(views[count + 1 + index].reshape(-1, width(part)), h)
    said = next(talk, None)
    while said is not None:
        kind, numbers = said
        told[: numbers.size] = numbers.reshape(-1)
        pipe.send_bytes(bytes([kind]))
        pipe.recv_bytes()
        rows, columns = numbers.shape
        shape = numbers.shape if kind == Exchange.ENDS else (rows + 1, columns - rows)
        said = reply(talk, heard[: shape[0] * shape[1]].reshape(shape))
