"""One BLAS thread while stepping.

The OpenBLAS in numpy's wheels starts threads for matrices of any size (numpy 1.26) or of some hundred rows (later), and
they spin while they wait for each other: with the other cores busy a 26 by 26 solve was measured at 24 ms instead of
28 µs. A step has nothing that large, so it runs on one thread; the setting is put back afterwards, as the process may
be Blender's.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np


@functools.cache
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """OpenBLAS's own functions to read and set its number of threads; None where numpy came without OpenBLAS."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))
            for prefix in ("scipy_openblas", "openblas"):
                for suffix in ("64_", ""):
                    read = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                    write = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                    if read and write:
                        return read, write
    return None


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Runs its block with BLAS on one thread."""
    controls = _controls()
    if controls is None:
        yield
        return
    read, write = controls
    threads = read()
    write(1)
    try:
        yield
    finally:
        write(threads)
