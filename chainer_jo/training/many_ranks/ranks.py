"""The processes that train one network together: ChainerMN's ranks, or this process alone."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import chainer
import numpy as np

from chainer_jo.errors import UserError


class Ranks:
    """This process alone: every exchange gives back what it is given.

    Attributes
    ----------
    rank, size : this process's number and how many there are.
    local_rank : its number among those on the same machine, which is also its GPU's.
    """

    rank = 0
    size = 1
    local_rank = 0

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that reads and writes files and talks to the user."""
        return self.rank == 0

    def sum(self, value: Any) -> Any:
        """The sum of a number or NumPy array over all ranks, on each of them."""
        return value

    def broadcast(self, value: Any) -> Any:
        """The first rank's value, on each of them."""
        return value

    def gather(self, value: Any) -> list | None:
        """All ranks' values on the first; None elsewhere."""
        return [value]

    def scatter(self, values: list | None) -> Any:
        """The value meant for this rank, from the first rank's list."""
        return values[0]

    def average(self, array: Any) -> None:
        """Replaces a float32 array by its mean over the ranks."""

    def average_statistics(self, link: chainer.Link) -> None:
        """Replaces the running averages of batch normalisation by their means over the ranks."""

    def abort(self, code: int) -> NoReturn:
        """Ends the whole job."""
        raise SystemExit(code)


#: What a run has where nothing else is said.
ALONE = Ranks()


class ChainerMNRanks(Ranks):
    """The processes that mpiexec started, connected by a ChainerMN communicator."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self._mpi = communicator.mpi_comm
        self._holders: dict[int, chainer.Link] = {}
        self.rank = communicator.rank
        self.size = communicator.size
        self.local_rank = communicator.intra_rank

    def sum(self, value: Any) -> Any:
        return self._mpi.allreduce(value)

    def broadcast(self, value: Any) -> Any:
        return self._mpi.bcast(value)

    def gather(self, value: Any) -> list | None:
        return self._mpi.gather(value)

    def scatter(self, values: list | None) -> Any:
        return self._mpi.scatter(values)

    def average(self, array: Any) -> None:
        # ChainerMN averages gradients of a link: this one's only gradient is the array itself.
        holder = self._holders.get(id(array))
        if holder is None:
            holder = chainer.Link()
            with holder.init_scope():
                holder.array = chainer.Parameter(array)
            holder.array.grad = array
            self._holders[id(array)] = holder
        self._communicator.multi_node_mean_grad(holder)

    def average_statistics(self, link: chainer.Link) -> None:
        from chainermn.extensions import AllreducePersistent

        AllreducePersistent(link, self._communicator)()

    def abort(self, code: int) -> NoReturn:
        self._mpi.Abort(code)
        raise SystemExit(code)


def started_by_mpiexec() -> bool:
    """Whether this is one of several processes of an MPI job (Open MPI, MPICH, Slurm's PMI)."""
    return any(int(os.environ.get(name, 1)) > 1 for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))


def connect(on_cuda: bool) -> Ranks:
    """The ranks of this job, `pure_nccl` on CUDA and `naive` on a CPU.

    From then on an exception that nobody catches on one rank ends the job on all.

    Raises
    ------
    UserError
        if what ChainerMN needs is not installed.
    """
    if not started_by_mpiexec():
        return Ranks()
    try:
        import mpi4py.MPI  # noqa: F401  (chainermn's own import error would not say what to do)
    except (ImportError, RuntimeError) as error:  # without the package, or the library
        raise UserError(f"started by mpiexec, but {error}; expected the extra 'mpi'") from None
    import chainermn

    chainermn.global_except_hook.add_hook()
    try:
        communicator = chainermn.create_communicator("pure_nccl" if on_cuda else "naive")
    except RuntimeError as error:
        raise UserError(f"ChainerMN on GPUs: {error} (expected NCCL, nvidia-nccl-cu12)") from None
    return ChainerMNRanks(communicator)


def counts(predicted: Any, labels: Any) -> np.ndarray:
    """How many predictions are right and how many labels are known (not negative): int64 (2,)."""
    known = labels >= 0
    right = (predicted == labels) & known
    return np.array([int(right.sum()), int(known.sum())])
