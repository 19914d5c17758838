"""benchmarks/human_labels.py and label_errors_rare.py: labels as they are drawn, features in the
order of the images, and the committed pages."""

import json
from pathlib import Path

import annotators
import human_labels
import label_errors_page
import label_errors_rare
import label_tasks
import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from chainer_jo.errors import UserError


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


@pytest.mark.parametrize("module", [annotators, human_labels, label_errors_rare])
def test_committed_pages_follow_from_their_records(module):
    file = Path(module.__file__).parent / "results" / f"{module.__name__}.json"
    columns = annotators.RIGHT if module is annotators else label_errors_page.SCORES
    result = json.loads(file.read_text())
    page = label_errors_page.markdown(result, module.summary, columns)
    assert file.with_suffix(".md").read_text() == page
