"""Description of the machine and its peak rates: matrix products and memory copies."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib import metadata

import numpy
from threadpoolctl import threadpool_limits

from chainer_jo.devices import usable_cores
from chainer_jo.engine.cpu import dnnl
from chainer_jo.engine.cpu.buffers import Buffers
from chainer_jo.engine.interface import Unavailable
from chainer_jo.reproduction.running.provenance import cpu_name

SIDE = 2048
COPIED = 1 << 28
REPEATS = 7


def describe(threads: int) -> dict:
    """Processor, its instructions, operating system and versions."""
    packages = ("chainer", "numpy", "torch", "ml_dtypes", "onednn-cpu-gomp")
    return {
        "processor": cpu_name(),
        "cores": usable_cores(),
        "threads": threads,
        "instructions": [
            f for f in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f in _flags()
        ],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "onednn": _onednn(),
    }


def peaks(threads: int) -> dict:
    """Large matrix products by `threads` threads (GFLOP/s), a copy by one (GB/s read + written)."""
    found = {"copy_gb_per_s": _copy_rate()}
    a = numpy.ones((SIDE, SIDE), numpy.float32)
    with threadpool_limits(threads):
        found["fp32_gflop_per_s"] = _rate(lambda: a @ a)
    try:
        library = dnnl.find()
    except Unavailable:
        return found
    with threadpool_limits(threads):
        found["fp32_gflop_per_s"] = max(found["fp32_gflop_per_s"], _matmul_rate(library, dnnl.F32))
        if library.instructions() & dnnl.BFLOAT16_INSTRUCTIONS:
            found["bf16_gflop_per_s"] = _matmul_rate(library, dnnl.BF16)
    return found


def _matmul_rate(library: dnnl.Library, data_type: int) -> float:
    buffers, byte = Buffers(), numpy.dtype(numpy.uint8)
    matrix = library.strided((SIDE, SIDE), (SIDE, 1), data_type)
    any_layout = library.any_layout((SIDE, SIDE), data_type)
    desc = library.describe("matmul", matrix, any_layout, None, matrix, None)
    weights = library.descriptor_of(desc, dnnl.QUERY_WEIGHTS)
    descriptors = (matrix, weights, matrix)
    memory = [buffers.empty((library.size(d),), byte) for d in descriptors]
    for array in memory:
        array[:] = 0
    indices = (dnnl.SRC, dnnl.WEIGHTS, dnnl.DST)
    run = dnnl.Primitive(library, desc, *zip(indices, descriptors, strict=True))
    return _rate(lambda: run(*(array.ctypes.data for array in memory)))


def _rate(product: Callable) -> float:
    return 2 * SIDE**3 / _shortest(product) / 1e9


def _copy_rate() -> float:
    source, target = numpy.ones((2, COPIED // 4), numpy.float32)
    return 2 * COPIED / _shortest(lambda: numpy.copyto(target, source)) / 1e9


def _shortest(function: Callable) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _flags() -> list[str]:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split() for line in lines if line.startswith("flags"))
    except (OSError, StopIteration):
        return []


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _onednn() -> str | None:
    try:
        return ".".join(map(str, dnnl.find().version))
    except Unavailable:
        return None
