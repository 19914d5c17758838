"""Runs on images on disk: bound to their data, ended when they diverge, continued bit for bit."""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from clothing1m_like import ON_DISK, make_clothing1m_like
from here import compute, noted
from test_clothing1m_report import flags
from test_graph_training import stand_in  # noqa: F401  (a fixture)
from tiny import record

from chainer_jo import devices
from chainer_jo.data import clothing1m
from chainer_jo.data.image_stream import ImageStream
from chainer_jo.data.labelled_data import UNKNOWN
from chainer_jo.errors import UserError
from chainer_jo.method.extensions import Paused
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.resnet50 import VARIANTS
from chainer_jo.reproduction.commands import clothing1m_main as main
from chainer_jo.reproduction.experiments.clothing1m_presets import (
    CLOTHING1M_DIGITS,
    Clothing1MStudy,
)
from chainer_jo.reproduction.experiments.experiment import Network
from chainer_jo.reproduction.experiments.presets import REAL
from chainer_jo.reproduction.running import worker
from chainer_jo.reproduction.running.run import Computation, Run, make_network
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.clothing1m_outputs import figure7, table3

COMPUTATION = Computation(engine="stock", workers=0, snapshot_seconds=0)
SECOND = replace(
    ON_DISK, objective="cross_entropy", alpha=0.0, beta=0.0, relabelling=None, first_step=ON_DISK
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "small"
    return clothing1m.load(make_clothing1m_like(folder, size=18), ON_DISK.data.name)


def work(store, data, experiment):
    """Brings a run and its first step to an end; gives the events."""
    events = []
    assert compute([experiment], store, data, COMPUTATION, noted(events))
    return events


def test_a_run_knows_the_classes_shares_and_the_mean_colour(data, tmp_path):
    """Section 5.8's prior is the distribution of the noisy labels."""
    labels = data.train.labels.copy()
    labels[labels == 1] = 0
    labels[0] = 1
    uneven = replace(data, train=replace(data.train, labels=labels))
    run = Run(ON_DISK, uneven, RunStore(tmp_path), COMPUTATION)
    shares = np.bincount(labels) / len(labels)
    np.testing.assert_allclose(run.model.objective.prior, shares, rtol=1e-6)
    everything = np.concatenate(list(run.train_images.in_order()))
    np.testing.assert_allclose(everything.mean(axis=(0, 2, 3)), 0, atol=1e-5)
    run.close()


@pytest.mark.parametrize("name", [None, *VARIANTS])
def test_networks_are_given_their_order_mean_and_scale(name, data, tmp_path, monkeypatch):
    """Order, mean and scale of the data, of caffe's weights, and of torchvision's weights."""
    if name:
        monkeypatch.setattr(PreActResNet, "variant", VARIANTS[name], raising=False)
    run = Run(ON_DISK, data, RunStore(tmp_path), COMPUTATION)
    images = run.train_images
    pixels = np.concatenate([*images._stream.batches([images._paths(np.arange(6))])])
    mean, std = (VARIANTS[name].mean, VARIANTS[name].std) if name else (run.split.mean, 255)
    if name and VARIANTS[name].channels == "BGR":
        pixels = pixels[..., ::-1]
    expected = ((pixels.astype(np.float32) - mean) / std).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(next(images.in_order())[:6], expected, rtol=1e-4, atol=1e-4)
    run.close()
    assert {variant.channels for variant in VARIANTS.values()} == {"RGB", "BGR"}


def reordered(data):
    """The same images and labels."""
    return replace(data, train=data.train.take(np.arange(len(data.train))[::-1]))


def test_labels_and_checkpoints_of_the_same_images_in_another_order_are_refused(data, tmp_path):
    store = RunStore(tmp_path)
    stopped(store, data)
    with pytest.raises(UserError, match="checkpoint of .* expected the same run, data") as caught:
        Run(ON_DISK, reordered(data), store, COMPUTATION).finish()
    assert "--fresh" not in str(caught.value)  # not a flag of all commands
    assert "; remove this file, the run then starts again" in str(caught.value)
    record(store, ON_DISK, data=data.fingerprint())
    store.save_labels(ON_DISK, np.eye(len(data.class_names), dtype=np.float32)[data.train.labels])
    Run(SECOND, data, store, COMPUTATION)
    with pytest.raises(UserError, match=f"labels of {ON_DISK.id}: of data with fingerprint"):
        Run(SECOND, reordered(data), store, COMPUTATION)


def stopped(store, data):
    """The checkpoint of a run that has come to the end of its first epoch."""
    with pytest.raises(Paused):
        Run(ON_DISK, data, store, replace(COMPUTATION, deadline=0.0)).finish()
    return store.folder(ON_DISK) / "snapshot.npz"


def test_damaged_checkpoints_and_labels_are_refused(data, tmp_path):
    store = RunStore(tmp_path)
    path = stopped(store, data)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match="remove this file, the run then starts") as caught:
        Run(ON_DISK, data, store, COMPUTATION).finish()
    assert str(caught.value).startswith(f"{path}: damaged (")
    assert "--fresh" not in str(caught.value)
    path.unlink()
    assert Run(ON_DISK, data, store, COMPUTATION).finish()["state"] == "finished"
    labels = store.folder(ON_DISK) / "labels.npz"
    whole = bytearray(labels.read_bytes())
    whole[whole.rindex(b"PK\1\2") + 6] ^= 1 << 6  # needs another version of zip
    for text in (b"", labels.read_bytes()[:-50], whole):
        labels.write_bytes(text)
        with pytest.raises(UserError, match=r"labels.npz: damaged \(.*; remove it"):
            store.soft_labels(ON_DISK)


