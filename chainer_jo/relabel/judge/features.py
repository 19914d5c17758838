"""Feature vectors as input of training, in the place of images."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from chainer_jo.method.images import ImagesInMemory
from chainer_jo.method.iterator import Batch
from chainer_jo.relabel.judge.feature_network import FeatureNetwork
from chainer_jo.relabel.judge.feature_scaling import scaling_of

#: Units of a network's hidden layer.
HIDDEN = 32


class FeatureInput(ImagesInMemory):
    """Features of one set, given out as float32 (b, d), never augmented; replaces `NetworkInput`.

    Parameters
    ----------
    features : (n, d).
    mean : (d,), of the training features, in whose dtype differences are taken.
    scale : divisor of the differences, () or (d,); see `feature_scaling.scaling_of`.
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
