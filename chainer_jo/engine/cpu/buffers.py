"""Memory for arrays that come and go in every iteration: kept, aligned, and handed out again.

A new array of many megabytes costs a page fault for each of its pages, which takes as long as the
computation that fills it. Here the memory of an array that has been garbage collected goes to the
next one of the same size.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections import defaultdict
from contextlib import suppress
from typing import Any

import numpy

#: Bytes of a cache line, and of the widest vector register.
ALIGNMENT = 64
#: Bytes from which memory is mapped on its own, in huge pages where the system has them.
LARGE = 1 << 20
#: glibc's options of malloc.h, and their values for: never given back, never mapped on its own.
_KEEPING = {-1: 2**31 - 1, -4: 0}  # M_TRIM_THRESHOLD, M_MMAP_MAX


def keep_freed_memory() -> None:
    """Has malloc keep what is freed, in all of this process, which does the same for NumPy's own
    arrays. Where there is no glibc nothing happens."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for option, value in _KEEPING.items():
            mallopt(option, value)


class Buffers:
    """A pool of memory blocks by size.

    Arrays from `empty` are like NumPy's own, views and all: a block is handed out again only when
    the last array in it is gone. `allocated` is the number of bytes taken from the system so far.
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
    """Aligned memory of its own."""

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
