"""Patches for Chainer 7.8.1, the last release, on NumPy 2, Python 3.12+, setuptools 82 and CuPy 14.

The package's ``__init__`` imports this module before anything imports chainer; its parts'
``__init__`` do, too, as a folder chainer_jo beside a script hides the package's. Each function
mends one thing where it is broken. Chainer itself is imported when it is first needed: it takes a
second.
"""

import ctypes
import importlib.util
import os
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any


class _CuPyWithoutDriver(types.ModuleType):
    def __getattr__(self, name: str) -> None:
        # Some look at `__file__` and the like of all modules.
        error = AttributeError if name.startswith("__") else ImportError
        raise error("there is no NVIDIA driver on this machine")


def supply_numpy_names() -> None:
    """``float`` is read by chainer.functions.resize_images, ``sctypes`` by as_strided at import;
    NumPy 1.24 and 2.0 removed them."""
    import numpy  # half a second, in which Ctrl-C would show a traceback

    sctypes = {
        "int": [numpy.int8, numpy.int16, numpy.int32, numpy.int64],
        "uint": [numpy.uint8, numpy.uint16, numpy.uint32, numpy.uint64],
        "float": [numpy.float16, numpy.float32, numpy.float64, numpy.longdouble],
        "complex": [numpy.complex64, numpy.complex128, numpy.clongdouble],
        "others": [bool, object, bytes, str, numpy.void],
    }
    for name, value in {"float": float, "sctypes": sctypes}.items():
        vars(numpy).setdefault(name, value)


def replace_environment_check() -> None:
    """chainer._environment_check without imports of numpy.distutils, which Python 3.12 lacks, and
    pkg_resources. It only warns of CuPy other than version 7, and of NumPy on macOS's Accelerate.
    """
    module = types.ModuleType("chainer._environment_check")
    vars(module)["check"] = lambda: None
    sys.modules.setdefault(module.__name__, module)


def supply_pkg_resources() -> None:
    """pkg_resources, which setuptools 82 removed, for chainer.testing and chainer.gradient_check.

    Only decorators of Chainer's own tests use it, so it may be empty.
    """
    try:
        installed = importlib.util.find_spec("pkg_resources") is not None
    except ImportError:
        installed = False
    if not installed:
        sys.modules["pkg_resources"] = types.ModuleType("pkg_resources")


def has_cuda_driver() -> bool:
    """True if NVIDIA's driver is installed; not initialised here, so that a process can fork."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def why_no_gpu() -> str | None:
    """Reason, in one line, why Chainer uses no GPU despite NVIDIA's driver; None if it uses one, or
    without a driver."""
    if not has_cuda_driver():
        return None
    from chainer.backends import cuda

    if cuda.available:
        return None
    error = cuda._resolution_error
    if isinstance(error, OSError) and error.filename:
        return (
            f"{error.filename}: {error.strerror}, expected a folder that CuPy can keep compiled "
            "kernels in; CUPY_CACHE_DIR names it"
        )
    reason = str(error).strip().split("\n")[0]
    if isinstance(error, ImportError) and error.name == "cupy":
        reason += "; pip install 'chainer_jo[gpu]' for CUDA 12, 'chainer_jo[gpu13]' for CUDA 13"
    return reason


@contextmanager
def cupy_as_chainer_knows_it() -> Iterator[None]:
    """Hides from Chainer, written for CuPy 7, what misleads it in CuPy 14 during its import:

    - CuPy itself if there is no driver, since chainer.backends.cuda.available takes a CuPy that can
      be imported for a working GPU;
    - the lack of cuDNN bindings, of which Chainer would warn, advising to reinstall CuPy;
    - CuPy's warning that NCCL is not installed, when Chainer only checks.
    """
    os.environ.setdefault("CHAINER_CUDNN", "0")
    real = sys.modules.get("cupy")
    hide = not has_cuda_driver()
    if hide:
        sys.modules["cupy"] = _CuPyWithoutDriver("cupy")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\s*nccl library could not be loaded")
            yield
    finally:
        if hide:
            del sys.modules["cupy"]
            if real is not None:
                sys.modules["cupy"] = real


class _ChainerFinder(MetaPathFinder):
    """Has Chainer imported within `cupy_as_chainer_knows_it`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "chainer" else None
        if spec and isinstance(loader := spec.loader, SourceFileLoader):
            execute = loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                supply_numpy_names()
                with cupy_as_chainer_knows_it():
                    execute(module)

            vars(loader)["exec_module"] = exec_module
        return spec


# Weights are float32 and --precision sets the type of the activations, whatever the shell says.
os.environ.pop("CHAINER_DTYPE", None)
replace_environment_check()
supply_pkg_resources()
sys.meta_path.insert(0, _ChainerFinder())
