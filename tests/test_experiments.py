"""Descriptions, the store, presets: what is run, and where it is kept."""

import json
import math
import os
from dataclasses import replace

import numpy as np
import pytest
from tiny import STUDY

from chainer_jo.data import digits
from chainer_jo.data.labelled_data import UNKNOWN, Labelled, LabelledData, as_keys
from chainer_jo.errors import UserError
from chainer_jo.method.augmentation import mean_image
from chainer_jo.method.cnn_crf import CNNCRF, K_END
from chainer_jo.method.extensions import BestEpoch
from chainer_jo.method.label_sources import SOURCES, Drawn
from chainer_jo.reproduction.experiments.experiment import (
    Experiment,
    ImageSelection,
    LabelSchedule,
    Network,
    Noise,
    Optimization,
)
from chainer_jo.reproduction.experiments.presets import DIGITS, HALF, PAPER, PRESETS, Study
from chainer_jo.reproduction.running.run import Computation, Run
from chainer_jo.reproduction.running.scheduler import pending, with_first_steps
from chainer_jo.reproduction.running.store import RunStore


@pytest.fixture
def study():
    return Study(DIGITS, "digits")


def test_every_field_changes_the_id(study):
    experiment = study.first_step("symmetric", 0.5, 0)
    changes = dict(
        data=ImageSelection("other"), noise=Noise("asymmetric", 0.5), network=Network((1,), (4,)),
        optimization=replace(experiment.optimization, learning_rate=0.3), objective="forward",
        seed=7, alpha=0.1, beta=0.1, relabelling=LabelSchedule(1, 2), first_step=experiment,
        precision="mixed",
    )  # fmt: skip
    others = [replace(experiment, **{name: value}) for name, value in changes.items()]
    others += [experiment, replace(experiment, data=ImageSelection("digits", shrink=2))]
    assert len({each.id for each in others}) == len(others)


def test_no_noise_is_one_run_whatever_its_kind():
    assert Noise("symmetric", 0.0) == Noise("asymmetric", 0.0) == Noise()


@pytest.mark.parametrize("make", [
    lambda: Experiment.from_dict({"seed": 1}),
    lambda: Experiment.from_dict({"colour": "red"}),
    lambda: Experiment.from_dict([]),
    lambda: Experiment.from_dict({"data": 3}),
    lambda: Noise("symmetric", 1.5),
    lambda: Noise("pink", 0.1),
    lambda: Optimization(0, 0.1),
    lambda: Optimization(1.5, 0.1),
    lambda: Optimization(1, 0.0),
    lambda: Optimization(1, math.nan),
    lambda: Optimization(1, math.inf),
    lambda: Optimization("1", 0.1),
])  # fmt: skip
def test_damaged_descriptions_and_impossible_values_are_refused(make):
    with pytest.raises(UserError, match="expected|description of a run"):
        make()


def test_paper_preset_is_the_paper():
    study = Study(PAPER, "cifar10")
    second = study.joint("symmetric", 0.7, 0)
    first = second.first_step
    assert (first.alpha, first.beta, first.optimization.learning_rate) == (1.2, 0.8, 0.08)
    assert (first.optimization.epochs, first.optimization.drops) == (200, ())
    assert first.relabelling == LabelSchedule(70, 200, "soft", None, 10)
    assert (second.optimization.epochs, second.optimization.drops) == (120, (40, 80))
    assert second.optimization.learning_rate == 0.2
    assert (second.alpha, second.beta, second.objective) == (0, 0, "cross_entropy")
    for step in (first, second):
        sgd = step.optimization
        assert (sgd.batch_size, sgd.momentum, sgd.weight_decay) == (128, 0.9, 1e-4)
        assert (sgd.pad, sgd.flip) == (4, True)
        assert step.network == Network((5, 5, 5), (32, 64, 128))
    baseline = study.baseline("cross_entropy", "symmetric", 0.7, 0)
    assert baseline == replace(second, first_step=None)
    assert [study.labels(k) for k in (50, 500, 5000)] == [50, 500, 5000]
    assert len(study.comparison_trials()) == 5 and len(study.sensitivity_trials()) == 3
    assert study.first_step("symmetric", 0.7, 0, stop_epoch=200) == first
    longer = study.first_step("symmetric", 0.7, 0, stop_epoch=300)
    assert longer.optimization.epochs == longer.relabelling.stop == 300


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_no_more_labels_are_updated_than_there_are(preset):
    counts = [Study(preset, "x").labels(k) for k in (50, 500, 5000)]
    assert counts == sorted(counts)
    assert counts[0] >= 1 and counts[-1] <= preset.train_images


