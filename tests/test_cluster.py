"""Runs on the workers of a real Dask scheduler on this machine."""

import fcntl
import json
import os
import pickle
import re
import runpy
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import script_runs
from here import Here
from processes import HERE, environment, wait_until
from script_runs import SMALL, table1
from test_continuing import EXPERIMENTS, outcome
from tiny import STUDY

from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.method.soft_labels import RULES
from chainer_jo.reproduction.commands import app
from chainer_jo.reproduction.running import provenance
from chainer_jo.reproduction.running.run import Settings
from chainer_jo.reproduction.running.scheduler import compute
from chainer_jo.reproduction.running.store import RunStore

distributed = pytest.importorskip("distributed")
from distributed.diagnostics.plugin import SchedulerPlugin  # noqa: E402

from chainer_jo.reproduction.running import cluster  # noqa: E402
from chainer_jo.reproduction.running.cluster import Cluster  # noqa: E402

BASELINE = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)
LONG = replace(BASELINE, optimization=replace(BASELINE.optimization, epochs=100_000))
SETTINGS = Settings(snapshot_seconds=0)
#: As docs/cluster.md has it: whoever connects can run code.
ON_LOOPBACK = ("--host=127.0.0.1", "--dashboard-address=127.0.0.1:0", "--no-dashboard")


class Machines:
    """Worker processes of a Dask scheduler in this process."""

    def __init__(self, address, folder):
        self.address, self._folder = address, folder
        self.workers = []

    def start(self, *flags):
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address,
                   "--no-nanny", "--nthreads=1", "--memory-limit=0", *ON_LOOPBACK,
                   f"--local-directory={self._folder}", *flags]  # fmt: skip
        env = environment(HERE, self._folder, OMP_NUM_THREADS=1)
        with (self._folder / "log").open("a") as log:
            self.workers.append(subprocess.Popen(command, env=env, stderr=log))

    def kill(self):
        """The one that was started first."""
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()


@contextmanager
def machines_in(folder, *plugins):
    """None, to begin with."""
    with distributed.LocalCluster(
        n_workers=0, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0"
    ) as cluster:
        for plugin in plugins:
            cluster.scheduler.add_plugin(plugin)
        machines = Machines(cluster.scheduler_address, folder)
        try:
            yield machines
        finally:
            while machines.workers:
                machines.kill()


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    """Two workers, to begin with."""
    with machines_in(tmp_path_factory.mktemp("workers")) as machines:
        machines.start()
        machines.start()
        yield machines


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Results of the same runs in this process."""
    store = RunStore(tmp_path_factory.mktemp("local"))
    compute(EXPERIMENTS, Here(store, digits.load, SETTINGS, 2, 1))
    return outcome(store.root)


def work(dask, store, experiments, on_event=lambda *event: None, settings=SETTINGS, **more):
    with Cluster(dask.address, store, digits.load, settings, **more) as pool:
        return compute(experiments, pool, on_event)


def test_killed_workers_change_nothing(dask, local, tmp_path):
    """Both are killed, one after the other."""
    events = []

    def kill(*event):
        events.append(event)
        if len(events) <= 2:
            dask.kill()
        if len(events) == 2:
            dask.start()
            dask.start()

    assert work(dask, RunStore(tmp_path), EXPERIMENTS, kill, threads=1)
    assert outcome(tmp_path) == local


@pytest.mark.usefixtures("preset")
def test_a_script_is_given_a_scheduler_file(dask, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(app.LocalPool, "submit", None)  # nothing is computed here
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": dask.address}))
    assert script_runs.run(table1, tmp_path, *SMALL, "--seed", "7", "--cluster", str(file)) == 0
    assert "[3/3]" in capsys.readouterr().out
    runs = json.loads((tmp_path / "results" / "tiny" / "table1.json").read_text())["cells"]
    assert {run.rsplit("-s", 1)[1].split("-")[0] for cell in runs for run in cell["runs"]} == {"7"}


def test_a_result_that_is_lost_with_its_worker_is_computed_again(tmp_path):
    """Before anybody can fetch it."""
    killed = []

    class KillOnAnswer(SchedulerPlugin):
        def transition(self, key, start, finish, *args, **kwargs):
            if finish == "memory" and key.startswith(BASELINE.id) and not killed:
                killed.append(key)
                machines.kill()
                machines.start()

    store = RunStore(tmp_path / "results")
    with machines_in(tmp_path, KillOnAnswer()) as machines:
        machines.start()
        assert work(machines, store, [BASELINE])
    assert killed and store.result(BASELINE)["state"] == "finished"


def test_what_an_interrupted_client_leaves_goes_on(dask, tmp_path):
    """The run stops, too, and its epochs are not lost."""
    store, epochs = RunStore(tmp_path), []

    def interrupt(experiment, state, result):
        epochs.append(state)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            work(dask, store, [LONG], interrupt)
    assert epochs[1] > epochs[0]
    with distributed.Client(dask.address) as client:
        for _ in range(100):
            if not any(client.processing().values()) and not store_is_locked(store):
                break
            time.sleep(0.1)
        assert not store_is_locked(store)


def store_is_locked(store):
    with store.lock(LONG) as mine:
        return not mine


@pytest.mark.parametrize("how, against", [
    ({"threads": 7}, "its OMP_NUM_THREADS is 1, --threads 7"),
    ({"settings": replace(SETTINGS, engine="stock"), "precision": "mixed"}, "precision: 'mixed' n"),
])  # fmt: skip
def test_workers_that_are_not_fit_are_refused_by_name(how, against, dask, tmp_path, caplog):
    with pytest.raises(UserError, match="none of its workers"):
        work(dask, RunStore(tmp_path), [BASELINE], **how)
    assert len(caplog.messages) == 2
    assert all(against in line and "\n" not in line for line in caplog.messages)
    assert all(line.count("tcp://") == 1 for line in caplog.messages), "it has no other name"


def test_fit_for_one_script_is_not_fit_for_the_next(dask, tmp_path, monkeypatch):
    """A worker that the second refuses keeps what the first has told Dask of it."""
    with Cluster(dask.address, RunStore(tmp_path), digits.load, SETTINGS, 1) as first:
        wait_until(lambda: first.places == 2)
        fit = list(first._workers)
    prepare, objection = Cluster._prepare, Future()
    objection.set_result("no")
    monkeypatch.setattr(
        Cluster, "_prepare", lambda *of: objection if of[1] == fit[0] else prepare(*of)
    )
    with Cluster(dask.address, RunStore(tmp_path), digits.load, SETTINGS, 1) as second:
        wait_until(lambda: second.places == 1)
        refused = [address for address, taken in second._workers.items() if taken is False]
        assert len(refused) == 1
        run = second._client.submit(
            os.getpid, workers=refused, resources={second._place: 1}, pure=False
        )
        with pytest.raises(TimeoutError):
            run.result(timeout=3)


RULE = """
from chainer_jo.method.soft_labels import RULES

