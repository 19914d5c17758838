"""How long a GPU takes for each of several ways to do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

#: Each way is timed so often, in turn with the others; the least time counts.
ROUNDS = 3
#: Runs that are timed together.
RUNS = 4
#: Passes of the kernel that occupies the GPU before: some tenths of a millisecond, in which these
#: runs are queued. Otherwise it would be Python that is timed.
OCCUPIED = 200_000


def microseconds(
    ways: Iterable[str],
    select: Callable[[str], Any],
    run: Callable[[], None],
    cuda: Any,
    occupy: Callable[[int], Any],
    errors: tuple[type[Exception], ...],
) -> dict[str, float]:
    """The time of one run by each way that works, on the current stream.

    Parameters
    ----------
    ways : names.
    select : after it `run` goes the way of this name.
    run : queues the work; doing it twice is doing it once.
    cuda : ``cupy.cuda``, or what stands for it in a test.
    occupy : called with a number, queues as many passes of work that need nothing.
    errors : what `run` raises where a way does not work after all.
    """
    spans: dict[str, list[tuple[Any, Any]]] = {}
    for way in ways:
        with suppress(*errors):
            select(way)
            run()  # what is loaded or compiled when it is first needed is there afterwards
            spans[way] = []
    for _ in range(ROUNDS):
        for way, measured in spans.items():
            select(way)
            first, last = cuda.Event(), cuda.Event()
            occupy(OCCUPIED)
            first.record()
            for _ in range(RUNS):
                run()
            last.record()
            measured.append((first, last))
    if spans:
        last.synchronize()
    return {
        way: min(1e3 * cuda.get_elapsed_time(*span) for span in measured) / RUNS
        for way, measured in spans.items()
    }