def test_folders_keep_data_sets_apart():
    found = [Study(DIGITS, "digits"), Study(PAPER, "cifar10"), Study(PAPER, "cifar10-jpeg")]
    assert [study.folder for study in found] == ["digits", "paper", "paper-cifar10-jpeg"]
    assert Study(HALF, "cifar10-jpeg").folder == "half"
    data = ("cifar10", "cifar10-jpeg", "x")
    assert len({Study(p, d).folder for p in PRESETS.values() for d in data}) == 3 * len(PRESETS)


def test_runs_of_one_trial_share_split_and_noise(study):
    data = digits.load()
    described = (
        study.first_step("symmetric", 0.5, 3),
        *(study.baseline("cross_entropy", "symmetric", 0.5, trial) for trial in (3, 4)),
    )
    method, baseline, other = (experiment.split(data) for experiment in described)
    np.testing.assert_array_equal(method.train.images, baseline.train.images)
    np.testing.assert_array_equal(method.train.labels, baseline.train.labels)
    assert (method.train.images != other.train.images).any()
    kept, others = (t.train.labels == t.train.true_labels for t in (method, other))
    assert (kept != others).mean() > 0.3  # half of them change places with the seed
    np.testing.assert_array_equal(method.mean, mean_image(method.train.images))
    right = (method.train.labels == method.train.true_labels).mean()
    assert 0.5 < right < 0.6 and right == method.noisy_labels_right


def test_steps_of_a_trial_start_from_different_weights_and_baselines_as_the_second(tmp_path):
    described = (
        STUDY.first_step("symmetric", 0.5, 0),
        STUDY.baseline("cross_entropy", "symmetric", 0.5, 0),
        STUDY.baseline("forward", "symmetric", 0.5, 0),
    )
    first, *baselines = (built(e, tmp_path).model.predictor.conv.W.array for e in described)
    assert (first != baselines[0]).all()
    np.testing.assert_array_equal(*baselines)


def built(experiment, root):
    return Run(experiment, digits.load(), RunStore(root), Computation(engine="stock"))


def test_a_run_is_put_together_as_it_is_described(tmp_path):
    """By every number that the description of a first step has."""
    sgd = Optimization(3, 0.03, (1, 2), 32, 0.8, 3e-4, pad=1, flip=True)
    relabelling = LabelSchedule(1, 2, "top", 7, 2)
    first_step = STUDY.first_step("symmetric", 0.5, 0)
    run = built(replace(first_step, optimization=sgd, relabelling=relabelling), tmp_path)
    optimizer, store = run.updater.get_optimizer("main"), run.updater.labels
    assert (optimizer.lr, optimizer.momentum, optimizer.weight_decay) == (0.03, 0.8, 3e-4)
    assert (store.rule, store.top, len(store._ring)) == ("top", 7, 2)
    objective = run.model.objective
    assert (objective.alpha, objective.beta) == (first_step.alpha, first_step.beta) != (0, 0)
    np.testing.assert_array_equal(objective.prior, np.full(10, 0.1, np.float32))
    batch = run.updater.get_iterator("main").next()
    assert len(batch.indices) == 32 and set(batch.flips) == {False, True}
    assert set(batch.dy) == set(batch.dx) == {0, 1, 2}
    update = run.trainer.get_extension("LabelUpdate")
    assert (update.start, update.stop) == (1, 2)
    assert run.trainer.stop_trigger.get_training_length() == (3, "epoch")


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
def test_baselines_are_told_the_matrix_of_the_noise_that_their_labels_have(kind, tmp_path):
    described = (STUDY.baseline(method, kind, 0.4, 0) for method in ("forward", "cnn_crf"))
    forward, crf = (built(replace(e, data=ImageSelection("digits")), tmp_path) for e in described)
    T = forward.model.objective.transition
    train, pairs = forward.split.train, np.zeros((10, 10))
    np.add.at(pairs, (train.true_labels, train.labels), 1)
    np.testing.assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), T, atol=0.12)
    objective = CNNCRF(T, np.full(10, 0.1), 100)
    np.testing.assert_array_equal(crf.model.objective.log_auxiliary, objective.log_auxiliary)
    if kind == "asymmetric":
        assert crf.finish()["state"] == "finished" and crf.model.objective.k == K_END


