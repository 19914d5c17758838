"""Small kernels around cuDNN's graphs, with float32 arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy

from chainer_jo.engine.cuda.cuda_source import ELEMENTS, FLOAT16, launch, table_of
from chainer_jo.engine.interface import DECAY, EPS

#: Maximum numbers of weights and of layers per launch: kernel arguments have at most 4 KiB.
WEIGHTS, LAYERS = 96, 64
WEIGHTS_DTYPE = numpy.dtype([
    ("start", numpy.int64, WEIGHTS + 1), ("source", numpy.uint64, WEIGHTS),
    ("target", numpy.uint64, WEIGHTS), ("channels", numpy.int32, WEIGHTS),
    ("pixels", numpy.int32, WEIGHTS),
])  # fmt: skip
LAYERS_DTYPE = numpy.dtype([
    ("start", numpy.int64, LAYERS + 1), ("mean", numpy.uint64, LAYERS),
    ("inverse", numpy.uint64, LAYERS), ("running_mean", numpy.uint64, LAYERS),
    ("running_var", numpy.uint64, LAYERS), ("unbias", numpy.float32, LAYERS),
])  # fmt: skip
SOURCE = (
    f"#define WEIGHTS {WEIGHTS}\n#define LAYERS {LAYERS}\n"
    f"#define DECAY {DECAY}f\n#define EPS {EPS}f\n"
    + FLOAT16
    + ELEMENTS
    + r"""
struct Weights {
    long long start[WEIGHTS + 1];
    const float* source[WEIGHTS];
    void* target[WEIGHTS];
    int channels[WEIGHTS];
    int pixels[WEIGHTS];
};

// Weights (o, c, kh, kw) with the memory of (o, kh, kw, c), in float32 or float16.
extern "C" __global__ void jo_arrange(Weights weights, int half) {
    const long long i = position();
    if (i >= weights.start[WEIGHTS]) return;
    const int w = part_of(weights.start, WEIGHTS, i);
    const int c = weights.channels[w], pixels = weights.pixels[w];
    const long long inside = i - weights.start[w], pixel = inside / c;
    const int channel = inside % c;
    const float value =
        weights.source[w][(pixel / pixels * c + channel) * pixels + pixel % pixels];
    if (half) ((unsigned short*)weights.target[w])[inside] = to_half(value);
    else ((float*)weights.target[w])[inside] = value;
}

struct Layers {
    long long start[LAYERS + 1];
    const float* mean[LAYERS];
    const float* inverse[LAYERS];
    float* running_mean[LAYERS];
    float* running_var[LAYERS];
    float unbias[LAYERS];
};

// running <- DECAY running + (1 - DECAY) batch, the variance from 1 / sqrt(var + EPS), unbiased.
extern "C" __global__ void jo_move_averages(Layers layers) {
    const long long i = position();
    if (i >= layers.start[LAYERS]) return;
    const int l = part_of(layers.start, LAYERS, i);
    const int channel = i - layers.start[l];
    const float inverse = layers.inverse[l][channel], v = 1.0f / (inverse * inverse) - EPS;
    float* mean = layers.running_mean[l] + channel;
    float* var = layers.running_var[l] + channel;
    *mean = DECAY * *mean + (1.0f - DECAY) * layers.mean[l][channel];
    *var = DECAY * *var + (1.0f - DECAY) * layers.unbias[l] * (v < 0.0f ? 0.0f : v);
}

// y (m, n) = a (m, k) b (k, n), strides in elements.
extern "C" __global__ void jo_matmul(
        const float* a, const float* b, float* y, int m, int n, int k,
        int a_row, int a_column, int b_row, int b_column) {
    const long long i = position();
    if (i >= (long long)m * n) return;
    const float* row = a + (i / n) * a_row;
    const float* column = b + (i % n) * b_column;
    float sum = 0.0f;
    for (int j = 0; j < k; ++j)
        sum += row[(long long)j * a_column] * column[(long long)j * b_row];
    y[i] = sum;
}

