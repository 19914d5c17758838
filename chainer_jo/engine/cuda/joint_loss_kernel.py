"""The joint loss (eq. 5) on a GPU: terms and gradient in one kernel.

The same takes some forty array operations, each on only 128 x 10 numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from chainer_jo.engine.cuda.cuda_source import launch

#: Threads of the single block, which sums over the batch.
THREADS = 256
#: Order of the terms in `Result.terms`.
TERMS = ("loss", "cross_entropy", "classification", "prior", "entropy")

SOURCE = (
    f"#define THREADS {THREADS}\n"
    + r"""
// The sum over all threads of the block, in an order that is always the same; given to each.
__device__ float total(float value) {
    __shared__ float part[THREADS];
    const int t = threadIdx.x;
    part[t] = value;
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (t < width) part[t] += part[t + width];
    }
    __syncthreads();
    const float sum = part[0];
    __syncthreads();
    return sum;
}

// Of logits z (n, c): s = softmax(z), the loss and its terms, the gradient of the loss. Without
// labels y (n, c), or with alpha or beta 0, a term is left out. `ratio` (c,) is scratch.
extern "C" __global__ void joint_loss(
        const float* z, const float* y, const float* prior, float* s, float* gradient,
        float* terms, float* ratio, int n, int c, float alpha, float beta) {
    float cross = 0.0f, negative = 0.0f, entropy = 0.0f;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        const long long row = (long long)i * c;
        float peak = z[row];
        for (int k = 1; k < c; ++k) peak = fmaxf(peak, z[row + k]);
        float sum = 0.0f;
        for (int k = 0; k < c; ++k) sum += s[row + k] = expf(z[row + k] - peak);
        const float log_sum = logf(sum);
        float own = 0.0f, labelled = 0.0f;
        for (int k = 0; k < c; ++k) {
            const float log_s = z[row + k] - peak - log_sum;
            s[row + k] /= sum;
            own -= s[row + k] * log_s;
            if (y) {
                const float label = y[row + k];
                labelled += label;
                cross -= label * log_s;
                if (label > 0.0f) negative += label * logf(label);  // 0 log 0 = 0
            }
        }
        entropy += own;
        for (int k = 0; k < c; ++k) {
            float g = y ? s[row + k] * labelled - y[row + k] : 0.0f;
            if (beta != 0.0f) g -= beta * s[row + k] * (z[row + k] - peak - log_sum + own);
            gradient[row + k] = g / n;
        }
    }
    cross = total(cross) / n;
    negative = total(negative) / n;
    entropy = beta != 0.0f ? total(entropy) / n : 0.0f;
    float divergence = 0.0f;
    if (alpha != 0.0f) {
        for (int k = threadIdx.x; k < c; k += THREADS) {
            float sum = 0.0f;
            for (int i = 0; i < n; ++i) sum += s[(long long)i * c + k];
            ratio[k] = prior[k] / (sum / n);
            divergence += prior[k] * logf(ratio[k]);
        }
        divergence = total(divergence);
        for (int i = threadIdx.x; i < n; i += THREADS) {
            const long long row = (long long)i * c;
            float mean = 0.0f;
            for (int k = 0; k < c; ++k) mean += s[row + k] * ratio[k];
            for (int k = 0; k < c; ++k)
                gradient[row + k] -= alpha * s[row + k] * (ratio[k] - mean) / n;
        }
    }
    if (threadIdx.x == 0) {
        terms[0] = cross + negative + alpha * divergence + beta * entropy;
        terms[1] = cross;
        terms[2] = cross + negative;
        terms[3] = divergence;
        terms[4] = entropy;
    }
}
"""
)


class Result(NamedTuple):
    """Softmax and gradient (n, c), and the values of `TERMS`; all float32."""

    probabilities: Any
    gradient: Any
    terms: Any


def joint_loss(logits: Any, labels: Any | None, prior: Any | None, alpha: float, beta: float):
    """`Result` for logits z (n, c), labels y (n, c) or None, and the prior p (c,), which is used if
    alpha is not 0; contiguous float32 arrays on the device."""
    import cupy

    n, c = logits.shape
    s, gradient = cupy.empty((n, c), np.float32), cupy.empty((n, c), np.float32)
    terms, ratio = cupy.empty(len(TERMS), np.float32), cupy.empty(c, np.float32)
    numbers = np.int32(n), np.int32(c), np.float32(alpha), np.float32(beta)
    arrays = logits, labels, prior if alpha else None, s, gradient, terms, ratio
    launch(SOURCE, THREADS, "joint_loss", THREADS, (*arrays, *numbers))
    return Result(s, gradient, terms)