def reversed_(store, mean):
    store.soft_labels[...] = mean[:, ::-1]

RULES["reversed"] = reversed_
"""


def test_a_rule_of_ones_own_runs_where_its_script_was_imported(tmp_path, monkeypatch, caplog):
    """Other workers are refused, and told what they lack."""
    monkeypatch.setitem(RULES, "reversed", None)
    (tmp_path / "own_rule.py").write_text(RULE)
    runpy.run_path(str(tmp_path / "own_rule.py"))
    run = STUDY.joint("symmetric", 0.5, 0, rule="reversed").first_step
    store = RunStore(tmp_path / "results")
    with machines_in(tmp_path) as machines:
        machines.start()
        with pytest.raises(UserError, match="none of its workers"):
            work(machines, store, [run])
        (line,) = (line for line in caplog.messages if "no runs for it" in line)
        assert line.endswith(" with own_rule.py") and line.count("own_rule.py") == 1
        machines.kill()
        machines.start("--preload", "own_rule")
        work(machines, store, [run])
        assert store.result(run)["state"] == "finished"


def on_disk():
    return SimpleNamespace(train=SimpleNamespace(on_disk=True), fingerprint=lambda: "0")


def in_another_module():
    raise ModuleNotFoundError("No module named 'photographs'")


@pytest.mark.parametrize("given, said", [
    ({"nthreads": 2}, "it takes 2 at once in one process; expected dask worker --nthreads 1"),
    ({"settings": Settings("cuda:0"), "gpus": 0}, "needs dask worker --resources GPU=1"),
    ({"settings": Settings("cuda:0")}, "no CUDA GPU"),
    ({"code": "chainer_jo 0"}, f"it has {re.escape(provenance.code())}, expected chainer_jo 0"),
    ({"load_data": partial(open, "none")}, "No such file"),
    ({"fingerprint": "another"}, "its data have fingerprint .*, expected another"),
    ({"load_data": on_disk, "fingerprint": "0"}, "expected DASK_DISTRIBUTED__WORKER__DAEMON=False"),
    ({"load_data": in_another_module}, "expected a loader in a module that it can import"),
])  # fmt: skip
def test_a_worker_says_what_it_lacks(given, said, tmp_path, monkeypatch):
    """Images on disk are decoded by processes, which dask worker forbids by default."""
    expected = {
        "code": provenance.code(), "probe": tmp_path / "probe", "load_data": digits.load,
        "fingerprint": digits.load().fingerprint(), "settings": Settings(), "precision": "fp32",
        "threads": None, "nthreads": 1, "gpus": 1,
    } | given  # fmt: skip
    gpus = {"GPU": expected.pop("gpus")}
    state = SimpleNamespace(nthreads=expected.pop("nthreads"), total_resources=gpus)
    monkeypatch.setattr(cluster, "get_worker", lambda: SimpleNamespace(state=state))
    daemon = SimpleNamespace(daemon=True)
    monkeypatch.setattr(cluster.multiprocessing, "current_process", lambda: daemon)
    expected["load_data"] = pickle.dumps(expected["load_data"])
    with open(expected["probe"], "w") as held, pytest.raises((UserError, OSError), match=said):
        fcntl.flock(held, fcntl.LOCK_EX)
        cluster.prepare("place", **expected)


def test_a_budget_that_is_over_is_not_spent_on_waiting_for_a_worker(tmp_path):
    with machines_in(tmp_path) as machines:
        settings = replace(SETTINGS, deadline=time.monotonic())
        assert not work(machines, RunStore(tmp_path / "results"), [BASELINE], settings=settings)


def test_a_script_waits_for_another_worker_if_its_fit_one_was_lost():
    pool = Cluster("", RunStore("."), digits.load, SETTINGS)
    pool._was_fit, pool._next_look = False, float("inf")
    pool._workers = {"unfit": False}
    with pytest.raises(UserError, match="none of its workers"):
        _ = pool.places
    pool._workers["fit"] = True
    assert pool.places == 1
    del pool._workers["fit"]
    assert pool.places == 0


@pytest.mark.parametrize("deadline", [None, 100.0])
def test_workers_have_the_seconds_that_are_left_by_their_own_clocks(deadline, monkeypatch):
    handed_out, clock = [], SimpleNamespace(monotonic=lambda: 40.0, monotonic_ns=lambda: 0)
    monkeypatch.setattr(cluster, "time", clock)
    pool = Cluster("", RunStore("."), digits.load, replace(SETTINGS, deadline=deadline))
    pool._pickled, pool._out, ended = b"", set(), Future()
    ended.set_result(None)
    submit = lambda *words, **more: handed_out.append(words) or ended  # noqa: E731
    pool._client = SimpleNamespace(id="", submit=submit)
    pool._hand_out(BASELINE)
    clock.monotonic = lambda: 7000.0
    monkeypatch.setattr(cluster, "get_worker", lambda: SimpleNamespace(get_current_task=str))
    monkeypatch.setattr(cluster.worker, "execute", lambda *words: words[3].deadline)
    perform, *arguments = handed_out[0]
    assert perform(*arguments) == (deadline and 7060.0)


def probe_of(store):
    """The file that a script holds while it hands out runs, and what gives it back."""
    held = ExitStack()
    pool = Cluster("", store, digits.load, SETTINGS)
    return pool._hold_probe(held), held


def test_a_folder_that_is_not_shared_or_does_not_lock_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot write to"):
        cluster.check_folder(tmp_path / "not there")
    probe, held = probe_of(RunStore(tmp_path))
    cluster.check_folder(probe)
    held.close()
    assert not list(tmp_path.iterdir())
    probe.touch()
    with pytest.raises(UserError, match="do not hold between machines"):
        cluster.check_folder(probe)
    with pytest.raises(UserError, match=r"^cannot lock .*/x/lock-\w+: Not a directory$"):
        probe_of(RunStore(probe / "x"))


def test_nobody_but_the_script_itself_makes_a_folder_pass_for_shared(tmp_path, monkeypatch):
    """Where locks are each machine's own, neither a script on the worker's machine nor another
    worker that looks at the same moment."""
    (probe, held), (_, of_another) = (probe_of(RunStore(tmp_path)) for _ in range(2))
    held.close()  # as if on another machine
    probe.touch()
    lock, looks = fcntl.flock, []

    def refused():
        with pytest.raises(UserError, match="do not hold between machines"):
            cluster.check_folder(probe)

    def two_at_a_time(file, how):
        lock(file, how)
        looks.append(how)
        if len(looks) == 1:
            refused()

    with of_another, monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", two_at_a_time)
        refused()
    assert len(looks) == 2


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "", "host", "http://host:8786"])
def test_no_scheduler_is_one_line(address, tmp_path):
    import dask

    refused = pytest.raises(UserError, match="no Dask scheduler answers")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), refused as error:
        Cluster(address, RunStore(tmp_path), digits.load, SETTINGS).__enter__()
    assert "\n" not in str(error.value)
