"""Works through many runs: several at a time, first steps before second ones, each run once on this
machine."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait

from chainer_jo.errors import UserError
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.run import Settings
from chainer_jo.experiments.store import RunStore

#: Seconds before a run that another process holds is looked at again.
POLL = 2.0


@dataclass(frozen=True)
class Event:
    """Something that happened to a run: ``state`` is an epoch's number, ``finished``, ``diverged``,
    ``paused``."""

    experiment: Experiment
    state: str | int
    result: dict | None = None


def with_first_steps(experiments: Sequence[Experiment]) -> list[Experiment]:
    """The experiments and the first steps that they need, each once, a first step before its
    second."""
    ordered: dict[Experiment, None] = {}
    for experiment in experiments:
        if experiment.first_step:
            ordered[experiment.first_step] = None
        ordered[experiment] = None
    return list(ordered)


def pending(experiments: Sequence[Experiment], store: RunStore) -> list[Experiment]:
    """What is left to do: those (with first steps) that have no result yet.

    A finished first step is done again if its labels are needed but gone; nothing is left to do
    after a first step that diverged.
    """
    missing = {
        e
        for e in with_first_steps(experiments)
        if store.result(e) is None and not (e.first_step and _diverged(e.first_step, store))
    }
    needed = {e.first_step for e in missing if e.first_step}
    gone = {first_step for first_step in needed if _lost_labels(first_step, store)}
    return [e for e in with_first_steps(experiments) if e in missing or e in gone]


def _diverged(experiment: Experiment, store: RunStore) -> bool:
    result = store.result(experiment)
    return result is not None and result["state"] == "diverged"


def _lost_labels(experiment: Experiment, store: RunStore) -> bool:
    """Whether a first step has finished and the labels that it ended with are not there."""
    result = store.result(experiment)
    return bool(
        experiment.relabelling
        and result
        and result["state"] == "finished"
        and not (store.folder(experiment) / "labels.npz").exists()
    )


class Scheduler:
    """Runs experiments in worker processes.

    Parameters
    ----------
    store : where runs are kept; other schedulers may use it at the same time.
    load_data : called in each worker, once; gives the data set. Must be picklable.
    settings : passed to every run.
    jobs : number of worker processes.
    threads : threads of each, for convolutions and BLAS.
    on_event : called in this process for every `Event`.
    """

    def __init__(
        self,
        store: RunStore,
        load_data: Callable,
        settings: Settings,
        jobs: int,
        threads: int,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.store = store
        self.load_data = load_data
        self.settings = replace(settings, verbose=settings.verbose and jobs == 1)
        self.jobs = jobs
        self.threads = threads
        self.on_event = on_event

    def work(self, experiments: Sequence[Experiment]) -> bool:
        """Brings all experiments to an end, in the given order where first steps allow it.

        Returns
        -------
        bool
            True if all have a result; False if the deadline came first.

        Raises
        ------
        UserError
            what a run raised, or if a worker process died.
        """
        self._tidy(experiments)
        waiting = pending(experiments, self.store)
        if not waiting:
            return True
        workers = [_Worker(self) for _ in range(min(self.jobs, len(waiting)))]
        try:
            return self._loop(waiting, workers)
        finally:
            for worker in workers:
                worker.stop()

    def _tidy(self, experiments: Sequence[Experiment]) -> None:
        """Does what a kill just after a result was saved has left undone."""
        for experiment in with_first_steps(experiments):
            if self.store.result(experiment) is not None and self.store.folder(experiment).exists():
                with self.store.lock(experiment) as mine:
                    if mine:
                        self.store.tidy(experiment)

    def _loop(self, waiting: list[Experiment], workers: list[_Worker]) -> bool:
        not_before: dict[Experiment, float] = {}
        while waiting or any(worker.experiment for worker in workers):
            running = {worker.experiment for worker in workers}
            for worker in workers:
                if worker.experiment is None and not self._out_of_time:
                    ready = next(
                        (
                            e
                            for e in waiting
                            if self._ready(e, running, waiting)
                            and not_before.get(e, 0) <= time.monotonic()
                        ),
                        None,
                    )
                    if ready:
                        waiting.remove(ready)
                        running.add(ready)
                        worker.start(ready)
            if self._out_of_time and not any(worker.experiment for worker in workers):
                return False
            for connection in wait([worker.connection for worker in workers], timeout=POLL):
                worker = next(worker for worker in workers if worker.connection is connection)
                event = worker.receive()
                if event.state == "busy":
                    waiting.append(event.experiment)
                    not_before[event.experiment] = time.monotonic() + POLL
                else:
                    self.on_event(event)
                if event.state == "paused":
                    waiting.append(event.experiment)
                if event.state == "diverged":
                    waiting[:] = [e for e in waiting if e.first_step != event.experiment]
        return True

    @property
    def _out_of_time(self) -> bool:
        return self.settings.deadline is not None and time.monotonic() >= self.settings.deadline

    def _ready(self, experiment: Experiment, running: set, waiting: list[Experiment]) -> bool:
        first_step = experiment.first_step
        return first_step is None or (first_step not in running and first_step not in waiting)


class _Worker:
    """One worker process and the run that it is at, seen from the scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        context = multiprocessing.get_context("spawn")
        self.experiment: Experiment | None = None
        self.connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve,
            args=(theirs, scheduler.store, scheduler.load_data, scheduler.settings),
        )
        with _for_workers(scheduler.threads):
            self._process.start()
        theirs.close()

    def start(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.connection.send(experiment)

    def receive(self) -> Event:
        """The next event of the run; a UserError in the worker is raised here."""
        try:
            state, result = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            place = f"of run {self.experiment.id}" if self.experiment else "of a worker without run"
            raise UserError(
                f"the process {place} ended with code {self._process.exitcode}; "
                "the same command continues"
            ) from None
        experiment = self.experiment
        if state == "error":
            raise UserError(result)
        if not isinstance(state, int):
            self.experiment = None
        return Event(experiment, state, result)

    def stop(self) -> None:
        self._process.kill() if self.experiment else self.connection.close()
        self._process.join()


@contextlib.contextmanager
def _for_workers(threads: int) -> Iterator[None]:
    """While it is entered, new processes start with this many threads and without Ctrl-C.

    Ctrl-C reaches the whole process group; the scheduler alone decides what it means.
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
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


def _serve(
    connection: Connection, store: RunStore, load_data: Callable, settings: Settings
) -> None:
    """A worker process: takes experiments from the connection until it closes, and tells how they
    go."""
    from chainer_jo.experiments.run import Run
    from chainer_jo.training.extensions import Paused

    data = None
    while True:
        try:
            experiment = connection.recv()
        except EOFError:
            return
        try:
            data = data or load_data()
            with store.lock(experiment) as mine:
                if not mine:
                    connection.send(("busy", None))
                    continue
                result = store.result(experiment)
                if result is None or _lost_labels(experiment, store):
                    gc.collect()  # the last run is a web of references; its arrays go only now
                    result = Run(
                        experiment,
                        data,
                        store,
                        settings,
                        on_epoch=lambda epoch: connection.send((epoch, None)),
                    ).finish()
            connection.send((result["state"], result))
        except Paused:
            connection.send(("paused", None))
        except UserError as error:
            connection.send(("error", str(error)))
        except (BrokenPipeError, ConnectionResetError):
            return
