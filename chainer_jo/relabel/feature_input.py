"""Feature vectors as training takes them, in the place of images."""

from __future__ import annotations

import copy
from functools import cached_property

import chainer
import numpy as np

from chainer_jo.relabel.feature_network import FeatureNetwork
from chainer_jo.training.images import ImagesInMemory
from chainer_jo.training.iterator import Batch


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


def centre_and_scale(features: np.ndarray) -> tuple[np.ndarray, float]:
    """What `FeatureInput` takes from training features (n, d): their mean (d,) float32, and the
    root mean square of their deviations from it, 1 if there are none."""
    mean = features.mean(axis=0, dtype=np.float64)
    scale = float(np.sqrt(features.var(axis=0, dtype=np.float64).mean()))
    return mean.astype(np.float32), scale or 1.0


class FeatureSet:
    """Feature vectors (n, d) of any model, for a network with one layer of ``hidden`` units."""

    pad, flip = 0, False
    #: Whether several networks are trained faster as one; see `FeatureNetwork.beside`.
    side_by_side = True

    def __init__(self, features: np.ndarray, hidden: int = 32) -> None:
        self.features = features
        self.hidden = hidden

    def __len__(self) -> int:
        return len(self.features)

    def network(self, num_classes: int, *rngs: np.random.RandomState) -> chainer.Link:
        """A fresh network, or one for each source of weights, side by side."""
        d = self.features.shape[1]
        networks = [FeatureNetwork(d, num_classes, self.hidden, rng) for rng in rngs]
        return networks[0] if len(networks) == 1 else FeatureNetwork.beside(networks)

    def inputs(self, rows: np.ndarray) -> FeatureInput:
        """Those of some rows, as a network sees them; see `FeatureInput.of`."""
        return self._inputs.of(rows)

    @cached_property
    def look(self) -> tuple[np.ndarray, float]:
        """What `FeatureInput` has to know of these to show others in the same way."""
        return centre_and_scale(self.features)

    @cached_property
    def _inputs(self) -> FeatureInput:
        return FeatureInput(self.features, *self.look)
