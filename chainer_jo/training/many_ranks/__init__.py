"""What more than one rank adds: the ranks and their exchange, shards of the images, one optimizer
for all. A process alone is one rank with one shard."""

from chainer_jo.training.many_ranks.ranks import ALONE, Ranks, connect, counts
from chainer_jo.training.many_ranks.shards import Shards
from chainer_jo.training.many_ranks.shared_optimizer import SharedMomentumSGD

__all__ = ["ALONE", "Ranks", "Shards", "SharedMomentumSGD", "connect", "counts"]
