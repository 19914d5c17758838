"""CUDA kernels of a training step: network input, probabilities, gradients, parameters.

Each does in one launch what takes NumPy several passes, without host synchronisation, so that a
CUDA graph can hold a step. Arithmetic is rounded after every operation, as by NumPy: results agree
bit for bit with a CPU's, except for subnormal numbers, zero here (CuPy sets ``-ftz=true``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from chainer_jo.engine.cuda.cuda_source import ELEMENTS, FLOAT16, launch, table_of

#: Maximum number of arrays per launch of ``gather``: kernel arguments have at most 4 KiB.
CHUNKS = 128

CHUNKS_DTYPE = np.dtype([
    ("start", np.int64, CHUNKS + 1), ("source", np.uint64, CHUNKS), ("channels", np.int32, CHUNKS),
    ("pixels", np.int32, CHUNKS), ("half", np.uint8, CHUNKS),
])  # fmt: skip

SOURCE = (
    f"#define CHUNKS {CHUNKS}\n"
    + FLOAT16
    + ELEMENTS
    + r"""
// uint8 images (., h, w, c) -> float32 (b, h, w, c): scaled, less the mean (h, w, c), then cropped
// at (dy, dx) out of the image with `pad` zeros around it, then mirrored. Without indices, image i
// is the i-th; without dy, it stays whole.
extern "C" __global__ void network_input(
        const unsigned char* images, const float* mean, const long long* indices,
        const signed char* dy, const signed char* dx, const bool* flips, float* out,
        long long size, int h, int w, int c, int pad, float scale) {
    const long long i = position();
    if (i >= size) return;
    const int channel = i % c, column = i / c % w, row = i / ((long long)c * w) % h;
    const long long image = i / ((long long)c * w * h);
    int y = row, x = column;
    if (dy) {
        y = row + dy[image] - pad;
        x = (flips[image] ? w - 1 - column : column) + dx[image] - pad;
    }
    float value = 0.0f;
    if (y >= 0 && y < h && x >= 0 && x < w) {
        const long long pixel = ((long long)y * w + x) * c + channel;
        const long long source = indices ? indices[image] : image;
        const float level = images[source * h * w * c + pixel];
        value = __fsub_rn(__fmul_rn(level, scale), mean[pixel]);
    }
    out[i] = value;
}

// target[indices[i]] = rows[i], rows of c numbers; of rows with the same index the last one counts,
// as in NumPy: the batch at an epoch's end may hold an image twice.
extern "C" __global__ void write_rows(
        float* target, const long long* indices, const float* rows, int b, int c) {
    const long long i = position();
    if (i >= (long long)b * c) return;
    const int row = i / c;
    for (int later = row + 1; later < b; ++later)
        if (indices[later] == indices[row]) return;
    target[indices[row] * c + i % c] = rows[i];
}

struct Chunks {
    long long start[CHUNKS + 1];
    const void* source[CHUNKS];
    int channels[CHUNKS];
    int pixels[CHUNKS];
    unsigned char half[CHUNKS];
};

// The arrays of `chunks`, each times `factor`, one after the other. They are float32 or float16;
// those with channels are gradients of weights (o, c, kh, kw) in the memory of (o, kh, kw, c).
extern "C" __global__ void gather(Chunks chunks, float* out, float factor) {
    const long long i = position();
    if (i >= chunks.start[CHUNKS]) return;
    const int part = part_of(chunks.start, CHUNKS, i);
    long long place = i - chunks.start[part];
    const int c = chunks.channels[part], pixels = chunks.pixels[part];
    if (c) {
        const int r = place % (c * pixels);
        place = (place / (c * pixels) * pixels + r % pixels) * c + r / pixels;
    }
    const void* source = chunks.source[part];
    const float value = chunks.half[part] ? from_half(((const unsigned short*)source)[place])
                                          : ((const float*)source)[place];
    out[i] = __fmul_rn(value, factor);
}

