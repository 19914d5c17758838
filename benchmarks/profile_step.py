"""Profile of a training step: time in the backend's operations and around them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy

from chainer_jo.engine.backend import current_backend, use_backend
from chainer_jo.engine.interface import Backend

STEPS = 5


class Timed:
    """A backend that keeps account: seconds, calls, floating-point operations, bytes of arrays."""

    #: A recording is not asked for its operations.
    recordings = None

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.account: dict[str, dict[str, float]] = {}

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._backend, name)
        if not callable(operation):
            return operation

        def timed(*arguments):
            start = time.perf_counter()
            result = operation(*arguments)
            seconds = time.perf_counter() - start
            results = result if isinstance(result, tuple) else (result,)
            entry = self.account.setdefault(
                name, {"seconds": 0.0, "calls": 0, "flop": 0, "bytes": 0}
            )
            entry["seconds"] += seconds
            entry["calls"] += 1
            entry["flop"] += _flop(name, arguments, results)
            entry["bytes"] += _bytes(name, arguments, results)
            return result

        return timed


def profile(step: Callable[[], None]) -> dict:
    """Means per step over `STEPS` steps, in which Chainer calls every operation.

    Returns {"seconds", "operations": {name: {"seconds", "calls", "flop", "bytes"}}}; bytes are
    those of the arrays that an operation reads and writes, each counted once. "recorded_s" is what
    the calls take that a step repeats otherwise.
    """
    recorded = _recorded_seconds()
    timed = Timed(current_backend())
    use_backend(timed)
    step()  # makes what a recording has of its own
    timed.account.clear()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    seconds = (time.perf_counter() - start) / STEPS
    use_backend(timed._backend)
    operations = {
        name: {key: value / STEPS for key, value in entry.items()}
        for name, entry in timed.account.items()
    }
    return {"seconds": seconds, "operations": operations, "recorded_s": recorded}


def _recorded_seconds() -> float | None:
    """Time of the calls of a recorded step alone; None where none is recorded."""
    (recording,) = (current_backend().recordings or {None: None}).values()
    if recording is None:
        return None
    start = time.perf_counter()
    for _ in range(STEPS):
        for call in recording.calls:
            call()
    return (time.perf_counter() - start) / STEPS


def _bytes(name: str, arguments: tuple, results: tuple) -> int:
    """Bytes of the arrays that are read and written."""
    if name == "batch_norm_relu_grad":  # what ReLU let through is read from ``saved``, not from y
        x, _, gamma, gy, saved, *rest = arguments
        arguments = (x, gamma, gy, *saved, *rest)
    arrays = (*arguments, *results)
    return sum(array.nbytes for array in arrays if isinstance(array, numpy.ndarray))


def _flop(name: str, arguments: tuple, results: tuple) -> int:
    """Multiplications and additions of a convolution or a product of matrices; 0 for the rest."""
    if name == "conv2d":
        return 2 * results[0].size * arguments[1][0].size
    if name == "conv2d_grad_input":
        return 2 * arguments[0].size * arguments[1][0].size
    if name == "conv2d_grad_weight":
        return 2 * arguments[1].size * results[0][0].size
    if name == "matmul":
        return 2 * results[0].size * arguments[0].shape[1]
    return 0
