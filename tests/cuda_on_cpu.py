"""CUDA kernels compiled as C++ and run thread by thread, to test their arithmetic without a GPU."""

import ctypes
import hashlib
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

COMPILER = shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(
    COMPILER is None, reason="needs g++ or clang++ to compile kernels"
)

PRELUDE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
using std::max; using std::min;
struct Index { unsigned x; };
static thread_local Index threadIdx, blockIdx, blockDim, gridDim;
#define __global__
#define __device__
#define __restrict__
#define __fmul_rn(a, b) ((a) * (b))
#define __fsub_rn(a, b) ((a) - (b))
#define __fadd_rn(a, b) ((a) + (b))
typedef _Float16 float16;
"""
TYPES = {"float32": "float", "int32": "int32_t", "float16": "float16"}


def compile_source(folder: Path, source: str) -> ctypes.CDLL:
    """A shared library of C++ source, made in a folder; no fused multiply-add, as on the GPU."""
    stem = folder / hashlib.sha1(source.encode()).hexdigest()
    stem.with_suffix(".cpp").write_text(source)
    command = [COMPILER, "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC",
               str(stem.with_suffix(".cpp")), "-o", str(stem.with_suffix(".so"))]  # fmt: skip
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(stem.with_suffix(".so")))


def elementwise(folder: Path, inputs: str, outputs: str, body: str, dtype: np.dtype):
    """A function of arrays from what `cupy.ElementwiseKernel` takes; ``T`` is `dtype`.

    Called like CuPy's: with the inputs, and with the outputs too if these are to be updated.
    """
    parameters = [p.split() for p in f"{inputs}, {outputs}".split(", ")]
    count = len(inputs.split(", "))
    types = [TYPES[np.dtype(dtype).name if t == "T" else t] for t, _ in parameters]
    arguments = ", ".join(f"{t}* _{name}" for t, (_, name) in zip(types, parameters, strict=True))
    bound = "\n".join(
        f"{t}& {name} = _{name}[i];" for t, (_, name) in zip(types, parameters, strict=True)
    )
    source = f"""{PRELUDE}
    typedef {TYPES[np.dtype(dtype).name]} T;
    extern "C" void kernel(long n, {arguments}) {{
        for (long i = 0; i < n; ++i) {{ {bound}\n {body}; }}
    }}"""
    function = compile_source(folder, source).kernel

    def call(*arrays):
        dtypes = [dtype if t == "T" else np.dtype(t) for t, _ in parameters]
        given = [np.asarray(a) for a in arrays]
        shape = np.broadcast_shapes(*(a.shape for a in given))
        cells = [np.ascontiguousarray(np.broadcast_to(a, shape).astype(d))
                 for a, d in zip(given, dtypes, strict=False)]  # fmt: skip
        cells += [np.empty(shape, d) for d in dtypes[len(cells) :]]
        size = ctypes.c_long(int(np.prod(shape)))
        function(size, *(ctypes.c_void_p(a.ctypes.data) for a in cells))
        for target, cell in zip(given[count:], cells[count:], strict=False):
            target[...] = cell
        return cells[count] if len(cells) == count + 1 else tuple(cells[count:])

    return call
