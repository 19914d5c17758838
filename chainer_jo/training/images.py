"""The images of one set as the network wants them, wherever they are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainer_jo.datasets import augmentation
from chainer_jo.training import device
from chainer_jo.training.iterator import Batch

#: Images per forward pass in test mode.
BATCH = 500


class Images(ABC):
    """What the updater and the evaluation ask of images; `StreamedImages` are on disk."""

    @abstractmethod
    def __len__(self) -> int: ...

    def fetch(self, batch: Batch) -> tuple[Any, ...]:
        """Moves the parts of a batch that are not on the device yet; called once a step."""
        return ()

    @abstractmethod
    def augmented(self, batch: Batch, *fetched: Any) -> Any:
        """The images of a training batch, float32, as it draws them, given what was fetched; made
        of device arrays alone, so that a CUDA graph can hold it."""

    @abstractmethod
    def in_order(self) -> Iterator[Any]:
        """All images once as they are, float32, part by part."""


class ImagesInMemory(Images):
    """Images on the device; `NetworkInput` prepares them as the paper does."""

    @abstractmethod
    def plain(self, part: slice) -> Any:
        """The images of a slice as they are, float32."""

    def in_order(self) -> Iterator[Any]:
        for start in range(0, len(self), BATCH):
            yield self.plain(slice(start, start + BATCH))


class NetworkInput(ImagesInMemory):
    """Images uint8 (n, h, w, c) of one set, given out as float32 (b, c, h, w), mean-subtracted, in
    channels-last memory.

    Parameters
    ----------
    images : uint8 (n, h, w, c), on the device.
    mean : float32 (h, w, c), the mean of the training images, in [0, 1].
    pad : zero pixels on each side before a crop.
    """

    def __init__(self, images: np.ndarray, mean: np.ndarray, pad: int = 0) -> None:
        self.images = images
        self.mean = mean
        self.pad = pad

    def __len__(self) -> int:
        return len(self.images)

    def augmented(self, batch: Batch) -> np.ndarray:
        """The images of a training batch, cropped and flipped as it says."""
        if device.is_on_gpu(self.images):
            x = device.kernels.network_input(self.images, self.mean, batch, self.pad)
        else:
            x = augmentation.apply(
                self.images[batch.indices], self.mean, batch.dy, batch.dx, batch.flips, self.pad
            )
        return x.transpose(0, 3, 1, 2)

    def plain(self, part: slice) -> np.ndarray:
        """The images of a slice as they are."""
        normalise = (
            device.kernels.network_input
            if device.is_on_gpu(self.images)
            else augmentation.normalise
        )
        return normalise(self.images[part], self.mean).transpose(0, 3, 1, 2)
