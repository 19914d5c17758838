"""The training set cut into shards that never mix: labels stay on the rank that uses them.

Every global batch is made of equal parts, one from each shard, and batch normalisation sees one
part at a time. The number of shards, not that of ranks, decides what is computed: a rank works
through the parts of its shards one after the other, and gradients are averaged over all parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chainer_jo.errors import UserError


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

    def of_rank(self, rank: int | None = None) -> range:
        """The shards of a rank, this one by default."""
        rank = self.rank if rank is None else rank
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
