"""Child processes that compute for this one, leave Ctrl-C to it, and end when it ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, InvalidStateError, ProcessPoolExecutor
from multiprocessing import resource_tracker
from typing import Any

from chainer_jo.errors import Unfinished, UserError


class Processes(ProcessPoolExecutor):
    """Executor of child processes, which start when they are needed; left by an exception, it kills
    them.

    Parameters
    ----------
    number : largest number of processes.
    threads : threads of each for convolutions and BLAS; None: as in this process.
    initialise : called in each process, with these arguments; has to call `end_with_parent`.

    Raises UserError on a system without semaphores.
    """

    def __init__(
        self,
        number: int,
        threads: int | None = None,
        initialise: Callable[..., None] | None = None,
        *arguments: Any,
    ) -> None:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        self._variables = dict.fromkeys(names, str(threads)) if threads else {}
        context = multiprocessing.get_context("spawn")  # a fork would inherit CUDA and threads
        try:
            super().__init__(number, context, initialise or end_with_parent, arguments)
        except OSError as error:
            raise UserError(
                f"worker processes: {error.strerror or error}, expected a system with semaphores "
                "(a /dev/shm that can be written)"
            ) from None

    def submit(self, function: Callable, /, *arguments: Any, **keywords: Any) -> Future:
        with without_ctrl_c(), _environment(self._variables):
            future = super().submit(function, *arguments, **keywords)
        future.__class__ = _Cancellable
        return future

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind:
            for process in list((self._processes or {}).values()):
                process.kill()
            # Ends the wait for a result that is half sent.
            self._result_queue._writer.close()  # type: ignore[attr-defined]
        self.shutdown(cancel_futures=True)


class _Cancellable(Future):
    """Future that the end of its process does not concern once it is cancelled: Python 3.11 tells
    it all the same, and prints the error of that."""

    def set_exception(self, exception: BaseException | None) -> None:
        with contextlib.suppress(InvalidStateError):
            super().set_exception(exception)


def end_with_parent() -> None:
    """Initialises a child process, which exits at once when its parent has ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Context in which new processes start with Ctrl-C blocked, which reaches the whole group."""
    resource_tracker.ensure_running()  # its start would unblock Ctrl-C again
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Context in which new processes have these environment variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def in_order(
    function: Callable[[Any], Any], items: Iterable[Any], processes: int, chunk: int
) -> Generator[Any, None, None]:
    """Results of ``function(item)`` in the order of the items, `chunk` items per task.

    Parameters
    ----------
    processes : number of child processes. None are started if 1, or if this process may start no
        others.

    Raises Unfinished if a process was killed.
    """
    if processes == 1 or multiprocessing.current_process().daemon:
        yield from map(function, items)
        return
    try:
        with Processes(processes) as pool:
            yield from pool.map(function, items, chunksize=chunk)
    except BrokenExecutor:
        raise Unfinished("a worker process was killed; the same command resumes") from None
