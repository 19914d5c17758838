"""Runs on the workers of a real Dask scheduler on this machine."""

import json
import pickle
import socket
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import here
import pytest
import script_runs
from processes import HERE, environment, wait_until
from script_runs import SMALL, table1
from test_continuing import EXPERIMENTS, outcome
from test_scheduler import BASELINE, LONG

from chainer_jo.data import digits
from chainer_jo.errors import Unfinished, UserError
from chainer_jo.reproduction.commands import app
from chainer_jo.reproduction.running import provenance
from chainer_jo.reproduction.running.run import Computation
from chainer_jo.reproduction.running.scheduler import Work, compute
from chainer_jo.reproduction.running.store import RunStore

distributed = pytest.importorskip("distributed")

from chainer_jo.reproduction.running import cluster  # noqa: E402

COMPUTATION = Computation(snapshot_seconds=0)


class Dask:
    """Processes of a scheduler and of its workers, on loopback: whoever connects can run code."""

    def __init__(self, folder):
        self._folder, self.workers, self.file = folder, [], folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port=0", f"--scheduler-file={self.file}")
        wait_until(lambda: self.file.exists() and self.file.read_text().endswith("\n}"))  # whole
        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, what, *flags):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--host=127.0.0.1",
                   "--dashboard-address=127.0.0.1:0", "--no-dashboard", *flags]  # fmt: skip
        env = environment(HERE, OMP_NUM_THREADS=1)
        with (self._folder / "log").open("a") as log:
            return subprocess.Popen(command, env=env, stderr=log, cwd=self._folder)

    def start(self, *flags):
        flags = "--no-nanny", "--nthreads=1", "--memory-limit=0", *flags
        self.workers.append(self._start("worker", self.address, *flags))
        with distributed.Client(self.address) as client:
            client.wait_for_workers(len(self.workers))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    """Two workers, to begin with."""
    with Dask(tmp_path_factory.mktemp("dask")) as dask:
        dask.start()
        dask.start()
        yield dask


def work(
    dask, folder, experiments, on_event=lambda *_: None, computation=COMPUTATION, precision="fp32"
):
    shared = Work(RunStore(folder), pickle.dumps(digits.load), computation)
    with cluster.workers_of(dask.address, shared, precision) as workers:
        return compute(experiments, shared, workers, workers.places, on_event)


def test_two_workers_of_which_one_is_killed_give_the_bits_of_this_process(dask, tmp_path):
    doomed = dask.workers[:1]

    def kill(*event):
        while doomed:
            dask.workers.remove(doomed[0])
            doomed.pop().kill()
            dask.start()

    assert work(dask, tmp_path / "dask", EXPERIMENTS, kill)
    assert here.compute(EXPERIMENTS, RunStore(tmp_path / "here"), digits.load(), COMPUTATION)
    assert outcome(tmp_path / "dask") == outcome(tmp_path / "here")
    assert not list((tmp_path / "dask").glob("lock-*"))