// g += weight_decay p, v = momentum v - lr g, p += v.
extern "C" __global__ void momentum_sgd(
        float* parameters, float* velocity, const float* gradients, const float* lr,
        float momentum, float weight_decay, long long size) {
    const long long i = position();
    if (i >= size) return;
    const float g = __fadd_rn(__fmul_rn(parameters[i], weight_decay), gradients[i]);
    const float v = __fsub_rn(__fmul_rn(velocity[i], momentum), __fmul_rn(g, *lr));
    velocity[i] = v;
    parameters[i] = __fadd_rn(parameters[i], v);
}

// *found = 1 if an element is NaN or infinite.
extern "C" __global__ void find_not_finite(const float* a, int* found, long long size) {
    const long long i = position();
    if (i < size && a[i] - a[i] != 0.0f) *found = 1;
}
"""
)
#: Launch in blocks of 256 threads.
_launch = partial(launch, SOURCE, 256)


def network_input(images: Any, mean: Any, batch: Any | None = None, pad: int = 0) -> Any:
    """Preprocessed and augmented images, as by `chainer_jo.method.augmentation.apply`.

    Parameters
    ----------
    images : uint8 (n, h, w, c).
    mean : float32 (h, w, c).
    batch : indices, crops and flips (b,), a `Batch` on the device; None: all images as they are.
    pad : zero pixels on each side before the crop.

    Returns
    -------
    float32 (b, h, w, c).
    """
    import cupy

    n, h, w, c = images.shape
    draws = (None,) * 4
    if batch is not None:
        n, draws = len(batch.indices), (batch.indices, batch.dy, batch.dx, batch.flips)
    out = cupy.empty((n, h, w, c), np.float32)
    numbers = (np.int64(out.size), *map(np.int32, (h, w, c, pad)), np.float32(1 / 255))
    _launch("network_input", out.size, (images, mean, *draws, out, *numbers))
    return out


def write_rows(target: Any, indices: Any, rows: Any) -> None:
    """target[indices] = rows: float32 (n, c), int64 (b,), float32 (b, c)."""
    import cupy

    rows = cupy.ascontiguousarray(rows)
    _launch("write_rows", rows.size, (target, indices, rows, *map(np.int32, rows.shape)))


def gather(arrays: Sequence[Any], out: Any, factor: float) -> None:
    """Concatenates arrays, times a factor, into the flat float32 `out`.

    The arrays are float32 or float16 and contiguous, or have four axes and channels-last memory.
    """
    start = 0
    for first in range(0, len(arrays), CHUNKS):
        chunks = describe_chunks(arrays[first : first + CHUNKS])
        size = int(chunks["start"][0, -1])
        target = out[start : start + size]
        _launch("gather", size, (chunks, target, np.float32(factor)))
        start += size


def describe_chunks(arrays: Sequence[Any]) -> np.ndarray:
    """Kernel argument ``Chunks`` for up to CHUNKS arrays."""
    chunks = table_of(CHUNKS_DTYPE, [a.size for a in arrays])
    for i, a in enumerate(arrays):
        chunks["source"][0, i] = a.data.ptr
        chunks["half"][0, i] = a.dtype == np.float16
        if not a.flags.c_contiguous:
            if not a.transpose(0, 2, 3, 1).flags.c_contiguous:
                raise ValueError(f"shape {a.shape}, strides {a.strides}: no channels-last memory")
            chunks["channels"][0, i], chunks["pixels"][0, i] = a.shape[1], a[0, 0].size
    return chunks


def momentum_sgd(
    parameters: Any, velocity: Any, gradients: Any, lr: Any, momentum: float, weight_decay: float
) -> None:
    """SGD step with momentum on flat float32 arrays; lr (1,) is read on the device."""
    numbers = np.float32(momentum), np.float32(weight_decay), np.int64(parameters.size)
    _launch("momentum_sgd", parameters.size, (parameters, velocity, gradients, lr, *numbers))


def all_finite(a: Any) -> bool:
    """True if no element of a flat float32 array is NaN or infinite; waits for the device."""
    import cupy

    found = cupy.zeros(1, np.int32)
    _launch("find_not_finite", a.size, (a, found, np.int64(a.size)))
    return not int(found[0])
