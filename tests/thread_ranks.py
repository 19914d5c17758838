"""Ranks that are threads of this process: many ranks without MPI, for what only exchanges."""

import threading

from chainer_jo.training.many_ranks import Ranks


class ThreadRanks(Ranks):
    """One of several ranks that meet at a barrier to exchange."""

    def __init__(self, rank, size, barrier, table):
        self.rank, self.size = rank, size
        self._barrier, self._table = barrier, table

    @staticmethod
    def make(size):
        barrier, table = threading.Barrier(size), [None] * size
        return [ThreadRanks(rank, size, barrier, table) for rank in range(size)]

    def _exchange(self, value):
        self._table[self.rank] = value
        self._barrier.wait()
        values = list(self._table)
        self._barrier.wait()
        return values

    def sum(self, value):
        return sum(self._exchange(value))

    def broadcast(self, value):
        return self._exchange(value)[0]

    def gather(self, value):
        values = self._exchange(value)
        return values if self.is_first else None

    def scatter(self, values):
        return self._exchange(values)[0][self.rank]
