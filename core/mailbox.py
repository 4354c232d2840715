"""Shared memory without locks: loops tell each other their latest numbers, and nobody waits for anybody.

A mailbox has one writer and any number of readers. Its two slots are written in turns, each stamped before and after
with the number of the message (a seqlock; Lameter 2005, Effective synchronization on Linux/NUMA systems), so that a
reader is disturbed only by a writer that overtakes it twice while it copies. Messages carry a checksum as well: stamps
alone rely on processors that keep the order of writes, and not all do.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import weakref
import zlib
from array import array
from collections.abc import Mapping
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

PREFIX = "adgrab"
SEGMENTS = Path("/dev/shm")
"""Where Linux lists shared memory."""
HEAD = 3
"""Numbers before a slot's message: its stamps and checksum."""
TRIES = 8
"""A reader that is overtaken so often keeps what it has."""


class Mailbox:
    """The latest of messages of `size` numbers, in `words` of eight bytes; use it to write, or through a `Reader`."""

    def __init__(self, words: memoryview, size: int) -> None:
        self.size = size
        self.sequence = words[:1].cast("B").cast("Q")
        self.heads, self.messages = [], []
        for slot in range(2):
            start = 1 + slot * (HEAD + size)
            self.heads.append(words[start : start + HEAD].cast("B").cast("Q"))
            self.messages.append(words[start + HEAD : start + HEAD + size].cast("B").cast("d"))

    @staticmethod
    def words(size: int) -> int:
        """How many words a mailbox for messages of `size` numbers takes."""
        return 1 + 2 * (HEAD + size)

    def write(self, message: memoryview) -> None:
        """Tells a message, a memoryview of `size` doubles."""
        number = self.sequence[0] + 1
        head = self.heads[number & 1]
        head[0] = number
        self.messages[number & 1][:] = message
        head[1] = zlib.crc32(message)
        head[2] = number
        self.sequence[0] = number


class Reader:
    """Reads a mailbox: after `fresh()`, `message` (size,) holds the latest whole message, zeros before the first."""

    def __init__(self, box: Mailbox) -> None:
        self.box, self.number, self._sequence = box, 0, box.sequence
        self.message, self._spare = (memoryview(array("d", bytes(8 * box.size))) for _ in range(2))

    def fresh(self) -> bool:
        """Whether there was a message that has not been read; it is now in `message`."""
        if self._sequence[0] == self.number:
            return False
        box = self.box
        for _ in range(TRIES):
            number = box.sequence[0]
            head, spare = box.heads[number & 1], self._spare
            check = head[1]
            if head[2] != number:
                continue
            spare[:] = box.messages[number & 1]
            if head[0] == number and zlib.crc32(spare) == check:
                self.number, self.message, self._spare = number, spare, self.message
                return True
        return False


class Mailboxes:
    """Mailboxes by names, with the sizes of their messages, in one segment of shared memory.

    Without the `name` of a segment one is made, whose owner unlinks it at `close()`, when it is forgotten and at exit;
    should its process be killed, an `heir` who has opened it may `unlink` it, and else who makes the next segment does.
    Raises FileNotFoundError where a segment of that name is not there, ValueError where it is too small.
    """

    def __init__(self, sizes: Mapping[str, int], name: str | None = None) -> None:
        words = sum(Mailbox.words(size) for size in sizes.values())
        if name is None:
            _sweep()
            memory = _segment(f"{PREFIX}-{os.getpid()}-{secrets.token_hex(4)}", 8 * words)
        else:
            memory = _segment(name)
        self.name, self._memory = memory.name, memory
        self._close = weakref.finalize(self, _closed, memory, owner=name is None)
        if len(memory.buf) < 8 * words:
            found = len(memory.buf)
            self.close()
            raise ValueError(f"shared memory {self.name!r} has {found} bytes, {8 * words} are needed; give its sizes")
        self._words = memory.buf[: 8 * words].cast("Q")
        self._boxes, start = {}, 0
        for box, size in sizes.items():
            self._boxes[box] = Mailbox(self._words[start : start + Mailbox.words(size)], size)
            start += Mailbox.words(size)

    def __getitem__(self, box: str) -> Mailbox:
        return self._boxes[box]

    def reader(self, box: str) -> Reader:
        return Reader(self._boxes[box])

    def __enter__(self) -> Mailboxes:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the memory, and removes it where this is its owner; nothing can be read or told any more."""
        for box in getattr(self, "_boxes", {}).values():
            for view in (box.sequence, *box.heads, *box.messages):
                view.release()
        self._boxes = {}
        if hasattr(self, "_words"):
            del self._words
        self._close()

    def unlink(self) -> None:
        """Removes the memory of an owner that has died."""
        _unlink(self._memory)


class _Segment(SharedMemory):
    """Shared memory of which a view may still be held when it is closed: the mapping goes with that."""

    def close(self) -> None:
        with contextlib.suppress(BufferError):
            super().close()


def _segment(name: str, size: int = 0) -> SharedMemory:
    """Opens a segment, or makes one of so many bytes, which no resource tracker knows: it would remove what others
    still use, and complain."""
    how = {"name": name, "create": size > 0, "size": size}
    if sys.version_info >= (3, 13):
        return _Segment(**how, track=False)
    memory = _Segment(**how)
    if os.name == "posix":
        resource_tracker.unregister(memory._name, "shared_memory")
    return memory


def _unlink(memory: SharedMemory) -> None:
    if os.name == "posix" and sys.version_info < (3, 13):
        # unlinking tells the tracker to forget what it must know for that
        resource_tracker.register(memory._name, "shared_memory")
    try:
        memory.unlink()
    except FileNotFoundError:
        if os.name == "posix" and sys.version_info < (3, 13):
            resource_tracker.unregister(memory._name, "shared_memory")


def _closed(memory: SharedMemory, owner: bool) -> None:
    if owner:
        _unlink(memory)
    memory.close()


def _sweep() -> None:
    """Removes what processes that were killed have left behind, where the system lists it."""
    for path in SEGMENTS.glob(f"{PREFIX}-*-*") if SEGMENTS.is_dir() else ():
        try:
            os.kill(int(path.name.split("-")[1]), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except (ValueError, OSError):
            pass
