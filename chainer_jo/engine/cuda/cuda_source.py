"""Common CUDA source and the launch of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

#: Float16 without a header: as an unsigned short, rounded to nearest even.
FLOAT16 = r"""
__device__ unsigned short to_half(float value) {
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}
__device__ float from_half(unsigned short half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}
"""

#: Source for kernels with one thread per element of one or several arrays.
ELEMENTS = r"""
__device__ long long position() {
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

// Of `count` parts that begin at `start`, the one that i is in.
__device__ int part_of(const long long* start, int count, long long i) {
    int low = 0, high = count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (start[middle] <= i) low = middle; else high = middle;
    }
    return low;
}
"""


@cache
def module(source: str) -> Any:
    """CuPy's module of CUDA source, compiled at first use."""
    import cupy

    return cupy.RawModule(code=source)


def launch(
    source: str, threads: int, kernel: str, size: int, arguments: tuple, shared: int = 0
) -> None:
    """Runs a kernel of `source` with at least `size` threads, in blocks of `threads` with `shared`
    bytes of dynamic shared memory."""
    if size:
        blocks = (size + threads - 1) // threads
        function = module(source).get_function(kernel)
        if shared:
            function.max_dynamic_shared_size_bytes = shared  # the default limit is 48 KiB
        function((blocks,), (threads,), arguments, shared_mem=shared)


def table_of(dtype: np.dtype, sizes: Sequence[int]) -> np.ndarray:
    """Kernel argument for parts of these sizes, with the field ``start`` filled in; unused parts
    start at the end."""
    table = np.zeros(1, dtype)
    ends = np.cumsum(sizes)
    table["start"][0, 1:] = ends[-1]
    table["start"][0, 1 : len(ends) + 1] = ends
    return table
