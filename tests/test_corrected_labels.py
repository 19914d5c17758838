"""The figure of twenty images with noisy, true and corrected labels."""

import importlib
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from tiny import STUDY, results

from chainer_jo import files
from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import first_step_images

HALVED = replace(STUDY, preset=replace(STUDY.preset, shrink=2))
build = importlib.import_module("corrected_labels").figure


def ended(study, root, correct):
    """A store in which the first step has ended with the labels that ``correct`` makes of noisy and
    true ones; figure and training set."""
    store, figure = RunStore(root), build(replace(study, load=digits.load))
    split = figure.first_step.split(digits.load())
    labels = np.eye(10, dtype=np.float32)[correct(split.train.labels, split.train.true_labels)]
    store.open(figure.first_step)
    store.save_result(figure.first_step, {
        "id": figure.first_step.id, "state": "finished", "data": split.fingerprint,
        "labels_sha256": store.save_labels(figure.first_step, 0.9 * labels + 0.01),
    })  # fmt: skip
    return store, figure, split.train


def half_of_them(noisy, true):
    return np.where(np.arange(len(true)) % 2, true, noisy)


@pytest.mark.parametrize("study", [STUDY, HALVED], ids=["as they are", "shrunk for the run"])
def test_images_of_full_size_have_their_labels_of_all_three_kinds(study, tmp_path, monkeypatch):
    draw = mock.Mock(wraps=first_step_images.draw_images)
    monkeypatch.setattr(first_step_images, "draw_images", draw)
    store, figure, train = ended(study, tmp_path, half_of_them)
    paths = figure.write(results(store), tmp_path, tmp_path)
    assert {path.suffix for path in paths} == {".png", ".pdf", ".csv", ".md", ".json"}
    found, shown = files.read_json(tmp_path / "corrected_labels.json"), draw.call_args[0][0]
    rows = found["images"]
    assert found["complete"] and len(rows) == len(shown) == 20
    assert [row["row"] for row in rows] == sorted({row["row"] for row in rows})
    full = STUDY.first_step("symmetric", 0.5, 0).split(digits.load()).train
    for row, (image, caption, _) in zip(rows, shown, strict=True):
        i = row["row"]
        noisy, true = train.labels[i], train.true_labels[i]
        assert (row["noisy"], row["true"]) == (str(noisy), str(true)) and noisy != true
        assert row["corrected"] == str(true if i % 2 else noisy)
        mark = "✓" if i % 2 else "✗"
        assert caption == f"{noisy} → {row['corrected']} {mark}\n(true: {true})"
        assert row["probability"] == pytest.approx(0.91)
        np.testing.assert_array_equal(image, full.images[i])


def test_labels_that_became_wrong_are_drawn_from_too(tmp_path):
    """All of them: the images of class 3 are the only ones; few wrong labels are all shown."""
    store, figure, train = ended(STUDY, tmp_path, lambda noisy, true: np.where(true == 3, 4, true))
    found = figure.data(results(store))
    assert found["wrong_after"] == (train.true_labels == 3).sum()
    either = (train.labels != train.true_labels) | (train.true_labels == 3)
    assert found["wrong_before_or_after"] == either.sum()
    assert any(row["noisy"] == row["true"] == "3" for row in found["images"])

    def three(noisy, true):
        return np.where(np.arange(len(true)) < 3, 9 - true, true)

    store, figure, _ = ended(replace(STUDY, noise_rates=(0.0,)), tmp_path / "few", three)
    assert [row["row"] for row in figure.data(results(store))["images"]] == [0, 1, 2]
    assert figure.write(results(store), tmp_path, tmp_path)


def test_before_the_run_and_without_its_labels(tmp_path):
    figure, store = build(STUDY), RunStore(tmp_path)
    assert not figure.data(results(store))["complete"]
    assert "not finished yet" in figure.text(results(store))
    assert len(figure.write(results(store), tmp_path, tmp_path)) == 5
    store, figure, _ = ended(STUDY, tmp_path, half_of_them)
    (store.folder(figure.first_step) / "labels.npz").unlink()
    assert figure.write(results(store), tmp_path, tmp_path) == []
    assert first_step_images.LOST in figure.text(results(store))


def test_a_run_that_was_done_again_is_drawn_again_and_of_other_images_refused(tmp_path):
    store, figure, _ = ended(STUDY, tmp_path, half_of_them)
    before, other = figure.data(results(store))["wrong_after"], digits.load()
    other = replace(other, train=replace(other.train, images=255 - other.train.images))
    with pytest.raises(UserError, match="of data with fingerprint"):
        replace(figure, load=lambda: other).data(results(store))
    store, figure, _ = ended(STUDY, tmp_path, lambda noisy, true: true)
    assert before and figure.data(results(store))["wrong_after"] == 0


def test_the_rate_is_the_headlines_where_the_study_has_it():
    rates = {(0.1, 0.5): 0.5, (0.3, 0.7): 0.3, None: 0.5}
    for given, rate in rates.items():
        assert build(replace(STUDY, noise_rates=given)).first_step.noise.rate == rate
