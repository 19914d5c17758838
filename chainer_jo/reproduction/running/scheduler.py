"""Many runs in a pool: several at a time, first steps before second ones, each run once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import AbstractContextManager
from typing import Protocol

from chainer_jo.errors import Unfinished
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.settings import Settings
from chainer_jo.reproduction.running.store import RunStore

_logger = logging.getLogger(__name__)

#: Called with a run, its epochs done or "finished", "diverged" or "paused", and the result if it
#: has ended.
OnEvent = Callable[[Experiment, str | int, dict | None], None]
#: Seconds between two looks at the runs' progress, and before a run that others hold is retried.
POLL = 2.0


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
        steps = [e.first_step for e in experiments]
        self._first = [self._rank.get(step) if step else None for step in steps]
        self._epochs = [e.optimization.epochs for e in experiments]
        self._chain = list(self._epochs)  # with the longest second step
        for epochs, first in zip(self._epochs, self._first, strict=True):
            if first is not None:
                self._chain[first] = max(self._chain[first], self._epochs[first] + epochs)
        self._begins = dict.fromkeys(range(len(experiments)), 0.0)  # earliest time, by rank
        self._to_end = set(self._begins)

    def __bool__(self) -> bool:
        return any(self._first[rank] not in self._to_end for rank in self._begins)

    def next(self, places: int) -> Experiment | None:
        """Removes and returns a run that can begin now, None if there is none; ``places`` runs can
        be computed at a time."""
        now = time.monotonic()
        due = sorted(rank for rank, begins in self._begins.items() if begins <= now)
        ready = [rank for rank in due if self._first[rank] not in self._to_end]
        if not ready:
            return None
        longest = max(ready, key=self._chain.__getitem__)
        left = sum(self._epochs[rank] for rank in self._begins)
        rank = longest if self._chain[longest] * places >= left else ready[0]
        del self._begins[rank]
        return self._experiments[rank]

    def put_back(self, experiment: Experiment) -> None:
        """Queues a run again, from `POLL` seconds on."""
        self._begins[self._rank[experiment]] = time.monotonic() + POLL

    def ended(self, experiment: Experiment, state: str) -> None:
        """Releases the second steps of a run; after a diverged one there is none."""
        ended = self._rank[experiment]
        self._to_end.discard(ended)
        if state == "diverged":
            for rank in [rank for rank in self._begins if self._first[rank] == ended]:
                del self._begins[rank]


def compute(
    experiments: Sequence[Experiment],
    pool: Pool,
    on_event: OnEvent = lambda experiment, state, result: None,
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


def _loop(queue: Queue, pool: Pool, on_event: OnEvent) -> bool:
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
            time.sleep(POLL)  # others compute what is left, or no worker is ready
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
                on_event(experiment, state, result)
            if state in ("busy", "paused"):
                queue.put_back(experiment)
            else:
                queue.ended(experiment, state)
        if time.monotonic() >= next_poll:
            for experiment in running.values():
                epochs = pool.store.epochs_done(experiment)  # in the log that the run writes
                if epochs > shown.get(experiment, 0):
                    shown[experiment] = epochs
                    on_event(experiment, epochs, None)
            next_poll = time.monotonic() + POLL
    if failure is not None:
        raise failure
    return not queue
