"""Who runs what next, and what becomes of it when other processes interfere."""

import _multiprocessing
import errno
import fcntl
import logging
import os
import pickle
import re
import signal
import sys
import threading
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace

import pytest
from here import noted
from tiny import STUDY

from chainer_jo.data import digits
from chainer_jo.errors import Unfinished, UserError
from chainer_jo.reproduction.running import scheduler, worker
from chainer_jo.reproduction.running.local_pool import LocalPool
from chainer_jo.reproduction.running.run import Settings
from chainer_jo.reproduction.running.scheduler import Queue, compute
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
        found = worker.execute(experiment, store, digits.load(), Settings())
        if found[0] == "busy":
            store.save_result(first_step, recorded)
            other.close()
        return found

    pool = Instant(store, run)
    assert compute([JOINT], pool, noted(events))
    assert pool.handed_out == [first_step, first_step]
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
    with killed as error, LocalPool(store, digits.load, Settings(), 2, threads=1) as pool:
        compute([LONG, BASELINE], pool, kill_the_idle_one)
    assert "\n" not in str(error.value)
    assert not active_children()


def test_memory_that_is_spent_is_one_line_that_says_what_would_fit(tmp_path, monkeypatch):
    """As CuPy says it where other runs, or other programs, have the rest of a GPU's."""

    def spent(*_, **__):
        raise MemoryError("Out of memory allocating 65,536 bytes")

    monkeypatch.setattr(worker, "Run", spent)
    expected = f"run {BASELINE.id} on cpu: out of memory .Out of .* bytes.; --jobs 1 computes one"
    with pytest.raises(UserError, match=expected):
        worker.execute(BASELINE, RunStore(tmp_path), pickle.dumps(digits.load), Settings())


def test_a_system_without_semaphores_is_one_line(tmp_path, monkeypatch):
    """As in containers without /dev/shm, and on some functions of clouds."""

    def none(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(_multiprocessing, "SemLock", none)
    pool = LocalPool(RunStore(tmp_path), digits.load, Settings(), 2, threads=1)
    expected = "worker processes: Permission denied, expected .*semaphor"
    with pytest.raises(UserError, match=expected), pool:
        pytest.fail("it has no semaphores")


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


def test_in_their_order_and_second_steps_after_their_first_unless_it_diverged():
    others = [of(50, seed) for seed in range(1, 9)]
    for state, follows in (("finished", JOINT), ("diverged", None)):
        queue = Queue([JOINT.first_step, JOINT, *others])
        handed_out = [queue.next(2) for _ in range(9)]
        assert handed_out == [JOINT.first_step, *others] and not queue
        queue.ended(JOINT.first_step, state)
        assert queue.next(2) == follows and not queue


def test_a_long_run_at_the_end_of_the_list_does_not_begin_last():
    runs = [of(10, seed) for seed in range(12)] + [of(60, 12)]
    assert Queue(runs).next(1) == runs[0] and Queue(runs).next(3) == runs[12]
    first_step = of(30, 13)
    chain = [*runs[:12], first_step, of(30, 13, first_step)]
    assert Queue(chain).next(3) == first_step


def test_runs_take_together_what_they_take_but_not_less_than_one_after_its_first_step():
    cost, short, first_step = Cost(2.0, ""), {of(10, seed): 10 for seed in range(12)}, of(30, 13)
    assert cost.seconds_together(short, 1) == 240 and cost.seconds_together(short, 3) == 80
    steps = {first_step: 20, of(30, 13, first_step): 30}
    assert cost.seconds_together({**short, **steps}, 100) == 100
    assert cost.seconds_together({}, 1) == 0


class Instant:
    """A pool whose runs end as they begin, but for those that give a future."""

    def __init__(self, store, run=lambda experiment: ("finished", {}), places=64):
        self.store, self.run, self.places = store, run, places
        self.settings = Settings(deadline=1e12)
        self.handed_out = []

    def submit(self, experiment):
        self.handed_out.append(experiment)
        future, ended = Future(), self.run(experiment)
        if isinstance(ended, Future):
            return ended
        future.set_result(ended)
        return future


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

    pool = Instant(RunStore(tmp_path), run, 2)
    assert not compute(joint, pool, free)
    assert pool.handed_out == joint[:2]
    clock.monotonic = lambda: 0
    assert not compute([BASELINE], pool)
    assert pool.handed_out == [*joint[:2], BASELINE]


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

    pool = Instant(RunStore(tmp_path), run, 2)
    with pytest.raises(UserError, match="this one alone"):
        compute(runs, pool, noted(events))
    assert pool.handed_out == runs[:2]
    assert [event[:2] for event in events] == [(runs[0], "finished")]
    assert caplog.messages == ["this one alone; 1 other runs continue"]
