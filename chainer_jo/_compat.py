"""What Chainer 7.8.1, the last release, needs on NumPy 2, Python 3.12+, new setuptools and CuPy 14.

The package's ``__init__`` imports this module before anything imports chainer, and this module
imports chainer. Each function mends one thing, where it is broken; its docstring says what Chainer
wants it for and what became of it.
"""

import ctypes
import importlib.util
import os
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy


def empty_module(
    name: str, reason: str, error: type[Exception] = AttributeError
) -> types.ModuleType:
    """A module that can be imported; whoever wants something in it gets an error that says why.

    Where it stays in sys.modules, that is an AttributeError: others look through all modules.
    """

    def absent(attribute: str) -> None:
        raise (AttributeError if attribute.startswith("__") else error)(
            f"no {name}.{attribute}: {reason}"
        )

    module = types.ModuleType(name)
    vars(module)["__getattr__"] = absent
    return module


def supply_numpy_names() -> None:
    """``float`` is read by chainer.functions.resize_images, ``sctypes`` by as_strided at import;
    NumPy 1.24 and 2.0 removed them."""
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
    """Imported by chainer; imports numpy.distutils (gone on Python 3.12) and pkg_resources itself.

    All it does with them is warn of any CuPy but version 7, and of NumPy on macOS's Accelerate.
    """
    module = empty_module("chainer._environment_check", "replaced, see chainer_jo._compat")
    vars(module)["check"] = lambda: None
    sys.modules.setdefault(module.__name__, module)


def supply_pkg_resources() -> None:
    """Imported by chainer.testing, hence by chainer.gradient_check; setuptools 82 removed it.

    They use it in decorators for Chainer's own tests alone, so it may be empty.
    """
    try:
        installed = importlib.util.find_spec("pkg_resources") is not None
    except ImportError:
        installed = False
    if not installed:
        sys.modules["pkg_resources"] = empty_module("pkg_resources", "it is not installed")


def has_cuda_driver() -> bool:
    """Whether NVIDIA's driver is there; starts nothing in it, so that a process can still fork."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def why_no_gpu() -> str | None:
    """Why Chainer uses no GPU though NVIDIA's driver is there, in one line; None if that is not so.

    Without a driver nobody expects one to be used.
    """
    from chainer.backends import cuda

    if cuda.available or not has_cuda_driver():
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
    """Chainer was written for CuPy 7; three things in CuPy 14 mislead it while it is imported.

    - It can be imported without a driver, which chainer.backends.cuda.available takes for a GPU
      that works: without a driver, Chainer does not get to see it.
    - It has no cuDNN bindings any more, of which Chainer would warn, advising to reinstall CuPy.
    - It warns that NCCL is not installed when Chainer only looks whether it is.
    """
    os.environ.setdefault("CHAINER_CUDNN", "0")
    real = sys.modules.get("cupy")
    hide = not has_cuda_driver()
    if hide:
        reason = "there is no NVIDIA driver on this machine"
        sys.modules["cupy"] = empty_module("cupy", reason, ImportError)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\s*nccl library could not be loaded")
            yield
    finally:
        if hide:
            del sys.modules["cupy"]
            if real is not None:
                sys.modules["cupy"] = real


supply_numpy_names()
replace_environment_check()
supply_pkg_resources()
with cupy_as_chainer_knows_it():
    import chainer  # noqa: F401
