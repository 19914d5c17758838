"""benchmarks/label_errors_of_images.py: methods see image files as the command does."""

import label_errors as given_features
import label_errors_of_images as benchmark
import label_tasks
import numpy as np
import pytest


@pytest.fixture
def task(tmp_path):
    """Three classes of grey images, told apart by their upper, middle and lower rows."""
    rng = np.random.default_rng(0)
    true = (np.arange(120) % 3).astype(np.int32)
    images = rng.integers(0, 100, (120, 9, 9, 1)).astype(np.uint8)
    for k in range(3):
        images[true == k, 3 * k : 3 * k + 3] += 100
    given = np.where(rng.random(120) < 0.2, (true + 1) % 3, true)
    task = label_tasks.Task("rows", images, true, lambda seed: (np.arange(120), given))
    return benchmark.with_files([task], images, tmp_path / "images")[0]


def test_methods_find_wrong_labels_of_image_files(task, cache):
    found = given_features.measure(task, benchmark.METHODS["relabel, pixels"], 0)
    assert found["right"] > 0.95 > found["right_before"]
    seen = []

    def method(features, given, seed):
        seen.append(features)
        return given_features.disagreement(features, given, seed)

    given_features.measure(task, benchmark.on_computed(method, "pixels"), 0)
    assert seen[0].shape == (120, 3 * 9 * 9)
    upper = seen[0].reshape(120, 9, 9, 3)[task.true == 0].mean(axis=(0, 2, 3))
    assert (upper[:3] > 100 / 255).all() and (upper[3:] < 100 / 255).all()


def record(method, f1, right, **more):
    about = {"method": method, "seed": 0, "f1": f1, "right": right, "right_before": 0.5}
    return {**about, "doubt": False, **more}


def test_the_summary_names_the_chosen_features_and_the_best_of_cleanlab():
    choice = {"pixels (8 x 8)": 0.4, "built-in features (EfficientNet-Lite0)": 0.3}
    rows = [
        record("relabel, pixels", 0.9, 0.8),
        record("relabel, builtin", 0.7, 0.6),
        record("relabel, auto", 0.9, 0.8, choice=choice),
        record("cleanlab, regression, pixels", 0.5, 0.9),
        record("cleanlab, regression, builtin", 0.6, 0.7),
    ]
    lines = benchmark.summary({"some images": {row["method"]: [row] for row in rows}})
    best = "| some images | 90.0 | 70.0 | 90.0 | pixels 1 of 1 | 60.0 | regression, builtin |"
    assert best in lines
    assert "| some images | 50.0 | 80.0 | 60.0 | 80.0 | 70.0 | 0 of 1 |" in lines
