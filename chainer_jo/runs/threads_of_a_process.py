"""Executor whose calls run in threads of one other process: the runs that share a GPU."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from multiprocessing.context import BaseContext
from multiprocessing.managers import BaseManager
from typing import Any


class _Calls:
    """Calls in the other process, one per connection at a time: each has a thread there."""

    def call(self, function: Callable, *arguments: Any) -> tuple[Any, Exception | None]:
        """The result, or the error that the function raised, with its traceback as a note."""
        try:
            return function(*arguments), None
        except Exception as error:
            error.add_note(traceback.format_exc())
            return None, error


class _Process(BaseManager):
    Calls: Callable[[], _Calls]


_Process.register("Calls", _Calls)


class ThreadsOfAProcess(ThreadPoolExecutor):
    """As ``ProcessPoolExecutor``, with threads of one process in the place of processes.

    The process starts at the first `submit`. Each thread here waits for one there. When the process
    dies, calls raise ``BrokenExecutor``.
    """

    def __init__(
        self,
        threads: int,
        context: BaseContext,
        initializer: Callable[..., object],
        initargs: tuple,
    ) -> None:
        super().__init__(threads)
        self._process = _Process(ctx=context)
        self._initialise = initializer, initargs
        self._calls: _Calls | None = None

    def submit(self, function: Callable, /, *arguments: Any) -> Future:  # type: ignore[override]
        if self._calls is None:
            self._process.start(*self._initialise)
            self._calls = self._process.Calls()
        return super().submit(self._call, function, *arguments)

    def _call(self, function: Callable, *arguments: Any) -> Any:
        assert self._calls is not None
        try:
            result, error = self._calls.call(function, *arguments)
        except (EOFError, OSError) as lost:
            raise BrokenExecutor("the process has ended") from lost
        if error is not None:
            raise error
        return result

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        if self._calls is not None:
            self._process.shutdown()
