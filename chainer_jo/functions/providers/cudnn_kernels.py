"""The small kernels around cuDNN's graphs.

T is the type of the activations; arithmetic is float32.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy

#: name -> (inputs, outputs, body), as `cupy.ElementwiseKernel` takes them.
SOURCES = {
    "add": ("T a, T b", "T y", "y = T(float(a) + float(b))"),
    # Written so that NaN stays NaN.
    "relu": ("T x", "T y", "y = float(x) <= 0.0f ? T(0.0f) : x"),
    "relu_grad": ("T gy, T y", "T gx", "gx = float(y) > 0.0f ? gy : T(0.0f)"),
    "fixed_batch_norm_relu": (
        "T x, float32 gamma, float32 beta, float32 mean, float32 var, float32 eps",
        "T y",
        """
        const float z = gamma * (float(x) - mean) / sqrtf(var + eps) + beta;
        y = z <= 0.0f ? T(0.0f) : T(z)
        """,
    ),
    "variance": (
        "float32 inverse, float32 eps",
        "float32 var",
        """
        const float v = 1.0f / (inverse * inverse) - eps;
        var = v < 0.0f ? 0.0f : v
        """,
    ),
    # From sums over count samples; BN is scale x + shift, which cuDNN's fused engines take in half.
    "statistics": (
        "float32 total, float32 squares, float32 gamma, float32 beta, float32 count, float32 eps",
        "float32 mean, float32 var, float32 inverse, float16 scale, float16 shift",
        """
        mean = total / count;
        const float v = squares / count - mean * mean;
        var = v < 0.0f ? 0.0f : v;
        inverse = 1.0f / sqrtf(var + eps);
        scale = float16(gamma * inverse);
        shift = float16(beta - mean * gamma * inverse)
        """,
    ),
    "move_averages": (
        "float32 mean, float32 var, float32 decay, float32 unbias",
        "float32 running_mean, float32 running_var",
        """
        running_mean = decay * running_mean + (1.0f - decay) * mean;
        running_var = decay * running_var + (1.0f - decay) * unbias * var
        """,
    ),
}


#: y (m, n) = a (m, k) b (k, n), strides in elements.
MATMUL = r"""
extern "C" __global__ void jo_matmul(
        const float* a, const float* b, float* y, int m, int n, int k,
        int a_row, int a_column, int b_row, int b_column) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (long long)m * n) return;
    const float* row = a + (i / n) * a_row;
    const float* column = b + (i % n) * b_column;
    float sum = 0.0f;
    for (int j = 0; j < k; ++j)
        sum += row[(long long)j * a_column] * column[(long long)j * b_row];
    y[i] = sum;
}
"""
THREADS = 128


class Kernels:
    """Each name in `SOURCES` as a function of CuPy arrays, compiled when it is first used."""

    def __getattr__(self, name: str) -> Any:
        if name not in SOURCES:
            raise AttributeError(name)
        return _elementwise(name)

    @staticmethod
    def matmul(a: Any, b: Any) -> Any:
        """The product (m, n) of float32 a (m, k) and b (k, n), any of which may be transposed.

        One thread per result, for the small products of a classifier: CuPy refuses to have its
        calls of cuBLAS captured in a CUDA graph.
        """
        import cupy

        (m, k), n = a.shape, b.shape[1]
        y = cupy.empty((m, n), numpy.float32)
        strides = (s // a.itemsize for s in (*a.strides, *b.strides))
        numbers = map(numpy.int32, (m, n, k, *strides))
        blocks = (y.size + THREADS - 1) // THREADS
        _matmul()((blocks,), (THREADS,), (a, b, y, *numbers))
        return y


@cache
def _elementwise(name: str) -> Any:
    import cupy

    inputs, outputs, body = SOURCES[name]
    return cupy.ElementwiseKernel(inputs, outputs, body, f"jo_{name}")


@cache
def _matmul() -> Any:
    import cupy

    return cupy.RawKernel(MATMUL, "jo_matmul")
