"""Convolutions 3x3 with stride 1 of 32 channels and 32x32 pixels, in float16, by tensor cores.

Each tile of an image is copied into shared memory once, with its border, and all nine taps read it
there; cuDNN's convolutions, implicit matrix products, read it nine times. Sums have a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from chainer_jo.engine.backend import EPS
from chainer_jo.engine.cuda.cuda_source import FLOAT16, LAST_BLOCK, ended, launch

#: Rows of a tile. A block of `conv32` has a tile and a warp for every two rows. A block of
#: `conv32_grad_weight` has several tiles, and for each of four half rows a warp per row of taps.
ROWS, GRAD_ROWS = 16, 8
THREADS, GRAD_THREADS = 32 * ROWS // 2, 32 * 4 * 3
#: Maximum number of blocks of `conv32_grad_weight`: each has four tiles in a batch of 128.
GRAD_BLOCKS = 128
#: Bytes of shared memory: a tile and the weights; two tiles of x and gy, one to be copied while the
#: other one is computed with.
SHARED = 64 * ((ROWS + 2) * 34 + 9 * 32)
GRAD_SHARED = 64 * 2 * ((GRAD_ROWS + 2) * 34 + GRAD_ROWS * 32)

_SOURCE = (
    FLOAT16
    + LAST_BLOCK
    + f"#define EPS {EPS}f\n"
    + f"const int ROWS = {ROWS}, GRAD_ROWS = {GRAD_ROWS}, THREADS = {THREADS};\n"
    + r"""
typedef unsigned short float16;
const int SIDE = 32, CHANNELS = 32, WIDTH = SIDE + 2;  // a tile is wider than an image
const int IMAGE = SIDE * SIDE * CHANNELS, WEIGHTS = 9 * CHANNELS * CHANNELS, PIXEL = 2 * CHANNELS;

// Byte in a tile of 8 channels of a pixel, a chunk: no two of eight consecutive pixels have the
// same chunk in the same bank, nor have pixels at intervals of nine, which the weights are.
__device__ unsigned place(int pixel, int chunk) {
    return pixel * PIXEL + ((chunk ^ (pixel >> 1 & 3)) << 4);
}

// Queues the copy of rows of an image to a tile, with a border in which zeros surround the image.
__device__ void copy(unsigned tile, const float16* image, int first, int rows, int border) {
    const int width = SIDE + 2 * border;
    for (int i = threadIdx.x; i < (rows + 2 * border) * width * 4; i += blockDim.x) {
        const int row = first - border + i / 4 / width, column = i / 4 % width - border;
        const bool inside = row >= 0 && row < SIDE && column >= 0 && column < SIDE;
        const float16* source = image + (inside ? (row * SIDE + column) * CHANNELS + i % 4 * 8 : 0);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(tile + place(i / 4, i % 4)), "l"(source), "r"(inside ? 16 : 0));
    }
}

// Four matrices of 8 x 8 into the registers of a warp; 8 threads each have a matrix's addresses.
#define LOAD(r, transposed, address) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" transposed ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) : "r"(address))

// sums (16, 32) += a (16, 16) b (16, 32). A thread has rows lane / 4 and lane / 4 + 8 of the sums
// and, of each eight columns, lane % 4 * 2 and the next one.
__device__ void multiply(float (&sums)[4][4], const unsigned (&a)[4], const unsigned (&b)[2][4]) {
    for (int j = 0; j < 4; ++j)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                       "r"(b[j / 2][j % 2 * 2]), "r"(b[j / 2][j % 2 * 2 + 1]));
}

// Sums over the warps: of the numbers of a channel in `room`, in the channel's thread of each warp.
__device__ float sum_rows(const float* room) {
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x % CHANNELS; i < THREADS; i += CHANNELS) sum += room[i];
    __syncthreads();
    return sum;
}

// Sums over the pixels of a block, of y or of its squares about `mean`.
__device__ float sum_pixels(const float (&y)[4][4][4], const float* mean, float* room) {
    const int lane = threadIdx.x % 32, row = threadIdx.x - lane;
    for (int k = 0; k < 8; ++k) {
        const int channel = k / 2 * 8 + lane % 4 * 2 + k % 2;
        float sum = 0.0f;
        for (int i = 0; i < 8; ++i) {
            const float d = y[i / 2][k / 2][i % 2 * 2 + k % 2] - (mean ? mean[channel] : 0.0f);
            sum += mean ? d * d : d;
        }
        for (int other = 4; other < 32; other *= 2) sum += __shfl_xor_sync(~0u, sum, other);
        if (lane < 4) room[row + channel] = sum;
    }
    return sum_rows(room);
}

struct Statistics { float *mean, *inverse, *parts; unsigned* ended; };

