"""The images of one set as the network wants them, wherever they are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from chainer import backend

from chainer_jo.data.image_stream import ImageStream
from chainer_jo.data.labelled_data import ImageFiles
from chainer_jo.engine.cuda import is_on_gpu, kernels
from chainer_jo.method import augmentation
from chainer_jo.method.iterator import Batch, BatchIterator

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
        if is_on_gpu(self.images):
            x = kernels.network_input(self.images, self.mean, batch, self.pad)
        else:
            x = augmentation.apply(
                self.images[batch.indices], self.mean, batch.dy, batch.dx, batch.flips, self.pad
            )
        return x.transpose(0, 3, 1, 2)

    def plain(self, part: slice) -> np.ndarray:
        """The images of a slice as they are."""
        normalise = kernels.network_input if is_on_gpu(self.images) else augmentation.normalise
        return normalise(self.images[part], self.mean).transpose(0, 3, 1, 2)


class Preparation:
    """Mean subtraction (Section 5.2), and the channel order and scale that the network expects.

    Parameters
    ----------
    mean, std : of the channels in that order, on the scale of 0 to 255.
    channels : "RGB" or "BGR".
    send : brings arrays to the device.
    """

    def __init__(
        self,
        mean: Sequence[float],
        std: Sequence[float],
        channels: str = "RGB",
        send: Callable[[np.ndarray], Any] = np.asarray,
    ) -> None:
        self._mean = send(np.asarray(mean, np.float32))
        self._scale = send((1 / np.asarray(std)).astype(np.float32))
        self._step = -1 if channels == "BGR" else 1

    def __call__(self, pixels: Any) -> Any:
        """uint8 (b, h, w, 3) to float32 (b, 3, h, w), in channels-last memory, on their device."""
        x = (pixels[..., :: self._step].astype(np.float32) - self._mean) * self._scale
        return x.transpose(0, 3, 1, 2)


class StreamedImages(Images):
    """The images of one set that stay on disk, a million of them.

    Parameters
    ----------
    files : where they are.
    stream : decodes; it may be shared by several sets, of which one is read at a time.
    prepare : makes network input of pixels.
    order : what gives out the batches of images that are trained on, to decode ahead; None for
        others.
    """

    def __init__(
        self,
        files: ImageFiles,
        stream: ImageStream,
        prepare: Preparation,
        order: BatchIterator | None = None,
    ) -> None:
        self._files = files
        self._stream = stream
        self._prepare = prepare
        self._order = order
        self._pixels: Iterator[Any] = iter(())
        self._expected: deque[np.ndarray] = deque()

    def __len__(self) -> int:
        return len(self._files)

    def fetch(self, batch: Batch) -> tuple[Any]:
        """The pixels of a batch, uint8 (b, h, w, 3); those to come are decoded meanwhile."""
        if self._order is None:
            raise RuntimeError("batch of images that no iterator gives out, expected `in_order`")
        if not self._stream.is_reading(self._pixels):
            # At the beginning, and after another set of images has been read.
            now = backend.CpuDevice().send(batch.indices)
            self._expected.clear()
            self._pixels = self._stream.batches(
                map(self._note, chain([now], self._order.upcoming()))
            )
        pixels, expected = next(self._pixels), self._expected.popleft()
        # Looking at the indices on a GPU would wait for the GPU.
        if isinstance(batch.indices, np.ndarray) and not np.array_equal(expected, batch.indices):
            raise RuntimeError("batch asked for out of the order that was announced")
        return (pixels,)

    def _note(self, indices: np.ndarray) -> list[str]:
        self._expected.append(indices)
        return self._files.paths(indices)

    def augmented(self, batch: Batch, pixels: Any) -> Any:
        """A training batch of these pixels: float32 (b, 3, h, w), neither cropped nor flipped."""
        return self._prepare(pixels)

    def in_order(self) -> Iterator[Any]:
        """All images once, as many at a time as the stream holds; ends any other reading of it."""
        size = self._stream.batch_size
        parts = (np.arange(i, min(i + size, len(self))) for i in range(0, len(self), size))
        yield from map(self._prepare, self._stream.batches(map(self._files.paths, parts)))
