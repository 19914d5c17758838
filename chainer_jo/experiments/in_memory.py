"""What `relabelling` trains on: feature vectors, or images, with the network that fits them."""

from __future__ import annotations

import chainer
import numpy as np

from chainer_jo.datasets import augmentation
from chainer_jo.links.feature_network import FeatureNetwork
from chainer_jo.links.preact_resnet import PreActResNet
from chainer_jo.training.feature_input import FeatureInput, centre_and_scale
from chainer_jo.training.images import NetworkInput


class FeatureSet:
    """Feature vectors (n, d) of any model, for a network with one hidden layer of so many units."""

    pad, flip = 0, False

    def __init__(self, features: np.ndarray, hidden: int = 32) -> None:
        self.features = features
        self.hidden = hidden

    def __len__(self) -> int:
        return len(self.features)

    def network(self, num_classes: int, rng: np.random.RandomState) -> chainer.Link:
        """A fresh network."""
        return FeatureNetwork(self.features.shape[1], num_classes, self.hidden, rng)

    def inputs(self, rows: np.ndarray, trained_on: np.ndarray) -> FeatureInput:
        """Those of some rows, as a network sees them that is trained on others or the same."""
        return FeatureInput(self.features[rows], *centre_and_scale(self.features[trained_on]))


class ImageSet:
    """Images uint8 (n, h, w, c), for the paper's network, or a smaller one of its kind.

    Parameters
    ----------
    images : uint8 (n, h, w, c).
    units, widths : of `PreActResNet`.
    pad, flip : how training images are augmented; see `BatchIterator`.
    """

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

    def inputs(self, rows: np.ndarray, trained_on: np.ndarray) -> NetworkInput:
        """Those of some rows, as a network sees them that is trained on others or the same."""
        mean = augmentation.mean_image(self.images[trained_on])
        return NetworkInput(self.images[rows], mean, self.pad)
