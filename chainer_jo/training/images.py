"""The images of a data set on the device, as the network wants them."""

import numpy as np

from chainer_jo.datasets import augmentation
from chainer_jo.training import device
from chainer_jo.training.iterator import Batch


class NetworkInput:
    """Images uint8 (n, h, w, c) of one set, given out as float32 (b, c, h, w), mean-subtracted, in
    channels-last memory.

    Parameters
    ----------
    images : uint8 (n, h, w, c).
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
