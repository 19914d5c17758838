"""The order of the training images and their augmentation, drawn for a whole epoch at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import chainer
import numpy as np

from chainer_jo import seeds
from chainer_jo.datasets import augmentation
from chainer_jo.errors import UserError
from chainer_jo.training.many_ranks import Shards


@dataclass(frozen=True)
class Batch:
    """Which images, and how each is cropped and flipped: arrays of shape (batch size,).

    ``indices`` int64 into the training images; ``dy``, ``dx`` crop offsets in pixels; ``flips``
    bool.
    """

    indices: np.ndarray
    dy: np.ndarray
    dx: np.ndarray
    flips: np.ndarray

    def __getitem__(self, part: slice) -> Batch:
        return Batch(self.indices[part], self.dy[part], self.dx[part], self.flips[part])

    @staticmethod
    def join(parts: Sequence[Batch]) -> Batch:
        if len(parts) == 1:
            return parts[0]
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Batch(*map(np.concatenate, columns))


class BatchIterator(chainer.dataset.Iterator):
    """Yields `Batch` es of always as many images, epoch after epoch without end.

    The batch that reaches the end of an epoch is filled from the order of the next one, as in
    Chainer's ``SerialIterator``. What an epoch draws depends on (seed, step, epoch) alone, so that
    a continued run needs no state of a random number generator.

    With shards, a batch has an equal part from each of this rank's, one after the other; indices
    count this rank's images, shard after shard. Each shard has its own order, drawn from its number
    too. All make equally many steps in an epoch: one that is an image short gives its first image
    of the epoch's order again.

    Parameters
    ----------
    size : number n of training images, at least ``batch_size``.
    batch_size : images per batch, on all ranks together; a multiple of the number of shards.
    seed, step : the run's seed, and 1 or 2 for the first or second step of the method.
    pad : zero pixels on each side before the random crop.
    flip : whether half of the images are flipped horizontally.
    send : brings the arrays of a whole epoch to where they are used, a device's ``send``.
    shards : how the images are divided; None: they are not.

    Raises
    ------
    UserError
        if batches cannot be divided so.
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
        shards: Shards | None = None,
    ) -> None:
        self._shards = shards = shards or Shards(size, 1)
        number = shards.number
        self.size = -(-size // number)
        self.batch_size = batch_size // number
        if batch_size % number:
            raise UserError(
                f"batches of {batch_size} images in {number} parts, one for each shard: "
                f"expected a multiple of {number}"
            )
        if self.size < self.batch_size:
            raise UserError(
                f"{size} training images in {number} shards: expected at least "
                f"{self.batch_size} in each, one part of a batch"
                if number > 1
                else f"{size} training images: expected at least {batch_size}, one batch"
            )
        self._draws = (seed, step)
        self.pad = pad
        self._flip = flip
        self._send = send
        self.epoch = 0
        self.position = 0
        self.is_new_epoch = False
        self._previous_epoch_detail = -1.0
        self._plans = self._draw(0)

    def _draw(self, epoch: int) -> list[Batch]:
        """One epoch, as one batch for each shard."""
        seed, step = self._draws
        plans, first = [], 0
        for shard in self._shards.of_rank():
            keys = (step, epoch, shard)[: 3 if self._shards.number > 1 else 2]
            members = len(self._shards.members(shard))
            order = seeds.generator(seed, "order", *keys).permutation(members)
            order = np.resize(order, self.size) + first
            rng = seeds.generator(seed, "augmentation", *keys)
            draws = augmentation.draw(rng, self.size, self.pad, self._flip)
            plans.append(Batch(*map(self._send, (order, *draws))))
            first += members
        return plans

    def __next__(self) -> Batch:
        self._previous_epoch_detail = self.epoch_detail
        stop = self.position + self.batch_size
        parts = [[plan[self.position : stop]] for plan in self._plans]
        self.is_new_epoch = stop >= self.size
        if self.is_new_epoch:
            self.epoch += 1
            stop -= self.size
            self._plans = self._draw(self.epoch)
            if stop:
                for part, plan in zip(parts, self._plans, strict=True):
                    part.append(plan[:stop])
        self.position = stop
        return Batch.join([piece for part in parts for piece in part])

    def upcoming(self) -> Iterator[np.ndarray]:
        """Indices of the batches to come, NumPy arrays, without end; this iterator stays."""
        ahead = copy.copy(self)
        ahead._send = np.asarray
        ahead._plans = ahead._draw(ahead.epoch)
        return (batch.indices for batch in ahead)

    @property
    def epoch_detail(self) -> float:
        return self.epoch + self.position / self.size

    @property
    def previous_epoch_detail(self) -> float | None:
        return None if self._previous_epoch_detail < 0 else self._previous_epoch_detail

    def serialize(self, serializer) -> None:
        """Saves or loads the position; with another number of shards the epoch begins anew."""
        self.epoch = serializer("epoch", self.epoch)
        self.position = serializer("position", self.position)
        self.is_new_epoch = serializer("is_new_epoch", self.is_new_epoch)
        self._previous_epoch_detail = serializer(
            "previous_epoch_detail", self._previous_epoch_detail
        )
        if serializer("shards", self._shards.number) != self._shards.number:
            self.position, self.is_new_epoch = 0, False
        if isinstance(serializer, chainer.serializer.Deserializer):
            self._plans = self._draw(self.epoch)