// Mean and 1 / sqrt(variance + EPS) of y in all blocks. Each block has the mean and the squares
// about it; those of blocks with the same number of pixels are combined as by Chan et al. (1979).
__device__ void write_statistics(const float (&y)[4][4][4], const Statistics& all, float* room) {
    const int channel = threadIdx.x % CHANNELS, warp = threadIdx.x / CHANNELS;
    const float pixels = ROWS * SIDE;
    float* const means = room + THREADS;
    __syncthreads();  // the room has been the tile's
    float mean = sum_pixels(y, nullptr, room) / pixels, squares;
    if (warp == 0) means[channel] = all.parts[blockIdx.x * 2 * CHANNELS + channel] = mean;
    __syncthreads();
    squares = sum_pixels(y, means, room);
    if (warp == 0) all.parts[(blockIdx.x * 2 + 1) * CHANNELS + channel] = squares;
    if (!is_last_block(all.ended)) return;
    mean = squares = 0.0f;
    for (int i = warp; i < gridDim.x; i += THREADS / CHANNELS)
        mean += __ldcg(all.parts + i * 2 * CHANNELS + channel);
    room[threadIdx.x] = mean;
    mean = sum_rows(room) / gridDim.x;
    for (int i = warp; i < gridDim.x; i += THREADS / CHANNELS) {
        const float d = __ldcg(all.parts + i * 2 * CHANNELS + channel) - mean;
        squares += __ldcg(all.parts + (i * 2 + 1) * CHANNELS + channel) + pixels * d * d;
    }
    room[threadIdx.x] = squares;
    const float variance = sum_rows(room) / (pixels * gridDim.x);
    if (warp != 0) return;
    all.mean[channel] = mean;
    all.inverse[channel] = 1.0f / sqrtf(variance + EPS);
}

// y = x * W [+ residual], with weights (o, 9 taps, c); also its statistics, if they have a place.
// The gradient gx of the input is the same of gy, with a sum over o and the taps TURNED by 180
// degrees.
extern "C" __global__ void __launch_bounds__(THREADS, 2) conv32(
        const float16* x, const float16* W, const float16* residual, float16* y,
        float* mean, float* inverse, float* parts, unsigned* ended) {
    extern __shared__ __align__(128) unsigned char memory[];
    const unsigned weights = __cvta_generic_to_shared(memory), tile = weights + 2 * WEIGHTS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, bands = SIDE / ROWS;
    copy(weights, W, 0, 9, 0);
    copy(tile, x + (long long)(blockIdx.x / bands) * IMAGE, blockIdx.x % bands * ROWS, ROWS, 1);
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;");
    __syncthreads();
    float sums[4][4][4] = {};  // halves of two rows
#pragma unroll 3
    for (int tap = 0; tap < 9; ++tap)
#pragma unroll
        for (int half = 0; half < 2; ++half) {  // of the channels to sum over
            unsigned a[4], b[2][4];
            for (int j = 0; j < 2; ++j) {
                const int o = TURNED ? half * 16 + lane % 16 : j * 16 + lane % 8 + lane / 16 * 8;
                const int chunk = TURNED ? j * 2 + lane / 16 : half * 2 + lane / 8 % 2;
                const unsigned address = weights + place(o * 9 + (TURNED ? 8 - tap : tap), chunk);
                if (TURNED) LOAD(b[j], ".trans", address); else LOAD(b[j], "", address);
            }
#pragma unroll
            for (int m = 0; m < 4; ++m) {
                const int row = warp * 2 + m / 2 + tap / 3, column = m % 2 * 16 + tap % 3;
                LOAD(a, "", tile + place(row * WIDTH + column + lane % 16, half * 2 + lane / 16));
                multiply(sums[m], a, b);
            }
        }
    auto place_of = [&](int i) {  // of two neighbouring sums in y
        const int pixel = warp * 2 * SIDE + i / 8 * 16 + lane / 4 + i % 2 * 8;
        const long long first = (long long)blockIdx.x * ROWS * SIDE * CHANNELS;
        return first + pixel * CHANNELS + i / 2 % 4 * 8 + lane % 4 * 2;
    };
    ushort2 there[32] = {};
    if (residual)
#pragma unroll
        for (int i = 0; i < 32; ++i) there[i] = *(const ushort2*)(residual + place_of(i));
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        float* const pair = &sums[i / 8][i / 2 % 4][i % 2 * 2];
        const ushort2 rounded = make_ushort2(
            to_half(pair[0] + from_half(there[i].x)), to_half(pair[1] + from_half(there[i].y)));
        *(ushort2*)(y + place_of(i)) = rounded;
        pair[0] = from_half(rounded.x), pair[1] = from_half(rounded.y);
    }
    if (!TURNED && mean) write_statistics(sums, {mean, inverse, parts, ended}, (float*)memory);
}