// y = max(0, gamma (x - mean) / sqrt(var + EPS) + beta) for rows x of c channels, in float32 or
// float16; NaN stays NaN.
extern "C" __global__ void jo_fixed_batch_norm_relu(
        const void* x, const float* gamma, const float* beta, const float* mean, const float* var,
        void* y, long long size, int c, int half) {
    const long long i = position();
    if (i >= size) return;
    const int k = i % c;
    const float value = half ? from_half(((const unsigned short*)x)[i]) : ((const float*)x)[i];
    const float z = gamma[k] * (value - mean[k]) / sqrtf(var[k] + EPS) + beta[k];
    const float active = z <= 0.0f ? 0.0f : z;
    if (half) ((unsigned short*)y)[i] = to_half(active);
    else ((float*)y)[i] = active;
}

// Sequential work for one thread.
extern "C" __global__ void jo_occupy(float* x, int passes) {
    float y = *x;
    for (int pass = 0; pass < passes; ++pass) y = 0.5f * y + 1.0f;
    *x = y;
}
"""
)
#: Launch in blocks of 128 threads.
_launch = partial(launch, SOURCE, 128)


class Moved(NamedTuple):
    """Running averages (c,) to move towards a batch's mean and 1 / sqrt(var + EPS)."""

    running_mean: Any
    running_var: Any
    mean: Any
    inverse: Any
    #: Factor n / (n - 1) of the unbiased variance of n samples.
    unbias: float


def matmul(a: Any, b: Any) -> Any:
    """Product (m, n) of float32 a (m, k) and b (k, n), any of which may be transposed.

    One thread per result, for the small products of a classifier: a CUDA graph cannot capture
    CuPy's calls of cuBLAS.
    """
    import cupy

    (m, k), n = a.shape, b.shape[1]
    y = cupy.empty((m, n), numpy.float32)
    strides = (s // a.itemsize for s in (*a.strides, *b.strides))
    numbers = map(numpy.int32, (m, n, k, *strides))
    _launch("jo_matmul", y.size, (a, b, y, *numbers))
    return y


def fixed_batch_norm_relu(x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
    """max(0, gamma (x - mean) / sqrt(var + EPS) + beta) for contiguous x (n, h, w, c), float32 or
    float16."""
    import cupy

    y = cupy.empty(x.shape, x.dtype)
    numbers = numpy.int64(x.size), numpy.int32(len(gamma)), numpy.int32(x.dtype.itemsize == 2)
    _launch("jo_fixed_batch_norm_relu", x.size, (x, gamma, beta, mean, var, y, *numbers))
    return y


def occupy(x: Any, passes: int) -> None:
    """Keeps one thread busy with the number x (1,) for a number of passes."""
    launch(SOURCE, 1, "jo_occupy", 1, (x, numpy.int32(passes)))


def arrange(weights: Sequence[Any], dtype: numpy.dtype) -> list[Any]:
    """Copies of C-contiguous float32 weights (o, c, kh, kw) in a dtype, with channels-last
    memory."""
    import cupy

    shapes = [(o, h, w, c) for o, c, h, w in (w.shape for w in weights)]
    copies = [cupy.empty(shape, dtype) for shape in shapes]
    for first in range(0, len(weights), WEIGHTS):
        part = slice(first, first + WEIGHTS)
        table = table_of(WEIGHTS_DTYPE, [copy.size for copy in copies[part]])
        for i, (w, copy) in enumerate(zip(weights[part], copies[part], strict=True)):
            table["source"][0, i], table["target"][0, i] = w.data.ptr, copy.data.ptr
            table["channels"][0, i], table["pixels"][0, i] = w.shape[1], w[0, 0].size
        size = int(table["start"][0, -1])
        _launch("jo_arrange", size, (table, numpy.int32(dtype.itemsize == 2)))
    return [copy.transpose(0, 3, 1, 2) for copy in copies]


def move_averages(layers: Sequence[Moved]) -> None:
    """Moves the running averages of all layers."""
    for first in range(0, len(layers), LAYERS):
        part = layers[first : first + LAYERS]
        table = table_of(LAYERS_DTYPE, [layer.mean.size for layer in part])
        for i, layer in enumerate(part):
            for name in ("mean", "inverse", "running_mean", "running_var"):
                table[name][0, i] = getattr(layer, name).data.ptr
            table["unbias"][0, i] = layer.unbias
        _launch("jo_move_averages", int(table["start"][0, -1]), (table,))
