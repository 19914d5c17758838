"""Feature vectors as training takes them, in the place of images."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from chainer_jo.relabel.feature_network import FeatureNetwork
from chainer_jo.training.images import ImagesInMemory
from chainer_jo.training.iterator import Batch

#: Units of a network's hidden layer.
HIDDEN = 32


class FeatureInput(ImagesInMemory):
    """Features of one set, given out as float32 (b, d); see `NetworkInput`, whose place it takes.

    Nothing is augmented. All dimensions are divided by one number: those of an embedding mean the
    same, and to blow up the small ones, after a PCA above all, would be to blow up noise.

    Parameters
    ----------
    features : (n, d).
    mean : (d,), of the training features.
    scale : root mean square of the training features' deviations from their mean.
    """

    def __init__(self, features, mean, scale: float) -> None:
        self.values = ((features - mean) / np.float32(scale)).astype(np.float32)
        self.rows = np.arange(len(features))

    def of(self, rows: np.ndarray) -> FeatureInput:
        """Some of them: int (m,), or (m, k) for k networks side by side, given out as (b, k, d)."""
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

    Attributes
    ----------
    look : mean and scale of these, by which `FeatureInput` shows other features in the same way.
    """

    def __init__(self, features: np.ndarray) -> None:
        self.features = features
        mean = features.mean(axis=0, dtype=np.float64)
        scale = float(np.sqrt(features.var(axis=0, dtype=np.float64).mean()))
        self.look = mean.astype(np.float32), scale or 1.0

    def __len__(self) -> int:
        return len(self.features)

    def network(
        self, num_classes: int, rngs: Sequence[np.random.RandomState], beside: bool
    ) -> FeatureNetwork:
        """Fresh networks side by side, one for each source of weights; or the first alone."""
        d = self.features.shape[1]
        networks = [FeatureNetwork(d, num_classes, HIDDEN, rng) for rng in rngs]
        return FeatureNetwork.beside(networks) if beside else networks[0]

    def inputs(self, rows: np.ndarray) -> FeatureInput:
        """Those of some rows, as a network sees them; see `FeatureInput.of`."""
        return self._inputs.of(rows)

    @cached_property
    def _inputs(self) -> FeatureInput:
        return FeatureInput(self.features, *self.look)
