"""Benchmarks label_errors.py and label_errors_of_images.py find wrong labels; scores are right."""

import label_errors as benchmark
import label_errors_of_images as of_images
import label_tasks
import numpy as np
import pytest

from chainer_jo.method import noise


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
    for name, method in benchmark.METHODS.items():
        found = benchmark.measure(task, method, 0)
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
        return benchmark.Verdict(wrong, new, 1.0 - wrong)

    found = benchmark.measure(task, verdict, 0)
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
    return of_images.with_files([task], pixels, tmp_path / "images")[0]


def test_methods_find_wrong_labels_of_image_files(images, cache):
    found = benchmark.measure(images, of_images.METHODS["relabel, pixels"], 0)
    assert found["right"] > 0.95 > found["right_before"]
    seen = []

    def method(features, given, seed):
        seen.append(features)
        return benchmark.disagreement(features, given, seed)

    benchmark.measure(images, of_images.on_computed(method, "pixels"), 0)
    assert seen[0].shape == (120, 3 * 9 * 9)
    upper = seen[0].reshape(120, 9, 9, 3)[images.true == 0].mean(axis=(0, 2, 3))
    assert (upper[:3] > 100 / 255).all() and (upper[3:] < 100 / 255).all()
