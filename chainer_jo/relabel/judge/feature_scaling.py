"""Scaling of feature vectors. One scale for all columns suits embeddings: standardisation would
amplify noise, the small columns of a PCA above all. Standardisation suits tables: the columns have
units of their own, and the largest would hide the others. The given labels decide."""

from __future__ import annotations

import numpy as np

#: Rows at most on which the two scalings are compared.
MAX_ROWS = 500
#: Ridge penalties, as parts of the kernel's trace.
PENALTIES = 0.01, 0.03, 0.1, 0.3


def scaling_of(features: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and scale of features, of their dtype. The scale is the one with which other rows
    predict given labels better: the root mean square of all deviations, (), or the standard
    deviation of each column, (d,), infinite for a constant column.

    Parameters
    ----------
    features : float32 or float64 (n, d), finite.
    given : int (n,), noisy labels.
    """
    mean = features.mean(axis=0, dtype=np.float64)
    deviations = features - mean
    own = np.hypot.reduce(deviations, axis=0) / np.sqrt(len(features))  # of any magnitude
    own[np.ptp(features, axis=0) == 0] = 0
    one = np.float64(np.hypot.reduce(own) / np.sqrt(len(own)) or 1.0)
    own[own == 0] = np.inf
    rows = np.random.default_rng(0).permutation(len(features))[:MAX_ROWS]
    x, y = deviations[rows], given[rows, None] == np.unique(given[rows])
    scale = min((one, own), key=lambda scale: left_out_error(x / scale, y))
    return mean.astype(features.dtype), scale.astype(features.dtype)


def left_out_error(x: np.ndarray, y: np.ndarray) -> float:
    """Sum of squared leave-one-out errors of kernel ridge regression from x (n, d) to y (n, c),
    with the best of the `PENALTIES`. The kernel is Gaussian, as wide as x is."""
    from scipy.spatial.distance import cdist

    distances = cdist(x, x, "sqeuclidean")
    kernel = np.exp(-distances / (distances.mean() or 1.0))
    kernel -= kernel.mean(axis=0) + kernel.mean(axis=1, keepdims=True) - kernel.mean()
    values, vectors = np.linalg.eigh(kernel)
    values, y, errors = values.clip(0), y - y.mean(axis=0), []
    for penalty in PENALTIES:
        kept = values / (values + penalty * (values.sum() or 1.0))
        residuals = y - vectors @ (kept[:, None] * (vectors.T @ y))
        leverage = vectors**2 @ kept + 1 / len(x)
        errors.append(((residuals / (1 - leverage)[:, None]) ** 2).sum())
    return min(errors)
