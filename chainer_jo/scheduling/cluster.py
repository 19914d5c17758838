"""The workers of a Dask scheduler that runs are handed out to."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import math
import os
import pickle
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import Future as LocalFuture
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from distributed import Client, Future, KilledWorker

from chainer_jo import files
from chainer_jo.datasets import ImageData
from chainer_jo.datasets.image_files import ImageFiles
from chainer_jo.datasets.labelled_data import LabelledData
from chainer_jo.errors import Unfinished, UserError
from chainer_jo.experiments import provenance
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.run import Settings
from chainer_jo.experiments.store import RunStore
from chainer_jo.scheduling.cluster_worker import LOG_INTERVAL, NO_DATA, Box, perform, prepare

#: Seconds that workers have at the start to say whether they are fit; slower ones join later.
PATIENCE = 30.0
#: Seconds between two looks at which workers there are.
LOOK = 1.0
#: Where no folder is shared, the file in a run's folder that tells which box is the run's.
TOKEN = "box"
#: Where no folder is shared, the files of a run are fetched after so many of its logs.
LOGS_PER_SNAPSHOT = 30

_logger = logging.getLogger(__name__)


@dataclass
class Cluster:
    """A `Pool` whose processes are the workers of a Dask scheduler, one run in each at a time.

    Dask knows which workers there are, gives the runs of lost ones to others, and moves data.
    A worker takes part once `prepare` has found nothing against it.

    Parameters
    ----------
    address : of the scheduler, or the path of its scheduler file.
    store : where runs are kept.
    load_data : gives the data set. Must be picklable; workers that it fails on are sent the data.
    settings : passed to every run.
    threads : what workers on a CPU must have as OMP_NUM_THREADS; None: anything.
    shared : whether the workers see the store's folder, under the same path. If not, files of runs
        come through the Dask scheduler, which keeps them until they are here.
    """

    address: str
    store: RunStore
    load_data: Callable[[], ImageData | LabelledData]
    settings: Settings
    threads: int | None = None
    shared: bool = True

    def __enter__(self) -> Cluster:
        self.store = RunStore(self.store.root.absolute())
        self._data = self.load_data()
        self._pickled = pickle.dumps(self.load_data)
        self._sent: Future | None = None
        self._workers: dict[str, Future | bool] = {}  # whether it is fit, once that is known
        self._out: set[Future] = set()
        self._stranded: set[Future] = set()  # of these, when looked at last
        self._next_look = 0.0
        with ExitStack() as stack:
            self._threads = ThreadPoolExecutor(10_000)  # each only waits for one run
            stack.callback(self._threads.shutdown)
            self._client = stack.enter_context(self._connect())
            self._probe = self._hold_probe(stack)
            self._wait_for_workers()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def places(self) -> int:
        """The workers that take part."""
        if time.monotonic() >= self._next_look:
            self._look()
            self._next_look = time.monotonic() + LOOK
        return sum(fit is True for fit in self._workers.values())

    def submit(self, experiment: Experiment) -> LocalFuture:
        return self._threads.submit(self._hand_out, experiment)

    def _connect(self) -> Client:
        file = {"scheduler_file": self.address} if os.path.isfile(self.address) else {}
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said here
        try:
            return Client(None if file else self.address, **file, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UserError(
                f"--cluster {self.address}: no Dask scheduler answers ({error})"
            ) from None

    def _hold_probe(self, stack: ExitStack) -> Path | None:
        """A locked file in the results folder, by which workers tell whether they share it.

        No other script has the same: one on a worker's own machine says nothing about this.
        """
        if not self.shared:
            return None
        path = self.store.root / f"lock-{secrets.token_hex(8)}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(path.open("x"))
            stack.callback(path.unlink, missing_ok=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise UserError(f"cannot lock {path}: {error.strerror}") from None
        return path

    def _wait_for_workers(self) -> None:
        """Until those that are there have been judged, and one is fit."""
        until = time.monotonic() + PATIENCE
        while not self.places or (
            time.monotonic() < until and any(isinstance(w, Future) for w in self._workers.values())
        ):
            if self._workers and not any(self._workers.values()):
                raise UserError(f"--cluster {self.address}: none of its workers can take runs")
            if not self._workers and time.monotonic() >= until:
                _logger.warning("--cluster %s: no workers yet", self.address)
                until = math.inf
            time.sleep(0.2)

    def _look(self) -> None:
        """Judges workers that have come, forgets those that are gone."""
        workers = None
        with suppress(OSError, RuntimeError, AttributeError):  # whatever a lost connection raises
            workers = self._client.scheduler_info(n_workers=-1).get("workers")
            self._take_back_stranded()
        if workers is None:
            raise Unfinished(f"--cluster {self.address}: the scheduler is gone")
        self._workers = {a: fit for a, fit in self._workers.items() if a in workers}
        for address, info in workers.items():
            fit = self._workers.get(address)
            if fit is None:
                against = self._against(info)
                self._workers[address] = False if against else self._prepare(address)
            elif isinstance(fit, Future) and fit.done():
                against = self._verdict(fit)
                if against == NO_DATA and not _on_disk(self._data):
                    if self._sent is None or self._sent.cancelled():
                        self._sent = self._client.scatter(self._data)
                    self._workers[address] = self._prepare(address, self._sent)
                    continue
                if fit.cancelled():  # the worker that had the data is lost: from the beginning
                    del self._workers[address]
                    continue
                self._workers[address] = not against
            else:
                continue
            if against:
                name = info["name"]  # its address, if it was given none
                shown = address if name == address else f"{name} ({address})"
                _logger.warning("worker %s: no runs for it, %s", shown, against)

    def _take_back_stranded(self) -> None:
        """Has runs handed out again that no worker has: Dask asks once who is fit for them, when
        they or workers come."""
        with_workers = {key for keys in self._client.processing().values() for key in keys}
        stranded = {
            run
            for run in list(self._out)
            if run.status == "pending" and run.key not in with_workers
        }
        self._client.cancel(list(stranded & self._stranded))
        self._stranded = stranded

    def _against(self, worker: dict) -> str:
        if worker["nthreads"] != 1:
            return (
                f"it takes {worker['nthreads']} at once in one process; expected dask worker "
                "--nthreads 1, with --nworkers for more"
            )
        if self.settings.device != "cpu" and not worker["resources"].get("GPU"):
            return f"--device {self.settings.device} needs dask worker --resources GPU=1"
        return ""

    def _prepare(self, address: str, data: Future | None = None) -> Future:
        return self._client.submit(
            prepare, self._place, provenance.code(), self._probe,
            self._pickled, self._data.fingerprint(), self.settings.device, self.threads, data,
            workers=[address], allow_other_workers=False, pure=False,
        )  # fmt: skip

    def _verdict(self, answer: Future) -> str:
        """What there is against a worker; empty if nothing."""
        try:
            return answer.result()
        except (ImportError, AttributeError, TypeError) as error:
            return f"it lacks {provenance.code()} ({error})"
        except Exception as error:  # of any kind: it is another machine's
            return f"{type(error).__name__}: {error}".splitlines()[0]

    @property
    def _place(self) -> str:
        """The resource that workers have which are fit for this script: they keep it, and another
        script may ask for other code or data."""
        return f"chainer_jo-{self._client.id}"

    def _hand_out(self, experiment: Experiment) -> tuple[str, dict | None]:
        """Has a run computed and waits for it."""
        try:
            if self.shared:
                with self._submitted(experiment) as run:
                    return run.result()
            with self.store.lock(experiment) as mine:
                return self._compute_apart(experiment) if mine else ("busy", None)
        except KilledWorker:
            raise Unfinished(
                f"run {experiment.id}: one worker after the other died while at it"
            ) from None
        except CancelledError:
            return "busy", None

    @contextmanager
    def _submitted(self, experiment: Experiment, *apart: object) -> Iterator[Future]:
        deadline = self.settings.deadline
        until = None if deadline is None else time.time() + deadline - time.monotonic()
        run = self._client.submit(
            perform, experiment, self.store, self._pickled, self.settings, until, *apart,
            key=f"{experiment.id}-{self._client.id}-{time.monotonic_ns()}",
            resources={self._place: 1},
        )  # fmt: skip
        self._out.add(run)
        try:
            yield run
        finally:
            self._out.discard(run)

    def _compute_apart(self, experiment: Experiment) -> tuple[str, dict | None]:
        """The same where no folder is shared: brings the run's files here meanwhile."""
        box, folder = self._box(experiment), self.store.folder(experiment)
        box.fetch(self._client, folder)  # what a run has left whose client was killed
        box.put(self._client, folder)
        with self._submitted(experiment, box, self._inputs(experiment)) as run:
            for tick in count(1):
                try:
                    answer = run.result(timeout=LOG_INTERVAL)
                    break
                except TimeoutError:
                    box.fetch_log(self._client, folder)
                    if tick % LOGS_PER_SNAPSHOT == 0:
                        box.fetch(self._client, folder)
        box.fetch(self._client, folder)
        if self.store.result(experiment):
            self.store.tidy(experiment)
            box.empty(self._client)
            (folder / TOKEN).unlink(missing_ok=True)
        return answer

    def _box(self, experiment: Experiment) -> Box:
        """The one of the run since it was begun: its token goes with the run's other files."""
        home = f"{socket.gethostname()}:{self.store.root}"
        name = hashlib.sha256(home.encode()).hexdigest()[:16]
        path = self.store.folder(experiment) / TOKEN
        new = not path.exists()
        if new:
            files.write_text(path, secrets.token_hex(8))
        box = Box(f"chainer_jo-{name}", experiment.id, path.read_text())
        if new:
            box.empty(self._client)
        return box

    def _inputs(self, experiment: Experiment) -> dict[str, bytes]:
        """Files that a run reads besides its own, by their path in the results folder."""
        root, paths = self.store.root, []
        if first_step := experiment.first_step:
            folder = self.store.folder(first_step)
            paths += [folder / "result.json", folder / "labels.npz"]
        if experiment.noise.kind == "pseudo":
            name, seed = experiment.noise.features, experiment.seed
            self.settings.pseudo.labels(self._data, name, seed, root)
            paths.append(root / "pseudo_labels" / f"{name}-{seed}.npz")
        return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def _on_disk(data: ImageData | LabelledData) -> bool:
    """Whether the data set is only where its images are."""
    return isinstance(data, LabelledData) and isinstance(data.train.images, ImageFiles)
