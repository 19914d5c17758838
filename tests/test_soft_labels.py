"""Label averaging against a loop written by hand, and the hard rules against their definition."""

import numpy as np
import pytest
from chainer import serializers

from chainer_jo.errors import UserError
from chainer_jo.method.soft_labels import RULES, SoftLabels

pytestmark = pytest.mark.usefixtures("arithmetic")

N, C = 30, 4


def epochs(count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(C), N).astype(np.float32) for _ in range(count)]


def feed(labels, probabilities):
    """One epoch in two batches, in some order."""
    order = np.random.default_rng(9).permutation(N)
    for part in (order[:17], order[17:]):
        labels.write(part, probabilities[part])
    labels.end_epoch()


NOISY = np.arange(N) % C


@pytest.mark.parametrize("average", [3, 10, None])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 25])
def test_labels_are_the_mean_of_the_last_epochs_or_its_arg_max(average, count):
    history = epochs(count)
    several = [SoftLabels(NOISY, C, rule, average=average) for rule in ("soft", "hard")]
    for labels in several:
        for probabilities in history:
            feed(labels, probabilities)
        labels.update()
    last = history if average is None else history[-average:]
    expected = np.mean(last, axis=0, dtype=np.float64)
    np.testing.assert_allclose(several[0].soft_labels, expected, atol=1e-6)
    np.testing.assert_array_equal(several[1].soft_labels, np.eye(C)[expected.argmax(axis=1)])


def test_images_not_seen_keep_their_latest_probabilities():
    first, second = epochs(2)
    labels = SoftLabels(NOISY, C, "soft", average=1)
    feed(labels, first)
    labels.write(np.array([4, 5]), second[4:6])
    labels.end_epoch()
    labels.update()
    np.testing.assert_array_equal(labels.soft_labels[4:6], second[4:6])
    np.testing.assert_array_equal(labels.soft_labels[:4], first[:4])


@pytest.mark.parametrize("wrong", [-1, C])
def test_labels_that_are_no_classes_are_refused(wrong):
    with pytest.raises(UserError, match=f"^labels from .*{wrong}.*: expected 0 to {C - 1}$"):
        SoftLabels(np.array([0, wrong, 1]), C, "soft")


@pytest.mark.parametrize("top", [1, 5, 1000])
def test_top_replaces_those_that_disagree_most(top):
    history = epochs(4)
    labels = SoftLabels(NOISY, C, "top", top=top, average=10)
    for probabilities in history:
        feed(labels, probabilities)
    labels.update()
    mean = np.mean(history, axis=0)
    disagreeing = [i for i in range(N) if mean[i].argmax() != NOISY[i]]
    chosen = sorted(disagreeing, key=lambda i: mean[i, NOISY[i]])[:top]
    for i in range(N):
        expected = mean[i].argmax() if i in chosen else NOISY[i]
        np.testing.assert_array_equal(labels.soft_labels[i], np.eye(C)[expected])
    assert 0 < len(chosen) < N


@pytest.mark.parametrize("rule, average", [("soft", 3), ("soft", None), (None, None)])
def test_continues_from_a_snapshot(tmp_path, rule, average):
    history = epochs(6)
    whole = SoftLabels(NOISY, C, rule, average=average)
    for probabilities in history[:4]:
        feed(whole, probabilities)
    serializers.save_npz(tmp_path / "labels.npz", whole)
    continued = SoftLabels(np.zeros(N, int), C, rule, average=average)
    serializers.load_npz(tmp_path / "labels.npz", continued)
    for labels in (whole, continued):
        for probabilities in history[4:]:
            feed(labels, probabilities)
        labels.update()
    np.testing.assert_array_equal(continued.soft_labels, whole.soft_labels)
    np.testing.assert_array_equal(continued.probabilities, whole.probabilities)


@pytest.mark.parametrize("keywords", [
    {"rule": "softer"}, {"rule": "top"}, {"rule": "top", "top": 0}, {"rule": "soft", "average": 0},
])  # fmt: skip
def test_refuses_unknown_rules(keywords):
    with pytest.raises(UserError, match="expected"):
        SoftLabels(NOISY, C, **keywords)


@pytest.mark.parametrize(("rule", "message"), [
    (lambda labels, mean: mean,
     r"'mine' returned or assigned labels: expected labels.soft_labels\[...\] = "),
    (lambda labels, mean: setattr(labels, "soft_labels", mean),
     "'mine' returned or assigned labels: expected .*, and nothing returned"),
    *((lambda labels, mean, row=row: np.copyto(labels.soft_labels, row),
       "'mine' wrote rows that are no probabilities: expected finite rows from 0 on that sum to 1")
      for row in (np.inf, np.nan, 1.0, np.eye(C)[0] * 3 - 2 / C)),
])  # fmt: skip
def test_refuses_a_rule_that_does_not_write_labels(monkeypatch, rule, message):
    monkeypatch.setitem(RULES, "mine", rule)
    labels = SoftLabels(NOISY, C, "mine")
    feed(labels, epochs(1)[0])
    with pytest.raises(UserError, match=f"label rule {message}"):
        labels.update()


def test_labels_of_a_network_that_diverged_are_not_the_rules_fault():
    labels = SoftLabels(NOISY, C, "soft")
    feed(labels, np.full((N, C), np.nan, np.float32))
    labels.update()
    assert np.isnan(labels.soft_labels).all()
