"""Batch normalisation with ReLU in two launches each way, in float16 or float32.

The first launch sums, the second one computes each pixel. No block waits for another: the block
that ends last adds up the sums of all blocks, always in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from chainer_jo.engine.backend import EPS
from chainer_jo.engine.cuda.cuda_source import FLOAT16, launch

THREADS = 256
#: Maximum number of blocks, two per multiprocessor of an H100, by estimate: more of them hide more
#: latency and leave more sums to add up.
BLOCKS = 264
#: Bytes that a thread reads at once, some channels of a pixel.
CHUNK = 16
#: Fields of ``Arrays``: names in `cudnn_plans`, sums of blocks, number of blocks that have ended.
ARRAYS = (
    "x", "gy", "residual", "y", "gx", "gamma", "beta", "mean", "inverse", "ggamma", "gbeta",
    "parts", "ended",
)  # fmt: skip

_KERNELS = (
    f"#define EPS {EPS}f\n#define THREADS {THREADS}\n#define WIDTH ({CHUNK} / sizeof(number))\n"
    + r"""
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
struct Arrays {
    const number *x, *gy, *residual;
    number *y, *gx;
    const float *gamma, *beta;
    float *mean, *inverse, *ggamma, *gbeta, *parts;
    unsigned* ended;
};

// Activations (pixels, channels) are read in chunks of WIDTH channels. A thread has the same
// channels in all pixels, since the number of chunks per pixel divides THREADS.
union Chunk { uint4 memory; number of[WIDTH]; };
struct Inputs { Chunk x, gy, residual; };

__device__ Chunk load(const number* x, int i) { return {((const uint4*)x)[i]}; }

// Calls use(i, inputs) for the chunks of a thread, of which COUNT are loaded at the same time.
template <int COUNT, class Load, class Use>
__device__ void for_each_chunk(int size, Load load, Use use) {
    const int step = gridDim.x * THREADS;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < size; i += COUNT * step) {
        Inputs inputs[COUNT];
#pragma unroll
        for (int n = 0; n < COUNT; ++n)
            if (i + n * step < size) inputs[n] = load(i + n * step);
#pragma unroll
        for (int n = 0; n < COUNT; ++n)
            if (i + n * step < size) use(i + n * step, inputs[n]);
    }
}

// The argument of the ReLU, z = scale (x - mean) + shift, for the channels of a thread.
struct Normal {
    float mean[WIDTH], scale[WIDTH], shift[WIDTH];
    __device__ Normal(const Arrays& a, int channel) {
        for (int k = 0; k < WIDTH; ++k) {
            mean[k] = a.mean[channel + k];
            scale[k] = a.gamma[channel + k] * a.inverse[channel + k];
            shift[k] = a.beta[channel + k];
        }
    }
    __device__ float d(int k, const Inputs& in) const { return READ(in.x.of[k]) - mean[k]; }
    __device__ float z(int k, const Inputs& in) const { return scale[k] * d(k, in) + shift[k]; }
    __device__ float g(int k, const Inputs& in) const {  // gradient of z
        return z(k, in) > 0.0f ? READ(in.gy.of[k]) : 0.0f;
    }
};

// Sums over the threads of a block that have the same channels, in the first `chunks` threads.
__device__ void sum_threads(float (&sums)[2 * WIDTH], int chunks) {
    __shared__ float upper[2 * WIDTH][THREADS / 2];
    for (int half = THREADS / 2; half >= chunks; half /= 2) {
        if (threadIdx.x >= half && threadIdx.x < 2 * half)
            for (int k = 0; k < 2 * WIDTH; ++k) upper[k][threadIdx.x - half] = sums[k];
        __syncthreads();
        if (threadIdx.x < half)
            for (int k = 0; k < 2 * WIDTH; ++k) sums[k] += upper[k][threadIdx.x];
        __syncthreads();
    }
}

// Sums over all blocks; true in the threads that have them, the first of the block that ends last.
// `parts` has room for the sums of each block; `ended` is 0 before and after.
__device__ bool sum_blocks(float (&sums)[2 * WIDTH], const Arrays& a, int chunks) {
    __shared__ bool last;
    const int count = gridDim.x * chunks;
    sum_threads(sums, chunks);
    if (threadIdx.x < chunks)
        for (int k = 0; k < 2 * WIDTH; ++k)
            a.parts[k * count + blockIdx.x * chunks + threadIdx.x] = sums[k];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && (last = atomicAdd(a.ended, 1) == gridDim.x - 1)) *a.ended = 0;
    __syncthreads();
    if (!last) return false;
    __threadfence();
    for (int k = 0; k < 2 * WIDTH; ++k) sums[k] = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x; i < count; i += THREADS)
        for (int k = 0; k < 2 * WIDTH; ++k) sums[k] += __ldcg(a.parts + k * count + i);
    sum_threads(sums, chunks);
    return threadIdx.x < chunks;
}

// Mean and 1 / sqrt(variance + EPS), from sums about the first pixel: squares of the numbers
// themselves would cancel where the mean is large.
KERNEL statistics(Arrays a, int size, int chunks) {
    const Chunk pivot = load(a.x, threadIdx.x % chunks);
    float sums[2 * WIDTH] = {};
    for_each_chunk<4>(size, [&](int i) { return Inputs{load(a.x, i)}; }, [&](int, Inputs in) {
        for (int k = 0; k < WIDTH; ++k) {
            const float d = READ(in.x.of[k]) - READ(pivot.of[k]);
            sums[k] += d;
            sums[WIDTH + k] += d * d;
        }
    });
    if (!sum_blocks(sums, a, chunks)) return;
    const float pixels = size / chunks;
    for (int k = 0; k < WIDTH; ++k) {
        const float d = sums[k] / pixels, var = sums[WIDTH + k] / pixels - d * d;
        a.mean[threadIdx.x * WIDTH + k] = READ(pivot.of[k]) + d;
        a.inverse[threadIdx.x * WIDTH + k] = 1.0f / sqrtf((var < 0.0f ? 0.0f : var) + EPS);
    }
}