def test_the_second_step_trains_on_the_labels_of_the_first(tmp_path):
    second = STUDY.joint("symmetric", 0.5, 0)
    first = built(second.first_step, tmp_path)
    first.finish()
    result = first.store.result(second.first_step)
    labels = built(second, tmp_path).updater.labels.soft_labels
    np.testing.assert_array_equal(labels, first.store.soft_labels(second.first_step))
    assert (labels.argmax(axis=1) != first.split.train.labels).any()
    # What is said of them: by class, and in the ranges of Tables 12 and 13.
    right, sure = labels.argmax(axis=1) == first.split.train.true_labels, labels.max(axis=1)
    by_class = [right[first.split.train.true_labels == k].mean() for k in range(10)]
    assert result["last"]["recovery_by_class"] == pytest.approx(by_class)
    logged = first.store.log(second.first_step)[-1]["recovery"]
    assert logged == pytest.approx(right.mean())
    bounds = [0.0, 0.9, 0.95, 0.99]
    within = np.searchsorted(bounds, sure, side="right") - 1
    assert [tuple(row.values()) for row in result["confidence"]] == [
        (bounds[k], (within == k).sum(), right[within == k].sum()) for k in (3, 2, 1, 0)
    ]


def test_scores_are_of_the_best_epoch_and_of_the_last(tmp_path, monkeypatch):
    def nothing_learnt(best):
        for param in run.model.params():
            param.array[...] = 0

    monkeypatch.setattr(BestEpoch, "restore", nothing_learnt)
    baseline = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)
    run = built(baseline, tmp_path)
    result, log = run.finish(), run.store.log(baseline)
    for score, entry in (("best", max(log, key=lambda e: e["validation"])), ("last", log[-1])):
        assert (result[score]["epoch"], result[score]["test"]) == (entry["epoch"], entry["test"])
    first_class = (run.split.train.true_labels == 0).mean()
    assert result["best"]["recovery"] == pytest.approx(first_class)
    assert result["last"]["recovery"] != pytest.approx(first_class)


def test_an_unknown_objective_is_refused_when_its_run_begins(tmp_path):
    """It may be registered in one script only, and its runs are read in others."""
    run = STUDY.joint("symmetric", 0.5, 0, objective="mine").first_step
    assert Experiment.from_dict(run.to_dict()).id == run.id
    with pytest.raises(UserError, match="^objective 'mine': expected one of cross_entropy, joint,"):
        built(run, tmp_path)


def test_another_data_set_is_refused(study):
    other = replace(study.baseline("forward", "symmetric", 0.5, 0), data=ImageSelection("other"))
    with pytest.raises(UserError, match="needs 'other'"):
        other.split(digits.load())


def own_noise(monkeypatch, study, draw, matrix=lambda rate, names: np.eye(len(names))):
    monkeypatch.setitem(SOURCES, "mine", Drawn("mn", draw, matrix))
    return study.baseline("forward", "mine", 0.3, 0).split(digits.load())


@pytest.mark.parametrize(("drawn", "found"), [
    (lambda labels: np.full_like(labels, -1), r"int32 \(1348,\) from -1 to -1"),
    (lambda labels: labels + np.int32(1), r"int32 \(1348,\) from 1 to 10"),
    (lambda labels: labels.astype(np.int64), r"int64 \(1348,\)"),
    (lambda labels: np.eye(10, dtype=np.int32)[labels], r"int32 \(1348, 10\)"),
    (lambda labels: labels[:5], r"int32 \(5,\)"),
    (lambda labels: labels.tolist(), "list"),
    (lambda labels: None, "NoneType"),
])  # fmt: skip
def test_labels_that_a_noise_should_not_draw_are_refused(monkeypatch, study, drawn, found):
    expected = rf"noise 'mine': labels are {found}, expected int32 \(1348,\) from 0 to 9$"
    with pytest.raises(UserError, match=expected):
        own_noise(monkeypatch, study, lambda labels, *_: drawn(labels))


@pytest.mark.parametrize(
    ("matrix", "found"),
    [(np.eye(3), r"float64 \(3, 3\)"), ([[1, 0], [1]], "list"), (None, "NoneType")],
)
def test_transition_matrices_of_another_shape_are_refused(monkeypatch, study, matrix, found):
    split = own_noise(monkeypatch, study, lambda labels, *_: labels, lambda rate, names: matrix)
    with pytest.raises(UserError, match=rf"noise 'mine': T is {found}, expected .* \(10, 10"):
        _ = split.transition_matrix


