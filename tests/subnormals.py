"""Arithmetic in which subnormal numbers are zero, as it is on a GPU where CuPy compiles kernels.

The processor does it by itself once its control register says so. The register belongs to the
thread, and is a part of C's floating-point environment.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

#: Machine -> place of the register in glibc's `fenv_t`, in words, and the bits to set: FTZ and DAZ
#: in MXCSR, FZ in FPCR.
_MACHINES = {"x86_64": (7, 1 << 15 | 1 << 6), "aarch64": (0, 1 << 24)}
SUPPORTED = platform.machine() in _MACHINES and platform.libc_ver()[0] == "glibc"


@contextmanager
def flushed() -> Iterator[None]:
    """Subnormal operands and results of this thread are zero inside."""
    word, bits = _MACHINES[platform.machine()]
    libm, environment = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 8)()
    libm.fegetenv(environment)
    before = environment[word]
    environment[word] |= bits
    libm.fesetenv(environment)
    try:
        assert np.float32(3e-39) * np.float32(1) == 0, "as operands"
        assert np.finfo(np.float32).smallest_normal * np.float32(0.5) == 0, "as results"
        yield
    finally:
        environment[word] = before
        libm.fesetenv(environment)
