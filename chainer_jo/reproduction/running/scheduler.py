"""Many runs in a pool: several at a time, first steps before second ones, each run once."""

from __future__ import annotations

import logging
import time
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

from chainer_jo.errors import Unfinished
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.settings import Settings
from chainer_jo.reproduction.running.store import RunStore

_logger = logging.getLogger(__name__)

#: Seconds between two looks at the runs' progress, and before a run that others hold is retried.
POLL = 2.0


@dataclass(frozen=True)
class Event:
    """Progress of a run: ``state`` is the number of epochs done, ``finished``, ``diverged`` or
    ``paused``; the two that end a run come with its result."""

    experiment: Experiment
    state: str | int
    result: dict | None = None


class Pool(AbstractContextManager, Protocol):
    """An Executor of runs, a `LocalPool` or a `Cluster`; left by an exception, it stops them.

    ``submit`` gives the Future of what `worker.execute` returns. At most ``places`` runs are handed
    out at a time; the number may change.
    """

    store: RunStore
    settings: Settings

    @property
    def places(self) -> int: ...
    def submit(self, experiment: Experiment) -> Future: ...


def with_first_steps(experiments: Sequence[Experiment]) -> list[Experiment]:
    """The experiments and the first steps that they need, each once, a first step before its
    second."""
    return list(dict.fromkeys(step for e in experiments for step in (e.first_step, e) if step))


def pending(experiments: Sequence[Experiment], store: RunStore) -> list[Experiment]:
    """Runs left to do: experiments, and their first steps, that have no result yet.

    A finished first step runs again if a second step needs its labels and they are gone. A first
    step that diverged has no second step.
    """
    missing = {
        e
        for e in with_first_steps(experiments)
        if store.result(e) is None and not (e.first_step and store.diverged(e.first_step))
    }
    needed = {e.first_step for e in missing if e.first_step}
    gone = {first_step for first_step in needed if store.lost_labels(first_step)}
    return [e for e in with_first_steps(experiments) if e in missing or e in gone]


def remove_temporaries(experiments: Sequence[Experiment], store: RunStore) -> None:
    """Removes the snapshots of runs that were killed just after their result was saved; not of
    those that are done again for their labels."""
    for experiment in with_first_steps(experiments):
        ended = store.result(experiment) and not store.lost_labels(experiment)
        folder = store.folder(experiment)
        if ended and folder.exists() and not folder.is_symlink():
            with store.lock(experiment) as mine:
                if mine:
                    store.remove_temporaries(experiment)


class Queue:
    """Queue of runs, second steps after their first; false when every run left waits for its first
    step.

    Runs keep their order, except that the longest one (with its second step) comes first as soon as
    it takes longer than all runs left would take on all places.
    """

    def __init__(self, experiments: Sequence[Experiment]) -> None:
        self._experiments = experiments
        self._rank = {experiment: rank for rank, experiment in enumerate(experiments)}
        self._after: dict[Experiment, list[int]] = defaultdict(list)  # ranks of second steps
        self._later: list[tuple[float, int]] = []  # from when on, rank; a heap
        self._ready: list[int] = []  # ranks, sorted
        for rank, experiment in enumerate(experiments):
            first_step = experiment.first_step
            (self._after[first_step] if first_step in self._rank else self._ready).append(rank)
        self._epochs = [e.optimization.epochs for e in experiments]
        self._left = sum(self._epochs)
        self._chain = list(self._epochs)  # with the longest second step
        for first_step, ranks in self._after.items():
            self._chain[self._rank[first_step]] += max(self._epochs[rank] for rank in ranks)

    def __bool__(self) -> bool:
        return bool(self._ready or self._later)

    def next(self, places: int) -> Experiment | None:
        """Removes and returns a run that can begin now, None if there is none; ``places`` runs can
        be computed at a time."""
        while self._later and self._later[0][0] <= time.monotonic():
            insort(self._ready, heappop(self._later)[1])
        if not self._ready:
            return None
        longest = max(self._ready, key=self._chain.__getitem__)
        rank = longest if self._chain[longest] * places >= self._left else self._ready[0]
        self._ready.remove(rank)
        self._left -= self._epochs[rank]
        return self._experiments[rank]

    def put_back(self, experiment: Experiment) -> None:
        """Queues a run again, from `POLL` seconds on."""
        rank = self._rank[experiment]
        heappush(self._later, (time.monotonic() + POLL, rank))
        self._left += self._epochs[rank]

    def ended(self, experiment: Experiment, state: str) -> None:
        """Releases the second steps of a run; after a diverged one there is none."""
        for rank in self._after.pop(experiment, []):
            if state == "diverged":
                self._left -= self._epochs[rank]
            else:
                insort(self._ready, rank)


def compute(
    experiments: Sequence[Experiment],
    pool: Pool,
    on_event: Callable[[Event], None] = lambda event: None,
) -> bool:
    """Brings all experiments to an end, in the given order where first steps allow it; returns
    False if the deadline in the pool's settings came first. Other processes may compute runs of the
    same store at the same time.

    Raises UserError of a run, after the end of the runs that had begun; `Unfinished` if a worker
    process died.
    """
    remove_temporaries(experiments, pool.store)
    try:
        return _loop(Queue(pending(experiments, pool.store)), pool, on_event)
    except BrokenExecutor:
        raise Unfinished("a worker process was killed or broke down") from None


def _loop(queue: Queue, pool: Pool, on_event: Callable[[Event], None]) -> bool:
    running: dict[Future, Experiment] = {}
    shown: dict[Experiment, int] = {}
    next_poll, deadline = 0.0, pool.settings.deadline
    failure: Exception | None = None
    while queue or running:
        over = failure is not None or (deadline is not None and time.monotonic() >= deadline)
        if over and not running:
            break
        while len(running) < pool.places and not over and (ready := queue.next(pool.places)):
            running[pool.submit(ready)] = ready
        if not running:
            time.sleep(POLL)  # others are at all that is left
        for future in wait(running, POLL, FIRST_COMPLETED).done:
            experiment = running.pop(future)
            error = future.exception()
            if isinstance(error, BrokenExecutor) or not isinstance(error, Exception | None):
                raise error
            if error is not None:
                failure = failure or error
                if running:
                    _logger.warning("%s; %d other runs continue", error, len(running))
                continue
            state, result = future.result()
            if state != "busy":
                on_event(Event(experiment, state, result))
            if state in ("busy", "paused"):
                queue.put_back(experiment)
            else:
                queue.ended(experiment, state)
        if time.monotonic() >= next_poll:
            for experiment in running.values():
                epochs = pool.store.epochs_done(experiment)  # in the log that the run writes
                if epochs > shown.get(experiment, 0):
                    shown[experiment] = epochs
                    on_event(Event(experiment, epochs))
            next_poll = time.monotonic() + POLL
    if failure is not None:
        raise failure
    return not queue
