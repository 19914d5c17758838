"""Who runs what next, and what becomes of it when other processes interfere."""

import errno
import fcntl
import logging
import os
import pickle
import re
import signal
import sys
import threading
import time
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace

import pytest
from here import noted
from processes import wait_until
from tiny import STUDY

from chainer_jo.child_processes import Processes
from chainer_jo.data import digits
from chainer_jo.errors import Unfinished, UserError
from chainer_jo.reproduction.running import scheduler, worker
from chainer_jo.reproduction.running.run import Computation
from chainer_jo.reproduction.running.scheduler import Work, compute, longest_first
from chainer_jo.reproduction.running.status import Cost
from chainer_jo.reproduction.running.store import RunStore

JOINT = STUDY.joint("symmetric", 0.5, 0)
BASELINE = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)
LONG = replace(BASELINE, optimization=replace(BASELINE.optimization, epochs=100_000))


def test_what_another_process_recorded_as_diverged_is_final(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "POLL", 0.01)
    store, first_step, events = RunStore(tmp_path), JOINT.first_step, []
    recorded = {"id": first_step.id, "state": "diverged", "epoch": 1}
    other = ExitStack()
    other.enter_context(store.lock(first_step))

    def run(experiment):
        found = worker.execute(experiment, store, digits.load(), Computation())
        if found[0] == "busy":
            store.save_result(first_step, recorded)
            other.close()
        return found

    executor = Instant(run)
    assert executor.compute([JOINT], store, on_event=noted(events))
    assert executor.handed_out == [first_step, first_step]
    assert store.result(first_step).items() >= recorded.items()
    assert [event[:2] for event in events] == [(first_step, "diverged")]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says who is idle")
def test_a_worker_that_dies_while_idle_is_reported_in_one_line(tmp_path):
    store = RunStore(tmp_path)

    def kill_the_idle_one(experiment, state, result):
        if state == "finished":
            lock = str(store.folder(LONG) / "lock")
            for process in active_children():
                folder = Path(f"/proc/{process.pid}/fd")
                if not any(os.path.realpath(link) == lock for link in folder.iterdir()):
                    os.kill(process.pid, signal.SIGKILL)

    killed = pytest.raises(Unfinished, match="a worker process was killed")
    work = Work(store, pickle.dumps(digits.load), Computation())
    with killed as error, Processes(2, threads=1) as executor:
        compute([LONG, BASELINE], work, executor, lambda: 2, kill_the_idle_one)
    assert "\n" not in str(error.value)
    assert not active_children()


def test_memory_that_is_spent_is_one_line_that_says_what_would_fit(tmp_path, monkeypatch):
    """As CuPy says it where other runs, or other programs, have the rest of a GPU's."""

    def spent(*_, **__):
        raise MemoryError("Out of memory allocating 65,536 bytes")

    monkeypatch.setattr(worker, "Run", spent)
    expected = f"run {BASELINE.id} on cpu: out of memory .Out of .* bytes.; --jobs 1 computes one"
    with pytest.raises(UserError, match=expected):
        worker.execute(BASELINE, RunStore(tmp_path), pickle.dumps(digits.load), Computation())


