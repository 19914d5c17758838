"""A training step as a CUDA graph: run eagerly a few times, then captured and replayed."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

#: Number of eager runs before the capture, which compile kernels, plan and allocate memory.
WARM_UP = 3

#: Memory pools of deleted steps whose memory was partly in use.
_dropped: list[Any] = []

_logger = logging.getLogger(__name__)


@dataclass
class _Capture:
    """The graph for certain shapes, and its arrays."""

    arrays: tuple[Any, ...]
    runs: int = 0
    graph: Any = None


class GraphStep:
    """Calls a function of device arrays through a CUDA graph per combination of shapes.

    The function has to do the same work at every call with the same shapes, and leave its results
    in arrays that outlive the call: its Python code runs during capture, not during replay. After a
    change, such as another number in a Python variable, call `forget`. If CuPy or CUDA cannot
    capture the function, it runs eagerly for good, with one notice.

    The graph has its own memory pool: CuPy's would reuse memory that is free in Python but written
    by every replay.

    Parameters
    ----------
    step : the function.
    cupy : the module, or its substitute in a test.

    Attributes
    ----------
    replays : number of calls so far that were replays.
    """

    def __init__(self, step: Callable[..., None], cupy: Any) -> None:
        self._step = step
        self._cupy = cupy
        self._stream = cupy.cuda.Stream()  # blocking: it and the default stream wait for each other
        self._pool = cupy.cuda.MemoryPool()
        weakref.finalize(self, _give_back, self._pool).atexit = False
        self._capturable = True
        self.replays = 0
        self._captures: dict[tuple, _Capture] = {}

    def forget(self) -> None:
        """Discards all graphs: the next calls warm up and capture again."""
        self._captures.clear()

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Runs the function on copies of the arrays, and returns the copies, which the next call
        overwrites."""
        kinds = tuple((a.shape, a.dtype) for a in arrays)
        if kinds not in self._captures:
            self._captures[kinds] = _Capture(tuple(self._cupy.empty(*kind) for kind in kinds))
        capture = self._captures[kinds]
        with self._stream:
            for copy, array in zip(capture.arrays, arrays, strict=True):
                copy[...] = array
            if capture.graph is None:
                self._run_or_capture(capture)
            if capture.graph is not None:
                capture.graph.launch()
                self.replays += 1
        capture.runs += 1
        return capture.arrays

    def _run_or_capture(self, capture: _Capture) -> None:
        if self._capturable and capture.runs >= WARM_UP:
            capture.graph = self._capture(capture.arrays)
        if capture.graph is None:
            with self._own_memory():
                self._step(*capture.arrays)

    def _capture(self, arrays: tuple[Any, ...]) -> Any | None:
        """Captures the step without running it; None if CuPy cannot."""
        gc.collect()
        gc.disable()  # what the collector frees may hold CUDA objects, which a capture forbids
        self._stream.begin_capture()
        try:
            with self._own_memory():
                self._step(*arrays)
            return self._stream.end_capture()
        # Refusals by CuPy (a library that cannot be captured, a copy to the host) and by CUDA. Any
        # other error shows when the step is called.
        except RuntimeError as error:
            self._abandon()
            self._capturable = False
            _logger.warning("%s; running without CUDA graphs", str(error).strip().split("\n")[0])
            return None
        except BaseException:
            self._abandon()
            raise
        finally:
            gc.enable()

    def _abandon(self) -> None:
        """Ends a failed capture, for which CUDA raises again."""
        with suppress(self._cupy.cuda.runtime.CUDARuntimeError):
            self._stream.end_capture()

    def _own_memory(self) -> AbstractContextManager:
        return self._cupy.cuda.using_allocator(self._pool.malloc)


def _give_back(pool: Any) -> None:
    """Frees a deleted step's pool, and earlier pools whose arrays are gone by now.

    CuPy's pools do not free their memory when deleted, and the garbage collector may delete a step
    before the step's arrays.
    """
    _dropped.append(pool)
    for each in _dropped:
        each.free_all_blocks()
    _dropped[:] = [each for each in _dropped if each.total_bytes()]
