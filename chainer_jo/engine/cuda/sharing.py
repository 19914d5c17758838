"""One GPU for several threads, each with a run: streams, places in its memory, and turns at what
the process has once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_logger = logging.getLogger(__name__)

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


class Room:
    """Places for runs on a GPU: one until the first run has measured what it takes, then all that
    fit.

    Parameters
    ----------
    device : name of the GPU, for the message.
    free : gives the free bytes on the GPU.
    """

    def __init__(self, device: str, free: Callable[[], int]) -> None:
        self._device = device
        self._free = free
        self._places = threading.Semaphore()
        self._before = 0
        #: Number of runs that fit; None before the measurement.
        self._fitting: int | None = None
        self._said = False

    @contextmanager
    def place(self, deadline: float | None) -> Iterator[bool]:
        """Context of a run, which begins when there is room; yields False if there is none at
        ``deadline``, a value of ``time.monotonic()``. One line says that runs have to wait."""
        if not self._places.acquire(blocking=False):
            if self._fitting and not self._said:
                self._said = True
                room = f"{self._device}: memory for {self._fitting} runs at a time"
                _logger.warning("%s; further runs wait", room)
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._places.acquire(timeout=left):
                yield False
                return
        try:
            if self._fitting is None:
                self._before = self._free()
            yield True
        finally:
            self._places.release()

    def measure(self) -> None:
        """Counts the places; called by a run that holds all its memory."""
        if self._fitting is None:  # the caller is alone
            free = self._free()
            more = free // max(self._before - free, 1)
            self._fitting = 1 + more
            if more:
                self._places.release(more)
