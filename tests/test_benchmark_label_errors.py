"""Benchmarks of label errors: labels as they are drawn, features in the order of the images, wrong
labels found, scores, and the committed pages."""

import json
from pathlib import Path

import annotators
import human_labels
import label_errors
import label_errors_of_images
import label_errors_page
import label_errors_rare
import label_tasks
import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from chainer_jo.errors import UserError
from chainer_jo.method import noise


def test_the_twin_has_the_transition_matrix_and_no_looks():
    true = np.arange(30_000, dtype=np.int32) % 3
    given = np.where(np.arange(30_000) % 10 == 0, (true + 1) % 3, true)  # one in ten, by its place
    human, twin = human_labels.human_tasks(np.zeros((30_000, 2)), true, {"worse": given})
    assert (human.name, twin.name) == ("worse", "worse, drawn by class")
    np.testing.assert_array_equal(human.draw(1)[1], given)
    drawn = twin.draw(1)[1]
    expected = confusion_matrix(true, given, normalize="true")
    np.testing.assert_allclose(confusion_matrix(true, drawn, normalize="true"), expected, atol=0.01)
    assert np.mean(drawn[::10] == true[::10]) == pytest.approx(0.9, abs=0.02)
    assert (twin.draw(2)[1] != drawn).any()


def test_features_are_sorted_by_path(tmp_path):
    file, features = tmp_path / "f.npz", np.float16([[1, 2], [3, 4], [5, 6]])
    np.savez(file, features=features, paths=np.array(["2.png", "0.png", "1.png"]))
    np.testing.assert_array_equal(human_labels.read_features(file, 3), features[[1, 2, 0]])
    with pytest.raises(UserError, match="3 images, expected 4"):
        human_labels.read_features(file, 4)
    np.savez(file, features=features)
    with pytest.raises(UserError, match="expected one of chainer-jo features"):
        human_labels.read_features(file, 3)


def test_rare_errors_are_of_their_kinds_and_rates(tmp_path):
    features = np.random.default_rng(0).normal(size=(50_000, 20)).astype(np.float16)
    np.savez(tmp_path / "f.npz", features=features)
    tasks = {task.name: task for task in label_tasks.rare_errors_tasks(tmp_path / "f.npz")}
    assert len(tasks) == 16
    for name, task in tasks.items():
        _, given = task.draw(5)
        kind, rate = name.removesuffix(" %").rsplit(", ", 1)
        wrong = given != task.true
        assert wrong.mean() == pytest.approx(float(rate) / 100)
        if kind == "cats called dogs":
            assert set(task.true[wrong]) == {3} and set(given[wrong]) == {5}
        elif kind == "the paper's pairs":
            pairs = set(zip(task.true[wrong].tolist(), given[wrong].tolist(), strict=True))
            assert pairs <= {(9, 1), (2, 0), (4, 7), (3, 5), (5, 3)}
        else:
            assert np.bincount(given[wrong], minlength=10).min() > 0 or len(given[wrong]) < 200


def test_methods_see_the_same_probabilities():
    rng = np.random.default_rng(0)
    given = (np.arange(90) % 3).astype(np.int32)
    features = (np.eye(3, 4)[given] * 4 + rng.normal(size=(90, 4))).astype(np.float32)
    first = human_labels.NETWORKS(features, given, 0)
    assert human_labels.NETWORKS(features.copy(), given.copy(), 0) is first
    for other in ((features + 1, given, 0), (features, given[::-1], 0), (features, given, 1)):
        assert human_labels.NETWORKS(*other) is not first


@pytest.mark.parametrize("module, columns", [
    (annotators, (annotators.RIGHT,)),
    (human_labels, (label_errors_page.SCORES,)), (label_errors_rare, (label_errors_page.SCORES,)),
    (label_errors, ()), (label_errors_of_images, ()),
])  # fmt: skip
def test_committed_pages_follow_from_their_records(module, columns):
    file = Path(module.__file__).parent / "results" / f"{module.__name__}.json"
    page = label_errors_page.markdown(json.loads(file.read_text()), module.summary, *columns)
    assert file.with_suffix(".md").read_text() == page


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    true = (np.arange(240) % 3).astype(np.int32)
    features = (np.eye(3, 5)[true] * 4 + rng.normal(size=(240, 5))).astype(np.float32)

    def draw(seed):
        rng = np.random.default_rng(seed)
        return np.arange(240), noise.symmetric(true, 0.4, 3, rng)

    return label_tasks.Task("blobs", features, true, draw)


def test_every_method_finds_wrong_labels(task):
    pytest.importorskip("cleanlab", reason="extra bench")
    for name, method in label_errors.METHODS.items():
        found = label_errors.measure(task, method, 0)
        assert found["f1"] > 0.7 and found["right"] > found["right_before"], name
        assert found["right_before"] == pytest.approx((task.draw(0)[1] == task.true).mean())
        assert not found["doubt"] and found["processor_seconds"] > 0


def test_scores_are_those_of_the_verdict(task):
    _, given = task.draw(0)
    bad = np.flatnonzero(given != task.true)
    good = np.flatnonzero(given == task.true)

    def verdict(features, given, seed):
        wrong = np.zeros(len(given), bool)
        wrong[bad[:10]] = wrong[good[:5]] = True
        new = given.copy()
        new[bad[:10]] = task.true[bad[:10]]
        new[good[:5]] = (given[good[:5]] + 1) % 3
        return label_errors.Verdict(wrong, new, 1.0 - wrong)

    found = label_errors.measure(task, verdict, 0)
    assert found["precision"] == pytest.approx(10 / 15)
    assert found["recall"] == pytest.approx(10 / len(bad))
    assert found["f1"] == pytest.approx(20 / (15 + len(bad)))
    assert found["right"] == pytest.approx((len(good) + 5) / len(given))
    assert found["broken"] == 5


@pytest.fixture
def images(tmp_path):
    """Three classes of grey images, told apart by their upper, middle and lower rows."""
    rng = np.random.default_rng(0)
    true = (np.arange(120) % 3).astype(np.int32)
    pixels = rng.integers(0, 100, (120, 9, 9, 1)).astype(np.uint8)
    for k in range(3):
        pixels[true == k, 3 * k : 3 * k + 3] += 100
    given = np.where(rng.random(120) < 0.2, (true + 1) % 3, true)
    task = label_tasks.Task("rows", pixels, true, lambda seed: (np.arange(120), given))
    return label_errors_of_images.with_files([task], pixels, tmp_path / "images")[0]


def test_methods_find_wrong_labels_of_image_files(images, cache):
    found = label_errors.measure(images, label_errors_of_images.METHODS["relabel, pixels"], 0)
    assert found["right"] > 0.95 > found["right_before"]
    seen = []

    def method(features, given, seed):
        seen.append(features)
        return label_errors.disagreement(features, given, seed)

    label_errors.measure(images, label_errors_of_images.on_computed(method, "pixels"), 0)
    assert seen[0].shape == (120, 3 * 9 * 9)
    upper = seen[0].reshape(120, 9, 9, 3)[images.true == 0].mean(axis=(0, 2, 3))
    assert (upper[:3] > 100 / 255).all() and (upper[3:] < 100 / 255).all()
