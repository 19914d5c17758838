"""Loads cuDNN 9 through NVIDIA's cudnn-frontend, or names the missing package."""

from __future__ import annotations

import contextlib
import importlib
from types import ModuleType
from typing import Any

from chainer_jo.engine.interface import Unavailable

#: Minimum versions.
MIN_CUDNN = 91000
MIN_CUPY = 14
#: Minimum compute capability, with matrix instructions, by precision.
MIN_CAPABILITY = {"fp32": 0, "tf32": 80, "mixed": 70}

#: Libraries that cuDNN loads by name; CuPy's own finder locates them in pip wheels or the system.
_LIBRARIES = ("cudart", "nvrtc", "cublasLt", "cudnn")


def load(precision: str) -> tuple[ModuleType, Any]:
    """Module ``cudnn`` and a handle on the current device.

    Raises Unavailable if CuPy, a GPU, cudnn-frontend or cuDNN is missing or does not match, or the
    GPU does not have the precision.
    """
    cupy = _cupy(precision)
    cuda = cupy.cuda.runtime.runtimeGetVersion() // 1000  # that CuPy was built for: 12 or 13
    _preload()
    try:
        library = importlib.import_module("cudnn")
        version = library.backend_version()
    except (ImportError, AttributeError) as error:
        raise Unavailable(
            f"NVIDIA's cudnn-frontend is not installed ({error}); pip install nvidia-cudnn-frontend"
        ) from error
    except (OSError, RuntimeError) as error:
        raise Unavailable(
            f"cuDNN 9 is not found ({_first_line(error)}); pip install nvidia-cudnn-cu{cuda}"
        ) from error
    if version < MIN_CUDNN:
        raise Unavailable(
            f"cuDNN {dotted(version)} is too old, expected {dotted(MIN_CUDNN)} or newer; "
            f"pip install --upgrade nvidia-cudnn-cu{cuda}"
        )
    try:
        return library, library.create_handle()
    except RuntimeError as error:
        raise Unavailable(
            f"cuDNN {dotted(version)} does not work with this GPU and its CUDA {cuda} driver "
            f"({_first_line(error)}); pip install --upgrade nvidia-cudnn-cu{cuda}"
        ) from error


def machine(library: ModuleType, cupy: ModuleType) -> str:
    """Name of the current GPU and version of cuDNN."""
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return f"{properties['name'].decode()}, cuDNN {dotted(library.backend_version())}"


def _cupy(precision: str) -> ModuleType:
    packages = "pip install 'cupy-cuda12x[ctk]' for CUDA 12, 'cupy-cuda13x[ctk]' for CUDA 13"
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise Unavailable(f"CuPy cannot be imported ({_first_line(error)}); {packages}") from error
    if int(cupy.__version__.split(".")[0]) < MIN_CUPY:
        raise Unavailable(
            f"CuPy {cupy.__version__} is too old, expected {MIN_CUPY} or newer; {packages}"
        )
    try:
        capability = int(cupy.cuda.Device().compute_capability)
    except RuntimeError as error:
        raise Unavailable(f"CuPy finds no CUDA GPU ({_first_line(error)})") from error
    needed = MIN_CAPABILITY[precision]
    if capability < needed:
        raise Unavailable(
            f"this GPU has compute capability {capability / 10:.1f}, "
            f"{precision} needs {needed / 10:.1f}"
        )
    return cupy


def _preload() -> None:
    """Loads the libraries that cuDNN opens by name, since it does not search pip wheels."""
    with contextlib.suppress(ImportError):
        pathfinder = importlib.import_module("cuda.pathfinder")
        for name in _LIBRARIES:
            # A missing library is reported by its first user, if it is needed at all.
            with contextlib.suppress(Exception):
                pathfinder.load_nvidia_dynamic_lib(name)


def dotted(version: int) -> str:
    """Version 90100 as 9.1.0."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0]
