"""One optimizer for a batch in several parts, on one rank or many."""

from __future__ import annotations

import numpy as np

from chainer_jo.training.many_ranks.ranks import Ranks
from chainer_jo.training.optimizers import FlatMomentumSGD


class SharedMomentumSGD(FlatMomentumSGD):
    """`FlatMomentumSGD` on the mean of the gradients of a batch's parts, on all ranks.

    What `update` gathers is applied by `exchange` only, which no CUDA graph can hold.
    """

    def __init__(self, *args, ranks: Ranks, parts: int, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._ranks = ranks
        self._parts = parts

    def step(self) -> None:
        """Nothing yet: ``gradients`` are the sums over this rank's parts alone."""

    def exchange(self) -> None:
        """Averages ``gradients`` over all parts of all ranks, and applies them."""
        self.gradients *= np.float32(1 / self._parts)
        self._ranks.average(self.gradients)
        super().step()
