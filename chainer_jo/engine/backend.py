"""The current backend, and the choice of the fastest; without a backend, stock Chainer computes.

The functions of `chainer_jo.engine` ask `current_backend()` at every call and keep the backend for
the backward pass.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import chainer
import numpy
from chainer.backends import cuda

from chainer_jo.engine.cpu.buffers import keep_freed_memory
from chainer_jo.engine.interface import PRECISIONS, Backend, Unavailable
from chainer_jo.errors import UserError

_logger = logging.getLogger(__name__)


def current_backend() -> Backend | None:
    """The backend in use; None means stock Chainer functions."""
    return chainer.config.jo_backend


def use_backend(backend: Backend | None) -> None:
    """Sets the backend of this process; `chainer.using_config("jo_backend", backend)` sets it for a
    block of code."""
    # Chainer's configuration takes any name.
    chainer.global_config.jo_backend = backend  # type: ignore[attr-defined]


use_backend(None)


def choose_backend(device: Any, precision: str = "fp32", engine: str = "auto") -> Backend | None:
    """Fastest backend for a device, or None for stock Chainer.

    A process has one backend per device and precision, whose plans serve every run.

    Parameters
    ----------
    device : chainer.backend.Device or anything `chainer.get_device` takes, or "cpu", or "cuda".
    precision : one of PRECISIONS.
    engine : one of ENGINES. "auto" takes the device's own library, or stock Chainer with a notice.

    Raises UserError for an unknown precision or engine, an engine that is not available, or a
    precision that neither the engine nor stock Chainer has on this machine.
    """
    if precision not in PRECISIONS:
        raise UserError(f"precision: {precision!r}, expected one of {', '.join(PRECISIONS)}")
    native = "onednn" if _is_cpu(device) else "cudnn"
    if engine == "stock":
        reason = "stock Chainer computes in fp32"
    elif engine not in ("auto", native):
        raise UserError(f"engine: {engine!r} on device {device}, expected {native!r} or 'stock'")
    else:
        try:
            return _load(native, _number(device), precision)
        except Unavailable as error:
            if engine == native:
                raise UserError(f"engine: {engine!r} is not available: {error}") from error
            reason = str(error)
    if precision != "fp32":
        raise UserError(f"precision: {precision!r} needs the {native} engine, and {reason}")
    if engine == "auto":
        _notice_once(f"{reason}; using stock Chainer functions: same results, slower")
    if native == "onednn":
        keep_freed_memory()
    return None


def _is_cpu(device: Any) -> bool:
    if device in ("cpu", "cuda"):
        return device == "cpu"
    return chainer.get_device(device).xp is numpy


def _number(device: Any) -> int:
    """Number of a GPU, the current one for "cuda"; 0 for a CPU."""
    if _is_cpu(device) or not cuda.available:
        return 0
    gpu = None if device == "cuda" else chainer.get_device(device)
    return (gpu.device if isinstance(gpu, cuda.GpuDevice) else cuda.Device()).id


@functools.cache
def _load(engine: str, number: int, precision: str) -> Backend:
    load: Callable[[str], Backend]
    if engine == "onednn":
        from chainer_jo.engine.cpu.onednn import load
    else:
        from chainer_jo.engine.cuda.cudnn import load
    return load(precision)


@functools.cache
def _notice_once(text: str) -> None:
    _logger.warning(text)


def is_on_gpu(array: Any) -> bool:
    """True for a CuPy array."""
    return isinstance(array, cuda.ndarray)
