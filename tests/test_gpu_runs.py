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
from chainer_jo.engine.cuda.cudnn import load
from chainer_jo.engine.cuda.graph_step import WARM_UP
from chainer_jo.errors import UserError
from chainer_jo.method.images import Images
from chainer_jo.method.iterator import BatchIterator
from chainer_jo.method.objectives import Classifier, JointObjective
from chainer_jo.method.optimizers import FlatMomentumSGD
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.soft_labels import SoftLabels
from chainer_jo.method.updater import JointUpdater
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


def updater(seed, images=64, side=8, width=8, graph=True):
    """Steps of a tiny network, four an epoch, on images of its own."""
    rng = np.random.default_rng(seed)
    device = chainer.get_device("@cupy:0")
    send = device.send
    labels = rng.integers(10, size=images).astype(np.int32)
    pixels = rng.integers(256, size=(images, side, side, 3), dtype=np.uint8)
    network = PreActResNet(3, 10, (1,), (width,), np.random.RandomState(seed))
    model = Classifier(network, JointObjective(np.full(10, 0.1), 1.2, 0.8))
    model.to_device(device)
    return JointUpdater(
        BatchIterator(images, images // 4, seed, 1, 2, True, send),
        FlatMomentumSGD(0.05, 0.9, 1e-4).setup(model),
        Images(send(pixels), send(np.zeros((side, side, 3), np.float32)), 2),
        SoftLabels(labels, 10, "soft", xp=cupy),
        send(labels),
        send(labels),
        graph=graph,
    )


def trained(order, **sizes):
    """Parameters of two runs after steps in this order, on streams that do not wait for each
    other."""
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    updaters = []
    for seed, stream in enumerate(streams):
        with stream:
            updaters.append(updater(seed, **sizes))
    with chainer.using_config("jo_backend", load("mixed")), chainer.Reporter():
        for which in map(int, order):
            with streams[which]:
                updaters[which].update()
    found = []
    for which, (each, stream) in enumerate(zip(updaters, streams, strict=True)):
        stream.synchronize()
        optimizer = each.get_optimizer("main")
        arrays = optimizer.parameters, optimizer.velocity, each.labels.probabilities
        found.append([array.get() for array in arrays])
        replays = max(order.count(str(which)) - WARM_UP, 0)
        assert each.replays == (replays if sizes.get("graph", True) else 0)
    return found


@pytest.mark.parametrize("order", ["01" * 10, "00000111110101010101", "01101001100101101001"])
def test_replays_of_two_steps_in_any_order_are_those_of_each(order):
    """One step is captured while the other replays."""
    both = trained(order)
    for which in "01":
        expected = trained(order.replace("10"[int(which)], ""))[int(which)]
        for ours, theirs in zip(both[int(which)], expected, strict=True):
            assert np.isfinite(theirs).all() and np.array_equal(ours, theirs)
