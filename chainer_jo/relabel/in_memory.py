"""What `relabelling` trains on: feature vectors, or images, with the network that fits them."""

from __future__ import annotations

from functools import cached_property

import chainer
import numpy as np

from chainer_jo.datasets import augmentation
from chainer_jo.links.preact_resnet import PreActResNet
from chainer_jo.relabel.feature_input import FeatureInput, centre_and_scale
from chainer_jo.relabel.feature_network import FeatureNetwork
from chainer_jo.training.images import NetworkInput


class FeatureSet:
    """Feature vectors (n, d) of any model, for a network with one hidden layer of so many units."""

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


class ImageSet:
    """Images uint8 (n, h, w, c), for the paper's network, or a smaller one of its kind.

    Parameters
    ----------
    images : uint8 (n, h, w, c).
    units, widths : of `PreActResNet`.
    pad, flip : how training images are augmented; see `BatchIterator`.
    """

    side_by_side = False

    def __init__(
        self,
        images: np.ndarray,
        units: tuple[int, ...] = (5, 5, 5),
        widths: tuple[int, ...] = (32, 64, 128),
        pad: int = 4,
        flip: bool = True,
    ) -> None:
        self.images = images
        self.units = units
        self.widths = widths
        self.pad = pad
        self.flip = flip

    def __len__(self) -> int:
        return len(self.images)

    def network(self, num_classes: int, rng: np.random.RandomState) -> chainer.Link:
        """A fresh network."""
        return PreActResNet(self.images.shape[-1], num_classes, self.units, self.widths, rng)

    def inputs(self, rows: np.ndarray) -> NetworkInput:
        """Those of some rows, as a network sees them."""
        return NetworkInput(self.images[rows], self._mean, self.pad)

    @cached_property
    def _mean(self) -> np.ndarray:
        return augmentation.mean_image(self.images)
