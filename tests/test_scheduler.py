"""Who runs what next, and what becomes of it when other processes interfere."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import pytest
from tiny import STUDY

from chainer_jo.datasets import digits
from chainer_jo.errors import UserError
from chainer_jo.experiments.run import Settings
from chainer_jo.experiments.scheduler import Scheduler
from chainer_jo.experiments.store import RunStore

JOINT = STUDY.joint("symmetric", 0.5, 0)
BASELINE = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)
LONG = replace(BASELINE, optimization=replace(BASELINE.optimization, epochs=100_000))


def work(store, experiments, jobs=1, on_event=lambda event: None):
    return Scheduler(store, digits.load, Settings(), jobs, threads=1, on_event=on_event).work(
        experiments
    )


def test_what_another_process_recorded_as_diverged_is_final(tmp_path):
    store, first_step, events = RunStore(tmp_path), JOINT.first_step, []
    recorded = {"id": first_step.id, "state": "diverged", "epoch": 1}
    with store.lock(first_step):
        scheduler = threading.Thread(target=work, args=(store, [JOINT], 1, events.append))
        scheduler.start()
        time.sleep(5)
        store.save_result(first_step, recorded)
    scheduler.join()
    assert store.result(first_step) == recorded
    assert [(event.experiment, event.state) for event in events] == [(first_step, "diverged")]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says who is idle")
def test_a_worker_that_dies_while_idle_is_reported_in_one_line(tmp_path):
    store = RunStore(tmp_path)

    def kill_the_idle_one(event):
        if event.state == "finished":
            lock = str(store.folder(LONG) / "lock")
            for process in active_children():
                folder = Path(f"/proc/{process.pid}/fd")
                if not any(os.path.realpath(link) == lock for link in folder.iterdir()):
                    os.kill(process.pid, signal.SIGKILL)

    with pytest.raises(UserError, match="the same command continues") as error:
        work(store, [LONG, BASELINE], 2, kill_the_idle_one)
    assert "\n" not in str(error.value)
    assert not active_children()


def test_a_run_that_somebody_is_at_is_not_forgotten(tmp_path):
    store = RunStore(tmp_path)
    with store.lock(BASELINE):
        snapshot = store.folder(BASELINE) / "snapshot_iter_1"
        snapshot.write_bytes(b"all that there is of it so far")
        with pytest.raises(UserError, match=f"{BASELINE.id}: another process is at it"):
            store.forget(BASELINE)
        assert snapshot.exists()
    store.forget(BASELINE)
    assert not snapshot.exists()