def test_a_system_without_semaphores_is_one_line(monkeypatch):
    """As in containers without /dev/shm, and on some functions of clouds."""

    def none(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("multiprocessing.synchronize._multiprocessing.SemLock", none)
    expected = "worker processes: Permission denied, expected .*semaphor"
    with pytest.raises(UserError, match=expected):
        Processes(2, threads=1)


def test_an_interrupt_after_runs_were_cancelled_says_nothing(monkeypatch, capfd):
    """However long this process takes from the kill to the shutdown."""
    end = Processes.shutdown
    monkeypatch.setattr(Processes, "shutdown", lambda *a, **k: time.sleep(0.5) or end(*a, **k))
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    with pytest.raises(KeyboardInterrupt), Processes(1) as executor:
        runs = [executor.submit(time.sleep, 100) for _ in range(9)]
        wait_until(runs[1].running)  # the queue of the process is full then
        assert any([run.cancel() for run in runs])
        raise KeyboardInterrupt
    assert capfd.readouterr().err == ""


def threads_of_this_process():
    return os.environ.get("OMP_NUM_THREADS")


def test_processes_have_their_threads_and_this_one_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with Processes(1, threads=3) as executor:
        with pytest.raises(UserError), Processes(1) as other:
            executor.submit(abs, 1), other.submit(abs, 1)
            raise UserError("kills processes of its own executor")
        assert executor.submit(threads_of_this_process).result() == "3"
    assert threads_of_this_process() == "5" and "MKL_NUM_THREADS" not in os.environ


@pytest.mark.parametrize("why", ["No locks available", "Is a directory"])
def test_a_file_system_without_locks_is_an_error_and_nobody_at_the_run(why, tmp_path, monkeypatch):
    """Whoever waited for that would wait for ever."""

    def flock(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    store = RunStore(tmp_path)
    if why == "Is a directory":  # another user's file, say, which root could write
        (store.open(BASELINE) / "lock").mkdir()
    else:
        monkeypatch.setattr(fcntl, "flock", flock)
    said = re.escape(f"cannot lock {store.folder(BASELINE) / 'lock'}: {why}; expected")
    with pytest.raises(UserError, match=said), store.lock(BASELINE):
        pytest.fail("it holds nothing")


def of(epochs, seed=0, first_step=None):
    """A run of so many epochs."""
    optimization = replace(BASELINE.optimization, epochs=epochs)
    return replace(BASELINE, optimization=optimization, seed=seed, first_step=first_step)


def second_of(epochs, first_step):
    return of(epochs, first_step.seed, first_step)


def test_the_longest_chain_begins_first_and_equal_ones_in_their_order():
    first, short, long = of(30, 1), [of(10, seed) for seed in range(2, 5)], of(50, 5)
    second = second_of(25, first)
    assert longest_first([*short, long, second]) == [first, long, second, *short]
    assert longest_first([second_of(1, first), second]) == [first, second, second_of(1, first)]


@pytest.mark.parametrize("state", ["finished", "diverged"])
def test_in_their_order_and_second_steps_after_their_first_unless_it_diverged(state, tmp_path):
    """One place is free after the other, the first step's last."""
    others, held = [of(50, seed) for seed in range(1, 9)], Future()

    def run(experiment):
        if experiment == others[-1]:
            held.set_result((state, {}))
        return held if experiment == JOINT.first_step else ("finished", {})

    executor = Instant(run)
    assert executor.compute([JOINT, *others], RunStore(tmp_path), 2)
    follow = [JOINT] if state == "finished" else []
    assert executor.handed_out == [JOINT.first_step, *others, *follow]


def test_no_more_runs_are_handed_out_than_there_are_places(tmp_path):
    """Places may come and go."""
    runs, places, held = [of(1, seed) for seed in range(5)], iter([2, 0, 3, 3]), []

    def free(*event):
        raise AssertionError("nothing has ended")

    def run(experiment):
        held.append(Future())
        return held[-1]

    def count():
        number = next(places)
        if number == 3 and len(held) == 3:
            raise KeyboardInterrupt
        return number

    executor = Instant(run)
    with pytest.raises(KeyboardInterrupt):
        compute(runs, Work(RunStore(tmp_path), b"", Computation()), executor, count, free)
    assert executor.handed_out == runs[:3]


def test_runs_take_together_what_they_take_but_not_less_than_one_after_its_first_step():
    cost, short, first_step = Cost(2.0, ""), {of(10, seed): 10 for seed in range(12)}, of(30, 13)
    assert cost.seconds_together(short, 1) == 240 and cost.seconds_together(short, 3) == 80
    steps = {first_step: 20, of(30, 13, first_step): 30}
    assert cost.seconds_together({**short, **steps}, 100) == 100
    assert cost.seconds_together({}, 1) == 0


class Instant(Executor):
    """Executor whose runs end as they begin, except for runs that give a future."""

    def __init__(self, run=lambda experiment: ("finished", {})):
        self.run, self.handed_out = run, []

    def submit(self, work, experiment):
        self.handed_out.append(experiment)
        future, ended = Future(), self.run(experiment)
        if isinstance(ended, Future):
            return ended
        future.set_result(ended)
        return future

    def compute(self, experiments, store, places=64, **more):
        work = Work(store, b"", Computation(deadline=1e12))
        return compute(experiments, work, self, lambda: places, **more)


def test_nothing_is_handed_out_once_the_time_is_up(tmp_path, monkeypatch):
    """And a run that paused is not done, though it was the last one."""
    joint = [STUDY.joint("symmetric", 0.5, seed).first_step for seed in range(3)]
    long, clock = Future(), SimpleNamespace(monotonic=lambda: 0)
    monkeypatch.setattr(scheduler, "time", clock)

    def free(*event):
        if not long.done():
            long.set_result(("paused", None))

    def run(experiment):
        if experiment == joint[0]:
            return long
        clock.monotonic = lambda: 2e12
        return "paused" if experiment == BASELINE else "finished", {}

    executor, store = Instant(run), RunStore(tmp_path)
    assert not executor.compute(joint, store, 2, on_event=free)
    assert executor.handed_out == joint[:2]
    clock.monotonic = lambda: 0
    assert not executor.compute([BASELINE], store)
    assert executor.handed_out == [*joint[:2], BASELINE]


def left_out():
    logging.warning("1 left out")
    return "images"


def test_workers_do_not_repeat_what_is_noted_of_the_data(monkeypatch, caplog):
    monkeypatch.setattr(worker, "loaded", {})
    assert worker.loaded_by(pickle.dumps(left_out)) == "images" and not caplog.messages
    assert left_out() == "images" and caplog.messages == ["1 left out"]


def test_a_run_that_fails_ends_no_other_and_none_begins_after_it(tmp_path, caplog):
    runs, beside, failed, events = [of(1, seed) for seed in range(3)], Future(), Future(), []
    failed.set_exception(UserError("this one alone"))

    def run(experiment):
        if experiment == runs[1]:
            threading.Timer(0.3, beside.set_result, [("finished", {})]).start()
        return beside if experiment == runs[0] else failed

    executor = Instant(run)
    with pytest.raises(UserError, match="this one alone"):
        executor.compute(runs, RunStore(tmp_path), 2, on_event=noted(events))
    assert executor.handed_out == runs[:2]
    assert [event[:2] for event in events] == [(runs[0], "finished")]
    assert caplog.messages == ["this one alone; 1 other runs continue"]
