"""What happens in the workers of a Dask scheduler."""

from __future__ import annotations

import contextlib
import fcntl
import io
import math
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import chainer
import numpy as np
from distributed import Client, Lock, get_client, get_worker
from distributed.utils import sync

from chainer_jo import files
from chainer_jo.datasets import ImageData
from chainer_jo.datasets.labelled_data import LabelledData
from chainer_jo.errors import UserError
from chainer_jo.experiments import provenance
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.run import Run, Settings
from chainer_jo.experiments.store import RunStore
from chainer_jo.scheduling import worker

#: What `prepare` returns when it is the data that is missing.
NO_DATA = "it cannot load the data, or other data are there"
#: Where no folder is shared: seconds before a run sends its log, and all of its files, again.
LOG_INTERVAL, FILES_INTERVAL = 10.0, 300.0


def prepare(
    place: str,
    code: str,
    probe: Path | None,
    load_data: bytes,
    fingerprint: str,
    device: str,
    threads: int | None,
    data: ImageData | LabelledData | None,
) -> str:
    """Has a worker load the data and take runs, if it is fit for them.

    Parameters
    ----------
    place : the resource, as Dask calls it, that it has one of once it is found fit.
    code : the version that asks; see `provenance.code`.
    probe : a file in the results folder on which who asks holds a lock; None: none is shared.
    load_data, fingerprint : gives the data, pickled, and what their fingerprint has to be.
    threads : what OMP_NUM_THREADS has to be on a CPU; None: anything.
    data : the data, for a worker that cannot load them.

    Returns
    -------
    str
        what there is against the worker; `NO_DATA` if it is only that; empty if nothing.
    """
    if provenance.code() != code:
        return f"it has {provenance.code()}, expected {code}"
    if device != "cpu" and not chainer.backends.cuda.available:
        return f"--device {device}, but it has no CUDA GPU that CuPy can use"
    threads_here = os.environ.get("OMP_NUM_THREADS")
    if device == "cpu" and threads and threads_here != str(threads):
        return f"its OMP_NUM_THREADS is {threads_here}, --threads {threads}"
    against = probe and against_folder(probe)
    if against:
        return against
    if data is not None:
        worker.loaded[load_data] = data
    with contextlib.suppress(UserError):
        if worker.load(load_data).fingerprint() == fingerprint:
            this = get_worker()
            sync(this.loop, this.set_resources, **{place: 1})
            return ""
    return NO_DATA


def against_folder(probe: Path) -> str:
    """Whether a lock that another machine holds is held here too."""
    try:
        with open(probe, "r+") as file:
            # Of many workers that try at the same time, none stands in another's way.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return ""
    except OSError as error:
        return (
            f"it cannot write to {probe.parent} ({error.strerror}); expected a folder that all "
            "machines share, or --no-shared-folder"
        )
    return f"locks (flock) on {probe.parent} do not hold between machines"


@dataclass(frozen=True)
class Box:
    """Where the files of a run are while no folder is shared: with the Dask scheduler.

    They stay there when the run's worker or the client is lost. A run that is begun anew has
    another token: what a worker still puts into the box of before is not its own.
    """

    name: str
    run: str
    token: str

    @property
    def _keys(self) -> list[str]:
        return [self.name, self.run, self.token]

    def put(self, client: Client, folder: Path) -> None:
        """Puts all files of a run's folder into the box, in place of what was there."""
        paths = [p for p in folder.iterdir() if p.name != "lock" and p.suffix != ".tmp"]
        client.set_metadata(self._keys, {p.name: p.read_bytes() for p in paths})

    def put_log(self, client: Client, folder: Path) -> None:
        """Brings the log in the box up to date."""
        log = (folder / "log.json").read_bytes()
        client.set_metadata([*self._keys, "log.json"], log)

    def fetch(self, client: Client, folder: Path) -> None:
        """Copies what is in the box into a folder, unless the run has gone on there since;
        snapshots there give way to the one here."""
        found = client.get_metadata(self._keys, None) or {}
        here = _iteration(io.BytesIO(found.get("snapshot.npz", b"")))
        if "result.json" not in found and here < _iteration(folder / "snapshot.npz"):
            return
        write(folder, found)
        if any(name.startswith("snapshot") for name in found):
            for path in folder.glob("snapshot*"):
                if path.name not in found:
                    path.unlink()

    def fetch_log(self, client: Client, folder: Path) -> None:
        """Copies the log, if there is one."""
        log = client.get_metadata([*self._keys, "log.json"], None)
        write(folder, {"log.json": log} if log else {})

    def empty(self, client: Client) -> None:
        """Throws away what is in it, and in those that the run had before."""
        client.set_metadata([self.name, self.run], {})


def _iteration(snapshot: Path | IO[bytes]) -> int:
    """How many steps a snapshot is from the beginning; -1 if there is none, or a damaged one."""
    try:
        with np.load(snapshot) as archive:
            return int(archive["updater/iteration"])
    except files.NOT_AN_NPZ:
        return -1


def write(folder: Path, contents: dict[str, bytes]) -> None:
    """Writes files, by their path in the folder; results last, as with them a run is finished."""
    for name in sorted(contents, key=lambda name: Path(name).name == "result.json"):
        files.write(folder / name, lambda file, name=name: file.write(contents[name]))


def perform(
    experiment: Experiment,
    store: RunStore,
    load_data: bytes,
    settings: Settings,
    until: float | None,
    box: Box | None = None,
    inputs: dict[str, bytes] | None = None,
) -> tuple[str, dict | None]:
    """`worker.execute` on a worker: stops at the end of an epoch when nobody waits for it.

    Parameters
    ----------
    until : when the run pauses, in seconds since 1970, as clocks go on all machines; None: never.
    box : where the run's files come from and go to, if ``store`` is not on this machine.
    inputs : other files that it needs then, by their path in the store.
    """
    this = get_worker()
    key = this.get_current_task()
    deadline = math.inf if until is None else time.monotonic() + until - time.time()
    settings = replace(settings, deadline=deadline)

    def pause_if_unwanted(run: Run) -> None:
        if this.state.tasks[key].state != "executing":
            run.trainer.get_extension("Checkpoint").deadline = -math.inf

    if box is None:
        return worker.execute(experiment, store, load_data, settings, pause_if_unwanted)
    client, store = get_client(), RunStore(Path(this.local_directory) / box.name)
    # Of a run whose client was killed, or whose worker is only cut off.
    lock = Lock("/".join([box.name, box.run, box.token]))
    if not lock.acquire(blocking=False):
        return "busy", None
    try:
        store.forget(experiment)  # of an earlier time; the box is right
        write(store.root, inputs or {})
        folder = store.open(experiment)
        box.fetch(client, folder)
        next_log, next_files = 0.0, time.monotonic() + FILES_INTERVAL

        def on_epoch(run: Run) -> None:
            nonlocal next_log, next_files
            pause_if_unwanted(run)
            now = time.monotonic()
            if now >= next_files:
                box.put(client, folder)
                next_files = now + FILES_INTERVAL
            elif now >= next_log:
                box.put_log(client, folder)
                next_log = now + LOG_INTERVAL

        state, result = worker.execute(experiment, store, load_data, settings, on_epoch)
        box.put(client, folder)
        return state, result
    finally:
        lock.release()