// Each block's gradient of the weights, over its tiles: parts (blocks, o, 9 taps, c).
extern "C" __global__ void __launch_bounds__(384, 1) conv32_grad_weight(
        const float16* x, const float16* gy, float* parts, int images) {
    extern __shared__ __align__(128) unsigned char memory[];
    const unsigned tiles = __cvta_generic_to_shared(memory);
    const int x_size = (GRAD_ROWS + 2) * WIDTH * PIXEL, size = x_size + GRAD_ROWS * SIDE * PIXEL;
    const int lane = threadIdx.x % 32, taps = threadIdx.x / 32 % 3, group = threadIdx.x / 96;
    const int bands = SIDE / GRAD_ROWS;
    auto fetch = [&](int tile, int buffer) {
        const long long image = (long long)(tile / bands) * IMAGE;
        const int first = tile % bands * GRAD_ROWS;
        if (tile < images * bands) {
            copy(tiles + buffer * size, x + image, first, GRAD_ROWS, 1);
            copy(tiles + buffer * size + x_size, gy + image, first, GRAD_ROWS, 0);
        }
        asm volatile("cp.async.commit_group;");
    };
    float sums[3][2][4][4] = {};  // tap of the row, half of o
    fetch(blockIdx.x, 0);
    int buffer = 0;
    for (int tile = blockIdx.x; tile < images * bands; tile += gridDim.x, buffer ^= 1) {
        fetch(tile + gridDim.x, buffer ^ 1);
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        const unsigned x_tile = tiles + buffer * size, gy_tile = x_tile + x_size;
#pragma unroll 2
        for (int rows = 0; rows < GRAD_ROWS; rows += 2) {
            const int row = rows + group / 2, column = group % 2 * 16;
            const int pixel = row * SIDE + column + lane % 8 + lane / 16 * 8;
            unsigned a[2][4], b[2][4];
            for (int m = 0; m < 2; ++m)
                LOAD(a[m], ".trans", gy_tile + place(pixel, m * 2 + lane / 8 % 2));
#pragma unroll
            for (int tap = 0; tap < 3; ++tap) {
                const int neighbour = (row + taps) * WIDTH + column + tap + lane % 16;
                for (int j = 0; j < 2; ++j)
                    LOAD(b[j], ".trans", x_tile + place(neighbour, j * 2 + lane / 16));
                for (int m = 0; m < 2; ++m) multiply(sums[tap][m], a[m], b);
            }
        }
        __syncthreads();
    }
    float* const all = (float*)memory;
    for (int turn = 0; turn < 4; ++turn) {  // the groups, one after the other
        if (group == turn)
#pragma unroll
            for (int i = 0; i < 96; ++i) {
                const int o = i / 16 % 2 * 16 + i / 2 % 2 * 8 + lane / 4, tap = taps * 3 + i / 32;
                const int at = (o * 9 + tap) * CHANNELS + i / 4 % 4 * 8 + lane % 4 * 2 + i % 2;
                all[at] = (turn ? all[at] : 0.0f) + sums[i / 32][i / 16 % 2][i / 4 % 4][i % 4];
            }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < WEIGHTS; i += blockDim.x)
        parts[(long long)blockIdx.x * WEIGHTS + i] = all[i];
}
"""
)
SOURCES = [f"#define TURNED {turned}\n{_SOURCE}" for turned in (0, 1)]


def launch_for(precision: str, operation: str, *arguments: Any) -> Callable[..., None] | None:
    """Launch of a convolution or a gradient of it in mixed precision, of 32 channels and pixels."""
    launches: dict[str, Callable[..., None]] = {
        "convolution": partial(_convolve, 0, "x", "y"),
        "convolution_grad_input": partial(_convolve, 1, "gy", "gx"),
        "convolution_grad_weight": _grad_weight,
    }
    (_, *x_size), *geometry = arguments
    if precision != "mixed" or [x_size, *geometry[:3]] != [[32] * 3, (32, 32, 3, 3), 1, 1]:
        return None
    return launches.get(operation)


def _convolve(turned: int, source: str, result: str, arrays: Mapping[str, Any]) -> None:
    import cupy

    names = source, "W", "residual", result, "mean", "inverse"
    blocks = len(arrays[source]) * 32 // ROWS
    parts = cupy.empty((blocks, 2, 32), np.float32) if "mean" in arrays else None
    arguments = *map(arrays.get, names), parts, ended()
    launch(SOURCES[turned], THREADS, "conv32", blocks * THREADS, arguments, SHARED)


def _grad_weight(arrays: Mapping[str, Any]) -> None:
    import cupy

    x, gy, gW = arrays["x"], arrays["gy"], arrays["gW"].transpose(0, 2, 3, 1)
    blocks = min(GRAD_BLOCKS, len(x) * 32 // GRAD_ROWS)
    parts = cupy.empty((blocks, *gW.shape), np.float32)
    arguments = x, gy, parts, np.int32(len(x))
    size = blocks * GRAD_THREADS
    launch(SOURCES[0], GRAD_THREADS, "conv32_grad_weight", size, arguments, GRAD_SHARED)
    parts.sum(axis=0, dtype=np.float32, out=gW)
