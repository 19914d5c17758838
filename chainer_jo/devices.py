"""Devices by the names of the flag ``--device``, "cpu" and "cuda:N", and the number of cores."""

from __future__ import annotations

import logging
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from chainer_jo import _compat
from chainer_jo.errors import UserError

if TYPE_CHECKING:
    import chainer

_logger = logging.getLogger(__name__)
#: Folder of a container's resource limits.
CGROUP = Path("/sys/fs/cgroup")


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


def usable_cores() -> int:
    """Number of cores in this process's affinity mask, or of all cores on systems without one; at
    most a container's share of processor time, rounded up."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return math.ceil(min(cores, _share(CGROUP)))


def _share(cgroup: Path) -> float:
    """Processor time that a container may use, in cores; infinity without a limit."""
    try:
        if (cgroup / "cpu.max").exists():  # version 2
            quota, period = (cgroup / "cpu.max").read_text().split()
        else:
            names = "cpu.cfs_quota_us", "cpu.cfs_period_us"
            quota, period = ((cgroup / "cpu" / name).read_text() for name in names)
    except OSError:
        return math.inf
    unlimited = quota == "max" or int(quota) < 0
    return math.inf if unlimited else int(quota) / int(period)
