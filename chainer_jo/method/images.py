"""Images of one set as network input, from memory or from disk (Section 5.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import chainer
import numpy as np
from chainer import backend

from chainer_jo.data.image_stream import ImageStream
from chainer_jo.data.labelled_data import Labelled
from chainer_jo.engine.backend import is_on_gpu
from chainer_jo.engine.cuda import kernels
from chainer_jo.method import augmentation
from chainer_jo.method.iterator import Batch, BatchIterator

if TYPE_CHECKING:
    from chainer_jo.method.noisy_split import NoisySplit

#: Number of images per forward pass in test mode.
BATCH = 500


class Images:
    """Images on the device, as network input: uint8 to mean-subtracted float32 (b, c, h, w), in
    channels-last memory. `StreamedImages` are on disk.

    Parameters
    ----------
    images : uint8 (n, h, w, c), on the device.
    mean : mean training image, float32 (h, w, c) in [0, 1].
    pad : zero pixels on each side before a crop.
    """

    def __init__(self, images: np.ndarray, mean: np.ndarray, pad: int = 0) -> None:
        self.images = images
        self.mean = mean
        self.pad = pad

    def __len__(self) -> int:
        return len(self.images)

    def fetch(self, batch: Batch, iterator: BatchIterator) -> tuple[Any, ...]:
        """Arrays of a batch that are not on the device yet; called once a step, with the iterator
        that gave out the batch."""
        return ()

    def augmented(self, batch: Batch, *fetched: Any) -> Any:
        """Cropped and flipped images of a training batch, given the arrays from `fetch`; by device
        operations alone, so that a CUDA graph can hold it."""
        if is_on_gpu(self.images):
            x = kernels.network_input(self.images, self.mean, batch, self.pad)
        else:
            x = augmentation.apply(
                self.images[batch.indices], self.mean, batch.dy, batch.dx, batch.flips, self.pad
            )
        return x.transpose(0, 3, 1, 2)

    def plain(self, rows: slice) -> Any:
        """Images of a slice, neither cropped nor flipped."""
        normalise = kernels.network_input if is_on_gpu(self.images) else augmentation.normalise
        return normalise(self.images[rows], self.mean).transpose(0, 3, 1, 2)

    def in_order(self) -> Iterator[Any]:
        """All images once, not augmented, batch by batch."""
        for start in range(0, len(self), BATCH):
            yield self.plain(slice(start, start + BATCH))


class StreamedImages(Images):
    """Images on disk (Clothing1M has a million), decoded ahead of training; not augmented.

    Parameters
    ----------
    root, files : folder, and paths below it, strings (n,).
    stream : decoder; several sets may share it, and are read one at a time.
    mean, std : per channel, in the order ``channels``, in [0, 255].
    channels : "RGB" or "BGR".
    send : function that copies arrays to the device.
    """

    def __init__(
        self,
        root: str,
        files: np.ndarray,
        stream: ImageStream,
        mean: Sequence[float],
        std: Sequence[float],
        channels: str = "RGB",
        send: Callable[[np.ndarray], Any] = np.asarray,
    ) -> None:
        self._root = root
        self._files = files
        self._stream = stream
        self._mean = send(np.asarray(mean, np.float32))
        self._scale = send((1 / np.asarray(std)).astype(np.float32))
        self._order = slice(None, None, -1 if channels == "BGR" else 1)
        self._pixels: Iterator[Any] = iter(())
        self._expected: deque[np.ndarray] = deque()

    def __len__(self) -> int:
        return len(self._files)

    def fetch(self, batch: Batch, iterator: BatchIterator) -> tuple[Any]:
        """Pixels of a batch, uint8 (b, h, w, 3); the next batches are decoded meanwhile."""
        if not self._stream.is_reading(self._pixels):
            # At the beginning, and after another set of images has been read.
            now = backend.CpuDevice().send(batch.indices)
            self._expected.clear()
            self._pixels = self._stream.batches(map(self._note, chain([now], iterator.upcoming())))
        pixels, expected = next(self._pixels), self._expected.popleft()
        # Looking at the indices on a GPU would wait for the GPU.
        if isinstance(batch.indices, np.ndarray) and not np.array_equal(expected, batch.indices):
            raise RuntimeError("batch asked for out of the order that was announced")
        return (pixels,)

    def _note(self, indices: np.ndarray) -> list[str]:
        self._expected.append(indices)
        return self._paths(indices)

    def _paths(self, rows: np.ndarray | slice) -> list[str]:
        return [f"{self._root}/{file}" for file in self._files[rows]]

    def augmented(self, batch: Batch, *fetched: Any) -> Any:
        """Pixels uint8 (b, h, w, 3) from `fetch` as float32 (b, 3, h, w)."""
        return self.prepared(*fetched)

    def prepared(self, pixels: Any) -> Any:
        """Mean subtraction, channel order and scale, in channels-last memory."""
        x = (pixels[..., self._order].astype(np.float32) - self._mean) * self._scale
        return x.transpose(0, 3, 1, 2)

    def in_order(self) -> Iterator[Any]:
        """All images once, in batches of the stream's size; ends any other reading."""
        size = self._stream.batch_size
        batches = (self._paths(slice(i, i + size)) for i in range(0, len(self), size))
        yield from map(self.prepared, self._stream.batches(batches))


def split_images(
    split: NoisySplit,
    network: chainer.Link,
    device: backend.Device,
    batch_size: int,
    pad: int,
    workers: int | None,
) -> tuple[Callable[[Labelled], Images], Callable[[], None]]:
    """Function that makes `Images` of a set of a split, streamed if they are on disk, otherwise
    sent to the device whole; and function that ends the decoding processes.

    Parameters
    ----------
    network : takes the images; a pretrained one states their mean, scale and channel order.
    pad : pixels around an image before it is cropped in training.
    workers : processes that decode images on disk; None: one per core less one.
    """
    if not split.train.on_disk:
        mean = device.send(split.mean)
        return lambda each: Images(device.send(each.images), mean, pad), lambda: None
    on_cuda = device.xp is not np
    stream = ImageStream(batch_size, *split.selection.square, workers, on_cuda=on_cuda)
    variant = getattr(network, "variant", None)  # of pretrained weights
    if variant is None:
        scaling = split.mean.tolist(), (255.0,) * 3, "RGB"
    else:
        scaling = variant.mean, variant.std, variant.channels
    return (
        lambda each: StreamedImages(split.root, each.images, stream, *scaling, device.send),
        stream.close,
    )
