"""A training step as a CUDA graph: run by Python a few times, then replayed by the GPU alone."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

#: Eager runs before the capture: kernels are compiled, cuDNN's plans made, memory taken.
WARM_UP = 3

#: Pools of steps that are gone, some of whose memory was still in use then.
_dropped: list[Any] = []

_logger = logging.getLogger(__name__)


@dataclass
class _Capture:
    """The graph for arrays of certain shapes, and the arrays that it works on."""

    arrays: tuple[Any, ...]
    runs: int = 0
    graph: Any = None


class GraphStep:
    """Calls a function of device arrays through a CUDA graph, one for arrays of the same shapes.

    The function must do the same work whenever it is called with such arrays, and leave its results
    in arrays that outlive the call: what it does in Python happens while it is captured, not when
    it is replayed. Whatever changes that, a number in a Python variable above all, calls for
    `forget`. If CuPy or CUDA cannot capture something in it, it runs eagerly for good, after one
    notice.

    The graph's memory is its own. CuPy's pool would hand out again what is free in Python's eyes
    but is written by every replay.

    Parameters
    ----------
    step : the function.
    cupy : the module, or what stands for it in a test.

    Attributes
    ----------
    replays : calls so far that were replays.
    """

    def __init__(self, step: Callable[..., None], cupy: Any) -> None:
        self._step = step
        self._cupy = cupy
        # A blocking stream: it and the default stream, which all else runs on, wait for each other.
        self._stream = cupy.cuda.Stream()
        self._pool = cupy.cuda.MemoryPool()
        weakref.finalize(self, _give_back, self._pool).atexit = False
        self._capturable = True
        self.replays = 0
        self._captures: dict[tuple, _Capture] = {}

    def forget(self) -> None:
        """Captures anew, after a warm-up, from the next call on."""
        self._captures.clear()

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Runs the function on copies of the arrays, and returns these; the next call overwrites
        them."""
        kinds = tuple((a.shape, a.dtype) for a in arrays)
        if kinds not in self._captures:
            self._captures[kinds] = _Capture(tuple(self._cupy.empty(*kind) for kind in kinds))
        capture = self._captures[kinds]
        with self._stream:
            for held, given in zip(capture.arrays, arrays, strict=True):
                held[...] = given
            if capture.graph is None and self._capturable and capture.runs >= WARM_UP:
                capture.graph = self._capture(capture.arrays)
            if capture.graph is not None:
                capture.graph.launch()
                self.replays += 1
            else:
                with self._own_memory():
                    self._step(*capture.arrays)
        capture.runs += 1
        return capture.arrays

    def _capture(self, arrays: tuple[Any, ...]) -> Any | None:
        """Records a run of the step, without running it; None if CuPy cannot."""
        gc.collect()
        gc.disable()  # what the collector frees may hold CUDA objects, which a capture forbids
        self._stream.begin_capture()
        try:
            with self._own_memory():
                self._step(*arrays)
            return self._stream.end_capture()
        # CuPy's own refusals: a library that it does not let be captured, a copy to the host; and
        # CUDA's. Whatever else is wrong comes out when the step is called.
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
        """Ends a capture that failed, which CUDA calls an error once more."""
        with suppress(self._cupy.cuda.runtime.CUDARuntimeError):
            self._stream.end_capture()

    def _own_memory(self) -> AbstractContextManager:
        return self._cupy.cuda.using_allocator(self._pool.malloc)


def _give_back(pool: Any) -> None:
    """Frees a pool's memory, and that of pools before it which has become free since.

    CuPy's pools do not when they go; and in a web of references that is collected whole, a step
    goes before the arrays that it made.
    """
    _dropped.append(pool)
    for each in _dropped:
        each.free_all_blocks()
    _dropped[:] = [each for each in _dropped if each.total_bytes()]
