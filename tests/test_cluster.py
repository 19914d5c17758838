"""Runs on the workers of a real Dask scheduler on this machine."""

import fcntl
import json
import os
import pickle
import runpy
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import pytest
import script_runs
from here import Here
from processes import HERE, environment
from script_runs import SMALL, table1
from test_continuing import EXPERIMENTS, outcome
from tiny import STUDY

from chainer_jo.data import digits
from chainer_jo.data.labelled_data import Labelled, LabelledData
from chainer_jo.errors import UserError
from chainer_jo.method.soft_labels import RULES
from chainer_jo.reproduction.commands import app
from chainer_jo.reproduction.running import provenance
from chainer_jo.reproduction.running.run import Settings
from chainer_jo.reproduction.running.scheduler import Scheduler
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


@dataclass(frozen=True)
class OnlyIn:
    """Loads digits in one process alone."""

    process: int

    def __call__(self):
        if os.getpid() != self.process:
            raise UserError("not on this machine")
        return digits.load()


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
    Scheduler(store, Here(store, digits.load, SETTINGS, 2, 1)).work(EXPERIMENTS)
    return outcome(store.root)


def work(dask, store, experiments, load_data=digits.load, on_event=lambda event: None):
    pool = Cluster(dask.address, store, load_data, SETTINGS, 1)
    return Scheduler(store, pool, on_event).work(experiments)


def test_nothing_here_listens_to_the_network(dask):
    psutil = pytest.importorskip("psutil", reason="extra test")
    with distributed.Client(dask.address) as client:
        client.wait_for_workers(2)
        processes = [psutil.Process(), *(psutil.Process(w.pid) for w in dask.workers)]
        listening = [
            {c.laddr.ip for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
            for process in processes
        ]
    assert listening == [{"127.0.0.1"}] * len(processes)


def test_killed_workers_change_nothing(dask, local, tmp_path):
    """Both are killed, one after the other; neither they nor those after them can load the data."""
    events = []

    def kill(event):
        events.append(event)
        if len(events) <= 2:
            dask.kill()
        if len(events) == 2:
            dask.start()
            dask.start()

    load_data = OnlyIn(os.getpid())
    assert work(dask, RunStore(tmp_path), EXPERIMENTS, load_data, kill)
    assert outcome(tmp_path) == local


@pytest.mark.usefixtures("preset")
def test_a_script_is_given_a_scheduler_file(dask, tmp_path, monkeypatch, capsys):
    monkeypatch.delattr(app, "LocalPool")  # nothing is computed here
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": dask.address}))
    assert script_runs.run(table1, tmp_path, *SMALL, "--seed", "7", "--cluster", str(file)) == 0
    assert "[3/3]" in capsys.readouterr().out
    runs = json.loads((tmp_path / "results" / "tiny" / "table1.json").read_text())["cells"]
    assert {run.rsplit("-s", 1)[1].split("-")[0] for cell in runs for run in cell["runs"]} == {"7"}


@pytest.mark.parametrize("lost", ["result", "verdict", "data"])
def test_what_is_lost_with_its_worker_is_asked_for_or_sent_again(lost, tmp_path, monkeypatch):
    """A run's first result, before anybody can fetch it; what a worker says of itself; and data
    that are on their way to it."""
    killed, verdict = [], Cluster._verdict
    send = distributed.scheduler.scatter_to_workers

    def kill_first():
        if not killed:
            killed.append(lost)
            machines.kill()
            machines.start()

    class KillOnAnswer(SchedulerPlugin):
        def transition(self, key, start, finish, *args, **kwargs):
            if lost == "result" and finish == "memory" and key.startswith(BASELINE.id):
                kill_first()

    def lost_verdict(pool, answer):
        while not killed and not answer.done():
            time.sleep(0.01)
        kill_first()
        return verdict(pool, answer)

    async def lost_data(workers, data, **kwargs):
        kill_first()
        return await send(workers, data, **kwargs)

    if lost == "verdict":
        monkeypatch.setattr(Cluster, "_verdict", lost_verdict)
    elif lost == "data":
        monkeypatch.setattr(distributed.scheduler, "scatter_to_workers", lost_data)
    store = RunStore(tmp_path / "results")
    with machines_in(tmp_path, KillOnAnswer()) as machines:
        machines.start()
        load_data = OnlyIn(os.getpid()) if lost == "data" else digits.load
        assert work(machines, store, [BASELINE], load_data)
    assert killed and store.result(BASELINE)["state"] == "finished"


def test_what_an_interrupted_client_leaves_goes_on(dask, tmp_path):
    """The run stops, too, and its epochs are not lost."""
    store, epochs = RunStore(tmp_path), []

    def interrupt(event):
        epochs.append(event.state)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            work(dask, store, [LONG], on_event=interrupt)
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


def test_workers_that_are_not_fit_are_refused_by_name(dask, tmp_path, caplog):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
        ) as other,
        pytest.raises(UserError, match="none of its workers"),
    ):
        work(Machines(other.scheduler_address, tmp_path), RunStore(tmp_path), [BASELINE])
    (line,) = (line for line in caplog.messages if "no runs for it" in line)
    assert "tcp://" in line or "inproc://" in line
    assert "it takes 2 at once in one process" in line and "\n" not in line
    store = RunStore(tmp_path)
    for settings, more, against in (
        (SETTINGS, {"threads": 7}, "its OMP_NUM_THREADS is 1, --threads 7"),
        (replace(SETTINGS, device="cuda:0"), {}, "needs dask worker --resources GPU=1"),
        (replace(SETTINGS, engine="stock"), {"precision": "mixed"}, "precision: 'mixed' needs"),
    ):
        caplog.clear()
        pool = Cluster(dask.address, store, digits.load, settings, **more)
        with pytest.raises(UserError, match="none of its workers"):
            Scheduler(store, pool).work([BASELINE])
        assert len(caplog.messages) == 2
        assert all(against in line for line in caplog.messages)
        assert all(line.count("tcp://") == 1 for line in caplog.messages), "it has no other name"


