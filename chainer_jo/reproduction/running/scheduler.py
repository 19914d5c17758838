"""Many runs in an executor: several at a time, first steps before second ones, each run once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass
from typing import Any

from chainer_jo.errors import Unfinished
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.computation import Computation
from chainer_jo.reproduction.running.store import RunStore

_logger = logging.getLogger(__name__)

#: Called with a run, its epochs done or "finished", "diverged" or "paused", and the result if it
#: has ended.
OnEvent = Callable[[Experiment, str | int, dict | None], None]
#: Seconds between two looks at the runs' progress, and before a run that others hold is retried.
POLL = 2.0


@dataclass(frozen=True)
class Work:
    """The common part of a script's runs; called with a run, it computes the run in this process:
    see `worker.execute`.

    Parameters
    ----------
    store : where runs are kept.
    load_data : pickled function that loads the data set; each process calls it once.
    computation : how runs are computed.
    """

    store: RunStore
    load_data: bytes
    computation: Computation

    def __call__(self, experiment: Experiment, **more: Any) -> tuple[str, dict | None]:
        from chainer_jo.reproduction.running.worker import execute  # loads Chainer

        return execute(experiment, self.store, self.load_data, self.computation, **more)


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


def longest_first(experiments: Sequence[Experiment]) -> list[Experiment]:
    """The experiments and the first steps that they need, each once: the longest run first, where a
    first step counts with its longest second step."""
    runs = with_first_steps(experiments)
    chain = {e: e.optimization.epochs for e in runs}
    for e in runs:
        if first := e.first_step:
            both = first.optimization.epochs + e.optimization.epochs
            chain[first] = max(chain[first], both)
    return sorted(runs, key=chain.__getitem__, reverse=True)


def compute(
    experiments: Sequence[Experiment],
    work: Work,
    executor: Executor,
    places: Callable[[], int],
    on_event: OnEvent = lambda experiment, state, result: None,
) -> bool:
    """Brings all experiments to an end, in the given order, second steps after their first; returns
    False if the deadline came first. Other processes may compute runs of the same store at the same
    time.

    Parameters
    ----------
    places : gives the number of runs that the executor can compute at a time, which may change.

    Raises UserError of a run, after the end of the runs that had begun; `Unfinished` if a worker
    process died.
    """
    remove_temporaries(experiments, work.store)
    try:
        return _loop(pending(experiments, work.store), work, executor, places, on_event)
    except BrokenExecutor:
        raise Unfinished("a worker process was killed or broke down") from None


def _loop(
    waiting: list[Experiment],
    work: Work,
    executor: Executor,
    places: Callable[[], int],
    on_event: OnEvent,
) -> bool:
    running: dict[Future, Experiment] = {}
    begins: dict[Experiment, float] = {}  # runs that other processes held are tried again then
    shown: dict[Experiment, int] = {}
    next_poll, deadline = 0.0, work.computation.deadline
    failure: Exception | None = None
    while waiting or running:
        now = time.monotonic()
        over = failure is not None or (deadline is not None and now >= deadline)
        if over and not running:
            break
        to_end = {*waiting, *running.values()}
        ready = [e for e in waiting if e.first_step not in to_end and begins.get(e, 0.0) <= now]
        for experiment in [] if over else ready[: max(0, places() - len(running))]:
            waiting.remove(experiment)
            running[executor.submit(work, experiment)] = experiment
        if not running:
            time.sleep(POLL)  # others compute what is left, or there is no worker
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
                waiting.insert(0, experiment)
                begins[experiment] = time.monotonic() + POLL
            elif state == "diverged":  # it has no second step
                waiting = [e for e in waiting if e.first_step != experiment]
        if time.monotonic() >= next_poll:
            for experiment in running.values():
                epochs = work.store.epochs_done(experiment)  # in the log that the run writes
                if epochs > shown.get(experiment, 0):
                    shown[experiment] = epochs
                    on_event(experiment, epochs, None)
            next_poll = time.monotonic() + POLL
    if failure is not None:
        raise failure
    return not waiting
