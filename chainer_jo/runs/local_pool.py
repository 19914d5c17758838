"""Worker processes of this machine: one per run on a CPU, one for all runs on a GPU."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Self

from chainer_jo.data.image_data import ImageData
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.run import Settings
from chainer_jo.runs.store import RunStore
from chainer_jo.runs.threads_of_a_process import ThreadsOfAProcess
from chainer_jo.runs.worker import execute


@dataclass
class LocalPool:
    """Worker processes on this machine, which end with this one; see `Scheduler`.

    Runs on a GPU are threads of one process: they share compiled kernels and plans, and their
    kernels fill the gaps of each other's.

    Parameters
    ----------
    store : where runs are kept.
    load_data : called in each worker, once; gives the data set. Must be picklable.
    settings : passed to every run.
    places : number of runs at a time.
    threads : threads of each on a CPU, for convolutions and BLAS.
    """

    store: RunStore
    load_data: Callable[[], ImageData | LabelledData]
    settings: Settings
    places: int
    threads: int

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        theirs, self._ours = context.Pipe(duplex=False)
        kind = ProcessPoolExecutor if self.settings.device == "cpu" else ThreadsOfAProcess
        self._executor = kind(self.places, context, _end_with, (theirs,))
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind:
            self._ours.close()
        self._executor.shutdown(cancel_futures=True)
        self._ours.close()

    def submit(self, experiment: Experiment) -> Future:
        data = pickle.dumps(self.load_data)
        with _for_workers(self.threads):
            return self._executor.submit(execute, experiment, self.store, data, self.settings)


@contextlib.contextmanager
def _for_workers(threads: int) -> Iterator[None]:
    """Context in which new processes start with this many threads, and with Ctrl-C blocked.

    Ctrl-C reaches the whole process group, but only the scheduler acts on it.
    """
    before = dict(os.environ)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    os.environ.update(dict.fromkeys(names, str(threads)))
    resource_tracker.ensure_running()  # its start would lift the mask again
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name in names:
            del os.environ[name]
        os.environ.update(before)


def _end_with(parent: Connection) -> None:
    """Initialises a worker process, which exits at once when the other end of the connection is
    closed: by the pool, or by the death of its process."""

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            parent.recv()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
