"""CUDA kernels compiled as C++ and run thread by thread, to test their arithmetic without a GPU."""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from chainer_jo.engine.cuda import cuda_source

COMPILER = shutil.which("g++") or shutil.which("clang++")


def _compiles() -> bool:
    """Old compilers have no half precision in C++, and some folders nothing that can be run."""
    if not COMPILER:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            compile_source(Path(folder), "_Float16 x = 1;")
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


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
#define __fmul_rn(a, b) ((a) * (b))
#define __fsub_rn(a, b) ((a) - (b))
#define __fadd_rn(a, b) ((a) + (b))
"""
#: In the place of `cuda_source.FLOAT16`, which is written in PTX.
FLOAT16 = r"""
static unsigned short to_half(float value) {
    const _Float16 rounded = value;
    unsigned short half;
    memcpy(&half, &rounded, 2);
    return half;
}
static float from_half(unsigned short half) {
    _Float16 value;
    memcpy(&value, &half, 2);
    return value;
}
"""
#: Threads of a block: each has a stack of its own, and hands over to the next one where it waits.
BLOCK = r"""
#include <ucontext.h>
#include <vector>
#define __shared__ static
static ucontext_t scheduler, *running;
static inline void __syncthreads() { swapcontext(running, &scheduler); }
static void (*entry)(void**);
static void** entered;
static std::vector<bool> ended;
static void start() { entry(entered); ended[threadIdx.x] = true; }
static void run_block(int threads) {
    static std::vector<std::vector<char>> stacks;
    stacks.resize(threads, std::vector<char>(1 << 15));
    std::vector<ucontext_t> contexts(threads);
    ended.assign(threads, false);
    for (int t = 0; t < threads; ++t) {
        getcontext(&contexts[t]);
        contexts[t].uc_stack.ss_sp = stacks[t].data();
        contexts[t].uc_stack.ss_size = stacks[t].size();
        contexts[t].uc_link = &scheduler;
        makecontext(&contexts[t], start, 0);
    }
    for (bool left = true; left;) {
        left = false;
        for (int t = 0; t < threads; ++t) {
            if (ended[t]) continue;
            threadIdx.x = t;
            running = &contexts[t];
            swapcontext(&scheduler, running);
            left |= !ended[t];
        }
    }
}
"""


def compile_source(folder: Path, source: str) -> ctypes.CDLL:
    """A shared library of C++ source, made in a folder; no fused multiply-add, as on the GPU."""
    stem = folder / hashlib.sha1(source.encode()).hexdigest()
    library = stem.with_suffix(".so")
    if not library.exists():
        stem.with_suffix(".cpp").write_text(source)
        command = [COMPILER, "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC",
                   str(stem.with_suffix(".cpp")), "-o", str(library)]  # fmt: skip
        subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


needs_compiler = pytest.mark.skipif(
    not _compiles(),
    reason="needs g++ or clang++ with _Float16, and a temporary folder to load its libraries from",
)


#: C type of a kernel's parameter -> the dtype that has to be given for it.
PARAMETERS = {
    "float": np.float32, "int": np.int32, "long long": np.int64, "bool": np.bool_,
    "unsigned char": np.uint8, "signed char": np.int8,
}  # fmt: skip


class RawModule:
    """`cupy.RawModule` on the CPU: stricter, since a wrong argument type is an error here."""

    def __init__(self, code: str, folder: Path) -> None:
        self._signatures = {
            name: [self._parameter(p) for p in parameters.split(",")]
            for name, parameters in re.findall(r"__global__ void (\w+)\(([^)]*)\)", code)
        }
        drivers = "".join(self._driver(*item) for item in self._signatures.items())
        code = code.replace(cuda_source.FLOAT16, FLOAT16)
        self._library = compile_source(folder, PRELUDE + BLOCK + code + drivers)

    @staticmethod
    def _parameter(text: str) -> tuple[str, bool]:
        """The type of a parameter without const, and whether it is a pointer."""
        kind = text.replace("const ", "").split()[:-1]
        name = " ".join(kind).replace("*", "").strip()
        return name, "*" in text

    @staticmethod
    def _driver(name: str, parameters: list[tuple[str, bool]]) -> str:
        """Takes the addresses of the arguments, as CUDA does, and runs all threads in turn."""
        values = ", ".join(
            f"*({kind}{'*' * pointer}*)arguments[{i}]"
            for i, (kind, pointer) in enumerate(parameters)
        )
        return f"""
        extern "C" void run_{name}(int blocks, int threads, void** arguments) {{
            blockDim.x = threads; gridDim.x = blocks;
            entry = [](void** arguments) {{ {name}({values}); }};
            entered = arguments;
            for (blockIdx.x = 0; blockIdx.x < (unsigned)blocks; ++blockIdx.x) run_block(threads);
        }}"""

    def get_function(self, name: str):
        parameters = self._signatures[name]
        driver = getattr(self._library, f"run_{name}")

        def launch(grid: tuple[int], block: tuple[int], arguments: tuple) -> None:
            cells = [cell(a, *p) for a, p in zip(arguments, parameters, strict=True)]
            addresses = (ctypes.c_void_p * len(cells))(*(c.ctypes.data for c in cells))
            driver(grid[0], block[0], addresses)

        return launch


def cell(argument, kind: str, is_pointer: bool) -> np.ndarray:
    """What the address of an argument points to: a number, a structure, or an array's address."""
    if not is_pointer:
        assert kind not in PARAMETERS or argument.dtype == PARAMETERS[kind], (kind, argument.dtype)
        return np.atleast_1d(argument)
    if argument is None:
        return np.zeros(1, np.uint64)
    assert kind == "void" or argument.dtype == PARAMETERS[kind], (kind, argument.dtype)
    return np.array([argument.ctypes.data], np.uint64)


class Array(np.ndarray):
    """A NumPy array with CuPy's way to its address."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def array(values, dtype=None) -> Array:
    return np.ascontiguousarray(values, dtype).view(Array)


def cupy(folder: Path) -> SimpleNamespace:
    """What the kernels' callers take from CuPy, on the CPU; fresh memory is poisoned."""

    def empty(shape, dtype):
        return array(np.frombuffer(b"\xff" * int(np.prod(shape)) * np.dtype(dtype).itemsize, dtype)
                     .reshape(shape).copy())  # fmt: skip

    return SimpleNamespace(
        empty=empty,
        zeros=lambda shape, dtype: array(np.zeros(shape, dtype)),
        ascontiguousarray=np.ascontiguousarray,
        RawModule=lambda code: RawModule(code, folder),
    )
