"""The timed workload of every engine: one training iteration of a network on a batch of images.

Nothing of chainer_jo is imported here, so that an engine's memory is its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy

LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.1, 0.9, 1e-4
CLASSES = 10
SEED = 0
#: Images of CIFAR-10 that are trained on.
EPOCH = 45_000
#: Units, widths, shape of an image (h, w, c) and batch size: of the paper, of images at half the
#: resolution, and small enough for 8x8 digits, where what surrounds the arithmetic counts.
NETWORKS = {
    "paper": ((5, 5, 5), (32, 64, 128), (32, 32, 3), 128),
    "half": ((2, 2, 2), (32, 64, 128), (16, 16, 3), 128),
    "digits": ((1, 1), (16, 48), (8, 8, 1), 64),
}


class Missing(Exception):
    """An engine cannot be measured here; the message says what it lacks."""


@dataclass(frozen=True)
class Workload:
    """A network by its units and widths, and the data that it is trained on.

    images: uint8 (n, h, w, c); labels: int32 (n,).
    """

    units: tuple[int, ...]
    widths: tuple[int, ...]
    batch_size: int
    images: numpy.ndarray
    labels: numpy.ndarray

    @property
    def mean(self) -> numpy.ndarray:
        """Mean image, float32 (h, w, c), of pixels in [0, 1]."""
        return (self.images.mean(axis=0) / 255).astype(numpy.float32)

    @property
    def inputs(self) -> numpy.ndarray:
        """The images as a network takes them: float32 (n, c, h, w) with the mean subtracted."""
        pixels = self.images.astype(numpy.float32) / 255 - self.mean
        return numpy.ascontiguousarray(pixels.transpose(0, 3, 1, 2))


def tiled(workload: Workload, images: int) -> Workload:
    """The same data again and again, at least so many images: an epoch's end is then as rare."""
    times = -(-images // len(workload.images))
    return Workload(
        workload.units,
        workload.widths,
        workload.batch_size,
        numpy.tile(workload.images, (times, 1, 1, 1)),
        numpy.tile(workload.labels, times),
    )


def load(network: str, batch_size: int | None = None) -> Workload:
    """One of NETWORKS with ten batches of images.

    They are drawn uniformly, the same every time: speed does not depend on what images show.
    """
    units, widths, image_shape, size = NETWORKS[network]
    size = batch_size or size
    rng = numpy.random.default_rng(SEED)
    images = rng.integers(0, 256, (10 * size, *image_shape), dtype=numpy.uint8)
    labels = rng.integers(0, CLASSES, 10 * size).astype(numpy.int32)
    return Workload(units, widths, size, images, labels)