def test_noise_that_comes_with_the_images_is_counted_where_true_labels_are_known(study):
    """A transition matrix without noise would make Forward and CNN-CRF cross entropy."""
    rng, digit = np.random.default_rng(0), digits.load()
    true, images = digit.train.labels, digit.train.images
    noisy = np.where(rng.random(len(true)) < 0.4, 9 - true, true).astype(np.int32)
    known = np.where(rng.random(len(true)) < 0.5, true, UNKNOWN).astype(np.int32)

    def noisy_set(true):
        return replace(digit, train=Labelled(images, noisy, true), validation=digit.test)

    def split(true):
        return study.baseline("forward", "real", 0.0, 0).split(noisy_set(true))

    with pytest.raises(UserError, match="^noise 'none': the data have noisy labels, expected 'rea"):
        study.baseline("forward", "none", 0.0, 0).split(noisy_set(true))
    expected = 0.6 * np.eye(10) + 0.4 * np.eye(10)[::-1]
    np.testing.assert_allclose(split(known).transition_matrix, expected, atol=0.2)
    for missing in (np.full_like(true, UNKNOWN), np.where(true == 3, UNKNOWN, true)):
        with pytest.raises(UserError, match="^noise 'real': T is not known, expected images of"):
            _ = split(missing.astype(np.int32)).transition_matrix


def test_first_steps_come_first_and_once_unless_they_have_finished(tmp_path, study):
    """With labels, where a second step needs them."""
    store, second = RunStore(tmp_path), study.joint("symmetric", 0.5, 0)
    first = second.first_step
    assert with_first_steps([second, first, second]) == [first, second]
    assert pending([second], store) == [first, second]
    store.open(first)
    store.save_result(first, {"id": first.id, "state": "finished"})
    assert pending([second], store) == [first, second]
    assert pending([first], store) == []
    store.save_labels(first, np.ones((3, 2), np.float32))
    assert pending([second], store) == [second]


def test_store_refuses_what_is_not_its_own(tmp_path, study):
    store = RunStore(tmp_path)
    experiment, other = (study.baseline("forward", "symmetric", rate, 0) for rate in (0.3, 0.5))
    folder = store.open(experiment)
    (folder / "experiment.json").write_text(json.dumps(other.to_dict()))
    with pytest.raises(UserError, match=f"another description, not {experiment.id}'s"):
        store.open(experiment)
    (folder / "result.json").write_text(json.dumps({"id": other.id}))
    with pytest.raises(UserError, match=other.id):
        store.result(experiment)
    (folder / "result.json").write_text("{")
    with pytest.raises(UserError, match="not readable"):
        store.result(experiment)


def test_what_is_half_deleted_is_no_result(tmp_path, study, monkeypatch):
    """Without its labels or its log it would stay for good."""
    store, experiment = RunStore(tmp_path), study.baseline("forward", "symmetric", 0.3, 0)
    for name in [f"labels.npz{n:08x}.tmp" for n in range(20)]:  # a folder is listed in any order
        (store.open(experiment) / name).touch()
    store.save_result(experiment, {"id": experiment.id})
    unlink, removed = os.unlink, []

    def killed_at_the_second(path):
        if removed:
            raise KeyboardInterrupt
        removed.append(path)
        unlink(path)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "unlink", killed_at_the_second)
        store.delete(experiment)
    assert store.result(experiment) is None
    store.delete(experiment)
    names = {path.name for path in store.folder(experiment).iterdir()}
    assert names == {"experiment.json", "lock"}


def test_noisy_data_are_shrunk_and_taken_by_class_as_others():
    whole = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0).split(digits.load())
    sets = [whole.train, *whole.evaluation_sets.values()]
    data = LabelledData("digits", whole.class_names, *sets)
    preset = replace(DIGITS, shrink=2, train_per_class=5, test_per_class=2)
    experiment = Study(preset, "digits").baseline("cross_entropy", "real", 0, 0)
    with pytest.raises(UserError, match="noise 'symmetric': the data have noisy labels, exp"):
        replace(experiment, noise=Noise("symmetric", 0.7)).split(data)
    split = experiment.split(data)
    assert [np.bincount(split.train.labels).tolist(), len(split.evaluation_sets["test"])] == [
        [5] * 10, 20,
    ]  # fmt: skip
    for k in range(10):
        first = whole.train.images[whole.train.labels == k][:5].astype(int)
        means = first.reshape(5, 4, 2, 4, 2, 1).sum(axis=(2, 4)) / 4
        chosen = split.train.images[split.train.labels == k]
        np.testing.assert_allclose(chosen, means, atol=0.5)
    assert {len(each.images) for each in split.evaluation_sets.values()} == {len(sets[1]), 20}
    on_disk = replace(
        data, **{n: replace(each, images=as_keys("a" * len(each))) for n, each in data.sets.items()}
    )
    with pytest.raises(UserError, match="images on disk shrunk, expected resize and crop"):
        on_disk.shrunk(2)
    with pytest.raises(UserError, match="1000 train images per class asked for, expected 1 to"):
        data.subset(1000)
