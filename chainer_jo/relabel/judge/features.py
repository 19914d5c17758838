"""Feature vectors, scaled, as input of training in the place of images.

One scale for all columns suits embeddings: standardisation would amplify noise, the small columns
of a PCA above all. Standardisation suits tables: the columns have units of their own, and the
largest would hide the others. The given labels decide."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from chainer_jo.method.images import ImagesInMemory
from chainer_jo.method.iterator import Batch
from chainer_jo.relabel.judge.feature_network import FeatureNetwork

#: Units of a network's hidden layer.
HIDDEN = 32
#: Rows at most on which the two scalings are compared.
MAX_ROWS = 500
#: Ridge penalties, as parts of the kernel's trace.
PENALTIES = 0.01, 0.03, 0.1, 0.3


class FeatureInput(ImagesInMemory):
    """Features of one set, given out as float32 (b, d), never augmented; replaces `NetworkInput`.

    Parameters
    ----------
    features : (n, d).
    mean : (d,), of the training features, in whose dtype differences are taken.
    scale : divisor of the differences, () or (d,); see `scaling_of`.
    """

    def __init__(self, features: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> None:
        self.values = ((features.astype(mean.dtype, copy=False) - mean) / scale).astype(np.float32)
        self.rows = np.arange(len(features))

    def of(self, rows: np.ndarray) -> FeatureInput:
        """Selects rows: int (m,), or (m, k) for k networks side by side, given out as (b, k, d)."""
        some = copy.copy(self)
        some.rows = self.rows[rows]
        return some

    def __len__(self) -> int:
        return len(self.rows)

    def augmented(self, batch: Batch):
        """The features of a training batch."""
        return self.values[self.rows[batch.indices]]

    def plain(self, part: slice):
        """The features of a slice."""
        return self.values[self.rows[part]]


class FeatureSet:
    """Feature vectors (n, d) of any model, for networks with a hidden layer of `HIDDEN` units.

    Parameters
    ----------
    features : float32 or float64 (n, d).
    given : int (n,), noisy labels.

    Attributes
    ----------
    normalisation : mean and scale of the features, which `FeatureInput` applies to others.
    values : float32 (n, d), as networks see them.
    """

    def __init__(self, features: np.ndarray, given: np.ndarray) -> None:
        self.normalisation = scaling_of(features, given)
        self._inputs = FeatureInput(features, *self.normalisation)
        self.values = self._inputs.values

    def __len__(self) -> int:
        return len(self.values)

    def network(
        self, num_classes: int, rngs: Sequence[np.random.RandomState], stacked: bool
    ) -> FeatureNetwork:
        """Fresh networks side by side, one for each source of weights; or the first alone."""
        d = self.values.shape[1]
        networks = [FeatureNetwork(d, num_classes, HIDDEN, rng) for rng in rngs]
        return FeatureNetwork.stacked(networks) if stacked else networks[0]

    def inputs(self, rows: np.ndarray) -> FeatureInput:
        """Network input of some rows; see `FeatureInput.of`."""
        return self._inputs.of(rows)


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
