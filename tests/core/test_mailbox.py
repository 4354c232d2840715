"""Mailboxes: no message is torn, nobody waits, and no memory is left behind, whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mailbox import SEGMENTS, Mailboxes

ROOT = Path(__file__).parents[2]
SIZE = 61
HAMMER = """
import sys
from array import array
from core.mailbox import Mailboxes
boxes = Mailboxes({"a": 61, "b": 3}, sys.argv[1])
box, stop = boxes["a"], boxes.reader("b")
number = 0.0
while not stop.fresh():
    number += 1.0
    box.write(memoryview(array("d", [number]) * 61))
boxes.close()
"""
OWNER = """
import sys
from core.mailbox import Mailboxes
boxes = Mailboxes({"a": 3})
print(boxes.name, flush=True)
HOW
"""


def message(*values: float) -> memoryview:
    return memoryview(array("d", values))


def started(script: str, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def there(name: str) -> bool:
    """Whether a segment is there, found without asking a resource tracker."""
    return (SEGMENTS / name).exists()


needs_a_list = pytest.mark.skipif(not SEGMENTS.is_dir(), reason="this system does not list its shared memory")


@given(st.lists(st.one_of(st.none(), st.tuples(*[st.floats(allow_nan=False)] * 3)), max_size=20))
def test_readers_get_the_latest_message_once(happenings):
    """A loop that is slower than another must see the newest, and know when there is nothing new."""
    with Mailboxes({"first": 2, "a": 3}) as boxes:
        reader, late, last, new = boxes.reader("a"), boxes.reader("a"), (0.0, 0.0, 0.0), False
        for values in happenings:
            if values is None:
                assert reader.fresh() is new
                assert tuple(reader.message) == last
                new = False
            else:
                boxes["a"].write(message(*values))
                last, new = values, True
        assert late.fresh() is (last in happenings)
        assert tuple(late.message) == last
        assert not boxes.reader("first").fresh()


def test_a_writer_that_stops_half_way_leaves_the_message_before():
    """A process may be killed or put aside at any instruction; readers go on with what is whole."""
    with Mailboxes({"a": 3}) as boxes:
        box, reader = boxes["a"], boxes.reader("a")
        box.write(message(1, 2, 3))
        head, slot = box.heads[0], box.messages[0]
        head[0] = 2
        slot[:2] = message(7, 8)
        assert reader.fresh()
        assert list(reader.message) == [1, 2, 3]
        # a processor may show the stamps before the message: the checksum knows
        head[2], box.sequence[0] = 2, 2
        assert not reader.fresh()
        assert list(reader.message) == [1, 2, 3]
        box.write(message(4, 5, 6))
        assert reader.fresh()
        assert list(reader.message) == [4, 5, 6]


def test_two_processes_hammering_never_tear_a_message():
    """The promise that everything else stands on: half a map of one step and half of another would be a kick."""
    with Mailboxes({"a": SIZE, "b": 3}) as boxes:
        reader = boxes.reader("a")
        writer = started(HAMMER, boxes.name)
        seen, before, until = 0, 0.0, time.monotonic() + 60.0
        while seen < 20_000 and time.monotonic() < until:
            if reader.fresh():
                values = set(reader.message)
                assert len(values) == 1
                (number,) = values
                assert number > before
                seen, before = seen + 1, number
        boxes["b"].write(message(1, 1, 1))
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0
        assert errors == ""
        assert seen > 1000


@needs_a_list
@pytest.mark.parametrize("how", ["boxes.close()", "pass", "raise SystemExit", "sys.stdout.close(); raise ValueError"])
def test_memory_goes_with_its_owner_without_a_word(how):
    """Blender runs for days: segments must not pile up, and Python's resource tracker must not complain in its
    terminal."""
    process = started(OWNER.replace("HOW", how))
    name, errors = process.communicate(timeout=60)
    assert name.startswith("adgrab-")
    assert not there(name.strip())
    assert errors == "" or "ValueError" in errors
    assert "resource_tracker" not in errors


@needs_a_list
def test_whoever_comes_next_removes_what_a_killed_owner_left():
    """A crash of Blender cannot clean up after itself."""
    process = started(OWNER.replace("HOW", "import time; time.sleep(60)"))
    name = process.stdout.readline().strip()
    heir = Mailboxes({"a": 3}, name)
    assert there(name)
    os.kill(process.pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert errors == ""
    with Mailboxes({"a": 3}) as boxes:
        assert not there(name)
        assert boxes.name != name
    heir.unlink()
    heir.close()


@needs_a_list
def test_an_heir_removes_what_its_owner_left():
    """Loops that outlive Blender are the only ones there."""
    boxes = Mailboxes({"a": 3})
    heir = Mailboxes({"a": 3}, boxes.name)
    heir.unlink()
    assert not there(boxes.name)
    boxes["a"].write(message(1, 2, 3))
    assert heir.reader("a").fresh()
    heir.close()
    boxes.close()


def test_names_are_unique_and_wrong_ones_refused():
    """Two Blenders at once must not hear each other."""
    with Mailboxes({"a": 3}) as one, Mailboxes({"a": 3}) as other:
        assert one.name != other.name
        with pytest.raises(ValueError, match="give its sizes"):
            Mailboxes({"a": 100_000}, one.name)
        # who only opens it does not remove it
        Mailboxes({"a": 3}, one.name).close()
        Mailboxes({"a": 3}, one.name).close()
    with pytest.raises(FileNotFoundError):
        Mailboxes({"a": 3}, one.name)
