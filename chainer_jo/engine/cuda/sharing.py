"""One GPU for several threads, each with a run: a stream each, and turns at what the process has
once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Held by a thread that builds a run, runs a step eagerly, captures one or calls cuDNN: plans,
#: cuDNN's handle and the garbage collector are the whole process's. Replays do not hold it.
eager = threading.RLock()

_thread = threading.local()
_replays_may_begin = threading.Event()
_replays_may_begin.set()


@contextmanager
def own_stream(cupy: Any) -> Iterator[None]:
    """Context in which this thread works on its own stream of the current device.

    The thread keeps the stream for its next run, which reuses the memory of this one: CuPy's pool
    has an arena per stream. ``stream.use()`` would not do, since the next ``with stream:`` ends
    with the default stream.
    """
    if not hasattr(_thread, "stream"):
        _thread.stream = cupy.cuda.Stream(non_blocking=True)
    with _thread.stream:
        yield


def wait_for_measurement() -> None:
    """Waits while another thread is in `undisturbed`."""
    _replays_may_begin.wait()


@contextmanager
def undisturbed(cuda: Any) -> Iterator[None]:
    """Context of a measurement: the GPU is idle at its beginning, and no replay begins within it.
    Its caller holds `eager`."""
    _replays_may_begin.clear()
    try:
        cuda.Device().synchronize()
        yield
    finally:
        _replays_may_begin.set()
