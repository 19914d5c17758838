"""Images that stay on disk, given out as the network wants them: `NetworkInput` for a million."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from chainer import backend

from chainer_jo.datasets.clothing1m import KeyList
from chainer_jo.datasets.image_stream import ImageStream
from chainer_jo.training.iterator import Batch


@dataclass(frozen=True)
class Preparation:
    """Mean subtraction (section 4.2), and the channel order and scale that the network expects.

    Parameters
    ----------
    mean, std : of the channels in that order, on the scale of 0 to 255.
    channels : "RGB" or "BGR".
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: str = "RGB"

    def __call__(self, pixels: Any) -> Any:
        """uint8 (b, h, w, 3) to float32 (b, 3, h, w), in channels-last memory, on their device."""
        xp = backend.get_array_module(pixels)
        if self.channels == "BGR":
            pixels = pixels[..., ::-1]
        scale = xp.asarray(1 / np.asarray(self.std), np.float32)
        x = (pixels.astype(np.float32) - xp.asarray(self.mean, np.float32)) * scale
        return x.transpose(0, 3, 1, 2)


class StreamedImages:
    """The images of one set, or of one rank's part of it.

    Parameters
    ----------
    root, keys : the images are the files `root / key`.
    stream : decodes; it may be shared by several sets, of which one is read at a time.
    prepare : makes network input of pixels.
    """

    def __init__(
        self, root: Path, keys: KeyList, stream: ImageStream, prepare: Preparation
    ) -> None:
        self._root = str(root)
        self._keys = keys
        self._stream = stream
        self._prepare = prepare
        self._pixels: Iterator[Any] | None = None
        self._expected: deque[np.ndarray] = deque()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def following(self) -> bool:
        """Whether batches are being decoded ahead, in an order given to `follow`."""
        return self._stream.is_reading(self._pixels)

    def follow(self, order: Iterator[np.ndarray]) -> None:
        """Begins to decode batches ahead; `order` gives the indices of each to come."""
        self._expected.clear()
        self._pixels = self._stream.batches(map(self._note, order))

    def _note(self, indices: np.ndarray) -> list[str]:
        self._expected.append(indices)
        return self._paths(indices)

    def augmented(self, batch: Batch) -> Any:
        """The next batch of the order that is followed: float32 (b, 3, h, w)."""
        pixels = next(self._pixels)
        if not np.array_equal(self._expected.popleft(), batch.indices):
            raise RuntimeError("batch asked for out of the order that was announced")
        return self._prepare(pixels)

    def in_order(self, batch_size: int) -> Iterator[tuple[slice, Any]]:
        """All images once, (which, float32 (b, 3, h, w)); ends any other reading of the stream."""
        parts = [slice(i, i + batch_size) for i in range(0, len(self), batch_size)]
        indices = np.arange(len(self))
        batches = self._stream.batches(self._paths(indices[part]) for part in parts)
        for part, pixels in zip(parts, batches, strict=True):
            yield part, self._prepare(pixels)

    def _paths(self, indices: np.ndarray) -> list[str]:
        return [f"{self._root}/{self._keys[i]}" for i in indices]