KERNEL normalise(Arrays a, int size, int chunks) {
    const Normal normal(a, threadIdx.x % chunks * WIDTH);
    for_each_chunk<4>(size, [&](int i) { return Inputs{load(a.x, i)}; }, [&](int i, Inputs in) {
        Chunk result;
        for (int k = 0; k < WIDTH; ++k) {
            const float z = normal.z(k, in);
            result.of[k] = ROUND(z <= 0.0f ? 0.0f : z);  // NaN stays NaN
        }
        ((uint4*)a.y)[i] = result.memory;
    });
}

// gbeta and ggamma, the sums of g and of g (x - mean) inverse.
KERNEL gradient_sums(Arrays a, int size, int chunks) {
    const int channel = threadIdx.x % chunks * WIDTH;
    const Normal normal(a, channel);
    float sums[2 * WIDTH] = {};
    for_each_chunk<2>(size, [&](int i) { return Inputs{load(a.x, i), load(a.gy, i)}; },
                      [&](int, Inputs in) {
        for (int k = 0; k < WIDTH; ++k) {
            const float g = normal.g(k, in);
            sums[k] += g;
            sums[WIDTH + k] += g * normal.d(k, in);
        }
    });
    if (!sum_blocks(sums, a, chunks)) return;
    for (int k = 0; k < WIDTH; ++k) {
        a.gbeta[channel + k] = sums[k];
        a.ggamma[channel + k] = sums[WIDTH + k] * a.inverse[channel + k];
    }
}

// gx = scale (g - gbeta / pixels - (x - mean) inverse ggamma / pixels) [+ residual].
KERNEL input_gradient(Arrays a, int size, int chunks) {
    const int channel = threadIdx.x % chunks * WIDTH;
    const Normal normal(a, channel);
    const float pixels = size / chunks;
    float slope[WIDTH], offset[WIDTH];
    for (int k = 0; k < WIDTH; ++k) {
        slope[k] = a.inverse[channel + k] * a.ggamma[channel + k] / pixels;
        offset[k] = a.gbeta[channel + k] / pixels;
    }
    for_each_chunk<2>(size, [&](int i) {
        return Inputs{load(a.x, i), load(a.gy, i), a.residual ? load(a.residual, i) : Chunk{}};
    }, [&](int i, Inputs in) {
        Chunk result;
        for (int k = 0; k < WIDTH; ++k) {
            const float g = normal.g(k, in) - offset[k] - slope[k] * normal.d(k, in);
            result.of[k] = ROUND(normal.scale[k] * g + READ(in.residual.of[k]));
        }
        ((uint4*)a.gx)[i] = result.memory;
    });
}
"""
)
#: By bytes of an activation.
SOURCES = {
    2: FLOAT16 + "#define READ from_half\n#define ROUND to_half\ntypedef unsigned short number;\n",
    4: "#define READ\n#define ROUND\ntypedef float number;\n",
}
KERNELS = {
    "batch_norm": ("statistics", "normalise"),
    "batch_norm_grad": ("gradient_sums", "input_gradient"),
}


def launch_for(precision: str, operation: str, *arguments: Any) -> Callable[..., None] | None:
    """Launch of ``batch_norm`` or ``batch_norm_grad`` with ReLU, where the channels of a pixel are
    chunks whose number divides THREADS. The gradient adds ``residual`` to gx, if that is given."""
    if operation not in KERNELS:
        return None
    (_, channels, *_), relu = arguments
    itemsize = 2 if precision == "mixed" else 4
    chunks, rest = divmod(channels * itemsize, CHUNK)
    if not relu or rest or THREADS % chunks:
        return None
    return partial(_launch, SOURCES[itemsize] + _KERNELS, KERNELS[operation], chunks)


def _launch(source: str, kernels: Sequence[str], chunks: int, arrays: Mapping[str, Any]) -> None:
    import cupy

    size = arrays["x"].nbytes // CHUNK
    blocks = min(BLOCKS, -(-size // THREADS))
    parts = cupy.empty((blocks, 2, arrays["gamma"].size), np.float32)
    stream = cupy.cuda.get_current_stream()
    arrays = {**arrays, "parts": parts, "ended": _counter(cupy.cuda.Device().id, stream.ptr)}
    pointers = [arrays[name].data.ptr if name in arrays else 0 for name in ARRAYS]
    table = np.array(pointers, np.uint64).view(f"V{8 * len(ARRAYS)}")
    arguments = table, np.int32(size), np.int32(chunks)
    for kernel in kernels:
        launch(source, THREADS, kernel, blocks * THREADS, arguments)


@cache
def _counter(device: int, stream: int) -> Any:
    """Number of blocks that have ended, 0 between launches; launches of a stream do not overlap."""
    import cupy

    # From no pool: the current pool may be a captured step's, which is freed with the step.
    with cupy.cuda.using_allocator(None):
        return cupy.zeros(1, np.uint32)
