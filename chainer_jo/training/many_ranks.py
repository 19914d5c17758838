"""Training on many ranks: their exchange, shards of the images, and one optimizer for all.
A process alone is one rank with one shard."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import chainer
import numpy as np

from chainer_jo.errors import UserError
from chainer_jo.training.optimizers import FlatMomentumSGD


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


#: The default.
ALONE = Ranks()


class ChainerMNRanks(Ranks):
    """The processes that mpiexec started, connected by a ChainerMN communicator."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self._mpi = communicator.mpi_comm
        self._holder: chainer.Link | None = None
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
        if self._holder is None or self._holder.array.grad is not array:
            self._holder = chainer.Link()
            with self._holder.init_scope():
                self._holder.array = chainer.Parameter(array)
            self._holder.array.grad = array
        self._communicator.multi_node_mean_grad(self._holder)

    def average_statistics(self, link: chainer.Link) -> None:
        # Not by ChainerMN's AllreducePersistent: on GPUs it needs an MPI that knows of CUDA.
        kept = (vars(each).get(name) for each in link.links() for name in sorted(each._persistent))
        statistics = [array for array in kept if getattr(array, "dtype", None) == np.float32]
        xp = chainer.backend.get_array_module(*statistics)
        together = xp.concatenate([array.ravel() for array in statistics])
        self.average(together)
        ends = np.cumsum([array.size for array in statistics])[:-1].tolist()
        for array, mean in zip(statistics, xp.split(together, ends), strict=True):
            array[...] = mean.reshape(array.shape)

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
        if what ChainerMN needs is not installed, or mpiexec is of another MPI than the library.
    """
    if not started_by_mpiexec():
        return Ranks()
    try:
        from mpi4py import MPI  # chainermn's own import error would not say what to do
    except (ImportError, RuntimeError) as error:  # without the package, or the library
        raise UserError(f"started by mpiexec, but {error}; expected the extra 'mpi'") from None
    if MPI.COMM_WORLD.size == 1:
        library = MPI.Get_library_version().partition(",")[0]
        raise UserError(
            f"started by mpiexec, but alone with {library}: mpiexec is of another MPI, expected "
            "that beside this Python, or MPI4PY_LIBMPI to name its libmpi.so"
        )
    import chainermn

    chainermn.global_except_hook.add_hook()
    try:
        communicator = chainermn.create_communicator("pure_nccl" if on_cuda else "naive")
    except RuntimeError as error:
        raise UserError(
            f"ChainerMN on GPUs: {error} (expected NCCL, nvidia-nccl-cu12 or -cu13)"
        ) from None
    return ChainerMNRanks(communicator)


@dataclass(frozen=True)
class Shards:
    """The training set cut into shards that never mix: labels stay on the rank that uses them.
    Image i of n belongs to shard i modulo `number`; each of `ranks` ranks has equally many.

    Every global batch is made of equal parts, one from each shard, and batch normalisation sees one
    part at a time. The number of shards, not that of ranks, decides what is computed: a rank works
    through the parts of its shards one after the other, and gradients are averaged over all parts.

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
