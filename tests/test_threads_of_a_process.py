"""Runs that share a process: its calls, its end, and what fits on a GPU."""

import logging
import multiprocessing
import os
import threading
import time
from concurrent.futures import BrokenExecutor, wait
from pathlib import Path
from types import SimpleNamespace

import pytest

from chainer_jo.engine.cuda.sharing import MemoryBudget
from chainer_jo.errors import UserError
from chainer_jo.reproduction.running import local_pool
from chainer_jo.reproduction.running.local_pool import ThreadsOfAProcess
from chainer_jo.reproduction.running.run import Settings
from chainer_jo.reproduction.running.store import RunStore


def nothing():
    pass


@pytest.fixture
def executor():
    context = multiprocessing.get_context("spawn")
    with ThreadsOfAProcess(2, context, nothing) as made:
        yield made


_met = threading.Barrier(2)


def meet():
    _met.wait(30)
    return os.getpid(), threading.get_ident()


def refuse(text):
    raise UserError(text)


def test_calls_run_at_the_same_time_in_threads_of_one_other_process(executor):
    (a, first), (b, second) = (f.result() for f in [executor.submit(meet) for _ in range(2)])
    assert a == b != os.getpid() and first != second


def test_what_a_call_raises_is_raised_here_and_harms_no_other_call(executor):
    slow, failed = executor.submit(time.sleep, 1), executor.submit(refuse, "not this one")
    with pytest.raises(UserError, match="not this one") as raised:
        failed.result()
    assert "in refuse" in raised.value.__notes__[0]
    assert slow.result() is None


def test_the_death_of_the_process_ends_every_call(executor):
    executor.submit(nothing).result()
    calls = [executor.submit(time.sleep, 60), executor.submit(os._exit, 3)]
    started = time.monotonic()
    assert not wait(calls, 20).not_done and time.monotonic() - started < 20
    for call in [*calls, executor.submit(nothing)]:
        with pytest.raises(BrokenExecutor):
            call.result()


class Memory:
    """Ten bytes, of which a run takes three; the substitute of CuPy, whose pool keeps them."""

    def __init__(self):
        self.free = 10
        self.kept = 0
        self.cuda = SimpleNamespace(runtime=SimpleNamespace(memGetInfo=lambda: (self.free, 10)))
        self.budget = MemoryBudget("cuda:0", self)
        self.begun = threading.Semaphore(0)
        self.end = threading.Event()

    def get_default_memory_pool(self):
        return SimpleNamespace(free_all_blocks=self.give_back)

    def give_back(self):
        self.free, self.kept = self.free + self.kept, 0

    def run(self, deadline=None, measured=False):
        with self.budget.reserve(deadline) as has_memory:
            if has_memory:
                reused = min(self.kept, 3)
                self.kept -= reused
                self.free -= 3 - reused
                if measured:
                    self.budget.measure()
                self.begun.release()
                self.end.wait(30)
                self.kept += 3
            return has_memory

    def start(self):
        threading.Thread(target=self.run, daemon=True).start()


def test_the_first_run_measures_how_many_fit_and_the_others_wait(caplog):
    caplog.set_level(logging.WARNING)
    memory = Memory()
    for _ in range(4):
        memory.start()
    assert memory.begun.acquire(timeout=10)
    assert not memory.begun.acquire(timeout=0.2), "the first is alone until it is measured"
    memory.budget.measure()
    assert memory.begun.acquire(timeout=10) and memory.begun.acquire(timeout=10)
    assert not memory.begun.acquire(timeout=0.2), "three of 3 bytes fit into 10"
    assert not memory.run(time.monotonic() + 0.1), "a deadline ends the waiting"
    memory.run(time.monotonic())
    assert caplog.messages == ["cuda:0: memory for 3 runs at a time; further runs wait"]
    memory.end.set()
    assert memory.begun.acquire(timeout=10)


def test_memory_that_the_pool_keeps_of_an_earlier_run_is_measured(caplog):
    memory = Memory()
    memory.end.set()
    assert memory.run() and memory.run() and memory.kept == 3, "ended before it was measured"
    assert memory.run(measured=True)
    memory.end.clear()
    for _ in range(3):
        memory.start()
    assert all(memory.begun.acquire(timeout=10) for _ in range(6))
    assert not memory.run(time.monotonic()), "three of 3 bytes fit into 10"
    memory.end.set()


def test_a_run_without_memory_of_its_own_leaves_the_measurement_to_the_next():
    memory = Memory()
    with memory.budget.reserve(None):
        memory.budget.measure()
        assert not memory.run(time.monotonic())


def note_process(settings, precision):
    Path(settings.weights).write_text(f"{os.getpid()} {precision}")


def test_a_pool_warms_up_in_the_process_of_its_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("chainer_jo.reproduction.running.worker.warm_up", note_process)
    settings = Settings("cuda", weights=str(tmp_path / "process"))
    pool = local_pool.LocalPool(RunStore(tmp_path), nothing, settings, 1, 1)
    with pool:
        pool.warm_up("mixed")
        process = pool._submit(os.getpid).result()
    assert (tmp_path / "process").read_text() == f"{process} mixed"
