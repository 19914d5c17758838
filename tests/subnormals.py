"""Arithmetic in which subnormal numbers are zero, as it is on a GPU where CuPy compiles kernels.

The processor does it by itself once its control register says so: FTZ and DAZ in MXCSR on x86-64,
FZ in FPCR on 64-bit Arm. The register belongs to the thread.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Machine -> code that returns the register, code that sets it to its argument, the bits to set.
_MACHINES = {
    # sub rsp, 8; stmxcsr [rsp]; mov eax, [rsp]; add rsp, 8; ret
    "x86_64": (
        "4883ec08 0fae1c24 8b0424 4883c408 c3",
        # sub rsp, 8; mov [rsp], edi; ldmxcsr [rsp]; add rsp, 8; ret
        "4883ec08 893c24 0fae1424 4883c408 c3",
        1 << 15 | 1 << 6,
    ),
    # mrs x0, fpcr; ret and msr fpcr, x0; ret
    "aarch64": ("00443bd5 c0035fd6", "00441bd5 c0035fd6", 1 << 24),
}
SUPPORTED = platform.machine() in _MACHINES and hasattr(mmap, "PROT_EXEC")


@contextmanager
def flushed() -> Iterator[None]:
    """Subnormal operands and results of this thread are zero inside."""
    read, write, bits = _MACHINES[platform.machine()]
    with _function(read) as get, _function(write) as put:
        before = get(0)
        put(before | bits)
        try:
            yield
        finally:
            put(before)


@contextmanager
def _function(code: str) -> Iterator[Callable[[int], int]]:
    """Machine code as a function from a 64-bit number to another."""
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(bytes.fromhex(code))
    start = ctypes.c_char.from_buffer(memory)
    yield ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(ctypes.addressof(start))
    del start
    memory.close()
