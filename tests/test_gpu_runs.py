"""Several runs on one GPU, as threads of this process: each is what it is alone, bit for bit."""

import hashlib
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import chainer
import numpy as np
import pytest
import turns
from engines import ON_GPU
from tiny import STUDY

from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.reproduction.running import worker
from chainer_jo.reproduction.running.run import Settings
from chainer_jo.reproduction.running.store import RunStore

pytestmark = ON_GPU

cupy = chainer.backends.cuda.cupy

SETTINGS = Settings("cuda", snapshot_seconds=0)
DATA = pickle.dumps(digits.load)
EPOCHS, STEPS = 4, 4


def run_of(rate):
    """A short run with label updates."""
    run = STUDY.first_step("symmetric", rate, 0)
    optimization = replace(run.optimization, epochs=EPOCHS, batch_size=180 // STEPS)
    return replace(run, optimization=optimization, relabelling=replace(run.relabelling, start=2))


RUNS = [run_of(rate) for rate in (0.5, 0.3, 0.7)]


def outcome(store, run):
    """All that a run leaves but times: scores, digests of labels and plans, log, weights."""
    result, log = store.result(run), store.log(run)
    with np.load(store.folder(run) / "model.npz") as weights:
        content = b"".join(weights[name].tobytes() for name in sorted(weights.files))
    for entry in log:
        del entry["elapsed_time"]
    scores = {key: result[key] for key in ("state", "best", "last", "labels_sha256")}
    plans = result["provenance"]["choices"]
    return scores, plans, log, hashlib.sha256(content).hexdigest()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("alone"))
    for run in RUNS:
        worker.execute(run, store, DATA, SETTINGS)
    return store


@pytest.fixture
def beside(monkeypatch):
    """Function that computes runs at the same time: what comes of each, a state or an error."""
    worker._memory_budget.cache_clear()
    turns.take_turns(monkeypatch.setattr)

    def compute(store, on_epoch):
        def execute(run):
            return worker.execute(run, store, DATA, SETTINGS, on_epoch)

        with ThreadPoolExecutor(len(RUNS)) as threads:
            futures = [threads.submit(execute, run) for run in RUNS]
            return [future.exception() or future.result()[0] for future in futures]

    return compute


def test_runs_beside_each_other_are_those_alone_and_one_that_fails_ends_no_other(
    alone, beside, tmp_path
):
    """The second is broken off in its third epoch, and resumed alone."""
    store, streams, epochs = RunStore(tmp_path), set(), []

    def on_epoch(run):
        streams.add(cupy.cuda.get_current_stream().ptr)
        epochs.append(run.experiment)
        if run.experiment == RUNS[1] and run.updater.epoch == 3:
            raise UserError("broken off")
        assert run.updater.epoch == 1 or run.updater.replays

    states = beside(store, on_epoch)
    assert states[::2] == ["finished", "finished"] and str(states[1]) == "broken off"
    assert len(streams) == len(RUNS) and 0 not in streams
    assert any(a != b for a, b in zip(epochs[EPOCHS:], epochs[EPOCHS + 1 :], strict=False))
    assert worker.execute(RUNS[1], store, DATA, SETTINGS)[0] == "finished"
    for run in RUNS:
        assert outcome(store, run) == outcome(alone, run)


def test_a_run_is_measured_whose_memory_the_pool_holds_from_an_earlier_one(alone, tmp_path):
    worker._memory_budget.cache_clear()
    store = RunStore(tmp_path)
    assert worker.execute(RUNS[0], store, DATA, SETTINGS)[0] == "finished"
    weights = (store.folder(RUNS[0]) / "model.npz").stat().st_size
    free, _ = cupy.cuda.runtime.memGetInfo()
    assert 1 < worker._memory_budget(SETTINGS.device)._fitting < free // weights