@pytest.mark.parametrize("build", [figure7, table3], ids=["figure", "table"])
def test_results_of_other_data_in_the_folder_are_refused(build, tmp_path, capsys):
    """Those of a folder without data.json, too: runs may be copied alone. Nothing is to do."""
    folder = make_clothing1m_like(tmp_path / "tiny", size=16)
    loaded = clothing1m.load(folder)
    study = Clothing1MStudy(CLOTHING1M_DIGITS, "tiny", load=lambda: reordered(loaded))
    labels = np.eye(len(loaded.class_names))[loaded.train.labels]
    store, first_step = RunStore(tmp_path / "results" / study.folder), study.first_step(*REAL, 0)
    fields = {"iterations": 0, "seconds": 0.0, "provenance": {"commit": None, "sources": None}}
    for run in (first_step, study.baseline("cross_entropy", *REAL, 0), study.joint(*REAL, 0)):
        record(store, run, data=reordered(loaded).fingerprint(), **fields)
    store.save_labels(first_step, np.float32(labels))
    with pytest.raises(SystemExit) as exit_:
        main(build, "Test.", flags(folder, tmp_path))
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and reordered(loaded).fingerprint() in error
    assert not list(tmp_path.rglob("figure7.*")) and not list(tmp_path.rglob("table3.*"))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_diverged_first_step_leaves_no_labels_and_no_second_step(data, tmp_path):
    store = RunStore(tmp_path)
    sgd = replace(ON_DISK.optimization, learning_rate=1e30)
    hopeless = replace(ON_DISK, optimization=sgd)
    second = replace(SECOND, first_step=hopeless)
    assert [state for _, state, _ in work(store, data, second)] == ["diverged"]
    assert store.result(hopeless)["state"] == "diverged" and store.soft_labels(hopeless) is None
    assert store.result(second) is None
    with pytest.raises(UserError, match="first step has to finish first"):
        Run(second, data, store, COMPUTATION)


def test_what_a_kill_left_beside_a_result_is_removed(data, tmp_path):
    store = RunStore(tmp_path)
    worker.execute(ON_DISK, store, data, COMPUTATION)
    store.snapshot(ON_DISK).touch()  # as of a kill between the result and its removal
    assert work(store, data, ON_DISK) == []
    assert not store.snapshot(ON_DISK).exists()


