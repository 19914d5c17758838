"""Devices by the names of the flag ``--device``: "cpu" and "cuda:N"."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from chainer_jo import _compat
from chainer_jo.errors import UserError

if TYPE_CHECKING:
    import chainer

_logger = logging.getLogger(__name__)


def device_of(name: str) -> chainer.backend.Device:
    """The CPU, or the GPU of the name."""
    import chainer  # a second, which commands that only list or refuse do without

    if name == "cpu":
        return chainer.get_device("@numpy")
    return chainer.get_device(f"@cupy:{name.partition(':')[2] or 0}")


def resolve_device(name: str, here: bool = True) -> str:
    """``cpu`` or ``cuda:N``; a GPU has to exist if runs are computed on this machine."""
    if name == "cpu" or (name == "auto" and not _gpu_is_available()):
        reason = _compat.why_no_gpu() if name == "auto" else None
        if reason:
            _logger.warning("device cpu despite an NVIDIA driver: %s", reason)
        return "cpu"
    kind, _, number = ("cuda" if name == "auto" else name).partition(":")
    if kind != "cuda" or not (number.isdigit() or not number):
        raise UserError(f"--device {name}: expected auto, cpu, cuda or cuda:N")
    if not here:
        return f"cuda:{number or 0}"
    if not _gpu_is_available():
        reason = _compat.why_no_gpu() or "no NVIDIA driver"
        raise UserError(f"--device {name}: expected a CUDA GPU that CuPy can use ({reason})")
    from chainer.backends import cuda

    count = cuda.cupy.cuda.runtime.getDeviceCount()
    if int(number or 0) >= count:
        raise UserError(f"--device {name}: expected cuda:0 to cuda:{count - 1}")
    return f"cuda:{number or 0}"


def _gpu_is_available() -> bool:
    """True if Chainer uses a GPU. Chainer is not loaded where there is no driver."""
    if not _compat.has_cuda_driver():
        return False
    from chainer.backends import cuda

    return cuda.available
