"""One GPU shared by several threads: a stream for each, a memory budget, and a lock on process-wide
state."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_logger = logging.getLogger(__name__)

#: Held by a thread that builds a run, runs a step eagerly, captures one or calls cuDNN: plans,
#: cuDNN's handle and the garbage collector are the whole process's. Replays do not hold it.
process_lock = threading.RLock()

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
    Its caller holds `process_lock`."""
    _replays_may_begin.clear()
    try:
        cuda.Device().synchronize()
        yield
    finally:
        _replays_may_begin.set()


class MemoryBudget:
    """Places for runs on a GPU: one until a run has measured its memory, then as many as fit.

    Parameters
    ----------
    device : name of the GPU, for the message.
    cupy : the module, or its substitute in a test.
    """

    def __init__(self, device: str, cupy: Any) -> None:
        self._device = device
        self._cupy = cupy
        self._changed = threading.Condition()
        self._running = 0
        self._before = 0
        #: Number of runs that fit; None before the measurement.
        self._fitting: int | None = None
        self._said = False

    @contextmanager
    def reserve(self, deadline: float | None) -> Iterator[bool]:
        """Context of a run, which begins when there is room; yields False if there is none at
        ``deadline``, a value of ``time.monotonic()``. One line says that runs have to wait."""
        with self._changed:
            has_memory = self._fits() or self._wait(deadline)
            self._running += has_memory
            if has_memory and self._fitting is None:
                # The pool keeps the memory of earlier runs, which this run would take unmeasured.
                gc.collect()
                self._cupy.get_default_memory_pool().free_all_blocks()
                self._before = self._free()
        try:
            yield has_memory
        finally:
            with self._changed:
                self._running -= has_memory
                self._changed.notify_all()

    def measure(self) -> None:
        """Computes how many runs fit; called by a run that holds all its memory."""
        with self._changed:
            free = self._free()
            # The first run is alone. Without more memory in use, the next run measures.
            if self._fitting is None and free < self._before:
                self._fitting = 1 + free // (self._before - free)
                self._changed.notify_all()

    def _fits(self) -> bool:
        return self._running < (self._fitting or 1)

    def _wait(self, deadline: float | None) -> bool:
        if self._fitting and not self._said:
            self._said = True
            budget = f"{self._device}: memory for {self._fitting} runs at a time"
            _logger.warning("%s; further runs wait", budget)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        return self._changed.wait_for(self._fits, left)

    def _free(self) -> int:
        """Free bytes on the GPU."""
        return self._cupy.cuda.runtime.memGetInfo()[0]
