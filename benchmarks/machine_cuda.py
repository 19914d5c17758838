"""What the GPU is, and what it can do at best: matrix products and copies in its memory."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from importlib import metadata

from chainer_jo.errors import UserError

SIDE = 8192
COPIED = 1 << 30
REPEATS = 11
#: CuPy's compute types (cupy/_core/_routines_linalg.pxd), which have no public names.
COMPUTE_DEFAULT, COMPUTE_PEDANTIC, COMPUTE_TF32 = 1, 2, 7
PACKAGES = (
    "chainer", "cupy-cuda12x", "cupy-cuda13x", "nvidia-cudnn-frontend", "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13", "numpy", "torch",
)  # fmt: skip


def _cupy():
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except (ImportError, RuntimeError) as error:
        raise UserError(f"--device cuda: no CUDA GPU that CuPy can use ({error})") from error
    return cupy


def describe(threads: int) -> dict:
    """Name and size of the GPU, versions of driver and packages."""
    cupy = _cupy()
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(0)
    return {
        "gpu": properties["name"].decode(),
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "multiprocessors": properties["multiProcessorCount"],
        "memory_gb": properties["totalGlobalMem"] / 1e9,
        "cuda_driver": runtime.driverGetVersion(),
        "cuda_runtime": runtime.runtimeGetVersion(),
        "threads": threads,
        "packages": {name: _version(name) for name in PACKAGES},
        "cudnn": _cudnn(),
    }


def peaks() -> dict:
    """Measured on random data: bytes/s of a copy, read and written; FLOP/s of matrix products."""
    cupy = _cupy()
    from cupy._core import set_compute_type

    source = cupy.random.random(COPIED // 8)
    target = cupy.empty_like(source)
    found = {"copy": 2 * COPIED / _seconds(cupy, lambda: cupy.copyto(target, source))}
    a = cupy.random.standard_normal((SIDE, SIDE), dtype=cupy.float32)
    for name, compute_type in (("fp32", COMPUTE_PEDANTIC), ("tf32", COMPUTE_TF32)):
        set_compute_type(cupy.float32, compute_type)
        found[name] = 2 * SIDE**3 / _seconds(cupy, lambda: a @ a)
    set_compute_type(cupy.float32, COMPUTE_DEFAULT)
    half = a.astype(cupy.float16)
    found["fp16"] = 2 * SIDE**3 / _seconds(cupy, lambda: half @ half)
    return found


def _seconds(cupy, function: Callable) -> float:
    """Median time of a function on the device."""
    times = []
    for _ in range(REPEATS):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        function()
        last.record()
        last.synchronize()
        times.append(cupy.cuda.get_elapsed_time(first, last) / 1e3)
    return statistics.median(times[1:])


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cudnn() -> int | None:
    try:
        import cudnn

        return cudnn.backend_version()
    except (ImportError, OSError, RuntimeError):
        return None