def test_fit_for_one_script_is_not_fit_for_the_next(dask, tmp_path, monkeypatch):
    """A worker that the second refuses keeps what the first has told Dask of it."""
    with Cluster(dask.address, RunStore(tmp_path), digits.load, SETTINGS, 1) as first:
        fit = list(first._workers)
    assert fit
    monkeypatch.setattr(Cluster, "_against", lambda _, info: "no" if info["id"] == fit[0] else "")
    with Cluster(dask.address, RunStore(tmp_path), digits.load, SETTINGS, 1) as second:
        refused = [address for address, taken in second._workers.items() if taken is False]
        assert len(refused) == 1
        run = second._client.submit(
            os.getpid, workers=refused, resources={second._place: 1}, pure=False
        )
        with pytest.raises(TimeoutError):
            run.result(timeout=3)


def test_data_that_the_script_itself_loads_are_sent(dask, tmp_path, monkeypatch):
    def load():
        return digits.load()

    load.__module__, load.__qualname__ = "__main__", "load_of_the_script"
    monkeypatch.setattr(sys.modules["__main__"], "load_of_the_script", load, raising=False)
    assert work(dask, RunStore(tmp_path), [BASELINE], load)


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


@pytest.fixture
def verdict(tmp_path):
    """What a worker that is asked whether it can take runs has against it."""

    def call(load_data=digits.load, code=None, fingerprint="", **settings):
        with open(tmp_path / "probe", "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            data = tmp_path / "probe", pickle.dumps(load_data), fingerprint
            how = Settings(**settings), "fp32", None, None
            return cluster.prepare("place", code or provenance.code(), *data, *how)

    return call


def test_other_code_and_a_worker_without_a_gpu_are_refused(verdict, tmp_path):
    assert verdict(code="chainer_jo 0") == f"it has {provenance.code()}, expected chainer_jo 0"
    assert "no CUDA GPU" in verdict(device="cuda:0")
    # A worker that lacks the file of the data is sent them; another verdict would be for good.
    for error in (OnlyIn(0), partial(open, tmp_path / "none"), partial(open, tmp_path / "probe/x")):
        assert verdict(error) == cluster.NO_DATA


def test_a_worker_that_may_start_no_processes_decodes_no_images(verdict, monkeypatch):
    """As dask worker is without its own setting."""
    monkeypatch.setattr(Labelled, "on_disk", True)
    daemon = SimpleNamespace(daemon=True)
    monkeypatch.setattr(cluster.multiprocessing, "current_process", lambda: daemon)
    monkeypatch.setattr(LabelledData, "fingerprint", lambda self: "as expected")
    against = verdict(fingerprint="as expected")
    assert "expected DASK_DISTRIBUTED__WORKER__DAEMON=False" in against


def test_a_budget_that_is_over_is_not_spent_on_waiting_for_a_worker(tmp_path):
    with machines_in(tmp_path) as machines:
        settings = replace(SETTINGS, deadline=time.monotonic())
        store = RunStore(tmp_path / "results")
        pool = Cluster(machines.address, store, digits.load, settings)
        assert not Scheduler(store, pool, deadline=settings.deadline).work([BASELINE])


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
    assert "cannot write to" in cluster.against_folder(tmp_path / "not there")
    probe, held = probe_of(RunStore(tmp_path))
    assert cluster.against_folder(probe) == ""
    held.close()
    assert not list(tmp_path.iterdir())
    probe.touch()
    assert "do not hold between machines" in cluster.against_folder(probe)
    with pytest.raises(UserError, match=r"^cannot lock .*/x/lock-\w+: Not a directory$"):
        probe_of(RunStore(probe / "x"))


def test_nobody_but_the_script_itself_makes_a_folder_pass_for_shared(tmp_path, monkeypatch):
    """Where locks are each machine's own, neither a script on the worker's machine nor another
    worker that looks at the same moment."""
    (probe, held), (_, of_another) = (probe_of(RunStore(tmp_path)) for _ in range(2))
    held.close()  # as if on another machine
    probe.touch()
    lock, answers = fcntl.flock, []

    def two_at_a_time(file, how):
        lock(file, how)
        if not answers:
            answers.append("")
            answers[0] = cluster.against_folder(probe)

    with of_another, monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", two_at_a_time)
        answers.append(cluster.against_folder(probe))
    assert all("do not hold between machines" in answer for answer in answers), answers
    assert len(answers) == 2


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "", "host", "http://host:8786"])
def test_no_scheduler_is_one_line(address, tmp_path):
    import dask

    refused = pytest.raises(UserError, match="no Dask scheduler answers")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), refused as error:
        Cluster(address, RunStore(tmp_path), digits.load, SETTINGS).__enter__()
    assert "\n" not in str(error.value)
