"""Training batches: image order and augmentation, drawn per epoch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import chainer
import numpy as np

from chainer_jo import seeds
from chainer_jo.errors import UserError
from chainer_jo.method import augmentation


@dataclass(frozen=True)
class Batch:
    """Indices, crops and flips of a batch's images: arrays of shape (batch size,).

    ``indices`` int64 into the training images; ``dy``, ``dx`` crop offsets in pixels; ``flips``
    bool.
    """

    indices: np.ndarray
    dy: np.ndarray
    dx: np.ndarray
    flips: np.ndarray

    def __getitem__(self, rows: slice) -> Batch:
        return Batch(self.indices[rows], self.dy[rows], self.dx[rows], self.flips[rows])

    def __add__(self, other: Batch) -> Batch:
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Batch(*map(np.concatenate, both))


class BatchIterator(chainer.dataset.Iterator):
    """Endless iterator of fixed-size batches.

    The last batch of an epoch is filled from the next epoch, as in Chainer's ``SerialIterator``.
    Order and augmentation depend only on (seed, step, epoch), so that a resumed run needs no state
    of a random number generator.

    Parameters
    ----------
    size : number n of training images, at least ``batch_size``.
    batch_size : images per batch.
    seed, step : seed of the run; 1 or 2, the step of the method (Section 4.3).
    pad : zero pixels on each side before the random crop.
    flip : True to flip half of the images horizontally.
    send : function that copies the arrays of an epoch to the device.

    Raises UserError if there are fewer images than one batch.
    """

    def __init__(
        self,
        size: int,
        batch_size: int,
        seed: int,
        step: int,
        pad: int,
        flip: bool,
        send: Callable[[np.ndarray], np.ndarray] = np.asarray,
    ) -> None:
        if size < batch_size:
            raise UserError(f"{size} training images: expected at least {batch_size}, one batch")
        self.size = size
        self.batch_size = batch_size
        self._draws = (seed, step)
        self.pad = pad
        self._flip = flip
        self._send = send
        self.epoch = 0
        self.position = 0
        self.is_new_epoch = False
        self._previous_epoch_detail = -1.0
        self._plan = self._draw(0)

    def _draw(self, epoch: int) -> Batch:
        """All images of an epoch, as one batch."""
        seed, step = self._draws
        order = seeds.generator(seed, "order", step, epoch).permutation(self.size)
        rng = seeds.generator(seed, "augmentation", step, epoch)
        draws = augmentation.draw(rng, self.size, self.pad, self._flip)
        return Batch(*map(self._send, (order, *draws)))

    def __next__(self) -> Batch:
        self._previous_epoch_detail = self.epoch_detail
        stop = self.position + self.batch_size
        batch = self._plan[self.position : stop]
        self.is_new_epoch = stop >= self.size
        if self.is_new_epoch:
            self.epoch += 1
            stop -= self.size
            self._plan = self._draw(self.epoch)
            if stop:
                batch += self._plan[:stop]
        self.position = stop
        return batch

    def upcoming(self) -> Iterator[np.ndarray]:
        """Indices of the next batches, endless, as NumPy arrays; does not advance this iterator."""
        ahead = copy.copy(self)
        ahead._send = np.asarray
        ahead._plan = ahead._draw(ahead.epoch)
        return (batch.indices for batch in ahead)

    @property
    def epoch_detail(self) -> float:
        return self.epoch + self.position / self.size

    @property
    def previous_epoch_detail(self) -> float | None:
        return None if self._previous_epoch_detail < 0 else self._previous_epoch_detail

    def serialize(self, serializer) -> None:
        """Saves or loads the position."""
        self.epoch = serializer("epoch", self.epoch)
        self.position = serializer("position", self.position)
        self.is_new_epoch = serializer("is_new_epoch", self.is_new_epoch)
        self._previous_epoch_detail = serializer(
            "previous_epoch_detail", self._previous_epoch_detail
        )
        if isinstance(serializer, chainer.serializer.Deserializer):
            self._plan = self._draw(self.epoch)
