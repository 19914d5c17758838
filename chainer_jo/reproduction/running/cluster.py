"""The workers of a Dask scheduler that runs are handed out to, all on one results folder."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import math
import multiprocessing
import os
import pickle
import secrets
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import Future as LocalFuture
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import chainer
from distributed import Client, Future, KilledWorker, get_worker
from distributed.comm import resolve_address
from distributed.utils import sync

from chainer_jo import files
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.devices import device_of
from chainer_jo.engine.backend import choose_backend
from chainer_jo.errors import Unfinished, UserError, one_line
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running import provenance, worker
from chainer_jo.reproduction.running.run import Run, Settings
from chainer_jo.reproduction.running.store import RunStore

#: Seconds between two looks at which workers there are.
LOOK = 1.0

_logger = logging.getLogger(__name__)


@dataclass
class Cluster:
    """A `Pool` whose processes are the workers of a Dask scheduler, one run in each at a time.

    Dask keeps the list of workers, and gives the runs of lost workers to others.
    A worker takes runs once `prepare` has no objection to it.

    Parameters
    ----------
    address : of the scheduler, or the path of its scheduler file.
    store : where runs are kept: a folder that the workers see under the same path.
    load_data : loads the data set, here and in each worker. Must be picklable.
    settings : passed to every run.
    threads : OMP_NUM_THREADS that workers on a CPU must have; None: any.
    precision : of the runs, which the device of a worker must support.
    """

    address: str
    store: RunStore
    load_data: Callable[[], LabelledData]
    settings: Settings
    threads: int | None = None
    precision: str = "fp32"

    def __enter__(self) -> Cluster:
        self.store = RunStore(self.store.root.absolute())
        self._fingerprint = self.load_data().fingerprint()
        self._pickled = pickle.dumps(self.load_data)
        self._workers: dict[str, LocalFuture | bool] = {}  # True: takes runs; a Future: unknown yet
        self._was_fit = False  # any of them, at any time
        self._out: set[Future] = set()
        self._stranded: set[Future] = set()  # those of them that no worker had at the last look
        self._next_look = 0.0
        with ExitStack() as stack:
            self._threads = ThreadPoolExecutor(10_000)  # each only waits for one run
            stack.callback(self._threads.shutdown)
            self._client = stack.enter_context(self._connect())
            self._probe = self._hold_probe(stack)
            self._look()
            if not self._workers:
                _logger.warning("--cluster %s: no workers yet", self.address)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def places(self) -> int:
        """Number of workers that take runs. Raises UserError if all workers are unfit and none was
        fit before: one that was lost may be replaced."""
        if time.monotonic() >= self._next_look:
            self._look()
            self._next_look = time.monotonic() + LOOK
        fit = sum(fit is True for fit in self._workers.values())
        self._was_fit = self._was_fit or fit > 0
        if self._workers and not any(self._workers.values()) and not self._was_fit:
            raise UserError(f"--cluster {self.address}: none of its workers can take runs")
        return fit

    def submit(self, experiment: Experiment) -> LocalFuture:
        return self._threads.submit(self._hand_out, experiment)

    def _connect(self) -> Client:
        address = self.address
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said here
        try:
            if os.path.isfile(address):
                address = files.read_json(Path(address))["address"]
            resolve_address(address)  # of one that it cannot read a Client takes a minute to close
            return Client(address, set_as_default=False)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"--cluster {self.address}: no Dask scheduler answers ({error})"
            ) from None

    def _hold_probe(self, stack: ExitStack) -> Path:
        """A locked file in the results folder, by which workers test whether they share the folder.

        Its name is new for each script: the lock of another script would prove nothing.
        """
        path = self.store.root / f"lock-{secrets.token_hex(8)}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(path.open("x"))
            stack.callback(path.unlink, missing_ok=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise UserError(f"cannot lock {path}: {error.strerror}") from None
        return path

    def _look(self) -> None:
        """Checks workers that have come, forgets workers that are gone."""
        workers = None
        # Whatever a lost connection raises.
        with contextlib.suppress(OSError, RuntimeError, AttributeError):
            workers = self._client.scheduler_info(n_workers=-1).get("workers")
            self._take_back_stranded()
        if workers is None:
            raise Unfinished(f"--cluster {self.address}: the scheduler is gone")
        self._workers = {a: fit for a, fit in self._workers.items() if a in workers}
        for address, info in workers.items():
            fit = self._workers.get(address)
            if fit is None:
                self._workers[address] = self._prepare(address)
            elif isinstance(fit, LocalFuture) and fit.done():
                objection = fit.result()
                self._workers[address] = not objection
                if objection:
                    name = info["name"]  # its address, if it was given none
                    shown = address if name == address else f"{name} ({address})"
                    _logger.warning("worker %s: no runs for it, %s", shown, objection)

    def _take_back_stranded(self) -> None:
        """Hands out again the runs that no worker has, including runs whose result was lost with
        its worker. Dask looks for a fit worker only when a run or a worker arrives."""
        with_workers = {key for keys in self._client.processing().values() for key in keys}
        stranded = {
            run for run in list(self._out) if not run.done() and run.key not in with_workers
        }
        self._client.cancel(list(stranded & self._stranded))
        self._stranded = stranded

    def _prepare(self, address: str) -> LocalFuture:
        answer = self._client.submit(
            prepare, self._place, provenance.code(), self._probe,
            self._pickled, self._fingerprint, self.settings, self.precision, self.threads,
            workers=[address], allow_other_workers=False, pure=False,
        )  # fmt: skip
        # A thread waits: the answer of a worker that is lost before it was fetched never comes.
        return self._threads.submit(self._verdict, answer)

    def _verdict(self, answer: Future) -> str:
        """Objection to a worker; empty if there is none."""
        try:
            answer.result()
        except (ImportError, AttributeError, TypeError) as error:
            return f"it lacks {provenance.code()} ({error})"
        except Exception as error:  # of any kind: it is another machine's
            return one_line(error)
        return ""

    @property
    def _place(self) -> str:
        """Name of the Dask resource that marks a worker as fit for this script. Workers keep
        it, and another script may need other code or data."""
        return f"chainer_jo-{self._client.id}"

    def _hand_out(self, experiment: Experiment) -> tuple[str, dict | None]:
        """Submits a run to Dask and waits for its end."""
        deadline = self.settings.deadline
        left = None if deadline is None else deadline - time.monotonic()
        run = self._client.submit(
            perform, experiment, self.store, self._pickled, replace(self.settings, deadline=left),
            key=f"{experiment.id}-{self._client.id}-{time.monotonic_ns()}",
            resources={self._place: 1},
        )  # fmt: skip
        self._out.add(run)
        try:
            return run.result()
        except KilledWorker:
            raise Unfinished(
                f"run {experiment.id}: one worker after the other died while at it"
            ) from None
        except CancelledError:
            return "busy", None
        finally:
            self._out.discard(run)


def prepare(
    place: str,
    code: str,
    probe: Path,
    load_data: bytes,
    fingerprint: str,
    settings: Settings,
    precision: str,
    threads: int | None,
) -> None:
    """Loads the data on a worker, which then takes runs.

    Parameters
    ----------
    place : name of the Dask resource that it is given if it is fit.
    code : version of the script's code; see `provenance.code`.
    probe : a file in the results folder that the script has locked.
    load_data, fingerprint : loader of the data, pickled, and their expected fingerprint.
    settings, precision : of the runs.
    threads : expected OMP_NUM_THREADS on a CPU; None: any.

    Raises any exception, whose message is the objection to the worker.
    """
    this, device = get_worker(), settings.device
    if this.state.nthreads != 1:
        raise UserError(
            f"it takes {this.state.nthreads} at once in one process; expected dask worker "
            "--nthreads 1, with --nworkers for more"
        )
    if device != "cpu" and not this.state.total_resources.get("GPU"):
        raise UserError(f"--device {device} needs dask worker --resources GPU=1")
    if provenance.code() != code:
        raise UserError(f"it has {provenance.code()}, expected {code}")
    if device != "cpu" and not chainer.backends.cuda.available:
        raise UserError(f"--device {device}, but it has no CUDA GPU that CuPy can use")
    omp_threads = os.environ.get("OMP_NUM_THREADS")
    if device == "cpu" and threads and omp_threads != str(threads):
        raise UserError(f"its OMP_NUM_THREADS is {omp_threads}, --threads {threads}")
    check_folder(probe)
    chainer_device = device_of(device)
    chainer_device.use()
    choose_backend(chainer_device, precision, settings.engine)
    try:
        data = worker.loaded_by(load_data)
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"it cannot load the data ({error}); expected a loader in a module that it can import"
        ) from None
    if data.fingerprint() != fingerprint:
        raise UserError(f"its data have fingerprint {data.fingerprint()}, expected {fingerprint}")
    if data.train.on_disk and settings.workers != 0 and multiprocessing.current_process().daemon:
        raise UserError(
            "it may start no processes, which decode images; expected "
            "DASK_DISTRIBUTED__WORKER__DAEMON=False"
        )
    sync(this.loop, this.set_resources, **{place: 1})


def check_folder(probe: Path) -> None:
    """Raises UserError unless another machine's lock on ``probe`` holds here."""
    try:
        with open(probe, "r+") as file:
            # Shared: workers that try at the same time do not refuse each other.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    except OSError as error:
        raise UserError(
            f"it cannot write to {probe.parent} ({error.strerror}); expected a folder that all "
            "machines share"
        ) from None
    raise UserError(f"locks (flock) on {probe.parent} do not hold between machines")


def perform(
    experiment: Experiment, store: RunStore, load_data: bytes, settings: Settings
) -> tuple[str, dict | None]:
    """`worker.execute` on a worker; stops at the end of an epoch once Dask has cancelled it.

    Machines do not share a monotonic clock: the deadline is given in seconds from the start.
    """
    if settings.deadline is not None:
        settings = replace(settings, deadline=time.monotonic() + settings.deadline)
    this = get_worker()
    key = this.get_current_task()

    def pause_if_unwanted(run: Run) -> None:
        if this.state.tasks[key].state != "executing":
            run.trainer.get_extension("Checkpoint").deadline = -math.inf

    return worker.execute(experiment, store, load_data, settings, pause_if_unwanted)
