"""Memory pool for arrays that are made in every iteration, aligned.

A new array of many megabytes costs a page fault per page, which takes as long as the computation
that fills it. The pool gives the memory of a collected array to the next array of the same size.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections import defaultdict
from contextlib import suppress
from typing import Any

import numpy

#: Size of a cache line and of the widest vector register, in bytes.
ALIGNMENT = 64
#: Minimum size of memory that is mapped on its own, in huge pages if available, in bytes.
LARGE = 1 << 20
#: Options of glibc's mallopt, and values with which free never returns memory to the system.
_KEEPING = {-1: 2**31 - 1, -4: 0}  # M_TRIM_THRESHOLD, M_MMAP_MAX


def keep_freed_memory() -> None:
    """Makes malloc keep freed memory in this process, also of NumPy's own arrays; no effect without
    glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for option, value in _KEEPING.items():
            mallopt(option, value)


class Buffers:
    """A pool of memory blocks by size.

    A block is reused only after the last array or view in it is gone. `allocated` is the number of
    bytes taken from the system so far.
    """

    def __init__(self) -> None:
        self.allocated = 0
        self._free: dict[int, list[_Block]] = defaultdict(list)
        self._leases: dict[int, Any] = {}  # types made by `_new_lease_type`

    def __del__(self) -> None:
        # The types of leases have these lists, and only the garbage collector frees a type.
        for blocks in self._free.values():
            blocks.clear()

    def empty(self, shape: tuple[int, ...], dtype: numpy.dtype) -> numpy.ndarray:
        """An array with undefined contents."""
        size = dtype.itemsize
        for length in shape:
            size *= length
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        try:
            block = self._free[size].pop()
        except IndexError:
            block = _Block(size)
            self.allocated += size
        lease_type = self._leases.get(size) or self._new_lease_type(size)
        lease = lease_type.from_address(block.address)
        lease.block = block
        return numpy.ndarray(shape, dtype, lease)

    def _new_lease_type(self, size: int) -> Any:
        give_back = self._free[size].append

        def end(lease) -> None:
            give_back(lease.block)

        lease_type = type("Lease", (ctypes.c_char * size,), {"__del__": end})
        return self._leases.setdefault(size, lease_type)


class _Block:
    """Aligned memory from the system."""

    __slots__ = ("address", "_memory")

    def __init__(self, size: int) -> None:
        self._memory: mmap.mmap | bytearray
        if size >= LARGE:
            self._memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with suppress(AttributeError, OSError):  # an option of the system's
                self._memory.madvise(mmap.MADV_HUGEPAGE)
        else:
            self._memory = bytearray(size + ALIGNMENT)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.address = -(-start // ALIGNMENT) * ALIGNMENT
