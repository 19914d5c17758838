"""Worker processes of this machine: one per run on a CPU, one for all runs on a GPU."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.context import BaseContext
from multiprocessing.managers import BaseManager
from typing import Any, Self

from chainer_jo import child_processes
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.errors import UserError
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.settings import Settings
from chainer_jo.reproduction.running.store import RunStore


@dataclass
class LocalPool:
    """Worker processes on this machine, which end with this one; see `scheduler.Pool`.

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
    load_data: Callable[[], LabelledData]
    settings: Settings
    places: int
    threads: int

    def __enter__(self) -> Self:
        kind = ProcessPoolExecutor if self.settings.device == "cpu" else ThreadsOfAProcess
        self._others = multiprocessing.active_children()
        context = multiprocessing.get_context("spawn")
        try:
            self._executor = kind(self.places, context, child_processes.end_with_parent)
        except OSError as error:
            raise UserError(
                f"worker processes: {error.strerror or error}, expected a system with semaphores "
                "(a /dev/shm that can be written)"
            ) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind:
            for process in set(multiprocessing.active_children()) - set(self._others):
                process.kill()
        self._executor.shutdown(cancel_futures=True)

    def warm_up(self, precision: str) -> None:
        """Has the process of runs on a GPU start and warm up, while the caller loads the data; what
        fails there is raised by the first run."""
        if self.settings.device != "cpu":
            from chainer_jo.reproduction.running.worker import warm_up

            self._submit(warm_up, self.settings, precision)

    def submit(self, experiment: Experiment) -> Future:
        from chainer_jo.reproduction.running.worker import execute  # loads Chainer

        data = pickle.dumps(self.load_data)
        return self._submit(execute, experiment, self.store, data, self.settings)

    def _submit(self, function: Callable, *arguments: Any) -> Future:
        with _for_workers(self.threads):
            return self._executor.submit(function, *arguments)


@contextlib.contextmanager
def _for_workers(threads: int) -> Iterator[None]:
    """Context in which new processes start with this many threads, and without Ctrl-C, on which
    only the scheduler acts."""
    before = dict(os.environ)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        with child_processes.without_ctrl_c():
            yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(before)


class _Calls:
    """Calls in the other process, one per connection at a time: each has a thread there."""

    def call(self, function: Callable, *arguments: Any) -> tuple[Any, Exception | None]:
        """Result of the function, or its error with the traceback as a note."""
        try:
            return function(*arguments), None
        except Exception as error:
            error.add_note(traceback.format_exc())
            return None, error


class _Process(BaseManager):
    Calls: Callable[[], _Calls]


_Process.register("Calls", _Calls)


class ThreadsOfAProcess(ThreadPoolExecutor):
    """ProcessPoolExecutor's interface over threads of one child process.

    The process starts at the first `submit`. Each thread here waits for one there. When the process
    dies, calls raise ``BrokenExecutor``.
    """

    def __init__(
        self, threads: int, context: BaseContext, initializer: Callable[..., object]
    ) -> None:
        super().__init__(threads)
        self._process = _Process(ctx=context)
        self._initialise = initializer
        self._calls: _Calls | None = None

    def submit(self, function: Callable, /, *arguments: Any) -> Future:  # type: ignore[override]
        if self._calls is None:
            self._process.start(self._initialise)
            self._calls = self._process.Calls()
        return super().submit(self._call, self._calls, function, *arguments)

    @staticmethod
    def _call(calls: _Calls, function: Callable, *arguments: Any) -> Any:
        try:
            result, error = calls.call(function, *arguments)
        except (EOFError, OSError) as lost:
            raise BrokenExecutor("the process has ended") from lost
        if error is not None:
            raise error
        return result

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        if self._calls is not None:
            self._process.shutdown()
