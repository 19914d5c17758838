"""Scaling of feature vectors: one scale for all columns, or each column's own.

One scale suits embeddings: their columns have one unit, and standardisation amplifies noise, in the
small columns of a PCA above all. Standardisation suits tables: their columns have units of their
own, and the largest hides the others. The features alone do not tell embeddings from tables, so the
given labels decide.
"""

from __future__ import annotations

import numpy as np

#: Features are standardised if that predicts labels better by this many standard errors.
CERTAIN = 2.0
#: Rows at most that the two scalings are compared on.
SAMPLE = 1000
#: Ridge penalties, in variances of the average column. A smaller penalty would let the regression
#: use columns that are too small for a network.
PENALTIES = 0.1, 1.0, 10.0


def scaling_of(features: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and scale of features, both of their dtype. The scale is the root mean square of
    all deviations, (), or the standard deviation of each column, (d,), infinite for a constant one.

    The second is chosen if a linear regression on all other rows then predicts a row's label
    better, by `CERTAIN` standard errors.

    Parameters
    ----------
    features : float32 or float64 (n, d), finite.
    given : int (n,), noisy labels.
    """
    mean = features.mean(axis=0, dtype=np.float64)
    # In units of a column's range no square overflows or vanishes.
    unit = np.ptp(features, axis=0).astype(np.float64)
    deviations = features - mean
    deviations /= np.where(unit > 0, unit, np.inf)
    own = unit * np.sqrt(np.einsum("nd,nd->d", deviations, deviations) / len(deviations))
    largest = own.max() or 1.0
    one = np.float64(largest * np.sqrt(((own / largest) ** 2).mean()) or 1.0)
    own[own == 0] = np.inf
    rows = np.random.default_rng(0).permutation(len(deviations))[:SAMPLE]
    one_hot = np.eye(given.max() + 1)[given[rows]]
    errors = (_left_out_errors(deviations[rows] * (unit / s), one_hot) for s in (one, own))
    gain = np.subtract(*errors)
    better = gain.mean() > CERTAIN * gain.std() / np.sqrt(len(gain))
    return mean.astype(features.dtype), (own if better else one).astype(features.dtype)


def _left_out_errors(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared leave-one-out errors (n,) of ridge regression from x (n, d) to y (n, c), with that of
    the `PENALTIES` which has the smallest sum."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    found = []
    for penalty in PENALTIES:
        kept = s**2 / (s**2 + penalty * len(x))
        residuals = y - u @ (kept[:, None] * (u.T @ y))
        leverage = u**2 @ kept + 1 / len(x)
        found.append(((residuals / (1 - leverage)[:, None]) ** 2).sum(axis=1))
    return min(found, key=np.sum)
