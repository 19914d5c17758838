"""The training set cut into shards that never mix: labels stay on the rank that uses them.

Every global batch is made of equal parts, one from each shard, and batch normalisation sees one
part at a time. The number of shards, not that of ranks, decides what is computed: a rank works
through the parts of its shards one after the other, and gradients are averaged over all parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import chainer
import numpy as np

from chainer_jo.errors import UserError
from chainer_jo.training.iterator import Batch, BatchIterator


@dataclass(frozen=True)
class Shards:
    """Image i of n belongs to shard i modulo `number`; each of `ranks` ranks has equally many.

    Raises
    ------
    UserError
        if the shards cannot be divided among the ranks.
    """

    images: int
    number: int
    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        if self.number % self.ranks:
            raise UserError(
                f"{self.number} shards on {self.ranks} ranks: expected a multiple of {self.ranks}"
            )

    def of_rank(self, rank: int) -> range:
        each = self.number // self.ranks
        return range(rank * each, (rank + 1) * each)

    def members(self, shard: int) -> np.ndarray:
        """Indices of a shard's images among all."""
        return np.arange(shard, self.images, self.number)

    def indices(self, rank: int | None = None) -> np.ndarray:
        """Indices among all images of those on a rank (this one by default), shard after shard."""
        rank = self.rank if rank is None else rank
        return np.concatenate([self.members(shard) for shard in self.of_rank(rank)])

    def join(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """One array (n, ...) in the order of all images from each rank's array, in rank order."""
        whole = np.empty((self.images, *parts[0].shape[1:]), parts[0].dtype)
        for rank, part in enumerate(parts):
            whole[self.indices(rank)] = part
        return whole

    def split(self, whole: np.ndarray) -> list[np.ndarray]:
        """The inverse of `join`."""
        return [whole[self.indices(rank)] for rank in range(self.ranks)]


class ShardedIterator(chainer.dataset.Iterator):
    """Gives out, step after step, one `Batch` of this rank's parts, one from each of its shards.

    Indices count this rank's images. Each shard has its own order, drawn from (seed, step, epoch,
    shard); with one shard it is that of `BatchIterator`. All shards make equally many steps in an
    epoch: one that is an image short gives its first image of the epoch's order again.

    Parameters
    ----------
    shards : how the images are divided.
    batch_size : of the global batch, a multiple of the number of shards.
    seed, step, pad, flip, send : as in `BatchIterator`.
    """

    def __init__(self, shards: Shards, batch_size: int, seed: int, step: int, *args) -> None:
        if batch_size % shards.number:
            raise UserError(
                f"batches of {batch_size} images in {shards.number} parts, one for each shard: "
                f"expected a multiple of {shards.number}"
            )
        part = batch_size // shards.number
        longest = -(-shards.images // shards.number)
        if longest < part:
            raise UserError(
                f"{shards.images} training images in {shards.number} shards: expected at least "
                f"{part} in each, one part of a batch"
            )
        self._number = shards.number
        self._orders: list[BatchIterator] = []
        first = 0
        for shard in shards.of_rank(shards.rank):
            members = range(first, first + len(shards.members(shard)))
            keys = (shard,) if shards.number > 1 else ()
            self._orders.append(
                BatchIterator(longest, part, seed, step, *args, members=members, keys=keys)
            )
            first = members.stop

    def __next__(self) -> Batch:
        return Batch.join([next(order) for order in self._orders])

    next = __next__

    def upcoming(self) -> Iterator[np.ndarray]:
        """Indices of the batches to come, as `BatchIterator.upcoming`."""
        return map(np.concatenate, zip(*(order.upcoming() for order in self._orders), strict=True))

    @property
    def epoch(self) -> int:
        return self._orders[0].epoch

    @property
    def is_new_epoch(self) -> bool:
        return self._orders[0].is_new_epoch

    @property
    def epoch_detail(self) -> float:
        return self._orders[0].epoch_detail

    @property
    def previous_epoch_detail(self) -> float | None:
        return self._orders[0].previous_epoch_detail

    def serialize(self, serializer) -> None:
        """Saves or loads the position; with another number of shards the epoch begins anew."""
        saved = serializer("shards", self._number)
        for order in self._orders:
            order.serialize(serializer)
            if saved != self._number:
                order.begin_epoch()