def test_what_another_process_has_ended_meanwhile_is_not_run_again(data, tmp_path, monkeypatch):
    """It ends between the look at what is left and the lock."""
    store, lock = RunStore(tmp_path), RunStore.lock

    def lock_later(self, experiment):
        if store.result(experiment) is None:
            Run(experiment, data, store, COMPUTATION).finish()
        return lock(self, experiment)

    monkeypatch.setattr(RunStore, "lock", lock_later)
    monkeypatch.setattr(worker, "Run", lambda *_: pytest.fail("run again"))
    events = work(store, data, ON_DISK)
    assert [(state, result["id"]) for _, state, result in events] == [("finished", ON_DISK.id)]


def test_other_weights_than_a_run_is_described_with_are_refused(tmp_path):
    (tmp_path / "weights.npz").write_bytes(b"others")
    described = SimpleNamespace(network=Network((), (), weights="original-0123456789ab"))
    split = SimpleNamespace(num_classes=3)
    with pytest.raises(UserError, match="weights.npz: original-.*, expected original-0123456789ab"):
        make_network(described, split, 1, None, str(tmp_path / "weights.npz"))


def test_through_a_graph_as_by_calls(stand_in, data, tmp_path):  # noqa: F811
    """Pixels reach the graph from outside, as does the learning rate."""
    outcomes = []
    for name in ("calls", "graph"):
        store = RunStore(tmp_path / name)
        run = Run(ON_DISK, data, store, COMPUTATION)
        if name == "graph":
            run.graph = True
            stand_in.optimizer = None
            run._build()
        run.finish()
        outcomes.append((store.soft_labels(ON_DISK), [e["test"] for e in store.log(ON_DISK)]))
    assert len(stand_in.made) == 2, "one for the step, one for the evaluation"
    np.testing.assert_array_equal(outcomes[0][0], outcomes[1][0])
    assert outcomes[0][1] == outcomes[1][1]


@pytest.mark.parametrize("every", [3, None])
def test_recovery_is_of_the_images_whose_true_label_is_known(every, data, tmp_path):
    known = np.zeros(len(data.train), bool)
    known[::every] = every is not None
    truth = np.where(known, data.train.true_labels, UNKNOWN)
    part = replace(data, train=replace(data.train, true_labels=truth))
    result = Run(replace(SECOND, first_step=None), part, RunStore(tmp_path), COMPUTATION).finish()
    if every:
        right = result["last"]["recovery"] * known.sum()
        assert right == pytest.approx(round(right))
    else:
        assert result["last"].get("recovery") is result["noisy_labels_right"] is None


def test_the_second_step_is_scored_by_its_predictions_for_the_training_images(data, tmp_path):
    """As the baselines are; the labels of the first step are another number."""
    store = RunStore(tmp_path)
    record(store, ON_DISK, data=data.fingerprint())
    true = data.train.true_labels
    store.save_labels(ON_DISK, np.eye(len(data.class_names), dtype=np.float32)[true])
    run = Run(SECOND, data, store, COMPUTATION)
    result = run.finish()
    shares = [result["last"]["recovery_by_class"][k] * (true == k).sum() for k in np.unique(true)]
    assert result["last"]["recovery"] == pytest.approx(sum(shares) / len(true))
    assert 0 <= result["best"]["recovery"] < 1


@pytest.mark.parametrize(("given", "expected"), [
    ({"cpu.max": "max 100000\n"}, 8),
    ({"cpu.max": "150000 100000\n"}, 2),
    ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
    ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ({}, 8),
    (None, 64),  # a system that does not tell which cores may be used
])  # fmt: skip
def test_no_more_cores_than_a_container_is_granted(given, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    if given is None:
        monkeypatch.delattr(os, "sched_getaffinity")
        ImageStream(1, resize=4, crop=4).close()
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(devices, "CGROUP", tmp_path)
    for name, text in (given or {}).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert devices.usable_cores() == expected