@pytest.mark.usefixtures("preset")
def test_a_script_is_given_a_scheduler_file(dask, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(app, "Processes", None)  # nothing is computed here
    assert script_runs.run(table1, tmp_path, *SMALL, "--cluster", str(dask.file)) == 0
    assert "[3/3]" in capsys.readouterr().out


def is_locked(folder, run):
    with RunStore(folder).lock(run) as mine:
        return not mine


def test_two_runs_at_a_time_stop_saved_with_the_script_that_is_interrupted(dask, tmp_path):
    both, begun = [LONG, replace(LONG, seed=1)], {}

    def interrupt(run, epochs, _):
        begun[run] = epochs
        if len(begun) == 2:
            raise KeyboardInterrupt

    for _ in range(2):
        before = dict(begun)
        begun.clear()
        with pytest.raises(KeyboardInterrupt):
            work(dask, tmp_path, both, interrupt)
        wait_until(lambda: not any(is_locked(tmp_path, run) for run in both))
    assert all(begun[run] > before[run] for run in both)


def test_a_deadline_ends_runs_saved_and_begins_none_once_it_is_over(dask, tmp_path):
    store, computation = RunStore(tmp_path), replace(COMPUTATION, deadline=time.monotonic() + 6)
    assert not work(dask, tmp_path, [LONG], computation=computation)
    assert 0 < store.epochs_done(LONG) == LONG.optimization.epochs - store.epochs_left(LONG)
    assert not work(dask, tmp_path, [BASELINE], computation=computation)
    assert not is_locked(tmp_path, LONG) and not store.folder(BASELINE).exists()


@pytest.mark.parametrize("flags, how, said", [
    (["--nthreads=2"], {}, "--nthreads: 2, expected 1"),
    ([], {"computation": replace(COMPUTATION, engine="stock"), "precision": "mixed"},
     "precision: 'mixed' needs the onednn engine, and stock Chainer computes in fp32"),
], ids=["threads", "precision"])  # fmt: skip
def test_a_worker_that_does_not_fit_ends_the_script_by_its_name(flags, how, said, tmp_path):
    with Dask(tmp_path) as dask:
        dask.start("--name=w1", *flags)
        with pytest.raises(UserError, match=f"^worker w1: {said}$"):
            work(dask, tmp_path / "runs", [BASELINE], **how)


def test_a_worker_with_other_code_that_comes_later_takes_no_run(dask, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "code", lambda: "chainer_jo 0")
    monkeypatch.setattr(distributed.Client, "run", lambda *_, **__: {})  # nobody was there
    with pytest.raises(UserError, match="^worker tcp://.*: code: .*, expected chainer_jo 0$"):
        work(dask, tmp_path, [BASELINE])
    assert not RunStore(tmp_path).folder(BASELINE).exists()


def test_a_folder_that_is_not_shared_a_lock_that_does_not_hold_and_other_data(tmp_path):
    worker, probe = SimpleNamespace(state=SimpleNamespace(nthreads=1), name="w"), tmp_path / "probe"
    shared = Work(RunStore(tmp_path), pickle.dumps(digits.load), COMPUTATION)
    fit = cluster.Fit(shared, provenance.code(), digits.load().fingerprint(), "fp32", probe)
    with pytest.raises(UserError, match="w: results folder .* of all machines: False, expected"):
        fit.check(worker)
    probe.touch()
    with pytest.raises(UserError, match="w: locks .* between machines .*: False, expected True"):
        fit.check(worker)
    with cluster.locked(probe):
        fit.check(worker)
        with pytest.raises(UserError, match="w: data with fingerprint: .*, expected another"):
            replace(fit, fingerprint="another").check(worker)


def test_a_lost_scheduler_and_a_run_that_kills_workers_are_one_line(tmp_path):
    def kills_workers(*event):
        raise distributed.KilledWorker("run", SimpleNamespace(address="w1"), 3)

    with Dask(tmp_path) as dask:
        dask.start()
        with pytest.raises(Unfinished, match="^--cluster tcp://[^\n]*'run' on 4 different workers"):
            work(dask, tmp_path, [LONG], kills_workers)
        with pytest.raises(Unfinished, match=f"^--cluster {dask.address}: the scheduler is gone$"):
            work(dask, tmp_path, [LONG], lambda *event: dask.scheduler.kill())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "", "host", "http://host:8786", None])
def test_no_scheduler_is_one_line_within_seconds(address, tmp_path, capfd):
    """None: somebody listens at the port and says nothing."""
    began, listener = time.monotonic(), socket.create_server(("127.0.0.1", 0))
    if address is None:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    with listener, pytest.raises(UserError, match="^[^\n]*no scheduler answers[^\n]*$"):
        work(SimpleNamespace(address=address), tmp_path, [])
    assert time.monotonic() - began < 20 and not "".join(capfd.readouterr())
