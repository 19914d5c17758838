"""Runs on the workers of a Dask scheduler: Dask's executor, deadlines, and who fits a script."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distributed import Client, KilledWorker, Security, get_worker
from distributed.comm import connect

from chainer_jo import files
from chainer_jo.devices import device_of, resolve_device
from chainer_jo.engine.backend import choose_backend
from chainer_jo.errors import Unfinished, UserError, one_line
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running import provenance, worker
from chainer_jo.reproduction.running.run import Run
from chainer_jo.reproduction.running.scheduler import Work
from chainer_jo.reproduction.running.store import locked


@contextlib.contextmanager
def workers_of(address: str, work: Work, precision: str) -> Iterator[Workers]:
    """Context of an executor on the workers of a Dask scheduler, given its address or its file.

    Raises UserError for a worker that does not fit, and `Unfinished` if the scheduler is lost or a
    run has killed several workers.
    """
    needed = {} if work.computation.device == "cpu" else {"GPU": 1}  # Dask's resources of a run
    probe = work.store.root / f"lock-{uuid.uuid4()}"
    probe.parent.mkdir(parents=True, exist_ok=True)
    with _connect(address) as client, locked(probe):

        def workers() -> list[str]:
            if client.status != "running":
                raise CancelledError
            known = client.scheduler_info(n_workers=-1)["workers"].items()
            return [name for name, each in known if needed.keys() <= each["resources"].keys()]

        try:
            data = worker.loaded_by(work.load_data)
            fit = Fit(work, provenance.code(), data.fingerprint(), precision, probe)
            answers = client.run(fit.check, workers=workers(), on_error="return")
            for name, answer in answers.items():
                if isinstance(answer, UserError):
                    raise answer
                # After other errors the worker is lost.
                if isinstance(answer, ImportError | AttributeError | TypeError):
                    raise UserError(f"worker {name}: {one_line(answer)}, expected {fit.code}")
            if not answers:
                logging.getLogger(__name__).warning("--cluster %s: no workers yet", address)
            yield Workers(client.get_executor(resources=needed), fit, lambda: len(workers()))
        except (CancelledError, KilledWorker) as error:
            said = error if isinstance(error, KilledWorker) else "the scheduler is gone"
            raise Unfinished(f"--cluster {address}: {one_line(said)}") from None
        finally:
            probe.unlink(missing_ok=True)


def _connect(address: str) -> Client:
    for name in ("distributed", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said here
    try:
        found = files.read_json(Path(address))["address"] if os.path.isfile(address) else address
        first = connect(found, **Security().get_connection_args("client"))
        asyncio.run(asyncio.wait_for(first, 10))  # a Client waits for ever at a silent port
        return Client(found, set_as_default=False)
    except Exception as error:  # of any kind: anybody may answer
        raise UserError(f"--cluster {address}: no scheduler answers ({one_line(error)})") from None


@dataclass(frozen=True)
class Workers(Executor):
    """Dask's executor for runs; ``places`` counts the workers that take them."""

    executor: Any
    fit: Fit
    places: Callable[[], int]

    def submit(self, function: Callable, /, *arguments: Any, **keywords: Any) -> Future:
        """Submits a run with the seconds that are left: machines share no monotonic clock."""
        (run,), deadline = arguments, self.fit.work.computation.deadline
        left = deadline and deadline - time.monotonic()
        return self.executor.submit(self.fit.perform, run, left, key=f"{run.id}-{uuid.uuid4()}")


@dataclass(frozen=True)
class Fit:
    """Requirements of every worker: the code (`provenance.code`), data and precision of the
    script, and its results folder with the script's lock on the file ``probe``."""

    work: Work
    code: str
    fingerprint: str
    precision: str
    probe: Path

    def check(self, dask_worker: Any) -> None:
        """Raises UserError for the first thing of a worker that does not fit: what the worker has,
        and what was expected."""
        computation, folder = self.work.computation, self.probe.parent
        try:
            _compare("code", provenance.code(), self.code)
            _compare("--nthreads", dask_worker.state.nthreads, 1)
            _compare(f"results folder {folder} of all machines", self.probe.exists(), True)
            with locked(self.probe) as mine:
                _compare(f"locks (flock) between machines in {folder}", not mine, True)
            device_of(resolve_device(computation.device)).use()
            choose_backend(device_of(computation.device), self.precision, computation.engine)
            data = worker.loaded_by(self.work.load_data)
            _compare("data with fingerprint", data.fingerprint(), self.fingerprint)
        except Exception as error:  # of any kind: another machine raises it
            raise UserError(f"worker {dask_worker.name}: {one_line(error)}") from None

    def perform(self, experiment: Experiment, left: float | None) -> tuple[str, dict | None]:
        """Computes a run on a worker in the seconds that are ``left`` (None: no limit), or to the
        end of the epoch in which Dask cancels it."""
        this = get_worker()
        key = this.get_current_task()
        self.check(this)
        computation = replace(self.work.computation, deadline=left and time.monotonic() + left)

        def pause_if_unwanted(run: Run) -> None:
            if this.state.tasks[key].state != "executing":
                run.trainer.get_extension("Checkpoint").deadline = 0.0

        return replace(self.work, computation=computation)(experiment, on_epoch=pause_if_unwanted)


def _compare(what: str, has: object, expected: object) -> None:
    if has != expected:
        raise UserError(f"{what}: {has}, expected {expected}")
