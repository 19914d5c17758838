"""Description of the GPU and its libraries."""

from __future__ import annotations

from machine import version

from chainer_jo.errors import UserError

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
        "packages": {name: version(name) for name in PACKAGES},
        "cudnn": _cudnn(),
    }


def _cudnn() -> int | None:
    try:
        import cudnn

        return cudnn.backend_version()
    except (ImportError, OSError, RuntimeError):
        return None
