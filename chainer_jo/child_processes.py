"""Child processes that compute for this one, leave Ctrl-C to it, and end when it ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import resource_tracker
from typing import Any

from chainer_jo.errors import Unfinished


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
    context = multiprocessing.get_context("spawn")  # a fork would inherit CUDA and threads
    pool = ProcessPoolExecutor(processes, context, end_with_parent)
    try:
        with without_ctrl_c():
            results = pool.map(function, items, chunksize=chunk)
        yield from results
    except BrokenExecutor:
        raise Unfinished("a worker process was killed; the same command resumes") from None
    finally:
        pool.shutdown(cancel_futures=True)
