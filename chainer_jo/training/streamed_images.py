"""Images that stay on disk, given out as the network wants them: `NetworkInput` for a million."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from chainer import backend

from chainer_jo.datasets.image_stream import ImageStream
from chainer_jo.datasets.labelled_data import ImageFiles
from chainer_jo.training.images import Images
from chainer_jo.training.iterator import Batch, BatchIterator


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
    """The images of one set, or of one rank's part of it.

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
        self._pixels: Iterator[Any] | None = None
        self._expected: deque[np.ndarray] = deque()

    def __len__(self) -> int:
        return len(self._files)

    def fetch(self, batch: Batch) -> tuple[Any]:
        """The pixels of a batch, uint8 (b, h, w, 3); those to come are decoded meanwhile."""
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
